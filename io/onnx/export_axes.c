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
    set_value(x, c->y[1], like(y, NODES(x, "TopK:2(@0, [%lld], axis=%d)", (long long)t->k, at)));
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

const translation weft__ex_axes[] = {
    { "sum", sum, true },       { "broadcast", broadcast, false }, { "softmax", softmax, true },
    { "cumsum", cumsum, true }, { "log_softmax", softmax, true },  { "logsumexp", softmax, true },
    { "flip", flip, true },     { "max", extreme, true },          { "min", extreme, true },
    { "topk", topk, false },    { "argmax", extreme, true },       { "argmin", extreme, true },
    { "gather", gather, false }, { "one_hot", one_hot, false },    { NULL, NULL, false }
};
