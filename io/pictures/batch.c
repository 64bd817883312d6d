/* batch.c - one ragged batch in its layouts: padded as a grid with its pads hatched, packed as the staircase
 * that PyTorch calls batch_sizes and as it lies in memory, concatenated as it lies in memory. A sequence has
 * one colour everywhere. Where each token has a value a cell has the colour of that, and the rows of a
 * placement come last. */
#include <math.h>
#include <stdlib.h>
#include "io/pictures/row_cells.h"
#include "io/pictures/scale.h"

/* pixels of a grid at most; of a cell, without and with its number */
enum { CELLS = 100000, MARGIN = 30, GRID = 520, TALL = 620, SIDE = 26, ROOMY = 40, HEAD = 76 };
enum { NUMBERED = 30 };                           /* pixels of a cell that has room for its number */

typedef struct {
    weft__svg svg;
    weft_lengths lengths;
    const char *const *labels;                   /* of the tokens, concat order; or NULL */
    int64_t longest, tokens;
    int64_t *offset;                             /* [n + 1] */
    int32_t *sorted;                             /* [n] the longest first, ties in the user's order */
    /* of a grid's cell, the picture, a strip's cell; where the next strip goes */
    double side, width, strip, y;
    double top;                                  /* of the grids */
    const double *values;                        /* of the tokens, concat order; or NULL */
    weft__scale scale;
    weft__row_cells placed;
} picture;

/* ---- the batch ---- */
static int by_length(const void *a, const void *b, void *lengths)
{
    const int32_t *len = lengths, i = *(const int32_t *)a, j = *(const int32_t *)b;
    return len[i] != len[j] ? (len[i] > len[j] ? -1 : 1) : (i > j) - (i < j);
}

static bool measure_picture(picture *p)                  /* false: no memory */
{
    int64_t n = p->lengths.n;
    p->offset = calloc((size_t)n + 1, sizeof *p->offset);
    p->sorted = calloc((size_t)n + 1, sizeof *p->sorted);
    if (!p->offset || !p->sorted)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int32_t len = p->lengths.len[i];
        p->offset[i + 1] = p->offset[i] + len;
        p->sorted[i] = (int32_t)i;
        p->longest = len > p->longest ? len : p->longest;
    }
    p->tokens = p->offset[n];
    if (n)
        qsort_r(p->sorted, (size_t)n, sizeof *p->sorted, by_length, (void *)(uintptr_t)p->lengths.len);
    return true;
}

static void scale(picture *p)
{
    double wide = (double)GRID / (double)(p->longest ? p->longest : 1);
    double high = (double)TALL / (double)(p->lengths.n ? p->lengths.n : 1);
    p->side = fmax(2, fmin(p->values ? ROOMY : SIDE, fmin(wide, high)));
    p->width = fmax(900, 2 * (MARGIN + 34 + (double)p->longest * p->side) + MARGIN);
    double room = p->width - 2 * MARGIN, tokens = (double)(p->tokens ? p->tokens : 1);
    p->strip = p->values ? ROOMY : fmin(SIDE, room / tokens);
    if (p->values && tokens * ROOMY / room > 3)
        p->strip = fmin(SIDE, room / tokens);
    if (p->strip < 15)                           /* several lines */
        p->strip = tokens * 15 / room <= 6 ? 15 : fmax(3, fmin(15, sqrt(room * 90 / tokens)));
    p->top = p->values ? HEAD + 46 : HEAD;
    p->y = p->top + 16 + (double)p->lengths.n * p->side + 78;
}

/* ---- cells ---- */
static void put_box(picture *p, double x, double y, double width, double height, const char *fill, bool gap)
{
    weft__svg_put(&p->svg, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"%s/>\n", x,
                  y, width, height, fill, gap ? " class=\"gap\"" : "");
}

static void put_text(picture *p, double x, double y, int size, const char *ink, const char *text)
{
    weft__svg_put(&p->svg,
                  "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" style=\"font-size:%dpx;fill:%s\">", x,
                  y, size, ink);
    weft__svg_escaped(&p->svg, text);
    weft__svg_put(&p->svg, "</text>\n");
}

static const char *label_that_fits(const picture *p, double side, int64_t token)
{
    const char *label = p->labels ? p->labels[token] : NULL;
    return label && side >= 12 && weft__utf8_length(label) * 7.5 < side + 1 ? label : NULL;
}

static void begin_tip(picture *p, int64_t sequence, int64_t t)
{
    int64_t token = p->offset[sequence] + t;
    const char *label = p->labels ? p->labels[token] : NULL;
    weft__svg_put(&p->svg, "<g><title>sequence %lld, token %lld%s", (long long)sequence, (long long)t,
                  label ? ", " : "");
    weft__svg_escaped(&p->svg, label);
    weft__svg_put(&p->svg, isfinite(p->values[token]) ? ": %.6g</title>\n" : ": not finite</title>\n",
                  p->values[token] + 0.0);
}

/* A cell of its value's colour, a stripe of the sequence's below. */
static void draw_valued(picture *p, double x, double y, double side, int64_t sequence, int64_t t)
{
    int64_t token = p->offset[sequence] + t;
    double stripe = fmax(side < 8 ? 1 : 2, side / 9), middle = y + (side - stripe) / 2;
    char number[WEFT__SHORT];
    weft__paint paint = weft__scale_paint(&p->scale, p->values[token]);
    const char *label = label_that_fits(p, side, token);
    begin_tip(p, sequence, t);
    put_box(p, x, y, side, side, paint.fill, side > 5);
    put_box(p, x + 0.5, y + side - stripe - 0.5, side - 1, stripe,
            weft__svg_colour((int)(sequence % WEFT__COLOURS)), false);
    if (label)
        put_text(p, x + side / 2, middle + (side >= NUMBERED ? -1 : 5), 13, paint.ink, label);
    if (side >= NUMBERED)
        put_text(p, x + side / 2, middle + (label ? 12 : 4), 10, paint.ink,
                 weft__short_number(number, p->values[token], 2));
    weft__svg_put(&p->svg, "</g>\n");
}

static void draw_cell(picture *p, double x, double y, double side, int64_t sequence, int64_t t)
{
    if (p->values) {
        draw_valued(p, x, y, side, sequence, t);
        return;
    }
    const char *label = label_that_fits(p, side, p->offset[sequence] + t);
    put_box(p, x, y, side, side, weft__svg_tint((int)(sequence % WEFT__COLOURS)), side > 5);
    weft__svg_text(&p->svg, x + side / 2, y + side / 2 + 4.5, "on-light", WEFT__MIDDLE, label);
}

static void draw_pad(picture *p, double x, double y, double side)
{
    weft__svg_put(
        &p->svg,
        "<rect class=\"pad\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"url(#hatch)\"%s/>\n",
        x, y, side, side, side > 5 ? " stroke=\"#dddddd\" stroke-width=\"0.5\"" : "");
}

/* ---- grids ---- */
static void draw_row(picture *p, double left, int64_t row, int64_t sequence, bool pads)
{
    double y = p->top + 16 + (double)row * p->side;
    if (p->side >= 10)
        weft__svg_textf(&p->svg, left - 6, y + p->side / 2 + 4, "small", WEFT__END, "%lld",
                        (long long)sequence);
    for (int64_t t = 0; t < p->longest; t++) {
        double x = left + (double)t * p->side;
        if (t < p->lengths.len[sequence])
            draw_cell(p, x, y, p->side, sequence, t);
        else if (pads)
            draw_pad(p, x, y, p->side);
    }
}

static void draw_padded(picture *p)
{
    int64_t cells = p->lengths.n * p->longest, pads = cells - p->tokens;
    double left = MARGIN + 34;
    weft__svg_textf(&p->svg, MARGIN, p->top, "head", WEFT__START,
                    "padded: %lld x %lld = %lld cells, %lld of them pads (%.0f %%)", (long long)p->lengths.n,
                    (long long)p->longest, (long long)cells, (long long)pads,
                    cells ? 100.0 * (double)pads / (double)cells : 0.0);
    for (int64_t i = 0; i < p->lengths.n; i++)
        draw_row(p, left, i, i, true);
}

static int64_t alive(const picture *p, int64_t t)                 /* batch_sizes[t]; sorted is descending */
{
    int64_t low = 0, high = p->lengths.n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (p->lengths.len[p->sorted[middle]] > t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void draw_staircase(picture *p)
{
    const long long cells = p->lengths.n * p->longest, tokens = p->tokens;
    double left = p->width / 2 + MARGIN + 4, bottom = p->top + 16 + (double)p->lengths.n * p->side;
    weft__svg_textf(&p->svg, left - 34, p->top, "head", WEFT__START,
                    "packed: %lld of %lld cells, %lld saved; the longest first", tokens, cells,
                    cells - tokens);
    for (int64_t i = 0; i < p->lengths.n; i++)
        draw_row(p, left, i, p->sorted[i], false);
    for (int64_t t = 0; p->side >= 16 && t < p->longest; t++)
        weft__svg_textf(&p->svg, left + ((double)t + 0.5) * p->side, bottom + 14, "small", WEFT__MIDDLE,
                        "%lld", (long long)alive(p, t));
    weft__svg_text(&p->svg, left, bottom + 30, "small", WEFT__START,
                   "batch_sizes: sequences that are still alive at each step");
}

/* ---- strips: cells as they lie in memory ---- */
/* marked: where the last mark's number ended */
typedef struct { int64_t at, per_line; double marked; } strip;

static double strip_line(const picture *p) { return p->strip + 30; }

static void draw_next(picture *p, strip *s, int64_t sequence, int64_t t, bool first)
{
    double x = MARGIN + (double)(s->at % s->per_line) * p->strip,
           y = p->y + (double)(s->at / s->per_line) * strip_line(p);
    bool begins = s->at % s->per_line == 0;      /* a line, which says where it goes on */
    if (begins)
        s->marked = 0;
    draw_cell(p, x, y, p->strip, sequence, t);
    if ((first || begins) && x >= s->marked) {
        if (first)
            weft__svg_line(&p->svg, x, y - 3, x, y + p->strip + 5, "mark");
        weft__svg_textf(&p->svg, x, y + p->strip + 15, "small", WEFT__MIDDLE, "%lld", (long long)s->at);
        s->marked = x + 24;
    }
    s->at++;
}

static strip begin_strip(picture *p, const char *head)
{
    int64_t per_line = (int64_t)((p->width - 2 * MARGIN + 0.5) / p->strip);
    weft__svg_text(&p->svg, MARGIN, p->y - 14, "head", WEFT__START, head);
    return (strip){ .per_line = per_line > 0 ? per_line : 1 };
}

static double strip_height(const picture *p, int64_t per_line)
{
    int64_t lines = (p->tokens + per_line - 1) / per_line;
    return (double)(lines ? lines : 1) * strip_line(p) + 40;
}

static void draw_packed(picture *p)
{
    strip s = begin_strip(p, "packed in memory: all first tokens, all second tokens, ..");
    for (int64_t t = 0; t < p->longest; t++)
        for (int64_t i = 0, n = alive(p, t); i < n; i++)
            draw_next(p, &s, p->sorted[i], t, i == 0);
    p->y += strip_height(p, s.per_line);
}

static void draw_concat(picture *p)
{
    strip s = begin_strip(p, "concatenated in memory: sequence by sequence, from cu_seqlens");
    for (int64_t i = 0; i < p->lengths.n; i++)
        for (int64_t t = 0; t < p->lengths.len[i]; t++)
            draw_next(p, &s, i, t, t == 0);
    p->y += strip_height(p, s.per_line);
}

/* ---- the layout `rows` ---- */
static double row_side(const picture *p)
{
    double room = p->width - 2 * MARGIN - 34, width = (double)(p->placed.at.width ? p->placed.at.width : 1);
    return fmax(2, fmin(p->values ? ROOMY : SIDE, room / width));
}

static void draw_rows(picture *p)
{
    const weft_placement *at = &p->placed.at;
    int64_t cells = at->rows * at->width;
    double side = row_side(p), left = MARGIN + 34;
    weft__svg_textf(&p->svg, MARGIN, p->y - 14, "head", WEFT__START,
                    "rows: %lld x %lld = %lld cells, %lld of them pads (%.0f %%)", (long long)at->rows,
                    (long long)at->width, (long long)cells, (long long)(cells - p->tokens),
                    cells ? 100.0 * (double)(cells - p->tokens) / (double)cells : 0.0);
    for (int64_t i = 0; i < cells; i++) {
        double x = left + (double)(i % at->width) * side, y = p->y + (double)(i / at->width) * side;
        int64_t sequence = p->placed.taken[i] - 1;
        if (sequence < 0)
            draw_pad(p, x, y, side);
        else
            draw_cell(p, x, y, side, sequence, i % at->width - at->column[sequence]);
        if (i % at->width == 0 && side >= 10)
            weft__svg_textf(&p->svg, left - 6, y + side / 2 + 4, "small", WEFT__END, "%lld",
                            (long long)(i / at->width));
    }
}

/* ---- the whole ---- */
static weft_status check_batch(const char *function, const weft_lengths *l)
{
    int64_t longest = 0;
    bool good = l && l->n >= 0 && l->n <= CELLS && (l->len || l->n == 0);
    for (int64_t i = 0; good && i < l->n; i++) {
        longest = l->len[i] > longest ? l->len[i] : longest;
        good = l->len[i] >= 0 && longest * l->n <= CELLS;
    }
    if (good)
        return WEFT_OK;
    return weft__file_fail(WEFT_EARG,
                           "%s: %s; lengths from 0 on and at most %d cells when padded are drawn", function,
                           l ? "these are others" : "lengths is NULL", (int)CELLS);
}

static weft_status draw(picture *p, const char *path, const char *title)
{
    scale(p);
    int64_t per_line = (int64_t)((p->width - 2 * MARGIN + 0.5) / p->strip);
    double rows = p->values ? (double)p->placed.at.rows * row_side(p) + 40 : 0;
    weft__svg_begin(&p->svg, path, title, p->width, p->y + 2 * strip_height(p, per_line) - 30 + rows);
    if (p->values)
        weft__scale_lying(&p->svg, &p->scale, MARGIN, 48, 240);
    draw_padded(p);
    draw_staircase(p);
    draw_packed(p);
    draw_concat(p);
    if (p->values)
        draw_rows(p);
    return weft__svg_end(&p->svg);
}

static void end_picture(picture *p)
{
    free(p->offset);
    free(p->sorted);
    weft__row_cells_end(&p->placed);
}

weft_status weft_plot_batch(const char *path, const char *title, const weft_lengths *lengths,
                            const char *const *labels)
{
    weft_status s = check_batch("weft_plot_batch", lengths);
    if (s)
        return s;
    picture p = { .lengths = *lengths, .labels = labels };
    s = measure_picture(&p) ? draw(&p, path, title) :
                              weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "a picture");
    end_picture(&p);
    return s;
}

static weft_status draw_values(picture *p, const char *path, const char *title,
                               const weft_colour_scale *given, const weft_placement *placement)
{
    static const double none = 0;
    if (!measure_picture(p))
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "a picture");
    if (p->tokens && !p->values)
        return weft__file_fail(WEFT_EARG,
                               "weft_plot_batch_values: values is NULL; one of each of %lld tokens "
                               "is expected",
                               (long long)p->tokens);
    if (!p->values)
        p->values = &none;
    weft_status s = weft__scale_of("weft_plot_batch_values", given, p->values, p->tokens, &p->scale);
    if (!s)
        s = weft__row_cells_of(&p->lengths, p->longest, placement, CELLS, &p->placed);
    return s ? s : draw(p, path, title);
}

weft_status weft_plot_batch_values(const char *path, const char *title, const weft_lengths *lengths,
                                   const char *const *labels, const double *values,
                                   const weft_colour_scale *scale_, const weft_placement *placement)
{
    weft_status s = check_batch("weft_plot_batch_values", lengths);
    if (s)
        return s;
    picture p = { .lengths = *lengths, .labels = labels, .values = values };
    s = draw_values(&p, path, title, scale_, placement);
    end_picture(&p);
    return s;
}
