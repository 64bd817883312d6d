/* patterns.c - planners that work on how many sequences there are of each length: packs of equal contents are
 * one pattern and a number. */
#include <stdlib.h>
#include <string.h>
#include "plan/planners.h"

/* ---- patterns into rows ---- */
/* The sequences of a length lie together in the order: where those begin that are still to be dealt. */
static int64_t first_of(const int32_t *len, const int32_t *order, int64_t n, int32_t length)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (len[order[middle]] > length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* dealt [n]: at the first place of a length, how many of it have a row. */
static int64_t deal(const int32_t *len, const int32_t *order, int64_t n, const weft__pattern *first,
                    int32_t *dealt, int32_t *row)
{
    int64_t rows = 0;
    memset(dealt, 0, (size_t)n * sizeof *dealt);
    for (int64_t i = 0; i < n; i++)
        row[i] = -1;
    for (const weft__pattern *t = first; t; t = t->next)
        for (int64_t k = 0; k < t->times; k++, rows++)
            for (int32_t j = 0; j < t->pieces; j++) {
                int64_t at = first_of(len, order, n, t->length[j]);
                row[order[at + dealt[at]++]] = (int32_t)rows;
            }
    return rows;
}

weft_status weft__plan_patterns(weft_plan *p, const int32_t *len, int64_t n, const weft__pattern *first,
                                const weft_plan_opts *o)
{
    int32_t *order = weft__plan_drawn(o, n), *row = order ? weft__plan_memory(2 * n, sizeof *row) : NULL;
    weft_status s = WEFT_ENOMEM;
    if (row && weft__plan_sort(len, order, n, true, 0)) {
        int64_t rows = deal(len, order, n, first, row + n, row);
        s = weft__plan_rows(p, &(weft__pieces){ n, NULL, NULL, len }, order, row, rows, o->capacity, o);
    }
    free(order), free(row);
    return s;
}

/* ---- packs of one content, as the published programs hold them ---- */
/* pieces of a pack, the last of them, and the pack that it was before */
typedef struct pack {
    struct pack *next, *before, *all;
    int64_t times;
    int32_t pieces, length, copies;
} pack;
typedef struct {
    int64_t capacity, limit;
    int64_t *left; /* [capacity + 1] of each length */
    pack **with_gap; /* [capacity + 1] the packs that were added last first */
    pack *all; /* whatever was made, to be freed */
    bool failed;
} packs;

static pack *add_pack(packs *t, pack *before, int32_t length, int32_t copies, int64_t times, int64_t gap)
{
    pack *is = weft__plan_memory(1, sizeof *is);
    t->failed |= !is;
    if (!is)
        return NULL;
    int32_t pieces = (before ? before->pieces : 0) + copies;
    *is = (pack){ NULL, before, t->all, times, pieces, length, copies };
    t->all = is;
    is->next = t->with_gap[gap], t->with_gap[gap] = is;
    return is;
}

/* Whether a pack may take one more piece. */
static bool is_open(const packs *t, const pack *is) { return !t->limit || is->pieces < t->limit; }

/* Where the first pack with this gap hangs that may take a piece more; a NULL hangs there if none may. */
static pack **open_pack(packs *t, int64_t gap)
{
    pack **at = t->with_gap + gap;
    while (*at && (!is_open(t, *at) || !(*at)->times))
        at = &(*at)->next;
    return at;
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* `times` packs of *at get `copies` pieces more. */
static void extend(packs *t, pack **at, int64_t gap, int32_t length, int64_t copies, int64_t times)
{
    pack *is = *at;
    is->times -= times;
    if (!is->times)
        *at = is->next;
    add_pack(t, is, length, (int32_t)copies, times, gap - copies * length);
}

static int64_t copies_of(const packs *t, int32_t length, int64_t gap, int64_t pieces, int64_t left)
{
    int64_t fit = lesser(gap / length, left);
    return t->limit ? lesser(fit, t->limit - pieces) : fit;
}

/* Fresh packs of as many copies as `most` allows. */
static void open_packs(packs *t, int32_t length, int64_t most)
{
    int64_t *left = t->left + length;
    while (*left && !t->failed) {
        int64_t copies = lesser(most, copies_of(t, length, t->capacity, 0, *left)), times = *left / copies;
        add_pack(t, NULL, length, (int32_t)copies, times, t->capacity - copies * length);
        *left -= copies * times;
    }
}

/* Krell et al. 2021: all of one length into the packs with the largest gap, one each. */
static void pack_shortest(packs *t, int32_t length, bool stacked)
{
    int64_t *left = t->left + length;
    for (int64_t gap = t->capacity; gap >= length && *left && !t->failed;) {
        pack **at = open_pack(t, gap);
        if (!*at) {
            gap--;
            continue;
        }
        int64_t times = lesser(*left, (*at)->times);
        extend(t, at, gap, length, 1, times);
        *left -= times;
    }
    open_packs(t, length, stacked ? INT64_MAX : 1);
}

/* lpfhp.py with `distribute`: the smallest gap, as many copies at once as it holds. */
static void pack_longest(packs *t, int32_t length)
{
    int64_t *left = t->left + length;
    for (int64_t gap = length; *left && !t->failed;) {
        pack **at = gap <= t->capacity ? open_pack(t, gap) : NULL;
        if (!at) {
            int64_t copies = copies_of(t, length, t->capacity, 0, *left), times = *left / copies;
            add_pack(t, NULL, length, (int32_t)copies, times, t->capacity - copies * length);
            *left -= copies * times, gap = length;
        } else if (!*at) {
            gap++;
        } else {
            int64_t copies = copies_of(t, length, gap, (*at)->pieces, *left);
            int64_t times = lesser((*at)->times, *left / copies);
            extend(t, at, gap, length, copies, times);
            *left -= copies * times, gap = length;
        }
    }
}

/* ---- packs into patterns ---- */
static weft__pattern *pattern_of(const pack *is, weft__pattern *next)
{
    weft__pattern *to = weft__plan_memory(1, sizeof *to + (size_t)is->pieces * sizeof *to->length);
    if (!to)
        return NULL;
    *to = (weft__pattern){ next, is->times, is->pieces };
    int32_t at = is->pieces;
    for (const pack *k = is; k; k = k->before)
        for (int32_t c = 0; c < k->copies; c++)
            to->length[--at] = k->length;
    return to;
}

void weft__plan_free_patterns(weft__pattern *first)
{
    while (first) {
        weft__pattern *next = first->next;
        free(first), first = next;
    }
}

static void pack_all(packs *t, weft__manner how)
{
    for (int64_t length = t->capacity; length && !t->failed; length--)
        if (t->left[length] && how == WEFT__LONGEST_PACK)
            pack_longest(t, (int32_t)length);
        else if (t->left[length])
            pack_shortest(t, (int32_t)length, how == WEFT__STACKED_PACK);
}

bool weft__plan_packs(weft__manner how, int64_t *left, int64_t capacity, int64_t limit, weft__pattern **first)
{
    packs t = { .capacity = capacity, .limit = limit, .left = left };
    t.with_gap = weft__plan_memory(capacity, sizeof *t.with_gap);
    t.failed = !t.with_gap;
    for (int64_t i = 0; !t.failed && i <= capacity; i++)
        t.with_gap[i] = NULL;
    if (!t.failed)
        pack_all(&t, how);
    for (pack *is = t.all; is && !t.failed; is = is->all) {
        weft__pattern *more = is->times ? pattern_of(is, *first) : *first;
        t.failed = is->times && !more;
        *first = more ? more : *first;
    }
    for (pack *is = t.all, *next; is; is = next)
        next = is->all, free(is);
    free(t.with_gap);
    return !t.failed;
}

/* ---- how many there are of each length ---- */
weft_status weft__plan_count(const int32_t *len, int64_t n, const weft_plan_opts *o, int64_t **left)
{
    enum { MOST = 1 << 24 };
    weft_status s = weft__plan_fits(len, n, o->capacity);
    *left = NULL;
    if (s == WEFT_OK && o->capacity > MOST)
        s = weft_plan_refuse(WEFT_EARG, "capacity is %lld; this planner counts lengths, and takes at most %d",
                             (long long)o->capacity, MOST);
    if (s != WEFT_OK || !(*left = weft__plan_memory(o->capacity, sizeof **left)))
        return s == WEFT_OK ? WEFT_ENOMEM : s;
    memset(*left, 0, (size_t)(o->capacity + 1) * sizeof **left);
    for (int64_t i = 0; i < n; i++)
        (*left)[len[i]]++;
    return WEFT_OK;
}

static weft_status plan_packs(weft__manner how, const int32_t *len, int64_t n, const weft_plan_opts *o,
                              weft_plan *p)
{
    int64_t *left;
    weft__pattern *first = NULL;
    weft_status s = weft__plan_count(len, n, o, &left);
    if (s == WEFT_OK)
        s = weft__plan_packs(how, left, o->capacity, o->limit, &first) ?
                weft__plan_patterns(p, len, n, first, o) :
                WEFT_ENOMEM;
    weft__plan_free_patterns(first);
    free(left);
    return s;
}

#define PACKS(id, how, by, text)                                                                       \
    static weft_status plan_##id(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) \
    {                                                                                                  \
        return plan_packs(how, len, n, o, p);                                                          \
    }                                                                                                  \
    const weft_planner weft__planner_##id = { .name = #id,                                             \
                                              .source = by,                                            \
                                              .about = text,                                           \
                                              .options = "capacity limit rows shuffle",                \
                                              .promises = WEFT_PLAN_WHOLE,                             \
                                              .plan = plan_##id };
PACKS(spfhp, WEFT__SHORTEST_PACK, "Krell et al. 2021",
      "longest first into the largest gap, fresh packs of one")
PACKS(spfhp_stacked, WEFT__STACKED_PACK, "Krell et al. 2021, stacked",
      "the same, fresh packs filled with their length")
PACKS(lpfhp, WEFT__LONGEST_PACK, "packedBERT's lpfhp.py",
      "longest first into the smallest gap, copies at once")
