/* page.h - markup, tables and charts that the sections of the page share. */
#ifndef WEFT_TOOLS_PAGE_H
#define WEFT_TOOLS_PAGE_H
#include <string.h>
#include "io/pictures/scale.h"
#include "tools/lab/lab.h"

/* figures: figures and tables so far, for unique names. paper: path of a report in Markdown, whose pictures
 * are files next to it; NULL: the page. failed: a picture was not written. */
typedef struct {
    weft__svg svg;
    const lab *lab;
    const char *paper;
    int figures;
    bool failed;
} page;
enum { PAGE_COLOURS = 8, PAGE_MULTIPLES = 12 };  /* small charts of a section at most: one a plan */

/* ---- text ---- */
/* Writes markup, as printf; never a user's text. */
#define put(p, ...) weft__svg_put(&(p)->svg, __VA_ARGS__)
/* Writes a user's text, escaped for HTML or Markdown; "-" for NULL. */
void put_text(page *, const char *text);
/* Writes a user's text between two pieces of markup. */
void put_between(page *, const char *before, const char *text, const char *after);
/* Writes a number with a comma at each thousand and that many decimals; "-" for NaN. */
void put_real(page *, double, int digits);
/* Writes a plan's number on this page and its name, "3 pool:count=64", where lines may break. */
void put_plan(page *, int plan);

/* ---- sections ---- */
/* Writes a sentence (without its full stop) on a missing result, and why the experiments stopped. */
void put_missing(page *, const char *sentence);

/* ---- tables ---- */
/* A cell with the head of its column: a text, or a number with `digits` decimals. better: -1 or 1 makes the
 * least or largest of the column bold. bad: marks the cell. */
typedef struct {
    const char *head;
    double value;
    int better, digits;
    const char *text;
    bool bad;
} page_cell;
/* A row. name NULL: the number and name of the plan, which is the row's number unless fill sets it. */
enum { PAGE_CELLS = 16 };
typedef struct {
    const char *name;
    page_cell cell[PAGE_CELLS];
    int n, plan;
} page_row;
#define CELL(head, value, better, digits) { head, (double)(value), better, digits, NULL, false }
/* Sets the cells of a row. */
#define SET_ROW(row, of, ...)                                         \
    do {                                                              \
        const page_cell cells_[] = { __VA_ARGS__ };                   \
        (row)->name = of;                                             \
        (row)->n = (int)(sizeof cells_ / sizeof *cells_);             \
        memcpy((row)->cell, cells_, sizeof cells_);                   \
    } while (0)
/* Writes a table; fill sets the cells of row i. missing: a sentence that replaces an empty table. */
void put_table(page *, const char *caption, const char *first_head, int rows,
               void (*fill)(const lab *, int i, page_row *), const char *missing);

/* ---- charts ---- */
enum { CHART_WIDTH = 420, CHART_HEIGHT = 220, CHART_SMALL = 150 };
/* Writes one small chart for each plan, up to PAGE_MULTIPLES, and a sentence if there are more plans. */
void put_multiples(page *, void (*chart)(page *, int plan));
/* Begins an image of that height with a title and a description. The caption follows end_image. */
void begin_image(page *, double height, const char *title, const char *description);
void end_image(page *);                          /* opens the caption */
void end_figure(page *);                         /* closes it */
/* Bars of a chart, from 0 up: an outline, and with `filled` the area in it. */
enum { PAGE_BARS = 64 };
typedef struct {
    double x[5 * PAGE_BARS], y[5 * PAGE_BARS], low[5 * PAGE_BARS];
    int n;
} page_bars;
void add_bar(page_bars *, double left, double right, double height);
weft_curve curve_of_bars(const page_bars *, bool filled);
/* Writes an image of a chart of that height with a description, up to the opened caption. */
__attribute__((format(printf, 5, 6))) void put_chart(page *, double height, const char *title,
                                                     const weft_chart *, const char *format, ...);
/* Writes numbers of a figure for its CSV: lines of fields with commas, each with ";" before it but the first.
 * Belongs between end_image and end_figure. */
void begin_data(page *, const char *heads);
void end_data(page *);

/* ---- sections, in files of their own ---- */
/* Judges the plans by measured times, or else by costs or cells, into a VERDICT. Returns false after a
 * printed error. */
bool judge_lab(const lab *, verdict *);
/* Writes which plan to take, and why; put_advice: only that. */
void put_verdict(page *);
void put_advice(page *);
/* Draw one figure, or nothing without its numbers. measure 0: tokens, 1: updates, 2: seconds. */
void draw_lengths(page *);
void draw_steps(page *);
void draw_learning(page *, int measure);
/* Returns the mean loss at the end of learning over the seeds, or NaN. */
double last_loss(const lab_plan *);
/* Write one section each. */
typedef void page_section(page *);
page_section put_lengths, put_layouts, put_planners, put_steps, put_weights, put_order, put_live,
    put_learning, put_gradient, put_contamination, put_adversaries, put_cost;
/* script.c: the only script of the page. It sorts tables and saves figures and tables. */
extern const char page_script[];
#endif
