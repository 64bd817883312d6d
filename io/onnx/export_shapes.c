/* export_shapes.c - translates operators that move numbers: views, layouts, permute, concat, slice. */
#include "io/onnx/export.h"

/* ---- views ---- */
/* Swaps the first two ONNX axes: [time, batch, ..] and [batch, time, ..]. */
static const char *swap_axes(graph *x, const value *v)
{
    static const int64_t order[AXES] = { 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    return NODES(x, "Transpose(%s, perm=[%*p])", v->name, ITEMS(v->axes, order));
}

/* Returns whether axis 0 is the rows of the batch, in one group. */
static bool has_rows(const value *v, const batch *b)
{
    return b && v->first[1] == b->axes && same_axes(v->dim, b->rows, b->axes);
}

/* Returns the batch with all lengths equal to that time; NULL: it has other ones. */
static batch *equal_batch(graph *x, const weft_batch *b, const extent *rows)
{
    batch *k = weft__ex_batch(x, b);
    if (!k)
        return weft__ex_new_batch(x, b, 2, rows);
    return !k->lengths && same_axes(k->rows, rows, 2) ? k : NULL;
}

/* Turns a plain [n, T, ..], or [n, ..] as one step, into the rows of a batch. PADDED: both forms have the
 * axis T. */
static const char *view_as_batch(graph *x, const weft_call *c, value *v)
{
    const weft__form *to = &c->y[0]->f;
    const bool padded = to->layout == WEFT_PADDED, steps = padded || c->x[0]->f.rank == to->rank + 1;
    v->name = input(x, 0)->name;
    if (v->first[1] != 1 || (steps && v->first[2] != 2) || (!steps && to->batch->longest != 1))
        weft__ex_refuse(x, "rows that are neither sequences nor those of its batch");
    extent rows[2] = { { .n = 1 }, v->dim[0] };
    if (steps) {
        rows[0] = v->dim[1];
        v->name = swap_axes(x, input(x, 0));
        weft__ex_remove(v, 0);
    } else
        v->name = NODES(x, "Unsqueeze(%s, [0])", v->name);
    batch *b = padded ? weft__ex_root(x, to->batch) : equal_batch(x, to->batch, rows);
    if (!b || (padded && !b->lengths))
        weft__ex_refuse(
            x, "its rows also belong to another batch; trace with sequences of different lengths");
    if (padded)                                  /* to_layout makes its steps those of the batch */
        weft__ex_time_source(x, b, v->name, 0);
    extent made[2] = { b->rows[0], b->rows[1] };
    if (padded)
        made[0].symbol = rows[0].symbol, made[0].n = rows[0].n;
    weft__ex_replace(v, 2, made);
    /* The axes after the rows may also be reshaped. */
    int64_t size[WEFT_RANK] = { 0 };
    for (int i = 1; i < to->rank - padded; i++)
        size[i] = to->size[i + padded];
    return weft__ex_reshape(x, v, 1, to->rank - padded, size, v);
}

/* The rows of a batch become plain: [n, T, ..], or [n, ..] of one step, or rows as they are. */
static const char *view_as_plain(graph *x, const weft_call *c, value *v)
{
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    const batch *b = batch_of(x, c->x[0]);
    const bool one = !b->lengths && !b->rows[0].symbol && b->rows[0].n == 1,
               apart = f->layout == WEFT_PADDED || (!b->lengths && !one && to->rank > 1 &&
                                                    to->size[0] == b->b->n && to->size[0] != f->size[0]);
    v->name = input(x, 0)->name;
    if (b->axes == 2 && (one || apart)) {
        extent time = v->dim[0];
        time.rows = 0;
        v->name = one ? NODES(x, "Squeeze(%s, [0])", v->name) : swap_axes(x, input(x, 0));
        weft__ex_per_sequence(v, b);
        if (!one)
            weft__ex_insert(v, 1, 1, &time);
    }
    return weft__ex_reshape(x, v, 0, to->rank, to->size, v);
}

TRANSLATOR(view)
{
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    if (f->batch && !to->batch)
        return view_as_plain(x, c, y);
    if (!f->batch && to->batch && !has_rows(y, batch_of(x, c->y[0])))
        return view_as_batch(x, c, y);
    if (to->batch && f->batch && f->batch != to->batch)
        weft__ex_refuse(x, "a view as another batch");
    if (to->layout == WEFT_PADDED)
        return input(x, 0)->name;
    return weft__ex_reshape(x, input(x, 0), to->batch ? 1 : 0, to->rank, to->size, y);
}

/* ---- layouts ---- */
/* They are one value, but PADDED has its own steps, a side of the data and a number elsewhere. */
/* Returns the axis of the steps of a padded tensor. */
static extent padded_steps(graph *x, batch *b, int64_t n)
{
    const bool longest = !b->padded && n == b->b->longest;
    if (longest && !b->longest.symbol) {
        b->longest = weft__ex_symbol(x, "steps", n, NULL, 0);
        x->symbol[b->longest.symbol - 1].lengths = b->lengths;
    }
    extent d = b->padded ? b->rows[0] : longest ? b->longest : (extent){ .n = n };
    d.rows = b->b->tokens;
    return d;
}

/* Makes a padded value of the rows of a batch: the data at one side, elsewhere the number `fill`. */
static const char *pad(graph *x, batch *b, value *v, const weft__form *to, double fill)
{
    const bool to_end = to->align == WEFT_ALIGN_RIGHT;
    const extent steps = padded_steps(x, b, to->size[1]);
    const char *row = weft__ex_range(x, steps, 2);
    if (to_end)
        row = NODES(x, "Sub(%s, Sub(%s, %s))", row, weft__ex_size(x, steps), b->lengths);
    const char *inside = NODES(x, to_end ? "GreaterOrEqual(%s, 0)" : "Less(%s, %s)", row, b->lengths);
    if (to_end || steps.symbol != b->rows[0].symbol) {
        row = NODES(x, "Min(Max(%s, 0), Sub(%s, [1]))", row, weft__ex_size(x, b->rows[0]));
        v->name = weft__ex_gather_time(x, v, row);
    }
    v->dim[0] = steps;
    return weft__ex_where(x, inside, b->axes, v, to->type, fill);
}

/* Makes the rows of a batch of a padded value. */
static const char *unpad(graph *x, batch *b, value *v, const weft__form *f)
{
    const char *steps = weft__ex_size(x, v->dim[0]), *row = weft__ex_position(x, b);
    if (f->align == WEFT_ALIGN_RIGHT)
        row = NODES(x, "Mod(Add(%s, Sub(%s, %s)), %s)", row, steps, b->lengths, steps);
    else if (v->dim[0].symbol != b->rows[0].symbol)
        row = NODES(x, "Min(%s, Sub(%s, [1]))", row, steps);
    else
        return v->name;
    v->name = weft__ex_gather_time(x, v, row);
    v->dim[0] = b->rows[0];
    return v->name;
}

TRANSLATOR(to_layout)
{
    const weft__form *f = &c->x[0]->f, *to = &c->y[0]->f;
    batch *b = batch_of(x, c->x[0]);
    y->name = input(x, 0)->name;
    if (b->axes != 2 && (f->layout == WEFT_PADDED || to->layout == WEFT_PADDED))
        weft__ex_refuse(x, "padding of pairs");
    if (f->layout == WEFT_PADDED && b->lengths)
        y->name = unpad(x, b, y, f);
    if (to->layout == WEFT_PADDED && b->lengths)
        y->name = pad(x, b, y, to, (double)((const weft__arrangement *)c->attributes)->fill);
    return y->name;
}

TRANSLATOR(permute)
{
    const weft__axis_order *o = c->attributes;
    const value *v = input(x, 0);
    int64_t order[AXES];
    *y = (value){ 0 };
    for (int i = 0; i < v->rank; i++) {
        const int axis = o->axis[i];
        for (int k = 0; k < axes_of(v, axis); k++)
            order[y->axes + k] = v->first[axis] + k;
        weft__ex_insert(y, i, axes_of(v, axis), v->dim + v->first[axis]);
    }
    return NODES(x, "Transpose(@0, perm=[%*p])", ITEMS(y->axes, order));
}

/* ---- parts ---- */
/* Joins n inputs along an axis of y, which has the axes of the first. */
static const char *join(graph *x, int first, int n, int axis, value *y)
{
    const int at = weft__ex_axis(x, y, axis);
    const char **name = weft__ex_memory(x, (size_t)n * sizeof *name);
    extent sum = { 0 };
    for (int i = 0; i < n; i++) {
        const value *v = input(x, first + i);
        weft__ex_axis(x, v, axis);
        for (int k = 0; k < v->axes; k++)
            if (v->axes != y->axes || (k != at && v->dim[k].symbol != y->dim[k].symbol))
                weft__ex_refuse(x, weft__ex_one_dynamic);
        name[i] = v->name, sum.n += v->dim[at].n, sum.symbol |= v->dim[at].symbol;
    }
    y->name = NODES(x, "Concat(%*p, axis=%d)", ITEMS(n, name), at);
    y->dim[at] = sum.symbol ? weft__ex_symbol(x, "steps", sum.n, y->name, at) : sum;
    return y->name;
}
TRANSLATOR(concat) { return join(x, 0, c->n, *(const int *)c->attributes, y); }
TRANSLATOR(concat_lists)
{
    for (int l = 0; l < c->m; l++) {
        *y = like(input(x, l * (c->n / c->m)), NULL);
        join(x, l * (c->n / c->m), c->n / c->m, 0, y);
        set_value(x, c->y[l], *y);
    }
    return NULL;
}

TRANSLATOR(slice)
{
    const weft__part *p = c->attributes;
    const char *name = input(x, 0)->name;
    if (p->from == 0 && p->to == c->x[0]->f.size[p->axis])
        return name;
    const int at = weft__ex_axis(x, y, p->axis);
    if (y->dim[at].symbol)
        weft__ex_refuse(x, "a part of a dynamic axis");
    y->dim[at].n = p->to - p->from;
    return NODES(x, "Slice(@0, [%lld], [%lld], [%d])", (long long)p->from, (long long)p->to, at);
}

const translation weft__ex_shapes[] = {
    { "view", view, false },     { "to_layout", to_layout, false },       { "permute", permute, false },
    { "concat", concat, false }, { "concat_lists", concat_lists, false }, { "transpose", permute, false },
    { "stack", concat, false },  { "slice", slice, false },               { NULL, NULL, false }
};
