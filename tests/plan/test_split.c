/* test_split.c - tests that weft_plan_split assigns each segment to one shard, keeps carried states in their
 * shard, and refuses plans whose states would leave it. */
#include "plans.h"
#include "tests/failing_malloc.h"

enum { MOST = 40, SHARDS = 9 };

static int64_t rows_of(const weft_plan *p)
{
    int64_t rows = 1;
    for (int64_t b = 0; b < p->batches; b++)
        rows = p->batch[b].rows > rows ? p->batch[b].rows : rows;
    return rows;
}

/* Checks that segment i of batch b is the next one of its shard, with its carried state. found: [shards]
 * counts. */
static void is_dealt(const weft_plan *p, const weft_plan *part, int shards, int64_t b, int64_t i,
                     int64_t *found)
{
    int64_t rows = rows_of(p), first = 0;
    const weft_segment *s = p->segment + i;
    int shard = (int)(s->row * shards / rows);
    while (first * shards / rows < shard)
        first++;
    const weft_plan_batch *in = part[shard].batch + b;
    cr_assert(found[shard] < in->n);
    const weft_segment *is = part[shard].segment + in->first + found[shard]++;
    cr_assert(is->sequence == s->sequence && is->offset == s->offset && is->length == s->length &&
              is->column == s->column && is->row == s->row - first && is->row < in->rows);
    cr_assert_eq(is->carry < 0, s->carry < 0);
    if (s->carry < 0)
        return;
    const weft_segment *left = p->segment + p->batch[b - 1].first + s->carry,
                       *found_it = part[shard].segment + part[shard].batch[b - 1].first + is->carry;
    cr_assert(is->carry < part[shard].batch[b - 1].n && found_it->sequence == left->sequence &&
              found_it->offset == left->offset && found_it->row == left->row - first);
}

static void is_split(const weft_plan *p, const int32_t *len, int64_t n, int shards)
{
    weft_plan part[SHARDS];
    int64_t segments = 0, left = 0;
    PLANS(weft_plan_split(p, shards, part));
    for (int64_t b = 0; b < p->batches; b++) {
        int64_t found[SHARDS] = { 0 };
        for (int64_t i = 0; i < p->batch[b].n; i++)
            is_dealt(p, part, shards, b, p->batch[b].first + i, found);
        for (int k = 0; k < shards; k++)
            cr_assert(found[k] == part[k].batch[b].n && part[k].batch[b].width <= p->batch[b].width);
    }
    for (int k = 0; k < shards; k++) {
        cr_assert(part[k].batches == p->batches && part[k].in_rows == p->in_rows);
        cr_assert_eq(part[k].shard, shards > 1 ? k + 1 : 0);
        PLANS(weft_plan_check(part + k, len, n, 0));
        segments += part[k].segments, left += part[k].tokens - part[k].dropped;
        weft_plan_free(part + k);
    }
    cr_assert(segments == p->segments && left == p->tokens - p->dropped);
}

Test(split, shards_keep_every_segment_and_state)
{
    static const char *const text[] = { "streams:slots=7,window=4,shuffle=yes",
                                        "chunk:capacity=5,rows=6,carry=yes",
                                        "chunk:capacity=5,rows=4",
                                        "best_fit_decreasing:capacity=70,rows=5",
                                        "order:count=6",
                                        "pool:tokens=50,shuffle=yes",
                                        "refill:slots=5",
                                        "streams:slots=3,window=30" };
    for (int k = 0; k < rounds(200, 2000); k++) {
        int32_t len[MOST];
        int64_t n = any_lengths(len, MOST, 60);
        PLAN p = plan_of(text[k % COUNT(text)], len, n);
        is_split(&p, len, n, 1 + (int)dice(SHARDS));
    }
}

/* ---- states that would leave their shard ---- */
/* Two sequences begin in rows 0 and 1 of four and continue in the given rows. */
static weft_plan wanders(int32_t first, int32_t second)
{
    weft_plan p = { .in_rows = true, .sequences = 2, .tokens = 8, .not_empty = 2 };
    PLANS(weft_plan_add(&p, (weft_segment){ 0, 0, 0, 2, 0, -1 }));
    PLANS(weft_plan_add(&p, (weft_segment){ 1, 0, 0, 2, 1, -1 }));
    PLANS(weft_plan_end_batch(&p, 4, 2));
    PLANS(weft_plan_add(&p, (weft_segment){ 0, 0, 2, 2, first, 0 }));
    PLANS(weft_plan_add(&p, (weft_segment){ 1, 0, 2, 2, second, 1 }));
    PLANS(weft_plan_end_batch(&p, 4, 2));
    PLANS(weft_plan_check(&p, (int32_t[]){ 4, 4 }, 2, WEFT_PLAN_CARRIES));
    return p;
}

Test(split, state_from_another_shard_is_refused)
{
    static const int32_t len[] = { 4, 4 };
    weft_plan p = wanders(0, 3), part[4];
    REFUSED(weft_plan_split(&p, 2, part), WEFT_EARG,
            "plan_split: batch 1, row 3, in shard 1, carries the state of row 1 of the batch before, in "
            "shard 0");
    cr_assert(!part[0].segments && !part[0].batch && !part[1].segments && !part[1].batches);
    is_split(&p, len, 2, 1);
    weft_plan_free(&p);
    p = wanders(1, 0); /* rows may change within a shard */
    is_split(&p, len, 2, 2);
    REFUSED(weft_plan_split(&p, 4, part), WEFT_EARG, "row 1, in shard 1, carries the state of row 0");
    weft_plan_free(&p);
}

Test(split, invalid_plans_are_refused)
{
    weft_plan p = wanders(0, 1), part[2], again[2];
    REFUSED(weft_plan_split(NULL, 2, part), WEFT_EARG, "plan_split: expected a whole plan");
    REFUSED(weft_plan_split(&p, 0, part), WEFT_EARG, "plan_split: expected a whole plan");
    REFUSED(weft_plan_split(&p, 2, NULL), WEFT_EARG, "plan_split: expected a whole plan");
    PLANS(weft_plan_split(&p, 2, part));
    REFUSED(weft_plan_split(part, 2, again), WEFT_EARG, "this one is of a shard");
    weft_plan_free(part), weft_plan_free(part + 1);
    p.segment[3].carry = 2;
    REFUSED(weft_plan_split(&p, 2, part), WEFT_EFORMAT,
            "carries the state of segment 2 of the batch before; expected a segment below 2");
    p.segment[3].carry = 1, p.segment[1].row = 4;
    REFUSED(weft_plan_split(&p, 2, part), WEFT_EFORMAT,
            "plan_split: segment 1, 2 tokens of sequence 1 from token 0 on, in row 4 from");
    weft_plan_free(&p);
    weft_plan none = { 0 };
    PLANS(weft_plan_split(&none, 2, part));
    cr_assert(!part[0].batches && !part[1].segments);
    weft_plan_free(part), weft_plan_free(part + 1);
}

Test(split, survives_failure_of_each_allocation)
{
    weft_plan p = wanders(0, 1), part[2];
    weft_status s;
    FOR_EACH_FAILURE(s, weft_plan_split(&p, 2, part))
        cr_assert(s == WEFT_ENOMEM && !part[0].segment && !part[1].batch, "allocation %ld", failing.at);
    cr_assert(!COUNTED || failing.at > 4);
    weft_plan_free(part), weft_plan_free(part + 1), weft_plan_free(&p);
}
