/* export_rows.c - translates lookups, and operators that select or join rows of batches. Indices that weft
 * makes on the host from the lengths are recognised by their numbers. */
#include <string.h>
#include "io/onnx/export.h"
#include "rnn/recurrent.h"

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

static const char *first_or_last(graph *x, const int32_t *row, const batch *b, value *y)
{
    const weft_batch *k = b->b;
    bool first = true, last = true;
    for (int64_t s = 0; s < k->n; s++) {
        first = first && row[s] == (k->len[s] ? k->offset.host[s] : -1);
        last = last && row[s] == (k->len[s] ? k->offset.host[s + 1] - 1 : -1);
    }
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
    b->pairs = true, b->a = q->b, b->lengths = k->lengths;
    weft__ex_replace(y, 3, b->rows);
    return weft__ex_expand(x, NODES(x, "Unsqueeze(@0, [1])"), y->axes, y->dim);
}

/* The first or the last part of each sequence, if the lengths of that part are known. */
static const char *part_of_sequences(graph *x, const weft_batch *p, const int32_t *row, batch *b, value *y)
{
    batch *part = weft__ex_batch(x, p);
    bool first = true, last = true;
    for (int64_t s = 0, i = 0; p->n == b->b->n && s < p->n; s++)
        for (int32_t t = 0; t < p->len[s]; t++, i++) {
            first = first && row[i] == b->b->offset.host[s] + t;
            last = last && row[i] == b->b->offset.host[s + 1] - p->len[s] + t;
        }
    if (!part || p->n != b->b->n || b->axes != 2 || part->axes != 2 || first == last)
        weft__ex_refuse(x, part ? other_rows :
                                         "a part of each sequence whose length is not that of an input");
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
    if (!made && c->x[1]->f.rank == 1 && c->x[1]->f.size[0] == b->b->n)
        return first_or_last(x, row, b, y);
    if (!made)
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

const translation weft__ex_rows[] = { { "embedding_run", without_padding, false },
                                      { "index_select", index_select, false },
                                      { "concat_sequences", concat_sequences, false },
                                      { NULL, NULL, false } };

bool weft__ex_reads(const weft_call *c, int i)
{
    const char *name = c->op->name;
    if (weft__ex_is_own(c))
        return true;
    if (weft__ex_is_recurrent(c)) {
        const direction_calls all = calls_of(c);
        bool reads = false;
        for (int d = 0; d < all.n; d++) {
            const int8_t *in = how(&all.of[d])->input;
            reads |= i == in[WEFT__X] || i == in[WEFT__H0] || i == in[WEFT__C0];
        }
        return reads;
    }
    if (!strcmp(name, "index_select")) /* otherwise the index is recognised by its numbers */
        return i == 0 || !rows_of(c->x[0]) || maker_of(c->x[1]);
    if (!strcmp(name, "last_states")) { /* first states come with the recurrent layers */
        const weft__state_move *m = c->attributes;
        return i < m->states * m->parts;
    }
    if (!strcmp(name, "embedding_run"))
        return i == 0;
    return i < 2 || strcmp(name, "concat_sequences");
}
