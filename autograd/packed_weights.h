/* packed_weights.h - caches packed weights, for calls that record nothing.
 *
 * Without it, packing would be most of the work of a streamed token or a decoding step. */
#ifndef WEFT_PACKED_WEIGHTS_H
#define WEFT_PACKED_WEIGHTS_H
#include "core/context.h"

enum { WEFT__PACKED_TENSORS = 6 };
/* PRODUCT: weight of a matrix product. LAYER: weights of a recurrent layer. TABLE: projection of a table.
 * From PART on: parts of a product's weight, which may have several parts of equal size. */
typedef enum { WEFT__PACK_PRODUCT, WEFT__PACK_LAYER, WEFT__PACK_TABLE, WEFT__PACK_PART } weft__packed_kind;

/* A packed copy of n tensors of step 0, with their versions at that time. It ends with the context. */
typedef struct weft__packed {
    struct weft__packed *next;
    weft__packed_kind kind;
    struct { const weft_tensor *x; uint64_t version; } of[WEFT__PACKED_TENSORS]; int n;
    bool filled;
    size_t bytes; void *data;
} weft__packed;

/* Returns the packed copy of these tensors of step 0 by its kind, and makes it if necessary. NULLs in `of`
 * are skipped. `filled`: the tensors have not changed since weft__mark_filled. Returns NULL, without an
 * error, while recording, if the context is lean, above the limit, or without memory. */
weft__packed *weft__packed_of(weft_tensor *const *of, int n, weft__packed_kind kind, size_t bytes);
void        weft__mark_filled(weft__packed *);
#endif
