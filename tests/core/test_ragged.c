/* test_ragged.c - what a sequence gives does not depend on how it lies, on the order of the batch or on its
 * neighbours: on random ragged batches (zeros, ties, one sequence, none) every layout, order and subset gives
 * the same outputs and states bit for bit, and gradients equal those of one sequence at a time. NaN in pads
 * or in a neighbour changes nothing. */
#include "tests/check.h"
#include "core/inside.h"
#include "nn/nn.h"

/* PADDED: by way of [n, T, ..], there and back */
enum { MOST = 9, LONGEST = 12, CONCAT = 0, PACKED, ROWS, PADDED, LAYOUTS };
typedef struct {
    weft_rnn *rnn;
    weft_linear *query, *out;
    weft_norm_layer *norm;
    weft_module *m;
    int64_t in, wide;
} net;
typedef struct { int64_t n; int32_t len[MOST]; int64_t id[MOST]; weft_real x[MOST][LONGEST * 8]; } batch;
/* of one sequence */
typedef struct { weft_real rows[LONGEST * 64], pooled[64], h[4 * 32], c[4 * 32]; } result;

static net net_new(weft *w, int64_t in, int kind)
{
    weft_module *m = weft_module_new(w, "net");
    weft_rnn_opts o = {
        .input = in, .hidden = 3 + (int64_t)dice(9), .layers = 1 + (int)dice(2), .bidirectional = dice(2)
    };
    int64_t wide = o.hidden * (o.bidirectional ? 2 : 1);
    return (net){ kind == 0 ? weft_lstm_new(m, "rnn", &o) :
                  kind == 1 ? weft_gru_new(m, "rnn", &o) :
                              weft_elman_new(m, "rnn", &o),
                  weft_linear_new(m, "query", &(weft_linear_opts){ .in = wide, .out = wide }),
                  weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2 * wide, .out = 5 }),
                  weft_layer_norm_new(m, "norm", &(weft_layer_norm_opts){ .width = wide }),
                  m,
                  in,
                  wide };
}

/* Recurrent layer, norm, dropout, attention within each sequence, softmax over its tokens: [N, 5]; and
 * what is left of the sequence. */
static weft_tensor *run(const net *m, weft_tensor *x, weft_tensor **pooled, weft_state *last)
{
    weft_rnn_out r = weft_rnn_run(m->rnn, x, WEFT_ZERO_STATE);
    weft_tensor *h = weft_layer_norm_run(m->norm, weft_dropout(r.y, (weft_real).25, "drop", false));
    weft_tensor *a =
        weft_attention(weft_linear_run(m->query, h), h, h,
                       &(weft_attention_opts){ .dropout = (weft_real).25, .name = "attention" }, NULL);
    weft_tensor *y = weft_linear_run(m->out, weft_concat((weft_tensor *[]){ h, a }, 2, 1));
    y = weft_mul(weft_tanh(y), weft_softmax(y, 0, NULL));
    *pooled = weft_pool(y, WEFT_POOL_MAX);
    *last = r.last;
    return y;
}

static void draw_batch(batch *b, int64_t in)
{
    b->n = (int64_t)dice(MOST + 1);
    bool ties = dice(3) == 0;
    for (int64_t s = 0; s < b->n; s++) {
        b->len[s] = dice(4) == 0 ? 0 : ties ? 5 : (int32_t)dice(LONGEST + 1);
        b->id[s] = 100 + s;
        dice_fill(b->x[s], b->len[s] * in, -1.5, 1.5);
    }
}

/* what is in pads is NaN */
static weft_tensor *from_padded(weft *w, const weft_real *x, const weft_lengths *l, int64_t in)
{
    weft_real padded[MOST * (LONGEST + 1) * 8];
    weft_align align = l->n % 2 ? WEFT_ALIGN_LEFT : WEFT_ALIGN_RIGHT;
    for (int i = 0; i < COUNT(padded); i++)
        padded[i] = (weft_real)NAN;
    for (int64_t s = 0; s < l->n; x += l->len[s++] * in)
        memcpy(padded + (s * (LONGEST + 1) + (align ? LONGEST + 1 - l->len[s] : 0)) * in, x,
               (size_t)(l->len[s] * in) * sizeof *x);
    return weft_pack_padded_sequence(weft_reals(w, padded, WEFT_SHAPE(l->n, LONGEST + 1, in)), l, align);
}

/* The chosen sequences of the batch as a ragged tensor, in some layout. */
static weft_tensor *chosen(weft *w, const batch *b, const int *which, int n, int64_t in, int layout)
{
    int32_t len[MOST], row[MOST], column[MOST];
    int64_t id[MOST], at = 0, rows;
    weft_real x[MOST * LONGEST * 8];
    for (int i = 0; i < n; i++) {
        const batch *from = b;
        len[i] = from->len[which[i]], id[i] = from->id[which[i]];
        memcpy(x + at, from->x[which[i]], (size_t)(len[i] * in) * sizeof *x);
        at += len[i] * in;
    }
    weft_lengths l = { .n = n, .len = len, .id = id };
    if (layout == PADDED)
        return from_padded(w, x, &l, in);
    weft_tensor *t = weft_ragged(w, x, in, &l);
    if (layout == CONCAT)
        return t;
    if (layout == PACKED)
        return weft_to_layout(t, WEFT_PACKED);
    cr_assert_eq(weft_first_fit(&l, LONGEST + 3, row, column, &rows), WEFT_OK);
    return weft_to_rows(t, &(weft_placement){ rows, LONGEST + 3, row, column });
}

static void take(weft_tensor *y, weft_tensor *pooled, weft_state last, const int *which, int n, int layout,
                 result *out)
{
    bool padded = layout == PADDED;
    weft_real *rows = numbers(padded ? weft_pad_packed_sequence(y, LONGEST + 2, 3, WEFT_ALIGN_LEFT) :
                                       weft_to_layout(y, WEFT_CONCAT));
    weft_real *pool = numbers(pooled), *h = numbers(last.h), *c = last.c ? numbers(last.c) : NULL;
    const int32_t *offset = weft_offsets(y);
    int64_t D = weft_size(last.h, 0), H = weft_size(last.h, 2);
    for (int i = 0; i < n; i++) {
        result *r = &out[which[i]];
        memset(r, 0, sizeof *r);
        memcpy(r->rows, rows + (padded ? i * (LONGEST + 2) : offset[i]) * 5,
               (size_t)(offset[i + 1] - offset[i]) * 5 * sizeof *rows);
        memcpy(r->pooled, pool + 5 * i, 5 * sizeof *pool);
        for (int64_t d = 0; d < D; d++) {
            memcpy(r->h + d * 32, h + (d * n + i) * H, (size_t)H * sizeof *h);
            if (c)
                memcpy(r->c + d * 32, c + (d * n + i) * H, (size_t)H * sizeof *c);
        }
    }
}

static void results(weft *w, const net *m, const batch *b, const int *which, int n, int layout, result *out)
{
    weft_tensor *pooled;
    weft_state last;
    weft_mark here = weft_mark_here(w);
    weft_tensor *y = run(m, chosen(w, b, which, n, m->in, layout), &pooled, &last);
    OK(w);
    take(y, pooled, last, which, n, layout, out);
    weft_rewind(w, here);
}

static void shuffled(int *which, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)dice((uint64_t)i + 1), t = which[i];
        which[i] = which[j], which[j] = t;
    }
}

static bool same(const result *got, const result *want, double tol)
{
    return tol > 0 ? is_close("a sequence", got->rows, want->rows, sizeof *got / sizeof(weft_real), tol) :
                     !memcmp(got, want, sizeof *got);
}

static void one_batch(weft *w, int round, double tol)             /* tol 0: the same bits */
{
    static batch b;
    static result want[MOST], got[MOST];
    int all[MOST] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    dice_seed((uint64_t)round);
    net m = net_new(w, 1 + (int64_t)dice(7), round % 3);
    draw_batch(&b, m.in);
    for (int s = 0; s < b.n; s++)                /* each by itself */
        weft_clear(w), w->random.draw = 7, results(w, &m, &b, &s, 1, CONCAT, want);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        int n = layout == ROWS ? (int)dice((uint64_t)b.n + 1) : (int)b.n;           /* some of them */
        shuffled(all, (int)b.n);
        for (int s = 0; s < b.n; s++)            /* a neighbour's NaN */
            if (layout == PACKED && s == all[0] && b.n > 1)
                b.x[s][0] = (weft_real)NAN;
        weft_clear(w), w->random.draw = 7;
        results(w, &m, &b, all, n, layout, got);
        for (int i = layout == PACKED && b.n > 1; i < n; i++)
            cr_assert(same(&got[all[i]], &want[all[i]], tol),
                      "round %d on %s, layout %d: sequence %d (length %d) differs", round,
                      weft_device_name(w), layout, all[i], b.len[all[i]]);
        if (layout == PACKED && b.n > 1 && b.len[all[0]])
            dice_fill(b.x[all[0]], 1, -1, 1), weft_clear(w), w->random.draw = 7,
                                                             results(w, &m, &b, &all[0], 1, CONCAT, want);
    }
}

Test(ragged, layouts_orders_and_neighbours_change_no_bit)
{
    setenv("WEFT_GEMM", "own", 1);
    for (int r = 0; r < rounds(150, 10000); r++)
        FOR_DEVICES(w)
            one_batch(w, r, 0);
}

Test(ragged, openblas_changes_little)
{
    setenv("WEFT_GEMM", "openblas", 1);
    char why[320];
    cr_assert_not_null(weft__blas(WEFT_DEFAULT_GEMM, why, sizeof why), "%s", why);
    for (int r = 0; r < rounds(100, 10000); r++)
        FOR_DEVICES(w)
            one_batch(w, r, 1e-6);
}

/* ---- gradients ---- */
static weft_tensor *loss_of(const net *m, weft_tensor *x)
{
    weft_tensor *pooled;
    weft_state last;
    weft_tensor *y = run(m, x, &pooled, &last);
    return weft_add(weft_add(weft_sum_all(weft_square(y)), weft_sum_all(weft_sin(pooled))),
                    weft_sum_all(weft_square(last.h)));
}

static double norm_of(const weft_real *g, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)g[i] * (double)g[i];
    return fmax(1, sqrt(sum));
}

typedef weft_real input[LONGEST * 8];
/* of each sequence */
static void input_gradients(weft *w, const net *m, const batch *b, const int *which, int n, int layout,
                            input *out)
{
    weft_clear(w), w->random.draw = 7;
    weft_tensor *x = chosen(w, b, which, n, m->in, layout), *dx;
    weft_gradients(loss_of(m, x), &x, 1, &dx);
    weft_real *rows = numbers(weft_to_layout(dx, WEFT_CONCAT));
    for (int i = 0; i < n; rows += b->len[which[i++]] * m->in)
        memcpy(out[which[i]], rows, (size_t)(b->len[which[i]] * m->in) * sizeof *rows);
}

static void one_gradient(weft *w, int round)
{
    static batch b;
    static input want[MOST], got[MOST];
    int all[MOST] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    dice_seed((uint64_t)round);
    net m = net_new(w, 1 + (int64_t)dice(7), round % 3);
    draw_batch(&b, m.in);
    for (int s = 0; s < b.n; s++) {
        weft_clear(w), w->random.draw = 7;
        weft_backward(loss_of(&m, chosen(w, &b, &s, 1, m.in, CONCAT)));
        input_gradients(w, &m, &b, &s, 1, CONCAT, want);
    }
    int64_t n = m.m->n;
    weft_real *apart = calloc((size_t)n, sizeof *apart), *together = calloc((size_t)n, sizeof *together);
    w->dev.k->download(&w->dev, apart, m.m->gradients, (size_t)n * sizeof *apart);
    weft_zero_grad(m.m);
    shuffled(all, (int)b.n);
    weft_clear(w), w->random.draw = 7;
    weft_backward(loss_of(&m, chosen(w, &b, all, (int)b.n, m.in, round % LAYOUTS)));
    input_gradients(w, &m, &b, all, (int)b.n, round % LAYOUTS, got);
    OK(w);
    for (int s = 0; s < b.n; s++)
        cr_assert(is_close("dx", got[s], want[s], b.len[s] * m.in, TOL(1e-12, 2e-5)),
                  "round %d on %s, sequence %d", round, weft_device_name(w), s);
    w->dev.k->download(&w->dev, together, m.m->gradients, (size_t)n * sizeof *together);
    double norm = norm_of(apart, n), worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, isnan((double)together[i]) ? INFINITY : fabs((double)(together[i] - apart[i])));
    free(apart), free(together);
    cr_assert(worst <= TOL(1e-12, 2e-5) * norm, "round %d on %s: gradients differ by %.2e of %.2e", round,
              weft_device_name(w), worst, norm);
}

Test(ragged, gradients_are_those_of_one_sequence_at_a_time)
{
    for (int r = 0; r < rounds(100, 10000); r++)
        FOR_DEVICES(w)
            one_gradient(w, r);
}

/* ---- pads ---- */
Test(ragged, nan_in_pads_changes_nothing)
{
    FOR_DEVICES(w) {
        int32_t len[4] = { 3, 0, 5, 1 };
        weft_lengths l = { .n = 4, .len = len };
        for (int side = 0; side < 2; side++) {
            weft_real x[2][4 * 6 * 2], *y[2], *g[2];
            net m = net_new(w, 2, side);
            for (int poisoned = 0; poisoned < 2; poisoned++) {
                for (int i = 0; i < 48; i++) {
                    int s = i / 12, t = i / 2 % 6, from = side ? 6 - len[s] : 0;
                    x[poisoned][i] = t >= from && t < from + len[s] ? (weft_real)sin(i) :
                                     poisoned                       ? (weft_real)NAN :
                                                                      0;
                }
                weft_clear(w), w->random.draw = 3;
                weft_tensor *loss =
                    loss_of(&m, weft_pack_padded_sequence(weft_reals(w, x[poisoned], WEFT_SHAPE(4, 6, 2)), &l,
                                                          side ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT));
                weft_backward(loss);
                y[poisoned] = numbers(loss),
                g[poisoned] = numbers(weft_grad(weft_find_parameter(m.m, "rnn.weight_ih_l0")));
                weft_zero_grad(m.m);
            }
            same_in_company("loss", y[1], y[0], 1);
            same_in_company("gradient", g[1], g[0], weft_numel(weft_find_parameter(m.m, "rnn.weight_ih_l0")));
        }
    }
}

/* A recurrent layer has a number for each row, whatever its width. */
Test(ragged, too_many_rows_of_no_width)
{
    weft *w = open_on(WEFT_CPU);
    weft_tensor *x = weft_ragged(w, NULL, 3, &(weft_lengths){ .n = 0 });
    weft_to_rows(x, &(weft_placement){ (int64_t)1 << 62, 0, NULL, NULL });
    FAILS(w, WEFT_EARG, "4611686018427387904 rows of 0");
    CLEAN(w);
}

Test(ragged, long_sequences)
{
    FOR_DEVICES(w) {
        int32_t T = 70000;
        net m = net_new(w, 1, 0);
        weft_real *x = dice_fill(calloc((size_t)T, sizeof *x), T, -1, 1);
        weft_tensor *pooled;
        weft_rnn_out r =
            weft_rnn_run(m.rnn, weft_ragged(w, x, 1, &(weft_lengths){ .n = 1, .len = &T }), WEFT_ZERO_STATE);
        pooled = weft_pool(r.y, WEFT_POOL_LAST);
        weft_backward(weft_sum_all(weft_square(pooled)));
        free(x);
        OK(w);
    }
}
