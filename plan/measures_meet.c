/* measures_meet.c - how often the same two sequences are in one batch again, in the epochs of a planner. */
#include <math.h>
#include <stdlib.h>
#include "plan/plan.h"

static double pairs_of(int64_t n) { return (double)n * (double)(n - 1) / 2; }

/* The batch in which each sequence begins; -1: in none. */
static void find_batches(const weft_plan *p, int32_t *batch)
{
    for (int64_t i = 0; i < p->sequences; i++)
        batch[i] = -1;
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            if (!p->segment[i].offset)
                batch[p->segment[i].sequence] = (int32_t)b;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Pairs of equal keys; those below 0 are none. */
static double equal_pairs(int64_t *key, int64_t n)
{
    double pairs = 0;
    qsort(key, (size_t)n, sizeof *key, by_number);
    for (int64_t i = 0, first = 0; i < n; i++) {
        if (key[i] != key[first])
            first = i;
        if (key[i] >= 0 && (i + 1 == n || key[i + 1] != key[i]))
            pairs += pairs_of(i + 1 - first);
    }
    return pairs;
}

/* batch [epochs][n]; key [n]. A pair meets in both of two epochs where it has the same batch in each. */
static void count_meetings(const int32_t *batch, int64_t n, int epochs, int64_t *key, double *in_one,
                           weft_plan_meetings *m)
{
    for (int e = 0; e < epochs; e++) {
        for (int64_t i = 0; i < n; i++)
            key[i] = batch[e * n + i];
        in_one[e] = equal_pairs(key, n);
        m->pairs += in_one[e];
    }
    for (int f = 1; f < epochs; f++)
        for (int e = 0; e < f; e++) {
            for (int64_t i = 0; i < n; i++) {
                int64_t x = batch[e * n + i], y = batch[f * n + i];
                key[i] = x < 0 || y < 0 ? -1 : x << 32 | y;
            }
            m->again += equal_pairs(key, n);
            m->by_chance += n > 1 ? in_one[e] * in_one[f] / pairs_of(n) : 0;
        }
}

weft_status weft_plan_count_meetings(const weft_plan *plans, int epochs, weft_plan_meetings *out)
{
    if (!plans || !out || epochs < 1 || epochs > 1000)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_count_meetings: 1 .. 1000 plans and room for counts are expected");
    int64_t n = plans->sequences;
    *out = (weft_plan_meetings){ 0 };
    for (int e = 0; e < epochs; e++)
        if (plans[e].sequences != n)
            return weft_plan_refuse(
                WEFT_EARG,
                "plan_count_meetings: plan 0 is of %lld sequences and plan %d of %lld; plans "
                "of the same sequences are expected",
                (long long)n, e, (long long)plans[e].sequences);
    int32_t *batch = weft__plan_memory(n * epochs, sizeof *batch);
    int64_t *key = batch ? weft__plan_memory(n, sizeof *key) : NULL;
    double *in_one = key ? weft__plan_memory(epochs, sizeof *in_one) : NULL;
    for (int e = 0; e < epochs && in_one; e++)
        find_batches(plans + e, batch + e * n);
    if (in_one)
        count_meetings(batch, n, epochs, key, in_one, out);
    bool good = in_one != NULL;
    free(batch), free(key), free(in_one);
    return good ? WEFT_OK : WEFT_ENOMEM;
}
