/* optim_members.c - the parameters of an optimiser: all below its module.
 *
 * Parameters made later join before the next step, save or load, with zeroed memory and an age of 0. The
 * optimiser's vectors grow at their end, because later parameters come later in the root's flat vectors. A
 * parameter has one optimiser at a time. Groups are patterns of paths, ordered by the time they were set. So
 * they also apply to later parameters, and the last match wins. */
#include <string.h>
#include "autograd/fused.h"
#include "nn/optim.h"

/* excludes: the group takes matrices from Muon, and has no scale or decay. */
struct weft__group { weft__group *next; real scale, decay; bool excludes, fits; char pattern[]; };

/* ---- runs ---- *
 * One kernel call updates all neighbours that share rate, decay and counter. Gaps between parameters are 0 in
 * values and gradients, and every rule keeps them 0; they make runs longer. */
static int64_t slots_join(weft__slot *s, int n)
{
    int64_t from = 0;
    for (int i = 0; i < n; i++) {
        s[i].offset = from;
        s[i].n = weft__padded_size(s[i].p);
        from += s[i].n;
    }
    /* No gap after the last one, so a single parameter's memory has its shape. */
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
    *run = (weft__run){ first->p->offset, first->offset, 0, first->scale, first->decay, first->counter,
                        first->muon, first->idle };
    for (; *i < n; ++*i) {
        const weft__slot *next = s + *i;
        if (next->p->offset != run->begin + run->n || next->counter != run->counter ||
            next->scale != run->scale || next->decay != run->decay || next->muon != run->muon)
            break;
        run->n += next->n;
    }
    return true;
}

/* ---- groups ---- */
static bool fits(const weft_optim *o, weft__group *g, const weft__slot *s)
{
    bool yes = weft__matches(g->pattern, weft__path_below(s->p, o->module));
    g->fits |= yes;
    return yes;
}

static void apply_groups(const weft_optim *o, weft__slot *s)
{
    s->muon = o->update.rule == WEFT__MUON && weft_rank(&s->p->value) == 2;
    for (weft__group *g = o->groups; g; g = g->next)
        if (g->excludes && fits(o, g, s))
            s->muon = false;
    s->scale = 1;
    s->decay = s->muon ? o->update.decay : o->others.decay;
    for (weft__group *g = o->groups; g; g = g->next)
        if (!g->excludes && fits(o, g, s)) {
            s->scale = g->scale;
            s->decay = g->decay;
        }
}

/* Removes the group with that pattern from the list and returns it; or NULL. */
static weft__group *unlink_group(weft_optim *o, const char *pattern, bool excludes)
{
    for (weft__group **link = &o->groups; *link; link = &(*link)->next)
        if ((*link)->excludes == excludes && !strcmp((*link)->pattern, pattern)) {
            weft__group *g = *link;
            *link = g->next;
            return g;
        }
    return NULL;
}

void weft__add_group(weft_optim *o, const char *pattern, real scale, real decay, bool excludes)
{
    o->w->running = excludes ? "muon_exclude" : "optim_set_group";
    size_t bytes = strlen(pattern) + 1;
    weft__group *g = unlink_group(o, pattern, excludes), **last = &o->groups;
    if (!g && !(g = weft__own(o->w, sizeof *g + bytes, NULL, NULL)))
        return;
    g->next = NULL;
    g->scale = scale;
    g->decay = decay;
    g->excludes = excludes;
    g->fits = false;
    memmove(g->pattern, pattern, bytes);
    while (*last)
        last = &(*last)->next;
    *last = g;
    for (int i = 0; i < o->n; i++)
        apply_groups(o, o->slot + i);
}

bool weft__groups_fit(weft_optim *o)
{
    for (const weft__group *g = o->groups; g; g = g->next)
        if (!g->fits)
            weft__fail(o->w, WEFT_EARG,
                       "optim_step: the group \"%.80s\" of the %s of %s matches no parameter; expected a "
                       "pattern of paths below %s, such as \"%s\"",
                       g->pattern, o->name, o->module->path, o->module->path,
                       weft__path_below(o->slot[0].p, o->module));
    return !o->w->status;
}

/* ---- new parameters ---- */
static weft__parameter *next_new(const weft_optim *o, const weft__parameter *after)
{
    weft__parameter *p = weft__next_parameter(o->module, after);
    while (p && p->buffer)
        p = weft__next_parameter(o->module, p);
    return p;
}

static bool is_free(const weft_optim *o, const weft__parameter *p, const char *function)
{
    if (p->optim)
        weft__fail(o->w, WEFT_EARG,
                   "%s: %s has two optimisers, the %s of %s and the %s of %s; expected one (weft_optim_free "
                   "ends one)",
                   function, p->path, p->optim->name, p->optim->module->path, o->name, o->module->path);
    return !p->optim;
}

/* ---- memory ---- */
/* Returns a copy of x, extended by zeros. */
static real *copy_longer(const weft_optim *o, bool needed, const real *x, int64_t n)
{
    weft__device *d = &o->w->dev;
    real *y = needed && !o->w->status ? weft__device_allocate(o->w, (size_t)(n + 1) * sizeof *y) : NULL;
    if (y && o->elements)
        d->k->copy(d, y, x, (size_t)o->elements * sizeof *y);
    if (y)
        d->k->fill(d, n - o->elements, 0, y + o->elements);
    return y;
}

void weft__free_members(weft_optim *o)
{
    weft__release(o->w, o->slot);
    weft__release(o->w, o->ages);
    weft__device_release(o->w, o->m);
    weft__device_release(o->w, o->v);
    weft__device_release(o->w, o->a);
    weft__device_release(o->w, o->counters);
    weft__device_release(o->w, o->muon_work);
}

/* Fills the slots with those of o, then with new ones. */
static void fill_slots(weft_optim *next, const weft_optim *o)
{
    if (o->n) {
        memcpy(next->slot, o->slot, (size_t)o->n * sizeof *o->slot);
        memcpy(next->ages, o->ages, (size_t)o->n * sizeof *o->ages);
    }
    const weft__parameter *p = o->last_seen;
    for (int i = o->n; i < next->n; i++) {
        weft__slot *s = next->slot + i;
        *s = (weft__slot){ .p = next_new(o, p) };
        p = s->p;
        next->ages[i] = 0;
        apply_groups(o, s);
    }
    next->elements = slots_join(next->slot, next->n);
}

static bool grow_members(weft_optim *o, int more)
{
    weft *w = o->w;
    weft_optim next = *o;
    next.n = o->n + more;
    next.slot = weft__allocate(w, (size_t)next.n * sizeof *next.slot);
    next.ages = next.slot ? weft__allocate(w, (size_t)next.n * sizeof *next.ages) : NULL;
    next.m = next.v = next.a = next.muon_work = NULL;
    next.counters = NULL;
    if (next.ages) {
        weft__read_counters(o);
        fill_slots(&next, o);
        next.counters = weft__device_allocate(w, (size_t)next.n * sizeof *next.counters);
        next.m = copy_longer(o, o->first, o->m, next.elements);
        next.v = copy_longer(o, o->second, o->v, next.elements);
        next.a = copy_longer(o, o->average, o->a, next.elements);
        if (o->update.rule == WEFT__MUON && !w->status)
            next.muon_work =
                weft__device_allocate(w, (size_t)weft__muon_work_size(&next) * sizeof *next.muon_work);
    }
    weft__free_members(w->status ? &next : o);
    if (w->status)
        return false;
    *o = next;
    weft__write_counters(o);
    return true;
}

bool weft__add_members(weft_optim *o, const char *function)
{
    weft__parameter *last = o->module->below_last;
    int more = 0;
    if (o->last_seen == last)
        return true;
    for (const weft__parameter *p = o->last_seen; (p = next_new(o, p)); more++)
        if (!is_free(o, p, function))
            return false;
    o->w->running = function;
    if (more && !grow_members(o, more))
        return false;
    for (int i = o->n - more; i < o->n; i++)
        o->slot[i].p->optim = o;
    o->last_seen = last;
    return true;
}

void weft__release_members(weft_optim *o)
{
    for (int i = 0; i < o->n; i++)
        o->slot[i].p->optim = NULL;
}

/* ---- steps of each parameter ---- * Adam's corrections and SGD's first step depend on a parameter's own
 * steps. A parameter that is frozen or not reached by a loss does not count the step. Otherwise a parameter
 * that starts late would take first steps three times too long.
 *
 * Only the device knows how many steps were applied, so a counter is a weft__guard on the device. All
 * parameters begin with one counter. If only some parameters of a counter are updated, those that differ from
 * its first one get a copy. A counter has the number of its first parameter. */
static void split_slot(weft_optim *o, int i, weft__slot *first)
{
    weft__device *d = &o->w->dev;
    weft__slot *s = o->slot + i;
    if (first->split < 0) {                      /* the first to leave; others follow it */
        d->k->copy(d, o->counters + i, o->counters + s->counter, sizeof *o->counters);
        first->split = i;
        s->split = -1;
    }
    s->counter = first->split;
}

void weft__split_counters(weft_optim *o)
{
    for (int i = 0; i < o->n; i++) {
        weft__slot *s = o->slot + i, *first = o->slot + s->counter;
        s->idle = weft__node_of(&s->p->value)->frozen || !weft__node_of(&s->p->value)->has_gradient;
        if (s == first)
            s->split = -1;
        else if (s->idle != first->idle)
            split_slot(o, i, first);
    }
}

void weft__count_step(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    weft__guard *counter = NULL;
    for (int i = 0; i < o->n; i++)
        if (o->slot[i].counter == i && !o->slot[i].idle) {
            if (counter)
                d->k->guard_end(d, counter, o->guard, false);
            counter = o->counters + i;
        }
    d->k->guard_end(d, counter, o->guard, true);
}

void weft__read_counters(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    for (int i = 0; i < o->n; i++) {
        int counter = o->slot[i].counter;
        weft__guard g = { .applied = o->ages[counter] };
        if (counter == i)
            d->k->download(d, &g, o->counters + i, sizeof g);
        o->ages[i] = g.applied;
    }
}

void weft__write_counters(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    for (int i = 0; i < o->n; i++) {
        weft__guard g = { .applied = o->ages[i] };
        int counter = 0;
        while (o->ages[counter] != o->ages[i])
            counter++;
        o->slot[i].counter = counter;
        if (counter == i)
            d->k->upload(d, o->counters + i, &g, sizeof g);
    }
}
