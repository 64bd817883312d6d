/* gradcheck.c - compares gradients, and gradients of gradients, with central differences of fourth order
 * (five points). Gradients are computed twice: recorded, which uses operators, and unrecorded, which uses
 * fused functions and gradient buffers. */
#include <math.h>
#include "autograd/op.h"

typedef weft_tensor *function(weft_tensor *const *x, void *user);

/* Returns f(x). If it does not have one element, fails the context and returns the inert tensor. */
static weft_tensor *value_of(function *f, weft_tensor *const *x, void *user)
{
    weft *w = x[0]->w;
    weft__callback outer = weft__callback_begin(w, "the function of", "gradcheck");
    weft_tensor *y = f(x, user);
    weft__callback_end(w, outer);
    if (!w->status && WEFT__IS_USABLE(w, y, "gradcheck: the tensor that the function returned") &&
        count(y) != 1)
        weft__failed(y, WEFT_ESHAPE, "gradcheck", "expected a function whose result has one element");
    return w->status ? &w->nil : y;
}

static double value_at(function *f, weft_tensor *const *x, void *user, int64_t i, int64_t j, real v)
{
    weft *w = x[0]->w;
    weft_mark mark = weft_mark_here(w);
    w->dev.k->upload(&w->dev, x[i]->data + j, &v, sizeof v);
    double y = (double)weft_item(value_of(f, x, user));
    if (weft_ok(w))
        weft_rewind(w, mark);
    return y;
}

static double slope_at(function *f, weft_tensor *const *x, void *user, int64_t i, int64_t j)
{
    weft *w = x[0]->w;
    real saved, h = (real)(sizeof(real) == 8 ? 4e-4 : 1e-2);
    w->dev.k->download(&w->dev, &saved, x[i]->data + j, sizeof saved);
    double near = value_at(f, x, user, i, j, saved + h) - value_at(f, x, user, i, j, saved - h);
    double far = value_at(f, x, user, i, j, saved + 2 * h) - value_at(f, x, user, i, j, saved - 2 * h);
    w->dev.k->upload(&w->dev, x[i]->data + j, &saved, sizeof saved);
    return (8 * near - far) / (12 * (double)h);
}

static real *read_numbers(weft_tensor *t)             /* host memory of the step */
{
    weft *w = t->w;
    real *p = weft__take(w, WEFT__ARENA_BATCHES, weft__bytes(&t->f));
    return p && weft__read(t, p, (size_t)weft__bytes(&t->f)) == WEFT_OK ? p : NULL;
}

static double difference(function *f, weft_tensor *const *x, void *user, int64_t i, const real *recorded,
                         const real *raw)
{
    double worst = 0, sum = 0;
    for (int64_t j = 0; j < count(x[i]); j++)
        sum += (double)recorded[j] * (double)recorded[j];
    const double norm = fmax(1, sqrt(sum));
    for (int64_t j = 0; j < count(x[i]) && weft_ok(x[i]->w); j++) {
        double expected = slope_at(f, x, user, i, j);
        double e = fmax(fabs((double)recorded[j] - expected), fabs((double)raw[j] - expected)) / norm;
        if (isnan((double)raw[j]) || isnan((double)recorded[j]) || isnan(expected))
            return (double)NAN;
        worst = e > worst || isnan(e) ? e : worst;
    }
    return worst;
}

static double largest_error(function *f, weft_tensor *const *x, int64_t n, void *user)
{
    weft *w = n > 0 && x ? weft__context(x, n) : weft__no_context();
    if (!f)
        weft__fail(w, WEFT_EARG, "gradcheck: the function is NULL");
    for (int64_t i = 0; i < n && !w->status; i++)
        if (weft__handle_error(w, x[i]))
            weft__failed_of(x, n, WEFT_EARG, "gradcheck", "expected tensors of the step");
    if (w->status)
        return (double)NAN;                      /* n may be negative */
    w->running = "gradcheck";
    weft_tensor **dx = weft__take(w, WEFT__ARENA_BATCHES, 2 * n * (int64_t)sizeof *dx);
    if (!dx)
        return (double)NAN;
    weft_tensor *y = value_of(f, x, user);
    weft_gradients_recorded(y, x, n, dx);
    weft_gradients(y, x, n, dx + n);
    double worst = 0;
    for (int64_t i = 0; i < n && weft_ok(w); i++) {
        const real *recorded = read_numbers(dx[i]), *raw = read_numbers(dx[n + i]);
        double e = recorded && raw ? difference(f, x, user, i, recorded, raw) : (double)NAN;
        if (isnan(e))
            return e;
        worst = fmax(worst, e);
    }
    return weft_ok(w) ? worst : (double)NAN;
}

/* ---- a fixed combination of the gradients of f, as a function of x ---- */
typedef struct { function *f; int64_t n; void *user; } inner;

static weft_tensor *probe(weft_tensor *dx, int64_t i)
{
    weft *w = dx->w;
    real *p = weft__take(w, WEFT__ARENA_BATCHES, weft__bytes(&dx->f));
    for (int64_t j = 0; p && j < count(dx); j++)
        p[j] = (real)sin(1 + 1.7 * (double)i + 0.9 * (double)j);
    return p ? weft__tensor(w, &dx->f, p) : &w->nil;
}

static weft_tensor *probed(weft_tensor *const *x, void *user)
{
    const inner *in = user;
    weft *w = x[0]->w;
    weft_tensor *all = weft_scalar(w, 0),
                **dx = weft__take(w, WEFT__ARENA_BATCHES, in->n * (int64_t)sizeof *dx);
    bool recording = weft_set_grad_enabled(w, true);
    if (dx)
        weft_gradients_recorded(in->f(x, in->user), x, in->n, dx);
    for (int64_t i = 0; dx && i < in->n; i++)
        all = weft_add(all, weft_sum_all(weft_mul(dx[i], probe(dx[i], i))));
    w->recording = recording;
    return all;
}

double weft_gradcheck(function *f, weft_tensor *const *x, int64_t n, int order, void *user)
{
    if (order != 1 && order != 2)
        weft__fail(n > 0 && x ? weft__context(x, n) : weft__no_context(), WEFT_EARG,
                   "gradcheck: order %d; expected 1 or 2", order);
    return order == 2 ? largest_error(f ? probed : NULL, x, n, &(inner){ f, n, user }) :
                        largest_error(f, x, n, user);
}
