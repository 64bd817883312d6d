/* optim_runs.c - an optimiser's parameters as few runs of the root's flat vectors: one kernel call does all that share rate, decay and
 * past. Gaps between parameters are 0 in values and gradients, and every rule keeps them so; they make runs longer. */
#include "nn/optim.h"

static bool count(weft__parameter *p, void *user)
{
    *(int *)user += !p->buffer;
    return true;
}

int weft__slots(const weft_module *m)
{
    int n = 0;
    weft__each_parameter(m, count, &n);
    return n;
}

typedef struct { weft__slot *next; int64_t from; } filling;

static bool fill(weft__parameter *p, void *user)
{
    filling *f = user;
    if (p->buffer)
        return true;
    int64_t n = (weft__elements(&p->value.f) + WEFT__GRAIN - 1) / WEFT__GRAIN * WEFT__GRAIN;
    *f->next++ = (weft__slot){ .p = p, .n = n, .from = f->from, .scale = 1 };
    f->from += n;
    return true;
}

void weft__slots_fill(const weft_module *m, weft__slot *s)
{
    filling f = { s, 0 };
    weft__each_parameter(m, fill, &f);
    if (f.next > s)
        f.next[-1].n = weft__elements(&f.next[-1].p->value.f);   /* no gap after the last: one parameter's memory has its shape */
}

bool weft__next_run(const weft__slot *s, int n, int *i, weft__run *run)
{
    if (*i >= n)
        return false;
    const weft__slot *first = s + *i;
    *run = (weft__run){ first->p->at, first->from, 0, first->scale, first->decay, first->past, first->frozen };
    for (; *i < n; ++*i) {
        const weft__slot *next = s + *i;
        if (next->p->at != run->at + run->n || next->past != run->past || next->scale != run->scale || next->decay != run->decay)
            break;
        run->n += next->n;
    }
    return true;
}
