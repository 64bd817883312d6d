/* test_check.c - tests WEFT_CHECK=1. A stale handle is always detected, released elements are NaN, the first
 * NaN is reported with operator, layer and sequence, and a second optimiser step without weft_clear is
 * reported. */
#include "tests/check.h"
#include "core/report/check.h"
#include "tests/listen.h"

static void checked(void) { setenv("WEFT_CHECK", "1", 1); }
TestSuite(check, .init = checked);

Test(check, accepts_only_its_values)
{
    static const char *const values[] = { "0", "", "1", NULL };
    for (int i = 0; i < COUNT(values); i++) {
        values[i] ? setenv("WEFT_CHECK", values[i], 1) : unsetenv("WEFT_CHECK");
        weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1 });
        cr_assert(weft_ok(w) && (w->check != NULL) == (i == 2));
        weft_close(w);
    }
}

/* ---- released tensors ---- */
TABLE_TEST(check, detects_a_stale_handle_in_every_later_step)
{
    for (int clears = 1; clears <= 5; clears++) {
        weft_tensor *stale = weft_full(w, 7, WEFT_SHAPE(2));
        for (int i = 0; i < clears; i++) {
            weft_clear(w);
            weft_full(w, 8, WEFT_SHAPE(2)), weft_full(w, 9, WEFT_SHAPE(2));
        }
        FAILS_AT(w, weft_tanh(stale), WEFT_EARG, "tanh: input 0 is of a step that has ended");
        cr_assert(isnan(weft_item(weft_sum(stale, 0))));
        weft_recover(w);
    }
    weft_tensor *x = weft_full(w, 7, WEFT_SHAPE(2)), *stale[100];
    weft_mark here = weft_mark_here(w);
    for (int i = 0; i < 100; i++) {
        stale[i] = weft_scale(x, 2);
        weft_rewind(w, here);
    }
    weft_tensor *live = weft_scale(x, 3);
    cr_assert_eq(numbers(live)[1], 21);
    for (int i = 0; i < 100; i++) {
        cr_assert(weft__handle_error(w, stale[i]), "handle %d was used again", i);
        cr_assert(!weft__handle_error(w, live) && !weft__handle_error(w, x));
    }
    weft_rewind(w, here);
    cr_assert(weft__handle_error(w, live) && !weft__handle_error(w, x));
}

CPU_TEST(check, fills_released_elements_with_nan)
{
#ifdef __SANITIZE_ADDRESS__
    return;                                      /* reading them reports it there */
#endif
    for (int step = 0; step < 3; step++) {
        weft_tensor *x = weft_full(w, 7, WEFT_SHAPE(20)), *index = weft_arange(w, 0, 9, 1);
        weft_mark here = weft_mark_here(w);
        weft_real *kept = weft_op_data(x), *ended = weft_op_data(weft_scale(x, 2));
        const int32_t *offsets = weft_offsets(
            weft_ragged_ints(w, (int32_t[]){ 1, 2 }, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 2 } }));
        const int32_t *ids = weft_op_int_data(index);
        weft_rewind(w, here);
        cr_assert(kept[19] == 7 && isnan(ended[0]) && isnan(ended[19]) && ids[8] == 8);
        cr_assert(offsets[1] > 1 << 30, "%d", offsets[1]);
        weft_clear(w);
        /* Earlier its block is gone, because the next step allocates one block for everything. */
        if (step)
            cr_assert(isnan(kept[0]) && isnan(kept[19]) && ids[0] > 1 << 30 && ids[7] > 1 << 30);
    }
}

/* ---- the first NaN ---- */
TABLE_TEST(check, names_the_operator_of_the_first_nan)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 4, 1, -1, 0, 2, 3 }, WEFT_SHAPE(2, 3));
    weft_tanh(weft_scale(weft_log(x), 2));
    FAILS(w, WEFT_ENUMERIC,
          "log: the result [2, 3] has NaN at [0, 2], and no input has one (WEFT_CHECK)");
    x = weft_ragged(w, (weft_real[]){ 1, 1, 1, 1, 1, -1, 1, 1 }, 2,
                    &(weft_lengths){ .n = 3, .len = (int32_t[]){ 1, 0, 3 } });
    weft_sqrt(weft_to_layout(x, WEFT_PACKED));
    FAILS(w, WEFT_ENUMERIC, "sqrt: the result [4, 2] packed has NaN at [2, 1] (sequence 2, position 1)");
    weft_sub(weft_full(w, INFINITY, 0, NULL), weft_full(w, INFINITY, 0, NULL));
    FAILS(w, WEFT_ENUMERIC, "sub: the result [] has NaN at []");
}

TABLE_TEST(check, names_the_layer_of_the_first_nan)
{
    weft_linear *l = weft_linear_new(weft_module_new(w, "net"), "out",
                                     &(weft_linear_opts){ .in = 2, .out = 1, .no_bias = true });
    const weft_real inf = (weft_real)INFINITY;
    weft_linear_run(l, weft_reals(w, (weft_real[]){ 1, 1, inf, 0, inf, -inf, -inf, inf, inf, inf },
                                  WEFT_SHAPE(5, 2)));
    FAILS(w, WEFT_ENUMERIC, "net.out: linear: the result [5, 1] has NaN at [");
}

/* At 0 the gradient of the root is infinite, and square multiplies it by 0. */
static weft_tensor *root_of_square(weft_tensor *x) { return weft_sum_all(weft_sqrt(weft_square(x))); }

static void user_forward(weft_call *c)
{
    weft_context_of(c->x[0])->dev.k->copy(&weft_context_of(c->x[0])->dev, weft_op_data(c->y[0]),
                                          weft_op_data(c->x[0]), 3 * sizeof(weft_real));
}
static void user_fused(const weft_call *c)
{
    weft *w = weft_context_of(c->x[0]);
    bool add;
    weft_real *dx = weft_op_dx(c, 0, &add);
    if (dx)
        w->dev.k->fill(&w->dev, 3, (weft_real)NAN, dx);
}
static const weft_op user_op = {
    .name = "mine", .device = true, .shape = like_first, .forward = user_forward, .fused = user_fused
};

TABLE_TEST(check, names_the_operator_of_a_nan_in_backward)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 4, 0, 1 }, WEFT_SHAPE(3)), *g;
    FAILS_AT(w, weft_gradients_recorded(root_of_square(x), &x, 1, &g), WEFT_ENUMERIC, "backward of square: ");
    weft_tensor *p =
        weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    FAILS_AT(w, weft_backward(root_of_square(p)), WEFT_ENUMERIC, "backward of square: ");
    weft_backward(weft_sum_all(weft_op_apply(&user_op, &p, 1, NULL, 0)));
    FAILS(w, WEFT_ENUMERIC, "backward of mine: the gradient of input 0, [3], has NaN at [0]");
}

static void nan_at_1_forward(weft_call *c)
{
    weft *w = weft_context_of(c->x[0]);
    w->dev.k->fill(&w->dev, weft_numel(c->y[0]), 0, weft_op_data(c->y[0]));
    w->dev.k->fill(&w->dev, 1, (weft_real)NAN, weft_op_data(c->y[0]) + 1);
}
static const weft_op nan_at_1 = {
    .name = "mine", .layout = WEFT_ROWS, .device = true, .shape = like_first, .forward = nan_at_1_forward
};

/* Not reported: -inf of a mask, NaN from the program, NaN in padding, and NaN in the branch that where() does
 * not select. */
TABLE_TEST(check, accepts_nan_from_the_program_and_in_padding)
{
    const weft_real inf = (weft_real)INFINITY, nan = (weft_real)NAN;
    weft_tensor *scores = weft_reals(w, (weft_real[]){ 1, -inf, 2, 0 }, WEFT_SHAPE(2, 2)), *g;
    weft_gradients(weft_sum_all(weft_softmax(scores, 1, NULL)), &scores, 1, &g);
    weft_logsumexp(weft_zeros(w, WEFT_SHAPE(2, 2)), 1, weft_zeros(w, WEFT_SHAPE(2, 2)));
    OK(w);
    listen_to_stderr();
    weft_tensor *missing = weft_reals(w, (weft_real[]){ 1, nan, 2 }, WEFT_SHAPE(3)),
                *there = weft_equal(missing, missing);
    weft_where(there, missing, weft_zeros(w, WEFT_SHAPE(3)));
    cr_assert_str_eq(stop_listening(), "");
    listen_to_stderr();
    weft_gradients(weft_sum_all(weft_scale(weft_slice(missing, 0, 0, 3), 2)), &missing, 1, &g);
    weft_scale(missing, 2);
    const char *line = stop_listening(),
               *once = strstr(line, "WEFT_CHECK: slice: its result has NaN because input 0, [3] not "
                                    "made by an operator, has one at [1]");
    cr_assert(once && strchr(once, '\n') && !strchr(once, '\n')[1], "\"%s\"", line);
    OK(w);
    weft_real rows[] = { 1, 2, 3 };
    weft_tensor *x = weft_ragged(w, rows, 0, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 1, 2 } });
    weft_tensor *placed =
        weft_to_rows(x, &(weft_placement){ 2, 3, (int32_t[]){ 0, 1 }, (int32_t[]){ 0, 0 } });
    weft_log(weft_plain(weft_pad_packed_sequence(x, 0, nan, WEFT_ALIGN_LEFT)));
    OK(w);
    weft_op_apply(&nan_at_1, &placed, 1, NULL, 0);              /* padding */
    OK(w);
    weft_op_apply(&nan_at_1, (weft_tensor *[]){ weft_to_layout(placed, WEFT_CONCAT) }, 1, NULL, 0);
    FAILS(w, WEFT_ENUMERIC, "mine: the result [3] concat has NaN at [1] (sequence 1, position 0)");
}

/* ---- a step without weft_clear ---- */
CPU_TEST(check, reports_a_missing_clear_once)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    weft_optim *a = weft_sgd_new(m, &(weft_sgd_opts){ .lr = (weft_real).1 });
    for (int i = 0; i < 5; i++) {
        listen_to_stderr();
        weft_backward(weft_sum_all(weft_square(p)));
        weft_optim_step(a);
        const char *line = stop_listening();
        cr_assert_eq(!strncmp(line, "weft: WEFT_CHECK: optim_step: the second call since weft_clear: ", 64),
                     i == 3, "%d: %s", i, line);
        cr_assert(i == 3 || !*line);
        if (i < 2)
            weft_clear(w);
    }
}

/* The list of headers grows at powers of two. The arena of headers may grow at the same time and then retry
 * with a smaller size, so every allocation fails. */
CPU_TEST(check, fails_without_memory)
{
    weft_tensor *first = weft_zeros(w, WEFT_SHAPE(1));
    for (int i = 0; i < 5000 && weft_ok(w); i++) {
        fail_in(w, w->check->n == w->check->room ? -1 : 0);
        weft_zeros(w, WEFT_SHAPE(1));
    }
    fail_in(w, 0);
    FAILS(w, WEFT_ENOMEM, "out of memory");
    cr_assert(weft__handle_error(w, first));
}
