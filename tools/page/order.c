/* order.c - of the page: what plans do to the gradient and to order: weights of tokens, lengths from
 * batch to batch, live rows. */
#include <stdlib.h>
#include "tools/page/page.h"

/* ---- weights ---- */
static weft_token_weights weights_of(const lab_plan *p, weft_plan_mean by)
{
    weft_token_weights w;
    return weft_plan_weigh(&p->made->plan, by, &w) == WEFT_OK ? w : (weft_token_weights){ 0 };
}
#define WEIGHTS(name, by)                                                                 \
    static double name##_least(const lab_plan *p) { return weights_of(p, by).least; }     \
    static double name##_largest(const lab_plan *p) { return weights_of(p, by).largest; } \
    static double name##_cv(const lab_plan *p) { return weights_of(p, by).cv; }
WEIGHTS(batch, WEFT_MEAN_OF_BATCH)
WEIGHTS(plan, WEFT_MEAN_OF_PLAN)
WEIGHTS(sequence, WEFT_MEAN_OF_SEQUENCES)

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
    put_label(p, 8, bottom - STRIP + 22, "start", "%s", name);
    for (int i = 0; i <= 2 * SPAN; i++)
        if (share[i] > 0)
            put(p, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                8 + i * each, bottom - fmax(1, share[i] / most * (STRIP - 16)), each - .6,
                fmax(1, share[i] / most * (STRIP - 16)));
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
        put_label(p, x, height - STRIPS_BOTTOM + 14, "middle", "%s", marks[i]);
    }
    for (int by = 0; by < 3; by++) {
        w = weights_of(p->lab->plan + plan, (weft_plan_mean)by);
        if (tokens)
            put_strip(p, &w, tokens, names[by], STRIPS_TOP + (by + 1) * STRIP);
    }
    put_label(p, CHART_WIDTH / 2., height - 6, "middle", "weight of a token");
    end_image(p);
    put_plan(p, plan);
    end_figure(p);
}

void put_weights(page *p)
{
    static const page_column columns[] = {
        { "batch: least", batch_least, 1, 3 },
        { "largest", batch_largest, -1, 2 },
        { "cv", batch_cv, -1, 3 },
        { "divisor: least", plan_least, 0, 3 },
        { "largest", plan_largest, 0, 2 },
        { "cv", plan_cv, 0, 3 },
        { "sequences: least", sequence_least, 1, 3 },
        { "largest", sequence_largest, -1, 2 },
        { "cv", sequence_cv, -1, 3 },
    };
    put(p, "<p>How much a token counts in the gradient of one pass, where the mean is 1 and each batch is "
           "an update. A loss that is the mean over each batch's tokens gives those of small batches more; "
           "a sum over one divisor for all batches does not.</p>\n");
    put_plan_table(p,
                   "Weights of tokens under three normalisers: the mean over a batch's tokens; one divisor "
                   "for the plan; every sequence as much as any other. cv: the standard deviation over the "
                   "mean.",
                   columns, sizeof columns / sizeof *columns);
    int n = put_multiples(p);
    begin_figures(p);
    for (int i = 0; i < n; i++)
        put_strips(p, i);
    end_figures(p);
    put(p, "<p>Height: the share of tokens, the highest bar of each strip full; a bar spans "
           "a factor of the square root of two, and the outermost have all beyond.</p>\n");
}

/* ---- order ---- */
static double eta2(const lab_plan *p) { return p->made->figures.eta2; }
static double autocorrelation(const lab_plan *p)
{
    double r;
    return weft_plan_autocorrelation(&p->made->plan, &r) == WEFT_OK ? r : LAB_NONE;
}
static double epochs(const lab_plan *p) { return p->epochs ? p->epochs : LAB_NONE; }
static double pairs(const lab_plan *p) { return p->epochs ? p->meetings.pairs : LAB_NONE; }
static double again(const lab_plan *p) { return p->epochs > 1 ? p->meetings.again : LAB_NONE; }
static double by_chance(const lab_plan *p) { return p->epochs > 1 ? p->meetings.by_chance : LAB_NONE; }
static double ratio(const lab_plan *p)
{
    return p->epochs > 1 && p->meetings.by_chance > 0 ? p->meetings.again / p->meetings.by_chance : LAB_NONE;
}

enum { POINTS = 160, SMALL = 150 }; /* points of a small chart; its height */

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
        if (!taken)
            g[0] = g[2] = mean, g[1] = 0;
        g[0] = fmin(g[0], mean), g[1] += mean, g[2] = fmax(g[2], mean), taken++;
        if (taken == each || b == p->batches - 1)
            g[1] /= (double)taken, taken = 0, n++;
    }
    return n;
}

static void put_means(page *p, int plan, double highest)
{
    double group[POINTS][3];
    const weft_plan *is = &p->lab->plan[plan].made->plan;
    int n = group_means(is, group);
    scale x = scale_of(0, (double)is->batches, false, CHART_LEFT, CHART_WIDTH - CHART_RIGHT),
          y = scale_of(0, highest, false, SMALL - CHART_BOTTOM, CHART_TOP);
    begin_image(p, SMALL, "Mean length of batches",
                "%lld batches, the mean length of each against its number.", (long long)is->batches);
    put_axes(p, &x, &y, "batch", "mean length", SMALL);
    double each = (double)is->batches / (n ? n : 1);
    put(p, "<path class=\"f0 band\" d=\"");
    for (int i = 0; i < n; i++)
        put(p, "%s%.1f %.1f", i ? "L" : "M", scaled(&x, (i + .5) * each), scaled(&y, group[i][2]));
    for (int i = n - 1; i >= 0; i--)
        put(p, "L%.1f %.1f", scaled(&x, (i + .5) * each), scaled(&y, group[i][0]));
    put(p, "\"/>\n<path class=\"curve s0\" d=\"");
    for (int i = 0; i < n; i++)
        put(p, "%s%.1f %.1f", i ? "L" : "M", scaled(&x, (i + .5) * each), scaled(&y, group[i][1]));
    put(p, "\"/>\n");
    if (n == 1)
        put(p, "<circle class=\"f0\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", scaled(&x, .5 * each),
            scaled(&y, group[0][1]));
    end_image(p);
    put_plan(p, plan);
    if (is->batches > POINTS)
        put(p, "; %lld batches a point, the band from the least to the largest",
            (long long)((is->batches + POINTS - 1) / POINTS));
    end_figure(p);
}

void put_order(page *p)
{
    static const page_column columns[] = {
        { "η²", eta2, -1, 3 },      { "autocorrelation", autocorrelation, 0, 3 },
        { "epochs", epochs, 0, 0 }, { "pairs", pairs, 0, 0 },
        { "again", again, 0, 0 },   { "by chance", by_chance, 0, 1 },
        { "ratio", ratio, -1, 2 },
    };
    double highest = 0, group[POINTS][3];
    put_plan_table(p,
                   "Order. Autocorrelation: of a batch's mean length with the next one's. Pairs: of "
                   "sequences that begin in one batch, over the epochs. Again: pairs that do so in two of "
                   "the epochs, over all twos of them; by chance: what that would be if each epoch's "
                   "batches were drawn anew. Exact counts.",
                   columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < p->lab->plans; i++)
        for (int k = group_means(&p->lab->plan[i].made->plan, group); k--;)
            highest = fmax(highest, group[k][2]);
    int n = put_multiples(p);
    begin_figures(p);
    for (int i = 0; i < n; i++)
        put_means(p, i, highest);
    end_figures(p);
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
        steps[at] += (double)live[k], tokens[at] += (double)live[k] * (double)k;
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
    for (int i = 0; i < n; i++)
        all_steps += steps[i], all_tokens += tokens[i];
    for (int i = 0; i < n && all_tokens > 0; i++)
        most = fmax(most, fmax(steps[i] / all_steps, tokens[i] / all_tokens));
    scale y = scale_of(0, fmax(most, .1) * 100, false, SMALL - CHART_BOTTOM, CHART_TOP);
    scale x = { 0, n ? n : 1, CHART_LEFT, CHART_WIDTH - CHART_RIGHT, 0 };
    double each = (x.to - x.from) / x.high;
    begin_image(p, SMALL, "Live rows",
                "Shares of steps and of tokens by how many rows have a token; on average %.1f rows.",
                is->figures.mean_live);
    put(p, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x.from, y.to, y.from, x.to);
    put_label(p, x.from - 5, y.from + 4, "end", "0");
    put_label(p, x.from - 5, y.to + 4, "end", "%.3g", y.high);
    put_label(p, 2, y.to - 10, "start", "%% of steps, tokens");
    put_label(p, (x.from + x.to) / 2, SMALL - 6, "middle", "live rows, from");
    for (int i = 0; i < n && all_tokens > 0; i++) {
        double left = x.from + i * each, a = scaled(&y, 100 * steps[i] / all_steps),
               b = scaled(&y, 100 * tokens[i] / all_tokens);
        put(p,
            "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/><rect "
            "class=\"hollow\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            left + each * .1, a, each * .38, y.from - a, left + each * .52, b, each * .38, y.from - b);
        put_label(p, left + each / 2, y.from + 14, "middle", "%lld", (long long)(i ? 1LL << (i - 1) : 0));
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
    int n = put_multiples(p);
    begin_figures(p);
    for (int i = 0; i < n; i++)
        put_live_chart(p, i);
    end_figures(p);
}
