/* planners.c - of the page: all plans in one table, operations, and steps against milliseconds. */
#include <string.h>
#include "tools/page/page.h"

static void fill_plan(const lab *l, int i, page_row *row)
{
    const planned *made = l->plan[i].made;
    const weft_plan_figures *f = &made->figures;
    bool bound = made->opts.capacity != 0;
    SET_ROW(row, NULL, CELL("batches", (double)f->batches, 0, 0), CELL("rows", (double)f->rows, 0, 0),
            CELL("pieces", (double)f->segments, 0, 0), CELL("tokens", (double)f->tokens, 0, 0),
            CELL("cells", (double)f->cells, -1, 0), CELL("fill", f->fill, 1, 3),
            CELL("steps", (double)f->steps, -1, 0), CELL("runs", (double)f->runs, -1, 0),
            CELL("live rows", f->mean_live, 1, 1), CELL("pieces a row", f->segments_per_row, 0, 2),
            CELL("η²", f->eta2, -1, 3), CELL("L1", bound ? (double)f->l1 : LAB_NONE, 0, 0),
            CELL("L2", bound ? (double)f->l2 : LAB_NONE, 0, 0), CELL("dropped", (double)f->dropped, 0, 0),
            CELL("cut", (double)f->cuts, 0, 0), CELL("empty", (double)f->empty, 0, 0));
}

static void fill_time(const lab *l, int i, page_row *row)
{
    const lab_plan *p = l->plan + i;
    SET_ROW(row, NULL, CELL("measured ms", p->median_ms, -1, 1), CELL("10 of 100", p->p10_ms, 0, 1),
            CELL("90 of 100", p->p90_ms, 0, 1), CELL("predicted ms", p->predicted_ms, -1, 1),
            CELL("planner ms", p->planner_ms, -1, 1), CELL("fill", p->made->figures.fill, 1, 3),
            CELL("steps", (double)p->made->figures.steps, -1, 0));
}

static double wasted(double padded, double needed)
{
    return padded > 0 ? 100 * (1 - needed / padded) : LAB_NONE;
}

static void fill_work(const lab *l, int i, page_row *row)
{
    weft_plan_work w;
    if (weft_plan_count_work(&l->plan[i].made->plan, &w) != WEFT_OK)
        w = (weft_plan_work){ 0 };
    SET_ROW(row, NULL, CELL("products", (double)w.products, 0, 0),
            CELL("padded products", (double)w.padded_products, -1, 0),
            CELL("wasted products %", wasted((double)w.padded_products, (double)w.products), -1, 1),
            CELL("sums", (double)w.sums, 0, 0), CELL("padded sums", (double)w.padded_sums, -1, 0),
            CELL("squares", w.squares, 0, 0), CELL("padded squares", w.padded_squares, -1, 0),
            CELL("wasted squares %", wasted(w.padded_squares, w.squares), -1, 1));
}

/* Times have a table of their own, which fits a screen. */
static void put_times(page *p)
{
    bool measured = false;
    for (int i = 0; i < p->lab->plans; i++) {
        const lab_plan *l = p->lab->plan + i;
        measured = measured || !isnan(l->median_ms) || !isnan(l->predicted_ms) || !isnan(l->planner_ms);
    }
    if (measured)
        put_table(
            p,
            "Milliseconds of one pass over the corpus: the median, and what 10 and 90 of 100 passes did not "
            "exceed; the CPU time that is predicted for the recurrent layer alone; the time that the planner "
            "took. A dash means that it was not measured.",
            "planner", p->lab->plans, fill_time);
    else
        put_missing(p, "No times were measured for this page: weft lab measures them");
}

void put_planners(page *p)
{
    put_times(p);
    put_table(
        p,
        "All plans; the best of a column is bold where one is better. Steps: the widths of all batches. "
        "Runs: of equal live rows. Live rows: tokens a step. η²: the share of the lengths' variance that "
        "lies between batches, 0 if batches are alike. L1, L2: so many rows are needed at least. Cut: "
        "pieces that do not begin their sequence. A dash: the plan has no capacity.",
        "planner", p->lab->plans, fill_plan);
    put_table(
        p,
        "Operations. Products: a token each, and padded a cell each; a recurrent layer and its input "
        "projection multiply by their matrices for every one. Sums: one fewer than products in each piece, "
        "padded in each row. Squares: pairs of tokens that attend to each other, padded of cells of a row.",
        "planner", p->lab->plans, fill_work);
}

/* ---- steps against milliseconds ---- */
void put_steps(page *p)
{
    double ends[4] = { 0 };
    for (int i = 0; i < p->lab->plans; i++)
        if (!isnan(p->lab->plan[i].median_ms)) {
            ends[1] = fmax(ends[1], (double)p->lab->plan[i].made->figures.steps);
            ends[3] = fmax(ends[3], p->lab->plan[i].median_ms);
        }
    if (ends[3] <= 0) {
        put_missing(p, "Nothing was run for this page, so there are no milliseconds");
        return;
    }
    page_axes axes = axes_of(ends, 0, 0, CHART_HEIGHT);
    put(p, "<div class=\"figures\">\n");
    begin_image(p, CHART_HEIGHT, "Steps against milliseconds",
                "A dot for each plan, with its number in the table.");
    put_axes(p, &axes, "steps", "ms a pass", CHART_HEIGHT);
    for (int i = 0; i < p->lab->plans; i++) {
        const lab_plan *is = p->lab->plan + i;
        if (isnan(is->median_ms))
            continue;
        double at = weft__axis_pixel(&axes.x, (double)is->made->figures.steps),
               level = weft__axis_pixel(&axes.y, is->median_ms);
        put(p, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", i % PAGE_COLOURS, at, level);
        put_label(p, at + (at > CHART_WIDTH - 40 ? -6 : 6), level - 5, "",
                  at > CHART_WIDTH - 40 ? WEFT__END : WEFT__START, "%d", i + 1);
    }
    end_image(p);
    put(p, "Where dots lie on a line through the origin a device is bound by steps, as GPUs are with small "
           "layers; where they lie level, by tokens. Numbers are those of the table.");
    end_figure(p);
    put(p, "</div>\n");
}
