/* tensor.h - the tensor: its form, its header and its data. */
#ifndef WEFT_CORE_TENSOR_H
#define WEFT_CORE_TENSOR_H
#include "core/kernels.h"

typedef struct weft_batch weft_batch;
/* Everything about a tensor except its data, so y->f = x->f copies shape and layout. batch: NULL for a plain
 * tensor. place: only for the layout ROWS. */
typedef struct weft__form {
    weft_dtype type;
    int rank;
    int64_t size[WEFT_RANK];
    weft_batch *batch;
    weft_layout layout;
    weft_align align;
    const struct weft__place *place;
} weft__form;

/* slot: memory of the level above, zeroed with the header. core/ does not use it. */
enum { WEFT__TENSOR_SLOT = 12 };
struct weft_tensor {
    weft *w;
    uint64_t step;                               /* step that made it; 0: lives until weft_close */
    weft__form f;
    real *data;                                  /* device memory; int32_t * for WEFT_I32 */
    uint64_t slot[WEFT__TENSOR_SLOT];
};

/* ---- tensor.c ---- */
weft_tensor *weft__header(weft *, const weft__form *);
/* Makes a tensor; host_values NULL: zeros. Never returns NULL. */
weft_tensor *weft__tensor(weft *, const weft__form *, const void *host_values);
/* Makes a tensor without initialising its data. */
weft_tensor *weft__empty(weft *, const weft__form *);
weft__form   weft__plain(weft_dtype, int rank, const int64_t *shape);
int64_t      weft__elements(const weft__form *);
int64_t      weft__rows(const weft__form *);     /* the product of all extents except the last */
int64_t      weft__bytes(const weft__form *);
/* Returns the bytes to allocate. Ints get the size of doubles, so reading ints as reals by mistake stays
 * within allocated memory. */
int64_t      weft__capacity(const weft__form *);
/* Returns false, and fails the context, if an extent is negative or there are too many elements. */
bool         weft__extents_are_possible(weft *, const weft__form *);
bool         weft__forms_equal(const weft__form *, const weft__form *);   /* type, shape, batch, layout */
const char  *weft__text(const weft__form *, char buffer[128]);
/* The same, in a buffer that lives until the end of the block. */
#define WEFT__TEXT(form) weft__text(form, (char[128]){ 0 })
/* Returns advice for a layer that expects reals: how to turn ints into reals, or "" for reals. */
static inline const char *weft__ids_advice(const weft__form *f)
{
    return f->type == WEFT_I32 ? " (ids: weft_embedding_run; numbers: weft_to_reals)" : "";
}
/* Reads like weft_read and returns the context's status. */
weft_status  weft__read(const weft_tensor *, void *out, size_t bytes);
/* Returns why the handle is invalid, or NULL. */
const char  *weft__handle_error(const weft *, const weft_tensor *);
/* Checks that x is a tensor that w can use now. Otherwise fails the context with the formatted name of x and
 * the reason. A macro, because a step of a stream checks five tensors. */
#define WEFT__IS_USABLE(w, x, ...) (!weft__handle_error(w, x) || weft__refuse_tensor(w, x, __VA_ARGS__))
/* Returns false. */
bool weft__refuse_tensor(weft *, const weft_tensor *, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Stores a reason for the NULL that the caller returns. The next operator that gets it reports this text. */
void         weft__explain_null(weft *, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
