/* adversary.c - counts the rows of planners on lengths that are hard to pack, next to proven bounds. */
#include "tools/corpora/corpora.h"
#include "tools/lab/run.h"

/* Proven: rows <= times * best + plus. Johnson et al. 1974; Dosa & Sgall 2013, 2014; Dosa 2007. */
static const struct {
    const char *name;
    double times, plus;
} planners[] = {
    { "next_fit", 2, 0 },
    { "first_fit", 1.7, 0 },
    { "best_fit", 1.7, 0 },
    { "first_fit_decreasing", 11. / 9, 6. / 9 },
    { "best_fit_decreasing", 11. / 9, 4 },
    { "exact_fill", 0, 0 },
};
static const struct {
    const char *name;
    int64_t capacity;
} instances[] = {
    { "equal:1,n=1000", 100 },        { "equal:25,n=1000", 100 },     { "half:100,n=1000", 100 },
    { "ff-worst,n=37", 101 },         { "ffd-worst:100,n=300", 100 }, { "giant:1:100,n=1000", 100 },
    { "twopoint:1:100,n=1000", 100 }, { "sorted:1:100,n=1000", 100 }, { "geometric:.05,n=1000", 1024 },
    { "uniform:1:100,n=0", 100 },
};
enum { PLANNERS = sizeof planners / sizeof *planners, INSTANCES = sizeof instances / sizeof *instances };

static bool ask(lab_run *r, int instance, int planner, const int32_t *len, int64_t n)
{
    PLAN p;
    weft_plan_figures f;
    int64_t capacity = instances[instance].capacity;
    bool ok = weft_plan_make(weft_planner_named(planners[planner].name), len, n,
                             &(weft_plan_opts){ .capacity = capacity }, &p) == WEFT_OK &&
              weft_plan_measure(&p, len, n, capacity, &f) == WEFT_OK;
    if (!ok)
        return say_failure("lab: %s: %s", instances[instance].name, weft_plan_message());
    int64_t bound = f.l1 > f.l2 ? f.l1 : f.l2;
    double b = (double)bound;
    lab_adversary *a = r->page.adversary + r->page.adversaries++;
    *a = (lab_adversary){ .instance = instances[instance].name,
                          .planner = planners[planner].name,
                          .rows = f.rows,
                          .bound = bound,
                          .ratio = bound ? (double)f.rows / b : 1,
                          .guarantee = bound && planners[planner].times > 0 ?
                                           planners[planner].times + planners[planner].plus / b :
                                           0 };
    NOTE_TEXT(r, "adversaries", a->planner, "instance", a->instance, { "rows", (double)f.rows },
              { "bound", b });
    return true;
}

bool lab_ask_adversaries(lab_run *r)
{
    bool ok = true;
    r->page.adversary = get_memory(PLANNERS * INSTANCES, sizeof *r->page.adversary);
    for (int i = 0; i < INSTANCES && ok && !lab_stops(r); i++) {
        int64_t n;
        SCOPED int32_t *len = corpus_lengths(instances[i].name, &n);
        ok = len != NULL;
        for (int k = 0; k < PLANNERS && ok; k++)
            ok = ask(r, i, k, len, n);
    }
    return ok;
}
