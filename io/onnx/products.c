/* products.c - matrix products. */
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

const operation weft__onnx_products[] = {
    { "MatMul", matmul, .inputs = -2 }, { "Einsum", einsum, .inputs = -1 }, { "Gemm", gemm, .inputs = -2 },
    { .name = NULL },
};
