/* export_axes.c - translates operators that work along an axis, or over the tokens of each sequence: sums,
 * softmax, maxima, running sums, and choices of elements. */
#include <math.h>
#include <string.h>
#include "io/onnx/export.h"

/* ---- along an axis ---- */
/* What an operator along an axis needs: its ONNX axis, the batch if it is tokens, otherwise NULL. */
typedef struct along { const weft__along *a; const value *v; batch *b; int at; } along;
static bool along_of(graph *x, along *k)
{
    k->a = x->call->attributes, k->v = input(x, 0);
    k->b = k->a->tokens ? batch_of(x, x->call->x[0]) : NULL;
    k->at = k->b ? 0 : weft__ex_axis(x, k->v, k->a->axis);
    return k->at >= 0;
}
/* Removes that axis of a value; tokens become sequences. */
static void reduce(const along *k, value *y)
{
    if (k->b)
        weft__ex_per_sequence(y, k->b);
    else
        weft__ex_remove(y, k->a->axis);
}
static const char *filled(graph *x, const along *k, const char *fill)
{
    return k->b ? weft__ex_filled(x, k->b, k->v, fill) : k->v->name;
}
/* Removes ONNX axis `axis`. */
static const char *without(graph *x, const char *op, const char *in, int64_t axis)
{
    return NODE_WITH(x, op, ATTRIBUTES(INT_LIST("axes", 1, &axis), INT("keepdims", 0)), in);
}
static const char *sum_of(graph *x, const char *in, const char *axes)
{
    return NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), in, axes);
}

/* Returns the number of rows of data, or the product of dynamic extents, as a float. */
static const char *counted(graph *x, batch *b, int from, int to)
{
    const char *n = b && b->lengths ? sum_of(x, b->lengths, NULL) : NULL;
    for (int i = n ? b->axes : from; i < to; i++) {
        const char *size = squeeze(x, weft__ex_size(x, input(x, 0)->dim[i]), 0);
        n = n ? NODE(x, "Mul", n, size) : size;
    }
    return cast_to(x, n, FLOAT);
}

static const char *sum_all(graph *x, const weft_call *c, value *y)
{
    const value *v = input(x, 0);
    batch *b = batch_of(x, c->x[0]);
    if (c->y[0]->f.rank || c->x[0]->f.layout == WEFT_PADDED || (b && b->pairs))
        return weft__ex_refuse(x, "a sum over some axes of a broadcast");
    *y = (value){ .counted = b ? b->b->tokens : 1 };
    for (int i = b ? b->axes : 0; i < v->axes; i++)
        y->counted *= v->dim[i].rows ? v->dim[i].rows : v->dim[i].joined ? 1 : v->dim[i].n;
    const char *name = sum_of(x, b ? weft__ex_filled(x, b, v, zero_of(x, c->x[0])) : v->name, NULL);
    y->count = counted(x, b, 0, v->axes);
    return name;
}
static const char *sum(graph *x, const weft_call *c, value *y)
{
    along k;
    if (!c->op->describe)
        return sum_all(x, c, y);
    if (!along_of(x, &k))
        return NULL;
    reduce(&k, y);
    const char *name = sum_of(x, filled(x, &k, zero_of(x, c->x[0])), INTS(x, k.at));
    if (!k.b && k.v->dim[k.at].symbol) {
        y->gone = k.v->dim[k.at], y->counted = y->gone.n;
        y->count = counted(x, NULL, k.at, k.at + 1);
    }
    return name;
}

/* Repeats a row of each sequence for its tokens, or an axis of extent 1. */
static const char *broadcast(graph *x, const weft_call *c, value *y)
{
    const weft__along *a = c->op->describe ? c->attributes : NULL;
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    const int more = to->rank - f->rank;
    const char *name = input(x, 0)->name;
    if (a && a->tokens) {
        batch *b = weft__ex_root(x, to->batch); /* only its lengths matter */
        if (!b || y->first[1] != b->axes - 1)
            return weft__ex_refuse(x, "its input has not one row for each sequence");
        name = unsqueeze(x, name, 0);
        weft__ex_replace(y, b->axes, b->rows);
    } else if (a) {
        const extent fixed = { .n = to->size[a->axis] };
        name = unsqueeze(x, name, y->first[a->axis]);
        weft__ex_insert(y, a->axis, 1, y->gone.symbol && y->gone.n == fixed.n ? &y->gone : &fixed);
    } else if (to->batch && !f->batch)
        return weft__ex_refuse(x, "a plain tensor that is repeated for rows of a batch");
    else {
        for (int i = 0; i < f->rank; i++)
            if (f->size[i] != to->size[i + more])
                y->dim[y->first[i]].n = to->size[i + more];
        for (int i = more - 1; i >= 0; i--)
            weft__ex_insert(y, 0, 1, &(extent){ .n = to->size[i] });
    }
    return expand(x, name, y->axes, y->dim);
}

/* Softmax, its logarithm, and logsumexp. Where the mask or the padding is 0 the result is 0. */
static const char *softmax(graph *x, const weft_call *c, value *y)
{
    along k;
    if (!along_of(x, &k))
        return NULL;
    const bool reduces = !strcmp(c->op->name, "logsumexp");
    const char *zero = number(x, 0), *low = number(x, reduces ? -(double)INFINITY : -1e30);
    const char *hidden = c->n > 1 ? NODE(x, "Equal", input(x, 1)->name, zero) : NULL;
    const char *name = filled(x, &k, low);
    name = hidden ? NODE(x, "Where", hidden, low, name) : name;
    if (reduces) {
        reduce(&k, y);
        return without(x, "ReduceLogSumExp", name, k.at);
    }
    name = NODE_WITH(x, *c->op->name == 's' ? "Softmax" : "LogSoftmax", ATTRIBUTES(INT("axis", k.at)), name);
    y->name = hidden ? NODE(x, "Where", hidden, zero, name) : name;
    return k.b ? weft__ex_filled(x, k.b, y, zero) : y->name;
}

static const char *cumsum(graph *x, const weft_call *c, value *y)
{
    along k;
    (void)c, (void)y;
    return along_of(x, &k) ? NODE_WITH(x, "CumSum", ATTRIBUTES(INT("reverse", k.a->flag)),
                                       filled(x, &k, number(x, 0)), whole(x, k.at)) : NULL;
}

static const char *flip(graph *x, const weft_call *c, value *y)
{
    along k;
    (void)c, (void)y;
    if (!along_of(x, &k))
        return NULL;
    if (!k.b || !k.b->lengths)
        return NODE(x, "Slice", k.v->name, INTS(x, INT32_MAX), INTS(x, -INT32_MAX), INTS(x, k.at), INTS(x, -1));
    if (k.b->axes != 2)
        return weft__ex_refuse(x, "pairs");
    const char *last = NODE(x, "Sub", k.b->lengths, whole(x, 1));
    const char *row = NODE(x, "Sub", last, weft__ex_position(x, k.b));
    return weft__ex_gather_time(x, k.v, NODE(x, "Max", row, whole(x, 0)));
}

/* The result for the caller is the value, or the index for argmax and argmin. An empty sequence gives 0. */
static const char *extreme(graph *x, const weft_call *c, value *y)
{
    along k;
    const bool most = strstr(c->op->name, "max");
    if (!along_of(x, &k))
        return NULL;
    if (k.b && c->x[0]->f.type != WEFT_REAL)
        return weft__ex_refuse(x, "the largest int of each sequence");
    reduce(&k, y);
    if (*c->op->name == 'a')
        y->name = NODE_WITH(x, most ? "ArgMax" : "ArgMin", ATTRIBUTES(INT("axis", k.at), INT("keepdims", 0)),
                            k.v->name);
    else
        y->name = without(x, most ? "ReduceMax" : "ReduceMin",
                          filled(x, &k, number(x, most ? -(double)INFINITY : (double)INFINITY)), k.at);
    return k.b ? weft__ex_not_empty(x, k.b, y, zero_of(x, c->y[0])) : y->name;
}

static const char *topk(graph *x, const weft_call *c, value *y)
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

static const char *one_hot(graph *x, const weft_call *c, value *y)
{
    const int64_t classes = *(const int64_t *)c->attributes;
    weft__ex_insert(y, y->rank, 1, &(extent){ .n = classes });
    return NODE(x, "OneHot", input(x, 0)->name, whole(x, classes),
                weft__ex_initializer(x, NULL, FLOAT, 1, &(int64_t){ 2 }, (float[]){ 0, 1 }, 2 * sizeof(float)));
}

/* The elements of each row by a column number. */
static const char *gather(graph *x, const weft_call *c, value *y)
{
    if (c->op->describe)
        return weft__ex_refuse(x, "it is part of a gradient");
    const char *column = unsqueeze(x, input(x, 1)->name, -1);
    *y = like(input(x, 1), NULL);
    return squeeze(x, NODE_WITH(x, "GatherElements", ATTRIBUTES(INT("axis", -1)), input(x, 0)->name, column), -1);
}

const translation weft__ex_axes[] = {
    { "sum", sum },           { "broadcast", broadcast }, { "softmax", softmax }, { "log_softmax", softmax },
    { "logsumexp", softmax }, { "cumsum", cumsum },       { "flip", flip },       { "max", extreme },
    { "min", extreme },       { "argmax", extreme },      { "argmin", extreme },  { "topk", topk },
    { "one_hot", one_hot },   { "gather", gather },       { NULL, NULL }
};
