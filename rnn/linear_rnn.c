/* linear_rnn.c - recurrent layers whose states depend linearly on the states before: the products of all
 * tokens first, then one scan. The rest of the layer is that of all recurrent layers, see layers.c. */
#include <math.h>
#include "autograd/api_scan.h"
#include "autograd/fused.h"
#include "rnn/layers.h"

/* ---- making ---- */
static const struct kind { const char *name, *gates; int blocks; } kinds[] = {
    [WEFT_MINGRU] = { "min_gru", "z h", 2 },
    [WEFT_MINLSTM] = { "min_lstm", "f i h", 3 },
    [WEFT_RGLRU] = { "rg_lru", "r i", 1 },
    [WEFT_QRNN] = { "qrnn", "z f o", 3 },
};
enum { DECAY, WEIGHT_GATES, BIAS_GATES, MOST_WINDOW = 64 };

static const char *fault_of(const weft_linear_rnn_opts *o)
{
    return !o                                ? "opts is NULL" :
           (unsigned)o->kind > WEFT_QRNN     ? "kind: expected a value of weft_linear_rnn_kind" :
           o->window && o->kind != WEFT_QRNN ? "window: expected only with WEFT_QRNN" :
           o->window < 0 || o->window > MOST_WINDOW ?
                                               "window: expected 1 .. 64 (0 means 2)" :
                                               NULL;
}

/* Returns the window, and how many numbers of earlier tokens a state c has, each as wide as any input. */
static weft__linear_rnn linear_of(const weft_linear_rnn_opts *o)
{
    const int window = o->kind != WEFT_QRNN ? 0 : o->window ? o->window : 2;
    const int64_t inner = o->layers > 1 ? o->hidden * (1 + o->bidirectional) : 0;
    const int64_t wide = o->input > inner ? o->input : inner;
    return (weft__linear_rnn){ o->kind, window, window > 1 ? (window - 1) * wide : 0 };
}

weft_rnn *weft_linear_rnn_new(weft_module *m, const char *name, const weft_linear_rnn_opts *o)
{
    /* e^-softplus of these: .999 and .9 */
    static const weft_init decay = { WEFT_INIT_UNIFORM, -6.9067547786, -2.1972245773 };
    static const weft_cell_parameter own[] = { { "decay", WEFT_CELL_VECTOR, 1, &decay },
                                               { "weight_gates", WEFT_CELL_OF_HIDDEN, 2, NULL },
                                               { "bias_gates", WEFT_CELL_VECTOR, 2, NULL } };
    const char *reason = fault_of(o);
    if (reason) {
        weft__fail(weft_module_context(m), WEFT_EARG, "linear_rnn_new \"%s\": %s", name ? name : "", reason);
        return &weft__rnn_none;
    }
    weft_rnn r = { .own = { .name = kinds[o->kind].name, .gate_names = kinds[o->kind].gates, .own = own },
                   .linear = linear_of(o),
                   .gates_x = kinds[o->kind].blocks,
                   .has_c = o->kind == WEFT_QRNN,
                   .composed = true };
    if (o->kind == WEFT_RGLRU)
        r.own.own_count = o->no_bias ? BIAS_GATES : BIAS_GATES + 1;
    return weft__rnn_new(m, name, "linear_rnn_new", &r,
                         &(weft_rnn_opts){ .input = o->input,
                                           .hidden = o->hidden,
                                           .layers = o->layers,
                                           .bidirectional = o->bidirectional,
                                           .no_bias = o->no_bias,
                                           .dropout = o->dropout });
}

/* ---- running ---- */
/* block: f(W_k x + b_k), k being a block of weight_ih. rest_of: 1 - gate. */
static weft_tensor *block(const weft__direction *d, weft_tensor *x, int k, int f)
{
    return weft__linear_part(x, d->in[WEFT__W_IH], d->in[WEFT__B_IH], k * d->hidden, d->hidden, f);
}
static weft_tensor *rest_of(weft_tensor *gate) { return weft_sub(weft_scalar(gate->w, 1), gate); }
static weft_tensor *scanned(const weft__direction *d, weft_tensor *a, weft_tensor *b, weft_tensor *first)
{
    return weft_scan(a, b, 0, first, d->reverse);
}

static weft_tensor *min_gru(const weft__direction *d, weft_tensor *x)
{
    weft_tensor *z = block(d, x, 0, WEFT__sigmoid);
    return scanned(d, rest_of(z), weft_mul(z, block(d, x, 1, WEFT__UNARIES)), d->in[WEFT__H0]);
}

/* f / (f + i) = sigmoid(log f - log i), and log sigmoid(k) = -softplus(-k). So nothing is divided by 0. */
static weft_tensor *min_lstm(const weft__direction *d, weft_tensor *x)
{
    weft_tensor *of_f = weft_softplus(weft_neg(block(d, x, 0, WEFT__UNARIES)));
    weft_tensor *of_i = weft_softplus(weft_neg(block(d, x, 1, WEFT__UNARIES)));
    weft_tensor *f = weft_sigmoid(weft_sub(of_i, of_f));
    return scanned(d, f, weft_mul(rest_of(f), block(d, x, 2, WEFT__UNARIES)), d->in[WEFT__H0]);
}

/* 1 - a^2 by expm1, which elu is below 0. It is 0 where r is 0, so the root has a lower limit. */
static weft_tensor *rg_lru(const weft__direction *d, weft_tensor *x)
{
    weft_tensor *const *own = d->own->own, *u = block(d, x, 0, WEFT__UNARIES);
    weft_tensor *bias = d->in[WEFT__B_IH] ? own[BIAS_GATES] : NULL;
    weft_tensor *r = weft__linear_part(u, own[WEIGHT_GATES], bias, 0, d->hidden, WEFT__sigmoid);
    weft_tensor *i = weft__linear_part(u, own[WEIGHT_GATES], bias, d->hidden, d->hidden, WEFT__sigmoid);
    weft_tensor *log_a = weft_mul(r, weft_scale(weft_softplus(own[DECAY]), -8));
    weft_tensor *kept = weft_neg(weft_elu(weft_scale(log_a, 2), 1));
    weft_tensor *in = weft_mul(weft_sqrt(weft_clamp(kept, 1e-30, (double)INFINITY)), weft_mul(i, u));
    return scanned(d, weft_exp(log_a), in, d->in[WEFT__H0]);
}

/* Columns from .. to - 1 of the first c; NULL stays NULL. */
static weft_tensor *of_first(const weft__direction *d, int64_t from, int64_t to)
{
    return d->in[WEFT__C0] ? weft_slice(d->in[WEFT__C0], 1, from, to) : NULL;
}
/* The state c of each token: c, then the tokens that the next token sees, each with `wide` columns. */
static weft_state qrnn(const weft__direction *d, weft_tensor *x, const weft__linear_rnn *r)
{
    const int past = r->window - 1;
    const int64_t H = d->hidden, F = width(x), wide = past ? r->past / past : 0;
    weft_tensor *seen[MOST_WINDOW] = { x }, *state[2 * MOST_WINDOW];
    weft_tensor *zeros = wide > F ? weft_zeros(x->w, WEFT_SHAPE(weft_size(x, 0), wide - F)) : NULL;
    int n = 1;
    for (int j = 1; j <= past && !x->w->status; j++) {
        const int64_t from = H + (j - 1) * wide;
        seen[j] = weft_shift(seen[j - 1], d->reverse ? -1 : 1, of_first(d, from, from + F));
        state[n++] = seen[j - 1];
        if (zeros)
            state[n++] = weft_ragged_like(zeros, x);
    }
    weft_tensor *all = past ? weft_concat(seen, r->window, 1) : x;
    weft_tensor *z = block(d, all, 0, WEFT__tanh), *f = block(d, all, 1, WEFT__sigmoid);
    state[0] = scanned(d, f, weft_mul(rest_of(f), z), of_first(d, 0, H));
    return (weft_state){ weft_mul(block(d, all, 2, WEFT__sigmoid), state[0]),
                         past ? weft_concat(state, n, 1) : state[0] };
}

weft_state weft__linear_direction(const weft__direction *d, const weft__linear_rnn *r)
{
    weft_tensor *x = d->in[WEFT__X];
    switch (r->kind) {
    case WEFT_MINGRU:  return (weft_state){ min_gru(d, x), NULL };
    case WEFT_MINLSTM: return (weft_state){ min_lstm(d, x), NULL };
    case WEFT_RGLRU:   return (weft_state){ rg_lru(d, x), NULL };
    default:           return qrnn(d, x, r);
    }
}
