/* test_kernel_groups.c - tests groups of columns, as grouped layers use them. Each group has the same bits as
 * a separate layer. */
#include "kernel_run.h"

/* Each product of a batch on column groups of wide matrices equals the separate product. The weights are not
 * grouped. The products are strict, because matrix tiles serve only single products. */
static void products_of_groups(run *t, bool of_weight, int64_t m, int64_t n, int64_t k)
{
    const int64_t groups = 1 + size(4);
    weft__finish then = { reals(t, groups * n, -1, 1), n, WEFT__tanh, 0, 0 };
    weft__product p = { .ta = of_weight,
                        .tb = !of_weight,
                        .add = of_weight && coin(),
                        .m = m,
                        .n = n,
                        .k = k,
                        .precision = WEFT_STRICT_FP32,
                        .batches = groups,
                        .lda = groups * (of_weight ? m : k),
                        .ldb = of_weight ? groups * n : k,
                        .ldc = of_weight ? n : groups * n,
                        .stride_a = of_weight ? m : k,
                        .stride_b = of_weight ? n : n * k,
                        .stride_c = of_weight ? m * n : n,
                        .then = of_weight ? NULL : &then };
    real *a = reals(t, groups * m * k, -1, 1), *b = reals(t, groups * n * k, -1, 1),
         *c = reals(t, groups * m * n, -1, 1), *one = room(t, groups * m * n, sizeof *one);
    memcpy(one, c, (size_t)(groups * m * n) * sizeof *c);
    t->k->gemm(&t->d, &p, a, b, c);
    p.batches = 1;
    for (int64_t g = 0; g < groups; g++, then.bias += n)
        t->k->gemm(&t->d, &p, a + g * p.stride_a, b + g * p.stride_b, one + g * p.stride_c);
    same_bits("a group's product", c, one, groups * m * n);
    forget(t);
}
/* Copies the rows of a group to contiguous memory. */
static void rows_of_group(int64_t rows, int64_t width, int64_t groups, int64_t g, const real *x, real *to)
{
    for (int64_t r = 0; r < rows / groups; r++)
        memcpy(to + r * width, x + (r * groups + g) * width, (size_t)width * sizeof *to);
}
static void norms_of_groups(run *t, int64_t tokens, int64_t width)
{
    const int64_t groups = 1 + size(4), rows = tokens * groups;
    weft__layer_norm all = { .rows = rows, .width = width, .groups = groups, .eps = (real)1e-5 }, one;
    real *x = reals(t, rows * width, -2, 2), *dy = reals(t, rows * width, -1, 1),
         *part = room(t, 3 * tokens * width, sizeof *part), *sums = room(t, 2 * width, sizeof *sums);
    all.x = x, all.dy = dy, all.y = room(t, rows * width, sizeof *x);
    all.gain = reals(t, groups * width, 1, 2), all.shift = reals(t, groups * width, 1, 2);
    all.mean = room(t, rows, sizeof *x), all.rstd = room(t, rows, sizeof *x);
    all.dgain = room(t, groups * width, sizeof *x), all.dshift = room(t, groups * width, sizeof *x);
    memset(all.dgain, 0, (size_t)(groups * width) * sizeof *x);
    memset(all.dshift, 0, (size_t)(groups * width) * sizeof *x);
    t->k->layer_norm(&t->d, &all), t->k->layer_norm_back(&t->d, &all);
    for (int64_t g = 0; g < groups; g++) {
        one = all, one.rows = tokens, one.groups = 1, one.x = part, one.dy = part + tokens * width;
        one.y = part + 2 * tokens * width, one.gain += g * width, one.shift += g * width;
        one.dgain = sums, one.dshift = sums + width;
        memset(sums, 0, (size_t)(2 * width) * sizeof *sums);
        rows_of_group(rows, width, groups, g, x, part);
        rows_of_group(rows, width, groups, g, dy, part + tokens * width);
        t->k->layer_norm(&t->d, &one), t->k->layer_norm_back(&t->d, &one);
        rows_of_group(rows, width, groups, g, all.y, part);
        same_bits("a group's rows", part, one.y, tokens * width);
        same_bits("a group's gain", all.dgain + g * width, one.dgain, width);
        same_bits("a group's shift", all.dshift + g * width, one.dshift, width);
    }
    forget(t);
}
/* cuBLAS depends on sizes, and so do sums over rows on a GPU. */
RUN_TEST(groups, each_group_matches_a_separate_product)
{
    static const int64_t shapes[][3] = { { 5, 3, 4 }, { 40, 33, 70 }, { 700, 64, 8 }, { 64, 40, 2500 } };
    for (int i = 0; strncmp(t->k->name, "cuda", 4) && i < 2 * COUNT(shapes); i++) {
        const int64_t *of = shapes[i / 2];
        products_of_groups(t, i % 2, of[0], of[1], of[2]);
        norms_of_groups(t, of[0], of[1] + size(30));
    }
}
