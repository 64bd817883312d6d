/* export_rows.c - translates lookups, and operators that select or join rows of batches. Indices that weft
 * makes on the host from the lengths are recognised by their numbers. */
#include <string.h>
#include "io/onnx/export.h"
#include "rnn/recurrent.h"

/* ---- lookups ---- */
/* Ids, with -1 for the padding id. */
static bool without_padding(weft__export *x, const weft_call *c)
{
    const int32_t *map = weft__export_read_ints(x, c->x[1]);
    int64_t id = 0;
    while (map && id < weft__elements(&c->x[1]->f) && map[id] >= 0)
        id++;
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    y.negative = true;
    y.name = NODE(x, "Where", NODE(x, "Equal", weft__export_in(x, c, 0)->name, weft__export_int(x, id)),
                  weft__export_int(x, -1), weft__export_in(x, c, 0)->name);
    weft__export_set(x, c->y[0], y);
    return map;
}

/* Returns the ragged tensor whose rows a plain one has, or NULL. */
static const weft_tensor *rows_of(const weft_tensor *t)
{
    const int64_t e = (int64_t)weft__node_of(t)->entry_number;
    const weft_call *c = e ? t->w->tape->entry[e - 1].call : NULL;
    return c && !strcmp(c->op->name, "view") && c->x[0]->f.batch && c->x[0]->f.layout == WEFT_CONCAT &&
                   c->x[0]->f.size[0] == t->f.size[0] ?
               c->x[0] :
               NULL;
}

static bool first_or_last(weft__export *x, const weft_call *c, const int32_t *row, weft__export_batch *b)
{
    const weft_batch *k = b->b;
    bool first = true, last = true;
    for (int64_t s = 0; s < k->n; s++) {
        first = first && row[s] == (k->len[s] ? k->offset.host[s] : -1);
        last = last && row[s] == (k->len[s] ? k->offset.host[s + 1] - 1 : -1);
    }
    if (first == last || b->axes != 2)
        return weft__export_refuse(x, c,
                                   first ? "first and last rows are the same; trace with longer sequences" :
                                           "rows of a batch by indices of the program");
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    const char *at = NODE(x, "Sub", weft__export_lengths(x, b), weft__export_int(x, 1));
    at = first ? INTS(x, 0) : NODE(x, "Max", at, weft__export_int(x, 0));
    y.name = weft__export_gather_time(x, y.name = weft__export_in(x, c, 0)->name,
                                      weft__export_unsqueeze(x, at, 0), &y);
    y.name = weft__export_squeeze(x, y.name, 0);
    weft__export_remove(&y, c->x[0]->f.rank, 0);
    weft__export_insert(&y, c->x[0]->f.rank - 1, 0, 1, &b->rows[1]);
    y.dim[0].joined = false;
    if (b->lengths) {
        const char *some = NODE(x, "Greater", b->lengths, weft__export_int(x, 0));
        for (int i = 1; i < y.axes; i++)
            some = weft__export_unsqueeze(x, some, -1);
        y.name = NODE(x, "Where", some, y.name,
                      c->x[0]->f.type == WEFT_REAL ? weft__export_number_of(x, 0) : weft__export_int(x, 0));
    }
    return weft__export_done(x, c, &y, y.name);
}

/* Returns the batch whose rows are the queries of pairs with the keys k, or NULL. */
static weft__export_batch *queries_of(weft__export *x, const weft_batch *pairs, const weft_batch *k)
{
    for (int i = 0; i < x->batches; i++) {
        const weft_batch *q = x->batch[i].b;
        bool same = x->batch[i].axes == 2 && q->n == k->n && q->tokens == pairs->n;
        for (int64_t s = 0, row = 0; same && s < q->n; s++)
            for (int32_t t = 0; same && t < q->len[s]; t++)
                same = pairs->len[row++] == k->len[s];
        if (same)
            return &x->batch[i];
    }
    return NULL;
}
/* Each query gets all keys of its sequence: [keys, queries, batch, ..]. */
static bool keys_of_pairs(weft__export *x, const weft_call *c, weft__export_batch *q, weft__export_batch *k)
{
    const weft_batch *p = c->y[0]->f.batch;
    const weft__dim rows[] = { k->rows[0], q->rows[0], q->rows[1] };
    weft__export_batch *b = weft__export_batch_of(x, p);
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    if (b && !b->pairs)
        return weft__export_refuse(x, c, "its pairs also belong to another batch; trace with other lengths");
    b = b ? b : weft__export_new_batch(x, p, 3, rows);
    if (!b)
        return false;
    b->pairs = true, b->a = q->b, b->lengths = k->lengths;
    weft__export_remove(&y, c->x[0]->f.rank, 0);
    weft__export_insert(&y, c->x[0]->f.rank - 1, 0, 3, b->rows);
    return weft__export_done(
        x, c, &y,
        weft__export_expand(x, weft__export_unsqueeze(x, weft__export_in(x, c, 0)->name, 1), y.axes, y.dim));
}

/* The first or the last part of each sequence, if the lengths of that part are known. */
static bool part_of_sequences(weft__export *x, const weft_call *c, const int32_t *row, weft__export_batch *b)
{
    const weft_batch *whole = b->b, *p = c->y[0]->f.batch;
    weft__export_batch *part = weft__export_batch_of(x, p);
    bool first = true, last = true;
    for (int64_t s = 0, i = 0; p->n == whole->n && s < p->n; s++)
        for (int32_t t = 0; t < p->len[s]; t++, i++) {
            first = first && row[i] == whole->offset.host[s] + t;
            last = last && row[i] == whole->offset.host[s + 1] - p->len[s] + t;
        }
    if (!part || p->n != whole->n || b->axes != 2 || part->axes != 2 || first == last)
        return weft__export_refuse(x, c,
                                   part ? "rows of a batch by indices of the program" :
                                          "a part of each sequence whose length is not that of an input");
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    const char *from = NODE(x, "Sub", weft__export_lengths(x, b), weft__export_lengths(x, part));
    const char *at = weft__export_position(x, part),
               *end = NODE(x, "Sub", weft__export_size(x, b->rows[0]), INTS(x, 1));
    at = NODE(x, "Min", first ? at : NODE(x, "Add", at, from), end);
    y.name = weft__export_gather_time(x, weft__export_in(x, c, 0)->name,
                                      NODE(x, "Max", at, weft__export_int(x, 0)), &y);
    memcpy(y.dim, part->rows, 2 * sizeof *y.dim);
    return weft__export_done(x, c, &y, y.name);
}

static bool index_select(weft__export *x, const weft_call *c)
{
    const weft_tensor *ragged = rows_of(c->x[0]);
    if (!weft__export_reads(c, 1)) {
        const int32_t *row = weft__export_read_ints(x, c->x[1]);
        weft__export_batch *b = weft__export_of(x, ragged), *q;
        const weft_batch *p = c->y[0]->f.batch;
        if (!row || !b)
            return false;
        if (!p)
            return c->x[1]->f.rank == 1 && c->x[1]->f.size[0] == b->b->n ?
                       first_or_last(x, c, row, b) :
                       weft__export_refuse(x, c, "rows of a batch by indices of the program");
        q = b->axes == 2 ? queries_of(x, p, b->b) : NULL;
        return q ? keys_of_pairs(x, c, q, b) : part_of_sequences(x, c, row, b);
    }
    const int64_t from = (int64_t)weft__node_of(c->x[1])->entry_number;
    const weft_call *maker = from ? x->w->tape->entry[from - 1].call : NULL;
    const weft__value *table = weft__export_in(x, c, 0), *id = weft__export_in(x, c, 1);
    if (maker && !strcmp(maker->op->name, "topk"))
        return weft__export_done(x, c, id, id->name);
    if (table->first[1] != 1)
        return weft__export_refuse(x, c, "rows of a whole batch by an index");
    weft__value y = weft__export_like(id, NULL);
    const int rank = c->x[1]->f.rank;
    for (int i = 1; i < c->x[0]->f.rank; i++)
        weft__export_insert(&y, rank + i - 1, rank + i - 1, table->first[i + 1] - table->first[i],
                            table->dim + table->first[i]);
    y.negative = false;
    y.name = NODE(x, "Gather", table->name, id->name);
    if (id->negative) {
        const char *none = NODE(x, "Less", id->name, weft__export_int(x, 0));
        for (int i = 1; i < c->x[0]->f.rank; i++)
            none = weft__export_unsqueeze(x, none, -1);
        y.name = NODE(x, "Where", none, weft__export_number_of(x, 0), y.name);
    }
    return weft__export_done(x, c, &y, y.name);
}

/* ---- two batches end to end ---- */
static bool concat_sequences(weft__export *x, const weft_call *c)
{
    weft__export_batch *a = weft__export_of(x, c->x[0]), *b = weft__export_of(x, c->x[1]),
                       *both = weft__export_of(x, c->y[0]);
    if (!a || !b || a->axes != 2 || b->axes != 2 || (both && (both->pairs || both->a != a->b)))
        return weft__export_refuse(
            x, c, "its rows also belong to another batch; trace with sequences of other lengths");
    weft__value y = weft__export_like(weft__export_in(x, c, 0), NULL);
    const char *end_to_end = NODE_WITH(x, "Concat", ATTRIBUTES(INT("axis", 0)),
                                       weft__export_in(x, c, 0)->name, weft__export_in(x, c, 1)->name);
    if (!both) {
        const weft_batch *made = c->y[0]->f.batch;
        const weft__dim rows[] = { weft__export_symbol(x, "time", made->longest, end_to_end, 0), a->rows[1] };
        if (!(both = weft__export_new_batch(x, made, 2, rows)))
            return false;
        both->a = a->b;
        both->lengths = !a->lengths && !b->lengths ?
                            NULL :
                            NODE(x, "Add", weft__export_lengths(x, a), weft__export_lengths(x, b));
    }
    y.dim[0] = both->rows[0];
    y.name = end_to_end;
    if (a->lengths) {
        const char *row = weft__export_position(x, both), *size = weft__export_size(x, a->rows[0]);
        const char *of_b = NODE(x, "Add", row, NODE(x, "Sub", size, a->lengths));
        row = NODE(x, "Where", NODE(x, "Less", row, a->lengths), row, of_b);
        row = NODE(x, "Mod", row, weft__export_size(x, both->rows[0]));
        y.name = weft__export_gather_time(x, end_to_end, row, &y);
    }
    return weft__export_done(x, c, &y, y.name);
}

const weft__export_entry weft__export_rows[] = { { "embedding_run", without_padding },
                                                 { "index_select", index_select },
                                                 { "concat_sequences", concat_sequences },
                                                 { NULL, NULL } };

bool weft__export_reads(const weft_call *c, int i)
{
    const char *name = c->op->name;
    if (weft__export_is_own(c))
        return true;
    if (weft__export_is_recurrent(c)) {
        const direction_calls all = calls_of(c);
        for (int d = 0; d < all.n; d++) {
            const int8_t *input = how(&all.of[d])->input;
            if (i == input[WEFT__X] || i == input[WEFT__H0] || i == input[WEFT__C0])
                return true;
        }
        return false;
    }
    if (!strcmp(name, "index_select")) /* else the index is recognised by its numbers */
        return i == 0 || !rows_of(c->x[0]) || weft__node_of(c->x[1])->entry_number;
    if (!strcmp(name, "last_states")) { /* first states come with the recurrent layers */
        const weft__state_move *m = c->attributes;
        return i < m->states * m->parts;
    }
    return strcmp(name, "concat_sequences") && strcmp(name, "embedding_run") ? true :
           *name == 'c'                                                      ? i < 2 :
                                                                               i < 1;
}
