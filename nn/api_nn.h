/* api_nn.h - modules and their parameters.
 *
 * Contents: modules, parameters and buffers, finding and counting them, their gradients.
 *
 * A module tree owns its parameters; weft_parameter_at walks them, weft_flat_gradient has their
 * gradients as one vector. Layers hang below a module and end with the context. A layer that could
 * not be made is an empty one; running it gives an inert tensor. Names are those of PyTorch, joined
 * by dots: "encoder.weight_ih_l0". */
#ifndef WEFT_API_NN_H
#define WEFT_API_NN_H
#include "../autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules ---- */
typedef struct weft_module weft_module;
/* A root, and a module below another. A name has 1 to 63 bytes, no dots and no slashes, and is
 * unique among all that a module holds: modules, parameters, buffers. Roots may share a name: a
 * copy of a model starts with the same values. A module that could not be made is an inert one,
 * never NULL; what is asked of it is an error, or nothing. */
WEFT_API weft_module *weft_module_new(weft *w, const char *name);
WEFT_API weft_module *weft_submodule_new(weft_module *parent, const char *name);
/* The context of a module. */
WEFT_API weft *weft_module_context(const weft_module *m);

/* ---- parameters and buffers ---- */
/* How a parameter [out, in, ..] starts, a the gain (0: 1) of the last three, which want a rank of 2
 * or more: XAVIER uniform in +-a sqrt(6 / (in + out)), Glorot & Bengio 2010; KAIMING in +-a sqrt(6
 * / in), He et al. 2015; further extents multiply both in and out. ORTHOGONAL: as [out, rest] its
 * rows or columns, whichever are fewer, are orthogonal and of length a, Saxe et al. 2013. */
typedef enum {
    WEFT_INIT_ZERO,
    WEFT_INIT_CONSTANT,
    WEFT_INIT_UNIFORM,
    WEFT_INIT_NORMAL,
    WEFT_INIT_XAVIER,
    WEFT_INIT_KAIMING,
    WEFT_INIT_ORTHOGONAL
} weft_init_kind;
/* UNIFORM: from a to b, a <= b, not both 0; NORMAL: mean a, deviation b, more than 0. */
typedef struct { weft_init_kind kind; double a, b; } weft_init;
/* A trained tensor of the module; lives until weft_close. Its first values depend on (seed, path of
 * the parameter from the root's name on) only: not on what else was made, or when. */
WEFT_API weft_tensor *weft_parameter(weft_module *m, const char *name, int rank,
                                     const int64_t *shape, weft_init init);
/* Saved, not trained; zeros at first. */
WEFT_API weft_tensor *weft_buffer(weft_module *m, const char *name, int rank, const int64_t *shape);
/* Copies a value into a buffer or a parameter (or a gradient) of the same shape, both plain: what
 * must outlive a step (a carried state) goes this way. An operator's backward that reads a
 * parameter or buffer which has changed since its call is an error of weft_backward: assign to what
 * this step has used after weft_backward, or let the operator use a copy, weft_scale(x, 1). A
 * recurrent layer copies the states that it is given. */
WEFT_API void weft_assign(weft_tensor *kept, weft_tensor *value);
/* The same from host memory. */
WEFT_API void weft_assign_values(weft_tensor *kept, const weft_real *values, int64_t n);
/* Starts a parameter anew: with the same init it has its first values again. */
WEFT_API void weft_initialise(weft_tensor *parameter, weft_init init);
/* Makes `name` in m another name of an existing parameter (of the same root): tied weights.
 * weft_find_parameter knows both; counted, frozen, zeroed, stepped and saved it is under its first
 * name only. */
WEFT_API void weft_tie(weft_module *m, const char *name, weft_tensor *parameter);
/* Freezes the parameters whose path below m fits a shell pattern, or frees them again: "*" all,
 * "encoder.*", "embed.weight" (* any letters, dots too, ? one letter, [..] one of them). A frozen
 * one gets no gradient and no step; freezing forgets the gradient there is. A pattern that fits no
 * parameter is an error; a tied one is found by its first name. */
WEFT_API void weft_freeze(weft_module *m, const char *pattern, bool frozen);

/* ---- finding and counting them ---- */
/* Parameters and buffers below m in the order in which they were made: their number, the i-th, its
 * path below m (owned by the context; path may be NULL). No such i is an error. */
WEFT_API int weft_parameter_count(const weft_module *m);
WEFT_API weft_tensor *weft_parameter_at(const weft_module *m, int i, const char **path);
WEFT_API int weft_buffer_count(const weft_module *m);
WEFT_API weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path);
/* Returns a parameter or buffer by its path below m, "encoder.weight_ih_l0"; NULL if there is none.
 * An operator that gets this NULL then names the path, until weft_clear. */
WEFT_API weft_tensor *weft_find_parameter(const weft_module *m, const char *path);
/* Numbers to train below m, tied ones once, frozen ones included. */
WEFT_API int64_t weft_parameter_numel(const weft_module *m);
/* Prints a table: a line for each parameter and buffer below m with its path, shape, numbers, and
 * whether it is frozen, tied or a buffer; then the totals. */
WEFT_API void weft_print_module(FILE *file, const weft_module *m);

/* ---- their gradients ---- */
/* Zeroes the gradients below m; divides them by a scalar tensor (0 if it is 0): one division
 * after accumulation. */
WEFT_API void weft_zero_grad(weft_module *m);
WEFT_API void weft_divide_grad(weft_module *m, weft_tensor *divisor);
/* All gradients below m as one plain vector [weft_parameter_numel(m)], in the order of
 * weft_parameter_at: tied ones once, frozen ones 0. A copy, a constant of the step. */
WEFT_API weft_tensor *weft_flat_gradient(weft_module *m);

#ifdef __cplusplus
}
#endif
#endif
