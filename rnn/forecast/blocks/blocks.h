/* blocks.h - the blocks of the forecasting models: Lim, Arik, Loeff, Pfister 2021 (Temporal Fusion
 * Transformers), with TransformerTF's structure and parameter names.
 *
 * Inputs are ragged or plain [.., in]. A model checks its options before it makes blocks. A constructor that
 * fails returns NULL, and the context has failed. A model runs its blocks only if all were made. */
#ifndef WEFT_FORECAST_BLOCKS_H
#define WEFT_FORECAST_BLOCKS_H
#include "nn/nn.h"

/* Gated linear unit, Dauphin et al. 2017: a sigmoid(b) of [a b] = fc1 dropout(x). fc1 [2 out, in]. */
typedef struct weft__glu_layer {
    weft_module *m;
    weft_linear *fc1;
    double dropout;
} weft__glu_layer;
weft__glu_layer *weft__glu_new(weft_module *m, const char *name, int64_t in, int64_t out, double dropout);
/* Returns [a b], [.., 2 out]. The unit itself is part of the norm that follows. */
weft_tensor *weft__glu_gate(weft__glu_layer *, weft_tensor *x);

/* norm(x + skip), or with trainable_add norm(x + 2 sigmoid(mask) skip), where mask [width] starts at 0.
 * Otherwise mask is NULL. */
typedef struct weft__add_norm {
    weft_module *m;
    weft_norm_layer *norm;
    weft_tensor *mask;
} weft__add_norm;
weft__add_norm *weft__add_norm_new(weft_module *m, const char *name, int64_t width, bool trainable_add);
/* Returns add_norm(glu(x), skip) for layers that exist already. */
weft_tensor *weft__gate_and_norm(weft__glu_layer *, weft__add_norm *, weft_tensor *x, weft_tensor *skip);

/* The same as a module with parts "glu" and "add_norm". */
typedef struct weft__gate_add_norm weft__gate_add_norm;
weft__gate_add_norm *weft__gate_add_norm_new(weft_module *m, const char *name, int64_t in, int64_t out,
                                             double dropout, bool trainable_add);
weft_tensor *weft__gate_add_norm_run(weft__gate_add_norm *, weft_tensor *x, weft_tensor *skip);

/* Interpolates [.., F] linearly to [.., out] (the first and the last feature stay; out 1: the first), times
 * 2 sigmoid(mask). mask is [out], [groups, out] where x is [.., groups, F], or NULL. */
weft_tensor *weft__resample(weft_tensor *x, int64_t out, weft_tensor *mask);

/* Gated residual network: norm(glu1(dropout(fc2 activation(fc1 x + fc3 context))) + skip). fc3 has no bias.
 * fc1, fc2 and glu1.fc1 start normal with deviation sqrt(2 / in), biases at 0. The two consecutive dropouts
 * are the original's. */
typedef struct weft__grn weft__grn;
typedef struct weft__grn_opts {
    int64_t in;
    int64_t out;
    int64_t hidden;                              /* 0: in */
    int64_t context;                             /* width of the context; 0: none */
    double dropout;
    bool interpolate; /* skip where in is not out: norm of weft__resample, or a linear "project" */
} weft__grn_opts;
weft__grn *weft__grn_new(weft_module *m, const char *name, const weft__grn_opts *);
/* context: NULL, [.., context] like x, or [n, context], one row per sequence of x. */
weft_tensor *weft__grn_run(weft__grn *, weft_tensor *x, weft_tensor *context);

/* Networks "0", "1", .. of one shape that run as one: [.., groups, in] -> [.., groups, out], each with a
 * hidden layer of the smaller width. All must be added before they run. One may run alone. */
typedef struct weft__grouped_grn weft__grouped_grn;
weft__grouped_grn *weft__grouped_grn_new(weft_module *m, const char *name, int64_t groups, int64_t in,
                                         int64_t out, double dropout);
weft__grn *weft__grouped_grn_add(weft__grouped_grn *, int64_t i);
weft_tensor *weft__grouped_grn_run(const weft__grouped_grn *, weft_tensor *x);

/* Variable selection: every feature [.., features] has its own linear layer "prescalers.i" and network
 * "single_grn.i" to d_model. The result is their sum, weighted by a softmax of "flattened_grn" over all
 * features and the context. A single feature has weight 1 and ignores the context. */
typedef struct weft__selection weft__selection;
typedef struct weft__selection_opts {
    int64_t features;
    int64_t d_hidden;
    int64_t d_model;
    int64_t context;                             /* 0: none */
    double dropout;
} weft__selection_opts;
weft__selection *weft__selection_new(weft_module *m, const char *name, const weft__selection_opts *);
/* weights: NULL, or set to [.., features]. */
weft_tensor *weft__selection_run(weft__selection *, weft_tensor *x, weft_tensor *context,
                                 weft_tensor **weights);

/* InterpretableMultiHeadAttention: heads of width d_model / heads have their own queries and keys
 * ("query_layers.h", "key_layers.h") and share the values ("value_layer"). The result is the mean of the
 * heads ("output_layer"). Dropout applies to the weights and to the result. Weights start as Xavier, biases
 * at 0. */
typedef struct weft__interpretable weft__interpretable;
weft__interpretable *weft__interpretable_new(weft_module *m, const char *name, int64_t d_model, int heads,
                                             double dropout);
/* map: NULL, or set to the weights; see weft_attention. */
weft_tensor *weft__interpretable_run(weft__interpretable *, weft_tensor *q, weft_tensor *memory,
                                     weft_causal causal, weft_tensor **map);
/* Computes q [n, Tq, d_model] over memory [n, Tk, d_model] with all scores in memory, as PyTorch does.
 * forbidden: NULL, or [n, Tq (or 1), Tk], not 0 where a key is hidden. A query without keys sees all evenly.
 * map: NULL, or set to [n, heads, Tq, Tk]. */
weft_tensor *weft__interpretable_masked(weft__interpretable *, weft_tensor *q, weft_tensor *memory,
                                        weft_tensor *forbidden, weft_tensor **map);
#endif
