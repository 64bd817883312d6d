/* test_gather.c - tests weft_parallel_put and weft_parallel_gathered on one rank: order and size of results,
 * and refused calls. tests/scripts/test_parallel.sh tests ranks. */
#include "../check.h"

enum { N = 11 };
static weft *w;
static weft_module *m;
static weft_tensor *weight;

static weft_parallel *begun(int shards)
{
    w = open_on(WEFT_CPU);
    m = weft_module_new(w, "m");
    weight = weft_parameter(m, "w", WEFT_SHAPE(1), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    return weft_parallel_new(m, &(weft_parallel_opts){ .shards = shards });
}

static weft_loss loss(void) { return (weft_loss){ weft_sum_all(weight), weft_scalar(w, 1) }; }

/* The result of sequence s is s * scale bytes of value s. */
static void put(weft_parallel *p, int64_t i, int32_t s, int scale)
{
    char bytes[256];
    memset(bytes, s, sizeof bytes);
    weft_parallel_put(p, i, bytes, s * scale);
}

Test(gather, results_have_the_order_of_the_batch)
{
    const int32_t index[N] = { 4, 9, 2, 7, 0, 10, 1, 3, 8, 6, 5 };
    for (int shards = 1; shards <= 13; shards += 3) {
        weft_parallel *p = begun(shards);
        for (int scale = 1; scale < 20; scale += 6) {
            weft_parallel_begin(p, index, N);
            cr_assert_null(weft_parallel_gathered(p, NULL), "results of the previous batch");
            for (weft_part part; weft_parallel_next(p, &part); weft_parallel_add(p, loss()))
                for (int64_t i = 0; i < part.n; i++)
                    put(p, part.n - 1 - i, part.index[part.n - 1 - i], scale);
            int64_t n = 0;
            const weft_parallel_result *r = weft_parallel_gathered(p, &n);
            cr_assert_eq(n, N);
            for (int k = 0; k < N; k++) {
                cr_assert_eq(r[k].n, index[k] * scale);
                cr_assert_not_null(r[k].bytes);
                cr_assert_eq((uintptr_t)r[k].bytes % sizeof(double), 0, "not aligned for numbers");
                for (int64_t b = 0; b < r[k].n; b++)
                    cr_assert_eq(((const char *)r[k].bytes)[b], index[k]);
            }
        }
        CLEAN(w);
    }
}

Test(gather, missing_results_are_null)
{
    weft_parallel *p = begun(3);
    int64_t n = 7;
    WEFT_NO_GRAD(w) {
        weft_parallel_begin(p, NULL, N);
        for (weft_part part; weft_parallel_next(p, &part);)
            continue;
        cr_assert_null(weft_parallel_gathered(p, &n));
        cr_assert_eq(n, 0);
        weft_parallel_begin(p, NULL, N);
        for (weft_part part; weft_parallel_next(p, &part);)
            for (int64_t i = 0; i < part.n; i++)
                if (part.index[i] == 3 || part.index[i] == 8)
                    weft_parallel_put(p, i, part.index[i] == 3 ? NULL : "8", part.index[i] == 8);
    }
    const weft_parallel_result *r = weft_parallel_gathered(p, &n);
    cr_assert_eq(n, N);
    for (int i = 0; i < N; i++)
        cr_assert((r[i].bytes != NULL) == (i == 3 || i == 8) && r[i].n == (i == 8));
    cr_assert_eq(*(const char *)r[8].bytes, '8');
    CLEAN(w);
}

/* A result that is put `times` times, for sequence i of the first shard, which has six. LATE: after the loss.
 * NONE: no shard is in progress. */
enum { NONE = -1, LATE = 0 };
static const struct {
    int times;
    int64_t i;
    const char *bytes;
    int64_t n;
    const char *says;
} wrong[] = { { NONE, 0, "x", 1, "parallel_put: no shard is in progress" },
              { 2, 2, "x", 1, "parallel_put: sequence 2 of the shard already has a result" },
              { 1, 6, "x", 1, "parallel_put: sequence 6 of the shard; expected 0 .. 5" },
              { 1, -1, "x", 1, "parallel_put: sequence -1 of the shard; expected 0 .. 5" },
              { 1, 0, "", -1, "parallel_put: -1 bytes of sequence 0; expected 0 .. 2^31 - 1" },
              { 1, 1, NULL, 4, "parallel_put: 4 bytes, NULL, of sequence 1; expected 0 .. 2^31 - 1" },
              { 1, 0, "", (int64_t)1 << 31, "parallel_put: 2147483648 bytes of sequence 0" },
              { LATE, 0, "x", 1, "the shard already has one" } };

static void put_wrongly(weft_parallel *p, int k)
{
    weft_part part = { 0 };
    if (wrong[k].times != NONE) {
        weft_parallel_begin(p, NULL, N);
        cr_assert(weft_parallel_next(p, &part));
        cr_assert_eq(part.n, 6);
    }
    if (wrong[k].times == LATE) {
        weft_parallel_add(p, loss());
        put(p, 0, 1, 1);                         /* still in this shard */
        cr_assert(weft_ok(w));
        weft_parallel_add(p, loss());
    }
    for (int times = wrong[k].times; times; times += times < 0 ? 1 : -1)
        weft_parallel_put(p, wrong[k].i, wrong[k].bytes, wrong[k].n);
    cr_assert_not(weft_ok(w));
    cr_assert(strstr(weft_error_message(w), wrong[k].says), "%s", weft_error_message(w));
    cr_assert_not(wrong[k].times != NONE && weft_parallel_next(p, &part));
}

Test(gather, wrong_calls_are_reported)
{
    int64_t n = 5;
    for (int k = 0; k < COUNT(wrong); k++) {
        weft_parallel *p = begun(2);
        weft_part part;
        put_wrongly(p, k);
        cr_assert_null(weft_parallel_gathered(p, NULL));
        weft_recover(w);
        weft_parallel_begin(p, NULL, 1);         /* works again */
        for (; weft_parallel_next(p, &part); weft_parallel_add(p, loss()))
            put(p, 0, 1, 5);
        cr_assert_eq(weft_parallel_gathered(p, NULL)[0].n, 5);
        CLEAN(w);
    }
    weft_parallel_put(NULL, 0, NULL, 0);
    cr_assert_null(weft_parallel_gathered(NULL, &n));
    cr_assert_eq(n, 0);
}

Test(gather, survives_failure_of_each_allocation)
{
    bool failed = true;
    for (int at = 1; failed; at++) {
        weft_parallel *p = begun(2);
        fail_in(w, at);
        weft_parallel_begin(p, NULL, N);
        for (weft_part part; weft_parallel_next(p, &part); weft_parallel_add(p, loss()))
            for (int64_t i = 0; i < part.n; i++)
                put(p, i, part.index[i], 20);
        failed = !weft_ok(w);
        fail_in(w, 0);
        cr_assert((weft_parallel_gathered(p, NULL) == NULL) == failed);
        cr_assert(!failed || weft_error_code(w) == WEFT_ENOMEM);
        cr_assert(failed || at > 8, "%d allocations", at);
        CLEAN_FAILED(w);
    }
}
