/* test_cuda_emulated.c - tests on the emulated GPU how often a program waits, and failures on demand. */
#include <sys/wait.h>
#include "cuda_emulated.h"
#include "tests/listen.h"

Test(emulated, best_device_is_the_cpu_without_a_gpu)
{
    setenv("WEFT_EMU_DEVICES", "0", 1);
    check_device("cuda", 0, "no CUDA-capable device is detected");
    weft *w = open_with((weft_opts){ .device = WEFT_BEST });
    cr_assert(weft_ok(w) && strcmp(weft_device_name(w), "cuda"));
    CLEAN(w);
}

/* WEFT_CUDA fails with the reason. WEFT_BEST uses the CPU and logs the reason. */
static void check_refusal(const char *variable, const char *value, const char *why)
{
    setenv(variable, value, 1);
    check_device("cuda", 0, why);
    setenv("WEFT_LOG", "1", 1);
    listen_to_stderr();
    weft *w = open_with((weft_opts){ .device = WEFT_BEST });
    const char *log = stop_listening();
    cr_assert(weft_ok(w) && strcmp(weft_device_name(w), "cuda") && strstr(log, why), "%s, %s: %s",
              weft_device_name(w), weft_error_message(w), log);
    CLEAN(w);
    unsetenv("WEFT_LOG");
    unsetenv(variable);
}
Test(emulated, unusable_gpus_are_refused_with_the_reason)
{
    check_refusal("WEFT_EMU_CC", "86",
                  "CUDA: libweft_cuda.so has no code for emulated GPU 0; compile it with CUDA_ARCHS=86");
    check_refusal("WEFT_EMU_CC", "75", "CUDA: emulated GPU 0: compute capability 7.5; expected 8.0 or later");
    check_refusal("WEFT_EMU_DRIVER", "12040",
                  "CUDA: driver for CUDA 12.4; expected 13.0, as libweft_cuda.so; update the driver");
    check_refusal("WEFT_EMU_DEVICES", "0", "CUDA: no CUDA-capable device is detected");
}

Test(emulated, forked_child_cannot_use_the_gpu)
{
    weft *w = open_gpu(0);
    weft_tensor *x = weft_full(w, 1, WEFT_SHAPE(3));
    weft_synchronize(w);
    pid_t child = fork();
    if (!child) {
        weft_exp(x);
        const bool reported = !weft_ok(w) && strstr(weft_error_message(w), "forked");
        weft_close(w);
        _exit(reported ? 7 : 1);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x", (unsigned)status);
    cr_assert(fabs((double)*numbers(weft_exp(x)) - exp(1)) < 1e-6, "the parent cannot continue");
    CLEAN(w);
}

/* ---- with a host program that calls CUDA ---- */
static void check_caller(int device, int index)
{
    enum { STALE = 1 };
    set_thread(device, STALE);
    weft *w = open_gpu(index);
    check_thread(device, STALE, "open");
    net n = net_in(w);
    train_few(&n);
    check_thread(device, STALE, "a training step");
    OK(w);
    same_bits("bias", bias(&n), bias_after(1), WORDS);
    check_thread(device, STALE, "a download");
    CLEAN(w);
    check_thread(device, STALE, "close");
    set_thread(device, 0);
}
Test(emulated, caller_keeps_its_device_and_error)
{
    check_caller(0, 0);
    check_caller(1, 0);
    check_caller(0, 1);
    weft *w = open_gpu(1);
    set_thread(0, 0);
    cr_assert_null(weft_zeros(w, WEFT_SHAPE(1 << 20, 1 << 20))->data);
    weft_recover(w);
    check_thread(0, 0, "a failed allocation");   /* cleared, because the context reported it */
    CLEAN(w);
}

/* ---- waits and stalls ---- */
CUDA_TEST(emulated, training_step_does_not_wait)
{
    net n = net_in(w);
    train_few(&n), train_few(&n);                /* allocates all memory */
    int64_t blocks = weft_usage_of(w).allocations;
    begin_counting();
    for (int i = 0; i < 20; i++)
        train_few(&n);
    cr_assert_eq(counted(WAITS), 0);
    cr_assert_eq(counted(STALLS), 0);
    cr_assert_eq(weft_usage_of(w).allocations, blocks);
    cr_assert_geq(counted(LAUNCHES), 20 * 20);
    /* one copy each for the batch with its index arrays, the layer's states, and two tensors of tokens */
    cr_assert_eq(counted(UPLOADS), 20 * 4, "%lld copies to the device", counted(UPLOADS));
    weft_synchronize(w);
    cr_assert_eq(counted(WAITS), 1);
    same_bits("bias", bias(&n), bias_after(22), WORDS);
}

/* Trains with growing batches, so arenas and scratch memory grow. */
static void grow(const net *n, int from, int to)
{
    int32_t len[40];
    for (int i = 0; i < COUNT(len); i++)
        len[i] = 1 + i * 37 % 90;
    for (int i = from; i < to; i++)
        train(n, i, len);
    OK(n->w);
}
CUDA_TEST(emulated, ragged_batches_grow_without_stopping_the_device)
{
    net n = net_in(w);
    grow(&n, 1, 2);
    int64_t blocks = weft_usage_of(w).allocations;
    begin_counting();
    grow(&n, 2, 14);
    cr_assert_geq(weft_usage_of(w).allocations, blocks + 6, "the memory did not grow");
    cr_assert_eq(counted(STALLS), 0, "%lld", counted(STALLS));
    cr_assert_eq(counted(WAITS), 0);
    weft_synchronize(w);
}

/* A context that has computed products stops the device at its end no more often than one that has not. */
static long long stalls_at_close(bool multiplies)
{
    weft *w = open_on(WEFT_CUDA);
    weft_tensor *x = weft_full(w, 1, WEFT_SHAPE(4, 4));
    if (multiplies)
        weft_matmul(x, x);
    weft_synchronize(w);
    OK(w);
    begin_counting();
    CLEAN(w);
    return counted(STALLS);
}
Test(emulated, products_do_not_stop_the_device_at_the_end)
{
    cr_assert_eq(stalls_at_close(true), stalls_at_close(false));
}

/* Without pools, with pools that cannot be made or give nothing: the same numbers, but the device stops. */
Test(emulated, memory_without_pools)
{
    static const char *const pools[] = { "0", "1", "2", "3" };
    weft_real needed[WORDS];
    memcpy(needed, bias_after(3), sizeof needed);
    for (int mode = 0; mode < COUNT(pools); mode++) {
        setenv("WEFT_EMU_POOLS", pools[mode], 1);
        weft *w = open_on(WEFT_CUDA);
        net n = net_in(w);
        train_few(&n), train_few(&n), train_few(&n);
        same_bits("bias", bias(&n), needed, WORDS);
        begin_counting();
        grow(&n, 2, 9);
        cr_assert((counted(STALLS) > 0) == (mode != 1), "pools: %d", mode);
        CLEAN(w);
    }
    unsetenv("WEFT_EMU_POOLS");
}

/* A pool keeps all its memory until a wait. Then it keeps as much again as is in use, at least 64 MB. Closing
 * the context returns all of it. */
Test(emulated, pool_releases_unused_memory)
{
    enum { MB = 1 << 20 };
    begin_counting();
    weft *w = open_on(WEFT_CUDA);
    weft__device *d = &w->dev;
    void *small = d->k->allocate(d, MB, false), *large = NULL;
    for (int i = 1; i <= 5; i++) {
        large = d->k->allocate(d, (size_t)i * 20 * MB, false);
        d->k->release(d, large, false);
    }
    cr_assert_geq(counted(BYTES), 300 * MB);
    weft_synchronize(w);
    cr_assert_lt(counted(BYTES), 2 * MB);
    large = d->k->allocate(d, 60 * MB, false);
    d->k->release(d, large, false);
    weft_synchronize(w);
    cr_assert_geq(counted(BYTES), 60 * MB, "the pool may keep 64 MB");
    d->k->release(d, small, false);
    CLEAN(w);
    cr_assert_eq(counted(BYTES), 0);
}

/* Cached memory serves later requests, from the pool and from the device. */
Test(emulated, cached_pool_memory_can_be_allocated)
{
    enum { MB = 1 << 20 };
    setenv("WEFT_EMU_MEMORY", "104857600", 1);
    for (int lasts = 0; lasts < 2; lasts++) {
        weft *w = open_on(WEFT_CUDA);
        weft__device *d = &w->dev;
        for (int i = 1; i <= 3; i++) {
            void *p = d->k->allocate(d, (size_t)i * 30 * MB, i == 3 && lasts);
            cr_assert(p, "%d", i);
            cr_assert_null(d->k->allocate(d, 80 * MB, lasts));
            d->k->release(d, p, i == 3 && lasts);
        }
        OK(w);
        CLEAN(w);
    }
    unsetenv("WEFT_EMU_MEMORY");
}

static weft_loss loss_of(const net *n, const weft_part *part)
{
    int32_t len[COUNT(few)], tokens[TOKENS] = { 1, 2, 3 }, next[TOKENS] = { 2, 3, 4 };
    for (int64_t i = 0; i < part->n; i++)
        len[i] = few[part->index[i]];
    weft_lengths of = { .n = part->n, .len = len };
    weft_tensor *x = weft_ragged_ints(n->w, tokens, &of), *y = weft_ragged_ints(n->w, next, &of);
    weft_rnn_out r = weft_rnn_run(n->rnn, weft_embedding_run(n->embed, x), WEFT_ZERO_STATE);
    return weft_cross_entropy(weft_linear_run(n->out, r.y), y, NULL);
}

/* One read at the end of an update checks the losses of all shards. It counts as two waits: the copy and its
 * caller. */
Test(emulated, update_waits_once_for_any_shards)
{
    for (int shards = 1; shards <= 4; shards++) {
        weft *w = open_on(WEFT_CUDA);
        net n = net_in(w);
        weft_parallel *p = weft_parallel_new(n.all, &(weft_parallel_opts){ .shards = shards });
        weft_part part;
        for (int i = 0; i < 5; i++) {
            begin_counting();
            weft_parallel_begin(p, NULL, COUNT(few));
            while (weft_parallel_next(p, &part))
                weft_parallel_add(p, loss_of(&n, &part));
            weft_optim_step(n.optim);
            cr_assert(i < 2 || counted(WAITS) == 2, "%d shards: %lld waits", shards, counted(WAITS));
        }
        cr_assert_gt(weft_parallel_mean(p), 0);
        CLEAN(w);
    }
}

/* ---- failures ---- */
/* Checks the error, then that the context recovers, or stays lost. */
static void check_failure(weft *w, weft_status status, const char *text, bool lost)
{
    cr_assert(weft_error_code(w) == status && strstr(weft_error_message(w), text),
              "expected \"%s\", got %s: %s", text, weft_status_name(weft_error_code(w)),
              weft_error_message(w));
    weft_recover(w);
    cr_assert_eq(weft_ok(w), !lost, "%s", weft_error_message(w));
}

Test(emulated, refused_launch_changes_nothing)
{
    static const struct { const char *kernel, *text; } refused[] = {
        { "norm_pieces", "clip_grad_norm: norm: too many resources requested for launch" },
        { "guard_pieces", "optim_step: guard: too many resources" },
        { "update_each", "optim_step: update: too many resources" },
        { "unaries", "reciprocal: unary: too many resources" },
    };
    weft *w = open_on(WEFT_CUDA);
    net n = net_in(w);
    weft_real *first = bias(&n);
    for (int i = 0; i < COUNT(refused); i++) {
        setenv("WEFT_EMU_REFUSE", refused[i].kernel, 1);
        train_few(&n);
        check_failure(w, WEFT_EDEVICE, refused[i].text, false);
        unsetenv("WEFT_EMU_REFUSE");
        same_bits("unchanged", bias(&n), first, WORDS);
    }
    cr_assert_eq(weft_optim_steps(n.optim), 0);
    train_few(&n), train_few(&n), train_few(&n);
    same_bits("bias", bias(&n), bias_after(3), WORDS);
    CLEAN(w);
}

static void crash(const char *sync, const char *text)
{
    setenv("WEFT_SYNC", sync, 1);
    weft *w = open_on(WEFT_CUDA), *other = open_gpu(1);
    net n = net_in(w), m = net_in(other);
    train_few(&n), train_few(&m);
    weft_synchronize(w);
    setenv("WEFT_EMU_FAIL", "unaries", 1);
    weft_tensor *y = weft_tanh(weft_sigmoid(weft_zeros(w, WEFT_SHAPE(3))));
    cr_assert_eq(weft_ok(w), *sync == '0');
    cr_assert(isnan(weft_item(weft_slice(y, 0, 0, 1))));
    unsetenv("WEFT_EMU_FAIL");
    check_failure(w, WEFT_EDEVICE, text, true);
    train_few(&n);                               /* a lost device ignores calls */
    check_failure(w, WEFT_EDEVICE, text, true);
    weft *again = open_gpu(0);
    cr_assert(weft_error_code(again) == WEFT_EDEVICE &&
                  strstr(weft_error_message(again), "illegal memory access"),
              "%s", weft_error_message(again));
    CLEAN_FAILED(again);
    train_few(&m);                               /* the other GPU still works */
    CLEAN(other);
    CLEAN_FAILED(w);
}
Test(emulated, crash_loses_the_device) { crash("0", "an illegal memory access was encountered"); }
Test(emulated, crashed_kernel_is_named_with_sync)
{
    crash("1", "sigmoid: unary: an illegal memory access was encountered");
}

/* Device memory grows in small steps until a large batch fits. After each failure a small batch fits and
 * the weights are unchanged. */
Test(emulated, context_survives_enomem_at_any_limit)
{
    int reported = 0;
    bool fits = false;
    weft_real *needed = bias_after(2);
    int32_t many[20];
    for (int i = 0; i < COUNT(many); i++)
        many[i] = 60;
    for (size_t room = 33 << 20; !fits; room += rounds(128, 32) << 10) {
        char text[32];
        snprintf(text, sizeof text, "%zu", room);
        setenv("WEFT_EMU_MEMORY", text, 1);
        weft *w = open_on(WEFT_CUDA);
        net n = net_in(w);
        train_few(&n);
        bool small = weft_ok(w);
        if (!small)
            cr_assert_eq(weft_error_code(w), WEFT_ENOMEM, "%s", weft_error_message(w));
        weft_recover(w);
        if (small) {
            train(&n, COUNT(many), many);
            fits = weft_ok(w);
            reported += !fits;
            cr_assert(fits || weft_error_code(w) == WEFT_ENOMEM, "%s", weft_error_message(w));
            weft_recover(w);
            train_few(&n);
            OK(w);
            if (!fits)
                same_bits("bias", bias(&n), needed, WORDS);
        }
        CLEAN(w);
        unsetenv("WEFT_EMU_MEMORY");
    }
    cr_assert_geq(reported, 3);
}
