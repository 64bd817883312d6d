/* measures_meet.c - how often the same two sequences are in one batch again, in the epochs of a planner. */
#include <stdlib.h>
#include <string.h>
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

/* The sequences of each batch together, member [n]; end [batches + 1] is room. How many have a batch. */
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

/* Pairs that are in one batch of x and in one of y: of the members of a batch of x those before that have the
 * same y. seen: 0 for each batch of y, before and afterwards. */
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

/* All that is allocated: batch [epochs][n], member [n], end and seen [most batches + 1], in_one [epochs]. */
typedef struct {
    int32_t *batch, *member;
    int64_t *end, *seen;
    double *in_one;
} room;

static bool make_room(room *r, int64_t n, int epochs, int64_t most)
{
    r->batch = weft__plan_memory(n * epochs, sizeof *r->batch);
    r->member = r->batch ? weft__plan_memory(n, sizeof *r->member) : NULL;
    r->end = r->member ? weft__plan_memory(most + 1, sizeof *r->end) : NULL;
    r->seen = r->end ? weft__plan_memory(most, sizeof *r->seen) : NULL;
    r->in_one = r->seen ? weft__plan_memory(epochs, sizeof *r->in_one) : NULL;
    if (r->in_one)
        memset(r->seen, 0, (size_t)most * sizeof *r->seen);
    return r->in_one != NULL;
}

static void free_room(room *r)
{
    free(r->batch), free(r->member), free(r->end), free(r->seen), free(r->in_one);
}

static void count_meetings(const weft_plan *plans, int epochs, room *r, weft_plan_meetings *m)
{
    int64_t n = plans->sequences;
    for (int e = 0; e < epochs; e++)
        find_batches(plans + e, r->batch + e * n);
    for (int e = 0; e < epochs; e++) {
        const int32_t *x = r->batch + e * n;
        int64_t members = group_members(x, n, plans[e].batches, r->end, r->member);
        r->in_one[e] = common_pairs(x, x, r->member, members, r->seen);
        m->pairs += r->in_one[e];
        for (int f = 0; f < e; f++) {
            m->again += common_pairs(x, r->batch + f * n, r->member, members, r->seen);
            m->by_chance += n > 1 ? r->in_one[e] * r->in_one[f] / pairs_of(n) : 0;
        }
    }
}

weft_status weft_plan_count_meetings(const weft_plan *plans, int epochs, weft_plan_meetings *out)
{
    if (!plans || !out || epochs < 1 || epochs > 1000)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_count_meetings: 1 .. 1000 plans and room for counts are expected");
    int64_t n = plans->sequences, most = 0;
    *out = (weft_plan_meetings){ 0 };
    for (int e = 0; e < epochs; e++) {
        if (plans[e].sequences != n)
            return weft_plan_refuse(
                WEFT_EARG,
                "plan_count_meetings: plan 0 is of %lld sequences and plan %d of %lld; plans "
                "of the same sequences are expected",
                (long long)n, e, (long long)plans[e].sequences);
        weft_status s = weft__plan_is_sound(plans + e, n, "plan_count_meetings: ");
        if (s != WEFT_OK)
            return s;
        most = plans[e].batches > most ? plans[e].batches : most;
    }
    room r = { 0 };
    bool good = make_room(&r, n, epochs, most);
    if (good)
        count_meetings(plans, epochs, &r, out);
    free_room(&r);
    return good ? WEFT_OK : WEFT_ENOMEM;
}
