/* golden_models.c - compares the six forecasting models: outputs, losses, gradients of all parameters and of
 * both inputs. Variant PADDED computes like the original, with every row of the output. Other variants
 * compute exactly, and compare data rows where the original is exact. */
#include <math.h>
#include <string.h>
#include "weft_forecast.h"
#include "golden.h"
#include "tests/tables.h"

/* ---- the case ---- */
static const json_t *option(trial *t, const char *key)
{
    const json_t *j = json_object_get(json_object_get(t->c, "hparams"), key);
    return json_is_null(j) ? NULL : j;
}
static int64_t whole(trial *t, const char *key, int64_t otherwise)
{
    return option(t, key) ? json_integer_value(option(t, key)) : otherwise;
}
static double share(trial *t, const char *key)
{
    return option(t, key) ? json_number_value(option(t, key)) : .1;
}
static bool yes(trial *t, const char *key, bool otherwise)
{
    return option(t, key) ? json_is_true(option(t, key)) : otherwise;
}

typedef struct {
    int64_t B, Te, Td;
    weft_lengths past, future;
    bool past_known, future_known, right, tft;
    weft_compat compat;
} shape;

static weft_lengths lengths_or_full(trial *t, const char *key, int64_t n, int64_t T)
{
    if (json_is_array(json_object_get(t->c, key)))
        return lengths(t, key);
    int32_t *len = hold(t, n * (int64_t)sizeof *len);
    for (int64_t b = 0; b < n; b++)
        len[b] = (int32_t)T;
    return (weft_lengths){ .n = n, .len = len };
}

static shape shape_of(trial *t)
{
    shape s = { .B = integer(t, "B"), .Te = integer(t, "Te"), .Td = integer(t, "Td") };
    const char *align = json_string_value(json_object_get(t->c, "encoder_alignment")),
               *model = text(t, "model");
    s.past_known = json_is_array(json_object_get(t->c, "encoder_lengths")),
    s.future_known = json_is_array(json_object_get(t->c, "decoder_lengths"));
    s.past = lengths_or_full(t, "encoder_lengths", s.B, s.Te),
    s.future = lengths_or_full(t, "decoder_lengths", s.B, s.Td);
    s.right = align && !strcmp(align, "right"), s.tft = strstr(model, "tft") != NULL;
    bool as_coded = s.tft ? !strncmp(text(t, "case"), "as_coded", 8) : !yes(t, "exact_lengths", false);
    s.compat = !(t->way & PADDED) ? WEFT_COMPAT_EXACT : as_coded ? WEFT_COMPAT_AS_CODED : WEFT_COMPAT_PADDED;
    return s;
}

/* ---- models ---- */
static weft_activation activation_of(trial *t)
{
    static const char *const names[] = { "relu", "lrelu", "elu", "gelu", "silu", "tanh", "sigmoid" };
    const char *name = json_string_value(option(t, "mlp_activation"));
    for (int i = 0; name && i < COUNT(names); i++)
        if (!strcmp(name, names[i]))
            return (weft_activation)(WEFT_RELU + i);
    return WEFT_RELU;
}

static weft_forecaster *encoder_decoder(trial *t, const shape *s)
{
    weft_encoder_decoder_lstm_opts o = { .dropout = .1, .mlp_dropout = .1 };
    const json_t *hidden = option(t, "d_mlp_hidden");
    int n = json_is_array(hidden) ? (int)json_array_size(hidden) : hidden ? 1 : 0;
    int64_t *widths = hold(t, (n + 1) * (int64_t)sizeof *widths);
    for (int i = 0; i < n; i++)
        widths[i] = json_integer_value(json_is_array(hidden) ? json_array_get(hidden, (size_t)i) : hidden);
    o.num_past_features = whole(t, "num_past_features", 0),
    o.num_future_features = whole(t, "num_future_features", 0);
    o.d_encoder = whole(t, "d_encoder", o.d_encoder), o.d_decoder = whole(t, "d_decoder", o.d_decoder);
    o.num_encoder_layers = (int)whole(t, "num_encoder_layers", 2),
    o.num_decoder_layers = (int)whole(t, "num_decoder_layers", 2);
    o.num_mlp_hidden = n, o.d_mlp_hidden = hidden ? widths : NULL, o.mlp_activation = activation_of(t),
    o.mlp_dropout = (weft_real)share(t, "mlp_dropout");
    o.dropout = (weft_real)share(t, "dropout"), o.output_dim = whole(t, "output_dim", 1),
    o.compat = s->compat;
    return weft_encoder_decoder_lstm_new(t->m, "model", &o);
}

static weft_forecaster *attention(trial *t, const shape *s)
{
    weft_attention_lstm_opts o = { .dropout = .1 };
    o.num_past_features = whole(t, "num_past_features", 0),
    o.num_future_features = whole(t, "num_future_features", 0);
    o.d_model = whole(t, "d_model", o.d_model), o.d_encoder = whole(t, "d_encoder", 0),
    o.d_decoder = whole(t, "d_decoder", 0);
    o.num_layers = (int)whole(t, "num_layers", 2), o.num_heads = (int)whole(t, "num_heads", 4),
    o.dropout = (weft_real)share(t, "dropout");
    o.no_gating = !yes(t, "use_gating", true), o.trainable_add = yes(t, "trainable_add", false),
    o.full_attention = !yes(t, "causal_attention", true);
    o.output_dim = whole(t, "output_dim", 1), o.compat = s->compat;
    return weft_attention_lstm_new(t->m, "model", &o);
}

static weft_forecaster *transformer(trial *t, const shape *s)
{
    weft_transformer_lstm_opts o = { .dropout = .1 };
    o.num_past_features = whole(t, "num_past_features", 0),
    o.num_future_features = whole(t, "num_future_features", 0);
    o.d_model = whole(t, "d_model", o.d_model), o.num_layers = (int)whole(t, "num_layers", 2),
    o.num_heads = (int)whole(t, "num_heads", 4);
    int blocks = (int)whole(t, "num_transformer_blocks", 2);
    o.num_transformer_blocks = blocks ? blocks : WEFT_NONE, o.dropout = (weft_real)share(t, "dropout");
    o.full_attention = !yes(t, "causal_attention", true),
    o.share_lstm_weights = yes(t, "share_lstm_weights", false);
    o.output_dim = whole(t, "output_dim", 1), o.compat = s->compat;
    return weft_transformer_lstm_new(t->m, "model", &o);
}

static weft_forecaster *tft(trial *t, const shape *s)
{
    const char *model = text(t, "model");
    weft_tft_opts o = { .num_static_features = 1, .dropout = .1 };
    o.num_past_features = whole(t, "num_past_features", 0),
    o.num_future_features = whole(t, "num_future_features", 0);
    o.num_static_features = whole(t, "num_static_features", 1), o.ctxt_seq_len = whole(t, "ctxt_seq_len", 0);
    o.d_model = whole(t, "d_model", o.d_model), o.d_hidden_continuous = whole(t, "d_hidden_continuous", 8),
    o.num_heads = (int)whole(t, "num_heads", 4);
    o.num_lstm_layers = (int)whole(t, "num_lstm_layers", 2), o.dropout = (weft_real)share(t, "dropout");
    o.full_attention = !yes(t, "causal_attention", true), o.output_dim = whole(t, "output_dim", 7),
    o.compat = s->compat;
    o.variant = !strcmp(model, "tft") ? WEFT_TFT : !strcmp(model, "pf_tft") ? WEFT_PF_TFT : WEFT_XTFT;
    return weft_tft_new(t->m, "model", &o);
}

/* ---- numbers ---- */
static double wave(const void *how, int64_t s, int64_t k, const weft_tensor *p)
{
    (void)how, (void)p;
    return .5 * sin(1 + 1.3 * (double)s + .37 * (double)k);
}

static weft_tensor *input(trial *t, const char *name, const weft_lengths *l, int64_t T, int64_t features,
                          bool past, bool right)
{
    weft_real *x = hold(t, l->n * T * features * (int64_t)sizeof *x), *at = x;
    for (int64_t b = 0; b < l->n; b++)
        for (int64_t i = 0; i < T; i++)
            for (int64_t f = 0; f < features; f++, at++)
                if (right ? i >= T - l->len[b] : i < l->len[b])
                    *at = (weft_real)(past ? cos(.9 * (double)b + .31 * (double)i + 1.7 * (double)f) :
                                             sin(.4 + .8 * (double)b + .23 * (double)i + 1.1 * (double)f));
    weft_tensor *y = weft_reals(t->w, x, WEFT_SHAPE(l->n, T, features));
    ask(t, name, y, NULL, 0);
    return y;
}

static weft_tensor *loss_of(trial *t, weft_tensor *y, const shape *s)            /* sum y c, c = 0 in pads */
{
    int64_t    outputs = weft_size(y, 2);
    weft_real *c = hold(t, s->B * s->Td * outputs * (int64_t)sizeof *c), *at = c;
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t i = 0; i < s->Td; i++)
            for (int64_t o = 0; o < outputs; o++, at++)
                *at = i < s->future.len[b] ?
                          (weft_real)sin(.2 + .5 * (double)b + .7 * (double)i + .9 * (double)o) :
                          0;
    return weft_sum_all(weft_mul(y, weft_reals(t->w, c, WEFT_SHAPE(s->B, s->Td, outputs))));
}

/* Compares data rows. In the exact variants, other rows must be 0. */
static void hold_output(trial *t, weft_tensor *y, const shape *s)
{
    const json_t *want = json_object_get(t->c, "output");
    int64_t    outputs = weft_size(y, 2), count = weft_numel(y);
    weft_real *got = elements(t, y);
    if (!(t->way & PADDED))
        for (int64_t k = 0; k < count; k++)
            if (k / outputs % s->Td >= s->future.len[k / outputs / s->Td]) {
                if (got[k] != 0)
                    wrong(t, "output[%lld] is %g in a pad", (long long)k, (double)got[k]);
                got[k] = (weft_real)json_number_value(json_array_get(want, (size_t)k));
            }
    hold_values(t, "output", got, count, want);
}

/* Returns whether the original's LSTMs stop at the end of these data: by option, by packing, or because no
 * padding follows. */
static bool is_honoured(trial *t, const weft_lengths *l, int64_t T)
{
    bool full = true;
    for (int64_t b = 0; b < l->n; b++)
        full &= l->len[b] == T;
    return full || yes(t, "exact_lengths", false) || weft_should_use_packing(l);
}

/* Returns whether every step has keys. A step without keys gets 0 in the exact variants; in the original it
 * attends to all keys evenly. */
static bool all_have_keys(trial *t, const shape *s)
{
    bool have = true;
    for (int64_t b = 0; b < s->B; b++)
        have &= s->past.len[b] > 0 || (!yes(t, "causal_attention", true) && s->future.len[b] > 0);
    return have;
}

/* Returns whether the exact variants must agree with the original. */
static bool is_exact(trial *t, const shape *s)
{
    if (s->tft)
        return all_have_keys(t, s) && strncmp(text(t, "case"), "as_coded", 8) != 0;
    return s->past_known && s->future_known && is_honoured(t, &s->past, s->Te) &&
           is_honoured(t, &s->future, s->Td);
}

/* Returns static covariates [B, n] from a list of numbers or of lists, or NULL. */
static weft_tensor *fixed_of(trial *t, const shape *s)
{
    const json_t *fixed = json_object_get(t->c, "static");
    size_t n = json_array_size(fixed) / (size_t)s->B;
    if (!json_is_array(fixed))
        return NULL;
    if (json_is_array(json_array_get(fixed, 0)))
        n = json_array_size(json_array_get(fixed, 0));
    weft_real *v = hold(t, s->B * (int64_t)(n * sizeof *v));
    for (size_t k = 0; k < (size_t)s->B * n; k++) {
        const json_t *row = json_array_get(fixed, k / n);
        v[k] = (weft_real)json_number_value(json_is_array(row) ? json_array_get(row, k % n) :
                                                                 json_array_get(fixed, k));
    }
    return weft_reals(t->w, v, WEFT_SHAPE(s->B, (int64_t)n));
}

static weft_tensor *run(trial *t, weft_forecaster *(*make)(trial *, const shape *))
{
    shape s = shape_of(t);
    if (t->why[0] || (s.compat == WEFT_COMPAT_EXACT && !is_exact(t, &s)))
        return NULL;
    weft_forecaster *f = make(t, &s);
    if (t->why[0] || !weft_ok(t->w) || !set_parameters_by(t, "model", wave, NULL))
        return NULL;
    weft_set_training(t->w, false);
    weft_series_batch series = { .past_align = s.right ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT,
                                 .past_lengths = s.past_known ? &s.past : NULL,
                                 .future_lengths = s.future_known ? &s.future : NULL };
    series.past = input(t, "encoder_input", &s.past, s.Te, whole(t, "num_past_features", 0), true, s.right);
    series.future =
        input(t, "decoder_input", &s.future, s.Td, whole(t, "num_future_features", 0), false, false);
    series.fixed = fixed_of(t, &s);
    weft_tensor *y = weft_forecast_run(f, &series, NULL).y;
    if (!weft_ok(t->w))
        return NULL;
    hold_output(t, y, &s);
    weft_tensor *loss = loss_of(t, y, &s);
    hold_number(t, "loss", (double)weft_item(loss), json_object_get(t->c, "loss"));
    /* exactly, the pads before a past are constants */
    return s.tft && s.compat == WEFT_COMPAT_EXACT ? NULL : loss;
}

static weft_tensor *run_encoder_decoder(trial *t) { return run(t, encoder_decoder); }
static weft_tensor *run_attention(trial *t)       { return run(t, attention); }
static weft_tensor *run_transformer(trial *t)     { return run(t, transformer); }
static weft_tensor *run_tft(trial *t)             { return run(t, tft); }

const kind golden_models[] = {
    { "encoder_decoder_lstm", run_encoder_decoder, PADDED | RECORDED },
    { "attention_lstm", run_attention, PADDED | RECORDED },
    { "transformer_lstm", run_transformer, PADDED | RECORDED },
    { "tft", run_tft, PADDED | RECORDED },
    { "pf_tft", run_tft, PADDED | RECORDED },
    { "xtft", run_tft, PADDED | RECORDED },
    { NULL, NULL, 0 },
};
