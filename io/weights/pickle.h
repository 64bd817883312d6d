/* pickle.h - the values of a pickle: pickle.c makes them, torch.c reads them. */
#ifndef WEFT_IO_PICKLE_H
#define WEFT_IO_PICKLE_H
#include "io/weights/weights.h"

typedef enum {
    WEFT__P_MARK,                                /* on the stack only */
    WEFT__P_OTHER,                               /* None, bool, bytes, an integer of more than 64 bits */
    WEFT__P_INT,
    WEFT__P_REAL,
    WEFT__P_TEXT,                                /* of n bytes, without a final 0 */
    WEFT__P_TUPLE, WEFT__P_LIST,
    WEFT__P_DICT,                                /* items: key, value, key, value .. */
    WEFT__P_STORAGE,                             /* items: "storage", its type, key, device, length */
    WEFT__P_TENSOR,                              /* items: storage, offset, shape, strides, .. */
    WEFT__P_GLOBAL,                              /* a function or type that weft knows; n: a weft__number */
    WEFT__P_FOREIGN,                             /* any other, or an object made by it; text: its name */
} weft__tag;

typedef struct weft__value {
    weft__tag tag;
    uint32_t n;
    union { int64_t whole; double real; const char *text; struct weft__items *items; };
} weft__value;

typedef struct weft__items {
    weft__value *item;
    size_t n, room;
    bool visited;                                /* for torch.c: ends cycles */
} weft__items;

/* Returns the number type of a GLOBAL such as torch.FloatStorage or torch.uint16; -1: any other value. A
 * storage without a type has WEFT__CHARS. */
int weft__value_number(const weft__value *v);
/* Evaluates a pickle. It can name any function, but none runs. Returns false after a failure. */
bool weft__pickle_read(weft__weights *, const weft__member *, weft__value *out);
#endif
