/* products.c - matrix products. */
#include <stdio.h>
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

/* ---- Einsum ---- */
/* Brings the axes of x, with these letters, to the order of `to`; letters that x lacks get the extent 1. */
static value ordered(run *r, const value *x, const char *letters, const char *to)
{
    int axes[WEFT_RANK], n = 0, rank = (int)strlen(to);
    int64_t size[WEFT_RANK];
    for (int i = 0; i < rank; i++) {
        const char *at = strchr(letters, to[i]);
        size[i] = at ? x->size[at - letters] : 1;
        if (at)
            axes[n++] = (int)(at - letters);
    }
    value y = n == x->rank ? weft__onnx_permute(r, x, axes) : (value){ 0 };
    return y.type ? weft__onnx_reshape(r, &y, rank, size) : y;
}

/* Appends to `text` the letters of `from` that are in a, in b and in c as the flags say. */
static void letters_of(const char *from, const char *a, bool in_a, const char *b, bool in_b, char *text)
{
    for (; *from; from++)
        if (!strchr(a, *from) == !in_a && !strchr(b, *from) == !in_b)
            strncat(text, from, 1);
}

/* Two operands without repeated letters: one product of matrices between permutations. */
static void einsum(run *r, const value *in, value *out)
{
    char a[8] = "", b[8] = "", y[8] = "", both[16] = "", of_a[32] = "", of_b[32] = "", summed[16] = "",
         left[32], right[32], made[32];
    const char *equation = weft__onnx_string(r, "equation", "");
    int64_t size[WEFT_RANK], s[4] = { 1, 1, 1, 1 };
    if (sscanf(equation, " %7[a-zA-Z] , %7[a-zA-Z] -> %7[a-zA-Z]", a, b, y) != 3 || r->node->inputs != 2 ||
        !in[0].x || !in[1].x || (int)strlen(a) != in[0].rank || (int)strlen(b) != in[1].rank ||
        strlen(y) > WEFT_RANK) {
        weft__onnx_fail(r, "equation %.40s; expected two operands, ij,jk->ik", equation);
        return;
    }
    letters_of(a, b, true, y, true, both);
    letters_of(a, b, true, y, false, summed);
    letters_of(a, b, false, y, true, of_a);
    letters_of(b, a, false, y, true, of_b);
    snprintf(left, sizeof left, "%s%s%s", both, of_a, summed);
    snprintf(right, sizeof right, "%s%s%s", both, summed, of_b);
    snprintf(made, sizeof made, "%s%s%s", both, of_a, of_b);
    value x = ordered(r, in, a, left), z = ordered(r, in + 1, b, right);
    if (!x.type || !z.type || strlen(left) != strlen(a) || strlen(right) != strlen(b) ||
        strlen(made) != strlen(y)) {
        weft__onnx_fail(r, "equation %.40s; expected a product of two matrices", equation);
        return;
    }
    for (int i = 0; made[i]; i++) {
        const char *at = strchr(a, made[i]);
        size[i] = at ? in[0].size[at - a] : in[1].size[strchr(b, made[i]) - b];
    }
    int nb = (int)strlen(both), na = (int)strlen(of_a);
    s[0] = weft__onnx_product(x.size, nb);
    s[1] = weft__onnx_product(x.size + nb, na);
    s[2] = weft__onnx_product(x.size + nb + na, x.rank - nb - na);
    s[3] = weft__onnx_product(z.size + nb + (int)strlen(summed), z.rank - nb - (int)strlen(summed));
    x = weft__onnx_reshape(r, &x, 3, s);
    z = weft__onnx_reshape(r, &z, 3, (int64_t[]){ s[0], s[2], s[3] });
    value p = x.type && z.type ? weft__onnx_matmul(r, &x, &z) : (value){ 0 };
    p = p.type ? weft__onnx_reshape(r, &p, (int)strlen(made), size) : p;
    if (p.type)
        *out = ordered(r, &p, made, y);
}

const operation weft__onnx_products[] = {
    { "MatMul", matmul, -2, 0, NULL, NULL },
    { "Einsum", einsum, -1, 0, NULL, NULL },
    { "Gemm", gemm, -2, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
