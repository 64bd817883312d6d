/* export_axes.c - translates operators that work along an axis, or over the tokens of each sequence: sums,
 * softmax, maxima, running sums, and choices of elements. */
#include <math.h>
#include <string.h>
#include "io/onnx/export.h"

enum { MOST = INT32_MAX };
/* ---- along an axis ---- */
/* What an operator along an axis needs: its ONNX axis, the batch if it is tokens, otherwise NULL. */
typedef struct along {
    const weft__along *a;
    const weft__value *v;
    weft__export_batch *b;
    int at;
} along;
static bool along_of(weft__export *x, const weft_call *c, along *k)
{
    k->a = c->attributes, k->v = weft__export_in(x, c, 0);
    k->b = k->a->tokens ? weft__export_of(x, c->x[0]) : NULL;
    k->at = k->b ? 0 : weft__export_axis(x, c, k->v, k->a->axis);
    return k->at >= 0;
}
/* Returns the value without that axis; over tokens with an axis for the sequences. */
static weft__value reduced(const along *k, int rank)
{
    weft__value y = weft__export_like(k->v, NULL);
    weft__export_remove(&y, rank, k->a->axis);
    if (k->b) {
        weft__export_insert(&y, rank - 1, 0, k->b->axes - 1, k->b->rows + 1);
        y.dim[0].joined = false, y.dim[0].rows = k->b->pairs ? k->b->a->tokens : 0;
    }
    return y;
}
static const char *filled(weft__export *x, const along *k, const char *fill)
{
    return k->b ? weft__export_filled(x, k->b, k->v, fill) : k->v->name;
}
static const char *zero_of(weft__export *x, const weft_tensor *t)
{
    return t->f.type == WEFT_REAL ? weft__export_number_of(x, 0) : weft__export_int(x, 0);
}

/* Returns the number of rows of data, or the product of dynamic extents, as a float. */
static const char *counted(weft__export *x, weft__export_batch *b, const weft__value *v, int from, int to)
{
    const char *n =
        b && b->lengths ? NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), b->lengths) : NULL;
    for (int i = n ? b->axes : from; i < to; i++) {
        const char *size = weft__export_squeeze(x, weft__export_size(x, v->dim[i]), 0);
        n = n ? NODE(x, "Mul", n, size) : size;
    }
    return weft__export_cast(x, n, WEFT__EXPORT_FLOAT);
}

static bool sum_all(weft__export *x, const weft_call *c)
{
    const weft__value *v = weft__export_in(x, c, 0);
    weft__export_batch *b = weft__export_of(x, c->x[0]);
    if (c->y[0]->f.rank || c->x[0]->f.layout == WEFT_PADDED || (b && b->pairs))
        return weft__export_refuse(x, c, "a sum over some axes of a broadcast");
    const char *data = b ? weft__export_filled(x, b, v, zero_of(x, c->x[0])) : v->name;
    weft__value y = { .name = NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), data) };
    y.counted = b ? b->b->tokens : 1;
    for (int i = b ? b->axes : 0; i < v->axes; i++)
        y.counted *= v->dim[i].rows ? v->dim[i].rows : v->dim[i].joined ? 1 : v->dim[i].n;
    y.count = counted(x, b, v, 0, v->axes);
    weft__export_set(x, c->y[0], y);
    return true;
}
static bool sum(weft__export *x, const weft_call *c)
{
    along k;
    if (!c->op->describe)
        return sum_all(x, c);
    if (!along_of(x, c, &k))
        return false;
    weft__value y = reduced(&k, c->x[0]->f.rank);
    y.name = NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), filled(x, &k, zero_of(x, c->x[0])),
                       INTS(x, k.at));
    if (!k.b && k.v->dim[k.at].symbol)
        y.count = counted(x, NULL, k.v, k.at, k.at + 1), y.counted = k.v->dim[k.at].n;
    weft__export_set(x, c->y[0], y);
    return true;
}

/* Repeats a row of each sequence for its tokens, or an axis of extent 1. */
static bool broadcast(weft__export *x, const weft_call *c)
{
    const weft__along *a = c->op->describe ? c->attributes : NULL;
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    if (a && a->tokens) {
        weft__export_batch *b = weft__export_of(x, c->y[0]);
        b = b ? b : weft__export_root(x, to->batch); /* only its lengths matter */
        if (!b || y.first[1] != b->axes - 1)
            return weft__export_refuse(x, c, "its input has not one row for each sequence");
        y.name = weft__export_unsqueeze(x, weft__export_in(x, c, 0)->name, 0);
        weft__export_remove(&y, f->rank, 0);
        weft__export_insert(&y, f->rank - 1, 0, b->axes, b->rows);
    } else if (a) {
        y.name = weft__export_unsqueeze(x, weft__export_in(x, c, 0)->name, y.first[a->axis]);
        weft__export_insert(&y, f->rank, a->axis, 1, &(weft__dim){ .n = to->size[a->axis] });
    } else {
        y.name = weft__export_in(x, c, 0)->name;
        for (int i = 0; i < f->rank; i++)
            if (f->size[i] != to->size[i + to->rank - f->rank])
                y.dim[y.first[i]].n = to->size[i + to->rank - f->rank];
        for (int i = to->rank - f->rank - 1; i >= 0; i--)
            weft__export_insert(&y, to->rank - 1 - i, 0, 1, &(weft__dim){ .n = to->size[i] });
        if (to->batch && !f->batch)
            return weft__export_refuse(x, c, "a plain tensor that is repeated for rows of a batch");
    }
    y.name = weft__export_expand(x, y.name, y.axes, y.dim);
    weft__export_set(x, c->y[0], y);
    return true;
}

/* Softmax and its kin. Where the mask or the padding is 0 the result is 0. */
static bool softmax(weft__export *x, const weft_call *c)
{
    along k;
    if (!along_of(x, c, &k))
        return false;
    const char *low = weft__export_number_of(x, -(double)INFINITY), *zero = weft__export_number_of(x, 0),
               *name, *hidden = NULL;
    const bool reduces = !strcmp(c->op->name, "logsumexp");
    weft__value v = weft__export_like(k.v, filled(x, &k, reduces ? low : weft__export_number_of(x, -1e30)));
    if (c->n > 1) {
        hidden = NODE(x, "Equal", weft__export_in(x, c, 1)->name, zero);
        v.name = NODE(x, "Where", hidden, reduces ? low : weft__export_number_of(x, -1e30), v.name);
    }
    if (reduces) {
        int64_t axis = k.at;
        v = reduced(&k, c->x[0]->f.rank);
        name = c->n > 1 ? NODE(x, "Where", hidden, low, filled(x, &k, low)) : filled(x, &k, low);
        v.name = NODE_WITH(x, "ReduceLogSumExp",
                           ATTRIBUTES({ "axes", 'I', .n = 1, .ints = &axis }, INT("keepdims", 0)), name);
        weft__export_set(x, c->y[0], v);
        return true;
    }
    name =
        NODE_WITH(x, *c->op->name == 's' ? "Softmax" : "LogSoftmax", ATTRIBUTES(INT("axis", k.at)), v.name);
    v.name = hidden ? NODE(x, "Where", hidden, zero, name) : name;
    return weft__export_done(x, c, &v, k.b ? weft__export_filled(x, k.b, &v, zero) : v.name);
}

static bool cumsum(weft__export *x, const weft_call *c)
{
    along k;
    if (!along_of(x, c, &k))
        return false;
    return weft__export_done(x, c, k.v,
                             NODE_WITH(x, "CumSum", ATTRIBUTES(INT("reverse", k.a->flag)),
                                       filled(x, &k, weft__export_number_of(x, 0)),
                                       weft__export_int(x, k.at)));
}

static bool flip(weft__export *x, const weft_call *c)
{
    along k;
    if (!along_of(x, c, &k))
        return false;
    if (!k.b || !k.b->lengths)
        return weft__export_done(
            x, c, k.v,
            NODE(x, "Slice", k.v->name, INTS(x, MOST), INTS(x, -MOST), INTS(x, k.at), INTS(x, -1)));
    if (k.b->axes != 2)
        return weft__export_refuse(x, c, "pairs");
    const char *last = NODE(x, "Sub", k.b->lengths, weft__export_int(x, 1));
    const char *row =
        NODE(x, "Max", NODE(x, "Sub", last, weft__export_position(x, k.b)), weft__export_int(x, 0));
    return weft__export_done(x, c, k.v, weft__export_gather_time(x, k.v->name, row, k.v));
}

/* The result for the caller is the value, or the index for argmax and argmin. An empty sequence gives 0. */
static bool extreme(weft__export *x, const weft_call *c)
{
    along k;
    const bool most = strstr(c->op->name, "max"), index = *c->op->name == 'a';
    if (!along_of(x, c, &k))
        return false;
    if (k.b && c->x[0]->f.type != WEFT_REAL)
        return weft__export_refuse(x, c, "the largest int of each sequence");
    int64_t axis = k.at;
    weft__value y = reduced(&k, c->x[0]->f.rank);
    if (index)
        y.name = NODE_WITH(x, most ? "ArgMax" : "ArgMin", ATTRIBUTES(INT("axis", axis), INT("keepdims", 0)),
                           k.v->name);
    else
        y.name =
            NODE_WITH(x, most ? "ReduceMax" : "ReduceMin",
                      ATTRIBUTES({ "axes", 'I', .n = 1, .ints = &axis }, INT("keepdims", 0)),
                      filled(x, &k, weft__export_number_of(x, most ? -(double)INFINITY : (double)INFINITY)));
    if (k.b && k.b->lengths) {
        const char *some = NODE(x, "Greater", k.b->lengths, weft__export_int(x, 0));
        for (int i = k.b->axes - 1; i < y.axes; i++)
            some = weft__export_unsqueeze(x, some, -1);
        y.name = NODE(x, "Where", some, y.name, weft__export_number_of(x, 0));
    }
    weft__export_set(x, c->y[0], y);
    return true;
}

static bool topk(weft__export *x, const weft_call *c)
{
    const weft__top *t = c->attributes;
    const char *out[2];
    weft__value v = *weft__export_in(x, c, 0);
    const int at = weft__export_axis(x, c, &v, t->along.axis);
    if (at < 0)
        return false;
    v.dim[at] = (weft__dim){ .n = t->k };
    NODE_OUT(x, "TopK", ATTRIBUTES(INT("axis", at)), out, 2, v.name, INTS(x, t->k));
    weft__export_set(x, c->y[1], weft__export_like(&v, out[0])); /* an index_select of it gives the values */
    return weft__export_done(x, c, &v, out[1]);
}

static bool one_hot(weft__export *x, const weft_call *c)
{
    const float values[] = { 0, 1 };
    const int64_t two = 2, classes = *(const int64_t *)c->attributes;
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    const int rank = c->x[0]->f.rank;
    weft__export_insert(&y, rank, rank, 1, &(weft__dim){ .n = classes });
    return weft__export_done(
        x, c, &y,
        NODE(x, "OneHot", weft__export_in(x, c, 0)->name, weft__export_int(x, classes),
             weft__export_initializer(x, NULL, WEFT__EXPORT_FLOAT, 1, &two, values, sizeof values)));
}

/* The elements of each row by a column number. */
static bool gather(weft__export *x, const weft_call *c)
{
    if (c->op->describe)
        return weft__export_refuse(x, c, "it is part of a gradient");
    const char *column = weft__export_unsqueeze(x, weft__export_in(x, c, 1)->name, -1);
    const char *one =
        NODE_WITH(x, "GatherElements", ATTRIBUTES(INT("axis", -1)), weft__export_in(x, c, 0)->name, column);
    return weft__export_done(x, c, weft__export_in(x, c, 1), weft__export_squeeze(x, one, -1));
}

const weft__export_entry weft__export_axes[] = {
    { "sum", sum },           { "broadcast", broadcast }, { "softmax", softmax }, { "log_softmax", softmax },
    { "logsumexp", softmax }, { "cumsum", cumsum },       { "flip", flip },       { "max", extreme },
    { "min", extreme },       { "argmax", extreme },      { "argmin", extreme },  { "topk", topk },
    { "one_hot", one_hot },   { "gather", gather },       { NULL, NULL }
};
