/* planted.c - fits costs to invented times: true ones, disturbed ones, and a false curve. It is a planner in
 * a shared object, so that it runs in weft and can call its fit. */
#include <math.h>
#include <string.h>
#include "tools/plan/cost.h"

enum { BLOCKS = 4 };

/* A token in a step of r rows costs .01 / sqrt(r), a batch .2; a token that moves .0002. A token of attention
 * in a sequence of n tokens costs .004 + .0001 n. A large batch costs .002 more for each token. */
static double token_of(bool attention, double each)
{
    return attention ? .004 + 1e-4 * each : .01 / sqrt(each);
}

static void set(timed_batch *t, double each, double units, double ms)
{
    *t = (timed_batch){ .each = (int64_t)each, .units = (int64_t)units };
    for (int i = 0; i < BLOCKS; i++)
        t->least[i] = ms * (1 + .02 * i);
}

static timings true_times(bool attention)
{
    timings t = { .blocks = BLOCKS, .attention = attention };
    set(&t.moved, 32, 32, .0002 * 1024);
    set(&t.large, 32, 512, .2 + (token_of(attention, 32) + .002) * 32 * 512);
    for (int k = 0; k < COST_POINTS; k++)
        for (int i = 0; i < 2; i++) {
            double each = (attention ? 4 : 1) << k, units = i ? 32 : 8;
            set(&t.point[k][i], each, units, .2 + token_of(attention, each) * each * units);
        }
    return t;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * (1 + fabs(b)); }

/* Returns the fault of a fit to true times, or NULL. */
static const char *check_fit(const timings *t)
{
    layer_cost l;
    weft_plan_cost *c = &l.cost;
    fit_costs(t, &l);
    if (*l.doubt)
        return "true times are in doubt";
    if (!near(c->far_ms, .002))
        return "far_ms";
    if (t->attention)
        return near(c->token_ms, .004) && near(c->pair_ms, 1e-4) && near(c->batch_ms, .2) ? NULL : "pairs";
    for (int k = 0; k < COST_POINTS; k++)
        if (!near(c->step_ms[k], c->rows[k] * (token_of(false, c->rows[k]) - .0002)) ||
            !near(c->start_ms[k], .2))
            return "steps";
    return near(c->token_ms, .0002) ? NULL : "token_ms";
}

static const char *doubt_of(const timings *t)
{
    static layer_cost l;
    fit_costs(t, &l);
    return l.doubt;
}

static weft_status run(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    (void)len, (void)n, (void)o, (void)p;
    const char *wrong = NULL;
    for (int attention = 0; attention < 2 && !wrong; attention++) {
        timings t = true_times(attention);
        wrong = check_fit(&t);
        for (int k = 0; k < COST_POINTS; k++) /* two slow blocks: the least of the others counts */
            t.point[k][k % 2].least[2] *= 3, t.point[k][k % 2].least[3] *= 1.5;
        wrong = wrong ? wrong : check_fit(&t);
        t.point[3][1].least[1] *= 1.4; /* only one block is fast */
        if (!wrong && strncmp(doubt_of(&t), "two parts of the measurement differ by 4", 40))
            wrong = "a single fast block is believed";
    }
    timings t = true_times(false);
    for (int i = 0; i < BLOCKS; i++) /* all blocks of one point are slow */
        t.point[4][0].least[i] *= 6, t.point[4][1].least[i] *= 6;
    if (!wrong && !strstr(doubt_of(&t), "a step of more rows took less time"))
        wrong = "a curve that falls is believed";
    return weft_plan_refuse(WEFT_EARG, "%s", wrong ? wrong : "every planted curve is known");
}
const weft_planner planted = { .name = "planted", .options = "", .plan = run };
