/* calibrate.c - what a step costs by its live rows, measured on plans of equal lengths; the least of several
 * passes, by turns, so that what disturbs the machine disturbs no point alone. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "tools/plan/costs.h"

enum { ROUNDS = 4, LONGEST = 1024 };

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

/* ---- plans of equal lengths ---- */
/* pieces: sequences of a row, for plans in rows; 0: one a row, packed. */
static bool equal_plan(int64_t rows, int64_t length, int64_t pieces, weft_plan *out)
{
    int64_t n = rows * (pieces ? pieces : 1);
    int32_t *len = malloc((size_t)n * sizeof *len);
    for (int64_t i = 0; i < n && len; i++)
        len[i] = (int32_t)(pieces ? length / pieces : length);
    weft_plan_opts o = { .count = rows, .capacity = length };
    bool good =
        len && weft_plan_make(weft_planner_named(pieces ? "next_fit" : "order"), len, n, &o, out) == WEFT_OK;
    free(len);
    return good;
}

/* One thing to measure: a plan, how it is run, and the least that it took. */
typedef struct {
    weft_plan plan;
    cost_pass pass;
    double rows, steps, ms;
} point;

static bool set_point(point *p, int64_t rows, int64_t length, int64_t pieces, cost_pass pass)
{
    weft_plan_free(&p->plan);
    *p = (point){ .pass = pass, .rows = (double)rows, .steps = (double)length, .ms = INFINITY };
    return equal_plan(rows, length, pieces, &p->plan);
}

static bool time_point(const cost_runner *r, point *p)
{
    double ms = pass_ms(r, &p->plan, p->pass);
    p->ms = ms < p->ms ? ms : p->ms;
    return !isnan(ms);
}

/* ---- the points ---- */
enum { ONE = WEFT_COST_POINTS, WHOLE, PIECES, GATHERED, POINTS, PIECES_A_ROW = 8 };

/* So long that a pass takes its share of the time, and eight steps at least. */
static bool lengthen(const cost_runner *r, point *p, double share_ms)
{
    double first = pass_ms(r, &p->plan, p->pass), again = pass_ms(r, &p->plan, p->pass);
    double length = share_ms / (fmin(first, again) / p->steps);
    length = length > 8 ? length < LONGEST ? length : LONGEST : 8;
    return !isnan(first) && !isnan(again) && set_point(p, (int64_t)p->rows, (int64_t)length, 0, p->pass);
}

static bool make_points(const cost_runner *r, point *all, int points, double share_ms)
{
    bool good = true;
    for (int i = 0; i < points && good; i++)
        good = set_point(all + i, (int64_t)1 << i, 8, 0, COST_PLAN) && lengthen(r, all + i, share_ms);
    int64_t length = good ? (int64_t)(all[3].steps / PIECES_A_ROW + 1) * PIECES_A_ROW : 8;
    length = length < 64 ? length : 64;
    return good && set_point(all + ONE, 1, 1, 0, COST_PLAN) &&
           set_point(all + WHOLE, 8, length, 1, COST_PLAN) &&
           set_point(all + PIECES, 8, length, PIECES_A_ROW, COST_PLAN) &&
           set_point(all + GATHERED, 16, 64, 0, COST_GATHER);
}

/* A batch of one token is a step of one row and the batch. */
static void fit(const point *all, int points, weft_plan_cost *c)
{
    double one = all[0].steps, per_step = (all[0].ms - all[ONE].ms) / (one - 1);
    c->batch_ms = fmax(0, all[ONE].ms - fmax(per_step, 0));
    c->segment_ms = fmax(0, (all[PIECES].ms - all[WHOLE].ms) / (8 * (PIECES_A_ROW - 1)));
    c->token_ms = fmax(0, (all[GATHERED].ms - c->segment_ms * all[GATHERED].rows) /
                              (all[GATHERED].rows * all[GATHERED].steps));
    c->points = points;
    for (int i = 0; i < points; i++) {
        double steps = all[i].ms - c->batch_ms - all[i].rows * c->segment_ms;
        c->rows[i] = all[i].rows;
        c->ms[i] = fmax(steps / all[i].steps - c->token_ms * all[i].rows, .1 * all[i].ms / all[i].steps);
    }
}

bool calibrate(const cost_runner *r, int64_t most_rows, double seconds, weft_plan_cost *out)
{
    point all[POINTS] = { 0 };
    int points = 4;
    double start = seconds_now();
    while (points < WEFT_COST_POINTS && (int64_t)1 << points <= most_rows)
        points++;
    bool good = make_points(r, all, points, 1e3 * seconds / (ROUNDS * (points + 2)));
    for (int round = 0; good && (round < 2 || seconds_now() - start < seconds); round++)
        for (int i = 0; i < POINTS && good; i++)
            if (i < points || i >= ONE)
                good = (round > 1 && seconds_now() - start > seconds) || time_point(r, all + i);
    *out = (weft_plan_cost){ 0 };
    if (good)
        fit(all, points, out);
    for (int i = 0; i < POINTS; i++)
        weft_plan_free(&all[i].plan);
    return good;
}
