/* layouts.c - draws one batch in four layouts, cell by cell, with the share of cells that are used. */
#include "tools/page/page.h"

enum { MOST = 16, LEFT = 10, TALLEST = 22, SIZES = 16 };

/* The batch to draw: pieces `id` of `len` tokens. */
typedef struct {
    int n;
    int32_t len[MOST];
    int64_t id[MOST], tokens, longest;
} batch;

static batch first_batch(const weft_plan *p)
{
    batch b = { 0 };
    for (int64_t i = 0; p->batches && i < p->batch->n && b.n < MOST; i++) {
        const weft_segment *s = p->segment + p->batch->first + i;
        b.len[b.n] = s->length;
        b.id[b.n++] = s->sequence;
        b.tokens += s->length;
        b.longest = s->length > b.longest ? s->length : b.longest;
    }
    return b;
}

/* ---- the layouts as plans ---- */
/* Plans one sequence in each row, in order or the longest first. */
static weft_status plan_whole(const batch *b, bool sorted, weft_plan *p)
{
    bool done[MOST] = { false };
    weft_status s = WEFT_OK;
    for (int row = 0; row < b->n && s == WEFT_OK; row++) {
        int next = -1;
        for (int i = 0; i < b->n; i++)
            if (!done[i] && (next < 0 || (sorted && b->len[i] > b->len[next])))
                next = i;
        done[next] = true;
        s = weft_plan_add(p, (weft_segment){ next, 0, 0, b->len[next], row, -1 });
    }
    return s == WEFT_OK ? weft_plan_end_batch(p, b->n, b->longest) : s;
}

static weft_status plan_by(const char *name, const weft_plan_opts *o, const batch *b, weft_plan *p)
{
    return weft_plan_make(weft_planner_named(name), b->len, b->n, o, p);
}

/* ---- drawing ---- */
typedef struct {
    page *p;
    const batch *b;
    const weft_plan *plan;
    double side, high; /* of a cell: square if there is room */
    bool pads;
} drawing;

/* Writes the number of a piece's sequence if it fits. */
static void put_number_of(const drawing *d, const weft_segment *s, double x, double y)
{
    char text[32];
    bool small = d->high < 12;
    int n = snprintf(text, sizeof text, "%lld", (long long)d->b->id[s->sequence]);
    if (n * (small ? 5 : 6.8) + 3 <= s->length * d->side)
        put(d->p, "<text class=\"h%d%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            (int)(s->sequence % PAGE_COLOURS), small ? " tiny" : "", x, y + d->high / 2 + (small ? 3 : 4),
            text);
}

/* Draws a piece with its corner at (left, top), with ticks between cells if they fit. */
static void put_piece(const drawing *d, const weft_segment *s, double left, double top)
{
    double x = left + (double)s->column * d->side, y = top + s->row * d->high;
    char class_[8];
    snprintf(class_, sizeof class_, "p%d", (int)(s->sequence % PAGE_COLOURS));
    weft__svg_box(&d->p->svg, x + .5, y + .5, fmax(.5, s->length * d->side - 1), d->high - 1, NULL, class_,
                  NULL);
    if (d->side >= 4 && s->length > 1) {
        put(d->p, "<path class=\"s%d\" d=\"", (int)(s->sequence % PAGE_COLOURS));
        for (int32_t t = 1; t < s->length; t++)
            put(d->p, "M%.1f %.1fv%.1f", x + t * d->side, y + 1, d->high - 2);
        put(d->p, "\"/>\n");
    }
    if (d->plan->in_rows && !s->offset) /* a state of zeros */
        put(d->p, "<path class=\"reset\" d=\"M%.1f %.1fv%.1f\"/>\n", x + 1.5, y, d->high);
    if (s->carry >= 0)
        put(d->p, "<path class=\"mark\" d=\"M%.1f %.1fh10m-4 -3l4 3l-4 3\"/>\n", x - 7, y + d->high / 2);
    put_number_of(d, s, x + (d->plan->in_rows ? 4 : 2), y);
}

static double line_height(const drawing *d) { return (double)d->plan->batch->rows * d->high + 8; }

/* Draws the batches (windows of slots) one after another, two in a line. */
static void put_batches(const drawing *d)
{
    for (int64_t k = 0; k < d->plan->batches; k++) {
        const weft_plan_batch *current = d->plan->batch + k;
        double left = LEFT + (double)(k % 2 * current->width) * d->side,
               top = 4 + (double)(k / 2) * line_height(d);
        if (d->pads)
            weft__svg_box(&d->p->svg, left, top, (double)current->width * d->side,
                          (double)current->rows * d->high, NULL, "pads", NULL);
        for (int64_t i = current->first; i < current->first + current->n; i++)
            if (d->plan->segment[i].length)
                put_piece(d, d->plan->segment + i, left, top);
    }
}

/* Prints the first batch_sizes, the live rows of each step. */
static void put_sizes(page *p, const weft_plan *plan)
{
    int64_t steps = 0;
    put(p, "; <code>batch_sizes</code>");
    for (int64_t k = 0; k < plan->batches && steps < SIZES; k++) {
        int64_t width = plan->batch[k].width, *sizes SCOPED = get_memory(width, sizeof *sizes);
        if (weft_plan_batch_sizes(plan, k, sizes, width) == WEFT_OK)
            for (int64_t t = 0; t < width && steps < SIZES; t++, steps++)
                put(p, " %lld", (long long)sizes[t]);
    }
}

static void put_pieces(page *p, const batch *b, const weft_plan *plan)
{
    begin_data(p, "batch,sequence,row,column,offset,length");
    for (int64_t k = 0; k < plan->batches; k++)
        for (int64_t i = plan->batch[k].first; i < plan->batch[k].first + plan->batch[k].n; i++) {
            const weft_segment *s = plan->segment + i;
            put(p, ";%lld,%lld,%lld,%lld,%lld,%lld", (long long)k, (long long)b->id[s->sequence],
                (long long)s->row, (long long)s->column, (long long)s->offset, (long long)s->length);
        }
    end_data(p);
}

static void put_layout(page *p, const batch *b, const weft_plan *plan, bool packed, const char *name,
                       const char *words)
{
    int64_t cells = 0, steps = 0, padded = b->n * b->longest;
    for (int64_t k = 0; k < plan->batches; k++) {
        const weft_plan_batch *current = plan->batch + k;
        cells += current->rows * current->width;
        steps += current->width;
    }
    cells = packed ? b->tokens : cells;
    int64_t across = b->longest + (b->longest & 1), lines = (plan->batches + 1) / 2; /* two windows */
    double side = fmin(TALLEST, (CHART_WIDTH - 2. * LEFT) / (double)across);
    drawing d = { p, b, plan, side, fmax(9, side), !packed };
    char description[400];
    snprintf(description, sizeof description, "%lld tokens in %lld cells and %lld steps. %s",
             (long long)b->tokens, (long long)cells, (long long)steps, words);
    begin_image(p, plan->batches ? (double)lines * line_height(&d) : 8, name, description);
    if (plan->batches)
        put_batches(&d);
    end_image(p);
    put_pieces(p, b, plan);
    int64_t saved = padded - cells;
    put(p, "<strong>%s</strong>: %lld tokens in %lld cells, %lld of %lld (%.1f %%) %s; %lld steps", name,
        (long long)b->tokens, (long long)cells, (long long)(saved < 0 ? -saved : saved), (long long)padded,
        padded ? 100. * fabs((double)saved) / (double)padded : 0, saved < 0 ? "more" : "saved",
        (long long)steps);
    put_sizes(p, plan);
    put(p, "%s. %s", steps > SIZES ? " and so on" : "", words);
    end_figure(p);
}

static void put_four(page *p, const batch *b)
{
    int64_t window = b->longest > 1 ? (b->longest + 1) / 2 : 1;
    PLAN padded = { 0 }, packed = { 0 }, rows = { 0 }, slots = { 0 };
    if (plan_whole(b, false, &padded) == WEFT_OK && plan_whole(b, true, &packed) == WEFT_OK &&
        plan_by("fold", NULL, b, &rows) == WEFT_OK &&
        plan_by("streams", &(weft_plan_opts){ .slots = (b->n + 1) / 2, .window = window }, b, &slots) ==
            WEFT_OK) {
        put(p, "<div class=\"figures wide\">\n");
        put_layout(p, b, &padded, false, "Padded", "One sequence in each row. Padding is hatched.");
        put_layout(p, b, &packed, true, "Packed",
                   "Longest first. A step computes only the rows that still have tokens. The number of "
                   "steps is the same as padded.");
        put_layout(p, b, &rows, false, "Rows",
                   "Several sequences in each row. A thick tick marks a reset of the state to zeros.");
        put_layout(p, b, &slots, false, "Slots",
                   "Windows run one after another. An arrow marks a carried state, a thick tick a reset "
                   "to zeros.");
        put(p, "</div>\n");
    } else
        put_between(p, "<p>The layouts cannot be drawn: ", weft_plan_message(), "</p>\n");
}

void put_layouts(page *p)
{
    const weft_plan *plan = p->lab->plans ? &p->lab->plan->made->plan : NULL;
    batch b = plan ? first_batch(plan) : (batch){ 0 };
    if (!b.tokens) {
        put_missing(p, "No layouts: the first batch of the first plan has no token");
        return;
    }
    put(p, "<p>%s %d pieces of the first batch of plan ",
        plan->batch->n > b.n ? "A sample: the first" : "All", b.n);
    put_plan(p, 0);
    put(p, ". A piece has the same colour and, if it fits, its number in every layout. A padded layer "
           "computes every cell, with one step for each column.</p>\n");
    put_four(p, &b);
}
