/* api_layers.h - layers, all but recurrent ones (api_rnn.h).
 *
 * Contents: linear layers, embeddings, layer norm, dropout, MLPs; attention over ragged memory. */
#ifndef WEFT_API_LAYERS_H
#define WEFT_API_LAYERS_H
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers ---- *
 * Each is made by _new(m, name, &opts) and run by _run. A size that the options lack is an error
 * that names the field; opts may be NULL where no size is expected. */
typedef struct weft_linear weft_linear;
/* weight: a parameter [out, in] that exists already, shared with this layer (tied weights); it is
 * registered under this layer's name by weft_tie, so saved and counted once. in and out may then be
 * left 0, and must else be its own. */
typedef struct { int64_t in, out; bool no_bias; weft_tensor *weight; } weft_linear_opts;
/* y = x W^T + b: weight [out, in], bias [out], both uniform in +-1/sqrt(in) as in PyTorch. */
WEFT_API weft_linear *weft_linear_new(weft_module *m, const char *name,
                                      const weft_linear_opts *opts);
/* [.., in] -> [.., out], of rank 2 or more */
WEFT_API weft_tensor *weft_linear_run(weft_linear *l, weft_tensor *x);

typedef struct weft_embedding weft_embedding;
/* padding: a row that stays 0. Row 0 wants has_padding said, any other row is meant by its
 * number. row_dropout, 0 <= p < 1: in training each row of the table is 0 with that probability,
 * and divided by 1 - p otherwise, the same wherever its id stands in the step (Gal & Ghahramani
 * 2016; embedding dropout of Merity et al. 2017); a function of (seed, path, number of the step,
 * id). */
typedef struct {
    int64_t rows, columns;
    int64_t padding;
    bool has_padding;
    double row_dropout;
} weft_embedding_opts;
/* weight [rows, columns], standard normal. The padding row gives 0 and gets no gradient,
 * whatever is written to it or loaded. PyTorch reads such a row as any other: if a file has numbers
 * other than 0 there, the models differ. */
WEFT_API weft_embedding *weft_embedding_new(weft_module *m, const char *name,
                                            const weft_embedding_opts *opts);
/* The table [rows, columns], a parameter: for weft_linear_opts.weight, say. */
WEFT_API weft_tensor *weft_embedding_weight(weft_embedding *e);
/* [..] ints -> [.., columns]; the id -1 gives a row of 0 */
WEFT_API weft_tensor *weft_embedding_run(weft_embedding *e, weft_tensor *ids);

typedef struct weft_norm_layer weft_norm_layer;
typedef struct { int64_t width; double eps; } weft_layer_norm_opts;           /* eps 0: 1e-5 */
/* Layer norm over the last axis: weight 1 and bias 0 [width]. */
WEFT_API weft_norm_layer *weft_layer_norm_new(weft_module *m, const char *name,
                                                          const weft_layer_norm_opts *opts);
/* [.., width] -> [.., width] */
WEFT_API weft_tensor *weft_layer_norm_run(weft_norm_layer *n, weft_tensor *x);

typedef struct weft_dropout_layer weft_dropout_layer;
typedef struct { double p; bool per_sequence; } weft_dropout_opts;           /* 0 <= p < 1 */
/* Dropout named by its place in the tree; see weft_dropout. opts NULL: p = 0, nothing is
 * dropped. */
WEFT_API weft_dropout_layer *weft_dropout_new(weft_module *m, const char *name,
                                                    const weft_dropout_opts *opts);
WEFT_API weft_tensor *weft_dropout_run(weft_dropout_layer *d, weft_tensor *x);

typedef struct weft_mlp weft_mlp;
/* DEFAULT: the layer's own, which it names. */
typedef enum {
    WEFT_DEFAULT_ACTIVATION,
    WEFT_RELU,
    WEFT_LEAKY_RELU,
    WEFT_ELU,
    WEFT_GELU,
    WEFT_SILU,
    WEFT_TANH,
    WEFT_SIGMOID
} weft_activation;
/* 1 .. 9999 layers; widths: layers + 1 */
typedef struct {
    int layers;
    const int64_t *widths;
    weft_activation activation;
    double dropout;
} weft_mlp_opts;
/* Linear layers with the activation (by default RELU; LEAKY_RELU: slope .01, ELU: alpha 1) and
 * dropout between them, none after the last. Named as in a torch.nn.Sequential of all of them: "0",
 * "3", "6", .. with dropout, "0", "2", "4", .. without. */
WEFT_API weft_mlp *weft_mlp_new(weft_module *m, const char *name, const weft_mlp_opts *opts);
WEFT_API weft_tensor *weft_mlp_run(weft_mlp *l, weft_tensor *x);

/* ---- attention over a ragged memory; q [Nq, dq], memory [Nm, dm], result [Nq, dm] ---- *
 * q is ragged with as many sequences as the memory, or plain [n, dq], one query per sequence (a
 * decoder's step), or plain [n, T, dq]; then the result is plain. A memory may be plain [n, T, dm],
 * every sequence full. A query without memory gives 0. */
typedef struct weft_attention_layer weft_attention_layer;
typedef enum {
    /* torch.nn.MultiheadAttention (Vaswani et al. 2017) of `width` and `heads`, which divide it:
     * in_proj_weight [3 width, width], in_proj_bias, out_proj.weight, out_proj.bias. q may be the
     * memory itself. */
    WEFT_MULTIHEAD,
    /* Score q . (weight m), weight [dq, dm]: Luong et al. 2015. weft_attention_run projects the
     * queries, weft_attention_project the memory; the results differ by rounding. */
    WEFT_GENERAL,
    /* Score score . tanh(query_weight q + memory_weight m + bias) with `width` units: Bahdanau et
     * al. 2015. Stores [pairs, width] and [pairs, dm] for all pairs of a query and a memory row.
     * causal must be WEFT_ALL_KEYS. */
    WEFT_ADDITIVE
} weft_attention_kind;
typedef struct {
    weft_attention_kind kind;
    int64_t dq;                                  /* GENERAL, ADDITIVE: width of a query */
    int64_t dm;                                  /* GENERAL, ADDITIVE: width of the memory */
    int64_t width;                               /* MULTIHEAD, ADDITIVE */
    int heads;                                   /* MULTIHEAD */
} weft_attention_layer_opts;
WEFT_API weft_attention_layer *weft_attention_new(weft_module *m, const char *name,
                                                  const weft_attention_layer_opts *opts);
/* map: NULL, or set to the weights, one sequence per query row (see weft_attention). */
WEFT_API weft_tensor *weft_attention_run(weft_attention_layer *a, weft_tensor *q,
                                         weft_tensor *memory, weft_causal causal,
                                         weft_tensor **map);
/* Does once what weft_attention_run does to the memory, for a decoder that queries one memory at
 * each step by weft_attention_query. */
typedef struct { weft_tensor *keys, *values; } weft_attention_memory;
WEFT_API weft_attention_memory weft_attention_project(weft_attention_layer *a, weft_tensor *memory);
WEFT_API weft_tensor *weft_attention_query(weft_attention_layer *a, weft_tensor *q,
                                           weft_attention_memory memory, weft_causal causal,
                                           weft_tensor **map);

#ifdef __cplusplus
}
#endif
#endif
