/* attention_lstm.c - AttentionLSTM: the LSTMs of EncoderDecoderLSTM, and attention of every decoder step
 * to the outputs of both. */
#include "rnn/forecast/forecast.h"

typedef struct attention_lstm {
    weft__model is;
    weft_rnn *encoder, *decoder;
    /* of states, of the encoder's outputs; NULL where widths are alike */
    weft__projection projection; weft_linear *output_projection;
    weft_interpretable_attention *attention;
    weft_gate_add_norm *gate; weft_layer_norm_layer *norm;   /* one of them */
    weft_linear *head;
} attention_lstm;

static weft_forecast run_model(void *model, const weft__reading *t)
{
    attention_lstm *m = model;
    weft_rnn_out e = weft__recur(t, &t->past, m->encoder, weft__with_fixed(t, t->past.x), WEFT_ZERO_STATE);
    weft_tensor *d = weft__recur(t, &t->future, m->decoder, weft__with_fixed(t, t->future.x),
                                 weft__projected(&m->projection, e.last))
                         .y;
    weft_tensor *past = m->output_projection ? weft_linear_run(m->output_projection, e.y) : e.y;
    weft_tensor *u = weft__attend_to_both(t, m->attention, past, d);
    weft_tensor *z =
        m->gate ? weft_gate_add_norm_run(m->gate, u, d) : weft_layer_norm_layer_run(m->norm, weft_add(d, u));
    return (weft_forecast){ weft_linear_run(m->head, z), e.last };
}

static bool makes_sense(weft_module *parent, const char *function, const weft_attention_lstm_opts *o)
{
    int64_t decoder = o ? o->d_decoder : 0;
    return weft__model_wants(parent, function, o, "opts is NULL") &&
           weft__model_wants(parent, function, o->num_layers > 0,
                             "num_layers of 1 or more is expected, not %d", o->num_layers) &&
           weft__model_wants(parent, function, o->num_heads > 0 && decoder % o->num_heads == 0,
                             "num_heads that divide d_decoder are expected, not %d of %lld", o->num_heads,
                             (long long)decoder);
}

static weft_attention_lstm_opts with_defaults(weft_attention_lstm_opts o)
{
    o.d_model = weft__or_count(o.d_model, 128);
    o.d_encoder = weft__or_count(o.d_encoder, o.d_model),
    o.d_decoder = weft__or_count(o.d_decoder, o.d_model);
    o.num_layers = (int)weft__or_count(o.num_layers, 2), o.num_heads = (int)weft__or_count(o.num_heads, 4);
    o.output_dim = weft__or_count(o.output_dim, 1);
    return o;
}

static void attention_new(attention_lstm *m, const weft_attention_lstm_opts *o, int64_t width)
{
    weft_interpretable_attention_opts attention = { width, o->num_heads, o->dropout };
    weft_gate_add_norm_opts gate = { width, width, o->dropout, o->trainable_add };
    m->attention = weft_interpretable_attention_new(m->is.m, "attention", &attention);
    if (!o->no_gating)
        m->gate = weft_gate_add_norm_new(m->is.m, "gate_add_norm", &gate);
    else
        m->norm = weft_layer_norm_layer_new(m->is.m, "layer_norm", &(weft_layer_norm_opts){ .width = width });
}

weft_forecaster *weft_attention_lstm_new(weft_module *parent, const char *name,
                                         const weft_attention_lstm_opts *opts)
{
    static const char *const function = "attention_lstm";
    const weft_attention_lstm_opts all = with_defaults(opts ? *opts : (weft_attention_lstm_opts){ 0 }),
                                   *o = &all;
    if (!makes_sense(parent, function, opts ? o : NULL))
        return weft__model_finished(NULL);
    const weft__model is = {
        .run = run_model, .name = function, .compat = o->compat, .past = o->num_past_features,
        .future = o->num_future_features, .fixed = o->num_static_features,
        .causal = !o->full_attention
    };
    attention_lstm *m = weft__model_new(parent, name, sizeof *m, &is);
    if (!m)
        return weft__model_finished(NULL);
    weft_module *own = m->is.m;
    int64_t encoder = o->d_encoder, decoder = o->d_decoder;
    weft_rnn_opts lstm = { .input = m->is.past + m->is.fixed,
                           .hidden = encoder,
                           .layers = o->num_layers,
                           .dropout = o->num_layers > 1 ? o->dropout : 0 };
    m->encoder = weft_lstm_new(own, "encoder", &lstm);
    lstm.input = m->is.future + m->is.fixed, lstm.hidden = decoder;
    m->decoder = weft_lstm_new(own, "decoder", &lstm);
    m->projection = weft__projection_new(own, encoder, decoder);
    if (encoder != decoder)
        m->output_projection = weft_linear_new(own, "encoder_output_projection",
                                               &(weft_linear_opts){ .in = encoder, .out = decoder });
    attention_new(m, o, decoder);
    m->head = weft_linear_new(own, "output_head", &(weft_linear_opts){ .in = decoder, .out = o->output_dim });
    return weft__model_finished(m);
}
