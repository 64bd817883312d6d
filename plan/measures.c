/* measures.c - what a plan does to the gradient, to work and to the order of lengths. */
#include <math.h>
#include "plan/plan.h"

static weft_status want(const char *function, const char *what)
{
    return weft_plan_refuse(WEFT_EARG, "%s: %s expected", function, what);
}

/* ---- the weight of a token ---- */
static int64_t tokens_of(const weft_plan *p, const weft_plan_batch *b)
{
    int64_t tokens = 0;
    for (int64_t i = b->first; i < b->first + b->n; i++)
        tokens += p->segment[i].length;
    return tokens;
}

static int64_t pieces_of(const weft_plan *p, const weft_plan_batch *b)
{
    int64_t pieces = 0;
    for (int64_t i = b->first; i < b->first + b->n; i++)
        pieces += p->segment[i].length > 0;
    return pieces;
}

/* Bin 20 + k ends half-way between the k-th and the next power of sqrt(2): its fourth powers are 2^(2 k - 1)
 * and more, so that a power of two alone decides, and no logarithm. */
static int bin_of(double weight)
{
    int exponent;
    frexp(weight * weight * weight * weight, &exponent);
    int bin = (exponent + WEFT_WEIGHT_BINS) / 2;
    return bin < 0 ? 0 : bin < WEFT_WEIGHT_BINS ? bin : WEFT_WEIGHT_BINS - 1;
}

static void weigh(weft_token_weights *w, double weight, int64_t tokens, double *squares)
{
    bool first = w->largest == 0;
    w->least = first || weight < w->least ? weight : w->least;
    w->largest = weight > w->largest ? weight : w->largest;
    w->tokens[bin_of(weight)] += tokens;
    *squares += (double)tokens * (weight - 1) * (weight - 1);
}

/* Each batch's tokens weigh `mean` together. */
static void weigh_batch(const weft_plan *p, const weft_plan_batch *b, weft_normaliser by, double mean,
                        weft_token_weights *w, double *squares)
{
    int64_t tokens = tokens_of(p, b), pieces = pieces_of(p, b);
    if (tokens && by == WEFT_WEIGH_BATCH)
        weigh(w, mean / (double)tokens, tokens, squares);
    else if (tokens && by == WEFT_WEIGH_PLAN)
        weigh(w, mean / mean, tokens, squares); /* one divisor, the mean tokens of a batch, for all of them */
    for (int64_t i = b->first; i < b->first + b->n && by == WEFT_WEIGH_PIECES; i++)
        if (p->segment[i].length)
            weigh(w, mean / (double)pieces / p->segment[i].length, p->segment[i].length, squares);
}

weft_status weft_plan_weigh(const weft_plan *plan, weft_normaliser by, weft_token_weights *out)
{
    if (!plan || !out || by < WEFT_WEIGH_BATCH || by > WEFT_WEIGH_PIECES)
        return want("plan_weigh", "a plan, one of three normalisers and room for weights are");
    int64_t tokens = 0, batches = 0;
    double squares = 0;
    *out = (weft_token_weights){ 0 };
    for (int64_t b = 0; b < plan->batches; b++) {
        int64_t here = tokens_of(plan, plan->batch + b);
        tokens += here, batches += here > 0;
    }
    for (int64_t b = 0; b < plan->batches; b++)
        weigh_batch(plan, plan->batch + b, by, (double)tokens / (double)batches, out, &squares);
    out->cv = tokens ? sqrt(squares / (double)tokens) : 0;
    return WEFT_OK;
}

/* ---- work ---- */
weft_status weft_plan_count_work(const weft_plan *plan, weft_plan_work *out)
{
    if (!plan || !out)
        return want("plan_count_work", "a plan and room for counts are");
    *out = (weft_plan_work){ 0 };
    for (int64_t b = 0; b < plan->batches; b++) {
        const weft_plan_batch *is = plan->batch + b;
        out->padded_products += is->rows * is->width;
        out->padded_sums += is->width ? is->rows * (is->width - 1) : 0;
        out->padded_squares += (double)is->rows * (double)is->width * (double)is->width;
    }
    for (int64_t i = 0; i < plan->segments; i++) {
        int64_t length = plan->segment[i].length;
        out->products += length;
        out->sums += length ? length - 1 : 0;
        out->squares += (double)length * (double)length;
    }
    return WEFT_OK;
}

/* ---- order ---- */
weft_status weft_plan_autocorrelation(const weft_plan *plan, double *out)
{
    if (!plan || !out)
        return want("plan_autocorrelation", "a plan and room for a number are");
    double mean = 0, total = 0, beside = 0, before = 0;
    int64_t batches = 0;
    for (int64_t b = 0; b < plan->batches; b++)
        if (plan->batch[b].n) {
            mean += (double)tokens_of(plan, plan->batch + b) / (double)plan->batch[b].n;
            batches++;
        }
    mean /= batches ? (double)batches : 1;
    for (int64_t b = 0; b < plan->batches; b++) {
        const weft_plan_batch *is = plan->batch + b;
        if (!is->n)
            continue;
        double here = (double)tokens_of(plan, is) / (double)is->n - mean;
        total += here * here;
        beside += before * here; /* before the first: 0 */
        before = here;
    }
    *out = total > 0 ? beside / total : 0;
    return WEFT_OK;
}
