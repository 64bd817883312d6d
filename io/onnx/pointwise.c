/* pointwise.c - pointwise operators: by weft's operators on reals, by loops on integers in host memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/onnx/model.h"
#include "weft_op.h"

/* ---- functions that weft lacks ---- */
enum { ERF, FLOOR, CEIL, ROUND, SIGN };
static double host_function(int f, double x)
{
    return f == ERF   ? erf(x) :
           f == FLOOR ? floor(x) :
           f == CEIL  ? ceil(x) :
           f == ROUND ? rint(x) :
           x > 0      ? 1 :
           x < 0      ? -1 :
                        x;
}

static bool same_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return true;
}

static void apply_forward(weft_call *c)
{
    const weft_real *x = weft_op_data(c->x[0]);
    weft_real *y = weft_op_data(c->y[0]);
    for (int64_t i = 0; i < weft_numel(c->y[0]); i++)
        y[i] = (weft_real)host_function(*(const int *)c->attributes, (double)x[i]);
}

/* The others are constant between their steps. */
static weft_tensor *apply_backward(const weft_call *c, weft_tensor *dy, int i)
{
    (void)i;
    if (*(const int *)c->attributes != ERF)
        return weft_scale(c->x[0], 0);
    return weft_scale(weft_mul(dy, weft_exp(weft_neg(weft_square(c->x[0])))), 2 / sqrt(acos(-1)));
}
static const weft_op host_op = {
    .name = "onnx_function", .shape = same_shape, .forward = apply_forward, .backward = apply_backward
};
weft_tensor *weft__onnx_floor(weft_tensor *x)
{
    return weft_op_apply(&host_op, &x, 1, &(int){ FLOOR }, sizeof(int));
}
static weft_tensor *apply(weft_tensor *x, int f) { return weft_op_apply(&host_op, &x, 1, &f, sizeof f); }

/* ---- one operand ---- */
static weft_tensor *number(weft_tensor *like, double x) { return weft_scalar(weft_context_of(like), x); }
static weft_tensor *inverse(weft_tensor *x) { return weft_div(number(x, 1), x); }
static weft_tensor *plus(weft_tensor *x, double c) { return weft_add(x, number(x, c)); }
static weft_tensor *softsign(weft_tensor *x) { return weft_div(x, plus(weft_abs(x), 1)); }
static weft_tensor *sigmoid_at(weft_tensor *x, double alpha, double beta)
{
    return weft_clamp(plus(weft_scale(x, alpha), beta), 0, 1);
}

enum { NOTHING, NEGATE, MAGNITUDE, SIGN_OF, LOGICAL_NOT };
static int64_t integer_function(int f, int64_t x)
{
    return f == NEGATE      ? (int64_t)(0 - (uint64_t)x) :
           f == MAGNITUDE   ? (int64_t)(x < 0 ? 0 - (uint64_t)x : (uint64_t)x) :
           f == SIGN_OF     ? (x > 0) - (x < 0) :
           f == LOGICAL_NOT ? !x :
                              x;
}

static value mapped(run *r, const value *x, int f)
{
    value y = weft__onnx_integers(r, x->type, x->rank, x->size);
    for (int64_t i = 0; y.type && i < y.count; i++)
        y.number[i] = integer_function(f, x->number[i]);
    return y;
}

static void unary(run *r, const value *in, value *out)
{
    const operation *o = r->node->operation;
    if (in->x && !o->unary) {
        weft__onnx_fail(r, "reals; expected truth values");
        return;
    }
    if (in->x || !o->option) {
        *out = weft__onnx_reals(r, o->unary(weft__onnx_tensor_of(r, in)));
        return;
    }
    *out = mapped(r, in, o->option);
}

static void by_function(run *r, const value *in, value *out)
{
    int f = r->node->operation->option;
    *out = *in;
    if (in->x)
        *out = weft__onnx_reals(r, apply(in->x, f));
    else if (f == SIGN)
        *out = mapped(r, in, SIGN_OF);
}

/* Operators with numbers as attributes. */
enum { LEAKY_RELU, ELU, SELU, HARD_SIGMOID, GELU };
static weft_tensor *gelu(run *r, weft_tensor *x)
{
    if (strcmp(weft__onnx_string(r, "approximate", "none"), "tanh"))
        return weft_gelu(x);
    weft_tensor *inner = weft_add(x, weft_scale(weft_pow(x, 3), .044715));
    return weft_scale(weft_mul(x, plus(weft_tanh(weft_scale(inner, sqrt(2 / acos(-1)))), 1)), .5);
}
static void with_numbers(run *r, const value *in, value *out)
{
    static const double alphas[] = { .01, 1, 1.67326319217681884765625, .2, 0 };
    int f = r->node->operation->option;
    double alpha = weft__onnx_float(r, "alpha", alphas[f]),
           gamma = weft__onnx_float(r, "gamma", 1.05070102214813232421875);
    weft_tensor *x = weft__onnx_tensor_of(r, in), *y;
    if (f == LEAKY_RELU)
        y = weft_leaky_relu(x, alpha);
    else if (f == ELU)
        y = weft_elu(x, alpha);
    else if (f == SELU)
        y = weft_scale(weft_elu(x, alpha), gamma);
    else if (f == HARD_SIGMOID)
        y = sigmoid_at(x, alpha, weft__onnx_float(r, "beta", .5));
    else
        y = gelu(r, x);
    *out = weft__onnx_reals(r, y);
}

/* ---- types ---- */
static void cast(run *r, const value *in, value *out)
{
    int to = !strcmp(r->node->op, "CastLike") ? in[1].type : (int)weft__onnx_int(r, "to", 0);
    weft__number number = weft__onnx_number(to);
    if (number == WEFT__ODD)
        weft__onnx_fail(r, "element type %d; expected numbers", to);
    else if (weft__number_is_float(number))
        *out = in->x ? *in : weft__onnx_reals(r, weft__onnx_tensor_of(r, in));
    else if (to == WEFT__ONNX_BOOL) {
        weft_real *x = weft__onnx_read(r, in);
        *out = weft__onnx_integers(r, to, in->rank, in->size);
        for (int64_t i = 0; x && out->type && i < in->count; i++)
            out->number[i] = in->x ? x[i] != 0 : in->number[i] != 0;
    } else {
        *out = weft__onnx_integers_of(r, in);
        out->type = out->type ? to : 0;
    }
}

static void identity(run *r, const value *in, value *out)
{
    out[0] = *in;
    if (r->node->outputs > 1 && r->node->out[1] >= 0) { /* the mask of Dropout */
        out[1] = weft__onnx_integers(r, WEFT__ONNX_BOOL, in->rank, in->size);
        for (int64_t i = 0; out[1].type && i < in->count; i++)
            out[1].number[i] = 1;
    }
}

/* The end of an If: in has the condition, the results of both branches, one after the other. */
static void choose(run *r, const value *in, value *out)
{
    int n = r->node->outputs;
    if (!in->number || in->count != 1)
        weft__onnx_fail(r, "a condition of %lld numbers; expected one truth value", (long long)in->count);
    for (int i = 0; weft_ok(r->w) && i < n; i++)
        out[i] = in[1 + i + (*in->number ? 0 : n)];
}

static void is_nan(run *r, const value *in, value *out)
{
    weft_real *x = weft__onnx_read(r, in);
    *out = weft__onnx_integers(r, WEFT__ONNX_BOOL, in->rank, in->size);
    for (int64_t i = 0; x && out->type && i < in->count; i++)
        out->number[i] = isnan(x[i]);
}

const operation weft__onnx_pointwise[] = {
    { "Neg", unary, 1, NEGATE, weft_neg, NULL }, { "Abs", unary, 1, MAGNITUDE, weft_abs, NULL },
    { "Not", unary, 1, LOGICAL_NOT, NULL, NULL }, { "Exp", unary, 1, 0, weft_exp, NULL },
    { "Log", unary, 1, 0, weft_log, NULL }, { "Sqrt", unary, 1, 0, weft_sqrt, NULL },
    { "Sin", unary, 1, 0, weft_sin, NULL }, { "Cos", unary, 1, 0, weft_cos, NULL },
    { "Tanh", unary, 1, 0, weft_tanh, NULL }, { "Sigmoid", unary, 1, 0, weft_sigmoid, NULL },
    { "Relu", unary, 1, 0, weft_relu, NULL }, { "Softplus", unary, 1, 0, weft_softplus, NULL },
    { "Reciprocal", unary, 1, 0, inverse, NULL }, { "Softsign", unary, 1, 0, softsign, NULL },
    { "Erf", by_function, 1, ERF, NULL, NULL }, { "Floor", by_function, 1, FLOOR, NULL, NULL },
    { "Ceil", by_function, 1, CEIL, NULL, NULL }, { "Round", by_function, 1, ROUND, NULL, NULL },
    { "Sign", by_function, 1, SIGN, NULL, NULL }, { "LeakyRelu", with_numbers, 1, LEAKY_RELU, NULL, NULL },
    { "Elu", with_numbers, 1, ELU, NULL, NULL }, { "Selu", with_numbers, 1, SELU, NULL, NULL },
    { "HardSigmoid", with_numbers, 1, HARD_SIGMOID, NULL, NULL },
    { "Gelu", with_numbers, 1, GELU, NULL, NULL }, { "Cast", cast, 1, 0, NULL, NULL },
    { "CastLike", cast, 2, 0, NULL, NULL }, { "If", choose, -1, 0, NULL, NULL },
    { "Identity", identity, 1, 0, NULL, NULL }, { "Dropout", identity, 1, 0, NULL, NULL },
    { "IsNaN", is_nan, 1, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
