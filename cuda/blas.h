/* blas.h - matrix products through cublasLt (blas.cu), used by gemm.cu and recur.cu. */
#ifndef WEFT_CUDA_BLAS_H
#define WEFT_CUDA_BLAS_H
#include "cuda/cuda.h"

/* Expected number of rows; cublasLt optimises an algorithm for it. It must depend on the product's place in
 * the program, never on the batch. ROWS is a compromise: a batch of some thousand tokens loses little with
 * smaller tiles, and a batch of a few tokens would wait for large ones. */
enum { ROWS = 1024, ROWS_OF_A_STEP = 64 };

/* Computes c (+)= op(a) op(b), p->batches times; several results may not overlap. m, n and k are not 0 and
 * fit into an int. Ignores p->then. bias: NULL, or [n] if a is not transposed, added to each row of c;
 * `to_next` numbers from product to product. Returns true if it added the bias, false if cublasLt has no
 * algorithm for it. */
bool multiply(weft__device *, const weft__product *p, int64_t rows, const real *a, const real *b, real *c,
              const real *bias, int64_t to_next);
/* gemm.cu: as K(gemm), with algorithms for that number of rows. */
void gemm_of_rows(weft__device *, const weft__product *p, int64_t rows, const real *a, const real *b,
                  real *c);
/* step_product.cu: computes c [rows, n] (+)= a [rows, k] w. w is [k, n], or [n, k] if transposed. part:
 * device memory for reals_of_parts(rows, k, n) numbers, or NULL if that is 0. */
int64_t reals_of_parts(int64_t rows, int64_t k, int64_t n);
void step_product(weft__device *, int64_t rows, const real *a, int64_t lda, const real *w, bool transposed,
                  int64_t n, int64_t k, real *c, int64_t ldc, bool add, real *part);
#endif
