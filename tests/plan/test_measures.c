/* test_measures.c - tests the measures of a plan for weights, work, order and meetings against a second
 * implementation that visits each cell. */
#include "plans.h"

static const char *const any_planner[] = {
    "order:count=3",
    "random:count=4,seed=5",
    "pool:count=2,pool=3,shuffle=yes",
    "powers:budget=8",
    "first_fit:capacity=32,rows=2",
    "chunk:capacity=7",
    "refill:slots=3",
    "streams:slots=3,window=5",
    "best_fit_split:capacity=9",
    "balance:ranks=3",
    "chunk:capacity=6,rows=2,carry=yes",
    "tokens:budget=64",
};

/* ---- weights ---- */
/* By definition: the gradient of each batch's loss by one token's loss, divided by the mean over tokens. */
static double slow_weight(const weft_plan *p, weft_plan_mean by, int64_t b, const weft_segment *s)
{
    double here = 0, all = 0, batches = 0, length = 0, sequences = 0;
    bool seen[60] = { false };
    for (int64_t k = 0; k < p->batches; k++) {
        double tokens = 0;
        for (int64_t i = p->batch[k].first; i < p->batch[k].first + p->batch[k].n; i++) {
            const weft_segment *is = p->segment + i;
            tokens += is->length, length += is->sequence == s->sequence ? is->length : 0;
            sequences += is->length && !seen[is->sequence];
            seen[is->sequence] |= is->length > 0;
        }
        here = k == b ? tokens : here;
        all += tokens, batches += tokens > 0;
    }
    double scale = all / batches;
    return by == WEFT_MEAN_OF_BATCH ? scale / here : by == WEFT_MEAN_OF_PLAN ? 1 : all / sequences / length;
}

static void compare_weights(const weft_plan *p, weft_plan_mean by)
{
    weft_token_weights w;
    double least = INFINITY, most = 0, sum = 0, squares = 0;
    int64_t tokens = 0, bin[WEFT_WEIGHT_BINS] = { 0 }, counted = 0;
    PLANS(weft_plan_weigh(p, by, &w));
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            for (int32_t t = 0; t < p->segment[i].length; t++) {
                double weight = slow_weight(p, by, b, p->segment + i), at = round(2 * log2(weight)) + 20;
                least = fmin(least, weight), most = fmax(most, weight);
                sum += weight, squares += weight * weight, tokens++;
                bin[(int)fmax(0, fmin(WEFT_WEIGHT_BINS - 1, at))]++;
            }
    for (int i = 0; i < WEFT_WEIGHT_BINS; i++) {
        cr_assert_eq(w.tokens[i], bin[i], "bin %d: %lld, %lld", i, (long long)w.tokens[i], (long long)bin[i]);
        counted += w.tokens[i];
    }
    cr_assert_eq(counted, tokens);
    if (!tokens) {
        cr_assert(w.least == 0 && w.largest == 0 && w.cv == 0);
        return;
    }
    double n = (double)tokens, variance = squares / n - sum / n * sum / n;
    cr_assert_float_eq(sum / n, 1, 1e-9);
    cr_assert_float_eq(w.least, least, 1e-12 * least);
    cr_assert_float_eq(w.largest, most, 1e-12 * most);
    cr_assert_float_eq(w.cv, sqrt(fmax(0, variance)), 1e-6, "%g %g", w.cv, sqrt(variance));
}

/* ---- live rows, work ---- */
static void compare_cells(const weft_plan *p)
{
    int64_t rows = 0, tokens = 0, cells = 0, sums = 0, padded_sums = 0, live[400] = { 0 }, got[400],
            sizes[4000];
    double squares = 0, padded_squares = 0;
    static bool taken[400][4000];
    weft_plan_work w;
    for (int64_t b = 0; b < p->batches; b++) {
        const weft_plan_batch *is = p->batch + b;
        cr_assert(is->rows < 400 && is->width < 4000);
        memset(taken, 0, sizeof taken);
        for (int64_t i = is->first; i < is->first + is->n; i++)
            for (int32_t t = 0; t < p->segment[i].length; t++)
                taken[p->segment[i].row][p->segment[i].column + t] = true, sums += t > 0;
        rows = is->rows > rows ? is->rows : rows;
        PLANS(weft_plan_batch_sizes(p, b, sizes, is->width));
        for (int64_t t = 0; t < is->width; t++) {
            int64_t here = 0;
            for (int64_t r = 0; r < is->rows; r++)
                here += taken[r][t], cells++, padded_sums += t > 0, padded_squares += (double)is->width;
            cr_assert_eq(sizes[t], here);
            live[here]++, tokens += here;
        }
    }
    for (int64_t i = 0; i < p->segments; i++)
        squares += (double)p->segment[i].length * p->segment[i].length;
    PLANS(weft_plan_live_rows(p, got, rows + 1));
    for (int64_t k = 0; k <= rows; k++)
        cr_assert_eq(got[k], live[k], "%lld live rows: %lld steps, %lld", (long long)k, (long long)got[k],
                     (long long)live[k]);
    PLANS(weft_plan_count_work(p, &w));
    cr_assert(w.products == tokens && w.padded_products == cells);
    cr_assert(w.sums == sums && w.padded_sums == padded_sums);
    cr_assert(w.squares == squares && w.padded_squares == padded_squares);
}

/* ---- order ---- */
static void compare_order(const weft_plan *p)
{
    double mean[2000], all = 0, up = 0, down = 0, got;
    int n = 0;
    for (int64_t b = 0; b < p->batches; b++) {
        double sum = 0;
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            sum += p->segment[i].length;
        if (p->batch[b].n)
            mean[n++] = sum / (double)p->batch[b].n;
    }
    for (int i = 0; i < n; i++)
        all += mean[i] / n;
    for (int i = 0; i < n; i++)
        down += (mean[i] - all) * (mean[i] - all), up += i ? (mean[i] - all) * (mean[i - 1] - all) : 0;
    PLANS(weft_plan_autocorrelation(p, &got));
    if (down > 1e-9)
        cr_assert_float_eq(got, up / down, 1e-9);
    cr_assert(got >= -1 && got <= 1);
}

Test(measures, random_plans_match_a_count_by_cell)
{
    int32_t len[60];
    for (int round = 0; round < rounds(40, 2000); round++)
        for (int k = 0; k < COUNT(any_planner); k++) {
            int64_t n = any_lengths(len, 60, 32);
            PLAN p = plan_of(any_planner[k], len, n);
            for (int by = 0; by < 3; by++)
                compare_weights(&p, (weft_plan_mean)by);
            compare_cells(&p);
            compare_order(&p);
        }
}

/* ---- repeated pairs ---- */
static int64_t begins_in(const weft_plan *p, int64_t sequence)
{
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            if (p->segment[i].sequence == sequence && p->segment[i].offset == 0)
                return b;
    return -1;
}

/* Counts pair by pair. */
static weft_plan_meetings slow_meetings(const weft_plan *p, int epochs, int64_t n)
{
    static int64_t in[4][60];
    double once[4] = { 0 };
    weft_plan_meetings m = { 0 };
    for (int e = 0; e < epochs; e++)
        for (int64_t i = 0; i < n; i++)
            in[e][i] = begins_in(p + e, i);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            for (int e = 0; e < epochs; e++)
                if (in[e][i] >= 0 && in[e][i] == in[e][j]) {
                    once[e]++, m.pairs++;
                    for (int f = 0; f < e; f++)
                        m.again += in[f][i] >= 0 && in[f][i] == in[f][j];
                }
    for (int e = 0; e < epochs; e++)
        for (int f = 0; f < e; f++)
            m.by_chance += once[e] * once[f] / ((double)n * (double)(n - 1) / 2);
    return m;
}

Test(measures, repeated_pairs_are_counted_exactly)
{
    int32_t len[60];
    static const char *const forms[] = { "random:count=4,epoch=%d",
                                         "pool:count=3,pool=4,shuffle=yes,epoch=%d",
                                         "powers:budget=16,shuffle=yes,epoch=%d",
                                         "best_fit:capacity=32,rows=2,shuffle=yes,epoch=%d" };
    for (int round = 0; round < rounds(40, 2000); round++)
        for (int k = 0; k < COUNT(forms); k++) {
            int64_t n = any_lengths(len, 60, 32);
            weft_plan p[4];
            weft_plan_meetings got;
            for (int e = 0; e < 4; e++) {
                char text[64];
                snprintf(text, sizeof text, forms[k], e);
                p[e] = plan_of(text, len, n);
            }
            PLANS(weft_plan_count_meetings(p, 4, &got));
            weft_plan_meetings want = n > 1 ? slow_meetings(p, 4, n) : (weft_plan_meetings){ 0 };
            cr_assert(got.pairs == want.pairs && got.again == want.again);
            cr_assert_float_eq(got.by_chance, want.by_chance, 1e-9 * (1 + want.by_chance));
            for (int e = 0; e < 4; e++)
                weft_plan_free(p + e);
        }
}

Test(measures, invalid_arguments_are_refused)
{
    int32_t len[] = { 3, 2 };
    PLAN p = plan_of("order:count=2", len, 2), other = plan_of("order:count=1", len, 1);
    weft_plan two[2] = { p, other };
    weft_plan_meetings m;
    weft_token_weights w;
    weft_plan_work work;
    int64_t room[4];
    double r;
    REFUSED(weft_plan_weigh(&p, (weft_plan_mean)3, &w), WEFT_EARG, "one of three means");
    REFUSED(weft_plan_count_work(NULL, &work), WEFT_EARG, "a plan");
    REFUSED(weft_plan_autocorrelation(NULL, &r), WEFT_EARG, "a plan");
    REFUSED(weft_plan_batch_sizes(&p, 1, room, 3), WEFT_EARG, "one of its batches");
    REFUSED(weft_plan_batch_sizes(&p, 0, room, 4), WEFT_EARG, "each of its steps");
    REFUSED(weft_plan_live_rows(&p, room, 4), WEFT_EARG, "an array of 3 numbers");
    REFUSED(weft_plan_count_meetings(two, 2, &m), WEFT_EARG, "plan 0 has 2 sequences and plan 1 has 1");
    REFUSED(weft_plan_count_meetings(&p, 0, &m), WEFT_EARG, "1 .. 1000 plans");
}
