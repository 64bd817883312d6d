/* test_planners_random.c - planners against their definitions written a second time, as plainly as they can
 * be, and every planner on random and hostile lengths: plans that keep what all must keep, by the check and
 * by bounds. */
#include "plans.h"

enum { MOST = 60, LONGEST = 40 };

/* ---- every planner, any options ---- */
static void any_words(const weft_planner *p, char *to, size_t size, int32_t capacity)
{
    char options[128], *key, *rest = options;
    size_t at = (size_t)snprintf(to, size, "%s", p->name);
    snprintf(options, sizeof options, "%s", p->options);
    for (char before = ':'; (key = strtok_r(rest, " ", &rest)); before = ',') {
        char value[64];
        snprintf(value, sizeof value, "%lld", (long long)(1 + dice(9)));
        if (!strcmp(key, "capacity") || !strcmp(key, "budget"))
            snprintf(value, sizeof value, "%d", (int)capacity + (int)dice(20));
        else if (!strcmp(key, "shuffle") || !strcmp(key, "sort") || !strcmp(key, "carry") ||
                 !strcmp(key, "longest_first"))
            snprintf(value, sizeof value, "%s", dice(2) ? "yes" : "no");
        else if (!strcmp(key, "method"))
            snprintf(value, sizeof value, "%s", dice(2) ? "lpt" : "kk");
        else if (!strcmp(key, "ratio"))
            snprintf(value, sizeof value, "%g", 1.1 + (double)dice(20) / 10);
        else if (!strcmp(key, "bounds"))
            snprintf(value, sizeof value, "4/9/25");
        else if (!strcmp(key, "sizes"))
            snprintf(value, sizeof value, "5/3/2/1");
        else if ((!strcmp(key, "limit") || !strcmp(key, "open") || !strcmp(key, "rows") ||
                  !strcmp(key, "lookahead")) &&
                 dice(2))
            continue;
        at += (size_t)snprintf(to + at, size - at, "%c%s=%s", before, key, value);
    }
    snprintf(to + at, size - at, "%cseed=%d", strchr(to, ':') ? ',' : ':', (int)dice(1000));
}

/* What the check of the library does not say: it is not asked here. */
static void holds(const char *words, const weft_plan *p, const int32_t *len, int64_t n)
{
    int32_t seen[MOST][LONGEST] = { { 0 } };
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++) {
            const weft_segment *s = p->segment + i, *from;
            cr_assert(s->row >= 0 && s->row < p->batch[b].rows && s->column >= 0 &&
                          s->column + s->length <= p->batch[b].width,
                      "%s", words);
            for (int32_t t = 0; t < s->length; t++)
                seen[s->sequence][s->offset + t]++;
            for (int64_t j = p->batch[b].first; j < i; j++)
                cr_assert(p->segment[j].row != s->row ||
                              p->segment[j].column + p->segment[j].length <= s->column ||
                              s->column + s->length <= p->segment[j].column,
                          "%s: two in a cell", words);
            if (s->carry < 0)
                continue;
            from = p->segment + p->batch[b - 1].first + s->carry;
            cr_assert(from->sequence == s->sequence && from->offset + from->length == s->offset, "%s", words);
        }
    for (int64_t i = 0; i < n; i++)
        for (int32_t t = 0; t < len[i]; t++)
            cr_assert_eq(seen[i][t], 1, "%s: token %d of sequence %lld: %d times", words, t, (long long)i,
                         seen[i][t]);
}

Test(planners_random, every_planner_plans_each_token_once)
{
    int32_t len[MOST];
    char words[256];
    dice_seed(17);
    for (int k = 0; k < weft_planner_count(); k++)
        for (int round = 0; round < rounds(400, 4000); round++) {
            int32_t longest = 1 + (int32_t)dice(LONGEST);
            int64_t n = any_lengths(len, MOST, longest), rows = 0;
            weft_plan_figures f;
            any_words(weft_planner_at(k), words, sizeof words, longest);
            weft_plan p = plan_of(words, len, n), again = plan_of(words, len, n);
            holds(words, &p, len, n);
            const char *capacity = strstr(words, "capacity=");
            PLANS(weft_plan_measure(&p, len, n, capacity ? atoi(capacity + 9) : 0, &f));
            cr_assert(f.tokens == p.tokens && f.cells >= f.tokens && f.l2 >= f.l1, "%s", words);
            cr_assert(!capacity || f.rows >= f.l2, "%s: %lld rows, bound %lld", words, (long long)f.rows,
                      (long long)f.l2);
            for (int64_t b = 0; b < p.batches; b++)
                rows += p.batch[b].rows;
            cr_assert(rows == f.rows && again.segments == p.segments &&
                          (!p.segments ||
                           !memcmp(again.segment, p.segment, (size_t)p.segments * sizeof *p.segment)),
                      "%s", words);
            weft_plan_free(&p), weft_plan_free(&again);
        }
}

/* ---- rows, once more ---- */
enum { NEXT, FIRST, BEST, WORST };

/* The row of each piece, one after the other, by looking at all rows. */
static int64_t fit_plainly(int rule, const int32_t *len, const int32_t *order, int64_t n, int64_t capacity,
                           int64_t limit, int64_t open, int64_t *row)
{
    int64_t gap[MOST], pieces[MOST] = { 0 }, rows = 0;
    bool closed[MOST] = { false };
    for (int64_t k = 0; k < n; k++) {
        int64_t best = -1, is_open = 0, fullest = -1;
        row[order[k]] = -1;
        if (!len[order[k]])
            continue;
        for (int64_t r = 0; r < rows; r++) {
            bool can = !closed[r] && gap[r] > 0 && (!limit || pieces[r] < limit);
            is_open += can;
            fullest = can && (fullest < 0 || gap[r] < gap[fullest]) ? r : fullest;
            if (!can || gap[r] < len[order[k]] || (rule == NEXT && r < rows - 1))
                continue;
            if (best < 0 || (rule == BEST && gap[r] < gap[best]) || (rule == WORST && gap[r] > gap[best]))
                best = r;
        }
        if (best < 0) {
            if (open && is_open == open)
                closed[fullest] = true;
            best = rows++, gap[best] = capacity;
        }
        gap[best] -= len[order[k]], pieces[best]++, row[order[k]] = best;
    }
    return rows;
}

static void sort_plainly(const int32_t *len, int32_t *order, int64_t n, bool descending, int64_t block)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k % block; k--) {
            int32_t a = order[k - 1], b = order[k];
            if (descending ? len[a] >= len[b] : len[a] <= len[b])
                break;
            order[k - 1] = b, order[k] = a;
        }
}

Test(planners_random, fits_are_those_of_the_definition)
{
    static const char *const name[] = { "next_fit", "first_fit", "best_fit", "worst_fit" };
    int32_t len[MOST], order[MOST];
    int64_t row[MOST];
    char words[256];
    dice_seed(18);
    for (int round = 0; round < rounds(8000, 100000); round++) {
        int rule = round % 4;
        bool decreasing = round / 4 % 2;
        int32_t capacity = 1 + (int32_t)dice(LONGEST) * (dice(9) ? 1 : 1000);
        int64_t n = any_lengths(len, MOST, capacity < LONGEST ? capacity : LONGEST),
                limit = dice(2) ? (int64_t)dice(4) : 0,
                open = decreasing || rule == NEXT || dice(2) ? 0 : (int64_t)dice(5),
                seen = dice(2) ? 1 + (int64_t)dice(9) : MOST;
        snprintf(words, sizeof words, "%s%s:capacity=%d,limit=%lld", name[rule],
                 decreasing ? "_decreasing" : "", (int)capacity, (long long)limit);
        size_t at = strlen(words);
        if (open)
            snprintf(words + at, sizeof words - at, ",open=%lld", (long long)open);
        else if (decreasing)
            snprintf(words + at, sizeof words - at, ",lookahead=%lld", (long long)seen);
        for (int64_t i = 0; i < n; i++)
            order[i] = (int32_t)i;
        if (decreasing)
            sort_plainly(len, order, n, true, seen);
        int64_t rows = fit_plainly(rule, len, order, n, capacity, limit, open, row);
        weft_plan p = plan_of(words, len, n);
        cr_assert_eq(p.batches ? p.batch[0].rows : 0, rows, "%s", words);
        for (int64_t i = 0; i < p.segments; i++)
            cr_assert_eq(p.segment[i].row, row[p.segment[i].sequence], "%s: sequence %lld", words,
                         (long long)p.segment[i].sequence);
        weft_plan_free(&p);
    }
}

/* ---- the best, by search ---- */
/* The fewest rows for the sequences from i on. */
static int fewest(const int32_t *len, int64_t n, int64_t i, int *gap, int rows, int best, int capacity)
{
    if (rows >= best || i == n)
        return i == n && rows < best ? rows : best;
    for (int r = 0; r <= rows; r++) {
        if (r == rows)
            gap[r] = capacity;
        if (gap[r] < len[i])
            continue;
        gap[r] -= len[i];
        best = fewest(len, n, i + 1, gap, rows + (r == rows), best, capacity);
        gap[r] += len[i];
    }
    return best;
}

Test(planners_random, guarantees_beside_the_optimum)
{
    static const struct {
        const char *name;
        double times, more;
    } all[] = { { "first_fit", 1.7, 0 },
                { "best_fit", 1.7, 0 },
                { "next_fit", 2, 0 },
                { "first_fit_decreasing", 11. / 9, 6. / 9 },
                { "best_fit_decreasing", 11. / 9, 6. / 9 },
                { "exact_fill", 2, 1 },
                { "column_generation", 2, 1 },
                { "spfhp_stacked", 2, 1 },
                { "lpfhp", 2, 1 } };
    int32_t len[9];
    char words[128];
    dice_seed(19);
    for (int round = 0; round < rounds(1500, 20000); round++) {
        int capacity = 3 + (int)dice(20), gap[10];
        int64_t n = 1 + (int64_t)dice(9);
        weft_plan_figures f;
        for (int64_t i = 0; i < n; i++)
            len[i] = 1 + (int32_t)dice((uint64_t)capacity);
        int best = fewest(len, n, 0, gap, 0, (int)n + 1, capacity);
        for (int k = 0; k < COUNT(all); k++) {
            snprintf(words, sizeof words, "%s:capacity=%d", all[k].name, capacity);
            weft_plan p = plan_of(words, len, n);
            PLANS(weft_plan_measure(&p, len, n, capacity, &f));
            cr_assert(f.l2 <= best && f.rows >= best && (double)f.rows <= all[k].times * best + all[k].more,
                      "%s: %lld rows, the best have %d, the bounds are %lld and %lld", words,
                      (long long)f.rows, best, (long long)f.l1, (long long)f.l2);
            weft_plan_free(&p);
        }
    }
}

/* Padding of the best k intervals over sorted distinct lengths, by trying all. */
static int64_t least_padding(const int32_t *len, int64_t n, int k, int32_t from, int32_t longest)
{
    int64_t best = INT64_MAX;
    for (int32_t to = k == 1 ? longest : from; to <= longest; to++) {
        int64_t cost = 0;
        for (int64_t i = 0; i < n; i++)
            cost += len[i] >= from && len[i] <= to ? to - len[i] : 0;
        int64_t rest = k == 1 || to == longest ? 0 : least_padding(len, n, k - 1, to + 1, longest);
        best = cost + rest < best ? cost + rest : best;
    }
    return best;
}

Test(planners_random, optimal_buckets_are_optimal)
{
    int32_t len[12];
    char words[64];
    dice_seed(20);
    for (int round = 0; round < rounds(300, 3000); round++) {
        int k = 1 + (int)dice(4);
        int64_t n = 1 + (int64_t)dice(12), padding = 0;
        int32_t longest = 0;
        for (int64_t i = 0; i < n; i++) {
            len[i] = (int32_t)dice(12);
            longest = len[i] > longest ? len[i] : longest;
        }
        snprintf(words, sizeof words, "optimal_buckets:k=%d,count=100", k);
        weft_plan p = plan_of(words, len, n);
        cr_assert(p.batches <= k);
        for (int64_t b = 0; b < p.batches; b++)
            for (int64_t i = p.batch[b].first; i < p.batch[b].first + p.batch[b].n; i++)
                padding += p.batch[b].width - p.segment[i].length;
        cr_assert_eq(padding, least_padding(len, n, k, 0, longest), "%s", words);
        weft_plan_free(&p);
    }
}
