/* runs.c - of the page: what was measured by running: gradients, exactness, contamination, hard
 * instances, and the cost model. */
#include <string.h>
#include "tools/page/page.h"

static void put_row(page *p, const char *name)
{
    put(p, "<tr><th scope=\"row\">");
    put_text(p, name);
    put(p, "</th>");
}

static void put_count(page *p, int64_t n, bool bad)
{
    put(p, bad ? "<td><strong class=\"bad\">" : "<td>");
    put_number(p, n);
    put(p, bad ? "</strong></td>" : "</td>");
}

/* ---- gradient and exactness ---- */
static double bias(const lab_plan *p) { return p->bias; }
static double noise(const lab_plan *p) { return p->noise; }

static void put_exactness(page *p)
{
    static const char *const heads[] = { "layouts", "numbers compared", "numbers that differ", NULL };
    begin_table(p, "The same batch in two layouts: outputs and gradients, compared bit by bit.", heads);
    for (int i = 0; i < p->lab->exacts; i++) {
        put_row(p, p->lab->exact[i].name);
        put_count(p, p->lab->exact[i].compared, false);
        put_count(p, p->lab->exact[i].differ, p->lab->exact[i].differ > 0);
        put(p, "</tr>\n");
    }
    end_table(p);
}

void put_gradient(page *p)
{
    static const page_column columns[] = { { "bias", bias, -1, 5 }, { "noise", noise, -1, 3 } };
    bool measured = false;
    for (int i = 0; i < p->lab->plans; i++)
        measured = measured || !isnan(p->lab->plan[i].bias) || !isnan(p->lab->plan[i].noise);
    if (measured)
        put_plan_table(p,
                       "At fixed weights. Bias: how far the mean of the batches' gradients is from the "
                       "whole gradient, over its norm. Noise: the trace of the covariance of the batches' "
                       "gradients over the square of that norm.",
                       columns, 2);
    else
        put_missing(p, "No gradients were computed for this page");
    if (p->lab->exacts)
        put_exactness(p);
    else
        put_missing(p, "Layouts were not compared");
}

/* ---- contamination ---- */
void put_contamination(page *p)
{
    static const char *const heads[] = { "planner",     "sequences changed", "numbers of others",
                                         "that differ", "that became NaN",   NULL };
    if (!p->lab->contaminations) {
        put_missing(p, "Whether a sequence changes what comes of its neighbours was not tried for this page");
        return;
    }
    begin_table(p,
                "One sequence at a time is changed, then filled with NaN; what comes of all others must "
                "keep every bit.",
                heads);
    for (int i = 0; i < p->lab->contaminations; i++) {
        const lab_contamination *is = p->lab->contamination + i;
        put_row(p, is->name);
        put_count(p, is->changed, false), put_count(p, is->compared, false);
        put_count(p, is->differ, is->differ > 0), put_count(p, is->spread, is->spread > 0);
        put(p, "</tr>\n");
    }
    end_table(p);
}

/* ---- hard instances ---- */
void put_adversaries(page *p)
{
    static const char *const heads[] = { "instance", "planner",   "rows", "bound",
                                         "ratio",    "guarantee", "",     NULL };
    if (!p->lab->adversaries) {
        put_missing(p, "No planner was given hard instances for this page");
        return;
    }
    begin_table(p,
                "Rows for instances that are hard to pack, against the bound on rows. A guarantee is of "
                "rows over the best there can be, so a ratio above it is a fault only where the bound is "
                "met.",
                heads);
    for (int i = 0; i < p->lab->adversaries; i++) {
        const lab_adversary *is = p->lab->adversary + i;
        bool above = is->guarantee > 0 && is->ratio > is->guarantee;
        put_row(p, is->instance);
        put(p, "<td class=\"words\">");
        put_text(p, is->planner);
        put(p, "</td>");
        put_count(p, is->rows, false), put_count(p, is->bound, false);
        put(p, "<td>");
        put_real(p, is->ratio, 3);
        put(p, "</td><td>");
        put_real(p, is->guarantee > 0 ? is->guarantee : LAB_NONE, 3);
        put(p, "</td><td class=\"words\">%s</td></tr>\n",
            above ? "<strong class=\"bad\">above</strong>" : "");
    }
    end_table(p);
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
            low = fmin(low, fmin(c->predicted_ms, c->measured_ms)),
            high = fmax(high, fmax(c->predicted_ms, c->measured_ms));
        }
    double height = CHART_WIDTH - CHART_LEFT - CHART_RIGHT + CHART_TOP + CHART_BOTTOM;
    scale x = scale_of(low, high, true, CHART_LEFT, CHART_WIDTH - CHART_RIGHT),
          y = scale_of(low, high, true, height - CHART_BOTTOM, CHART_TOP);
    begin_image(p, height, "Predicted against measured",
                "Logarithmic axes; on the diagonal the prediction is right.");
    put_axes(p, &x, &y, "predicted ms", "measured ms", height);
    put(p, "<path class=\"mark dash\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x.from, y.from, x.to, y.to);
    for (int i = 0; i < p->lab->costs; i++) {
        const lab_cost *c = p->lab->cost + i;
        if (is_drawable(c))
            put(p, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", c->held_out ? "hollow" : "f0",
                scaled(&x, c->predicted_ms), scaled(&y, c->measured_ms));
    }
    end_image(p);
    put(p, "Full dots: what the model was fitted to. Hollow dots: what it had not seen.");
    end_figure(p);
}

void put_cost(page *p)
{
    static const char *const heads[] = {
        "point", "predicted ms", "measured ms", "error %", "held out", NULL
    };
    bool drawable = false;
    put_words(p, p->lab->cost_words);
    for (int i = 0; i < p->lab->costs; i++)
        drawable = drawable || is_drawable(p->lab->cost + i);
    if (!p->lab->costs) {
        put_missing(p, "No cost model was fitted or compared for this page");
        return;
    }
    if (drawable) {
        begin_figures(p);
        put_cost_chart(p);
        end_figures(p);
    }
    begin_table(p, "Predictions beside measurements.", heads);
    for (int i = 0; i < p->lab->costs; i++) {
        const lab_cost *c = p->lab->cost + i;
        put_row(p, c->name);
        put(p, "<td>");
        put_real(p, c->predicted_ms, 3);
        put(p, "</td><td>");
        put_real(p, c->measured_ms, 3);
        put(p, "</td><td>");
        put_real(p, c->measured_ms > 0 ? 100 * (c->predicted_ms / c->measured_ms - 1) : LAB_NONE, 1);
        put(p, "</td><td>%s</td></tr>\n", c->held_out ? "yes" : "no");
    }
    end_table(p);
}
