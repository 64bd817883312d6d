/* test_plan_run.c - tests running a plan: outputs and masks have the bits of whole sequences, for all kinds
 * of plans and layers. Also tests gradients, states carried between batches and through a checkpoint,
 * divisors of a loss, and refused arguments. */
#include <unistd.h>
#include "autograd/tape.h"
#include "tests/plan/plans.h"
#include "rnn_kinds.h"

enum { N = 17, MOST = 300, IN = 3, HIDDEN = 5 };
static int32_t len[N];
static int64_t offset[N + 1];
static weft_real rows[MOST * IN];
static int32_t ints[MOST];

/* A plan that is freed at the end of its block. */
#define scoped_plan __attribute__((cleanup(weft_plan_free))) weft_plan

static weft_dataset data_of(int64_t columns)
{
    return (weft_dataset){ .n = N, .columns = columns, .len = len, .offset = offset,
                           .rows = columns ? rows : NULL, .ints = columns ? NULL : ints };
}

static void draw_data(uint64_t seed)
{
    dice_seed(seed);
    for (int i = 0; i < N; i++) {
        len[i] = dice(6) ? 1 + (int32_t)dice(14) : 0;
        offset[i + 1] = offset[i] + len[i];
    }
    dice_fill(rows, MOST * IN, -1, 1);
    for (int i = 0; i < MOST; i++)
        ints[i] = (int32_t)dice(100);
}

/* The next mask of a name is its first in this step. */
static void anew(weft *w)
{
    if (w->tape)
        w->tape->dropouts = NULL;
}

/* ---- outputs ---- */
static const weft_lengths whole = { .n = N, .len = len };

static void outputs_of_whole(weft *w, weft_rnn *r, int64_t wide, weft_real *y)
{
    anew(w);
    weft_tensor *x = weft_ragged(w, rows, IN, &whole);
    weft_read(weft_plain(weft_to_layout(weft_rnn_run(r, x, WEFT_ZERO_STATE).y, WEFT_CONCAT)), y,
              (size_t)(offset[N] * wide) * sizeof *y);
}

static void outputs_of_plan(weft *w, weft_rnn *r, int64_t wide, const weft_plan *p, weft_carried *kept,
                            weft_real *y)
{
    weft_dataset d = data_of(IN);
    for (int64_t b = 0; b < p->batches; b++) {
        anew(w);
        weft_plan_step s = weft_plan_step_of(w, p, b);
        const weft_real *at =
            concat_numbers(weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, kept).y);
        for (int64_t i = 0; i < s.lengths.n; at += s.lengths.len[i++] * wide)
            if (s.lengths.len[i])
                memcpy(y + (offset[s.lengths.id[i]] + s.lengths.offset[i]) * wide, at,
                       (size_t)(s.lengths.len[i] * wide) * sizeof *y);
    }
}

enum { UNCUT = 8 };                              /* the first plans keep sequences whole */
static const char *const exact[] = { "order:count=4",
                                     "pool:count=3,pool=2,shuffle=yes",
                                     "tokens:budget=40",
                                     "best_fit_decreasing:capacity=16",
                                     "first_fit:capacity=20,rows=2,shuffle=yes",
                                     "refill:slots=3",
                                     "fold",
                                     "balance:ranks=3,method=kk",
                                     "streams:slots=3,window=4",
                                     "streams:slots=1,window=1",
                                     "streams:slots=20,window=5",
                                     "chunk:capacity=7,rows=1,carry=yes" };

/* All batches run in one step, so each gets the dropout masks of the whole. */
static void is_exact(weft *w, const kind *k, const char *text)
{
    static weft_real want[MOST * 2 * HIDDEN], got[MOST * 2 * HIDDEN];
    scoped_plan p = plan_of(text, len, N);
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = rnn_of(m, "r", k);
    weft_carried *kept = k->o.bidirectional ? NULL : weft_carried_new(m, "kept", r, &p);
    int64_t wide = width_of(k) * (1 + k->o.bidirectional);
    memset(got, 0x7f, sizeof got);
    OK(w);
    for (int graded = 0; graded < 2; graded++) {
        bool was = weft_set_grad_enabled(w, graded);
        outputs_of_whole(w, r, wide, want);
        outputs_of_plan(w, r, wide, &p, kept, got);
        weft_set_grad_enabled(w, was);
        OK(w);
        cr_assert(!memcmp(got, want, (size_t)(offset[N] * wide) * sizeof *got), "%s of %s", text,
                  cell_name[k->cell]);
    }
}

TABLE_TEST(plan_run, outputs_match_whole_sequences)
{
    static const kind kinds[] = {
        { LSTM, { .input = IN, .hidden = HIDDEN, .layers = 1 }, false },
        { LSTM, { .input = IN, .hidden = HIDDEN, .layers = 2, .dropout = .4 }, false },
        { GRU, { .input = IN, .hidden = HIDDEN, .layers = 2 }, false },
        { PROJECTED, { .input = IN, .hidden = HIDDEN, .layers = 1 }, false }
    };
    const kind both = { LSTM, { .input = IN, .hidden = HIDDEN, .layers = 2, .bidirectional = true }, false };
    for (int i = 0; i < COUNT(exact); i++) {
        draw_data((uint64_t)i + 1);
        is_exact(w, kinds + i % 4, exact[i]);
        is_exact(w, kinds + (i + 1) % 4, exact[i]);
        if (i < UNCUT)
            is_exact(w, &both, exact[i]);
    }
}

/* ---- gradients ---- */
static int64_t gradient_of(weft *w, weft_module *m, weft_real *to)
{
    weft_tensor *g = weft_flat_gradient(m);
    int64_t n = weft_numel(g);
    weft_read(g, to, (size_t)n * sizeof *to);
    weft_zero_grad(m), weft_clear(w);
    return n;
}

/* The batches of a plan of whole sequences, each divided as the plan specifies, sum to the gradient of the
 * mean over all tokens, times the number of batches. */
TABLE_TEST(plan_run, gradients_of_a_plan_match_the_whole)
{
    static weft_real want[1000], got[1000];
    const kind k = { LSTM, { .input = IN, .hidden = HIDDEN, .layers = 1 }, false };
    draw_data(7);
    weft_dataset d = data_of(IN);
    for (int i = 0; i < UNCUT; i++) {
        scoped_plan p = plan_of(exact[i], len, N);
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = rnn_of(m, "r", &k);
        weft_tensor *y = weft_rnn_run(r, weft_ragged(w, rows, IN, &whole), WEFT_ZERO_STATE).y;
        weft_backward(weft_scale(weft_sum_all(weft_square(y)), (double)p.batches / (double)offset[N]));
        int64_t n = gradient_of(w, m, want);
        for (int64_t b = 0; b < p.batches; b++) {
            weft_plan_step s = weft_plan_step_of(w, &p, b);
            weft_tensor *out = weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, NULL).y;
            weft_loss l = { weft_sum_all(weft_square(out)), weft_scalar(w, 1) };
            weft_backward(weft_plan_loss(&s, l, WEFT_MEAN_OF_PLAN));
        }
        gradient_of(w, m, got);
        close_to(exact[i], got, want, n, TOL(1e-12, 2e-6));
    }
}

/* A carried state is a constant: a window has the gradient of its tokens only, from its first state. */
TABLE_TEST(plan_run, no_gradient_flows_over_a_cut)
{
    static weft_real want[1000], got[1000];
    const kind k = { GRU, { .input = IN, .hidden = HIDDEN, .layers = 1 }, false };
    draw_data(9);
    weft_dataset d = data_of(IN);
    scoped_plan p = plan_of("streams:slots=3,window=4", len, N), others = plan_of("order:count=5", len, N);
    weft_module *m = weft_module_new(w, "m"), *apart = weft_module_new(w, "apart");
    weft_rnn *r = rnn_of(m, "r", &k);
    weft_carried *kept = weft_carried_new(apart, "kept", r, &p);
    for (int64_t b = 0; b < p.batches; b++) {
        weft_plan_step s = weft_plan_step_of(w, &p, b);
        weft_rnn_out out = weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, kept);
        weft_backward(weft_sum_all(weft_square(out.y)));
        weft_plan_step between = weft_plan_step_of(w, &others, b % others.batches);
        weft_rnn_run_plan(r, weft_plan_tokens(&between, &d, 0, 0), &between, kept);
        int64_t n = gradient_of(w, m, got);
        /* the same window from the first states as plain numbers */
        static weft_real first[MOST * HIDDEN];
        weft_plan_step again = weft_plan_step_of(w, &p, b);
        weft_real *all = first;
        for (int64_t i = 0; i < again.lengths.n; i++, all += HIDDEN) {
            const int32_t before = again.lengths.offset[i];
            memset(all, 0, HIDDEN * sizeof *all);
            if (!before)
                continue;
            weft_lengths l = { .n = 1, .len = &before };
            weft_tensor *x = weft_ragged(w, rows + offset[again.lengths.id[i]] * IN, IN, &l);
            WEFT_NO_GRAD(w)
            weft_read(weft_rnn_run(r, x, WEFT_ZERO_STATE).last.h, all, HIDDEN * sizeof *all);
        }
        weft_state from = { weft_reals(w, first, WEFT_SHAPE(1, again.lengths.n, HIDDEN)), NULL };
        weft_tensor *x = weft_plan_tokens(&again, &d, 0, 0);
        weft_backward(weft_sum_all(weft_square(weft_rnn_run(r, x, from).y)));
        gradient_of(w, m, want);
        close_to("a window", got, want, n, TOL(1e-12, 2e-6));
    }
}

TABLE_TEST(plan_run, tokens_are_gathered_and_shifted)
{
    draw_data(3);
    for (int shift = -2; shift < 3; shift++) {
        scoped_plan p = plan_of("streams:slots=2,window=5", len, N);
        weft_dataset of_ints = data_of(0), of_rows = data_of(IN);
        for (int64_t b = 0; b < p.batches; b++) {
            weft_plan_step s = weft_plan_step_of(w, &p, b);
            weft_tensor *t = weft_plan_tokens(&s, &of_ints, shift, -7);
            const weft_real *x = numbers(weft_plan_tokens(&s, &of_rows, shift, -7));
            int32_t got[MOST];
            weft_read(t, got, (size_t)weft_numel(t) * sizeof *got);
            for (int64_t i = 0, at = 0; i < s.lengths.n; i++)
                for (int32_t k = 0; k < s.lengths.len[i]; k++, at++) {
                    int64_t q = s.lengths.id[i], position = s.lengths.offset[i] + k + shift;
                    bool there = position >= 0 && position < len[q];
                    cr_assert_eq(got[at], there ? ints[offset[q] + position] : -7);
                    for (int c = 0; c < IN; c++)
                        cr_assert_eq(x[at * IN + c],
                                     there ? rows[(offset[q] + position) * IN + c] : (weft_real)-7);
                }
        }
    }
}

Test(plan_run, carried_states_are_saved_with_the_module)
{
    enum { STOP = 4 };
    static weft_real want[MOST * HIDDEN], got[MOST * HIDDEN];
    char path[64];
    snprintf(path, sizeof path, "%s/weft_carried.%d", P_tmpdir, (int)getpid());
    draw_data(5);
    weft_dataset d = data_of(IN);
    scoped_plan p = plan_of("streams:slots=3,window=3", len, N);
    cr_assert(p.batches > STOP + 1);
    const kind k = { LSTM, { .input = IN, .hidden = HIDDEN, .layers = 2 }, false };
    for (int run = 0; run < 2; run++) { /* as a whole; from a checkpoint */
        weft *w = open_on(WEFT_CPU);
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = rnn_of(m, "r", &k);
        weft_carried *kept = weft_carried_new(m, "kept", r, &p);
        if (run) {
            cr_assert_eq(weft_load(path, m, NULL, NULL, 0), WEFT_OK, "%s", weft_file_message());
            weft_plan_step s = weft_plan_step_of(w, &p, STOP);
            weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, kept);
            FAILS(w, WEFT_EARG,
                  "batch 4 carries the states of batch 3, but weft_carried has those of batch -1");
            weft_carried_set_batch(kept, STOP - 1);
        }
        for (int64_t b = run ? STOP : 0; b <= STOP; b++) {
            weft_plan_step s = weft_plan_step_of(w, &p, b);
            weft_tensor *y = weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, kept).y;
            if (b == STOP)
                memcpy(run ? got : want, concat_numbers(y),
                       (size_t)weft_numel(weft_plain(weft_to_layout(y, WEFT_CONCAT))) * sizeof *got);
            if (b == STOP - 1)
                cr_assert_eq(weft_save(path, m, NULL, NULL, 0), WEFT_OK, "%s", weft_file_message());
            weft_clear(w);
        }
        CLEAN(w);
    }
    cr_assert(!memcmp(got, want, sizeof got));
    remove(path);
}

TABLE_TEST(plan_run, losses_are_divided_as_requested)
{
    draw_data(11);
    scoped_plan p = plan_of("streams:slots=3,window=4", len, N);
    double tokens = (double)offset[N], plan = 0, by_sequence = 0;
    for (int64_t b = 0; b < p.batches; b++) {
        weft_plan_step s = weft_plan_step_of(w, &p, b);
        weft_tensor *weight = weft_plan_weights(&s, len), *count = weft_sum_all(weight);
        double here = 0, of_batch = 0;
        for (int64_t i = 0; i < s.lengths.n; i++) {
            here += s.lengths.len[i];
            of_batch += s.lengths.len[i] / (double)len[s.lengths.id[i]];
        }
        weft_loss l = { weft_scalar(w, here), weft_scalar(w, here) }, each = { count, count };
        cr_assert_float_eq(weft_item(weft_plan_loss(&s, l, WEFT_MEAN_OF_BATCH)), 1, 1e-6);
        plan += weft_item(weft_plan_loss(&s, l, WEFT_MEAN_OF_PLAN));
        by_sequence += weft_item(weft_plan_loss(&s, each, WEFT_MEAN_OF_SEQUENCES));
        cr_assert_float_eq(weft_item(count), of_batch, 1e-5);
        cr_assert_float_eq(weft_item(weft_plan_loss(&s, l, WEFT_MEAN_OF_PLAN)),
                           here * (double)p.batches / tokens, 1e-5);
    }
    cr_assert_float_eq(plan, (double)p.batches, 1e-4);
    cr_assert_float_eq(by_sequence, (double)p.batches, 1e-4);
}

CPU_TEST(plan_run, invalid_arguments_are_refused)
{
    draw_data(13);
    weft_dataset d = data_of(IN);
    scoped_plan p = plan_of("streams:slots=3,window=4", len, N), q = plan_of("order:count=3", len, N);
    weft_module *m = weft_module_new(w, "m");
    const weft_rnn_opts o = { .input = IN, .hidden = HIDDEN },
                        two = { .input = IN, .hidden = HIDDEN, .bidirectional = true };
    weft_rnn *r = weft_lstm_new(m, "r", &o), *both = weft_lstm_new(m, "both", &two);
    OK(w);
    const weft_plan unsound = { .batches = 3 };
    FAILS_AT(w, weft_carried_new(m, "unsound", both, &unsound), WEFT_EARG, "carried_new: ");
    weft_recover(w);
    weft_carried_new(m, "of_both", both, &p);
    FAILS(w, WEFT_EARG, "carried_new: the plan carries states, but the layer has two directions");
    weft_plan_step s = weft_plan_step_of(w, &p, 0);
    weft_rnn_run_plan(both, weft_plan_tokens(&s, &d, 0, 0), &s, NULL);
    FAILS(w, WEFT_EARG, "rnn_run_plan: the plan carries states, but the layer has two directions");
    s = weft_plan_step_of(w, &p, 0);
    weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, NULL);
    FAILS(w, WEFT_EARG, "expected a weft_carried");
    weft_carried *kept = weft_carried_new(m, "kept", r, &p), *of_order = weft_carried_new(m, "small", r, &q);
    s = weft_plan_step_of(w, &p, 2);
    weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, kept);
    FAILS(w, WEFT_EARG, "batch 2 carries the states of batch 1, but weft_carried has those of batch -1");
    s = weft_plan_step_of(w, &p, 0);
    weft_rnn_run_plan(r, weft_plan_tokens(&s, &d, 0, 0), &s, of_order);
    FAILS(w, WEFT_EARG, "expected at most 0");
    FAILS_AT(w, weft_plan_step_of(w, &p, p.batches), WEFT_EARG, "plan_step_of: batch");
    s = weft_plan_step_of(w, &q, 1);
    d.n = 2;
    weft_plan_tokens(&s, &d, 0, 0);
    FAILS(w, WEFT_EARG, "segment 0 of the batch is of sequence 3; expected one of the 2");
    FAILS_AT(w, weft_plan_tokens(&s, NULL, 0, 0), WEFT_EARG, "the data set is NULL");
}
