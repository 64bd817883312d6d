/* norm.c - layer norm over the last axis, of x or of glu(gate) + skip, and RMS norm. Each is a fused
 * operator, and for second derivatives a composition of operators. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "autograd/api_windows.h"
#include "autograd/op.h"

typedef weft__norm norm;
enum { X_, GAIN, SHIFT };
enum { GATE, SKIP, GATE_GAIN, GATE_SHIFT };
enum { Y_, MEAN, RSTD, RESULTS };
static const weft_op op_gate_norm;

static const norm *attributes_of(const weft_call *c) { return c->attributes; }
/* Returns the number of the normalised input. Gain and shift follow it; a gate is before it. */
static int normalised(const weft_call *c) { return c->op == &op_gate_norm ? SKIP : X_; }

/* Gives the results the form of the normalised input x. Checks gain and shift: a row, or, if grouped, one row
 * for each element of the second last axis of x. */
static bool results_like_input(weft_call *c)
{
    const weft_tensor *x = c->x[normalised(c)];
    const int axes = attributes_of(c)->grouped ? 2 : 1, first = x->f.rank - axes;
    weft__form row = x->f;
    for (int i = normalised(c) + 1; i < c->n; i++)
        if (!is_real(c, i) || c->x[i]->f.batch || c->x[i]->f.rank != axes || first < (x->f.batch ? 1 : 0) ||
            memcmp(c->x[i]->f.size, x->f.size + first, (size_t)axes * sizeof *x->f.size))
            return weft__refuse(c, "expected %s %s[%lld], as the last axis",
                                attributes_of(c)->rms ? "a gain" : "gain and shift",
                                axes > 1 ? "[groups] " : "", (long long)width(x));
    row.rank--;
    c->y[Y_]->f = x->f;
    c->y[MEAN]->f = c->y[RSTD]->f = row;
    return true;
}

static bool norm_shape(weft_call *c)
{
    const weft__form *x = &c->x[X_]->f;
    if (x->rank < (x->batch ? 2 : 1) || !is_real(c, X_))
        return weft_op_refuse(c, "expected reals, and a last axis that is not the tokens");
    return results_like_input(c);
}

static weft__layer_norm record_of(const weft_call *c)
{
    const int x = normalised(c), gain = x + 1;
    const bool scaled = gain < c->n;
    const int64_t groups = attributes_of(c)->grouped ? c->x[gain]->f.size[0] : 1;
    return (weft__layer_norm){ .rows = weft__rows(&c->x[x]->f),
                               .width = width(c->x[x]),
                               .groups = groups ? groups : 1,
                               .eps = attributes_of(c)->eps,
                               .rms = attributes_of(c)->rms,
                               .x = X(c, x),
                               .gate = x ? X(c, x - 1) : NULL,
                               .gain = scaled ? X(c, gain) : NULL,
                               .shift = gain + 1 < c->n ? X(c, gain + 1) : NULL,
                               .y = Y(c, Y_),
                               .mean = Y(c, MEAN),
                               .rstd = Y(c, RSTD) };
}

static void norm_run(weft_call *c)
{
    const weft__layer_norm n = record_of(c);
    RUN(c, layer_norm, &n);
}

static void norm_fused(const weft_call *c)
{
    const int x = normalised(c), gain = x + 1;
    weft__layer_norm n = record_of(c);
    n.dy = weft_op_dy(c, Y_), n.dgate = x ? weft_op_dx(c, x - 1, &n.add_gate) : NULL;
    n.dx = weft_op_dx(c, x, &n.add_x), n.dgain = weft_op_dx(c, gain, &n.add_gain);
    n.dshift = weft_op_dx(c, gain + 1, &n.add_shift);
    if (!c->y[0]->w->status)
        RUN(c, layer_norm_back, &n);
}

static weft_tensor *mean_across(weft_tensor *x)
{
    weft__along a = weft__along_axis(x, x->f.rank - 1, false);
    int64_t n = width(x);
    return weft__expand(weft_scale(weft__reduce(x, &a), n ? (double)(1 / (real)n) : 0), &a);
}

static weft_tensor *compose_norm(const norm *n, weft_tensor *x)
{
    weft_tensor *centred = n->rms ? x : weft_sub(x, mean_across(x));
    return weft_mul(centred, weft_rsqrt(weft_add(mean_across(weft_square(centred)),
                                                 weft_scalar(x->w, (double)n->eps))));
}
static void norm_composed(const weft_call *c, weft_tensor **y)
{
    weft_tensor *unit = compose_norm(c->attributes, c->x[X_]);
    y[Y_] = c->n > GAIN ? weft_mul(unit, c->x[GAIN]) : unit;
    y[Y_] = c->n > SHIFT ? weft_add(y[Y_], c->x[SHIFT]) : y[Y_];
}

static void describe_norm(const weft_call *c, char *text, size_t size)
{
    snprintf(text, size, "eps=%g", (double)((const norm *)c->attributes)->eps);
}

#define NORM(its_name, its_shape, its_composed)                                        \
    {                                                                                  \
        .name = its_name, .results = RESULTS, .shape = its_shape, .forward = norm_run, \
        .fused = norm_fused, .composed = its_composed, .describe = describe_norm       \
    }
static const weft_op op_norm = NORM("layer_norm", norm_shape, norm_composed),
                     op_rms_norm = NORM("rms_norm", norm_shape, norm_composed);

weft_tensor *weft_layer_norm(weft_tensor *x, weft_tensor *gain, weft_tensor *shift, double eps)
{
    eps = weft__or(eps, 1e-5);
    norm n = { (real)eps, false, false };
    weft_tensor *given[] = { x, gain ? gain : shift, shift ? shift : gain };
    if (!(eps >= 0) || isinf(eps) || (gain == NULL) != (shift == NULL))
        return weft__failed_of(given, gain || shift ? 3 : 1, WEFT_EARG, "layer_norm",
                               "expected a finite eps >= 0, and gain and shift or neither; eps is %g%s", eps,
                               gain && shift ? "" :
                               gain          ? ", shift is NULL" :
                               shift         ? ", gain is NULL" :
                                               "");
    return gain ? APPLY_WITH(&op_norm, n, x, gain, shift) : APPLY_WITH(&op_norm, n, x);
}

weft_tensor *weft_rms_norm(weft_tensor *x, weft_tensor *gain, double eps)
{
    const double epsilon = sizeof(real) == sizeof(float) ? (double)FLT_EPSILON : DBL_EPSILON;
    eps = weft__or(eps, epsilon);
    norm n = { (real)eps, false, true };
    if (!(eps >= 0) || isinf(eps))
        return weft__failed_of((weft_tensor *[]){ x, gain }, gain ? 2 : 1, WEFT_EARG, "rms_norm",
                               "eps is %g; expected a finite number, 0 or more", eps);
    return gain ? APPLY_WITH(&op_rms_norm, n, x, gain) : APPLY_WITH(&op_rms_norm, n, x);
}

/* ---- layer norm of a gate ---- */
bool weft__gate_fits(const weft_tensor *gate, const weft_tensor *skip)
{
    const weft__form *g = &gate->f, *s = &skip->f;
    bool fits = g->type == WEFT_REAL && s->type == WEFT_REAL && g->batch == s->batch && g->rank == s->rank &&
                s->rank >= (s->batch ? 2 : 1) && width(gate) == 2 * width(skip);
    for (int i = s->batch ? 1 : 0; fits && i < s->rank - 1; i++)         /* layouts may differ */
        fits = g->size[i] == s->size[i];
    return fits;
}

static bool gate_shape(weft_call *c)
{
    if (!weft__gate_fits(c->x[GATE], c->x[SKIP]))
        return weft_op_refuse(c, "expected reals, and a gate with the shape of the skip and twice its width");
    return results_like_input(c);
}

static void gate_composed(const weft_call *c, weft_tensor **y)
{
    weft_tensor *unit = compose_norm(c->attributes, weft_add(weft__glu(c->x[GATE]), c->x[SKIP]));
    y[Y_] = weft_add(weft_mul(unit, c->x[GATE_GAIN]), c->x[GATE_SHIFT]);
}

static const weft_op op_gate_norm = NORM("gate_norm", gate_shape, gate_composed);

weft_tensor *weft__gate_norm_of(weft_tensor *gate, weft_tensor *skip, weft_tensor *gain, weft_tensor *shift,
                                double eps)
{
    norm n = { (real)weft__or(eps, 1e-5), gain->f.rank == 2, false };
    return APPLY_WITH(&op_gate_norm, n, gate, skip, gain, shift);
}

weft_tensor *weft__layer_norm_of_groups(weft_tensor *x, weft_tensor *gain, weft_tensor *shift, double eps)
{
    norm n = { (real)weft__or(eps, 1e-5), true, false };
    return APPLY_WITH(&op_norm, n, x, gain, shift);
}
