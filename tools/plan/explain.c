/* explain.c - prints the predicted cost of plans on a device, the parts of the time, and the plan to take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/plan/cost.h"

/* For costs without a measured error. */
static const double usual_error = .2;

typedef struct {
    weft_plan_prediction ms;
    weft_plan_disturbance by;
} judged;

static bool judge(const planned *t, const int32_t *len, int64_t n, const layer_cost *l, judged *to)
{
    return (weft_plan_predict(&t->plan, &l->cost, false, &to->ms) == WEFT_OK &&
            weft_plan_disturb(&t->plan, len, n, &to->by) == WEFT_OK) ||
           say_failure("plan: %s: %s", t->text, weft_plan_message());
}

static void print_rows(const planned *all, int count, const judged *j)
{
    int width = 7;
    for (int i = 0; i < count; i++)
        width = (int)strlen(all[i].text) > width ? (int)strlen(all[i].text) : width;
    printf("%-*s %10s %8s %8s %8s %8s %11s\n", width, "planner", "ms", count && j->ms.pairs_ms > 0 ? "pairs" : "steps", "tokens", "pieces", "batches",
           "disturbance");
    for (int i = 0; i < count; i++) {
        const weft_plan_prediction *m = &j[i].ms;
        double part = m->ms > 0 ? 100 / m->ms : 0;
        printf("%-*s %10.1f %6.1f %% %6.1f %% %6.1f %% %6.1f %% %11.3f\n", width, all[i].text, m->ms,
               part * (m->steps_ms + m->pairs_ms), part * m->tokens_ms, part * m->pieces_ms, part * m->batches_ms,
               j[i].by.sum);
    }
}

/* Returns the main reason why the chosen plan differs from sequences drawn at random. */
static const char *main_disturbance(const weft_plan_disturbance *d)
{
    if (d->sum < .1)
        return "It is about as good as drawing sequences at random";
    return d->likeness >= d->order && d->likeness >= d->cuts ? "Its batches contain similar sequences" :
           d->order >= d->cuts                               ? "Its batches are ordered by length" :
                                                               "It cuts sequences";
}

static void print_time_share(const judged *j, int count)
{
    double latency = 0, ms = 0;
    for (int i = 0; i < count; i++) {
        latency += j[i].ms.latency_ms;
        ms += j[i].ms.ms;
    }
    double share = ms > 0 ? latency / ms : 0;
    if (share > .5)
        printf("Time follows steps: with one row in each step, the steps would take %.0f %% of it. Fewer, "
               "fuller steps save time.\n",
               100 * share);
    else
        printf("Time follows tokens: with one row in each step, the steps would take %.0f %% of it. Fewer "
               "steps save little, padding costs.\n",
               100 * share);
}

static void say_choice(const planned *all, const judged *j, int count, int fastest, int chosen, double error)
{
    printf("Take %s", all[chosen].text);
    if (count == 1)
        printf(": the only plan. ");
    else if (chosen == fastest)
        printf(": the fastest plan. No plan within %.0f %% of it changes gradients less. ", 100 * error);
    else
        printf(": %.1f ms. It is within %.0f %% of the fastest, %s with %.1f ms, and changes gradients "
               "least of those plans. ",
               j[chosen].ms.ms, 100 * error, all[fastest].text, j[fastest].ms.ms);
    printf("%s (%.3f).\n", main_disturbance(&j[chosen].by), j[chosen].by.sum);
}

bool explain_plans(const planned *all, int count, const int32_t *len, int64_t n, const layer_cost *l)
{
    double error = l->cost.error > 0 ? l->cost.error : usual_error;
    judged *j = get_memory(count, sizeof *j);
    double *ms = get_memory(count, sizeof *ms), *by = get_memory(count, sizeof *by);
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        ok = judge(all + i, len, n, l, j + i);
        ms[i] = j[i].ms.ms;
        by[i] = j[i].by.sum;
    }
    if (ok && count) {
        printf("\n"
               "%s: milliseconds of a pass, forward and backward, predicted\n",
               l->name);
        print_rows(all, count, j);
        if (l->cost.pair_ms > 0)
            printf("A pair of tokens costs c = %.4g of a token: balance:per_square=%.4g\n",
                   l->cost.pair_ms / l->cost.token_ms, l->cost.pair_ms / l->cost.token_ms);
        else
            print_time_share(j, count);
        say_choice(all, j, count, weft_plan_choose(ms, by, count, 0), weft_plan_choose(ms, by, count, error),
                   error);
    }
    free(j);
    free(ms);
    free(by);
    return ok;
}
