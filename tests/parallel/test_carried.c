/* test_carried.c - tests that shards of a plan with carried states have the bits of the whole plan, and
 * refused calls. tests/scripts/test_parallel.sh tests ranks. */
#include "tests/plan/plans.h"

enum { N = 9, WIDTH = 3, HIDDEN = 5, MOST = 40, SHARDS = 7 };

static int32_t lengths[N];
static int64_t offsets[N + 1];
static weft_real rows[N * MOST * WIDTH];

static weft_dataset data_of(void)
{
    for (int i = 0; i < N; i++) {
        lengths[i] = (i * 13 + 4) % MOST;
        offsets[i + 1] = offsets[i] + lengths[i];
    }
    for (int i = 0; i < COUNT(rows); i++)
        rows[i] = (weft_real)(i % 17 - 8) / 5;
    return (weft_dataset){ .n = N, .columns = WIDTH, .len = lengths, .offset = offsets, .rows = rows };
}

typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *rnn;
    weft_dataset data;
} model;
static model new_model(void)
{
    model x = { .w = open_on(WEFT_CPU), .data = data_of() };
    x.m = weft_module_new(x.w, "net");
    x.rnn = weft_lstm_new(x.m, "rnn", &(weft_rnn_opts){ .input = WIDTH, .hidden = HIDDEN });
    return x;
}

/* Runs a batch and stores each segment's outputs at the positions of its tokens in the data. */
static weft_tensor *run(model *x, const weft_plan *p, int64_t batch, weft_carried *kept, weft_real *out)
{
    weft_plan_step s = weft_plan_step_of(x->w, p, batch);
    weft_tensor *y = weft_rnn_run_plan(x->rnn, weft_plan_tokens(&s, &x->data, 0, 0), &s, kept).y;
    weft_real all[N * MOST * HIDDEN], *at = all;
    int64_t tokens = 0;
    for (int64_t i = 0; i < s.lengths.n; i++)
        tokens += s.lengths.len[i];
    weft_read_sequences(y, all, (size_t)(tokens * HIDDEN) * sizeof *all);
    for (int64_t i = 0; weft_ok(x->w) && i < s.lengths.n; i++) {
        size_t n = (size_t)s.lengths.len[i] * HIDDEN;
        memcpy(out + (offsets[s.lengths.id[i]] + s.lengths.offset[i]) * HIDDEN, at, n * sizeof *at);
        at += n;
    }
    return y;
}

static void in_shards(const char *text, int shards, weft_real *out)
{
    model x = new_model();
    weft_plan whole = plan_of(text, lengths, N), part[SHARDS];
    weft_carried *kept[SHARDS];
    cr_assert_eq(weft_plan_split(&whole, shards, part), WEFT_OK, "%s", weft_plan_message());
    for (int s = 0; s < shards; s++) {
        char name[16];
        snprintf(name, sizeof name, "kept%d", s);
        kept[s] = weft_carried_new(x.m, name, x.rnn, part + s);
    }
    weft_parallel *p = weft_parallel_new(x.m, &(weft_parallel_opts){ .shards = shards });
    int64_t segments = 0;
    for (int64_t b = 0; b < whole.batches; b++) {
        weft_parallel_begin_plan(p, part, b);
        int64_t first = segments;                /* positions continue from shard to shard */
        for (weft_part at; weft_parallel_next(p, &at); segments += at.n) {
            const weft_plan_batch *of = part[at.shard].batch + b;
            cr_assert(at.n == of->n && at.shard < shards);
            for (int64_t i = 0; i < at.n; i++)
                cr_assert(at.index[i] == part[at.shard].segment[of->first + i].sequence &&
                          at.place[i] == segments - first + i);
            weft_tensor *y = run(&x, part + at.shard, b, kept[at.shard], out);
            weft_parallel_add(p, (weft_loss){ weft_sum_all(y), weft_scalar(x.w, (double)at.n) });
        }
        OK(x.w);
    }
    cr_assert_eq(segments, whole.segments);
    for (int s = 0; s < shards; s++)
        weft_plan_free(part + s);
    weft_plan_free(&whole);
    CLEAN(x.w);
}

Test(carried, shards_match_the_whole_plan)
{
    static const char *const text[] = { "streams:slots=5,window=4", "chunk:capacity=6,rows=4,carry=yes",
                                        "streams:slots=3,window=40,shuffle=yes", "order:count=4" };
    static weft_real a[N * MOST * HIDDEN], b[N * MOST * HIDDEN];
    for (int k = 0; k < COUNT(text); k++) {
        model x = new_model();
        PLAN whole = plan_of(text[k], lengths, N);
        weft_carried *kept = weft_carried_new(x.m, "kept", x.rnn, &whole);
        for (int64_t i = 0; i < whole.batches; i++, weft_clear(x.w))
            run(&x, &whole, i, kept, a);
        OK(x.w);
        CLEAN(x.w);
        for (int shards = 1; shards <= SHARDS; shards++) {
            memset(b, 0, sizeof b);
            in_shards(text[k], shards, b);
            cr_assert(!memcmp(a, b, sizeof a), "%s in %d shards", text[k], shards);
        }
    }
}

Test(carried, invalid_plans_are_refused)
{
    model x = new_model();
    weft_plan whole = plan_of("streams:slots=4,window=4", lengths, N), part[2];
    weft_parallel *p = weft_parallel_new(x.m, &(weft_parallel_opts){ .shards = 2 });
    cr_assert_eq(weft_plan_split(&whole, 2, part), WEFT_OK);
#define FAILS_AND_GOES_ON(with, batch, says)      \
    do {                                          \
        weft_part none;                           \
        weft_parallel_begin_plan(p, with, batch); \
        cr_assert(!weft_parallel_next(p, &none)); \
        FAILS(x.w, WEFT_EARG, says);              \
    } while (0)
    FAILS_AND_GOES_ON(NULL, 0, "parallel_begin_plan: expected a plan for each of 2 shards");
    FAILS_AND_GOES_ON(part, -1,
                      "parallel_begin_plan: batch -1; expected one of the plan of shard 0, which has");
    FAILS_AND_GOES_ON(part, whole.batches, "the plan of shard 0, which has");
    FAILS_AND_GOES_ON(((weft_plan[]){ part[0], part[0] }), 0,
                      "plan 1 is of shard 0 (-1: of none); expected that of shard 1 of 2");
    FAILS_AND_GOES_ON(&whole, 0, "plan 0 is of shard -1");
    weft_parallel_begin_plan(NULL, part, 0);
    weft_carried *first = weft_carried_new(x.m, "first", x.rnn, part),
                 *all = weft_carried_new(x.m, "all", x.rnn, &whole);
    static weft_real out[N * MOST * HIDDEN];
    weft_part at;
    weft_parallel_begin_plan(p, part, 0);
    cr_assert(weft_parallel_next(p, &at) && at.shard == 0);
    run(&x, &whole, 0, all, out);
    FAILS(x.w, WEFT_EARG,
          "shard 0 is in progress, the plan is of shard -1, the carried states are of shard -1");
    weft_parallel_next(p, &at), weft_recover(x.w);
    weft_parallel_begin_plan(p, part, 0);
    cr_assert(weft_parallel_next(p, &at));
    run(&x, part, 0, first, out);
    weft_parallel_add(p, (weft_loss){ weft_scalar(x.w, 0), weft_scalar(x.w, 1) });
    weft_recover(x.w);
    weft_parallel_next(p, &at), weft_recover(x.w);
    run(&x, part + 1, 0, first, out); /* outside of shards, too, states are of one plan */
    FAILS(x.w, WEFT_EARG, "the plan is of shard 1, the carried states are of shard 0");
    run(&x, part, 0, first, out); /* a shard's plan alone, to judge by, say */
    OK(x.w);
    weft_plan_free(part), weft_plan_free(part + 1), weft_plan_free(&whole);
    CLEAN(x.w);
}
