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
/* Fails the context as an operator does. format and its arguments, as for printf, give the message.
 * Does nothing if w is NULL or has failed before, or status is WEFT_OK. The function returns to
 * its caller. Like raise. */
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
/* Returns the layout of x; WEFT_PLAIN for a plain tensor and for NULL. */
WEFT_API weft_layout weft_layout_of(const weft_tensor *x);
/* Returns n + 1 numbers for n sequences in the user's order: the first row of each sequence in the
 * layout CONCAT, then the number of tokens. The layout of x does not matter. The step owns the
 * array, in host memory. Returns NULL if x is not ragged. Like cu_seqlens. */
WEFT_API const int32_t *weft_offsets(const weft_tensor *x);
/* Sequence and position of each row of a ragged tensor, in host memory. */
typedef struct {
    const int32_t *sequence;           /* [rows] number of the sequence in the user's order */
    const int32_t *position;           /* [rows] from 0, plus weft_lengths.offset of the sequence */
} weft_rows;
/* Returns the sequence and the position of every row of x, in the order of x's layout. In a pad of
 * the layout ROWS both are -1. The step owns the arrays. Returns NULLs, without an error, if x is
 * not ragged. */
WEFT_API weft_rows weft_rows_of(const weft_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
