/* attention.c - the operator Attention of opset 23, composed of products and a softmax. */
#include <math.h>
#include "io/onnx/model.h"

/* Returns [n, heads, T, width] of an input, which may be [n, T, heads * width]. */
static weft_tensor *by_heads(run *r, const value *v, int64_t heads)
{
    if (v->rank == 4)
        return weft__onnx_tensor_of(r, v);
    if (v->rank != 3 || heads < 1 || v->size[2] % heads) {
        weft__onnx_fail(r, "rank %d with %lld heads; expected 3 or 4", v->rank, (long long)heads);
        return &r->w->nil;
    }
    weft_tensor *x = weft__onnx_tensor_of(r, v);
    x = weft_reshape(x, WEFT_SHAPE(v->size[0], v->size[1], heads, v->size[2] / heads));
    return weft_transpose(x, 1, 2);
}

/* Adds the mask, numbers or truth values, and -infinity outside of the window of a query. */
static weft_tensor *masked(run *r, weft_tensor *scores, const value *mask, int64_t past)
{
    double none = -(double)INFINITY;
    int64_t left = weft__onnx_int(r, "left_window_size", -1),
            right = weft__onnx_int(r, "is_causal", 0) ? 0 : weft__onnx_int(r, "right_window_size", -1);
    weft_tensor *x = weft__onnx_tensor_of(r, mask);
    if (mask->type)
        scores = weft_add(scores, mask->x ? x : weft_where(x, weft_scalar(r->w, 0), weft_scalar(r->w, none)));
    if (left < 0 && right < 0)
        return scores;
    int64_t size[2] = { weft_size(scores, 2), weft_size(scores, 3) }, n = weft__onnx_product(size, 2);
    weft_real *window = weft__onnx_take(r, n, sizeof *window);
    for (int64_t i = 0; window && i < n; i++) {
        int64_t ahead = i % size[1] - i / size[1] - past;
        window[i] = (right >= 0 && ahead > right) || (left >= 0 && -ahead > left) ? (weft_real)none : 0;
    }
    return weft_add(scores, weft_reals(r->w, window, 2, size));
}

static void attention(run *r, const value *in, value *out)
{
    int64_t heads = weft__onnx_int(r, "q_num_heads", 0), kv_heads = weft__onnx_int(r, "kv_num_heads", heads);
    weft_tensor *q = by_heads(r, in, heads), *k = by_heads(r, in + 1, kv_heads),
                *v = by_heads(r, in + 2, kv_heads);
    double cap = weft__onnx_float(r, "softcap", 0);
    if (in[6].type)
        weft__onnx_fail(r, "nonpad_kv_seqlen; expected a mask");
    int64_t past = in[4].x && in[5].x ? weft_size(in[4].x, 2) : 0;
    if (in[4].x && in[5].x) {
        k = weft_concat(WEFT_LIST(in[4].x, k), 2);
        v = weft_concat(WEFT_LIST(in[5].x, v), 2);
    }
    out[1] = weft__onnx_reals(r, k);
    out[2] = weft__onnx_reals(r, v);
    int64_t width = weft_size(q, 3), times = out[1].size[1] ? weft_size(q, 1) / out[1].size[1] : 1;
    if (times > 1) {
        k = weft_repeat_interleave(k, 1, times);
        v = weft_repeat_interleave(v, 1, times);
    }
    double scale = weft__onnx_float(r, "scale", 1 / sqrt((double)(width ? width : 1)));
    weft_tensor *scores = weft_scale(weft_matmul_with(q, false, k, true), scale);
    scores = cap > 0 ? weft_scale(weft_tanh(weft_scale(scores, 1 / cap)), cap) : scores;
    scores = masked(r, scores, &in[3], past);
    weft_tensor *seen = weft_greater(scores, weft_scalar(r->w, -(double)INFINITY));
    weft_tensor *y = weft_matmul(weft_softmax(scores, 3, seen), v);
    if (in->rank == 3)
        y = weft_reshape(weft_transpose(y, 1, 2), WEFT_SHAPE(in->size[0], in->size[1], -1));
    out[0] = weft__onnx_reals(r, y);
}

const operation weft__onnx_attention[] = {
    { "Attention", attention, .inputs = -3 },
    { .name = NULL },
};
