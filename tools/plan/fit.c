/* fit.c - fits the costs of a layer to timed batches, and says why they are in doubt. */
#include <math.h>
#include "tools/plan/cost.h"

static double least_of(const timed_batch *t, int blocks)
{
    double least = t->least[0];
    for (int i = 1; i < blocks; i++)
        least = fmin(least, t->least[i]);
    return least;
}

/* Returns the relative difference of the two best blocks. */
static double spread_of(const timed_batch *t, int blocks)
{
    double least = HUGE_VAL, next = HUGE_VAL;
    for (int i = 0; i < blocks; i++) {
        next = fmin(next, fmax(least, t->least[i]));
        least = fmin(least, t->least[i]);
    }
    return next / least - 1;
}

static double tokens_of(const timed_batch *t) { return (double)(t->each * t->units); }

/* Fits a line through a short and a long batch of the same kind: milliseconds of a token, and of a batch. If
 * a token of the long batch costs more, as the caches hold less of it, the short batch counts alone. */
static void fit_line(const timings *t, int k, double *token_ms, double *batch_ms)
{
    const timed_batch *s = &t->point[k][0], *l = &t->point[k][1];
    double first = least_of(s, t->blocks), second = least_of(l, t->blocks);
    *token_ms = (second - first) / (tokens_of(l) - tokens_of(s));
    *token_ms = fmin(*token_ms, first / tokens_of(s));
    *batch_ms = first - *token_ms * tokens_of(s);
}

/* Compares the large batch with the line of its kind. */
static void fit_far(const timings *t, weft_plan_cost *c)
{
    double token, start;
    int k = 0;
    while (t->point[k][0].each != t->large.each)
        k++;
    fit_line(t, k, &token, &start);
    c->far_ms = fmax((least_of(&t->large, t->blocks) - start) / tokens_of(&t->large) - token, 0);
    c->near_tokens = tokens_of(&t->point[k][0]);
    c->far_tokens = tokens_of(&t->large);
}

/* Fits token_ms + length * pair_ms to the cost of a token in sequences of each length, by least squares of
 * relative errors. */
static void fit_pairs(const timings *t, weft_plan_cost *c)
{
    double xx = 0, xy = 0, yy = 0, x = 0, y = 0, ms, start[COST_POINTS];
    for (int k = 0; k < COST_POINTS; k++) {
        fit_line(t, k, &ms, start + k);
        double one = 1 / fmax(ms, 1e-9), length = one * (double)t->point[k][0].each;
        xx += one * one;
        xy += one * length;
        yy += length * length;
        x += one;
        y += length;
    }
    double under = xx * yy - xy * xy;
    c->token_ms = fmax((x * yy - y * xy) / under, 0);
    c->pair_ms = fmax((y * xx - x * xy) / under, 1e-12);
    c->batch_ms = quantile(start, COST_POINTS, .5);
}

static void fit_steps(const timings *t, weft_plan_cost *c)
{
    c->points = COST_POINTS;
    c->token_ms = least_of(&t->moved, t->blocks) / tokens_of(&t->moved);
    for (int k = 0; k < COST_POINTS; k++) {
        double ms;
        fit_line(t, k, &ms, c->start_ms + k);
        c->rows[k] = (double)t->point[k][0].each;
        c->step_ms[k] = fmax((ms - c->token_ms) * c->rows[k], 1e-6);
    }
}

bool is_plausible(const weft_plan_cost *c)
{
    for (int k = 1; k < c->points; k++)
        if (c->step_ms[k] < (1 - COST_SPREAD) * c->step_ms[k - 1])
            return false;
    return true;
}

double fit_costs(const timings *t, layer_cost *out)
{
    double spread = fmax(spread_of(&t->moved, t->blocks), spread_of(&t->large, t->blocks));
    weft_plan_cost *c = &out->cost;
    *c = (weft_plan_cost){ .points = 0 };
    fit_far(t, c);
    t->attention ? fit_pairs(t, c) : fit_steps(t, c);
    for (int k = 0; k < COST_POINTS; k++)
        for (int i = 0; i < 2; i++)
            spread = fmax(spread, spread_of(&t->point[k][i], t->blocks));
    *out->doubt = 0;
    if (!is_plausible(c))
        snprintf(out->doubt, sizeof out->doubt, "a step of more rows took less time than one of fewer");
    else if (spread > COST_DOUBT)
        snprintf(out->doubt, sizeof out->doubt, "two parts of the measurement differ by %.0f %%",
                 100 * spread);
    return spread;
}
