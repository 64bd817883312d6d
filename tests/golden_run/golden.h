/* golden.h - runs one case of a golden file on one kernel table in one variant, and compares it with the
 * file. */
#ifndef WEFT_GOLDEN_H
#define WEFT_GOLDEN_H
#include <jansson.h>
#include "weft.h"

/* Variants of a computation. A kind lists its own; every combination is run. */
enum { PACKED = 1, RECORDED = 2, COMPOSED = 4, PADDED = 8, WAYS = 16 };

typedef struct source {
    char name[128];
    weft_tensor *x;
    weft_lengths len;
    int64_t padded;
    bool ragged, parameter;
} source;
enum { SOURCES = 1024, PIECES = 8192 };

typedef struct trial {
    const json_t *c;
    weft         *w;
    weft_module  *m;                             /* a root for the layers */
    int           way;
    bool          single;                        /* the library uses float */
    source        source[SOURCES]; int sources;  /* sources of gradients */
    void         *piece[PIECES]; int pieces;     /* memory until the end of the trial */
    int           probes;                        /* gradient probes compared */
    char          why[320];                      /* the first failure; "" without one */
} trial;

typedef struct kind {
    const char *name;
    /* Compares values. Returns the loss whose gradients are probed, or NULL. */
    weft_tensor *(*run)(trial *);
    int ways;
} kind;
/* Each ends with a NULL name. */
extern const kind golden_recurrent[], golden_layers[], golden_optimisers[], golden_models[],
    golden_windows[];

/* ---- the case ---- */
void    *hold(trial *t, int64_t bytes);          /* zeroed memory until the end of the trial */
/* Records the first failure. Returns false. */
bool     wrong(trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t  integer(trial *t, const char *key);
double   number(trial *t, const char *key);
bool     flag(const trial *t, const char *key);
const char *text(trial *t, const char *key);
weft_lengths lengths(trial *t, const char *key);
int64_t  tokens(const weft_lengths *l);

/* ---- the formula ---- */
double     u(int64_t s, int64_t k);
/* base + factor u(s, k), k < n */
weft_real *formula(trial *t, double factor, double base, int64_t s, int64_t n);
/* sequence b: u(s + b, k) */
weft_tensor *formula_ragged(trial *t, double factor, double base, int64_t s, const weft_lengths *l,
                            int64_t features);
/* Converts to the layout of this variant. */
weft_tensor *laid(trial *t, weft_tensor *ragged);
/* Sets each parameter in the case's list: factor u(position in the list, k) / sqrt(scale; 0: last extent).
 * Finds them below `layer`. */
bool set_parameters(trial *t, const char *layer, double factor, double scale);
/* The same with any rule: element k of parameter s. */
typedef double value_of(const void *how, int64_t s, int64_t k, const weft_tensor *p);
bool set_parameters_by(trial *t, const char *layer, value_of *rule, const void *how);
/* sum over sequences b, rows i, columns o of y * sin(first + 0.5 b + 0.7 i + 0.9 o). */
weft_tensor *wavy_sum(trial *t, weft_tensor *y, const weft_lengths *l, double first);

/* ---- comparison ---- */
/* gradients of x, probed as name, or name.b */
void   ask(trial *t, const char *name, weft_tensor *x, const weft_lengths *l, int64_t padded);
weft_real *elements(trial *t, weft_tensor *x);   /* ragged: in the order of the sequences */
/* want: nested arrays */
void   hold_values(trial *t, const char *name, const weft_real *got, int64_t n, const json_t *want);
void   hold_tensor(trial *t, const char *name, weft_tensor *got, const json_t *want);
void   hold_number(trial *t, const char *name, double got, const json_t *want);
void   hold_probe(trial *t, const char *name, const weft_real *gradient, int64_t n);
#endif
