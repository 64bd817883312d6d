/* planners.c - of the page: all plans in one table, operations, and steps against milliseconds. */
#include "tools/page/page.h"

#define FIGURE(name, field) \
    static double name(const lab_plan *p) { return (double)p->made->figures.field; }
FIGURE(batches, batches)
FIGURE(rows, rows)
FIGURE(segments, segments)
FIGURE(tokens, tokens)
FIGURE(cells, cells)
FIGURE(fill, fill)
FIGURE(steps, steps)
FIGURE(runs, runs)
FIGURE(mean_live, mean_live)
FIGURE(a_row, segments_per_row)
FIGURE(eta2, eta2)
FIGURE(dropped, dropped)
FIGURE(cuts, cuts)
FIGURE(empty, empty)
static double l1(const lab_plan *p)
{
    return p->made->opts.capacity ? (double)p->made->figures.l1 : LAB_NONE;
}
static double l2(const lab_plan *p)
{
    return p->made->opts.capacity ? (double)p->made->figures.l2 : LAB_NONE;
}
static double planner_ms(const lab_plan *p) { return p->planner_ms; }
static double predicted_ms(const lab_plan *p) { return p->predicted_ms; }
static double median_ms(const lab_plan *p) { return p->median_ms; }
static double p10_ms(const lab_plan *p) { return p->p10_ms; }
static double p90_ms(const lab_plan *p) { return p->p90_ms; }

/* ---- operations ---- */
static weft_plan_work work_of(const lab_plan *p)
{
    weft_plan_work w;
    return weft_plan_count_work(&p->made->plan, &w) == WEFT_OK ? w : (weft_plan_work){ 0 };
}
static double wasted(double padded, double needed)
{
    return padded > 0 ? 100 * (1 - needed / padded) : LAB_NONE;
}
static double products(const lab_plan *p) { return (double)work_of(p).products; }
static double padded_products(const lab_plan *p) { return (double)work_of(p).padded_products; }
static double wasted_products(const lab_plan *p)
{
    weft_plan_work w = work_of(p);
    return wasted((double)w.padded_products, (double)w.products);
}
static double sums(const lab_plan *p) { return (double)work_of(p).sums; }
static double padded_sums(const lab_plan *p) { return (double)work_of(p).padded_sums; }
static double squares(const lab_plan *p) { return work_of(p).squares; }
static double padded_squares(const lab_plan *p) { return work_of(p).padded_squares; }
static double wasted_squares(const lab_plan *p)
{
    weft_plan_work w = work_of(p);
    return wasted(w.padded_squares, w.squares);
}

static const page_column plan_columns[] = {
    { "batches", batches, 0, 0 },
    { "rows", rows, 0, 0 },
    { "pieces", segments, 0, 0 },
    { "tokens", tokens, 0, 0 },
    { "cells", cells, -1, 0 },
    { "fill", fill, 1, 3 },
    { "steps", steps, -1, 0 },
    { "runs", runs, -1, 0 },
    { "live rows", mean_live, 1, 1 },
    { "pieces a row", a_row, 0, 2 },
    { "η²", eta2, -1, 3 },
    { "L1", l1, 0, 0 },
    { "L2", l2, 0, 0 },
    { "dropped", dropped, 0, 0 },
    { "cut", cuts, 0, 0 },
    { "empty", empty, 0, 0 },
};
static const page_column time_columns[] = {
    { "measured ms", median_ms, -1, 1 }, { "10 of 100", p10_ms, 0, 1 },
    { "90 of 100", p90_ms, 0, 1 },       { "predicted ms", predicted_ms, -1, 1 },
    { "planner ms", planner_ms, -1, 1 }, { "fill", fill, 1, 3 },
    { "steps", steps, -1, 0 },
};
static const page_column work_columns[] = {
    { "products", products, 0, 0 },
    { "padded products", padded_products, -1, 0 },
    { "wasted products %", wasted_products, -1, 1 },
    { "sums", sums, 0, 0 },
    { "padded sums", padded_sums, -1, 0 },
    { "squares", squares, 0, 0 },
    { "padded squares", padded_squares, -1, 0 },
    { "wasted squares %", wasted_squares, -1, 1 },
};

/* Times have a table of their own, which fits a screen. */
static void put_times(page *p)
{
    bool measured = false;
    for (int i = 0; i < p->lab->plans; i++) {
        const lab_plan *l = p->lab->plan + i;
        measured = measured || !isnan(l->median_ms) || !isnan(l->predicted_ms) || !isnan(l->planner_ms);
    }
    if (measured)
        put_plan_table(
            p,
            "Milliseconds of one pass over the corpus: the median, and what 10 and 90 of 100 passes did not "
            "exceed; the CPU time that is predicted for the recurrent layer alone; the time that the planner "
            "took. A dash means that it was not measured.",
            time_columns, sizeof time_columns / sizeof *time_columns);
    else
        put_missing(p, "No times were measured for this page: weft lab measures them");
}

void put_planners(page *p)
{
    put_times(p);
    put_plan_table(
        p,
        "All plans; the best of a column is bold where one is better. Steps: the widths of all batches. "
        "Runs: of equal live rows. Live rows: tokens a step. η²: the share of the lengths' variance that "
        "lies between batches, 0 if batches are alike. L1, L2: so many rows are needed at least. Cut: "
        "pieces that do not begin their sequence. A dash: the plan has no capacity.",
        plan_columns, sizeof plan_columns / sizeof *plan_columns);
    put_plan_table(
        p,
        "Operations. Products: a token each, and padded a cell each; a recurrent layer and its input "
        "projection multiply by their matrices for every one. Sums: one fewer than products in each piece, "
        "padded in each row. Squares: pairs of tokens that attend to each other, padded of cells of a row.",
        work_columns, sizeof work_columns / sizeof *work_columns);
}

/* ---- steps against milliseconds ---- */
void put_steps(page *p)
{
    double most = 0, slowest = 0;
    for (int i = 0; i < p->lab->plans; i++)
        if (!isnan(p->lab->plan[i].median_ms))
            most = fmax(most, steps(p->lab->plan + i)), slowest = fmax(slowest, p->lab->plan[i].median_ms);
    if (slowest <= 0) {
        put_missing(p, "Nothing was run for this page, so there are no milliseconds");
        return;
    }
    scale x = scale_of(0, most, false, CHART_LEFT, CHART_WIDTH - CHART_RIGHT),
          y = scale_of(0, slowest, false, CHART_HEIGHT - CHART_BOTTOM, CHART_TOP);
    begin_figures(p);
    begin_image(p, CHART_HEIGHT, "Steps against milliseconds",
                "A dot for each plan, with its number in the table.");
    put_axes(p, &x, &y, "steps", "ms a pass", CHART_HEIGHT);
    for (int i = 0; i < p->lab->plans; i++) {
        const lab_plan *is = p->lab->plan + i;
        if (isnan(is->median_ms))
            continue;
        double at = scaled(&x, steps(is)), level = scaled(&y, is->median_ms);
        put(p, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", i % PAGE_COLOURS, at, level);
        put_label(p, at + (at > CHART_WIDTH - 40 ? -6 : 6), level - 5,
                  at > CHART_WIDTH - 40 ? "end" : "start", "%d", i + 1);
    }
    end_image(p);
    put(p, "Where dots lie on a line through the origin a device is bound by steps, as GPUs are with small "
           "layers; where they lie level, by tokens. Numbers are those of the table.");
    end_figure(p);
    end_figures(p);
}
