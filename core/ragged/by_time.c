/* by_time.c - turns a placement of sequences in rows into the columns of a recurrence. Each row becomes a
 * column, from its first cell to the end of its last sequence. Cells are stored step by step, the longest row
 * first. `reset` records for each cell whether a sequence begins there. A gap restarts from zeros, and its
 * results are unused. */
#include <string.h>
#include "core/inside.h"

/* Fills end [rows] with the end of each row and returns the largest. */
static int64_t find_ends(const weft_batch *b, const weft__place *p, int32_t *end)
{
    int64_t longest = 0;
    memset(end, 0, (size_t)p->rows * sizeof *end);
    for (int64_t s = 0; s < b->n; s++) {
        int32_t e = b->len[s] ? p->column[s] + b->len[s] : 0;
        end[p->row[s]] = e > end[p->row[s]] ? e : end[p->row[s]];
        longest = e > longest ? e : longest;
    }
    return longest;
}

static void mark_beginnings(const weft_batch *b, const weft__form *f, int64_t cells)
{
    int32_t *forwards = weft__index_values(f->place->fold->reset[0]),
            *backwards = weft__index_values(f->place->fold->reset[1]);
    for (int64_t i = 0; i < cells; i++)
        forwards[i] = backwards[i] = WEFT__ANEW;
    for (int64_t s = 0; s < b->n; s++)
        for (int64_t t = 0; t < b->len[s]; t++) {
            int64_t i = weft__row_of(b, f, s, t);
            forwards[i] = t == 0 ? b->unsorted.host[s] : WEFT__ON;
            backwards[i] = t == b->len[s] - 1 ? b->unsorted.host[s] : WEFT__ON;
        }
}

static weft__fold *fold_new(weft_batch *b, const weft__place *p)
{
    weft *w = b->w;
    weft__fold *f = weft__take(w, WEFT__ARENA_BATCHES, sizeof *f);
    int32_t *rank = weft__take(w, WEFT__ARENA_BATCHES, p->rows * (int64_t)sizeof *rank),
            *end = weft__take(w, WEFT__ARENA_BATCHES, p->rows * (int64_t)sizeof *end);
    if (!f || !rank || !end)
        return NULL;
    *f = (weft__fold){ .steps = find_ends(b, p, end), .order.rank = rank };
    f->order.live = weft__index(w, f->steps), f->order.start = weft__index(w, f->steps + 1);
    int32_t *next = weft__take(w, WEFT__ARENA_BATCHES, (f->steps + 1) * (int64_t)sizeof *next);
    if (w->status)
        return NULL;
    weft__rank(p->rows, end, f->steps, &f->order, next);
    f->columns = f->steps ? f->order.live.host[0] : 0;
    int64_t cells = f->order.start.host[f->steps];
    f->reset[0] = weft__index(w, cells), f->reset[1] = weft__index(w, cells);
    return w->status ? NULL : f;
}

const weft__place *weft__by_time(weft_batch *b, const weft__place *p)
{
    if (p->by_time || p->fold)
        return p->fold ? p : p->by_time;
    weft *w = b->w;
    weft__place *folded = weft__take(w, WEFT__ARENA_BATCHES, sizeof *folded);
    weft__fold *f = folded ? fold_new(b, p) : NULL;
    if (!f)
        return NULL;
    int64_t cells = f->order.start.host[f->steps];
    *folded = *p;
    folded->next = NULL;
    folded->cells = cells;
    folded->fold = f;
    mark_beginnings(b, &(weft__form){ .batch = b, .layout = WEFT_ROWS, .place = folded }, cells);
    weft__upload_index(w, &f->order.live, f->steps), weft__upload_index(w, &f->order.start, f->steps + 1);
    weft__upload_index(w, &f->reset[0], cells), weft__upload_index(w, &f->reset[1], cells);
    weft__place *own = (weft__place *)(uintptr_t)p;            /* the batch owns it and returns it as const */
    return weft__set_undoable(w, &own->by_time, folded) ? folded : NULL;
}
