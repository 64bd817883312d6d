/* test_endless.c - data without end: what planners that look ahead a little have dealt stays as it is,
 * whatever comes after. The plan of the first lengths is compared with that of all. */
#include "plans.h"

enum { MOST = 400, LONGEST = 30 };

static const weft_segment *segment_of(const weft_plan *p, int64_t sequence, int64_t *row)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < p->batches; rows += p->batch[b++].rows)
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++)
            if (p->segment[i].sequence == sequence)
                return *row = rows + p->segment[i].row, p->segment + i;
    return NULL;
}

static void same_batches(const char *words, const weft_plan *part, const weft_plan *all, int64_t n)
{
    cr_assert(n <= part->batches && n <= all->batches, "%s: %lld batches of %lld and %lld", words,
              (long long)n, (long long)part->batches, (long long)all->batches);
    if (n > 0)
        cr_assert(
            !memcmp(part->batch, all->batch, (size_t)n * sizeof *part->batch) &&
                !memcmp(part->segment, all->segment,
                        (size_t)(part->batch[n - 1].first + part->batch[n - 1].n) * sizeof *part->segment),
            "%s: a batch has changed", words);
}

static void any_endless(int32_t *len)
{
    for (int64_t i = 0; i < MOST; i++)
        len[i] = dice(9) ? 1 + (int32_t)dice(LONGEST) : 0;
}

/* Whole batches: all that is before the block in which the first lengths end. */
Test(endless, batches_are_final)
{
    static const struct {
        const char *words;
        int64_t block, batches;
    } table[] = { { "order:count=7", 7, 1 },
                  { "sorted:count=5,lookahead=20", 20, 4 },
                  { "pool:count=4,pool=3", 12, 3 },
                  { "laplace:count=4,pool=6", 24, 6 } };
    int32_t len[MOST];
    dice_seed(31);
    for (int round = 0; round < rounds(200, 2000); round++)
        for (int k = 0; k < COUNT(table); k++) {
            any_endless(len);
            int64_t n = (int64_t)dice(MOST), blocks = n / table[k].block;
            weft_plan part = plan_of(table[k].words, len, n), all = plan_of(table[k].words, len, MOST);
            same_batches(table[k].words, &part, &all, blocks * table[k].batches);
            weft_plan_free(&part);
            weft_plan_free(&all);
        }
}

/* All batches but the last. */
Test(endless, all_but_the_last_are_final)
{
    static const char *const table[] = { "tokens:budget=90,sort=no", "next_fit:capacity=40,rows=1" };
    int32_t len[MOST];
    dice_seed(32);
    for (int round = 0; round < rounds(200, 2000); round++)
        for (int k = 0; k < COUNT(table); k++) {
            any_endless(len);
            int64_t n = (int64_t)dice(MOST);
            weft_plan part = plan_of(table[k], len, n), all = plan_of(table[k], len, MOST);
            same_batches(table[k], &part, &all, part.batches > 0 ? part.batches - 1 : 0);
            weft_plan_free(&part);
            weft_plan_free(&all);
        }
}

/* The row and the column of a sequence. */
Test(endless, places_are_final)
{
    static const char *const table[] = { "next_fit:capacity=40",        "first_fit:capacity=40,open=5",
                                         "best_fit:capacity=40,open=5", "worst_fit:capacity=40,open=3",
                                         "first_fit:capacity=40",       "refill:slots=6" };
    int32_t len[MOST];
    dice_seed(33);
    for (int round = 0; round < rounds(30, 300); round++)
        for (int k = 0; k < COUNT(table); k++) {
            any_endless(len);
            int64_t n = (int64_t)dice(MOST), row, then;
            weft_plan part = plan_of(table[k], len, n), all = plan_of(table[k], len, MOST);
            for (int64_t i = 0; i < n; i++) {
                const weft_segment *a = segment_of(&part, i, &row), *b = segment_of(&all, i, &then);
                cr_assert(!a == !b && (!a || (row == then && a->column == b->column)),
                          "%s: sequence %lld has moved", table[k], (long long)i);
            }
            weft_plan_free(&part);
            weft_plan_free(&all);
        }
}

/* Windows in which no slot is without a sequence. */
Test(endless, full_windows_are_final)
{
    const char *words = "streams:slots=6,window=8";
    int32_t len[MOST];
    dice_seed(34);
    for (int round = 0; round < rounds(200, 2000); round++) {
        any_endless(len);
        weft_plan part = plan_of(words, len, (int64_t)dice(MOST)), all = plan_of(words, len, MOST);
        int64_t full = 0;
        while (full < part.batches && part.batch[full].n == 6)
            full++;
        same_batches(words, &part, &all, full);
        weft_plan_free(&part);
            weft_plan_free(&all);
    }
}
