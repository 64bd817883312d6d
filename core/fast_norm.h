/* fast_norm.h - softmax and its kin, layer norm. Threads own runs or rows; a run is done by vectors along it where its numbers
 * are neighbours, and across its columns where there are several. */
#ifndef WEFT_FAST_NORM_H
#define WEFT_FAST_NORM_H
#include "core/fast_sums.h"
#include "core/loops_norm.h"

static const real lane_numbers[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static const real nothing = -(real)INFINITY;
static inline veci lanes_below(int64_t n) { return (veci)(v_load(lane_numbers) < (real)least(n, VLEN)); }

/* exp of what is not much above 0; a result that would be no normal number is 0. Half as dear as v_exp. */
V_INLINE vec exp_low(vec x)
{
    vec power, p = v_decay_(x, &power);
    return v_fma(power, p, power);
}
/* The next n numbers: -infinity where the mask is 0 and in the lanes that are left. */
ALWAYS vec unmasked(const real *mask, const real *x, int64_t n)
{
    vec v = v_load_to(x, n);
    if (mask)
        v = v_select((veci)(v_load_to(mask, n) != 0), v, v_set(nothing));
    return n < VLEN ? v_select(lanes_below(n), v, v_set(nothing)) : v;
}
/* The largest of n numbers side by side; NaN if they are none but NaN and -infinity. */
static real most_of(int64_t n, const real *mask, const real *x)
{
    vec most = v_set(nothing);
    int64_t whole = mask ? 0 : n / VLEN * VLEN;
    EACH_VECTOR(i, whole)
        most = v_max(v_load(x + i), most);
    for (int64_t i = whole; i < n; i += VLEN)
        most = v_max(unmasked(mask ? mask + i : NULL, x + i, n - i), most);
    real m = v_largest(most);
    for (int64_t i = 0; m == nothing && i < n; i++)
        if ((!mask || mask[i] != 0) && isnan(x[i]))
            m = x[i];
    return m;
}
/* Their sum of exp(x - most), and those themselves if e is not NULL. */
static real sum_of_exp(int64_t n, const real *mask, const real *x, real most, real *e)
{
    vec sum = v_set(0);
    int64_t whole = mask ? 0 : n / VLEN * VLEN;
    EACH_VECTOR(i, whole) {
        vec v = exp_low(v_load(x + i) - most);
        sum += v;
        if (e)
            v_store(e + i, v);
    }
    for (int64_t i = whole; i < n; i += VLEN) {
        vec v = exp_low(unmasked(mask ? mask + i : NULL, x + i, n - i) - most);
        sum += v;
        if (e)
            v_store_to(e + i, v, n - i);
    }
    return v_sum(sum);
}
static real log_sum_exp(int64_t n, const real *mask, const real *x)
{
    real most = most_of(n, mask, x);
    return most == nothing ? nothing : most + log(sum_of_exp(n, mask, x, most, NULL));
}

typedef enum { SOFTMAX, LOG_SOFTMAX, LOG_SUM } kind;
typedef struct norm_job { const weft__segments *s; kind what; const real *mask, *x; real *y; } norm_job;

static void scaled(int64_t n, real factor, real *x)
{
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN)
        v_store(x + i, factor * v_load(x + i));
    if (i < n)
        v_store_n(x + i, factor * v_load_n(x + i, n - i), n - i);
}
static void along(kind what, int64_t n, const real *mask, const real *x, real *y)
{
    if (what == LOG_SUM) {
        *y = log_sum_exp(n, mask, x);
        return;
    }
    real most = most_of(n, mask, x), sum = most == nothing ? 0 : sum_of_exp(n, mask, x, most, what == SOFTMAX ? y : NULL);
    real lse = most == nothing ? nothing : most + log(sum), share = 1 / sum;
    if (what == SOFTMAX && !mask && most != nothing) {
        scaled(n, share, y);
        return;
    }
    EACH_VECTOR(i, n) {
        vec v = most == nothing ? (what == SOFTMAX ? v_set(0) : v_load_to(x + i, n - i))
              : what == SOFTMAX ? v_load_to(y + i, n - i) * share : v_load_to(x + i, n - i) - lse;
        if (mask)
            v = v_select((veci)(v_load_to(mask + i, n - i) != 0), v, v_set(0));
        v_store_to(y + i, v, n - i);
    }
}
/* Up to VLEN columns of a run of n rows, w apart: every lane a column. */
static void across(kind what, int64_t n, int64_t w, int64_t lanes, const real *mask, const real *x, real *y)
{
    vec most = v_set(nothing), sum = v_set(0), bad = v_set(0);
    for (int64_t r = 0; r < n; r++) {
        vec v = unmasked(mask ? mask + r * w : NULL, x + r * w, lanes);
        most = v_max(v, most), bad = v_select((veci)(v == v), bad, v);
    }
    veci none = (veci)(most == nothing);
    vec base = v_select(none, v_set(0), most);
    for (int64_t r = 0; r < n; r++) {
        vec e = exp_low(unmasked(mask ? mask + r * w : NULL, x + r * w, lanes) - base);
        sum += e;
        if (what == SOFTMAX)
            v_store_to(y + r * w, e, lanes);
    }
    vec share = 1 / sum, lse = v_select((veci)(bad == bad), v_select(none, v_set(nothing), base + v_log(sum)), bad);
    if (what == LOG_SUM)
        v_store_to(y, lse, lanes);
    for (int64_t r = 0; what != LOG_SUM && r < n; r++) {
        vec v = what == SOFTMAX ? v_select(none, bad, v_load_to(y + r * w, lanes) * share)
              : unmasked(mask ? mask + r * w : NULL, x + r * w, lanes) - v_select(none, v_set(0), lse);
        if (mask)
            v = v_select((veci)(v_load_to(mask + r * w, lanes) != 0), v, v_set(0));
        v_store_to(y + r * w, v, lanes);
    }
}
static void norm_runs(const void *job, int64_t from, int64_t to)
{
    const norm_job *j = job;
    for (int64_t run = from, w = j->s->inner; run < to; run++) {
        int64_t first = first_row(j->s, run) * w, n = run_length(j->s, run);
        real *y = j->y + (j->what == LOG_SUM ? run * w : first);
        const real *mask = j->mask ? j->mask + first : NULL;
        if (w == 1)
            along(j->what, n, mask, j->x + first, y);
        else
            EACH_VECTOR(c, w)
                across(j->what, n, w, w - c, mask ? mask + c : NULL, j->x + first + c, y + c);
    }
}
/* Runs in about a chunk. */
static int64_t runs_a_chunk(const weft__segments *s)
{
    int64_t rows = s->offset ? s->offset[s->count] : s->count * s->length;
    return rows_a_chunk((rows / (s->count ? s->count : 1) + 1) * s->inner * 4);
}
static void each_run(weft__device *d, const weft__segments *s, kind what, const real *mask, const real *x, real *y)
{
    each_range(d, s->count, runs_a_chunk(s), norm_runs, &(norm_job){ s, what, mask, x, y });
}
#define EACH_RUN(name, what)                                                                                               \
    static void K(name)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)                \
    {                                                                                                                      \
        each_run(d, s, what, mask, x, y);                                                                                  \
    }
EACH_RUN(softmax, SOFTMAX)
EACH_RUN(log_softmax, LOG_SOFTMAX)
EACH_RUN(logsumexp, LOG_SUM)
#undef EACH_RUN

/* dx = y (dy - sum dy y) */
typedef struct norm_back_job { const weft__segments *s; const real *y, *dy; real *dx; bool add; } norm_back_job;
static void back_along(const norm_back_job *j, int64_t first, int64_t n)
{
    const real *y = j->y + first, *dy = j->dy + first;
    vec sum = v_set(0);
    EACH_VECTOR(i, n)
        sum = v_fma(v_load_to(y + i, n - i), v_load_to(dy + i, n - i), sum);
    real all = v_sum(sum);
    EACH_VECTOR(i, n) {
        vec v = v_load_to(y + i, n - i) * (v_load_to(dy + i, n - i) - all);
        v_store_to(j->dx + first + i, j->add ? v_load_to(j->dx + first + i, n - i) + v : v, n - i);
    }
}
static void back_across(const norm_back_job *j, int64_t first, int64_t n, int64_t w, int64_t lanes)
{
    vec sum = v_set(0);
    for (int64_t at = first; at < first + n * w; at += w)
        sum = v_fma(v_load_to(j->y + at, lanes), v_load_to(j->dy + at, lanes), sum);
    for (int64_t at = first; at < first + n * w; at += w) {
        vec v = v_load_to(j->y + at, lanes) * (v_load_to(j->dy + at, lanes) - sum);
        v_store_to(j->dx + at, j->add ? v_load_to(j->dx + at, lanes) + v : v, lanes);
    }
}
static void back_runs(const void *job, int64_t from, int64_t to)
{
    const norm_back_job *j = job;
    for (int64_t run = from, w = j->s->inner; run < to; run++) {
        int64_t first = first_row(j->s, run) * w, n = run_length(j->s, run);
        if (w == 1)
            back_along(j, first, n);
        else
            EACH_VECTOR(c, w)
                back_across(j, first + c, n, w, w - c);
    }
}
static void K(softmax_back)(weft__device *d, const weft__segments *s, const real *y, const real *dy, real *dx, bool add)
{
    each_range(d, s->count, runs_a_chunk(s), back_runs, &(norm_back_job){ s, y, dy, dx, add });
}

/* ---- layer norm ---- */
typedef struct layer_job {
    int64_t rows, width; real eps;
    const real *x, *gain, *shift, *dy; real *y, *mean, *rstd, *dx, *dgain, *dshift;
} layer_job;

/* sum of (x - mean)^2, in four chains, so that none waits for itself. */
static real spread_about(real mean, int64_t n, const real *x)
{
    vec s[4] = { v_set(0), v_set(0), v_set(0), v_set(0) }, c;
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
        UNROLLED for (int l = 0; l < 4; l++)
            c = v_load(x + i + l * VLEN) - mean, s[l] = v_fma(c, c, s[l]);
    for (; i + VLEN <= n; i += VLEN)
        c = v_load(x + i) - mean, s[0] = v_fma(c, c, s[0]);
    if (i < n)
        c = v_select(lanes_below(n - i), v_load_n(x + i, n - i) - mean, v_set(0)), s[1] = v_fma(c, c, s[1]);
    return v_sum((s[0] + s[1]) + (s[2] + s[3]));
}
ALWAYS vec layer_of(const layer_job *j, vec x, real mean, real rstd, int64_t i, int64_t n)
{
    vec v = (x - mean) * rstd;
    v = j->gain ? v * v_load_to(j->gain + i, n) : v;
    return j->shift ? v + v_load_to(j->shift + i, n) : v;
}
static void layer_rows(const void *job, int64_t from, int64_t to)
{
    const layer_job *j = job;
    for (int64_t r = from, w = j->width; r < to; r++) {
        const real *x = j->x + r * w;
        real *y = j->y + r * w, n = w ? (real)w : 1, mean = total(w, x) / n, rstd = 1 / sqrt(spread_about(mean, w, x) / n + j->eps);
        int64_t i = 0;
        j->mean[r] = mean, j->rstd[r] = rstd;
        for (; i + VLEN <= w; i += VLEN)
            v_store(y + i, layer_of(j, v_load(x + i), mean, rstd, i, VLEN));
        if (i < w)
            v_store_n(y + i, layer_of(j, v_load_n(x + i, w - i), mean, rstd, i, w - i), w - i);
    }
}
static void K(layer_norm)(weft__device *d, int64_t rows, int64_t width, real eps, const real *x, const real *gain, const real *shift,
                          real *y, real *mean, real *rstd)
{
    layer_job j = { .width = width, .eps = eps, .x = x, .gain = gain, .shift = shift, .y = y, .mean = mean, .rstd = rstd };
    each_range(d, rows, rows_a_chunk(width), layer_rows, &j);
}

/* With h = (x - mean) rstd, g = dy gain: dx += rstd (g - mean of g - h mean of g h). */
static void layer_back_rows(const void *job, int64_t from, int64_t to)
{
    const layer_job *j = job;
    for (int64_t r = from, w = j->width; r < to; r++) {
        const real *x = j->x + r * w, *dy = j->dy + r * w;
        real *dx = j->dx + r * w, mean = j->mean[r], rstd = j->rstd[r];
        vec a = v_set(0), b = a, one = v_set(1);
        EACH_VECTOR(i, w) {
            vec g = v_load_to(dy + i, w - i) * (j->gain ? v_load_to(j->gain + i, w - i) : one);
            a += g, b = v_fma(g, (v_load_to(x + i, w - i) - mean) * rstd, b);
        }
        real of_g = v_sum(a) / (real)w, of_gh = v_sum(b) / (real)w;
        EACH_VECTOR(i, w) {
            vec g = v_load_to(dy + i, w - i) * (j->gain ? v_load_to(j->gain + i, w - i) : one);
            vec h = (v_load_to(x + i, w - i) - mean) * rstd;
            v_store_to(dx + i, v_load_to(dx + i, w - i) + rstd * (g - of_g - h * of_gh), w - i);
        }
    }
}
/* dgain += sum dy h, dshift += sum dy: threads own columns, PART rows are summed apart. */
ALWAYS void layer_back_strip(const layer_job *j, int64_t first, int64_t end, int64_t c, int vectors, int64_t n)
{
    vec a[4], b[4];
    UNROLLED for (int l = 0; l < vectors; l++)
        a[l] = b[l] = v_set(0);
    for (int64_t i = first; i < end; i++) {
        const real *dy = j->dy + i * j->width + c, *x = j->x + i * j->width + c, mean = j->mean[i], rstd = j->rstd[i];
        UNROLLED for (int l = 0; l < vectors; l++) {
            vec g = v_load_to(dy + l * VLEN, n);
            a[l] = v_fma(g, (v_load_to(x + l * VLEN, n) - mean) * rstd, a[l]), b[l] += g;
        }
    }
    UNROLLED for (int l = 0; l < vectors; l++) {
        int64_t at = c + l * VLEN;
        if (j->dgain)
            v_store_to(j->dgain + at, v_load_to(j->dgain + at, n) + a[l], n);
        if (j->dshift)
            v_store_to(j->dshift + at, v_load_to(j->dshift + at, n) + b[l], n);
    }
}
static void layer_back_columns(const void *job, int64_t from, int64_t to)
{
    const layer_job *j = job;
    for (int64_t r = 0; r < j->rows; r += PART) {
        int64_t c = from, end = least(j->rows, r + PART);
        for (; c + 4 * VLEN <= to; c += 4 * VLEN)
            layer_back_strip(j, r, end, c, 4, VLEN);
        for (; c < to; c += VLEN)
            layer_back_strip(j, r, end, c, 1, to - c);
    }
}
static void K(layer_norm_back)(weft__device *d, int64_t rows, int64_t width, const real *x, const real *gain, const real *mean,
                               const real *rstd, const real *dy, real *dx, real *dgain, real *dshift)
{
    layer_job j = { rows, width, 0, x, gain, NULL, dy, NULL, (real *)mean, (real *)rstd, dx, dgain, dshift };
    if (dx)
        each_range(d, rows, rows_a_chunk(width), layer_back_rows, &j);
    if (dgain || dshift)
        each_range(d, width, rows * width < CHUNK ? width : STRIP, layer_back_columns, &j);
}
#endif
