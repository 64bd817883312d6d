/* measures.c - what a plan does to the gradient, to work and to the order of lengths. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

/* sequences: an upper bound on their numbers in segments. */
static weft_status check(const weft_plan *p, int64_t sequences, bool rest, const char *function,
                         const char *what)
{
    return p && rest ? weft__plan_is_sound(p, sequences, function) :
                       weft_plan_refuse(WEFT_EARG, "%s%s expected", function, what);
}

/* ---- the weight of a token ---- */
static int64_t tokens_of(const weft_plan *p, const weft_plan_batch *b)
{
    int64_t tokens = 0;
    for (int64_t i = b->first; i < b->first + b->n; i++)
        tokens += p->segment[i].length;
    return tokens;
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

/* Every batch is `mean` tokens' worth: each batch's tokens share it, or all batches are divided by it. */
static void weigh_by_batches(const weft_plan *p, double mean, bool alike, weft_token_weights *w,
                             double *squares)
{
    for (int64_t b = 0; b < p->batches; b++) {
        int64_t tokens = tokens_of(p, p->batch + b);
        if (tokens)
            weigh(w, alike ? 1 : mean / (double)tokens, tokens, squares);
    }
}

/* Every sequence is as much as any other, whatever its length. */
static weft_status weigh_by_sequences(const weft_plan *p, int64_t tokens, weft_token_weights *w,
                                      double *squares)
{
    int64_t *length = weft__plan_memory(p->sequences, sizeof *length), sequences = 0;
    if (!length)
        return WEFT_ENOMEM;
    memset(length, 0, (size_t)(p->sequences + 1) * sizeof *length);
    for (int64_t i = 0; i < p->segments; i++)
        length[p->segment[i].sequence] += p->segment[i].length;
    for (int64_t i = 0; i < p->sequences; i++)
        sequences += length[i] > 0;
    for (int64_t i = 0; i < p->sequences; i++)
        if (length[i])
            weigh(w, (double)tokens / (double)sequences / (double)length[i], length[i], squares);
    free(length);
    return WEFT_OK;
}

weft_status weft_plan_weigh(const weft_plan *plan, weft_plan_mean by, weft_token_weights *out)
{
    weft_status s = check(plan, plan ? plan->sequences : 0,
                          out && by >= WEFT_MEAN_OF_BATCH && by <= WEFT_MEAN_OF_SEQUENCES, "plan_weigh: ",
                          "a plan, one of three means and room for weights are");
    int64_t tokens = 0, batches = 0;
    double squares = 0;
    if (s != WEFT_OK)
        return s;
    *out = (weft_token_weights){ 0 };
    for (int64_t b = 0; b < plan->batches; b++) {
        int64_t here = tokens_of(plan, plan->batch + b);
        tokens += here, batches += here > 0;
    }
    if (by == WEFT_MEAN_OF_SEQUENCES)
        s = weigh_by_sequences(plan, tokens, out, &squares);
    else
        weigh_by_batches(plan, (double)tokens / (double)batches, by == WEFT_MEAN_OF_PLAN, out, &squares);
    out->cv = tokens ? sqrt(squares / (double)tokens) : 0;
    return s;
}

/* ---- work ---- */
weft_status weft_plan_count_work(const weft_plan *plan, weft_plan_work *out)
{
    weft_status s = check(plan, INT64_MAX, out, "plan_count_work: ", "a plan and room for counts are");
    if (s != WEFT_OK)
        return s;
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
    weft_status s = check(plan, INT64_MAX, out, "plan_autocorrelation: ", "a plan and room for a number are");
    if (s != WEFT_OK)
        return s;
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
