/* test_rnn.c - tests recurrent layers: fused against composed in values and all gradients, second
 * derivatives, the same bits in every batch and layout, empty sequences and batches.
 * tests/golden/recurrent.json compares with PyTorch. */
#include "tests/rnn/rnn_kinds.h"

static bag fused, composed;

static void agree(weft *w, const kind *k, const weft_lengths *l)
{
    char text[200];
    weft_rnn *r = layer_of_kind(w, k);
    all_of(w, k, r, l, WEFT_CONCAT, &fused);
    weft_rnn_set_composed(r, true);
    all_of(w, k, r, l, WEFT_CONCAT, &composed);
    snprintf(text, sizeof text, "%s: %s, %d layers, %s directions, %s, %s, input %d, hidden %d, %d sequences",
             weft_device_name(w), cell_name[k->cell], k->o.layers, k->o.bidirectional ? "two" : "one",
             k->state ? "states" : "no state", k->o.no_bias ? "no bias" : "biases", (int)k->o.input,
             (int)k->o.hidden, (int)l->n);
    cr_assert_eq(fused.n, composed.n, "%s", text);
    close_to(text, fused.v, composed.v, fused.n, TOL(1e-12, 2e-5));
}

TABLE_TEST(rnn, fused_layer_matches_composed_layer)
{
    static const int64_t sizes[][2] = { { 1, 1 },  { 3, 5 },    { 9, 4 }, { 2, 17 },
                                        { 6, 33 }, { 65, 129 }, { 7, 260 } };
    enum { SMALL = 5, EMPTY = 2 * CELLS, WIDE = EMPTY + 2 * CELLS };  /* the first cases: empty, then wide */
    for (int i = 0; i < WIDE + rounds(160, 1600); i++) {
        int32_t len[7] = { 0 };
        dice_seed((uint64_t)i);
        const int64_t *size = i < EMPTY || i >= WIDE ? sizes[dice(SMALL)] : sizes[SMALL + i / CELLS % 2],
                       n = i < EMPTY ? i / CELLS * 3 : (int64_t)dice(8);
        if (i >= EMPTY)
            dice_lengths(len, n, 9);
        kind k = { i % CELLS,
                   { .input = size[0],
                     .hidden = size[1],
                     .layers = 1 + i / CELLS % 3,
                     .bidirectional = i / 10 % 2,
                     .no_bias = dice(4) == 0 },
                   i / 20 % 2 };
        if (k.cell >= PROJECTED && k.o.hidden == 1)
            k.o.hidden = 2;
        agree(w, &k, &(weft_lengths){ .n = n, .len = len });
    }
}

/* ---- derivatives against differences ---- */
typedef struct { weft_rnn *r; weft_lengths l; bool lstm, state; } shape;

static weft_tensor *loss_at(weft_tensor *const *x, void *user)
{
    const shape *s = user;
    weft_state first = { s->state ? x[1] : NULL, s->state && s->lstm ? x[2] : NULL };
    return loss_of(weft_rnn_run(s->r, x[0], first));
}

/* Steps of float differences are so large that they cross the corner of relu; those of doubles are not. */
static bool has_corner(int cell) { return cell == RELU && sizeof(weft_real) == 4; }

static void check_second_derivatives(weft *w, const kind *k)
{
    static const int32_t len[] = { 1, 3, 0, 2 };
    shape s = { layer_of_kind(w, k), { .n = 4, .len = len }, has_c(k), k->state };
    weft_tensor *by[INPUTS], *x = random_ragged(w, 4, k->o.input, &s.l);
    int n = inputs_of(x, random_state(w, k, s.l.n), weft_rnn_module(s.r), by);
    double e = weft_gradcheck(loss_at, by, n, 2, &s);
    OK(w);
    cr_assert(e < TOL(1e-7, 5e-2), "%s, directions %d: %g", cell_name[k->cell], 1 + k->o.bidirectional, e);
    weft_clear(w);
}

REF_TEST(rnn, second_gradients_match_central_differences)
{
    for (int cell = 0; cell < CELLS; cell++) {
        kind k = { cell, { .input = 1, .hidden = 2, .layers = 1, .bidirectional = cell % 2 }, true };
        if (!has_corner(cell))
            check_second_derivatives(w, &k);
    }
}

/* Only some gradients are requested, or only some results have one. The buffers of the others stay untouched,
 * and the requested gradients are the same. */
TABLE_TEST(rnn, gradients_of_some_inputs_match_those_of_all)
{
    static const int32_t len[] = { 2, 0, 4, 1 };
    const weft_lengths l = { .n = 4, .len = len };
    for (int cell = 0; cell < CELLS; cell++) {
        kind k = { cell, { .input = 3, .hidden = 4, .layers = 2 }, true };
        weft_module *m = weft_module_new(w, cell_name[cell]);
        weft_rnn *r = rnn_of(m, "r", &k);
        weft_tensor *by[INPUTS], *all[INPUTS], *one[1], *x = random_ragged(w, 4, 3, &l);
        int n = inputs_of(x, random_state(w, &k, 4), m, by);
        weft_rnn_out o = weft_rnn_run(r, x, (weft_state){ by[1], has_c(&k) ? by[2] : NULL });
        weft_tensor *losses[] = { weighted(o.y, 1), weighted(o.last.h, 2),
                                  o.last.c ? weighted(o.last.c, 3) : weighted(o.y, 3) };
        for (int f = 0; f < COUNT(losses); f++) {
            weft_gradients_recorded(losses[f], by, n, all);  /* by the composed form */
            for (int i = 0; i < n; i++) {
                weft_gradients(losses[f], &by[i], 1, one);
                close_to(cell_name[cell], numbers(weft_plain(one[0])), numbers(weft_plain(all[i])),
                         weft_numel(by[i]), TOL(1e-12, 2e-5));
            }
        }
        weft_clear(w);
    }
}

/* ---- the result of a sequence depends only on the sequence ---- */
enum { SEQUENCES = 9, LONGEST = 7, FEATURES = 3 };
static int32_t own_len[SEQUENCES];
static weft_real own_x[SEQUENCES][LONGEST * FEATURES];

typedef struct { weft_real y[LONGEST * 40], h[80], c[80], dx[LONGEST * FEATURES]; } result;

/* Runs the chosen sequences, in that order, in that layout; their results each for itself. */
static void results_of(weft *w, const kind *k, weft_rnn *r, const int *chosen, int n, weft_layout layout,
                       result *out)
{
    static weft_real x[SEQUENCES * LONGEST * FEATURES];
    int32_t len[SEQUENCES];
    int64_t N = 0, W = width_of(k) * (1 + k->o.bidirectional);
    for (int i = 0; i < n; i++) {
        len[i] = own_len[chosen[i]];
        memcpy(x + N * FEATURES, own_x[chosen[i]], (size_t)len[i] * sizeof *x * FEATURES);
        N += len[i];
    }
    weft_lengths l = { .n = n, .len = len };
    weft_tensor *dx, *given = weft_ragged(w, x, FEATURES, &l);
    weft_rnn_out o = weft_rnn_run(r, laid_out(given, layout), WEFT_ZERO_STATE);
    cr_assert_eq(weft_layout_of(o.y), layout);
    weft_gradients(weft_sum_all(weft_square(o.y)), &given, 1, &dx);
    OK(w);
    const weft_real *y = concat_numbers(o.y), *d = numbers(dx), *h = numbers(o.last.h),
                    *c = o.last.c ? numbers(o.last.c) : h;
    int64_t wide = o.last.c ? k->o.hidden : width_of(k);
    for (int64_t i = 0, at = 0; i < n; at += len[i++]) {
        memset(&out[i], 0, sizeof out[i]);
        memcpy(out[i].y, y + at * W, (size_t)(len[i] * W) * sizeof *y);
        memcpy(out[i].dx, d + at * FEATURES, (size_t)(len[i] * FEATURES) * sizeof *d);
        for (int64_t j = 0; j < stacked(k); j++) {
            memcpy(out[i].h + j * width_of(k), h + (j * n + i) * width_of(k),
                   (size_t)width_of(k) * sizeof *h);
            memcpy(out[i].c + j * wide, c + (j * n + i) * wide, (size_t)wide * sizeof *c);
        }
    }
    weft_clear(w);
}

static void same_results(const char *what, const result *a, const result *b)
{
    same_in_company(what, a->y, b->y, COUNT(a->y));
    same_in_company(what, a->h, b->h, COUNT(a->h));
    same_in_company(what, a->c, b->c, COUNT(a->c));
    same_in_company(what, a->dx, b->dx, COUNT(a->dx));
}

/* Nor do its neighbours, even with NaN. */
TABLE_TEST(rnn, batch_order_and_layout_change_no_bit)
{
    static const int order[SEQUENCES] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 },
                     shuffled[SEQUENCES] = { 5, 8, 1, 0, 7, 3, 2, 6, 4 };
    static const struct { const char *what; const int *order; weft_layout layout; } runs[] = {
        { "concat", order, WEFT_CONCAT }, { "rows", order, WEFT_ROWS }, { "shuffled", shuffled, WEFT_CONCAT }
    };
    static const int64_t hidden[] = { 5, 16, 19 };
    static result base[SEQUENCES], other[SEQUENCES];
    for (int i = 0; i < CELLS * COUNT(hidden); i++) {
        kind k = { i % CELLS,
                   { .input = FEATURES, .hidden = hidden[i / CELLS], .layers = 2, .bidirectional = true },
                   false };
        weft_rnn *r = layer_of_kind(w, &k);
        dice_seed(7 + (uint64_t)i);
        dice_lengths(own_len, SEQUENCES, LONGEST);
        own_len[4] += own_len[4] == 0;
        dice_fill(own_x[0], SEQUENCES * LONGEST * FEATURES, -1, 1);
        results_of(w, &k, r, order, SEQUENCES, WEFT_PACKED, base);
        for (int j = 0; j < COUNT(runs); j++) {
            results_of(w, &k, r, runs[j].order, SEQUENCES, runs[j].layout, other);
            for (int s = 0; s < SEQUENCES; s++)
                same_results(runs[j].what, &other[s], &base[runs[j].order[s]]);
        }
        for (int s = 0; s < SEQUENCES; s++) {
            results_of(w, &k, r, &order[s], 1, WEFT_CONCAT, other);
            same_results("alone", &other[0], &base[s]);
        }
        own_x[4][1] = (weft_real)NAN;
        results_of(w, &k, r, order, SEQUENCES, WEFT_PACKED, other);
        cr_assert(isnan(other[4].y[0]));
        for (int s = 0; s < SEQUENCES; s++)
            if (s != 4)
                same_results("in a batch with NaN", &other[s], &base[s]);
    }
}

TABLE_TEST(rnn, plain_input_matches_ragged_input_of_equal_lengths)
{
    static const int64_t shapes[][2] = { { 3, 4 }, { 1, 1 }, { 2, 0 }, { 0, 5 }, { 0, 0 } };
    weft_module *m = weft_module_new(w, "m");
    kind k = { LSTM, { .input = 2, .hidden = 3, .layers = 2, .bidirectional = true }, true };
    weft_rnn *r = rnn_of(m, "r", &k);
    for (int i = 0; i < COUNT(shapes); i++) {
        int64_t n = shapes[i][0], T = shapes[i][1];
        int32_t len[3] = { (int32_t)T, (int32_t)T, (int32_t)T };
        weft_lengths l = { .n = n, .len = len };
        weft_state s = random_state(w, &k, n);
        weft_rnn_out a = weft_rnn_run(r, random_tensor(w, 4, WEFT_SHAPE(n, T, 2)), s),
                     b = weft_rnn_run(r, random_ragged(w, 4, 2, &l), s);
        OK(w);
        cr_assert(weft_rank(a.y) == 3 && weft_size(a.y, 0) == n && weft_size(a.y, 1) == T &&
                  weft_size(a.y, 2) == 6 && weft_layout_of(a.y) == WEFT_PLAIN);
        same_in_company("y", numbers(a.y), concat_numbers(b.y), n * T * 6);
        same_in_company("h", numbers(a.last.h), numbers(b.last.h), 4 * n * 3);
        same_in_company("c", numbers(a.last.c), numbers(b.last.c), 4 * n * 3);
        if (T == 0)
            same_bits("h_n = h_0", numbers(a.last.h), numbers(s.h), 4 * n * 3);
        weft_clear(w);
    }
}

TABLE_TEST(rnn, an_empty_sequence_returns_its_first_state)
{
    static const int32_t len[] = { 0, 2, 0 };
    for (int cell = 0; cell < CELLS; cell++) {
        kind k = { cell, { .input = 2, .hidden = 3, .layers = 2, .bidirectional = true }, true };
        weft_rnn *r = layer_of_kind(w, &k);
        weft_state s = random_state(w, &k, 3);
        weft_rnn_out o = weft_rnn_run(r, random_ragged(w, 4, 2, &(weft_lengths){ .n = 3, .len = len }), s);
        weft_tensor *dh;
        weft_gradients(weft_sum_all(o.last.h), &s.h, 1, &dh);
        OK(w);
        int64_t W = width_of(&k);
        const weft_real *h = numbers(o.last.h), *h0 = numbers(s.h), *d = numbers(dh);
        for (int64_t j = 0; j < 4; j++)
            for (int64_t i = 0; i < W; i++) {
                int64_t at = j * 3 * W + i;
                cr_assert(h[at] == h0[at] && h[at + 2 * W] == h0[at + 2 * W] && h[at + W] != h0[at + W]);
                cr_assert(d[at] == 1 && d[at + 2 * W] == 1);
            }
        weft_clear(w);
    }
}

/* ---- cells that are another one with other weights ---- */
/* Copies block `from` of a parameter of `source` times factor to block `to` of the one of that name in m. */
static void copy_block(weft_module *m, weft_module *source, const char *name, int64_t H, int from, int to,
                       int blocks, weft_real factor)
{
    weft_tensor *p = weft_find_parameter(m, name), *q = weft_find_parameter(source, name);
    int64_t n = weft_numel(q) / blocks, all = weft_numel(p);
    weft_real *of_p = malloc((size_t)(all + 1) * sizeof *of_p), *of_q = numbers(q);
    cr_assert(read_status(p, of_p, (size_t)all * sizeof *of_p) == WEFT_OK && n % H == 0);
    for (int64_t i = 0; i < n; i++)
        of_p[to * n + i] = factor * of_q[from * n + i];
    weft_assign_values(p, of_p, all);
    free(of_p);
}

/* A CIFG is an LSTM with i = 1 - f, and 1 - sigmoid(x) is sigmoid(-x). An MGU is a GRU whose reset gate is
 * its update gate: with z for f a GRU has (1 - z) n + z h, where an MGU has 1 - z. */
TABLE_TEST(rnn, cifg_and_mgu_match_lstm_and_gru_with_tied_gates)
{
    static const char *const names[] = { "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0" };
    static const struct { layer_new *few, *many; int gates, blocks; struct { int from, to, factor; } at[4];
    } cells[] = { { weft_cifg_new, weft_lstm_new, 3, 4,
                    { { 0, 0, -1 }, { 0, 1, 1 }, { 1, 2, 1 }, { 2, 3, 1 } } },
                  { weft_mgu_new, weft_gru_new, 2, 3, { { 0, 0, 1 }, { 0, 1, -1 }, { 1, 2, 1 } } } };
    static const int32_t len[] = { 5, 0, 9, 1 };
    for (int i = 0; i < 2; i++)
        for (int64_t H = 3; H < 200; H = H * 4 + 1) {
            dice_seed((uint64_t)H);
            weft_module *m = weft_module_new(w, "m");
            const weft_rnn_opts o = { .input = 5, .hidden = H };
            weft_rnn *few = cells[i].few(m, "few", &o), *many = cells[i].many(m, "many", &o);
            for (int k = 0; k < COUNT(names) * cells[i].blocks; k++)
                copy_block(weft_rnn_module(many), weft_rnn_module(few), names[k % COUNT(names)], H,
                           cells[i].at[k / COUNT(names)].from, cells[i].at[k / COUNT(names)].to,
                           cells[i].gates, (weft_real)cells[i].at[k / COUNT(names)].factor);
            weft_tensor *x = random_ragged(w, 4, 5, &(weft_lengths){ .n = 4, .len = len });
            weft_rnn_out a = weft_rnn_run(few, x, WEFT_ZERO_STATE);
            weft_rnn_out b = weft_rnn_run(many, x, WEFT_ZERO_STATE);
            close_to("y", concat_numbers(a.y), concat_numbers(b.y), weft_numel(a.y), TOL(1e-12, 3e-6));
            if (a.last.c)
                close_to("c", numbers(a.last.c), numbers(b.last.c), weft_numel(a.last.c),
                         TOL(1e-12, 3e-6));
            OK(w);
            weft_clear(w);
        }
}
