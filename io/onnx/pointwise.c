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
static weft_tensor *hard_swish(weft_tensor *x) { return weft_mul(x, sigmoid_at(x, 1. / 6, .5)); }
static weft_tensor *mish(weft_tensor *x) { return weft_mul(x, weft_tanh(weft_softplus(x))); }

enum { NOTHING, NEGATE, MAGNITUDE, SIGN_OF, LOGICAL_NOT };
static int64_t integer_function(int f, int64_t x)
{
    return f == NEGATE      ? (int64_t)(0 - (uint64_t)x) :
           f == MAGNITUDE   ? (int64_t)(x < 0 ? 0 - (uint64_t)x : (uint64_t)x) :
           f == SIGN_OF     ? (x > 0) - (x < 0) :
           f == LOGICAL_NOT ? !x :
                              x;
}

static void unary(run *r, const value *in, value *out)
{
    const operation *o = r->node->operation;
    if (in->x || !o->option) {
        *out = weft__onnx_reals(r, o->unary(weft__onnx_tensor_of(r, in)));
        return;
    }
    *out = weft__onnx_integers(r, in->type, in->rank, in->size);
    for (int64_t i = 0; out->type && i < in->count; i++)
        out->number[i] = integer_function(o->option, in->number[i]);
}

static void by_function(run *r, const value *in, value *out)
{
    int f = r->node->operation->option;
    *out = *in;
    if (in->x)
        *out = weft__onnx_reals(r, apply(in->x, f));
    else if (f == SIGN) {
        *out = weft__onnx_integers(r, in->type, in->rank, in->size);
        for (int64_t i = 0; out->type && i < in->count; i++)
            out->number[i] = integer_function(SIGN_OF, in->number[i]);
    }
}

/* Operators with numbers as attributes. */
enum { LEAKY_RELU, ELU, CELU, SELU, HARD_SIGMOID, GELU, SWISH };
static weft_tensor *gelu(run *r, weft_tensor *x)
{
    if (strcmp(weft__onnx_string(r, "approximate", "none"), "tanh"))
        return weft_gelu(x);
    weft_tensor *inner = weft_add(x, weft_scale(weft_pow(x, 3), .044715));
    return weft_scale(weft_mul(x, plus(weft_tanh(weft_scale(inner, sqrt(2 / acos(-1)))), 1)), .5);
}
static void with_numbers(run *r, const value *in, value *out)
{
    static const double alphas[] = { .01, 1, 1, 1.67326319217681884765625, .2, 0, 1 };
    int f = r->node->operation->option;
    double alpha = weft__onnx_float(r, "alpha", alphas[f]),
           gamma = weft__onnx_float(r, "gamma", 1.05070102214813232421875);
    weft_tensor *x = weft__onnx_tensor_of(r, in), *y = x;
    if (f == LEAKY_RELU)
        y = weft_leaky_relu(x, alpha);
    else if (f == ELU)
        y = weft_elu(x, alpha);
    else if (f == CELU)
        y = weft_scale(weft_elu(weft_scale(x, 1 / alpha), 1), alpha);
    else if (f == SELU)
        y = weft_scale(weft_elu(x, alpha), gamma);
    else if (f == HARD_SIGMOID)
        y = sigmoid_at(x, alpha, weft__onnx_float(r, "beta", .5));
    else if (f == GELU)
        y = gelu(r, x);
    else
        y = weft_mul(x, weft_sigmoid(weft_scale(x, alpha)));
    *out = weft__onnx_reals(r, y);
}

/* ---- two operands ---- */
enum {
    ADD = 1,
    SUB,
    MUL,
    DIV,
    MIN,
    MAX,
    POW,
    MOD,
    AND,
    OR,
    XOR,
    EQUAL = 16,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL
};
static int64_t power(int64_t a, int64_t b)
{
    uint64_t y = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (uint64_t x = (uint64_t)a; b; b >>= 1, x *= x)
        y *= b & 1 ? x : 1;
    return (int64_t)y;
}

static int64_t remainder_of(int64_t a, int64_t b, bool of_c)
{
    int64_t m = b == -1 ? 0 : a % b;
    return !of_c && m && (m < 0) != (b < 0) ? m + b : m;
}

static int64_t integer_of(int f, int64_t a, int64_t b, bool of_c)
{
    switch (f) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case DIV:
        return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case POW:
        return power(a, b);
    case MOD:
        return remainder_of(a, b, of_c);
    case AND:
        return a && b;
    case OR:
        return a || b;
    case XOR:
        return !a != !b;
    case EQUAL:
        return a == b;
    case LESS:
        return a < b;
    case LESS_EQUAL:
        return a <= b;
    case GREATER:
        return a > b;
    default:
        return a >= b;
    }
}

static value integers(run *r, int f, const value *x, const value *y)
{
    int64_t size[WEFT_RANK];
    int rank = weft__onnx_broadcast(r, x->rank, x->size, y->rank, y->size, size);
    bool of_c = weft__onnx_int(r, "fmod", 0);
    value none = { 0 }, to, a, b;
    if (rank < 0)
        return none;
    a = weft__onnx_expand(r, x, rank, size);
    b = weft__onnx_expand(r, y, rank, size);
    to = weft__onnx_integers(r, f >= EQUAL ? WEFT__ONNX_BOOL : x->type, rank, size);
    for (int64_t i = 0; to.type && a.type && b.type && i < to.count; i++) {
        if ((f == DIV || f == MOD) && !b.number[i]) {
            weft__onnx_fail(r, "integer division by 0");
            return none;
        }
        to.number[i] = integer_of(f, a.number[i], b.number[i], of_c);
    }
    return weft_ok(r->w) ? to : none;
}

static weft_tensor *modulo(weft_tensor *a, weft_tensor *b) /* with the sign of a, as fmod */
{
    weft_tensor *q = weft_div(a, b);
    q = weft_mul(apply(q, SIGN), apply(weft_abs(q), FLOOR));
    return weft_sub(a, weft_mul(b, q));
}

/* a to the power b. b is one number, or a is positive. */
static weft_tensor *power_of(weft_tensor *a, weft_tensor *b)
{
    return weft_numel(b) == 1 ? weft_pow(a, weft_item(b)) : weft_exp(weft_mul(weft_log(a), b));
}

static value two(run *r, const operation *o, const value *a, const value *b)
{
    int64_t size[WEFT_RANK];
    if (!a->x && !b->x)
        return integers(r, o->option, a, b);
    if (o->option >= AND && o->option <= XOR)
        weft__onnx_fail(r, "reals as an operand; expected truth values");
    int rank = weft__onnx_broadcast(r, a->rank, a->size, b->rank, b->size, size);
    if (rank < 0 || !weft_ok(r->w) ||
        (r->importing && (uint64_t)weft__onnx_product(size, rank) >= r->left / sizeof(weft_real))) {
        weft__onnx_fail(r, "its constant result is too large for this file");
        return (value){ 0 };
    }
    value y = weft__onnx_reals(r, o->binary(weft__onnx_tensor_of(r, a), weft__onnx_tensor_of(r, b)));
    if (o->option < EQUAL || !y.type)
        return y;
    y = weft__onnx_integers_of(r, &y);
    y.type = y.type ? WEFT__ONNX_BOOL : 0;
    return y;
}

static void binary(run *r, const value *in, value *out) { *out = two(r, r->node->operation, in, in + 1); }

/* Min, Max, Sum, Mean: any number of operands. */
static void many(run *r, const value *in, value *out)
{
    *out = *in;
    for (int i = 1; i < r->node->inputs && out->type; i++)
        *out = in[i].type ? two(r, r->node->operation, out, &in[i]) : (value){ 0 };
    if (out->x && !strcmp(r->node->op, "Mean"))
        *out = weft__onnx_reals(r, weft_scale(out->x, 1. / r->node->inputs));
}

/* ---- three ---- */
static value limit(run *r, const value *in, const char *name, bool lower)
{
    static const operation low = { "Clip", NULL, 2, MAX, NULL, weft_maximum },
                           high = { "Clip", NULL, 2, MIN, NULL, weft_minimum };
    const value *bound = &in[lower ? 1 : 2];
    value number = { 0 };
    if (r->node->version < 11) {
        double x = weft__onnx_float(r, name, lower ? -INFINITY : INFINITY);
        return weft__onnx_reals(r, lower ? weft_clamp(in->x, x, INFINITY) : weft_clamp(in->x, -INFINITY, x));
    }
    if (!bound->type)
        return *in;
    if (in->x && bound->x && bound->count == 1) {
        double x = weft_item(bound->x);
        number =
            weft__onnx_reals(r, lower ? weft_clamp(in->x, x, INFINITY) : weft_clamp(in->x, -INFINITY, x));
    } else
        number = two(r, lower ? &low : &high, in, bound);
    return number;
}

static void clip(run *r, const value *in, value *out)
{
    value x[3] = { limit(r, in, "min", true), in[1], in[2] };
    if (x->type)
        *out = limit(r, x, "max", false);
}

static void where(run *r, const value *in, value *out)
{
    int64_t size[WEFT_RANK];
    int rank = weft__onnx_broadcast(r, in[1].rank, in[1].size, in[2].rank, in[2].size, size);
    rank = rank < 0 ? rank : weft__onnx_broadcast(r, in->rank, in->size, rank, size, size);
    if (rank < 0)
        return;
    if (in[1].x || in[2].x) {
        value c = weft__onnx_expand(r, in, rank, size);
        if (c.type)
            *out =
                weft__onnx_reals(r, weft_where(weft__onnx_tensor_of(r, &c), weft__onnx_tensor_of(r, in + 1),
                                               weft__onnx_tensor_of(r, in + 2)));
        return;
    }
    value c = weft__onnx_expand(r, in, rank, size), a = weft__onnx_expand(r, in + 1, rank, size),
          b = weft__onnx_expand(r, in + 2, rank, size);
    *out = weft__onnx_integers(r, in[1].type, rank, size);
    for (int64_t i = 0; out->type && c.type && a.type && b.type && i < out->count; i++)
        out->number[i] = c.number[i] ? a.number[i] : b.number[i];
}

/* ---- types ---- */
static void cast(run *r, const value *in, value *out)
{
    const attribute *like = NULL;
    int to = !strcmp(r->node->op, "CastLike") ? in[1].type : (int)weft__onnx_int(r, "to", 0);
    (void)like;
    weft__number number = weft__onnx_number(to);
    if (number == WEFT__ODD)
        weft__onnx_fail(r, "element type %d; expected numbers", to);
    else if (weft__number_is_float(number))
        *out = in->x ? *in : weft__onnx_reals(r, weft__onnx_tensor_of(r, in));
    else if (to == WEFT__ONNX_BOOL) {
        value zero = { .type = WEFT__ONNX_INT64, .number = &(int64_t){ 0 }, .count = 1 };
        const operation differs = { "Cast", NULL, 2, EQUAL, NULL, weft_equal };
        *out = two(r, &differs, in, &zero);
        for (int64_t i = 0; out->type && i < out->count; i++)
            out->number[i] = !out->number[i];
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
    { "Neg", unary, 1, NEGATE, weft_neg, NULL },
    { "Abs", unary, 1, MAGNITUDE, weft_abs, NULL },
    { "Not", unary, 1, LOGICAL_NOT, NULL, NULL },
    { "Exp", unary, 1, 0, weft_exp, NULL },
    { "Log", unary, 1, 0, weft_log, NULL },
    { "Sqrt", unary, 1, 0, weft_sqrt, NULL },
    { "Sin", unary, 1, 0, weft_sin, NULL },
    { "Cos", unary, 1, 0, weft_cos, NULL },
    { "Tanh", unary, 1, 0, weft_tanh, NULL },
    { "Sigmoid", unary, 1, 0, weft_sigmoid, NULL },
    { "Relu", unary, 1, 0, weft_relu, NULL },
    { "Softplus", unary, 1, 0, weft_softplus, NULL },
    { "Reciprocal", unary, 1, 0, inverse, NULL },
    { "Softsign", unary, 1, 0, softsign, NULL },
    { "HardSwish", unary, 1, 0, hard_swish, NULL },
    { "Mish", unary, 1, 0, mish, NULL },
    { "Erf", by_function, 1, ERF, NULL, NULL },
    { "Floor", by_function, 1, FLOOR, NULL, NULL },
    { "Ceil", by_function, 1, CEIL, NULL, NULL },
    { "Round", by_function, 1, ROUND, NULL, NULL },
    { "Sign", by_function, 1, SIGN, NULL, NULL },
    { "LeakyRelu", with_numbers, 1, LEAKY_RELU, NULL, NULL },
    { "Elu", with_numbers, 1, ELU, NULL, NULL },
    { "Celu", with_numbers, 1, CELU, NULL, NULL },
    { "Selu", with_numbers, 1, SELU, NULL, NULL },
    { "HardSigmoid", with_numbers, 1, HARD_SIGMOID, NULL, NULL },
    { "Gelu", with_numbers, 1, GELU, NULL, NULL },
    { "Swish", with_numbers, 1, SWISH, NULL, NULL },
    { "Add", binary, 2, ADD, NULL, weft_add },
    { "Sub", binary, 2, SUB, NULL, weft_sub },
    { "Mul", binary, 2, MUL, NULL, weft_mul },
    { "Div", binary, 2, DIV, NULL, weft_div },
    { "Pow", binary, 2, POW, NULL, power_of },
    { "Mod", binary, 2, MOD, NULL, modulo },
    { "And", binary, 2, AND, NULL, NULL },
    { "Or", binary, 2, OR, NULL, NULL },
    { "Xor", binary, 2, XOR, NULL, NULL },
    { "Equal", binary, 2, EQUAL, NULL, weft_equal },
    { "Less", binary, 2, LESS, NULL, weft_less },
    { "LessOrEqual", binary, 2, LESS_EQUAL, NULL, weft_less_equal },
    { "Greater", binary, 2, GREATER, NULL, weft_greater },
    { "GreaterOrEqual", binary, 2, GREATER_EQUAL, NULL, weft_greater_equal },
    { "Min", many, 1, MIN, NULL, weft_minimum },
    { "Max", many, 1, MAX, NULL, weft_maximum },
    { "Sum", many, 1, ADD, NULL, weft_add },
    { "Mean", many, 1, ADD, NULL, weft_add },
    { "Clip", clip, 1, 0, NULL, NULL },
    { "Where", where, 3, 0, NULL, NULL },
    { "Cast", cast, 1, 0, NULL, NULL },
    { "CastLike", cast, 2, 0, NULL, NULL },
    { "If", choose, -1, 0, NULL, NULL },
    { "Identity", identity, 1, 0, NULL, NULL },
    { "Dropout", identity, 1, 0, NULL, NULL },
    { "IsNaN", is_nan, 1, 0, NULL, NULL },

    { NULL, NULL, 0, 0, NULL, NULL },
};
