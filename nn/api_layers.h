/* api_layers.h - layers, except recurrent ones (api_rnn.h).
 *
 * Contents: linear layers, embeddings, layer norm, dropout, MLPs; attention over ragged memory.
 *
 * _new(m, name, &opts) makes a layer as a module below m, whose context owns it, and copies opts.
 * Names and failure are as in api_nn.h. A required size that is 0 is an error that names the field.
 * opts may be NULL where no size is required. _run takes x, plain or ragged, and returns a tensor
 * of the step, ragged if x is. Errors: x of another type or width; a NULL or inert layer; it
 * returns an inert tensor. */
#ifndef WEFT_API_LAYERS_H
#define WEFT_API_LAYERS_H
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- linear layers ---- */
typedef struct weft_linear weft_linear;
typedef struct {
    int64_t in;                      /* width of x; required without .weight */
    int64_t out;                     /* width of the result; required without .weight */
    bool no_bias;                    /* y = x W^T, without b */
    /* NULL, or an existing parameter [out, in] of the same root, which the layer then shares (tied
     * weights). It is saved and counted once. in and out may then be 0: its shape gives them. */
    weft_tensor *weight;
} weft_linear_opts;
/* Makes a linear layer y = x W^T + b with weight [out, in] and bias [out], both uniform in
 * +-1/sqrt(in) at first. Like torch.nn.Linear. */
WEFT_API weft_linear *weft_linear_new(weft_module *m, const char *name,
                                      const weft_linear_opts *opts);
/* Runs the layer: x [.., in] -> [.., out], reals, rank 2 or more. */
WEFT_API weft_tensor *weft_linear_run(weft_linear *l, weft_tensor *x);

/* ---- embeddings ---- */
typedef struct weft_embedding weft_embedding;
typedef struct {
    int64_t rows;                    /* number of ids, below 2^31; required */
    int64_t columns;                 /* width of the result; required */
    int64_t padding;                 /* id that gives zeros, below rows; 0: see has_padding */
    bool has_padding;                /* true: padding 0 is id 0; false: padding 0 means none */
    /* While training: probability, 0 <= p < 1, that an id gives zeros in the whole step. The rows
     * of other ids are divided by 1 - p. The choice depends on (seed, path, step, id): Gal &
     * Ghahramani 2016, the embedding dropout of Merity et al. 2017. */
    double row_dropout;
} weft_embedding_opts;
/* Makes a table, weight [rows, columns], standard normal at first. The padding id gives zeros, and
 * its row gets no gradient, whatever the program writes or loads there. PyTorch reads such a row as
 * any other: models differ if a file has numbers other than 0 there. Like torch.nn.Embedding. */
WEFT_API weft_embedding *weft_embedding_new(weft_module *m, const char *name,
                                            const weft_embedding_opts *opts);
/* Looks up ids [..], ints, and returns reals [.., columns], ragged if ids is. The id -1 gives zeros
 * and no gradient. Errors: an id outside -1 .. rows - 1; on a GPU at the next wait. */
WEFT_API weft_tensor *weft_embedding_run(weft_embedding *e, weft_tensor *ids);

/* ---- layer norm ---- */
typedef struct weft_norm_layer weft_norm_layer;
/* width: extent of the last axis, required. eps: 0 means the default of weft_layer_norm, with rms
 * that of weft_rms_norm; WEFT_ZERO means 0. rms: the layer is an RMS norm and has no bias. */
typedef struct { int64_t width; double eps; bool rms; } weft_layer_norm_opts;
/* Makes a layer norm over the last axis. It has two parameters [width]: weight, 1 at first, and
 * bias, 0 at first. Errors: eps below 0. Like torch.nn.LayerNorm, or with rms torch.nn.RMSNorm. */
WEFT_API weft_norm_layer *weft_layer_norm_new(weft_module *m, const char *name,
                                              const weft_layer_norm_opts *opts);
/* Runs the layer: x [.., width] -> [.., width], reals, rank 1 or more. */
WEFT_API weft_tensor *weft_layer_norm_run(weft_norm_layer *n, weft_tensor *x);

/* ---- dropout ---- */
typedef struct weft_dropout_layer weft_dropout_layer;
/* p: probability of a zero, 0 <= p < 1. per_sequence: one mask for all positions of a sequence. */
typedef struct { double p; bool per_sequence; } weft_dropout_opts;
/* Makes a dropout layer. Its path is the `name` of its calls of weft_dropout, so two layers have
 * different masks. opts NULL: p = 0. Errors: p outside 0 <= p < 1. Like torch.nn.Dropout. */
WEFT_API weft_dropout_layer *weft_dropout_new(weft_module *m, const char *name,
                                              const weft_dropout_opts *opts);
/* Runs weft_dropout on x. Returns x itself if the context is not training or p is 0. */
WEFT_API weft_tensor *weft_dropout_run(weft_dropout_layer *d, weft_tensor *x);

/* ---- MLPs ---- */
typedef struct weft_mlp weft_mlp;
/* DEFAULT: named by the comment of each option. LEAKY_RELU: slope .01. ELU: alpha 1. */
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
typedef struct {
    int layers;                                  /* number of linear layers, 1 .. 9999 */
    /* [layers + 1], copied: width of x, then the width of each layer's result; all 1 or more. */
    const int64_t *widths;
    weft_activation activation;                  /* default RELU */
    double dropout;                              /* 0 <= p < 1; 0: none */
} weft_mlp_opts;
/* Makes an MLP: linear layers, each except the last followed by the activation, then dropout.
 * Linear layers have their names in a Sequential: "0", "3", "6", .. with dropout, "0", "2", "4", ..
 * without. opts is required. Like torch.nn.Sequential of torch.nn.Linear. */
WEFT_API weft_mlp *weft_mlp_new(weft_module *m, const char *name, const weft_mlp_opts *opts);
/* Runs the layers: x [.., widths[0]] -> [.., widths[layers]], reals, rank 2 or more. */
WEFT_API weft_tensor *weft_mlp_run(weft_mlp *l, weft_tensor *x);

/* ---- attention over a ragged memory ---- *
 * The memory is ragged [Nm, dm], or plain [n, T, dm]: n sequences of length T. The queries q are
 * also n sequences, of any lengths: ragged [Nq, dq], plain [n, Tq, dq], or plain [n, dq], which is
 * one query for each sequence, as in a step of a decoder. The result has q's form with the width
 * dm, in the layout CONCAT if ragged. All are reals. For MULTIHEAD dq = dm = width. Sequence i of q
 * reads sequence i of the memory. Index i of a plain tensor is sequence i in the user's order. A
 * query whose sequence has no memory rows gives 0. */
typedef struct weft_attention_layer weft_attention_layer;
typedef enum {
    /* Multi-head attention of `width` with `heads` (Vaswani et al. 2017): in_proj_weight [3 width,
     * width], in_proj_bias, out_proj.weight, out_proj.bias. q may be the memory itself. */
    WEFT_MULTIHEAD,
    /* Score q . (weight m) of a query q and a memory row m, weight [dq, dm]: Luong et al. 2015.
     * weft_attention_run multiplies queries by the weight, weft_attention_project memory rows. So
     * weft_attention_run and weft_attention_query differ by rounding. */
    WEFT_GENERAL,
    /* Score v . tanh(query_weight q + memory_weight m + bias), where v is the parameter "score"
     * [width]: Bahdanau et al. 2015. Stores [pairs, width] and [pairs, dm] for all pairs of a query
     * and a memory row. causal must be WEFT_ALL_KEYS. */
    WEFT_ADDITIVE
} weft_attention_kind;
typedef struct {
    weft_attention_kind kind;                    /* 0: MULTIHEAD */
    int64_t dq;                                  /* GENERAL, ADDITIVE: width of a query */
    int64_t dm;                                  /* GENERAL, ADDITIVE: width of the memory */
    int64_t width;                               /* MULTIHEAD: dq and dm; ADDITIVE: units */
    int heads;                                   /* MULTIHEAD: required, divides width */
} weft_attention_layer_opts;
/* Makes an attention layer of opts->kind. Fields whose comments name this kind are required. Like
 * torch.nn.MultiheadAttention, Luong's score `general`, or AdditiveAttention of Keras. */
WEFT_API weft_attention_layer *weft_attention_new(weft_module *m, const char *name,
                                                  const weft_attention_layer_opts *opts);
/* Runs the layer: each query reads those memory rows of its sequence that `causal` allows
 * (weft_causal, api_autograd.h). map: NULL, or *map is set to the weights, ragged [pairs, heads] in
 * the layout CONCAT; GENERAL and ADDITIVE have one head. The map's sequences are the queries in the
 * user's order; its tokens are the memory rows of that query's sequence, 0 where causal hides them.
 * Errors: as _run; the result and *map are then inert. */
WEFT_API weft_tensor *weft_attention_run(weft_attention_layer *a, weft_tensor *q,
                                         weft_tensor *memory, weft_causal causal,
                                         weft_tensor **map);
typedef struct { weft_tensor *keys, *values; } weft_attention_memory;
/* Projects a memory, ragged [Nm, dm] or plain [n, T, dm], to keys and values, for a decoder that
 * queries the same memory at each step. keys and values are ragged tensors of the step, one row for
 * each row of the memory; after an error they are inert. Like past_key_values of Transformers. */
WEFT_API weft_attention_memory weft_attention_project(weft_attention_layer *a, weft_tensor *memory);
/* Runs the layer as weft_attention_run does, over a memory from weft_attention_project of the same
 * layer. A plain q [n, dq] is the only query of its sequence: WEFT_ALL_KEYS and BOTTOM_RIGHT give
 * it the whole memory, TOP_LEFT the first row, STRICT all but the last. Decoders use
 * WEFT_ALL_KEYS. */
WEFT_API weft_tensor *weft_attention_query(weft_attention_layer *a, weft_tensor *q,
                                           weft_attention_memory memory, weft_causal causal,
                                           weft_tensor **map);

#ifdef __cplusplus
}
#endif
#endif
