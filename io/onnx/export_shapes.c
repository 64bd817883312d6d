/* export_shapes.c - translates operators that move numbers, or work along an axis: views, layouts, permute,
 * concat, slice, gather, sums, softmax, maxima. */
#include <math.h>
#include <string.h>
#include "io/onnx/export.h"

enum { MOST = INT32_MAX };
static const weft__value *in(weft__onnx *x, const weft_call *c, int i) { return weft__onnx_value(x, c->x[i]); }
static weft__onnx_batch *batch_of(weft__onnx *x, const weft_tensor *t)
{
    return t->f.batch ? weft__onnx_batch_of(x, t->f.batch) : NULL;
}
static bool done(weft__onnx *x, const weft_call *c, const weft__value *v, const char *name)
{
    weft__onnx_set(x, c->y[0], weft__onnx_like(v, name));
    return true;
}

/* ---- views ---- */
/* Swaps the first two ONNX axes: [time, batch, ..] and [batch, time, ..]. */
static weft__value swapped(weft__onnx *x, const weft__value *v)
{
    weft__value y = weft__onnx_like(v, NULL);
    int order[WEFT__ONNX_RANK] = { 1, 0 };
    for (int i = 2; i < v->axes; i++)
        order[i] = i;
    y.name = weft__onnx_transpose(x, v->name, v->axes, order);
    y.dim[0] = v->dim[1], y.dim[1] = v->dim[0];
    return y;
}

/* Returns whether axis 0 is the rows of the batch, in one group. */
static bool has_rows(const weft__value *v, const weft__onnx_batch *b)
{
    bool same = b && v->first[1] == b->axes;
    for (int i = 0; same && i < b->axes; i++)
        same = v->dim[i].symbol == b->rows[i].symbol && (b->rows[i].symbol || v->dim[i].n == b->rows[i].n);
    return same;
}

/* A plain [n, T, ..], or [n, ..] as one step, becomes the rows of a batch. PADDED: both forms have the axis T. */
static bool view_as_batch(weft__onnx *x, const weft_call *c)
{
    static const char unclear[] = "its rows also belong to another batch; trace with sequences of different lengths";
    const weft__form *y = &c->y[0]->f;
    weft__value v = *in(x, c, 0), out;
    const int rank = c->x[0]->f.rank;
    const bool steps = y->layout == WEFT_PADDED || rank == y->rank + 1;
    if (v.first[1] != 1 || (steps && v.first[2] != 2) || (!steps && y->batch->longest != 1))
        return weft__onnx_refuse(x, c, "rows that are neither sequences nor those of its batch");
    const weft__dim step = { .n = 1 };
    if (!steps) {
        v.name = weft__onnx_unsqueeze(x, v.name, 0);
        weft__onnx_insert(&v, rank, 1, 1, &step);
        v.dim[1] = v.dim[0], v.dim[0] = step;
    } else
        v = swapped(x, &v);
    weft__onnx_batch *b = y->layout == WEFT_PADDED ? weft__onnx_root(x, y->batch) :
                                                     weft__onnx_equal(x, y->batch, v.dim[0], v.dim[1]);
    if (!b || (y->layout == WEFT_PADDED && !b->lengths))
        return weft__onnx_refuse(x, c, unclear);
    if (y->layout == WEFT_PADDED) {
        weft__symbol *time = &x->symbol[b->rows[0].symbol - 1];
        if (!time->source)
            time->source = v.name, time->axis = 0;
    }
    weft__onnx_remove(&v, rank + !steps, 0), weft__onnx_remove(&v, rank + !steps - 1, 0);
    weft__onnx_insert(&v, rank + !steps - 2, 0, b->axes, b->rows);
    /* The axes after the rows may also be reshaped. The value has rank `rows, rest`. */
    const int axes = rank + !steps - 1, target = y->layout == WEFT_PADDED ? y->rank - 1 : y->rank;
    int64_t size[WEFT_RANK] = { 0 };
    for (int i = 1; i < target; i++)
        size[i] = y->size[i + (y->layout == WEFT_PADDED)];
    if (!weft__onnx_reshape(x, c, &v, axes, 1, target, size, &out))
        return false;
    weft__onnx_set(x, c->y[0], out);
    return true;
}

/* The rows of a batch become plain: [n, T, ..], or [n, ..] of one step, or rows as they are. A value of the
 * layout PADDED has the axes of one without padding. */
static bool view_as_plain(weft__onnx *x, const weft_call *c)
{
    const weft__form *f = &c->x[0]->f, *y = &c->y[0]->f;
    weft__onnx_batch *b = batch_of(x, c->x[0]);
    const weft__value *v = in(x, c, 0);
    weft__value out;
    const int rank = f->layout == WEFT_PADDED ? f->rank - 1 : f->rank;
    const bool one = !b->lengths && !b->rows[0].symbol && b->rows[0].n == 1;
    const bool apart = f->layout == WEFT_PADDED || (!b->lengths && !one && y->rank > 1 && y->size[0] == b->b->n &&
                                                    y->size[0] != f->size[0]);
    if (b->axes != 2 || (!one && !apart))
        out = *v;
    else if (one) {
        out = weft__onnx_like(v, weft__onnx_squeeze(x, v->name, 0));
        weft__onnx_remove(&out, rank, 0);
        weft__onnx_insert(&out, rank - 1, 0, 1, &b->rows[1]);
        out.dim[0].joined = false;
    } else {
        out = swapped(x, v);
        const weft__dim two[] = { out.dim[0], out.dim[1] };
        weft__onnx_remove(&out, rank, 0);
        weft__onnx_insert(&out, rank - 1, 0, 1, &two[1]), weft__onnx_insert(&out, rank, 0, 1, two);
        out.dim[0].joined = false, out.dim[1].rows = 0;
        return weft__onnx_reshape(x, c, &out, rank + 1, 0, y->rank, y->size, &out) &&
               done(x, c, &out, out.name);
    }
    return weft__onnx_reshape(x, c, &out, rank, 0, y->rank, y->size, &out) && done(x, c, &out, out.name);
}

static bool view(weft__onnx *x, const weft_call *c)
{
    const weft__form *f = &c->x[0]->f, *y = &c->y[0]->f;
    const weft__value *v = in(x, c, 0);
    weft__value out;
    if (f->batch && !y->batch)
        return view_as_plain(x, c);
    if (!f->batch && y->batch && !has_rows(v, batch_of(x, c->y[0])))
        return view_as_batch(x, c);
    if (y->batch && f->batch && f->batch != y->batch)
        return weft__onnx_refuse(x, c, "a view as another batch");
    if (y->layout == WEFT_PADDED)
        return done(x, c, v, v->name);
    return weft__onnx_reshape(x, c, v, f->rank, y->batch ? 1 : 0, y->rank, y->size, &out) &&
           done(x, c, &out, out.name);
}

/* Moves the data of each sequence to the end of the time, or back to its begin. */
static const char *shifted(weft__onnx *x, weft__onnx_batch *b, const weft__value *v, bool to_end)
{
    const char *time = weft__onnx_size(x, b->rows[0]), *pads = NODE(x, "Sub", time, weft__onnx_lengths(x, b));
    const char *row = NODE(x, to_end ? "Sub" : "Add", weft__onnx_position(x, b), pads);
    return weft__onnx_gather_time(x, v->name, NODE(x, "Mod", NODE(x, "Add", row, time), time), v);
}

/* Layouts are one value, except that PADDED has a side of the data and a number in the padding. */
static bool to_layout(weft__onnx *x, const weft_call *c)
{
    const weft__arrangement *a = c->attributes;
    const weft__form *f = &c->x[0]->f, *y = &c->y[0]->f;
    weft__onnx_batch *b = batch_of(x, c->x[0]);
    weft__value v = *in(x, c, 0);
    const bool from_end = f->layout == WEFT_PADDED && f->align == WEFT_ALIGN_RIGHT;
    const bool to_end = y->layout == WEFT_PADDED && y->align == WEFT_ALIGN_RIGHT;
    if (y->layout != WEFT_PADDED && !from_end)
        return done(x, c, &v, v.name);
    if (b->axes != 2)
        return weft__onnx_refuse(x, c, "padding of pairs");
    if (from_end && b->lengths)
        v.name = shifted(x, b, &v, false);
    if (y->layout == WEFT_PADDED)
        v.name = weft__onnx_filled(x, b, &v, y->type == WEFT_REAL ? weft__onnx_number(x, (double)a->fill) :
                                                                    weft__onnx_int(x, (int64_t)a->fill));
    if (to_end && b->lengths)
        v.name = shifted(x, b, &v, true);
    return done(x, c, &v, v.name);
}

static bool permute(weft__onnx *x, const weft_call *c)
{
    const weft__axis_order *o = c->attributes;
    const weft__value *v = in(x, c, 0);
    weft__value y = { .axes = 0 };
    int order[WEFT__ONNX_RANK];
    for (int i = 0; i < c->x[0]->f.rank; i++) {
        const int from = v->first[o->axis[i]], n = v->first[o->axis[i] + 1] - from;
        for (int k = 0; k < n; k++)
            order[y.axes + k] = from + k;
        weft__onnx_insert(&y, i, i, n, v->dim + from);
    }
    return done(x, c, &y, weft__onnx_transpose(x, v->name, y.axes, order));
}

/* ---- parts ---- */
/* Returns the ONNX axis of an axis, or -1, with a refusal, if that is several. */
static int single_axis(weft__onnx *x, const weft_call *c, const weft__value *v, int axis)
{
    if (v->first[axis + 1] - v->first[axis] == 1)
        return v->first[axis];
    weft__onnx_refuse(x, c, "it works along the rows of a whole batch");
    return -1;
}

static bool concat(weft__onnx *x, const weft_call *c)
{
    const int axis = *(const int *)c->attributes, at = single_axis(x, c, in(x, c, 0), axis);
    const char **name = weft__onnx_memory(x, (size_t)c->n * sizeof *name);
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    bool dynamic = false;
    int64_t n = 0;
    for (int i = 0; name && at >= 0 && i < c->n; i++) {
        const weft__value *v = in(x, c, i);
        if (single_axis(x, c, v, axis) < 0)
            return false;
        for (int k = 0; k < v->axes; k++)
            if (v->axes != y.axes || (k != at && v->dim[k].symbol != y.dim[k].symbol))
                return weft__onnx_refuse(x, c, "an axis is dynamic in one input only; trace with numbers of "
                                               "sequences and steps that no other axis has");
        name[i] = v->name, n += v->dim[at].n, dynamic |= v->dim[at].symbol != 0;
    }
    if (!name || at < 0)
        return false;
    y.name = weft__onnx_node(x, "Concat", name, c->n, ATTRIBUTES(INT("axis", at)), NULL, 1);
    y.dim[at] = dynamic ? weft__onnx_symbol(x, "time", n, y.name, at) : (weft__dim){ .n = n };
    weft__onnx_set(x, c->y[0], y);
    return true;
}

static bool concat_lists(weft__onnx *x, const weft_call *c)
{
    const int n = c->n / c->m;
    const char **name = weft__onnx_memory(x, (size_t)c->n * sizeof *name);
    for (int l = 0; name && l < c->m; l++) {
        weft__value y = weft__onnx_like(in(x, c, l * n), NULL);
        for (int i = 0; i < n; i++)
            name[i] = in(x, c, l * n + i)->name;
        y.dim[0].n *= n;
        y.name = weft__onnx_node(x, "Concat", name, n, ATTRIBUTES(INT("axis", 0)), NULL, 1);
        weft__onnx_set(x, c->y[l], y);
    }
    return true;
}

static bool slice(weft__onnx *x, const weft_call *c)
{
    const weft__part *p = c->attributes;
    const weft__value *v = in(x, c, 0);
    weft__value y = weft__onnx_like(v, v->name);
    if (p->from == 0 && p->to == c->x[0]->f.size[p->axis])
        return done(x, c, v, v->name);
    const int at = single_axis(x, c, v, p->axis);
    if (at < 0)
        return false;
    if (v->dim[at].symbol)
        return weft__onnx_refuse(x, c, "a part of a dynamic axis");
    y.dim[at].n = p->to - p->from;
    return done(x, c, &y, weft__onnx_slice(x, v->name, at, p->from, p->to));
}

/* ---- along an axis ---- */
/* What an operator along an axis needs: its ONNX axis, the batch if it is tokens, otherwise NULL. */
typedef struct along { const weft__along *a; const weft__value *v; weft__onnx_batch *b; int at; } along;
static bool along_of(weft__onnx *x, const weft_call *c, along *k)
{
    k->a = c->attributes, k->v = in(x, c, 0);
    k->b = k->a->tokens ? batch_of(x, c->x[0]) : NULL;
    k->at = k->b ? 0 : single_axis(x, c, k->v, k->a->axis);
    return k->at >= 0;
}
/* Returns the value without that axis; over tokens with an axis for the sequences. */
static weft__value reduced(const along *k, int rank)
{
    weft__value y = weft__onnx_like(k->v, NULL);
    weft__onnx_remove(&y, rank, k->a->axis);
    if (k->b) {
        weft__onnx_insert(&y, rank - 1, 0, k->b->axes - 1, k->b->rows + 1);
        y.dim[0].joined = false, y.dim[0].rows = k->b->pairs ? k->b->a->tokens : 0;
    }
    return y;
}
static const char *filled(weft__onnx *x, const along *k, const char *fill)
{
    return k->b ? weft__onnx_filled(x, k->b, k->v, fill) : k->v->name;
}
static const char *zero_of(weft__onnx *x, const weft_tensor *t)
{
    return t->f.type == WEFT_REAL ? weft__onnx_number(x, 0) : weft__onnx_int(x, 0);
}

/* Returns the number of rows of data, or the product of dynamic extents, as a float. */
static const char *counted(weft__onnx *x, weft__onnx_batch *b, const weft__value *v, int from, int to)
{
    const char *n = b && b->lengths ? NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), b->lengths) : NULL;
    for (int i = n ? b->axes : from; i < to; i++) {
        const char *size = weft__onnx_squeeze(x, weft__onnx_size(x, v->dim[i]), 0);
        n = n ? NODE(x, "Mul", n, size) : size;
    }
    return weft__onnx_cast(x, n, WEFT__ONNX_FLOAT);
}

static bool sum_all(weft__onnx *x, const weft_call *c)
{
    const weft__value *v = in(x, c, 0);
    weft__onnx_batch *b = batch_of(x, c->x[0]);
    if (c->y[0]->f.rank || c->x[0]->f.layout == WEFT_PADDED || (b && b->pairs))
        return weft__onnx_refuse(x, c, "a sum over some axes of a broadcast");
    const char *data = b ? weft__onnx_filled(x, b, v, zero_of(x, c->x[0])) : v->name;
    weft__value y = { .name = NODE_WITH(x, "ReduceSum", ATTRIBUTES(INT("keepdims", 0)), data) };
    y.counted = b ? b->b->tokens : 1;
    for (int i = b ? b->axes : 0; i < v->axes; i++)
        y.counted *= v->dim[i].rows ? v->dim[i].rows : v->dim[i].joined ? 1 : v->dim[i].n;
    y.count = counted(x, b, v, 0, v->axes);
    weft__onnx_set(x, c->y[0], y);
    return true;
}
static bool sum(weft__onnx *x, const weft_call *c)
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
    weft__onnx_set(x, c->y[0], y);
    return true;
}

/* Repeats a row of each sequence for its tokens, or an axis of extent 1. */
static bool broadcast(weft__onnx *x, const weft_call *c)
{
    const weft__along *a = c->op->describe ? c->attributes : NULL;
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    if (a && a->tokens) {
        weft__onnx_batch *b = batch_of(x, c->y[0]);
        if (!b || y.first[1] != b->axes - 1)
            return weft__onnx_refuse(x, c, "its batch has no lengths that the model knows");
        y.name = weft__onnx_unsqueeze(x, in(x, c, 0)->name, 0);
        weft__onnx_remove(&y, f->rank, 0);
        weft__onnx_insert(&y, f->rank - 1, 0, b->axes, b->rows);
    } else if (a) {
        y.name = weft__onnx_unsqueeze(x, in(x, c, 0)->name, y.first[a->axis]);
        weft__onnx_insert(&y, f->rank, a->axis, 1, &(weft__dim){ .n = to->size[a->axis] });
    } else {
        y.name = in(x, c, 0)->name;
        for (int i = 0; i < f->rank; i++)
            if (f->size[i] != to->size[i + to->rank - f->rank])
                y.dim[y.first[i]].n = to->size[i + to->rank - f->rank];
        for (int i = to->rank - f->rank - 1; i >= 0; i--)
            weft__onnx_insert(&y, to->rank - 1 - i, 0, 1, &(weft__dim){ .n = to->size[i] });
        if (to->batch && !f->batch)
            return weft__onnx_refuse(x, c, "a plain tensor that is repeated for rows of a batch");
    }
    y.name = weft__onnx_expand(x, y.name, y.axes, y.dim);
    weft__onnx_set(x, c->y[0], y);
    return true;
}

/* Softmax and its kin. Where the mask or the padding is 0 the result is 0. */
static bool softmax(weft__onnx *x, const weft_call *c)
{
    along k;
    if (!along_of(x, c, &k))
        return false;
    const char *low = weft__onnx_number(x, -(double)INFINITY), *zero = weft__onnx_number(x, 0), *name, *hidden = NULL;
    const bool reduces = !strcmp(c->op->name, "logsumexp");
    weft__value v = weft__onnx_like(k.v, filled(x, &k, reduces ? low : weft__onnx_number(x, -1e30)));
    if (c->n > 1) {
        hidden = NODE(x, "Equal", in(x, c, 1)->name, zero);
        v.name = NODE(x, "Where", hidden, reduces ? low : weft__onnx_number(x, -1e30), v.name);
    }
    if (reduces) {
        int64_t axis = k.at;
        v = reduced(&k, c->x[0]->f.rank);
        name = c->n > 1 ? NODE(x, "Where", hidden, low, filled(x, &k, low)) : filled(x, &k, low);
        v.name = NODE_WITH(x, "ReduceLogSumExp",
                           ATTRIBUTES({ "axes", 'I', .n = 1, .ints = &axis }, INT("keepdims", 0)), name);
        weft__onnx_set(x, c->y[0], v);
        return true;
    }
    name = NODE_WITH(x, *c->op->name == 's' ? "Softmax" : "LogSoftmax", ATTRIBUTES(INT("axis", k.at)), v.name);
    v.name = hidden ? NODE(x, "Where", hidden, zero, name) : name;
    return done(x, c, &v, k.b ? weft__onnx_filled(x, k.b, &v, zero) : v.name);
}

static bool cumsum(weft__onnx *x, const weft_call *c)
{
    along k;
    if (!along_of(x, c, &k))
        return false;
    return done(x, c, k.v, NODE_WITH(x, "CumSum", ATTRIBUTES(INT("reverse", k.a->flag)),
                                     filled(x, &k, weft__onnx_number(x, 0)), weft__onnx_int(x, k.at)));
}

static bool flip(weft__onnx *x, const weft_call *c)
{
    along k;
    if (!along_of(x, c, &k))
        return false;
    if (!k.b || !k.b->lengths)
        return done(x, c, k.v, NODE(x, "Slice", k.v->name, INTS(x, MOST), INTS(x, -MOST), INTS(x, k.at),
                                    INTS(x, -1)));
    if (k.b->axes != 2)
        return weft__onnx_refuse(x, c, "pairs");
    const char *last = NODE(x, "Sub", k.b->lengths, weft__onnx_int(x, 1));
    const char *row = NODE(x, "Max", NODE(x, "Sub", last, weft__onnx_position(x, k.b)), weft__onnx_int(x, 0));
    return done(x, c, k.v, weft__onnx_gather_time(x, k.v->name, row, k.v));
}

/* The result for the caller is the value, or the index for argmax and argmin. An empty sequence gives 0. */
static bool extreme(weft__onnx *x, const weft_call *c)
{
    along k;
    const bool most = strstr(c->op->name, "max"), index = *c->op->name == 'a';
    if (!along_of(x, c, &k))
        return false;
    if (k.b && c->x[0]->f.type != WEFT_REAL)
        return weft__onnx_refuse(x, c, "the largest int of each sequence");
    int64_t axis = k.at;
    weft__value y = reduced(&k, c->x[0]->f.rank);
    if (index)
        y.name = NODE_WITH(x, most ? "ArgMax" : "ArgMin", ATTRIBUTES(INT("axis", axis), INT("keepdims", 0)),
                           k.v->name);
    else
        y.name = NODE_WITH(x, most ? "ReduceMax" : "ReduceMin",
                           ATTRIBUTES({ "axes", 'I', .n = 1, .ints = &axis }, INT("keepdims", 0)),
                           filled(x, &k, weft__onnx_number(x, most ? -(double)INFINITY : (double)INFINITY)));
    if (k.b && k.b->lengths) {
        const char *some = NODE(x, "Greater", k.b->lengths, weft__onnx_int(x, 0));
        for (int i = k.b->axes - 1; i < y.axes; i++)
            some = weft__onnx_unsqueeze(x, some, -1);
        y.name = NODE(x, "Where", some, y.name, weft__onnx_number(x, 0));
    }
    weft__onnx_set(x, c->y[0], y);
    return true;
}

static bool topk(weft__onnx *x, const weft_call *c)
{
    const weft__top *t = c->attributes;
    const char *out[2];
    weft__value v = *in(x, c, 0);
    const int at = single_axis(x, c, &v, t->along.axis);
    if (at < 0)
        return false;
    v.dim[at] = (weft__dim){ .n = t->k };
    NODE_OUT(x, "TopK", ATTRIBUTES(INT("axis", at)), out, 2, v.name, INTS(x, t->k));
    weft__onnx_set(x, c->y[1], weft__onnx_like(&v, out[0]));      /* an index_select of it gives the values */
    return done(x, c, &v, out[1]);
}

static bool one_hot(weft__onnx *x, const weft_call *c)
{
    const float values[] = { 0, 1 };
    const int64_t two = 2, classes = *(const int64_t *)c->attributes;
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    const int rank = c->x[0]->f.rank;
    weft__onnx_insert(&y, rank, rank, 1, &(weft__dim){ .n = classes });
    return done(x, c, &y, NODE(x, "OneHot", in(x, c, 0)->name, weft__onnx_int(x, classes),
                               weft__onnx_initializer(x, NULL, WEFT__ONNX_FLOAT, 1, &two, values, sizeof values)));
}

/* The elements of each row by a column number. */
static bool gather(weft__onnx *x, const weft_call *c)
{
    if (c->op->describe)
        return weft__onnx_refuse(x, c, "it is part of a gradient");
    const char *column = weft__onnx_unsqueeze(x, in(x, c, 1)->name, -1);
    const char *one = NODE_WITH(x, "GatherElements", ATTRIBUTES(INT("axis", -1)), in(x, c, 0)->name, column);
    return done(x, c, in(x, c, 1), weft__onnx_squeeze(x, one, -1));
}

static const struct { const char *name; weft__onnx_translator *run; } table[] = {
    { "view", view }, { "to_layout", to_layout }, { "permute", permute }, { "transpose", permute },
    { "concat", concat }, { "stack", concat }, { "concat_lists", concat_lists }, { "slice", slice },
    { "sum", sum }, { "broadcast", broadcast }, { "softmax", softmax }, { "log_softmax", softmax },
    { "logsumexp", softmax }, { "cumsum", cumsum }, { "flip", flip }, { "max", extreme }, { "min", extreme },
    { "argmax", extreme }, { "argmin", extreme }, { "topk", topk }, { "one_hot", one_hot }, { "gather", gather }
};
weft__onnx_translator *weft__onnx_shapes(const char *operator_name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, operator_name))
            return table[i].run;
    return NULL;
}
