/* corpus.c - writes the section of the page on lengths of sequences. */
#include <stdlib.h>
#include <string.h>
#include "tools/page/page.h"

enum { BINS = 64, MARKS = 6 };
typedef struct {
    int64_t n, tokens, empty, longest, median, p99, edge[BINS + 1], count[BINS];
    int bins;
    double mean, sd;
} counted;

/* Edges grow by at least a fifth, so bars have similar widths on a logarithmic axis. */
static void set_edges(counted *c)
{
    double factor = fmax(1.2, pow((double)c->longest + 1, 1. / (BINS - 8)));
    for (c->edge[0] = 1; c->edge[c->bins] <= c->longest && c->bins < BINS; c->bins++) {
        int64_t next = (int64_t)((double)c->edge[c->bins] * factor);
        c->edge[c->bins + 1] = next > c->edge[c->bins] ? next : c->edge[c->bins] + 1;
    }
    c->edge[c->bins] = c->edge[c->bins] > c->longest ? c->edge[c->bins] : c->longest + 1;
}

static counted count_lengths(const lab *l)
{
    counted c = { 0 };
    SCOPED int32_t *sorted = get_memory(l->n, sizeof *sorted);
    if (l->n) /* memcpy from NULL is not allowed */
        memcpy(sorted, l->len, (size_t)l->n * sizeof *sorted);
    qsort(sorted, (size_t)l->n, sizeof *sorted, by_length);
    c.n = l->n;
    c.longest = l->n ? sorted[l->n - 1] : 0;
    c.median = l->n ? sorted[(l->n - 1) / 2] : 0;
    c.p99 = l->n ? sorted[(l->n - 1) * 99 / 100] : 0;
    set_edges(&c);
    for (int64_t i = 0, bin = 0; i < l->n; i++) {
        c.tokens += sorted[i];
        c.empty += !sorted[i];
        while (bin < c.bins && sorted[i] >= c.edge[bin + 1])
            bin++;
        if (sorted[i] && bin < c.bins)
            c.count[bin]++;
    }
    c.mean = l->n ? (double)c.tokens / (double)l->n : 0;
    for (int64_t i = 0; i < l->n; i++)
        c.sd += (sorted[i] - c.mean) * (sorted[i] - c.mean);
    c.sd = l->n ? sqrt(c.sd / (double)l->n) : 0;
    return c;
}

static int capacities(const lab *l, int64_t *mark)
{
    int n = 0;
    for (int i = 0; i < l->plans && n < MARKS; i++) {
        int64_t capacity = l->plan[i].made->opts.capacity;
        bool known = !capacity;
        for (int k = 0; k < n; k++)
            known = known || mark[k] == capacity;
        if (!known)
            mark[n++] = capacity;
    }
    return n;
}

/* A vertical line from the axis to the height of the tallest bar. */
typedef struct {
    char name[40];
    double x[2], y[2];
} mark;

static weft_curve mark_at(mark *m, const char *name, double value, double top)
{
    *m = (mark){ .x = { value, value }, .y = { 0, top } };
    snprintf(m->name, sizeof m->name, "%s %.4g", name, value);
    return (weft_curve){ .name = m->name, .n = 2, .x = m->x, .y = m->y };
}

static void draw_histogram(page *p, const counted *c)
{
    page_bars bars = { .n = 0 };
    double top = 0;
    int64_t capacity[MARKS];
    mark marks[MARKS + 1];
    weft_curve curves[MARKS + 3];
    int n = 0, capacities_ = capacities(p->lab, capacity);
    for (int i = 0; i < c->bins; i++) {
        add_bar(&bars, (double)c->edge[i], (double)c->edge[i + 1], (double)c->count[i]);
        top = fmax(top, (double)c->count[i]);
    }
    curves[n++] = curve_of_bars(&bars, false);
    curves[n++] = curve_of_bars(&bars, true);
    if (c->mean >= 1)
        curves[n++] = mark_at(marks + MARKS, "mean", c->mean, top);
    for (int i = 0; i < capacities_; i++)
        curves[n++] = mark_at(marks + i, "capacity", (double)capacity[i], top);
    put_chart(
        p, CHART_HEIGHT, "Histogram of lengths",
        &(weft_chart){
            .x_label = "length in tokens", .left = "sequences", .x_base = 10, .curves = curves, .n = n },
        "Histogram over a logarithmic axis of length. Mean %.1f, maximum %lld tokens.", c->mean,
        (long long)c->longest);
    put(p, "Number of sequences by length, in bars of about equal width on a logarithmic axis. Lines: "
           "the mean, and the capacities of the plans.");
    end_figure(p);
}

void draw_lengths(page *p)
{
    const counted c = count_lengths(p->lab);
    if (c.longest)
        draw_histogram(p, &c);
}

static void fill_lengths(const lab *l, int i, page_row *row)
{
    const counted c = count_lengths(l);
    (void)i;
    SET_ROW(row, l->corpus, CELL("sequences", c.n, 0, 0), CELL("empty", c.empty, 0, 0),
            CELL("tokens", c.tokens, 0, 0), CELL("mean", c.mean, 0, 2), CELL("sd", c.sd, 0, 2),
            CELL("median", c.median, 0, 0), CELL("99 %", c.p99, 0, 0), CELL("longest", c.longest, 0, 0));
}

void put_lengths(page *p)
{
    const counted c = count_lengths(p->lab);
    put_table(p, "Lengths in tokens. sd: standard deviation. 99 %: the 99th percentile.", "corpus", 1,
              fill_lengths, NULL);
    if (c.longest) {
        put(p, "<div class=\"figures\">\n");
        draw_histogram(p, &c);
        put(p, "</div>\n");
    } else
        put_missing(p, "No sequence has a token, so there is no histogram");
}
