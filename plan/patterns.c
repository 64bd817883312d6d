/* patterns.c - planners that count the sequences of each length. Rows with equal lengths are one pattern and
 * a number. */
#include <string.h>
#include "plan/planners.h"

/* ---- shared by the planners ---- */
weft__pattern *weft__pattern_new(weft__pattern *next, int64_t times, int32_t pieces)
{
    weft__pattern *pattern = weft__plan_memory(1, sizeof *pattern + (size_t)pieces * sizeof *pattern->length);
    if (pattern)
        *pattern = (weft__pattern){ next, times, pieces };
    return pattern;
}

/* Counts the sequences of each length, remaining [capacity + 1]. */
static weft_status count_lengths(const int32_t *len, int64_t n, const weft_plan_opts *o, int64_t **remaining)
{
    enum { MOST = 1 << 24 };
    if (o->capacity > MOST)
        return weft_plan_refuse(WEFT_EARG, "capacity is %lld; expected at most %d, because this planner "
                                           "counts sequences of each length",
                                (long long)o->capacity, MOST);
    *remaining = weft__plan_memory(o->capacity, sizeof **remaining);
    if (!*remaining)
        return WEFT_ENOMEM;
    memset(*remaining, 0, (size_t)(o->capacity + 1) * sizeof **remaining);
    for (int64_t i = 0; i < n; i++)
        (*remaining)[len[i]]++;
    return WEFT_OK;
}

/* Assigns the sequences of each length in their order. dealt [n]: at the first index of a length, how many of
 * that length have a row. */
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
                int64_t index = weft__plan_first_up_to(len, order, n, t->length[j]);
                row[order[index + dealt[index]++]] = (int32_t)rows;
            }
    return rows;
}

static weft_status make_rows(weft_plan *p, const int32_t *len, int64_t n, const weft__pattern *first,
                             const weft_plan_opts *o)
{
    int32_t *order = weft__plan_sorted(o, len, n, true), *row = weft__plan_memory(2 * n, sizeof *row);
    if (!order || !row)
        return WEFT_ENOMEM;
    int64_t rows = deal(len, order, n, first, row + n, row);
    return weft__plan_rows(p, len, n, order, row, rows, o->capacity, o);
}

weft_status weft__plan_patterns(weft__packing *pack, const int32_t *len, int64_t n, const weft_plan_opts *o,
                                weft_plan *p)
{
    int64_t *remaining = NULL;
    weft__pattern *first = NULL;
    weft_status s = count_lengths(len, n, o, &remaining);
    if (s != WEFT_OK)
        return s;
    return pack(remaining, o->capacity, o->limit, &first) ? make_rows(p, len, n, first, o) : WEFT_ENOMEM;
}

/* ---- packs with equal contents, as in the published programs ---- */
typedef enum { SHORTEST, STACKED, LONGEST } manner;
/* Packs of the pack `before` and `copies` pieces of one length. pieces: in all; all: list of all packs. */
typedef struct pack {
    struct pack *next, *before, *all;
    int64_t times;
    int32_t pieces, length, copies;
} pack;
typedef struct {
    int64_t capacity, limit;
    int64_t *remaining;                          /* [capacity + 1] sequences of each length */
    pack **with_gap;                             /* [capacity + 1] lists, the newest pack first */
    pack *all;                                   /* list of all packs */
    bool failed;
} packs;

static pack *add_pack(packs *t, pack *before, int32_t length, int32_t copies, int64_t times, int64_t gap)
{
    pack *added = weft__plan_memory(1, sizeof *added);
    t->failed |= !added;
    if (!added)
        return NULL;
    int32_t pieces = (before ? before->pieces : 0) + copies;
    *added = (pack){ NULL, before, t->all, times, pieces, length, copies };
    t->all = added;
    added->next = t->with_gap[gap];
    t->with_gap[gap] = added;
    return added;
}

/* Returns the link to the first pack with this gap that may take a piece; *link is NULL if none may. */
static pack **open_pack(packs *t, int64_t gap)
{
    pack **link = t->with_gap + gap;
    while (*link && ((t->limit && (*link)->pieces >= t->limit) || !(*link)->times))
        link = &(*link)->next;
    return link;
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* Adds `copies` pieces to `times` packs of *link. */
static void extend(packs *t, pack **link, int64_t gap, int32_t length, int64_t copies, int64_t times)
{
    pack *extended = *link;
    extended->times -= times;
    if (!extended->times)
        *link = extended->next;
    add_pack(t, extended, length, (int32_t)copies, times, gap - copies * length);
}

static int64_t copies_of(const packs *t, int32_t length, int64_t gap, int64_t pieces, int64_t remaining)
{
    int64_t fit = lesser(gap / length, remaining);
    return t->limit ? lesser(fit, t->limit - pieces) : fit;
}

/* Opens new packs, each with as much as `most` copies. */
static void open_packs(packs *t, int32_t length, int64_t most)
{
    int64_t *remaining = t->remaining + length;
    while (*remaining && !t->failed) {
        int64_t copies = lesser(most, copies_of(t, length, t->capacity, 0, *remaining)),
                times = *remaining / copies;
        add_pack(t, NULL, length, (int32_t)copies, times, t->capacity - copies * length);
        *remaining -= copies * times;
    }
}

/* Packs all sequences of one length. SHORTEST, STACKED: one into each pack, largest gap first (Krell et al.
 * 2021). LONGEST: copies into each pack, smallest gap first (lpfhp.py with `distribute`). */
static void pack_length(packs *t, int32_t length, manner method)
{
    int64_t *remaining = t->remaining + length;
    for (int64_t gap = method == LONGEST ? length : t->capacity;
         gap >= length && gap <= t->capacity && *remaining && !t->failed;) {
        pack **link = open_pack(t, gap);
        if (!*link) {
            gap += method == LONGEST ? 1 : -1;
            continue;
        }
        int64_t copies = method == LONGEST ? copies_of(t, length, gap, (*link)->pieces, *remaining) : 1,
                times = lesser(*remaining / copies, (*link)->times);
        extend(t, link, gap, length, copies, times);
        *remaining -= copies * times;
    }
    open_packs(t, length, method == SHORTEST ? 1 : INT64_MAX);
}

/* ---- from packs to patterns ---- */
static bool add_pattern(const pack *source, weft__pattern **first)
{
    weft__pattern *to = weft__pattern_new(*first, source->times, source->pieces);
    if (!to)
        return false;
    int32_t index = source->pieces;
    for (const pack *k = source; k; k = k->before)
        for (int32_t c = 0; c < k->copies; c++)
            to->length[--index] = k->length;
    *first = to;
    return true;
}

static bool pack_by(manner method, int64_t *remaining, int64_t capacity, int64_t limit, weft__pattern **first)
{
    packs t = { .capacity = capacity, .limit = limit, .remaining = remaining };
    t.with_gap = weft__plan_memory(capacity, sizeof *t.with_gap);
    t.failed = !t.with_gap;
    for (int64_t i = 0; !t.failed && i <= capacity; i++)
        t.with_gap[i] = NULL;
    for (int64_t length = capacity; length && !t.failed; length--)
        pack_length(&t, (int32_t)length, method);
    for (pack *current = t.all; current && !t.failed; current = current->all)
        t.failed = current->times && !add_pattern(current, first);
    return !t.failed;
}

#define PACK_BY(name, method)                                                                          \
    bool name(int64_t *remaining, int64_t capacity, int64_t limit, weft__pattern **first)              \
    {                                                                                                  \
        return pack_by(method, remaining, capacity, limit, first);                                     \
    }
static PACK_BY(pack_spfhp, SHORTEST)
static PACK_BY(pack_stacked, STACKED)
PACK_BY(weft__pack_lpfhp, LONGEST)

/* ---- rows filled exactly, by subset sums ---- */
/* A pattern begins with the longest remaining length; the others fill the rest as far as possible. length,
 * remaining [d]: the distinct lengths, descending, and the number of sequences of each. of[s]: 1 + the index
 * of the length that first reached the sum s; 0: not reached. used[s]: pieces of that length in the sum;
 * pieces[s]: all its pieces. pattern: indices of lengths. */
typedef struct {
    int64_t capacity, limit, d;
    int32_t *length, *of, *used, *pieces, *pattern;
    int64_t *remaining;
} filler;

/* Returns the largest sum up to `most` of lengths from index k on. The search ends at `most`. */
static int64_t fill(filler *f, int32_t k, int64_t most)
{
    int64_t top = 0;
    memset(f->of, 0, (size_t)(most + 1) * sizeof *f->of);
    f->pieces[0] = 1; /* the piece that begins the pattern */
    for (; k < f->d && top < most; k++) {
        int32_t length = f->length[k];
        if (!f->remaining[k] || length > most)
            continue;
        int64_t before = top;
        for (int64_t s = 0, sum = length; sum <= most && s <= top; s++, sum++) {
            bool again = f->of[s] == k + 1 && s;
            int32_t used = again ? f->used[s] : 0;
            if ((s && !f->of[s]) || f->of[sum] || used >= f->remaining[k] ||
                (f->limit && f->pieces[s] >= f->limit) || (!again && s > before))
                continue;
            f->of[sum] = k + 1;
            f->used[sum] = used + 1;
            f->pieces[sum] = f->pieces[s] + 1;
            top = sum > top ? sum : top;
        }
    }
    return top;
}

/* Finds the pattern that begins with length k. Returns the number of its pieces. */
static int32_t find_pattern(filler *f, int32_t k)
{
    f->remaining[k]--;
    int64_t sum = fill(f, k, f->capacity - f->length[k]);
    f->remaining[k]++;
    f->pattern[0] = k;
    int32_t n = f->pieces[sum];
    for (int32_t index = n; sum; sum -= f->length[f->pattern[index]]) {
        index--;
        f->pattern[index] = f->of[sum] - 1;
    }
    return n;
}

/* Returns how often the remaining sequences allow the pattern. */
static int64_t most_times(const filler *f, int32_t n)
{
    int64_t times = INT64_MAX;
    for (int32_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && f->pattern[i + same] == f->pattern[i];)
            same++;
        int64_t remaining = f->remaining[f->pattern[i]] / same;
        times = remaining < times ? remaining : times;
    }
    return times;
}

static bool use_pattern(filler *f, int32_t k, weft__pattern **first)
{
    int32_t n = find_pattern(f, k);
    weft__pattern *to = weft__pattern_new(*first, most_times(f, n), n);
    for (int32_t i = 0; to && i < n; i++) {
        to->length[i] = f->length[f->pattern[i]];
        f->remaining[f->pattern[i]] -= to->times;
    }
    *first = to ? to : *first;
    return to != NULL;
}

static bool filler_new(filler *f, const int64_t *remaining, int64_t capacity, int64_t limit)
{
    int64_t each = capacity + 1;
    *f = (filler){ .capacity = capacity, .limit = limit };
    f->length = weft__plan_memory(5 * each, sizeof *f->length);
    f->remaining = weft__plan_memory(each, sizeof *f->remaining);
    if (!f->length || !f->remaining)
        return false;
    f->of = f->length + each;
    f->used = f->of + each;
    f->pieces = f->used + each;
    f->pattern = f->pieces + each;
    for (int64_t l = capacity; l; l--)
        if (remaining[l]) {
            f->remaining[f->d] = remaining[l];
            f->length[f->d++] = (int32_t)l;
        }
    return true;
}

bool weft__pack_exact_fill(int64_t *remaining, int64_t capacity, int64_t limit, weft__pattern **first)
{
    filler f;
    bool ok = filler_new(&f, remaining, capacity, limit);
    for (int32_t k = 0; ok && k < f.d; k++)
        while (ok && f.remaining[k])
            ok = use_pattern(&f, k, first);
    return ok;
}

/* ---- the planners ---- */
#define PACKS(name, pack)                                                                              \
    weft_status weft__planner_##name(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) \
    {                                                                                                  \
        return weft__plan_patterns(pack, len, n, o, p);                                                \
    }
PACKS(spfhp, pack_spfhp)
PACKS(spfhp_stacked, pack_stacked)
PACKS(lpfhp, weft__pack_lpfhp)
PACKS(exact_fill, weft__pack_exact_fill)
