/* heatmap.c - a matrix as cells: weights from white to deep blue, an alignment, a map of attention; numbers
 * of either sign from blue over light grey to orange. */
#include <math.h>
#include <string.h>
#include "io/pictures/scale.h"

enum { CELLS = 250000, SIDE = 44, LEAST = 4 };   /* cells at most; pixels of a cell, at least */
static const double lean = 0.766, rise = 0.643;  /* of a label that leans: cosine and sine of 40 degrees */

typedef struct {
    weft__svg svg;
    int rows, columns;
    const double *values;
    const char *const *row_labels, *const *column_labels;
    const weft__scale *scale;                    /* NULL: weights in 0 .. 1 */
    double side, left, top, width;
    bool leans;                                  /* labels of columns, where they are wider than these */
} map;

/* White, light blue, deep blue: even steps of lightness, readable in grey, too. */
static weft__paint weight_paint(double weight)
{
    static const double at[3][3] = { { 255, 255, 255 }, { 107, 174, 214 }, { 8, 48, 107 } };
    double x = fmin(fmax(weight, 0), 1) * 2;
    int i = x < 1 ? 0 : 1;
    int c[3];
    for (int k = 0; k < 3; k++)
        c[k] = (int)lround(at[i][k] + (x - i) * (at[i + 1][k] - at[i][k]));
    return weft__paint_of(c);
}

/* ---- cells ---- */
/* What stands in a cell: a weight in percent from 10 on, a value with as many digits as there is room for. */
static bool cell_text(const map *m, double value, char text[WEFT__SHORT])
{
    if (!m->scale) {
        snprintf(text, WEFT__SHORT, "%.0f", fmin(value, 1) * 100);
        return m->side >= 24 && value >= 0.1;
    }
    for (int digits = 3; digits > 1; digits--)
        if ((double)strlen(weft__short_number(text, value, digits)) * 6.6 < m->side)
            return isfinite(value);
    return false;
}

static void draw_cell(map *m, int r, int c)
{
    char tip[40], text[WEFT__SHORT];
    double x = m->left + c * m->side, y = m->top + r * m->side,
           value = m->values[(int64_t)r * m->columns + c];
    weft__paint p = m->scale ? weft__scale_paint(m->scale, value) : weight_paint(value);
    snprintf(tip, sizeof tip, m->scale ? "%.6g" : "%.3f", value + 0.0);
    weft__svg_box(&m->svg, x, y, m->side, m->side, isfinite(value) ? p.fill : "url(#hatch)",
                  isfinite(value) ? tip : "not finite");
    if (cell_text(m, value, text))
        weft__svg_put(&m->svg,
                      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                      "style=\"font-size:10px;fill:%s\">%s</text>\n",
                      x + m->side / 2, y + m->side / 2 + 4, p.ink, text);
}

static void draw_frame(map *m)
{
    double right = m->left + m->columns * m->side, bottom = m->top + m->rows * m->side;
    for (int r = 0; r <= m->rows; r++)
        weft__svg_line(&m->svg, m->left, m->top + r * m->side, right, m->top + r * m->side,
                       r % m->rows ? "grid" : "axis");
    for (int c = 0; c <= m->columns; c++)
        weft__svg_line(&m->svg, m->left + c * m->side, m->top, m->left + c * m->side, bottom,
                       c % m->columns ? "grid" : "axis");
}

/* ---- labels ---- */
static int longest_label(const char *const *labels, int n)
{
    int most = 0;
    for (int i = 0; labels && i < n; i++) {
        int length = labels[i] ? weft__utf8_length(labels[i]) : 0;
        most = length > most ? length : most;
    }
    return most;
}

static void draw_column_label(map *m, double x, const char *label)
{
    double y = m->top - 9;
    if (m->leans && label) {
        weft__svg_put(&m->svg, "<g transform=\"rotate(-40 %.1f %.1f)\">\n", x, y);
        weft__svg_text(&m->svg, x, y, "symbol", WEFT__START, label);
        weft__svg_put(&m->svg, "</g>\n");
    } else {
        weft__svg_text(&m->svg, x, y, "symbol", WEFT__MIDDLE, label);
    }
}

static void draw_labels(map *m)
{
    for (int r = 0; m->row_labels && r < m->rows && m->side >= 9; r++)
        weft__svg_text(&m->svg, m->left - 8, m->top + (r + 0.5) * m->side + 5, "symbol", WEFT__END,
                       m->row_labels[r]);
    for (int c = 0; m->column_labels && c < m->columns && m->side >= 9; c++)
        draw_column_label(m, m->left + (c + 0.5) * m->side, m->column_labels[c]);
}

static void draw_scale(map *m)
{
    double x = m->left + m->columns * m->side + 24, height = fmin(fmax(m->rows * m->side, 80), 240);
    if (m->scale) {
        weft__scale_upright(&m->svg, m->scale, x, m->top, height);
        return;
    }
    for (int i = 0; i < 50; i++)
        weft__svg_box(&m->svg, x, m->top + i * height / 50, 14, height / 50 + 0.3,
                      weight_paint((49 - i) / 49.0).fill, NULL);
    weft__svg_put(&m->svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"%.1f\" class=\"axis\"/>\n", x,
                  m->top, height);
    weft__svg_text(&m->svg, x + 20, m->top + 9, "tick", WEFT__START, "1");
    weft__svg_text(&m->svg, x + 20, m->top + height / 2 + 4, "tick", WEFT__START, "0.5");
    weft__svg_text(&m->svg, x + 20, m->top + height, "tick", WEFT__START, "0");
}

/* ---- the whole ---- */
static void measure(map *m, const char *title)
{
    int larger = m->rows > m->columns ? m->rows : m->columns;
    double longest = 8.2 * longest_label(m->column_labels, m->columns);
    m->side = fmax(LEAST, fmin(SIDE, 1000.0 / larger));
    m->leans = longest > m->side + 4 && longest > 9;
    m->left = 40 + 8.5 * longest_label(m->row_labels, m->rows);
    m->top = 84 + (m->leans ? fmax(0, longest * rise - 20) : 0);
    double right = m->left + m->columns * m->side;
    m->width = fmax(right + 84, 48 + 10.5 * (title ? weft__utf8_length(title) : 0));
    if (m->leans)
        m->width = fmax(m->width, right + longest * lean);
    if (m->scale && m->scale->label)             /* beside its bar's upper end */
        m->width = fmax(m->width, right + 34 + 6.5 * weft__utf8_length(m->scale->label));
}

static weft_status check(const char *function, int rows, int columns, const double *values, const char *what)
{
    if (!values)
        return weft__file_fail(WEFT_EARG, "%s: %s is NULL", function, what);
    if (rows < 1 || columns < 1 || (int64_t)rows * columns > CELLS)
        return weft__file_fail(WEFT_EARG, "%s: %d x %d %s; 1 .. %d are drawn", function, rows, columns, what,
                               (int)CELLS);
    return WEFT_OK;
}

static weft_status draw(map *m, const char *path, const char *title)
{
    measure(m, title);
    weft__svg_begin(&m->svg, path, title, m->width, m->top + fmax(m->rows * m->side, 80) + 32);
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++)
            draw_cell(m, r, c);
    draw_frame(m);
    draw_labels(m);
    draw_scale(m);
    return weft__svg_end(&m->svg);
}

weft_status weft_plot_heatmap(const char *path, const char *title, int rows, int columns,
                              const double *weights, const char *const *row_labels,
                              const char *const *column_labels)
{
    weft_status s = check("weft_plot_heatmap", rows, columns, weights, "weights");
    map m = { .rows = rows, .columns = columns, .values = weights, .row_labels = row_labels,
              .column_labels = column_labels };
    return s ? s : draw(&m, path, title);
}

weft_status weft_plot_diverging_heatmap(const char *path, const char *title, int rows, int columns,
                                        const double *values, const char *const *row_labels,
                                        const char *const *column_labels, const weft_colour_scale *scale)
{
    static const char function[] = "weft_plot_diverging_heatmap";
    weft__scale settled;
    weft_status s = check(function, rows, columns, values, "values");
    if (!s)
        s = weft__scale_of(function, scale, values, (int64_t)rows * columns, &settled);
    map m = { .rows = rows, .columns = columns, .values = values, .row_labels = row_labels,
              .column_labels = column_labels, .scale = &settled };
    return s ? s : draw(&m, path, title);
}
