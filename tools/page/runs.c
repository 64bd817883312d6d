/* runs.c - of the page: what was measured by running: gradients, exactness, contamination, hard
 * instances, and the cost model. */
#include <string.h>
#include "tools/page/page.h"

/* ---- gradient and exactness ---- */
static void fill_gradient(const lab *l, int i, page_row *row)
{
    SET_ROW(row, NULL, CELL("bias", l->plan[i].bias, -1, 5), CELL("noise", l->plan[i].noise, -1, 3));
}

static void fill_exact(const lab *l, int i, page_row *row)
{
    const lab_exact *is = l->exact + i;
    SET_ROW(row, is->name, CELL("numbers compared", (double)is->compared, 0, 0),
            { "numbers that differ", (double)is->differ, .bad = is->differ > 0 });
}

void put_gradient(page *p)
{
    bool measured = false;
    for (int i = 0; i < p->lab->plans; i++)
        measured = measured || !isnan(p->lab->plan[i].bias) || !isnan(p->lab->plan[i].noise);
    if (measured)
        put_table(p,
                  "At fixed weights. Bias: how far the mean of the batches' gradients is from the "
                  "whole gradient, over its norm. Noise: the trace of the covariance of the batches' "
                  "gradients over the square of that norm.",
                  "planner", p->lab->plans, fill_gradient);
    else
        put_missing(p, "No gradients were computed for this page");
    if (p->lab->exacts)
        put_table(p, "The same batch in two layouts: outputs and gradients, compared bit by bit.", "layouts",
                  p->lab->exacts, fill_exact);
    else
        put_missing(p, "Layouts were not compared");
}

/* ---- contamination ---- */
static void fill_contamination(const lab *l, int i, page_row *row)
{
    const lab_contamination *is = l->contamination + i;
    SET_ROW(row, is->name, CELL("sequences changed", (double)is->changed, 0, 0),
            CELL("numbers of others", (double)is->compared, 0, 0),
            { "that differ", (double)is->differ, .bad = is->differ > 0 },
            { "that became NaN", (double)is->spread, .bad = is->spread > 0 });
}

void put_contamination(page *p)
{
    if (p->lab->contaminations)
        put_table(p,
                  "One sequence at a time is changed, then filled with NaN; the outputs of all others must "
                  "keep every bit.",
                  "planner", p->lab->contaminations, fill_contamination);
    else
        put_missing(p, "Whether a sequence changes its neighbours' outputs was not tried for this page");
}

/* ---- hard instances ---- */
static void fill_adversary(const lab *l, int i, page_row *row)
{
    const lab_adversary *is = l->adversary + i;
    bool above = is->guarantee > 0 && is->ratio > is->guarantee;
    SET_ROW(row, is->instance, { "planner", .text = is->planner }, CELL("rows", (double)is->rows, 0, 0),
            CELL("bound", (double)is->bound, 0, 0), CELL("ratio", is->ratio, 0, 3),
            CELL("guarantee", is->guarantee > 0 ? is->guarantee : LAB_NONE, 0, 3),
            { "", .text = above ? "above" : "", .bad = above });
}

void put_adversaries(page *p)
{
    if (p->lab->adversaries)
        put_table(p,
                  "Rows for instances that are hard to pack, against the bound on rows. A guarantee is of "
                  "rows over the best there can be, so a ratio above it is a fault only where the bound is "
                  "met.",
                  "instance", p->lab->adversaries, fill_adversary);
    else
        put_missing(p, "No planner was given hard instances for this page");
}

/* ---- cost ---- */
static void put_words(page *p, const char *words)
{
    while (words && *words) {
        size_t n = strcspn(words, "\n");
        char line[600];
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), words);
        put(p, "<p>");
        put_text(p, line);
        put(p, "</p>\n");
        words += n + (words[n] == '\n');
    }
}

static bool is_drawable(const lab_cost *c) { return c->predicted_ms > 0 && c->measured_ms > 0; }

static void put_cost_chart(page *p)
{
    double low = HUGE_VAL, high = 0;
    for (int i = 0; i < p->lab->costs; i++)
        if (is_drawable(p->lab->cost + i)) {
            const lab_cost *c = p->lab->cost + i;
            low = fmin(low, fmin(c->predicted_ms, c->measured_ms));
            high = fmax(high, fmax(c->predicted_ms, c->measured_ms));
        }
    if (high <= 0)
        return;
    page_axes axes = axes_of((double[]){ low, high, low, high }, 10, 10, CHART_WIDTH);
    put(p, "<div class=\"figures\">\n");
    begin_image(p, CHART_WIDTH, "Predicted against measured",
                "Logarithmic axes; on the diagonal the prediction is right.");
    put_axes(p, &axes, "predicted ms", "measured ms", CHART_WIDTH);
    put(p, "<path class=\"mark dash\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", axes.x.from, axes.y.from, axes.x.to,
        axes.y.to);
    for (int i = 0; i < p->lab->costs; i++) {
        const lab_cost *c = p->lab->cost + i;
        if (is_drawable(c))
            put(p, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", c->held_out ? "hollow" : "f0",
                weft__axis_pixel(&axes.x, c->predicted_ms), weft__axis_pixel(&axes.y, c->measured_ms));
    }
    end_image(p);
    put(p, "Full dots: what the model was fitted to. Hollow dots: what it had not seen.");
    end_figure(p);
    put(p, "</div>\n");
}

static void fill_cost(const lab *l, int i, page_row *row)
{
    const lab_cost *is = l->cost + i;
    double error = is->measured_ms > 0 ? 100 * (is->predicted_ms / is->measured_ms - 1) : LAB_NONE;
    SET_ROW(row, is->name, CELL("predicted ms", is->predicted_ms, 0, 3),
            CELL("measured ms", is->measured_ms, 0, 3), CELL("error %", error, 0, 1),
            { "held out", .text = is->held_out ? "yes" : "no" });
}

void put_cost(page *p)
{
    put_words(p, p->lab->cost_words);
    if (!p->lab->costs) {
        put_missing(p, "No cost model was fitted or compared for this page");
        return;
    }
    put_cost_chart(p);
    put_table(p, "Predictions beside measurements.", "point", p->lab->costs, fill_cost);
}
