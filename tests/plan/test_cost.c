/* test_cost.c - predicted milliseconds against a second writing that goes from step to step; what a plan
 * disturbs; which one is chosen. All tables are made up. */
#include "plans.h"

/* A CPU's: a step costs what its rows do. A GPU's: a step costs the same whatever its rows. */
static const weft_plan_cost cpu = { .points = 4,
                                    .rows = { 1, 8, 64, 256 },
                                    .ms = { .016, .1, .8, 3.2 },
                                    .token_ms = 1e-4,
                                    .batch_ms = { .05, .05, .06, .09 },
                                    .blocks = .5,
                                    .long_tokens = 100,
                                    .long_share = .05,
                                    .segment_ms = 1e-3,
                                    .error = .2 };
static const weft_plan_cost gpu = { .points = 3,
                                    .rows = { 1, 64, 1024 },
                                    .ms = { .010, .011, .020 },
                                    .token_ms = 1e-6,
                                    .batch_ms = { .2, .2, .2 },
                                    .segment_ms = 1e-5,
                                    .error = .2 };

/* Number i of what looks drawn. */
static int32_t drawn(int i, int below) { return (int32_t)((uint32_t)i * 2654435761u >> 8) % below; }

/* ---- one step ---- */
Test(cost, a_step_by_its_rows)
{
    const double is[][2] = { { 0, 0 },   { .5, .016 }, { 1, .016 },  { 8, .1 },   { 36, .45 },
                             { 64, .8 }, { 160, 2 },   { 256, 3.2 }, { 512, 6.4 } };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++)
        cr_assert_float_eq(weft_plan_step_ms(&cpu, is[i][0]), is[i][1], 1e-12, "%g rows: %g", is[i][0],
                           weft_plan_step_ms(&cpu, is[i][0]));
    weft_plan_cost falling = { .points = 2, .rows = { 2, 4 }, .ms = { .4, .3 } },
                   one = { .points = 1, .rows = { 2 }, .ms = { .4 } };
    cr_assert_float_eq(weft_plan_step_ms(&falling, 3), .35, 1e-12);
    cr_assert_float_eq(weft_plan_step_ms(&falling, 9), .3, 1e-12, "more rows are never less than the last");
    cr_assert_float_eq(weft_plan_step_ms(&one, 8), 1.6, 1e-12, "one point: in proportion");
}

Test(cost, no_table_no_milliseconds)
{
    weft_plan_cost bad[] = { cpu, cpu, cpu, cpu, cpu, cpu, cpu, cpu, cpu, cpu };
    bad[0].points = 0, bad[1].points = WEFT_COST_POINTS + 1, bad[2].rows[1] = 1, bad[3].ms[2] = 0;
    bad[4].token_ms = -1, bad[5].batch_ms[2] = NAN, bad[6].ms[0] = INFINITY, bad[7].rows[0] = 0,
    bad[8].blocks = 1.5, bad[9].long_share = -1;
    weft_plan p = plan_of("order:count=2", (int32_t[]){ 2, 1 }, 2);
    weft_plan_time t;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert(isnan(weft_plan_step_ms(bad + i, 3)), "%zu", i);
        REFUSED(weft_plan_predict(&p, bad + i, false, &t), WEFT_EARG, "ascending rows");
    }
    cr_assert(isnan(weft_plan_step_ms(NULL, 3)) && isnan(weft_plan_step_ms(&cpu, NAN)));
    REFUSED(weft_plan_predict(NULL, &cpu, false, &t), WEFT_EARG, "a plan");
    weft_plan_free(&p);
}

/* ---- a plan ---- */
static double batch_of(const weft_plan_cost *c, double rows)
{
    int i = 0;
    while (i < c->points - 2 && rows > c->rows[i + 1])
        i++;
    double at = fmax(0, (rows - c->rows[i]) / (c->rows[i + 1] - c->rows[i]));
    return c->batch_ms[i] + at * (c->batch_ms[i + 1] - c->batch_ms[i]);
}

static void compare(const weft_plan *p, const weft_plan_cost *c, bool padded)
{
    double steps = 0, tokens = 0, more = 0, longer = 0, batches = 0;
    weft_plan_time t;
    int64_t sizes[4000], all = 0;
    PLANS(weft_plan_predict(p, c, padded, &t));
    for (int64_t b = 0; b < p->batches; b++) {
        double here = 0, rows = (double)p->batch[b].rows, cells = 0;
        cr_assert(p->batch[b].width < 4000);
        PLANS(weft_plan_batch_sizes(p, b, sizes, p->batch[b].width));
        for (int64_t i = 0; i < p->batch[b].width; i++, all++) {
            double live = padded ? rows : (double)sizes[i];
            here += (1 - c->blocks) * weft_plan_step_ms(c, live);
            here += rows > 0 ? c->blocks * live / rows * weft_plan_step_ms(c, rows) : 0;
            cells += live;
        }
        steps += here, tokens += cells, batches += batch_of(c, rows);
        more += fmax(0, (double)p->batch[b].n - rows) * c->segment_ms;
        longer += c->long_share > 0 && cells > c->long_tokens ?
                      here * c->long_share * log2(cells / c->long_tokens) :
                      0;
    }
    double gathers = tokens * c->token_ms, sum = steps + longer + gathers + more + batches;
    cr_assert(t.steps == all && (double)t.cells == tokens && t.segments == p->segments &&
              t.batches == p->batches);
    cr_assert_float_eq(t.step_ms + t.row_ms, steps, 1e-9 * (1 + steps));
    cr_assert_float_eq(t.long_ms, longer, 1e-9 * (1 + longer));
    cr_assert_float_eq(t.gather_ms, gathers, 1e-9 * (1 + gathers));
    cr_assert_float_eq(t.ms, sum, 1e-9 * (1 + sum), "%g, %g", t.ms, sum);
    cr_assert(t.step_ms >= 0 && t.row_ms >= 0 && weft_plan_steps_share(&t) >= 0 &&
              weft_plan_steps_share(&t) <= 1);
}

Test(cost, predictions_are_sums_over_steps)
{
    static const char *const planner[] = { "order:count=3",
                                           "random:count=4,seed=5",
                                           "powers:budget=8",
                                           "first_fit:capacity=32,rows=2",
                                           "chunk:capacity=7",
                                           "refill:slots=3",
                                           "streams:slots=3,window=5",
                                           "chunk:capacity=6,rows=2,carry=yes" };
    for (int round = 0; round < 40; round++) {
        int32_t len[60];
        int64_t n = any_lengths(len, 60, 32);
        for (size_t i = 0; i < sizeof planner / sizeof *planner; i++) {
            weft_plan p = plan_of(planner[i], len, n);
            compare(&p, &cpu, false), compare(&p, &cpu, true), compare(&p, &gpu, round % 2);
            weft_plan_free(&p);
        }
    }
}

Test(cost, nothing_takes_no_time)
{
    weft_plan_time t;
    PLANS(weft_plan_predict(&(weft_plan){ 0 }, &cpu, false, &t));
    cr_assert(t.ms == 0 && weft_plan_steps_share(&t) == 0 && weft_plan_steps_share(NULL) == 0);
}

/* ---- tokens or steps ---- */
static double share_of(const char *text, const int32_t *len, int64_t n, const weft_plan_cost *c)
{
    weft_plan p = plan_of(text, len, n);
    weft_plan_time t;
    PLANS(weft_plan_predict(&p, c, false, &t));
    weft_plan_free(&p);
    return weft_plan_steps_share(&t);
}

Test(cost, a_cpu_follows_tokens_and_a_gpu_steps)
{
    int32_t len[200];
    for (int i = 0; i < 200; i++)
        len[i] = 1 + drawn(i, 60);
    cr_assert_lt(share_of("random:count=64", len, 200, &cpu), .1);
    cr_assert_gt(share_of("random:count=64", len, 200, &gpu), .9);
}

/* ---- what a plan disturbs ---- */
static double disturbance(const char *text, const int32_t *len, int64_t n)
{
    double d;
    weft_plan p = plan_of(text, len, n);
    PLANS(weft_plan_disturbance(&p, &d));
    weft_plan_free(&p);
    return d;
}

Test(cost, order_and_cuts_disturb)
{
    int32_t len[600];
    for (int i = 0; i < 600; i++)
        len[i] = 20 + drawn(i, 61);
    double random = disturbance("random:count=20", len, 600),
           rows = disturbance("best_fit:capacity=400,rows=4", len, 600),
           pool = disturbance("pool:count=20,pool=5,shuffle=yes", len, 600),
           sorted = disturbance("sorted:count=20", len, 600),
           cut = disturbance("chunk:capacity=20,rows=20", len, 600),
           on = disturbance("chunk:capacity=20,rows=20,carry=yes", len, 600);
    cr_assert(random < .1 && rows < .3, "%g %g", random, rows);
    cr_assert(pool > .9 && sorted > pool, "%g %g", pool, sorted);
    cr_assert(cut > .6 && on < cut && on > random, "%g %g", cut, on);
    cr_assert(disturbance("sorted:count=600", len, 600) == 0, "one batch of all is the whole gradient");
    cr_assert(disturbance("order:count=1", len, 0) == 0);
    cr_assert(disturbance("sorted:count=1", len, 1) == 0);
    REFUSED(weft_plan_disturbance(NULL, &random), WEFT_EARG, "a plan");
}

/* ---- which one ---- */
Test(cost, the_one_that_disturbs_least_within_the_error)
{
    const double ms[] = { 100, 110, 119, 125, 112 }, d[] = { 2, .5, .3, 0, .32 };
    const struct {
        double error;
        int n, is;
    } want[] = { { 0, 5, 0 }, { .1, 4, 1 }, { .2, 4, 2 }, { .2, 5, 4 }, { .3, 5, 3 }, { .3, 1, 0 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int got = -1;
        PLANS(weft_plan_choose(ms, d, want[i].n, want[i].error, &got));
        cr_assert_eq(got, want[i].is, "error %g: %d", want[i].error, got);
    }
    int got;
    REFUSED(weft_plan_choose(ms, d, 0, .1, &got), WEFT_EARG, "one plan or more");
    REFUSED(weft_plan_choose(ms, d, 2, NAN, &got), WEFT_EARG, "an error");
    REFUSED(weft_plan_choose((double[]){ 1, NAN }, d, 2, .1, &got), WEFT_EARG, "numbers of 0 or more");
    REFUSED(weft_plan_choose(ms, d, 2, .1, NULL), WEFT_EARG, "room");
}

/* The same plans, another device, another choice: random batches on a CPU, sorted ones on a GPU. */
Test(cost, the_device_decides)
{
    static const char *const text[] = { "random:count=16", "sorted:count=16" };
    int32_t len[400];
    for (int i = 0; i < 400; i++)
        len[i] = 1 + (i % 20 ? drawn(i, 50) : drawn(i, 400));
    const weft_plan_cost *const device[] = { &cpu, &gpu };
    for (int k = 0; k < 2; k++) {
        double ms[2], d[2];
        int got;
        for (int i = 0; i < 2; i++) {
            weft_plan p = plan_of(text[i], len, 400);
            weft_plan_time t;
            PLANS(weft_plan_predict(&p, device[k], false, &t));
            PLANS(weft_plan_disturbance(&p, d + i));
            ms[i] = t.ms;
            weft_plan_free(&p);
        }
        PLANS(weft_plan_choose(ms, d, 2, device[k]->error, &got));
        cr_assert_eq(got, k, "device %d: %s; %g %g ms, %g %g", k, text[got], ms[0], ms[1], d[0], d[1]);
    }
}
