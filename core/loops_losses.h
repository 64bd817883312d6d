/* loops_losses.h - plain loops: cross entropy. See weft__entropy for the formula. */
#ifndef WEFT_LOOPS_LOSSES_H
#define WEFT_LOOPS_LOSSES_H
#include "core/loops_memory.h"

static inline real weight_of(const weft__entropy *e, int64_t c) { return e->class_weight ? e->class_weight[c] : 1; }
static inline real mask_of(const weft__entropy *e, int64_t r)   { return e->mask ? e->mask[r] : 1; }
/* The class of a row that counts; -1: it does not. */
static int64_t class_of(weft__device *d, const weft__entropy *e, const int32_t *class_, int64_t r)
{
    if (mask_of(e, r) == 0 || (e->has_ignore && class_[r] == e->ignore))
        return -1;
    return within(d, r, class_[r], 0, e->classes);
}
static void K(entropy_weight)(weft__device *d, const weft__entropy *e, const int32_t *class_, real *y)
{
    for (int64_t r = 0; r < e->rows; r++) {
        int64_t c = class_of(d, e, class_, r);
        y[r] = c < 0 ? 0 : mask_of(e, r) * weight_of(e, c);
    }
}

#ifndef FAST
static real log_total(int64_t n, const real *x)                   /* log sum exp */
{
    real most = x[0], sum = 0;
    for (int64_t j = 1; j < n; j++)
        most = x[j] > most ? x[j] : most;
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j] - most);
    return most + log(sum);
}
static void K(entropy)(weft__device *d, const weft__entropy *e, const real *logits, const int32_t *class_, real *y)
{
    for (int64_t r = 0, n = e->classes; r < e->rows; r++) {
        const real *x = logits + r * n;
        int64_t c = class_of(d, e, class_, r);
        real total = c < 0 ? 0 : log_total(n, x), all = 0;
        for (int64_t j = 0; c >= 0 && e->smoothing != 0 && j < n; j++)
            all += weight_of(e, j) * (total - x[j]);
        y[r] = c < 0 ? 0 : mask_of(e, r) * ((1 - e->smoothing) * weight_of(e, c) * (total - x[c]) + e->smoothing / (real)n * all);
    }
}
static void K(entropy_back)(weft__device *d, const weft__entropy *e, const real *logits, const int32_t *class_, const real *dy,
                            real *dx, bool add)
{
    real all = 0, share = e->smoothing / (real)e->classes;
    for (int64_t j = 0; j < e->classes; j++)
        all += weight_of(e, j);
    for (int64_t r = 0, n = e->classes; r < e->rows; r++, dx += n) {
        const real *x = logits + r * n;
        int64_t c = class_of(d, e, class_, r);
        real total = c < 0 ? 0 : log_total(n, x), g = c < 0 ? 0 : mask_of(e, r) * dy[r];
        real own = c < 0 ? 0 : (1 - e->smoothing) * weight_of(e, c);
        for (int64_t j = 0; j < n; j++) {
            real v = c < 0 ? 0 : g * ((own + share * all) * exp(x[j] - total) - (j == c ? own : 0) - share * weight_of(e, j));
            dx[j] = onto(&dx[j], add, v);
        }
    }
}
#endif
#endif
