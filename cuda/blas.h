/* blas.h - matrix products through cublasLt (blas.cu), for whoever multiplies (gemm.cu, recur.cu). */
#ifndef WEFT_CUDA_BLAS_H
#define WEFT_CUDA_BLAS_H
#include "cuda/cuda.h"

/* What algorithms are asked for: the number of rows for which they should be fast. It must follow from the
 * place of a product in the program, never from the batch. ROWS is between a batch of some thousand tokens,
 * which loses little by smaller tiles, and one of a few, which would wait for a large one. */
enum { ROWS = 1024, ROWS_OF_A_STEP = 64 };

/* c (+)= op(a) op(b), p->batches times, each in a place of its own if more than one; none of m, n, k is 0,
 * and all fit into an int. p->then is not looked at. bias: NULL, or, if a is not transposed, [n], added to
 * each row of c, `to_next` numbers from product to product; true: it was, false: cublasLt has no
 * algorithm that does. */
bool multiply(weft__device *, const weft__product *p, int64_t rows, const real *a, const real *b, real *c,
              const real *bias, int64_t to_next);
/* gemm.cu: as K(gemm), of that many rows. */
void gemm_of_rows(weft__device *, const weft__product *p, int64_t rows, const real *a, const real *b,
                  real *c);
/* step_product.cu: computes c [rows, n] (+)= a [rows, k] w, where w is [k, n], or [n, k] if transposed. part:
 * device memory for reals_of_parts(rows, k, n) numbers, or NULL if that is 0. */
int64_t reals_of_parts(int64_t rows, int64_t k, int64_t n);
void step_product(weft__device *, int64_t rows, const real *a, int64_t lda, const real *w, bool transposed,
                  int64_t n, int64_t k, real *c, int64_t ldc, bool add, real *part);
#endif
