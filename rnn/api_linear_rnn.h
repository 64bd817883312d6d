/* api_linear_rnn.h - recurrent layers without a matrix of the hidden state.
 *
 * Their gates read the input only, so all tokens share one matrix product, and the states follow by
 * weft_scan (api_scan.h). Each layer is a weft_rnn: weft_rnn_run, weft_rnn_step, weft_final_state
 * and weft_decode take it. A run over steps has the same bits as the whole. */
#ifndef WEFT_API_LINEAR_RNN_H
#define WEFT_API_LINEAR_RNN_H
#include "api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers with a linear recurrence ---- */
/* In the equations W is weight_ih and b bias_ih, with an index for the rows of a block; "blocks"
 * gives their order. x is the input of a token, h the state before it, h' the state after it; * is
 * elementwise. */
typedef enum {
    /* Blocks z h. Feng et al. 2024, "Were RNNs all we needed?":
     *     z = sigmoid(W_z x + b_z)
     *     h' = (1 - z) * h + z * (W_h x + b_h) */
    WEFT_MINGRU,
    /* Blocks f i h. Feng et al. 2024:
     *     f = sigmoid(W_f x + b_f), i = sigmoid(W_i x + b_i)
     *     h' = (f / (f + i)) * h + (i / (f + i)) * (W_h x + b_h) */
    WEFT_MINLSTM,
    /* One block u; G is weight_gates [2 * hidden, hidden], g bias_gates, both with blocks r i; L is
     * decay [hidden], drawn so that e^-softplus(L) is .9 to .999. De et al. 2024, "Griffin":
     *     u = W x + b
     *     r = sigmoid(G_r u + g_r), i = sigmoid(G_i u + g_i)
     *     a = e^(-8 softplus(L) * r)
     *     h' = a * h + sqrt(1 - a^2) * i * u */
    WEFT_RGLRU,
    /* Blocks z f o. X is x and the inputs of the window - 1 tokens before it, side by side; W has
     * window * input columns in this order. The state h is o * c, and the state c [layers *
     * directions, n, hidden + (window - 1) * the widest input of a layer] has c and then these
     * earlier inputs. Bradbury et al. 2016, fo-pooling:
     *     z = tanh(W_z X + b_z), f = sigmoid(W_f X + b_f), o = sigmoid(W_o X + b_o)
     *     c' = f * c + (1 - f) * z
     *     h' = o * c' */
    WEFT_QRNN
} weft_linear_rnn_kind;
typedef struct {
    weft_linear_rnn_kind kind;
    int64_t input;       /* width of x; required */
    int64_t hidden;      /* number of units; required */
    int     layers;      /* 1 .. 32; 0 means 1 */
    bool    bidirectional;       /* also runs from the last token to the first */
    bool    no_bias;     /* leaves out bias_ih and bias_gates */
    double  dropout;     /* of y of each layer except the last, while training; 0 <= p < 1 */
    int     window;      /* WEFT_QRNN only: tokens that the gates see, 1 .. 64; 0 means 2 */
} weft_linear_rnn_opts;
/* Makes a layer as a module below m, with PyTorch's parameter names (weight_ih_l0, ..). Weights and
 * biases are drawn uniformly in +-1/sqrt(hidden). opts is required and copied. Errors: m or opts
 * NULL, a bad name or option; the layer is then inert, as in api_rnn.h. weft_rnn_set_traced refuses
 * it, and weft_rnn_set_composed changes nothing. */
WEFT_API weft_rnn *weft_linear_rnn_new(weft_module *m, const char *name,
                                       const weft_linear_rnn_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
