/* nn.h - modules, parameters and optimisers as nn, rnn and io use them. */
#ifndef WEFT_NN_H
#define WEFT_NN_H
#include "autograd/api_op.h"
#include "autograd/api_ragged.h"
#include "core/context.h"
#include "core/device.h"
#include "core/ragged.h"
#include "nn/api_forecast_loss.h"
#include "nn/api_layers.h"
#include "nn/api_metrics.h"
#include "nn/api_module.h"
#include "nn/api_optim.h"
#include "nn/api_optim_more.h"

enum { WEFT__NAME = 64, WEFT__PATH = 256, WEFT__GRAIN = 16 };

/* Entry of a module or parameter in its root's table of paths, see names.c. parameter: NULL for a module. */
typedef struct weft__name {
    struct weft__name *next;
    uint64_t hash;
    const char *path;
    struct weft__parameter *parameter;
} weft__name;
typedef struct weft__name_table {
    weft__name **bucket;
    int64_t buckets, n;                          /* buckets: 0 or a power of 2; n: number of entries */
} weft__name_table;

/* Parameters or buffers below a module by number, each with its whole path. The root's list grows with the
 * model, other lists at their next use. last: the last parameter of the root that the list has seen. */
typedef struct weft__listed {
    struct weft__listed_one { struct weft__parameter *p; const char *path; } *item;
    const struct weft__parameter *last;
    int n, capacity;
} weft__listed;

/* A parameter, buffer or tied name. It stores its whole path, "seq2seq.encoder.weight". Its name is the last
 * word of the path, and its path below a module is the end of it. */
typedef struct weft__parameter {
    /* next: the next of this module. next_in_root: the next of this root, in creation order. */
    struct weft__parameter *next, *next_in_root;
    weft_module *module;
    weft__name entry;
    char path[WEFT__PATH]; const char *name;     /* name points into path */
    /* Offset in the root's flat vectors, a multiple of WEFT__GRAIN; -1 for buffers. */
    int64_t offset;
    weft_tensor value, grad;                     /* value.grad is &grad; step 0: both live until weft_close */
    /* For a tied name, the parameter that it refers to; value and grad are then empty. Otherwise NULL. */
    struct weft__parameter *tied;
    struct weft_optim *optim;                    /* its optimiser; or NULL */
    bool buffer;
    int shard; /* 1 + number of the shard that owns this state; 0: equal on all ranks */
} weft__parameter;

/* A text that checkpoints store with the module. */
typedef struct weft__note { struct weft__note *next; char key[32], value[96]; } weft__note;

struct weft_module {
    weft *w;                                     /* NULL: the module could not be made */
    /* child: the first child. sibling: the next one, in creation order. */
    weft_module *root, *parent, *child, *sibling, *last_child;
    weft__name entry;
    char path[WEFT__PATH]; const char *name;     /* "seq2seq.encoder"; name points into path */
    weft__parameter *parameters, *last_parameter;                /* the first and last of this module */
    /* below_first, below_last: first and last name below the module in the root's list. count: parameters [0]
     * and buffers [1], without tied names. elements: those of the parameters. */
    weft__parameter *below_first, *below_last;
    int count[2];
    int64_t elements;
    weft__listed lists[2];                       /* parameters, buffers */
    int64_t padding; /* 1 + the row that an embedding never reads; 0: none */
    weft__note *notes; /* meaning of the parameters, such as cell and gate order, sorted by key */
    /* The following fields belong to a root. */
    /* All parameters and buffers, in creation order. */
    weft__parameter *first, *last;
    /* Device memory. The gaps between parameters are always 0 in both. */
    real *values, *gradients; int64_t n, capacity;
    weft__name_table names;
};

/* ---- names.c ---- */
/* Reserves memory for one more name. On failure returns false, and the context has failed. */
bool weft__names_reserve(weft_module *root);
/* Adds an entry, after weft__names_reserve. path must live as long as the entry. */
void weft__names_add(weft_module *root, weft__name *name, const char *path, weft__parameter *p);
void weft__names_remove(weft_module *root, weft__name *name);
/* Returns the module or parameter with the path `tail` below m, or NULL. */
const weft__name *weft__name_below(const weft_module *m, const char *tail);
/* Returns the parameter, buffer or tied name (whose .tied is not NULL) with this path below m, or NULL. */
weft__parameter *weft__parameter_named(const weft_module *m, const char *path);

/* ---- module.c ---- */
/* Returns the context. Returns NULL if m is NULL or could not be made, or if the context has failed. */
weft *weft__ready(const weft_module *m);
/* Returns the inert tensor of m's context, the result of a failed function. m may be NULL. */
weft_tensor *weft__inert(const weft_module *m);
/* For a layer's run: returns NULL if the layer was made and x can be its input. Otherwise fails the context
 * with the function's name and returns the inert tensor, the result of the run. The context is that of the
 * layer, or of x without a layer. m: the layer's module, or NULL. */
weft_tensor *weft__bad_input(const weft_module *m, const weft_tensor *x, const char *function);
/* Checks a name for a new part of the module (NULL: a root) and writes its path, or fails the context. */
bool weft__path_for(weft *w, const weft_module *m, const char *name, const char *function,
                    char path[WEFT__PATH]);
/* Marks a buffer as the state of one shard, carried from batch to batch. */
void weft__set_shard(weft_tensor *buffer, int shard);
bool weft__is_below(const weft_module *part, const weft_module *m);  /* m counts as below m */
/* Appends p to the lists and counts of its module and of all modules above it. Cannot fail. */
void weft__append(weft__parameter *p);
/* Extends the lists of parameters and of buffers by number. */
void weft__list_parameters(weft_module *);
/* Returns the parameter, buffer or tied name after p below m, in creation order. p NULL:
 * the first one. NULL at the end. */
weft__parameter *weft__next_name(const weft_module *m, const weft__parameter *p);
/* Does the same without tied names. A tied parameter appears under its first name only, and not at all if
 * that name is not below m. */
weft__parameter *weft__next_parameter(const weft_module *m, const weft__parameter *p);
/* Iterates over the parameters below m as ranges [from, from + n) of the root's flat vectors. Adjacent
 * parameters are merged and gaps included, so a small number of kernel calls processes them. frozen: include
 * frozen parameters. Start with a range of zeros; returns false at the end. */
typedef struct weft__range { int64_t from, n; const weft__parameter *last; } weft__range;
bool weft__next_range(const weft_module *m, bool frozen, weft__range *);
/* Returns the path of p below m, "encoder.lstm.weight_ih_l0". */
const char *weft__path_below(const weft__parameter *p, const weft_module *m);
/* Makes messages name this layer until weft__leave. Returns the previous scope. m->w is not NULL. */
const weft_module *weft__enter(const weft_module *m);
void weft__leave(const weft_module *m, const weft_module *before);
/* Leaves the scope and returns y, which was computed in it. */
weft_tensor *weft__leave_with(const weft_module *m, const weft_module *before, weft_tensor *y);
/* Returns a zeroed object of `bytes` bytes that the context owns. Without memory, or if m->w is NULL, returns
 * NULL, and the context has failed. */
void *weft__layer(weft_module *m, size_t bytes);
/* Creates a submodule and an object of it, whose first member is the module. After a failure there is no
 * submodule, and the result is NULL. */
void *weft__layer_new(weft_module *parent, const char *name, size_t bytes);
/* Returns the finished layer. If it has failed, removes m, frees its name and returns `otherwise`. */
void *weft__finish_layer(weft_module *m, void *layer, void *otherwise);
/* Returns the numbers that p uses in the flat vectors, with the gap after it. */
int64_t weft__padded_size(const weft__parameter *p);
/* Shortens the flat vectors to n numbers. */
void weft__truncate(weft_module *root, int64_t n);

/* ---- parameter.c, init.c ---- */
/* Marks every parameter and buffer below the root as changed. */
void weft__mark_all_changed(weft_module *root);
/* For functions that change gradients: under WEFT_CHECK prints, once, that no parameter has a gradient. */
void weft__check_gradients_exist(const weft_module *m, const char *function);
/* Makes a module `name` in m, whose parameters are all tied to those of the original. */
void weft__tie_module(weft_module *m, const char *name, const weft_module *original);
void weft__init_values(weft__parameter *p, weft_init init);
bool weft__init_is_sound(weft *w, const char *function, const char *path, const weft__form *f,
                         weft_init init);

/* ---- parts that layers share ---- */
/* Returns uniform in +-1/sqrt(in), the first values of PyTorch's linear layers. */
weft_init weft__init_by_width(int64_t in);
/* These make linear layers with these first weights and a bias of 0. A size may be 0. */
weft_linear *weft__linear_new(weft_module *m, const char *name, int64_t in, int64_t out, weft_init weight);
weft_linear *weft__linear_unbiased_new(weft_module *m, const char *name, int64_t in, int64_t out,
                                      weft_init weight);
weft_tensor *weft__activate(weft_activation, weft_tensor *x);   /* see mlp.c */
/* Applies the layer and the activation, in one pass if possible. */
weft_tensor *weft__run_activated(weft_linear *, weft_activation, weft_tensor *x);
/* Runs the layer norm over glu(gate) + skip, in one pass if their rows match. */
weft_tensor *weft__layer_norm_of_gate(weft_norm_layer *, weft_tensor *gate, weft_tensor *skip);
/* Checks the sizes that a layer's options require, each 1 or more. Otherwise fails the context with the
 * layer, the field and its value. given: the program passed options. */
typedef struct weft__size_option { const char *field; int64_t value; } weft__size_option;
bool weft__sizes_given(const weft_module *m, const char *layer, const char *name, bool given,
                       const weft__size_option *sizes, int n);
#define WEFT__SIZES(m, layer, name, opts, ...)                                           \
    weft__sizes_given(m, layer, name, (opts) != NULL, (weft__size_option[]){ __VA_ARGS__ }, \
                      (int)(sizeof((weft__size_option[]){ __VA_ARGS__ }) / sizeof(weft__size_option)))
bool weft__dropout_is_sound(weft *w, const char *function, double p);             /* or fails the context */
/* Applies dropout inside a layer. Its masks have the name "path of m.part". */
weft_tensor *weft__dropout(const weft_module *m, const char *part, weft_tensor *x, double p);

/* ---- texts of a module, module.c ---- */
/* Stores a text with the module, such as "cell" = "lstm". Checkpoints contain it, and loading compares it. An
 * existing key gets the new value. */
void weft__describe(weft_module *m, const char *key, const char *value);

/* A part of an optimiser's state for checkpoints: numbers on the host, or flat vectors on the device. */
typedef struct weft__saved {
    const char *name;
    weft_dtype type;
    void *data;
    int64_t n;
    bool device;
} weft__saved;
int  weft__optim_entries(weft_optim *o, weft__saved *out, int room);
/* Returns whether values read for this entry of weft__optim_entries are possible for an optimiser. Otherwise
 * writes found and expected values to reason. */
bool weft__optim_accepts(const weft_optim *o, const weft__saved *entry, const void *values, char *reason,
                         size_t size);
bool weft__optim_belongs_to(const weft_optim *o, const weft_module *m); /* of m or a module below it */
void weft__optim_after_load(weft_optim *o);        /* call it after the data were replaced */
#endif
