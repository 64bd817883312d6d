/* api_nn.h - modules and their parameters, layers, losses as (sum, weight), metrics, optimisers, schedules.
 *
 * A module tree owns its parameters; all of them are one flat vector, and so are their gradients. Layers hang below a module and
 * end with the context. A layer that could not be made is an empty one; running it gives an inert tensor. Names are PyTorch's,
 * joined by dots: "encoder.weight_ih_l0". */
#ifndef WEFT_API_NN_H
#define WEFT_API_NN_H
#include "autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules ---- */
typedef struct weft_module weft_module;
/* A root, and a module below another. A name has 1 to 63 bytes, no dots and no slashes, and is unique among all that a module holds:
 * modules, parameters, buffers. Roots may share a name: a copy of a model starts with the same values. A module that could not be made
 * is an inert one, never NULL; what is asked of it is an error, or nothing. */
WEFT_API weft_module *weft_module_new(weft *w, const char *name);
WEFT_API weft_module *weft_module_in(weft_module *parent, const char *name);
/* The context of a module. */
WEFT_API weft *weft_of_module(const weft_module *m);

/* How a parameter [out, in, ..] starts, a the gain (0: 1) of the last three, which want a rank of 2 or more: XAVIER uniform in +-a sqrt(6 / (in +
 * out)), Glorot & Bengio 2010; KAIMING in +-a sqrt(6 / in), He et al. 2015; further extents multiply both in and out. ORTHOGONAL: as [out, rest]
 * its rows or columns, whichever are fewer, are orthogonal and of length a, Saxe et al. 2013. */
typedef enum { WEFT_INIT_ZERO, WEFT_INIT_CONSTANT, WEFT_INIT_UNIFORM, WEFT_INIT_NORMAL, WEFT_INIT_XAVIER, WEFT_INIT_KAIMING, WEFT_INIT_ORTHOGONAL } weft_init_kind;
typedef struct { weft_init_kind kind; weft_real a, b; } weft_init;        /* UNIFORM: from a to b, a <= b; NORMAL: mean a, deviation b */
/* A trained tensor of the module; lives until weft_close. Its first values depend on (seed, path of the parameter from the root's name on)
 * only: not on what else was made, or when. */
WEFT_API weft_tensor *weft_parameter(weft_module *m, const char *name, int rank, const int64_t *shape, weft_init init);
/* Saved, not trained; zeros at first. */
WEFT_API weft_tensor *weft_buffer(weft_module *m, const char *name, int rank, const int64_t *shape);
/* Copies a value into a buffer or a parameter (or a gradient) of the same shape, both plain: what must outlive a step (a carried state) goes this
 * way. An operator's backward that reads a parameter or buffer which has changed since its call is
 * an error of weft_backward: assign to what this step has used after weft_backward, or let the
 * operator use a copy, weft_scale(x, 1). A recurrent layer copies the states that it is given. */
WEFT_API void weft_assign(weft_tensor *kept, weft_tensor *value);
/* The same from host memory. */
WEFT_API void weft_assign_values(weft_tensor *kept, const weft_real *values, int64_t n);
/* Starts a parameter anew: with the same init it has its first values again. */
WEFT_API void weft_initialise(weft_tensor *parameter, weft_init init);
/* Makes `name` in m another name of an existing parameter (of the same root): tied weights. weft_find knows both; counted, frozen, zeroed,
 * stepped and saved it is under its first name alone. */
WEFT_API void weft_tie(weft_module *m, const char *name, weft_tensor *parameter);
/* Frozen parameters get no gradient and no step; of a whole subtree, of one parameter. Freezing forgets the gradient there is. */
WEFT_API void weft_freeze(weft_module *m, bool frozen);
WEFT_API void weft_freeze_parameter(weft_tensor *parameter, bool frozen);
/* Parameters and buffers below m in the order in which they were made: their number, the i-th, its path below m (owned by the
 * context; path may be NULL). No such i is an error. */
WEFT_API int weft_parameters(const weft_module *m);
WEFT_API weft_tensor *weft_parameter_at(const weft_module *m, int i, const char **path);
WEFT_API int weft_buffers(const weft_module *m);
WEFT_API weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path);
/* By path, "encoder.weight_ih_l0"; NULL if there is none. */
WEFT_API weft_tensor *weft_find(const weft_module *m, const char *path);
/* Numbers to train below m, tied ones once, frozen ones included. */
WEFT_API int64_t weft_parameter_count(const weft_module *m);
/* Prints the tree: names, shapes, counts, what is frozen or tied. */
WEFT_API void weft_print_module(FILE *file, const weft_module *m);
/* Zeroes the gradients below m; divides them by a scalar tensor (0 if it is 0): one division after accumulation. */
WEFT_API void weft_zero_grad(weft_module *m);
WEFT_API void weft_scale_grad(weft_module *m, weft_tensor *divisor);

/* ---- layers ---- */
typedef struct weft_linear weft_linear;
/* y = x W^T + b: weight [out, in], bias [out], both uniform in +-1/sqrt(in) as in PyTorch. */
WEFT_API weft_linear *weft_linear_new(weft_module *m, const char *name, int64_t in, int64_t out);
WEFT_API weft_linear *weft_linear_unbiased(weft_module *m, const char *name, int64_t in, int64_t out);
WEFT_API weft_tensor *weft_linear_run(weft_linear *l, weft_tensor *x);   /* [.., in] -> [.., out] */

typedef struct weft_embedding weft_embedding;
/* padding: a row that stays 0. Row 0 wants has_padding said, any other row is meant by its number
 * alone. */
typedef struct { int64_t rows, columns; int64_t padding; bool has_padding; } weft_embedding_opts;
/* weight [rows, columns], standard normal. The padding row gives 0 and gets no gradient, whatever is written to it. */
WEFT_API weft_embedding *weft_embedding_new(weft_module *m, const char *name, int64_t rows, int64_t columns);
WEFT_API weft_embedding *weft_embedding_with(weft_module *m, const char *name, const weft_embedding_opts *opts);
WEFT_API weft_tensor *weft_embed(weft_embedding *e, weft_tensor *ids);   /* [..] ints -> [.., columns]; the id -1 gives a row of 0 */

typedef struct weft_norm weft_norm;
/* Layer norm over the last axis: weight 1 and bias 0 [width], eps 1e-5. */
WEFT_API weft_norm *weft_norm_new(weft_module *m, const char *name, int64_t width);
WEFT_API weft_tensor *weft_norm_run(weft_norm *n, weft_tensor *x);

typedef struct weft_drop weft_drop;
/* Dropout named by its place in the tree, 0 <= p < 1; see weft_dropout. */
WEFT_API weft_drop *weft_drop_new(weft_module *m, const char *name, weft_real p, bool per_sequence);
WEFT_API weft_tensor *weft_drop_run(weft_drop *d, weft_tensor *x);

typedef struct weft_mlp weft_mlp;
typedef enum { WEFT_RELU, WEFT_LEAKY_RELU, WEFT_ELU, WEFT_GELU, WEFT_SILU, WEFT_TANH, WEFT_SIGMOID } weft_activation;
typedef struct { int layers; const int64_t *widths; weft_activation activation; weft_real dropout; } weft_mlp_opts;   /* 1 .. 9999 layers; widths: layers + 1 */
/* Linear layers with the activation (LEAKY_RELU: slope .01, ELU: alpha 1) and dropout between them, none after the last. Named as in a
 * torch.nn.Sequential of all of them: "0", "3", "6", .. with dropout, "0", "2", "4", .. without. */
WEFT_API weft_mlp *weft_mlp_new(weft_module *m, const char *name, const weft_mlp_opts *opts);
WEFT_API weft_tensor *weft_mlp_run(weft_mlp *l, weft_tensor *x);

/* ---- attention over a ragged memory; q [Nq, dq], memory [Nm, dm], result [Nq, dm] ---- *
 * q is ragged, of as many sequences as the memory, or plain [n, dq], one query for each sequence of the memory (a decoder's step): then the result
 * is plain, too. map: NULL, or set to the weights, one sequence for each query row (see weft_attention). A query without memory gives 0. */
typedef struct weft_additive weft_additive;
/* score . tanh(query_weight q + memory_weight m + bias), Bahdanau et al. 2015; parameters of those names, `width` units. It
 * makes all pairs of a query and a memory row: [pairs, width] and [pairs, dm] numbers. */
WEFT_API weft_additive *weft_additive_new(weft_module *m, const char *name, int64_t dq, int64_t dm, int64_t width);
WEFT_API weft_tensor *weft_additive_run(weft_additive *a, weft_tensor *q, weft_tensor *memory, weft_tensor **map);
typedef struct weft_general weft_general;
/* q . (weight m), weight [dq, dm], Luong et al. 2015. */
WEFT_API weft_general *weft_general_new(weft_module *m, const char *name, int64_t dq, int64_t dm);
WEFT_API weft_tensor *weft_general_run(weft_general *a, weft_tensor *q, weft_tensor *memory, weft_tensor **map);
typedef struct weft_multihead weft_multihead;
/* torch.nn.MultiheadAttention: in_proj_weight [3 width, width], in_proj_bias, out_proj.weight, out_proj.bias; q may be the memory itself. Vaswani
 * et al. 2017. */
WEFT_API weft_multihead *weft_multihead_new(weft_module *m, const char *name, int64_t width, int heads);
WEFT_API weft_tensor *weft_multihead_run(weft_multihead *a, weft_tensor *q, weft_tensor *memory, weft_causal causal, weft_tensor **map);

/* ---- blocks of gated residual networks ---- *
 * Lim, Arik, Loeff, Pfister 2021 (Temporal Fusion Transformers), as TransformerTF builds and names them; ragged and plain tensors [.., in]
 * alike. Dropouts are 0 .. 1 (but not 1) and in training only; a skip has the shape of the result. */
typedef struct weft_glu weft_glu;
/* Gated linear unit, Dauphin et al. 2017: dropout of x, then a sigmoid(b) of a, b = fc1 x. fc1 [2 out, in] (Xavier) with bias 0. */
WEFT_API weft_glu *weft_glu_new(weft_module *m, const char *name, int64_t in, int64_t out, weft_real dropout);
WEFT_API weft_tensor *weft_glu_run(weft_glu *g, weft_tensor *x);         /* [.., in] -> [.., out] */

typedef struct weft_add_norm weft_add_norm;
/* norm(x + skip); trainable_add: norm(x + 2 sigmoid(mask) skip), mask [width] 0 at first. */
WEFT_API weft_add_norm *weft_add_norm_new(weft_module *m, const char *name, int64_t width, bool trainable_add);
WEFT_API weft_tensor *weft_add_norm_run(weft_add_norm *a, weft_tensor *x, weft_tensor *skip);

typedef struct weft_gate_add_norm weft_gate_add_norm;
/* add_norm(glu(x), skip). */
WEFT_API weft_gate_add_norm *weft_gate_add_norm_new(weft_module *m, const char *name, int64_t in, int64_t out, weft_real dropout, bool trainable_add);
WEFT_API weft_tensor *weft_gate_add_norm_run(weft_gate_add_norm *g, weft_tensor *x, weft_tensor *skip);

typedef struct weft_resample_norm weft_resample_norm;
/* The in features taken as a line and read at `out` even places from its first to its last (out 1: the first), then times 2 sigmoid(mask) if
 * trainable_add, then norm. */
WEFT_API weft_resample_norm *weft_resample_norm_new(weft_module *m, const char *name, int64_t in, int64_t out, bool trainable_add);
WEFT_API weft_tensor *weft_resample_norm_run(weft_resample_norm *r, weft_tensor *x);

typedef struct weft_grn weft_grn;
typedef struct {
    int64_t in, out, hidden;                     /* hidden 0: in */
    int64_t context;                             /* width of a context, 0: none */
    weft_real dropout; weft_activation activation;
    bool interpolate;                            /* the skip where in is not out: a resample_norm "resample"; else a linear "project" */
} weft_grn_opts;
#define WEFT_GRN_DEFAULTS { .dropout = (weft_real).1, .activation = WEFT_ELU }
/* Gated residual network: norm(glu1(dropout(fc2 activation(fc1 x + fc3 context))) + skip of x); fc3 has no bias. fc1, fc2, glu1.fc1 start
 * normal with deviation sqrt(2 / in), biases 0. The two dropouts in a row are the original's. */
WEFT_API weft_grn *weft_grn_new(weft_module *m, const char *name, const weft_grn_opts *opts);
/* context: NULL if there is none; [.., context] like x, or [n, context]: one for each sequence of a ragged x, or of a plain [n, T, in]. */
WEFT_API weft_tensor *weft_grn_run(weft_grn *g, weft_tensor *x, weft_tensor *context);

typedef struct weft_variable_selection weft_variable_selection;
typedef struct { int64_t num_features, d_hidden, d_model, context; weft_real dropout; } weft_variable_selection_opts;   /* context 0: none */
#define WEFT_VARIABLE_SELECTION_DEFAULTS { .d_hidden = 8, .d_model = 300, .dropout = (weft_real).1 }
/* Each of the features [.., num_features] by its own linear layer "prescalers.i" and GRN "single_grn.i" to d_model, and their sum weighted by a
 * softmax of what "flattened_grn" says of all and of the context. One feature: its weight is 1, and the context is not looked at. */
WEFT_API weft_variable_selection *weft_variable_selection_new(weft_module *m, const char *name, const weft_variable_selection_opts *opts);
/* [.., num_features] -> [.., d_model]; context as in weft_grn_run; weights: NULL, or set to [.., num_features]. */
WEFT_API weft_tensor *weft_variable_selection_run(weft_variable_selection *v, weft_tensor *x, weft_tensor *context, weft_tensor **weights);

typedef struct weft_interpretable weft_interpretable;
/* InterpretableMultiHeadAttention: heads of width d_model / heads (rounded down) with queries and keys of their own ("query_layers.h", "key_layers.h"), one
 * projection of values for all ("value_layer"), the mean of what the heads see ("output_layer"); dropout of weights and of the
 * result. Weights are Xavier, biases 0. */
WEFT_API weft_interpretable *weft_interpretable_new(weft_module *m, const char *name, int64_t d_model, int heads, weft_real dropout);
/* q and memory ragged [N, d_model]; or plain [n, T, d_model], every sequence full; or q plain [n, d_model], one query for each sequence of the memory.
 * map as in weft_attention: NULL, or set to the weights. */
WEFT_API weft_tensor *weft_interpretable_run(weft_interpretable *a, weft_tensor *q, weft_tensor *memory, weft_causal causal, weft_tensor **map);
/* The same of plain tensors by a mask [n, Tq (or 1), Tk] that is not 0 where a key is forbidden (weft_get_attention_mask; NULL: nowhere), as PyTorch computes it:
 * with all scores in memory, and a query whose keys are all forbidden sees all of them evenly. map [n, heads, Tq, Tk]. */
WEFT_API weft_tensor *weft_interpretable_masked(weft_interpretable *a, weft_tensor *q, weft_tensor *memory, weft_tensor *mask, weft_tensor **map);

/* ---- losses: a total, and what it is to be divided by, both of rank 0; nothing to count is 0 with weight 0 ---- */
typedef struct { weft_tensor *sum, *weight; } weft_loss;
/* sum / weight; 0 if the weight is 0. */
WEFT_API weft_tensor *weft_mean_loss(weft_loss l);
/* Two losses as one. */
WEFT_API weft_loss weft_add_losses(weft_loss a, weft_loss b);

/* smoothing a: (1 - a) w[target] (-log p[target]) + a / classes sum_c w[c] (-log p[c]), Szegedy et
 * al. 2016; weight: sum of w[target]. mask, of the shape of the classes, or NULL, multiplies both;
 * where it is 0 logits and class are not looked at. class_weight [classes] or NULL; ignore: a class
 * that counts nothing (class 0 wants has_ignore said, any other is meant by its number alone, -100,
 * too). Mask and class_weight are constants: they have no gradient. */
typedef struct { weft_tensor *mask, *class_weight; weft_real smoothing; int32_t ignore; bool has_ignore; } weft_ce_opts;
/* logits [.., classes], classes [..] ints, ragged or plain; opts may be NULL. A class out of range is an error that names its
 * sequence and token. */
WEFT_API weft_loss weft_cross_entropy(weft_tensor *logits, weft_tensor *classes, const weft_ce_opts *opts);
/* The losses below take predicted and target of one shape and a mask that broadcasts to it (NULL: all 1); weight = sum of the mask
 * over all elements (the number of elements without one). `weights`, another tensor that broadcasts, multiplies the elements only and is
 * not in the denominator. Where the mask is 0 predicted, target and weights may be NaN. */
typedef struct { weft_tensor *mask, *weights; } weft_loss_opts;
WEFT_API weft_loss weft_mse(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts);
WEFT_API weft_loss weft_mae(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts);
WEFT_API weft_loss weft_huber(weft_tensor *predicted, weft_tensor *target, weft_real delta, const weft_loss_opts *opts);
/* Binary cross entropy of logits and targets in 0 .. 1. */
WEFT_API weft_loss weft_bce(weft_tensor *logits, weft_tensor *target, const weft_loss_opts *opts);
/* 0.5 (log v + (y - m)^2 / v), v = max(variance, eps), which has no gradient below eps; eps 0: 1e-6. */
WEFT_API weft_loss weft_gaussian_nll(weft_tensor *mean, weft_tensor *variance, weft_tensor *target, weft_real eps, const weft_loss_opts *opts);
/* 2 |p - y| / (|p| + |y|) and |(y - p) / y|; as losses and as metrics. 0 / 0 counts as 0, a miss of a target of 0 is infinite in mape. */
WEFT_API weft_loss weft_smape(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts);
WEFT_API weft_loss weft_mape(weft_tensor *predicted, weft_tensor *target, const weft_loss_opts *opts);
/* predicted [.., n], target [..] or [.., 1]; r = (y - p_q) weight, element max((q - 1) r, q r). weight: elements; per_batch: sequences
 * (or first extent) * n. */
WEFT_API weft_loss weft_quantile(weft_tensor *predicted, weft_tensor *target, const weft_real *quantiles, int n, bool per_batch, const weft_loss_opts *opts);

/* ---- metrics ---- */
/* The class with the largest score of each row: [.., classes] -> [..] ints; the first of equals. */
WEFT_API weft_tensor *weft_argmax(weft_tensor *scores);
/* How many rows the largest score is right, of how many that are not ignored (opts as in cross entropy). */
WEFT_API weft_loss weft_token_accuracy(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts);
/* How many sequences are right in all their tokens that are not ignored, of how many that have one (ragged inputs). */
WEFT_API weft_loss weft_sequence_accuracy(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts);
/* exp(sum / weight), 1 if the weight is 0. */
WEFT_API double weft_perplexity(double sum, double weight);
/* Insertions, deletions and substitutions between two sequences of ints, Levenshtein 1966; -1 if out of memory, or if one is
 * NULL and not empty. */
WEFT_API int64_t weft_edit_distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb);
/* A running mean, by buckets of length if edges are given; plain data, no context needed, zero-initialised is valid; a NULL one swallows
 * all. */
enum { WEFT_BUCKETS = 16 };
typedef struct { int edges; int64_t edge[WEFT_BUCKETS - 1]; double sum[WEFT_BUCKETS], weight[WEFT_BUCKETS]; } weft_meter;
/* Adds a total and its weight; length chooses the bucket (the first whose edge is above it). */
WEFT_API void weft_meter_add(weft_meter *meter, int64_t length, double sum, double weight);
WEFT_API double weft_meter_mean(const weft_meter *meter);                        /* NaN if nothing was added */
WEFT_API double weft_meter_bucket(const weft_meter *meter, int bucket);
WEFT_API void weft_meter_reset(weft_meter *meter);

/* ---- optimisers; each rule and name as in torch.optim ---- */
typedef struct weft_optim weft_optim;
typedef struct { weft_real lr, momentum, dampening, weight_decay; bool nesterov; } weft_sgd_opts;
typedef struct { weft_real lr, alpha, eps, weight_decay, momentum; bool centered; } weft_rmsprop_opts;
typedef struct { weft_real lr, beta1, beta2, eps, weight_decay; } weft_adam_opts;
#define WEFT_SGD_DEFAULTS     { (weft_real)1e-3, 0, 0, 0, false }
#define WEFT_RMSPROP_DEFAULTS { (weft_real)1e-2, (weft_real).99, (weft_real)1e-8, 0, 0, false }
#define WEFT_ADAM_DEFAULTS    { (weft_real)1e-3, (weft_real).9, (weft_real).999, (weft_real)1e-8, 0 }
/* For the parameters below m, those that are made later, too: from the next step on. A parameter
 * has one optimiser; a second one is an error. opts NULL: the defaults. Rates and decays are 0 or
 * more, eps is more than 0, betas below 1, RMSprop's alpha is 0 .. 1, and all are finite. Each
 * parameter counts its own steps: frozen, or where no loss has reached it, it has none. */
WEFT_API weft_optim *weft_sgd_new(weft_module *m, const weft_sgd_opts *opts);
WEFT_API weft_optim *weft_rmsprop_new(weft_module *m, const weft_rmsprop_opts *opts);
WEFT_API weft_optim *weft_adam_new(weft_module *m, const weft_adam_opts *opts);     /* decay added to the gradient */
WEFT_API weft_optim *weft_adamw_new(weft_module *m, const weft_adam_opts *opts);    /* decay apart, Loshchilov & Hutter 2019 */
/* Ends an optimiser before its context ends: its parameters may have another one. NULL is allowed. */
WEFT_API void weft_optim_end(weft_optim *o);
/* Of the parameters below `part`, later ones included: the rate is multiplied, the decay replaced.
 * What was said last counts. */
WEFT_API void weft_optim_group(weft_optim *o, weft_module *part, weft_real lr_scale, weft_real weight_decay);
/* Changes the parameters and zeroes their gradients. A parameter that no weft_backward has reached
 * since the last step or weft_zero_grad stays as it is, without decay or momentum, as in PyTorch
 * where grad is None; a gradient of zeros is one (of an empty batch, say), and so is one that
 * weft_assign has written. A failed step changes nothing; a gradient that is not finite, or a value
 * that would not be after it, skips the step (counted, the first bad parameter named by
 * weft_optim_bad); ten in a row are a sticky error, and weft_recover begins a new row. An error: no
 * parameter is below m. */
WEFT_API void weft_optim_step(weft_optim *o);
WEFT_API void weft_optim_set_lr(weft_optim *o, weft_real lr);
WEFT_API weft_real weft_optim_lr(const weft_optim *o);
/* How many steps were taken, skipped ones included. */
WEFT_API int64_t weft_optim_steps(const weft_optim *o);
/* How many were skipped; the path below m of the parameter that was the reason last, "" if none.
 * They wait for the device. */
WEFT_API int64_t weft_optim_skipped(weft_optim *o);
WEFT_API const char *weft_optim_bad(weft_optim *o);
/* Scales the gradients below m so that their norm (2, 1 or INFINITY) is at most max, which is more
 * than 0 (INFINITY: no limit); returns the norm before, a scalar: no wait unless it is read. */
WEFT_API weft_tensor *weft_clip_grad_norm(weft_module *m, weft_real max);
WEFT_API weft_tensor *weft_clip_grad_norm_of(weft_module *m, weft_real max, weft_real power);
/* An exponential moving average of the parameters below m, Polyak & Juditsky 1992: average += (1 - decay) (parameter - average). Saved
 * with m as buffers "ema.<path>". update comes after update number `updates` of the parameters (from 1): over the first 1 / (1 - decay)
 * of them the average is the parameters themselves, later it takes them in. swap exchanges both, for evaluation and back; until it is back an
 * update is an error, and what is saved has the averages for its parameters: for a model to be used, say. Swap back before loading. */
typedef struct weft_average weft_average;
WEFT_API weft_average *weft_average_new(weft_module *m, weft_real decay);
WEFT_API void weft_average_update(weft_average *a, int64_t updates);
WEFT_API void weft_average_swap(weft_average *a);

/* ---- schedules: pure functions of the step (counted from 0), giving a learning rate ---- */
/* Linear from lr / warmup over `warmup` steps, then half a cosine down to `last` at `total`. Loshchilov & Hutter 2017. Here and below a
 * negative step or number of steps counts as 0. */
WEFT_API double weft_warmup_cosine(int64_t step, double lr, int64_t warmup, int64_t total, double last);
/* lr * factor^(step / every). */
WEFT_API double weft_step_decay(int64_t step, double lr, int64_t every, double factor);
/* Up from lr / start to lr over `rise` of the steps, down to lr / start / end, by cosines. Smith 2018; torch's OneCycleLR. rise in 0 .. 1;
 * start or end of 0 or less count as 1. */
WEFT_API double weft_one_cycle(int64_t step, double lr, int64_t total, double rise, double start, double end);
/* torch's ReduceLROnPlateau (relative threshold 1e-4): lr *= factor, but not below `least`, when more than `patience` values in a row were
 * no better. Returns lr. Plain data, to be saved; best, bad and seen start as 0. NaN of NULL. */
typedef struct { double lr, factor, least; int64_t patience; bool larger_is_better; double best; int64_t bad, seen; } weft_plateau;
WEFT_API double weft_plateau_step(weft_plateau *p, double value);
/* Early stopping: true when `patience` values in a row were no better than the best by min_delta. Plain data, to be saved; best, bad and
 * seen start as 0. is_best may be NULL. */
typedef struct { int64_t patience; double min_delta; bool larger_is_better; double best; int64_t bad, seen; } weft_stopper;
WEFT_API bool weft_stopper_step(weft_stopper *s, double value, bool *is_best);

#ifdef __cplusplus
}
#endif
#endif
