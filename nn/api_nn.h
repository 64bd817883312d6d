/* api_nn.h - modules and their parameters.
 *
 * Contents: modules, parameters and buffers, finding and counting them, their gradients.
 *
 * A tree of modules owns its parameters, and the context owns everything here until weft_close.
 * "Below m" means in m and in all modules inside it. A path joins names by dots, as in PyTorch:
 * "encoder.weight_ih_l0"; a path below m does not contain m's name. Names and shapes are copied.
 *
 * Errors fail the context. A function that makes something then returns an inert object, never
 * NULL. An inert object has no contents. Running an inert layer, or adding
 * to an inert module, returns inert objects. With m NULL or inert, functions that count return 0
 * and functions without a result do nothing. */
#ifndef WEFT_API_NN_H
#define WEFT_API_NN_H
#include "../autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules ---- */
typedef struct weft_module weft_module;
/* Makes a root module. A name has 1 to 63 bytes, no dots and no slashes. Roots may share a name: a
 * copy of a model then starts with the same values. Errors: a bad name, w NULL or failed; returns
 * an inert module. Like torch.nn.Module. */
WEFT_API weft_module *weft_module_new(weft *w, const char *name);

/* ---- parameters and buffers ---- */
/* First values of a parameter; a and b are fields of weft_init, finite numbers. ZERO: 0, the
 * default. CONSTANT: a. UNIFORM: from a to b, a <= b, not both 0. NORMAL: mean a, standard
 * deviation b above 0. XAVIER, KAIMING and ORTHOGONAL use a as a factor (gain; 0 means 1), not b.
 * They need a shape [out, in, ..] of rank 2 or more; XAVIER and KAIMING multiply out and in by the
 * extents after the second. XAVIER: uniform in +-a sqrt(6 / (in + out)), Glorot & Bengio 2010.
 * KAIMING: uniform in +-a sqrt(6 / in), He et al. 2015. ORTHOGONAL: in the matrix [out, rest] the
 * rows, or the columns if fewer, are orthogonal, of length a, Saxe et al. 2013. */
typedef enum {
    WEFT_INIT_ZERO,
    WEFT_INIT_CONSTANT,
    WEFT_INIT_UNIFORM,
    WEFT_INIT_NORMAL,
    WEFT_INIT_XAVIER,
    WEFT_INIT_KAIMING,
    WEFT_INIT_ORTHOGONAL
} weft_init_kind;
typedef struct { weft_init_kind kind; double a, b; } weft_init;
/* Makes a trainable tensor of reals, which lives until weft_close. name: as for weft_submodule_new,
 * unique in m. rank is 0 to 6; extents may be 0. The first values depend only on the context's seed
 * and on the path, which here begins with the root's name. Errors: a bad or existing name, a bad
 * shape (above 2^44 elements) or init; returns an inert tensor. Like torch.nn.Parameter. */
WEFT_API weft_tensor *weft_parameter(weft_module *m, const char *name, int rank,
                                     const int64_t *shape, weft_init init);
/* Makes a tensor of reals, all 0, that checkpoints hold and optimisers do not change. Name, shape,
 * lifetime and errors: as for weft_parameter. Like Module.register_buffer. */
WEFT_API weft_tensor *weft_buffer(weft_module *m, const char *name, int rank, const int64_t *shape);
/* Copies all elements of `value` into `kept`, a buffer, a parameter or a gradient. Use it for
 * numbers that outlive the step, such as a carried state. The copy is not recorded: no gradient
 * flows through it. weft_backward fails if an operator needs a parameter or buffer that was
 * assigned after the operator read it. So assign after weft_backward, or give the operator a copy,
 * weft_scale(x, 1). A recurrent layer copies its first states itself. Errors: `kept` is a tensor of
 * a step; `value` is ragged, of ints or of another shape. Like p.copy_(x). */
WEFT_API void weft_assign(weft_tensor *kept, weft_tensor *value);
/* Copies n numbers from host memory, row by row, into a buffer, parameter or gradient. The array
 * may be freed after the call. Errors: n is not the number of elements; NULL. Like p.copy_(x). */
WEFT_API void weft_assign_values(weft_tensor *kept, const weft_real *values, int64_t n);
/* Sets a parameter to first values by init. They depend on the seed, the path and init only: the
 * init of weft_parameter restores the values it had at first. Errors: a tensor that is not a
 * parameter; an init that does not suit its shape. Like torch.nn.init. */
WEFT_API void weft_initialise(weft_tensor *parameter, weft_init init);
/* Makes `name` in m a second name of an existing parameter of the same root: tied weights.
 * weft_find_parameter finds both names. A tied parameter is counted, frozen, stepped and saved
 * once, under its first name. Errors: a parameter of another root, a buffer, a bad or existing
 * name. Like out.weight = embed.weight. */
WEFT_API void weft_tie(weft_module *m, const char *name, weft_tensor *parameter);
/* Freezes (true) or unfreezes (false) the parameters whose path below m matches a shell pattern:
 * "encoder.*", "embed.weight", "*" (* any letters and dots, ? one letter, [..] one of them). A
 * frozen parameter gets no gradient, and an optimiser does not change it. Freezing zeroes its
 * gradient. A tied parameter matches by its first name only. Parameters made later are not frozen.
 * Errors: no parameter matches; pattern NULL. Like p.requires_grad_(False). */
WEFT_API void weft_freeze(weft_module *m, const char *pattern, bool frozen);

/* ---- finding and counting them ---- */
/* Returns the number of parameters below m, tied ones once. Like len(list(m.parameters())). */
WEFT_API int weft_parameter_count(const weft_module *m);
/* Returns parameter i below m, 0 .. weft_parameter_count(m) - 1, in the order of creation. Sets
 * *path to the parameter's path below m, valid until weft_close; path may be NULL. Errors: no such
 * i; returns an inert tensor and sets *path to "". Like m.named_parameters(). */
WEFT_API weft_tensor *weft_parameter_at(const weft_module *m, int i, const char **path);
/* Returns a parameter or buffer by its path below m, "encoder.weight_ih_l0". NULL, without an
 * error, if no such name exists or an argument is NULL. An operator of the same step that gets this
 * NULL fails with a message that names the path. Like m.get_parameter(path). */
WEFT_API weft_tensor *weft_find_parameter(const weft_module *m, const char *path);
/* Returns the number of elements of all parameters below m; a tied one counts once, a frozen one
 * counts. Like sum(p.numel() for p in m.parameters()). */
WEFT_API int64_t weft_parameter_numel(const weft_module *m);
/* Prints one line for each parameter and buffer below m: path, shape, numbers, and whether it is
 * frozen, tied or a buffer; then the totals. file NULL: prints nothing. Like torchinfo.summary. */
WEFT_API void weft_print_module(FILE *file, const weft_module *m);

/* ---- their gradients ---- */
/* Zeroes the gradients below m, as if no loss had reached them. Like m.zero_grad(). */
WEFT_API void weft_zero_grad(weft_module *m);
/* Divides the gradients below m by a tensor with one real element, such as the total weight of
 * several losses. Call it once, after the last weft_backward and before the optimiser's step. A
 * divisor of 0 zeroes the gradients. Errors: ints, or more elements. Like p.grad /= n. */
WEFT_API void weft_divide_grad(weft_module *m, weft_tensor *divisor);

#ifdef __cplusplus
}
#endif
#endif
