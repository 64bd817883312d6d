/* packed_weights.h - what kernels have packed of weights, kept from call to call while nothing is recorded: a
 * token that is streamed, a step of decoding, would pack them again each time, and that is most of its work.
 */
#ifndef WEFT_KEPT_H
#define WEFT_KEPT_H
#include "core/context.h"

enum { WEFT__KEPT_OF = 6 };
/* a product's weights; a recurrent layer's; a table's projection; from PART on: a part of a product's
 * weights, which have several of one size */
typedef enum { WEFT__KEPT_PRODUCT, WEFT__KEPT_LAYER, WEFT__KEPT_TABLE, WEFT__KEPT_PART } weft__kept_kind;

/* Of so many lasting tensors, as they were when it was filled. It lives until the context ends. */
typedef struct weft__kept {
    struct weft__kept *next;
    weft__kept_kind kind;
    struct { const weft_tensor *x; uint64_t changed; } of[WEFT__KEPT_OF]; int n;
    bool filled;
    size_t bytes; void *at;
} weft__kept;

/* What is kept of these lasting tensors (NULL among them: not there) by its kind; `filled`: they
 * have not changed since weft__kept_is_filled. NULL: nothing is kept, for it is recorded or lean, too much,
 * or there is no memory, which is no error. */
weft__kept *weft__kept_of(weft_tensor *const *of, int n, weft__kept_kind kind, size_t bytes);
void        weft__kept_is_filled(weft__kept *);
#endif
