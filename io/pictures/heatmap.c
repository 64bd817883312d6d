/* heatmap.c - a matrix of weights as cells from white to deep blue: an alignment, a map of attention. */
#include <math.h>
#include "io/pictures/svg.h"

enum { CELLS = 250000, SIDE = 44, LEAST = 4 };   /* cells at most; pixels of a cell, at least */

typedef struct { weft__svg svg; int rows, columns; double side, left, top; } map;

/* White, light blue, deep blue: even steps of lightness, readable in grey, too. */
static void paint(double weight, char colour[8])
{
    static const double at[3][3] = { { 255, 255, 255 }, { 107, 174, 214 }, { 8, 48, 107 } };
    double x = fmin(fmax(weight, 0), 1) * 2;
    int i = x < 1 ? 0 : 1;
    int c[3];
    for (int k = 0; k < 3; k++)
        c[k] = (int)lround(at[i][k] + (x - i) * (at[i + 1][k] - at[i][k]));
    snprintf(colour, 8, "#%02x%02x%02x", (unsigned)c[0] & 255, (unsigned)c[1] & 255, (unsigned)c[2] & 255);
}

static void draw_cells(map *m, const double *weights)
{
    char colour[8], tip[40];
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++) {
            double x = m->left + c * m->side, y = m->top + r * m->side,
                   weight = weights[(int64_t)r * m->columns + c];
            paint(weight, colour);
            snprintf(tip, sizeof tip, "%.3f", weight);
            weft__svg_box(&m->svg, x, y, m->side, m->side, isfinite(weight) ? colour : "url(#hatch)",
                          isfinite(weight) ? tip : "not finite");
            if (weight >= 0.1 && m->side >= 24)
                weft__svg_put(&m->svg,
                              "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                              "style=\"font-size:10px;fill:%s\">%.0f</text>\n",
                              x + m->side / 2, y + m->side / 2 + 4, weight > 0.45 ? "#ffffff" : "#333333",
                              fmin(weight, 1) * 100);
        }
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

static void draw_labels(map *m, const char *const *rows, const char *const *columns)
{
    for (int r = 0; rows && r < m->rows && m->side >= 9; r++)
        weft__svg_text(&m->svg, m->left - 8, m->top + (r + 0.5) * m->side + 5, "symbol", WEFT__END, rows[r]);
    for (int c = 0; columns && c < m->columns && m->side >= 9; c++)
        weft__svg_text(&m->svg, m->left + (c + 0.5) * m->side, m->top - 9, "symbol", WEFT__MIDDLE,
                       columns[c]);
}

static void draw_scale(map *m)
{
    double x = m->left + m->columns * m->side + 24, height = fmin(fmax(m->rows * m->side, 80), 240);
    char colour[8];
    for (int i = 0; i < 50; i++) {
        paint((49 - i) / 49.0, colour);
        weft__svg_box(&m->svg, x, m->top + i * height / 50, 14, height / 50 + 0.3, colour, NULL);
    }
    weft__svg_put(&m->svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"%.1f\" class=\"axis\"/>\n", x,
                  m->top, height);
    weft__svg_text(&m->svg, x + 20, m->top + 9, "tick", WEFT__START, "1");
    weft__svg_text(&m->svg, x + 20, m->top + height / 2 + 4, "tick", WEFT__START, "0.5");
    weft__svg_text(&m->svg, x + 20, m->top + height, "tick", WEFT__START, "0");
}

static int longest_label(const char *const *labels, int n)
{
    int most = 0;
    for (int i = 0; labels && i < n; i++) {
        int length = labels[i] ? weft__utf8_length(labels[i]) : 0;
        most = length > most ? length : most;
    }
    return most;
}

weft_status weft_plot_heatmap(const char *path, const char *title, int rows, int columns,
                              const double *weights, const char *const *row_labels,
                              const char *const *column_labels)
{
    if (!weights)
        return weft__file_fail(WEFT_EARG, "weft_plot_heatmap: weights is NULL");
    if (rows < 1 || columns < 1 || (int64_t)rows * columns > CELLS)
        return weft__file_fail(WEFT_EARG, "weft_plot_heatmap: %d x %d weights; 1 .. %d are drawn", rows,
                               columns, (int)CELLS);
    int larger = rows > columns ? rows : columns;
    map m = { .rows = rows, .columns = columns, .side = fmax(LEAST, fmin(SIDE, 1000.0 / larger)) };
    m.left = 40 + 8.5 * longest_label(row_labels, rows);
    m.top = 84;
    double title_width = 48 + 10.5 * (title ? weft__utf8_length(title) : 0);
    double width = fmax(m.left + columns * m.side + 84, title_width),
           height = m.top + fmax(rows * m.side, 80) + 32;
    weft__svg_begin(&m.svg, path, title, width, height);
    draw_cells(&m, weights);
    draw_frame(&m);
    draw_labels(&m, row_labels, column_labels);
    draw_scale(&m);
    return weft__svg_end(&m.svg);
}
