/* test_shuffle.c - tests shuffle. Each epoch has other rows and batches; the same seed and epoch give the
 * same plan. A shuffled plan is the plan of the sequences in the drawn order, except for the order of its
 * batches. */
#include "plans.h"

enum { MOST = 300, LONGEST = 30 };

/* A row is a batch, so that rows can be compared like batches. */
static const char *const planners[] = { "next_fit:capacity=64,rows=1",
                                        "first_fit:capacity=64,rows=1",
                                        "first_fit:capacity=64,open=4,limit=5,rows=1",
                                        "best_fit:capacity=64,rows=1",
                                        "worst_fit:capacity=64,rows=1",
                                        "next_fit_decreasing:capacity=64,rows=1",
                                        "first_fit_decreasing:capacity=64,rows=1",
                                        "first_fit_decreasing:capacity=64,lookahead=40,rows=1",
                                        "best_fit_decreasing:capacity=64,rows=1",
                                        "worst_fit_decreasing:capacity=64,rows=1",
                                        "modified_first_fit_decreasing:capacity=64,rows=1",
                                        "greedy_knapsack:capacity=64,extra=2,rows=1",
                                        "first_fit:capacity=64,squares=1600,align=4,rows=1",
                                        "best_fit:capacity=64,limit=9,rows=1,longer=split",
                                        "spfhp:capacity=64,rows=1",
                                        "spfhp_stacked:capacity=64,rows=1",
                                        "lpfhp:capacity=64,rows=1",
                                        "exact_fill:capacity=64,rows=1",
                                        "column_generation:capacity=64,rows=1",
                                        "best_fit_split:capacity=64,rows=1",
                                        "sorted:count=7",
                                        "sorted:count=7,lookahead=50",
                                        "pool:count=4,pool=5",
                                        "pool:tokens=200,pool=5",
                                        "laplace:count=4,pool=5",
                                        "tokens:budget=200",
                                        "tokens:budget=200,multiple=4,sort=no",
                                        "buckets:bounds=5/9/20,sizes=4/3/6/2",
                                        "geometric:budget=90,ratio=1.5,least=2",
                                        "optimal_buckets:k=4,count=6",
                                        "powers:budget=32",
                                        "chunk:capacity=16,rows=3",
                                        "chunk:capacity=16,rows=1,carry=yes",
                                        "refill:slots=5",
                                        "streams:slots=4,window=6" };

static void any_lengths_of(int32_t *len, bool zeros)
{
    for (int64_t i = 0; i < MOST; i++)
        len[i] = zeros && !dice(9) ? 0 : 1 + (int32_t)dice(LONGEST);
}

static weft_plan shuffled(const char *words, const int32_t *len, int64_t n, int seed, int epoch)
{
    char text[100];
    snprintf(text, sizeof text, "%s,shuffle=yes,seed=%d,epoch=%d", words, seed, epoch);
    return plan_of(text, len, n);
}

/* order: maps each sequence of b; NULL: no mapping. */
static bool same_batch(const weft_plan *a, int64_t i, const weft_plan *b, int64_t k, const int32_t *order)
{
    if (a->batch[i].n != b->batch[k].n || a->batch[i].width != b->batch[k].width)
        return false;
    for (int64_t at = 0; at < a->batch[i].n; at++) {
        weft_segment x = a->segment[a->batch[i].first + at], y = b->segment[b->batch[k].first + at];
        y.sequence = order ? order[y.sequence] : y.sequence;
        if (memcmp(&x, &y, sizeof x))
            return false;
    }
    return true;
}

/* Returns how many batches of a occur in b, at any position. */
static int64_t shared_batches(const weft_plan *a, const weft_plan *b, const int32_t *order)
{
    bool taken[MOST * LONGEST] = { false };
    int64_t shared = 0;
    for (int64_t i = 0; i < a->batches; i++)
        for (int64_t k = 0; k < b->batches; k++)
            if (!taken[k] && same_batch(a, i, b, k, order)) {
                taken[k] = true, shared++;
                break;
            }
    return shared;
}

Test(shuffle, epoch_is_the_plan_of_a_drawn_order)
{
    int32_t len[MOST], drawn[MOST], order[MOST];
    dice_seed(71);
    for (int round = 0; round < rounds(4, 60); round++)
        for (int k = 0; k < COUNT(planners); k++) {
            /* best_fit_split draws an order of pieces; without empty sequences, pieces are sequences */
            any_lengths_of(len, round % 2 && strncmp(planners[k], "best_fit_split", 14));
            weft_stream *s = weft_stream_new((uint64_t)round, "plan.3");
            for (int i = 0; i < MOST; i++)
                order[i] = i;
            weft_stream_permutation(s, MOST, order);
            weft_stream_free(s);
            for (int i = 0; i < MOST; i++)
                drawn[i] = len[order[i]];
            PLAN p = shuffled(planners[k], len, MOST, round, 3), plain = plan_of(planners[k], drawn, MOST);
            int64_t shared = shared_batches(&p, &plain, order);
            cr_assert(p.batches == plain.batches && shared == p.batches, "%s: %lld of %lld batches",
                      planners[k], (long long)shared, (long long)p.batches);
        }
}

/* With 300 sequences of 30 lengths, rows of several sequences rarely repeat. */
Test(shuffle, epochs_pack_different_rows)
{
    int32_t len[MOST];
    dice_seed(72);
    any_lengths_of(len, false);
    for (int k = 0; k < COUNT(planners); k++) {
        PLAN first = shuffled(planners[k], len, MOST, 1, 0), again = shuffled(planners[k], len, MOST, 1, 0),
             next = shuffled(planners[k], len, MOST, 1, 1), other = shuffled(planners[k], len, MOST, 2, 0);
        cr_assert(first.segments == again.segments &&
                      !memcmp(first.segment, again.segment, (size_t)first.segments * sizeof *first.segment),
                  "%s: one seed and epoch, two plans", planners[k]);
        cr_assert_lt(shared_batches(&first, &next, NULL), first.batches / 3 + 1, "%s: two epochs",
                     planners[k]);
        cr_assert_lt(shared_batches(&first, &other, NULL), first.batches / 3 + 1, "%s: two seeds",
                     planners[k]);
    }
}

Test(shuffle, order_planner_draws_the_order_of_batches)
{
    int32_t len[MOST];
    dice_seed(74);
    any_lengths_of(len, true);
    PLAN p = shuffled("order:count=7", len, MOST, 1, 0), plain = plan_of("order:count=7", len, MOST);
    cr_assert_eq(shared_batches(&p, &plain, NULL), plain.batches);
    cr_assert(memcmp(p.segment, plain.segment, (size_t)p.segments * sizeof *p.segment));
}
