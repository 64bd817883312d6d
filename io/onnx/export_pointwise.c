/* export_pointwise.c - translates functions of one, two and three numbers, conversions, matrix products. */
#include <math.h>
#include <string.h>
#include "core/kernels.h"
#include "io/onnx/export.h"

static const char *name_of(weft__export *x, const weft_call *c, int i)
{
    return weft__export_value(x, c->x[i])->name;
}
static bool is_int(const weft_tensor *t) { return t->f.type == WEFT_I32; }

/* ---- functions of one number ---- */
static const char *gelu(weft__export *x, const char *in)
{
    const char *cdf = NODE(x, "Erf", NODE(x, "Mul", in, weft__export_number_of(x, sqrt(.5))));
    return NODE(x, "Mul", NODE(x, "Mul", in, weft__export_number_of(x, .5)),
                NODE(x, "Add", cdf, weft__export_number_of(x, 1)));
}

const char *weft__export_function(weft__export *x, const char *in, int f, double p, double q)
{
    static const char *const same[WEFT__UNARIES] = {
        [WEFT__neg] = "Neg",         [WEFT__exp] = "Exp",          [WEFT__log] = "Log",
        [WEFT__sqrt] = "Sqrt",       [WEFT__abs] = "Abs",          [WEFT__sin] = "Sin",
        [WEFT__cos] = "Cos",         [WEFT__tanh] = "Tanh",        [WEFT__relu] = "Relu",
        [WEFT__sigmoid] = "Sigmoid", [WEFT__softplus] = "Softplus"
    };
    switch (f) {
    case WEFT__rsqrt:
        return NODE(x, "Reciprocal", NODE(x, "Sqrt", in));
    case WEFT__square:
        return NODE(x, "Mul", in, in);
    case WEFT__reciprocal:
        return NODE(x, "Where", NODE(x, "Equal", in, weft__export_number_of(x, 0)),
                    weft__export_number_of(x, 0), NODE(x, "Reciprocal", in));
    case WEFT__leaky_relu:
        return NODE_WITH(x, "LeakyRelu", ATTRIBUTES(REAL("alpha", p)), in);
    case WEFT__elu:
        return NODE_WITH(x, "Elu", ATTRIBUTES(REAL("alpha", p)), in);
    case WEFT__gelu:
        return gelu(x, in);
    case WEFT__silu:
        return NODE(x, "Mul", in, NODE(x, "Sigmoid", in));
    case WEFT__clamp:
        return NODE(x, "Clip", in, weft__export_number_of(x, p), weft__export_number_of(x, q));
    case WEFT__pow:
        return NODE(x, "Pow", in, weft__export_number_of(x, p));
    default:
        return f < WEFT__UNARIES && same[f] ? NODE(x, same[f], in) : in;
    }
}

static bool unary(weft__export *x, const weft_call *c)
{
    const weft__curve *u = c->attributes;
    const weft__value *v = weft__export_value(x, c->x[0]);
    weft__export_set(
        x, c->y[0],
        weft__export_like(v, weft__export_function(x, v->name, u->f, (double)u->p, (double)u->q)));
    return true;
}

/* ---- functions of two numbers ---- */
/* Sets the axes of y to those to which n inputs broadcast. */
static bool common_axes(weft__export *x, const weft_call *c, weft__value *y)
{
    const weft__value *v[3];
    int rank[3];
    for (int i = 0; i < c->n; i++)
        v[i] = weft__export_value(x, c->x[i]), rank[i] = c->x[i]->f.rank;
    return weft__export_broadcast(x, c, v, rank, c->n, y);
}

static bool binary(weft__export *x, const weft_call *c)
{
    static const char *const op[WEFT__BINARIES] = { [WEFT__add] = "Add",
                                                    [WEFT__sub] = "Sub",
                                                    [WEFT__mul] = "Mul",
                                                    [WEFT__div] = "Div",
                                                    [WEFT__minimum] = "Min",
                                                    [WEFT__maximum] = "Max",
                                                    [WEFT__times] = "Mul",
                                                    [WEFT__over] = "Div",
                                                    [WEFT__cross] = "Mul",
                                                    [WEFT__less] = "Less",
                                                    [WEFT__less_equal] = "LessOrEqual",
                                                    [WEFT__greater] = "Greater",
                                                    [WEFT__greater_equal] = "GreaterOrEqual",
                                                    [WEFT__equal] = "Equal",
                                                    [WEFT__not_equal] = "Equal" };
    const int f = *(const int *)c->attributes;
    weft__value y;
    if (!op[f])
        return weft__export_refuse(x, c, "it has no ONNX form");
    if (!common_axes(x, c, &y))
        return false;
    y.name = NODE(x, op[f], name_of(x, c, 0), name_of(x, c, 1));
    if (f == WEFT__not_equal)
        y.name = NODE(x, "Not", y.name);
    if (f >= WEFT__less)
        y.name = weft__export_cast(x, y.name, WEFT__EXPORT_FLOAT);
    weft__export_set(x, c->y[0], y);
    return true;
}

static const char *is_zero(weft__export *x, const weft_call *c, int i)
{
    return NODE(x, "Equal", name_of(x, c, i),
                is_int(c->x[i]) ? weft__export_int(x, 0) : weft__export_number_of(x, 0));
}
static bool where(weft__export *x, const weft_call *c)
{
    weft__value y;
    if (!common_axes(x, c, &y))
        return false;
    y.name = NODE(x, "Where", is_zero(x, c, 0), name_of(x, c, 2), name_of(x, c, 1));
    weft__export_set(x, c->y[0], y);
    return true;
}

/* A mean is a sum times 1 / n, and a variance one times 1 / (n - 1). Where n is dynamic, it is counted. */
static bool scale(weft__export *x, const weft_call *c)
{
    const real factor = *(const real *)c->attributes;
    const weft__value *v = weft__export_value(x, c->x[0]);
    const char *name = NULL;
    for (int less = 0; v->count && less < 2 && !name; less++) {
        const int64_t n = v->counted - less;
        if (n > 0 && (factor == 1 / (real)n || factor == (real)(1 / (double)n))) {
            const char *divisor = NODE(x, "Sub", v->count, weft__export_number_of(x, less));
            name = NODE(x, "Div", v->name, NODE(x, "Max", divisor, weft__export_number_of(x, 1)));
        }
    }
    name = name ? name : NODE(x, "Mul", v->name, weft__export_number_of(x, (double)factor));
    weft__export_set(x, c->y[0], weft__export_like(v, name));
    return true;
}

static bool cast(weft__export *x, const weft_call *c)
{
    const weft__value *v = weft__export_value(x, c->x[0]);
    const int type = is_int(c->y[0]) ? WEFT__EXPORT_INT64 : WEFT__EXPORT_FLOAT;
    const char *name = is_int(c->y[0]) ? NODE(x, "Round", v->name) : v->name;
    weft__export_set(x, c->y[0], weft__export_like(v, weft__export_cast(x, name, type)));
    return true;
}

static bool same(weft__export *x, const weft_call *c)
{
    weft__export_set(x, c->y[0], *weft__export_value(x, c->x[0]));
    return true;
}

/* ---- products ---- */
static bool ends_are_single(const weft__value *v, int rank, bool both)
{
    return v->axes - v->first[rank - 1] == 1 && (!both || v->first[rank - 1] - v->first[rank - 2] == 1);
}
static const char *turned(weft__export *x, const weft__value *v, bool transposed)
{
    int order[WEFT__EXPORT_RANK];
    for (int i = 0; i < v->axes; i++)
        order[i] = transposed && i >= v->axes - 2 ? 2 * v->axes - 3 - i : i;
    return weft__export_transpose(x, v->name, v->axes, order);
}
static bool matmul(weft__export *x, const weft_call *c)
{
    const weft__turns *t = c->attributes;
    const weft__value *a = weft__export_value(x, c->x[0]), *b = weft__export_value(x, c->x[1]);
    const int ra = c->x[0]->f.rank, rb = c->x[1]->f.rank;
    if (!ends_are_single(a, ra, t->ta || rb > 2) || !ends_are_single(b, rb, true))
        return weft__export_refuse(x, c, "a product along the rows of a batch");
    const bool by_b = rb > ra;
    weft__value y = weft__export_like(by_b ? b : a, NULL);
    y.dim[y.axes - 1] = b->dim[b->axes - (t->tb ? 2 : 1)];
    if (by_b || t->ta)
        y.dim[y.axes - 2] = a->dim[a->axes - (t->ta ? 1 : 2)];
    y.name = NODE(x, "MatMul", turned(x, a, t->ta), turned(x, b, t->tb));
    weft__export_set(x, c->y[0], y);
    return true;
}

const weft__export_entry weft__export_pointwise[] = {
#define UNARY(id, ...) { #id, unary },
#define BINARY(id, ...) { #id, binary },
#include "core/shared/pointwise.def"
    { "where", where }, { "scale", scale },   { "to_reals", cast }, { "to_ints", cast },
    { "detach", same }, { "matmul", matmul }, { NULL, NULL }
};
