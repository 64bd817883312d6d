/* verdict.c - recommends a plan, by measured times and by its effect on gradients. */
#include "tools/page/page.h"

/* Plans whose times differ by at most this share count as equally fast. */
static const double as_fast = .1;
enum { MOST = 64 };

/* Fills the measured plans' numbers, times and disturbances, and returns their count. */
static int measured(const lab *l, int *plan, double *ms, double *disturbance)
{
    int n = 0;
    for (int i = 0; i < l->plans && n < MOST; i++) {
        weft_plan_disturbance d;
        if (isnan(l->plan[i].median_ms) ||
            weft_plan_disturb(&l->plan[i].made->plan, l->len, l->n, &d) != WEFT_OK)
            continue;
        plan[n] = i;
        ms[n] = l->plan[i].median_ms;
        disturbance[n] = d.sum;
        n++;
    }
    return n;
}

void put_verdict(page *p)
{
    int plan[MOST], fastest = 0;
    double ms[MOST], disturbance[MOST];
    int n = measured(p->lab, plan, ms, disturbance);
    for (int i = 1; i < n; i++)
        fastest = ms[i] < ms[fastest] ? i : fastest;
    int chosen = n > 1 ? weft_plan_choose(ms, disturbance, n, as_fast) : -1;
    if (chosen < 0)
        return;
    put(p, "<p><strong>Take ");
    put_plan(p, plan[chosen]);
    put(p, "</strong>: ");
    put_real(p, ms[chosen], 1);
    put(p, " ms a pass, ");
    if (chosen != fastest) {
        put(p, "against ");
        put_plan(p, plan[fastest]);
        put(p, " with ");
        put_real(p, ms[fastest], 1);
        put(p,
            " ms, the fastest. Of the plans within %.0f %% of that, this one changes gradients least (",
            100 * as_fast);
    } else {
        put(p, "the fastest. No plan within %.0f %% of it changes gradients less (", 100 * as_fast);
    }
    put_real(p, disturbance[chosen], 3);
    put(p, "; 0: like sequences drawn at random).</p>\n");
}
