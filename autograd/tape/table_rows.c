/* table_rows.c - where a tensor's rows come from: an embedding notes that they are rows of a table, by ids;
 * what arranges the tensor hands the note on; a layer may then take the ids instead of the rows
 * (rnn/lookup.c). */
#include "autograd/op.h"

/* The rows of a table, by ids in the same layout of the batch or in another; -1: zeros. */
struct weft__lookup {
    weft_tensor *table, *ids;
    uint64_t then;                               /* tape->changes when they were looked up */
    const weft_tensor *from;                     /* what this one was arranged from; NULL: looked up itself */
};

static void set_origin(weft_tensor *y, struct weft__lookup is)
{
    struct weft__lookup *l = weft_ok(y->w) ? weft__take(y->w, WEFT__IN_NOTES, sizeof *l) : NULL;
    if (l)
        *l = is, node(y)->lookup = l;
}

void weft__looked_up(weft_tensor *y, weft_tensor *table, weft_tensor *ids)
{
    if (y->f.rank == 2)
        set_origin(y, (struct weft__lookup){ table, ids, y->w->tape->changes, NULL });
}

void weft__looked_up_as(weft_tensor *y, const weft_tensor *x)
{
    const struct weft__lookup *l = node(x)->lookup;
    if (l)                                       /* pads may differ: they are no tokens */
        set_origin(y, (struct weft__lookup){ l->table, l->ids, l->then, x });
}

weft_tensor *weft__table_of(const weft_tensor *x, weft_tensor **ids)
{
    const struct weft__lookup *l = node(x)->lookup;
    if (!l || node(l->table)->changed > l->then)
        return NULL;
    *ids = l->ids;
    return l->table;
}

bool weft__asked_for(const weft_tensor *x)
{
    for (; x; x = node(x)->lookup ? node(x)->lookup->from : NULL)
        if (node(x)->kept == x->w->tape->walk)
            return true;
    return false;
}
