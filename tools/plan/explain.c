/* explain.c - prints the predicted cost of plans on a device, the parts of the time, and the plan to take. */
#include <string.h>
#include "tools/plan/verdict.h"

static bool print_rows(const verdict *v, const layer_cost *l)
{
    int width = 7;
    bool pairs = !l->cost.points;
    for (int i = 0; i < v->n; i++)
        width = (int)strlen(v->plan[i].made->text) > width ? (int)strlen(v->plan[i].made->text) : width;
    printf("%-*s %10s %8s %8s %8s %8s %9s %11s\n", width, "planner", "ms", pairs ? "pairs" : "steps",
           "tokens", "pieces", "batches", "memory", "disturbance");
    double latency = 0, ms = 0;
    for (int i = 0; i < v->n; i++) {
        const judged_plan *j = v->plan + i;
        weft_plan_prediction m;
        if (weft_plan_predict(&j->made->plan, &l->cost, false, &m) != WEFT_OK)
            return say_failure("plan: %s: %s", j->made->text, weft_plan_message());
        double part = m.ms > 0 ? 100 / m.ms : 0;
        printf("%-*s %10.1f %6.1f %% %6.1f %% %6.1f %% %6.1f %% %9lld %11.3f\n", width, j->made->text, m.ms,
               part * (m.steps_ms + m.pairs_ms), part * m.tokens_ms, part * m.pieces_ms, part * m.batches_ms,
               (long long)j->memory, j->by.sum);
        latency += m.latency_ms;
        ms += m.ms;
    }
    double share = ms > 0 ? latency / ms : 0, per_token = l->cost.pair_ms / l->cost.token_ms;
    if (pairs && l->cost.token_ms > 0)
        return printf("A pair of tokens costs %.4g of a token; balance:per_square=%.4g balances this cost.\n",
                      per_token, per_token) > 0;
    printf("Time follows %s: with one row in each step, the steps would take %.0f %% of it. %s\n",
           share > .5 ? "steps" : "tokens", 100 * share,
           share > .5 ? "Fewer, fuller steps save time." : "Fewer steps save little, padding costs.");
    return true;
}

bool explain_plans(const planned *all, int count, const int32_t *len, int64_t n, const layer_cost *l)
{
    VERDICT v;
    bool ok = judge_made(&v, all, count, len, n, l);
    if (ok && count) {
        printf("\n"
               "%s: milliseconds of a pass, forward and backward, predicted. Memory: cells that the "
               "largest batch stores\n",
               l->name);
        ok = print_rows(&v, l);
        if (ok && v.chosen >= 0)
            printf("Take %s: %s. %s %s\n", all[v.chosen].text, v.why, v.cost, v.sure);
    }
    return ok;
}
