/* export_shapes.c - translates operators that move numbers: views, layouts, permute, concat, slice. */
#include "io/onnx/export.h"

/* ---- views ---- */
/* Swaps the first two ONNX axes: [time, batch, ..] and [batch, time, ..]. */
static weft__value swapped(weft__export *x, const weft__value *v)
{
    weft__value y = weft__export_like(v, NULL);
    int order[WEFT__EXPORT_RANK] = { 1, 0 };
    for (int i = 2; i < v->axes; i++)
        order[i] = i;
    y.name = weft__export_transpose(x, v->name, v->axes, order);
    y.dim[0] = v->dim[1], y.dim[1] = v->dim[0];
    return y;
}

/* Returns whether axis 0 is the rows of the batch, in one group. */
static bool has_rows(const weft__value *v, const weft__export_batch *b)
{
    bool same = b && v->first[1] == b->axes;
    for (int i = 0; same && i < b->axes; i++)
        same = v->dim[i].symbol == b->rows[i].symbol && (b->rows[i].symbol || v->dim[i].n == b->rows[i].n);
    return same;
}

/* Turns a plain [n, T, ..], or [n, ..] as one step, into the rows of a batch. PADDED: both forms have the
 * axis T. */
static bool view_as_batch(weft__export *x, const weft_call *c)
{
    static const char unclear[] =
        "its rows also belong to another batch; trace with sequences of different lengths";
    const weft__form *y = &c->y[0]->f;
    weft__value v = *weft__export_in(x, c, 0), out;
    const int rank = c->x[0]->f.rank;
    const bool steps = y->layout == WEFT_PADDED || rank == y->rank + 1;
    if (v.first[1] != 1 || (steps && v.first[2] != 2) || (!steps && y->batch->longest != 1))
        return weft__export_refuse(x, c, "rows that are neither sequences nor those of its batch");
    const weft__dim step = { .n = 1 };
    if (!steps) {
        v.name = weft__export_unsqueeze(x, v.name, 0);
        weft__export_insert(&v, rank, 1, 1, &step);
        v.dim[1] = v.dim[0], v.dim[0] = step;
    } else
        v = swapped(x, &v);
    weft__export_batch *b = y->layout == WEFT_PADDED ? weft__export_root(x, y->batch) :
                                                       weft__export_equal(x, y->batch, v.dim[0], v.dim[1]);
    if (!b || (y->layout == WEFT_PADDED && !b->lengths))
        return weft__export_refuse(x, c, unclear);
    if (y->layout == WEFT_PADDED) {
        weft__symbol *time = &x->symbol[b->rows[0].symbol - 1];
        if (!time->source)
            time->source = v.name, time->axis = 0;
    }
    weft__export_remove(&v, rank + !steps, 0), weft__export_remove(&v, rank + !steps - 1, 0);
    weft__export_insert(&v, rank + !steps - 2, 0, b->axes, b->rows);
    /* The axes after the rows may also be reshaped. The value has rank `rows, rest`. */
    const int axes = rank + !steps - 1, target = y->layout == WEFT_PADDED ? y->rank - 1 : y->rank;
    int64_t size[WEFT_RANK] = { 0 };
    for (int i = 1; i < target; i++)
        size[i] = y->size[i + (y->layout == WEFT_PADDED)];
    if (!weft__export_reshape(x, c, &v, axes, 1, target, size, &out))
        return false;
    weft__export_set(x, c->y[0], out);
    return true;
}

/* The rows of a batch become plain: [n, T, ..], or [n, ..] of one step, or rows as they are. A value of the
 * layout PADDED has the axes of one without padding. */
static bool view_as_plain(weft__export *x, const weft_call *c)
{
    const weft__form *f = &c->x[0]->f, *y = &c->y[0]->f;
    weft__export_batch *b = weft__export_of(x, c->x[0]);
    const weft__value *v = weft__export_in(x, c, 0);
    weft__value out;
    const int rank = f->layout == WEFT_PADDED ? f->rank - 1 : f->rank;
    const bool one = !b->lengths && !b->rows[0].symbol && b->rows[0].n == 1;
    const bool apart = f->layout == WEFT_PADDED || (!b->lengths && !one && y->rank > 1 &&
                                                    y->size[0] == b->b->n && y->size[0] != f->size[0]);
    if (b->axes != 2 || (!one && !apart))
        out = *v;
    else if (one) {
        out = weft__export_like(v, weft__export_squeeze(x, v->name, 0));
        weft__export_remove(&out, rank, 0);
        weft__export_insert(&out, rank - 1, 0, 1, &b->rows[1]);
        out.dim[0].joined = false;
    } else {
        out = swapped(x, v);
        const weft__dim two[] = { out.dim[0], out.dim[1] };
        weft__export_remove(&out, rank, 0);
        weft__export_insert(&out, rank - 1, 0, 1, &two[1]), weft__export_insert(&out, rank, 0, 1, two);
        out.dim[0].joined = false, out.dim[1].rows = 0;
        return weft__export_reshape(x, c, &out, rank + 1, 0, y->rank, y->size, &out) &&
               weft__export_done(x, c, &out, out.name);
    }
    return weft__export_reshape(x, c, &out, rank, 0, y->rank, y->size, &out) &&
           weft__export_done(x, c, &out, out.name);
}

static bool view(weft__export *x, const weft_call *c)
{
    const weft__form *f = &c->x[0]->f, *y = &c->y[0]->f;
    const weft__value *v = weft__export_in(x, c, 0);
    weft__value out;
    if (f->batch && !y->batch)
        return view_as_plain(x, c);
    if (!f->batch && y->batch && !has_rows(v, weft__export_of(x, c->y[0])))
        return view_as_batch(x, c);
    if (y->batch && f->batch && f->batch != y->batch)
        return weft__export_refuse(x, c, "a view as another batch");
    if (y->layout == WEFT_PADDED)
        return weft__export_done(x, c, v, v->name);
    return weft__export_reshape(x, c, v, f->rank, y->batch ? 1 : 0, y->rank, y->size, &out) &&
           weft__export_done(x, c, &out, out.name);
}

/* Moves the data of each sequence to the end of the time, or back to its begin. */
static const char *shifted(weft__export *x, weft__export_batch *b, const weft__value *v, bool to_end)
{
    const char *time = weft__export_size(x, b->rows[0]),
               *pads = NODE(x, "Sub", time, weft__export_lengths(x, b));
    const char *row = NODE(x, to_end ? "Sub" : "Add", weft__export_position(x, b), pads);
    return weft__export_gather_time(x, v->name, NODE(x, "Mod", NODE(x, "Add", row, time), time), v);
}

/* Layouts are one value, except that PADDED has a side of the data and a number in the padding. */
static bool to_layout(weft__export *x, const weft_call *c)
{
    const weft__arrangement *a = c->attributes;
    const weft__form *f = &c->x[0]->f, *y = &c->y[0]->f;
    weft__export_batch *b = weft__export_of(x, c->x[0]);
    weft__value v = *weft__export_in(x, c, 0);
    const bool from_end = f->layout == WEFT_PADDED && f->align == WEFT_ALIGN_RIGHT;
    const bool to_end = y->layout == WEFT_PADDED && y->align == WEFT_ALIGN_RIGHT;
    if (y->layout != WEFT_PADDED && !from_end)
        return weft__export_done(x, c, &v, v.name);
    if (b->axes != 2)
        return weft__export_refuse(x, c, "padding of pairs");
    if (from_end && b->lengths)
        v.name = shifted(x, b, &v, false);
    if (y->layout == WEFT_PADDED)
        v.name = weft__export_filled(x, b, &v,
                                     y->type == WEFT_REAL ? weft__export_number_of(x, (double)a->fill) :
                                                            weft__export_int(x, (int64_t)a->fill));
    if (to_end && b->lengths)
        v.name = shifted(x, b, &v, true);
    return weft__export_done(x, c, &v, v.name);
}

static bool permute(weft__export *x, const weft_call *c)
{
    const weft__axis_order *o = c->attributes;
    const weft__value *v = weft__export_in(x, c, 0);
    weft__value y = { .axes = 0 };
    int order[WEFT__EXPORT_RANK];
    for (int i = 0; i < c->x[0]->f.rank; i++) {
        const int from = v->first[o->axis[i]], n = v->first[o->axis[i] + 1] - from;
        for (int k = 0; k < n; k++)
            order[y.axes + k] = from + k;
        weft__export_insert(&y, i, i, n, v->dim + from);
    }
    return weft__export_done(x, c, &y, weft__export_transpose(x, v->name, y.axes, order));
}

/* ---- parts ---- */
static bool concat(weft__export *x, const weft_call *c)
{
    const int axis = *(const int *)c->attributes,
              at = weft__export_axis(x, c, weft__export_in(x, c, 0), axis);
    const char **name = weft__export_memory(x, (size_t)c->n * sizeof *name);
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    bool dynamic = false;
    int64_t n = 0;
    for (int i = 0; name && at >= 0 && i < c->n; i++) {
        const weft__value *v = weft__export_in(x, c, i);
        if (weft__export_axis(x, c, v, axis) < 0)
            return false;
        for (int k = 0; k < v->axes; k++)
            if (v->axes != y.axes || (k != at && v->dim[k].symbol != y.dim[k].symbol))
                return weft__export_refuse(x, c,
                                           "an axis is dynamic in one input only; trace with numbers of "
                                           "sequences and steps that no other axis has");
        name[i] = v->name, n += v->dim[at].n, dynamic |= v->dim[at].symbol != 0;
    }
    if (!name || at < 0)
        return false;
    y.name = weft__export_node(x, "Concat", name, c->n, ATTRIBUTES(INT("axis", at)), NULL, 1);
    y.dim[at] = dynamic ? weft__export_symbol(x, "time", n, y.name, at) : (weft__dim){ .n = n };
    weft__export_set(x, c->y[0], y);
    return true;
}

static bool concat_lists(weft__export *x, const weft_call *c)
{
    const int n = c->n / c->m;
    const char **name = weft__export_memory(x, (size_t)c->n * sizeof *name);
    for (int l = 0; name && l < c->m; l++) {
        weft__value y = weft__export_like(weft__export_in(x, c, l * n), NULL);
        for (int i = 0; i < n; i++)
            name[i] = weft__export_in(x, c, l * n + i)->name;
        y.dim[0].n *= n;
        y.name = weft__export_node(x, "Concat", name, n, ATTRIBUTES(INT("axis", 0)), NULL, 1);
        weft__export_set(x, c->y[l], y);
    }
    return true;
}

static bool slice(weft__export *x, const weft_call *c)
{
    const weft__part *p = c->attributes;
    const weft__value *v = weft__export_in(x, c, 0);
    weft__value y = weft__export_like(v, v->name);
    if (p->from == 0 && p->to == c->x[0]->f.size[p->axis])
        return weft__export_done(x, c, v, v->name);
    const int at = weft__export_axis(x, c, v, p->axis);
    if (at < 0)
        return false;
    if (v->dim[at].symbol)
        return weft__export_refuse(x, c, "a part of a dynamic axis");
    y.dim[at].n = p->to - p->from;
    return weft__export_done(x, c, &y, weft__export_slice(x, v->name, at, p->from, p->to));
}

const weft__export_entry weft__export_shapes[] = { { "view", view },
                                                   { "to_layout", to_layout },
                                                   { "permute", permute },
                                                   { "transpose", permute },
                                                   { "concat", concat },
                                                   { "stack", concat },
                                                   { "concat_lists", concat_lists },
                                                   { "slice", slice },
                                                   { NULL, NULL } };
