/* packed_weights.h - a cache of packed weights, for calls that record nothing.
 *
 * Without it each streamed token and each step of decoding would pack the weights again, most of its work. */
#ifndef WEFT_KEPT_H
#define WEFT_KEPT_H
#include "core/context.h"

enum { WEFT__KEPT_OF = 6 };
/* PRODUCT: weights of a product. LAYER: those of a recurrent layer. TABLE: the projection of a table. From
 * PART on: a part of a product's weights; one weight may have several parts of equal size. */
typedef enum { WEFT__KEPT_PRODUCT, WEFT__KEPT_LAYER, WEFT__KEPT_TABLE, WEFT__KEPT_PART } weft__kept_kind;

/* A packed copy of n tensors of step 0, with their versions at that time. It ends with the context. */
typedef struct weft__kept {
    struct weft__kept *next;
    weft__kept_kind kind;
    struct { const weft_tensor *x; uint64_t changed; } of[WEFT__KEPT_OF]; int n;
    bool filled;
    size_t bytes; void *at;
} weft__kept;

/* Returns the packed copy of these tensors of step 0 by its kind, and makes it if necessary. NULLs in `of`
 * are skipped. `filled`: the tensors have not changed since weft__kept_is_filled. Returns NULL, without an
 * error, while recording, if the context is lean, above the limit, or without memory. */
weft__kept *weft__kept_of(weft_tensor *const *of, int n, weft__kept_kind kind, size_t bytes);
void        weft__kept_is_filled(weft__kept *);
#endif
