/* composed.c - recurrent layers composed from public operators, step by step. It is the oracle for the fused
 * operator, computes second derivatives, and shows the equations of each cell.
 *
 * Step t of a packed batch is a run of rows, one for each sequence longer than t, longest first. Forward,
 * sequences end at the bottom of the rows. In reverse, they start there with their first state. */
#include <limits.h>
#include "autograd/fused.h"
#include "rnn/rnn.h"

static weft_tensor *affine(weft_tensor *x, weft_tensor *weight, weft_tensor *bias)      /* x W^T + b */
{
    weft_tensor *y = weft_matmul_with(x, false, weight, true);
    return bias ? weft_add(y, bias) : y;
}

static weft_tensor *gate(weft_tensor *sums, int k, int64_t H)
{
    return weft_slice(sums, 1, k * H, (k + 1) * H);
}

/* In the cells a = W_ih x + b_ih is an argument, and r = W_hh h + b_hh is computed here. */

/* h' = tanh(a + r), or max(0, a + r) */
static weft_state rnn(const weft__direction *d, weft_tensor *a, weft_state s)
{
    weft_tensor *sum = weft_add(a, affine(s.h, d->in[WEFT__W_HH], d->in[WEFT__B_HH]));
    return (weft_state){ d->cell == WEFT__rnn_relu ? weft_relu(sum) : weft_tanh(sum), NULL };
}

/* Cho et al. 2014, with the reset gate after the product: r, z = sigmoid; n = tanh(a_n + r r_n); h' = (1 -
 * z) n + z h */
static weft_state gru(const weft__direction *d, weft_tensor *a, weft_state s)
{
    int64_t H = weft_size(s.h, 1);
    weft_tensor *b = affine(s.h, d->in[WEFT__W_HH], d->in[WEFT__B_HH]);
    weft_tensor *r = weft_sigmoid(weft_add(gate(a, 0, H), gate(b, 0, H)));
    weft_tensor *z = weft_sigmoid(weft_add(gate(a, 1, H), gate(b, 1, H)));
    weft_tensor *n = weft_tanh(weft_add(gate(a, 2, H), weft_mul(r, gate(b, 2, H))));
    return (weft_state){ weft_add(n, weft_mul(z, weft_sub(s.h, n))), NULL };
}

/* Hochreiter & Schmidhuber 1997, Gers et al. 2000: c' = f c + i g, h' = o tanh(c'), projected if w_hr is
 * given (Sak et al. 2014). A CIFG (Greff et al. 2017) has i = 1 - f, so c' = g + f (c - g). */
static weft_state lstm(const weft__direction *d, weft_tensor *a, weft_state s)
{
    int64_t H = weft_size(s.c, 1);
    bool cifg = d->cell == WEFT__cifg;
    weft_tensor *sums = weft_add(a, affine(s.h, d->in[WEFT__W_HH], d->in[WEFT__B_HH]));
    weft_tensor *i = cifg ? NULL : weft_sigmoid(gate(sums, 0, H));
    weft_tensor *f = weft_sigmoid(gate(sums, 1 - cifg, H)), *g = weft_tanh(gate(sums, 2 - cifg, H)),
                *o = weft_sigmoid(gate(sums, 3 - cifg, H));
    weft_tensor *c = cifg ? weft_add(g, weft_mul(f, weft_sub(s.c, g))) :
                            weft_add(weft_mul(f, s.c), weft_mul(i, g));
    weft_tensor *h = weft_mul(o, weft_tanh(c));
    return (weft_state){ d->in[WEFT__W_HR] ? affine(h, d->in[WEFT__W_HR], NULL) : h, c };
}

/* Zhou et al. 2016, with the gate after the product: f = sigmoid; n = tanh(a_n + f r_n); h' = (1 - f) h +
 * f n */
static weft_state mgu(const weft__direction *d, weft_tensor *a, weft_state s)
{
    int64_t H = weft_size(s.h, 1);
    weft_tensor *b = affine(s.h, d->in[WEFT__W_HH], d->in[WEFT__B_HH]);
    weft_tensor *f = weft_sigmoid(weft_add(gate(a, 0, H), gate(b, 0, H)));
    weft_tensor *n = weft_tanh(weft_add(gate(a, 1, H), weft_mul(f, gate(b, 1, H))));
    return (weft_state){ weft_add(s.h, weft_mul(f, weft_sub(n, s.h))), NULL };
}

static weft_state cell(const weft__direction *d, weft_tensor *a, weft_tensor *noise, weft_state s)
{
    if (d->own)
        return weft__own_step(d, a, noise, s);
    switch (d->cell) {
    case WEFT__gru:  return gru(d, a, s);
    case WEFT__lstm:
    case WEFT__cifg: return lstm(d, a, s);
    case WEFT__mgu:  return mgu(d, a, s);
    default:         return rnn(d, a, s);
    }
}

/* ---- the identity, whose backward turns -0 into 0 ---- * Gradients of slices are summed with the zeros of
 * other rows, and 0 + -0 is 0. Without this operator a sequence alone would have -0 where it has 0 in a
 * batch. */
static bool same_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return true;
}
static void same_run(weft_call *c) { RUN(c, scale, count(c->y[0]), 1, X(c, 0), Y(c, 0), false); }
static weft_tensor *same_back(const weft_call *c, weft_tensor *dy, int i)
{
    (void)c, (void)i;
    return weft__given_times(dy, weft_scalar(dy->w, 1));
}
static const weft_op op_same = {
    .name = "same", .unread = 1, .shape = same_shape, .forward = same_run, .backward = same_back
};
static weft_tensor *same(weft_tensor *x) { return APPLY(&op_same, x); }

/* Returns the state of `rows` sequences: drops ended ones, or adds starting ones with their first state. The
 * result is always a new tensor. So the gradients of one step are summed first and then added, regardless of
 * the other sequences in the batch. */
static weft_tensor *enter_state(weft_tensor *state, weft_tensor *first, int64_t rows)
{
    int64_t have = weft_size(state, 0);
    if (have >= rows)
        return weft_slice(state, 0, 0, rows);
    return weft_concat((weft_tensor *[]){ state, weft_slice(first, 0, have, rows) }, 2, 0);
}

static weft_state first_state(const weft__direction *d, int64_t n)
{
    weft *w = d->in[WEFT__X]->w;
    weft_tensor *h = d->in[WEFT__H0], *c = d->in[WEFT__C0], *hr = d->in[WEFT__W_HR];
    if (!h)
        h = weft_zeros(w, WEFT_SHAPE(n, hr ? weft_size(hr, 0) : d->hidden));
    if (!c && d->has_c)
        c = weft_zeros(w, WEFT_SHAPE(n, d->hidden));
    return (weft_state){ same(h), d->has_c ? same(c) : NULL };
}

/* Concatenates the steps in the order of time, with the batch of x. */
static weft_tensor *join_steps(weft_tensor **steps, int64_t T, weft_tensor *x)
{
    weft_tensor *rows = same(weft_concat(steps, (int)T, 0));
    return weft_ok(rows->w) ? weft__ragged_as(rows, &x->f) : rows;
}

weft_state weft__recurrent_composed(const weft__direction *d)
{
    const weft__form *form = &d->in[WEFT__X]->f;                  /* packed, or rows step by step */
    weft_tensor *x = weft_to_layout(d->in[WEFT__X], WEFT_PACKED), *noise = weft__own_noise(d, x);
    weft_tensor *in = weft_plain(d->in[WEFT__W_IH] ? affine(x, d->in[WEFT__W_IH], d->in[WEFT__B_IH]) : x);
    in = same(in);
    weft *w = x->w;
    const weft_batch *b = x->f.batch;
    const int32_t *live = b ? b->live.host : NULL;                /* PyTorch's batch_sizes */
    /* An empty batch runs one step without rows, so that all parameters get gradients of 0. */
    bool empty = !b || b->longest == 0;
    int64_t T = empty ? 1 : b->longest, from = 0;
    weft_tensor **h = weft__take(w, WEFT__ARENA_CALLS, T * (int64_t)sizeof *h),
                **c = weft__take(w, WEFT__ARENA_CALLS, T * (int64_t)sizeof *c);
    if (!h || !c || !live || T > INT_MAX)
        return (weft_state){ &w->nil, d->has_c ? &w->nil : NULL };
    weft_state first = first_state(d, weft_lengths_of(x).n), s = first;
    if (d->reverse) {
        s.h = weft_slice(first.h, 0, 0, 0);
        s.c = first.c ? weft_slice(first.c, 0, 0, 0) : NULL;
        from = weft_size(x, 0);
    }
    for (int64_t k = 0; k < T; k++) {
        int64_t t = d->reverse ? T - 1 - k : k, rows = empty ? 0 : live[t];
        int64_t start = d->reverse ? from - rows : from;
        s.h = enter_state(s.h, first.h, rows);
        s.c = s.c ? enter_state(s.c, first.c, rows) : NULL;
        s = cell(d, weft_slice(in, 0, start, start + rows),
                 noise ? weft_slice(noise, 0, start, start + rows) : NULL, s);
        h[t] = s.h;
        c[t] = s.c;
        from = d->reverse ? start : start + rows;
    }
    return (weft_state){ weft__arranged_as(join_steps(h, T, x), form),
                         s.c ? weft__arranged_as(join_steps(c, T, x), form) : NULL };
}
