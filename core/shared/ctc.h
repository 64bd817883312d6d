/* ctc.h - connectionist temporal classification (Graves et al. 2006) of one sequence, for `ref` and CUDA.
 *
 * A path takes one state at each step: blank j, before label j, or label j. There are labels + 1 pairs of a
 * blank and a label; the label of the last pair does not exist and has -inf. alpha is log p of all beginnings
 * that end in a state, with that state's step; beta is log p of all endings after it. Both are stored
 * relative to the largest of the step before, so the precision does not depend on the number of steps. */
#ifndef WEFT_SHARED_CTC_H
#define WEFT_SHARED_CTC_H
#include <math.h>
#include "core/kernels.h"
#include "core/shared/philox.h"

#define CTC_NEVER (-(real)INFINITY)
typedef struct ctc_part { /* one sequence; row t of alpha: blanks, then labels */
    int64_t steps, labels, pairs, classes;
    int32_t blank;
    const real *x;
    const int32_t *label;
    real *alpha, *lse;
} ctc_part;

WEFT__BOTH ctc_part ctc_sequence(const weft__ctc *c, int64_t s, const int32_t *step, const int32_t *label)
{
    const int64_t pairs = label[s + 1] - label[s] + 1;
    ctc_part p = { step[s + 1] - step[s],
                   pairs - 1,
                   pairs,
                   c->classes,
                   c->blank,
                   c->logits + step[s] * c->classes,
                   c->labels + label[s],
                   c->alpha + c->place[s],
                   c->lse + step[s] };
    return p;
}

/* A fault of a sequence: its kind, and the row and value to report. */
typedef struct ctc_fault {
    int64_t row, value, below;
} ctc_fault;
/* Returns whether the sequence fits. Otherwise f->below is the kind: 0 if the labels do not fit the steps, or
 * see WEFT__NO_FIT. */
WEFT__BOTH bool ctc_fits(const weft__ctc *c, int64_t s, const int32_t *step, const int32_t *label,
                         ctc_fault *f)
{
    int64_t need = label[s + 1] - label[s], steps = step[s + 1] - step[s];
    for (int64_t i = label[s]; i < label[s + 1]; i++) {
        const int32_t v = c->labels[i];
        const ctc_fault label_fault = { i, v, v == c->blank ? (int64_t)WEFT__IS_BLANK : c->classes };
        *f = label_fault;
        if (v < 0 || v >= c->classes || v == c->blank)
            return false;
        need += i > label[s] && v == c->labels[i - 1];
    }
    const ctc_fault no_fit = { s, need, WEFT__NO_FIT };
    *f = no_fit;
    return need <= steps;
}

/* ---- sums of logarithms; NaN stays ---- */
WEFT__BOTH real ctc_larger(real a, real b) { return a > b || a != a ? a : b; }
WEFT__BOTH real ctc_add(real a, real b, real c)
{
    const real m = ctc_larger(ctc_larger(a, b), c);
    return m == CTC_NEVER ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}
/* log sum exp of the classes; 0 if all are -inf, which then have the probability 0 */
WEFT__BOTH real ctc_log_total(int64_t n, const real *x)
{
    real most = x[0];
    double sum = 0;
    for (int64_t j = 1; j < n; j++)
        most = ctc_larger(x[j], most);
    for (int64_t j = 0; j < n; j++)
        sum += (double)exp(x[j] - most);
    return most == CTC_NEVER ? 0 : most + (real)log(sum);
}
WEFT__BOTH bool ctc_differs(const ctc_part *p, int64_t j) { return p->label[j] != p->label[j - 1]; }

/* ---- forward ---- */
/* Fills row t of alpha from the row before, less `shift`. Returns the largest number of the row. */
WEFT__BOTH real ctc_advance(const ctc_part *p, int64_t t, real shift)
{
    const int64_t n = p->pairs;
    const real *x = p->x + t * p->classes, less = p->lse[t] + shift;
    real *row = p->alpha + t * 2 * n, *past = row - 2 * n, high = CTC_NEVER;
    for (int64_t j = 0; j < n; j++) {
        const real blank = t ? past[j] :
                           j ? CTC_NEVER :
                               0,
                   label = t ? past[n + j] : CTC_NEVER, before = t && j ? past[n + j - 1] : CTC_NEVER;
        row[j] = ctc_add(blank, before, CTC_NEVER) + (x[p->blank] - less);
        row[n + j] = j == p->labels ? CTC_NEVER :
                                      ctc_add(label, blank, j && ctc_differs(p, j) ? before : CTC_NEVER) +
                                          (x[p->label[j]] - less);
        high = ctc_larger(ctc_larger(row[j], row[n + j]), high);
    }
    return high;
}
WEFT__BOTH double ctc_loss(const ctc_part *p)
{
    const int64_t n = p->pairs;
    double total = 0;
    real shift = 0;
    for (int64_t t = 0; t < p->steps; t++) {
        p->lse[t] = ctc_log_total(p->classes, p->x + t * p->classes);
        total += (double)shift;
        shift = ctc_advance(p, t, shift);
        shift = shift == CTC_NEVER ? 0 : shift;
    }
    const real *row = p->alpha + (p->steps - 1) * 2 * n;
    return p->steps ? -(total + (double)ctc_add(row[n - 1], n > 1 ? row[2 * n - 2] : CTC_NEVER, CTC_NEVER)) :
                      0;
}

/* ---- backward; after[2 n]: beta of the step after, with that step; both[2 n]: alpha + beta ---- */
WEFT__BOTH void ctc_retreat(const ctc_part *p, int64_t t, real *after)
{
    const int64_t n = p->pairs, last = p->steps - 1;
    for (int64_t j = 0; j < n; j++) {
        const bool more = j < p->labels;
        const real skip = j + 1 < p->labels && ctc_differs(p, j + 1) ? after[n + j + 1] : CTC_NEVER;
        const real blank = ctc_add(after[j], after[n + j], CTC_NEVER),
                   label = more ? ctc_add(after[n + j], after[j + 1], skip) : CTC_NEVER;
        after[j] = t < last ? blank : more ? CTC_NEVER : 0;
        after[n + j] = t < last ? label : j + 1 == p->labels ? 0 : CTC_NEVER;
    }
}
/* Turns `both` into each state's share of the paths. Returns false if there is no path. */
WEFT__BOTH bool ctc_shares(int64_t n, real *both, real high)
{
    double total = 0;
    if (high == CTC_NEVER)
        return false;
    for (int64_t j = 0; j < n; j++)
        total += (double)(both[j] = exp(both[j] - high));
    for (int64_t j = 0; j < n; j++)
        both[j] = (real)((double)both[j] / total);
    return true;
}
/* Adds beta's own step, relative to its largest number. */
WEFT__BOTH void ctc_add_step(const ctc_part *p, int64_t t, real *after)
{
    const int64_t n = p->pairs;
    const real *x = p->x + t * p->classes;
    real less = CTC_NEVER;
    for (int64_t j = 0; j < 2 * n; j++)
        less = ctc_larger(after[j], less);
    less = (less == CTC_NEVER ? 0 : less) + p->lse[t];
    for (int64_t j = 0; j < n; j++)
        after[j] += x[p->blank] - less;
    for (int64_t j = 0; j < p->labels; j++)
        after[n + j] += x[p->label[j]] - less;
}
/* Writes or adds g times the gradient of the loss by the logits: softmax less the share of each class. */
WEFT__BOTH void ctc_gradient(const ctc_part *p, real g, real *dx, bool add)
{
    const int64_t n = p->pairs, C = p->classes;
    real *after = p->alpha + p->steps * 2 * n, *both = after + 2 * n;
    for (int64_t t = p->steps - 1; t >= 0; t--) {
        const real *x = p->x + t * C, *row = p->alpha + t * 2 * n;
        real *to = dx + t * C, high = CTC_NEVER, blanks = 0;
        ctc_retreat(p, t, after);
        for (int64_t j = 0; j < 2 * n; j++) {
            both[j] = row[j] + after[j];
            high = ctc_larger(both[j], high);
        }
        const bool some = ctc_shares(2 * n, both, high);
        for (int64_t k = 0; k < C; k++)
            to[k] = (add ? to[k] : 0) + (some ? g * exp(x[k] - p->lse[t]) : 0);
        for (int64_t j = 0; some && j < p->labels; j++)
            to[p->label[j]] -= g * both[n + j];
        for (int64_t j = 0; some && j < n; j++)
            blanks += both[j];
        if (some)
            to[p->blank] -= g * blanks;
        ctc_add_step(p, t, after);
    }
}
#endif
