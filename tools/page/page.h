/* page.h - what the sections of the page share: markup, tables, charts. */
#ifndef WEFT_TOOLS_PAGE_H
#define WEFT_TOOLS_PAGE_H
#include "io/pictures/scale.h"
#include "tools/lab/lab.h"

/* figures: how many figures and tables there were, for names; section: the number of the open one. */
typedef struct {
    weft__svg svg;
    const lab *lab;
    int figures, section;
} page;
enum { PAGE_COLOURS = 8, PAGE_MULTIPLES = 12 };  /* small charts of a section at most: one a plan */

/* ---- text ---- */
/* Writes markup, as printf; never a user's text. */
#define put(p, ...) weft__svg_put(&(p)->svg, __VA_ARGS__)
/* Writes a user's text, escaped; "-" for NULL. */
void put_text(page *, const char *text);
/* Writes a number with a comma at each thousand and that many decimals; "-" for NaN. */
void put_real(page *, double, int digits);
/* Writes a plan's number on this page and its name, "3 pool:count=64", where lines may break. */
void put_plan(page *, int plan);

/* ---- sections ---- */
extern const char *const page_sections[][2];     /* name for links, title; ends with NULL */
/* Writes a sentence, without its full stop, for a missing result, and why the experiments were stopped. */
void put_missing(page *, const char *sentence);

/* ---- tables ---- */
/* A cell with the head of its column: a number with that many decimals, or a text. better: -1 or 1, the
 * least or largest of the column is bold. bad: the cell is marked. */
typedef struct {
    const char *head;
    double value;
    int better, digits;
    const char *text;
    bool bad;
} page_cell;
/* A row; name NULL: it has the name of the plan with its number. */
enum { PAGE_CELLS = 16 };
typedef struct {
    const char *name;
    page_cell cell[PAGE_CELLS];
    int n;
} page_row;
#define CELL(head, value, better, digits) { head, value, better, digits, NULL, false }
/* Sets the cells of a row. */
#define SET_ROW(row, of, ...)                                         \
    do {                                                              \
        const page_cell cells_[] = { __VA_ARGS__ };                   \
        (row)->name = of;                                             \
        (row)->n = (int)(sizeof cells_ / sizeof *cells_);             \
        memcpy((row)->cell, cells_, sizeof cells_);                   \
    } while (0)
/* Writes a table of at least one row; fill sets the cells of row i. */
void put_table(page *, const char *caption, const char *first_head, int rows,
               void (*fill)(const lab *, int i, page_row *));

/* ---- charts ---- */
enum {
    CHART_WIDTH = 344,
    CHART_HEIGHT = 220,
    CHART_SMALL = 150,
    CHART_LEFT = 46,
    CHART_RIGHT = 10,
    CHART_TOP = 24,
    CHART_BOTTOM = 42
};
/* Axes of a chart of that height, of which the first two are x's ends and the others y's; bases as of
 * weft__axis. */
typedef struct {
    weft__axis x, y;
} page_axes;
page_axes axes_of(const double ends[4], int base_x, int base_y, double height);
/* Writes one small chart for each plan, up to PAGE_MULTIPLES, and if that is not all, says so. */
void put_multiples(page *, void (*chart)(page *, int plan));
/* Begins an image of that height with a title and a description. The caption follows end_image. */
__attribute__((format(printf, 4, 5))) void begin_image(page *, double height, const char *title,
                                                       const char *format, ...);
void end_image(page *);                          /* opens the caption */
void end_figure(page *);                         /* closes it */
/* Writes grids, marks and labels of both axes, in a chart of that height. */
void put_axes(page *, const page_axes *, const char *x_label, const char *y_label, double height);
#define put_label(p, ...) weft__svg_textf(&(p)->svg, __VA_ARGS__)
/* Writes a bar from the level `top` down to `bottom`. */
void put_bar(page *, const char *class_, double x, double top, double width, double bottom);

/* ---- sections, in files of their own ---- */
/* Writes which plan to take, and why, if times were measured. */
void put_verdict(page *);
void put_lengths(page *);
void put_layouts(page *);
void put_planners(page *);
void put_steps(page *);
void put_weights(page *);
void put_order(page *);
void put_live(page *);
void put_learning(page *);
void put_gradient(page *);
void put_contamination(page *);
void put_adversaries(page *);
void put_cost(page *);
#endif
