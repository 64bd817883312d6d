/* attention_lstm.c - AttentionLSTM: EncoderDecoderLSTM, and attention of the decoder to all outputs. */
#include "rnn/forecast/forecast.h"

typedef struct attention_lstm {
    weft__model base;
    weft_rnn *encoder, *decoder;
    weft__projection projection;
    weft_linear *output_projection;              /* of the encoder's outputs; NULL if the widths are equal */
    weft__interpretable *attention;
    weft__gate_add_norm *gate;                   /* NULL if norm is used */
    weft_norm_layer *norm; /* NULL if gate is used */
    weft_linear *head;
} attention_lstm;

static weft_forecast run_model(void *model, const weft__input *t)
{
    attention_lstm *m = model;
    weft_rnn_out e = weft__run_lstm(t, &t->past, m->encoder, weft__add_fixed(t, t->past.x), WEFT_ZERO_STATE);
    weft_tensor *d = weft__run_lstm(t, &t->future, m->decoder, weft__add_fixed(t, t->future.x),
                                    weft__project_state(&m->projection, e.last))
                         .y;
    weft_tensor *past = m->output_projection ? weft_linear_run(m->output_projection, e.y) : e.y;
    weft_tensor *u = weft__attend_to_both(t, m->attention, past, d);
    weft_tensor *z =
        m->gate ? weft__gate_add_norm_run(m->gate, u, d) : weft_layer_norm_run(m->norm, weft_add(d, u));
    return (weft_forecast){ weft_linear_run(m->head, z), e.last };
}

static void layers_new(attention_lstm *m, const weft_attention_lstm_opts *o)
{
    int64_t encoder = o->d_encoder;
    int64_t decoder = o->d_decoder;
    m->encoder = weft__model_lstm(&m->base, "encoder", m->base.past + m->base.fixed, encoder, o->num_layers);
    m->decoder =
        weft__model_lstm(&m->base, "decoder", m->base.future + m->base.fixed, decoder, o->num_layers);
    m->projection = weft__projection_new(m->base.m, encoder, decoder);
    if (encoder != decoder)
        m->output_projection = weft__model_linear(&m->base, "encoder_output_projection", encoder, decoder);
    m->attention = weft__interpretable_new(m->base.m, "attention", decoder, o->num_heads, o->dropout);
    if (o->no_gating)
        m->norm = weft_layer_norm_new(m->base.m, "layer_norm", &(weft_layer_norm_opts){ .width = decoder });
    else
        m->gate = weft__gate_add_norm_new(m->base.m, "gate_add_norm", decoder, decoder, o->dropout,
                                          o->trainable_add);
    m->head = weft__model_linear(&m->base, "output_head", decoder, o->output_dim);
}

weft_forecaster *weft_attention_lstm_new(weft_module *parent, const char *name,
                                         const weft_attention_lstm_opts *opts)
{
    static const char function[] = "attention_lstm";
    weft_attention_lstm_opts o = opts ? *opts : (weft_attention_lstm_opts){ 0 };
    o.d_model = weft__or_count(o.d_model, 128);
    o.d_encoder = weft__or_count(o.d_encoder, o.d_model);
    o.d_decoder = weft__or_count(o.d_decoder, o.d_model);
    o.num_layers = (int)weft__or_count(o.num_layers, 2);
    o.num_heads = (int)weft__or_count(o.num_heads, 4);
    o.output_dim = weft__or_count(o.output_dim, 1);
    if (!WEFT__SIZES(parent, function, name, opts, { "d_encoder", o.d_encoder }, { "d_decoder", o.d_decoder },
                     { "num_layers", o.num_layers }, { "num_heads", o.num_heads },
                     { "output_dim", o.output_dim }) ||
        !weft__model_needs(parent, function, o.d_decoder % o.num_heads == 0,
                           "num_heads: expected a divisor of d_decoder, not %d for %lld", o.num_heads,
                           (long long)o.d_decoder))
        return weft__model_finish(NULL);
    const weft__model base = { .run = run_model, .name = function, .compat = o.compat, .dropout = o.dropout,
                               .past = o.num_past_features, .future = o.num_future_features,
                               .fixed = o.num_static_features, .causal = !o.full_attention };
    attention_lstm *m = weft__model_new(parent, name, sizeof *m, &base);
    if (m)
        layers_new(m, &o);
    return weft__model_finish(m);
}
