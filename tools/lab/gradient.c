/* gradient.c - at fixed weights, measures the bias and noise of the batches' gradients for each divisor of
 * the loss. The reference is the gradient of all tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"
#include "tools/lab/run.h"

enum { MEANS = 3 };
static const char *const name_of_mean[MEANS] = { "batch", "plan", "sequences" };

/* For each mean: sum [size] of the gradients and the sum of their squared norms. whole [size]: reference. */
typedef struct {
    int64_t size, batches;
    double *sum[MEANS], squares[MEANS], *whole;
    weft_real *one;
} moments;

static void make_room(moments *g, int64_t size)
{
    double *sums = get_memory(MEANS * size, sizeof *sums);
    *g = (moments){ .size = size,
                    .whole = get_memory(size, sizeof(double)),
                    .one = get_memory(size, sizeof *g->one) };
    for (int k = 0; k < MEANS; k++)
        g->sum[k] = sums + k * size;
}

/* Computes the gradient of a batch's summed loss. Each token has equal weight, or each sequence. */
static bool find_gradient(lab_run *r, lab_model *m, const weft_plan *p, int64_t b, bool by_sequence,
                          moments *g)
{
    weft_plan_step s = weft_plan_step_of(m->w, p, b);
    weft_tensor *weights = by_sequence ? weft_plan_weights(&s, r->train.len) : NULL;
    weft_backward(lab_model_loss(m, &s, &r->train, weights).sum);
    weft_read(weft_flat_gradient(m->m), g->one, (size_t)g->size * sizeof *g->one);
    weft_zero_grad(m->m);
    weft_clear(m->w);
    return weft_ok(m->w);
}

static void add(moments *g, int mean, double scale)
{
    for (int64_t i = 0; i < g->size; i++) {
        double x = scale * (double)g->one[i];
        g->sum[mean][i] += x;
        g->squares[mean] += x * x;
    }
}

/* Adds all batches with tokens. Returns false and sets *stopped if the time is over. */
static bool add_batches(lab_run *r, lab_model *m, const weft_plan *p, moments *g, bool *stopped)
{
    double batches = (double)p->batches, tokens = (double)(p->tokens - p->dropped);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t b = 0; b < p->batches; b++) {
            int64_t n = weft__plan_tokens_of(p, b);
            lab_progress_at(r, (double)(pass * p->batches + b) / (2 * batches));
            if ((*stopped = lab_stops(r)))
                return true;
            if (!n && !pass)
                continue;
            if (n && !find_gradient(r, m, p, b, pass, g))
                return false;
            if (pass && n)
                add(g, 2, batches / (double)p->not_empty);
            else if (!pass)
                add(g, 0, 1 / (double)n), add(g, 1, batches / tokens), g->batches++;
        }
    return true;
}

static void finish_moments(lab_run *r, int i, const moments *g)
{
    double norm = 0, n = (double)g->batches;
    for (int64_t k = 0; k < g->size; k++)
        norm += g->whole[k] * g->whole[k];
    for (int mean = 0; mean < MEANS && g->batches; mean++) {
        double away = 0, squared = 0;
        for (int64_t k = 0; k < g->size; k++) {
            double x = g->sum[mean][k] / n;
            away += (x - g->whole[k]) * (x - g->whole[k]);
            squared += x * x;
        }
        double bias = sqrt(away / norm), noise = (g->squares[mean] / n - squared) / norm;
        if (!mean) {
            r->page.plan[i].bias = bias;
            r->page.plan[i].noise = noise;
        }
        NOTE_TEXT(r, "gradient", r->made[i].text, "mean_of", name_of_mean[mean], { "bias", bias },
                  { "noise", noise }, { "batches", n });
    }
}

/* Computes the gradient of all tokens of whole sequences, with equal weights. */
static bool find_whole(lab_run *r, moments *g, bool *stopped)
{
    PLAN p;
    lab_model m;
    bool ok = lab_model_open(&m, r, 1, 0, false) || lab_refuse("the whole gradient", m.w);
    if (weft_plan_make(weft_planner_named("sorted"), r->train.len, r->train.n,
                       &(weft_plan_opts){ .count = 64 }, &p) != WEFT_OK)
        ok = say_failure("lab: %s", weft_plan_message());
    if (ok)
        make_room(g, weft_parameter_numel(m.m));
    lab_progress(r, "the gradient of all sequences");
    for (int64_t b = 0; ok && b < p.batches && !(*stopped = lab_stops(r)); b++) {
        lab_progress_at(r, (double)b / (double)p.batches);
        ok = find_gradient(r, &m, &p, b, false, g) || lab_refuse("the whole gradient", m.w);
        for (int64_t k = 0; k < g->size && ok; k++)
            g->whole[k] += (double)g->one[k] / (double)p.tokens;
    }
    weft_close(m.w);
    return ok;
}

bool lab_measure_gradients(lab_run *r)
{
    moments g = { 0 };
    bool stopped = false, ok = find_whole(r, &g, &stopped);
    for (int i = 0; i < r->asked.planners && ok && !stopped; i++) {
        lab_model m;
        lab_progress(r, "gradients of %s", r->made[i].text);
        memset(g.sum[0], 0, MEANS * (size_t)g.size * sizeof(double));
        memset(g.squares, 0, sizeof g.squares);
        g.batches = 0;
        ok = (lab_model_open(&m, r, 1, 0, false) && lab_model_carries(&m, &r->made[i].plan) &&
              add_batches(r, &m, &r->made[i].plan, &g, &stopped)) ||
             lab_refuse(r->made[i].text, m.w);
        if (ok && !stopped)
            finish_moments(r, i, &g);
        weft_close(m.w);
    }
    free(g.sum[0]), free(g.whole), free(g.one);
    return ok;
}
