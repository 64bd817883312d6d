/* pointwise.c - pointwise operators: by weft's operators on reals, by one function on integers in host
 * memory. Operands broadcast. */
#include <math.h>
#include <string.h>
#include "io/onnx/model.h"

/* ---- functions that weft lacks ---- */
typedef double host_function(double x);
static double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

static bool same_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return true;
}

static void host_forward(weft_call *c)
{
    const weft_real *x = weft_op_data(c->x[0]);
    weft_real *y = weft_op_data(c->y[0]);
    for (int64_t i = 0; i < weft_numel(c->y[0]); i++)
        y[i] = (weft_real)(*(host_function *const *)c->attributes)((double)x[i]);
}

/* All but erf are constant between their steps. */
static weft_tensor *host_backward(const weft_call *c, weft_tensor *dy, int i)
{
    (void)i;
    if (*(host_function *const *)c->attributes != erf)
        return weft_scale(c->x[0], 0);
    return weft_scale(weft_mul(dy, weft_exp(weft_neg(weft_square(c->x[0])))), 2 / sqrt(acos(-1)));
}

static weft_tensor *on_host(weft_tensor *x, host_function *f)
{
    static const weft_op op = {
        .name = "onnx_function", .shape = same_shape, .forward = host_forward, .backward = host_backward
    };
    return weft_op_apply(&op, &x, 1, &f, sizeof f);
}
static weft_tensor *error_function(weft_tensor *x) { return on_host(x, erf); }
static weft_tensor *rounded_down(weft_tensor *x) { return on_host(x, floor); }
static weft_tensor *rounded_up(weft_tensor *x) { return on_host(x, ceil); }
static weft_tensor *rounded(weft_tensor *x) { return on_host(x, rint); }
static weft_tensor *sign(weft_tensor *x) { return on_host(x, sign_of); }

static weft_tensor *number(weft_tensor *like, double x) { return weft_scalar(weft_context_of(like), x); }
static weft_tensor *inverse(weft_tensor *x) { return weft_div(number(x, 1), x); }
static weft_tensor *plus(weft_tensor *x, double c) { return weft_add(x, number(x, c)); }
static weft_tensor *softsign(weft_tensor *x) { return weft_div(x, plus(weft_abs(x), 1)); }
static weft_tensor *is_nan(weft_tensor *x) { return weft_not_equal(x, x); }

static weft_tensor *modulo(weft_tensor *a, weft_tensor *b)
{
    return weft_sub(a, weft_mul(b, rounded_down(weft_div(a, b))));
}
static weft_tensor *modulo_of_c(weft_tensor *a, weft_tensor *b) /* the sign is that of a */
{
    weft_tensor *m = modulo(weft_abs(a), weft_abs(b));
    return weft_where(weft_less(a, number(a, 0)), weft_neg(m), m);
}

/* a to the power b. b is one number, or a is positive. */
static weft_tensor *power_of(weft_tensor *a, weft_tensor *b)
{
    return weft_numel(b) == 1 ? weft_pow(a, weft_item(b)) : weft_exp(weft_mul(weft_log(a), b));
}

/* ---- integers ---- */
/* The functions of integers. Those from NOT on give truth values. */
enum { NOTHING, NEGATE, MAGNITUDE, SIGN, ADD, SUB, MUL, DIV, MIN, MAX, POW, MOD, MOD_OF_C, CHOOSE };
enum { NOT = 16, AND, OR, XOR, EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, IS_NAN };

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

static int64_t integer_of(int f, int64_t a, int64_t b, int64_t c)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    return f == NEGATE                ? (int64_t)(0 - x) :
           f == MAGNITUDE             ? (int64_t)(a < 0 ? 0 - x : x) :
           f == SIGN                  ? (a > 0) - (a < 0) :
           f == ADD                   ? (int64_t)(x + y) :
           f == SUB                   ? (int64_t)(x - y) :
           f == MUL                   ? (int64_t)(x * y) :
           f == DIV                   ? (b == -1 ? (int64_t)(0 - x) : a / b) :
           f == MIN                   ? (a < b ? a : b) :
           f == MAX                   ? (a > b ? a : b) :
           f == POW                   ? power(a, b) :
           f == MOD || f == MOD_OF_C ? remainder_of(a, b, f == MOD_OF_C) :
           f == CHOOSE                ? (a ? b : c) :
           f == NOT                   ? !a :
           f == AND                   ? a && b :
           f == OR                    ? a || b :
           f == XOR                   ? !a != !b :
           f == EQUAL                 ? a == b :
           f == LESS                  ? a < b :
           f == LESS_EQUAL            ? a <= b :
           f == GREATER               ? a > b :
                                        f == GREATER_EQUAL && a >= b;
}

static value integers(run *r, int f, const value *in, int n, int rank, const int64_t *size)
{
    value x[3], y = weft__onnx_integers(r, f >= NOT ? WEFT__ONNX_BOOL : in[f == CHOOSE].type, rank, size);
    bool divides = f == DIV || f == MOD || f == MOD_OF_C;
    for (int i = 0; i < 3; i++)
        x[i] = i < n ? weft__onnx_expand(r, &in[i], rank, size) : x[0];
    for (int64_t i = 0; weft_ok(r->w) && i < y.count; i++)
        if (divides && !x[1].number[i])
            weft__onnx_fail(r, "integer division by 0");
        else
            y.number[i] = integer_of(f, x[0].number[i], x[1].number[i], x[2].number[i]);
    return y;
}

value weft__onnx_truths(run *r, const value *x)
{
    value y = weft__onnx_integers(r, WEFT__ONNX_BOOL, x->rank, x->size);
    weft_real *reals = weft__onnx_read(r, x);
    for (int64_t i = 0; y.type && reals && i < y.count; i++)
        y.number[i] = reals[i] != 0;
    return weft_ok(r->w) ? y : (value){ 0 };
}

/* ---- an operation on integers or reals ---- */
bool weft__onnx_fits(run *r, int rank, const int64_t *size)
{
    if (r->importing && (uint64_t)weft__onnx_product(size, rank) >= r->left / sizeof(weft_real))
        weft__onnx_fail(r, "its constant result is too large for this file");
    return weft_ok(r->w);
}

static value computed(run *r, const operation *o, const value *in, int n)
{
    bool reals = o->option == NOTHING, takes_reals = o->unary || o->binary || n == 3;
    int64_t size[WEFT_RANK];
    int rank = 0;
    weft_tensor *x[3];
    for (int i = 0; i < n; i++) {
        rank = weft__onnx_broadcast(r, rank, size, in[i].rank, in[i].size, size);
        reals = reals || in[i].x;
    }
    if (reals && !takes_reals)
        weft__onnx_fail(r, "reals as an operand; expected truth values");
    if (rank < 0 || !weft__onnx_fits(r, rank, size))
        return (value){ 0 };
    if (!reals)
        return integers(r, o->option, in, n, rank, size);
    for (int i = 0; i < n; i++)
        x[i] = weft__onnx_tensor_of(r, &in[i]);
    value y = weft__onnx_reals(r, n == 1 ? o->unary(x[0]) :
                                  n == 2 ? o->binary(x[0], x[1]) :
                                           weft_where(x[0], x[1], x[2]));
    return o->option < NOT ? y : weft__onnx_truths(r, &y);
}

static void pointwise(run *r, const value *in, value *out)
{
    static const operation of_c = { "Mod", .option = MOD_OF_C, .binary = modulo_of_c };
    const operation *o = r->node->operation;
    bool is_of_c = o->option == MOD && weft__onnx_int(r, "fmod", 0);
    *out = computed(r, is_of_c ? &of_c : o, in, o->inputs);
}

/* Any number of operands. */
static void many(run *r, const value *in, value *out)
{
    *out = in[0];
    for (int i = 1; i < r->node->inputs; i++)
        *out = computed(r, r->node->operation, (value[]){ *out, in[i] }, 2);
}

/* Limits x by an input, or before opset 11 by an attribute. */
static value limited(run *r, const value *x, const value *bound, const char *name, bool lower)
{
    static const operation low = { "Clip", .option = MAX, .binary = weft_maximum },
                           high = { "Clip", .option = MIN, .binary = weft_minimum };
    double most = (double)INFINITY, none = lower ? -most : most;
    if (bound->type && !(x->x && bound->x && bound->count == 1))
        return computed(r, lower ? &low : &high, (value[]){ *x, *bound }, 2);
    double limit = bound->type ? weft_item(bound->x) : weft__onnx_float(r, name, none);
    if (limit == none)
        return *x;
    weft_tensor *y = weft__onnx_tensor_of(r, x);
    return weft__onnx_reals(r, lower ? weft_clamp(y, limit, most) : weft_clamp(y, -most, limit));
}

static void clip(run *r, const value *in, value *out)
{
    value x = limited(r, in, in + 1, "min", true);
    *out = limited(r, &x, in + 2, "max", false);
}

/* ---- operators with attributes ---- */
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
    static const double alphas[] = { .01, 1, 1.67326319237218684815625, .2, 0 };
    int f = r->node->operation->option;
    double alpha = weft__onnx_float(r, "alpha", alphas[f]), beta = weft__onnx_float(r, "beta", .5),
           gamma = weft__onnx_float(r, "gamma", 1.05070102214813232421875);
    weft_tensor *x = weft__onnx_tensor_of(r, in);
    x = f == LEAKY_RELU   ? weft_leaky_relu(x, alpha) :
        f == ELU          ? weft_elu(x, alpha) :
        f == SELU         ? weft_scale(weft_elu(x, alpha), gamma) :
        f == HARD_SIGMOID ? weft_clamp(plus(weft_scale(x, alpha), beta), 0, 1) :
                            gelu(r, x);
    *out = weft__onnx_reals(r, x);
}

static void cast(run *r, const value *in, value *out)
{
    int to = !strcmp(r->node->op, "CastLike") ? in[1].type : (int)weft__onnx_int(r, "to", 0);
    weft__number number = weft__onnx_number(to);
    if (number == WEFT__ODD)
        weft__onnx_fail(r, "element type %d; expected numbers", to);
    else if (weft__number_is_float(number))
        *out = in->x ? *in : weft__onnx_reals(r, weft__onnx_tensor_of(r, in));
    else if (to == WEFT__ONNX_BOOL)
        *out = weft__onnx_truths(r, in);
    else {
        *out = weft__onnx_integers_of(r, in);
        out->type = out->type ? to : 0;
    }
}

void weft__onnx_identity(run *r, const value *in, value *out)
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

/* Rows of pointwise operators: name, function of integers, function of reals. */
#define UNARY(NAME, INTEGERS, REALS) { NAME, pointwise, 1, INTEGERS, .unary = REALS }
#define BINARY(NAME, INTEGERS, REALS) { NAME, pointwise, 2, INTEGERS, .binary = REALS }

const operation weft__onnx_pointwise[] = {
    UNARY("Neg", NEGATE, weft_neg), UNARY("Abs", MAGNITUDE, weft_abs), UNARY("Sign", SIGN, sign),
    UNARY("IsNaN", IS_NAN, is_nan), UNARY("Not", NOT, NULL), UNARY("Exp", NOTHING, weft_exp),
    UNARY("Log", NOTHING, weft_log), UNARY("Sqrt", NOTHING, weft_sqrt), UNARY("Sin", NOTHING, weft_sin),
    UNARY("Cos", NOTHING, weft_cos), UNARY("Tanh", NOTHING, weft_tanh),
    UNARY("Sigmoid", NOTHING, weft_sigmoid), UNARY("Relu", NOTHING, weft_relu),
    UNARY("Softplus", NOTHING, weft_softplus), UNARY("Reciprocal", NOTHING, inverse),
    UNARY("Softsign", NOTHING, softsign), UNARY("Erf", NOTHING, error_function),
    UNARY("Floor", NOTHING, rounded_down), UNARY("Ceil", NOTHING, rounded_up),
    UNARY("Round", NOTHING, rounded), { "LeakyRelu", with_numbers, 1, .option = LEAKY_RELU },
    { "Elu", with_numbers, 1, .option = ELU }, { "Selu", with_numbers, 1, .option = SELU },
    { "HardSigmoid", with_numbers, 1, .option = HARD_SIGMOID },
    { "Gelu", with_numbers, 1, .option = GELU }, { "Cast", cast, .inputs = 1 },
    { "CastLike", cast, .inputs = 2 }, { "If", choose, .inputs = -1 },
    { "Identity", weft__onnx_identity, .inputs = 1 }, { "Dropout", weft__onnx_identity, .inputs = 1 },
    BINARY("Add", ADD, weft_add), BINARY("Sub", SUB, weft_sub), BINARY("Mul", MUL, weft_mul),
    BINARY("Div", DIV, weft_div), BINARY("Pow", POW, power_of), BINARY("Equal", EQUAL, weft_equal),
    BINARY("And", AND, NULL), BINARY("Or", OR, NULL), BINARY("Xor", XOR, NULL),
    BINARY("Less", LESS, weft_less), BINARY("LessOrEqual", LESS_EQUAL, weft_less_equal),
    BINARY("Greater", GREATER, weft_greater), BINARY("GreaterOrEqual", GREATER_EQUAL, weft_greater_equal),
    BINARY("Mod", MOD, modulo), { "Min", many, 1, MIN, .binary = weft_minimum },
    { "Max", many, 1, MAX, .binary = weft_maximum }, { "Clip", clip, .inputs = 1 },
    { "Where", pointwise, 3, .option = CHOOSE },
    { .name = NULL },
};
