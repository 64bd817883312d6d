/* export_axes.c - translates operators that work along an axis, or over the tokens of each sequence: sums,
 * softmax, maxima, running sums, and choices of elements. */
#include <math.h>
#include <string.h>
#include "io/onnx/export.h"

/* ---- along an axis ---- */
/* Removes that axis of a value; tokens become sequences. */
static void reduce(const graph *x, value *y)
{
    if (x->tokens)
        weft__ex_per_sequence(y, x->tokens);
    else
        weft__ex_remove(y, x->axis);
}
static const char *filled(graph *x, const char *fill)
{
    return x->tokens ? weft__ex_filled(x, x->tokens, input(x, 0), fill) : input(x, 0)->name;
}
/* Removes the ONNX axis. */
static const char *reduced(graph *x, const char *op, const char *in)
{
    const int64_t axis = x->at;
    return NODE_WITH(x, op, ATTRIBUTES(INT_LIST("axes", 1, &axis), INT("keepdims", 0)), in);
}
static const char *sum_of(graph *x, const char *in, const char *axes)
{
    return NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), in, axes);
}

/* Returns the number of rows of data, or the product of dynamic extents, as a float. */
static const char *counted(graph *x, const batch *b, int from, int to)
{
    const char *n = b && b->lengths ? sum_of(x, b->lengths, NULL) : NULL;
    for (int i = n ? b->axes : from; i < to; i++) {
        const char *size = SQUEEZE(x, weft__ex_size(x, input(x, 0)->dim[i]), 0);
        n = n ? NODE(x, "Mul", n, size) : size;
    }
    return CAST(x, n, FLOAT);
}
TRANSLATOR(sum_all)
{
    const value *v = input(x, 0);
    batch *b = batch_of(x, c->x[0]);
    if (c->y[0]->f.rank || c->x[0]->f.layout == WEFT_PADDED || (b && b->pairs))
        return weft__ex_refuse(x, "a sum over some axes of a broadcast");
    *y = (value){ .counted = b ? b->b->tokens : 1 };
    for (int i = b ? b->axes : 0; i < v->axes; i++)
        y->counted *= v->dim[i].rows ? v->dim[i].rows : v->dim[i].joined ? 1 : v->dim[i].n;
    const char *name = sum_of(x, b ? weft__ex_filled(x, b, v, ZERO_OF(x, c->x[0])) : v->name, NULL);
    y->count = counted(x, b, 0, v->axes);
    return name;
}
TRANSLATOR(sum)
{
    if (!c->op->describe)
        return sum_all(x, c, y);
    const extent *d = &input(x, 0)->dim[x->at];
    const char *name = sum_of(x, filled(x, ZERO_OF(x, c->x[0])), INTS(x, x->at));
    reduce(x, y);
    if (!x->tokens && d->symbol)
        y->gone = *d, y->counted = d->n, y->count = counted(x, NULL, x->at, x->at + 1);
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
            return weft__ex_refuse(x, "its input has not one row for each sequence");
        name = UNSQUEEZE(x, name, 0);
        weft__ex_replace(y, b->axes, b->rows);
    } else if (a) {
        const extent fixed = { .n = to->size[a->axis] };
        name = UNSQUEEZE(x, name, y->first[a->axis]);
        weft__ex_insert(y, a->axis, 1, y->gone.symbol && y->gone.n == fixed.n ? &y->gone : &fixed);
    } else if (to->batch && !f->batch)
        return weft__ex_refuse(x, "a plain tensor that is repeated for rows of a batch");
    for (int i = 0; !a && i < f->rank; i++)
        if (f->size[i] != to->size[i + more])
            y->dim[y->first[i]].n = to->size[i + more];
    for (int i = more - 1; !a && i >= 0; i--)
        weft__ex_insert(y, 0, 1, &(extent){ .n = to->size[i] });
    return EXPAND(x, name, y->axes, y->dim);
}

/* Softmax, its logarithm, and logsumexp. Where the mask or the padding is 0 the result is 0. */
TRANSLATOR(softmax)
{
    const bool sums = !strcmp(c->op->name, "logsumexp");
    const char *zero = NUMBER(x, 0), *low = NUMBER(x, sums ? -(double)INFINITY : -1e30);
    const char *hidden = c->n > 1 ? NODE(x, "Equal", input(x, 1)->name, zero) : NULL;
    const char *name = filled(x, low), *op = *c->op->name == 's' ? "Softmax" : "LogSoftmax";
    name = hidden ? NODE(x, "Where", hidden, low, name) : name;
    if (sums) {
        reduce(x, y);
        return reduced(x, "ReduceLogSumExp", name);
    }
    name = NODE_WITH(x, op, ATTRIBUTES(INT("axis", x->at)), name);
    y->name = hidden ? NODE(x, "Where", hidden, zero, name) : name;
    return x->tokens ? weft__ex_filled(x, x->tokens, y, zero) : y->name;
}

TRANSLATOR(cumsum)
{
    const attribute reverse[] = { INT("reverse", ((const weft__along *)c->attributes)->flag), { 0 } };
    return NODE_WITH(x, "CumSum", reverse, filled(x, NUMBER(x, 0)), WHOLE(x, x->at));
}

TRANSLATOR(flip)
{
    enum { ALL = INT32_MAX };
    if (!x->tokens || !x->tokens->lengths)
        return NODE(x, "Slice", input(x, 0)->name, INTS(x, ALL), INTS(x, -ALL), INTS(x, x->at), INTS(x, -1));
    if (x->tokens->axes != 2)
        return weft__ex_refuse(x, "pairs");
    const char *last = NODE(x, "Sub", x->tokens->lengths, WHOLE(x, 1));
    const char *row = NODE(x, "Sub", last, weft__ex_position(x, x->tokens));
    return weft__ex_gather_time(x, input(x, 0), NODE(x, "Max", row, WHOLE(x, 0)));
}

/* The result for the caller is the value, or the index for argmax and argmin. An empty sequence gives 0. */
TRANSLATOR(extreme)
{
    const bool most = strstr(c->op->name, "max");
    const attribute options[] = { INT("axis", x->at), INT("keepdims", 0), { 0 } };
    if (x->tokens && c->x[0]->f.type != WEFT_REAL)
        return weft__ex_refuse(x, "the largest int of each sequence");
    reduce(x, y);
    if (*c->op->name == 'a')
        y->name = NODE_WITH(x, most ? "ArgMax" : "ArgMin", options, input(x, 0)->name);
    else
        y->name = reduced(x, most ? "ReduceMax" : "ReduceMin",
                          filled(x, NUMBER(x, most ? -(double)INFINITY : (double)INFINITY)));
    return x->tokens ? weft__ex_not_empty(x, x->tokens, y, ZERO_OF(x, c->y[0])) : y->name;
}

/* ---- choices ---- */
TRANSLATOR(topk)
{
    const weft__top *t = c->attributes;
    const char *out[2];
    const int at = weft__ex_axis(x, y, t->along.axis);
    if (at < 0)
        return NULL;
    y->dim[at] = (extent){ .n = t->k };
    NODE_OUT(x, "TopK", ATTRIBUTES(INT("axis", at)), out, 2, input(x, 0)->name, INTS(x, t->k));
    set_value(x, c->y[1], like(y, out[0])); /* an index_select of it gives the values */
    return out[1];
}

TRANSLATOR(one_hot)
{
    static const float values[] = { 0, 1 };
    const int64_t two = 2, classes = *(const int64_t *)c->attributes;
    weft__ex_insert(y, y->rank, 1, &(extent){ .n = classes });
    return NODE(x, "OneHot", input(x, 0)->name, WHOLE(x, classes),
                weft__ex_initializer(x, NULL, FLOAT, 1, &two, values, sizeof values));
}

/* The elements of each row by a column number. */
TRANSLATOR(gather)
{
    if (c->op->describe)
        return weft__ex_refuse(x, "it is part of a gradient");
    const char *column = UNSQUEEZE(x, input(x, 1)->name, -1);
    *y = like(input(x, 1), NULL);
    column = NODE_WITH(x, "GatherElements", ATTRIBUTES(INT("axis", -1)), input(x, 0)->name, column);
    return SQUEEZE(x, column, -1);
}

const translation weft__ex_axes[] = {
    { "sum", sum, true },       { "broadcast", broadcast, false }, { "softmax", softmax, true },
    { "cumsum", cumsum, true }, { "log_softmax", softmax, true },  { "logsumexp", softmax, true },
    { "flip", flip, true },     { "max", extreme, true },          { "min", extreme, true },
    { "topk", topk, false },    { "argmax", extreme, true },       { "argmin", extreme, true },
    { "gather", gather, false }, { "one_hot", one_hot, false },    { NULL, NULL, false }
};
