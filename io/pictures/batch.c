/* batch.c - draws a ragged batch in its layouts: padded as a grid with hatched padding, packed as the
 * staircase that PyTorch calls batch_sizes and in the order of memory, concatenated in the order of memory.
 *
 * A sequence has one colour everywhere. With values for tokens, a cell has the colour of its value and a
 * stripe in its sequence's colour, and the rows of a placement come last. */
#include <stdlib.h>
#include "io/pictures/scale.h"
#include "plan/plan.h"

enum { CELLS = 100000 };
/* Pixels: GRID, TALL of a grid at most; SIDE, ROOMY of a cell without and with a number; NUMBERED of a cell
 * that has room for its number. */
static const double MARGIN = 30, GRID = 520, TALL = 620, SIDE = 26, ROOMY = 40, HEAD = 76, NUMBERED = 30;

typedef struct {
    weft__svg svg;
    weft_lengths lengths;
    const char *const *labels;                   /* of the tokens, concatenated; or NULL */
    int64_t longest, tokens;
    int64_t *offset;                             /* [n + 1] */
    int32_t *sorted;                             /* [n] longest first; ties in the user's order */
    double side, width, strip;  /* side of a grid's cell; width of the picture; side of a strip's cell */
    double top, y;                               /* y of the grids, of the next strip */
    const double *values;                        /* of the tokens, concatenated; or NULL */
    weft__scale scale;
    weft_placement placed;
    int32_t *taken;                              /* [rows, width] 1 + the sequence in a cell; 0: padding */
} picture;

static const char function[] = "weft_plot_batch";

static weft_status no_memory(void) { return weft__file_fail(WEFT_ENOMEM, "%s: out of memory", function); }

/* ---- the batch ---- */
static weft_status measure(picture *p)
{
    int64_t n = p->lengths.n;
    p->offset = calloc((size_t)n + 1, sizeof *p->offset);
    p->sorted = weft__plan_sorted(&(weft_plan_opts){ 0 }, p->lengths.len, n, true); /* belongs to the open
                                                                                     * scope */
    if (!p->offset || !p->sorted)
        return no_memory();
    for (int64_t i = 0; i < n; i++)
        p->offset[i + 1] = p->offset[i] + p->lengths.len[i];
    p->longest = weft__plan_longest(p->lengths.len, n);
    p->tokens = p->offset[n];
    return WEFT_OK;
}

static void choose_sizes(picture *p)
{
    double wide = GRID / fmax(1, (double)p->longest), high = TALL / fmax(1, (double)p->lengths.n);
    p->side = fmax(2, fmin(p->values ? ROOMY : SIDE, fmin(wide, high)));
    p->width = fmax(900, 2 * (MARGIN + 34 + (double)p->longest * p->side) + MARGIN);
    double room = p->width - 2 * MARGIN, tokens = fmax(1, (double)p->tokens);
    p->strip = fmin(SIDE, room / tokens);
    if (p->strip < 15)                           /* several lines */
        p->strip = tokens * 15 / room <= 6 ? 15 : fmax(3, fmin(15, sqrt(room * 90 / tokens)));
    p->top = p->values ? HEAD + 46 : HEAD;
    p->y = p->top + 16 + (double)p->lengths.n * p->side + 78;
}

/* ---- the placement in rows ---- */
static weft_status first_fit(picture *p)
{
    int64_t n = p->lengths.n;
    p->placed = (weft_placement){ .width = p->longest };
    int32_t *found = weft__plan_memory(2 * n, sizeof *found);
    if (!found)
        return no_memory();
    p->placed.row = found;
    p->placed.column = found + n;
    weft_status s = WEFT_OK;
    if (p->longest)
        s = weft_first_fit(&p->lengths, p->longest, found, found + n, &p->placed.rows);
    return s ? weft__file_fail(s, "%s: %s", function, weft_plan_message()) : WEFT_OK;
}

/* Marks the cells of a sequence. Returns false if a cell is taken or outside the placement. */
static bool take(picture *p, int64_t sequence)
{
    int64_t row = p->placed.row[sequence], column = p->placed.column[sequence],
            len = p->lengths.len[sequence];
    if (row < 0 || row >= p->placed.rows || column < 0 || column + len > p->placed.width)
        return false;
    int32_t *cell = p->taken + row * p->placed.width + column;
    for (int64_t t = 0; t < len; t++) {
        if (cell[t])
            return false;
        cell[t] = (int32_t)sequence + 1;
    }
    return true;
}

static weft_status place(picture *p, const weft_placement *given)
{
    p->placed = given ? *given : (weft_placement){ 0 };
    weft_status s = given ? WEFT_OK : first_fit(p);
    if (s)
        return s;
    const weft_placement *placed = &p->placed;
    if (placed->rows < 0 || placed->width < 0 || (placed->width && placed->rows > CELLS / placed->width) ||
        (p->lengths.n && !(placed->row && placed->column)))
        return weft__file_fail(WEFT_EARG,
                               "%s: a placement of %lld rows of %lld columns; expected row and column of "
                               "each sequence, and at most %d cells",
                               function, (long long)placed->rows, (long long)placed->width, (int)CELLS);
    p->taken = calloc((size_t)(placed->rows * placed->width) + 1, sizeof *p->taken);
    if (!p->taken)
        return no_memory();
    for (int64_t i = 0; i < p->lengths.n; i++)
        if (p->lengths.len[i] && !take(p, i))
            return weft__file_fail(WEFT_EARG,
                                   "%s: placement: sequence %lld has %d tokens, in row %d from column %d "
                                   "on; expected %lld rows of %lld columns, and no cell for two sequences",
                                   function, (long long)i, (int)p->lengths.len[i], (int)placed->row[i],
                                   (int)placed->column[i], (long long)placed->rows, (long long)placed->width);
    return WEFT_OK;
}

/* ---- cells ---- */
/* Returns the height of the stripe in the sequence's colour, at the lower edge of its cells. */
static double thickness(double side) { return fmax(side < 8 ? 1 : 2, side / 9); }

static void draw_stripe(picture *p, double x, double y, double side, int64_t cells, int64_t sequence)
{
    double thick = thickness(side);
    if (p->values && cells)
        weft__svg_box(&p->svg, x + 0.5, y + side - thick - 0.5, (double)cells * side - 1, thick,
                      weft__svg_colour((int)(sequence % WEFT__COLOURS)), NULL, NULL);
}

/* Draws a cell in the colour of its value; numbers only in the first grid, with `numbered`. */
static void draw_valued(picture *p, double x, double y, double side, int64_t sequence, int64_t t,
                        const char *label, bool numbered)
{
    double value = p->values[p->offset[sequence] + t], middle = y + (side - thickness(side)) / 2;
    const char *name = p->labels ? p->labels[p->offset[sequence] + t] : NULL;
    char number[WEFT__SHORT], tip[200];
    weft__paint paint = weft__scale_paint(&p->scale, value);
    numbered = numbered && side >= NUMBERED;
    snprintf(tip, sizeof tip, isfinite(value) ? "sequence %lld, token %lld%s%.99s: %.4g" :
                                                "sequence %lld, token %lld%s%.99s: not finite",
             (long long)sequence, (long long)t, name ? ", " : "", name ? name : "", value + 0.0);
    weft__svg_box(&p->svg, x, y, side, side, paint.fill, side > 5 ? "gap" : NULL, tip);
    if (label)
        weft__svg_text_coloured(&p->svg, x + side / 2, middle + (numbered ? -1 : 5), "label", paint.ink,
                                label);
    if (numbered)
        weft__svg_text_coloured(&p->svg, x + side / 2, middle + (label ? 12 : 4), "small label", paint.ink,
                                weft__short_number(number, value, 2));
}

static void draw_cell(picture *p, double x, double y, double side, int64_t sequence, int64_t t, bool numbered)
{
    const char *label = p->labels ? p->labels[p->offset[sequence] + t] : NULL;
    if (label && (side < 12 || weft__utf8_length(label) * 7.5 >= side + 1))
        label = NULL;
    if (p->values) {
        draw_valued(p, x, y, side, sequence, t, label, numbered);
        return;
    }
    char class_[16];
    snprintf(class_, sizeof class_, "t%d%s", (int)(sequence % WEFT__COLOURS), side > 5 ? " gap" : "");
    weft__svg_box(&p->svg, x, y, side, side, NULL, class_, NULL);
    weft__svg_text(&p->svg, x + side / 2, y + side / 2 + 4.5, "token", WEFT__START, label);
}

static void draw_row_number(picture *p, double left, double y, double side, int64_t number)
{
    if (side >= 10)
        weft__svg_textf(&p->svg, left - 6, y + side / 2 + 4, "small", WEFT__END, "%lld", (long long)number);
}

/* ---- grids ---- */
static void draw_row(picture *p, double left, int64_t row, int64_t sequence, bool padded)
{
    double y = p->top + 16 + (double)row * p->side;
    draw_row_number(p, left, y, p->side, sequence);
    for (int64_t t = 0; t < p->longest; t++) {
        double x = left + (double)t * p->side;
        if (t < p->lengths.len[sequence])
            draw_cell(p, x, y, p->side, sequence, t, padded);
        else if (padded)
            weft__svg_box(&p->svg, x, y, p->side, p->side, NULL, "pad", NULL);
    }
    draw_stripe(p, left, y, p->side, p->lengths.len[sequence], sequence);
}

/* "padded: 3 x 4 = 12 cells, 5 of them pads (42 %)" */
static void draw_head(picture *p, double y, const char *name, int64_t rows, int64_t columns)
{
    int64_t cells = rows * columns, pads = cells - p->tokens;
    weft__svg_textf(&p->svg, MARGIN, y, "head", WEFT__START,
                    "%s: %lld x %lld = %lld cells, %lld of them pads (%.0f %%)", name, (long long)rows,
                    (long long)columns, (long long)cells, (long long)pads,
                    cells ? 100.0 * (double)pads / (double)cells : 0.0);
}

/* Returns the number of sequences longer than t. */
static int64_t batch_size(const picture *p, int64_t t)
{
    int64_t size = 0;
    for (int64_t i = 0; i < p->lengths.n; i++)
        size += p->lengths.len[i] > t;
    return size;
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
        weft__svg_textf(&p->svg, left + ((double)t + 0.5) * p->side, bottom + 14, "small label", WEFT__START,
                        "%lld", (long long)batch_size(p, t));
    weft__svg_text(&p->svg, left, bottom + 30, "small", WEFT__START,
                   "batch_sizes: sequences that are still alive at each step");
}

/* ---- strips: cells in the order of memory ---- */
/* marked: x where the last mark's number ended */
typedef struct {
    int64_t at, per_line;
    double marked;
} strip;

static double strip_line(const picture *p) { return p->strip + 30; }

static int64_t per_line(const picture *p)
{
    return (int64_t)fmax(1, (p->width - 2 * MARGIN + 0.5) / p->strip);
}

static double strip_height(const picture *p)
{
    int64_t lines = (p->tokens + per_line(p) - 1) / per_line(p);
    return (double)(lines ? lines : 1) * strip_line(p) + 40;
}

static void draw_next(picture *p, strip *s, int64_t sequence, int64_t t, bool first)
{
    double x = MARGIN + (double)(s->at % s->per_line) * p->strip,
           y = p->y + (double)(s->at / s->per_line) * strip_line(p);
    bool begins = s->at % s->per_line == 0;      /* a line begins with the number of its first cell */
    if (begins)
        s->marked = 0;
    draw_cell(p, x, y, p->strip, sequence, t, false);
    draw_stripe(p, x, y, p->strip, 1, sequence);
    if ((first || begins) && x >= s->marked) {
        if (first)
            weft__svg_line(&p->svg, x, y - 3, x, y + p->strip + 5, "mark");
        weft__svg_textf(&p->svg, x, y + p->strip + 15, "small label", WEFT__START, "%lld", (long long)s->at);
        s->marked = x + 24;
    }
    s->at++;
}

/* Draws the tokens in the order of memory; packed: step by step. */
static void draw_strip(picture *p, bool packed, const char *head)
{
    strip s = { .per_line = per_line(p) };
    weft__svg_text(&p->svg, MARGIN, p->y - 14, "head", WEFT__START, head);
    for (int64_t t = 0; packed && t < p->longest; t++)
        for (int64_t i = 0, n = batch_size(p, t); i < n; i++)
            draw_next(p, &s, p->sorted[i], t, i == 0);
    for (int64_t i = 0; !packed && i < p->lengths.n; i++)
        for (int64_t t = 0; t < p->lengths.len[i]; t++)
            draw_next(p, &s, i, t, t == 0);
    p->y += strip_height(p);
}

/* ---- the layout `rows` ---- */
static double row_side(const picture *p)
{
    return fmax(2, fmin(SIDE, (p->width - 2 * MARGIN - 34) / fmax(1, (double)p->placed.width)));
}

static void draw_rows(picture *p)
{
    const weft_placement *placed = &p->placed;
    double side = row_side(p), left = MARGIN + 34;
    draw_head(p, p->y - 14, "rows", placed->rows, placed->width);
    for (int64_t i = 0; i < placed->rows * placed->width; i++) {
        double x = left + (double)(i % placed->width) * side, y = p->y + (double)(i / placed->width) * side;
        int64_t sequence = p->taken[i] - 1;
        if (sequence < 0)
            weft__svg_box(&p->svg, x, y, side, side, NULL, "pad", NULL);
        else
            draw_cell(p, x, y, side, sequence, i % placed->width - placed->column[sequence], false);
        if (i % placed->width == 0)
            draw_row_number(p, left, y, side, i / placed->width);
    }
    for (int64_t i = 0; i < p->lengths.n; i++)
        if (p->lengths.len[i])
            draw_stripe(p, left + placed->column[i] * side, p->y + placed->row[i] * side, side,
                        p->lengths.len[i], i);
}

/* ---- the whole ---- */
static weft_status check_batch(const weft_lengths *l)
{
    int64_t longest = 0;
    bool ok = l && l->n >= 0 && l->n <= CELLS && (l->len || l->n == 0);
    for (int64_t i = 0; ok && i < l->n; i++) {
        longest = l->len[i] > longest ? l->len[i] : longest;
        ok = l->len[i] >= 0 && longest * l->n <= CELLS;
    }
    if (ok)
        return WEFT_OK;
    return weft__file_fail(
        WEFT_EARG, "%s: %s; expected lengths of 0 or more, and at most %d cells after padding", function,
        l ? "lengths are negative, missing or too large" : "lengths is NULL", (int)CELLS);
}

/* Without values a cell has a class for the tint of its sequence. */
static void draw_tints(picture *p)
{
    weft__svg_put(&p->svg, "<style>.token { font-size: 13px; fill: #111111; text-anchor: middle }");
    for (int i = 0; i < WEFT__COLOURS; i++)
        weft__svg_put(&p->svg, " .t%d { fill: %s }", i, weft__svg_tint(i));
    weft__svg_put(&p->svg, "\n@media (prefers-color-scheme: dark) { .token { fill: #111111 } }</style>\n");
}

static weft_status draw(picture *p, const char *path, const char *title)
{
    choose_sizes(p);
    double rows = p->values ? (double)p->placed.rows * row_side(p) + 40 : 0;
    weft__svg_begin(&p->svg, path, title, p->width, p->y + 2 * strip_height(p) - 30 + rows);
    if (p->values)
        weft__scale_bar(&p->svg, &p->scale, MARGIN, 48, 240, false);
    else
        draw_tints(p);
    draw_head(p, p->top, "padded", p->lengths.n, p->longest);
    for (int64_t i = 0; i < p->lengths.n; i++)
        draw_row(p, MARGIN + 34, i, i, true);
    draw_staircase(p);
    draw_strip(p, true, "packed in memory: all first tokens, all second tokens, ..");
    draw_strip(p, false, "concatenated in memory: sequence by sequence, from cu_seqlens");
    if (p->values)
        draw_rows(p);
    return weft__svg_end(&p->svg);
}

weft_status weft_plot_batch(const char *path, const char *title, const weft_lengths *lengths,
                            const char *const *labels, const double *values, const weft_colour_scale *scale,
                            const weft_placement *placement)
{
    weft_status s = check_batch(lengths);
    if (s)
        return s;
    picture p = { .lengths = *lengths, .labels = labels, .values = values };
    WEFT__PLAN_SCOPE;
    s = measure(&p);
    if (!s && values)
        s = weft__scale_of(function, scale, values, p.tokens, &p.scale);
    if (!s && values)
        s = place(&p, placement);
    if (!s)
        s = draw(&p, path, title);
    free(p.offset);
    free(p.taken);
    return s;
}
