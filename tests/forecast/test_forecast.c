/* test_forecast.c - tests the six forecasting models: the same results alone, in a batch, ragged and padded,
 * and the inputs that a step may depend on. */
#include "forecast_models.h"

enum { NUMBERS = 20000 };
typedef struct { int64_t n, outputs; weft_real gradient[NUMBERS], output[MOST * LONGEST * OUTPUTS]; } found;

static void find(weft_forecaster *f, const batch *b, form how, found *out)
{
    weft_module *m = weft_forecaster_module(f);
    weft *w = weft_module_context(m);
    cr_assert(weft_parameter_numel(m) <= NUMBERS);
    weft_zero_grad(m);
    weft_series_batch s = series_of(w, b, how);
    weft_tensor *y = rows_of(weft_forecast_run(f, &s, NULL).y, &s);
    OK(w);
    out->outputs = weft_numel(y);
    memcpy(out->output, numbers(y), (size_t)out->outputs * sizeof *out->output);
    weft_backward(loss_of(y, b));
    weft_tensor *g = weft_flat_gradient(m);
    out->n = weft_numel(g);
    memcpy(out->gradient, numbers(g), (size_t)out->n * sizeof *out->gradient);
    OK(w);
    weft_clear(w);
}

#define RAGGED ((form){ 0 })
#define PLAIN(pads) ((form){ .plain = true, .pad = pads })
static const double gradient_tol = TOL(1e-11, 2e-4);

/* ---- lengths ---- */
TABLE_TEST(forecast, series_have_the_same_result_in_every_batch)
{
    static found all, one, sum;
    for (int kind = ENCODER_DECODER; kind <= TRANSFORMER; kind++)
        for (int other = 0; other < 2; other++) {
            weft_forecaster *f = forecaster_new(w, kind, (wish){ .other = other, .all_keys = other });
            batch b = some_batch();
            find(f, &b, RAGGED, &all);
            memset(&sum, 0, sizeof sum);
            for (int i = 0, at = 0; i < b.n; i++) {
                batch alone = only(&b, i);
                find(f, &alone, RAGGED, &one);
                cr_assert(is_same(model_names[kind], all.output + at, one.output, one.outputs),
                          "sequence %d on %s", i, weft_device_name(w));
                at += (int)one.outputs;
                for (int64_t k = 0; k < one.n; k++)
                    sum.gradient[k] += one.gradient[k];
            }
            close_to(model_names[kind], all.gradient, sum.gradient, all.n, gradient_tol);
        }
}

TABLE_TEST(forecast, ragged_matches_padded_input)
{
    static found ragged, plain;
    for (int kind = 0; kind < MODELS; kind++) {
        weft_forecaster *f = forecaster_new(w, kind, (wish){ .fixed = 0 });
        batch b = some_batch();
        const form forms[] = { PLAIN(0),
                               PLAIN(NAN),
                               { .plain = true, .right = true, .pad = NAN },
                               { .plain = true, .right = true, .pad = 1e30 } };
        find(f, &b, forms[0], &ragged);
        /* for any padding, on either side */
        for (int i = 1; i < COUNT(forms); i++) {
            find(f, &b, forms[i], &plain);
            same_bits(model_names[kind], plain.output, ragged.output, ragged.outputs);
            same_bits(model_names[kind], plain.gradient, ragged.gradient, ragged.n);
        }
        /* the padding before the data affects its results, and a ragged past has one step less of it */
        if (kind >= TFT)
            continue;
        find(f, &b, RAGGED, &plain);
        same_bits(model_names[kind], plain.output, ragged.output, ragged.outputs);
        close_to(model_names[kind], plain.gradient, ragged.gradient, ragged.n, gradient_tol);
    }
}

/* By masks and stored scores, as PyTorch would: the oracle. */
TABLE_TEST(forecast, matches_the_padded_computation)
{
    static found exact, padded;
    for (int kind = 0; kind < MODELS; kind++)
        for (int other = 0; other < 2; other++) {
            weft_forecaster *f =
                forecaster_new(w, kind, (wish){ .other = other, .all_keys = other, .fixed = 2 });
            weft_forecaster *g = forecaster_new(
                w, kind,
                (wish){ .other = other, .all_keys = other, .fixed = 2, .compat = WEFT_COMPAT_PADDED });
            batch b = some_batch();
            form how = PLAIN(0);
            how.fixed = kind == XTFT ? 0 : 2;
            find(f, &b, how, &exact);
            find(g, &b, how, &padded);
            close_to(model_names[kind], exact.output, padded.output, padded.outputs, TOL(1e-12, 2e-5));
            close_to(model_names[kind], exact.gradient, padded.gradient, padded.n, gradient_tol);
            how.plain = false; /* ragged series also use the padded computation */
            if (kind < TFT) {
                find(g, &b, how, &exact);
                close_to(model_names[kind], exact.output, padded.output, padded.outputs, TOL(1e-12, 2e-5));
            }
        }
}

TABLE_TEST(forecast, handles_empty_pasts_and_futures)
{
    static found out, less;
    for (int kind = 0; kind < MODELS; kind++) {
        weft_forecaster *f = forecaster_new(w, kind, (wish){ .fixed = 0 });
        batch b = { 4, { 0, 1, 2, 3 }, { 4, 0, 3, 0 }, { 2, 3, 0, 0 } }, none = { 0 },
              no_past = { 1, { 1 }, { 0 }, { 3 } };
        find(f, &b, RAGGED, &out);
        for (int64_t i = 0; i < out.n; i++)
            cr_assert(isfinite(out.gradient[i]), "%s: gradient %lld", model_names[kind], (long long)i);
        find(f, &no_past, RAGGED, &less);
        if (kind < TFT)
            cr_assert(is_same(model_names[kind], less.output, out.output + 2 * OUTPUTS, less.outputs));
        for (int64_t i = 0; i < less.outputs; i++)
            cr_assert(isfinite(less.output[i]), "%s: output %lld", model_names[kind], (long long)i);
        find(f, &none, RAGGED, &less);
        cr_assert(less.outputs == 0);
    }
}

/* ---- dependencies of a step ---- */
/* with future step t of one sequence another */
static void outputs_of(weft_forecaster *f, weft *w, const batch *b, int sequence, int t, weft_real *out)
{
    weft_series_batch s = series_of(w, b, RAGGED);
    int64_t row = t;
    for (int i = 0; i < sequence; i++)
        row += b->future[i];
    weft_real *x = numbers(s.future);
    if (t >= 0)
        x[row * FUTURE] += 3;
    s.future = weft_ragged(w, x, FUTURE, &(weft_lengths){ .n = b->n, .len = b->future });
    weft_tensor *y = weft_to_layout(weft_forecast_run(f, &s, NULL).y, WEFT_CONCAT);
    OK(w);
    memcpy(out, numbers(y), (size_t)weft_numel(y) * sizeof *out);
    weft_clear(w);
}

TABLE_TEST(forecast, causal_models_do_not_read_later_steps)
{
    weft_real was[MOST * LONGEST * OUTPUTS], is[MOST * LONGEST * OUTPUTS];
    for (int kind = 0; kind < MODELS; kind++)
        for (int all_keys = 0; all_keys < 2; all_keys++) {
            weft_forecaster *f = forecaster_new(w, kind, (wish){ .all_keys = all_keys });
            batch b = some_batch();
            outputs_of(f, w, &b, 0, -1, was);
            outputs_of(f, w, &b, 1, 3, is);  /* of five steps */
            int64_t from = b.future[0] * OUTPUTS, changed = from + 3 * OUTPUTS, to = from + 5 * OUTPUTS,
                    end = to + (2 + 1 + 4) * OUTPUTS;
            bool sees_all = all_keys && kind != ENCODER_DECODER;
            same_bits("neighbours", is, was, from);
            same_bits("neighbours", is + to, was + to, end - to);
            cr_assert(memcmp(is + changed, was + changed, OUTPUTS * sizeof *is),
                      "%s does not read its future", model_names[kind]);
            cr_assert(sees_all == (memcmp(is + from, was + from, 3 * OUTPUTS * sizeof *is) != 0),
                      "%s: causal %d", model_names[kind], !all_keys);
        }
}

/* Strict: a step attends only to earlier outputs of the decoder, so a single step without a past attends to
 * nothing. */
CPU_TEST(forecast, steps_do_not_attend_to_themselves)
{
    weft_forecaster *f = forecaster_new(w, ATTENTION, (wish){ .compat = WEFT_COMPAT_EXACT });
    batch b = { 2, { 0, 1 }, { 2, 0 }, { 3, 2 } };
    weft_series_batch s = series_of(w, &b, RAGGED);
    weft_forecast_maps maps;
    weft_forecast_run(f, &s, &maps);
    OK(w);
    weft_lengths l = weft_lengths_of(maps.attention);
    static const int32_t keys[] = { 5, 5, 5, 2, 2 }, seen[] = { 2, 3, 4, 0, 1 };
    weft_real *map = numbers(weft_to_layout(maps.attention, WEFT_CONCAT));
    for (int q = 0, at = 0; q < 5; q++) {
        double sum = 0;
        cr_assert(l.n == 5 && l.len[q] == keys[q]);
        for (int k = 0; k < keys[q]; k++, at++) {
            cr_assert((map[at * 2] > 0) == (k < seen[q]), "query %d, key %d", q, k);
            sum += (double)map[at * 2];
        }
        cr_assert(fabs(sum - (seen[q] > 0)) < 1e-5);
    }
    cr_assert(!maps.past_selection && !maps.static_selection);
}

TABLE_TEST(forecast, selection_weights_sum_to_one)
{
    for (int kind = TFT; kind < MODELS; kind++) {
        weft_forecaster *f = forecaster_new(w, kind, (wish){ .fixed = 3 });
        batch b = some_batch();
        weft_series_batch s = series_of(w, &b, (form){ .fixed = kind == XTFT ? 0 : 3 });
        weft_forecast_maps maps;
        weft_forecast_run(f, &s, &maps);
        OK(w);
        weft_tensor *of[] = { maps.past_selection, maps.future_selection, maps.static_selection };
        cr_assert(maps.attention && weft_size(maps.past_selection, 2) == PAST &&
                  weft_size(maps.future_selection, 1) == FUTURE && !maps.static_selection == (kind == XTFT));
        for (int i = 0; i < 3 && of[i]; i++) {
            weft_tensor *sum = weft_sum(of[i], -1);
            weft_real *v = numbers(sum);
            for (int64_t k = 0; k < weft_numel(sum); k++)
                cr_assert(fabs((double)v[k] - 1) < 1e-5);
        }
    }
}

/* ---- memory ---- */
static int64_t bytes_of(int kind, int32_t T)     /* of a steady step: at first blocks of memory double */
{
    weft *w = open_with((weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = 1 });
    weft_forecaster *f = forecaster_new(w, kind, (wish){ .fixed = 0 });
    weft_lengths past = { .n = 1, .len = &(int32_t){ T } }, future = { .n = 1, .len = &(int32_t){ T / 4 } };
    for (int step = 0; step < 2; step++) {
        weft_clear(w);
        weft_series_batch s = { .past = weft_pack_padded_sequence(weft_randn(w, WEFT_SHAPE(1, T, PAST)),
                                                                  &past, WEFT_ALIGN_LEFT),
                                .future = weft_pack_padded_sequence(
                                    weft_randn(w, WEFT_SHAPE(1, T / 4, FUTURE)), &future, WEFT_ALIGN_LEFT) };
        weft_backward(weft_sum_all(weft_forecast_run(f, &s, NULL).y));
    }
    OK(w);
    int64_t bytes = weft_usage_of(w).host_bytes;
    CLEAN(w);
    return bytes;
}

Test(forecast, memory_is_linear_in_the_length)
{
    const int32_t T = CHECK_SANITIZED || getenv("WEFT_SMALL") ? 125 : 500;
    for (int kind = ATTENTION; kind < MODELS; kind++) {
        double times = (double)bytes_of(kind, 8 * T) / (double)bytes_of(kind, T);
        cr_assert(times <= 9, "%s: eight times the length takes %.1f times the memory", model_names[kind],
                  times);
    }
}
