/* host_mirror.c - the memory that raw functions of a program's operators see.
 *
 * On a GPU the raw function gets host copies of the tensors that it requests. A tensor is copied to the host
 * at its first request. After the function returns, results and gradients are copied back. Memory for all
 * tensors of a call is taken from the step before the function runs. So no request fails halfway, and a
 * steady-state step allocates nothing. */
#include <string.h>
#include "autograd/op.h"

typedef struct weft__copy {
    struct weft__copy *next;
    void *device; size_t bytes;
    bool upload, separate; /* upload: copy back; separate: separate block */
} weft__copy;                                    /* its numbers follow this header */

enum { HEAD = (sizeof(weft__copy) + WEFT__LINE - 1) & -WEFT__LINE };

static char *numbers_of(weft__copy *c) { return (char *)c + HEAD; }
static size_t room_for(const weft_tensor *t)
{
    return (size_t)weft__whole_lines(HEAD + weft__capacity(&t->f));
}

static bool copies(const weft__work *work)
{
    return work->call->host && !work->call->y[0]->w->dev.k->synchronous;
}

bool weft__work_begin(weft *w, weft__work *work, const weft_call *c, bool back)
{
    *work = (weft__work){ .outer = w->tape->work, .call = c, .back = back };
    size_t bytes = 0;
    for (int i = 0; copies(work) && i < c->n; i++)
        bytes += room_for(c->x[i]) << back;
    for (int k = 0; copies(work) && k < c->m; k++)
        bytes += room_for(c->y[k]) << back;
    work->notes_begin = weft__position(w, WEFT__ARENA_CALLS);
    if (copies(work) && !(work->free = weft__take(w, WEFT__ARENA_CALLS, (int64_t)bytes)))
        return false;
    work->free_end = work->free ? work->free + bytes : NULL;
    work->notes_end = weft__position(w, WEFT__ARENA_CALLS);
    w->tape->work = work;
    return true;
}

void weft__work_end(weft *w, weft__work *work)
{
    for (weft__copy *c = work->copies, *next; c; c = next) {
        next = c->next;
        if (c->upload && c->bytes)
            w->dev.k->upload(&w->dev, c->device, numbers_of(c), c->bytes);
        if (c->separate)
            weft__release(w, c);
    }
    if (work->notes_end == weft__position(w, WEFT__ARENA_CALLS)) /* no later note must survive */
        weft__rewind_to(w, WEFT__ARENA_CALLS, work->notes_begin);
    w->tape->work = work->outer;
}

/* Returns a new copy. Tensors that do not belong to the call get a separate block. */
static weft__copy *new_copy(weft *w, weft__work *work, const weft_tensor *t)
{
    size_t room = room_for(t);
    bool own = !work->free || (size_t)(work->free_end - work->free) < room;
    weft__copy *c = own ? weft__allocate(w, room) : (weft__copy *)(void *)work->free;
    if (!c)
        return NULL;
    if (!own)
        work->free += room;
    memset(c, 0, room);
    c->separate = own;
    c->next = work->copies;
    work->copies = c;
    return c;
}

/* Returns the host copy of `device`, with the form of t: t's own numbers, or a gradient. */
static void *copy_of(weft *w, const weft_tensor *t, void *device, bool fetched, bool back)
{
    weft__work *work = w->tape->work;
    size_t bytes = (size_t)weft__bytes(&t->f);
    for (weft__copy *c = work->copies; c; c = c->next)
        if (c->device == device && c->bytes == bytes) {     /* an empty tensor may share an address */
            c->upload |= back;
            return numbers_of(c);
        }
    weft__copy *c = device ? new_copy(w, work, t) : NULL;
    if (!c)
        return NULL;
    c->device = device;
    c->bytes = bytes;
    c->upload = back;
    if (fetched && bytes)
        w->dev.k->download(&w->dev, numbers_of(c), device, bytes);
    return numbers_of(c);
}

static bool is_result(const weft_call *c, const weft_tensor *t)
{
    bool found = false;
    for (int k = 0; k < c->m; k++)
        found |= c->y[k] == t;
    return found;
}

static bool is_input(const weft_call *c, const void *numbers)    /* a result may share memory with an input */
{
    bool found = false;
    for (int i = 0; i < c->n; i++)
        found |= c->x[i]->data == numbers;
    return found;
}

void *weft__host_data(const weft_tensor *t, const char *function)
{
    weft *w = t->w;
    const weft__work *work = w->tape ? w->tape->work : NULL;
    if (w->dev.k->synchronous || (work && !work->call->host))
        return t->data;
    if (!work) {
        weft__fail(w, WEFT_EARG,
                   "%s: outside a raw function; expected weft_read, because the numbers are on the device",
                   function);
        return NULL;
    }
    bool made = !work->back && is_result(work->call, t);
    return copy_of(w, t, t->data, !made || work->call->add || is_input(work->call, t->data), made);
}

void *weft__host_gradient(const weft_call *c, const weft_tensor *x, void *gradient, bool fetched, bool back)
{
    weft *w = x->w;
    if (!gradient || !c->host || w->dev.k->synchronous)
        return gradient;
    if (w->tape->work && w->tape->work->call == c)
        return copy_of(w, x, gradient, fetched, back);
    weft__fail(w, WEFT_EARG, "%s: a gradient was requested outside its fused function", c->op->name);
    return NULL;
}
