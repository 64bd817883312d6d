/* forecast_models.h - small forecasting models of all six kinds, and series whose numbers depend only on the
 * sequence. */
#ifndef FORECAST_MODELS_H
#define FORECAST_MODELS_H
#include "tests/check.h"

enum { ENCODER_DECODER, ATTENTION, TRANSFORMER, TFT, PF_TFT, XTFT, MODELS };
static const char *const model_names[MODELS] UNUSED = {
    "EncoderDecoderLSTM", "AttentionLSTM", "TransformerLSTM", "TFT", "PF-TFT", "xTFT"
};
enum { PAST = 3, FUTURE = 2, OUTPUTS = 2, LONGEST = 9, MOST = 8 };

/* Options that a test may change. */
/* other: the options that are off by default */
typedef struct { weft_compat compat; bool all_keys, other; int64_t fixed; weft_real dropout; } wish;

UNUSED static weft_forecaster *forecaster_in(weft_module *m, int kind, wish o)
{
    switch (kind) {
    case ENCODER_DECODER:
        return weft_encoder_decoder_lstm_new(
            m, "model",
            &(weft_encoder_decoder_lstm_opts){
                PAST, FUTURE, o.fixed, 5, o.other ? 4 : 5, 2, o.other ? 3 : 2, o.dropout, o.other ? 2 : 0,
                o.other ? (int64_t[]){ 4, 3 } : NULL, WEFT_ELU, o.dropout, OUTPUTS, o.compat });
    case ATTENTION:
        return weft_attention_lstm_new(
            m, "model",
            &(weft_attention_lstm_opts){ PAST, FUTURE, o.fixed, 6, o.other ? 5 : 0, 0, o.other ? 1 : 2,
                                         o.dropout, 2, o.other, false, o.all_keys, OUTPUTS, o.compat });
    case TRANSFORMER:
        return weft_transformer_lstm_new(m, "model",
                                         &(weft_transformer_lstm_opts){ PAST, FUTURE, o.fixed, 6, 2, 2,
                                                                        o.dropout, 2, o.all_keys, o.other,
                                                                        OUTPUTS, o.compat });
    default: {
        weft_tft_opts t = { PAST, FUTURE, o.fixed ? o.fixed : 1, 6, 4, 2, o.other ? 1 : 2, o.dropout,
                            o.all_keys, LONGEST, OUTPUTS, o.compat,
                            kind == TFT ? WEFT_TFT : kind == PF_TFT ? WEFT_PF_TFT : WEFT_XTFT };
        return weft_tft_new(m, "model", &t);
    }
    }
}

UNUSED static weft_forecaster *forecaster_new(weft *w, int kind, wish o)
{
    return forecaster_in(weft_module_new(w, "m"), kind, o);
}

/* ---- series ---- */
/* which sequences, and how long they are */
typedef struct { int n, id[MOST]; int32_t past[MOST], future[MOST]; } batch;
UNUSED static batch some_batch(void)
{
    return (batch){ 5, { 0, 1, 2, 3, 4 }, { 4, 9, 1, 6, 3 }, { 3, 5, 2, 1, 4 } };
}
UNUSED static batch only(const batch *b, int i)
{
    return (batch){ 1, { b->id[i] }, { b->past[i] }, { b->future[i] } };
}

static double past_at(int id, int t, int f)   { return sin(1 + id * 2.3 + t * .7 + f * 1.1); }
static double future_at(int id, int t, int f) { return cos(.3 + id * 1.9 + t * .5 + f * .8); }

typedef struct { bool plain, right; double pad; int fixed; } form;
static weft_lengths check_lengths[16][2];        /* a series points to them until the sixteenth from now */
static int check_series;

static weft_tensor *side_of(weft *w, const batch *b, const int32_t *len, int features,
                            double (*at)(int, int, int), form f, weft_lengths *l)
{
    *l = (weft_lengths){ .n = b->n, .len = len };
    int64_t T = 0, rows = 0;
    for (int i = 0; i < b->n; i++) {
        T = len[i] > T ? len[i] : T;
        rows += len[i];
    }
    T += f.plain;                                /* one column is a pad in every sequence */
    int64_t n = f.plain ? b->n * T : rows, k = 0;
    weft_real *x = malloc((size_t)(n * features + 1) * sizeof *x);
    for (int i = 0; i < b->n; i++)
        for (int t = 0; t < (f.plain ? T : len[i]); t++)
            for (int c = 0; c < features; c++) {
                int step = f.plain && f.right ? t - (int)T + len[i] : t;
                x[k++] = step >= 0 && step < len[i] ? (weft_real)at(b->id[i], step, c) : (weft_real)f.pad;
            }
    weft_tensor *y =
        f.plain ? weft_reals(w, x, WEFT_SHAPE(b->n, T, features)) : weft_ragged(w, x, features, l);
    free(x);
    return y;
}

UNUSED static weft_series_batch series_of(weft *w, const batch *b, form f)
{
    weft_lengths *l = check_lengths[check_series++ % 16];
    weft_series_batch s = { .past_align = f.right ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT };
    s.past = side_of(w, b, b->past, PAST, past_at, f, &l[0]);
    f.right = false;
    s.future = side_of(w, b, b->future, FUTURE, future_at, f, &l[1]);
    if (f.plain) {
        s.past_lengths = &l[0];
        s.future_lengths = &l[1];
    }
    weft_real fixed[MOST * 4];
    for (int i = 0; i < b->n * f.fixed; i++)
        fixed[i] = (weft_real)sin(b->id[i / f.fixed] + 2. * (i % f.fixed));
    s.fixed = f.fixed ? weft_reals(w, fixed, WEFT_SHAPE(b->n, f.fixed)) : NULL;
    return s;
}

/* The rows that are data, sequence by sequence. */
UNUSED static weft_tensor *rows_of(weft_tensor *y, const weft_series_batch *s)
{
    return weft_layout_of(y) != WEFT_PLAIN ?
               weft_to_layout(y, WEFT_CONCAT) :
               weft_to_layout(weft_pack_padded_sequence(y, s->future_lengths, WEFT_ALIGN_LEFT), WEFT_CONCAT);
}

/* sum y sin(id, t, column): the same for a sequence in any batch. */
UNUSED static weft_tensor *loss_of(weft_tensor *rows, const batch *b)
{
    weft_real c[MOST * LONGEST * OUTPUTS], *at = c;
    for (int i = 0; i < b->n; i++)
        for (int t = 0; t < b->future[i]; t++)
            for (int o = 0; o < OUTPUTS; o++)
                *at++ = (weft_real)sin(1 + b->id[i] + 1.7 * t + .6 * o);
    return weft_sum_all(weft_mul(
        rows, weft_ragged(weft_context_of(rows), c, OUTPUTS,
                          &(weft_lengths){ .n = b->n, .len = b->future })));
}
#endif
