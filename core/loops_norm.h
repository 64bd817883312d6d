/* loops_norm.h - plain loops: softmax and its kin over runs of rows, layer norm. Exponents are taken after the largest has been
 * subtracted. A run without an unmasked row, or with none above -infinity, has nothing: 0, and -infinity as its log sum. */
#ifndef WEFT_LOOPS_NORM_H
#define WEFT_LOOPS_NORM_H
#include "core/loops_memory.h"

#ifndef FAST
/* Of n numbers, `step` apart, where the mask (NULL: ones) is not 0: the largest, and the sum of exp(x - largest). */
typedef struct exponents { real most, sum; } exponents;
static exponents exponents_of(int64_t n, int64_t step, const real *mask, const real *x)
{
    exponents e = { -(real)INFINITY, 0 };
    for (int64_t i = 0; i < n * step; i += step)
        if ((!mask || mask[i] != 0) && (x[i] > e.most || isnan(x[i])))
            e.most = x[i];
    for (int64_t i = 0; i < n * step && e.most != -(real)INFINITY; i += step)
        if (!mask || mask[i] != 0)
            e.sum += exp(x[i] - e.most);
    return e;
}
static real log_sum(exponents e) { return e.most + log(e.sum); }
static void K(logsumexp)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t j = 0; j < w; j++) {
            int64_t at = first_row(s, run) * w + j;
            y[run * w + j] = log_sum(exponents_of(run_length(s, run), w, mask ? mask + at : NULL, x + at));
        }
}
static void softmax_or_log(const weft__segments *s, const real *mask, const real *x, real *y, bool logarithm)
{
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t j = 0; j < w; j++) {
            int64_t at = first_row(s, run) * w + j, end = at + run_length(s, run) * w;
            exponents e = exponents_of(run_length(s, run), w, mask ? mask + at : NULL, x + at);
            for (; at < end; at += w) {
                bool none = e.most == -(real)INFINITY;
                y[at] = mask && mask[at] == 0 ? 0 : logarithm ? (none ? e.most : x[at] - log_sum(e)) : none ? 0 : exp(x[at] - e.most) / e.sum;
            }
        }
}
static void K(softmax)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)
{
    (void)d;
    softmax_or_log(s, mask, x, y, false);
}
static void K(log_softmax)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)
{
    (void)d;
    softmax_or_log(s, mask, x, y, true);
}
/* dx = y (dy - sum dy y) */
static void K(softmax_back)(weft__device *d, const weft__segments *s, const real *y, const real *dy, real *dx, bool add)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t j = 0; j < w; j++) {
            int64_t at = first_row(s, run) * w + j, end = at + run_length(s, run) * w;
            real sum = 0;
            for (int64_t i = at; i < end; i += w)
                sum += dy[i] * y[i];
            for (int64_t i = at; i < end; i += w)
                dx[i] = onto(&dx[i], add, y[i] * (dy[i] - sum));
        }
}

/* y = (x - mean) rstd gain + shift, rstd = 1 / sqrt(mean of (x - mean)^2 + eps) */
static void K(layer_norm)(weft__device *d, int64_t rows, int64_t width, real eps, const real *x, const real *gain, const real *shift,
                          real *y, real *mean, real *rstd)
{
    (void)d;
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        real m = 0, v = 0, n = width ? (real)width : 1;
        for (int64_t j = 0; j < width; j++)
            m += x[j] / n;
        for (int64_t j = 0; j < width; j++)
            v += (x[j] - m) * (x[j] - m) / n;
        mean[r] = m, rstd[r] = 1 / sqrt(v + eps);
        for (int64_t j = 0; j < width; j++)
            y[j] = (x[j] - m) * rstd[r] * (gain ? gain[j] : 1) + (shift ? shift[j] : 0);
    }
}
/* With h = (x - mean) rstd, g = dy gain: dx += rstd (g - mean of g - h mean of g h), dgain += sum dy h, dshift += sum dy. */
static void K(layer_norm_back)(weft__device *d, int64_t rows, int64_t width, const real *x, const real *gain, const real *mean,
                               const real *rstd, const real *dy, real *dx, real *dgain, real *dshift)
{
    (void)d;
    for (int64_t r = 0; r < rows; r++, x += width, dy += width, dx += dx ? width : 0) {
        real a = 0, b = 0;
        for (int64_t j = 0; j < width; j++) {
            real h = (x[j] - mean[r]) * rstd[r], g = dy[j] * (gain ? gain[j] : 1);
            a += g / (real)width, b += g * h / (real)width;
            if (dgain)
                dgain[j] += dy[j] * h;
            if (dshift)
                dshift[j] += dy[j];
        }
        for (int64_t j = 0; dx && j < width; j++)
            dx[j] += rstd[r] * (dy[j] * (gain ? gain[j] : 1) - a - (x[j] - mean[r]) * rstd[r] * b);
    }
}
#endif
#endif
