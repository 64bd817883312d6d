/* op_cases.h - every operator as a function of its real inputs, with the shapes and ranges on which its
 * gradients are checked.
 *
 * A shape is a string: letters are extents drawn anew each round, digits are themselves, '~' before it makes
 * the tensor ragged (its first letter is then the tokens of the round's batch, in a layout drawn anew), '='
 * the same with the second batch. */
#ifndef WEFT_OP_CASES_H
#define WEFT_OP_CASES_H
#include "tests/check.h"
#include "autograd/op.h"

typedef weft_tensor *function(weft_tensor *const *x, void *user);
/* orders: 2 with second derivatives */
typedef struct {
    const char *name;
    function *f;
    const char *shapes[4];
    double low, high;
    int orders;
} op_case;

static weft_tensor *positive(weft_tensor *x) { return weft_greater(x, weft_scalar(weft_context_of(x), 0)); }
static weft_tensor *attend(weft_tensor *const *x, int heads, weft_causal causal)
{
    return weft_attention(x[0], x[1], x[1], &(weft_attention_opts){ .heads = heads, .causal = causal }, NULL);
}

#define F(name, body)                                               \
    static weft_tensor *f_##name(weft_tensor *const *x, void *user) \
    {                                                               \
        (void)user;                                                 \
        return body;                                                \
    }
F(neg, weft_neg(x[0])) F(exp, weft_exp(x[0])) F(log, weft_log(x[0])) F(sqrt, weft_sqrt(x[0]))
F(rsqrt, weft_rsqrt(x[0])) F(square, weft_square(x[0])) F(abs, weft_abs(x[0]))
F(reciprocal, weft_reciprocal(x[0]))
F(sin, weft_sin(x[0])) F(cos, weft_cos(x[0])) F(tanh, weft_tanh(x[0])) F(sigmoid, weft_sigmoid(x[0]))
F(relu, weft_relu(x[0])) F(silu, weft_silu(x[0])) F(softplus, weft_softplus(x[0])) F(gelu, weft_gelu(x[0]))
F(leaky, weft_leaky_relu(weft_neg(x[0]), (weft_real).2))        F(elu, weft_elu(x[0], (weft_real)1.3))
F(clamp, weft_clamp(x[0], -1, 1)) F(pow, weft_pow(x[0], (weft_real)2.5))
F(scale, weft_scale(x[0], (weft_real)-1.7))
F(add, weft_add(x[0], x[1])) F(sub, weft_sub(x[0], x[1])) F(mul, weft_mul(x[0], x[1]))
F(div, weft_div(x[0], x[1]))
F(minimum, weft_minimum(x[0], x[1])) F(maximum, weft_maximum(x[0], x[1])) F(same, weft_mul(x[0], x[0]))
F(twice, weft_add(x[0], weft_tanh(x[0])))
F(where, weft_where(weft_greater(x[0], x[1]), x[1], weft_square(x[2])))
F(matmul, weft_matmul(x[0], x[1])) F(matmul_ta, weft_matmul_with(x[0], true, x[1], false))
F(matmul_tb, weft_matmul_with(x[0], false, x[1], true)) F(matmul_tt, weft_matmul_with(x[0], true, x[1], true))
F(sum0, weft_sum(x[0], 0)) F(sum1, weft_sum(x[0], 1)) F(mean, weft_mean(x[0], -1))
/* over all tokens: pads of the layout rows are no tokens */
static weft_tensor *tokens_of(weft_tensor *x) { return weft_plain(weft_to_layout(x, WEFT_CONCAT)); }
F(sum_tokens, weft_sum(tokens_of(x[0]), 0)) F(mean_tokens, weft_mean(tokens_of(x[0]), 0))
F(var, weft_var(x[0], 1, 1)) F(var0, weft_var(x[0], 0, .5)) F(var_all, weft_var(x[0], -1, 0))
F(var_of_one, weft_add(weft_var(x[0], 1, 1), weft_sum(weft_square(x[0]), 1)))
F(std, weft_std(x[0], -1, 0)) F(std1, weft_std(x[0], 1, 1))
F(std_of_one, weft_add(weft_std(x[0], 1, 1), weft_sum(weft_square(x[0]), 1)))
F(norm, weft_vector_norm(x[0], -1, 2)) F(norm0, weft_vector_norm(x[0], 0, 0))
F(norm1, weft_vector_norm(x[0], 1, 1))
F(sum_all, weft_sum_all(weft_square(x[0]))) F(mean_all, weft_mean_all(weft_square(x[0])))
F(max, weft_max(x[0], 1))                           F(max0, weft_max(x[0], 0))
F(min, weft_min(x[0], 1))                           F(min0, weft_min(x[0], 0))
static weft_tensor *best_of(weft_tensor *x, int64_t k, int axis)
{
    weft_tensor *values;
    weft_topk(x, k, axis, &values, NULL);
    return weft_mul(values, values);
}
F(topk, best_of(x[0], 2, -1)) F(topk1, best_of(x[0], 1, 1)) F(topk0, best_of(x[0], weft_size(x[0], 0), 0))
F(cumsum, weft_cumsum(x[0], 1)) F(cumsum0, weft_cumsum(x[0], 0)) F(flip, weft_flip(x[0], 1))
F(flip0, weft_flip(x[0], 0))
F(softmax, weft_softmax(x[0], -1, NULL)) F(softmax0, weft_softmax(x[0], 0, NULL))
F(log_softmax, weft_log_softmax(x[0], 1, NULL))
F(log_softmax0, weft_log_softmax(x[0], 0, NULL)) F(logsumexp, weft_logsumexp(x[0], -1, NULL))
F(logsumexp1, weft_logsumexp(x[0], 1, NULL))
F(softmax_masked, weft_softmax(x[0], -1, positive(x[1])))
F(softmax_masked0, weft_softmax(x[0], 0, positive(x[1])))
F(log_softmax_masked1, weft_log_softmax(x[0], -1, positive(x[1])))
F(log_softmax_masked, weft_log_softmax(x[0], 0, positive(x[1])))
F(layer_norm, weft_layer_norm(x[0], x[1], x[2], (weft_real)1e-5))
F(layer_norm_bare, weft_layer_norm(x[0], NULL, NULL, (weft_real)1e-2))
F(gate_norm, weft__gate_norm_of(x[0], x[1], x[2], x[3], 1e-2))
F(norm_of_groups, weft__layer_norm_of_groups(x[0], x[1], x[2], 1e-2))
F(linear, weft__linear(x[0], x[1], x[2], WEFT__UNARIES, 0))
F(linear_bare, weft__linear(x[0], x[1], NULL, WEFT__UNARIES, 0))
F(linear_tanh, weft__linear(x[0], x[1], x[2], WEFT__tanh, 0))
F(linear_sigmoid, weft__linear(x[0], x[1], NULL, WEFT__sigmoid, 0))
F(linear_elu, weft__linear(x[0], x[1], x[2], WEFT__elu, 1))
F(linear_leaky, weft__linear(x[0], x[1], x[2], WEFT__leaky_relu, (weft_real).2))
F(glu, weft__glu(x[0]))          F(linear_same, weft__linear(x[0], x[0], NULL, WEFT__tanh, 0))
F(reshape, weft_tanh(weft_reshape(x[0], 1, (int64_t[]){ -1 })))
F(reshape_rows, weft_reshape(x[0], 3, (int64_t[]){ weft_size(x[0], 0), 1, -1 }))
F(transpose, weft_transpose(x[0], 0, 2))                        F(transpose_rows, weft_transpose(x[0], 1, 2))
F(concat, weft_concat((weft_tensor *[]){ x[0], x[1], x[0] }, 3, 1))
F(concat0, weft_concat((weft_tensor *[]){ x[0], x[1] }, 2, 0))
F(slice, weft_slice(x[0], 1, 1, 3))
F(slices, weft_mul(weft_slice(x[0], -1, 0, 2), weft_slice(x[0], -1, -2, 3)))
F(permute, weft_permute(x[0], (int[]){ 2, 0, -1, 1 }))
F(permute_rows, weft_permute(x[0], (int[]){ 0, -1, 1 }))
F(stack, weft_stack((weft_tensor *[]){ x[0], x[1], x[0] }, 3, 1))
F(stack_last, weft_stack((weft_tensor *[]){ x[0], x[1] }, 2, -1))
F(repeat_interleave, weft_repeat_interleave(x[0], 1, 3))
F(repeat_interleave0, weft_repeat_interleave(x[0], 0, 2))
F(tile, weft_tile(x[0], 1, 3))                              F(tile0, weft_tile(x[0], 0, 2))
F(pool_sum, weft_pool(x[0], WEFT_POOL_SUM))                     F(pool_mean, weft_pool(x[0], WEFT_POOL_MEAN))
F(pool_max, weft_pool(x[0], WEFT_POOL_MAX)) F(pool_first, weft_pool(x[0], WEFT_POOL_FIRST))
F(pool_last, weft_pool(x[0], WEFT_POOL_LAST))
F(broadcast_to_tokens, weft_broadcast_to_tokens(weft_pool(weft_tanh(x[0]), WEFT_POOL_SUM), x[0]))
F(packed, weft_to_layout(weft_square(x[0]), WEFT_PACKED))
F(concatenated, weft_to_layout(weft_square(x[0]), WEFT_CONCAT))
F(pad_right, weft_pad_packed_sequence(x[0], 9, 5, WEFT_ALIGN_RIGHT))
F(pad_left, weft_pad_packed_sequence(x[0], 0, 0, WEFT_ALIGN_LEFT))
F(plain, weft_plain(x[0]))       F(concat_sequences, weft_concat_sequences(x[0], x[1]))
F(attention, weft_attention(x[0], x[1], x[2], &(weft_attention_opts){ .heads = 2 }, NULL))
F(attention_causal, attend(x, 1, WEFT_CAUSAL_TOP_LEFT))
F(attention_bottom, attend(x, 1, WEFT_CAUSAL_BOTTOM_RIGHT))
F(attention_strict,
  weft_attention(x[0], x[1], x[2], &(weft_attention_opts){ .heads = 2, .causal = WEFT_CAUSAL_STRICT }, NULL))
F(attention_shared,
  weft_attention(x[0], x[1], x[2], &(weft_attention_opts){ .heads = 2, .shared_values = true }, NULL))
F(attention_mean,
  weft_attention(x[0], x[1], x[2],
                 &(weft_attention_opts){ .heads = 2, .shared_values = true, .mean_heads = true }, NULL))

/* Every time with the same mask. */
static weft_tensor *dropped(weft_tensor *const *x, bool shared, weft_causal causal, weft_tensor **map)
{
    if (weft_context_of(x[0])->tape)
        weft_context_of(x[0])->tape->drops = NULL;
    const bool mean = shared && causal == WEFT_CAUSAL_STRICT;
    return weft_attention(x[0], x[1], x[2],
                          &(weft_attention_opts){ 2, 0, causal, shared, mean, (weft_real).4, "case" }, map);
}
static weft_tensor *dropped_map_of(weft_tensor *const *x)
{
    weft_tensor *map, *y = dropped(x, false, WEFT_CAUSAL_STRICT, &map);
    return weft_add(weft_sum_all(weft_square(y)), weft_sum_all(weft_square(map)));
}
F(attention_dropped, dropped(x, false, WEFT_ALL_KEYS, NULL))
F(attention_dropped_shared, dropped(x, true, WEFT_CAUSAL_BOTTOM_RIGHT, NULL))
F(attention_dropped_mean, dropped(x, true, WEFT_CAUSAL_STRICT, NULL))
F(attention_dropped_map, dropped_map_of(x))
static weft_tensor *mean_and_map(weft_tensor *const *x)
{
    weft_attention_opts o = { .heads = 2, .shared_values = true, .mean_heads = true };
    weft_tensor *map, *y = weft_attention(x[0], x[1], x[2], &o, &map);
    return weft_add(weft_sum_all(weft_square(y)), weft_sum_all(weft_square(map)));
}
F(attention_mean_map, mean_and_map(x))
static weft_tensor *map_of(weft_tensor *q, weft_tensor *k)
{
    weft_tensor *map, *y = weft_attention(q, k, k, &(weft_attention_opts){ .heads = 2 }, &map);
    return weft_add(weft_sum_all(weft_square(y)), weft_sum_all(weft_square(map)));
}
F(attention_map, map_of(x[0], x[1]))

/* Of what holds nothing the logsumexp is -inf: 0 instead, which has no derivative. */
static weft_tensor *or_nothing(weft_tensor *y)
{
    weft *w = weft_context_of(y);
    return weft_where(weft_greater(y, weft_scalar(w, -1000)), y, weft_scalar(w, 0));
}
static weft_tensor *one_more(weft_tensor *x)     /* token in each sequence: none is empty */
{
    static const int32_t ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    return weft_concat_sequences(x, weft_ragged(weft_context_of(x), (weft_real[64]){ 0 }, weft_size(x, 1),
                                                &(weft_lengths){ .n = weft_lengths_of(x).n, .len = ones }));
}
F(logsumexp0, weft_logsumexp(one_more(x[0]), 0, NULL))
F(logsumexp_empty, or_nothing(weft_logsumexp(x[0], 0, NULL)))
F(logsumexp_masked, or_nothing(weft_logsumexp(x[0], -1, positive(x[1]))))
F(logsumexp_masked0, or_nothing(weft_logsumexp(x[0], 0, positive(x[1]))))
F(ragged_like, weft_ragged_like(weft_square(weft_plain(x[0])), x[0]))
static weft_tensor *in_given_order(weft_tensor *x) { return weft_plain(weft_to_layout(x, WEFT_CONCAT)); }
F(ragged_rows, weft_ragged_rows(weft_square(in_given_order(x[0])), x[0]))

static weft_tensor *pairs_of(weft_tensor *q, weft_tensor *k)
{
    weft_tensor *a, *b;
    weft_pairs(q, k, &a, &b);
    return weft_tanh(weft_mul(a, weft_square(b)));
}
F(pairs, pairs_of(x[0], x[1]))

static weft_tensor *split_of(weft_tensor *x)
{
    weft_lengths l = weft_lengths_of(x);
    int32_t first[64];
    weft_tensor *a, *b;
    for (int64_t s = 0; s < l.n; s++)
        first[s] = l.len[s] / 2;
    weft_split_sequences(x, &(weft_lengths){ .n = l.n, .len = first }, &a, &b);
    return weft_add(weft_sum_all(weft_square(a)), weft_sum_all(weft_exp(b)));
}
F(split_sequences, split_of(x[0]))

/* n indices, -1 among them, repeated ones too */
static weft_tensor *ints_of(weft_tensor *like, int64_t n, int64_t below)
{
    int32_t values[256];
    for (int64_t i = 0; i < n; i++)
        values[i] = (int32_t)((i * 7 + 3) % (below + 1)) - 1;
    return weft_ints(weft_context_of(like), values, 1, &n);
}
F(index_select, weft_index_select(x[0], ints_of(x[0], 7, weft_size(x[0], 0))))
F(index_add, weft_index_add(x[0], ints_of(x[0], weft_size(x[0], 0), 5), 5))
F(take_along, weft_take_along(x[0], ints_of(x[0], weft_size(x[0], 0), weft_size(x[0], 1))))
F(dropout, weft_mul(x[0], weft_dropout(x[0], (weft_real).4, "case", false)))
static weft_tensor *padded_of(weft_tensor *x, weft_align align)
{
    int32_t len[8];
    int64_t n = weft_size(x, 0), T = weft_size(x, 1);
    for (int64_t s = 0; s < n; s++)
        len[s] = (int32_t)((s * 3 + 1) % (T + 1));
    return weft_pack_padded_sequence(x, &(weft_lengths){ .n = n, .len = len }, align);
}
F(pack_left, padded_of(x[0], WEFT_ALIGN_LEFT)) F(pack_right, padded_of(x[0], WEFT_ALIGN_RIGHT))
static weft_tensor *realigned(weft_tensor *x)
{
    int32_t len[8];
    int64_t n = weft_size(x, 0), T = weft_size(x, 1);
    for (int64_t s = 0; s < n; s++)
        len[s] = (int32_t)((s * 3 + 1) % (T + 1));
    return weft_move_pads(x, &(weft_lengths){ .n = n, .len = len }, WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT);
}
F(move_pads, realigned(x[0]))
static weft_tensor *through_rows(weft_tensor *x)
{
    weft_lengths l = weft_lengths_of(x);
    int32_t row[64], column[64];
    int64_t rows;
    if (weft_first_fit(&l, 8, row, column, &rows) != WEFT_OK)
        return NULL;
    return weft_square(weft_to_rows(weft_tanh(x), &(weft_placement){ rows, 8, row, column }));
}
F(rows, through_rows(x[0]))

static const op_case op_cases[] = {
    { "neg", f_neg, { "ab" }, -2, 2, 2 }, { "exp", f_exp, { "~na" }, -2, 2, 2 },
    { "log", f_log, { "ab" }, .2, 3, 2 },
    { "sqrt", f_sqrt, { "ab" }, .2, 3, 2 }, { "rsqrt", f_rsqrt, { "ab" }, .3, 3, 2 },
    { "square", f_square, { "" }, -2, 2, 2 },
    { "abs", f_abs, { "ab" }, .1, 2, 2 }, { "abs of negative", f_abs, { "a" }, -2, -.1, 2 },
    { "reciprocal", f_reciprocal, { "ab" }, .4, 3, 2 },
    { "sin", f_sin, { "abc" }, -2, 2, 2 }, { "cos", f_cos, { "ab" }, -2, 2, 2 },
    { "tanh", f_tanh, { "~nab" }, -2, 2, 2 },
    { "sigmoid", f_sigmoid, { "ab" }, -4, 4, 2 }, { "relu", f_relu, { "ab" }, .1, 2, 2 },
    { "relu below 0", f_relu, { "ab" }, -2, -.1, 2 },
    { "silu", f_silu, { "ab" }, -3, 3, 2 }, { "softplus", f_softplus, { "ab" }, -3, 3, 2 },
    { "gelu", f_gelu, { "~na" }, -2, 2, 2 },
    { "leaky_relu", f_leaky, { "ab" }, .1, 2, 2 }, { "elu", f_elu, { "ab" }, -2, -.1, 2 },
    { "elu above 0", f_elu, { "ab" }, .1, 2, 2 },
    { "clamp", f_clamp, { "ab" }, -.9, .9, 2 }, { "clamp outside", f_clamp, { "ab" }, 1.1, 2, 2 },
    { "pow", f_pow, { "ab" }, .3, 2, 2 },
    { "scale", f_scale, { "~na" }, -2, 2, 2 },
    { "add", f_add, { "ab", "ab" }, -2, 2, 2 }, { "add row", f_add, { "abc", "c" }, -2, 2, 2 },
    { "add ragged", f_add, { "~na", "~na" }, -2, 2, 2 },
    { "sub", f_sub, { "a1", "1b" }, -2, 2, 2 }, { "sub bias", f_sub, { "~na", "a" }, -2, 2, 2 },
    { "sub from", f_sub, { "1a", "~na" }, -2, 2, 2 },
    { "mul", f_mul, { "abc", "b1" }, -2, 2, 2 }, { "mul scalar", f_mul, { "~na", "" }, -2, 2, 2 },
    { "mul column", f_mul, { "~na", "~n1" }, -2, 2, 2 },
    { "div", f_div, { "ab", "ab" }, .4, 2, 2 },      { "div outer", f_div, { "a1c", "b1" }, .4, 2, 2 },
    { "minimum", f_minimum, { "ab", "b" }, -2, 2, 2 }, { "maximum", f_maximum, { "~na", "~na" }, -2, 2, 2 },
    { "x x", f_same, { "~na" }, -2, 2, 2 },          { "x + tanh x", f_twice, { "ab" }, -2, 2, 2 },
    { "where", f_where, { "ab", "ab", "ab" }, -2, 2, 2 },
    { "where ragged", f_where, { "~na", "~na", "a" }, -2, 2, 2 },
    { "matmul", f_matmul, { "ab", "bc" }, -2, 2, 2 },
    { "matmul folded", f_matmul, { "dab", "bc" }, -2, 2, 2 },
    { "matmul batched", f_matmul, { "dab", "dbc" }, -2, 2, 2 },
    { "matmul ragged", f_matmul, { "~na", "ab" }, -2, 2, 2 },
    { "matmul ragged 3", f_matmul, { "~nab", "bc" }, -2, 2, 2 },
    { "matmul ragged batch", f_matmul, { "~nab", "~nbc" }, -2, 2, 2 },
    { "matmul_ta", f_matmul_ta, { "ab", "ac" }, -2, 2, 2 },
    { "matmul_ta rows", f_matmul_ta, { "~na", "~nb" }, -2, 2, 2 },
    { "matmul_ta batched", f_matmul_ta, { "dab", "dac" }, -2, 2, 2 },
    { "matmul_ta shared", f_matmul_ta, { "dab", "ac" }, -2, 2, 2 },
    { "matmul_tb", f_matmul_tb, { "ab", "cb" }, -2, 2, 2 },
    { "matmul_tb ragged", f_matmul_tb, { "~na", "ba" }, -2, 2, 2 },
    { "matmul_tb batched", f_matmul_tb, { "dab", "dcb" }, -2, 2, 2 },
    { "matmul first shared", f_matmul_tb, { "ab", "dcb" }, -2, 2, 2 },
    { "matmul_tt", f_matmul_tt, { "ab", "ca" }, -2, 2, 2 },
    { "matmul_tt batched", f_matmul_tt, { "dab", "dca" }, -2, 2, 2 },
    { "linear", f_linear, { "dab", "cb", "c" }, -2, 2, 2 },
    { "linear ragged", f_linear, { "~na", "ba", "b" }, -2, 2, 2 },
    { "linear bare", f_linear_bare, { "~nab", "cb" }, -2, 2, 2 },
    { "linear tanh", f_linear_tanh, { "~na", "ba", "b" }, -1, 1, 2 },
    { "linear sigmoid", f_linear_sigmoid, { "ab", "cb" }, -2, 2, 2 },
    { "linear elu", f_linear_elu, { "ab", "cb", "c" }, .1, 1, 2 },
    { "linear leaky_relu", f_linear_leaky, { "~na", "ba", "b" }, .1, 1, 2 },
    { "linear groups", f_linear, { "a3b", "3cb", "3c" }, -2, 2, 2 },
    { "linear groups ragged", f_linear_tanh, { "~n2b", "2cb", "2c" }, -1, 1, 2 },
    { "linear groups bare", f_linear_bare, { "~na2b", "2cb" }, -2, 2, 2 },
    { "linear of itself", f_linear_same, { "ab" }, -1, 1, 2 },
    { "glu", f_glu, { "ab4" }, -2, 2, 2 },           { "glu ragged", f_glu, { "~n6" }, -2, 2, 2 },
    { "sum 0", f_sum0, { "abc" }, -2, 2, 2 }, { "sum 1", f_sum1, { "abc" }, -2, 2, 2 },
    { "sum tokens", f_sum_tokens, { "~na" }, -2, 2, 2 },
    { "sum columns", f_sum1, { "~nab" }, -2, 2, 2 }, { "mean", f_mean, { "abc" }, -2, 2, 2 },
    { "mean tokens", f_mean_tokens, { "~na" }, -2, 2, 2 },
    { "var", f_var, { "a4b" }, -2, 2, 2 }, { "var 0", f_var0, { "4ab" }, -2, 2, 2 },
    { "var ragged", f_var_all, { "~na3" }, -2, 2, 2 }, { "var of one", f_var_of_one, { "a1b" }, -2, 2, 2 },
    { "std of one", f_std_of_one, { "a1" }, -2, 2, 2 },
    { "std", f_std, { "ab4" }, -2, 2, 2 }, { "std ragged", f_std1, { "~n3" }, -2, 2, 2 },
    { "sum_all", f_sum_all, { "~nab" }, -2, 2, 2 }, { "mean_all", f_mean_all, { "abc" }, -2, 2, 2 },
    { "mean_all ragged", f_mean_all, { "~na" }, -2, 2, 2 },
    { "max", f_max, { "abc" }, -2, 2, 2 }, { "max 0", f_max0, { "ab" }, -2, 2, 2 },
    { "max ragged", f_max, { "~na" }, -2, 2, 2 },
    { "min", f_min, { "abc" }, -2, 2, 2 }, { "min 0", f_min0, { "ab" }, -2, 2, 2 },
    { "min ragged", f_min, { "~na" }, -2, 2, 2 },
    { "topk", f_topk, { "ab3" }, -2, 2, 2 }, { "topk ragged", f_topk1, { "~nab" }, -2, 2, 2 },
    { "topk 0", f_topk0, { "abc" }, -2, 2, 2 },
    { "cumsum", f_cumsum, { "abc" }, -2, 2, 2 },     { "cumsum tokens", f_cumsum0, { "~na" }, -2, 2, 2 },
    { "flip", f_flip, { "abc" }, -2, 2, 2 },         { "flip tokens", f_flip0, { "~na" }, -2, 2, 2 },
    { "softmax", f_softmax, { "abc" }, -2, 2, 2 }, { "softmax ragged", f_softmax, { "~na" }, -2, 2, 2 },
    { "softmax tokens", f_softmax0, { "~na" }, -2, 2, 2 },
    { "softmax 0", f_softmax0, { "abc" }, -2, 2, 2 }, { "log_softmax", f_log_softmax, { "abc" }, -2, 2, 2 },
    { "log_softmax tokens", f_log_softmax0, { "~nab" }, -2, 2, 2 },
    { "logsumexp", f_logsumexp, { "~na" }, -2, 2, 2 }, { "logsumexp 1", f_logsumexp1, { "abc" }, -2, 2, 2 },
    { "softmax_masked", f_softmax_masked, { "abc", "abc" }, -2, 2, 2 },
    { "softmax_masked tokens", f_softmax_masked0, { "~na", "~na" }, -2, 2, 2 },
    { "log_softmax_masked", f_log_softmax_masked, { "~na", "~na" }, -2, 2, 2 },
    { "log_softmax_masked -1", f_log_softmax_masked1, { "~na", "~na" }, -2, 2, 2 },
    { "logsumexp tokens", f_logsumexp0, { "~na" }, -2, 2, 2 },
    { "logsumexp of none", f_logsumexp_empty, { "~na" }, -2, 2, 2 },
    { "logsumexp_masked", f_logsumexp_masked, { "abc", "abc" }, -2, 2, 2 },
    { "logsumexp_masked tokens", f_logsumexp_masked0, { "~na", "~na" }, -2, 2, 2 },
    { "layer_norm", f_layer_norm, { "ab5", "5", "5" }, -2, 2, 2 },
    { "layer_norm ragged", f_layer_norm, { "~n4", "4", "4" }, -2, 2, 2 },
    { "layer_norm bare", f_layer_norm_bare, { "~n3" }, -2, 2, 2 },
    { "gate_norm", f_gate_norm, { "ab6", "ab3", "3", "3" }, -2, 2, 2 },
    { "gate_norm ragged", f_gate_norm, { "~n6", "~n3", "3", "3" }, -2, 2, 2 },
    { "gate_norm groups", f_gate_norm, { "~n38", "~n34", "34", "34" }, -2, 2, 2 },
    { "layer_norm groups", f_norm_of_groups, { "a25", "25", "25" }, -2, 2, 2 },
    { "layer_norm groups ragged", f_norm_of_groups, { "~n33", "33", "33" }, -2, 2, 2 },
    { "reshape", f_reshape, { "abc" }, -2, 2, 2 },   { "reshape rows", f_reshape_rows, { "~nab" }, -2, 2, 2 },
    { "transpose", f_transpose, { "abcd" }, -2, 2, 2 },
    { "transpose rows", f_transpose_rows, { "~nab" }, -2, 2, 2 },
    { "permute", f_permute, { "abcd" }, -2, 2, 2 },
    { "permute rows", f_permute_rows, { "~nab" }, -2, 2, 2 },
    { "stack", f_stack, { "abc", "abc" }, -2, 2, 2 }, { "stack last", f_stack_last, { "a", "a" }, -2, 2, 2 },
    { "stack ragged", f_stack, { "~na", "~na" }, -2, 2, 2 },
    { "repeat_interleave", f_repeat_interleave, { "abc" }, -2, 2, 2 },
    { "repeat_interleave 0", f_repeat_interleave0, { "ab" }, -2, 2, 2 },
    { "repeat_interleave ragged", f_repeat_interleave, { "~nab" }, -2, 2, 2 },
    { "concat", f_concat, { "abc", "adc" }, -2, 2, 2 },
    { "concat ragged", f_concat, { "~na", "~nb" }, -2, 2, 2 },
    { "concat 0", f_concat0, { "ab", "cb" }, -2, 2, 2 },
    { "slice", f_slice, { "a4b" }, -2, 2, 2 },       { "slices", f_slices, { "~n3" }, -2, 2, 2 },
    { "tile", f_tile, { "abc" }, -2, 2, 2 }, { "tile 0", f_tile0, { "ab" }, -2, 2, 2 },
    { "tile ragged", f_tile, { "~nab" }, -2, 2, 2 },
    { "index_select", f_index_select, { "ab" }, -2, 2, 2 },
    { "index_select of numbers", f_index_select, { "a" }, -2, 2, 2 },
    { "index_add", f_index_add, { "ab" }, -2, 2, 2 }, { "take_along", f_take_along, { "ab" }, -2, 2, 2 },
    { "dropout", f_dropout, { "~na" }, -2, 2, 0 },
    { "pool sum", f_pool_sum, { "~nab" }, -2, 2, 2 }, { "pool mean", f_pool_mean, { "~na" }, -2, 2, 2 },
    { "pool max", f_pool_max, { "~na" }, -2, 2, 2 },
    { "pool first", f_pool_first, { "~na" }, -2, 2, 2 }, { "pool last", f_pool_last, { "~na" }, -2, 2, 2 },
    { "broadcast_to_tokens", f_broadcast_to_tokens, { "~na" }, -2, 2, 2 },
    { "packed", f_packed, { "~na" }, -2, 2, 2 }, { "concatenated", f_concatenated, { "~nab" }, -2, 2, 2 },
    { "rows", f_rows, { "~na" }, -2, 2, 2 },
    { "pack left", f_pack_left, { "abc" }, -2, 2, 2 }, { "pack right", f_pack_right, { "abc" }, -2, 2, 2 },
    { "move_pads", f_move_pads, { "abc" }, -2, 2, 2 },
    { "pad right", f_pad_right, { "~na" }, -2, 2, 2 }, { "pad left", f_pad_left, { "~nab" }, -2, 2, 2 },
    { "plain", f_plain, { "~na" }, -2, 2, 2 },
    { "ragged_like", f_ragged_like, { "~na" }, -2, 2, 2 },
    { "ragged_rows", f_ragged_rows, { "~na" }, -2, 2, 2 }, { "pairs", f_pairs, { "~na", "=na" }, -2, 2, 2 },
    { "concat_sequences", f_concat_sequences, { "~na", "=na" }, -2, 2, 2 },
    { "split_sequences", f_split_sequences, { "~na" }, -1, 1, 2 },
    { "attention", f_attention, { "~n4", "=n4", "=n6" }, -2, 2, 2 },
    { "attention causal", f_attention_causal, { "~n3", "=n3" }, -2, 2, 2 },
    { "attention bottom right", f_attention_bottom, { "~n3", "=n3" }, -2, 2, 2 },
    { "attention shared", f_attention_shared, { "~n4", "=n4", "=n3" }, -2, 2, 2 },
    { "attention, mean", f_attention_mean, { "~n4", "=n4", "=n3" }, -2, 2, 2 },
    { "attention, mean, map", f_attention_mean_map, { "~n4", "=n4", "=n3" }, -2, 2, 2 },
    { "attention strict", f_attention_strict, { "~n4", "=n4", "=n6" }, -2, 2, 2 },
    { "attention map", f_attention_map, { "~n4", "=n4" }, -2, 2, 2 },
    { "attention dropped", f_attention_dropped, { "~n4", "=n4", "=n6" }, -2, 2, 2 },
    { "attention dropped shared", f_attention_dropped_shared, { "~n4", "=n4", "=n3" }, -2, 2, 2 },
    { "attention dropped mean", f_attention_dropped_mean, { "~n4", "=n4", "=n3" }, -2, 2, 2 },
    { "attention dropped map", f_attention_dropped_map, { "~n4", "=n4", "=n6" }, -2, 2, 2 },
    { "norm", f_norm, { "4ab" }, .2, 2, 2 }, { "norm 0", f_norm0, { "ab4" }, .2, 2, 2 },
    { "norm 1", f_norm1, { "a4b" }, .2, 2, 2 },
};
#endif
