/* tft.c - the TFT family (Lim, Arik, Loeff, Pfister 2021): variable selection, an LSTM over past and future,
 * attention of the future to both, and gates. Static features give the LSTM's first state and take part in
 * selection and enrichment. The three models differ only in their static features. */
#include "rnn/forecast/forecast.h"

typedef struct tft {
    weft__model base;
    weft_tft_opts o;
    bool contexts;                               /* false: no static part; the next two lines are NULL */
    weft__selection *static_vs;                  /* also NULL without static features */
    weft__grn *ctxt_vs, *ctxt_enrichment, *init_hidden, *init_cell, *enrichment;
    weft__selection *enc_vs, *dec_vs;
    weft_rnn *enc_lstm, *dec_lstm;
    /* gate1, norm1: for both sides */
    weft__glu_layer *gate1, *attn_gate1, *attn_gate2;
    weft__add_norm *norm1, *attn_norm1, *attn_norm2;
    weft__interpretable *attn;
    weft__grn *attn_grn;
    weft_linear *output;
} tft;

/* ---- making ---- */
static weft__grn *grn(const tft *m, const char *name, int64_t context)
{
    const int64_t d = m->o.d_model;
    return weft__grn_new(m->base.m, name,
                         &(weft__grn_opts){ .in = d, .out = d, .hidden = d, .context = context,
                                            .dropout = m->o.dropout, .interpolate = true });
}

static weft__selection *selection(const tft *m, const char *name, int64_t features, int64_t context)
{
    return weft__selection_new(m->base.m, name,
                               &(weft__selection_opts){ .features = features, .context = context,
                                                        .d_hidden = m->o.d_hidden_continuous,
                                                        .d_model = m->o.d_model, .dropout = m->o.dropout });
}

static void contexts_new(tft *m)
{
    if (m->base.fixed)
        m->static_vs = selection(m, "static_vs", m->base.fixed, 0);
    m->ctxt_vs = grn(m, "static_ctxt_vs", 0);
    m->ctxt_enrichment = grn(m, "static_ctxt_enrichment", 0);
    m->init_hidden = grn(m, "lstm_init_hidden", 0);
    m->init_cell = grn(m, "lstm_init_cell", 0);
    m->enrichment = grn(m, "static_enrichment", m->o.d_model);
}

static void trunk_new(tft *m)
{
    weft_module *own = m->base.m;
    const int64_t d = m->o.d_model;
    const int64_t context = m->contexts ? d : 0;
    const double dropout = m->o.dropout;
    m->enc_vs = selection(m, "enc_vs", m->base.past, context);
    m->dec_vs = selection(m, "dec_vs", m->base.future, context);
    m->enc_lstm = weft__model_lstm(&m->base, "enc_lstm", d, d, m->o.num_lstm_layers);
    m->dec_lstm = weft__model_lstm(&m->base, "dec_lstm", d, d, m->o.num_lstm_layers);
    m->gate1 = weft__glu_new(own, "enc_gate1", d, d, dropout);
    m->norm1 = weft__add_norm_new(own, "enc_norm1", d, false);
    m->attn = weft__interpretable_new(own, "attn", d, m->o.num_heads, dropout);
    m->attn_gate1 = weft__glu_new(own, "attn_gate1", d, d, dropout);
    m->attn_norm1 = weft__add_norm_new(own, "attn_norm1", d, false);
    m->attn_grn = grn(m, "attn_grn", 0);
    m->attn_gate2 = weft__glu_new(own, "attn_gate2", d, d, 0);
    m->attn_norm2 = weft__add_norm_new(own, "attn_norm2", d, false);
    m->output = weft__model_linear(&m->base, "output_layer", d, m->o.output_dim);
}

/* Adds the names that the original uses for the decoder's side of the shared gate. */
static void aliases_new(tft *m)
{
    if (!weft_ok(m->base.m->w))
        return;
    weft__tie_module(m->base.m, "dec_gate1", m->gate1->m);
    weft__tie_module(m->base.m, "dec_norm1", m->norm1->m);
}

/* ---- running ---- */
typedef struct contexts { weft_tensor *vs, *enrichment; weft_state first; } contexts;

/* Repeats a state for all layers: [n, d] -> [layers, n, d]. */
static weft_tensor *of_every_layer(const tft *m, weft_tensor *x)
{
    return weft_tile(weft_reshape(x, 3, (int64_t[]){ 1, -1, m->o.d_model }), 0, m->o.num_lstm_layers);
}

static contexts contexts_of(const tft *m, const weft__input *t)
{
    if (!m->contexts)
        return (contexts){ NULL, NULL, WEFT_ZERO_STATE };
    weft_tensor *e = m->static_vs && t->fixed ?
                         weft__selection_run(m->static_vs, t->fixed, NULL,
                                             t->maps ? &t->maps->static_selection : NULL) :
                         weft_zeros(m->base.m->w, WEFT_SHAPE(t->past.data.n, m->o.d_model));
    return (contexts){ weft__grn_run(m->ctxt_vs, e, NULL),
                       weft__grn_run(m->ctxt_enrichment, e, NULL),
                       { of_every_layer(m, weft__grn_run(m->init_hidden, e, NULL)),
                         of_every_layer(m, weft__grn_run(m->init_cell, e, NULL)) } };
}

static weft_forecast run_trunk(tft *m, const weft__input *t)
{
    contexts c = contexts_of(m, t);
    weft_tensor *past =
        weft__selection_run(m->enc_vs, t->past.x, c.vs, t->maps ? &t->maps->past_selection : NULL);
    weft_tensor *future =
        weft__selection_run(m->dec_vs, t->future.x, c.vs, t->maps ? &t->maps->future_selection : NULL);
    weft_rnn_out e = weft__run_lstm(t, &t->past, m->enc_lstm, past, c.first);
    weft_rnn_out d = weft__run_lstm(t, &t->future, m->dec_lstm, future, e.last);
    weft_tensor *ze = weft__gate_and_norm(m->gate1, m->norm1, e.y, past);
    weft_tensor *zd = weft__gate_and_norm(m->gate1, m->norm1, d.y, future);
    weft_tensor *ae = m->contexts ? weft__grn_run(m->enrichment, ze, c.enrichment) : ze;
    weft_tensor *ad = m->contexts ? weft__grn_run(m->enrichment, zd, c.enrichment) : zd;
    weft_tensor *u = weft__attend_to_both(t, m->attn, ae, ad);
    u = weft__gate_and_norm(m->attn_gate1, m->attn_norm1, u, ad);
    weft_tensor *y = weft__grn_run(m->attn_grn, u, NULL);
    y = weft__gate_and_norm(m->attn_gate2, m->attn_norm2, y, zd);
    return (weft_forecast){ weft_linear_run(m->output, y), e.last };
}

/* ---- lengths as the static feature ---- */
static double longest_length(const weft_lengths *l)
{
    int32_t most = 1;
    for (int64_t s = 0; s < l->n; s++)
        most = l->len[s] > most ? l->len[s] : most;
    return most;
}

/* Returns scale * length + shift of each past, [n, 1]. */
static weft_tensor *scaled_lengths(const weft__input *t, double scale, double shift)
{
    weft *w = t->past.x->w;
    int64_t n = t->past.data.n;
    real *scaled = weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *scaled);
    for (int64_t s = 0; scaled && s < n; s++)
        scaled[s] = (real)(scale * (double)t->past.data.len[s] + shift);
    return scaled ? weft_reals(w, scaled, WEFT_SHAPE(n, 1)) : &w->nil;
}

static weft_tensor *length_feature(const tft *m, const weft__input *t, bool as_coded)
{
    double longest = (double)m->o.ctxt_seq_len;
    if (m->o.variant == WEFT_PF_TFT)
        return scaled_lengths(t, 1 / (as_coded || longest == 0 ? longest_length(&t->past.data) : longest), 0);
    if (longest == 0)
        weft_fail(m->base.m->w, WEFT_EARG, "%s: fixed is NULL; expected it, or ctxt_seq_len for the lengths",
                  m->base.name);
    return scaled_lengths(t, longest == 0 ? 0 : 2 / longest, -1);
}

/* Reproduces a fault of the original: it multiplies lengths by T, as if they were fractions. So only
 * sequences of length 0 are masked. */
static weft_lengths multiplied(const weft__side *side)
{
    weft *w = side->x->w;
    int64_t n = side->data.n;
    int64_t T = side->x->f.size[1];
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *len);
    for (int64_t s = 0; len && s < n; s++)
        len[s] = (int32_t)(side->data.len[s] ? T : 0);
    return len ? (weft_lengths){ .n = n, .len = len } : side->data;
}

static weft_forecast run_model(void *model, const weft__input *t)
{
    tft *m = model;
    weft__input own = *t;
    bool as_coded = m->base.compat == WEFT_COMPAT_AS_CODED;
    if (!t->fixed && m->base.fixed)
        own.fixed = length_feature(m, t, as_coded);
    if (as_coded && m->o.variant == WEFT_PF_TFT) {
        own.past.data = multiplied(&t->past);
        own.future.data = multiplied(&t->future);
    }
    return run_trunk(m, &own);
}

/* ---- the three models ---- */
weft_forecaster *weft_tft_new(weft_module *parent, const char *name, const weft_tft_opts *opts)
{
    static const char *const names[] = { "temporal_fusion_transformer", "pf_temporal_fusion_transformer",
                                         "xtft" };
    weft_tft_opts o = opts ? *opts : (weft_tft_opts){ 0 };
    o.d_model = weft__or_count(o.d_model, 300);
    o.d_hidden_continuous = weft__or_count(o.d_hidden_continuous, 8);
    o.num_heads = (int)weft__or_count(o.num_heads, 4);
    o.output_dim = weft__or_count(o.output_dim, 7);
    o.num_lstm_layers = (int)weft__or_count(o.num_lstm_layers, 2);
    const bool known = (unsigned)o.variant <= WEFT_XTFT;
    const bool is_static = o.variant != WEFT_XTFT;
    const char *function = names[known ? o.variant : WEFT_TFT];
    if (!WEFT__SIZES(parent, function, name, opts, { "d_model", o.d_model },
                     { "d_hidden_continuous", o.d_hidden_continuous }, { "num_heads", o.num_heads },
                     { "num_lstm_layers", o.num_lstm_layers }, { "output_dim", o.output_dim }) ||
        !weft__model_needs(parent, function, known, "variant: expected a value of weft_tft_variant, not %d",
                           (int)o.variant) ||
        !weft__model_needs(parent, function, o.ctxt_seq_len >= 0 || !is_static,
                           "ctxt_seq_len: expected 0 or more, not %lld", (long long)o.ctxt_seq_len))
        return weft__model_finish(NULL);
    const weft__model base = { .run = run_model, .name = function, .compat = o.compat, .dropout = o.dropout,
                               .past = o.num_past_features, .future = o.num_future_features,
                               .fixed = is_static ? o.num_static_features : 0, .causal = !o.full_attention,
                               .right_aligned = true };
    tft *m = weft__model_new(parent, name, sizeof *m, &base);
    if (!m)
        return weft__model_finish(NULL);
    m->o = o;
    m->contexts = is_static;
    if (is_static)
        contexts_new(m);
    trunk_new(m);
    aliases_new(m);
    return weft__model_finish(m);
}
