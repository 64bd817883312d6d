/* norm.c - layer normalisation over the last axis, of rows or of a gated linear unit's sum with its skip:
 * each one fused operator, and the same function from operators for second derivatives. */
#include <math.h>
#include "autograd/autograd.h"

typedef struct { real eps; } norm;
enum { X_, GAIN, SHIFT };
enum { Y_, MEAN, RSTD, RESULTS };

/* Results like x, which is normalised; gain and shift are the inputs from `gain` on. */
static bool results_like(weft_call *c, const weft_tensor *x, int gain)
{
    weft__form row = x->f;
    for (int i = gain; i < c->n; i++)
        if (!is_real(c, i) || c->x[i]->f.rank != 1 || c->x[i]->f.size[0] != width(x))
            return weft__refuse(c, "gain and shift [%lld], as wide as the last axis, are expected",
                                (long long)width(x));
    row.rank--;
    c->y[Y_]->f = x->f, c->y[MEAN]->f = c->y[RSTD]->f = row;
    return true;
}

static bool norm_shape(weft_call *c)
{
    const weft__form *x = &c->x[X_]->f;
    if (x->rank < (x->batch ? 2 : 1) || !is_real(c, X_))
        return weft_op_refuse(c, "a last axis of reals is expected, and not the tokens");
    return results_like(c, c->x[X_], GAIN);
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

static weft_tensor *compose_norm(const norm *n, weft_tensor *x)
{
    weft_tensor *centred = weft_sub(x, mean_across(x));
    return weft_mul(centred, weft_rsqrt(weft_add(mean_across(weft_square(centred)),
                                                 weft_scalar(x->w, (double)n->eps))));
}
static void norm_composed(const weft_call *c, weft_tensor **y)
{
    weft_tensor *unit = compose_norm(c->attributes, c->x[X_]);
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

/* ---- of a gate ---- */
enum { GATE, SKIP, GATE_GAIN, GATE_SHIFT };

bool weft__gate_fits(const weft_tensor *gate, const weft_tensor *skip)
{
    const weft__form *g = &gate->f, *s = &skip->f;
    bool fits = g->type == WEFT_REAL && s->type == WEFT_REAL && g->batch == s->batch && g->rank == s->rank &&
                s->rank >= (s->batch ? 2 : 1) && width(gate) == 2 * width(skip);
    for (int i = 0; fits && i < s->rank - 1; i++)
        fits = g->size[i] == s->size[i];
    return fits;
}

static bool gate_shape(weft_call *c)
{
    if (!weft__gate_fits(c->x[GATE], c->x[SKIP]))
        return weft_op_refuse(c, "reals, and a gate like the skip but for twice its width, are expected");
    return results_like(c, c->x[SKIP], GATE_GAIN);
}

static weft__gate_norm gate_record(const weft_call *c)
{
    return (weft__gate_norm){ .rows = weft__rows(&c->x[SKIP]->f),
                              .width = width(c->x[SKIP]),
                              .eps = ((const norm *)c->attributes)->eps,
                              .gate = X(c, GATE),
                              .skip = X(c, SKIP),
                              .gain = X(c, GATE_GAIN),
                              .shift = X(c, GATE_SHIFT),
                              .y = Y(c, Y_),
                              .mean = Y(c, MEAN),
                              .rstd = Y(c, RSTD) };
}

static void gate_run(weft_call *c)
{
    weft__gate_norm g = gate_record(c);
    RUN(c, gate_norm, &g);
}

static void gate_fused(const weft_call *c)
{
    weft__gate_norm g = gate_record(c);
    g.dy = weft_op_dy(c, Y_), g.dgate = weft_op_dx(c, GATE, &g.add);
    g.dskip = weft__dx_added(c, SKIP), g.dgain = weft__dx_added(c, GATE_GAIN),
    g.dshift = weft__dx_added(c, GATE_SHIFT);
    if (!c->y[0]->w->status)
        RUN(c, gate_norm_back, &g);
}

static void gate_composed(const weft_call *c, weft_tensor **y)
{
    weft_tensor *unit = compose_norm(c->attributes, weft_add(weft__glu(c->x[GATE]), c->x[SKIP]));
    y[Y_] = weft_add(weft_mul(unit, c->x[GATE_GAIN]), c->x[GATE_SHIFT]);
}

static const weft_op op_gate_norm = { .name = "gate_norm",
                                      .results = RESULTS,
                                      .shape = gate_shape,
                                      .forward = gate_run,
                                      .fused = gate_fused,
                                      .composed = gate_composed,
                                      .describe = describe_norm };

weft_tensor *weft__gate_norm_of(weft_tensor *gate, weft_tensor *skip, weft_tensor *gain, weft_tensor *shift,
                                double eps)
{
    norm n = { (real)weft__or(eps, 1e-5) };
    return APPLY_WITH(&op_gate_norm, n, gate, skip, gain, shift);
}
