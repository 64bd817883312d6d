/* pickle.h - the values of a pickle: pickle.c makes them, torch.c reads them. */
#ifndef WEFT_IO_PICKLE_H
#define WEFT_IO_PICKLE_H
#include "io/weights/weights.h"

typedef enum {
    WEFT__P_MARK, /* on the stack only */
    WEFT__P_OTHER, /* None, bytes, an integer of more than 64 bits */
    WEFT__P_FLAG,
    WEFT__P_INT,
    WEFT__P_REAL, /* Python's bool, int, float */
    WEFT__P_TEXT,
    WEFT__P_TUPLE,
    WEFT__P_LIST,
    WEFT__P_DICT, /* items: key, value, key, value .. */
    WEFT__P_GLOBAL, /* a function or a type that weft knows */
    WEFT__P_FOREIGN, /* any other, and objects made by it; text: "posix.system" */
    WEFT__P_STORAGE, /* items: "storage", its type, key, device, number of elements */
    WEFT__P_TENSOR, /* items: storage, offset, shape, strides, .. */
} weft__tag;

typedef struct weft__value {
    weft__tag tag;
    uint32_t n; /* TEXT, FOREIGN: bytes. GLOBAL: a weft__number */
    union {
        int64_t whole; /* FLAG, INT, GLOBAL */
        double real;
        const char *text; /* without a final 0 */
        struct weft__items *items; /* from TUPLE on, except GLOBAL and FOREIGN */
    };
} weft__value;

typedef struct weft__items {
    weft__value *item;
    size_t n, room;
    bool visited; /* for torch.c: ends cycles */
} weft__items;

/* Returns the number type of a GLOBAL such as torch.FloatStorage or torch.uint16; -1: any other value. A
 * storage without a type has WEFT__CHARS. */
int weft__value_number(const weft__value *v);
/* Evaluates a pickle. It can name functions, but only a closed list of functions is known, and none of them
 * runs code. Results of all other functions are FOREIGN. Returns false after a failure. */
bool weft__pickle_read(weft__weights *, const weft__member *, weft__value *out);
#endif
