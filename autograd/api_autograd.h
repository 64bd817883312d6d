/* api_autograd.h - operators and gradients. Authors of operators also need api_op.h.
 *
 * An operator takes tensors of the step, parameters or buffers, and returns a new tensor, which the
 * step owns. On error, also for NULL, it fails the context and returns an inert tensor
 * (api_core.h). The tape remembers the inputs, so they are not const. Inputs are reals unless a
 * comment allows ints; ints never have a gradient. Axes count from 0, or from the end if negative.
 *
 * Every operator takes ragged tensors. The ragged tensors of one call must belong to one batch (the
 * same lengths, ids and offsets). The result has the layout of the first one, except that ROWS
 * gives CONCAT, without pads. Operators along axis 0 and attention also give CONCAT. Views
 * (weft_reshape, weft_detach) keep ROWS. In operators that broadcast, a plain operand next to a
 * ragged one lacks axis 0 or has the extent 1 on axis 0. Next to a ragged [N, F] it is [F], [1, F]
 * or a number; a plain [N, F] is an error. */
#ifndef WEFT_API_AUTOGRAD_H
#define WEFT_API_AUTOGRAD_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pointwise ---- */
/* Applies the function to each real of x; the result has x's shape. Ints are an error (use
 * weft_to_reals). Like the torch functions of these names. */
WEFT_API weft_tensor *weft_neg(weft_tensor *x);         /* -x */
WEFT_API weft_tensor *weft_exp(weft_tensor *x);         /* e^x; infinity on overflow */
WEFT_API weft_tensor *weft_log(weft_tensor *x);         /* natural; -infinity at 0, NaN below 0 */
WEFT_API weft_tensor *weft_sqrt(weft_tensor *x);        /* NaN below 0 */
WEFT_API weft_tensor *weft_rsqrt(weft_tensor *x);       /* 1 / sqrt(x); infinity at 0, NaN below */
WEFT_API weft_tensor *weft_square(weft_tensor *x);      /* x^2 */
WEFT_API weft_tensor *weft_abs(weft_tensor *x);         /* |x|, with the gradient 0 at 0 */
WEFT_API weft_tensor *weft_sin(weft_tensor *x);         /* x in radians */
WEFT_API weft_tensor *weft_cos(weft_tensor *x);         /* x in radians */
/* Returns 1 / x; 0 (torch: infinity) with gradient 0 where x is 0. Like torch.reciprocal. */
WEFT_API weft_tensor *weft_reciprocal(weft_tensor *x);
/* Applies the activation to each real; ints are an error. Like those of torch.nn.functional. */
WEFT_API weft_tensor *weft_tanh(weft_tensor *x);
WEFT_API weft_tensor *weft_sigmoid(weft_tensor *x);     /* 1 / (1 + e^-x) */
WEFT_API weft_tensor *weft_relu(weft_tensor *x);        /* max(x, 0), with the gradient 0 at 0 */
WEFT_API weft_tensor *weft_silu(weft_tensor *x);        /* x sigmoid(x) */
WEFT_API weft_tensor *weft_softplus(weft_tensor *x);    /* log(1 + e^x) */
/* Returns x * P(Z <= x) for a standard normal Z, by erf. Like torch.nn.functional.gelu. */
WEFT_API weft_tensor *weft_gelu(weft_tensor *x);
/* Returns x where it is above 0, otherwise slope * x. Like torch.nn.functional.leaky_relu. */
WEFT_API weft_tensor *weft_leaky_relu(weft_tensor *x, double slope);
/* Returns x where it is above 0, otherwise alpha * (e^x - 1). Like torch.nn.functional.elu. */
WEFT_API weft_tensor *weft_elu(weft_tensor *x, double alpha);
/* Limits each element to low .. high; NaN stays NaN. The gradient is 1 from low to high, otherwise
 * 0. -INFINITY and INFINITY mean no limit. Errors: low above high, or NaN. Like torch.clamp. */
WEFT_API weft_tensor *weft_clamp(weft_tensor *x, double low, double high);
/* Returns x^exponent; NaN for an x below 0 and an exponent with a fraction. Like torch.pow. */
WEFT_API weft_tensor *weft_pow(weft_tensor *x, double exponent);
/* Multiplies each real by the constant factor, rounded to weft_real. Like x * factor. */
WEFT_API weft_tensor *weft_scale(weft_tensor *x, double factor);

/* Computes a + b, a - b, a * b or a / b; the operands broadcast as in NumPy. a and b are both
 * reals, or both ints except for weft_div. Ints give ints; a result that does not fit an int32
 * wraps around. Division by 0 gives infinity or NaN. Like + - * / of torch. */
WEFT_API weft_tensor *weft_add(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_sub(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_mul(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_div(weft_tensor *a, weft_tensor *b);
/* Returns the smaller or the larger of two operands, element by element. a and b broadcast and are
 * both reals or both ints. NaN if one is NaN. Two equal elements each get half of the gradient.
 * Like torch.minimum and torch.maximum. */
WEFT_API weft_tensor *weft_minimum(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_maximum(weft_tensor *a, weft_tensor *b);

/* ---- comparisons ---- */
/* Returns reals: 1 where the comparison of a with b holds, otherwise 0. No gradient. The operands
 * are both reals or both ints, and broadcast as in NumPy. With NaN only weft_not_equal gives 1.
 * Like torch.lt, torch.le, torch.gt, torch.ge, torch.eq and torch.ne. */
WEFT_API weft_tensor *weft_less(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_less_equal(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_greater(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_greater_equal(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_equal(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_not_equal(weft_tensor *a, weft_tensor *b);
/* Selects a where the condition (reals or ints) is not 0, otherwise b. All three broadcast; a and b
 * are both reals or both ints. NaN or infinity in an element that is not selected changes neither
 * result nor gradients: its gradient is 0. Pointwise operators, softmax and layer norm pass this 0
 * on as 0, even if their derivative is infinite or NaN there. Like torch.where. */
WEFT_API weft_tensor *weft_where(weft_tensor *condition, weft_tensor *a, weft_tensor *b);
/* Converts ints to reals by a copy; reals are an error. No gradient. A float holds whole numbers up
 * to 2^24 exactly and rounds larger ones, which WEFT_CHECK=1 reports once. Like x.float(). */
WEFT_API weft_tensor *weft_to_reals(weft_tensor *ints);
/* Rounds reals to ints, halves to the even number; no gradient. Errors: NaN, and numbers that do
 * not fit an int32; the message has their place. Like x.round().int(). */
WEFT_API weft_tensor *weft_to_ints(weft_tensor *x);

/* ---- matrix products ---- */
/* Multiplies a [.., m, k] by b [.., k, n] to [.., m, n]; reals of rank 2 or more. A plain b [k, n]
 * multiplies every matrix of a; a may be ragged, [N, k]. A plain a [m, k] multiplies every matrix
 * of a plain b. Otherwise leading axes must be equal; they do not broadcast. Errors: a ragged b of
 * rank 2. Like torch.matmul. */
WEFT_API weft_tensor *weft_matmul(weft_tensor *a, weft_tensor *b);
/* Multiplies as weft_matmul after exchanging the last two axes of a if ta, and of b if tb. With ta
 * alone, ragged a [N, m] and b [N, n] of one batch give a plain [m, n], summed over all tokens.
 * Like torch.matmul(a.mT, b). */
WEFT_API weft_tensor *weft_matmul_with(weft_tensor *a, bool ta, weft_tensor *b, bool tb);

/* ---- sums and extremes ---- *
 * They reduce one axis and remove it; weft_topk and weft_cumsum keep it. Axis 0 of a ragged
 * tensor is an error, except in weft_cumsum: weft_pool reduces within each sequence; weft_sum_all
 * and weft_mean_all, or weft_plain before the operator, reduce over all tokens. */
/* Sums or averages the elements along an axis; 0 if the axis is empty (torch: a mean of NaN).
 * weft_sum of ints returns ints; a sum that does not fit an int32 wraps around. Errors: axis 0
 * of a ragged tensor (see weft_pool); weft_mean of ints. Like torch.sum and torch.mean. */
WEFT_API weft_tensor *weft_sum(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_mean(weft_tensor *x, int axis);
/* Returns the largest or the smallest element along an axis, reals or ints; NaN if one is NaN. Of
 * equal elements the first gets the gradient. Errors: an empty axis; axis 0 of a ragged tensor.
 * Like torch.amax, torch.amin. */
WEFT_API weft_tensor *weft_max(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_min(weft_tensor *x, int axis);
/* Returns the index along an axis of the largest (weft_argmax) or the smallest (weft_argmin) real,
 * as ints. Of equal elements it is the first; if there is a NaN, the first NaN. No gradient.
 * Errors: ints; an empty axis; axis 0 of a ragged tensor. Like torch.argmax and torch.argmin. */
WEFT_API weft_tensor *weft_argmax(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_argmin(weft_tensor *x, int axis);
/* Computes the variance along an axis (weft_var) or its square root (weft_std). The variance of n
 * elements is the sum of (x - mean)^2 divided by n - correction. correction, 0 or more: 1 as
 * PyTorch, 0 as NumPy. If n - correction is 0 or less, the result is 0 (PyTorch: NaN). A deviation
 * of 0 has the gradient 0. Like torch.var, torch.std. */
WEFT_API weft_tensor *weft_var(weft_tensor *x, int axis, double correction);
WEFT_API weft_tensor *weft_std(weft_tensor *x, int axis, double correction);
/* Computes the norm along an axis. power 2 (or 0): the root of the sum of squares, without overflow
 * or underflow on the way; 1: the sum of absolute values; INFINITY: the largest absolute value. The
 * norm of an empty axis is 0. Where the norm is 0 its derivatives are 0.
 * Errors: another power; axis 0 of a ragged tensor. Like torch.linalg.vector_norm. */
WEFT_API weft_tensor *weft_vector_norm(weft_tensor *x, int axis, double power);
/* Finds the k largest reals along an axis, 0 <= k <= its extent, in descending order; ties by
 * position, NaN first. *values has x's shape with the extent k on that axis, *indices (ints of this
 * shape) positions along that axis. Gradients go through *values. values or indices may be NULL; on
 * error both results are inert. Errors: ints; axis 0 of a ragged tensor. Like torch.topk. */
WEFT_API void weft_topk(weft_tensor *x, int64_t k, int axis, weft_tensor **values,
                        weft_tensor **indices);
/* Sums or averages all reals of x to a tensor of rank 0, without the pads of the layout ROWS. No
 * elements give 0. Errors: ints. Like x.sum() and x.mean(). */
WEFT_API weft_tensor *weft_sum_all(weft_tensor *x);
WEFT_API weft_tensor *weft_mean_all(weft_tensor *x);
/* Computes y_i = x_0 + .. + x_i along an axis; along axis 0 of a ragged tensor within each
 * sequence. Errors: ints. Like torch.cumsum. */
WEFT_API weft_tensor *weft_cumsum(weft_tensor *x, int axis);

/* ---- softmax, layer norm, dropout ---- */
/* Computes softmax, or its logarithm, along an axis; along axis 0 of a ragged tensor over the
 * tokens of each sequence. mask: NULL, or reals of x's shape; the mask does not broadcast. Where
 * the mask is 0 the element is left out: its result and gradient are 0, also in weft_log_softmax
 * (torch: -infinity). A fully masked row is all 0. Like torch.softmax and torch.log_softmax. */
WEFT_API weft_tensor *weft_softmax(weft_tensor *x, int axis, weft_tensor *mask);
WEFT_API weft_tensor *weft_log_softmax(weft_tensor *x, int axis, weft_tensor *mask);
/* Computes log(sum(exp(x))) along an axis and removes the axis. Along axis 0 of a ragged tensor the
 * result is plain, [sequences, ..] in the user's order. mask: NULL, or reals of x's shape, 0 =
 * excluded. A row that is empty or fully masked gives -infinity. Like torch.logsumexp. */
WEFT_API weft_tensor *weft_logsumexp(weft_tensor *x, int axis, weft_tensor *mask);
/* Computes (x - mean) / sqrt(variance + eps) over the last axis, times gain plus shift. gain and
 * shift: [extent of that axis] each, or both NULL. eps 0: 1e-5; WEFT_ZERO: 0. Ba et al. 2016. Like
 * torch.nn.functional.layer_norm. */
WEFT_API weft_tensor *weft_layer_norm(weft_tensor *x, weft_tensor *gain, weft_tensor *shift,
                                      double eps);
/* Zeroes each element with probability p, 0 <= p < 1, and divides the others by 1 - p. With p = 0,
 * or outside training, it returns x itself. name is required. The mask is a function of seed, name,
 * number of the step, number of the call with this name in the step, sequence id, position, and
 * index in the row. So two calls of one name have different masks; layout, neighbours and threads
 * do not matter. per_sequence: all positions of a sequence have the same mask. Each index of axis 0
 * of a plain tensor is a sequence of one token, so per_sequence changes nothing there. Errors:
 * rank 0. Like torch.nn.functional.dropout. */
WEFT_API weft_tensor *weft_dropout(weft_tensor *x, double p, const char *name, bool per_sequence);

/* ---- shapes: reals or ints ---- */
/* Returns the same numbers in another shape, as a view without a copy. One extent may be -1: it
 * follows from the others. A ragged tensor keeps its layout and rows, pads of ROWS included, so
 * shape[0] must be weft_size(x, 0) or -1. Errors: another number of elements. Like x.reshape. */
WEFT_API weft_tensor *weft_reshape(weft_tensor *x, int rank, const int64_t *shape);
/* Exchanges two axes, by a copy. Errors: axis 0 of a ragged tensor. Like x.transpose. */
WEFT_API weft_tensor *weft_transpose(weft_tensor *x, int axis, int other);
/* Reorders the axes, by a copy: axis i of the result is axis axes[i] of x. axes: [rank of x], each
 * once. The rows of a ragged tensor stay axis 0. Like x.permute. */
WEFT_API weft_tensor *weft_permute(weft_tensor *x, const int *axes);
/* Joins n tensors (WEFT_LIST), one or more, along an axis, by a copy; their other extents and types
 * are equal. Errors: axis 0 of ragged tensors (see weft_concat_sequences). Like torch.cat. */
WEFT_API weft_tensor *weft_concat(weft_tensor *const *x, int64_t n, int axis);
/* Joins n tensors (WEFT_LIST) of one shape and type, rank 0 .. 5, along a new axis, by a copy. axis
 * is an axis of the result, -1 its last. Errors: axis 0 with ragged tensors. Like torch.stack. */
WEFT_API weft_tensor *weft_stack(weft_tensor *const *x, int64_t n, int axis);
/* Copies elements from .. to - 1 along an axis. A negative from or to counts from the end, -1 being
 * the last; `to` weft_size(x, axis) is the end. Errors: a position before 0 or after the end
 * (Python cuts); to before from; axis 0 of a ragged tensor. Like x[.., from:to]. */
WEFT_API weft_tensor *weft_slice(weft_tensor *x, int axis, int64_t from, int64_t to);
/* Reverses an axis by a copy; axis 0 of a ragged tensor within each sequence. Like torch.flip. */
WEFT_API weft_tensor *weft_flip(weft_tensor *x, int axis);
/* Repeats x along an axis, 0 times or more: 1 2 1 2. Errors: a rank other than 1 .. 5; axis 0 of a
 * ragged tensor. Like torch.tile. */
WEFT_API weft_tensor *weft_tile(weft_tensor *x, int axis, int64_t times);
/* Repeats each element along an axis, 0 times or more: 1 1 2 2. Errors: a rank other than 1 .. 5;
 * axis 0 of a ragged tensor. Like torch.repeat_interleave. */
WEFT_API weft_tensor *weft_repeat_interleave(weft_tensor *x, int axis, int64_t times);

/* ---- by index ---- */
/* Copies rows of a plain table [rows, ..], reals or ints, by an index of ints of any shape. Table
 * [rows, F] with index [n, T] gives [n, T, F]. The result is ragged if the index is. Index -1 gives
 * a row of 0. Gradients of a row that occurs twice are summed in a fixed order. Errors: another
 * index outside 0 .. rows - 1; the message has its position. Like torch.index_select and
 * torch.nn.functional.embedding. */
WEFT_API weft_tensor *weft_index_select(weft_tensor *table, weft_tensor *index);
/* Makes a plain table [rows, ..] of zeros and adds row r of x, reals, to row index[r] of the table.
 * index: an int for each row of x, ragged if x is; -1 leaves the row out. Errors: another index
 * outside 0 .. rows - 1. Like torch.index_add on zeros. */
WEFT_API weft_tensor *weft_index_add(weft_tensor *x, weft_tensor *index, int64_t rows);
/* Takes one element from each row of the last axis: x [.., width] reals, column [..] ints, result
 * [..]. Column -1 gives 0. Errors: another column outside 0 .. width - 1. Like torch.gather. */
WEFT_API weft_tensor *weft_gather(weft_tensor *x, weft_tensor *column);
/* Makes reals [.., classes], 0 and 1, from class_ [..], ints from 0. A negative class gives zeros.
 * No gradient. Errors: a class of `classes` or above; classes below 1. Like
 * torch.nn.functional.one_hot. */
WEFT_API weft_tensor *weft_one_hot(weft_tensor *class_, int64_t classes);

/* ---- ragged batches; weft_op.h has more ---- */
/* Packs a padded tensor [n, T, ..], reals or ints, to a ragged copy [N, ..] in the layout PACKED; N
 * is the sum of the lengths. align: side of the data in each row of padded. Pads are not read.
 * Errors: not n lengths, or one outside 0 .. T; the message names the sequence. Like
 * torch.nn.utils.rnn.pack_padded_sequence, with lengths in any order. */
WEFT_API weft_tensor *weft_pack_padded_sequence(weft_tensor *padded, const weft_lengths *lengths,
                                                weft_align align);
/* Pads a ragged tensor, reals or ints, to a plain [n, T, ..] in the user's order by a copy. total:
 * T, at least the longest length; 0: the longest length. Pads get the value `fill`. align: side of
 * the data in each row. Like torch.nn.utils.rnn.pad_packed_sequence. */
WEFT_API weft_tensor *weft_pad_packed_sequence(weft_tensor *ragged, int64_t total, double fill,
                                               weft_align align);
/* Returns the rows of a ragged tensor as a plain tensor [N, ..] in the order of its layout, without
 * a copy. From the layout ROWS the result has the pads, which are 0. Returns a plain tensor as it
 * is. Like packed.data. */
WEFT_API weft_tensor *weft_plain(weft_tensor *ragged);
/* Makes a ragged tensor of like's batch and layout from plain rows [weft_size(like, 0), ..] in
 * like's order, pads of ROWS included, as a view. Use it for rows of weft_plain, also after
 * operators that keep each row in its place, such as weft_linear_run: weft remembers the order
 * through them. Rows that never were ragged, or that were reordered or joined along axis 0, count
 * as rows in the user's order, which is that of CONCAT. For these use weft_ragged_rows. Errors:
 * another number of rows; rows that count as in another order than like's, such as those of
 * weft_reals if like is PACKED. If like is CONCAT, weft cannot detect rows that you reordered. */
WEFT_API weft_tensor *weft_ragged_like(weft_tensor *plain, weft_tensor *like);
/* How weft_pool reduces the tokens of a sequence; FIRST and LAST select that token. */
typedef enum { WEFT_POOL_SUM, WEFT_POOL_MEAN, WEFT_POOL_MAX, WEFT_POOL_FIRST, WEFT_POOL_LAST }
    weft_pooling;
/* Reduces the tokens of each sequence to one row. The result is plain, [n, ..], in the user's
 * order. Takes reals or ints. An empty sequence gives 0. Errors: a plain tensor; a mean of ints. */
WEFT_API weft_tensor *weft_pool(weft_tensor *ragged, weft_pooling how);
/* Copies a ragged tensor of any layout to host memory, sequence by sequence in the user's order,
 * without pads. bytes must be the size of these rows. Copies a plain tensor as weft_read does.
 * Waits for the device. On error, such as other bytes, fills out with zeros, fails the context. */
WEFT_API void weft_read_sequences(const weft_tensor *x, void *out, size_t bytes);

/* ---- attention between ragged tensors ---- */
/* Keys that query i of a sequence sees, of its keys j = 0 .. Lk - 1; the sequence has Lq queries.
 * ALL_KEYS: all. TOP_LEFT: j <= i. BOTTOM_RIGHT: j <= i + Lk - Lq, so the last query sees all keys.
 * STRICT: j < i + Lk - Lq. Let the keys be those of an encoder followed by those of a decoder. With
 * STRICT, step i of the decoder then sees the whole encoder and the decoder's steps before i. */
typedef enum { WEFT_ALL_KEYS, WEFT_CAUSAL_TOP_LEFT, WEFT_CAUSAL_BOTTOM_RIGHT, WEFT_CAUSAL_STRICT }
    weft_causal;
typedef struct {
    int heads;                                   /* 0: 1 */
    double scale;                                /* 0: 1 / sqrt(dk) */
    weft_causal causal;                          /* 0: all keys */
    bool shared_values;                          /* v is [Nk, dv], the same for all heads */
    /* The result is the mean over the heads, [Nq, dv] (Lim et al. 2021, eq. 14). Requires
     * shared_values. */
    bool mean_heads;
    double dropout;                              /* of the weights, 0 <= p < 1 */
    const char *name;                            /* as in weft_dropout; required if dropout > 0 */
} weft_attention_opts;
/* Computes softmax(scale q k^T) v within each sequence, for every head. q [Nq, heads * dk], k [Nk,
 * heads * dk] and v [Nk, heads * dv] are ragged reals. k and v belong to one batch. q may belong to
 * another batch with the same number of sequences. The result is [Nq, heads * dv] of q's batch, in
 * the layout CONCAT. opts NULL: one head, all keys. A query without keys gives a row of 0. map:
 * NULL, or *map is set to the weights [P, heads] of all P pairs of a query and a key of its
 * sequence, 0 for hidden keys. *map is ragged, with one sequence for each query row in CONCAT order
 * and one token for each key. A gradient goes through *map. On error *map is inert. While training,
 * dropout zeroes each weight with probability p and divides the others by 1 - p, also in the map.
 * Its mask is that of weft_dropout under `name`, where tokens are queries and columns are keys;
 * each head has its own mask. Errors: a width that heads does not divide. Like
 * torch.nn.functional.scaled_dot_product_attention. */
WEFT_API weft_tensor *weft_attention(weft_tensor *q, weft_tensor *k, weft_tensor *v,
                                     const weft_attention_opts *opts, weft_tensor **map);

/* ---- gradients ---- */
/* Walks the tape back from a loss, a tensor of one real, and adds to the gradients of all trainable
 * parameters that contributed. weft_zero_grad zeroes gradients. Two losses may share operators.
 * Errors: no trainable parameter contributes; a second call for one loss. Like loss.backward(). */
WEFT_API void weft_backward(weft_tensor *loss);
/* Returns the gradient of a parameter, a tensor of the parameter's shape and lifetime. It is zeros,
 * not NULL, before the first weft_backward. NULL for any other tensor and for NULL. Like p.grad. */
WEFT_API weft_tensor *weft_grad(weft_tensor *parameter);
/* Computes the derivative of the sum of all elements of `of`, a tensor of any shape, with respect
 * to each tensor by[i], i below n, into out[i], of by[i]'s shape; zeros if `of` does not depend on
 * by[i]. The results are constants of the step: no gradient goes through them. by: tensors of this
 * step, parameters (frozen ones too) or buffers; weft_grad of a parameter does not change. out may
 * be the array by. On error every out[i] is inert. Calls for one `of` may be repeated, before and
 * after weft_backward. If by[i] is the output y of a recurrent layer, out[i] counts only the
 * operators that read y. It leaves out that the layer itself passes y_t on to later tokens. Errors:
 * `of` is neither on the tape nor one of by. Like torch.autograd.grad. */
WEFT_API void weft_gradients(weft_tensor *of, weft_tensor *const *by, int64_t n,
                             weft_tensor **out);
/* Returns the same numbers, reals or ints, as a constant: no gradient goes through the result. The
 * result is a view: if x is a parameter, it changes with x. For a copy detach weft_scale(x, 1).
 * Like x.detach(). */
WEFT_API weft_tensor *weft_detach(weft_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
