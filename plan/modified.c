/* modified.c - modified first fit decreasing (Johnson & Garey 1985): a row for each sequence above half a
 * row, then pairs of short ones for the rows that no sequence above a third fits. */
#include "plan/planners.h"

/* order: sequences, the longest first. They are named by their place in it. next [n + 1]: at a place with a
 * row, a later place; find with unplaced. gap, row, pieces: see fits.c. */
typedef struct {
    const int32_t *len;
    int32_t *order, *row, *next, *pieces;
    int64_t *gap, n, rows, capacity, limit;
} shelves;

static int32_t length_at(const shelves *t, int64_t place) { return t->len[t->order[place]]; }

/* Returns the first place from `place` on without a row; n: none. */
static int64_t unplaced(const shelves *t, int64_t place)
{
    for (; t->next[place] != place; place = t->next[place])
        t->next[place] = t->next[t->next[place]];
    return place;
}

/* Returns the longest sequence without a row of at most `length` tokens from place `from` on. */
static int64_t longest(const shelves *t, int64_t from, int64_t length)
{
    int64_t place = weft__plan_first_up_to(t->len, t->order, t->n, length);
    return unplaced(t, place > from ? place : from);
}

static void put(shelves *t, int64_t place, int64_t row)
{
    t->row[t->order[place]] = (int32_t)row;
    t->next[place] = (int32_t)place + 1;
    t->gap[row] -= length_at(t, place);
    t->pieces[row]++;
}

static int64_t room_of(const shelves *t, int64_t row) /* 0: closed by its limit */
{
    return t->limit && t->pieces[row] >= t->limit ? 0 : t->gap[row];
}

static void open_row(shelves *t, int64_t place)
{
    t->gap[t->rows] = t->capacity;
    t->pieces[t->rows] = 0;
    put(t, place, t->rows++);
}

/* Puts pairs of sequences at places from .. end - 1 into rows without a medium one, last row first: the
 * shortest, and the longest that then fits. Rows become fuller, so the first pair that does not fit ends. */
static void put_pairs(shelves *t, int64_t from, int64_t end)
{
    for (int64_t row = t->rows - 1; row >= 0 && (!t->limit || t->limit > 2); row--) {
        if (t->pieces[row] > 1)
            continue;
        while (end > from && unplaced(t, end - 1) != end - 1)
            end--;
        int64_t second = end - 2;
        while (second >= from && unplaced(t, second) != second)
            second--;
        if (second < from || length_at(t, end - 1) + length_at(t, second) > t->gap[row])
            return;
        put(t, longest(t, from, length_at(t, end - 1)), row);
        put(t, longest(t, from, t->gap[row]), row);
    }
}

static void deal(shelves *t)
{
    int64_t medium = weft__plan_first_up_to(t->len, t->order, t->n, t->capacity / 2),
            small = weft__plan_first_up_to(t->len, t->order, t->n, t->capacity / 3),
            tiny = weft__plan_first_up_to(t->len, t->order, t->n, t->capacity / 6),
            empty = weft__plan_first_up_to(t->len, t->order, t->n, 0);
    for (int64_t place = 0; place < medium; place++)
        open_row(t, place);
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t place = longest(t, medium, room_of(t, row));
        if (place < small)
            put(t, place, row);
    }
    put_pairs(t, small, tiny);
    for (int64_t row = 0, place; row < t->rows || unplaced(t, 0) < empty; row++) {
        if (row == t->rows)
            open_row(t, unplaced(t, 0));
        while ((place = longest(t, 0, room_of(t, row))) < empty)
            put(t, place, row);
    }
}

weft_status weft__planner_modified_first_fit_decreasing(const int32_t *len, int64_t n,
                                                        const weft_plan_opts *o, weft_plan *p)
{
    shelves t = { .len = len, .n = n, .capacity = o->capacity, .limit = o->limit };
    t.order = weft__plan_sorted(o, len, n, true);
    t.row = weft__plan_memory(3 * n + 1, sizeof *t.row);
    t.gap = weft__plan_memory(n, sizeof *t.gap);
    if (!t.order || !t.row || !t.gap)
        return WEFT_ENOMEM;
    t.pieces = t.row + n;
    t.next = t.pieces + n;
    for (int64_t i = 0; i <= n; i++)
        t.next[i] = (int32_t)i;
    for (int64_t i = 0; i < n; i++)
        t.row[i] = -1;
    deal(&t);
    return weft__plan_rows(p, len, n, t.order, t.row, t.rows, o->capacity, o);
}
