/* measures.c - measures of a plan: weights of tokens in the gradient, work, order of lengths, repeated
 * neighbours. */
#include <math.h>
#include <string.h>
#include "plan/plan.h"

/* sequences: an upper bound on the sequence numbers in segments. */
static weft_status check(const weft_plan *p, int64_t sequences, bool rest, const char *function,
                         const char *expected)
{
    return p && rest ? weft__plan_is_sound(p, sequences, function) :
                       weft_plan_refuse(WEFT_EARG, "%sexpected %s", function, expected);
}

/* ---- the weight of a token ---- */
/* Bin 20 + k ends half-way between the k-th and the next power of sqrt(2). The fourth powers of its weights
 * begin at 2^(2 k - 1), so the exponent decides and no logarithm is needed. */
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

/* Weighs tokens if each batch counts the same (each token mean / tokens), or, with `alike`, if each token
 * counts the same. */
static void weigh_by_batches(const weft_plan *p, double mean, bool alike, weft_token_weights *w,
                             double *squares)
{
    for (int64_t b = 0; b < p->batches; b++) {
        int64_t tokens = weft__plan_tokens_of(p, b);
        if (tokens)
            weigh(w, alike ? 1 : mean / (double)tokens, tokens, squares);
    }
}

/* Weighs tokens if all sequences count the same. */
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
    return WEFT_OK;
}

weft_status weft_plan_weigh(const weft_plan *plan, weft_plan_mean by, weft_token_weights *out)
{
    weft_status s = check(plan, plan ? plan->sequences : 0,
                          out && by >= WEFT_MEAN_OF_BATCH && by <= WEFT_MEAN_OF_SEQUENCES,
                          "plan_weigh: ", "a plan, one of three means and a pointer for weights");
    int64_t tokens = 0, batches = 0;
    double squares = 0;
    if (s != WEFT_OK)
        return s;
    WEFT__PLAN_SCOPE;
    *out = (weft_token_weights){ 0 };
    for (int64_t b = 0; b < plan->batches; b++) {
        int64_t count = weft__plan_tokens_of(plan, b);
        tokens += count;
        batches += count > 0;
    }
    if (by == WEFT_MEAN_OF_SEQUENCES)
        s = weigh_by_sequences(plan, tokens, out, &squares);
    else
        weigh_by_batches(plan, (double)tokens / (double)batches, by == WEFT_MEAN_OF_PLAN, out, &squares);
    out->cv = tokens ? sqrt(squares / (double)tokens) : 0;
    return s;
}

weft_status weft_plan_count_work(const weft_plan *plan, weft_plan_work *out)
{
    weft_status s = check(plan, INT64_MAX, out, "plan_count_work: ", "a plan and a pointer for counts");
    if (s != WEFT_OK)
        return s;
    *out = (weft_plan_work){ 0 };
    for (int64_t b = 0; b < plan->batches; b++) {
        const weft_plan_batch *batch = plan->batch + b;
        out->padded_products += batch->rows * batch->width;
        out->padded_sums += batch->width ? batch->rows * (batch->width - 1) : 0;
        out->padded_squares += (double)batch->rows * (double)batch->width * (double)batch->width;
    }
    for (int64_t i = 0; i < plan->segments; i++) {
        int64_t length = plan->segment[i].length;
        out->products += length;
        out->sums += length ? length - 1 : 0;
        out->squares += (double)length * (double)length;
    }
    return WEFT_OK;
}

weft_status weft_plan_autocorrelation(const weft_plan *plan, double *out)
{
    weft_status s = check(plan, INT64_MAX, out, "plan_autocorrelation: ",
                          "a plan and a pointer for a number");
    if (s != WEFT_OK)
        return s;
    double mean = 0, total = 0, products = 0, previous = 0;
    int64_t batches = 0;
    for (int64_t b = 0; b < plan->batches; b++)
        if (plan->batch[b].n) {
            mean += (double)weft__plan_tokens_of(plan, b) / (double)plan->batch[b].n;
            batches++;
        }
    mean /= batches ? (double)batches : 1;
    for (int64_t b = 0; b < plan->batches; b++) {
        const weft_plan_batch *batch = plan->batch + b;
        if (!batch->n)
            continue;
        double deviation = (double)weft__plan_tokens_of(plan, b) / (double)batch->n - mean;
        total += deviation * deviation;
        products += previous * deviation; /* 0 for the first batch */
        previous = deviation;
    }
    *out = total > 0 ? products / total : 0;
    return WEFT_OK;
}

/* ---- sequences that meet again ---- */
/* Finds the batch where each sequence begins; -1: none. */
static void find_batches(const weft_plan *p, int32_t *batch)
{
    for (int64_t i = 0; i < p->sequences; i++)
        batch[i] = -1;
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            if (!p->segment[i].offset)
                batch[p->segment[i].sequence] = (int32_t)b;
}

/* Groups the sequences by batch into member [n]. end [batches + 1] is scratch. Returns the number of
 * sequences in a batch. */
static int64_t group_members(const int32_t *batch, int64_t n, int64_t batches, int64_t *end, int32_t *member)
{
    memset(end, 0, (size_t)(batches + 1) * sizeof *end);
    for (int64_t i = 0; i < n; i++)
        if (batch[i] >= 0)
            end[batch[i] + 1]++;
    for (int64_t b = 0; b < batches; b++)
        end[b + 1] += end[b];
    for (int64_t i = 0; i < n; i++)
        if (batch[i] >= 0)
            member[end[batch[i]]++] = (int32_t)i;
    return batches ? end[batches - 1] : 0;
}

/* Counts the pairs that share a batch in both x and y: for each member of a batch of x, the earlier members
 * with the same y. seen: zeros for each batch of y, before and after the call. */
static double common_pairs(const int32_t *x, const int32_t *y, const int32_t *member, int64_t members,
                           int64_t *seen)
{
    double pairs = 0;
    for (int64_t first = 0, end = 0; first < members; first = end) {
        for (; end < members && x[member[end]] == x[member[first]]; end++)
            if (y[member[end]] >= 0)
                pairs += (double)seen[y[member[end]]]++;
        for (int64_t i = first; i < end; i++)
            if (y[member[i]] >= 0)
                seen[y[member[i]]] = 0;
    }
    return pairs;
}

/* most: the largest number of batches of an epoch. */
static weft_status count_meetings(const weft_plan *plans, int epochs, int64_t most, weft_plan_meetings *m)
{
    double pairs = (double)plans->sequences * (double)(plans->sequences - 1) / 2;
    int64_t n = plans->sequences, *end = weft__plan_memory(most + 1, sizeof *end),
            *seen = weft__plan_memory(most, sizeof *seen);
    int32_t *batch = weft__plan_memory(n * epochs, sizeof *batch),
            *member = weft__plan_memory(n, sizeof *member);
    double *in_one = weft__plan_memory(epochs, sizeof *in_one);
    if (!end || !seen || !batch || !member || !in_one)
        return WEFT_ENOMEM;
    memset(seen, 0, (size_t)most * sizeof *seen);
    for (int e = 0; e < epochs; e++)
        find_batches(plans + e, batch + e * n);
    for (int e = 0; e < epochs; e++) {
        const int32_t *x = batch + e * n;
        int64_t members = group_members(x, n, plans[e].batches, end, member);
        in_one[e] = common_pairs(x, x, member, members, seen);
        m->pairs += in_one[e];
        for (int f = 0; f < e; f++) {
            m->again += common_pairs(x, batch + f * n, member, members, seen);
            m->by_chance += n > 1 ? in_one[e] * in_one[f] / pairs : 0;
        }
    }
    return WEFT_OK;
}

weft_status weft_plan_count_meetings(const weft_plan *plans, int epochs, weft_plan_meetings *out)
{
    if (!plans || !out || epochs < 1 || epochs > 1000)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_count_meetings: expected 1 .. 1000 plans and a pointer for counts");
    int64_t n = plans->sequences, most = 0;
    *out = (weft_plan_meetings){ 0 };
    for (int e = 0; e < epochs; e++) {
        if (plans[e].sequences != n)
            return weft_plan_refuse(
                WEFT_EARG,
                "plan_count_meetings: plan 0 has %lld sequences and plan %d has %lld; expected plans of the "
                "same sequences",
                (long long)n, e, (long long)plans[e].sequences);
        weft_status s = weft__plan_is_sound(plans + e, n, "plan_count_meetings: ");
        if (s != WEFT_OK)
            return s;
        most = plans[e].batches > most ? plans[e].batches : most;
    }
    WEFT__PLAN_SCOPE;
    return count_meetings(plans, epochs, most, out);
}
