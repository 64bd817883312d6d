/* products.c - matrix products, and the operator Attention of opset 23, composed of them and a softmax. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "io/onnx/model.h"

/* Multiplies [.., m, k] by [.., k, n]; leading axes broadcast. */
static value multiplied(run *r, const value *a, const value *b)
{
    value x[2] = { *a, *b };
    int64_t size[WEFT_RANK];
    for (int i = 0; i < 2 && a->rank > 2 && b->rank > 2; i++) {
        int lead = weft__onnx_broadcast(r, a->rank - 2, a->size, b->rank - 2, b->size, size);
        if (lead < 0)
            return (value){ 0 };
        memcpy(size + lead, x[i].size + x[i].rank - 2, 2 * sizeof *size);
        x[i] = weft__onnx_expand(r, &x[i], lead + 2, size);
    }
    weft_tensor *left = weft__onnx_tensor_of(r, &x[0]);
    return weft__onnx_reals(r, weft_matmul(left, weft__onnx_tensor_of(r, &x[1])));
}

static void matmul(run *r, const value *in, value *out)
{
    value a = in[0], b = in[1];
    int64_t size[WEFT_RANK];
    int rank = 0;
    if (a.rank == 1)
        a = weft__onnx_reshape(r, &a, 2, (int64_t[]){ 1, a.count });
    if (b.rank == 1)
        b = weft__onnx_reshape(r, &b, 2, (int64_t[]){ b.count, 1 });
    value y = multiplied(r, &a, &b);
    for (int i = 0; i < y.rank; i++)
        if ((i != y.rank - 2 || in[0].rank > 1) && (i != y.rank - 1 || in[1].rank > 1))
            size[rank++] = y.size[i];
    *out = rank == y.rank ? y : weft__onnx_reshape(r, &y, rank, size);
}

static void gemm(run *r, const value *in, value *out)
{
    bool ta = weft__onnx_int(r, "transA", 0), tb = weft__onnx_int(r, "transB", 0);
    double alpha = weft__onnx_float(r, "alpha", 1), beta = weft__onnx_float(r, "beta", 1);
    weft_tensor *y = weft_matmul_with(weft__onnx_tensor_of(r, in), ta, weft__onnx_tensor_of(r, in + 1), tb);
    weft_tensor *c = weft__onnx_tensor_of(r, in + 2);
    y = alpha == 1 ? y : weft_scale(y, alpha);
    if (in[2].type && beta != 0)
        y = weft_add(y, beta == 1 ? c : weft_scale(c, beta));
    *out = weft__onnx_reals(r, y);
}

/* ---- Einsum ---- */
/* Brings the axes of x, with these letters, to the order of `to`, which has the same letters. */
static value ordered(run *r, const value *x, const char *letters, const char *to)
{
    int64_t axes[WEFT_RANK];
    for (int i = 0; i < x->rank; i++) {
        const char *at = strchr(letters, to[i]);
        axes[i] = at ? at - letters : -1;
    }
    return weft__onnx_permute(r, x, axes);
}

/* Appends the letters of a group to `to`: those in the first operand 1, the second 2, the result 4, or a sum
 * of these. Returns the product of their extents. */
static int64_t add_letters(int group, char (*text)[8], const int64_t *extent, char *to)
{
    int64_t all = 1;
    for (const char *c = text[group & 1 ? 0 : 1]; *c; c++) {
        int found = 0;
        for (int i = 0; i < 3; i++)
            found += strchr(text[i], *c) ? 1 << i : 0;
        if (found == group) {
            strncat(to, c, 1);
            all = weft__onnx_product((int64_t[]){ all, extent[(unsigned char)*c] }, 2);
        }
    }
    return all;
}

/* Two operands without repeated letters: one product of matrices between permutations. */
static void einsum(run *r, const value *in, value *out)
{
    enum { BOTH = 7, FIRST = 5, SECOND = 6, SUMMED = 3 };
    static const int groups[3][3] = {
        { BOTH, FIRST, SUMMED }, { BOTH, SUMMED, SECOND }, { BOTH, FIRST, SECOND }
    };
    char text[3][8] = { "" }, order[3][32] = { "" };
    const char *equation = weft__onnx_string(r, "equation", "");
    int64_t extent[256] = { 0 }, matrix[3][3], size[WEFT_RANK + 1];
    bool fits = sscanf(equation, " %7[a-zA-Z] , %7[a-zA-Z] -> %7[a-zA-Z]", text[0], text[1], text[2]) == 3 &&
                r->node->inputs == 2 && strlen(text[2]) <= WEFT_RANK;
    for (int i = 0; i < 2; i++) {
        fits = fits && (int)strlen(text[i]) == in[i].rank;
        for (int k = 0; fits && k < in[i].rank; k++)
            extent[(unsigned char)text[i][k]] = in[i].size[k];
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            matrix[i][k] = add_letters(groups[i][k], text, extent, order[i]);
        fits = fits && strlen(order[i]) == strlen(text[i]);
    }
    if (!fits) {
        weft__onnx_fail(r, "equation %.40s; expected a product of two matrices, ij,jk->ik", equation);
        return;
    }
    for (int i = 0; order[2][i]; i++)
        size[i] = extent[(unsigned char)order[2][i]];
    value x = ordered(r, in, text[0], order[0]), y = ordered(r, in + 1, text[1], order[1]);
    x = weft__onnx_reshape(r, &x, 3, matrix[0]);
    y = weft__onnx_reshape(r, &y, 3, matrix[1]);
    x = multiplied(r, &x, &y);
    x = weft__onnx_reshape(r, &x, (int)strlen(order[2]), size);
    *out = ordered(r, &x, order[2], text[2]);
}

/* ---- Attention ---- */
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

const operation weft__onnx_products[] = {
    { "MatMul", matmul, .inputs = -2 }, { "Einsum", einsum, .inputs = -1 }, { "Gemm", gemm, .inputs = -2 },
    { "Attention", attention, .inputs = -3 },
    { .name = NULL },
};
