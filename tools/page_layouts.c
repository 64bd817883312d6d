/* page_layouts.c - of the page: one batch in four layouts, cell by cell, "45 of 64". */
#include <stdlib.h>
#include <string.h>
#include "tools/page.h"

enum { MOST = 16, LEFT = 30, TALLEST = 18, SIZES = 16 };

/* The batch that is drawn: pieces `id` of `len` tokens. */
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
        b.len[b.n] = s->length, b.id[b.n++] = s->sequence;
        b.tokens += s->length, b.longest = s->length > b.longest ? s->length : b.longest;
    }
    return b;
}

/* ---- the layouts as plans ---- */
/* A sequence a row: as they come, or the longest first. */
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
    double side;
    bool pads;
} drawing;

/* From column `at` of the picture on; the ticks between cells where there is room for them. */
static void put_piece(const drawing *d, const weft_segment *s, double at)
{
    double x = LEFT + (at + (double)s->column) * d->side, y = 4 + s->row * d->side;
    put(d->p, "<rect class=\"p%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
        (int)(s->sequence % PAGE_COLOURS), x + .5, y + .5, s->length * d->side - 1, d->side - 1);
    if (d->side >= 4 && s->length > 1) {
        put(d->p, "<path class=\"s%d\" d=\"", (int)(s->sequence % PAGE_COLOURS));
        for (int32_t t = 1; t < s->length; t++)
            put(d->p, "M%.1f %.1fv%.1f", x + t * d->side, y + 1, d->side - 2);
        put(d->p, "\"/>\n");
    }
    if (d->plan->in_rows && !s->offset) /* a state of zeros */
        put(d->p, "<path class=\"mark\" stroke-width=\"3\" d=\"M%.1f %.1fv%.1f\"/>\n", x + 1, y, d->side);
    if (s->carry >= 0)
        put(d->p, "<path class=\"mark\" d=\"M%.1f %.1fh%.1fm-3 -3l3 3l-3 3\"/>\n", x - d->side * .4,
            y + d->side / 2, d->side * .8);
    if (d->side >= 13)
        put_label(d->p, x + d->side / 2 + (d->plan->in_rows ? 1 : 0), y + d->side / 2 + 4, "middle", "%lld",
                  (long long)d->b->id[s->sequence]);
}

static void put_batches(const drawing *d)
{
    double at = 0;
    for (int64_t k = 0; k < d->plan->batches; k++) {
        const weft_plan_batch *is = d->plan->batch + k;
        if (d->pads)
            put(d->p, "<rect class=\"pads\" x=\"%.1f\" y=\"4\" width=\"%.1f\" height=\"%.1f\"/>\n",
                LEFT + at * d->side, (double)is->width * d->side, (double)is->rows * d->side);
        for (int64_t i = is->first; i < is->first + is->n; i++)
            if (d->plan->segment[i].length)
                put_piece(d, d->plan->segment + i, at);
        at += (double)is->width;
    }
    for (int r = 0; d->side >= 9 && r < d->plan->batch->rows; r++)
        put_label(d->p, LEFT - 5, 4 + (r + .5) * d->side + 4, "end", "%d", r);
}

/* batch_sizes: live rows of each step, the first of them. */
static void put_sizes(page *p, const weft_plan *plan)
{
    int64_t steps = 0;
    put(p, "; <code>batch_sizes</code>");
    for (int64_t k = 0; k < plan->batches && steps < SIZES; k++) {
        int64_t width = plan->batch[k].width, *sizes = malloc(((size_t)width + 1) * sizeof *sizes);
        if (sizes && weft_plan_batch_sizes(plan, k, sizes, width) == WEFT_OK)
            for (int64_t t = 0; t < width && steps < SIZES; t++, steps++)
                put(p, " %lld", (long long)sizes[t]);
        free(sizes);
    }
}

static void put_layout(page *p, const batch *b, const weft_plan *plan, bool packed, const char *name,
                       const char *words)
{
    int64_t cells = 0, steps = 0, rows = 1, padded = b->n * b->longest;
    for (int64_t k = 0; k < plan->batches; k++) {
        const weft_plan_batch *is = plan->batch + k;
        cells += is->rows * is->width, steps += is->width, rows = is->rows > rows ? is->rows : rows;
    }
    cells = packed ? b->tokens : cells;
    drawing d = { p, b, plan, fmin(TALLEST, (double)(CHART_WIDTH - LEFT - 4) / (double)(steps ? steps : 1)),
                  !packed };
    begin_image(p, 8 + (double)rows * d.side, name, "%lld tokens in %lld cells and %lld steps. %s",
                (long long)b->tokens, (long long)cells, (long long)steps, words);
    if (plan->batches)
        put_batches(&d);
    end_image(p);
    put(p, "<strong>%s</strong>: %lld tokens in %lld cells, saved %lld of %lld (%.1f %%); %lld steps", name,
        (long long)b->tokens, (long long)cells, (long long)(padded - cells), (long long)padded,
        padded ? 100. * (double)(padded - cells) / (double)padded : 0, (long long)steps);
    put_sizes(p, plan);
    put(p, "%s. %s", steps > SIZES ? " .." : "", words);
    end_figure(p);
}

static void put_four(page *p, const batch *b)
{
    int64_t window = b->longest > 1 ? (b->longest + 1) / 2 : 1;
    weft_plan padded = { 0 }, packed = { 0 }, rows = { 0 }, slots = { 0 };
    if (plan_whole(b, false, &padded) == WEFT_OK && plan_whole(b, true, &packed) == WEFT_OK &&
        plan_by("fold", NULL, b, &rows) == WEFT_OK &&
        plan_by("streams", &(weft_plan_opts){ .slots = (b->n + 1) / 2, .window = window }, b, &slots) ==
            WEFT_OK) {
        begin_figures(p);
        put_layout(p, b, &padded, false, "Padded", "A sequence a row; pads are hatched.");
        put_layout(p, b, &packed, true, "Packed",
                   "The longest first; a step has the rows that are still live. It saves "
                   "no step.");
        put_layout(p, b, &rows, false, "Rows",
                   "Several sequences a row; a thick tick sets the state to zeros.");
        put_layout(p, b, &slots, false, "Slots",
                   "Windows one after another; an arrow carries the state on, a thick tick "
                   "sets it to zeros.");
        end_figures(p);
    } else {
        put(p, "<p>These cannot be drawn: ");
        put_text(p, weft_plan_message());
        put(p, "</p>\n");
    }
    weft_plan_free(&padded), weft_plan_free(&packed), weft_plan_free(&rows), weft_plan_free(&slots);
}

void put_layouts(page *p)
{
    const weft_plan *plan = p->lab->plans ? &p->lab->plan->made->plan : NULL;
    batch b = plan ? first_batch(plan) : (batch){ 0 };
    if (!b.tokens) {
        put_missing(p, "The first plan has no first batch with a token, so there is nothing to draw.");
        return;
    }
    put(p, "<p>%s %d pieces of the first batch of plan ",
        plan->batch->n > b.n ? "A sample: the first" : "All", b.n);
    put_plan(p, 0);
    put(p, ". Each has its colour and, where there is room, its number in every layout. A padded layer works "
           "on every "
           "cell, at as many steps as there are columns.</p>\n");
    put_four(p, &b);
}
