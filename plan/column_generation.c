/* column_generation.c - the fewest rows by a linear program over patterns (Gilmore & Gomory 1961).
 *
 * A knapsack over the prices of the lengths finds a pattern that improves the solution. The final solution is
 * rounded, and the remaining sequences are packed longest first. */
#include <math.h>
#include <string.h>
#include "plan/planners.h"

/* m distinct lengths. Row i of inverse [m, m] belongs to basis pattern i; patterns [m, m] counts its pieces
 * of each length, and x [m] its uses. best, by [capacity + 1]: the knapsack. */
typedef struct {
    int64_t m, capacity;
    const int32_t *length;
    double *inverse, *x, *price, *step, *best;
    int32_t *patterns, *candidate, *choice;
} program;

enum { MOST_LENGTHS = 600, ROUNDS = 40 }; /* with more lengths exact_fill is as good; pivots for each
                                           * length */

static void begin(program *t, const int64_t *remaining)
{
    memset(t->inverse, 0, (size_t)(t->m * t->m) * sizeof *t->inverse);
    memset(t->patterns, 0, (size_t)(t->m * t->m) * sizeof *t->patterns);
    for (int64_t i = 0; i < t->m; i++) {
        int32_t copies = (int32_t)(t->capacity / t->length[i]);
        t->patterns[i * t->m + i] = copies;
        t->inverse[i * t->m + i] = 1. / copies;
        t->x[i] = (double)remaining[t->length[i]] / copies;
    }
}

/* Finds the pattern of the highest price, into candidate. Returns whether it improves the solution. */
static bool find_pattern(program *t)
{
    for (int64_t j = 0; j < t->m; j++) {
        t->price[j] = 0;
        for (int64_t i = 0; i < t->m; i++)
            t->price[j] += t->inverse[i * t->m + j];
    }
    t->best[0] = 0;
    t->choice[0] = -1;
    for (int64_t s = 1; s <= t->capacity; s++) {
        t->best[s] = t->best[s - 1];
        t->choice[s] = -1;
        for (int64_t j = 0; j < t->m; j++)
            if (t->length[j] <= s && t->best[s - t->length[j]] + t->price[j] > t->best[s]) {
                t->best[s] = t->best[s - t->length[j]] + t->price[j];
                t->choice[s] = (int32_t)j;
            }
    }
    memset(t->candidate, 0, (size_t)t->m * sizeof *t->candidate);
    for (int64_t s = t->capacity; s > 0; s -= t->choice[s] < 0 ? 1 : t->length[t->choice[s]])
        if (t->choice[s] >= 0)
            t->candidate[t->choice[s]]++;
    return t->best[t->capacity] > 1 + 1e-9;
}

/* Replaces the basis pattern that the candidate uses up first. Returns false if it uses up
 * none. */
static bool pivot(program *t)
{
    int64_t out = -1, m = t->m;
    for (int64_t i = 0; i < m; i++) {
        t->step[i] = 0;
        for (int64_t j = 0; j < m; j++)
            t->step[i] += t->inverse[i * m + j] * t->candidate[j];
        if (t->step[i] > 1e-9 && (out < 0 || t->x[i] / t->step[i] < t->x[out] / t->step[out]))
            out = i;
    }
    if (out < 0)
        return false;
    double *row = t->inverse + out * m;
    t->x[out] /= t->step[out];
    for (int64_t j = 0; j < m; j++)
        row[j] /= t->step[out];
    for (int64_t i = 0; i < m; i++) {
        if (i == out || t->step[i] == 0)
            continue;
        t->x[i] -= t->step[i] * t->x[out];
        for (int64_t j = 0; j < m; j++)
            t->inverse[i * m + j] -= t->step[i] * row[j];
    }
    memcpy(t->patterns + out * m, t->candidate, (size_t)m * sizeof *t->candidate);
    return true;
}

/* ---- rounding ---- */
static int64_t most_times(const program *t, const int32_t *pattern, const int64_t *remaining)
{
    int64_t most = INT64_MAX;
    for (int64_t j = 0; j < t->m; j++)
        if (pattern[j] && remaining[t->length[j]] / pattern[j] < most)
            most = remaining[t->length[j]] / pattern[j];
    return most;
}

/* Uses a pattern of the basis `times` times. Returns false if memory is short. */
static bool use(const program *t, const int32_t *pattern, int64_t times, int64_t *remaining,
                weft__pattern **first)
{
    int32_t pieces = 0;
    for (int64_t j = 0; j < t->m; j++)
        pieces += pattern[j];
    weft__pattern *to = weft__pattern_new(*first, times, pieces);
    if (!to)
        return false;
    for (int64_t j = 0, k = 0; j < t->m; j++) {
        remaining[t->length[j]] -= times * pattern[j];
        for (int32_t c = 0; c < pattern[j]; c++)
            to->length[k++] = t->length[j];
    }
    *first = to;
    return true;
}

/* Uses the whole parts first, then the fractions, rounded up, as far as the sequences suffice. */
static bool round_off(const program *t, int64_t *remaining, weft__pattern **first)
{
    bool ok = true;
    for (int up = 0; up < 2; up++)
        for (int64_t i = 0; i < t->m && ok; i++) {
            const int32_t *pattern = t->patterns + i * t->m;
            double whole = floor(t->x[i] + 1e-6);
            int64_t most = most_times(t, pattern, remaining),
                    times = up ? t->x[i] > whole + 1e-6 : (int64_t)whole;
            if (times > 0 && most > 0)
                ok = use(t, pattern, times < most ? times : most, remaining, first);
        }
    return ok;
}

static bool solve(int64_t *remaining, int64_t capacity, weft__pattern **first)
{
    program t = { .capacity = capacity };
    int32_t *length = weft__plan_memory(capacity, sizeof *length);
    for (int64_t l = capacity; l && length; l--)
        if (remaining[l])
            length[t.m++] = (int32_t)l;
    int64_t m = t.m;
    if (m > MOST_LENGTHS)
        return true;
    t.length = length;
    t.inverse = weft__plan_memory(m * m + 3 * m + capacity + 1, sizeof *t.inverse);
    t.patterns = weft__plan_memory(m * m + m + capacity + 1, sizeof *t.patterns);
    if (!length || !t.inverse || !t.patterns)
        return false;
    t.x = t.inverse + m * m;
    t.price = t.x + m;
    t.step = t.price + m;
    t.best = t.step + m;
    t.candidate = t.patterns + m * m;
    t.choice = t.candidate + m;
    begin(&t, remaining);
    for (int64_t i = 0; i < ROUNDS * m && find_pattern(&t) && pivot(&t);)
        i++;
    return round_off(&t, remaining, first);
}

static int64_t rows_of(const weft__pattern *first)
{
    int64_t rows = 0;
    for (; first; first = first->next)
        rows += first->times;
    return rows;
}

/* Takes the result with fewer rows: the linear program's or exact_fill's. */
static bool pack(int64_t *remaining, int64_t capacity, int64_t limit, weft__pattern **first)
{
    weft__pattern *filled = NULL, *solved = NULL;
    bool ok = weft__pack_exact_fill(remaining, capacity, limit, &filled) &&
              solve(remaining, capacity, &solved) && weft__pack_lpfhp(remaining, capacity, limit, &solved);
    *first = rows_of(filled) < rows_of(solved) ? filled : solved;
    return ok;
}

weft_status weft__planner_column_generation(const int32_t *len, int64_t n, const weft_plan_opts *o,
                                            weft_plan *p)
{
    return weft__plan_patterns(pack, len, n, o, p);
}
