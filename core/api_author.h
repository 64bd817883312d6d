/* api_author.h - properties of tensors and of the context, for authors of layers and operators.
 *
 * Contents: the context, tensors, rows of a ragged tensor. */
#ifndef WEFT_API_AUTHOR_H
#define WEFT_API_AUTHOR_H
#include "api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the context ---- */
/* Fails the context as an operator does, with a text as for printf. Like raise. */
WEFT_API void weft_fail(weft *w, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns whether dropout is on; false for NULL. Like Module.training. */
WEFT_API bool weft_is_training(const weft *w);
/* Returns whether the tape is on; false for NULL. Like torch.is_grad_enabled. */
WEFT_API bool weft_is_grad_enabled(const weft *w);

/* ---- tensors ---- */
/* Returns WEFT_REAL or WEFT_I32. Like x.dtype. */
WEFT_API weft_dtype weft_dtype_of(const weft_tensor *x);

/* ---- rows of a ragged tensor ---- */
/* Returns the layout of a ragged tensor, WEFT_PLAIN for any other. */
WEFT_API weft_layout weft_layout_of(const weft_tensor *x);
/* Returns the first row of each sequence in the layout CONCAT, [n + 1]. Owned by the step; NULL if
 * x is not ragged. Like cu_seqlens. */
WEFT_API const int32_t *weft_offsets(const weft_tensor *x);
typedef struct {
    const int32_t *sequence;           /* [rows] */
    const int32_t *position;           /* [rows] position in the sequence, its offset included */
} weft_rows;
/* Returns sequence and position of every row in x's layout; -1 in a pad of the layout ROWS. Owned
 * by the step; NULLs if x is not ragged. */
WEFT_API weft_rows weft_rows_of(const weft_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
