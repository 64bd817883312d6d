/* build.c - builds plans from segments, batches and rows; the message and the memory of this thread. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/os.h"
#include "plan/plan.h"

enum { SEGMENTS, BATCHES, OPEN }; /* indices of room: capacity of segments, of batches, first segment of the
                                   * unfinished batch */

/* ---- messages and memory ---- */
static _Thread_local char message[512];

const char *weft_plan_message(void) { return message; }

weft_status weft_plan_refuse(weft_status status, const char *format, ...)
{
    char text[sizeof message] = ""; /* an argument may be the last message */
    if (format)
        WEFT__PLAIN_TEXT(text, sizeof text, format);
    memcpy(message, text, sizeof message);
    return status;
}

/* A block of memory, in a list with the newest block first. */
struct weft__plan_scope {
    weft__plan_scope *before;
    max_align_t bytes[];
};
static _Thread_local weft__plan_scope *newest;

void *weft__plan_memory(int64_t n, size_t bytes)
{
    bool fits = n >= 0 && (uint64_t)n < SIZE_MAX / 4 / bytes;
    weft__plan_scope *block = fits ? malloc(sizeof *block + ((size_t)n + 1) * bytes) : NULL;
    if (!block) {
        weft_plan_refuse(WEFT_ENOMEM, "plan: no memory for %lld times %zu bytes", (long long)n, bytes);
        return NULL;
    }
    block->before = newest;
    newest = block;
    return block->bytes;
}

weft__plan_scope *weft__plan_scope_open(void) { return newest; }

void weft__plan_scope_close(weft__plan_scope **outer)
{
    while (newest != *outer) {
        weft__plan_scope *scope = newest;
        newest = scope->before;
        free(scope);
    }
}

void weft_plan_free(weft_plan *p)
{
    if (!p)
        return;
    free(p->batch);
    free(p->segment);
    *p = (weft_plan){ 0 };
}

/* ---- growing ---- */
bool weft__plan_grow(void *list, int64_t *room, int64_t needed, size_t bytes)
{
    if (needed <= *room)
        return true;
    int64_t more = needed > 2 * *room ? needed : 2 * *room;
    void *array;
    memcpy(&array, list, sizeof array);
    array = (uint64_t)more > SIZE_MAX / bytes ? NULL : realloc(array, (size_t)more * bytes);
    if (!array)
        return weft_plan_refuse(WEFT_ENOMEM, "plan: no memory for a list of %lld", (long long)needed), false;
    memcpy(list, &array, sizeof array);
    *room = more;
    return true;
}

bool weft__plan_is_intact(const weft_plan *p)
{
    return p->segments >= 0 && p->segments <= p->room[SEGMENTS] && p->batches >= 0 &&
           p->batches <= p->room[BATCHES];
}

weft_status weft_plan_add(weft_plan *p, weft_segment s)
{
    if (!p)
        return weft_plan_refuse(WEFT_EARG, "plan_add: plan is NULL; expected a plan");
    if (!weft__plan_grow(&p->segment, &p->room[SEGMENTS], p->segments + 1, sizeof *p->segment))
        return WEFT_ENOMEM;
    p->segment[p->segments++] = s;
    return WEFT_OK;
}

weft_status weft_plan_end_batch(weft_plan *p, int64_t rows, int64_t width)
{
    if (!p)
        return weft_plan_refuse(WEFT_EARG, "plan_end_batch: plan is NULL; expected a plan");
    if (rows < 0 || width < 0 || rows > INT32_MAX || width > WEFT__PLAN_WIDTH)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_end_batch: %lld rows of %lld cells; expected 0 .. %d rows of 0 .. "
                                "%lld cells",
                                (long long)rows, (long long)width, INT32_MAX, (long long)WEFT__PLAN_WIDTH);
    if (!weft__plan_grow(&p->batch, &p->room[BATCHES], p->batches + 1, sizeof *p->batch))
        return WEFT_ENOMEM;
    p->batch[p->batches++] = (weft_plan_batch){ p->room[OPEN], p->segments - p->room[OPEN], rows, width };
    p->room[OPEN] = p->segments;
    return WEFT_OK;
}

int64_t weft__plan_open(const weft_plan *p) { return p->segments - p->room[OPEN]; }

/* ---- batches whose segments are one row each ---- */
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

/* Shuffles the batches with their segments. The plan must not carry states. */
weft_status weft__plan_shuffle_batches(const weft_plan_opts *o, weft_plan *p)
{
    if (!o->shuffle || !p->batches)
        return WEFT_OK;
    int32_t *turn = weft__plan_order(p->batches);
    weft_segment *segment = weft__plan_memory(p->segments, sizeof *segment);
    weft_plan_batch *batch = weft__plan_memory(p->batches, sizeof *batch);
    if (!turn || !segment || !batch)
        return WEFT_ENOMEM;
    weft__plan_shuffle(o, turn, p->batches);
    int64_t next = 0;
    for (int64_t b = 0; b < p->batches; b++) {
        batch[b] = p->batch[turn[b]];
        memcpy(segment + next, p->segment + batch[b].first, (size_t)batch[b].n * sizeof *segment);
        batch[b].first = next;
        next += batch[b].n;
    }
    memcpy(p->segment, segment, (size_t)next * sizeof *segment);
    memcpy(p->batch, batch, (size_t)p->batches * sizeof *batch);
    return WEFT_OK;
}

/* ---- rows of sequences ---- */
/* Stores the sequences of row r as segments next[r] .. of the plan. next [rows + 1], fill [rows] are
 * scratch. */
static void place_all(weft_plan *p, const int32_t *len, int64_t n, const int32_t *order, const int32_t *row,
                      int64_t rows, const int32_t *turn, int64_t *next, int64_t *fill)
{
    memset(next, 0, (size_t)(rows + 1) * sizeof *next);
    memset(fill, 0, (size_t)rows * sizeof *fill);
    for (int64_t i = 0; i < n; i++)
        if (row[i] >= 0)
            next[turn[row[i]] + 1]++;
    for (int64_t r = 0; r < rows; r++)
        next[r + 1] += next[r];
    for (int64_t k = 0; k < n; k++) {
        int64_t i = order[k];
        if (row[i] < 0)
            continue;
        int64_t r = turn[row[i]];
        /* so next[r] is the end of row r afterwards */
        p->segment[next[r]++] = (weft_segment){ i, fill[r], 0, len[i], (int32_t)r, -1 };
        fill[r] += len[i];
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

weft_status weft__plan_rows(weft_plan *p, const int32_t *len, int64_t n, const int32_t *order,
                            const int32_t *row, int64_t rows, int64_t width, const weft_plan_opts *o)
{
    int32_t *turn = weft__plan_order(rows);
    int64_t *next = weft__plan_memory(rows + 1, sizeof *next), *fill = weft__plan_memory(rows, sizeof *fill);
    p->in_rows = true;
    if (!turn || !next || !fill || !weft__plan_grow(&p->segment, &p->room[SEGMENTS], n, sizeof *p->segment))
        return WEFT_ENOMEM;
    weft__plan_shuffle(o, turn, rows);
    place_all(p, len, n, order, row, rows, turn, next, fill);
    return end_rows(p, rows, width, o->rows && o->rows < rows ? o->rows : rows, next);
}
