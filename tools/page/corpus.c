/* corpus.c - of the page: how long the sequences are. */
#include <stdlib.h>
#include <string.h>
#include "tools/page/page.h"

enum { BINS = 64, MARKS = 6 };
typedef struct {
    int64_t n, tokens, empty, longest, median, p99, edge[BINS + 1], count[BINS];
    int bins;
    double mean, sd;
} counted;

static int by_length(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Edges grow by a fifth at least, so that a logarithmic axis has bars of much the same width. */
static void set_edges(counted *c)
{
    double factor = fmax(1.2, pow((double)c->longest + 1, 1. / (BINS - 8)));
    for (c->edge[0] = 1; c->edge[c->bins] <= c->longest && c->bins < BINS; c->bins++) {
        int64_t next = (int64_t)((double)c->edge[c->bins] * factor);
        c->edge[c->bins + 1] = next > c->edge[c->bins] ? next : c->edge[c->bins] + 1;
    }
    c->edge[c->bins] = c->edge[c->bins] > c->longest ? c->edge[c->bins] : c->longest + 1;
}

static bool count_lengths(const lab *l, counted *c)
{
    int32_t *sorted = malloc(((size_t)l->n + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    if (l->n) /* memcpy from NULL is not allowed */
        memcpy(sorted, l->len, (size_t)l->n * sizeof *sorted);
    qsort(sorted, (size_t)l->n, sizeof *sorted, by_length);
    c->n = l->n;
    c->longest = l->n ? sorted[l->n - 1] : 0;
    c->median = l->n ? sorted[(l->n - 1) / 2] : 0;
    c->p99 = l->n ? sorted[(l->n - 1) * 99 / 100] : 0;
    set_edges(c);
    for (int64_t i = 0, bin = 0; i < l->n; i++) {
        c->tokens += sorted[i];
        c->empty += !sorted[i];
        while (bin < c->bins && sorted[i] >= c->edge[bin + 1])
            bin++;
        if (sorted[i] && bin < c->bins)
            c->count[bin]++;
    }
    c->mean = l->n ? (double)c->tokens / (double)l->n : 0;
    for (int64_t i = 0; i < l->n; i++)
        c->sd += (sorted[i] - c->mean) * (sorted[i] - c->mean);
    c->sd = l->n ? sqrt(c->sd / (double)l->n) : 0;
    free(sorted);
    return true;
}

/* The capacities of plans, each once. */
static int capacities(const lab *l, int64_t *mark)
{
    int n = 0;
    for (int i = 0; i < l->plans && n < MARKS; i++) {
        int64_t is = l->plan[i].made->opts.capacity;
        bool known = !is;
        for (int k = 0; k < n; k++)
            known = known || mark[k] == is;
        if (!known)
            mark[n++] = is;
    }
    return n;
}

static void put_mark(page *p, const page_axes *axes, double value, const char *class_, int row,
                     const char *name)
{
    double at = weft__axis_pixel(&axes->x, value);
    bool right = at > (axes->x.from + axes->x.to) / 2;
    put(p, "<path class=\"mark%s\" d=\"M%.1f %.1fV%.1f\"/>\n", class_, at, axes->y.from, axes->y.to);
    put_label(p, at + (right ? -4 : 4), axes->y.to + 11 + 13 * row, "", right ? WEFT__END : WEFT__START,
              "%s %.4g", name, value);
}

static void put_histogram(page *p, const counted *c)
{
    int64_t mark[MARKS];
    int marks = capacities(p->lab, mark);
    double ends[4] = { 1, (double)c->edge[c->bins], 0, 0 };
    for (int i = 0; i < c->bins; i++)
        ends[3] = fmax(ends[3], (double)c->count[i]);
    for (int i = 0; i < marks; i++)
        ends[1] = fmax(ends[1], (double)mark[i]);
    page_axes axes = axes_of(ends, 10, 0, CHART_HEIGHT);
    put(p, "<div class=\"figures\">\n");
    begin_image(p, CHART_HEIGHT, "Histogram of lengths",
                "Bars over a logarithmic axis of length. The mean is %.1f, the longest %lld tokens.", c->mean,
                (long long)c->longest);
    put_axes(p, &axes, "length in tokens", "sequences", CHART_HEIGHT);
    for (int i = 0; i < c->bins; i++) {
        double left = weft__axis_pixel(&axes.x, (double)c->edge[i]),
               right = weft__axis_pixel(&axes.x, (double)c->edge[i + 1]);
        if (c->count[i])
            put_bar(p, "bar", left, weft__axis_pixel(&axes.y, (double)c->count[i]),
                    fmax(.5, right - left - .5), axes.y.from);
    }
    if (c->mean >= 1)
        put_mark(p, &axes, c->mean, "", 0, "mean");
    for (int i = 0; i < marks; i++)
        put_mark(p, &axes, (double)mark[i], " dash", i + 1, "capacity");
    end_image(p);
    put(p, "Sequences by length; each bar is wider than the one before by the same factor. Solid line: the "
           "mean. Broken lines: capacities of rows.");
    end_figure(p);
    put(p, "</div>\n");
}

static void fill_lengths(const lab *l, int i, page_row *row)
{
    counted c = { 0 };
    (void)i;
    count_lengths(l, &c);
    SET_ROW(row, l->corpus, CELL("sequences", (double)c.n, 0, 0), CELL("empty", (double)c.empty, 0, 0),
            CELL("tokens", (double)c.tokens, 0, 0), CELL("mean", c.mean, 0, 2), CELL("sd", c.sd, 0, 2),
            CELL("median", (double)c.median, 0, 0), CELL("99 of 100", (double)c.p99, 0, 0),
            CELL("longest", (double)c.longest, 0, 0));
}

void put_lengths(page *p)
{
    counted c = { 0 };
    if (!count_lengths(p->lab, &c)) {
        put_missing(p, "There was no memory to count lengths.");
        return;
    }
    put_table(p, "Lengths in tokens. 99 of 100 sequences are no longer than the number under that head.",
              "corpus", 1, fill_lengths);
    if (c.longest)
        put_histogram(p, &c);
    else
        put_missing(p, "No sequence has a token, so there is no histogram");
}
