/* test_cost.c - tests the predicted time of plans against values by hand and sums over steps, for devices
 * whose time depends on tokens or on steps. Also tests weft_plan_disturb and weft_plan_choose. */
#include <math.h>
#include "plans.h"

enum { MOST = 300, LONGEST = 40 };

/* Invented devices: each row costs time; each step costs the same until it has many rows. */
static const weft_plan_cost by_tokens = { .points = 3,
                                          .rows = { 1, 8, 64 },
                                          .step_ms = { .01, .08, .64 },
                                          .token_ms = .001,
                                          .piece_ms = .002,
                                          .batch_ms = .1,
                                          .error = .2 };
static const weft_plan_cost by_steps = {
    .points = 3, .rows = { 1, 64, 512 }, .step_ms = { .02, .021, .05 }, .token_ms = .00001, .error = .1
};

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * (1 + fabs(b)); }

Test(cost, matches_values_by_hand)
{
    const int32_t len[] = { 3, 1, 2 };
    PLAN p = plan_of("order:count=3", len, 3);
    weft_plan_prediction r;
    PLANS(weft_plan_predict(&p, &by_tokens, false, &r));
    cr_assert(near(r.steps_ms, .03 + .02 + .01) && near(r.latency_ms, .03), "%g", r.steps_ms);
    cr_assert(near(r.tokens_ms, .006) && near(r.pieces_ms, .006) && near(r.batches_ms, .1));
    cr_assert(near(r.ms, r.steps_ms + r.tokens_ms + r.pieces_ms + r.batches_ms));
    PLANS(weft_plan_predict(&p, &by_tokens, true, &r));
    cr_assert(near(r.steps_ms, .09) && near(r.tokens_ms, .009), "padded: %g", r.steps_ms);
}

/* Repeats the interpolation, and counts live rows cell by cell. */
static double step_plainly(const weft_plan_cost *c, double rows)
{
    int i = 0;
    while (i + 2 < c->points && rows > c->rows[i + 1])
        i++;
    double share = (rows - c->rows[i]) / (c->rows[i + 1] - c->rows[i]);
    return (1 - share) * c->step_ms[i] + share * c->step_ms[i + 1];
}

Test(cost, equals_the_sum_over_all_steps)
{
    static const char *const words[] = { "order:count=7",
                                         "random:count=90",
                                         "first_fit:capacity=60,rows=3",
                                         "refill:slots=5",
                                         "streams:slots=4,window=6",
                                         "chunk:capacity=16",
                                         "fold" };
    int32_t len[MOST];
    dice_seed(41);
    for (int round = 0; round < rounds(100, 1000); round++)
        for (int k = 0; k < COUNT(words); k++) {
            const weft_plan_cost *c = round % 2 ? &by_tokens : &by_steps;
            int64_t n = any_lengths(len, MOST, LONGEST), sizes[MOST * LONGEST];
            double steps = 0, tokens = 0, padded = 0;
            PLAN p = plan_of(words[k], len, n);
            weft_plan_prediction r, pads;
            for (int64_t b = 0; b < p.batches; b++) {
                PLANS(weft_plan_batch_sizes(&p, b, sizes, p.batch[b].width));
                for (int64_t t = 0; t < p.batch[b].width; t++) {
                    steps += sizes[t] ? step_plainly(c, (double)sizes[t]) : 0;
                    tokens += (double)sizes[t] * c->token_ms;
                    padded += p.batch[b].rows ? step_plainly(c, (double)p.batch[b].rows) : 0;
                }
            }
            PLANS(weft_plan_predict(&p, c, false, &r));
            PLANS(weft_plan_predict(&p, c, true, &pads));
            cr_assert(near(r.steps_ms, steps) && near(r.tokens_ms, tokens), "%s: %g, %g expected", words[k],
                      r.steps_ms, steps);
            cr_assert(near(pads.steps_ms, padded) && pads.ms >= r.ms - 1e-9, "%s: %g, %g expected", words[k],
                      pads.steps_ms, padded);
        }
}

Test(cost, disturbance_rates_known_orders)
{
    int32_t len[MOST];
    weft_plan_disturbance random, sorted, cut, carried, one;
    dice_seed(42);
    for (int i = 0; i < MOST; i++)
        len[i] = 1 + (int32_t)dice(LONGEST);
    const struct {
        const char *words;
        weft_plan_disturbance *to;
    } table[] = { { "random:count=10", &random },
                  { "sorted:count=10", &sorted },
                  { "chunk:capacity=8,rows=2", &cut },
                  { "streams:slots=10,window=8", &carried },
                  { "refill:slots=10", &one } };
    for (int i = 0; i < COUNT(table); i++) {
        PLAN p = plan_of(table[i].words, len, MOST);
        PLANS(weft_plan_disturb(&p, len, MOST, table[i].to));
        cr_assert(near(table[i].to->sum, table[i].to->likeness + table[i].to->order + table[i].to->cuts));
    }
    int rated = 0; /* batches differ by chance alone: at most 1 in 20 is rated */
    for (uint64_t seed = 0; seed < 200; seed++) {
        const weft_plan_opts o = { .count = 8, .seed = seed };
        PLAN p;
        PLANS(weft_plan_make(weft_planner_named("random"), len, 40, &o, &p));
        PLANS(weft_plan_disturb(&p, len, 40, &random));
        rated += random.sum >= .1;
    }
    cr_assert(rated <= 10 && random.cuts == 0, "random: %d of 200", rated);
    cr_assert(sorted.likeness > .9 && sorted.order > .8 && sorted.sum > random.sum + 1, "sorted: %g",
              sorted.sum);
    cr_assert(cut.cuts > .4 && carried.cuts > .2 && carried.cuts < cut.cuts, "%g, %g", carried.cuts,
              cut.cuts);
    cr_assert(one.sum == 0, "a single batch: %g", one.sum);
}

Test(cost, fastest_plan_below_the_limit_is_chosen)
{
    const double ms[] = { 100, 109, 130, 105 }, d[] = { 1, .2, 0, .2 }, none[] = { 1, (double)NAN };
    cr_assert_eq(weft_plan_choose(ms, d, 4, 0), 0);
    cr_assert_eq(weft_plan_choose(ms, d, 4, .1), 3, "the fastest of two equals");
    cr_assert_eq(weft_plan_choose(ms, d, 4, .3), 2);
    cr_assert_eq(weft_plan_choose(ms, d, 0, .3), -1);
    cr_assert_eq(weft_plan_choose(none, d, 2, .3), -1);
    cr_assert_eq(weft_plan_choose(NULL, d, 2, .3), -1);
}

/* The extra cost is zero up to near_tokens, full from far_tokens, and log-interpolated between. */
Test(cost, large_batches_cost_extra)
{
    int32_t len[16];
    weft_plan_prediction r;
    weft_plan_cost c = by_steps;
    c.far_ms = .01, c.near_tokens = 4, c.far_tokens = 64;
    for (int i = 0; i < 16; i++)
        len[i] = 8;
    const struct {
        const char *words;
        double ms;
    } table[] = { { "order:count=1", 16 * 8 * .01 / 4 }, /* 8 is a quarter of the way from 4 to 64 */
                  { "order:count=2", 128 * .01 / 2 },
                  { "order:count=8", 128 * .01 },
                  { "order:count=16", 128 * .01 } };
    for (int i = 0; i < COUNT(table); i++) {
        PLAN p = plan_of(table[i].words, len, 16);
        PLANS(weft_plan_predict(&p, &c, false, &r));
        cr_assert(near(r.tokens_ms, table[i].ms + 128 * c.token_ms), "%s: %g", table[i].words, r.tokens_ms);
        weft_plan_prediction pads;
        PLANS(weft_plan_predict(&p, &c, true, &pads));
        cr_assert(near(pads.tokens_ms, r.tokens_ms), "padded: %g", pads.tokens_ms);
    }
}

/* start_ms counts once a batch, by its rows, linear between points and constant beyond them. */
Test(cost, of_a_start_follows_rows)
{
    int32_t len[200];
    weft_plan_cost c = { .points = 2, .rows = { 1, 9 }, .step_ms = { .1, .1 }, .start_ms = { 1, 5 } };
    const struct {
        const char *words;
        double ms;
    } table[] = { { "order:count=1", 1 * 200 },
                  { "order:count=5", 3 * 40 },
                  { "order:count=100", 5 * 2 },
                  { "refill:slots=5", 3 } };
    for (int i = 0; i < 200; i++)
        len[i] = 2;
    c.batch_ms = .5;
    for (int i = 0; i < COUNT(table); i++) {
        PLAN p = plan_of(table[i].words, len, 200);
        weft_plan_prediction r, pads;
        PLANS(weft_plan_predict(&p, &c, false, &r));
        PLANS(weft_plan_predict(&p, &c, true, &pads));
        double batches = .5 * (double)p.batches;
        cr_assert(near(r.batches_ms, table[i].ms + batches) && near(pads.batches_ms, table[i].ms + batches),
                  "%s: %g, padded %g", table[i].words, r.batches_ms, pads.batches_ms);
    }
}

Test(cost, invalid_arguments_are_refused)
{
    const int32_t len[] = { 3, 1, 2 };
    PLAN p = plan_of("order:count=3", len, 3);
    weft_plan_prediction r;
    weft_plan_disturbance d;
#define WRONG(part, change)                                                         \
    do {                                                                            \
        weft_plan_cost c = by_tokens;                                               \
        change;                                                                     \
        cr_assert(weft_plan_predict(&p, &c, false, &r) == WEFT_EARG && r.ms == 0 && \
                      strstr(weft_plan_message(), part),                            \
                  "%s", weft_plan_message());                                       \
    } while (0)
    WRONG("1 points; expected 2 .. 16", c.points = 1);
    WRONG("17 points", c.points = 17);
    WRONG("point 0 of the cost has 2 rows", c.rows[0] = 2);
    WRONG("point 2 of the cost has 8 rows", c.rows[2] = 8);
    WRONG("a step of 8 rows takes 0 ms", c.step_ms[1] = 0);
    WRONG("a step of 8 rows takes nan ms", c.step_ms[1] = (double)NAN);
    WRONG("the start of a batch -1", c.start_ms[1] = -1);
    WRONG("a batch -1", c.batch_ms = -1);
    WRONG("a pair -1", c.pair_ms = -1);
    WRONG("1 ms for a token from 0 to 0 tokens", c.far_ms = 1);
    WRONG("1 ms for a token from 9 to 8 tokens", (c.far_ms = 1, c.near_tokens = 9, c.far_tokens = 8));
    cr_assert(weft_plan_predict(NULL, &by_tokens, false, &r) == WEFT_EARG);
    cr_assert(weft_plan_disturb(NULL, len, 3, &d) == WEFT_EARG && d.sum == 0);
}

/* Attention has no steps: a segment of n tokens has n^2 pairs, a padded row those of its cells. */
Test(cost, of_attention_grows_with_squares)
{
    const weft_plan_cost c = { .token_ms = .01, .pair_ms = .5, .batch_ms = 2 };
    const int32_t len[] = { 3, 1, 2 };
    PLAN p = plan_of("order:count=3", len, 3);
    weft_plan_prediction r;
    PLANS(weft_plan_predict(&p, &c, false, &r));
    cr_assert(near(r.pairs_ms, .5 * (9 + 1 + 4)) && near(r.ms, 7 + .06 + 2) && r.steps_ms == 0, "%g", r.ms);
    PLANS(weft_plan_predict(&p, &c, true, &r));
    cr_assert(near(r.pairs_ms, .5 * 27) && near(r.ms, 13.5 + .09 + 2), "padded: %g", r.ms);
}
