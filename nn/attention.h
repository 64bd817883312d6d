/* attention.h - runs attention layers on ragged or plain queries and memories (attention.c). */
#ifndef WEFT_ATTENTION_H
#define WEFT_ATTENTION_H
#include "autograd/fused.h"
#include "nn/nn.h"

/* Projects the memory to keys and values. layer: the struct of the layer. */
typedef weft_attention_memory weft__attention_projection(const void *layer, weft_tensor *memory);
/* Computes the attention. memory.values NULL: keys holds the memory before its projection. */
typedef weft_tensor *weft__attention_method(const void *layer, weft_tensor *q, weft_attention_memory memory,
                                            weft_causal causal, weft_tensor **map);
typedef struct {
    const weft_module *m;
    const char *name;
    const void *layer;
    weft__attention_projection *project;         /* NULL: the memory is used unprojected */
    weft__attention_method *run;
} weft__scorer;

/* Applies the layer's method to ragged tensors. The memory is ragged, or plain [n, Tk, dm] with full
 * sequences. The query is ragged, plain [n, Tq, dq], or plain [n, dq] with one query for each sequence, as in
 * a decoder. The result is plain if the query is. Plain inputs become views, not copies. */
weft_tensor *weft__attend(weft__scorer, weft_tensor *q, weft_tensor *memory, weft_causal causal,
                          weft_tensor **map);
#endif
