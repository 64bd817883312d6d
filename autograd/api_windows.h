/* api_windows.h - windows over the tokens of sequences, pooling over them, RMS norm and positions.
 *
 * Each function works within a sequence. Tokens outside it do not exist: neither a neighbour in the
 * batch nor its NaN changes a result. Inputs are ragged, [N, ..]; windows and pools have the layout
 * CONCAT. Where a result has other lengths, its batch is new, with x's ids and offsets 0. */
#ifndef WEFT_API_WINDOWS_H
#define WEFT_API_WINDOWS_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- windows ---- */
/* Copies a window of `width` tokens for each token of x, [N, ..] to [N, width, ..], reals or ints.
 * Element k of row t is token t + from + k * dilation of the same sequence, 0 if it does not exist.
 * So from 1 - width with dilation 1 gives a token and those before it. The copy takes width times
 * the memory of x; weft_conv_run does without it. The batch keeps the index array for more calls.
 * Errors: width or dilation below 1; 2^31 copied tokens or more. Like x.unfold. */
WEFT_API weft_tensor *weft_tokens_window(weft_tensor *x, int64_t width, int64_t dilation,
                                         int64_t from);
/* Copies tokens 0, n, 2 n, .. of each sequence, reals or ints: ceil(length / n) tokens. Errors: n
 * below 1. Like x[::n]. */
WEFT_API weft_tensor *weft_tokens_every(weft_tensor *x, int64_t n);
/* Copies each token n times, reals or ints: 1 1 2 2. weft_tokens_every of the result gives x.
 * Errors: n below 1; 2^31 tokens or more. Like torch.repeat_interleave. */
WEFT_API weft_tensor *weft_tokens_repeat(weft_tensor *x, int64_t n);
/* Reduces windows of `width` tokens: row t gets the sum, mean or largest of the tokens t * stride
 * .. t * stride + width - 1 that exist, elementwise. A sequence gets ceil(length / stride) rows, so
 * no token is lost if stride is at most width. Errors: another pooling; width or stride below 1; a
 * mean of ints. Like torch.nn.MaxPool1d and AvgPool1d with ceil_mode=True. */
WEFT_API weft_tensor *weft_tokens_pool(weft_tensor *x, int64_t width, int64_t stride,
                                       weft_pooling how);

/* ---- RMS norm ---- */
/* Computes x / sqrt(mean of x^2 + eps) over the last axis, times gain, [extent of that axis] or
 * NULL. x may be plain. eps 0: the machine epsilon of weft_real, 1.2e-7 for float, as in PyTorch;
 * WEFT_ZERO: 0. Errors: eps below 0. Zhang & Sennrich 2019. Like torch.nn.functional.rms_norm. */
WEFT_API weft_tensor *weft_rms_norm(weft_tensor *x, weft_tensor *gain, double eps);

/* ---- positions: they count from the sequence's offset in its batch, 0 by default ---- */
/* Makes the sinusoidal positions of Vaswani et al. 2017, constants [N, width]. At position t,
 * column 2 i is sin(t / base^(2 i / width)) and column 2 i + 1 the cosine of that angle, as in the
 * paper. base 0: 10000. Computed in double, then rounded. Errors: an odd width, or one below 2;
 * base below 0. */
WEFT_API weft_tensor *weft_positional_encoding(weft_tensor *like, int64_t width, double base);
/* heads: 0 means 1. base: 0 means 10000. interleaved: pairs are columns 2 i and 2 i + 1 of a head,
 * as in the paper and GPT-J; otherwise columns i and d / 2 + i, as in Llama, GPT-NeoX and Hugging
 * Face's apply_rotary_pos_emb, which is also faster. */
typedef struct { int heads; double base; bool interleaved; } weft_rope_opts;
/* Computes queries or keys rotated by their positions (RoPE, Su et al. 2021): x [N, heads * d],
 * reals, to the same shape. At position t, pair i of a head turns by the angle t / base^(2 i / d).
 * So scores of weft_attention depend on the distance of two tokens, not on their positions. opts
 * NULL: one head. Errors: an odd d; base below 0. */
WEFT_API weft_tensor *weft_rope(weft_tensor *x, const weft_rope_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
