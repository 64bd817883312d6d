/* attention.c - the operator Attention of opset 23, composed of products and a softmax. */
#include <math.h>
#include <string.h>
#include "io/onnx/model.h"

/* Returns [n, heads, T, width] of an input, which may be [n, T, heads * width]. */
static weft_tensor *by_heads(run *r, const value *v, int64_t heads)
{
    if (v->rank == 4)
        return v->x;
    if (v->rank != 3 || heads < 1 || v->size[2] % heads) {
        weft__onnx_fail(r, "rank %d with %lld heads; expected 3 or 4", v->rank, (long long)heads);
        return &r->w->nil;
    }
    weft_tensor *x = weft_reshape(v->x, WEFT_SHAPE(v->size[0], v->size[1], heads, v->size[2] / heads));
    return weft_transpose(x, 1, 2);
}

/* The mask as numbers to add, 0 or -infinity for truth values, with -infinity for keys that it lacks. */
static weft_tensor *added_mask(run *r, const value *mask, int64_t keys)
{
    weft_tensor *x = mask->x;
    int64_t size[WEFT_RANK];
    if (!x) {
        weft_real *reals = weft__onnx_take(r, mask->count, sizeof *reals);
        for (int64_t i = 0; reals && i < mask->count; i++)
            reals[i] = mask->number[i] ? 0 : -(double)INFINITY;
        x = weft_reals(r->w, reals, mask->rank, mask->size);
    }
    memcpy(size, mask->size, sizeof size);
    int last = mask->rank - 1;
    if (last < 0 || size[last] == 1 || size[last] >= keys)
        return x;
    size[last] = keys - size[last];
    return weft_concat(WEFT_LIST(x, weft_full(r->w, -(double)INFINITY, mask->rank, size)), last);
}

/* The causal mask, the window and the lengths of the keys, [n, 1, queries, keys]; NULL: none. */
static weft_tensor *positions(run *r, int64_t n, int64_t queries, int64_t keys, int64_t past,
                              const value *lens)
{
    bool causal = weft__onnx_int(r, "is_causal", 0);
    int64_t left = weft__onnx_int(r, "left_window_size", -1),
            right = weft__onnx_int(r, "right_window_size", -1);
    if (!causal && left < 0 && right < 0 && !lens->type)
        return NULL;
    int64_t count = weft__onnx_product((int64_t[]){ n, queries, keys }, 3);
    weft_real *bias = weft__onnx_take(r, count, sizeof *bias);
    if (lens->type && (lens->x || lens->count != n))
        weft__onnx_fail(r, "%lld nonpad_kv_seqlen for %lld sequences", (long long)lens->count, (long long)n);
    for (int64_t k = 0; bias && weft_ok(r->w) && k < count; k++) {
        int64_t b = k / (queries * keys), i = k / keys % queries, j = k % keys;
        int64_t ahead = j - i - (lens->type ? lens->number[b] - queries : past);
        bool seen = (!causal || ahead <= 0) && (left < 0 || -ahead <= left) &&
                    (right < 0 || ahead <= right) && (!lens->type || j < lens->number[b]);
        bias[k] = seen ? 0 : -(double)INFINITY;
    }
    return weft_reals(r->w, bias, WEFT_SHAPE(n, 1, queries, keys));
}

static weft_tensor *weights_of(run *r, value *out, weft_tensor *scores, weft_tensor *bias)
{
    int64_t mode = weft__onnx_int(r, "qk_matmul_output_mode", 0), size[4];
    double cap = weft__onnx_float(r, "softcap", 0);
    weft_tensor *shown = scores, *seen = NULL;
    if (cap > 0)
        scores = weft_scale(weft_tanh(weft_scale(scores, 1 / cap)), cap);
    shown = mode == 1 ? scores : shown;
    for (int i = 0; i < 4; i++)
        size[i] = weft_size(scores, i);
    if (bias) {
        bias = weft_add(bias, weft_zeros(r->w, 4, size));
        seen = weft_greater(bias, weft_scalar(r->w, -(double)INFINITY));
        scores = weft_where(seen, weft_add(scores, bias), weft_scalar(r->w, -(double)INFINITY));
    }
    shown = mode == 2 ? scores : shown;
    weft_tensor *weights = weft_softmax(scores, 3, seen);
    out[3] = weft__onnx_reals(r, mode == 3 ? weights : shown);
    return weights;
}

static void attention(run *r, const value *in, value *out)
{
    int64_t heads = weft__onnx_int(r, "q_num_heads", 0), kv_heads = weft__onnx_int(r, "kv_num_heads", heads);
    weft_tensor *q = by_heads(r, in, heads), *k = by_heads(r, in + 1, kv_heads),
                *v = by_heads(r, in + 2, kv_heads);
    int64_t past = in[4].x ? weft_size(in[4].x, 2) : 0;
    if (in[4].x && in[5].x) {
        k = weft_concat(WEFT_LIST(in[4].x, k), 2);
        v = weft_concat(WEFT_LIST(in[5].x, v), 2);
    }
    out[1] = weft__onnx_reals(r, k);
    out[2] = weft__onnx_reals(r, v);
    int64_t n = weft_size(q, 0), queries = weft_size(q, 2), keys = weft_size(k, 2), times = weft_size(k, 1);
    times = times ? weft_size(q, 1) / times : 1;
    if (times > 1) {
        k = weft_repeat_interleave(k, 1, times);
        v = weft_repeat_interleave(v, 1, times);
    }
    int64_t width = weft_size(q, 3);
    double scale = weft__onnx_float(r, "scale", 1 / sqrt((double)(width ? width : 1)));
    weft_tensor *mask = in[3].type ? added_mask(r, &in[3], keys) : NULL,
                *at = positions(r, n, queries, keys, past, &in[6]);
    if (!weft_ok(r->w))
        return;
    weft_tensor *scores = weft_scale(weft_matmul_with(q, false, k, true), scale);
    weft_tensor *y = weft_matmul(weights_of(r, out, scores, !mask ? at : !at ? mask : weft_add(mask, at)), v);
    if (in->rank == 3)
        y = weft_reshape(weft_transpose(y, 1, 2), WEFT_SHAPE(n, queries, weft_size(y, 1) * weft_size(y, 3)));
    out[0] = weft__onnx_reals(r, y);
}

const operation weft__onnx_attention[] = {
    { "Attention", attention, .inputs = -3 },
    { .name = NULL },
};
