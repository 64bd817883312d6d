/* pickle.h - the values of a pickle: pickle.c makes them, torch.c reads them. */
#ifndef WEFT_IO_PICKLE_H
#define WEFT_IO_PICKLE_H
#include "io/weights/weights.h"

/* MARK: on the stack only. OTHER: None, bool, bytes, an integer of more than 64 bits. TEXT: of n bytes,
 * without a final 0. DICT: items are key, value, key, value .. STORAGE: "storage", its type, key, device,
 * length. TENSOR: storage, offset, shape, strides, .. GLOBAL: a function or type that weft knows, whole is
 * its number. FOREIGN: any other, or an object made by it; text is its name. */
typedef enum {
    WEFT__P_MARK, WEFT__P_OTHER, WEFT__P_INT, WEFT__P_REAL, WEFT__P_TEXT, WEFT__P_TUPLE, WEFT__P_LIST,
    WEFT__P_DICT, WEFT__P_STORAGE, WEFT__P_TENSOR, WEFT__P_GLOBAL, WEFT__P_FOREIGN
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
