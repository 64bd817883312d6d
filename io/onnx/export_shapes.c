/* export_shapes.c - translates operators that move numbers: views, layouts, permute, concat, slice, lookups,
 * and operators that select or join rows of batches. Indices that weft makes on the host from the lengths are
 * recognised by their numbers. */
#include <string.h>
#include "io/onnx/export.h"
#include "nn/recurrent.h"

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
        made[0] = (extent){ rows[0].n, made[0].rows, rows[0].symbol, made[0].joined };
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
        name[i] = v->name;
        sum.n += v->dim[at].n;
        sum.symbol |= v->dim[at].symbol;
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
        *weft__ex_place(x, c->y[l]) = *y;
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

static const char other_rows[] = "rows of a batch by indices of the program";
static const char also_other[] = "its rows also belong to another batch; trace with other lengths";

/* ---- lookups ---- */
/* Ids, with -1 for the padding id. */
TRANSLATOR(without_padding)
{
    const int32_t *map = weft__ex_read(x, c->x[1]);
    int64_t id = 0;
    while (id < weft__elements(&c->x[1]->f) && map[id] >= 0)
        id++;
    y->negative = true;
    return NODES(x, "Where(Equal(@0, %lld), -1, @0)", (long long)id);
}

/* Returns the ragged tensor whose rows a plain one has, or NULL. */
static const weft_tensor *rows_of(const weft_tensor *t)
{
    const weft_call *c = maker_of(t);
    const weft__form *f = c && !strcmp(c->op->name, "view") ? &c->x[0]->f : NULL;
    return f && f->batch && f->layout == WEFT_CONCAT && f->size[0] == t->f.size[0] ? c->x[0] : NULL;
}

/* Returns whether these are the first or the last rows of each sequence of k. `part` gives their numbers;
 * NULL: one row, -1 for an empty sequence. */
static bool are_ends(const int32_t *row, const weft_batch *k, const weft_batch *part, bool last)
{
    for (int64_t s = 0; s < k->n; s++) {
        const int32_t n = part ? part->len[s] : 1;
        const int64_t first = k->len[s] == 0 ? -1 : last ? k->offset.host[s + 1] - n : k->offset.host[s];
        for (int32_t t = 0; t < n; t++)
            if (*row++ != first + t)
                return false;
    }
    return true;
}

static const char *first_or_last(graph *x, const int32_t *row, const batch *b, value *y)
{
    const bool first = are_ends(row, b->b, NULL, false), last = are_ends(row, b->b, NULL, true);
    if (first && last)
        weft__ex_refuse(x, "first and last rows are the same; trace with longer sequences");
    if (first == last || b->axes != 2)
        weft__ex_refuse(x, other_rows);
    const char *at = first ? NODES(x, "[0]") : NODES(x, "Max(Sub(%s, 1), 0)", weft__ex_lengths(x, b));
    at = NODES(x, "Unsqueeze(%s, [0])", at);
    y->name = NODES(x, "Squeeze(%s, [0])", weft__ex_gather_time(x, input(x, 0), at));
    weft__ex_per_sequence(y, b);
    return weft__ex_not_empty(x, b, y, x->call->x[0]->f.type);
}

/* Returns whether these are the rows of k for all pairs with the queries q. */
static bool are_pairs(const weft_batch *pairs, const int32_t *row, const weft_batch *q, const weft_batch *k)
{
    bool same = q->n == k->n && q->tokens == pairs->n;
    for (int64_t s = 0, i = 0; same && s < q->n; s++)
        for (int32_t t = 0; same && t < q->len[s]; t++, i++) {
            same = pairs->len[i] == k->len[s];
            for (int32_t j = 0; same && j < k->len[s]; j++)
                same = *row++ == k->offset.host[s] + j;
        }
    return same;
}
/* Each query gets all keys of its sequence: [keys, queries, batch, ..]. */
static const char *keys_of_pairs(graph *x, const weft_batch *pairs, const batch *q, const batch *k, value *y)
{
    const extent rows[] = { k->rows[0], q->rows[0], q->rows[1] };
    batch *b = weft__ex_batch(x, pairs);
    if (b && !b->pairs)
        weft__ex_refuse(x, also_other);
    b = b ? b : weft__ex_new_batch(x, pairs, 3, rows);
    b->pairs = true;
    b->a = q->b;
    b->lengths = k->lengths;
    weft__ex_replace(y, 3, b->rows);
    return weft__ex_expand(x, NODES(x, "Unsqueeze(@0, [1])"), y->axes, y->dim);
}

/* The first or the last part of each sequence, if the lengths of that part are known. */
static const char *part_of_sequences(graph *x, const weft_batch *p, const int32_t *row, batch *b, value *y)
{
    batch *part = weft__ex_batch(x, p);
    if (!part)
        weft__ex_refuse(x, "a part of each sequence whose length is not that of an input");
    if (p->n != b->b->n || b->axes != 2 || part->axes != 2)
        weft__ex_refuse(x, other_rows);
    const bool last = are_ends(row, b->b, p, true);
    if (last == are_ends(row, b->b, p, false))
        weft__ex_refuse(x, other_rows);
    const char *at = weft__ex_position(x, part);
    if (last)
        at = NODES(x, "Add(%s, Sub(%s, %s))", at, weft__ex_lengths(x, b), weft__ex_lengths(x, part));
    at = NODES(x, "Max(Min(%s, Sub(%s, [1])), 0)", at, weft__ex_size(x, b->rows[0]));
    y->name = weft__ex_gather_time(x, input(x, 0), at);
    memcpy(y->dim, part->rows, 2 * sizeof *y->dim);
    return y->name;
}

/* Selects rows of a batch by numbers that weft has made. */
static const char *select_rows(graph *x, const weft_call *c, const int32_t *row, batch *b, value *y)
{
    const weft_batch *made = c->y[0]->f.batch;
    if (b && !made && c->x[1]->f.rank == 1 && c->x[1]->f.size[0] == b->b->n)
        return first_or_last(x, row, b, y);
    if (!b || !made)
        weft__ex_refuse(x, other_rows);
    for (int i = 0; b->axes == 2 && i < x->batches; i++)
        if (x->batch[i].axes == 2 && are_pairs(made, row, x->batch[i].b, b->b))
            return keys_of_pairs(x, made, &x->batch[i], b, y);
    return part_of_sequences(x, made, row, b, y);
}

TRANSLATOR(index_select)
{
    if (!weft__ex_reads(c, 1))
        return select_rows(x, c, weft__ex_read(x, c->x[1]), batch_of(x, rows_of(c->x[0])), y);
    const weft_call *maker = maker_of(c->x[1]);
    const value *table = input(x, 0), *id = input(x, 1);
    *y = like(id, id->name);
    if (maker && !strcmp(maker->op->name, "topk") && maker->y[1] == c->x[1])
        return y->name;
    if (table->first[1] != 1)
        weft__ex_refuse(x, "rows of a whole batch by an index");
    for (int i = 1; i < table->rank; i++)
        weft__ex_insert(y, y->rank, axes_of(table, i), table->dim + table->first[i]);
    y->negative = false;
    y->name = NODES(x, "Gather(@0, @1)");
    return !id->negative ? y->name :
           weft__ex_where(x, NODES(x, "GreaterOrEqual(@1, 0)"), id->axes, y, c->x[0]->f.type, 0);
}

/* ---- two batches end to end ---- */
TRANSLATOR(concat_sequences)
{
    batch *a = batch_of(x, c->x[0]), *b = batch_of(x, c->x[1]), *both = batch_of(x, c->y[0]);
    if (!a || !b || a->axes != 2 || b->axes != 2 || (both && (both->pairs || both->a != a->b)))
        weft__ex_refuse(x, also_other);
    y->name = NODES(x, "Concat(@0, @1, axis=0)");
    if (!both) {
        const weft_batch *made = c->y[0]->f.batch;
        const extent rows[] = { weft__ex_symbol(x, "steps", made->longest, y->name, 0), a->rows[1] };
        both = weft__ex_new_batch(x, made, 2, rows);
        both->a = a->b;
        if (a->lengths || b->lengths)
            both->lengths = NODES(x, "Add(%s, %s)", weft__ex_lengths(x, a), weft__ex_lengths(x, b));
    }
    y->dim[0] = both->rows[0];
    if (!a->lengths)
        return y->name;
    const char *row = weft__ex_position(x, both), *padding = weft__ex_size(x, a->rows[0]);
    padding = NODES(x, "Sub(%s, %s)", padding, a->lengths);
    row = NODES(x, "Where(Less(%s, %s), %s, Add($, %s))", row, a->lengths, row, padding);
    return weft__ex_gather_time(x, y, NODES(x, "Mod(%s, %s)", row, weft__ex_size(x, both->rows[0])));
}

const translation weft__ex_shapes[] = {
    { "view", view, false },     { "to_layout", to_layout, false },       { "permute", permute, false },
    { "concat", concat, false }, { "concat_lists", concat_lists, false }, { "transpose", permute, false },
    { "stack", concat, false },  { "slice", slice, false },
    { "index_select", index_select, false }, { "embedding_run", without_padding, false },
    { "concat_sequences", concat_sequences, false }, { NULL, NULL, false }
};

bool weft__ex_reads(const weft_call *c, int i)
{
    const char *name = c->op->name;
    if (weft__ex_is_own(c))
        return true;
    if (weft__ex_is_recurrent(c)) {
        bool reads = false;
        for (const attributes *a = how(c); a <= how(c) + how(c)->both; a++)
            reads |= i == a->input[WEFT__X] || i == a->input[WEFT__H0] || i == a->input[WEFT__C0];
        return reads;
    }
    if (!strcmp(name, "index_select")) /* otherwise the index is recognised by its numbers */
        return i == 0 || !rows_of(c->x[0]) || maker_of(c->x[1]);
    if (!strcmp(name, "last_states")) { /* first states come with the recurrent layers */
        const weft__state_move *m = c->attributes;
        return i < m->states * m->parts;
    }
    return !strcmp(name, "embedding_run") ? i == 0 : i < 2 || strcmp(name, "concat_sequences");
}
