/* api_trace.h - gates, states and their gradients inside a recurrent layer.
 *
 * Contents: traces. */
#ifndef WEFT_API_TRACE_H
#define WEFT_API_TRACE_H
#include "api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- traces ---- */
/* Numbers of one layer and direction: constants of the step in x's layout, ragged [N, ..] if x was,
 * otherwise plain [n, T, ..]. dgate, dh and dc are NULL if weft_rnn_trace is called before the
 * weft_backward or weft_gradients that goes back through the run; call it again afterwards.
 * weft_gradients_recorded does not make them. The numbers are those of the fused layer, bit by bit,
 * except dc, which is rounded once more. */
typedef struct {
    int gates;                                   /* number of gates; the first entries below */
    /* LSTM: i f g o; GRU: r z n; CIFG: f g o; MGU: f n; Elman: h. */
    char name[4][8];
    weft_tensor *gate[4];                        /* [N, hidden] after its sigmoid, tanh or relu */
    weft_tensor *h;                              /* [N, opts.proj, or hidden without it] */
    weft_tensor *c;                              /* [N, hidden]; NULL if the cell has none */
    weft_tensor *dgate[4];                       /* [N, hidden] gradient of the gate's sum before
                                                  * that function */
    weft_tensor *dh;                             /* h's shape: total, later tokens included */
    weft_tensor *dc;                             /* c's shape: total, later tokens included */
} weft_rnn_traced;
/* Makes later runs of the layer keep the numbers that weft_rnn_trace returns (true), or stops that
 * (false, the default). Returns the previous mode; false for NULL. Outputs and gradients keep their
 * bits; backward takes longer. Errors: a cell of the program. A traced run fails if the layer is
 * composed, or lean by its options or the context's. Like forward hooks with retain_grad. */
WEFT_API bool weft_rnn_set_traced(weft_rnn *r, bool on);
/* Returns the numbers of the layer's last run, if weft_rnn_set_traced was on then. Call it in the
 * step of that run. layer counts from 0; reverse selects the reverse direction. A second backward
 * through the same run does not change the numbers. Errors: no traced run in this step, no such
 * layer or direction; all fields are 0. */
WEFT_API weft_rnn_traced weft_rnn_trace(weft_rnn *r, int layer, bool reverse);

#ifdef __cplusplus
}
#endif
#endif
