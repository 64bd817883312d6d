/* binary.c - pointwise operators of two and three operands, which broadcast. */
#include <math.h>
#include <string.h>
#include "io/onnx/model.h"

enum { ADD = 1, SUB, MUL, DIV, MIN, MAX, POW, MOD, AND, OR, XOR };
enum { EQUAL = 16, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

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
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    return f == ADD        ? (int64_t)(x + y) :
           f == SUB        ? (int64_t)(x - y) :
           f == MUL        ? (int64_t)(x * y) :
           f == DIV        ? (b == -1 ? (int64_t)(0 - x) : a / b) :
           f == MIN        ? (a < b ? a : b) :
           f == MAX        ? (a > b ? a : b) :
           f == POW        ? power(a, b) :
           f == MOD        ? remainder_of(a, b, of_c) :
           f == AND        ? a && b :
           f == OR         ? a || b :
           f == XOR        ? !a != !b :
           f == EQUAL      ? a == b :
           f == LESS       ? a < b :
           f == LESS_EQUAL ? a <= b :
           f == GREATER    ? a > b :
                             a >= b;
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

static weft_tensor *floor_modulo(weft_tensor *a, weft_tensor *b)
{
    return weft_sub(a, weft_mul(b, weft__onnx_floor(weft_div(a, b))));
}
static weft_tensor *modulo(weft_tensor *a, weft_tensor *b) /* fmod: the sign is that of a */
{
    weft_tensor *m = floor_modulo(weft_abs(a), weft_abs(b));
    return weft_where(weft_less(a, weft_scalar(weft_context_of(a), 0)), weft_neg(m), m);
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
    binary_function *apply = o->option == MOD && !weft__onnx_int(r, "fmod", 0) ? floor_modulo : o->binary;
    value y = weft__onnx_reals(r, apply(weft__onnx_tensor_of(r, a), weft__onnx_tensor_of(r, b)));
    if (o->option < EQUAL || !y.type)
        return y;
    y = weft__onnx_integers_of(r, &y);
    y.type = y.type ? WEFT__ONNX_BOOL : 0;
    return y;
}

static void binary(run *r, const value *in, value *out) { *out = two(r, r->node->operation, in, in + 1); }

/* Any number of operands. */
static void many(run *r, const value *in, value *out)
{
    *out = *in;
    for (int i = 1; i < r->node->inputs && out->type; i++)
        *out = in[i].type ? two(r, r->node->operation, out, &in[i]) : (value){ 0 };
}

/* ---- three ---- */
static value limit(run *r, const value *in, const value *bound, const char *name, bool lower)
{
    static const operation low = { "Clip", NULL, 2, MAX, NULL, weft_maximum },
                           high = { "Clip", NULL, 2, MIN, NULL, weft_minimum };
    double most = (double)INFINITY, x = lower ? -most : most;
    bool old = r->node->version < 11;
    if (!old && !bound->type)
        return *in;
    if (!old && !(in->x && bound->x && bound->count == 1))
        return two(r, lower ? &low : &high, in, bound);
    x = old ? weft__onnx_float(r, name, x) : weft_item(bound->x);
    return weft__onnx_reals(r, weft_clamp(in->x, lower ? x : -most, lower ? most : x));
}

static void clip(run *r, const value *in, value *out)
{
    value x = limit(r, in, in + 1, "min", true);
    if (x.type)
        *out = limit(r, &x, in + 2, "max", false);
}

static void where(run *r, const value *in, value *out)
{
    int64_t size[WEFT_RANK];
    int rank = weft__onnx_broadcast(r, in[1].rank, in[1].size, in[2].rank, in[2].size, size);
    rank = rank < 0 ? rank : weft__onnx_broadcast(r, in->rank, in->size, rank, size, size);
    if (rank < 0)
        return;
    value c = weft__onnx_expand(r, in, rank, size);
    if (c.type && (in[1].x || in[2].x))
        *out = weft__onnx_reals(r, weft_where(weft__onnx_tensor_of(r, &c), weft__onnx_tensor_of(r, in + 1),
                                              weft__onnx_tensor_of(r, in + 2)));
    if (!c.type || in[1].x || in[2].x)
        return;
    value a = weft__onnx_expand(r, in + 1, rank, size), b = weft__onnx_expand(r, in + 2, rank, size);
    *out = weft__onnx_integers(r, in[1].type, rank, size);
    for (int64_t i = 0; out->type && a.type && b.type && i < out->count; i++)
        out->number[i] = c.number[i] ? a.number[i] : b.number[i];
}

const operation weft__onnx_binary[] = {
    { "Add", binary, 2, ADD, NULL, weft_add }, { "Sub", binary, 2, SUB, NULL, weft_sub },
    { "Mul", binary, 2, MUL, NULL, weft_mul }, { "Div", binary, 2, DIV, NULL, weft_div },
    { "Pow", binary, 2, POW, NULL, power_of }, { "Mod", binary, 2, MOD, NULL, modulo },
    { "And", binary, 2, AND, NULL, NULL }, { "Or", binary, 2, OR, NULL, NULL },
    { "Xor", binary, 2, XOR, NULL, NULL }, { "Equal", binary, 2, EQUAL, NULL, weft_equal },
    { "Less", binary, 2, LESS, NULL, weft_less },
    { "LessOrEqual", binary, 2, LESS_EQUAL, NULL, weft_less_equal },
    { "Greater", binary, 2, GREATER, NULL, weft_greater },
    { "GreaterOrEqual", binary, 2, GREATER_EQUAL, NULL, weft_greater_equal },
    { "Min", many, 1, MIN, NULL, weft_minimum }, { "Max", many, 1, MAX, NULL, weft_maximum },
    { "Clip", clip, 1, 0, NULL, NULL }, { "Where", where, 3, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
