/* test_context.c - tests unusual states of a context: opened without memory, failing while an error callback
 * calls it, rewound to ended marks, and its memory usage. */
#include <pthread.h>
#include <unistd.h>
#include "tests/check.h"
#include "core/inside.h"

/* ---- without memory ---- */
static void *nothing(size_t bytes, void *user) { (void)bytes, (void)user; return NULL; }
static void never(void *p, void *user) { (void)user; cr_assert_null(p); }

static void *opened(void *user)
{
    (void)user;
    return weft_open(&(weft_opts){ .allocate = nothing, .release = never });
}

static void count_errors(weft_status s, const char *message, void *user)
{
    (void)s, (void)message, ++*(int *)user;
}

/* Calls every kind of function on a context that failed to open. */
static void *used(void *context)
{
    weft *w = context;
    int told = 0;
    weft_on_error(w, count_errors, &told);
    weft_fail(w, WEFT_EIO, "more");
    weft_synchronize(w), weft_clear(w), weft_recover(w), weft_rewind(w, weft_mark_here(w));
    weft_set_training(w, true), weft_set_grad_enabled(w, true), weft_on_result(w, NULL, w);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_rand(w, 0, 1, WEFT_SHAPE(3)),
                *y = weft_linear_run(weft_linear_new(m, "l", &(weft_linear_opts){ .in = 3, .out = 3 }),
                                     weft_add(x, weft_arange(w, 0, 3, 1)));
    weft_decoded d = weft_decode(w, 2, WEFT_ZERO_STATE, NULL, NULL, NULL);
    weft_backward(y);
    cr_assert(!weft_ok(w) && weft_error_code(w) == WEFT_ENOMEM &&
                  !strcmp(weft_error_message(w), "open: no memory for a context"),
              "%s", weft_error_message(w));
    cr_assert(!told && !d.n && !weft_stream_of(w, "s") &&
              !weft_loader_batches(weft_loader_new(w, "l", 0, NULL, NULL)) && isnan(weft_item(y)) &&
              weft_threads(w) == 1);
    cr_assert(weft_usage_of(w).host_bytes == 0 &&
              weft_save("x.h5", m, weft_adam_new(m, NULL), NULL, 0) != WEFT_OK);
    cr_assert_str_eq(weft_device_name(w), "none");
    weft_close(w);
    return NULL;
}

Test(context, fails_in_every_thread_when_opened_without_memory)
{
    pthread_t thread;
    void *w = NULL;
    cr_assert(!pthread_create(&thread, NULL, opened, NULL) && !pthread_join(thread, &w));
    cr_assert(w && weft_error_code(w) == WEFT_ENOMEM, "%s", weft_error_message(w));
    weft before = *(weft *)w;
    used(w);
    cr_assert(!pthread_create(&thread, NULL, used, w) && !pthread_join(thread, NULL));
    ((weft *)w)->running = before.running;       /* not read by any thread */
    cr_assert(!memcmp(&before, w, sizeof before), "a thread wrote to the shared failed context");
    weft *good = open_on(WEFT_CPU);
    weft_add(weft_zeros(good, WEFT_SHAPE(1)), weft_zeros(w, WEFT_SHAPE(1)));
    FAILS(good, WEFT_EARG, "add: input 1 is of a context that could not be opened");
    CLEAN(good);
}

/* ---- callbacks ---- */
typedef struct { weft *w; weft_mark start; int calls; } stubborn;
static void reset_in_callback(weft_status s, const char *message, void *user)
{
    stubborn *b = user;
    (void)message;
    b->calls++;
    weft_clear(b->w), weft_rewind(b->w, b->start), weft_recover(b->w);
    cr_assert(weft_error_code(b->w) == s && weft_tanh(weft_zeros(b->w, WEFT_SHAPE(2))) == &b->w->nil);
}

TABLE_TEST(context, ignores_clear_rewind_and_recover_in_an_error_callback)
{
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = 2, .hidden = 2 });
    stubborn b = { w, weft_mark_here(w), 0 };
    weft_on_error(w, reset_in_callback, &b);
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2, 3));
    FAILS_AT(w, weft_matmul(x, weft_tanh(x)), WEFT_ESHAPE, "matmul: [2, 3], [2, 3]");
    weft_rnn_run(r, weft_zeros(w, WEFT_SHAPE(2, 3)), WEFT_ZERO_STATE);
    FAILS(w, WEFT_ESHAPE, "x is [2, 3]");
    fail_take(w, 2);
    FAILS_AT(w, weft_backward(weft_sum_all(weft_zeros(w, WEFT_SHAPE(5)))), WEFT_ENOMEM, "out of memory");
    uint64_t step = w->step;
    weft_clear(w);
    cr_assert(b.calls == 3 && w->step == step + 1, "%d calls", b.calls);
}

TABLE_TEST(context, refuses_a_mark_that_a_rewind_ended)
{
    for (int recording = 0; recording < 2; recording++) {
        weft_set_grad_enabled(w, recording);
        weft_zeros(w, WEFT_SHAPE(3));
        weft_mark outer = weft_mark_here(w);
        for (int i = 0; i < 40; i++)
            weft_zeros(w, WEFT_SHAPE(4000));
        weft_mark inner = weft_mark_here(w);
        weft_rewind(w, inner);
        weft_rewind(w, outer);
        weft_rewind(w, outer);
        OK(w);
        int64_t there = weft__position(w, WEFT__ARENA_DATA);
        weft_rewind(w, inner);
        cr_assert_eq(weft__position(w, WEFT__ARENA_DATA), there, "a rewind went forward");
        FAILS(w, WEFT_EARG, "rewind: the mark was ended by an earlier rewind");
        weft_mark wrong = weft_mark_here(w);
        wrong.at[3] = -64;
        FAILS_AT(w, weft_rewind(w, wrong), WEFT_EARG, "rewind: the mark");
    }
}

/* ---- memory usage ---- */
/* Allows for the rounding of each block. */
static bool agrees(const weft *w)
{
    weft_usage u = weft_usage_of(w);
    const heap *h = heap_of(w);
    int64_t more = h->bytes - u.host_bytes - u.device_bytes;
    if (more >= 0 && more <= 96 * h->live)
        return true;
    fprintf(stderr, "the context reports %lld + %lld bytes, the allocator %lld\n", (long long)u.host_bytes,
            (long long)u.device_bytes, (long long)h->bytes);
    return false;
}

Test(context, reports_the_usage_of_its_allocator)
{
    static const weft_device devices[] = { WEFT_REF, WEFT_CPU };
    for (int i = 0; i < COUNT(devices); i++) {
        check_most = INT64_MAX;
        weft *w = open_with((weft_opts){ .device = devices[i], .threads = 200 });
        cr_assert(agrees(w), "after open");
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = 64, .hidden = 64 });
        for (int64_t n = 1; n <= 64; n *= 8) {
            weft_backward(
                weft_sum_all(weft_rnn_run(r, weft_zeros(w, WEFT_SHAPE(n, 5, 64)), WEFT_ZERO_STATE).y));
            weft_clear(w);
            OK(w);
            cr_assert(agrees(w), "after a step");
        }
        cr_assert(devices[i] == WEFT_REF || w->dev.workspace_bytes > 0);
        CLEAN(w);
    }
}

/* Blocks that were too short for the next request count only once, and a large arena does not double for a
 * small addition. */
TABLE_TEST(context, holds_little_more_than_a_steady_step_needs)
{
    for (int k = 0; k < 4; k++) {
        static const int64_t pieces[4][3] = {
            { 9, 300000, 0 }, { 40, 20000, 70000 }, { 3, 1 << 20, 1 << 21 }, { 30, 1 << 20, 1000 }
        };
        int64_t need = 0, before = weft_usage_of(w).host_bytes + weft_usage_of(w).device_bytes;
        for (int step = 0; step < 3; step++, weft_clear(w))
            for (int64_t i = need = 0; i < pieces[k][0]; i++) {
                /* the same number of bytes in double */
                int64_t n = (i % 2 && pieces[k][2] ? pieces[k][2] : pieces[k][1]) * 4 /
                            (int64_t)sizeof(weft_real);
                weft_zeros(w, WEFT_SHAPE(n));
                need += n * (int64_t)sizeof(weft_real) + 64;
            }
        OK(w);
        weft_usage u = weft_usage_of(w);
        int64_t held = u.host_bytes + u.device_bytes - before, most = u.host_peak + u.device_peak - before;
        cr_assert(held <= need + need / 8 + (1 << 18), "%d: %lld bytes held, %lld needed", k,
                  (long long)held, (long long)need);
        cr_assert(k < 3 || most <= need * 3 / 2 + (1 << 18), "%d: %lld bytes at most, %lld needed", k,
                  (long long)most, (long long)need);
        weft__arena_end(w, WEFT__ARENA_DATA);
        inside(w)->arena[WEFT__ARENA_DATA].first = inside(w)->arena[WEFT__ARENA_DATA].peak =
            inside(w)->host_peak = inside(w)->device_peak = 0;
    }
}

/* ---- huge pages ---- */
static bool advised(const void *at)              /* The kernel flag "hg" of the mapping. */
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool here = false, huge = false;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)at >= from && (uintptr_t)at < to;
        if (here && !strncmp(line, "VmFlags:", 8))
            huge = strstr(line, " hg");
    }
    if (f)
        fclose(f);
    return huge;
}
static bool can_be_advised(void)
{
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (f)
        fclose(f);
    return f && !access("/proc/self/smaps", R_OK);
}

Test(context, uses_huge_pages_for_its_own_large_blocks)
{
    if (!can_be_advised())
        return;
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU });
    weft_real *small = weft_op_data(weft_zeros(w, WEFT_SHAPE(1000))),
              *large = weft_op_data(weft_zeros(w, WEFT_SHAPE(4 << 20)));
    cr_assert(small && large && !advised(small) && advised(large));
    weft_close(w);
    w = open_on(WEFT_CPU);                       /* The program's own allocator decides about its pages. */
    cr_assert(!advised(weft_op_data(weft_zeros(w, WEFT_SHAPE(4 << 20)))));
    CLEAN(w);
}
