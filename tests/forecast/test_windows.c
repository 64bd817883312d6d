/* test_windows.c - tests windows over series: their positions, their contents row by row, random lengths and
 * noise, padding, and the inverse. */
#include "series_data.h"

/* Windows of features that are fitted on their frame. */
static weft_windows *windows_of(weft *w, const weft_features_opts *features, const weft_frame *f,
                                const weft_windows_opts *o)
{
    weft_features *x = weft_features_new(w, "x", features);
    weft_features_fit(x, f);
    weft_windows *v = weft_windows_new(x, "v", f, o);
    OK(w);
    return v;
}

CPU_TEST(windows, match_the_formula_for_their_number)
{
    for (int k = 0; k < rounds(150, 2000); k++) {
        int64_t context = 1 + (int64_t)dice(9), horizon = 1 + (int64_t)dice(6), rows[5],
                n = 1 + (int64_t)dice(5), want = 0, skipped = 0;
        for (int i = 0; i < n; i++)
            rows[i] = (int64_t)dice(40);
        rows[0] += context + horizon;            /* at least one window exists */
        scoped_frame f = series_random((int)n, rows);
        weft_features_opts fo = y_by_u(context, horizon, NULL, 0);
        weft_windows_opts o = { .stride = (int64_t)dice(4),
                                .min_context = (int64_t)dice((uint64_t)context + 1),
                                .min_horizon = (int64_t)dice((uint64_t)horizon + 1) };
        weft_windows *v = windows_of(w, &fo, &f, &o);
        int64_t stride = o.stride ? o.stride : horizon, least = o.min_context ? o.min_context : context,
                least_future = o.min_horizon ? o.min_horizon : horizon;
        for (int64_t s = 0; s < n; s++) {
            int64_t before = want;
            for (int64_t origin = least; origin + least_future <= rows[s]; origin += stride, want++) {
                weft_window a = weft_window_at(v, want);
                cr_assert(a.series == s && a.origin == origin &&
                          a.past == (origin < context ? origin : context) &&
                          a.future == (rows[s] - origin < horizon ? rows[s] - origin : horizon));
                cr_assert_eq(weft_windows_counts(v).lengths[want], a.past + a.future);
            }
            skipped += want == before;
        }
        weft_window_counts got = weft_windows_counts(v);
        cr_assert(got.windows == want && got.skipped == skipped);
    }
}

/* ---- contents, against a second implementation number by number ---- */
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

static double time_in(const weft_frame *f, const weft_features_opts *o, const moments *m, int64_t begin,
                      int64_t row)
{
    const double *t = weft_frame_column(f, "t");
    if (o->time_as == WEFT_TIME_RELATIVE && row == begin)
        return 0;
    double d = o->time_as == WEFT_TIME_RELATIVE ? t[row] - t[row - 1] : t[row] - t[begin];
    return 2 * (d - m->low) / (m->high - m->low) - 1;
}

static double number_in(const weft_frame *f, const moments *m, int k, int64_t row)
{
    return (f->column[k][row] - m->mean[k]) / m->std[k];
}

/* A row of the past, or of the future. */
static void row_of(const weft_frame *f, const weft_features_opts *o, const moments *m, int64_t begin,
                   int64_t row, bool past, weft_real *to)
{
    *to++ = (weft_real)time_in(f, o, m, begin, row);
    for (int k = 1; k < (!past ? 3 : o->past_without_target ? 4 : 5); k++) {
        bool hidden = past && o->masked && !strcmp(o->masked[0], series_names[k]);
        *to++ = hidden ? 0 : (weft_real)number_in(f, m, k, row);
    }
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
static void batch_is_right(weft_windows *v, const weft_frame *f, const weft_features_opts *o,
                           const int32_t *index, int n, weft_window_batch b, bool shortened)
{
    moments m = moments_of(f, o);
    weft_lengths past = weft_lengths_of(b.series.past), future = weft_lengths_of(b.series.future),
                 target = weft_lengths_of(b.target);
    const int P = o->past_without_target ? 4 : 5;
    weft_real *x = numbers(b.series.past), *z = numbers(b.series.future), *y = numbers(b.target),
              *s = numbers(b.series.fixed), row[8];
    cr_assert(past.n == n && future.n == n && target.n == n && weft_size(b.series.past, 1) == P &&
              weft_size(b.series.future, 1) == 3);
    for (int i = 0; i < n; i++) {
        weft_window a = weft_window_at(v, index[i]);
        int64_t origin = f->start[a.series] + a.origin, begin = origin - past.len[i];
        cr_assert(past.id[i] == index[i] && future.id[i] == index[i] && target.len[i] == future.len[i]);
        cr_assert(shortened ? past.len[i] <= a.past && future.len[i] <= a.future :
                              past.len[i] == a.past && future.len[i] == a.future);
        for (int64_t r = begin; r < origin; r++, x += P) {
            row_of(f, o, &m, begin, r, true, row);
            close_to("past", x, row, P, TOL(1e-12, 1e-6));
        }
        for (int64_t r = origin; r < origin + future.len[i]; r++, z += 3, y++) {
            row_of(f, o, &m, begin, r, false, row);
            close_to("future", z, row, 3, TOL(1e-12, 1e-6));
            row[0] = (weft_real)number_in(f, &m, 4, r);
            close_to("target", y, row, 1, TOL(1e-12, 1e-6));
        }
        double all = (double)f->n;               /* one number a series: 0, 1, .. and a quarter */
        row[0] = (weft_real)(((double)a.series - (all - 1) / 2) / sqrt(all * (all + 1) / 12));
        close_to("fixed", s + i, row, 1, TOL(1e-12, 1e-6));
    }
}

TABLE_TEST(windows, hold_the_expected_rows)
{
    for (int k = 0; k < 12; k++) {
        weft_features_opts o = any_features(k);
        scoped_frame f = series_random(3, (int64_t[]){ 30, 5, 19 });
        weft_windows *v = windows_of(
            w, &o, &f, &(weft_windows_opts){ .stride = 1, .min_context = 2, .min_horizon = 1 });
        weft_window_counts all = weft_windows_counts(v);
        weft_loader *l = weft_loader_new(w, (char[]){ (char)('a' + k), 0 }, all.windows, all.lengths,
                                         &(weft_loader_opts){ .count = 5 });
        OK(w);
        int64_t size;
        for (const int32_t *index; (index = weft_loader_next(l, &size));) {
            batch_is_right(v, &f, &o, index, (int)size, weft_windows_batch(v, index, size, NULL), false);
            weft_clear(w);
        }
    }
}

/* ---- by chance ---- */
static const weft_windows_opts at_random = {
    .stride = 1, .min_context = 3, .min_horizon = 2, .shorten = true
};

CPU_TEST(windows, draw_every_allowed_length)
{
    scoped_frame f = series_random(3, (int64_t[]){ 30, 5, 19 });
    weft_windows *v = windows_of(w, &series_features, &f, &at_random);
    int64_t seen[8][5] = { { 0 } };
    int32_t first = 8, edge = 0;                 /* windows with all their rows, and one that has but 4 + 4 */
    while (weft_window_at(v, edge).origin != 4)
        edge++;
    cr_assert(weft_window_at(v, first).past == 7 && weft_window_at(v, first).future == 4 &&
              weft_window_at(v, edge).past == 4);
    for (int k = 0; k < 2000; k++) {
        weft_window_batch b = weft_windows_batch(v, (int32_t[]){ first, edge }, 2, NULL);
        OK(w);
        weft_lengths past = weft_lengths_of(b.series.past), future = weft_lengths_of(b.series.future);
        cr_assert(past.len[0] >= 3 && past.len[0] <= 7 && future.len[0] >= 2 && future.len[0] <= 4 &&
                  past.len[1] >= 3 && past.len[1] <= 4);
        seen[past.len[0]][future.len[0]]++;
        if (k < 20)
            batch_is_right(v, &f, &series_features, (int32_t[]){ first, edge }, 2, b, true);
        weft_clear(w);
    }
    for (int p = 3; p <= 7; p++)                 /* 15 pairs, each about 133 times */
        for (int q = 2; q <= 4; q++)
            cr_assert(seen[p][q] > 80 && seen[p][q] < 200, "%d, %d: %lld", p, q, (long long)seen[p][q]);
    weft_set_training(w, false);
    for (int k = 0; k < 20; k++)
        batch_is_right(v, &f, &series_features, (int32_t[]){ first, edge }, 2,
                       weft_windows_batch(v, (int32_t[]){ first, edge }, 2, NULL), false);
}

/* The numbers of n batches, a hash of all of them. */
static uint64_t hash_of(weft *w, weft_windows *v, int n)
{
    uint64_t hash = 0;
    for (int k = 0; k < n; k++) {
        weft_window_batch b = weft_windows_batch(v, (int32_t[]){ k, 2 * k, 9 }, 3, NULL);
        weft_tensor *all[] = { b.series.past, b.series.future, b.target };
        for (int i = 0; i < 3; i++) {
            weft_real *a = numbers(all[i]);
            for (int64_t j = 0; j < weft_numel(all[i]); j++) {
                uint64_t bits = 0;
                memcpy(&bits, &a[j], sizeof a[j]);
                hash = (hash ^ bits) * 0x9E3779B97F4A7C15u ^ hash >> 31;
            }
        }
        OK(w);
        weft_clear(w);
    }
    return hash;
}

static weft *with_noise(weft_frame *f, weft_windows **v)
{
    weft *w = open_on(WEFT_CPU);
    weft_windows_opts o = at_random;
    o.past_noise = .1;
    o.future_noise = .3;
    *v = windows_of(w, &series_features, f, &o);
    return w;
}

Test(windows, repeat_by_seed_and_resume)
{
    const char *path = in_folder("windows.h5");
    scoped_frame f = series_random(3, (int64_t[]){ 30, 5, 19 });
    weft_windows *u, *v;
    weft *a = with_noise(&f, &u), *b = with_noise(&f, &v);
    cr_assert(hash_of(a, u, 9) == hash_of(b, v, 9) && hash_of(a, u, 1) != hash_of(a, u, 1));
    weft_windows_opts again = at_random;
    weft_features *y = weft_features_new(a, "y", &series_features);
    weft_features_fit(y, &f);
    cr_assert_not_null(weft_windows_new(y, "v", &f, &again));
    FAILS(a, WEFT_EARG, "windows \"v\": other windows have this name");
    cr_assert_not_null(weft_windows_new(y, "other", &f, &again));
    weft_module *m = weft_module_new(a, "m"), *n = weft_module_new(b, "m");
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 1, .out = 1 }),
        weft_linear_new(n, "out", &(weft_linear_opts){ .in = 1, .out = 1 });
    DOES(weft_save(path, m, NULL, NULL, 0));
    uint64_t next = hash_of(a, u, 5);
    DOES(weft_load(path, n, NULL, NULL, 0));
    cr_assert(hash_of(b, v, 5) == next);         /* the streams are in the file */
    weft_set_training(a, false), weft_set_training(b, false);
    cr_assert(hash_of(a, u, 1) == hash_of(a, u, 1) && hash_of(b, v, 9) == hash_of(a, u, 9));
    end_folder();
    CLEAN(a);
    CLEAN(b);
}

CPU_TEST(windows, add_noise_except_to_time_and_masked_columns)
{
    scoped_frame f = series_random(3, (int64_t[]){ 60, 5, 70 });
    weft_features_opts fo = series_features;
    fo.masked = masked;
    weft_windows *v = windows_of(
        w, &fo, &f, &(weft_windows_opts){ .stride = 1, .past_noise = .1, .future_noise = .4 });
    double past = 0, future = 0, n = 0, m = 0;
    for (int32_t i = 0; i < 60; i++) {
        weft_real *noisy[3], *clean[3];
        for (int training = 0; training < 2; training++) {
            weft_set_training(w, training);
            weft_window_batch b = weft_windows_batch(v, &i, 1, NULL);
            weft_real **to = training ? noisy : clean;
            to[0] = numbers(b.series.past), to[1] = numbers(b.series.future), to[2] = numbers(b.target);
        }
        for (int r = 0; r < 7 * 5; r++) {
            double d = (double)noisy[0][r] - (double)clean[0][r];
            cr_assert(r % 5 == 0 || r % 5 == 3 ? d == 0 : d != 0, "noise in the time or a masked column");
            cr_assert(r % 5 != 3 || noisy[0][r] == 0);
            past += d * d;
            n += r % 5 != 0 && r % 5 != 3;
        }
        for (int r = 0; r < 4 * 3; r++) {
            double d = (double)noisy[1][r] - (double)clean[1][r];
            cr_assert(r % 3 == 0 ? d == 0 : d != 0);
            future += d * d;
            m += r % 3 != 0;
        }
        same_bits("target", noisy[2], clean[2], 4);
        weft_clear(w);
    }
    cr_assert(fabs(sqrt(past / n) - .1) < .01 && fabs(sqrt(future / m) - .4) < .05, "%g, %g", sqrt(past / n),
              sqrt(future / m));
}

/* ---- padded ---- */
TABLE_TEST(windows, match_in_padded_and_ragged_form)
{
    scoped_frame f = series_random(3, (int64_t[]){ 30, 5, 19 });
    weft_windows *v = windows_of(
        w, &series_features, &f,
        &(weft_windows_opts){ .stride = 2, .min_context = 1, .min_horizon = 1 });
    for (int k = 0; k < 10; k++) {
        int32_t index[6];
        for (int i = 0; i < 6; i++)
            index[i] = (int32_t)dice((uint64_t)weft_windows_counts(v).windows);
        weft_align align = k % 2 ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT;
        weft_window_batch r = weft_windows_batch(v, index, 6, NULL),
                          p = weft_windows_batch(v, index, 6, &(weft_windows_batch_opts){ true, align });
        OK(w);
        cr_assert(p.series.past_align == align && p.series.past_lengths->n == 6 &&
                  p.series.future_lengths->id[5] == index[5]);
        struct { weft_tensor *ragged, *padded; weft_align align;
        } pair[] = { { r.series.past, p.series.past, align },
                     { r.series.future, p.series.future, WEFT_ALIGN_LEFT },
                     { r.target, p.target, WEFT_ALIGN_LEFT } };
        for (int i = 0; i < COUNT(pair); i++) {
            weft_tensor *want = weft_pad_packed_sequence(pair[i].ragged, 0, 0, pair[i].align);
            cr_assert(weft_numel(want) == weft_numel(pair[i].padded) &&
                      weft_size(want, 1) == weft_size(pair[i].padded, 1));
            same_bits("padded", numbers(pair[i].padded), numbers(want), weft_numel(want));
        }
        same_bits("fixed", numbers(p.series.fixed), numbers(r.series.fixed), 6);
        /* nothing but 0 in pads */
        cr_assert(weft_validate_encoder_alignment(p.series.past, p.series.past_lengths, align));
        weft_tensor *back = weft_pack_padded_sequence(p.series.past, p.series.past_lengths, align);
        cr_assert(weft_numel(back) == weft_numel(r.series.past));
        weft_clear(w);
    }
}

CPU_TEST(windows, accept_an_empty_batch)
{
    scoped_frame f = series_random(1, (int64_t[]){ 30 });
    weft_windows *v = windows_of(w, &series_features, &f, NULL);
    weft_window_batch b = weft_windows_batch(v, NULL, 0, NULL),
                      p = weft_windows_batch(v, NULL, 0, &(weft_windows_batch_opts){ .padded = true });
    OK(w);
    cr_assert(weft_size(b.series.past, 0) == 0 && weft_size(b.target, 0) == 0 &&
              weft_size(p.series.past, 0) == 0);
}

/* ---- back ---- */
TABLE_TEST(windows, return_predictions_in_the_units_of_the_series)
{
    scoped_frame f = series_random(3, (int64_t[]){ 30, 5, 19 });
    const weft_transform t[] = { { .column = "y", .kind = WEFT_POLYNOMIAL, .degree = 2, .depends_on = "u" },
                                 { .column = "y", .kind = WEFT_DELTA } };
    weft_features_opts o = series_features;
    o.transforms = t;
    o.n = 2;
    weft_windows *v = windows_of(
        w, &o, &f, &(weft_windows_opts){ .stride = 3, .min_context = 1, .min_horizon = 1, .shorten = true });
    for (int k = 0; k < 10; k++) {
        int32_t index[5];
        for (int i = 0; i < 5; i++)
            index[i] = (int32_t)dice((uint64_t)weft_windows_counts(v).windows);
        weft_window_batch b = weft_windows_batch(v, index, 5, NULL);
        weft_lengths l = weft_lengths_of(b.target);
        weft_tensor *pair = weft_to_layout(weft_concat((weft_tensor *[]){ b.target, b.target }, 2, 1),
                                           k % 2 ? WEFT_PACKED : WEFT_CONCAT);
        double out[2 * 5 * 4], *at = out;
        weft_windows_inverse_transform(v, pair, out);
        OK(w);
        for (int i = 0; i < 5; i++) {
            weft_window a = weft_window_at(v, index[i]);
            for (int32_t r = 0; r < l.len[i]; r++, at += 2) {
                double want = weft_frame_column(&f, "y")[f.start[a.series] + a.origin + r];
                cr_assert(fabs(at[0] - want) < TOL(1e-9, 1e-4) && at[1] == at[0], "%g, expected %g", at[0],
                          want);
            }
        }
        weft_clear(w);
    }
}

CPU_TEST(windows, keep_their_values_after_a_new_fit)
{
    weft_set_training(w, false);
    scoped_frame f = series_random(2, (int64_t[]){ 30, 19 }), other = series_random(1, (int64_t[]){ 40 });
    for (int64_t r = 0; r < other.rows; r++) {
        weft_frame_column(&other, "y")[r] *= 50;
        weft_frame_column(&other, "t")[r] *= 3;
    }
    weft_features *x = weft_features_new(w, "x", &series_features);
    weft_features_fit(x, &f);
    weft_windows *v = weft_windows_new(x, "v", &f, NULL);
    double units[2][4];
    weft_real past[2][7 * 5];
    for (int anew = 0; anew < 2; anew++) {
        weft_window_batch b = weft_windows_batch(v, (int32_t[]){ 1 }, 1, NULL);
        weft_windows_inverse_transform(v, b.target, units[anew]);
        weft_read(b.series.past, past[anew], sizeof past[anew]);
        weft_features_fit(x, &other);
        OK(w);
    }
    cr_assert(!memcmp(units[0], units[1], sizeof units[0]) && !memcmp(past[0], past[1], sizeof past[0]));
}

CPU_TEST(windows, compute_time_of_even_steps_exactly)
{
    for (int k = 0; k < 2; k++) {
        weft_features_opts o = { .context = 3, .horizon = 2, .target = WEFT_NAMES("y"), .time = "t",
                                 .time_as = k ? WEFT_TIME_RELATIVE : WEFT_TIME_ABSOLUTE };
        scoped_frame f = { 0 };
        double t[20], y[20];
        for (int i = 0; i < 20; i++) {
            t[i] = 1.7e9 + .1 * i;
            y[i] = i;
        }
        DOES(weft_frame_add(&f, NULL, WEFT_NAMES("t", "y"), (const double *const[]){ t, y }, 20));
        weft_windows *v = windows_of(w, &o, &f, &(weft_windows_opts){ .stride = 1 });
        weft_window_batch b = weft_windows_batch(v, (int32_t[]){ 4 }, 1, NULL);
        OK(w);
        cr_assert(weft_size(b.series.past, 1) == 2 && weft_size(b.series.future, 1) == 1 && !b.series.fixed);
        weft_real *past = numbers(b.series.past), *future = numbers(b.series.future),
                  got[5] = { past[0], past[2], past[4], future[0], future[1] };
        close_to("time", got,
                 k ? ((weft_real[]){ 0, 0, 0, 0, 0 }) :
                     ((weft_real[]){ -1, (weft_real)-.5, 0, (weft_real).5, 1 }),
                 5, 1e-5);
    }
}
