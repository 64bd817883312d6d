/* test_own_cell.c - tests recurrent layers of a program's own cell: four known cells against plain loops one
 * sequence at a time, batches, decoding, files, and errors of a step. */
#include <math.h>
#include "examples/cells_steps.h"
#include "tests/rnn/rnn_kinds.h"

/* ---- known cells against loops ---- */
enum { H = 5, IN = 3 };
typedef struct { double w_ih[4 * H * IN], w_hh[4 * H * H], b_ih[4 * H], b_hh[4 * H], own[6][4 * H]; } weights;

static void read_to(weft_module *m, const char *name, double *to)
{
    weft_tensor *p = weft_find_parameter(m, name);
    weft_real *v = p ? numbers(p) : NULL;
    for (int64_t i = 0; p && i < weft_numel(p); i++)
        to[i] = (double)v[i];
}
static void times(int rows, int n, const double *w, const double *x, const double *bias, double *y)
{
    for (int i = 0; i < rows; i++) {
        y[i] = bias[i];
        for (int k = 0; k < n; k++)
            y[i] += w[i * n + k] * x[k];
    }
}
static void normalise(int n, double *x, const double *gain, const double *shift)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        x[i] = (x[i] - mean) / sqrt(squares + 1e-5) * gain[i] + shift[i];
}
static double logistic(double x) { return 1 / (1 + exp(-x)); }

static void plain_layer_norm_lstm(const weights *p, double *a, double *h, double *c)
{
    double b[4 * H], seen[H];
    times(4 * H, H, p->w_hh, h, p->b_hh, b);
    normalise(4 * H, a, p->own[0], p->own[1]), normalise(4 * H, b, p->own[2], p->own[3]);
    for (int j = 0; j < H; j++)
        seen[j] = c[j] =
            logistic(a[H + j] + b[H + j]) * c[j] + logistic(a[j] + b[j]) * tanh(a[2 * H + j] + b[2 * H + j]);
    normalise(H, seen, p->own[4], p->own[5]);
    for (int j = 0; j < H; j++)
        h[j] = logistic(a[3 * H + j] + b[3 * H + j]) * tanh(seen[j]);
}
static void plain_reset_before_gru(const weights *p, double *a, double *h, double *c)
{
    double b[3 * H], kept[H], n[H];
    (void)c;
    times(2 * H, H, p->w_hh, h, p->b_hh, b);
    for (int j = 0; j < H; j++)
        kept[j] = logistic(a[j] + b[j]) * h[j];
    times(H, H, p->w_hh + 2 * H * H, kept, p->b_hh + 2 * H, n);
    for (int j = 0; j < H; j++) {
        double z = logistic(a[H + j] + b[H + j]);
        h[j] = (1 - z) * tanh(a[2 * H + j] + n[j]) + z * h[j];
    }
}
static void plain_peephole_lstm(const weights *p, double *a, double *h, double *c)
{
    double b[4 * H];
    times(4 * H, H, p->w_hh, h, p->b_hh, b);
    for (int j = 0; j < H; j++) {
        double i = logistic(a[j] + b[j] + c[j] * p->own[0][j]),
               f = logistic(a[H + j] + b[H + j] + c[j] * p->own[1][j]);
        c[j] = f * c[j] + i * tanh(a[2 * H + j] + b[2 * H + j]);
        h[j] = logistic(a[3 * H + j] + b[3 * H + j] + c[j] * p->own[2][j]) * tanh(c[j]);
    }
}
static void plain_zoneout_rnn(const weights *p, double *a, double *h, double *c)      /* not in training */
{
    double b[H];
    (void)c;
    times(H, H, p->w_hh, h, p->b_hh, b);
    for (int j = 0; j < H; j++)
        h[j] = .1 * h[j] + .9 * tanh(a[j] + b[j]);
}
static const struct {
    const weft_cell *cell;
    void (*plain)(const weights *, double *, double *, double *);
} cells[] = {
    { &layer_norm_lstm_cell, plain_layer_norm_lstm },
    { &reset_before_gru_cell, plain_reset_before_gru },
    { &peephole_lstm_cell, plain_peephole_lstm },
    { &zoneout_rnn_cell, plain_zoneout_rnn },
};

static void weights_of(weft_module *m, const weft_cell *cell, bool reverse, weights *p)
{
    char name[64];
    const char *suffix = reverse ? "_reverse" : "";
    memset(p, 0, sizeof *p);
    snprintf(name, sizeof name, "weight_ih_l0%s", suffix), read_to(m, name, p->w_ih);
    snprintf(name, sizeof name, "weight_hh_l0%s", suffix), read_to(m, name, p->w_hh);
    snprintf(name, sizeof name, "bias_ih_l0%s", suffix), read_to(m, name, p->b_ih);
    snprintf(name, sizeof name, "bias_hh_l0%s", suffix), read_to(m, name, p->b_hh);
    for (int i = 0; i < cell->own_count; i++)
        snprintf(name, sizeof name, "%s_l0%s", cell->own[i].name, suffix), read_to(m, name, p->own[i]);
}

TABLE_TEST(own_cell, known_cells_match_plain_loops)
{
    static const int32_t len[] = { 4, 0, 7, 1 };
    for (int i = 0; i < COUNT(cells); i++) {
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = weft_rnn_of_cell(m, "r", cells[i].cell,
                                       &(weft_rnn_opts){ .input = IN, .hidden = H, .bidirectional = true });
        weft_set_training(w, false);
        weft_tensor *x = random_ragged(w, 4, IN, &(weft_lengths){ .n = 4, .len = len });
        weft_real *in = concat_numbers(x), *y = concat_numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
        OK(w);
        for (int side = 0; side < 2; side++) {
            weights p;
            weights_of(weft_rnn_module(r), cells[i].cell, side, &p);
            for (int s = 0, row = 0; s < COUNT(len); row += len[s++]) {
                double h[H] = { 0 }, c[H] = { 0 }, a[4 * H], token[IN];
                for (int t = 0; t < len[s]; t++) {
                    int at = row + (side ? len[s] - 1 - t : t);
                    for (int k = 0; k < IN; k++)
                        token[k] = (double)in[at * IN + k];
                    times(cells[i].cell->gates * H, IN, p.w_ih, token, p.b_ih, a);
                    cells[i].plain(&p, a, h, c);
                    for (int j = 0; j < H; j++)
                        cr_assert_float_eq((double)y[at * 2 * H + side * H + j], h[j], TOL(1e-12, 3e-6),
                                           "%s, side %d, row %d, unit %d", cells[i].cell->name, side, at, j);
                }
            }
        }
        weft_set_training(w, true);
        weft_clear(w);
    }
}

/* ---- company, layouts, decoding, files ---- */
TABLE_TEST(own_cell, a_sequence_has_the_same_bits_in_every_batch_and_layout)
{
    static const int32_t len[] = { 4, 0, 7, 1, 5 };
    static const int64_t id[] = { 10, 11, 12, 13, 14 };
    static bag a, b;
    for (int i = 0; i < COUNT(cells); i++) {
        kind k = { cells[i].cell->states == 2 ? LSTM : TANH,
                   { .input = IN, .hidden = H, .layers = 2, .bidirectional = true },
                   true };
        weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", cells[i].cell, &k.o);
        const weft_lengths l = { .n = 5, .len = len, .id = id };
        weft_set_training(w, false);
        all_of(w, &k, r, &l, WEFT_CONCAT, &a), all_of(w, &k, r, &l, WEFT_PACKED, &b);
        cr_assert(a.n == b.n && !memcmp(a.v, b.v, (size_t)a.n * sizeof *a.v), "%s packed",
                  cells[i].cell->name);
        all_of(w, &k, r, &l, WEFT_ROWS, &b);
        close_to(cells[i].cell->name, b.v, a.v, a.n, TOL(1e-12, 2e-5));
        weft_set_training(w, true); /* noise goes by id and position */
        weft_real *all = concat_numbers(weft_rnn_run(r, random_ragged(w, 4, IN, &l), WEFT_ZERO_STATE).y),
                  *x = concat_numbers(random_ragged(w, 4, IN, &l));
        weft_real *of_third = malloc(7 * 2 * H * sizeof *of_third), *third = malloc(7 * IN * sizeof *third);
        memcpy(of_third, all + 4 * 2 * H, 7 * 2 * H * sizeof *all),
            memcpy(third, x + 4 * IN, 7 * IN * sizeof *x);
        uint64_t step = w->random.draw;
        weft_clear(w);
        w->random.draw = step;
        weft_real *alone = concat_numbers(
            weft_rnn_run(r,
                         weft_ragged(w, third, IN, &(weft_lengths){ .n = 1, .len = len + 2, .id = id + 2 }),
                         WEFT_ZERO_STATE)
                .y);
        OK(w);
        if (w->dev.k->synchronous)
            cr_assert(!memcmp(alone, of_third, 7 * 2 * H * sizeof *alone), "%s alone", cells[i].cell->name);
        free(of_third), free(third);
        weft_clear(w);
    }
}

TABLE_TEST(own_cell, single_steps_match_a_run)
{
    for (int i = 0; i < COUNT(cells); i++) {
        weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", cells[i].cell,
                                       &(weft_rnn_opts){ .input = IN, .hidden = H, .layers = 2 });
        weft_set_training(w, false);
        weft_tensor *x = random_tensor(w, 3, WEFT_SHAPE(2, 4, IN));
        weft_rnn_out whole = weft_rnn_run(r, x, WEFT_ZERO_STATE), one = { NULL, WEFT_ZERO_STATE };
        for (int t = 0; t < 4; t++)
            one = weft_rnn_step(r, weft_reshape(weft_slice(x, 1, t, t + 1), WEFT_SHAPE(2, IN)), one.last);
        close_to("h", numbers(one.last.h), numbers(whole.last.h), weft_numel(whole.last.h), TOL(1e-13, 1e-6));
        cr_assert(!one.last.c == (cells[i].cell->states != 2));
        OK(w);
        weft_set_training(w, true);
        weft_clear(w);
    }
}

/* In training, a unit of the first step either stays at its initial 0 or takes its full new value. Otherwise
 * every unit moves by the expected share. */
TABLE_TEST(own_cell, noise_keeps_units_only_in_training)
{
    int32_t len[200];
    for (int s = 0; s < COUNT(len); s++)
        len[s] = 1;
    weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", &zoneout_rnn_cell,
                                   &(weft_rnn_opts){ .input = IN, .hidden = H });
    weft_tensor *x = random_ragged(w, 4, IN, &(weft_lengths){ .n = COUNT(len), .len = len });
    weft_real *trained = concat_numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
    weft_set_training(w, false);
    weft_real *used = concat_numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
    weft_set_training(w, true);
    int kept = 0;
    for (int i = 0; i < COUNT(len) * H; i++) {
        cr_assert(trained[i] == 0 || fabs((double)trained[i] * .9 - (double)used[i]) < 1e-6,
                  "unit %d: %g, %g", i, (double)trained[i], (double)used[i]);
        kept += trained[i] == 0;
    }
    cr_assert(kept > 60 && kept < 145, "%d of 1,000 units keep their value at probability .1", kept);
    OK(w);
    weft_clear(w);
}

CPU_TEST(own_cell, files_store_the_cell_by_name, .fini = end_folder)
{
    const weft_rnn_opts o = { .input = IN, .hidden = H };
    weft_cell other = peephole_lstm_cell;
    other.name = "another";
    weft_module *a = weft_module_new(w, "m"), *b = weft_module_new(w, "m"), *c = weft_module_new(w, "m");
    weft_rnn *from = weft_rnn_of_cell(a, "r", &peephole_lstm_cell, &o),
             *to = weft_rnn_of_cell(b, "r", &peephole_lstm_cell, &o);
    weft_rnn_of_cell(c, "r", &other, &o);
    weft_tensor *moved = weft_find_parameter(weft_rnn_module(from), "weight_co_l0"),
                *read = weft_find_parameter(weft_rnn_module(to), "weight_co_l0");
    weft_assign(moved, weft_full(w, 7, WEFT_SHAPE(H)));
    const char *path = in_folder("cell.h5");
    cr_assert(weft_save(path, a, NULL, NULL, 0) == WEFT_OK && weft_load(path, b, NULL, NULL, 0) == WEFT_OK,
              "%s", weft_file_message());
    cr_assert(numbers(read)[0] == 7 && numbers(read)[H - 1] == 7);
    cr_assert(weft_load(path, c, NULL, NULL, 0) == WEFT_EFORMAT &&
                  strstr(weft_file_message(), "peephole_lstm"),
              "%s", weft_file_message());
}

static void train_once(weft *w, void *user)
{
    static const int32_t len[] = { 4, 0, 7, 1 };
    weft_backward(loss_of(
        weft_rnn_run(user, random_ragged(w, 4, IN, &(weft_lengths){ .n = 4, .len = len }), WEFT_ZERO_STATE)));
    OK(w);
}
TABLE_TEST(own_cell, steady_step_allocates_nothing, .init = unchecked)
{
    for (int i = 0; i < COUNT(cells); i++)
        is_steady(w, train_once,
                  weft_rnn_of_cell(weft_module_new(w, "m"), "r", cells[i].cell,
                                   &(weft_rnn_opts){ .input = IN, .hidden = H }));
}

/* A batch without tokens reaches every parameter of the layer, fused or not, with a gradient of 0. */
static void is_led_to(weft *w, weft_rnn *r, bool composed, const weft_lengths *l)
{
    weft_module *m = weft_rnn_module(r);
    weft_rnn_set_composed(r, composed);
    weft_rnn_out out = weft_rnn_run(r, random_ragged(w, 4, IN, l), WEFT_ZERO_STATE);
    cr_assert(weft_size(out.y, 0) == 0 && weft_size(out.last.h, 1) == l->n);
    weft_backward(weft_sum_all(out.y));
    OK(w);
    for (int i = 0; i < weft_parameter_count(m); i++)
        cr_assert_eq(weft_item(weft_sum_all(weft_square(weft_grad(weft_parameter_at(m, i, NULL))))), 0);
    weft_clear(w);
}

TABLE_TEST(own_cell, an_empty_batch_gives_parameters_zero_gradients)
{
    static const int32_t zeros[3] = { 0 };
    const weft_rnn_opts o = { .input = IN, .hidden = H, .layers = 2, .bidirectional = true, .dropout = .3 };
    for (int i = 0; i < COUNT(cells) + 1; i++) {
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = i < COUNT(cells) ? weft_rnn_of_cell(m, "r", cells[i].cell, &o) :
                                         weft_lstm_new(m, "r", &o);
        for (int composed = 0; composed < 2; composed++) {
            is_led_to(w, r, composed, &(weft_lengths){ .n = 0 });
            is_led_to(w, r, composed, &(weft_lengths){ .n = 3, .len = zeros });
        }
    }
}

static weft_tensor *loss_of_run(weft_tensor *const *x, void *layer)
{
    return weft_sum_all(weft_square(weft_rnn_run(layer, x[0], WEFT_ZERO_STATE).y));
}

CPU_TEST(own_cell, has_gradients_of_gradients)
{
    static const int32_t len[] = { 3, 1 };
    weft_set_training(w, false);
    for (int i = 0; i < COUNT(cells); i++) {
        weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", cells[i].cell,
                                       &(weft_rnn_opts){ .input = IN, .hidden = H });
        weft_tensor *x = random_ragged(w, 4, IN, &(weft_lengths){ .n = 2, .len = len });
        double off = weft_gradcheck(loss_of_run, &x, 1, 2, r);
        OK(w);
        cr_assert(off < TOL(1e-6, 5e-2), "%s: off by %g", cells[i].cell->name, off);
        weft_clear(w);
    }
}

/* ---- the sign of zero ---- */
/* A zero gradient has the same sign for a single sequence and in a batch. */
static weft_state add_up(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ weft_add(in->x, weft_neg(in->h)), NULL };
}
static weft_state through(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ weft_add(in->x, in->h), NULL };
}

/* Gradients of x [.., 2] and of the first states [2, n, 2], of a loss whose gradient by y is -0. */
static void minus_zero_gradients(weft_cell_step *step, int n, const int32_t *len, weft_real *dx,
                                 weft_real *dh)
{
    weft *w = open_on(WEFT_CPU);
    weft_cell c = { .name = "mine", .gates = 1, .gates_h = -1, .states = 1, .step = step };
    weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", &c,
                                   &(weft_rnn_opts){ .input = 2, .hidden = 2, .bidirectional = true });
    weft_lengths l = { .n = n, .len = len };
    weft_real zeros[64];
    for (int i = 0; i < 64; i++)
        zeros[i] = -0.f;
    weft_tensor *by[] = { weft_ragged(w, zeros, 2, &l), weft_full(w, .5, WEFT_SHAPE(2, n, 2)) }, *g[2];
    weft_rnn_out o = weft_rnn_run(r, by[0], (weft_state){ by[1], NULL });
    weft_gradients(weft_sum_all(weft_mul(o.y, weft_ragged(w, zeros, 4, &l))), by, 2, g);
    OK(w);
    weft_read_sequences(g[0], dx, (size_t)weft_numel(g[0]) * sizeof *dx);
    weft_read(g[1], dh, (size_t)weft_numel(g[1]) * sizeof *dh);
    CLEAN(w);
}

Test(own_cell, zeros_have_one_sign_alone_and_in_a_batch)
{
    static const int32_t len[] = { 3, 1, 2 };
    weft_cell_step *const steps[] = { add_up, through };
    for (int k = 0; k < COUNT(steps); k++) {
        weft_real dx[12], dh[12], alone_x[12], alone_h[4];
        minus_zero_gradients(steps[k], 3, len, dx, dh);
        for (int s = 0, at = 0; s < 3; at += 2 * len[s++]) {
            minus_zero_gradients(steps[k], 1, len + s, alone_x, alone_h);
            same_bits("dx", dx + at, alone_x, 2 * len[s]);
            for (int d = 0; d < 2; d++)
                same_bits("dh", dh + 6 * d + 2 * s, alone_h + 2 * d, 2);
        }
    }
}

/* ---- errors of a program ---- */
static weft_state gives_nothing(const weft_cell_input *in, void *user)
{
    (void)in, (void)user;
    return WEFT_ZERO_STATE;
}
static weft_state gives_too_much(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ in->x, NULL };
}
static weft_state gives_c(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ in->h, in->h };
}
static weft_state fails(const weft_cell_input *in, void *user)
{
    (void)user;
    weft_fail(weft_context_of(in->h), WEFT_ENUMERIC, "my own reason");
    return (weft_state){ in->h, NULL };
}
static void run_of(weft *w, weft_module *m, weft_cell_step *step, weft_status status, const char *why)
{
    const weft_cell cell = { .name = "mine", .gates = 2, .step = step };
    weft_rnn *r = weft_rnn_of_cell(m, "r", &cell, &(weft_rnn_opts){ .input = IN, .hidden = H });
    static const int32_t len[] = { 2, 1 };
    weft_rnn_run(r, random_ragged(w, 4, IN, &(weft_lengths){ .n = 2, .len = len }), WEFT_ZERO_STATE);
    FAILS(w, status, why);
}

CPU_TEST(own_cell, errors_of_a_step_are_reported)
{
    const weft_rnn_opts o = { .input = IN, .hidden = H };
    const weft_cell_parameter unnamed = { "a.b", WEFT_CELL_VECTOR, 1, NULL },
                              shapeless = { "a", (weft_cell_shape)7, 1, NULL };
    const weft_cell_parameter blockless = { "a", WEFT_CELL_VECTOR, 0, NULL };
#define BAD(options, text, ...) { { .name = "x", .step = gives_nothing, __VA_ARGS__ }, options, text }
    const weft_rnn_opts proj = { .input = IN, .hidden = H, .proj = 2 };
    const weft_rnn_opts relu = { .input = IN, .hidden = H, .relu = true };
    const struct { weft_cell cell; weft_rnn_opts o; const char *why;
    } bad[] = {
        { { .name = "x" }, o, "expected a cell with a step" },
        { { .step = gives_nothing }, o, "name: expected 1 to 95 bytes" },
        BAD(o, "gates: expected 0 .. 64 gates", .gates = -1),
        BAD(o, "states: expected 1 or 2", .gates = 1, .states = 3),
        BAD(o, "noise: expected 0 <= noise < 1", .gates = 1, .noise = 1),
        BAD(o, "0 .. 16 parameters", .gates = 1, .own_count = 1),
        BAD(o, "own: name: expected 1 .. 31 bytes", .gates = 1, .own = &unnamed, .own_count = 1),
        BAD(o, "own: shape: expected", .gates = 1, .own = &shapeless, .own_count = 1),
        BAD(o, "own: blocks: expected 1 .. 64", .gates = 1, .own = &blockless, .own_count = 1),
        BAD(proj, "proj: expected only with an LSTM or a CIFG", .gates = 1),
        BAD(relu, "relu: expected only with weft_elman_new", .gates = 1),
        BAD(((weft_rnn_opts){ .hidden = H }), "rnn_of_cell \"r\": input and hidden: expected", .gates = 1),
    };
    weft_module *m = weft_module_new(w, "m");
    for (int i = 0; i < COUNT(bad); i++) {
        weft_rnn *r = weft_rnn_of_cell(m, "r", &bad[i].cell, &bad[i].o);
        cr_assert(r && !weft_rnn_module(r));
        FAILS(w, WEFT_EARG, bad[i].why);
    }
    FAILS_AT(w, weft_rnn_of_cell(m, "r", NULL, &o), WEFT_EARG, "expected a cell with a step");
    run_of(w, weft_module_new(w, "a"), gives_nothing, WEFT_EARG,
           "a.r: the step of the cell \"mine\": h is NULL");
    run_of(w, weft_module_new(w, "b"), gives_too_much, WEFT_ESHAPE,
           "h is [2, 10]; expected plain [2, 5] (rows, hidden)");
    run_of(w, weft_module_new(w, "c"), gives_c, WEFT_EARG,
           "it returned c; expected NULL, for one state, h");
    run_of(w, weft_module_new(w, "d"), fails, WEFT_ENUMERIC, "my own reason");
}
