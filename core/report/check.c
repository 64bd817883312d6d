/* check.c - WEFT_CHECK=1: finds mistakes of the program. Tensor headers are never reused, so any stale handle
 * is an error. Data of ended steps is overwritten with NaN (read as ints: out of every range), so reading a
 * stale pointer shows. An optimiser that steps twice without weft_clear causes a warning. The first NaN that
 * an operator computes is found by autograd/tape/nan.c. */
#include "core/report/check.h"
#include <string.h>
#include "core/report/log.h"

bool weft__check_requested(bool *needed)
{
    const char *value = weft__variable("WEFT_CHECK");
    *needed = value && !strcmp(value, "1");
    return !value || !*value || *needed || !strcmp(value, "0");
}

void weft__check_open(weft *w)
{
    struct weft__check *c = weft__allocate(w, sizeof *c);
    if (c)
        w->check = memset(c, 0, sizeof *c);
}

void weft__check_close(weft *w)
{
    struct weft__check *c = w->check;
    if (!c)
        return;
    w->check = NULL;
    weft__release(w, c->live);
    weft__release(w, c->copy);
    weft__release(w, c);
}

/* ---- headers ---- */
static bool room_for_one(weft *w, struct weft__check *c)
{
    if (c->n < c->room)
        return true;
    int64_t room = c->room ? 2 * c->room : 4096;
    weft_tensor **live = weft__allocate(w, (size_t)room * sizeof *live);
    if (!live)
        return false;
    if (c->n)
        memcpy(live, c->live, (size_t)c->n * sizeof *live);
    weft__release(w, c->live);
    c->live = live;
    c->room = room;
    return true;
}

static void end_tensor(weft_tensor *t) { t->step = UINT64_MAX; }

void weft__check_created(weft *w, weft_tensor *t)
{
    if (room_for_one(w, w->check))
        w->check->live[w->check->n++] = t;
    else
        end_tensor(t);
}

/* ---- data ---- */
static void fill_with_nan_bits(weft *w, const weft__arena *a, char *from, int64_t bytes)
{
    enum { NOTHING = 0x7FF80000 };               /* NaN as a float, twice as a double; 2146959360 as an int */
    int32_t *to = (int32_t *)(void *)from;
    if (a->device)
        w->dev.k->fill_ints(&w->dev, bytes / (int64_t)sizeof *to, NOTHING, to);
    for (int64_t i = 0; !a->device && i < bytes / (int64_t)sizeof *to; i++)
        to[i] = NOTHING;
}

void weft__check_poison(weft *w, weft__arena_id id, int64_t from)
{
    const weft__arena *a = &inside(w)->arena[id];
    for (int b = 0; b < a->n && b <= a->current; b++) {
        int64_t skip = from - a->block[b].start, used = b == a->current ? a->used : a->block[b].filled;
        skip = skip > 0 ? skip : 0;
        if (skip < used)
            fill_with_nan_bits(w, a, a->block[b].base + skip, used - skip);
    }
}

/* ---- rewind and clear ---- */
void weft__check_rewind(weft *w, int64_t headers, int64_t data)
{
    struct weft__check *c = w->check;
    while (c->n > headers)
        end_tensor(c->live[--c->n]);
    weft__check_poison(w, WEFT__ARENA_DATA, data);
}

void weft__check_clear(weft *w)
{
    struct weft__check *c = w->check;
    static const weft__arena_id all[] = { WEFT__ARENA_BATCHES, WEFT__ARENA_DATA, WEFT__ARENA_GRADS,
                                          WEFT__ARENA_MAPS };
    c->n = c->steps = 0, c->given = false;       /* their step marks the headers as stale */
    for (size_t i = 0; !w->dev.lost && i < sizeof all / sizeof *all; i++)
        weft__check_poison(w, all[i], 0);
}

void weft__check_stepped(weft *w, const void *optimiser)
{
    struct weft__check *c = w->check;
    for (int i = 0; i < c->steps; i++)
        if (c->stepped[i] == optimiser && !c->warned_clear) {
            c->warned_clear = true;
            weft__warn(
                "WEFT_CHECK: optim_step: the second call since weft_clear: %lld tensors and %.1f MB of "
                "earlier steps are still held. Call weft_clear once per step",
                (long long)c->n, (double)(inside(w)->host_bytes + inside(w)->device_bytes) * 1e-6);
        }
    if (c->steps < WEFT__STEPPED)
        c->stepped[c->steps++] = optimiser;
}

void weft__check_gradients_found(weft *w, bool given, bool step, const char *function)
{
    struct weft__check *c = w->check;
    bool *warned = step ? &c->warned_step : &c->warned_unchanged;
    if (given || *warned)
        return;
    *warned = true;
    if (step)
        weft__warn(
            "WEFT_CHECK: %s: it changes nothing: since the last step or weft_zero_grad no weft_backward "
            "has reached a parameter that is not frozen; call weft_backward before it",
            function);
    else
        weft__warn("WEFT_CHECK: %s: all gradients are zero: since the last step or weft_zero_grad no "
                   "weft_backward has reached a parameter; call it between weft_backward and weft_optim_step",
                   function);
}

/* ---- threads ---- */
/* Returns an address that no other live thread has. */
static uintptr_t this_thread(void)
{
    static _Thread_local char mine;
    return (uintptr_t)&mine;
}

bool weft__check_enter(weft *w, const char *function)
{
    struct weft__check *c = w->check;
    uintptr_t me = this_thread(), owner = 0;
    if (atomic_compare_exchange_strong(&c->thread, &owner, me) || owner == me) {
        c->depth++;
        return true;
    }
    if (!atomic_exchange(&c->warned_thread, true))
        weft__warn(
            "WEFT_CHECK: %s: another thread is at work in this context; one thread at a time may use a "
            "context, and each thread may have its own",
            function);
    weft__fail(w, WEFT_EARG, "%s: another thread is at work in this context (WEFT_CHECK)", function);
    return false;
}

void weft__check_leave(weft *w)
{
    struct weft__check *c = w->check;
    if (c && --c->depth == 0)
        atomic_store(&c->thread, 0);
}
