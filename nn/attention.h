/* attention.h - what attention layers have in common: which queries and memories they take, and how these
 * become ragged. */
#ifndef WEFT_ATTENTION_H
#define WEFT_ATTENTION_H
#include "autograd/autograd.h"
#include "nn/nn.h"

typedef weft_tensor *weft__attention_method(const void *layer, weft_tensor *q, weft_tensor *memory,
                                            weft_causal causal, weft_tensor **map);
typedef struct {
    const weft_module *m;
    const char *name;
    const void *layer;
    weft__attention_method *how;
} weft__asked;

/* By the layer's method, of ragged tensors. The memory is ragged, or plain [n, Tk, dm], every sequence full.
 * The query is ragged, or plain: [n, Tq, dq], or [n, dq], one for each sequence of the memory, what a decoder
 * has at each step; then the result is plain again. Plain ones are views, not copies. */
weft_tensor *weft__attend(weft__asked, weft_tensor *q, weft_tensor *memory, weft_causal causal,
                          weft_tensor **map);
#endif
