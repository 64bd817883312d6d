/* verdict.c - writes which plan to take, and the best plans in a short table. */
#include "tools/page/page.h"

enum { BEST = 6 };

bool judge_lab(const lab *l, verdict *v)
{
    bool measured = false;
    *v = (verdict){ .n = l->plans };
    v->plan = get_memory(l->plans, sizeof *v->plan);
    for (int i = 0; i < l->plans; i++)
        measured = measured || isfinite(l->plan[i].median_ms);
    v->basis = measured ? VERDICT_BY_TIMES : l->layer ? VERDICT_BY_COSTS : VERDICT_BY_CELLS;
    for (int i = 0; i < l->plans; i++) {
        const lab_plan *p = l->plan + i;
        v->plan[i] = measured ? (judged_plan){ p->made, p->median_ms, p->p10_ms, p->p90_ms, .tied = false } :
                                (judged_plan){ p->made, p->predicted_ms, LAB_NONE, LAB_NONE, .tied = false };
    }
    return judge_plans(v, l->len, l->n, l->layer);
}

static double order_of(const verdict *v, int i)
{
    double ms = v->basis == VERDICT_BY_CELLS ? (double)v->plan[i].made->figures.cells : v->plan[i].ms;
    return i == v->chosen ? -1 : isfinite(ms) ? ms : HUGE_VAL;
}

/* Returns the plan at this place, by time after the chosen one. */
static int plan_at(const verdict *v, int place)
{
    for (int i = 0; i < v->n; i++) {
        int before = 0;
        for (int k = 0; k < v->n; k++)
            before += order_of(v, k) < order_of(v, i) || (order_of(v, k) == order_of(v, i) && k < i);
        if (before == place)
            return i;
    }
    return 0;
}

static void fill_best(const lab *l, int i, page_row *row)
{
    const verdict *v = l->verdict;
    row->plan = plan_at(v, i);
    const judged_plan *j = v->plan + row->plan;
    SET_ROW(row, NULL, CELL("ms", j->ms, 0, 1), CELL("from", j->low, 0, 1), CELL("to", j->high, 0, 1),
            CELL("memory", j->memory, 0, 0), CELL("disturbance", j->by.sum, 0, 3),
            CELL("rows", j->made->figures.rows, 0, 0), CELL("steps", j->made->figures.steps, 0, 0),
            { "ties", .text = j->tied ? "yes" : "no" });
}

void put_advice(page *p)
{
    const verdict *v = p->lab->verdict;
    const char *end = p->paper ? "\n\n" : "</p>\n", *begin = p->paper ? "" : "<p>";
    if (v->chosen >= 0) {
        put(p, p->paper ? "**Take " : "<strong>Take ");
        put_plan(p, v->chosen);
        put(p, p->paper ? "**: " : "</strong>: ");
    }
    put_text(p, v->why);
    put(p, ".%s", end);
    if (v->chosen < 0)
        return;
    put_between(p, begin, v->cost, end);
    put_between(p, begin, v->sure, end);
}

void put_verdict(page *p)
{
    const verdict *v = p->lab->verdict;
    put(p, "<p id=\"verdict\">");
    put_advice(p);
    if (v->chosen >= 0)
        put_table(
            p,
            "The plan to take, then the others by time, or by cells without times. ms: of a pass over the "
            "corpus, with its range. Memory: cells that the largest batch stores. Disturbance: of gradients. "
            "Ties: as good as the fastest within the error.",
            "planner", v->n < BEST ? v->n : BEST, fill_best, NULL);
}
