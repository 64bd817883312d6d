/* report.c - fills the page's data from plans, with all results that need no run. */
#include <string.h>
#include "tools/lab/lab.h"
#include "tools/plan/verdict.h"

enum { EPOCHS = 5 };

static bool draws(const planned *t) { return t->opts.shuffle || !strcmp(t->planner.name, "random"); }

/* Counts the meetings over `epochs` epochs from the options' epoch on. A plan without random draws is the
 * same in each. */
static bool count_meetings(lab_plan *l, const int32_t *len, int64_t n, int epochs)
{
    const planned *t = l->made;
    weft_plan plan[EPOCHS] = { { 0 } };
    bool ok = true;
    int made = 0;
    for (; made < epochs && ok; made++) {
        weft_plan_opts o = t->opts;
        o.epoch += made;
        plan[made] = t->plan;
        if (made && draws(t))
            ok = weft_plan_make(&t->planner, len, n, &o, plan + made) == WEFT_OK;
    }
    ok = ok && weft_plan_count_meetings(plan, epochs, &l->meetings) == WEFT_OK;
    for (int e = 1; e < made && draws(t); e++)
        weft_plan_free(plan + e);
    l->epochs = ok ? epochs : 0;
    return ok || say_failure("plan: %s", weft_plan_message());
}

bool lab_begin_plan(lab_plan *l, const planned *t, const int32_t *len, int64_t n, int epochs)
{
    *l = (lab_plan){ .made = t,
                     .planner_ms = LAB_NONE,
                     .predicted_ms = LAB_NONE,
                     .median_ms = LAB_NONE,
                     .p10_ms = LAB_NONE,
                     .p90_ms = LAB_NONE,
                     .bias = LAB_NONE,
                     .noise = LAB_NONE };
    epochs = epochs < EPOCHS ? epochs : EPOCHS;
    return !t->planner.plan || epochs < 1 || count_meetings(l, len, n, epochs);
}

bool report_plans(const char *file, const char *corpus, const int32_t *len, int64_t n, const planned *all,
                  int count, const char *command, bool times, const layer_cost *costs)
{
    SCOPED lab_plan *plan = get_memory(count, sizeof *plan);
    weft_plan_prediction m;
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        ok = lab_begin_plan(plan + i, all + i, len, n, EPOCHS);
        if (times && all[i].ms > 0)
            plan[i].planner_ms = all[i].ms;
        if (costs && weft_plan_predict(&all[i].plan, &costs->cost, false, &m) == WEFT_OK)
            plan[i].predicted_ms = m.ms;
    }
    return ok && write_page(file, &(lab){ .corpus = strcmp(corpus, "-") ? corpus : "standard input",
                                          .n = n,
                                          .len = len,
                                          .plan = plan,
                                          .plans = count,
                                          .command = command,
                                          .layer = costs });
}
