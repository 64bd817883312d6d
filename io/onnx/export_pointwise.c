/* export_pointwise.c - translates functions of one, two and three numbers, matrix products, and operators
 * that work along an axis, or over the tokens of each sequence: sums, softmax, maxima, choices. */
#include <math.h>
#include <string.h>
#include "core/kernels.h"
#include "io/onnx/export.h"

/* ---- functions of one number ---- */
const char *weft__ex_function(graph *x, const char *in, int f, double p, double q)
{
    static const char *const text[WEFT__UNARIES] = {
        [WEFT__neg] = "Neg(%s)", [WEFT__exp] = "Exp(%s)", [WEFT__log] = "Log(%s)", [WEFT__sqrt] = "Sqrt(%s)",
        [WEFT__abs] = "Abs(%s)", [WEFT__sin] = "Sin(%s)", [WEFT__cos] = "Cos(%s)", [WEFT__tanh] = "Tanh(%s)",
        [WEFT__relu] = "Relu(%s)",            [WEFT__sigmoid] = "Sigmoid(%s)",
        [WEFT__softplus] = "Softplus(%s)",    [WEFT__rsqrt] = "Reciprocal(Sqrt(%s))",
        [WEFT__square] = "Mul(%s, $)",        [WEFT__leaky_relu] = "LeakyRelu(%s, alpha=%g)",
        [WEFT__elu] = "Elu(%s, alpha=%g)",    [WEFT__clamp] = "Clip(%s, %g, %g)",
        [WEFT__silu] = "Mul(%s, Sigmoid($))", [WEFT__pow] = "Pow(%s, %g)",
        [WEFT__reciprocal] = "Where(Equal(%s, 0.), 0., Reciprocal($))",
        [WEFT__gelu] = "Mul(Mul(%s, .5), Add(Erf(Mul($, .7071067811865476)), 1.))"
    };
    return f < WEFT__UNARIES ? NODES(x, text[f], in, p, q) : in;
}

TRANSLATOR(unary)
{
    const weft__curve *u = c->attributes;
    const weft__node *n = weft__node_of(c->x[0]);
    const bool constant = !n->entry_number && !n->path && *input(x, 0)->name == '/';
    if (u->f == WEFT__reciprocal && constant && !weft__single_number(c->x[0], &y->inverse))
        y->inverse = 0;
    return weft__ex_function(x, input(x, 0)->name, u->f, (double)u->p, (double)u->q);
}

/* ---- broadcasting ---- */
static bool is_one(const value *v, int axis)
{
    const extent *d = &v->dim[v->first[axis]];
    return axes_of(v, axis) == 0 || (axes_of(v, axis) == 1 && d->n == 1 && !d->symbol);
}
static bool same_group(const value *a, int i, const value *b, int j)
{
    const int n = axes_of(a, i);
    return n == axes_of(b, j) && same_axes(a->dim + a->first[i], b->dim + b->first[j], n);
}

/* Finds the axes of y, to which all inputs broadcast. Axes from the right are one group each. */
static void common_axes(graph *x, value *y)
{
    const int n = x->call->n;
    int rank = 0;
    for (int k = 0; k < n; k++)
        rank = input(x, k)->rank > rank ? input(x, k)->rank : rank;
    *y = (value){ 0 };
    for (int a = rank; a >= 1; a--) {            /* an axis, counted from the right */
        const value *g = NULL;                   /* the input that gives it */
        for (int k = 0; k < n; k++) {
            const value *v = input(x, k);
            if (a > v->rank || (g && is_one(v, v->rank - a)))
                continue;
            if (!g || is_one(g, g->rank - a))
                g = v;
            else if (!same_group(g, g->rank - a, v, v->rank - a))
                weft__ex_refuse(x, weft__ex_one_dynamic);
        }
        const int i = g->rank - a;
        for (int k = 0; k < n; k++)              /* axes left of it would shift */
            if (a < input(x, k)->rank && axes_of(input(x, k), input(x, k)->rank - a) != axes_of(g, i))
                weft__ex_refuse(x, "its inputs broadcast along the rows of a batch");
        weft__ex_insert(y, rank - a, axes_of(g, i), g->dim + g->first[i]);
    }
}

/* ---- functions of two and three numbers ---- */
/* Divides a sum along dynamic axes by its number of terms. */
static const char *mean(graph *x, const value *sum, int less)
{
    return NODES(x, "Div(%s, Max(Sub(%s, %g), 1.))", sum->name, sum->count, (double)less);
}

TRANSLATOR(binary)
{
    static const char *const op[WEFT__BINARIES] = {
        [WEFT__add] = "Add",         [WEFT__sub] = "Sub",         [WEFT__mul] = "Mul",
        [WEFT__div] = "Div",         [WEFT__minimum] = "Min",     [WEFT__maximum] = "Max",
        [WEFT__times] = "Mul",       [WEFT__over] = "Div",        [WEFT__cross] = "Mul",
        [WEFT__less] = "Less",       [WEFT__less_equal] = "LessOrEqual",
        [WEFT__greater] = "Greater", [WEFT__greater_equal] = "GreaterOrEqual",
        [WEFT__equal] = "Equal",     [WEFT__not_equal] = "Equal"
    };
    const int f = *(const int *)c->attributes;
    for (int i = 0; i < 2 && f == WEFT__mul; i++) { /* a mean: sum times reciprocal of a count of weft's */
        const value *sum = input(x, i), *weight = input(x, !i);
        if (!sum->count || weight->inverse == 0)
            continue;
        if (weight->inverse != (double)sum->counted)
            weft__ex_refuse(x, "a sum divided by a number that depends on the batch");
        *y = like(sum, NULL);
        return mean(x, sum, 0);
    }
    if (!op[f])
        weft__ex_refuse(x, "it has no ONNX form");
    common_axes(x, y);
    return f == WEFT__not_equal ? NODES(x, "Cast(Not(Equal(@0, @1)), to=%d)", FLOAT) :
           f >= WEFT__less      ? NODES(x, "Cast(%s(@0, @1), to=%d)", op[f], FLOAT) :
                                  NODES(x, "%s(@0, @1)", op[f]);
}

TRANSLATOR(where)
{
    const bool ints = c->x[0]->f.type == WEFT_I32;
    common_axes(x, y);
    return NODES(x, ints ? "Where(Equal(@0, 0), @2, @1)" : "Where(Equal(@0, 0.), @2, @1)");
}

/* A mean is a sum times 1 / n, and a variance one times 1 / (n - 1). Where n is dynamic, it is counted. */
TRANSLATOR(scale)
{
    const real factor = *(const real *)c->attributes;
    const value *v = input(x, 0);
    for (int less = 0; v->count && less < 2; less++) {
        const int64_t n = v->counted - less;
        if (n > 0 && (factor == 1 / (real)n || factor == (real)(1 / (double)n)))
            return mean(x, v, less);
    }
    return NODES(x, "Mul(@0, %g)", (double)factor);
}

TRANSLATOR(cast)
{
    const bool ints = c->y[0]->f.type == WEFT_I32;
    return NODES(x, ints ? "Cast(Round(@0), to=%d)" : "Cast(@0, to=%d)", ints ? INT64 : FLOAT);
}

TRANSLATOR(same)
{
    *y = *input(x, 0);
    return y->name;
}

/* ---- products ---- */
static bool ends_are_single(const value *v, bool both)
{
    return axes_of(v, v->rank - 1) == 1 && (!both || axes_of(v, v->rank - 2) == 1);
}
static const char *turned(graph *x, const value *v, bool transposed)
{
    int64_t order[AXES];
    for (int i = 0; i < v->axes; i++)
        order[i] = i >= v->axes - 2 ? 2 * v->axes - 3 - i : i;
    return transposed ? NODES(x, "Transpose(%s, perm=[%*p])", v->name, ITEMS(v->axes, order)) : v->name;
}
TRANSLATOR(matmul)
{
    const weft__turns *t = c->attributes;
    const value *a = input(x, 0), *b = input(x, 1);
    const bool by_b = b->rank > a->rank;
    if (!ends_are_single(a, t->ta || b->rank > 2) || !ends_are_single(b, true))
        weft__ex_refuse(x, "a product along the rows of a batch");
    *y = like(by_b ? b : a, NULL);
    y->dim[y->axes - 1] = b->dim[b->axes - (t->tb ? 2 : 1)];
    if (by_b || t->ta)
        y->dim[y->axes - 2] = a->dim[a->axes - (t->ta ? 1 : 2)];
    return NODES(x, "MatMul(%s, %s)", turned(x, a, t->ta), turned(x, b, t->tb));
}

/* ---- along an axis ---- */
/* Removes that axis of a value; tokens become sequences. */
static void reduce(const graph *x, value *y)
{
    if (x->tokens)
        weft__ex_per_sequence(y, x->tokens);
    else
        weft__ex_remove(y, x->axis);
}
static const char *filled(graph *x, double fill)
{
    const value *v = input(x, 0);
    return x->tokens ? weft__ex_filled(x, x->tokens, v, x->call->x[0]->f.type, fill) : v->name;
}

/* Returns the number of rows of data, or the product of dynamic extents, as a float. */
static const char *counted(graph *x, const batch *b, int from, int to)
{
    const char *n = b && b->lengths ? NODES(x, "ReduceSum(%s, keepdims=0)", b->lengths) : NULL;
    for (int i = n ? b->axes : from; i < to; i++) {
        const char *size = NODES(x, "Squeeze(%s, [0])", weft__ex_size(x, input(x, 0)->dim[i]));
        n = n ? NODES(x, "Mul(%s, %s)", n, size) : size;
    }
    return NODES(x, "Cast(%s, to=%d)", n, FLOAT);
}
TRANSLATOR(sum_all)
{
    const value *v = input(x, 0);
    batch *b = batch_of(x, c->x[0]);
    if (c->y[0]->f.rank || c->x[0]->f.layout == WEFT_PADDED || (b && b->pairs))
        weft__ex_refuse(x, "a sum over some axes of a broadcast");
    *y = (value){ .counted = b ? b->b->tokens : 1 };
    for (int i = b ? b->axes : 0; i < v->axes; i++)
        y->counted *= v->dim[i].rows ? v->dim[i].rows : v->dim[i].joined ? 1 : v->dim[i].n;
    y->count = counted(x, b, 0, v->axes);
    const char *name = b ? weft__ex_filled(x, b, v, c->x[0]->f.type, 0) : v->name;
    return NODES(x, "ReduceSum(%s, keepdims=0)", name);
}
TRANSLATOR(sum)
{
    if (!c->op->describe)
        return sum_all(x, c, y);
    const extent *d = &input(x, 0)->dim[x->at];
    const char *name = NODES(x, "ReduceSum(%s, [%d], keepdims=0)", filled(x, 0), x->at);
    reduce(x, y);
    if (!x->tokens && d->symbol) {
        y->gone = *d;
        y->counted = d->n;
        y->count = counted(x, NULL, x->at, x->at + 1);
    }
    return name;
}

/* Repeats a row of each sequence for its tokens, or an axis of extent 1. */
TRANSLATOR(broadcast)
{
    const weft__along *a = c->op->describe ? c->attributes : NULL;
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    const int more = to->rank - f->rank;
    const char *name = input(x, 0)->name;
    if (a && a->tokens) {
        batch *b = weft__ex_root(x, to->batch);  /* only its lengths matter */
        if (!b || y->first[1] != b->axes - 1)
            weft__ex_refuse(x, "its input has not one row for each sequence");
        name = NODES(x, "Unsqueeze(@0, [0])");
        weft__ex_replace(y, b->axes, b->rows);
    } else if (a) {
        const extent fixed = { .n = to->size[a->axis] };
        name = NODES(x, "Unsqueeze(@0, [%d])", y->first[a->axis]);
        weft__ex_insert(y, a->axis, 1, y->gone.symbol && y->gone.n == fixed.n ? &y->gone : &fixed);
    } else if (to->batch && !f->batch)
        weft__ex_refuse(x, "a plain tensor that is repeated for rows of a batch");
    for (int i = 0; !a && i < f->rank; i++)
        if (f->size[i] != to->size[i + more])
            y->dim[y->first[i]].n = to->size[i + more];
    for (int i = more - 1; !a && i >= 0; i--)
        weft__ex_insert(y, 0, 1, &(extent){ .n = to->size[i] });
    return weft__ex_expand(x, name, y->axes, y->dim);
}

/* Softmax, its logarithm, and logsumexp. Where the mask or the padding is 0 the result is 0. */
TRANSLATOR(softmax)
{
    const bool sums = !strcmp(c->op->name, "logsumexp");
    const double low = sums ? -(double)INFINITY : -1e30;
    const char *hidden = c->n > 1 ? NODES(x, "Equal(@1, 0.)") : NULL, *name = filled(x, low);
    name = hidden ? NODES(x, "Where(%s, %g, %s)", hidden, low, name) : name;
    if (sums) {
        reduce(x, y);
        return NODES(x, "ReduceLogSumExp(%s, axes=[%d], keepdims=0)", name, x->at);
    }
    name = NODES(x, "%s(%s, axis=%d)", *c->op->name == 's' ? "Softmax" : "LogSoftmax", name, x->at);
    y->name = hidden ? NODES(x, "Where(%s, 0., %s)", hidden, name) : name;
    return x->tokens ? weft__ex_filled(x, x->tokens, y, WEFT_REAL, 0) : y->name;
}

TRANSLATOR(cumsum)
{
    const weft__along *a = c->attributes;
    return NODES(x, "CumSum(%s, %d, reverse=%d)", filled(x, 0), x->at, a->flag);
}

TRANSLATOR(flip)
{
    enum { ALL = INT32_MAX };
    if (!x->tokens || !x->tokens->lengths)
        return NODES(x, "Slice(@0, [%d], [%d], [%d], [-1])", ALL, -ALL, x->at);
    if (x->tokens->axes != 2)
        weft__ex_refuse(x, "pairs");
    const char *position = weft__ex_position(x, x->tokens);
    return weft__ex_gather_time(x, input(x, 0),
                                NODES(x, "Max(Sub(Sub(%s, 1), %s), 0)", x->tokens->lengths, position));
}

/* The result for the caller is the value, or the index for argmax and argmin. An empty sequence gives 0. */
TRANSLATOR(extreme)
{
    const bool most = strstr(c->op->name, "max");
    if (x->tokens && c->x[0]->f.type != WEFT_REAL)
        weft__ex_refuse(x, "the largest int of each sequence");
    reduce(x, y);
    if (*c->op->name == 'a')
        y->name = NODES(x, "%s(@0, axis=%d, keepdims=0)", most ? "ArgMax" : "ArgMin", x->at);
    else
        y->name = NODES(x, "%s(%s, axes=[%d], keepdims=0)", most ? "ReduceMax" : "ReduceMin",
                        filled(x, (double)(most ? -INFINITY : INFINITY)), x->at);
    return x->tokens ? weft__ex_not_empty(x, x->tokens, y, c->y[0]->f.type) : y->name;
}

/* ---- choices ---- */
TRANSLATOR(topk)
{
    const weft__top *t = c->attributes;
    const int at = weft__ex_axis(x, y, t->along.axis);
    y->dim[at] = (extent){ .n = t->k };
    /* An index_select of result 1 gives the values. */
    *weft__ex_place(x, c->y[1]) = like(y, NODES(x, "TopK:2(@0, [%lld], axis=%d)", (long long)t->k, at));
    return x->out[1];
}

TRANSLATOR(one_hot)
{
    const int64_t classes = *(const int64_t *)c->attributes;
    weft__ex_insert(y, y->rank, 1, &(extent){ .n = classes });
    return NODES(x, "OneHot(@0, %lld, Cast([0, 1], to=%d))", (long long)classes, FLOAT);
}

/* The elements of each row by a column number. */
TRANSLATOR(gather)
{
    if (c->op->describe)
        weft__ex_refuse(x, "it is part of a gradient");
    *y = like(input(x, 1), NULL);
    return NODES(x, "Squeeze(GatherElements(@0, Unsqueeze(@1, [-1]), axis=-1), [-1])");
}

const translation weft__ex_pointwise[] = {
#define UNARY(id, ...) { #id, unary, false },
#define BINARY(id, ...) { #id, binary, false },
#include "core/shared/pointwise.def"
    { "where", where, false },    { "scale", scale, false },         { "to_reals", cast, false },
    { "detach", same, false },    { "matmul", matmul, false },       { "to_ints", cast, false },
    { "sum", sum, true },         { "broadcast", broadcast, false }, { "softmax", softmax, true },
    { "cumsum", cumsum, true },   { "log_softmax", softmax, true },  { "logsumexp", softmax, true },
    { "flip", flip, true },       { "max", extreme, true },          { "min", extreme, true },
    { "topk", topk, false },      { "argmax", extreme, true },       { "argmin", extreme, true },
    { "gather", gather, false },  { "one_hot", one_hot, false },     { NULL, NULL, false }
};
