/* products.c - matrix products. */
#include <string.h>
#include "io/onnx/model.h"

/* Multiplies [.., m, k] by [.., k, n]; leading axes broadcast. */
value weft__onnx_matmul(run *r, const value *x, const value *y)
{
    int64_t lead[WEFT_RANK], size[WEFT_RANK];
    value a = *x, b = *y, none = { 0 };
    if (a.rank < 2 || b.rank < 2) {
        weft__onnx_fail(r, "a matrix of rank %d", a.rank < b.rank ? a.rank : b.rank);
        return none;
    }
    if (b.rank > 2 && (a.rank != b.rank || memcmp(a.size, b.size, (size_t)(a.rank - 2) * sizeof *size))) {
        int rank = weft__onnx_broadcast(r, a.rank - 2, a.size, b.rank - 2, b.size, lead);
        if (rank < 0)
            return none;
        for (value *v = &a;; v = &b) {
            memcpy(size, lead, sizeof size);
            size[rank] = v->size[v->rank - 2];
            size[rank + 1] = v->size[v->rank - 1];
            if (!(*v = weft__onnx_expand(r, v, rank + 2, size)).type)
                return none;
            if (v == &b)
                break;
        }
    }
    return weft__onnx_reals(r, weft_matmul(weft__onnx_tensor_of(r, &a), weft__onnx_tensor_of(r, &b)));
}

static void matmul(run *r, const value *in, value *out)
{
    value a = in[0], b = in[1];
    int64_t size[WEFT_RANK];
    int rank = 0;
    if (!a.rank || !b.rank || (a.rank > 1 && b.rank > a.rank && b.rank > WEFT_RANK)) {
        weft__onnx_fail(r, "an operand of rank 0");
        return;
    }
    if (a.rank == 1)
        a = weft__onnx_reshape(r, &a, 2, (int64_t[]){ 1, a.count });
    if (b.rank == 1)
        b = weft__onnx_reshape(r, &b, 2, (int64_t[]){ b.count, 1 });
    value y = a.type && b.type ? weft__onnx_matmul(r, &a, &b) : (value){ 0 };
    for (int i = 0; i < y.rank; i++)
        if ((i != y.rank - 2 || in[0].rank > 1) && (i != y.rank - 1 || in[1].rank > 1))
            size[rank++] = y.size[i];
    if (y.type)
        *out = rank == y.rank ? y : weft__onnx_reshape(r, &y, rank, size);
}

static void gemm(run *r, const value *in, value *out)
{
    bool ta = weft__onnx_int(r, "transA", 0), tb = weft__onnx_int(r, "transB", 0);
    double alpha = weft__onnx_float(r, "alpha", 1), beta = weft__onnx_float(r, "beta", 1);
    weft_tensor *y = weft_matmul_with(weft__onnx_tensor_of(r, in), ta, weft__onnx_tensor_of(r, in + 1), tb);
    if (alpha != 1)
        y = weft_scale(y, alpha);
    if (in[2].type && beta != 0) {
        weft_tensor *c = weft__onnx_tensor_of(r, in + 2);
        y = weft_add(y, beta == 1 ? c : weft_scale(c, beta));
    }
    *out = weft__onnx_reals(r, y);
}

const operation weft__onnx_products[] = {
    { "MatMul", matmul, -2, 0, NULL, NULL },
    { "Gemm", gemm, -2, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
