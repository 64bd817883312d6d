/* order.c - of the page: what plans do to the gradient and to order: weights of tokens, lengths from
 * batch to batch, live rows. */
#include <stdlib.h>
#include <string.h>
#include "tools/page/page.h"

/* ---- weights ---- */
static weft_token_weights weights_of(const lab_plan *p, weft_plan_mean by)
{
    weft_token_weights w;
    return weft_plan_weigh(&p->made->plan, by, &w) == WEFT_OK ? w : (weft_token_weights){ 0 };
}

enum { STRIP = 44, STRIPS_TOP = 18, STRIPS_BOTTOM = 36, SPAN = 14 }; /* bins beside 1 that are drawn */

static void put_strip(page *p, const weft_token_weights *w, int64_t tokens, const char *name, double bottom)
{
    double each = (CHART_WIDTH - 16.) / (2 * SPAN + 1), most = 0, share[2 * SPAN + 1] = { 0 };
    for (int i = 0; i < WEFT_WEIGHT_BINS; i++) {
        int at = i - WEFT_WEIGHT_BINS / 2 + SPAN;
        share[at < 0 ? 0 : at > 2 * SPAN ? 2 * SPAN : at] += (double)w->tokens[i] / (double)tokens;
    }
    for (int i = 0; i <= 2 * SPAN; i++)
        most = fmax(most, share[i]);
    put_label(p, 8, bottom - STRIP + 22, "", WEFT__START, "%s", name);
    for (int i = 0; i <= 2 * SPAN; i++)
        if (share[i] > 0)
            put_bar(p, "bar", 8 + i * each, bottom - fmax(1, share[i] / most * (STRIP - 16)), each - .6,
                    bottom);
    put(p, "<path class=\"axis\" d=\"M8 %.1fH%d\"/>\n", bottom, CHART_WIDTH - 8);
}

static void put_strips(page *p, int plan)
{
    static const char *const names[] = { "mean of each batch", "one divisor", "mean of sequences" };
    static const char *const marks[] = { "1/64", "1/16", "1/4", "1", "4", "16", "64" };
    int64_t tokens = p->lab->plan[plan].made->figures.tokens;
    double each = (CHART_WIDTH - 16.) / (2 * SPAN + 1), height = STRIPS_TOP + 3 * STRIP + STRIPS_BOTTOM;
    weft_token_weights w = weights_of(p->lab->plan + plan, WEFT_MEAN_OF_BATCH);
    begin_image(p, height, "Weights of tokens",
                "Three histograms of the weight of a token over powers of two; with the mean of each batch "
                "it is %.3g to %.3g.",
                w.least, w.largest);
    for (int i = 0; i < 7; i++) {
        double x = 8 + (4 * i + 2.5) * each;
        put(p, "<path class=\"grid\" d=\"M%.1f 4V%.1f\"/>\n", x, height - STRIPS_BOTTOM);
        put_label(p, x, height - STRIPS_BOTTOM + 14, "", WEFT__MIDDLE, "%s", marks[i]);
    }
    for (int by = 0; by < 3; by++) {
        w = weights_of(p->lab->plan + plan, (weft_plan_mean)by);
        if (tokens)
            put_strip(p, &w, tokens, names[by], STRIPS_TOP + (by + 1) * STRIP);
    }
    put_label(p, CHART_WIDTH / 2., height - 6, "", WEFT__MIDDLE, "weight of a token");
    end_image(p);
    put_plan(p, plan);
    end_figure(p);
}

static void fill_weights(const lab *l, int i, page_row *row)
{
    const weft_token_weights batch = weights_of(l->plan + i, WEFT_MEAN_OF_BATCH),
                             plan = weights_of(l->plan + i, WEFT_MEAN_OF_PLAN),
                             sequence = weights_of(l->plan + i, WEFT_MEAN_OF_SEQUENCES);
    SET_ROW(row, NULL, CELL("batch: least", batch.least, 1, 3), CELL("largest", batch.largest, -1, 2),
            CELL("cv", batch.cv, -1, 3), CELL("divisor: least", plan.least, 0, 3),
            CELL("largest", plan.largest, 0, 2), CELL("cv", plan.cv, 0, 3),
            CELL("sequences: least", sequence.least, 1, 3), CELL("largest", sequence.largest, -1, 2),
            CELL("cv", sequence.cv, -1, 3));
}

void put_weights(page *p)
{
    put(p, "<p>How much a token counts in the gradient of one pass, where the mean is 1 and each batch is "
           "an update. A loss that is the mean over each batch's tokens gives those of small batches more; "
           "a sum over one divisor for all batches does not.</p>\n");
    put_table(p,
              "Weights of tokens under three normalisers: the mean over a batch's tokens; one divisor "
              "for the plan; every sequence as much as any other. cv: the standard deviation over the "
              "mean.",
              "planner", p->lab->plans, fill_weights);
    put_multiples(p, put_strips);
    put(p, "<p>Height: the share of tokens, the highest bar of each strip full; a bar spans "
           "a factor of the square root of two, and the outermost have all beyond.</p>\n");
}

/* ---- order ---- */
static void fill_order(const lab *l, int i, page_row *row)
{
    const lab_plan *p = l->plan + i;
    const weft_plan_meetings *m = &p->meetings;
    bool counted = p->epochs > 0, twice = p->epochs > 1;
    double r;
    if (weft_plan_autocorrelation(&p->made->plan, &r) != WEFT_OK)
        r = LAB_NONE;
    SET_ROW(row, NULL, CELL("η²", p->made->figures.eta2, -1, 3), CELL("autocorrelation", r, 0, 3),
            CELL("epochs", counted ? p->epochs : LAB_NONE, 0, 0),
            CELL("pairs", counted ? (double)m->pairs : LAB_NONE, 0, 0),
            CELL("again", twice ? (double)m->again : LAB_NONE, 0, 0),
            CELL("by chance", twice ? m->by_chance : LAB_NONE, 0, 1),
            CELL("ratio", twice && m->by_chance > 0 ? (double)m->again / m->by_chance : LAB_NONE, -1, 2));
}

enum { POINTS = 160 }; /* of a small chart */

/* Mean lengths of the batches, in at most POINTS groups: least, mean and largest of each. */
static int group_means(const weft_plan *p, double (*group)[3])
{
    int64_t each = (p->batches + POINTS - 1) / POINTS, taken = 0;
    int n = 0;
    for (int64_t b = 0; b < p->batches; b++) {
        double sum = 0;
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            sum += p->segment[i].length;
        double mean = p->batch[b].n ? sum / (double)p->batch[b].n : 0, *g = group[n];
        g[0] = taken ? fmin(g[0], mean) : mean;
        g[1] = taken ? g[1] + mean : mean;
        g[2] = taken ? fmax(g[2], mean) : mean;
        taken++;
        if (taken == each || b == p->batches - 1) {
            g[1] /= (double)taken;
            taken = 0;
            n++;
        }
    }
    return n;
}

/* The largest mean of all plans, for one scale. */
static double highest_mean(const lab *l)
{
    double highest = 0, group[POINTS][3];
    for (int i = 0; i < l->plans; i++)
        for (int k = group_means(&l->plan[i].made->plan, group); k--;)
            highest = fmax(highest, group[k][2]);
    return highest;
}

static void put_level(page *p, const page_axes *a, double (*group)[3], int n, int level, double each)
{
    for (int k = 0; k < n; k++) {
        int i = level ? k : n - 1 - k;           /* the least ones backwards, to close an area */
        put(p, "%s%.1f %.1f", k || !level ? "L" : "M", weft__axis_pixel(&a->x, (i + .5) * each),
            weft__axis_pixel(&a->y, group[i][level]));
    }
}

static void put_means(page *p, int plan)
{
    double group[POINTS][3];
    const weft_plan *is = &p->lab->plan[plan].made->plan;
    int n = group_means(is, group);
    double ends[4] = { 0, (double)is->batches, 0, highest_mean(p->lab) },
           each = (double)is->batches / (n ? n : 1);
    page_axes axes = axes_of(ends, 0, 0, CHART_SMALL);
    begin_image(p, CHART_SMALL, "Mean length of batches",
                "%lld batches, the mean length of each against its number.", (long long)is->batches);
    put_axes(p, &axes, "batch", "mean length", CHART_SMALL);
    put(p, "<path class=\"f0 band\" d=\"");
    put_level(p, &axes, group, n, 2, each);
    put_level(p, &axes, group, n, 0, each);
    put(p, "\"/>\n<path class=\"curve s0\" d=\"");
    put_level(p, &axes, group, n, 1, each);
    put(p, "\"/>\n");
    if (n == 1)
        put(p, "<circle class=\"f0\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
            weft__axis_pixel(&axes.x, .5 * each), weft__axis_pixel(&axes.y, group[0][1]));
    end_image(p);
    put_plan(p, plan);
    if (is->batches > POINTS)
        put(p, "; %lld batches a point, the band from the least to the largest",
            (long long)((is->batches + POINTS - 1) / POINTS));
    end_figure(p);
}

void put_order(page *p)
{
    put_table(p,
              "Order. Autocorrelation: of a batch's mean length with the next one's. Pairs: of "
              "sequences that begin in one batch, over the epochs. Again: pairs that do so in two of "
              "the epochs, over all twos of them; by chance: what that would be if each epoch's "
              "batches were drawn anew. Exact counts.",
              "planner", p->lab->plans, fill_order);
    put_multiples(p, put_means);
}

/* ---- live rows ---- */
enum { LIVE = 32 };

/* Steps and tokens by live rows: 0, 1, 2 .. 3, 4 .. 7, and so on; how many groups, 0: no memory. */
static int group_live(const weft_plan *p, double *steps, double *tokens)
{
    int64_t rows = 0;
    int groups = 0;
    for (int64_t b = 0; b < p->batches; b++)
        rows = p->batch[b].rows > rows ? p->batch[b].rows : rows;
    int64_t *live = malloc(((size_t)rows + 1) * sizeof *live);
    bool good = live && weft_plan_live_rows(p, live, rows + 1) == WEFT_OK;
    for (int64_t k = 0; k <= rows && good; k++) {
        int at = 0;
        for (int64_t left = k; left; left >>= 1)
            at++;
        steps[at] += (double)live[k];
        tokens[at] += (double)live[k] * (double)k;
        groups = at + 1;
    }
    free(live);
    return good ? groups : 0;
}

static void put_live_chart(page *p, int plan)
{
    double steps[LIVE + 2] = { 0 }, tokens[LIVE + 2] = { 0 }, all_steps = 0, all_tokens = 0, most = 0;
    const planned *is = p->lab->plan[plan].made;
    int n = group_live(&is->plan, steps, tokens);
    for (int i = 0; i < n; i++) {
        all_steps += steps[i];
        all_tokens += tokens[i];
    }
    for (int i = 0; i < n && all_tokens > 0; i++)
        most = fmax(most, fmax(steps[i] / all_steps, tokens[i] / all_tokens));
    page_axes axes = axes_of((double[]){ 0, 1, 0, fmax(most, .1) * 100 }, 0, 0, CHART_SMALL);
    double from = axes.x.from, to = axes.x.to, bottom = axes.y.from, each = (to - from) / (n ? n : 1);
    begin_image(p, CHART_SMALL, "Live rows",
                "Shares of steps and of tokens by how many rows have a token; on average %.1f rows.",
                is->figures.mean_live);
    put(p, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", from, axes.y.to, bottom, to);
    put_label(p, from - 5, bottom + 4, "", WEFT__END, "0");
    put_label(p, from - 5, axes.y.to + 4, "", WEFT__END, "%.3g", axes.y.high);
    put_label(p, 2, axes.y.to - 10, "", WEFT__START, "%% of steps, tokens");
    put_label(p, (from + to) / 2, CHART_SMALL - 6, "", WEFT__MIDDLE, "live rows, from");
    for (int i = 0; i < n && all_tokens > 0; i++) {
        double left = from + i * each;
        put_bar(p, "bar", left + each * .1, weft__axis_pixel(&axes.y, 100 * steps[i] / all_steps), each * .38,
                bottom);
        put_bar(p, "hollow", left + each * .52, weft__axis_pixel(&axes.y, 100 * tokens[i] / all_tokens),
                each * .38, bottom);
        put_label(p, left + each / 2, bottom + 14, "", WEFT__MIDDLE, "%lld",
                  (long long)(i ? 1LL << (i - 1) : 0));
    }
    end_image(p);
    put_plan(p, plan);
    put(p, "; mean ");
    put_real(p, is->figures.mean_live, 1);
    end_figure(p);
}

void put_live(page *p)
{
    put(p, "<p>How many rows have a token at a step: full bars are the share of steps, hollow ones that of "
           "tokens. On a device that is bound by steps, one with few live rows takes as long as one with "
           "many.</p>\n");
    put_multiples(p, put_live_chart);
}
