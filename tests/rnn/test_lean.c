/* test_lean.c - tests recurrent layers that keep no gates against layers that do. Outputs, states and
 * gradients of both have the same bits. Gradients of weights have the same bits in one segment, and are close
 * in many, for any number of threads. Lean layers use less memory, allocate nothing in a steady step, and
 * support a second backward and second derivatives, like layers that keep the gates. */
#include "tests/rnn/rnn_kinds.h"

static bag kept, lean;

/* Compares a layer that keeps its gates with the same layer in segments of this number of rows; 0: the
 * library decides. Returns the name of its cell. */
static const char *run_both(weft *w, int i, int64_t rows)
{
    kind k;
    weft_lengths l;
    weft_rnn *r = layer_by_number(w, i, &k, &l);
    int layout = i % 3 == 1 ? WEFT_ROWS : WEFT_CONCAT;
    w->lean = false;
    all_of(w, &k, r, &l, layout, &kept);
    w->lean = true;
    weft__test_segment_rows = rows;
    all_of(w, &k, r, &l, layout, &lean);
    weft__test_segment_rows = 0;
    cr_assert(kept.n == lean.n && kept.weights == lean.weights);
    return cell_name[k.cell];
}

TABLE_TEST(lean, one_segment_changes_no_bit)
{
    for (int i = 0; i < rounds(40, 400); i++) {
        const char *cell = run_both(w, i, 0);
        same_bits(cell, lean.v, kept.v, kept.n);
    }
}

/* On a GPU a segment may use another kernel than the whole layer, see cuda/recur_choice.cu. */
static void same_by_segments(weft *w, const char *name, const weft_real *got, const weft_real *want,
                             int64_t n)
{
    if (w->dev.k->synchronous)
        same_bits(name, got, want, n);
    else
        close_to(name, got, want, n, TOL(1e-12, 5e-6));
}

TABLE_TEST(lean, segments_change_only_the_order_of_sums_over_tokens)
{
    for (int i = 0; i < rounds(60, 600); i++) {
        const char *cell = run_both(w, i, 1 + i * 7 % 40);
        same_by_segments(w, cell, lean.v, kept.v, kept.weights);
        close_to(cell, lean.v + kept.weights, kept.v + kept.weights, kept.n - kept.weights, TOL(1e-12, 2e-5));
    }
}

/* As long as recurrent_run.c itself thinks that segments are worth it. */
static void long_sequences(weft *w, int64_t hidden, int32_t longest)
{
    static int32_t lengths[3];
    lengths[0] = longest;
    lengths[1] = longest / 2;
    lengths[2] = longest - 1;
    weft_lengths l = { .n = 3, .len = lengths };
    kind k = { LSTM, { .input = 2, .hidden = hidden, .layers = 1, .bidirectional = true }, false };
    weft_rnn *r = rnn_of(weft_module_new(w, "long"), "r", &k);
    w->lean = false;
    all_of(w, &k, r, &l, WEFT_CONCAT, &kept);
    w->lean = true;
    all_of(w, &k, r, &l, WEFT_CONCAT, &lean);
    same_by_segments(w, "long", lean.v, kept.v, kept.weights);
    for (int64_t i = kept.weights; i < kept.n; i++)               /* sums of many tokens */
        cr_assert(fabs((double)(lean.v[i] - kept.v[i])) <= TOL(1e-10, 1e-3) * (1 + fabs((double)kept.v[i])),
                  "%g, %g", (double)lean.v[i], (double)kept.v[i]);
}
CPU_TEST(lean, long_sequences_use_segments) { long_sequences(w, 40, 2500); }

Test(lean, threads_change_no_bit)
{
    weft *one = open_with((weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = 1, .lean = true });
    weft *two = open_with((weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = 2, .lean = true });
    for (int i = 0; i < rounds(20, 200); i++) {
        kind k;
        weft_lengths l;
        weft__test_segment_rows = 30;
        weft_rnn *a = layer_by_number(one, i, &k, &l), *b = layer_by_number(two, i, &k, &l);
        all_of(one, &k, a, &l, WEFT_CONCAT, &kept);
        all_of(two, &k, b, &l, WEFT_CONCAT, &lean);
        same_bits(cell_name[k.cell], lean.v, kept.v, kept.n);
    }
    CLEAN(one);
    CLEAN(two);
}

/* Where nothing is recorded all layers go so, on a GPU in both directions by one entry. */
TABLE_TEST(lean, unrecorded_layers_are_lean_and_match)
{
    for (int i = 0; i < rounds(20, 100); i++) {
        kind k;
        weft_lengths l;
        weft_rnn *r = layer_by_number(w, i, &k, &l);
        weft_rnn_out a = weft_rnn_run(r, random_ragged(w, 4, k.o.input, &l), WEFT_ZERO_STATE);
        weft_set_grad_enabled(w, false);
        weft__test_segment_rows = i % 2 ? 1 + i % 9 : 0;
        weft_rnn_out b = weft_rnn_run(r, random_ragged(w, 4, k.o.input, &l), WEFT_ZERO_STATE);
        weft__test_segment_rows = 0;
        weft_set_grad_enabled(w, true);
        OK(w);
        same_by_segments(w, cell_name[k.cell], concat_numbers(b.y), concat_numbers(a.y), weft_numel(a.y));
        same_by_segments(w, cell_name[k.cell], numbers(b.last.h), numbers(a.last.h), weft_numel(a.last.h));
        weft_clear(w);
    }
}

TABLE_TEST(lean, second_backward_and_second_derivatives_match)
{
    static const int32_t few[] = { 3, 1 };
    const weft_lengths l = { .n = 2, .len = few };
    for (int at = 0; at < 2 * CELLS; at++) {
        const int cell = at % CELLS;
        kind k = { cell,
                   { .input = 3, .hidden = 4, .layers = 1, .bidirectional = true, .lean = at < CELLS },
                   false };
        weft_rnn *r = layer_of_kind(w, &k);
        weft_tensor *x = random_ragged(w, 4, 3, &l), *loss = loss_of(weft_rnn_run(r, x, WEFT_ZERO_STATE)),
                    *g[2];
        weft_tensor *p = weft_find_parameter(weft_rnn_module(r),
                                             k.o.lean ? "weight_hh_l0" : "weight_hh_l0_reverse");
        weft_backward(loss);
        weft_real *once = numbers(weft_grad(p)), doubled[64];
        weft_backward(weft_scale(loss, 1));
        for (int64_t i = 0; i < weft_numel(p); i++)
            doubled[i] = once[i] + once[i];
        close_to(cell_name[cell], numbers(weft_grad(p)), doubled, weft_numel(p), TOL(1e-13, 1e-6));
        /* recorded: by the composed form */
        weft_gradients_recorded(loss, (weft_tensor *[]){ x, p }, 2, g);
        close_to(cell_name[cell], numbers(g[1]), once, weft_numel(p), TOL(1e-12, 2e-5));
        weft_backward(weft_sum_all(weft_square(g[0])));
        OK(w);
        weft_clear(w);
    }
}

/* ---- memory ---- */
typedef struct { weft_rnn *r; weft_lengths l; bool train; } model;
static void step(weft *w, void *user)
{
    const model *m = user;
    weft_set_grad_enabled(w, m->train);
    weft_tensor *loss = weft_sum_all(
        weft_rnn_run(m->r, weft_ragged(w, dice_fill((weft_real[600 * 4]){ 0 }, 600 * 4, -1, 1), 4, &m->l),
                     WEFT_ZERO_STATE)
            .y);
    if (m->train)
        weft_backward(loss);
    weft_set_grad_enabled(w, true);
}
static model model_new(weft *w, const char *name, bool is_lean)
{
    static const int32_t lengths[] = { 200, 150, 100, 50, 99, 1 };
    weft_module *m = weft_module_new(w, name);
    const weft_rnn_opts o = {
        .input = 4, .hidden = 16, .proj = 8, .bidirectional = true, .layers = 2, .lean = is_lean
    };
    return (model){ weft_lstm_new(m, "r", &o), { .n = 6, .len = lengths }, true };
}
static int64_t most_of(weft *w, model *m)
{
    inside(w)->arena[WEFT__ARENA_DATA].peak = 0;
    step(w, m);
    OK(w);
    weft_clear(w);
    return inside(w)->arena[WEFT__ARENA_DATA].peak;
}

TABLE_TEST(lean, keeps_only_the_states)
{
    model a = model_new(w, "kept", false), b = model_new(w, "lean", true);
    weft__test_segment_rows = 50;
    /* four layers' gates and raw */
    int64_t most = most_of(w, &a), less = most_of(w, &b),
            gates = 4 * 600 * (4 + 1) * 16 * (int64_t)sizeof(weft_real);
    cr_assert(most - less > gates * 3 / 4, "%lld and %lld bytes", (long long)most, (long long)less);
    a.train = b.train = false;
    cr_assert_eq(most_of(w, &a), most_of(w, &b));
}

TABLE_TEST(lean, a_steady_step_allocates_nothing, .init = unchecked)
{
    model m = model_new(w, "m", true);
    weft__test_segment_rows = 64;
    is_steady(w, step, &m);
    m.train = false;
    is_steady(w, step, &m);
}

TABLE_TEST(lean, survives_failure_of_each_allocation)
{
    model m = model_new(w, "m", true);
    weft__test_segment_rows = 64;
    int n = failures_of(w, 40, step, &m);
    cr_assert(n > 30, "only %d", n);
}
