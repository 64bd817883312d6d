/* times.c - measures milliseconds an epoch, planners in turn, so that a disturbance affects all of them. */
#include <math.h>
#include <time.h>
#include "tools/lab/run.h"

/* Returns the time of one epoch of updates, or NaN if it was stopped or the model failed. */
static double run_epoch(lab_run *r, lab_model *m, const weft_plan *p)
{
    double start = seconds_now();
    clock_t cpu = clock();
    for (int64_t b = 0; b < p->batches; b++) {
        if (lab_stops(r) || !lab_model_update(m, p, b, &r->train))
            return (double)NAN;
        lab_progress_at(r, (double)(b + 1) / (double)p->batches);
    }
    double took = seconds_now() - start;
    r->wall += took;
    r->cpu += (double)(clock() - cpu) / CLOCKS_PER_SEC;
    return 1e3 * took;
}

static void add_time(lab_run *r, int i, int round, double ms, double *all)
{
    all[round] = ms;
    NOTE(r, "times", r->made[i].text, { "round", round }, { "ms", ms });
    r->page.plan[i].median_ms = quantile(all, round + 1, .5);
    r->page.plan[i].p10_ms = quantile(all, round + 1, .1);
    r->page.plan[i].p90_ms = quantile(all, round + 1, .9);
}

/* Opens the model of a plan and warms it up: the first update allocates. */
static bool open_model(lab_run *r, lab_model *m, int i)
{
    const weft_plan *p = &r->made[i].plan;
    return (lab_model_open(m, r, 1, 0, r->asked.padded[i]) && lab_model_carries(m, p) &&
            (!p->batches || p->segment->carry >= 0 || lab_model_update(m, p, 0, &r->train))) ||
           lab_refuse(r->made[i].text, m->w);
}

bool lab_measure_times(lab_run *r)
{
    SCOPED lab_model *m = get_memory(r->asked.planners, sizeof *m);
    SCOPED double(*ms)[MOST_ROUNDS] = get_memory(r->asked.planners, sizeof *ms);
    bool ok = true;
    for (int i = 0; i < r->asked.planners && ok; i++)
        ok = open_model(r, m + i, i);
    for (int round = 0; round < r->asked.rounds && ok; round++)
        for (int i = 0; i < r->asked.planners && ok && !lab_stops(r); i++) {
            lab_progress(r, "times, round %d of %d: %s", round + 1, (int)r->asked.rounds, r->made[i].text);
            double took = run_epoch(r, m + i, &r->made[i].plan);
            if (!isnan(took))
                add_time(r, i, round, took, ms[i]);
            else if (!weft_ok(m[i].w))
                ok = lab_refuse(r->made[i].text, m[i].w);
        }
    for (int i = 0; i < r->asked.planners; i++)
        weft_close(m[i].w);
    return ok;
}
