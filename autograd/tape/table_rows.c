/* table_rows.c - records that the rows of a tensor come from a table. An embedding records table and ids, and
 * rearranging passes the record on. A layer may then use the ids instead of the rows (rnn/lookup.c). */
#include "autograd/op.h"

/* The rows are table[ids]; id -1 gives zeros. The ids may be in another layout of the batch. */
struct weft__lookup {
    weft_tensor *table, *ids;
    uint64_t version; /* tape->version at the lookup */
    const weft_tensor *source; /* tensor that was rearranged; NULL: looked up directly */
};

static void set_origin(weft_tensor *y, struct weft__lookup origin)
{
    struct weft__lookup *l = weft_ok(y->w) ? weft__take(y->w, WEFT__ARENA_CALLS, sizeof *l) : NULL;
    if (l)
        *l = origin, node(y)->lookup = l;
}

void weft__record_lookup(weft_tensor *y, weft_tensor *table, weft_tensor *ids)
{
    if (y->f.rank == 2)
        set_origin(y, (struct weft__lookup){ table, ids, y->w->tape->version, NULL });
}

void weft__copy_lookup(weft_tensor *y, const weft_tensor *x)
{
    const struct weft__lookup *l = node(x)->lookup;
    if (l)                                       /* padding may differ; it holds no tokens */
        set_origin(y, (struct weft__lookup){ l->table, l->ids, l->version, x });
}

weft_tensor *weft__table_of(const weft_tensor *x, weft_tensor **ids)
{
    const struct weft__lookup *l = node(x)->lookup;
    if (!l || node(l->table)->version > l->version)
        return NULL;
    *ids = l->ids;
    return l->table;
}

bool weft__keeps_gradient(const weft_tensor *x)
{
    for (; x; x = node(x)->lookup ? node(x)->lookup->source : NULL)
        if (node(x)->kept_pass == x->w->tape->pass)
            return true;
    return false;
}
