/* api_op.h - what the author of an operator needs: its record, its call, what its functions ask.
 *
 * Contents: the call, the record, applying it, for shape functions, for raw functions.
 *
 * An operator is a record of functions: a shape rule, a forward in raw memory, a backward in
 * operators or, for walks that are not recorded, in raw memory. weft_op_apply takes it through the
 * same door as the library's own: it is checked, arranged, recorded and differentiated like them.
 *
 * None of the functions can end the step that it runs in (see weft_clear), or start a backward pass
 * inside a backward pass. Tensors that they return must be of this context and step.
 *
 * Raw functions (forward, fused) run on the host, wherever the tensors are: on a GPU the numbers
 * that they ask for are copied there and back, unless the record says .device. No program gets a
 * device pointer that has not asked for one. docs/tutorial.md has an operator of one's own. */
#ifndef WEFT_API_OP_H
#define WEFT_API_OP_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the call ---- */
/* A call is one use of an operator: m results, n inputs, a copy of the attributes. Results are
 * those a user sees, then others that only the backward needs. */
typedef struct weft_op weft_op;
typedef struct weft_call {
    const weft_op *op;
    weft_tensor  **y, **x;
    int            m, n;
    const void    *attributes;
    bool           add;                       /* forward: y[0] += instead of = (only if op->adds) */
    bool           host;               /* raw functions get host memory; false: the device's own */
} weft_call;

/* ---- the record ---- */
struct weft_op {
    const char *name;
    int         results;                         /* up to 6; 0 means 1 */
    /* of ragged inputs; PLAIN: the first ragged input's, but concat for rows; ROWS: as they come */
    weft_layout layout;
    bool        adds, in_place;    /* forward obeys add; y[0] may overwrite an input of its shape */
    bool        ragged_apart;                    /* ragged inputs may be of different batches */
    bool        moves;        /* makes no numbers: each is an input's, or was given with the call */
    bool        no_gradient;                     /* says that there is none: gradients stop here */
    /* raw functions want the device's own memory, and start kernels there; else they get host
     * memory. On a CPU it is the same */
    bool        device;
    /* bit i: no backward reads the numbers of x[i], so a parameter there may change before it;
     * 0: all are read */
    uint32_t    unread;
    /* sets each result's shape (weft_op_like, weft_op_set_shape) and returns true, or returns
     * weft_op_refuse, which says why; a bare false is not allowed */
    bool (*shape)(weft_call *);
    /* NULL: the result is a view of x[0], with as many elements and of its type */
    void (*forward)(weft_call *);
    /* gradient of x[i], of its shape, from that of y[0], in operators; it returns NULL where there
     * is none. Neither this nor fused nor composed: a way back through it is an error */
    weft_tensor *(*backward)(const weft_call *, weft_tensor *dy, int i);
    /* instead, for walks that are not recorded: raw, by weft_op_dy and weft_op_dx */
    void (*fused)(const weft_call *);
    bool        once;                            /* fused destroys what was saved */
    /* the same function from operators; walked when fused may not run */
    void (*composed)(const weft_call *, weft_tensor **y);
    /* for weft_print_tape and weft_plot_tape: writes what the attributes say into `text`, which is
     * "", as snprintf does ("axis=1, from=0, to=2"); NULL: nothing is shown of them */
    void (*describe)(const weft_call *, char *text, size_t size);
};

/* ---- applying it ---- */
/* Applies an operator: checks error state, handles, layouts and shapes, makes the result,
 * records, runs. Attributes are copied. */
WEFT_API weft_tensor *weft_op_apply(const weft_op *op, weft_tensor *const *x, int64_t n,
                                    const void *attributes, size_t bytes);

/* ---- for shape functions ---- */
/* y like x; y a plain tensor of that shape; and the refusal, whose text names operator and shapes
 * (returns false). */
WEFT_API void weft_op_like(weft_tensor *y, const weft_tensor *x);
WEFT_API void weft_op_set_shape(weft_tensor *y, weft_dtype type, int rank, const int64_t *shape);
WEFT_API bool weft_op_refuse(const weft_call *call, const char *why);

/* ---- for raw functions ---- */
/* The numbers of x, row by row, in host memory (of an operator that says .device, in device
 * memory). Of inputs they are to be read, of results in forward to be written; what is written to
 * anything else is lost. They are good until the raw function returns. NULL for NULL; NULL and an
 * error for a handle that has ended, and on a GPU outside a raw function (weft_read copies numbers
 * there). Ints for weft_op_data and reals for weft_op_int_data are an error that names the
 * operator; what they return then may be read and written, in vain. */
WEFT_API weft_real *weft_op_data(const weft_tensor *x);
WEFT_API int32_t *weft_op_int_data(const weft_tensor *x);
/* In `fused`, in the same memory: the gradient of result k (NULL: none came), and where that of
 * input i goes (NULL: not needed; *add: += or =). */
WEFT_API const weft_real *weft_op_dy(const weft_call *call, int k);
WEFT_API weft_real *weft_op_dx(const weft_call *call, int i, bool *add);

#ifdef __cplusplus
}
#endif
#endif
