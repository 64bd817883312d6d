/* runs.c - writes the results of running models: gradients, exactness, contamination, hard instances, and the
 * cost model. */
#include "tools/page/page.h"

/* ---- gradient and exactness ---- */
static void fill_gradient(const lab *l, int i, page_row *row)
{
    SET_ROW(row, NULL, CELL("bias", l->plan[i].bias, -1, 5), CELL("noise", l->plan[i].noise, -1, 3));
}

static void fill_exact(const lab *l, int i, page_row *row)
{
    const lab_exact *result = l->exact + i;
    SET_ROW(row, result->name, CELL("numbers compared", result->compared, 0, 0),
            { "numbers that differ", (double)result->differ, .bad = result->differ > 0 });
}

void put_gradient(page *p)
{
    int measured = 0;
    for (int i = 0; i < p->lab->plans; i++)
        measured += !isnan(p->lab->plan[i].bias) || !isnan(p->lab->plan[i].noise);
    put_table(p,
              "At fixed weights. Bias: distance of the mean of the batches' gradients from the whole "
              "gradient, divided by the norm of the whole gradient. Noise: trace of the covariance of the "
              "batches' gradients, divided by the square of that norm.",
              "planner", measured ? p->lab->plans : 0, fill_gradient,
              "No gradients were computed for this page");
    if (measured && measured < p->lab->plans)
        put_missing(p, "A dash: gradients of the plan were not computed");
    put_table(p, "The same batch in two layouts: outputs and gradients, compared bit by bit.", "layouts",
              p->lab->exacts, fill_exact, "Layouts were not compared");
}

/* ---- contamination ---- */
static void fill_contamination(const lab *l, int i, page_row *row)
{
    const lab_contamination *result = l->contamination + i;
    SET_ROW(row, result->name, CELL("sequences changed", result->changed, 0, 0),
            CELL("outputs of others", result->compared, 0, 0),
            { "that differ", (double)result->differ, .bad = result->differ > 0 },
            { "that became NaN", (double)result->spread, .bad = result->spread > 0 });
}

void put_contamination(page *p)
{
    put_table(p,
              "One sequence at a time is changed, then filled with NaN. The outputs of all others must "
              "keep every bit.",
              "planner", p->lab->contaminations, fill_contamination,
              "Contamination was not tested for this page");
}

/* ---- hard instances ---- */
static void fill_adversary(const lab *l, int i, page_row *row)
{
    const lab_adversary *result = l->adversary + i;
    bool above = result->guarantee > 0 && result->ratio > result->guarantee;
    SET_ROW(row, result->instance, { "planner", .text = result->planner }, CELL("rows", result->rows, 0, 0),
            CELL("bound", result->bound, 0, 0), CELL("ratio", result->ratio, 0, 3),
            CELL("guarantee", result->guarantee > 0 ? result->guarantee : LAB_NONE, 0, 3),
            { "", .text = above ? "above" : "", .bad = above });
}

/* Names the plans whose planners are not the library's: they get no hard instances. */
static void put_own_planners(page *p)
{
    int own = 0;
    for (int i = 0; i < p->lab->plans; i++) {
        if (p->lab->plan[i].made->planner.plan)
            continue;
        put(p, own++ ? ", " : "<p>Hard instances are given to built-in planners only, so not to ");
        put_plan(p, i);
    }
    put(p, own ? ".</p>\n" : "");
}

void put_adversaries(page *p)
{
    put_own_planners(p);
    put(p, "<details><summary>Rows for instances that are hard to pack</summary>\n");
    put_table(p,
              "Rows for instances that are hard to pack. Bound: a lower bound on rows. Ratio: rows "
              "divided by the bound. Guarantee: the proven limit of rows divided by the optimum, so a "
              "ratio above it is a fault only if the optimum equals the bound.",
              "instance", p->lab->adversaries, fill_adversary,
              "No planner was given hard instances for this page");
    put(p, "</details>\n");
}

/* ---- cost ---- */
/* Draws the points that the model was fitted to, the points held out, and the diagonal. */
static void put_cost_chart(page *p)
{
    int n = p->lab->costs;
    double *x SCOPED = get_memory(6 * (int64_t)n, sizeof *x), end[2] = { HUGE_VAL, 0 };
    for (int i = 0; i < n; i++) {
        const lab_cost *c = p->lab->cost + i;
        bool ok = c->predicted_ms > 0 && c->measured_ms > 0;
        for (int k = 0; k < 6; k++) /* NaN separates the dots */
            x[2 * n * (k / 2) + 2 * i + k % 2] = NAN;
        x[2 * i] = c->predicted_ms;
        x[2 * n * (1 + c->held_out) + 2 * i] = ok ? c->measured_ms : NAN;
        end[0] = ok ? fmin(end[0], fmin(c->predicted_ms, c->measured_ms)) : end[0];
        end[1] = ok ? fmax(end[1], fmax(c->predicted_ms, c->measured_ms)) : end[1];
    }
    const weft_curve curve[] = { { .n = 2 * n, .x = x, .y = x + 2 * n },
                                 { .n = 2 * n, .x = x, .y = x + 4 * n },
                                 { .n = 2, .x = end, .y = end } };
    if (end[1] > 0) {
        put(p, "<div class=\"figures\">\n");
        put_chart(p, CHART_WIDTH, "Predicted against measured",
                  &(weft_chart){ .x_label = "predicted ms",
                                 .left = "measured ms",
                                 .x_base = 10,
                                 .y_base = 10,
                                 .curves = curve,
                                 .n = 3 },
                  "Logarithmic axes. On the diagonal the prediction is exact.");
        put(p, "Blue dots: measurements that fitted the model. Orange dots: held-out measurements.");
        end_figure(p);
        put(p, "</div>\n");
    }
}

static void fill_cost(const lab *l, int i, page_row *row)
{
    const lab_cost *cost = l->cost + i;
    double error = cost->measured_ms > 0 ? 100 * (cost->predicted_ms / cost->measured_ms - 1) : LAB_NONE;
    SET_ROW(row, cost->name, CELL("predicted ms", cost->predicted_ms, 0, 3),
            CELL("measured ms", cost->measured_ms, 0, 3), CELL("error %", error, 0, 1),
            { "held out", .text = cost->held_out ? "yes" : "no" });
}

void put_cost(page *p)
{
    if (!p->lab->costs) {
        put_missing(p, "No cost model was fitted or compared for this page");
        return;
    }
    if (p->lab->layer)
        put_between(p, "<p>One layer (", p->lab->layer->name,
                    "), forward and backward, on the first batches of each plan. Times are predicted from "
                    "steps of 1, 2, 4 .. 128 rows.</p>\n");
    put_cost_chart(p);
    put_table(p, "Predicted and measured times.", "point", p->lab->costs, fill_cost, NULL);
}
