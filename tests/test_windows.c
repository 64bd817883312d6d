/* test_windows.c - windows over series: where they lie, what stands in them row by row, lengths and noise drawn at random, padded, undone. */
#include "series_data.h"

/* ---- where windows lie ---- */
Test(windows, as_many_as_the_formula_says)
{
    weft *w = open_on(WEFT_CPU);
    for (int k = 0; k < rounds(150, 2000); k++) {
        int64_t context = 1 + (int64_t)dice(9), horizon = 1 + (int64_t)dice(6), rows[5], n = 1 + (int64_t)dice(5), want = 0, skipped = 0;
        for (int i = 0; i < n; i++)
            rows[i] = (int64_t)dice(40);
        rows[0] += context + horizon;            /* there is one window at least */
        weft_frame f = series_random((int)n, rows);
        weft_features_opts fo = { .context = context, .horizon = horizon, .known = WEFT_NAMES("u"), .target = WEFT_NAMES("y") };
        weft_features *x = weft_features_new(w, "x", &fo);
        weft_features_fit(x, &f);
        weft_windows_opts o = { (int64_t)dice(4), (int64_t)dice((uint64_t)context + 1), (int64_t)dice((uint64_t)horizon + 1), false, 0, 0 };
        weft_windows *v = weft_windows_new(x, "v", &f, &o);
        OK(w);
        int64_t stride = o.stride ? o.stride : horizon, least = o.min_context ? o.min_context : context, least_future = o.min_horizon ? o.min_horizon : horizon;
        for (int64_t s = 0; s < n; s++) {
            int64_t before = want;
            for (int64_t origin = least; origin + least_future <= rows[s]; origin += stride, want++) {
                weft_window a = weft_window_at(v, want);
                cr_assert(a.series == s && a.origin == origin && a.past == (origin < context ? origin : context) &&
                          a.future == (rows[s] - origin < horizon ? rows[s] - origin : horizon));
                cr_assert_eq(weft_windows_lengths(v)[want], a.past + a.future);
            }
            skipped += want == before;
        }
        cr_assert(weft_windows_count(v) == want && weft_windows_skipped(v) == skipped);
        weft_frame_end(&f);
    }
    CLEAN(w);
}

Test(windows, each_row_is_forecast_once)
{
    weft *w = open_on(WEFT_CPU);
    weft_frame f = series_random(2, (int64_t[]){ 26, 12 });
    weft_features *x = weft_features_new(w, "x", &series_features);
    weft_features_fit(x, &f);
    weft_windows *v = weft_windows_new(x, "dev", &f, &(weft_windows_opts){ .min_horizon = 1 });
    OK(w);
    static const weft_window want[] = { { 0, 7, 7, 4 }, { 0, 11, 7, 4 }, { 0, 15, 7, 4 }, { 0, 19, 7, 4 }, { 0, 23, 7, 3 }, { 1, 7, 7, 4 }, { 1, 11, 7, 1 } };
    cr_assert_eq(weft_windows_count(v), COUNT(want));
    for (int i = 0; i < COUNT(want); i++) {
        weft_window a = weft_window_at(v, i);
        cr_assert(a.series == want[i].series && a.origin == want[i].origin && a.past == want[i].past && a.future == want[i].future, "window %d", i);
    }
    v = weft_windows_new(x, "whole", &f, NULL);
    OK(w);
    cr_assert_eq(weft_windows_count(v), 4 + 1);
    weft_frame_end(&f);
    CLEAN(w);
}

/* ---- what stands in them: a second implementation, number by number ---- */
typedef struct { double low, high, mean[5], std[5]; } moments;

static moments moments_of(const weft_frame *f, const weft_features_opts *o)
{
    moments m = { 0 };
    const double *t = weft_frame_column(f, "t");
    bool any = false;
    for (int k = 1; k < 5; k++)
        series_moments(f, series_names[k], &m.mean[k], &m.std[k]);
    for (int64_t s = 0; s < f->n; s++)
        for (int64_t i = f->start[s]; i < f->start[s + 1]; i++)
            for (int64_t j = i + 1; j < f->start[s + 1] && j < i + o->context + o->horizon; j++) {
                double d = t[j] - t[i];
                if (o->time_as == WEFT_TIME_RELATIVE && j > i + 1)
                    continue;
                m.low = o->time_as == WEFT_TIME_ABSOLUTE ? 0 : any ? fmin(m.low, d) : d;
                m.high = any ? fmax(m.high, d) : d;
                any = true;
            }
    return m;
}

static double time_in(const weft_frame *f, const weft_features_opts *o, const moments *m, int64_t begin, int64_t row)
{
    const double *t = weft_frame_column(f, "t");
    if (o->time_as == WEFT_TIME_RELATIVE && row == begin)
        return 0;
    double d = o->time_as == WEFT_TIME_RELATIVE ? t[row] - t[row - 1] : t[row] - t[begin];
    return 2 * (d - m->low) / (m->high - m->low) - 1;
}

static double number_in(const weft_frame *f, const moments *m, int k, int64_t row) { return (f->column[k][row] - m->mean[k]) / m->std[k]; }

static void past_row(const weft_frame *f, const weft_features_opts *o, const moments *m, int64_t begin, int64_t row, weft_real *to)
{
    *to++ = (weft_real)time_in(f, o, m, begin, row);
    for (int k = 1; k < (o->past_without_target ? 4 : 5); k++)
        *to++ = o->masked && !strcmp(o->masked[0], series_names[k]) ? 0 : (weft_real)number_in(f, m, k, row);
}

static void future_row(const weft_frame *f, const weft_features_opts *o, const moments *m, int64_t begin, int64_t row, weft_real *to)
{
    *to++ = (weft_real)time_in(f, o, m, begin, row);
    for (int k = 1; k < 3; k++)
        *to++ = (weft_real)number_in(f, m, k, row);
}

static const char *const masked[] = { "p", NULL };

static weft_features_opts any_features(int k)
{
    weft_features_opts o = series_features;
    o.time_as = k % 2 ? WEFT_TIME_RELATIVE : WEFT_TIME_ABSOLUTE;
    o.past_without_target = k % 4 == 3;
    o.masked = k % 3 ? NULL : masked;
    return o;
}

/* The numbers of a batch against the second implementation; lengths from the batch itself. */
static void batch_is_right(weft_windows *v, const weft_frame *f, const weft_features_opts *o, const int32_t *index, int n, weft_window_batch b, bool shortened)
{
    moments m = moments_of(f, o);
    weft_lengths past = weft_lengths_of(b.series.past), future = weft_lengths_of(b.series.future), target = weft_lengths_of(b.target);
    const int P = o->past_without_target ? 4 : 5;
    weft_real *x = numbers(b.series.past), *z = numbers(b.series.future), *y = numbers(b.target), *s = numbers(b.series.fixed), row[8];
    cr_assert(past.n == n && future.n == n && target.n == n && weft_size(b.series.past, 1) == P && weft_size(b.series.future, 1) == 3);
    for (int i = 0; i < n; i++) {
        weft_window a = weft_window_at(v, index[i]);
        int64_t origin = f->start[a.series] + a.origin, begin = origin - past.len[i];
        cr_assert(past.id[i] == index[i] && future.id[i] == index[i] && target.len[i] == future.len[i]);
        cr_assert(shortened ? past.len[i] <= a.past && future.len[i] <= a.future : past.len[i] == a.past && future.len[i] == a.future);
        for (int64_t r = begin; r < origin; r++, x += P) {
            past_row(f, o, &m, begin, r, row);
            close_to("past", x, row, P, TOL(1e-12, 1e-6));
        }
        for (int64_t r = origin; r < origin + future.len[i]; r++, z += 3, y++) {
            future_row(f, o, &m, begin, r, row);
            close_to("future", z, row, 3, TOL(1e-12, 1e-6));
            row[0] = (weft_real)number_in(f, &m, 4, r);
            close_to("target", y, row, 1, TOL(1e-12, 1e-6));
        }
        double mean = 0, std = 0;                /* of one number a series */
        for (int64_t k = 0; k < f->n; k++)
            mean += ((double)k + .25) / (double)f->n;
        for (int64_t k = 0; k < f->n; k++)
            std += ((double)k + .25 - mean) * ((double)k + .25 - mean) / (double)(f->n - 1);
        row[0] = (weft_real)(((double)a.series + .25 - mean) / sqrt(std));
        close_to("fixed", s + i, row, 1, TOL(1e-12, 1e-6));
    }
}

Test(windows, rows_come_from_where_they_should)
{
    FOR_DEVICES(w)
        for (int k = 0; k < 12; k++) {
            weft_features_opts o = any_features(k);
            weft_frame f = series_random(3, (int64_t[]){ 30, 5, 19 });
            weft_features *x = weft_features_new(w, "x", &o);
            weft_features_fit(x, &f);
            weft_windows *v = weft_windows_new(x, "v", &f, &(weft_windows_opts){ .stride = 1, .min_context = 2, .min_horizon = 1 });
            weft_loader *l = weft_loader_new(w, (char[]){ (char)('a' + k), 0 }, weft_windows_count(v), weft_windows_lengths(v), &(weft_loader_opts){ .count = 5 });
            OK(w);
            int64_t size;
            for (const int32_t *index; (index = weft_loader_next(l, &size));) {
                batch_is_right(v, &f, &o, index, (int)size, weft_windows_batch(v, index, size), false);
                weft_clear(w);
            }
            weft_frame_end(&f);
        }
}
