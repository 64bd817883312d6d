/* transformer_lstm.c - TransformerLSTM: GRNs, LSTMs with a residual sum, then attention blocks: the past
 * attends to itself, the future to both. */
#include "rnn/forecast/forecast.h"

typedef struct block {
    weft__interpretable *self, *cross;
    weft__gate_add_norm *encoder, *decoder;
} block;
typedef struct transformer_lstm {
    weft__model base;
    weft__grn *encoder_grn, *decoder_grn;
    weft_rnn *encoder, *decoder;
    weft_linear *head;
    int blocks;
    block *block;
} transformer_lstm;

static weft_forecast run_model(void *model, const weft__input *t)
{
    transformer_lstm *m = model;
    weft_tensor *ge = weft__grn_run(m->encoder_grn, weft__add_fixed(t, t->past.x), NULL);
    weft_tensor *gd = weft__grn_run(m->decoder_grn, weft__add_fixed(t, t->future.x), NULL);
    weft_rnn_out past = weft__run_lstm(t, &t->past, m->encoder, ge, WEFT_ZERO_STATE);
    weft_rnn_out future = weft__run_lstm(t, &t->future, m->decoder, gd, past.last);
    /* Keeps the layout of the series, not that of the recurrence. */
    weft_tensor *e = weft_add(ge, past.y);
    weft_tensor *d = weft_add(gd, future.y);
    for (int i = 0; i < m->blocks; i++) {
        const block *b = &m->block[i];
        e = weft__gate_add_norm_run(b->encoder, weft__attend_to_past(t, b->self, e), e);
        d = weft__gate_add_norm_run(b->decoder, weft__attend_to_both(t, b->cross, e, d), d);
    }
    return (weft_forecast){ weft_linear_run(m->head, d), past.last };
}

static void blocks_new(transformer_lstm *m, const weft_transformer_lstm_opts *o)
{
    int64_t d = o->d_model;
    weft_module *all = weft_submodule_new(m->base.m, "transformer_blocks");
    m->blocks = o->num_transformer_blocks;
    m->block = weft__layer(m->base.m, (size_t)m->blocks * sizeof *m->block);
    for (int i = 0; m->block && i < m->blocks; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        weft_module *own = weft_submodule_new(all, number);
        block *b = &m->block[i];
        b->self = weft__interpretable_new(own, "encoder_self_attention", d, o->num_heads, o->dropout);
        b->cross = weft__interpretable_new(own, "cross_attention", d, o->num_heads, o->dropout);
        b->encoder = weft__gate_add_norm_new(own, "encoder_gate_add_norm", d, d, o->dropout, false);
        b->decoder = weft__gate_add_norm_new(own, "decoder_gate_add_norm", d, d, o->dropout, false);
    }
}

static void layers_new(transformer_lstm *m, const weft_transformer_lstm_opts *o)
{
    int64_t d = o->d_model;
    weft__grn_opts grn = { .in = m->base.past + m->base.fixed, .hidden = d, .out = d, .dropout = o->dropout };
    m->encoder_grn = weft__grn_new(m->base.m, "encoder_grn", &grn);
    grn.in = m->base.future + m->base.fixed;
    m->decoder_grn = weft__grn_new(m->base.m, "decoder_grn", &grn);
    m->encoder = weft__model_lstm(&m->base, "encoder", d, d, o->num_layers);
    m->decoder = m->encoder;
    if (o->share_lstm_weights)
        weft__tie_module(m->base.m, "decoder", weft_rnn_module(m->encoder));
    else
        m->decoder = weft__model_lstm(&m->base, "decoder", d, d, o->num_layers);
    blocks_new(m, o);
    m->head = weft__model_linear(&m->base, "output_head", d, o->output_dim);
}

weft_forecaster *weft_transformer_lstm_new(weft_module *parent, const char *name,
                                           const weft_transformer_lstm_opts *opts)
{
    static const char function[] = "transformer_lstm";
    weft_transformer_lstm_opts o = opts ? *opts : (weft_transformer_lstm_opts){ 0 };
    int blocks = o.num_transformer_blocks;
    o.d_model = weft__or_count(o.d_model, 128);
    o.num_layers = (int)weft__or_count(o.num_layers, 2);
    o.num_heads = (int)weft__or_count(o.num_heads, 4);
    o.output_dim = weft__or_count(o.output_dim, 1);
    blocks = blocks == WEFT_NONE ? 0 : (int)weft__or_count(blocks, 2);
    o.num_transformer_blocks = blocks;
    if (!WEFT__SIZES(parent, function, name, opts, { "d_model", o.d_model }, { "num_layers", o.num_layers },
                     { "num_heads", o.num_heads }, { "output_dim", o.output_dim }) ||
        !weft__model_needs(parent, function, blocks >= 0 && blocks <= 4096,
                           "num_transformer_blocks %d; expected WEFT_NONE or 1 .. 4096", blocks) ||
        !weft__model_needs(parent, function, o.d_model % o.num_heads == 0,
                           "num_heads: expected a divisor of d_model, not %d for %lld", o.num_heads,
                           (long long)o.d_model))
        return weft__model_finish(NULL);
    const weft__model base = { .run = run_model, .name = function, .compat = o.compat, .dropout = o.dropout,
                               .past = o.num_past_features, .future = o.num_future_features,
                               .fixed = o.num_static_features, .causal = !o.full_attention };
    transformer_lstm *m = weft__model_new(parent, name, sizeof *m, &base);
    if (m)
        layers_new(m, &o);
    return weft__model_finish(m);
}
