/* layers.h - the common parts of the tests of layers: ragged inputs, parameters with random values, gradients
 * against differences, a product by loops. */
#ifndef WEFT_TESTS_LAYERS_H
#define WEFT_TESTS_LAYERS_H
#include "tests/check.h"
#include "nn/nn.h"

#define EXACT TOL(1e-12, 3e-6)
enum { N = 4, TOKENS = 3 + 0 + 5 + 1 };
static const int32_t lengths_of_n[N] = { 3, 0, 5, 1 };
static const weft_lengths some = { .n = N, .len = lengths_of_n };

UNUSED static weft_tensor *drawn(weft *w, int rank, const int64_t *shape)
{
    return weft_rand(w, -1, 1, rank, shape);
}
UNUSED static weft_tensor *ragged(weft *w, int64_t width, const weft_lengths *l)
{
    static weft_real rows[4096];
    int64_t tokens = 0;
    for (int64_t s = 0; s < l->n; s++)
        tokens += l->len[s];
    cr_assert(tokens * width <= COUNT(rows));
    return weft_ragged(w, dice_fill(rows, tokens * width, -1, 1), width, l);
}

/* Replaces the initial values of all parameters, so that biases are not 0. */
UNUSED static void renew(weft_module *m)
{
    weft_real values[4096];
    for (int i = 0; i < weft_parameter_count(m); i++) {
        weft_tensor *p = weft_parameter_at(m, i, NULL);
        cr_assert(weft_numel(p) <= COUNT(values));
        weft_assign_values(p, dice_fill(values, weft_numel(p), -.9, .9), weft_numel(p));
    }
}

UNUSED static weft_real *of(const weft_module *m, const char *path)
{
    return numbers(weft_find_parameter(m, path));
}

/* ---- gradients: of a weighted sum of the result, by all parameters and by the tensors given ---- */
typedef struct { weft_tensor *(*run)(weft_tensor *const *x, void *user); void *user; } probe;

UNUSED static weft_tensor *weighted(weft_tensor *const *x, void *user)
{
    const probe *p = user;
    weft_tensor *y = weft_plain(p->run(x, p->user));
    weft_real c[4096];
    cr_assert(weft_numel(y) <= COUNT(c));
    for (int64_t i = 0; i < weft_numel(y); i++)
        c[i] = (weft_real)sin(1 + .7 * (double)i);
    int64_t n = weft_numel(y);
    return weft_sum_all(weft_mul(weft_reshape(y, 1, &n), weft_reals(weft_context_of(y), c, 1, &n)));
}

UNUSED static void gradients_hold(const weft_module *m, probe p, weft_tensor *const *x, int n)
{
    weft_tensor *all[64];
    int k = 0;
    for (; k < n; k++)
        all[k] = x[k];
    for (int i = 0; m && i < weft_parameter_count(m); i++)
        all[k++] = weft_parameter_at(m, i, NULL);
    /* slow twice; here it only runs, other tests check values */
    if (CHECK_SANITIZED && getenv("WEFT_SMALL")) {
        weft_backward(weighted(all, &p));
        OK(weft_context_of(all[0]));
        return;
    }
    double off = weft_gradcheck(weighted, all, k, 1, &p);
    OK(weft_context_of(all[0]));
    cr_assert(off < TOL(1e-7, 2e-2), "gradients are off by %g", off);
    off = sizeof(weft_real) == 8 ? weft_gradcheck(weighted, all, k, 2, &p) : 0;
    OK(weft_context_of(all[0]));
    cr_assert(off < 1e-5, "second derivatives are off by %g", off);
}

/* ---- y = x W^T + b, by loops ---- */
UNUSED static void product(const weft_real *x, const weft_real *weight, const weft_real *bias, int64_t rows,
                           int64_t in, int64_t out, weft_real *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < out; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum += (double)x[r * in + i] * (double)weight[o * in + i];
            y[r * out + o] = (weft_real)sum;
        }
}
#endif
