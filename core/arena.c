/* arena.c - allocates all memory of a context. A step takes its memory from arenas, which grow by blocks and
 * are rewound when the step ends. A cleared arena becomes one block, slightly larger than the largest step so
 * far, so a steady-state step allocates nothing. AddressSanitizer sees ended memory as poisoned. Tests inject
 * failures of allocation here. */
#include <stdlib.h>
#include <string.h>
#include "core/inside.h"
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region(p, (size_t)(n))
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, (size_t)(n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

/* stored just before each block of host memory */
typedef struct { void *raw; size_t bytes; } tag;

static char *aligned(void *raw)
{
    return (char *)(((uintptr_t)raw + sizeof(tag) + WEFT__LINE - 1) & ~(uintptr_t)(WEFT__LINE - 1));
}

static const char *running_name(const weft *w) { return w->running ? w->running : "weft"; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- blocks ---- */
void *weft__try_allocate(weft *w, size_t bytes)
{
    size_t more = sizeof(tag) + WEFT__LINE;
    bool never = w->status || inside(w)->callback.allocator || bytes > SIZE_MAX - more;
    void *raw = never ? NULL : w->dev.allocate(bytes + more, w->dev.user);
    if (!raw)
        return NULL;
    char *p = aligned(raw);
    ((tag *)(void *)p)[-1] = (tag){ raw, bytes };
    inside(w)->allocations++, inside(w)->host_bytes += (int64_t)bytes;
    inside(w)->host_peak = larger(inside(w)->host_peak, inside(w)->host_bytes);
    return p;
}

void *weft__allocate(weft *w, size_t bytes)
{
    void *p = weft__try_allocate(w, bytes);
    if (!p)
        weft__fail(w, WEFT_ENOMEM, "%s: out of memory: %zu bytes", running_name(w), bytes);
    return p;
}

void weft__release(weft *w, void *p)
{
    if (!p)
        return;
    tag t = ((tag *)p)[-1];
    inside(w)->host_bytes -= (int64_t)t.bytes;
    w->dev.release(t.raw, w->dev.user);
}

/* The host cannot write into device memory, so a list stores the sizes of its blocks. */
static void *tried_on_device(weft *w, size_t bytes, bool lasts)
{
    if (w->dev.k->synchronous)
        return weft__try_allocate(w, bytes);
    weft__block *b = weft__try_allocate(w, sizeof *b);
    void *p = b ? w->dev.k->allocate(&w->dev, bytes, lasts) : NULL;
    if (!p) {
        weft__release(w, b);
        return NULL;
    }
    *b = (weft__block){ inside(w)->blocks, p, bytes, lasts };
    inside(w)->blocks = b;
    inside(w)->allocations++, inside(w)->device_bytes += (int64_t)bytes;
    inside(w)->device_peak = larger(inside(w)->device_peak, inside(w)->device_bytes);
    return p;
}

void *weft__device_allocate(weft *w, size_t bytes)
{
    void *p = tried_on_device(w, bytes, true);
    if (!p)
        weft__fail(w, WEFT_ENOMEM, "%s: out of memory%s: %zu bytes", running_name(w),
                   w->dev.k->synchronous ? "" : " on the device", bytes);
    return p;
}

void weft__device_release(weft *w, void *p)
{
    if (!p || w->dev.k->synchronous) {
        weft__release(w, p);
        return;
    }
    for (weft__block **link = &inside(w)->blocks, *b; (b = *link); link = &b->next)
        if (b->memory == p) {
            *link = b->next;
            inside(w)->device_bytes -= (int64_t)b->bytes;
            w->dev.k->release(&w->dev, p, b->lasts);
            weft__release(w, b);
            return;
        }
}

/* ---- arenas ---- */
static int64_t arena_extent(const weft__arena *a)
{
    return a->n ? a->block[a->n - 1].start + a->block[a->n - 1].size : 0;
}

/* Returns the bytes in use. The unused ends of earlier blocks do not count. */
static int64_t needed(const weft__arena *a)
{
    int64_t bytes = a->used;
    for (int b = 0; b < a->current; b++)
        bytes += a->block[b].filled;
    return bytes;
}

static bool visible(const weft *w, const weft__arena *a)
{
    return !a->permanent && (!a->device || w->dev.k->synchronous);
}

/* Allocates the next block. The first has the size that earlier steps needed. Later ones double a small arena
 * and add a quarter to a large one, to limit waste. Without memory it tries smaller blocks, down to the bytes
 * needed. */
static char *next_block(weft *w, weft__arena *a, int64_t bytes, int64_t *size)
{
    enum { SMALL = 1 << 26 };
    int64_t least = larger(bytes, 1 << 16), all = arena_extent(a);
    char *base = NULL;
    *size = larger(least, a->n == 0 ? a->first : all < SMALL ? all : weft__whole_lines(all / 4));
    while (a->n < WEFT__BLOCKS &&
           !(base = a->device ? tried_on_device(w, (size_t)*size, false) :
                              weft__try_allocate(w, (size_t)*size)) &&
           *size > least)
        *size = larger(least, *size / 2 & ~(int64_t)(WEFT__LINE - 1));
    return base;
}

static bool grow_arena(weft *w, weft__arena *a, int64_t bytes)
{
    int64_t size;
    char *base = next_block(w, a, bytes, &size);
    if (!base) {
        bool full = a->n == WEFT__BLOCKS;
        weft__fail(w, WEFT_ENOMEM, "%s: out of memory%s: %lld bytes%s", running_name(w),
                   a->device && !w->dev.k->synchronous ? " on the device" : "", (long long)bytes,
                   full ? ", in an arena of too many blocks" : "");
        return false;
    }
    if (a->n)
        a->block[a->current].filled = a->used;
    a->block[a->n].start = arena_extent(a), a->block[a->n].base = base, a->block[a->n].size = size;
    a->current = a->n++;
    a->used = 0;
    if (visible(w, a))
        POISON(base, size);
    return true;
}

struct weft__failing_take weft__failing_take;

void *weft__take(weft *w, weft__arena_id id, int64_t bytes)
{
    weft__arena *a = &inside(w)->arena[id];
    if (w->status)
        return NULL;
    if (w == weft__failing_take.w && weft__failing_take.left && !--weft__failing_take.left) {
        weft__fail(w, WEFT_ENOMEM, "%s: out of memory: %lld bytes (injected by a test)", running_name(w),
                   (long long)bytes);
        return NULL;
    }
    bytes = bytes > 0 ? weft__whole_lines(bytes) : WEFT__LINE;
    while (a->current < a->n - 1 && a->used + bytes > a->block[a->current].size)
        a->block[a->current++].filled = a->used, a->used = 0;
    if ((a->n == 0 || a->used + bytes > a->block[a->current].size) && !grow_arena(w, a, bytes))
        return NULL;
    void *p = a->block[a->current].base + a->used;
    a->used += bytes;
    if (visible(w, a))
        UNPOISON(p, bytes);
    return p;
}

int64_t weft__position(const weft *w, weft__arena_id id)
{
    const weft__arena *a = &inside(w)->arena[id];
    return a->n ? a->block[a->current].start + a->used : 0;
}

void weft__rewind_to(weft *w, weft__arena_id id, int64_t position)
{
    weft__arena *a = &inside(w)->arena[id];
    a->peak = larger(a->peak, needed(a));
    int last = a->current;
    int64_t end = a->used;
    while (a->current > 0 && a->block[a->current].start > position)
        a->current--;
    a->used = a->n ? position - a->block[a->current].start : 0;
    for (int b = a->current; visible(w, a) && b <= last && b < a->n; b++) {
        int64_t from = b == a->current ? a->used : 0;
        POISON(a->block[b].base + from, (b == last ? end : a->block[b].size) - from);
    }
}

void weft__arena_end(weft *w, weft__arena_id id)
{
    weft__arena *a = &inside(w)->arena[id];
    for (int b = 0; b < a->n; b++) {
        if (visible(w, a))
            UNPOISON(a->block[b].base, a->block[b].size);
        if (a->device)
            weft__device_release(w, a->block[b].base);
        else
            weft__release(w, a->block[b].base);
    }
    a->n = a->current = 0;
    a->used = 0;
}

void weft__arena_clear(weft *w, weft__arena_id id)
{
    weft__arena *a = &inside(w)->arena[id];
    a->peak = larger(a->peak, needed(a));
    a->first = weft__whole_lines(a->peak + a->peak / 16);
    if (a->n > 1 && !a->permanent)
        weft__arena_end(w, id);                  /* the next step allocates one block of this size */
    else
        weft__rewind_to(w, id, 0);
}

/* After ENOMEM the arena forgets how large its steps were. Header arenas keep their memory because stale
 * handles are read. */
void weft__arena_forget(weft *w, weft__arena_id id)
{
    weft__arena *a = &inside(w)->arena[id];
    if (!a->permanent)
        weft__arena_end(w, id);
    a->first = a->peak = 0;
}

/* ---- the spare block ---- */
void *weft__take_spare(weft *w, size_t *bytes)
{
    void *p = inside(w)->spare;
    *bytes = inside(w)->spare_bytes;
    inside(w)->spare = NULL;
    inside(w)->spare_bytes = 0;
    return p;
}

void weft__return_spare(weft *w, void *p, size_t bytes)
{
    void *other = p;
    if (bytes > inside(w)->spare_bytes) {
        other = inside(w)->spare;
        inside(w)->spare = p;
        inside(w)->spare_bytes = bytes;
    }
    weft__release(w, other);
}
