/* optim_runs.c - an optimiser's parameters as few runs of the root's flat vectors: one kernel call does all
 * that share rate, decay and past. Gaps between parameters are 0 in values and gradients, and every rule
 * keeps them so; they make runs longer. */
#include "nn/optim.h"

int64_t weft__slots_join(weft__slot *s, int n)
{
    int64_t from = 0;
    for (int i = 0; i < n; i++) {
        s[i].from = from;
        s[i].n = weft__piece(s[i].p);
        from += s[i].n;
    }
    /* no gap after the last: one parameter's memory has its shape */
    if (n) {
        from += weft__elements(&s[n - 1].p->value.f) - s[n - 1].n;
        s[n - 1].n = weft__elements(&s[n - 1].p->value.f);
    }
    return from;
}

bool weft__next_run(const weft__slot *s, int n, int *i, weft__run *run)
{
    if (*i >= n)
        return false;
    const weft__slot *first = s + *i;
    *run = (weft__run){ first->p->at, first->from, 0, first->scale, first->decay, first->past, first->still };
    for (; *i < n; ++*i) {
        const weft__slot *next = s + *i;
        if (next->p->at != run->at + run->n || next->past != run->past || next->scale != run->scale ||
            next->decay != run->decay)
            break;
        run->n += next->n;
    }
    return true;
}
