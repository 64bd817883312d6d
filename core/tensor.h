/* tensor.h - tensors: their form, their header, their numbers. */
#ifndef WEFT_CORE_TENSOR_H
#define WEFT_CORE_TENSOR_H
#include "core/kernels.h"

typedef struct weft_batch weft_batch;
/* All of a tensor except its numbers: y->f = x->f. batch NULL: a plain tensor. place: of the layout rows. */
typedef struct weft__form {
    weft_dtype type;
    int rank;
    int64_t size[WEFT_RANK];
    weft_batch *batch;
    weft_layout layout;
    weft_align align;
    const struct weft__place *place;
} weft__form;

/* slot: memory of the floor above, zeroed when the header is made. This floor does not look into it. */
enum { WEFT__TENSOR_SLOT = 12 };
struct weft_tensor {
    weft *w;
    uint64_t step;                               /* 0: until weft_close */
    weft__form f;
    real *data;                                  /* device memory; int32_t * for WEFT_I32 */
    uint64_t slot[WEFT__TENSOR_SLOT];
};

/* ---- tensor.c ---- */
weft_tensor *weft__header(weft *, const weft__form *);
/* host_values NULL: zeros. Never returns NULL. */
weft_tensor *weft__tensor(weft *, const weft__form *, const void *host_values);
/* A tensor whose numbers are still to be written. */
weft_tensor *weft__empty(weft *, const weft__form *);
weft__form   weft__plain(weft_dtype, int rank, const int64_t *shape);
int64_t      weft__elements(const weft__form *);
int64_t      weft__rows(const weft__form *);     /* the product of all extents except the last */
int64_t      weft__bytes(const weft__form *);
/* Bytes to take for a tensor. Ints have room for doubles, so ints that are read as reals by mistake lie in
 * the library's memory. */
int64_t      weft__room(const weft__form *);
/* Returns false, and the context fails, if an extent is negative or there are too many elements. */
bool         weft__possible(weft *, const weft__form *);
bool         weft__same(const weft__form *, const weft__form *);      /* type, shape, batch, layout */
const char  *weft__text(const weft__form *, char buffer[128]);
/* For a message of a layer that expects reals: how ints become reals, or "" if these are reals. */
static inline const char *weft__of_ids(const weft__form *f)
{
    return f->type == WEFT_I32 ? " (ids: weft_embedding_run; numbers: weft_to_reals)" : "";
}
/* weft_read, whose error is the context's */
weft_status  weft__read(const weft_tensor *, void *out, size_t bytes);
/* Returns why the handle is not valid, or NULL. */
const char  *weft__wrong(const weft *, const weft_tensor *);
/* Keeps a text for the message of the operator that gets the NULL that the caller returns. */
void         weft__say_missing(weft *, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
