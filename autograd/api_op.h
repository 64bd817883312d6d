/* api_op.h - operators of your own: the record of an operator and the functions for it.
 *
 * An operator is a record of functions: a shape rule, a forward in raw memory, and a backward in
 * operators or in raw memory. weft_op_apply checks, arranges, records and differentiates it as the
 * library's own operators. None of the functions can end the step that it runs in (see weft_clear)
 * or start a backward pass inside a backward pass. Tensors that they return must belong to this
 * context and step.
 *
 * Raw functions (forward, fused) run on the host. On a GPU weft copies the numbers that they ask
 * for to the host and back, unless the record sets .device. Only a program that sets it gets device
 * pointers. docs/tutorial.md has an example. */
#ifndef WEFT_API_OP_H
#define WEFT_API_OP_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the call ---- */
typedef struct weft_op weft_op;                  /* the record of an operator */
/* One use of an operator. The caller gets y[0] only; y[1] .. keep numbers for the backward pass. */
typedef struct weft_call {
    const weft_op *op;
    weft_tensor  **y;                            /* [m] results */
    weft_tensor  **x;                            /* [n] inputs */
    int            m;                            /* number of results */
    int            n;                            /* number of inputs */
    const void    *attributes;                   /* a copy of those given to weft_op_apply */
    bool           add;                          /* forward must add to y[0]; only with op->adds */
    bool           host;                         /* !op->device, also on a CPU */
} weft_call;

/* ---- the record ---- */
struct weft_op {
    const char *name;                            /* required, for messages and the tape */
    int         results;                         /* y[0] and saved ones, up to 6; 0 means 1 */
    /* Layout of ragged inputs; weft converts inputs in another layout by a copy. PLAIN: that of the
     * first ragged input, but CONCAT for ROWS. ROWS: each input as it is. PADDED: an error. */
    weft_layout layout;
    /* forward can add to y[0], if call->add. This saves a copy where gradients are summed. */
    bool        adds;
    /* forward stays correct if y[0] and an input of y[0]'s shape are the same memory. weft shares
     * memory so only in backward passes, and only if .adds is set. */
    bool        in_place;
    bool        ragged_apart;                    /* ragged inputs may belong to different batches */
    /* forward only copies numbers: WEFT_CHECK=1 accepts NaN in results. false is always allowed. */
    bool        moves;
    bool        no_gradient;                     /* gradients stop here */
    /* On a GPU raw functions get device memory, for kernels; false: host memory. On a CPU all
     * memory is host memory; see weft_device_name. weft's CUDA stream is private and does not wait
     * for others: weft_read an input before your first kernel, and synchronise after your last. */
    bool        device;
    /* Bit i: the backward pass does not read x[i], so the program may change a parameter there
     * before weft_backward. Without the bit such a change is an error. */
    uint32_t    unread;
    /* Required. Sets the shape of each result by weft_op_like or weft_op_set_shape and returns
     * true. Return false only through weft_op_refuse. */
    bool (*shape)(weft_call *);
    /* Computes the results, whose memory is not initialised. It reports errors by weft_fail. NULL:
     * the result is a view of x[0] with the same number of elements. */
    void (*forward)(weft_call *);
    /* Three functions for gradients; each may be NULL. weft_backward and weft_gradients use the
     * first that is not NULL of fused, composed and backward. weft_gradients_recorded, and a second
     * pass with .once, use the first of composed and backward. A pass without a function fails. */
    /* Returns the gradient of x[i], in x[i]'s shape, by operators from dy, the gradient of y[0].
     * weft calls it only for inputs that need a gradient. It may return NULL: x[i] gets none. */
    weft_tensor *(*backward)(const weft_call *, weft_tensor *dy, int i);
    /* Computes the gradients of all inputs in raw memory, in one call, by weft_op_dy and
     * weft_op_dx. */
    void (*fused)(const weft_call *);
    /* fused overwrites y[1] .., so weft calls it for one pass only. */
    bool        once;
    /* Computes the same function by operators into y [m], which are NULL before; y[1] .. may stay
     * NULL. weft differentiates these operators. */
    void (*composed)(const weft_call *, weft_tensor **y);
    /* Writes the attributes into `text` [size] as snprintf does, such as "axis=1, from=0, to=2".
     * weft_print_tape and weft_plot_tape show the text. NULL: they show no attributes. */
    void (*describe)(const weft_call *, char *text, size_t size);
};

/* ---- applying it ---- */
/* Applies an operator to n inputs, 1 or more: checks them, brings ragged ones to one layout, runs
 * forward and records it. Returns result 0, or an inert tensor on error. Copies the attributes
 * (NULL if bytes is 0). op is not copied: it must live as long as the step, so make it static.
 * Errors: op, its name, its shape function or an input NULL. Like torch.autograd.Function.apply. */
WEFT_API weft_tensor *weft_op_apply(const weft_op *op, weft_tensor *const *x, int64_t n,
                                    const void *attributes, size_t bytes);

/* ---- for shape functions ---- */
/* Gives result y the shape, type, batch and layout of x. Like torch.empty_like. */
WEFT_API void weft_op_like(weft_tensor *y, const weft_tensor *x);
/* Makes result y a plain tensor of that shape, WEFT_REAL or WEFT_I32. It cannot make a ragged
 * tensor. For a ragged result whose rows have another width than x's: set .layout = WEFT_CONCAT in
 * the record, give y the plain shape [N, ..] here, and pass the result of weft_op_apply to
 * weft_ragged_rows(.., x). Like torch.empty. */
WEFT_API void weft_op_set_shape(weft_tensor *y, weft_dtype type, int rank, const int64_t *shape);
/* Fails the context by WEFT_ESHAPE with operator, shapes and `why` as its message, which it copies.
 * Returns false: write `return weft_op_refuse(..)`. */
WEFT_API bool weft_op_refuse(const weft_call *call, const char *why);

/* ---- for raw functions ---- */
/* Returns the numbers of x row by row, in host memory, or in device memory if the record sets
 * .device. A forward function reads those of inputs and writes those of results. A fused function
 * reads both and writes by weft_op_dx. With .once it may also write y[1] .., as scratch: these
 * numbers may be lost when it returns. Valid until the raw function returns. The wrong function for
 * x's type fails the context and returns scratch memory of x's size. Returns NULL and fails the
 * context for an ended tensor, and on a GPU outside a raw function (use weft_read there). NULL for
 * NULL. Like x.data_ptr(). */
WEFT_API weft_real *weft_op_data(const weft_tensor *x);
WEFT_API int32_t *weft_op_int_data(const weft_tensor *x);
/* Returns the gradient of result k, of the shape of y[k], inside `fused`, to be read only. Host or
 * device memory, as from weft_op_data. NULL if no gradient reached the result, or k is not
 * 0 .. m - 1. Like grad_output. */
WEFT_API const weft_real *weft_op_dy(const weft_call *call, int k);
/* Returns the memory for the gradient of input i, of the shape of x[i], inside `fused`. Sets *add.
 * true: add to the memory; false: overwrite it. NULL if the gradient is not needed, or i is not
 * 0 .. n - 1. Like grad_input. */
WEFT_API weft_real *weft_op_dx(const weft_call *call, int i, bool *add);

#ifdef __cplusplus
}
#endif
#endif
