/* calibrate.c - what a step costs by its live rows, measured on plans of few shapes; the least of several
 * passes, by turns, so that what disturbs the machine disturbs no point alone. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "tools/plan/costs.h"

enum { ROUNDS = 4 };

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double pass_ms(const cost_runner *r, const weft_plan *p, cost_pass pass)
{
    double start = seconds_now();
    return r->pass(r->user, p, pass) ? 1e3 * (seconds_now() - start) : (double)NAN;
}

double cost_least_ms(const cost_runner *r, const weft_plan *p, cost_pass pass, int passes, double seconds)
{
    double start = seconds_now(), least = pass_ms(r, p, pass);
    for (int i = 1; i < passes && !isnan(least) && seconds_now() - start < seconds; i++) {
        double ms = pass_ms(r, p, pass);
        least = isnan(ms) || ms < least ? ms : least;
    }
    return least;
}

/* ---- what is measured ---- */
/* Batches of so many rows; of equal lengths, or of lengths that fall evenly; pieces: sequences of a row, for
 * plans in rows, 0: one a row, packed; once: one batch. */
typedef struct {
    int64_t rows, length, pieces;
    bool falling, once;
    cost_pass pass;
} shape;
/* The least that a batch took. */
typedef struct {
    shape is;
    weft_plan plan;
    double ms;
} point;
/* FEW: tokens of a batch that is not long. */
enum { BATCHES = 3, SHORT = 2, LONG = 64, FEW = 1024, PIECES = 8 };

static bool set_point(point *p, shape is)
{
    int64_t in_row = is.pieces ? is.pieces : 1, n = is.rows * in_row * (is.once ? 1 : BATCHES);
    int32_t *len = malloc((size_t)n * sizeof *len);
    for (int64_t i = 0; i < n && len; i++)
        len[i] = (int32_t)(is.falling ? is.length - i % is.rows * is.length / is.rows : is.length / in_row);
    weft_plan_opts o = { .count = is.rows, .capacity = is.length, .rows = is.rows };
    weft_plan_free(&p->plan);
    p->is = is, p->ms = HUGE_VAL;
    bool good = len && weft_plan_make(weft_planner_named(is.pieces ? "next_fit" : "order"), len, n, &o,
                                      &p->plan) == WEFT_OK;
    free(len);
    return good;
}

/* Twice: the first pass may find what it reads far away. */
static bool time_point(const cost_runner *r, point *p)
{
    for (int i = 0; i < 2; i++) {
        double ms = pass_ms(r, &p->plan, p->is.pass) / (double)p->plan.batches;
        if (isnan(ms))
            return false;
        p->ms = ms < p->ms ? ms : p->ms;
    }
    return true;
}

/* ---- which shapes ---- */
/* The k-th rows of the table are measured at two lengths. */
enum { OTHERS = 2 * WEFT_COST_POINTS, WHOLE = OTHERS, IN_PIECES, GATHERED, FALLING, MANY, POINTS };

/* The largest length, halved down to eight, whose pass takes no more than a share. */
static int64_t length_for(double step_ms, double share_ms, int64_t most)
{
    while (most > 8 && step_ms * (double)most * 2 > share_ms)
        most /= 2;
    return most;
}

static bool set_table(const cost_runner *r, point *all, int points, double share_ms)
{
    bool good = true;
    for (int k = 0; k < points && good; k++) {
        shape is = { .rows = (int64_t)1 << k, .length = SHORT };
        good = set_point(all + 2 * k, is) && time_point(r, all + 2 * k);
        is.length = 8;
        good = good && set_point(all + 2 * k + 1, is) && time_point(r, all + 2 * k + 1);
        int64_t most = FEW / is.rows < LONG ? FEW / is.rows : LONG;
        is.length = good ? length_for(all[2 * k + 1].ms / 8 * BATCHES, share_ms, most) : 8;
        good = good && set_point(all + 2 * k + 1, is);
    }
    return good;
}

static bool set_points(const cost_runner *r, point *all, int points, double share_ms)
{
    int k = points < 6 ? points - 1 : 5;
    if (!set_table(r, all, points, share_ms))
        return false;
    int64_t rows = (int64_t)1 << k, length = all[2 * k + 1].is.length;
    double step = all[2 * k].ms / SHORT;
    return set_point(all + WHOLE, (shape){ .rows = 8, .length = length, .pieces = 1 }) &&
           set_point(all + IN_PIECES, (shape){ .rows = 8, .length = length, .pieces = PIECES }) &&
           set_point(all + GATHERED, (shape){ .rows = 16, .length = LONG, .pass = COST_GATHER }) &&
           set_point(all + FALLING, (shape){ .rows = rows, .length = 2 * length, .falling = true }) &&
           set_point(all + MANY,
                     (shape){ .rows = rows, .length = length_for(step, 8 * share_ms, 256), .once = true });
}

/* ---- the constants ---- */
static void fit_table(const point *all, int points, weft_plan_cost *c)
{
    c->points = points;
    for (int k = 0; k < points; k++) {
        const point *few = all + 2 * k, *more = few + 1;
        double rows = (double)few->is.rows,
               step = (more->ms - few->ms) / (double)(more->is.length - few->is.length),
               mean = more->ms / (double)more->is.length;
        step = step > .1 * mean ? step : .1 * mean;
        c->rows[k] = rows;
        c->batch_ms[k] = fmax(0, few->ms - (double)few->is.length * step);
        c->ms[k] = fmax(step - c->token_ms * rows, .1 * step);
    }
}

static double predicted(const point *p, const weft_plan_cost *c)
{
    weft_plan_time t;
    return weft_plan_predict(&p->plan, c, false, &t) == WEFT_OK ? t.ms / (double)p->plan.batches :
                                                                  (double)NAN;
}

/* Between no blocks and blocks alone, where a batch of falling lengths is. */
static double fit_blocks(const point *p, weft_plan_cost c)
{
    double none = (c.blocks = 0, predicted(p, &c)), alone = (c.blocks = 1, predicted(p, &c));
    double at = (none - p->ms) / (none - alone);
    return none - alone > .03 * none ? at < 0 ? 0 : at < 1 ? at : 1 : 0;
}

/* A pass that long is seldom undisturbed where other programs run: no machine was seen beyond .07. */
#define MOST_SHARE .12
static void fit_long(const point *p, weft_plan_cost *c)
{
    double tokens = (double)(p->is.rows * p->is.length), ms = predicted(p, c);
    c->long_tokens = FEW;
    if (tokens > 2 * c->long_tokens)
        c->long_share = fmin(MOST_SHARE, fmax(0, p->ms / ms - 1) / log2(tokens / c->long_tokens));
}

static void fit(const point *all, int points, weft_plan_cost *c)
{
    const point *g = all + GATHERED;
    c->token_ms = g->ms / (double)(g->is.rows * g->is.length);
    c->segment_ms = fmax(0, (all[IN_PIECES].ms - all[WHOLE].ms) / (8 * (PIECES - 1)));
    fit_table(all, points, c);
    c->blocks = fit_blocks(all + FALLING, *c);
    fit_long(all + MANY, c);
}

bool calibrate(const cost_runner *r, int64_t most_rows, double seconds, weft_plan_cost *out)
{
    point all[POINTS] = { 0 };
    int points = 4;
    double start = seconds_now();
    while (points < WEFT_COST_POINTS && (int64_t)1 << points <= most_rows)
        points++;
    bool good = set_points(r, all, points, 1e3 * seconds / (ROUNDS * (points + 4)));
    for (int round = 0; good && (!round || seconds_now() - start < seconds); round++)
        for (int i = 0; i < POINTS && good; i++)
            if (i < 2 * points || i >= OTHERS)
                good = (round && seconds_now() - start > seconds) || time_point(r, all + i);
    *out = (weft_plan_cost){ 0 };
    if (good)
        fit(all, points, out);
    for (int i = 0; i < POINTS; i++)
        weft_plan_free(&all[i].plan);
    return good;
}
