/* norm.c - layer normalisation over the last axis: one fused operator, and the same function from
 * operators for second derivatives. */
#include <math.h>
#include "autograd/autograd.h"

typedef struct { real eps; } norm;
enum { X_, GAIN, SHIFT };
enum { Y_, MEAN, RSTD, RESULTS };

static bool norm_shape(weft_call *c)
{
    const weft__form *x = &c->x[X_]->f;
    int lowest = x->batch ? 2 : 1;
    weft__form row = *x;
    if (x->rank < lowest || !is_real(c, X_))
        return weft_op_refuse(c, "a last axis of reals is expected, and not the tokens");
    for (int i = GAIN; i < c->n; i++)
        if (!is_real(c, i) || c->x[i]->f.rank != 1 || c->x[i]->f.size[0] != width(c->x[X_]))
            return weft__refuse(c, "gain and shift [%lld], as wide as the last axis, are expected",
                                (long long)width(c->x[X_]));
    row.rank--;
    c->y[Y_]->f = *x, c->y[MEAN]->f = c->y[RSTD]->f = row;
    return true;
}

static void norm_run(weft_call *c)
{
    const norm *n = c->attributes;
    bool scaled = c->n > 1;
    RUN(c, layer_norm, weft__rows(&c->x[X_]->f), width(c->x[X_]), n->eps, X(c, X_),
        scaled ? X(c, GAIN) : NULL, scaled ? X(c, SHIFT) : NULL, Y(c, Y_), Y(c, MEAN), Y(c, RSTD));
}

static void norm_fused(const weft_call *c)
{
    real *dx = weft__dx_added(c, X_), *dgain = weft__dx_added(c, GAIN), *dshift = weft__dx_added(c, SHIFT);
    if (!c->y[0]->w->status)
        RUN(c, layer_norm_back, weft__rows(&c->x[X_]->f), width(c->x[X_]), X(c, X_),
            c->n > 1 ? X(c, GAIN) : NULL, Y(c, MEAN), Y(c, RSTD), weft_op_dy(c, Y_), dx, dgain, dshift);
}

static weft_tensor *mean_across(weft_tensor *x)
{
    weft__along a = weft__along_axis(x, x->f.rank - 1, false);
    int64_t n = width(x);
    return weft__expand(weft_scale(weft__reduce(x, &a), n ? (double)(1 / (real)n) : 0), &a);
}

static void norm_composed(const weft_call *c, weft_tensor **y)
{
    const norm *n = c->attributes;
    weft_tensor *x = c->x[X_], *centred = weft_sub(x, mean_across(x));
    weft_tensor *unit = weft_mul(
        centred, weft_rsqrt(weft_add(mean_across(weft_square(centred)), weft_scalar(x->w, (double)n->eps))));
    y[Y_] = c->n > 1 ? weft_add(weft_mul(unit, c->x[GAIN]), c->x[SHIFT]) : unit;
}

static void describe_norm(const weft_call *c, char *text, size_t size)
{
    snprintf(text, size, "eps=%g", (double)((const norm *)c->attributes)->eps);
}

static const weft_op op_norm = { .name = "layer_norm",
                                 .results = RESULTS,
                                 .shape = norm_shape,
                                 .forward = norm_run,
                                 .fused = norm_fused,
                                 .composed = norm_composed,
                                 .describe = describe_norm };

weft_tensor *weft_layer_norm(weft_tensor *x, weft_tensor *gain, weft_tensor *shift, double eps)
{
    eps = weft__or(eps, 1e-5);
    norm n = { (real)eps };
    weft_tensor *given[] = { x, gain ? gain : shift, shift ? shift : gain };
    if (!(eps >= 0) || isinf(eps) || (gain == NULL) != (shift == NULL))
        return weft__failed_of(given, gain || shift ? 3 : 1, WEFT_EARG, "layer_norm",
                               "a finite eps >= 0, and gain and shift or neither, are expected; eps is %g%s",
                               eps,
                               gain && shift ? "" :
                               gain          ? ", shift NULL" :
                               shift         ? ", gain NULL" :
                                               "");
    return gain ? APPLY_WITH(&op_norm, n, x, gain, shift) : APPLY_WITH(&op_norm, n, x);
}
