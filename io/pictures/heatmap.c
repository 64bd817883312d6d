/* heatmap.c - draws a matrix as cells: weights from white to deep blue, such as attention; numbers of either
 * sign from blue over light grey to orange. */
#include <stdlib.h>
#include <string.h>
#include "io/pictures/scale.h"

/* CELLS: at most; TOLD: at most with tooltips; SIDE, LEAST: pixels of a cell. */
enum { CELLS = 250000, TOLD = 400, SIDE = 44, LEAST = 4 };
static const double lean = 0.766, rise = 0.643;  /* a slanted label: cosine and sine of 40 degrees */

typedef struct {
    weft__svg svg;
    int rows, columns;
    const double *values;
    const char *const *row_labels, *const *column_labels;
    weft__scale scale;
    double side, left, top, width;
    bool leans;  /* labels of columns are slanted, because they are wider than their columns */
} map;

/* ---- cells ---- */
/* Writes the number of a cell with the digits that fit; small weights have no number. */
static bool cell_text(const map *m, double value, char text[WEFT__SHORT])
{
    if (!isfinite(value) || (m->scale.weights && value < 0.1))
        return false;
    for (int digits = m->scale.weights ? 2 : 3; digits > 1; digits--)
        if ((double)strlen(weft__short_number(text, value, digits)) * 7.4 < m->side)
            return true;
    return false;
}

static void draw_cell(map *m, int r, int c)
{
    char tip[40] = "not finite", text[WEFT__SHORT];
    double x = m->left + c * m->side, y = m->top + r * m->side,
           value = m->values[(int64_t)r * m->columns + c];
    weft__paint p = weft__scale_paint(&m->scale, value);
    if (isfinite(value))
        snprintf(tip, sizeof tip, m->scale.weights ? "%.3f" : "%.6g", value + 0.0);
    weft__svg_box(&m->svg, x, y, m->side, m->side, isfinite(value) ? p.fill : "url(#hatch)", NULL, tip);
    if (cell_text(m, value, text))
        weft__svg_text_coloured(&m->svg, x + m->side / 2, y + m->side / 2 + 4, "number", p.ink, text);
}

/* ---- many cells: runs of one colour, all runs of a colour in one path ---- */
typedef struct {
    char fill[12];
    int row, column, length;
} run;

static int by_fill(const void *a, const void *b)
{
    const run *s = a, *t = b;
    int order = strcmp(s->fill, t->fill);
    return order ? order : s->row != t->row ? s->row - t->row : s->column - t->column;
}

static int64_t find_runs(const map *m, run *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < (int64_t)m->rows * m->columns; i++) {
        run current = { .row = (int)(i / m->columns), .column = (int)(i % m->columns), .length = 1 };
        bool ok = isfinite(m->values[i]);
        snprintf(current.fill, sizeof current.fill, "%s",
                 ok ? weft__scale_paint(&m->scale, m->values[i]).fill : "url(#hatch)");
        if (current.column && !strcmp(out[n - 1].fill, current.fill))
            out[n - 1].length++;
        else
            out[n++] = current;
    }
    return n;
}

/* A cell is a square of side 1 here, a run a thick line. */
static void draw_runs(map *m)
{
    run *runs = calloc((size_t)m->rows * (size_t)m->columns, sizeof *runs);
    int64_t n = runs ? find_runs(m, runs) : 0;
    if (!runs)
        m->svg.failed = true;
    else
        qsort(runs, (size_t)n, sizeof *runs, by_fill);
    weft__svg_put(&m->svg, "<g transform=\"translate(%g %g) scale(%g)\" stroke-width=\"1.02\">\n",
                  weft__tenths(m->left), weft__tenths(m->top + m->side / 2), m->side);
    for (int64_t i = 0, first = 0; i < n; i++) {
        if (i == first)
            weft__svg_put(&m->svg, "<path stroke=\"%s\" d=\"", runs[i].fill);
        weft__svg_put(&m->svg, "M%d %dh%d%s", runs[i].column, runs[i].row, runs[i].length,
                      (i - first) % 32 == 31 ? "\n" : "");
        if (i + 1 == n || strcmp(runs[i].fill, runs[i + 1].fill)) {
            weft__svg_put(&m->svg, "\"/>\n");
            first = i + 1;
        }
    }
    weft__svg_put(&m->svg, "</g>\n");
    free(runs);
}

static void draw_frame(map *m)
{
    double right = m->left + m->columns * m->side, bottom = m->top + m->rows * m->side;
    weft__svg_put(&m->svg, "<path class=\"grid\" d=\"");
    for (int r = 1; r < m->rows; r++)
        weft__svg_put(&m->svg, "%sM%g %gH%g", r % 16 ? "" : "\n", weft__tenths(m->left),
                      weft__tenths(m->top + r * m->side), weft__tenths(right));
    for (int c = 1; c < m->columns; c++)
        weft__svg_put(&m->svg, "%sM%g %gV%g", c % 16 ? "" : "\n", weft__tenths(m->left + c * m->side),
                      weft__tenths(m->top), weft__tenths(bottom));
    weft__svg_put(&m->svg, "\"/>\n");
    weft__svg_put(&m->svg, "<path class=\"axis\" d=\"M%g %gH%gV%gH%gZ\"/>\n", weft__tenths(m->left),
                  weft__tenths(m->top), weft__tenths(right), weft__tenths(bottom), weft__tenths(m->left));
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

static void draw_labels(map *m)
{
    for (int r = 0; m->row_labels && r < m->rows && m->side >= 9; r++)
        weft__svg_text(&m->svg, m->left - 8, m->top + (r + 0.5) * m->side + 5, "symbol", WEFT__END,
                       m->row_labels[r]);
    for (int c = 0; m->column_labels && c < m->columns && m->side >= 9; c++) {
        double x = m->left + (c + 0.5) * m->side, y = m->top - 9;
        if (m->leans && m->column_labels[c])
            weft__svg_text_rotated(&m->svg, -40, x, y, "symbol", WEFT__START, m->column_labels[c]);
        else
            weft__svg_text(&m->svg, x, y, "symbol label", WEFT__START, m->column_labels[c]);
    }
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
    if (m->scale.label)                          /* above its bar */
        m->width = fmax(m->width, right + 34 + 6.5 * weft__utf8_length(m->scale.label));
}

static weft_status draw(map *m, const char *path, const char *title)
{
    measure(m, title);
    weft__svg_begin(&m->svg, path, title, m->width, m->top + fmax(m->rows * m->side, 80) + 32);
    bool titles = m->rows * m->columns <= TOLD;
    for (int i = 0; titles && i < m->rows * m->columns; i++)
        draw_cell(m, i / m->columns, i % m->columns);
    if (!titles)
        draw_runs(m);
    draw_frame(m);
    draw_labels(m);
    weft__scale_bar(&m->svg, &m->scale, m->left + m->columns * m->side + 24, m->top,
                    fmin(fmax(m->rows * m->side, 80), 240), true);
    return weft__svg_end(&m->svg);
}

weft_status weft_plot_heatmap(const char *path, const char *title, int rows, int columns,
                              const double *values, const char *const *row_labels,
                              const char *const *column_labels, const weft_colour_scale *scale)
{
    static const char function[] = "weft_plot_heatmap";
    if (!values)
        return weft__file_fail(WEFT_EARG, "%s: values is NULL", function);
    if (rows < 1 || columns < 1 || (int64_t)rows * columns > CELLS)
        return weft__file_fail(WEFT_EARG, "%s: %d x %d values; expected 1 .. %d", function, rows, columns,
                               (int)CELLS);
    map m = { .rows = rows, .columns = columns, .values = values, .row_labels = row_labels,
              .column_labels = column_labels, .scale = { .high = 1, .weights = true } };
    weft_status s = WEFT_OK;
    if (scale)
        s = weft__scale_of(function, scale, values, (int64_t)rows * columns, &m.scale);
    return s ? s : draw(&m, path, title);
}
