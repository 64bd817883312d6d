/* test_endless.c - tests that planners with a short look-ahead keep earlier batches when later data arrive.
 * It compares the plan of the first lengths with the plan of all. */
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
            "%s: a batch changed", words);
}

/* Compares row and column of the first n sequences. */
static void same_places(const char *words, const weft_plan *part, const weft_plan *all, int64_t n)
{
    int64_t row, then;
    for (int64_t i = 0; i < n; i++) {
        const weft_segment *a = segment_of(part, i, &row), *b = segment_of(all, i, &then);
        cr_assert(!a == !b && (!a || (row == then && a->column == b->column)), "%s: sequence %lld has moved",
                  words, (long long)i);
    }
}

/* Batches that must stay. BATCHES: those of complete blocks of `block` sequences, `batches` per block.
 * BUT_LAST: all except the last. FULL: windows with a sequence in each of `batches` slots. PLACES: row and
 * column of each sequence. */
typedef enum { BATCHES, BUT_LAST, FULL, PLACES } what;

static const struct {
    const char *words;
    what final;
    int64_t block, batches;
} planners[] = { { "order:count=7", BATCHES, 7, 1 },
                 { "sorted:count=5,lookahead=20", BATCHES, 20, 4 },
                 { "pool:count=4,pool=3", BATCHES, 12, 3 },
                 { "laplace:count=4,pool=6", BATCHES, 24, 6 },
                 { "tokens:budget=90,sort=no", BUT_LAST, 0, 0 },
                 { "next_fit:capacity=40,rows=1", BUT_LAST, 0, 0 },
                 { "streams:slots=6,window=8", FULL, 0, 6 },
                 { "next_fit:capacity=40", PLACES, 0, 0 },
                 { "first_fit:capacity=40,open=5", PLACES, 0, 0 },
                 { "best_fit:capacity=40,open=5", PLACES, 0, 0 },
                 { "worst_fit:capacity=40,open=3", PLACES, 0, 0 },
                 { "first_fit:capacity=40", PLACES, 0, 0 },
                 { "refill:slots=6", PLACES, 0, 0 } };

static void compare(int k, const weft_plan *part, const weft_plan *all, int64_t n)
{
    int64_t batches = part->batches > 0 ? part->batches - 1 : 0;
    if (planners[k].final == PLACES) {
        same_places(planners[k].words, part, all, n);
        return;
    }
    if (planners[k].final == BATCHES)
        batches = n / planners[k].block * planners[k].batches;
    if (planners[k].final == FULL)
        for (batches = 0; batches < part->batches && part->batch[batches].n == planners[k].batches;)
            batches++;
    same_batches(planners[k].words, part, all, batches);
}

Test(endless, later_sequences_keep_earlier_batches)
{
    int32_t len[MOST];
    dice_seed(31);
    for (int round = 0; round < rounds(100, 1000); round++)
        for (int k = 0; k < COUNT(planners); k++) {
            for (int64_t i = 0; i < MOST; i++)
                len[i] = dice(9) ? 1 + (int32_t)dice(LONGEST) : 0;
            int64_t n = (int64_t)dice(MOST);
            PLAN part = plan_of(planners[k].words, len, n), all = plan_of(planners[k].words, len, MOST);
            compare(k, &part, &all, n);
        }
}
