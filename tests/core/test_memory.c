/* test_memory.c - tests memory use: each allocation of a step fails in turn, a steady step allocates nothing,
 * a long tape grows linearly, stale handles are detected, decoder loops run in constant memory. */
#include "tests/check.h"
#include "core/inside.h"
#include "tests/state.h"

typedef struct {
    weft_module *m;
    weft_embedding *embed;
    weft_rnn *rnn;
    weft_attention_layer *attend;
    weft_linear *out;
    weft_optim *optim;
} model;

static model model_new(weft *w)
{
    weft_module *m = weft_module_new(w, "model");
    model n = {
        m,
        weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 11, .columns = 6 }),
        weft_lstm_new(
            m, "rnn",
            &(weft_rnn_opts){
                .input = 6, .hidden = 7, .bidirectional = true, .dropout = (weft_real).1, .layers = 2 }),
        weft_attention_new(m, "attend",
                           &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = 14, .dm = 14 }),
        weft_linear_new(m, "out", &(weft_linear_opts){ .in = 28, .out = 11 }),
        NULL
    };
    n.optim = weft_adamw_new(m, NULL);
    return n;
}

static void step_of(weft *w, const model *m, int64_t n, const int32_t *len, const int32_t *tokens)
{
    weft_tensor *x = weft_ragged_ints(w, tokens, &(weft_lengths){ .n = n, .len = len });
    weft_rnn_out r = weft_rnn_run(m->rnn, weft_embedding_run(m->embed, x), WEFT_ZERO_STATE);
    weft_tensor *h = weft_concat(
        (weft_tensor *[]){ r.y, weft_attention_run(m->attend, r.y, r.y, WEFT_ALL_KEYS, NULL) }, 2, 1);
    weft_backward(weft_mean_loss(weft_cross_entropy(weft_linear_run(m->out, h), x, NULL)));
    weft_clip_grad_norm(m->m, 1, 0);
    weft_optim_step(m->optim);
}

static void step(weft *w, const model *m, int64_t sequences, int32_t longest)
{
    int32_t len[32], tokens[32 * 64];
    int64_t N = 0;
    for (int64_t s = 0; s < sequences; s++) {
        len[s] = (int32_t)dice((uint64_t)longest + 1);
        for (int32_t t = 0; t < len[s]; t++)
            tokens[N++] = (int32_t)dice(11);
    }
    step_of(w, m, sequences, len, tokens);
}

static void recovered(weft *w, const model *m)   /* Clears the error and the gradients. */
{
    weft_recover(w);
    OK(w);
    weft_real *g = calloc((size_t)m->m->n, sizeof *g);
    w->dev.k->download(&w->dev, g, m->m->gradients, (size_t)m->m->n * sizeof *g);
    for (int64_t i = 0; i < m->m->n; i++)
        cr_assert(g[i] == 0, "recovered, but gradient %lld is %g", (long long)i, (double)g[i]);
    free(g);
}

/* Fails the n-th event of a step, for n = 1, 2, .., until the step completes first. Checks the state after
 * each failure, and that more than `least` steps failed. */
static void survives(weft *w, void (*plan)(const weft *, int64_t), bool (*planned)(const weft *), int least)
{
    model m = model_new(w);
    OK(w);
    weft_stream *stream = weft_stream_of(w, "data");
    int failed = 0;
    for (int n = 1, left = 0; !left; n++) {
        recovered(w, &m);
        dice_seed(5);
        weft_stream_next(stream);
        uint32_t before = learnt_state(m.m, m.optim);
        plan(w, n);
        step(w, &m, 5, 6);
        left = planned(w);                       /* the step has fewer events */
        plan(w, 0);
        if (weft_ok(w))
            continue;                            /* the step used another path, e.g. a smaller block */
        failed++;
        cr_assert_eq(weft_error_code(w), WEFT_ENOMEM);
        cr_assert(strncmp(weft_error_message(w), "weft:", 5) &&
                      strstr(weft_error_message(w), "out of memory"),
                  "no operator is named: %s", weft_error_message(w));
        recovered(w, &m);                        /* a failed context saves nothing */
        cr_assert_eq(learnt_state(m.m, m.optim), before, "a failed step changed the state");
    }
    cr_assert(failed > least, "only %d failures", failed);
    weft_recover(w);
}

static void shrink(weft *w)                /* Makes the next step allocate its blocks again. */
{
    weft_clear(w);
    for (int i = 0; i < WEFT__ARENAS; i++) {
        weft__arena_end(w, i);
        inside(w)->arena[i].first = 0;
    }
}

TABLE_TEST(memory, step_survives_a_failure_of_each_arena_request)
{
    survives(w, fail_take, takes_left, 100);
}

static void fail_block_of_new(const weft *w, int64_t n)
{
    if (n)
        shrink((weft *)w);
    fail_in(w, n);
}

TABLE_TEST(memory, step_survives_a_failure_of_each_block)
{
    survives(w, fail_block_of_new, none_failed, 4);
}

static bool lstm_step(weft *w, weft_rnn *r, int64_t n)
{
    weft_backward(weft_sum_all(weft_rnn_run(r, weft_zeros(w, WEFT_SHAPE(n, 10, 64)), WEFT_ZERO_STATE).y));
    return weft_ok(w);
}

/* Batches grow until one is too large; a smaller one must still work. */
Test(memory, step_succeeds_with_a_smaller_batch_after_enomem)
{
    /* tests the CPU only, whatever WEFT_TABLES names */
    const size_t step = getenv("WEFT_SMALL") ? 30 : CHECK_SANITIZED ? 4 : 1;
    for (size_t most = 6; most <= 40; most += step) {
        check_most = most << 20;
        weft *w = open_on(WEFT_CPU);
        weft_rnn *r =
            weft_lstm_new(weft_module_new(w, "m"), "r", &(weft_rnn_opts){ .input = 64, .hidden = 64 });
        int64_t n = 1;
        for (; n < 1 << 20 && lstm_step(w, r, n); n *= 2)
            weft_clear(w);
        cr_assert(weft_error_code(w) == WEFT_ENOMEM && strstr(weft_error_message(w), "out of memory") &&
                      strncmp(weft_error_message(w), "weft:", 5),
                  "%s", weft_error_message(w));
        for (int i = 0; i < 5; i++) {
            weft_recover(w);
            cr_assert(lstm_step(w, r, n / 4 + 1), "%zu MB, n = %lld after %lld: %s", most,
                      (long long)n / 4 + 1, (long long)n, weft_error_message(w));
            weft_clear(w);
        }
        CLEAN(w);
    }
}

Test(memory, open_and_build_survive_each_failure)
{
    for (int n = 1;; n++) {
        heap *h = heap_of(NULL);
        *h = (heap){ .fail_in = n };
        weft *w = weft_open(&(weft_opts){
            .seed = 1, .threads = 2, .allocate = heap_allocate, .release = heap_release, .user = h });
        model m = model_new(w);
        step(w, &m, 3, 4);
        bool fine = weft_ok(w);
        weft_close(w);
        cr_assert_eq(atomic_load(&h->live), 0, "round %d leaks %lld blocks", n,
                     (long long)atomic_load(&h->live));
        if (fine)
            break;
    }
}

TABLE_TEST(memory, steady_step_allocates_nothing, .init = unchecked)
{
    model m = model_new(w);
    int64_t before = 0;
    for (int s = 1; s <= 100; s++) {
        dice_seed(s < 3 ? 1 : (uint64_t)s);
        if (s < 3) {                         /* steps 1 and 2 reach the final size */
            int32_t len[20], tokens[20 * 9] = { 0 };
            for (int i = 0; i < 20; i++)
                len[i] = 9;
            step_of(w, &m, 20, len, tokens);
        } else
            step(w, &m, s % 4 ? (int64_t)dice(21) : 20, (int32_t)dice(10));
        weft_clear(w);
        if (s == 2)
            before = allocations(w);
        cr_assert(s <= 2 || allocations(w) == before, "step %d allocated on %s", s, weft_device_name(w));
    }
    OK(w);
}

/* ---- a long tape ---- */
static double chain(weft *w, int n)
{
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(1)), *y = x, *g;
    double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < n; i++)
        y = weft_sin(y);
    weft_gradients_recorded(y, &x, 1, &g);
    double end = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    cr_assert_eq(weft_item(g), 1);
    weft_clear(w);
    return end - start;
}

CPU_TEST(memory, long_tape_costs_linear_time, .init = unchecked)
{
    weft_set_grad_enabled(w, true);
    /* smaller tapes fit into caches */
    int n = CHECK_SANITIZED ? rounds(250000, 1000000) : getenv("WEFT_SOAK") ? 1000000 : 250000;
    double once = 1e9, twice = 1e9;
    chain(w, 2 * n);
    for (int i = 0; i < 12 && (i < 3 || twice >= 2.2 * once); i++) {
        once = fmin(once, chain(w, n));
        twice = fmin(twice, chain(w, 2 * n));
    }
    cr_assert(twice < (CHECK_SANITIZED ? 3 : 2.2) * once, "%d operators: %.3f s, twice the number: %.3f s", n,
              once, twice);
}

TABLE_TEST(memory, index_out_of_range_fails_the_operator, .init = synchronised)
{
    weft_index_select(weft_zeros(w, WEFT_SHAPE(4, 2)),
                      weft_ints(w, (int32_t[]){ 0, 3, 4 }, WEFT_SHAPE(3)));
    FAILS(w, WEFT_EARG, "index 4 at position 2");
    weft_gather(weft_zeros(w, WEFT_SHAPE(2, 3)), weft_ints(w, (int32_t[]){ -2, 0 }, WEFT_SHAPE(2)));
    FAILS(w, WEFT_EARG, "index -2 at position 0");
    weft_one_hot(weft_ints(w, (int32_t[]){ 7 }, WEFT_SHAPE(1)), 7);
    FAILS(w, WEFT_EARG, "index 7 at position 0");
    weft_index_add(weft_zeros(w, WEFT_SHAPE(2, 2)), weft_ints(w, (int32_t[]){ 0, 5 }, WEFT_SHAPE(2)), 5);
    FAILS(w, WEFT_EARG, "index 5 at position 1");
}
