/* rnn_kinds.h - the kinds of recurrent layer that the tests cover, and their inputs. */
#ifndef WEFT_RNN_KINDS_H
#define WEFT_RNN_KINDS_H
#include "core/inside.h"
#include "tests/io/files.h"

enum { TANH, RELU, GRU, MGU, LSTM, CIFG, PROJECTED, CIFG_PROJECTED, CELLS };
static const char *const cell_name[CELLS] = { "tanh", "relu", "gru",       "mgu",
                                              "lstm", "cifg", "projected", "cifg projected" };
typedef weft_rnn *layer_new(weft_module *, const char *, const weft_rnn_opts *);
static layer_new *const new_of[CELLS] = { weft_elman_new, weft_elman_new, weft_gru_new,  weft_mgu_new,
                                          weft_lstm_new,  weft_cifg_new,  weft_lstm_new, weft_cifg_new };

typedef struct { int cell; weft_rnn_opts o; bool state; } kind;

UNUSED static weft_rnn *rnn_of(weft_module *m, const char *name, const kind *k)
{
    weft_rnn_opts o = k->o;
    o.relu = k->cell == RELU;
    o.proj = k->cell >= PROJECTED ? (o.hidden + 1) / 2 : 0;
    return new_of[k->cell](m, name, &o);
}
UNUSED static weft_rnn *layer_of_kind(weft *w, const kind *k)
{
    return rnn_of(weft_module_new(w, "m"), "r", k);
}
UNUSED static bool    has_c(const kind *k)    { return k->cell >= LSTM; }
UNUSED static int64_t width_of(const kind *k)
{
    return k->cell >= PROJECTED ? (k->o.hidden + 1) / 2 : k->o.hidden;
}
UNUSED static int64_t stacked(const kind *k) { return k->o.layers * (1 + k->o.bidirectional); }

UNUSED static weft_tensor *random_tensor(weft *w, uint64_t seed, int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    weft_real *v = malloc((size_t)(n + 1) * sizeof *v);
    dice_seed(seed);
    weft_tensor *t = weft_reals(w, dice_fill(v, n, -1, 1), rank, shape);
    free(v);
    return t;
}

UNUSED static weft_tensor *random_ragged(weft *w, uint64_t seed, int64_t width, const weft_lengths *l)
{
    int64_t N = 0;
    for (int64_t s = 0; s < l->n; s++)
        N += l->len[s];
    weft_real *v = malloc((size_t)(N * width + 1) * sizeof *v);
    dice_seed(seed);
    weft_tensor *t = weft_ragged(w, dice_fill(v, N * width, -1, 1), width, l);
    free(v);
    return t;
}

UNUSED static weft_state random_state(weft *w, const kind *k, int64_t n)
{
    if (!k->state)
        return WEFT_ZERO_STATE;
    weft_tensor *h = random_tensor(w, 5, WEFT_SHAPE(stacked(k), n, width_of(k)));
    return (weft_state){ h, has_c(k) ? random_tensor(w, 6, WEFT_SHAPE(stacked(k), n, k->o.hidden)) : NULL };
}

/* Returns layer i of a series of kinds, with up to twelve random lengths. */
UNUSED static weft_rnn *layer_by_number(weft *w, int i, kind *k, weft_lengths *l)
{
    static const int64_t sizes[][2] = { { 3, 5 }, { 4, 17 }, { 6, 33 } };
    static int32_t len[12];
    dice_seed((uint64_t)i);
    *l = (weft_lengths){ .n = 1 + (int64_t)dice(COUNT(len)), .len = len };
    dice_lengths(len, l->n, 20);
    *k = (kind){ i % CELLS,
                 { .input = sizes[i % 3][0],
                   .hidden = sizes[i % 3][1],
                   .layers = 1 + i / 3 % 2,
                   .bidirectional = i / 2 % 2,
                   .no_bias = i % 7 == 0 },
                 i / 5 % 2 };
    return layer_of_kind(w, k);
}

UNUSED static weft_real *concat_numbers(weft_tensor *y)
{
    return numbers(weft_plain(weft_to_layout(y, WEFT_CONCAT)));
}

/* sum of all results times fixed random numbers, so that gradients of elements differ */
UNUSED static weft_tensor *weighted(weft_tensor *y, uint64_t seed)
{
    weft *w = weft_context_of(y);
    y = weft_layout_of(y) ? weft_plain(weft_to_layout(y, WEFT_CONCAT)) : y;
    return weft_sum_all(weft_mul(y, random_tensor(w, seed, y->f.rank, y->f.size)));
}
UNUSED static weft_tensor *loss_of(weft_rnn_out o)
{
    weft_tensor *loss = weft_add(weighted(o.y, 11), weighted(o.last.h, 12));
    return o.last.c ? weft_add(loss, weighted(o.last.c, 13)) : loss;
}

/* Each allocation of a step fails in turn; later ones are sampled, 1 in 1 + i / dense. The context continues
 * each time. */
UNUSED static int failures_of(weft *w, int dense, void (*step)(weft *, void *), void *user)
{
    int failed = 0;
    for (int i = 1;; i += 1 + i / dense) {
        fail_take(w, i);
        step(w, user);
        if (weft_ok(w))
            break;
        failed++;
        FAILS(w, WEFT_ENOMEM, "out of memory");
    }
    fail_take(w, 0);
    weft_clear(w);
    return failed;
}

/* Steps after the first three ask the allocator for nothing. */
UNUSED static void is_steady(weft *w, void (*step)(weft *, void *), void *user)
{
    int64_t before = 0;
    for (int i = 0; i < 10; i++) {
        before = i < 4 ? allocations(w) : before;
        step(w, user);
        weft_clear(w);
    }
    cr_assert_eq(allocations(w), before);
}

/* ---- everything that a layer gives, one after another ---- */
enum { ROOM = 1 << 21, INPUTS = 100 };
/* weights: where their gradients begin */
typedef struct { weft_real v[ROOM]; int64_t n, weights; } bag;
/* ragged ones sequence by sequence: rows have pads */
UNUSED static void put(bag *b, weft_tensor *t)
{
    t = weft_layout_of(t) ? weft_plain(weft_to_layout(t, WEFT_CONCAT)) : t;
    int64_t n = weft_numel(t);
    cr_assert(b->n + n <= ROOM);
    memcpy(b->v + b->n, numbers(t), (size_t)n * sizeof *b->v);
    b->n += n;
}
UNUSED static int inputs_of(weft_tensor *x, weft_state s, weft_module *m, weft_tensor **by)
{
    int n = 0;
    by[n++] = x;
    if (s.h)
        by[n++] = s.h;
    if (s.c)
        by[n++] = s.c;
    for (int i = 0; i < weft_parameter_count(m); i++)
        by[n++] = weft_parameter_at(m, i, NULL);
    return n;
}
/* Computes outputs, last states, and gradients of x, the first states and the weights. `given` is x in
 * the layout of the run. */
UNUSED static void all_by(const kind *k, weft_rnn *r, weft_tensor *x, weft_tensor *given, bag *b)
{
    weft *w = weft_context_of(x);
    weft_tensor *by[INPUTS], *g[INPUTS];
    weft_state s = random_state(w, k, weft_lengths_of(x).n);
    int n = inputs_of(x, s, weft_rnn_module(r), by), states = 1 + (s.h != NULL) + (s.c != NULL);
    weft_rnn_out o = weft_rnn_run(r, given, s);
    b->n = 0;
    put(b, o.y), put(b, o.last.h);
    if (o.last.c)
        put(b, o.last.c);
    weft_gradients(loss_of(o), by, n, g);
    for (int i = 0; i < n; i++) {
        b->weights = i <= states ? b->n : b->weights;
        put(b, g[i]);
    }
    OK(w);
    weft_clear(w);
}
UNUSED static void all_of(weft *w, const kind *k, weft_rnn *r, const weft_lengths *l, int layout, bag *b)
{
    weft_tensor *x = random_ragged(w, 4, k->o.input, l);
    all_by(k, r, x, laid_out(x, layout), b);
}
#endif
