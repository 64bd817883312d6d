/* build.c - how a plan grows: segments, batches, rows. */
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

enum { SEGMENTS, BATCHES, OPEN }; /* of room: what there is room for, and where the open batch begins */

void weft_plan_free(weft_plan *p)
{
    if (!p)
        return;
    free(p->batch);
    free(p->segment);
    *p = (weft_plan){ 0 };
}

/* ---- growing ---- */
static bool grow(void **array, int64_t *room, int64_t needed, size_t bytes)
{
    if (needed <= *room)
        return true;
    int64_t more = needed > 2 * *room ? needed : 2 * *room;
    void *bigger = (uint64_t)more > SIZE_MAX / bytes ? NULL : realloc(*array, (size_t)more * bytes);
    if (!bigger)
        return weft_plan_refuse(WEFT_ENOMEM, "plan: no memory for %lld segments", (long long)needed), false;
    *array = bigger;
    *room = more;
    return true;
}

bool weft__plan_reserve(weft_plan *p, int64_t segments)
{
    void *array = p->segment;
    bool good = grow(&array, &p->room[SEGMENTS], segments, sizeof *p->segment);
    p->segment = array;
    return good;
}

bool weft__plan_is_intact(const weft_plan *p)
{
    return p->segments >= 0 && p->segments <= p->room[SEGMENTS] && p->batches >= 0 &&
           p->batches <= p->room[BATCHES];
}

weft_status weft_plan_add(weft_plan *p, weft_segment s)
{
    if (!p)
        return weft_plan_refuse(WEFT_EARG, "plan_add: no plan given");
    if (!weft__plan_reserve(p, p->segments + 1))
        return WEFT_ENOMEM;
    p->segment[p->segments++] = s;
    return WEFT_OK;
}

weft_status weft_plan_end_batch(weft_plan *p, int64_t rows, int64_t width)
{
    if (!p)
        return weft_plan_refuse(WEFT_EARG, "plan_end_batch: no plan given");
    if (rows < 0 || width < 0 || rows > INT32_MAX || width > WEFT__PLAN_WIDTH)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_end_batch: %lld rows of %lld cells; 0 .. %d rows of 0 .. %lld cells "
                                "are expected",
                                (long long)rows, (long long)width, INT32_MAX, (long long)WEFT__PLAN_WIDTH);
    void *array = p->batch;
    bool good = grow(&array, &p->room[BATCHES], p->batches + 1, sizeof *p->batch);
    p->batch = array;
    if (!good)
        return WEFT_ENOMEM;
    p->batch[p->batches++] = (weft_plan_batch){ p->room[OPEN], p->segments - p->room[OPEN], rows, width };
    p->room[OPEN] = p->segments;
    return WEFT_OK;
}

int64_t weft__plan_open(const weft_plan *p) { return p->segments - p->room[OPEN]; }

/* ---- batches of whole sequences, or of pieces, each a row ---- */
weft_status weft__plan_add_whole(weft_plan *p, const int32_t *len, int64_t sequence)
{
    int32_t row = (int32_t)(p->segments - p->room[OPEN]);
    return weft_plan_add(p, (weft_segment){ sequence, 0, 0, len[sequence], row, -1 });
}

weft_status weft__plan_end_whole(weft_plan *p)
{
    int64_t rows = p->segments - p->room[OPEN], width = 0;
    for (int64_t i = p->room[OPEN]; i < p->segments; i++)
        width = p->segment[i].length > width ? p->segment[i].length : width;
    return weft_plan_end_batch(p, rows, width);
}

weft_status weft__plan_cut(weft_plan *p, const int32_t *len, const int32_t *order, int64_t n, int64_t count)
{
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < n && s == WEFT_OK; i++) {
        s = weft__plan_add_whole(p, len, order[i]);
        if (s == WEFT_OK && (i == n - 1 || (i + 1) % count == 0))
            s = weft__plan_end_whole(p);
    }
    return s;
}

/* The batches in a drawn order, their segments with them; without carries. */
weft_status weft__plan_shuffle_batches(const weft_plan_opts *o, weft_plan *p)
{
    int32_t *turn = o->shuffle ? weft__plan_order(p->batches) : NULL;
    if (!o->shuffle)
        return WEFT_OK;
    weft_segment *segment = turn ? weft__plan_memory(p->segments, sizeof *segment) : NULL;
    weft_plan_batch *batch = segment ? weft__plan_memory(p->batches, sizeof *batch) : NULL;
    if (!batch) {
        free(turn);
        free(segment);
        return WEFT_ENOMEM;
    }
    weft__plan_shuffle(o, turn, p->batches);
    int64_t at = 0;
    for (int64_t b = 0; b < p->batches; b++) {
        batch[b] = p->batch[turn[b]];
        memcpy(segment + at, p->segment + batch[b].first, (size_t)batch[b].n * sizeof *segment);
        batch[b].first = at;
        at += batch[b].n;
    }
    free(p->segment);
    free(p->batch);
    free(turn);
    p->segment = segment;
    p->batch = batch;
    p->room[SEGMENTS] = p->segments;
    p->room[BATCHES] = p->batches;
    return WEFT_OK;
}

/* ---- rows of pieces ---- */
weft_segment weft__plan_segment(const weft__pieces *from, int64_t i)
{
    return (weft_segment){ .sequence = from->sequence ? from->sequence[i] : i,
                           .offset = from->offset ? from->offset[i] : 0,
                           .length = from->length[i],
                           .carry = -1 };
}

/* Returns how long the next piece of a sequence is. most: as for weft__plan_cut_up. */
static int32_t next_piece(int32_t left, int64_t most)
{
    if (most)
        return left < most ? left : (int32_t)most;
    return (int32_t)1 << (31 - __builtin_clz((unsigned)left));
}

weft_status weft__plan_cut_up(const char *planner, const int32_t *len, const int32_t *order, int64_t n,
                              int64_t most, weft__cuts *out)
{
    int64_t pieces = 0, k = 0;
    for (int64_t i = 0; i < n; i++)
        pieces += most ? (len[i] + most - 1) / most : __builtin_popcount((unsigned)len[i]);
    if (pieces > INT32_MAX)
        return weft_plan_refuse(WEFT_EARG, "%s: %lld pieces; at most %d are expected", planner,
                                (long long)pieces, INT32_MAX);
    int32_t *sequence = out->memory = weft__plan_memory(3 * pieces, sizeof *sequence);
    if (!sequence)
        return WEFT_ENOMEM;
    int32_t *offset = sequence + pieces, *length = offset + pieces;
    for (int64_t at = 0; at < n; at++) {
        int32_t i = order ? order[at] : (int32_t)at;
        for (int32_t begin = 0; begin < len[i]; begin += length[k++]) {
            sequence[k] = i;
            offset[k] = begin;
            length[k] = next_piece(len[i] - begin, most);
        }
    }
    out->pieces = (weft__pieces){ pieces, sequence, offset, length };
    return WEFT_OK;
}

/* The pieces of row r become segments at[r] .. of the plan; at [rows + 1] counts first, fill [rows]
 * follows. */
static void place_pieces(weft_plan *p, const weft__pieces *from, const int32_t *order, const int32_t *row,
                         int64_t rows, const int32_t *turn, int64_t *at, int64_t *fill)
{
    memset(at, 0, (size_t)(rows + 1) * sizeof *at);
    memset(fill, 0, (size_t)rows * sizeof *fill);
    for (int64_t i = 0; i < from->n; i++)
        if (row[i] >= 0)
            at[turn[row[i]] + 1]++;
    for (int64_t r = 0; r < rows; r++)
        at[r + 1] += at[r];
    for (int64_t k = 0; k < from->n; k++) {
        int64_t i = order[k];
        if (row[i] < 0)
            continue;
        int64_t r = turn[row[i]];
        weft_segment s = weft__plan_segment(from, i);
        s.row = (int32_t)r;
        s.column = fill[r];
        fill[r] += s.length;
        p->segment[at[r]++] = s; /* afterwards at[r] is where row r ends */
    }
}

static weft_status end_rows(weft_plan *p, int64_t rows, int64_t width, int64_t each, const int64_t *ends)
{
    weft_status s = WEFT_OK;
    for (int64_t first = 0; first < rows && s == WEFT_OK; first += each) {
        int64_t n = rows - first < each ? rows - first : each;
        for (int64_t i = p->segments; i < ends[first + n - 1]; i++)
            p->segment[i].row -= (int32_t)first;
        p->segments = ends[first + n - 1];
        s = weft_plan_end_batch(p, n, width);
    }
    return s;
}

weft_status weft__plan_rows(weft_plan *p, const weft__pieces *from, const int32_t *order, const int32_t *row,
                            int64_t rows, int64_t width, const weft_plan_opts *o)
{
    int32_t *turn = weft__plan_order(rows);
    int64_t *at = turn ? weft__plan_memory(rows + 1, sizeof *at) : NULL,
            *fill = at ? weft__plan_memory(rows, sizeof *fill) : NULL;
    weft_status s = WEFT_ENOMEM;
    p->in_rows = true;
    if (fill && weft__plan_reserve(p, from->n)) {
        weft__plan_shuffle(o, turn, rows);
        place_pieces(p, from, order, row, rows, turn, at, fill);
        s = end_rows(p, rows, width, o->rows && o->rows < rows ? o->rows : rows, at);
    }
    free(turn);
    free(at);
    free(fill);
    return s;
}
