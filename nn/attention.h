/* attention.h - how attention layers take queries and memories, ragged or plain (attention.c). */
#ifndef WEFT_ATTENTION_H
#define WEFT_ATTENTION_H
#include "autograd/fused.h"
#include "nn/nn.h"

/* layer: the struct behind the handle. */
typedef weft_attention_memory weft__attention_projection(const void *layer, weft_tensor *memory);
/* memory.values NULL: keys are the memory, and still to be projected */
typedef weft_tensor *weft__attention_method(const void *layer, weft_tensor *q, weft_attention_memory memory,
                                            weft_causal causal, weft_tensor **map);
typedef struct {
    const weft_module *m;
    const char *name;
    const void *layer;
    weft__attention_projection *project;         /* NULL: the memory is asked as it is */
    weft__attention_method *how;
} weft__asked;

/* By the layer's method, of ragged tensors. The memory is ragged, or plain [n, Tk, dm], every sequence full.
 * The query is ragged, or plain: [n, Tq, dq], or [n, dq], one for each sequence of the memory, what a decoder
 * has at each step; then the result is plain again. Plain ones are views, not copies. */
weft_tensor *weft__attend(weft__asked, weft_tensor *q, weft_tensor *memory, weft_causal causal,
                          weft_tensor **map);
#endif
