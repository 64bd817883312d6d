/* verdict.c - judges plans by measured times, by predicted times, or by cells. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "plan/plan.h"
#include "tools/plan/verdict.h"

/* Plans tie within these shares: of costs without a stated error; of cells, and of times of one pass. */
static const double usual_error = .2, cells_error = .1;

/* Returns the cells that the largest batch stores. A packed batch stores its tokens only. */
static int64_t largest_batch(const planned *made)
{
    const weft_plan *p = &made->plan;
    int64_t most = 0;
    bool pads = p->in_rows || made->padded;
    for (int64_t b = 0; b < p->batches; b++) {
        int64_t n = pads ? p->batch[b].rows * p->batch[b].width : weft__plan_tokens_of(p, b);
        most = n > most ? n : most;
    }
    return most;
}

static double cost_of(const verdict *v, int i)
{
    return v->basis == VERDICT_BY_CELLS ? (double)v->plan[i].made->figures.cells : v->plan[i].ms;
}

/* Returns the highest cost of plans that tie with the fastest: the end of the range of its measured times. */
static double limit_of(const verdict *v)
{
    double fastest = cost_of(v, v->fastest);
    if (v->basis != VERDICT_BY_TIMES)
        return fastest * (1 + v->error);
    const judged_plan *f = v->plan + v->fastest;
    return f->high > f->low ? f->high : fastest * (1 + cells_error);
}

/* Finds the fastest plan, those that tie with it, and the one of these that changes gradients least. */
static void choose(verdict *v)
{
    SCOPED double *cost = get_memory(v->n, sizeof *cost), *by = get_memory(v->n, sizeof *by);
    double fastest = HUGE_VAL;
    v->chosen = v->fastest = -1;
    for (int i = 0; i < v->n; i++) {
        if (cost_of(v, i) < fastest) /* false for NaN */
            fastest = cost_of(v, v->fastest = i);
        by[i] = v->plan[i].by.sum;
    }
    double limit = v->fastest < 0 ? 0 : limit_of(v);
    for (int i = 0; i < v->n; i++) {
        judged_plan *j = v->plan + i;
        bool range = v->basis == VERDICT_BY_TIMES && j->high > j->low;
        cost[i] = isnan(cost_of(v, i)) ? DBL_MAX : fmax(fastest, range ? j->low : cost_of(v, i));
        j->tied = cost[i] <= limit;
        v->tied += j->tied;
    }
    if (v->fastest >= 0) /* an empty corpus has no cost */
        v->chosen = weft_plan_choose(cost, by, v->n, fastest > 0 ? limit / fastest - 1 : 0);
}

/* Returns the main reason why a plan differs from sequences drawn at random. */
static const char *main_disturbance(const weft_plan_disturbance *d)
{
    if (d->sum < .1)
        return "It is about as good as drawing sequences at random";
    return d->likeness >= d->order && d->likeness >= d->cuts ? "Its batches contain similar sequences" :
           d->order >= d->cuts                               ? "Its batches are ordered by length" :
                                                               "It cuts sequences";
}

static void say_why(verdict *v)
{
    const char *most = v->basis == VERDICT_BY_CELLS ? "has the fewest cells" : "is the fastest";
    const char *within = v->basis == VERDICT_BY_COSTS ? "the model's error" :
                         v->basis == VERDICT_BY_TIMES ? "the spread of the times" :
                                                        "the limit for cells";
    if (v->chosen < 0)
        snprintf(v->why, sizeof v->why, "No plan can be compared: none has a time");
    else if (v->n == 1)
        snprintf(v->why, sizeof v->why, "the only plan");
    else if (v->tied == 1)
        snprintf(v->why, sizeof v->why, "it %s, and no other plan ties within %s", most, within);
    else
        snprintf(v->why, sizeof v->why,
                 "within %s %d plans tie, and this one changes gradients least; %.150s %s", within, v->tied,
                 v->chosen == v->fastest ? "it" : v->plan[v->fastest].made->text, most);
}

/* Prints the number of updates of the chosen plan, and warns if another plan makes more than double that. */
static void say_updates(const verdict *v, char *text, size_t size)
{
    int64_t own = v->plan[v->chosen].made->plan.batches, most = own;
    int other = v->chosen;
    for (int i = 0; i < v->n; i++)
        if (v->plan[i].made->plan.batches > most)
            most = v->plan[other = i].made->plan.batches;
    int n = snprintf(text, size, "It makes %lld update%s in a pass", (long long)own, own == 1 ? "" : "s");
    if (most > 2 * own)
        snprintf(text + n, size - (size_t)n,
                 "; %.100s makes %lld. Larger batches learn more slowly per pass, so compare plans with "
                 "about the same tokens in a batch (rows=, count=)",
                 v->plan[other].made->text, (long long)most);
}

static void say_cost(verdict *v)
{
    const judged_plan *j = v->plan + v->chosen;
    char *to = v->cost, ms[120] = "", updates[320];
    say_updates(v, updates, sizeof updates);
    if (v->basis != VERDICT_BY_CELLS)
        snprintf(ms, sizeof ms, "A pass takes %.1f ms (%.1f to %.1f)%s. ", j->ms, j->low, j->high,
                 v->basis == VERDICT_BY_COSTS ? ", predicted" : "");
    snprintf(to, sizeof v->cost,
             "%sThe largest batch stores %lld cells; the activations of a layer are in proportion to them. "
             "%s. %s (disturbance of gradients %.3f; 0: like sequences drawn at random).",
             ms, (long long)j->memory, updates, main_disturbance(&j->by), j->by.sum);
}

static void say_sure(verdict *v, const layer_cost *costs)
{
    if (v->basis == VERDICT_BY_TIMES)
        snprintf(v->sure, sizeof v->sure,
                 "Times were measured; their range is from the 10th to the 90th percentile. Plans tie if the "
                 "range of one begins before that of the fastest ends%s.",
                 v->plan[v->fastest].high > v->plan[v->fastest].low ?
                     "" :
                     "; one pass has no range, so times within 10 % tie");
    else if (v->basis == VERDICT_BY_COSTS)
        snprintf(v->sure, sizeof v->sure,
                 "Times are predicted for %s, %s an error of %.0f %%; plans within it tie. weft lab measures "
                 "times.%s%s",
                 costs->name, costs->cost.error > 0 ? "with" : "without a stated error; assumed is",
                 100 * v->error, *costs->doubt ? " The costs are in doubt: " : "", costs->doubt);
    else
        snprintf(
            v->sure, sizeof v->sure,
            "No times are known: plans with up to %.0f %% more cells than the fewest tie, and cells are "
            "a weak guide to times. weft plan --explain=lstm:128 predicts times, weft lab measures them.",
            100 * v->error);
}

static bool predict(judged_plan *j, const layer_cost *costs, double error)
{
    weft_plan_prediction m = { .ms = j->ms };
    if (isnan(m.ms) && weft_plan_predict(&j->made->plan, &costs->cost, false, &m) != WEFT_OK)
        return false;
    j->ms = m.ms;
    j->low = m.ms * (1 - error);
    j->high = m.ms * (1 + error);
    return true;
}

bool judge_plans(verdict *v, const int32_t *len, int64_t count, const layer_cost *costs)
{
    bool ok = true;
    v->error = v->basis != VERDICT_BY_COSTS ? cells_error :
               costs->cost.error > 0        ? costs->cost.error :
                                              usual_error;
    for (int i = 0; i < v->n && ok; i++) {
        judged_plan *j = v->plan + i;
        j->memory = largest_batch(j->made);
        ok = ((v->basis != VERDICT_BY_COSTS || predict(j, costs, v->error)) &&
              weft_plan_disturb(&j->made->plan, len, count, &j->by) == WEFT_OK) ||
             say_failure("plan: %s: %s", j->made->text, weft_plan_message());
    }
    if (!ok)
        return false;
    choose(v);
    say_why(v);
    if (v->chosen >= 0) {
        say_cost(v);
        say_sure(v, costs);
    }
    return true;
}

void free_verdict(verdict *v) { free(v->plan); }

bool judge_made(verdict *v, const planned *all, int n, const int32_t *len, int64_t count,
                const layer_cost *costs)
{
    *v = (verdict){ .basis = costs ? VERDICT_BY_COSTS : VERDICT_BY_CELLS, .n = n };
    v->plan = get_memory(n, sizeof *v->plan);
    for (int i = 0; i < n; i++)
        v->plan[i] = (judged_plan){ .made = all + i, .ms = NAN, .low = NAN, .high = NAN };
    return judge_plans(v, len, count, costs);
}
