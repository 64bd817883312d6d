/* tft.c - the trunk of the TFT family (Lim, Arik, Loeff, Pfister 2021): variable selection, an LSTM over past
 * and future, attention of the future to both, gates everywhere; what is static sets the LSTM's first state
 * and goes into selection and enrichment. */
#include "autograd/fused.h"
#include "rnn/forecast/tft.h"

struct weft__tft {
    weft__model is; weft_tft_opts o;
    bool contexts;                               /* else those of the next two lines are NULL */
    weft_variable_selection *static_vs;          /* NULL without static features, too */
    weft_grn *ctxt_vs, *ctxt_enrichment, *init_hidden, *init_cell, *enrichment;
    weft_variable_selection *enc_vs, *dec_vs;
    weft_rnn *enc_lstm, *dec_lstm;
    /* gate1, norm1: of both sides */
    weft_glu *gate1, *attn_gate1, *attn_gate2; weft_add_norm *norm1, *attn_norm1, *attn_norm2;
    weft_interpretable_attention *attn;
    weft_grn *attn_grn;
    weft_linear *output;
};

int64_t weft__tft_ctxt(const weft__tft *m) { return m->o.ctxt_seq_len; }

/* ---- making ---- */
static weft_grn *grn(const weft__tft *m, const char *name, int64_t context)
{
    const weft_grn_opts o = {
        .in = m->o.d_model, .out = m->o.d_model, .hidden = m->o.d_model, .context = context,
        .dropout = m->o.dropout, .activation = WEFT_ELU, .interpolate = true
    };
    return weft_grn_new(m->is.m, name, &o);
}

static weft_variable_selection *selection(const weft__tft *m, const char *name, int64_t features,
                                          int64_t context)
{
    const weft_variable_selection_opts o = {
        .num_features = features, .d_hidden = m->o.d_hidden_continuous, .d_model = m->o.d_model,
        .context = context, .dropout = m->o.dropout
    };
    return weft_variable_selection_new(m->is.m, name, &o);
}

static void contexts_new(weft__tft *m)
{
    if (m->is.fixed)
        m->static_vs = selection(m, "static_vs", m->is.fixed, 0);
    m->ctxt_vs = grn(m, "static_ctxt_vs", 0), m->ctxt_enrichment = grn(m, "static_ctxt_enrichment", 0);
    m->init_hidden = grn(m, "lstm_init_hidden", 0), m->init_cell = grn(m, "lstm_init_cell", 0);
    m->enrichment = grn(m, "static_enrichment", m->o.d_model);
}

static void trunk_new(weft__tft *m)
{
    weft_module *own = m->is.m;
    int64_t d = m->o.d_model, context = m->contexts ? d : 0;
    weft_rnn_opts lstm = { .input = d,
                           .hidden = d,
                           .layers = m->o.num_lstm_layers,
                           .dropout = m->o.num_lstm_layers > 1 ? m->o.dropout : 0 };
    m->enc_vs = selection(m, "enc_vs", m->is.past, context),
    m->dec_vs = selection(m, "dec_vs", m->is.future, context);
    m->enc_lstm = weft_lstm_new(own, "enc_lstm", &lstm), m->dec_lstm = weft_lstm_new(own, "dec_lstm", &lstm);
    m->gate1 = weft_glu_new(own, "enc_gate1", &(weft_glu_opts){ .in = d, .out = d, .dropout = m->o.dropout }),
    m->norm1 = weft_add_norm_new(own, "enc_norm1", &(weft_add_norm_opts){ .width = d });
    m->attn = weft_interpretable_attention_new(
        own, "attn",
        &(weft_interpretable_attention_opts){
            .d_model = d, .heads = m->o.num_heads, .dropout = m->o.dropout });
    m->attn_gate1 =
        weft_glu_new(own, "attn_gate1", &(weft_glu_opts){ .in = d, .out = d, .dropout = m->o.dropout }),
    m->attn_norm1 = weft_add_norm_new(own, "attn_norm1", &(weft_add_norm_opts){ .width = d });
    m->attn_grn = grn(m, "attn_grn", 0);
    m->attn_gate2 = weft_glu_new(own, "attn_gate2", &(weft_glu_opts){ .in = d, .out = d }),
    m->attn_norm2 = weft_add_norm_new(own, "attn_norm2", &(weft_add_norm_opts){ .width = d });
    m->output = weft_linear_new(own, "output_layer", &(weft_linear_opts){ .in = d, .out = m->o.output_dim });
}

/* The names by which the original knows the decoder's side of the shared gate. */
static void aliases_new(weft__tft *m)
{
    if (!weft_ok(m->is.m->w))
        return;
    weft_module *gate = weft_submodule_new(m->is.m, "dec_gate1"),
                *norm = weft_submodule_new(m->is.m, "dec_norm1");
    weft_module *fc1 = weft_submodule_new(gate, "fc1"), *own = weft_submodule_new(norm, "norm");
    weft_tie(fc1, "weight", weft_find_parameter(m->is.m, "enc_gate1.fc1.weight")),
        weft_tie(fc1, "bias", weft_find_parameter(m->is.m, "enc_gate1.fc1.bias"));
    weft_tie(own, "weight", weft_find_parameter(m->is.m, "enc_norm1.norm.weight")),
        weft_tie(own, "bias", weft_find_parameter(m->is.m, "enc_norm1.norm.bias"));
}

static weft_tft_opts with_defaults(weft_tft_opts o)
{
    o.d_model = weft__or_count(o.d_model, 300),
    o.d_hidden_continuous = weft__or_count(o.d_hidden_continuous, 8);
    o.num_heads = (int)weft__or_count(o.num_heads, 4), o.output_dim = weft__or_count(o.output_dim, 7);
    o.num_lstm_layers = (int)weft__or_count(o.num_lstm_layers, 2);
    return o;
}

weft_forecaster *weft__tft_new(weft_module *parent, const char *name, const char *function,
                               const weft_tft_opts *opts, bool contexts, weft__model_run *run)
{
    const weft_tft_opts all = with_defaults(opts ? *opts : (weft_tft_opts){ 0 }), *o = &all;
    bool sound =
        weft__model_wants(parent, function, opts, "opts is NULL") &&
        weft__model_wants(parent, function, o->num_lstm_layers > 0,
                          "num_lstm_layers of 1 or more is expected, not %d", o->num_lstm_layers) &&
        weft__model_wants(parent, function, o->ctxt_seq_len >= 0 || !contexts,
                          "ctxt_seq_len of 0 or more is expected, not %lld", (long long)o->ctxt_seq_len);
    if (!sound)
        return weft__model_finished(NULL);
    const weft__model is = {
        .run = run, .name = function, .compat = o->compat, .past = o->num_past_features,
        .future = o->num_future_features, .fixed = contexts ? o->num_static_features : 0,
        .causal = !o->full_attention, .right_aligned = true
    };
    weft__tft *m = weft__model_new(parent, name, sizeof *m, &is);
    if (!m)
        return weft__model_finished(NULL);
    m->o = *o, m->contexts = contexts;
    if (contexts)
        contexts_new(m);
    trunk_new(m);
    aliases_new(m);
    return weft__model_finished(m);
}

/* ---- running ---- */
typedef struct contexts { weft_tensor *vs, *enrichment; weft_state first; } contexts;

/* [n, d] -> [layers, n, d] */
static weft_tensor *of_every_layer(const weft__tft *m, weft_tensor *x)
{
    return weft_tile(weft_reshape(x, 3, (int64_t[]){ 1, -1, m->o.d_model }), 0, m->o.num_lstm_layers);
}

static contexts contexts_of(const weft__tft *m, const weft__reading *t, weft_tensor *fixed)
{
    if (!m->contexts)
        return (contexts){ NULL, NULL, WEFT_ZERO_STATE };
    weft_tensor *e = m->static_vs && fixed ?
                         weft_variable_selection_run(m->static_vs, fixed, NULL,
                                                     t->maps ? &t->maps->static_selection : NULL) :
                         weft_zeros(m->is.m->w, WEFT_SHAPE(t->past.data.n, m->o.d_model));
    return (contexts){ weft_grn_run(m->ctxt_vs, e, NULL),
                       weft_grn_run(m->ctxt_enrichment, e, NULL),
                       { of_every_layer(m, weft_grn_run(m->init_hidden, e, NULL)),
                         of_every_layer(m, weft_grn_run(m->init_cell, e, NULL)) } };
}

static weft_tensor *gated(weft_glu *gate, weft_add_norm *norm, weft_tensor *x, weft_tensor *skip)
{
    return weft__gate_and_norm(gate, norm, x, skip);
}

weft_forecast weft__tft_run(weft__tft *m, const weft__reading *t, weft_tensor *fixed)
{
    contexts c = contexts_of(m, t, fixed);
    weft_tensor *past =
        weft_variable_selection_run(m->enc_vs, t->past.x, c.vs, t->maps ? &t->maps->past_selection : NULL);
    weft_tensor *future = weft_variable_selection_run(m->dec_vs, t->future.x, c.vs,
                                                      t->maps ? &t->maps->future_selection : NULL);
    weft_rnn_out e = weft__recur(t, &t->past, m->enc_lstm, past, c.first),
                 d = weft__recur(t, &t->future, m->dec_lstm, future, e.last);
    weft_tensor *ze = gated(m->gate1, m->norm1, e.y, past), *zd = gated(m->gate1, m->norm1, d.y, future);
    weft_tensor *ae = m->contexts ? weft_grn_run(m->enrichment, ze, c.enrichment) : ze,
                *ad = m->contexts ? weft_grn_run(m->enrichment, zd, c.enrichment) : zd;
    weft_tensor *u = gated(m->attn_gate1, m->attn_norm1, weft__attend_to_both(t, m->attn, ae, ad), ad);
    weft_tensor *y = gated(m->attn_gate2, m->attn_norm2, weft_grn_run(m->attn_grn, u, NULL), zd);
    return (weft_forecast){ weft_linear_run(m->output, y), e.last };
}

weft_tensor *weft__tft_lengths(const weft__reading *t, double scale, double shift)
{
    weft *w = t->past.x->w;
    int64_t n = t->past.data.n;
    real *of = weft__take(w, WEFT__IN_NOTES, n * (int64_t)sizeof *of);
    for (int64_t s = 0; of && s < n; s++)
        of[s] = (real)(scale * (double)t->past.data.len[s] + shift);
    return of ? weft_reals(w, of, WEFT_SHAPE(n, 1)) : &w->nil;
}
