/* pointwise.c - makes the operators that pointwise.def defines in one line each. A unary f becomes three
 * operators: f(x), g f'(x) and g f''(x). A third derivative is an explicit error. */
#include <math.h>
#include "autograd/op.h"

static weft_tensor *refuse_third_derivative(const weft_call *c)
{
    weft__fail(c->x[0]->w, WEFT_EARG, "%s has no third derivative", c->op->name);
    return NULL;
}

static bool same_reals(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    for (int i = 0; i < c->n; i++)
        if (!is_real(c, i) || !weft__forms_equal(&c->x[i]->f, &c->x[0]->f))
            return weft_op_refuse(c, is_real(c, i) ? "expected reals of one shape" :
                                                     "expected reals (weft_to_reals)");
    return true;
}

/* ---- unary ---- */
typedef weft__curve curve;

static void unary_run(weft_call *c)
{
    const curve *u = c->attributes;
    RUN(c, unary, u->f, u->order, count(c->y[0]), u->p, u->q, X(c, 0), c->n > 1 ? X(c, 1) : NULL,
        c->n > 2 ? X(c, 2) : NULL, Y(c, 0), c->add);
}

static void describe_unary(const weft_call *c, char *text, size_t size)
{
    const curve *u = c->attributes;
    if (u->f == WEFT__clamp)
        snprintf(text, size, "low=%g, high=%g", (double)u->p, (double)u->q);
    else
        weft__describe_parameter(u->f, u->p, text, size);
}

void weft__describe_parameter(int f, real p, char *text, size_t size)
{
    const char *name = f == WEFT__leaky_relu ? "slope" :
                       f == WEFT__elu        ? "alpha" :
                       f == WEFT__pow        ? "exponent" :
                                               NULL;
    if (name)
        snprintf(text, size, "%s=%g", name, (double)p);
}

static weft_tensor *unary_back(const weft_call *c, weft_tensor *dy, int i);
/* Functions whose derivative is computed from y alone; their backward does not read x. */
#define IS_OF_Y(f)                                                                                      \
    (f == WEFT__neg || f == WEFT__exp || f == WEFT__sqrt || f == WEFT__reciprocal || f == WEFT__tanh || \
     f == WEFT__sigmoid)
#define RECORD(text, of_y)                                                                 \
    {                                                                                      \
        .name = text, .unread = of_y, .adds = true, .in_place = true, .shape = same_reals, \
        .forward = unary_run, .backward = unary_back, .describe = describe_unary           \
    }
#define UNARY(id, ...) { RECORD(#id, IS_OF_Y(WEFT__##id)), RECORD(#id "'", 0), RECORD(#id "''", 0) },
static const weft_op unary_op[WEFT__UNARIES][3] = {
#include "core/shared/pointwise.def"
};

const char *weft__unary_name(int f) { return unary_op[f][0].name; }

static weft_tensor *derivative_of(const curve *u, int order, weft_tensor *x, weft_tensor *y, weft_tensor *g)
{
    curve next = { u->f, order, u->p, u->q };
    return APPLY_WITH(&unary_op[u->f][order], next, x, y, g);
}

/* Order 0 is f(x). Orders 1 and 2 are g f'(x) and g f''(x) with inputs (x, y, g). They are linear in g. y is
 * a function of x, not a variable of its own. */
static weft_tensor *unary_back(const weft_call *c, weft_tensor *dy, int i)
{
    const curve *u = c->attributes;
    if (u->order == 0)
        return derivative_of(u, 1, c->x[0], c->y[0], dy);
    if (i == 2)
        return derivative_of(u, u->order, c->x[0], c->x[1], dy);
    if (i == 0)
        return u->order == 2 ? refuse_third_derivative(c) :
                               derivative_of(u, 2, c->x[0], c->x[1], weft__cross(dy, c->x[2]));
    return NULL;
}

static weft_tensor *unary(int f, weft_tensor *x, real p, real q)
{
    curve u = { f, 0, p, q };
    return APPLY_WITH(&unary_op[f][0], u, x);
}

weft_tensor *weft__unary(int f, weft_tensor *x, real p) { return unary(f, x, p, 0); }
weft_tensor *weft_neg(weft_tensor *x)      { return unary(WEFT__neg, x, 0, 0); }
weft_tensor *weft_exp(weft_tensor *x)      { return unary(WEFT__exp, x, 0, 0); }
weft_tensor *weft_log(weft_tensor *x)      { return unary(WEFT__log, x, 0, 0); }
weft_tensor *weft_sqrt(weft_tensor *x)     { return unary(WEFT__sqrt, x, 0, 0); }
weft_tensor *weft_rsqrt(weft_tensor *x)    { return unary(WEFT__rsqrt, x, 0, 0); }
weft_tensor *weft_square(weft_tensor *x)   { return unary(WEFT__square, x, 0, 0); }
weft_tensor *weft_abs(weft_tensor *x)      { return unary(WEFT__abs, x, 0, 0); }
weft_tensor *weft_reciprocal(weft_tensor *x)  { return unary(WEFT__reciprocal, x, 0, 0); }
weft_tensor *weft_sin(weft_tensor *x)      { return unary(WEFT__sin, x, 0, 0); }
weft_tensor *weft_cos(weft_tensor *x)      { return unary(WEFT__cos, x, 0, 0); }
weft_tensor *weft_tanh(weft_tensor *x)     { return unary(WEFT__tanh, x, 0, 0); }
weft_tensor *weft_sigmoid(weft_tensor *x)  { return unary(WEFT__sigmoid, x, 0, 0); }
weft_tensor *weft_relu(weft_tensor *x)     { return unary(WEFT__relu, x, 0, 0); }
weft_tensor *weft_silu(weft_tensor *x)     { return unary(WEFT__silu, x, 0, 0); }
weft_tensor *weft_softplus(weft_tensor *x) { return unary(WEFT__softplus, x, 0, 0); }
weft_tensor *weft_gelu(weft_tensor *x)     { return unary(WEFT__gelu, x, 0, 0); }
weft_tensor *weft_leaky_relu(weft_tensor *x, double slope_below)
{
    return unary(WEFT__leaky_relu, x, (real)slope_below, 0);
}
weft_tensor *weft_elu(weft_tensor *x, double alpha)    { return unary(WEFT__elu, x, (real)alpha, 0); }
weft_tensor *weft_pow(weft_tensor *x, double exponent) { return unary(WEFT__pow, x, (real)exponent, 0); }

weft_tensor *weft_clamp(weft_tensor *x, double low, double high)
{
    return low <= high ?
               unary(WEFT__clamp, x, (real)low, (real)high) :
               weft__failed(x, WEFT_EARG, "clamp", "from %g to %g; expected low <= high", low, high);
}

/* ---- binary ---- */
static const char no_broadcast[] = "the shapes do not broadcast; expected equal extents, or 1",
                  no_rows[] = "expected a plain tensor without a row axis next to a ragged one "
                              "(weft_broadcast_to_tokens, weft_ragged_like)";

static bool broadcast_of(weft_call *c, weft__grid *g, weft__form *y)
{
    const weft__form *forms[3] = { &c->x[0]->f, &c->x[1]->f, c->n > 2 ? &c->x[2]->f : NULL };
    return weft__broadcast(g, forms, c->n, y);
}

/* Gives y the type of the inputs from number `first` on, which must be all reals or all ints. */
static bool broadcast_shape_of(weft_call *c, int first)
{
    weft__grid g;
    bool ragged = false;
    for (int i = 0; i < c->n; i++) {
        ragged |= c->x[i]->f.batch != NULL;
        if (i >= first && is_real(c, i) != is_real(c, first))
            return weft_op_refuse(c, "reals and ints; expected one type (weft_to_reals, weft_to_ints)");
    }
    if (!broadcast_of(c, &g, &c->y[0]->f))
        return weft_op_refuse(c, ragged ? no_rows : no_broadcast);
    c->y[0]->f.type = c->x[first]->f.type;
    return ragged || c->y[0]->f.rank < 1 || weft__rows_agree(c, c->y[0]->f.size[0], c->y[0]->f.rank);
}
static bool broadcast_shape(weft_call *c)
{
    if (*(const int *)c->attributes == WEFT__div && !(is_real(c, 0) && is_real(c, 1)))
        return weft_op_refuse(c, "expected reals (weft_to_reals)");
    return broadcast_shape_of(c, 0);
}
static bool compare_shape(weft_call *c)
{
    bool ok = broadcast_shape_of(c, 0);
    c->y[0]->f.type = WEFT_REAL;
    return ok;
}

static void binary_run(weft_call *c)
{
    weft__grid g;
    weft__form y;
    int f = *(const int *)c->attributes;
    broadcast_of(c, &g, &y);
    if (is_real(c, 0))
        RUN(c, binary, f, &g, X(c, 0), X(c, 1), Y(c, 0), c->add);
    else if (c->op->no_gradient)
        RUN(c, compare_ints, f, &g, I(c, 0), I(c, 1), Y(c, 0));
    else
        RUN(c, binary_ints, f, &g, I(c, 0), I(c, 1), YI(c, 0));
}

static weft_tensor *binary_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft_tensor *a = c->x[0], *b = c->x[1], *y = c->y[0], *g = NULL;
    (void)y;
    switch (*(const int *)c->attributes) {
#define BINARY(id, value, da, db) case WEFT__##id: g = i ? (db) : (da); break;
#include "core/shared/pointwise.def"
    default: break;
    }
    return weft__sum_to(g, &c->x[i]->f);
}

/* Functions with piecewise constant values, which are the last of pointwise.def, have no gradient. */
#define BINARY(id, ...)                          \
    { .name = #id,                               \
      .adds = true,                              \
      .in_place = true,                          \
      .no_gradient = WEFT__##id >= WEFT__share,  \
      .unread = WEFT__##id <= WEFT__sub ? 3 : 0, \
      .shape = WEFT__##id >= WEFT__share ? compare_shape : broadcast_shape, \
      .forward = binary_run,                     \
      .backward = binary_back },
static const weft_op binary_op[WEFT__BINARIES] = {
#include "core/shared/pointwise.def"
};

static weft_tensor *binary(int f, weft_tensor *a, weft_tensor *b)
{
    return APPLY_WITH(&binary_op[f], f, a, b);
}

weft_tensor *weft_add(weft_tensor *a, weft_tensor *b)           { return binary(WEFT__add, a, b); }
weft_tensor *weft_sub(weft_tensor *a, weft_tensor *b)           { return binary(WEFT__sub, a, b); }
weft_tensor *weft_mul(weft_tensor *a, weft_tensor *b)           { return binary(WEFT__mul, a, b); }
weft_tensor *weft_div(weft_tensor *a, weft_tensor *b)           { return binary(WEFT__div, a, b); }
weft_tensor *weft_minimum(weft_tensor *a, weft_tensor *b)           { return binary(WEFT__minimum, a, b); }
weft_tensor *weft_maximum(weft_tensor *a, weft_tensor *b)           { return binary(WEFT__maximum, a, b); }
weft_tensor *weft_less(weft_tensor *a, weft_tensor *b)          { return binary(WEFT__less, a, b); }
weft_tensor *weft_less_equal(weft_tensor *a, weft_tensor *b)    { return binary(WEFT__less_equal, a, b); }
weft_tensor *weft_greater(weft_tensor *a, weft_tensor *b)       { return binary(WEFT__greater, a, b); }
weft_tensor *weft_greater_equal(weft_tensor *a, weft_tensor *b) { return binary(WEFT__greater_equal, a, b); }
weft_tensor *weft_equal(weft_tensor *a, weft_tensor *b)         { return binary(WEFT__equal, a, b); }
weft_tensor *weft_not_equal(weft_tensor *a, weft_tensor *b)     { return binary(WEFT__not_equal, a, b); }
weft_tensor *weft__given_times(weft_tensor *g, weft_tensor *b)        { return binary(WEFT__times, g, b); }
weft_tensor *weft__given_over(weft_tensor *g, weft_tensor *b)         { return binary(WEFT__over, g, b); }
weft_tensor *weft__cross(weft_tensor *g, weft_tensor *h)        { return binary(WEFT__cross, g, h); }
weft_tensor *weft__share(weft_tensor *a, weft_tensor *b)        { return binary(WEFT__share, a, b); }

/* ---- where ---- */
static bool where_shape(weft_call *c) { return broadcast_shape_of(c, 1); }
static void where_run(weft_call *c)
{
    weft__grid g;
    weft__form y;
    broadcast_of(c, &g, &y);
    if (is_real(c, 1))
        RUN(c, select, &g, X(c, 0), X(c, 1), X(c, 2), Y(c, 0), c->add);
    else
        RUN(c, select_ints, &g, X(c, 0), I(c, 1), I(c, 2), YI(c, 0));
}

static weft_tensor *where_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft_tensor *zero = weft_scalar(dy->w, 0);
    weft_tensor *g = i == 1 ? weft_where(c->x[0], dy, zero) : i == 2 ? weft_where(c->x[0], zero, dy) : NULL;
    return weft__sum_to(g, &c->x[i]->f);
}

static const weft_op op_where = { .name = "where",
                                  .adds = true,
                                  .unread = 1 << 1 | 1 << 2,
                                  .shape = where_shape,
                                  .forward = where_run,
                                  .backward = where_back };
weft_tensor *weft_where(weft_tensor *condition, weft_tensor *a, weft_tensor *b)
{
    if (condition && !weft__handle_error(condition->w, condition) && condition->f.type == WEFT_I32)
        condition = weft_not_equal(condition, weft_ints(condition->w, NULL, 0, NULL));
    return APPLY(&op_where, condition, a, b);
}

/* ---- scale; conversion between ints and reals ---- */
static void scale_run(weft_call *c)
{
    RUN(c, scale, count(c->y[0]), *(const real *)c->attributes, X(c, 0), Y(c, 0), c->add);
}
static weft_tensor *scale_back(const weft_call *c, weft_tensor *dy, int i)
{
    real factor = *(const real *)c->attributes;
    (void)i;
    return isfinite(factor) ? weft_scale(dy, (double)factor) :
                              weft__given_times(dy, weft_scalar(dy->w, (double)factor));
}
static void describe_factor(const weft_call *c, char *text, size_t size)
{
    snprintf(text, size, "factor=%g", (double)*(const real *)c->attributes);
}
static const weft_op op_scale = { .name = "scale",
                                  .adds = true,
                                  .in_place = true,
                                  .unread = 1,
                                  .shape = same_reals,
                                  .forward = scale_run,
                                  .backward = scale_back,
                                  .describe = describe_factor };
weft_tensor *weft_scale(weft_tensor *x, double factor)
{
    real by = (real)factor;
    return APPLY_WITH(&op_scale, by, x);
}

static bool to_reals_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    c->y[0]->f.type = WEFT_REAL;
    return !is_real(c, 0) || weft_op_refuse(c, "expected ints");
}
static void to_reals_run(weft_call *c)
{
    RUN(c, to_reals, count(c->y[0]), I(c, 0), Y(c, 0));
    if (c->x[0]->w->check)
        weft__check_exact(c->x[0]);
}
static const weft_op op_to_reals = {
    .name = "to_reals", .no_gradient = true, .shape = to_reals_shape, .forward = to_reals_run
};
weft_tensor *weft_to_reals(weft_tensor *ints) { return APPLY(&op_to_reals, ints); }

static bool to_ints_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    c->y[0]->f.type = WEFT_I32;
    return is_real(c, 0) || weft_op_refuse(c, "expected reals");
}
static void to_ints_run(weft_call *c)
{
    RUN(c, to_ints, count(c->y[0]), X(c, 0), YI(c, 0));
}
static const weft_op op_to_ints = {
    .name = "to_ints", .no_gradient = true, .shape = to_ints_shape, .forward = to_ints_run
};
weft_tensor *weft_to_ints(weft_tensor *x) { return APPLY(&op_to_ints, x); }
