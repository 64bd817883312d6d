/* forecast.c - the cases transformer_lstm (ragged and padded series) and tft (series of equal length): whole
 * training steps of forecasting models, as in examples/forecast.c. */
#include <math.h>
#include <string.h>
#include "weft_forecast.h"
#include "bench.h"

/* SCALED: width of the TFT's projection of each feature */
enum { PAST_FEATURES = 4, FUTURE_FEATURES = 3, HEADS = 4, LAYERS = 2, BLOCKS = 2, SCALED = 8 };
/* flat [tokens, F] */
typedef struct side {
    weft_lengths lengths;
    int64_t tokens, longest;
    weft_tensor *flat, *padded;
} side;
typedef struct bench {
    weft *w;
    weft_module *all;
    weft_forecaster *model;
    side past, future, target;                   /* target: of the future's lengths */
    bool packed;
    row row;
} bench;

static bool is_tft(const row *r) { return !strcmp(r->name, "tft"); }

static weft_tensor *ragged(const bench *b, const side *s)
{
    return weft_ragged_like(s->flat, weft_ragged(b->w, NULL, 0, &s->lengths));
}

static weft_tensor *loss_of(void *user)
{
    bench *b = user;
    weft_series_batch s = { .past = b->past.padded,
                            .future = b->future.padded,
                            .past_lengths = &b->past.lengths,
                            .future_lengths = &b->future.lengths };
    if (b->packed)
        s = (weft_series_batch){ .past = ragged(b, &b->past), .future = ragged(b, &b->future) };
    weft_tensor *y = weft_forecast_run(b->model, &s, NULL).y;
    weft_tensor *target = b->packed ? ragged(b, &b->target) : b->target.padded;
    weft_tensor *mask = NULL;
    if (!b->packed) {
        mask = weft_length_mask(b->w, &b->future.lengths, b->future.longest, WEFT_ALIGN_LEFT);
        mask = weft_reshape(mask, WEFT_SHAPE(b->row.B, -1, 1));
    }
    return weft_mean_loss(weft_mse_loss(y, target, &(weft_loss_opts){ .mask = mask }));
}

static bool make_side(bench *b, side *s, const char *name, uint64_t seed, int64_t longest, int64_t features)
{
    char padded[32];
    s->lengths.n = b->row.B;
    s->lengths.len = make_lengths(b->row.lengths, seed, b->row.B, (int32_t)longest, &s->tokens);
    for (int64_t i = 0; i < b->row.B; i++)
        s->longest = s->lengths.len[i] > s->longest ? s->lengths.len[i] : s->longest;
    snprintf(padded, sizeof padded, "%s_padded", name);
    s->flat = weft_buffer(b->all, name, WEFT_SHAPE(s->tokens, features));
    s->padded = weft_buffer(b->all, padded, WEFT_SHAPE(b->row.B, s->longest, features));
    return fill_formula(s->flat, name, 2) && fill_padded(s->padded, name, 2, &s->lengths);
}

/* Adds a gated residual network with this number of input features. */
static void add_grn(work *to, double tokens, int64_t features, int64_t d)
{
    add_linear(to, tokens, features, d, false);                  /* the skip */
    add_linear(to, tokens, features, d, false);
    add_linear(to, tokens, d, d, true);
    add_linear(to, tokens, d, 2 * d, true);
}

/* Heads share the values, so one product with the mean of their maps is enough. */
static void add_block(work *to, double queries, double keys, double pairs, int64_t d)
{
    add_linear(to, queries, d, d, true);
    add_linear(to, keys, d, d + d / HEADS, true);
    add_attention(to, pairs, d, d / HEADS);
    add_linear(to, queries, d / HEADS, d, true);
    add_linear(to, queries, d, 2 * d, true);
}

/* Adds one network for each feature, and one for all that weights them. */
static void add_selection(work *to, double tokens, int64_t features, int64_t d)
{
    const int64_t shares = features < d ? features : d;
    for (int64_t i = 0; i < features; i++) {
        add_linear(to, tokens, SCALED, SCALED, true);
        add_linear(to, tokens, SCALED, d, true);
        add_linear(to, tokens, d, 2 * d, true);
    }
    add_linear(to, tokens, features * SCALED, shares, true);
    add_linear(to, tokens, shares, features, true);
    add_linear(to, tokens, features, 2 * features, true);
}

/* Pairs of a step and the steps that it attends to: the past to itself, or the future to the past and to the
 * future strictly before. */
static double pairs_of(const bench *b, bool past)
{
    double pairs = 0;
    for (int64_t i = 0; i < b->row.B; i++) {
        double p = b->past.lengths.len[i], f = b->future.lengths.len[i];
        pairs += past ? p * p : p * f + f * (f - 1) / 2;
    }
    return pairs;
}

static void count_tft(bench *b)
{
    double past = (double)b->past.tokens, future = (double)b->future.tokens;
    int64_t d = b->row.H;
    work *to = &b->row.work;
    add_selection(to, past, PAST_FEATURES, d);
    add_selection(to, future, FUTURE_FEATURES, d);
    add_recurrent(to, past + future, 4, d, d, true);
    add_linear(to, past + future, d, 2 * d, true);               /* the gate after it */
    add_linear(to, past + future, d, 4 * d, true);               /* enrichment */
    add_linear(to, past + 2 * future, d, d, true);
    add_linear(to, past + future, d, d / HEADS, true);
    add_attention(to, pairs_of(b, false), d, d / HEADS);
    add_linear(to, future, d / HEADS, d, true);
    add_linear(to, future, d, 8 * d, true);                      /* two gates and a network */
    add_linear(to, future, d, 1, true);
}

static void count_work(bench *b)
{
    double past = (double)b->past.tokens, future = (double)b->future.tokens;
    int64_t d = b->row.H;
    work *to = &b->row.work;
    add_grn(to, past, PAST_FEATURES, d);
    add_grn(to, future, FUTURE_FEATURES, d);
    for (int k = 0; k < LAYERS; k++)
        add_recurrent(to, past + future, 4, d, d, true);
    for (int k = 0; k < BLOCKS; k++) {
        add_block(to, past, past, pairs_of(b, true), d);
        add_block(to, future, past + future, pairs_of(b, false), d);
    }
    add_linear(to, future, d, 1, true);
}

static weft_forecaster *model_new(const bench *b)
{
    weft_module *root = weft_module_new(b->w, "root");
    const weft_compat compat = b->packed ? WEFT_COMPAT_EXACT : WEFT_COMPAT_PADDED;
    if (is_tft(&b->row))
        return weft_tft_new(
            root, "model",
            &(weft_tft_opts){ .num_past_features = PAST_FEATURES, .num_future_features = FUTURE_FEATURES,
                              .d_model = b->row.H, .d_hidden_continuous = SCALED, .num_heads = HEADS,
                              .num_lstm_layers = b->row.layers, .ctxt_seq_len = b->row.T, .output_dim = 1,
                              .compat = compat });
    return weft_transformer_lstm_new(
        root, "model",
        &(weft_transformer_lstm_opts){ .num_past_features = PAST_FEATURES,
                                       .num_future_features = FUTURE_FEATURES, .d_model = b->row.H,
                                       .num_heads = HEADS, .num_layers = LAYERS,
                                       .num_transformer_blocks = BLOCKS, .compat = compat });
}

static bool run(row r, const settings *s)
{
    bench b = { .row = r, .packed = strcmp(r.layout, "padded") != 0, .w = weft_open(&s->open) };
    b.all = weft_module_new(b.w, "bench");
    b.model = model_new(&b);
    bool ok = make_side(&b, &b.past, "past", 1, r.T, PAST_FEATURES) &&
              make_side(&b, &b.future, "future", 2, r.horizon, FUTURE_FEATURES) &&
              make_side(&b, &b.target, "target", 2, r.horizon, 1);
    b.all = weft_forecaster_module(b.model);
    b.row.tokens = b.past.tokens + b.future.tokens;
    b.row.T = b.past.longest;
    b.row.horizon = b.future.longest;
    if (ok)
        (is_tft(&r) ? count_tft : count_work)(&b);
    ok = ok && set_weights(b.all, 2 / sqrt((double)r.H)) &&
         measure_training(&(training){ b.w, b.all, loss_of, 1, NULL, &b, b.row }, s);
    weft_close(b.w);
    return ok;
}

bool bench_transformer_lstm(const settings *s)
{
    static const char *const lengths[] = { "uniform", "equal", "triangle" };
    bool ok = true;
    for (int i = 0; i < (s->quick || s->tiny ? 1 : 3); i++) {
        row r = { .name = "transformer_lstm", .lengths = lengths[i], .B = 64, .T = 300, .horizon = 100,
                  .I = PAST_FEATURES, .H = 128, .layers = LAYERS };
        ok &= measure(run, r, "packed padded", s);
        if (!s->layout)
            ok &= measure(run, r, "padded", s);
    }
    return ok;
}

bool bench_tft(const settings *s)
{
    static const int64_t sequences[] = { 8, 64 };
    bool ok = true;
    for (int i = 0; i < (s->quick || s->tiny ? 1 : 2); i++) {
        row r = { .name = "tft", .lengths = "equal", .B = sequences[i], .T = 200, .horizon = 80,
                  .I = PAST_FEATURES, .H = 64, .layers = 1 };
        ok &= measure(run, r, "packed", s);
    }
    return ok;
}
