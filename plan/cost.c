/* cost.c - milliseconds of a plan before it runs, from a table of what a step costs by its live rows; and
 * which plan to take. */
#include <math.h>
#include <stdlib.h>
#include "plan/plan.h"

/* ---- the table ---- */
static bool is_number(double x) { return isfinite(x) && x >= 0; }

static bool is_table(const weft_plan_cost *c)
{
    bool good = c && c->points >= 1 && c->points <= WEFT_COST_POINTS && is_number(c->token_ms) &&
                is_number(c->segment_ms) && is_number(c->batch_ms) && is_number(c->error);
    for (int i = 0; good && i < c->points; i++)
        good = isfinite(c->rows[i]) && c->rows[i] > (i ? c->rows[i - 1] : 0) && isfinite(c->ms[i]) &&
               c->ms[i] > 0;
    return good;
}

static double step_ms(const weft_plan_cost *c, double rows)
{
    int last = c->points - 1, i = 1;
    if (rows <= 0)
        return 0;
    if (rows <= c->rows[0])
        return c->ms[0];
    if (!last)
        return c->ms[0] * rows / c->rows[0];
    while (i < last && rows > c->rows[i])
        i++;
    double slope = (c->ms[i] - c->ms[i - 1]) / (c->rows[i] - c->rows[i - 1]);
    return c->ms[i] + (rows > c->rows[i] && slope < 0 ? 0 : slope * (rows - c->rows[i]));
}

double weft_plan_step_ms(const weft_plan_cost *cost, double rows)
{
    return is_table(cost) && !isnan(rows) ? step_ms(cost, rows) : (double)NAN;
}

/* A row of the step in which it is cheapest. */
static double price(const weft_plan_cost *c)
{
    double least = INFINITY;
    for (int i = 0; i < c->points; i++)
        least = c->ms[i] / c->rows[i] < least ? c->ms[i] / c->rows[i] : least;
    return least;
}

/* ---- a plan ---- */
static void add_steps(const weft_plan_cost *c, int64_t rows, int64_t steps, weft_plan_time *t)
{
    t->cells += rows * steps;
    t->step_ms += (double)steps * step_ms(c, (double)rows);
}

static weft_status add_live(const weft_plan *p, const weft_plan_cost *c, weft_plan_time *t)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < p->batches; b++)
        rows = p->batch[b].rows > rows ? p->batch[b].rows : rows;
    int64_t *steps = weft__plan_memory(rows, sizeof *steps);
    weft_status s = steps ? weft_plan_live_rows(p, steps, rows + 1) : WEFT_ENOMEM;
    for (int64_t k = 0; k <= rows && s == WEFT_OK; k++)
        if (steps[k])
            add_steps(c, k, steps[k], t);
    free(steps);
    return s;
}

weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost, bool padded,
                              weft_plan_time *out)
{
    if (!plan || !out || !is_table(cost))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_predict: a plan, a table of 1 .. %d ascending rows with their "
                                "milliseconds above 0, other costs of 0 or more and room for a time are "
                                "expected",
                                WEFT_COST_POINTS);
    *out = (weft_plan_time){ .segments = plan->segments, .batches = plan->batches };
    weft_status s = padded ? WEFT_OK : add_live(plan, cost, out);
    for (int64_t b = 0; b < plan->batches; b++) {
        out->steps += plan->batch[b].width;
        if (padded)
            add_steps(cost, plan->batch[b].rows, plan->batch[b].width, out);
    }
    if (s != WEFT_OK)
        return *out = (weft_plan_time){ 0 }, s;
    out->row_ms = (double)out->cells * price(cost);
    out->row_ms = out->row_ms < out->step_ms ? out->row_ms : out->step_ms;
    out->step_ms -= out->row_ms;
    out->gather_ms = (double)out->cells * cost->token_ms;
    out->segment_ms = (double)out->segments * cost->segment_ms;
    out->batch_ms = (double)out->batches * cost->batch_ms;
    out->ms = out->step_ms + out->row_ms + out->gather_ms + out->segment_ms + out->batch_ms;
    return WEFT_OK;
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
    double fastest = INFINITY, least = INFINITY;
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
