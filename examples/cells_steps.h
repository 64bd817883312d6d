/* cells_steps.h - four custom recurrent cells, each a step from operators and a record; docs/cells.md
 * explains them. */
#ifndef WEFT_EXAMPLE_CELLS_STEPS_H
#define WEFT_EXAMPLE_CELLS_STEPS_H
#include "weft_op.h"

/* x W^T + b */
static inline weft_tensor *cell_affine(weft_tensor *x, weft_tensor *weight, weft_tensor *bias)
{
    weft_tensor *y = weft_matmul_with(x, false, weight, true);
    return bias ? weft_add(y, bias) : y;
}
static inline weft_tensor *cell_gate(const weft_cell_input *in, weft_tensor *sums, int k)
{
    return weft_slice(sums, 1, k * in->hidden, (k + 1) * in->hidden);
}

/* Layer-normalised LSTM, Ba et al. 2016 (Sec. 3.1): normalises the sums from x and from h, and c before its
 * tanh. */
static inline weft_state layer_norm_lstm(const weft_cell_input *in, void *user)
{
    const double eps = 1e-5;
    (void)user;
    weft_tensor *of_x = weft_layer_norm(in->x, in->own[0], in->own[1], eps);
    weft_tensor *of_h =
        weft_layer_norm(cell_affine(in->h, in->weight_hh, in->bias_hh), in->own[2], in->own[3], eps);
    weft_tensor *sums = weft_add(of_x, of_h);
    weft_tensor *i = weft_sigmoid(cell_gate(in, sums, 0)), *f = weft_sigmoid(cell_gate(in, sums, 1));
    weft_tensor *g = weft_tanh(cell_gate(in, sums, 2)), *o = weft_sigmoid(cell_gate(in, sums, 3));
    weft_tensor *c = weft_add(weft_mul(f, in->c), weft_mul(i, g));
    weft_tensor *h = weft_mul(o, weft_tanh(weft_layer_norm(c, in->own[4], in->own[5], eps)));
    return (weft_state){ h, c };
}
static const weft_init cell_ones = { WEFT_INIT_CONSTANT, 1, 0 }, cell_zeros = { WEFT_INIT_ZERO, 0, 0 };
static const weft_cell_parameter layer_norm_lstm_own[] = {
    { "gain_ih", WEFT_CELL_VECTOR, 4, &cell_ones }, { "shift_ih", WEFT_CELL_VECTOR, 4, &cell_zeros },
    { "gain_hh", WEFT_CELL_VECTOR, 4, &cell_ones }, { "shift_hh", WEFT_CELL_VECTOR, 4, &cell_zeros },
    { "gain_c", WEFT_CELL_VECTOR, 1, &cell_ones }, { "shift_c", WEFT_CELL_VECTOR, 1, &cell_zeros },
};
static const weft_cell layer_norm_lstm_cell = {
    .name = "layer_norm_lstm", .gate_names = "i f g o", .gates = 4, .states = 2,
    .own = layer_norm_lstm_own, .own_count = 6, .step = layer_norm_lstm,
};

/* GRU with the reset gate before the product, Cho et al. 2014 (v1); Keras (reset_after=False), ONNX
 * (linear_before_reset=0). */
static inline weft_state reset_before_gru(const weft_cell_input *in, void *user)
{
    const int64_t H = in->hidden;
    (void)user;
    weft_tensor *w_n = weft_slice(in->weight_hh, 0, 2 * H, 3 * H),
                *b_n = in->bias_hh ? weft_slice(in->bias_hh, 0, 2 * H, 3 * H) : NULL;
    weft_tensor *of_h = cell_affine(in->h, in->weight_hh, in->bias_hh);
    weft_tensor *r = weft_sigmoid(weft_add(cell_gate(in, in->x, 0), cell_gate(in, of_h, 0)));
    weft_tensor *z = weft_sigmoid(weft_add(cell_gate(in, in->x, 1), cell_gate(in, of_h, 1)));
    weft_tensor *n = weft_tanh(weft_add(cell_gate(in, in->x, 2), cell_affine(weft_mul(r, in->h), w_n, b_n)));
    return (weft_state){ weft_add(n, weft_mul(z, weft_sub(in->h, n))), NULL };
}
static const weft_cell reset_before_gru_cell = {
    .name = "gru_reset_before", .gate_names = "r z n", .gates = 3, .step = reset_before_gru
};

/* Peephole LSTM, Gers & Schmidhuber 2000: i and f also depend on c, o on the new c, each with one weight per
 * unit. */
static inline weft_state peephole_lstm(const weft_cell_input *in, void *user)
{
    (void)user;
    weft_tensor *sums = weft_add(in->x, cell_affine(in->h, in->weight_hh, in->bias_hh));
    weft_tensor *i = weft_sigmoid(weft_add(cell_gate(in, sums, 0), weft_mul(in->c, in->own[0])));
    weft_tensor *f = weft_sigmoid(weft_add(cell_gate(in, sums, 1), weft_mul(in->c, in->own[1])));
    weft_tensor *c = weft_add(weft_mul(f, in->c), weft_mul(i, weft_tanh(cell_gate(in, sums, 2))));
    weft_tensor *o = weft_sigmoid(weft_add(cell_gate(in, sums, 3), weft_mul(c, in->own[2])));
    return (weft_state){ weft_mul(o, weft_tanh(c)), c };
}
static const weft_cell_parameter peephole_lstm_own[] = {
    { "weight_ci", WEFT_CELL_VECTOR, 1, NULL },
    { "weight_cf", WEFT_CELL_VECTOR, 1, NULL },
    { "weight_co", WEFT_CELL_VECTOR, 1, NULL },
};
static const weft_cell peephole_lstm_cell = {
    .name = "peephole_lstm", .gate_names = "i f g o", .gates = 4, .states = 2,
    .own = peephole_lstm_own, .own_count = 3, .step = peephole_lstm,
};

/* RNN with zoneout, Krueger et al. 2017: in training a unit keeps its state with that probability; outside
 * training every unit keeps that share of it. */
static inline weft_state zoneout_rnn(const weft_cell_input *in, void *user)
{
    const weft_cell *cell = user;
    weft_tensor *h = weft_tanh(weft_add(in->x, cell_affine(in->h, in->weight_hh, in->bias_hh)));
    /* 0 or 1 in training, 1 - noise otherwise */
    weft_tensor *moves = weft_scale(in->noise, 1 - cell->noise);
    return (weft_state){ weft_add(in->h, weft_mul(moves, weft_sub(h, in->h))), NULL };
}
static const weft_cell zoneout_rnn_cell = {
    .name = "zoneout_rnn", .gates = 1, .noise = .1, .step = zoneout_rnn, .user = (void *)&zoneout_rnn_cell,
};
#endif
