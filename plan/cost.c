/* cost.c - predicts the time of a plan from measured costs, measures how much it changes gradients, and
 * chooses among plans. */
#include <math.h>
#include "plan/plan.h"

/* ---- milliseconds ---- */
static bool is_amount(double x) { return isfinite(x) && x >= 0; }

static weft_status check_cost(const weft_plan_cost *c)
{
    bool no_steps = !c->points && c->pair_ms > 0;
    if ((c->points < 2 && !no_steps) || c->points > WEFT_COST_POINTS)
        return weft_plan_refuse(WEFT_EARG, "plan_predict: the cost has %d points; expected 2 .. %d",
                                c->points, WEFT_COST_POINTS);
    for (int i = 0; i < c->points; i++) {
        double before = i ? c->rows[i - 1] : 0;
        if (!(c->rows[i] > before) || !isfinite(c->rows[i]) || (!i && c->rows[i] > 1))
            return weft_plan_refuse(
                WEFT_EARG,
                "plan_predict: point %d of the cost has %g rows; expected 1 in the first point, then "
                "increasing numbers",
                i, c->rows[i]);
        if (!(c->step_ms[i] > 0) || !isfinite(c->step_ms[i]) || !is_amount(c->start_ms[i]))
            return weft_plan_refuse(WEFT_EARG,
                                    "plan_predict: a step of %g rows takes %g ms, the start of a batch %g; "
                                    "expected more than 0, and 0 or more",
                                    c->rows[i], c->step_ms[i], c->start_ms[i]);
    }
    if (!is_amount(c->token_ms) || !is_amount(c->piece_ms) || !is_amount(c->batch_ms) ||
        !is_amount(c->error) || !is_amount(c->pair_ms))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_predict: a token takes %g ms, a piece %g, a batch %g, a pair %g, the "
                                "error is %g; expected 0 or more",
                                c->token_ms, c->piece_ms, c->batch_ms, c->pair_ms, c->error);
    if (!is_amount(c->far_ms) || (c->far_ms > 0 && !(c->near_tokens >= 1 && c->far_tokens > c->near_tokens &&
                                                     isfinite(c->far_tokens))))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_predict: %g ms for a token from %g to %g tokens; expected 0 or more, "
                                "and ascending tokens",
                                c->far_ms, c->near_tokens, c->far_tokens);
    return WEFT_OK;
}

/* Returns the extra cost of a batch whose tokens exceed the cache. */
static double far_ms(const weft_plan_cost *c, double tokens)
{
    if (c->far_ms <= 0 || tokens <= c->near_tokens)
        return 0;
    double share = log(tokens / c->near_tokens) / log(c->far_tokens / c->near_tokens);
    return tokens * c->far_ms * fmin(share, 1);
}

/* Returns the segment of the points that contains `rows`, and its share of the way into *share. */
static int place_of(const weft_plan_cost *c, double rows, double *share)
{
    int i = 1;
    while (i < c->points - 1 && rows > c->rows[i])
        i++;
    *share = fmax((rows - c->rows[i - 1]) / (c->rows[i] - c->rows[i - 1]), 0);
    return i;
}

static double step_ms(const weft_plan_cost *c, double rows)
{
    double share;
    if (!c->points)
        return 0;
    int i = place_of(c, rows, &share);
    return fmax(c->step_ms[i - 1] + share * (c->step_ms[i] - c->step_ms[i - 1]), c->step_ms[0]);
}

static double batch_ms(const weft_plan_cost *c, double rows)
{
    double share;
    if (!c->points)
        return c->batch_ms;
    int i = place_of(c, rows, &share);
    return c->batch_ms + c->start_ms[i - 1] + fmin(share, 1) * (c->start_ms[i] - c->start_ms[i - 1]);
}

/* A batch has at most one live row for each segment, whatever its number of rows. */
static int64_t live_rows(const weft_plan_batch *b) { return b->rows < b->n ? b->rows : b->n; }

static weft_status predict_live(const weft_plan *p, const weft_plan_cost *c, weft_plan_prediction *out)
{
    int64_t rows = 0, *steps;
    for (int64_t b = 0; b < p->batches; b++)
        rows = live_rows(p->batch + b) > rows ? live_rows(p->batch + b) : rows;
    steps = weft__plan_memory(rows + 1, sizeof *steps);
    weft_status s = steps ? weft__plan_live(p, steps, rows, "plan_predict: ") : WEFT_ENOMEM;
    for (int64_t k = 1; k <= rows && s == WEFT_OK; k++) {
        out->steps_ms += (double)steps[k] * step_ms(c, (double)k);
        out->latency_ms += (double)steps[k] * step_ms(c, 1);
        out->tokens_ms += (double)k * (double)steps[k] * c->token_ms;
    }
    for (int64_t b = 0; b < p->batches && s == WEFT_OK; b++)
        out->tokens_ms += far_ms(c, (double)weft__plan_tokens_of(p, b));
    for (int64_t i = 0; i < p->segments && s == WEFT_OK; i++)
        out->pairs_ms += (double)p->segment[i].length * (double)p->segment[i].length * c->pair_ms;
    return s;
}

weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost, bool padded,
                              weft_plan_prediction *out)
{
    if (out)
        *out = (weft_plan_prediction){ 0 };
    if (!plan || !cost || !out)
        return weft_plan_refuse(WEFT_EARG, "plan_predict: NULL; expected a plan, a cost and a pointer for "
                                           "the prediction");
    weft_plan_prediction r = { .pieces_ms = (double)plan->segments * cost->piece_ms };
    WEFT__PLAN_SCOPE;
    weft_status s = weft__plan_is_sound(plan, INT64_MAX, "plan_predict: ");
    s = s == WEFT_OK ? check_cost(cost) : s;
    if (s == WEFT_OK && !padded)
        s = predict_live(plan, cost, &r);
    for (int64_t b = 0; b < plan->batches && s == WEFT_OK; b++) {
        const weft_plan_batch *of = plan->batch + b;
        double width = (double)of->width, rows = (double)of->rows;
        r.batches_ms += batch_ms(cost, padded ? rows : (double)live_rows(of));
        if (!padded || rows <= 0)
            continue;
        r.steps_ms += width * step_ms(cost, rows);
        r.latency_ms += width * step_ms(cost, 1);
        r.pairs_ms += width * width * rows * cost->pair_ms;
        r.tokens_ms += width * rows * cost->token_ms + far_ms(cost, width * rows);
    }
    r.ms = r.steps_ms + r.tokens_ms + r.pieces_ms + r.batches_ms + r.pairs_ms;
    if (s == WEFT_OK)
        *out = r;
    return s;
}

/* ---- gradients ---- */
static double share_of_cuts(const weft_plan *p)
{
    double tokens = 0, cut = 0;
    for (int64_t i = 0; i < p->segments; i++) {
        const weft_segment *s = p->segment + i;
        tokens += s->length;
        if (s->offset)
            cut += s->carry < 0 ? s->length : s->length / 2.;
    }
    return tokens > 0 ? cut / tokens : 0;
}

/* Returns where x is between the limit of chance, 0, and 1. */
static double beyond(double x, double limit)
{
    return limit < 1 ? fmin(fmax((x - limit) / (1 - limit), 0), 1) : 0;
}

weft_status weft_plan_disturb(const weft_plan *plan, const int32_t *len, int64_t n,
                              weft_plan_disturbance *out)
{
    weft_plan_figures f;
    weft_plan_disturbance d = { 0 };
    if (out)
        *out = d;
    if (!plan || !out)
        return weft_plan_refuse(WEFT_EARG, "plan_disturb: NULL; expected a plan and a pointer");
    weft_status s = weft_plan_measure(plan, len, n, 0, &f);
    if (s == WEFT_OK)
        s = weft_plan_autocorrelation(plan, &d.order);
    if (s != WEFT_OK)
        return s;
    int64_t full = 0;
    for (int64_t i = 0; i < plan->batches; i++)
        full += plan->batch[i].n > 0;
    double b = (double)full, pieces = (double)f.segments;
    /* mean and standard deviation for a random order: eta2 is of a beta distribution, r as Moran 1948 */
    double spread = b > 1 ? sqrt(2 * (b - 1) * (pieces - b) / (pieces + 1)) : 0;
    d.likeness = b > 1 ? beyond(f.eta2, (b - 1 + 2 * spread) / (pieces - 1)) : 0;
    d.order = b > 2 ? beyond(fabs(d.order + 1 / b), 2 * (b - 2) / (b * sqrt(b - 1))) : 0;
    d.cuts = share_of_cuts(plan);
    d.sum = d.likeness + d.order + d.cuts;
    *out = d;
    return WEFT_OK;
}

int weft_plan_choose(const double *ms, const double *disturbance, int n, double error)
{
    int best = -1;
    double least = HUGE_VAL;
    for (int i = 0; i < n; i++) {
        if (!ms || !disturbance || !is_amount(ms[i]) || !is_amount(disturbance[i]) || !is_amount(error))
            return -1;
        least = fmin(least, ms[i]);
    }
    for (int i = 0; i < n; i++)
        if (ms[i] <= (1 + error) * least)
            if (best < 0 || disturbance[i] < disturbance[best] ||
                (disturbance[i] == disturbance[best] && ms[i] < ms[best]))
                best = i;
    return best;
}
