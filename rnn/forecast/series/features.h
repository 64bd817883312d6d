/* features.h - the shared data of forecasting: columns with their chains of transforms, the fitted numbers,
 * and a frame prepared for windows. */
#ifndef WEFT_FEATURES_H
#define WEFT_FEATURES_H
#include "rnn/forecast/series/frame.h"

enum { WEFT__STEPS = 16, WEFT__DEGREE = 15 };

/* A transform. at: offset of its fitted numbers in the state. */
typedef struct weft__step { weft_transform t; int64_t at; } weft__step;
typedef struct weft__column { const char *name; weft__step *step; int n; bool masked; } weft__column;
struct weft_features {
    weft *w;
    char name[32], numbers[40];                  /* of both items */
    int64_t context, horizon;
    int64_t known, past, target, fixed, columns; /* numbers of each kind, in the order of column [columns] */
    weft__column *column;
    const char *time; weft_time time_as;
    bool without_target, time_masked;
    /* Fitted numbers. The last three: lowest time, highest time, whether fitted. */
    double *state; int64_t n;
    /* text: description of the columns. stored_text: the description in the state, room bytes; it differs
     * after loading another file. */
    char *text, *stored_text; int64_t room;
};

/* ---- transforms.c: one step ---- */
/* Returns the reason why the step is invalid; or NULL. */
const char *weft__step_fault(const weft_transform *t);
int64_t     weft__step_numbers(const weft_transform *t);
void        weft__step_text(FILE *to, const weft_transform *t);
/* Returns whether the result is a difference, which may be only rounding. */
bool        weft__step_subtracts(weft_transform_kind kind);
/* Fits a step to values y [n] (and x [n]) of all series; spare [3 n]. size: if the values are differences,
 * the largest number that was subtracted; otherwise 0. Returns the reason if that is impossible, or NULL. */
const char *weft__step_fit(const weft_transform *t, double *fitted, int64_t n, const double *y,
                           const double *x, double size, double *spare);
/* Applies a step to one series from its first row on, in place. Returns the first row whose finite value
 * becomes infinite or NaN, or -1. */
int64_t weft__step_apply(const weft_transform *t, const double *fitted, int64_t n, double *y,
                         const double *x);
void weft__step_undo(const weft_transform *t, const double *fitted, int64_t n, double *y, const double *x,
                     double before);

/* ---- transform_chain.c: the steps of a column; inputs [steps]: the column that each depends on ---- */
typedef const double *weft__step_inputs[WEFT__STEPS];
int64_t weft__chain_apply(const weft_features *x, const weft__column *c, int64_t n, double *y,
                          const weft__step_inputs inputs);
int         weft__chain_deltas(const weft__column *c);
/* Inverts the chain for rows from, from + 1 .. in y. raw and inputs begin with the series. Only deltas read
 * raw, and only before `from`. */
void weft__chain_undo(const weft_features *x, const weft__column *c, const double *raw,
                      const weft__step_inputs inputs, int64_t from, int64_t n, double *y);

/* ---- features.c ---- */
/* Returns whether x is a real object, neither NULL nor inert. */
static inline bool weft__features_made(const weft_features *x) { return x && x->w; }
/* Checks that x is usable: nothing has failed, and it is fitted for its own columns. */
bool        weft__features_ready(const weft_features *x, const char *function);
/* Returns the column of a frame from its first row on. Without it returns NULL and fails the context. */
const double *weft__features_column(const weft_features *x, const weft_frame *f, const char *name);
bool weft__features_inputs(const weft_features *x, const weft__column *c, const weft_frame *f, int64_t first,
                           weft__step_inputs inputs);
const weft__column *weft__features_find(const weft_features *x, const char *name);
bool        weft__features_is_fixed(const weft_features *x, const weft__column *c);
/* Checks the frame, or fails the context. */
bool        weft__features_frame(const weft_features *x, const weft_frame *f);
/* Fails the context with the location (series s of f, a row in it, a column) and a formatted text. */
void weft__features_fail(const weft_features *x, const weft_frame *f, int64_t s, int64_t row,
                         const char *column, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Copies a column of one series to `to` as doubles. Checks that they are finite, unless gaps are allowed. */
bool weft__features_raw(const weft_features *x, const weft_frame *f, int64_t s, const char *name, bool gaps,
                        double *to);
/* Checks that the times t of a series increase. */
bool        weft__features_increases(const weft_features *x, const weft_frame *f, int64_t s, const double *t);
/* Reads a fixed column of a series, which must be constant. A series without rows gives 0. */
bool weft__features_fixed(const weft_features *x, const weft_frame *f, int64_t s, const char *name,
                          double *value);
/* Scales a span or a step to -1 .. 1. */
double      weft__features_time(const weft_features *x, double t);

/* ---- prepared_series.c: transformed series, the source of windows ---- */
typedef struct weft__prepared {
    const weft_features *x;
    int64_t n, rows, width;                      /* series, rows, columns of z: known, past, target */
    int64_t *start;                              /* [n + 1] */
    real   *z, *fixed;                           /* [rows, width], [n, fixed] */
    double *time, *raw; /* time: [rows] or NULL; raw: untransformed, [target][rows] */
    weft__step_inputs *inputs;                   /* [target], each from the first row on */
    void   *block;                               /* memory of all arrays; free it by weft__release */
} weft__prepared;
/* Prepares series from .. from + n - 1 of f. gaps: NaN is allowed except in the time. On failure returns
 * false and fails the context. */
bool weft__prepare(weft__prepared *r, const weft_features *x, const weft_frame *f, int64_t from, int64_t n,
                   bool gaps);
/* Writes the inputs of rows first .. first + rows - 1 to `to`, for the past or the future. begin: the
 * window's first row. */
void weft__prepared_past(const weft__prepared *r, int64_t begin, int64_t first, int64_t rows, real *to);
/* Fills the masked columns of such rows of the past. */
void        weft__prepared_mask(const weft__prepared *r, int64_t rows, real *to);
void weft__prepared_future(const weft__prepared *r, int64_t begin, int64_t first, int64_t rows, real *to);
#endif
