/* rewind.c - returns to an earlier moment of the step and ends everything made since. Arenas return to their
 * position at the mark. An older object may point to a newer one, as a batch does to a new index array. Each
 * such pointer has a link, which records its old value. A rewind restores these values. */
#include <string.h>
#include "core/report/check.h"

bool weft__set_undoable(weft *w, void *pointer, void *to)
{
    int64_t position = weft__position(w, WEFT__ARENA_BATCHES);
    weft__undo *l = weft__take(w, WEFT__ARENA_BATCHES, sizeof *l);
    if (!l)
        return false;
    *l = (weft__undo){ inside(w)->links, pointer, NULL, position };
    memcpy(&l->old, pointer, sizeof l->old);     /* memcpy: the pointer can have any type */
    memcpy(pointer, &to, sizeof to);
    inside(w)->links = l;
    return true;
}

static void unlink_since(weft *w, int64_t position)
{
    for (weft__undo *l; (l = inside(w)->links) && l->position >= position; inside(w)->links = l->next)
        memcpy(l->pointer, &l->old, sizeof l->old);
}

/* ---- marks ---- */
/* indices of weft_mark.at */
enum { ENTRIES = WEFT__MARK_ENTRIES, HEADERS = WEFT__MARK_HEADERS, CALLS, DATA, BATCHES, MAPS };

static int64_t headers(const weft *w)
{
    return w->check ? w->check->n : weft__position(w, weft__header_arena(w));
}

weft_mark weft_mark_here(weft *w)
{
    if (!w)
        return (weft_mark){ 0 };
    return (weft_mark){ { [ENTRIES] = weft__notify(w, WEFT__ENTRIES, NULL),
                          [HEADERS] = headers(w),
                          [CALLS] = weft__position(w, WEFT__ARENA_CALLS),
                          [DATA] = weft__position(w, WEFT__ARENA_DATA),
                          [BATCHES] = weft__position(w, WEFT__ARENA_BATCHES),
                          [MAPS] = weft__position(w, WEFT__ARENA_MAPS) },
                        w->step };
}

/* Fails the context if the mark is invalid. A position above the current one was ended by an earlier rewind.
 * One below the floor is memory of the function that runs the callback. */
static bool mark_is_sound(weft *w, weft_mark m)
{
    char text[WEFT__CALLBACK_TEXT];
    bool current = w && !weft__is_no_context(w) && m.step == w->step, ahead = false, below = false;
    weft_mark now = current ? weft_mark_here(w) : (weft_mark){ 0 };
    for (size_t i = 0; current && i < sizeof m.at / sizeof *m.at; i++) {
        ahead |= m.at[i] > now.at[i];
        below |= m.at[i] < inside(w)->callback.floor.at[i];
    }
    if (!current || ahead || (below && !inside(w)->callback.depth))
        weft__fail(w, WEFT_EARG, "rewind: the mark %s",
                   ahead ? "was ended by an earlier rewind" : "is of another step");
    else if (below)
        weft__fail(w, WEFT_EARG,
                   "rewind: the mark is older than the call of %s, which still runs; rewind there to a mark "
                   "that was taken inside it",
                   weft__callback_text(w, text));
    return current && !ahead && !below;
}

/* ---- back ---- */
static void invalidate_headers(weft *w, int64_t from)
{
    enum { HEADER = (sizeof(weft_tensor) + 63) / 64 * 64 };
    weft__arena *heads = &inside(w)->arena[weft__header_arena(w)];
    for (int b = heads->n ? heads->current : -1; b >= 0; b--) {
        int64_t start = heads->block[b].start, end = b == heads->current ? heads->used : heads->block[b].size;
        for (int64_t offset = from > start ? from - start : 0; offset + HEADER <= end; offset += HEADER)
            ((weft_tensor *)(void *)(heads->block[b].base + offset))->step = UINT64_MAX;
        if (start <= from)
            break;
    }
    weft__rewind_to(w, weft__header_arena(w), from);
}

void weft__rewind_numbers(weft *w, weft_mark m)
{
    weft__notify(w, WEFT__REWOUND, &m);
    if (w->check)
        weft__check_rewind(w, m.at[HEADERS], m.at[DATA]);
    else
        invalidate_headers(w, m.at[HEADERS]);
    weft__rewind_to(w, WEFT__ARENA_CALLS, m.at[CALLS]);
    weft__rewind_to(w, WEFT__ARENA_DATA, m.at[DATA]);
}

void weft_rewind(weft *w, weft_mark m)
{
    if ((w && inside(w)->callback.allocator && weft__callback_refuses(w, "rewind")) || !mark_is_sound(w, m))
        return;
    unlink_since(w, m.at[BATCHES]);
    weft__rewind_numbers(w, m);
    if (w->check)
        weft__check_poison(w, WEFT__ARENA_BATCHES, m.at[BATCHES]),
            weft__check_poison(w, WEFT__ARENA_MAPS, m.at[MAPS]);
    weft__rewind_to(w, WEFT__ARENA_BATCHES, m.at[BATCHES]);
    weft__rewind_to(w, WEFT__ARENA_MAPS, m.at[MAPS]);
}
