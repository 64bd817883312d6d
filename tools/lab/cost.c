/* cost.c - measures a recurrent layer on the first batches of each plan, and predicts that time from steps
 * of equal rows as `weft plan --explain` does. Both are CPU time. */
#include <stdlib.h>
#include "tools/lab/run.h"
#include "tools/plan/cost.h"

enum { WORK = 1 << 21 }; /* tokens times units of the measured part of a plan */

bool lab_compare_costs(lab_run *r)
{
    layer_asked layer = { .cell = "lstm",
                          .hidden = r->asked.hidden,
                          .threads = (int)r->asked.threads,
                          .renew = r->asked.calibrate };
    weft_dataset rows = { 0 };
    weft_plan_prediction p;
    bool ok = costs_of(&layer, &r->layer);
    make_rows(&r->few, layer.hidden, &rows);
    SCOPED layer_run *t = get_memory(r->asked.planners, sizeof *t);
    r->page.cost = get_memory(r->asked.planners, sizeof *r->page.cost);
    for (int i = 0; i < r->asked.planners && ok; i++)
        ok = open_run(&layer, &r->of_few[i].plan, WORK / layer.hidden, r->asked.padded[i], t + i) ||
             lab_refuse(r->of_few[i].text, t[i].w);
    int done = -1; /* the first round only warms up */
    for (; done < r->asked.rounds && ok && !lab_stops(r); done++)
        for (int i = 0; i < r->asked.planners && ok; i++) {
            lab_progress(r, "the cost of a layer by %s", r->of_few[i].text);
            run_layer(t + i, &rows);
            ok = weft_ok(t[i].w) || lab_refuse(r->of_few[i].text, t[i].w);
        }
    for (int i = 0; i < r->asked.planners && ok && done > 0; i++) {
        ok = weft_plan_predict(&t[i].part, &r->layer.cost, t[i].padded, &p) == WEFT_OK ||
             say_failure("lab: %s", weft_plan_message());
        if (ok) {
            r->page.cost[r->page.costs++] = (lab_cost){ r->of_few[i].text, p.ms, t[i].ms, true };
            NOTE(r, "cost", r->of_few[i].text, { "hidden", (double)r->asked.hidden },
                 { "threads", (double)r->asked.threads }, { "predicted_ms", p.ms },
                 { "measured_ms", t[i].ms });
        }
        if (weft_plan_predict(&r->made[i].plan, &r->layer.cost, t[i].padded, &p) == WEFT_OK)
            NOTE(r, "predicted_pass", r->made[i].text,
                 { "predicted_ms", r->page.plan[i].predicted_ms = p.ms });
    }
    for (int i = 0; i < r->asked.planners; i++)
        close_run(t + i);
    free(rows.rows);
    return ok;
}
