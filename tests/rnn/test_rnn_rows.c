/* test_rnn_rows.c - recurrent layers over the layout rows, where a row is a column of several sequences: the
 * same as packed, gaps, empty rows and empty sequences included. */
#include "tests/rnn/rnn_kinds.h"

enum { N = 6, FEATURES = 3, ROWS = 4, WIDTH = 8, MOST = 400 };
/* row 1 stays empty */
static const int32_t len[N] = { 4, 0, 2, 5, 1, 3 }, row[N] = { 2, 0, 2, 0, 2, 3 },
                     column[N] = { 1, 0, 6, 2, 5, 0 };
static const weft_lengths lengths = { .n = N, .len = len };
static const weft_placement placement = { ROWS, WIDTH, row, column };

typedef struct result {
    weft_real y[MOST], h[MOST], c[MOST], dx[MOST], dh0[MOST], dw[MOST], second[MOST];
} result;
static void take(weft_real *to, weft_tensor *from)
{
    int64_t n = from ? weft_numel(from) : 0;
    cr_assert(n <= MOST);
    memset(to, 0, MOST * sizeof *to);
    if (n)
        memcpy(to, numbers(from), (size_t)n * sizeof *to);
}
static weft_rnn_out run(weft *w, const kind *k, weft_rnn *r, bool rows, weft_tensor **x, weft_state *first)
{
    *x = random_ragged(w, 4, FEATURES, &lengths);
    *first = random_state(w, k, N);
    return weft_rnn_run(r, rows ? weft_to_rows(*x, &placement) : weft_to_layout(*x, WEFT_PACKED), *first);
}
static void results(weft *w, const kind *k, weft_rnn *r, weft_tensor *weight, bool rows, result *out)
{
    weft_tensor *x, *g[3], *second;
    weft_state first;
    weft_rnn_out o = run(w, k, r, rows, &x, &first);
    weft_tensor *of[] = { x, weight, first.h };
    /* recorded: so they can be differentiated again */
    weft_gradients_recorded(loss_of(o), of, first.h ? 3 : 2, g);
    weft_gradients(weft_sum_all(weft_square(weft_plain(g[0]))), &weight, 1, &second);
    take(out->y, weft_to_layout(o.y, WEFT_CONCAT)), take(out->h, o.last.h), take(out->c, o.last.c);
    take(out->dx, weft_to_layout(g[0], WEFT_CONCAT)), take(out->dw, g[1]),
        take(out->dh0, first.h ? g[2] : NULL), take(out->second, second);
    OK(w);
    weft_clear(w);
}
/* the fused backward */
static void once_more_raw(weft *w, const kind *k, weft_rnn *r, weft_tensor *weight, bool rows, result *out)
{
    weft_tensor *x, *g[3];
    weft_state first;
    weft_tensor *loss = loss_of(run(w, k, r, rows, &x, &first)), *of[] = { x, weight, first.h };
    weft_set_grad_enabled(w, false);
    weft_gradients(loss, of, first.h ? 3 : 2, g);
    weft_set_grad_enabled(w, true);
    take(out->dx, weft_to_layout(g[0], WEFT_CONCAT)), take(out->dw, g[1]),
        take(out->dh0, first.h ? g[2] : NULL);
    OK(w);
    weft_clear(w);
}
static void same(const char *what, const result *rows, const result *packed)
{
    same_in_company(what, rows->y, packed->y, MOST);
    same_in_company(what, rows->h, packed->h, MOST);
    same_in_company(what, rows->c, packed->c, MOST);
    close_to(what, rows->dx, packed->dx, MOST, TOL(1e-12, 2e-5));
    close_to(what, rows->dh0, packed->dh0, MOST, TOL(1e-12, 2e-5));
    close_to(what, rows->dw, packed->dw, MOST, TOL(1e-12, 2e-5));
    close_to(what, rows->second, packed->second, MOST, TOL(1e-11, 2e-4));
}

Test(rnn_rows, are_what_packed_ones_are)
{
    static result rows, packed;
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        for (int i = 0; i < 4 * CELLS; i++) {
            char name[16];
            snprintf(name, sizeof name, "r%d", i);
            kind k = { i % CELLS,
                       { .input = FEATURES, .hidden = 4, .layers = 2, .bidirectional = i / CELLS % 2 },
                       i / CELLS / 2 };
            weft_rnn *r = rnn_of(m, name, &k);
            char path[32];
            snprintf(path, sizeof path, "%s.weight_hh_l0", name);
            weft_tensor *weight = weft_find_parameter(m, path);
            for (int composed = 0; composed < 2; composed++) {
                weft_rnn_set_composed(r, composed);
                results(w, &k, r, weight, false, &packed), results(w, &k, r, weight, true, &rows);
                same(cell_name[k.cell], &rows, &packed);
                once_more_raw(w, &k, r, weight, false, &packed), once_more_raw(w, &k, r, weight, true, &rows);
                same(cell_name[k.cell], &rows, &packed);
            }
        }
    }
}

/* Of so many units that threads share them, since there are few sequences. */
typedef struct gradients { weft_rnn_out o; weft_tensor *of[3]; } gradients;
static gradients wide_ones(weft *w, const kind *k, weft_rnn *r, weft_tensor *weight, bool rows)
{
    gradients g;
    weft_tensor *x;
    weft_state first;
    g.o = run(w, k, r, rows, &x, &first);
    weft_tensor *loss = loss_of(g.o);
    weft_set_grad_enabled(w, false);                    /* the fused backward */
    weft_gradients(loss, (weft_tensor *[]){ x, weight, first.h }, 3, g.of);
    weft_set_grad_enabled(w, true);
    return g;
}
Test(rnn_rows, wide_ones_are_what_packed_ones_are)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        for (int i = 0; i < CELLS; i++) {
            kind k = { i, { .input = FEATURES, .hidden = 380, .layers = 1 }, true };
            weft_rnn *r = rnn_of(m, cell_name[i], &k);
            char path[32];
            snprintf(path, sizeof path, "%s.weight_hh_l0", cell_name[i]);
            gradients packed = wide_ones(w, &k, r, weft_find_parameter(m, path), false),
                      rows = wide_ones(w, &k, r, weft_find_parameter(m, path), true);
            OK(w);
            same_in_company(path, concat_numbers(rows.o.y), concat_numbers(packed.o.y),
                            weft_numel(packed.o.y));
            same_in_company(path, numbers(rows.o.last.h), numbers(packed.o.last.h),
                            weft_numel(packed.o.last.h));
            for (int j = 0; j < 3; j++)
                close_to(path, (j ? numbers : concat_numbers)(rows.of[j]),
                         (j ? numbers : concat_numbers)(packed.of[j]), weft_numel(packed.of[j]),
                         TOL(1e-12, 2e-5));
            weft_clear(w);
        }
    }
}

Test(rnn_rows, the_result_lies_as_the_input_does)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = weft_gru_new(m, "r", &(weft_rnn_opts){ .input = FEATURES, .hidden = 2 });
        weft_tensor *x = weft_to_rows(random_ragged(w, 4, FEATURES, &lengths), &placement),
                    *y = weft_rnn_run(r, x, WEFT_ZERO_STATE).y;
        cr_assert_eq(weft_layout_of(y), WEFT_ROWS);
        const int32_t *sequence = weft_rows_of(y).sequence;
        const weft_real *v = numbers(weft_plain(y));
        for (int i = 0; i < ROWS * WIDTH; i++)
            cr_assert((sequence[i] < 0) == (v[2 * i] == 0 && v[2 * i + 1] == 0), "cell %d", i);
    }
}

Test(rnn_rows, no_tokens_at_all)
{
    static const int32_t none[] = { 0, 0 };
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = FEATURES, .hidden = 2 });
        for (int n = 0; n < 3; n++) {
            weft_tensor *x = weft_ragged(w, NULL, FEATURES, &(weft_lengths){ .n = n, .len = none });
            weft_rnn_out o =
                weft_rnn_run(r, weft_to_rows(x, &(weft_placement){ n, 5, none, none }), WEFT_ZERO_STATE);
            weft_backward(weft_sum_all(o.y));
            cr_assert(weft_numel(o.y) == 10 * n && weft_size(o.last.h, 1) == n);
            OK(w);
            weft_clear(w);
        }
    }
}

static const kind lstm = { LSTM,
                           { .input = FEATURES, .hidden = 3, .layers = 2, .bidirectional = true },
                           true };
static void one_step(weft *w, void *layer)
{
    weft_tensor *x;
    weft_state first;
    weft_backward(loss_of(run(w, &lstm, layer, true, &x, &first)));
}
Test(rnn_rows, a_steady_step_allocates_nothing, .init = unchecked)
{
    FOR_DEVICES(w)
        is_steady(w, one_step, rnn_of(weft_module_new(w, "m"), "r", &lstm));
}
Test(rnn_rows, every_piece_of_memory_may_fail)
{
    weft *w = open_on(WEFT_CPU);
    int failed = failures_of(w, 4000, one_step, rnn_of(weft_module_new(w, "m"), "r", &lstm));
    cr_assert(failed > 50, "%d", failed);
    CLEAN(w);
}
