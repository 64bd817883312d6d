/* exact_fill.c - rows that are full, by subset sums: the longest length that is left begins a pattern, the
 * others are those of its rest that fill it exactly, or best. */
#include <stdlib.h>
#include <string.h>
#include "plan/planners.h"

/* of[s]: the length by which a sum of s was reached first, 0: not; used[s]: how many of that length it has,
 * pieces[s]: of all. length [d], left [d]: distinct lengths, descending, and how many there are of each. */
typedef struct {
    int64_t capacity, limit, d;
    int32_t *length, *of, *used, *pieces, *pattern;
    int64_t *left;
} filler;

static void reach(filler *f, int64_t sum, int32_t by, int32_t used, int32_t pieces)
{
    f->of[sum] = by, f->used[sum] = used, f->pieces[sum] = pieces;
}

/* The largest sum up to `most` of lengths from place k on, as there are; a full one ends the search. */
static int64_t fill(filler *f, int64_t k, int64_t most)
{
    int64_t top = 0; /* the largest sum so far */
    memset(f->of, 0, (size_t)(most + 1) * sizeof *f->of);
    f->pieces[0] = 1; /* the one that begins the pattern */
    for (; k < f->d && top < most; k++) {
        int32_t length = f->length[k];
        if (!f->left[k] || length > most)
            continue;
        int64_t before = top;
        for (int64_t s = 0; s + length <= most && s <= top; s++) {
            bool mine = f->of[s] == length && s;
            int32_t used = mine ? f->used[s] : 0;
            if ((s && !f->of[s]) || f->of[s + length] || used >= f->left[k] ||
                (f->limit && f->pieces[s] >= f->limit) || (!mine && s > before))
                continue;
            reach(f, s + length, length, used + 1, f->pieces[s] + 1);
            top = s + length > top ? s + length : top;
        }
    }
    return top;
}

static int64_t place_of(const filler *f, int32_t length)
{
    int64_t low = 0, high = f->d;
    while (f->length[low] != length) {
        int64_t middle = (low + high) / 2;
        if (f->length[middle] > length)
            low = middle + 1;
        else if (f->length[middle] < length)
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* The pattern that begins with the length at place k, longest first; how many pieces it has. */
static int32_t find_pattern(filler *f, int64_t k)
{
    int32_t n = 1;
    f->pattern[0] = f->length[k];
    f->left[k]--;
    for (int64_t s = fill(f, k, f->capacity - f->length[k]); s; s -= f->of[s])
        f->pattern[n++] = f->of[s];
    f->left[k]++;
    for (int32_t i = 1, j = n - 1; i < j; i++, j--) {              /* it was found from its shortest on */
        int32_t is = f->pattern[i];
        f->pattern[i] = f->pattern[j], f->pattern[j] = is;
    }
    return n;
}

/* How often there are all lengths of the pattern. */
static int64_t most_times(const filler *f, int32_t n)
{
    int64_t times = INT64_MAX;
    for (int32_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && f->pattern[i + same] == f->pattern[i];)
            same++;
        int64_t left = f->left[place_of(f, f->pattern[i])] / same;
        times = left < times ? left : times;
    }
    return times;
}

/* One pattern more, off what is left. */
static weft__pattern *next_pattern(filler *f, int64_t k, weft__pattern *before)
{
    int32_t n = find_pattern(f, k);
    int64_t times = most_times(f, n);
    weft__pattern *to = weft__plan_memory(1, sizeof *to + (size_t)n * sizeof *to->length);
    if (!to)
        return NULL;
    *to = (weft__pattern){ before, times, n };
    memcpy(to->length, f->pattern, (size_t)n * sizeof *to->length);
    for (int32_t i = 0; i < n; i++)
        f->left[place_of(f, f->pattern[i])] -= times;
    return to;
}

static bool filler_new(filler *f, const int64_t *left, int64_t capacity, int64_t limit)
{
    int64_t each = capacity + 1;
    *f = (filler){ .capacity = capacity, .limit = limit };
    f->length = weft__plan_memory(5 * each, sizeof *f->length);
    f->left = f->length ? weft__plan_memory(each, sizeof *f->left) : NULL;
    if (!f->left)
        return false;
    f->of = f->length + each, f->used = f->of + each, f->pieces = f->used + each;
    f->pattern = f->pieces + each;
    for (int64_t l = capacity; l; l--)
        if (left[l])
            f->left[f->d] = left[l], f->length[f->d++] = (int32_t)l;
    return true;
}

bool weft__plan_exact_fill(const int64_t *left, int64_t capacity, int64_t limit, weft__pattern **first)
{
    filler f;
    bool good = filler_new(&f, left, capacity, limit);
    for (int64_t k = 0; good && k < f.d;) {
        weft__pattern *more = f.left[k] ? next_pattern(&f, k, *first) : NULL;
        good = more || !f.left[k];
        if (more)
            *first = more;
        else
            k++;
    }
    free(f.length), free(f.left);
    return good;
}

static weft_status plan_exact_fill(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t *left;
    weft__pattern *first = NULL;
    weft_status s = weft__plan_count(len, n, o, &left);
    if (s == WEFT_OK)
        s = weft__plan_exact_fill(left, o->capacity, o->limit, &first) ?
                weft__plan_patterns(p, len, n, first, o) :
                WEFT_ENOMEM;
    weft__plan_free_patterns(first);
    free(left);
    return s;
}
const weft_planner weft__planner_exact_fill = { .name = "exact_fill",
                                                .source = "subset sums",
                                                .about = "each row filled exactly, if the rest allows it",
                                                .options = "capacity limit rows shuffle",
                                                .promises = WEFT_PLAN_WHOLE,
                                                .plan = plan_exact_fill };
