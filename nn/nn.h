/* nn.h - what nn, rnn and io know of modules and optimisers. */
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

enum { WEFT__NAME = 64, WEFT__PATH = 256, WEFT__GRAIN = 16 };

/* The entry of a module or parameter in its root's table of paths, see names.c. parameter: NULL for a
 * module. */
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

/* Parameters or buffers below a module by number, each with its whole path, so that a walk reads this list
 * only. The root's list grows with the model, others when they are used: `last` is the last parameter of the
 * root that the list has seen. */
typedef struct weft__listed {
    struct weft__listed_one { struct weft__parameter *p; const char *path; } *at;
    const struct weft__parameter *last;
    int n, room;
} weft__listed;

/* One path is stored, the whole one, "seq2seq.encoder.weight"; a name is its last word, and a path below a
 * module its tail. */
typedef struct weft__parameter {
    /* the next of this module; the next of this root: in the order in which they were made */
    struct weft__parameter *next, *later;
    weft_module *module;
    weft__name named;
    char path[WEFT__PATH]; const char *name;     /* name: in path */
    /* where in the root's flat vectors, a multiple of WEFT__GRAIN; buffers: -1, their memory is their own */
    int64_t at;
    weft_tensor value, grad;                     /* value.grad is &grad; step 0: they live until weft_close */
    /* this is another name of that one, and value, grad are empty; else NULL */
    struct weft__parameter *tied;
    struct weft_optim *by;                       /* the optimiser that steps it; NULL: none */
    bool buffer;
    int shard;                                   /* 1 + the shard whose state it is; 0: alike on all ranks */
} weft__parameter;

/* a text that a checkpoint keeps with the module */
typedef struct weft__note { struct weft__note *next; char key[32], value[96]; } weft__note;

struct weft_module {
    weft *w;                                     /* NULL: a module that could not be made */
    /* first child, next sibling, in the order in which they were made */
    weft_module *root, *parent, *child, *sibling, *last_child;
    weft__name named;
    char path[WEFT__PATH]; const char *name;     /* "seq2seq.encoder"; name: in path */
    weft__parameter *parameters, *last_parameter;                /* first and last of this module */
    /* The first and last name below it in the root's list; the number of parameters [0] and of buffers [1],
     * tied names excluded; the elements of the parameters. */
    weft__parameter *below_first, *below_last;
    int count[2];
    int64_t elements;
    weft__listed listed[2];                      /* parameters, buffers */
    weft__note *notes;                           /* what its parameters mean: cell, gate order; by key */
    /* of a root: */
    /* all parameters and buffers in the order in which they were made */
    weft__parameter *first, *last;
    /* device memory; the gaps between parameters are 0 in both, always */
    real *values, *gradients; int64_t n, room;
    weft__name_table names;
};

/* ---- names.c ---- */
/* Makes room for one more name. On failure returns false, and the context has failed. */
bool weft__names_reserve(weft_module *root);
/* Adds an entry, after weft__names_reserve. path must live as long as the entry. */
void weft__names_add(weft_module *root, weft__name *name, const char *path, weft__parameter *p);
void weft__names_remove(weft_module *root, weft__name *name);
/* Returns the module or parameter with the path `tail` below m, or NULL. */
const weft__name *weft__name_below(const weft_module *m, const char *tail);
/* Returns the parameter, buffer or tied name (whose .tied is not NULL) with this path below m, or NULL. */
weft__parameter *weft__parameter_named(const weft_module *m, const char *path);

/* ---- module.c ---- */
/* The context, if m can be worked with; NULL if m is NULL or could not be made (its context has failed
 * before), or the context has failed. */
weft *weft__ready(const weft_module *m);
/* The inert tensor of the context of m, or of nowhere: what a function returns that could not do its work. */
weft_tensor *weft__inert(const weft_module *m);
/* For a layer's run: NULL if the layer was made and x can be its input; else the context (of the layer, or of
 * x if the layer is NULL or could not be made) fails, naming the function, and its inert tensor is the result
 * of the run. m: the layer's module, NULL for a NULL layer. */
weft_tensor *weft__refused(const weft_module *m, const weft_tensor *x, const char *function);
/* Checks a name for a new part of the module (NULL: a root) and writes its path; false and a sticky error
 * if it cannot be had. */
bool weft__path_for(weft *w, const weft_module *m, const char *name, const char *function,
                    char path[WEFT__PATH]);
/* Of a buffer: it is what one shard carries from batch to batch, see weft__parameter. */
void weft__set_shard(weft_tensor *buffer, int shard);
bool weft__below(const weft_module *part, const weft_module *m);  /* m itself is below m */
/* Appends p to the lists and counts of its module and of all modules above it. It cannot fail. */
void weft__append(weft__parameter *p);
/* Extends the lists of parameters and of buffers by number. */
void weft__list_parameters(weft_module *);
/* Walks along the names of parameters and buffers below m in the order in which they were made: the first
 * one for a p of NULL, then the one after p, NULL at the end. */
weft__parameter *weft__next_name(const weft_module *m, const weft__parameter *p);
/* The same without tied names: a parameter comes only under its first name, so not at all if that is not
 * below m. */
weft__parameter *weft__next_parameter(const weft_module *m, const weft__parameter *p);
/* Returns whether the path of p below m fits a shell pattern. */
bool weft__path_fits(const weft__parameter *p, const weft_module *m, const char *pattern);
/* The parameters below m (frozen ones, too, if asked for) as ranges [from, from + n) of the root's flat
 * vectors, neighbours merged, gaps included: what a kernel does to them all, it does in few calls. Begins
 * with a range of zeros; returns false at the end. */
typedef struct weft__neighbours { int64_t from, n; const weft__parameter *last; } weft__neighbours;
bool weft__next_neighbours(const weft_module *m, bool frozen, weft__neighbours *);
/* The path of p below m, "encoder.lstm.weight_ih_l0". */
const char *weft__path_below(const weft__parameter *p, const weft_module *m);
/* A layer runs: messages of the context name it until weft__leave. Returns the scope before. m->w must not
 * be NULL. */
const weft_module *weft__enter(const weft_module *m);
void weft__leave(const weft_module *m, const weft_module *before);
/* An object of `bytes` bytes, zeroed, below the context; NULL (and the context has failed) if there is no
 * memory or m->w is NULL. */
void *weft__layer(weft_module *m, size_t bytes);
/* The layer of m when it is done, or the other if something about it has failed: then m goes, and its name
 * is free again. */
void *weft__finished(weft_module *m, void *layer, void *otherwise);
/* the numbers it takes in the flat vectors: its own and the gap behind */
int64_t weft__piece(const weft__parameter *p);
/* of the flat vectors the first n numbers stay */
void weft__cut_back(weft_module *root, int64_t n);

/* ---- parameter.c, init.c ---- */
/* the numbers of every parameter and buffer, as far as is known */
void weft__all_changed(weft_module *root);
/* For a function that changes gradients, under WEFT_CHECK: prints a line, once, if none has come. */
void weft__gradients_are_there(const weft_module *m, const char *function);
/* a module `name` in m, all of whose parameters are the original's */
void weft__tie_module(weft_module *m, const char *name, const weft_module *original);
weft__parameter *weft__parameter_of(const weft_tensor *value);    /* NULL if it is none */
void weft__first_values(weft__parameter *p, weft_init init);
bool weft__init_is_sound(weft *w, const char *function, const char *path, const weft__form *f,
                         weft_init init);

/* ---- parts that layers share ---- */
/* uniform in +-1/sqrt(in), as PyTorch's linear layers start */
weft_init weft__by_width(int64_t in);
/* Linear layers whose weight starts so; the bias starts at 0. A size may be 0. */
weft_linear *weft__linear_as(weft_module *m, const char *name, int64_t in, int64_t out, weft_init weight);
weft_linear *weft__linear_unbiased_as(weft_module *m, const char *name, int64_t in, int64_t out,
                                      weft_init weight);
weft_tensor *weft__activated(weft_activation, weft_tensor *x);   /* mlp.c */
/* the activation of the layer's output, in one pass where that can be */
weft_tensor *weft__linear_activated(weft_linear *, weft_activation, weft_tensor *x);
/* The layer's norm of glu(gate) + skip, in one sweep where a row of one has a row of the other. */
weft_tensor *weft__layer_norm_of_gate(weft_norm_layer *, weft_tensor *gate, weft_tensor *skip);
/* The sizes that a layer's options must name, each 1 or more; else the context fails, naming the layer, the
 * field and what was found. given: whether there were options at all. */
typedef struct weft__size_option { const char *field; int64_t is; } weft__size_option;
bool weft__sizes_given(const weft_module *m, const char *layer, const char *name, bool given,
                       const weft__size_option *sizes, int n);
#define WEFT__SIZES(m, layer, name, opts, ...)                                           \
    weft__sizes_given(m, layer, name, (opts) != NULL, (weft__size_option[]){ __VA_ARGS__ }, \
                      (int)(sizeof((weft__size_option[]){ __VA_ARGS__ }) / sizeof(weft__size_option)))
bool weft__dropout_is_sound(weft *w, const char *function, double p);             /* else the context fails */
/* Dropout of a layer's part: its masks have the name "path of m.part". */
weft_tensor *weft__dropped(const weft_module *m, const char *part, weft_tensor *x, double p);

/* ---- texts of a module, module.c ---- */
/* Keeps a text with the module, "cell" = "lstm": checkpoints hold it, and loading compares it. A key said
 * again replaces its value. */
void weft__describe(weft_module *m, const char *key, const char *value);

/* All that an optimiser must find again: numbers of the host, or flat vectors on the device. */
typedef struct weft__saved {
    const char *name;
    weft_dtype type;
    void *data;
    int64_t n;
    bool device;
} weft__saved;
int  weft__optim_saved(weft_optim *o, weft__saved *out, int room);
/* Whether values read for this entry of weft__optim_saved can be those of an optimiser; otherwise writes what
 * was found and what is expected to why. */
bool weft__optim_accepts(const weft_optim *o, const weft__saved *entry, const void *values, char *why,
                         size_t size);
bool weft__optim_is_of(const weft_optim *o, const weft_module *m);              /* of m, or of a part of it */
void weft__optim_restored(weft_optim *o);        /* after the data were replaced */
#endif
