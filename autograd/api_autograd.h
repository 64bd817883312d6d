/* api_autograd.h - operators, the tape, gradients. What authors of operators need is in api_op.h.
 *
 * Contents: pointwise operators, comparisons, matrix products, sums and extremes, softmax and layer
 * norm and dropout, shapes, operators by index, ragged batches, attention, gradients, looking at
 * the tape.
 *
 * Operators take tensors of the step (or parameters) and return one. Ragged tensors are welcome
 * everywhere: those of one operator must be of one batch (the same lengths and ids), and are
 * arranged to one layout by themselves. Beside a ragged operand a plain one has no row axis: its
 * rank is lower, or its first extent 1. Inputs are remembered on the tape, therefore not const.
 * Axes count from 0, from the end if negative. All errors are sticky in the context. */
#ifndef WEFT_API_AUTOGRAD_H
#define WEFT_API_AUTOGRAD_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pointwise: y has x's shape and layout ---- */
WEFT_API weft_tensor *weft_neg(weft_tensor *x), *weft_exp(weft_tensor *x),
    *weft_log(weft_tensor *x), *weft_sqrt(weft_tensor *x);
WEFT_API weft_tensor *weft_rsqrt(weft_tensor *x), *weft_square(weft_tensor *x),
    *weft_abs(weft_tensor *x);
WEFT_API weft_tensor *weft_reciprocal(weft_tensor *x);               /* 1 / x, and 0 where x is 0 */
WEFT_API weft_tensor *weft_sin(weft_tensor *x), *weft_cos(weft_tensor *x),
    *weft_tanh(weft_tensor *x), *weft_sigmoid(weft_tensor *x);
WEFT_API weft_tensor *weft_relu(weft_tensor *x), *weft_silu(weft_tensor *x),
    *weft_softplus(weft_tensor *x);
WEFT_API weft_tensor *weft_gelu(weft_tensor *x);               /* x Phi(x), by the error function */
WEFT_API weft_tensor *weft_leaky_relu(weft_tensor *x, double slope);        /* slope x below 0 */
WEFT_API weft_tensor *weft_elu(weft_tensor *x, double alpha);       /* alpha (exp(x) - 1) below 0 */
WEFT_API weft_tensor *weft_clamp(weft_tensor *x, double low, double high);   /* low <= high */
WEFT_API weft_tensor *weft_pow(weft_tensor *x, double exponent);
WEFT_API weft_tensor *weft_scale(weft_tensor *x, double factor);            /* factor x */

/* Two operands, broadcasting as NumPy does. minimum and maximum share the gradient of equal
 * elements evenly. All but div also take two tensors of ints and return ints, without a gradient;
 * a result that an int32 does not hold wraps around, as in PyTorch. */
WEFT_API weft_tensor *weft_add(weft_tensor *a, weft_tensor *b),
    *weft_sub(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_mul(weft_tensor *a, weft_tensor *b),
    *weft_div(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_minimum(weft_tensor *a, weft_tensor *b),
    *weft_maximum(weft_tensor *a, weft_tensor *b);

/* ---- comparisons ---- */
/* Return reals 0 and 1, and no gradient. Both operands are reals, or both are ints. */
WEFT_API weft_tensor *weft_less(weft_tensor *a, weft_tensor *b),
    *weft_less_equal(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_greater(weft_tensor *a, weft_tensor *b),
    *weft_greater_equal(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_equal(weft_tensor *a, weft_tensor *b),
    *weft_not_equal(weft_tensor *a, weft_tensor *b);
/* Selects a where the condition is not 0, otherwise b. All three broadcast. a and b are both reals
 * or both ints. NaN or infinity in the branch that is not selected changes neither the result nor
 * gradients: pointwise operators, softmax and its variants and layer norm turn a gradient of 0 into
 * 0, also where their derivative is infinite or NaN. */
WEFT_API weft_tensor *weft_where(weft_tensor *condition, weft_tensor *a, weft_tensor *b);
/* Returns ints as reals; no gradient. A float holds whole numbers up to 2^24: larger ones are
 * rounded, which WEFT_CHECK=1 reports once. */
WEFT_API weft_tensor *weft_to_reals(weft_tensor *ints);
/* Reals as ints, to the nearest, halves to the even one; no gradient. NaN, and what an int32 does
 * not hold, is an error that names its place. */
WEFT_API weft_tensor *weft_to_ints(weft_tensor *x);

/* ---- matrix products ---- *
 * a [.., m, k] b [.., k, n] -> [.., m, n]. If b has rank 2 all leading axes of a are rows (ragged
 * ones, too); otherwise both have the same leading axes and it is a batch of products. */
WEFT_API weft_tensor *weft_matmul(weft_tensor *a, weft_tensor *b);
/* The same with the last two axes of a, of b exchanged first. a ragged and ta: the rows are summed
 * over (a^T b), and b must have the same rows; the result is plain. */
WEFT_API weft_tensor *weft_matmul_with(weft_tensor *a, bool ta, weft_tensor *b, bool tb);

/* ---- sums and extremes ---- *
 * Along an axis, which goes away. Axis 0 of a ragged tensor is an error, since it has two readings:
 * weft_pool is within each sequence; weft_sum_all and weft_mean_all, or weft_plain before it, are
 * over all tokens. Nothing to sum is 0, its mean 0. sum, max and min also take ints: a sum that an
 * int32 does not hold wraps around. */
WEFT_API weft_tensor *weft_sum(weft_tensor *x, int axis), *weft_mean(weft_tensor *x, int axis);
/* The largest and the smallest; NaN is both. The gradient goes to the first of equals. An empty
 * axis is an error. */
WEFT_API weft_tensor *weft_max(weft_tensor *x, int axis), *weft_min(weft_tensor *x, int axis);
/* Their places along the axis, ints: the first of equals, the first NaN if there is one. No
 * gradient. */
WEFT_API weft_tensor *weft_argmax(weft_tensor *x, int axis), *weft_argmin(weft_tensor *x, int axis);
/* The sum of (x - mean)^2 over the axis's n elements, divided by n - correction; and its root. A
 * correction of 1 is the estimate from a sample, as PyTorch's default, 0 NumPy's. Both are 0 where
 * n - correction is 0 or less: of nothing, and with 1 of one element, where PyTorch has NaN. Where
 * the deviation is 0 its gradient is 0. */
WEFT_API weft_tensor *weft_var(weft_tensor *x, int axis, double correction),
    *weft_std(weft_tensor *x, int axis, double correction);
/* Computes the norm along an axis, as torch.linalg.vector_norm: power 2 (or 0) is the root of the
 * sum of squares, without overflow or underflow on the way; 1 the sum of sizes; INFINITY the
 * largest size. The norm of nothing is 0. Where the norm is 0 its derivatives are 0.
 * Errors: another power; axis 0 of a ragged tensor. */
WEFT_API weft_tensor *weft_vector_norm(weft_tensor *x, int axis, double power);
/* The k largest along an axis, 0 <= k <= its size, the largest first, of equals the first first,
 * NaN before all: x's shape with k on that axis. indices: their places along it, ints. Gradients go
 * through values. Either may be NULL. Axis 0 of a ragged tensor is an error as above. */
WEFT_API void weft_topk(weft_tensor *x, int64_t k, int axis, weft_tensor **values,
                        weft_tensor **indices);
/* Over all elements, to rank 0. */
WEFT_API weft_tensor *weft_sum_all(weft_tensor *x), *weft_mean_all(weft_tensor *x);
/* y_i = x_0 + .. + x_i along an axis; of a ragged tensor along axis 0: within each sequence.
 * Reals. */
WEFT_API weft_tensor *weft_cumsum(weft_tensor *x, int axis);

/* ---- softmax, layer norm, dropout ---- */
/* Softmax and its kin of reals along an axis; along axis 0 of a ragged tensor: over the tokens of
 * each sequence. mask NULL, or x's shape: where it is 0 the element takes no part and its result is
 * 0. A row without elements is 0 (logsumexp: -inf). */
WEFT_API weft_tensor *weft_softmax(weft_tensor *x, int axis, weft_tensor *mask),
    *weft_log_softmax(weft_tensor *x, int axis, weft_tensor *mask);
/* log(sum(exp(x))), the axis gone; of a ragged tensor along axis 0: [sequences, ..], plain. */
WEFT_API weft_tensor *weft_logsumexp(weft_tensor *x, int axis, weft_tensor *mask);
/* (x - mean) / sqrt(variance + eps) over the last axis, times gain plus shift ([width] each, or
 * both NULL). Ba et al. 2016. */
WEFT_API weft_tensor *weft_layer_norm(weft_tensor *x, weft_tensor *gain, weft_tensor *shift,
                                      double eps);
/* Zeroes each element with probability p and divides the others by 1 - p; p = 0, or a context not
 * training: x itself. The mask is a function of (seed, name, number of the step, how many-th call
 * of that name in the step, sequence id, position, column): it does not depend on layout,
 * neighbours or threads. per_sequence: the same mask at all positions of a sequence. Rows of a
 * plain tensor count as sequences of one token. */
WEFT_API weft_tensor *weft_dropout(weft_tensor *x, double p, const char *name, bool per_sequence);

/* ---- shapes ---- */
/* The same numbers in another shape; one extent may be -1. A ragged tensor keeps its rows as
 * axis 0. */
WEFT_API weft_tensor *weft_reshape(weft_tensor *x, int rank, const int64_t *shape);
/* Two axes exchanged (copied); not the rows of a ragged tensor. Reals or ints. */
WEFT_API weft_tensor *weft_transpose(weft_tensor *x, int axis, int other);
/* Axis i of the result is axis axes[i] of x; axes [rank of x] holds each once. The rows of a ragged
 * tensor stay axis 0. Reals or ints. */
WEFT_API weft_tensor *weft_permute(weft_tensor *x, const int *axes);
/* n tensors (WEFT_LIST) end to end along an axis, the others equal. Ragged ones along any axis but
 * 0 (weft_concat_sequences is that). Reals or ints. */
WEFT_API weft_tensor *weft_concat(weft_tensor *const *x, int64_t n, int axis);
/* n tensors of one shape, rank 0 .. 5, side by side along a new axis, one of the result's. Ragged
 * ones along any axis but 0. Reals or ints. */
WEFT_API weft_tensor *weft_stack(weft_tensor *const *x, int64_t n, int axis);
/* from .. to - 1 along an axis; negative ones count from the end. Not the rows of a ragged
 * tensor. Reals or ints. */
WEFT_API weft_tensor *weft_slice(weft_tensor *x, int axis, int64_t from, int64_t to);
/* Reversed along an axis; axis 0 of a ragged tensor: each sequence by itself. Reals or ints. */
WEFT_API weft_tensor *weft_flip(weft_tensor *x, int axis);
/* `times` copies end to end along an axis: 1 2 1 2. Rank 1 .. 5, not the rows of a ragged tensor.
 * Reals or ints. */
WEFT_API weft_tensor *weft_tile(weft_tensor *x, int axis, int64_t times);
/* Each element `times` times in a row along an axis: 1 1 2 2. Of the same tensors. */
WEFT_API weft_tensor *weft_repeat_interleave(weft_tensor *x, int axis, int64_t times);

/* ---- by index ---- *
 * Rows of a plain table [rows, ..] -> [.. of index, ..]; the result is ragged if the index is. -1
 * gives 0; any other index out of range is an error that names its place, the row of the index as
 * it lies in memory. Gradient: rows that occur twice are summed, in a fixed order. */
WEFT_API weft_tensor *weft_index_select(weft_tensor *table, weft_tensor *index);
/* Its transpose: a table [rows, width] of zeros to which row index[r] gets x's row r added. */
WEFT_API weft_tensor *weft_index_add(weft_tensor *x, weft_tensor *index, int64_t rows);
/* One element of each row of the last axis: [.., width], [..] ints -> [..]; -1 gives 0. */
WEFT_API weft_tensor *weft_take_along(weft_tensor *x, weft_tensor *column);
/* [..] ints -> [.., classes] of 0 and 1; a negative class gives zeros. No gradient. */
WEFT_API weft_tensor *weft_one_hot(weft_tensor *class_, int64_t classes);

/* ---- ragged batches ---- */
/* A padded tensor [n, T, ..] to a packed one. Lengths: as many as sequences, 0 .. T each; else an
 * error that names the sequence. Numbers beyond a length are not read. */
WEFT_API weft_tensor *weft_pack_padded_sequence(weft_tensor *padded, const weft_lengths *lengths,
                                                weft_align align);
/* Checks that all pads of [n, T, ..] are 0 (NaN is not). If not, the context fails and the message
 * names sequence and step. Waits for the device and reads the whole tensor: a check of the first
 * batch. */
WEFT_API bool weft_pads_are_zero(weft_tensor *padded, const weft_lengths *lengths,
                                 weft_align align);
/* A ragged tensor to a plain [n, T, ..]; total is T (at least the longest), 0 means the longest;
 * pads hold `fill`. */
WEFT_API weft_tensor *weft_pad_packed_sequence(weft_tensor *ragged, int64_t total, double fill,
                                               weft_align align);
/* Plain sequences [T, ..], one or more, T of 0 or more, as one packed tensor; and as a padded plain
 * one [n, longest, ..]. */
WEFT_API weft_tensor *weft_pack_sequence(weft_tensor *const *sequences, int64_t n);
WEFT_API weft_tensor *weft_pad_sequence(weft_tensor *const *sequences, int64_t n, double fill,
                                        weft_align align);
/* The sequences of a ragged tensor, plain [T, ..] each, into sequences [n] in the user's order. */
WEFT_API void weft_unpack_sequence(weft_tensor *ragged, weft_tensor **sequences);
/* PyTorch's PackedSequence: the rows step by step, the longest sequence first, ties in the user's
 * order. Arrays are of host memory. ids, offsets: as in weft_lengths, in the user's order. */
typedef struct {
    weft_tensor *data;                           /* plain [sum of batch_sizes, ..] */
    const int32_t *batch_sizes;                  /* [steps] how many sequences are longer than t */
    const int32_t *sorted_indices;               /* [sequences] the sequence in each place */
    const int32_t *unsorted_indices;             /* [sequences] the place of each sequence */
    const int64_t *ids;                          /* [sequences] or NULL: 0, 1, .. */
    const int32_t *offsets;                      /* [sequences] or NULL: 0 */
    int64_t steps, sequences;
} weft_packed_sequence;
/* The fields of a ragged tensor, whatever its layout; the arrays belong to the step. */
WEFT_API weft_packed_sequence weft_packed_sequence_of(weft_tensor *ragged);
/* Back: a ragged tensor of data and arrays, in the layout packed; either of the two indices, or
 * both (NULL and NULL: sequences lie as they are sorted). The arrays are copied. An error: arrays
 * that do not agree. */
WEFT_API weft_tensor *weft_ragged_of(const weft_packed_sequence *packed);
/* Plain [n, T, ..] with pads on one side to the same with pads on the other. */
WEFT_API weft_tensor *weft_move_pads(weft_tensor *padded, const weft_lengths *lengths,
                                     weft_align from, weft_align to);
/* [n, T] of 0 and 1: where the data are. */
WEFT_API weft_tensor *weft_length_mask(weft *w, const weft_lengths *lengths, int64_t total,
                                       weft_align align);
/* To another layout of the same batch: WEFT_PACKED or WEFT_CONCAT. */
WEFT_API weft_tensor *weft_to_layout(weft_tensor *ragged, weft_layout layout);
/* To the layout `rows`: [rows * width, ..], several whole sequences a row; pads are 0. Overlaps
 * are an error. */
WEFT_API weft_tensor *weft_to_rows(weft_tensor *ragged, const weft_placement *placement);
/* Its rows as a plain tensor [N, ..], in the order of its layout, no longer a batch's; the pads of
 * layout `rows`, 0, are among them. */
WEFT_API weft_tensor *weft_plain(weft_tensor *ragged);
/* Returns plain rows [N, ..] that are stored in like's order as a ragged tensor of its batch,
 * without a copy: rows that weft_plain returned for that layout, or an operator computed from them.
 * Errors: rows in another order. Unless the rows come from weft_plain they count as stored in the
 * user's order, which is that of layout concat; a packed `like` refuses them. */
WEFT_API weft_tensor *weft_ragged_like(weft_tensor *plain, weft_tensor *like);
/* Returns plain rows [tokens, ..] that come in the user's order, sequence by sequence, as a ragged
 * tensor of like's batch in like's layout. Use it for one row per token that another layer made,
 * such as a vector of the characters of each word. Reals or ints. Errors: not one row for each
 * token; rows that weft_plain returned for another layout. */
WEFT_API weft_tensor *weft_ragged_rows(weft_tensor *plain, weft_tensor *like);
/* Per sequence b after a; both have the same number of sequences, ids are a's. */
WEFT_API weft_tensor *weft_concat_sequences(weft_tensor *a, weft_tensor *b);
/* The parts of a joined tensor again: the first lengths.len[s] tokens of each sequence, and the
 * rest. */
WEFT_API void weft_split_sequences(weft_tensor *joined, const weft_lengths *first, weft_tensor **a,
                                   weft_tensor **b);
/* [n, ..] to every token of its sequence, in like's batch and layout. Reals or ints. */
WEFT_API weft_tensor *weft_broadcast_to_tokens(weft_tensor *per_sequence, weft_tensor *like);
/* From the tokens of each sequence one row [n, ..]; an empty sequence gives 0. Ints have all but
 * the mean. */
typedef enum {
    WEFT_POOL_SUM,
    WEFT_POOL_MEAN,
    WEFT_POOL_MAX,
    WEFT_POOL_FIRST,
    WEFT_POOL_LAST
} weft_pooling;
WEFT_API weft_tensor *weft_pool(weft_tensor *ragged, weft_pooling how);
/* Copies the numbers of a ragged tensor to host memory of exactly bytes bytes, sequence by sequence
 * in the user's order, whatever its layout, without the pads of rows; a plain one as weft_read, and
 * so is all else: it waits, errors are the context's, out is zeros then. */
WEFT_API void weft_read_sequences(const weft_tensor *x, void *out, size_t bytes);

/* ---- attention between ragged tensors ---- *
 * softmax(scale q k^T) v within each sequence, for every head. q [Nq, heads * dk], k [Nk, heads *
 * dk], v [Nk, heads * dv]; their batches have the same number of sequences. scale 0: 1 / sqrt(dk).
 * With shared_values all heads have the same values, v [Nk, dv]; with mean_heads, too, the result
 * is the mean of what they see, [Nq, dv] (the interpretable attention of Lim et al. 2021, eq. 14).
 * A query without keys gives 0. map, if not NULL, is set to the weights [Nq * ., heads]: a ragged
 * tensor, one sequence for each query row in concat order, one token for each of its keys.
 *
 * Of the Lk keys of its sequence query i of Lq sees all, or those with j <= i (top left), j <= i +
 * Lk - Lq (bottom right), or j < i + Lk - Lq (strict: with keys [encoder; decoder] step i of the
 * decoder sees the encoder and the steps before it).
 *
 * In training each weight becomes 0 with probability dropout and is divided by 1 - dropout
 * otherwise, in the map, too. The mask is that of weft_dropout under `name`, of tokens that are the
 * queries and columns that are the keys, and each head has one of its own: a function of (seed,
 * name, number of the step, how many-th call of that name in the step, id of the query's sequence,
 * head, i, j). */
typedef enum {
    WEFT_ALL_KEYS,
    WEFT_CAUSAL_TOP_LEFT,
    WEFT_CAUSAL_BOTTOM_RIGHT,
    WEFT_CAUSAL_STRICT
} weft_causal;
typedef struct {
    int heads; double scale; weft_causal causal; bool shared_values, mean_heads;
    double dropout; const char *name;             /* 0 <= dropout < 1; above 0 a name is expected */
} weft_attention_opts;
WEFT_API weft_tensor *weft_attention(weft_tensor *q, weft_tensor *k, weft_tensor *v,
                                     const weft_attention_opts *opts, weft_tensor **map);
/* All pairs of a query and a key of the same sequence as a ragged batch: one sequence for each
 * query row (concat order), one token for each of its keys. The rows of q (spread) and of k
 * (gathered) for every pair. */
WEFT_API void weft_pairs(weft_tensor *q, weft_tensor *k, weft_tensor **q_of_pair,
                         weft_tensor **k_of_pair);

/* ---- gradients ---- */
/* Walks the tape back from a loss, a tensor of one element, and adds into the gradients of all
 * parameters that have led to it and are not frozen. If there is none, and a second time of the
 * same tensor, it is an error; of another loss that shares operators it is none. */
WEFT_API void weft_backward(weft_tensor *loss);
/* The gradient of a parameter, a tensor of its shape that lives as long; NULL of anything else. */
WEFT_API weft_tensor *weft_grad(weft_tensor *parameter);
/* Computes the gradient of the sum of `of`, a tensor of any shape, by each of n tensors into
 * out[i]; zeros where `of` does not depend on by[i]. The results are constants of the step, as from
 * torch.autograd.grad: the walk is not recorded, so it takes the fused kernels and little memory,
 * and a loss made of the results has no gradient through them. by: tensors of this step or
 * parameters; their own gradients do not change. out may be by itself. Paths inside a fused layer
 * are not visible: see weft_rnn_run on gradients by y.
 * Errors: `of` is neither on the tape nor one of by. */
WEFT_API void weft_gradients(weft_tensor *of, weft_tensor *const *by, int64_t n,
                             weft_tensor **out);
/* Computes the same gradients and records the walk on the tape, also under WEFT_NO_GRAD, so that
 * they can be differentiated again (gradient penalties, second derivatives), as
 * torch.autograd.grad(.., create_graph=True) does. It runs without fused kernels: attention over
 * 512 tokens takes 200 times the time and 400 times the memory. */
WEFT_API void weft_gradients_recorded(weft_tensor *of, weft_tensor *const *by, int64_t n,
                                      weft_tensor **out);
/* The same numbers as a constant: no gradient goes back through it. */
WEFT_API weft_tensor *weft_detach(weft_tensor *x);
/* The largest difference between the gradients of f (a scalar) at x and central differences,
 * relative to max(1, size of the gradient); gradients by operators and by fused kernels both. order
 * 1: of f; 2: of a fixed combination of its gradients, so second derivatives. NaN on error. Meant
 * for the double library. */
WEFT_API double weft_gradcheck(weft_tensor *(*f)(weft_tensor *const *x, void *user),
                               weft_tensor *const *x, int64_t n, int order, void *user);

/* ---- looking at the tape ---- */
/* Calls fn with every result as it is made, in the backward pass too; NULL: no function. fn may
 * read y (weft_print, weft_item, weft_read, weft_read_sequences). It should apply no operators, and
 * it cannot end the step: see weft_clear.
 * An operator shows its first result, so a fused recurrent layer shows h of all tokens, once, and
 * its gates not at all: weft_rnn_set_composed makes every gate of every step a result. */
WEFT_API void weft_on_result(
    weft *w, void (*fn)(const weft_tensor *y, const char *operator_name, void *user), void *user);
/* Prints the tape, an entry a line, or several where it has more than 100 columns:
 *     %4 = slice(%3, axis=1, from=0, to=2) -> [5, 2] packed
 * its number; the operator; where its inputs come from: results of other entries by number ("%3.1":
 * the second result of %3), parameters and buffers by path, what the program gave or detached as
 * given0, given1, .., these with shape where they are named first; the operator's attributes; shape
 * and layout of its result. Of one element the number stands there, too (the device is waited
 * for). */
WEFT_API void weft_print_tape(FILE *file, const weft *w);

#ifdef __cplusplus
}
#endif
#endif
