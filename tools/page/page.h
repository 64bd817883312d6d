/* page.h - what the sections of the page share: markup, numbers, tables, charts. */
#ifndef WEFT_TOOLS_PAGE_H
#define WEFT_TOOLS_PAGE_H
#include "tools/lab/lab.h"

/* figures: how many figures and tables there were, for names; section: the number of the one that is open. */
typedef struct { FILE *to; const lab *lab; int figures, section; } page;
enum { PAGE_COLOURS = 8, PAGE_MULTIPLES = 12 };  /* small charts of a section at most: one a plan */

/* ---- text ---- */
/* Markup, as printf; never with a user's text. */
__attribute__((format(printf, 2, 3))) void put(page *, const char *format, ...);
/* A user's text, escaped; malformed UTF-8 and what HTML has no characters for become U+FFFD. NULL: "-". */
void put_text(page *, const char *text);
/* With a comma at each thousand; so many digits behind the point, "-" for NaN. */
void put_number(page *, int64_t);
void put_real(page *, double, int digits);
/* "3 pool:count=64": a plan's number on this page, and its name, where lines may break. */
void put_plan(page *, int plan);

/* ---- sections ---- */
extern const char *const page_sections[][2];     /* name for links, title; ends with NULL */
void begin_section(page *);
void end_section(page *);
/* Puts a sentence, without its full stop, where a result is missing, and why the experiments were stopped. */
void put_missing(page *, const char *sentence);
/* How many plans have a small chart of their own; says so, if it is not all. */
int put_multiples(page *);

/* ---- tables ---- */
/* A column of a table with a row for each plan: better -1 or 1: the least or largest is bold. */
typedef struct { const char *head; double (*get)(const lab_plan *); int better, digits; } page_column;
void put_plan_table(page *, const char *caption, const page_column *columns, int n);
/* A cell of a table; "-" for NaN. */
void put_cell(page *, double x, int digits, bool bold);
/* A table with other rows: heads end with NULL. Cells are put by hand. */
void begin_table(page *, const char *caption, const char *const *heads);
void end_table(page *);

/* ---- charts ---- */
enum {
    CHART_WIDTH = 344,
    CHART_HEIGHT = 220,
    CHART_LEFT = 46,
    CHART_RIGHT = 10,
    CHART_TOP = 24,
    CHART_BOTTOM = 42
};
/* Values low .. high lie at pixels from .. to; on a logarithmic axis or an even one. */
typedef struct { double low, high, from, to; bool logarithmic; } scale;
double scaled(const scale *, double value);
/* Widened to whole steps, on a logarithmic axis, base 10, to 1, 2 or 5 of a power; a range of one value gets
 * some room. */
scale scale_of(double low, double high, bool logarithmic, double from, double to);
void begin_figures(page *);
void end_figures(page *);
/* An image of that height with a title and a description; the caption follows by hand, after end_image. */
__attribute__((format(printf, 4, 5))) void begin_image(page *, double height, const char *title,
                                                       const char *format, ...);
void end_image(page *);                          /* opens the caption */
void end_figure(page *);                         /* closes it */
/* Grids, ticks and labels of both axes, in a chart of that height. */
void put_axes(page *, const scale *x, const scale *y, const char *x_label, const char *y_label,
              double height);
__attribute__((format(printf, 5, 6))) void put_label(page *, double x, double y, const char *anchor,
                                                     const char *format, ...);

/* ---- sections, in files of their own ---- */
/* Puts which plan to take, and why, if times were measured. */
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
