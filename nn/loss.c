/* loss.c - losses that are computed element by element. Each returns a sum and a weight; the program divides
 * once at the end.
 *
 * Masked elements are replaced before the computation. If they were multiplied by 0 afterwards, a NaN would
 * reach the sum, and the gradient would be 0 * NaN. So every loss has three steps: begin (check and replace),
 * its formula, end (weight and sum). */
#include <math.h>
#include "autograd/fused.h"
#include "nn/loss.h"

/* The reciprocal of 0 is 0. */
weft_tensor *weft_mean_loss(weft_loss l) { return weft_mul(l.sum, weft_reciprocal(l.weight)); }

weft_tensor *weft__as_column(weft_tensor *x)
{
    int64_t shape[WEFT_RANK + 1] = { 0 };
    int rank = weft_rank(x);
    for (int i = 0; i < rank; i++)
        shape[i] = x->f.size[i];
    if (x && x->f.batch)
        /* Reshape arranges a ragged tensor to another layout, which may have another number of rows. */
        shape[0] = -1;
    shape[rank] = 1;
    return weft_reshape(x, rank + 1, shape);
}

/* ---- begin ---- */
static weft_loss failed_loss(weft_tensor *x)
{
    weft *w = x ? x->w : weft__no_context();
    return (weft_loss){ &w->nil, &w->nil };
}

static bool operand_is_usable(const char *name, weft *w, const weft_tensor *y, const char *operand)
{
    if (WEFT__IS_USABLE(w, y, "%s: %s", name, operand) && y->f.type != WEFT_REAL)
        weft__fail(w, WEFT_ESHAPE, "%s: %s is of ints; expected reals (weft_to_reals)", name, operand);
    return !w->status;
}

bool weft__shapes_equal(const weft__form *a, const weft__form *b, int64_t last)
{
    bool same = a->rank == b->rank && !a->batch == !b->batch;
    for (int i = a->batch ? 1 : 0; same && i < a->rank; i++)
        same = b->size[i] == (i == a->rank - 1 && last >= 0 ? last : a->size[i]);
    return same;
}

/* Refuses shapes that would broadcast: [n] with [n, 1] would sum n * n differences. */
static bool match(const char *name, const weft_tensor *x, const weft_tensor *y, const char *operand,
                  int64_t last)
{
    bool same = weft__shapes_equal(&x->f, &y->f, last);
    if (!same)
        weft__fail(x->w, WEFT_ESHAPE, "%s: predicted %s, %s %s; expected %s, both ragged or both plain", name,
                   WEFT__TEXT(&x->f), operand, WEFT__TEXT(&y->f),
                   last < 0 ? "equal shapes" : "shapes that differ only in the last extent");
    return same;
}

/* Checks a mask or weights, unless m is NULL. */
static bool factor_fits(const char *name, const weft_tensor *x, const weft_tensor *m, const char *operand)
{
    if (!m || !operand_is_usable(name, x->w, m, operand))
        return !m;
    const weft__form *f = &x->f, *g = &m->f;
    int skip = f->rank - g->rank;
    bool fits = skip >= 0 && (!g->batch || (f->batch && !skip));
    for (int i = 0; fits && i < g->rank; i++)
        fits = g->size[i] == 1 ||
               (skip + i == 0 && f->batch ? g->batch != NULL : g->size[i] == f->size[skip + i]);
    if (!fits)
        weft__fail(x->w, WEFT_ESHAPE, "%s: %s %s; expected a shape that broadcasts to predicted %s", name,
                   operand, WEFT__TEXT(g), WEFT__TEXT(f));
    return fits;
}

static bool weights_fit(const char *name, weft_tensor *x, const weft_loss_opts *o)
{
    return !o || (factor_fits(name, x, o->mask, "mask") && factor_fits(name, x, o->weights, "weights"));
}

static weft_tensor *masked_values(weft_tensor *x, const weft_loss_opts *o, real otherwise)
{
    return o && o->mask ? weft_where(o->mask, x, weft_scalar(x->w, (double)otherwise)) : x;
}

/* Checks the operands and replaces their masked elements. After a failure both are the inert tensor. */
static void begin_loss(const char *name, weft_tensor **x, weft_tensor **y, const weft_loss_opts *o)
{
    weft *w = weft__context(LIST(*x, *y));
    bool sound = operand_is_usable(name, w, *x, "predicted") && operand_is_usable(name, w, *y, "target") &&
                 match(name, *x, *y, "target", -1) && weights_fit(name, *x, o);
    *x = sound ? masked_values(*x, o, 0) : &w->nil;
    *y = sound ? masked_values(*y, o, 0) : &w->nil;
}

/* Checks that all elements with a weight other than 0 are in 0 .. high. Elements with weight 0 are replaced
 * by 0. NaN passes and appears in the loss. On a GPU the error comes at the next wait, in general words. */
static void check_range(const char *name, weft_tensor *x, const weft_loss_opts *o, const char *operand,
                        real high)
{
    weft *w = x->w;
    char place[64] = "";
    if (!w->status && o && o->weights)
        WEFT_NO_GRAD(w)
    x = weft_where(masked_values(o->weights, o, 0), x, weft_scalar(w, 0));
    if (!w->status)
        w->dev.k->check_range(&w->dev, count(x), 0, high, x->data);
    if (w->status || !w->dev.fault.is || !w->dev.k->synchronous)
        return;
    int64_t index = w->dev.fault.row;
    const struct weft__rows *rows = x->f.batch ? weft__rows_of(x->f.batch, &x->f) : NULL;
    if (rows) {
        int64_t row = index / (count(x) / weft__layout_rows(&x->f));
        snprintf(place, sizeof place, " (sequence %d, position %d)", rows->sequence.host[row],
                 rows->position.host[row]);
    }
    w->dev.fault = (weft__fault){ 0 };
    weft__fail(w, WEFT_EARG, "%s: %s: element %lld%s is %g; expected 0 .. %g", name, operand,
               (long long)index, place, (double)x->data[index], (double)high);
}

/* ---- end ---- */
/* Returns the sum of the mask over the elements of x. */
static weft_tensor *count_elements(const weft_tensor *x, const weft_loss_opts *o)
{
    if (!o || !o->mask)
        return weft_scalar(x->w, (double)(real)weft__numbers(&x->f));
    int64_t of_mask = weft__numbers(&o->mask->f);
    return weft_scale(weft_sum_all(o->mask), of_mask ? (double)(real)(weft__numbers(&x->f) / of_mask) : 0);
}

/* Multiplies x by weights and mask. Where a weight is 0 the result is 0, even for infinity and NaN. */
static weft_tensor *weighted(weft_tensor *x, const weft_loss_opts *o)
{
    if (o && o->weights)
        x = weft__given_times(masked_values(o->weights, o, 0), x);
    return o && o->mask ? weft_mul(x, o->mask) : x;
}

static weft_loss end_loss(weft_tensor *element, const weft_loss_opts *o)
{
    if (element->w->status)
        return failed_loss(element);
    return (weft_loss){ weft_sum_all(weighted(element, o)), count_elements(element, o) };
}

/* ---- formulas ---- */
weft_loss weft_mse_loss(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts)
{
    begin_loss("mse_loss", &predicted, &target, opts);
    return end_loss(weft_square(weft_sub(predicted, target)), opts);
}

weft_loss weft_l1_loss(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts)
{
    begin_loss("l1_loss", &predicted, &target, opts);
    return end_loss(weft_abs(weft_sub(predicted, target)), opts);
}

/* With c = r clamped to +-delta, c (r - c / 2) is r^2 / 2 inside, delta (|r| - delta / 2) outside, smooth at
 * 0. */
weft_loss weft_huber_loss(weft_tensor *predicted, weft_tensor *target, double delta,
                          const weft_loss_opts *opts)
{
    begin_loss("huber_loss", &predicted, &target, opts);
    delta = weft__or(delta, 1);
    if (!(delta > 0))
        weft__fail(predicted->w, WEFT_EARG, "huber_loss: delta %g; expected more than 0", delta);
    weft_tensor *r = weft_sub(predicted, target), *c = weft_clamp(r, -delta, delta);
    return end_loss(weft_mul(c, weft_sub(r, weft_scale(c, .5))), opts);
}

/* Computes t softplus(-x) + (1 - t) softplus(x). No term is a difference of large numbers, and the gradient
 * at 0 is correct. A factor of 0 makes a term 0 even at an infinite logit, so a certain and correct
 * prediction costs 0. */
weft_loss weft_bce_with_logits(weft_tensor *logits, weft_tensor *target, const weft_loss_opts *opts)
{
    begin_loss("bce_with_logits", &logits, &target, opts);
    check_range("bce_with_logits", target, opts, "target", 1);
    weft_tensor *rest = weft_sub(weft_scalar(logits->w, 1), target);
    return end_loss(weft_add(weft__given_times(target, weft_softplus(weft_neg(logits))),
                             weft__given_times(rest, weft_softplus(logits))),
                    opts);
}

weft_loss weft_gaussian_nll_loss(weft_tensor *mean, weft_tensor *target, weft_tensor *variance, double eps,
                                 const weft_loss_opts *opts)
{
    weft_tensor *m = mean;
    begin_loss("gaussian_nll_loss", &m, &target, opts);
    if (!operand_is_usable("gaussian_nll_loss", m->w, variance, "variance") ||
        !match("gaussian_nll_loss", mean, variance, "variance", -1))
        return failed_loss(mean);
    eps = weft__or(eps, 1e-6);
    if (!(eps >= 0))
        weft__fail(mean->w, WEFT_EARG, "gaussian_nll_loss: eps %g; expected 0 or more", eps);
    weft_tensor *given = masked_values(variance, opts, 1);
    check_range("gaussian_nll_loss", given, opts, "variance", (real)INFINITY);
    weft_tensor *v = weft_clamp(given, eps, (double)INFINITY);
    weft_tensor *error = weft_div(weft_square(weft_sub(target, m)), v);
    return end_loss(weft_scale(weft_add(weft_log(v), error), .5), opts);
}

/* If numerator and denominator are 0, a denominator of 1 gives the value 0 and the gradient 0. */
weft_loss weft_smape(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts)
{
    begin_loss("smape", &predicted, &target, opts);
    weft_tensor *both = weft_add(weft_abs(predicted), weft_abs(target));
    weft_tensor *safe = weft_where(both, both, weft_scalar(both->w, 1));
    return end_loss(weft_scale(weft_div(weft_abs(weft_sub(predicted, target)), safe), 2), opts);
}

weft_loss weft_mape(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts)
{
    begin_loss("mape", &predicted, &target, opts);
    weft_tensor *error = weft_sub(target, predicted);
    weft_tensor *safe = weft_where(error, target, weft_scalar(error->w, 1));
    return end_loss(weft_abs(weft_div(error, safe)), opts);
}

/* ---- quantiles ---- */
static bool quantiles_are_sound(weft_tensor *x, const real *quantiles, int64_t n)
{
    if (x->f.rank < (x->f.batch ? 2 : 1) || n < 1 || !quantiles || weft_size(x, -1) != n)
        weft__fail(x->w, WEFT_ESHAPE,
                   "quantile_loss: predicted %s, %lld quantiles; expected one column for each",
                   WEFT__TEXT(&x->f), (long long)n);
    for (int64_t i = 0; i < n && !x->w->status; i++)
        if (!(quantiles[i] > 0 && quantiles[i] < 1))
            weft__fail(x->w, WEFT_EARG, "quantile_loss: quantile %lld is %g; expected 0 < quantile < 1",
                       (long long)i, (double)quantiles[i]);
    return !x->w->status;
}

weft_loss weft_quantile_loss(weft_tensor *predicted, weft_tensor *target, const real *quantiles,
                             int64_t n, bool per_batch, const weft_loss_opts *opts)
{
    weft *w = weft__context(LIST(predicted, target));
    if (!operand_is_usable("quantile_loss", w, predicted, "predicted") ||
        !operand_is_usable("quantile_loss", w, target, "target") ||
        !quantiles_are_sound(predicted, quantiles, n))
        return failed_loss(predicted);
    weft_tensor *x = predicted, *y = weft_rank(target) == weft_rank(x) - 1 ? weft__as_column(target) : target;
    if (x->w->status || !match("quantile_loss", x, y, "target", 1) || !weights_fit("quantile_loss", x, opts))
        return failed_loss(x);
    weft_tensor *r = weighted(weft_sub(masked_values(y, opts, 0), masked_values(x, opts, 0)), opts);
    weft_tensor *q = weft_reals(x->w, quantiles, WEFT_SHAPE(n));
    weft_tensor *element = weft_maximum(weft_mul(weft_sub(q, weft_scalar(x->w, 1)), r), weft_mul(q, r));
    const int64_t sequences = x->f.batch ? x->f.batch->n : x->f.rank > 1 ? x->f.size[0] : 1;
    return (weft_loss){ weft_sum_all(element), per_batch ? weft_scalar(x->w, (double)(real)(sequences * n)) :
                                                           count_elements(x, opts) };
}
