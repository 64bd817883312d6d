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
    if (alpha != 1)
        y = weft_scale(y, alpha);
    if (in[2].type && beta != 0) {
        weft_tensor *c = weft__onnx_tensor_of(r, in + 2);
        y = weft_add(y, beta == 1 ? c : weft_scale(c, beta));
    }
    *out = weft__onnx_reals(r, y);
}

/* ---- Einsum ---- */
/* Brings the axes of x, with these letters, to the order of `to`, which has as many. */
static value ordered(run *r, const value *x, const char *letters, const char *to)
{
    int64_t axes[WEFT_RANK];
    for (int i = 0; i < x->rank; i++) {
        const char *at = strchr(letters, to[i]);
        axes[i] = at ? at - letters : -1;
    }
    return weft__onnx_permute(r, x, axes);
}

/* Appends to `text` the letters of `from` that are in a, in b and in c as the flags say. */
static void letters_of(const char *from, const char *a, bool in_a, const char *b, bool in_b, char *text)
{
    for (; *from; from++)
        if (!strchr(a, *from) == !in_a && !strchr(b, *from) == !in_b)
            strncat(text, from, 1);
}

/* Writes the extents of letters to size. Returns their product. */
static int64_t extents_of(const char *letters, const int64_t *extent, int64_t *size)
{
    int n = (int)strlen(letters);
    for (int i = 0; i < n; i++)
        size[i] = extent[(unsigned char)letters[i]];
    return weft__onnx_product(size, n);
}

/* Two operands without repeated letters: one product of matrices between permutations. */
static void einsum(run *r, const value *in, value *out)
{
    char a[8] = "", b[8] = "", y[8] = "", both[8] = "", of_a[8] = "", of_b[8] = "", summed[8] = "",
         left[32], right[32], made[32];
    const char *equation = weft__onnx_string(r, "equation", "");
    int64_t size[WEFT_RANK + 1], extent[256] = { 0 };
    bool reads = sscanf(equation, " %7[a-zA-Z] , %7[a-zA-Z] -> %7[a-zA-Z]", a, b, y) == 3;
    letters_of(a, b, true, y, true, both);
    letters_of(a, b, true, y, false, summed);
    letters_of(a, b, false, y, true, of_a);
    letters_of(b, a, false, y, true, of_b);
    snprintf(left, sizeof left, "%s%s%s", both, of_a, summed);
    snprintf(right, sizeof right, "%s%s%s", both, summed, of_b);
    snprintf(made, sizeof made, "%s%s%s", both, of_a, of_b);
    if (!reads || r->node->inputs != 2 || (int)strlen(a) != in[0].rank || (int)strlen(b) != in[1].rank ||
        strlen(y) > WEFT_RANK || strlen(left) != strlen(a) || strlen(right) != strlen(b) ||
        strlen(made) != strlen(y)) {
        weft__onnx_fail(r, "equation %.40s; expected a product of two matrices, ij,jk->ik", equation);
        return;
    }
    for (int i = 0; a[i]; i++)
        extent[(unsigned char)a[i]] = in[0].size[i];
    for (int i = 0; b[i]; i++)
        extent[(unsigned char)b[i]] = in[1].size[i];
    int64_t n = extents_of(both, extent, size), rows = extents_of(of_a, extent, size),
            inner = extents_of(summed, extent, size), columns = extents_of(of_b, extent, size);
    value x = ordered(r, in, a, left), z = ordered(r, in + 1, b, right);
    x = weft__onnx_reshape(r, &x, 3, (int64_t[]){ n, rows, inner });
    z = weft__onnx_reshape(r, &z, 3, (int64_t[]){ n, inner, columns });
    x = multiplied(r, &x, &z);
    extents_of(made, extent, size);
    x = weft__onnx_reshape(r, &x, (int)strlen(made), size);
    *out = ordered(r, &x, made, y);
}

const operation weft__onnx_products[] = {
    { "MatMul", matmul, .inputs = -2 }, { "Einsum", einsum, .inputs = -1 }, { "Gemm", gemm, .inputs = -2 },
    { .name = NULL },
};
