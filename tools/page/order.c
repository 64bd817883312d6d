/* order.c - writes the effects of plans on the gradient and on order: token weights, lengths from batch to
 * batch, live rows. */
#include "plan/plan.h"
#include "tools/page/page.h"

/* ---- weights ---- */
static weft_token_weights weights_of(const lab_plan *p, weft_plan_mean by)
{
    weft_token_weights w;
    return weft_plan_weigh(&p->made->plan, by, &w) == WEFT_OK ? w : (weft_token_weights){ 0 };
}

enum { SPAN = 14 }; /* bins on each side of 1 */

static void add_weights(page_bars *bars, const weft_token_weights *w, int64_t tokens)
{
    double share[2 * SPAN + 1] = { 0 };
    for (int i = 0; i < WEFT_WEIGHT_BINS && tokens; i++) {
        int bin = i - WEFT_WEIGHT_BINS / 2 + SPAN;
        share[bin < 0 ? 0 : bin > 2 * SPAN ? 2 * SPAN : bin] += 100 * (double)w->tokens[i] / (double)tokens;
    }
    for (int i = 0; i <= 2 * SPAN; i++)
        if (share[i] > 0)
            add_bar(bars, exp2((i - SPAN - .5) / 2), exp2((i - SPAN + .5) / 2), share[i]);
}

static void put_weights_of(page *p, int plan)
{
    page_bars bars[3] = { { .n = 0 } };
    weft_curve curve[6];
    weft_token_weights w[3];
    for (int by = 0; by < 3; by++) {
        w[by] = weights_of(p->lab->plan + plan, (weft_plan_mean)by);
        add_weights(bars + by, w + by, p->lab->plan[plan].made->figures.tokens);
        curve[2 * by] = curve_of_bars(bars + by, false);
        curve[2 * by + 1] = curve_of_bars(bars + by, true);
    }
    put_chart(
        p, CHART_SMALL, "Weights of tokens",
        &(weft_chart){
            .x_label = "weight of a token", .left = "% of tokens", .x_base = 2, .curves = curve, .n = 6 },
        "Three histograms of token weights over a logarithmic axis. With the mean of each batch the "
        "weights are %.3g to %.3g.",
        w->least, w->largest);
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
    put(p, "<p>Weights of tokens in the gradient of one pass; each batch is an update, and the mean "
           "weight is 1. A loss that is the mean over each batch's tokens gives more weight to tokens "
           "in small batches. A sum with one divisor for all batches gives equal weights.</p>\n");
    put_table(p,
              "Weights of tokens with three normalisers. Batch: the mean over a batch's tokens. "
              "Divisor: one divisor for the plan. Sequences: equal weight for each sequence. cv: "
              "standard deviation divided by the mean.",
              "planner", p->lab->plans, fill_weights, NULL);
    put_multiples(p, put_weights_of);
    put(p, "<p>Blue: the mean of each batch. Orange: one divisor. Green: equal weight for each "
           "sequence. A bar spans a factor of the square root of two; the outermost bars include "
           "everything beyond.</p>\n");
}

/* ---- order ---- */
static void fill_order(const lab *l, int i, page_row *row)
{
    const lab_plan *p = l->plan + i;
    const weft_plan_meetings *m = &p->meetings;
    bool counted = p->epochs > 0, repeated = p->epochs > 1;
    double r;
    if (weft_plan_autocorrelation(&p->made->plan, &r) != WEFT_OK)
        r = LAB_NONE;
    SET_ROW(row, NULL, CELL("η²", p->made->figures.eta2, -1, 3), CELL("autocorrelation", r, 0, 3),
            CELL("epochs", counted ? p->epochs : LAB_NONE, 0, 0),
            CELL("pairs", counted ? (double)m->pairs : LAB_NONE, 0, 0),
            CELL("again", repeated ? (double)m->again : LAB_NONE, 0, 0),
            CELL("by chance", repeated ? m->by_chance : LAB_NONE, 0, 1),
            CELL("ratio", repeated && m->by_chance > 0 ? (double)m->again / m->by_chance : LAB_NONE, -1, 2));
}

enum { POINTS = 160 }; /* of a small chart */

/* Groups the batches into at most POINTS groups: the least, mean and largest mean length of each. */
static int group_means(const weft_plan *p, double group[3][POINTS])
{
    int64_t each = (p->batches + POINTS - 1) / POINTS, taken = 0;
    int n = 0;
    for (int64_t b = 0; b < p->batches; b++) {
        double mean = p->batch[b].n ? (double)weft__plan_tokens_of(p, b) / (double)p->batch[b].n : 0;
        group[0][n] = taken ? fmin(group[0][n], mean) : mean;
        group[1][n] = taken ? group[1][n] + mean : mean;
        group[2][n] = taken ? fmax(group[2][n], mean) : mean;
        taken++;
        if (taken == each || b == p->batches - 1) {
            group[1][n++] /= (double)taken;
            taken = 0;
        }
    }
    return n;
}

/* Returns the largest mean length of all plans, for a common scale. */
static double highest_mean(const lab *l)
{
    double highest = 0, group[3][POINTS];
    for (int i = 0; i < l->plans; i++)
        for (int k = group_means(&l->plan[i].made->plan, group); k--;)
            highest = fmax(highest, group[2][k]);
    return highest;
}

static void put_means(page *p, int plan)
{
    double group[3][POINTS], x[POINTS];
    const weft_plan *made = &p->lab->plan[plan].made->plan;
    int n = group_means(made, group);
    const double end[4] = { 0, (double)made->batches, 0, highest_mean(p->lab) };
    for (int i = 0; i < n; i++)
        x[i] = (i + .5) * (double)made->batches / n;
    /* the last two have no area: they only widen the axes */
    const weft_curve curve[] = { { .n = n, .x = x, .y = group[1] },
                                 { .n = n, .x = x, .y = group[2], .low = group[0] },
                                 { .n = 1, .x = end, .y = end + 2, .low = end + 2 },
                                 { .n = 1, .x = end + 1, .y = end + 3, .low = end + 3 } };
    put_chart(p, CHART_SMALL, "Mean length of batches",
              &(weft_chart){ .x_label = "batch", .left = "mean length", .curves = curve, .n = 4 },
              "Mean length of each of %lld batches, in order.", (long long)made->batches);
    put_plan(p, plan);
    if (made->batches > POINTS)
        put(p, "; a point is the mean of %lld batches, the band spans their minimum to maximum",
            (long long)((made->batches + POINTS - 1) / POINTS));
    end_figure(p);
}

void put_order(page *p)
{
    put_table(p,
              "Order. Autocorrelation: of the batches' mean lengths, at a lag of one batch. Pairs: "
              "pairs of sequences that begin in the same batch, over the epochs. Again: pairs that meet "
              "in both of two epochs, summed over all pairs of epochs. By chance: the expected value of "
              "Again if each epoch's batches were drawn independently. Ratio: Again divided by By "
              "chance. Counts are exact.",
              "planner", p->lab->plans, fill_order, NULL);
    put_multiples(p, put_means);
}

/* ---- live rows ---- */
enum { LIVE = 32 };

/* Groups steps and tokens by live rows: 0, 1, 2 .. 3, 4 .. 7, and so on. Returns the number of groups. */
static int group_live(const weft_plan *p, double *steps, double *tokens)
{
    int64_t rows = weft__plan_most_rows(p);
    int groups = 0;
    SCOPED int64_t *live = get_memory(rows, sizeof *live);
    bool ok = weft_plan_live_rows(p, live, rows + 1) == WEFT_OK;
    for (int64_t k = 0; k <= rows && ok; k++) {
        int group = 0;
        for (int64_t rest = k; rest; rest >>= 1)
            group++;
        steps[group] += (double)live[k];
        tokens[group] += (double)live[k] * (double)k;
        groups = group + 1;
    }
    return ok ? groups : 0;
}

static void put_live_chart(page *p, int plan)
{
    double steps[LIVE + 2] = { 0 }, tokens[LIVE + 2] = { 0 }, all_steps = 0, all_tokens = 0;
    const planned *made = p->lab->plan[plan].made;
    page_bars bars[2] = { { .n = 0 } };
    int n = group_live(&made->plan, steps, tokens);
    for (int i = 0; i < n; i++) {
        all_steps += steps[i];
        all_tokens += tokens[i];
    }
    for (int i = 1; i < n && all_tokens > 0; i++) { /* two bars from 2^(i - 1) to 2^i */
        add_bar(bars, exp2(i - .9), exp2(i - .52), 100 * steps[i] / all_steps);
        add_bar(bars + 1, exp2(i - .48), exp2(i - .1), 100 * tokens[i] / all_tokens);
    }
    const weft_curve curve[] = { curve_of_bars(bars, false), curve_of_bars(bars, true),
                                 curve_of_bars(bars + 1, false), curve_of_bars(bars + 1, true) };
    put_chart(
        p, CHART_SMALL, "Live rows",
        &(weft_chart){
            .x_label = "live rows", .left = "% of steps, tokens", .x_base = 2, .curves = curve, .n = 4 },
        "Shares of steps and of tokens by number of live rows; %.1f live rows on average.",
        made->figures.mean_live);
    put_plan(p, plan);
    put(p, "; mean ");
    put_real(p, made->figures.mean_live, 1);
    end_figure(p);
}

void put_live(page *p)
{
    put(p, "<p>Live rows are the rows that have a token at a step. Blue bars are the share of steps, "
           "orange bars that of tokens, from one power of two to the next. If time follows steps, as on "
           "GPUs with small layers, a step with few live rows takes as long as one with many.</p>\n");
    put_multiples(p, put_live_chart);
}
