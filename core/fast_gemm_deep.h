/* fast_gemm_deep.h - products that are long sums into few numbers, as gradients of weights over all tokens are: the terms are cut into
 * segments, each with sums of its own, and those are added in order. So threads share the terms, where with a share of the sums each
 * would have to pack nearly all of them: two threads take 1.2 to 1.6 times as little time for it. The cuts depend on the product's extents
 * alone, and so do its bits. */
#ifndef WEFT_FAST_GEMM_DEEP_H
#define WEFT_FAST_GEMM_DEEP_H
#include "core/fast_gemm.h"

enum {
    SEGMENTS   = 8,
    DEEP_TERMS = SEGMENTS * KC,                  /* at least */
    DEEP_SUMS  = 1 << 17                         /* at most: a segment's stay in the second cache */
};
typedef struct deep_job { const weft__product *p; const real *a, *b, *sums; real *c; } deep_job;    /* sums [SEGMENTS, m, n] */

static bool is_deep(const weft__product *p)
{
    return p->ta && !p->tb && p->batches == 1 && !p->then && p->k >= DEEP_TERMS && p->m * p->n <= DEEP_SUMS;
}
/* n numbers of row i from column j on: what the segments have, and the last terms, which are too few to have one each. */
static vec deep_sum(const deep_job *j, int64_t i, int64_t column, int64_t n)
{
    const weft__product *p = j->p;
    const real *sum = j->sums + i * p->n + column;
    vec v = p->add ? v_load_to(j->c + i * p->ldc + column, n) + v_load_to(sum, n) : v_load_to(sum, n);
    for (int s = 1; s < SEGMENTS; s++)
        v += v_load_to(sum += p->m * p->n, n);
    for (int64_t l = p->k / SEGMENTS * SEGMENTS; l < p->k; l++) {
        vec b = v_load_to(j->b + l * p->ldb + column, n);
        real a = j->a[l * p->lda + i];
        for (int e = 0; rounds(p) && e < VLEN; e++)
            b[e] = rounded(b[e]);
        v = v_fma(v_set(rounds(p) ? rounded(a) : a), b, v);
    }
    return v;
}
static void deep_rows(const void *job, int64_t i, int64_t to)
{
    const deep_job *j = job;
    for (int64_t n = j->p->n; i < to; i++)
        EACH_VECTOR(l, n)
            v_store_to(j->c + i * j->p->ldc + l, deep_sum(j, i, l, n - l), n - l);
}
/* The segments are a batch of products. */
static void by_segments(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    weft__product part = *p;
    part.add = false, part.batches = SEGMENTS, part.k = p->k / SEGMENTS, part.ldc = p->n;
    part.stride_a = part.k * p->lda, part.stride_b = part.k * p->ldb, part.stride_c = p->m * p->n;
    gemm_job w = job_of(&part, a, b, NULL);
    if (run_tiles(d, &w, up(SEGMENTS * part.stride_c, 16)))
        each_range(d, p->m, rows_a_chunk(SEGMENTS * p->n), deep_rows, &(deep_job){ p, a, b, w.c, c });
}
#endif
