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
/* Fails the context as an operator does, with a text as for printf, which it copies. Does nothing
 * if w is NULL or has failed before, or status is WEFT_OK. Returns to its caller. Like raise. */
WEFT_API void weft_fail(weft *w, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns whether dropout is on; false for NULL. Like Module.training. */
WEFT_API bool weft_is_training(const weft *w);
/* Returns whether the tape is on; false for NULL. Like torch.is_grad_enabled. */
WEFT_API bool weft_is_grad_enabled(const weft *w);

/* ---- tensors ---- */
/* Returns WEFT_REAL or WEFT_I32; WEFT_REAL for NULL. Like x.dtype. */
WEFT_API weft_dtype weft_dtype_of(const weft_tensor *x);

/* ---- rows of a ragged tensor ---- */
/* Returns the layout of a ragged tensor; WEFT_PLAIN for a plain tensor and for NULL. */
WEFT_API weft_layout weft_layout_of(const weft_tensor *x);
/* Returns n + 1 numbers for n sequences: the first row of each in the layout CONCAT (whatever
 * layout x has), then the number of tokens. In host memory, owned by the step; NULL if x is not
 * ragged. Like cu_seqlens. */
WEFT_API const int32_t *weft_offsets(const weft_tensor *x);
/* Sequence and position of each row of a ragged tensor, in host memory. */
typedef struct {
    const int32_t *sequence;           /* [rows] number of the sequence in the user's order */
    const int32_t *position;           /* [rows] position in the sequence, its offset included */
} weft_rows;
/* Returns sequence and position of every row in x's layout; both are -1 in a pad of the layout
 * ROWS. The step owns the arrays; NULLs if x is not ragged. */
WEFT_API weft_rows weft_rows_of(const weft_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
