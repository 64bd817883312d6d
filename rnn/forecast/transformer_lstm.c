/* transformer_lstm.c - TransformerLSTM: GRNs, LSTMs with a residual sum, then blocks in which the past
 * attends to itself and the future to both. */
#include "rnn/forecast/forecast.h"

typedef struct block {
    weft_interpretable_attention *self, *cross;
    weft_gate_add_norm *encoder, *decoder;
} block;
typedef struct transformer_lstm {
    weft__model is;
    weft_grn *encoder_grn, *decoder_grn;
    weft_rnn *encoder, *decoder;
    weft_linear *head;
    int blocks; block *block;
} transformer_lstm;

static weft_forecast run_model(void *model, const weft__reading *t)
{
    transformer_lstm *m = model;
    weft_tensor *ge = weft_grn_run(m->encoder_grn, weft__with_fixed(t, t->past.x), NULL);
    weft_tensor *gd = weft_grn_run(m->decoder_grn, weft__with_fixed(t, t->future.x), NULL);
    weft_rnn_out past = weft__recur(t, &t->past, m->encoder, ge, WEFT_ZERO_STATE);
    weft_rnn_out future = weft__recur(t, &t->future, m->decoder, gd, past.last);
    /* laid out as the series, not as the recurrence wants it */
    weft_tensor *e = weft_add(ge, past.y), *d = weft_add(gd, future.y);
    for (int i = 0; i < m->blocks; i++) {
        const block *b = &m->block[i];
        e = weft_gate_add_norm_run(b->encoder, weft__attend_to_past(t, b->self, e), e);
        d = weft_gate_add_norm_run(b->decoder, weft__attend_to_both(t, b->cross, e, d), d);
    }
    return (weft_forecast){ weft_linear_run(m->head, d), past.last };
}

static void lstms_new(transformer_lstm *m, const weft_transformer_lstm_opts *o)
{
    weft_rnn_opts lstm = { .input = o->d_model,
                           .hidden = o->d_model,
                           .layers = o->num_layers,
                           .dropout = o->num_layers > 1 ? o->dropout : 0 };
    m->encoder = weft_lstm_new(m->is.m, "encoder", &lstm);
    m->decoder = o->share_lstm_weights ? m->encoder : weft_lstm_new(m->is.m, "decoder", &lstm);
    if (o->share_lstm_weights)
        weft__tie_module(m->is.m, "decoder", weft_rnn_module(m->encoder));
}

static void blocks_new(transformer_lstm *m, const weft_transformer_lstm_opts *o)
{
    weft_module *all = weft_submodule_new(m->is.m, "transformer_blocks");
    weft_interpretable_attention_opts attention = { o->d_model, o->num_heads, o->dropout };
    weft_gate_add_norm_opts gate = { o->d_model, o->d_model, o->dropout, false };
    m->block = weft__layer(m->is.m, (size_t)m->blocks * sizeof *m->block);
    for (int i = 0; m->block && i < m->blocks; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        weft_module *own = weft_submodule_new(all, number);
        m->block[i] = (block){ weft_interpretable_attention_new(own, "encoder_self_attention", &attention),
                               weft_interpretable_attention_new(own, "cross_attention", &attention),
                               weft_gate_add_norm_new(own, "encoder_gate_add_norm", &gate),
                               weft_gate_add_norm_new(own, "decoder_gate_add_norm", &gate) };
    }
}

static weft_transformer_lstm_opts with_defaults(weft_transformer_lstm_opts o)
{
    o.d_model = weft__or_count(o.d_model, 128), o.num_layers = (int)weft__or_count(o.num_layers, 2);
    o.num_heads = (int)weft__or_count(o.num_heads, 4), o.output_dim = weft__or_count(o.output_dim, 1);
    int blocks = o.num_transformer_blocks;
    o.num_transformer_blocks = blocks == WEFT_NONE ? 0 : (int)weft__or_count(blocks, 2);
    return o;
}

weft_forecaster *weft_transformer_lstm_new(weft_module *parent, const char *name,
                                           const weft_transformer_lstm_opts *opts)
{
    static const char *const function = "transformer_lstm";
    const weft_transformer_lstm_opts all = with_defaults(opts ? *opts : (weft_transformer_lstm_opts){ 0 }),
                                     *o = &all;
    bool sound =
        weft__model_wants(parent, function, opts, "opts is NULL") &&
        weft__model_wants(
            parent, function,
            o->num_layers > 0 && o->num_transformer_blocks >= 0 && o->num_transformer_blocks <= 4096,
            "num_layers %d, num_transformer_blocks %d; 1 or more, and WEFT_NONE or 1 .. 4096, are expected",
            o->num_layers, o->num_transformer_blocks) &&
        weft__model_wants(parent, function, o->num_heads > 0 && o->d_model % o->num_heads == 0,
                          "num_heads that divide d_model are expected, not %d of %lld", o->num_heads,
                          (long long)o->d_model);
    if (!sound)
        return weft__model_finished(NULL);
    const weft__model is = {
        .run = run_model, .name = function, .compat = o->compat, .past = o->num_past_features,
        .future = o->num_future_features, .fixed = o->num_static_features,
        .causal = !o->full_attention
    };
    transformer_lstm *m = weft__model_new(parent, name, sizeof *m, &is);
    if (!m)
        return weft__model_finished(NULL);
    m->blocks = o->num_transformer_blocks;
    weft_grn_opts grn = { .in = m->is.past + m->is.fixed,
                          .hidden = o->d_model,
                          .out = o->d_model,
                          .dropout = o->dropout,
                          .activation = WEFT_ELU };
    m->encoder_grn = weft_grn_new(m->is.m, "encoder_grn", &grn);
    grn.in = m->is.future + m->is.fixed;
    m->decoder_grn = weft_grn_new(m->is.m, "decoder_grn", &grn);
    lstms_new(m, o), blocks_new(m, o);
    m->head = weft_linear_new(m->is.m, "output_head",
                              &(weft_linear_opts){ .in = o->d_model, .out = o->output_dim });
    return weft__model_finished(m);
}
