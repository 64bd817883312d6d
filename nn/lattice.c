/* lattice.c - runs a recurrence of sums of logarithms over the steps of a packed batch. Sequences end at the
 * bottom of the rows, so their final states, in reverse order of their ends, are in packed order. */
#include "nn/lattice.h"

static weft_tensor *user_order(weft *w, weft_batch *b, weft_tensor *packed, int64_t m)
{
    weft_tensor *all =
        m == b->n ? packed :
                    weft_concat((weft_tensor *[]){ packed, weft_zeros(w, WEFT_SHAPE(b->n - m)) }, 2, 0);
    return weft_index_select(all, weft_ints(w, b->unsorted.host, WEFT_SHAPE(b->n)));
}

weft_tensor *weft__run_lattice(weft *w, weft_batch *b, const weft__lattice *l)
{
    const int64_t T = b->longest;
    const int32_t *live = b->live.host;
    weft_tensor **done = weft__take(w, WEFT__ARENA_CALLS, (T + 1) * (int64_t)sizeof *done), *alpha = NULL;
    int64_t first = T; /* of the list, which is filled from its end */
    if (!done || T == 0)
        return weft_zeros(w, WEFT_SHAPE(b->n));
    for (int64_t t = 0, from = 0; t < T && !w->status; from += live[t++]) {
        if (t && live[t] < live[t - 1]) {
            done[--first] = weft_slice(alpha, 0, live[t], live[t - 1]);
            alpha = weft_slice(alpha, 0, 0, live[t]);
        }
        alpha = l->step(l->user, alpha, t, from, live[t]);
    }
    if (w->status)
        return &w->nil;
    done[--first] = alpha;
    weft_tensor *last = T - first == 1 ? alpha : weft_concat(done + first, T - first, 0);
    return user_order(w, b, l->finish(l->user, last, live[0]), live[0]);
}

bool weft__path_shape(weft_call *c)
{
    c->y[0]->f = c->x[0]->f;
    c->y[0]->f.rank = 1;
    c->y[0]->f.type = WEFT_I32;
    return true;
}
