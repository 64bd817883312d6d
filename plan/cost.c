/* cost.c - milliseconds of a plan before it runs, from a table of what a step costs by its live rows; and
 * which plan to take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

/* ---- the table ---- */
static bool is_number(double x) { return isfinite(x) && x >= 0; }

static bool is_table(const weft_plan_cost *c)
{
    bool good = c && c->points >= 1 && c->points <= WEFT_COST_POINTS && is_number(c->token_ms) &&
                is_number(c->segment_ms) && is_number(c->error) && is_number(c->blocks) && c->blocks <= 1 &&
                is_number(c->long_tokens) && is_number(c->long_share);
    for (int i = 0; good && i < c->points; i++)
        good = isfinite(c->rows[i]) && c->rows[i] > (i ? c->rows[i - 1] : 0) && isfinite(c->ms[i]) &&
               c->ms[i] > 0 && is_number(c->batch_ms[i]);
    return good;
}

/* Of a table's column; beyond its end the line goes on, but not down. */
static double between(const weft_plan_cost *c, const double *ms, double rows)
{
    int last = c->points - 1, i = 1;
    if (rows <= c->rows[0])
        return ms[0];
    if (!last)
        return ms[0] * (ms == c->ms ? rows / c->rows[0] : 1);
    while (i < last && rows > c->rows[i])
        i++;
    double slope = (ms[i] - ms[i - 1]) / (c->rows[i] - c->rows[i - 1]);
    return ms[i] + (rows > c->rows[i] && slope < 0 ? 0 : slope * (rows - c->rows[i]));
}

static double step_ms(const weft_plan_cost *c, double rows) { return rows > 0 ? between(c, c->ms, rows) : 0; }

double weft_plan_step_ms(const weft_plan_cost *cost, double rows)
{
    return is_table(cost) && !isnan(rows) ? step_ms(cost, rows) : (double)NAN;
}

/* A row of the step in which it is cheapest. */
static double price(const weft_plan_cost *c)
{
    double least = HUGE_VAL;
    for (int i = 0; i < c->points; i++)
        least = c->ms[i] / c->rows[i] < least ? c->ms[i] / c->rows[i] : least;
    return least;
}

/* ---- a plan ---- */
/* Of a batch: steps[k], at how many of its steps k of its rows are live; steps [rows + 1]. */
static void add_batch(const weft_plan_cost *c, const weft_plan_batch *b, const int64_t *steps,
                      double cheapest, weft_plan_time *t)
{
    double rows = (double)b->rows, cells = 0, each = 0;
    for (int64_t k = 1; k <= b->rows; k++)
        if (steps[k]) {
            cells += (double)(k * steps[k]);
            each += (double)steps[k] * step_ms(c, (double)k);
        }
    double in_blocks = rows > 0 ? cells * step_ms(c, rows) / rows : 0,
           ms = (1 - c->blocks) * each + c->blocks * in_blocks, least = cells * cheapest;
    least = least < ms ? least : ms;
    t->row_ms += least, t->step_ms += ms - least;
    if (c->long_tokens > 0 && cells > c->long_tokens)
        t->long_ms += ms * c->long_share * log2(cells / c->long_tokens);
    t->cells += (int64_t)cells, t->steps += b->width;
    t->batch_ms += between(c, c->batch_ms, rows);
    t->segment_ms += b->n > b->rows ? (double)(b->n - b->rows) * c->segment_ms : 0;
}

static void add_batches(const weft_plan *p, const weft_plan_cost *c, bool padded, int64_t *steps,
                        int64_t *room, weft_plan_time *t)
{
    double cheapest = price(c);
    for (int64_t b = 0; b < p->batches; b++) {
        const weft_plan_batch *is = p->batch + b;
        memset(steps, 0, (size_t)(is->rows + 1) * sizeof *steps);
        if (padded)
            steps[is->rows] = is->width;
        else
            weft__plan_count_live(p, is, room, steps);
        add_batch(c, is, steps, cheapest, t);
    }
    t->gather_ms = (double)t->cells * c->token_ms;
    t->ms = t->step_ms + t->row_ms + t->long_ms + t->gather_ms + t->segment_ms + t->batch_ms;
}

weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost, bool padded,
                              weft_plan_time *out)
{
    if (!plan || !out || !is_table(cost))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_predict: a plan, a table of 1 .. %d ascending rows with their "
                                "milliseconds above 0, other costs of 0 or more, blocks of 0 .. 1 and room "
                                "for a time are expected",
                                WEFT_COST_POINTS);
    int64_t rows = 0, pieces = 0;
    for (int64_t b = 0; b < plan->batches; b++) {
        rows = plan->batch[b].rows > rows ? plan->batch[b].rows : rows;
        pieces = plan->batch[b].n > pieces ? plan->batch[b].n : pieces;
    }
    *out = (weft_plan_time){ .segments = plan->segments, .batches = plan->batches };
    int64_t *steps = weft__plan_memory(rows, sizeof *steps),
            *room = steps ? weft__plan_memory(2 * pieces, sizeof *room) : NULL;
    if (room)
        add_batches(plan, cost, padded, steps, room, out);
    free(steps), free(room);
    return room ? WEFT_OK : WEFT_ENOMEM;
}

double weft_plan_steps_share(const weft_plan_time *time)
{
    double both = time ? time->step_ms + time->row_ms : 0;
    return both > 0 ? time->step_ms / both : 0;
}

/* ---- which one ---- */
weft_status weft_plan_disturbance(const weft_plan *plan, double *out)
{
    double r = 0, cuts = 0;
    weft_token_weights w;
    if (!plan || !out)
        return weft_plan_refuse(WEFT_EARG, "plan_disturbance: a plan and room for a number are expected");
    weft_status s = weft_plan_weigh(plan, WEFT_MEAN_OF_BATCH, &w);
    s = s == WEFT_OK ? weft_plan_autocorrelation(plan, &r) : s;
    if (s != WEFT_OK)
        return s;
    double within = 1 - weft__plan_eta_squared(plan), n = (double)plan->segments, b = (double)plan->batches;
    double by_length = n > b && b > 1 ? 1 - within * (n - 1) / (n - b) : 0; /* 0 is expected by chance */
    for (int64_t i = 0; i < plan->segments; i++)
        if (plan->segment[i].offset > 0)
            cuts += plan->segment[i].carry >= 0 ? .5 : 1;
    *out = (by_length > 0 ? by_length : 0) + r * r + w.cv * w.cv + (n > 0 ? cuts / n : 0);
    return WEFT_OK;
}

weft_status weft_plan_choose(const double *ms, const double *disturbance, int n, double error, int *chosen)
{
    bool good = ms && disturbance && n > 0 && chosen && is_number(error);
    double fastest = HUGE_VAL, least = HUGE_VAL;
    for (int i = 0; good && i < n; i++) {
        good = is_number(ms[i]) && is_number(disturbance[i]);
        fastest = ms[i] < fastest ? ms[i] : fastest;
    }
    if (!good)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_choose: times and disturbances of one plan or more, numbers of 0 or "
                                "more, an error of 0 or more and room for a choice are expected");
    double slowest = fastest * (1 + error);
    for (int i = 0; i < n; i++)
        if (ms[i] <= slowest && disturbance[i] < least)
            least = disturbance[i];
    *chosen = -1;
    for (int i = 0; i < n; i++)
        if (ms[i] <= slowest && disturbance[i] < least + .05 && (*chosen < 0 || ms[i] < ms[*chosen]))
            *chosen = i;
    return WEFT_OK;
}
