/* planners.c - writes the tables of all plans and their operations, and draws steps against milliseconds. */
#include "tools/page/page.h"

static void fill_plan(const lab *l, int i, page_row *row)
{
    const weft_plan_figures *f = &l->plan[i].made->figures;
    SET_ROW(row, NULL, CELL("batches", f->batches, 0, 0), CELL("rows", f->rows, 0, 0),
            CELL("pieces", f->segments, 0, 0), CELL("tokens", f->tokens, 0, 0),
            CELL("cells", f->cells, -1, 0), CELL("fill", f->fill, 1, 3), CELL("steps", f->steps, -1, 0),
            CELL("live rows", f->mean_live, 1, 1), CELL("η²", f->eta2, -1, 3));
}

static void fill_rest(const lab *l, int i, page_row *row)
{
    const planned *made = l->plan[i].made;
    const weft_plan_figures *f = &made->figures;
    bool bound = made->opts.capacity != 0;
    SET_ROW(row, NULL, CELL("runs", f->runs, -1, 0), CELL("pieces a row", f->segments_per_row, 0, 2),
            CELL("L1", bound ? (double)f->l1 : LAB_NONE, 0, 0),
            CELL("L2", bound ? (double)f->l2 : LAB_NONE, 0, 0), CELL("dropped", f->dropped, 0, 0),
            CELL("cut", f->cuts, 0, 0), CELL("empty", f->empty, 0, 0));
}

static void fill_time(const lab *l, int i, page_row *row)
{
    const lab_plan *p = l->plan + i;
    SET_ROW(row, NULL, CELL("measured ms", p->median_ms, -1, 1), CELL("10 %", p->p10_ms, 0, 1),
            CELL("90 %", p->p90_ms, 0, 1), CELL("predicted ms", p->predicted_ms, -1, 1),
            CELL("planner ms", p->planner_ms, -1, 1), CELL("fill", p->made->figures.fill, 1, 3),
            CELL("steps", p->made->figures.steps, -1, 0));
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
    SET_ROW(row, NULL, CELL("products", w.products, 0, 0), CELL("padded products", w.padded_products, -1, 0),
            CELL("wasted products %", wasted((double)w.padded_products, (double)w.products), -1, 1),
            CELL("sums", w.sums, 0, 0), CELL("padded sums", w.padded_sums, -1, 0),
            CELL("squares", w.squares, 0, 0), CELL("padded squares", w.padded_squares, -1, 0),
            CELL("wasted squares %", wasted(w.padded_squares, w.squares), -1, 1));
}

/* Writes the times as a table of their own, which fits a screen. */
static void put_times(page *p)
{
    bool measured = false;
    int passes = 0;
    for (int i = 0; i < p->lab->plans; i++) {
        const lab_plan *l = p->lab->plan + i;
        passes += !isnan(l->median_ms);
        measured = measured || !isnan(l->median_ms) || !isnan(l->predicted_ms) || !isnan(l->planner_ms);
    }
    put_table(p,
              "Milliseconds of one pass over the corpus: the median, the 10th and 90th percentile, and the "
              "predicted CPU time of only the recurrent layer. Planner ms: the time of the planner. A dash "
              "means that nothing was measured.",
              "planner", measured ? p->lab->plans : 0, fill_time,
              "No times were measured for this page: weft lab measures them");
    if (passes && passes < p->lab->plans)
        put_missing(p, "A dash under measured ms: no pass of the plan was run");
}

void put_planners(page *p)
{
    put_times(p);
    put_table(p,
              "All plans. Bold: the best of a column. Steps: the sum of the widths of all batches. Live "
              "rows: tokens "
              "per step. η²: the share of the lengths' variance between batches; 0 if batches are alike.",
              "planner", p->lab->plans, fill_plan, NULL);
    put(p, "<details><summary>Runs, bounds on rows, dropped tokens and cut pieces</summary>\n");
    put_table(p,
              "Runs: runs of steps with equal live rows. L1, L2: lower bounds on rows; a dash means that the "
              "plan has no capacity. Cut: pieces that do not begin their sequence.",
              "planner", p->lab->plans, fill_rest, NULL);
    put(p, "</details>\n");
    put_table(p,
              "Operations. Products: uses of the matrices of a recurrent layer and its input projection, one "
              "for each token; padded: one for each cell. Sums: one fewer than products in each piece; "
              "padded: in each row. Squares: pairs of tokens that attend to each other; padded: pairs of "
              "cells in a row.",
              "planner", p->lab->plans, fill_work, NULL);
}

void draw_steps(page *p)
{
    enum { MOST = 64 };
    weft_curve curve[MOST + 1];
    double x[MOST], origin = 0;
    char name[MOST][12];
    int n = p->lab->plans < MOST ? p->lab->plans : MOST;
    for (int i = 0; i < n; i++) {
        const lab_plan *entry = p->lab->plan + i;
        x[i] = (double)entry->made->figures.steps;
        snprintf(name[i], sizeof name[i], "%d", i + 1);
        curve[i] = (weft_curve){ .name = name[i], .n = 1, .x = x + i, .y = &entry->median_ms };
    }
    curve[n] = (weft_curve){ .n = 1, .x = &origin, .y = &origin, .low = &origin }; /* both axes from 0 */
    put_chart(p, CHART_HEIGHT, "Steps against milliseconds",
              &(weft_chart){ .x_label = "steps", .left = "ms a pass", .curves = curve, .n = n + 1 },
              "One dot for each plan, with its number in the table.");
    put(p, "Dots on a line through the origin: time follows steps, as on GPUs with small layers. Dots "
           "at one height: time follows tokens. Numbers are those of the table.");
    end_figure(p);
}

void put_steps(page *p)
{
    if (p->lab->verdict->basis != VERDICT_BY_TIMES) {
        put_missing(p, "Nothing was run for this page, so times are missing");
        return;
    }
    put(p, "<div class=\"figures\">\n");
    draw_steps(p);
    put(p, "</div>\n");
}
