/* features.h - what the parts of forecasting data share: columns with their chains of transforms, what was
 * fitted, the numbers of a frame ready for windows. */
#ifndef WEFT_FEATURES_H
#define WEFT_FEATURES_H
#include "rnn/forecast/series/frame.h"

enum { WEFT__STEPS = 16, WEFT__DEGREE = 15 };

/* at: its fitted numbers in the features' state */
typedef struct weft__step { weft_transform t; int64_t at; } weft__step;
typedef struct weft__column { const char *name; weft__step *step; int n; bool masked; } weft__column;
struct weft_features {
    weft *w;
    char name[32], numbers[40];                  /* of both items */
    int64_t context, horizon;
    int64_t known, past, target, fixed, columns; /* how many of each, in this order in column [columns] */
    weft__column *column;
    const char *time; weft_time time_as;
    bool without_target, time_masked;
    /* fitted numbers; of the time lowest and highest at n - 3, n - 2; whether fitted at n - 1 */
    double *state; int64_t n;
    /* what it is of; what is said to be in state, in that many bytes: others' after a wrong load */
    char *text, *said; int64_t room;
};

/* ---- transforms.c: one step ---- */
/* NULL if there is nothing to complain of */
const char *weft__step_bad(const weft_transform *t);
bool        weft__step_on(weft_transform_kind kind);              /* it depends on a column */
int64_t     weft__step_numbers(const weft_transform *t);
void        weft__step_text(FILE *to, const weft_transform *t);
/* Whether its result is a difference, which may be nothing but rounding. */
bool        weft__step_subtracts(weft_transform_kind kind);
/* Fits a step on values y [n] (and x [n]) of all series; spare [3 n]. size: the largest number that the
 * values are differences of, or 0. Returns the reason why that cannot be done, or NULL. */
const char *weft__step_fit(const weft_transform *t, double *fitted, int64_t n, const double *y,
                           const double *x, double size, double *spare);
/* One series from its first row on, in place. The first row whose finite value becomes one that is not, -1
 * if none does. */
int64_t weft__step_apply(const weft_transform *t, const double *fitted, int64_t n, double *y,
                         const double *x);
void weft__step_undo(const weft_transform *t, const double *fitted, int64_t n, double *y, const double *x,
                     double before);

/* ---- transform_chain.c: the steps of a column; on [steps]: for each the column it depends on, or NULL ----
 */
typedef const double *weft__on[WEFT__STEPS];
int64_t weft__chain_apply(const weft_features *x, const weft__column *c, int64_t n, double *y,
                          const weft__on on);
int         weft__chain_deltas(const weft__column *c);
/* y: what the chain made of rows from, from + 1 .. of a series that begins at raw and on; raw is read
 * before `from` only, and only by deltas. */
void weft__chain_undo(const weft_features *x, const weft__column *c, const double *raw, const weft__on on,
                      int64_t from, int64_t n, double *y);

/* ---- features.c ---- */
/* Whether x is neither NULL nor an inert one. */
static inline bool weft__features_made(const weft_features *x) { return x && x->w; }
/* Whether x can be used: nothing has failed, it is fitted, and by its own kind. */
bool        weft__features_ready(const weft_features *x, const char *function);
/* The column of a frame, from its first row on; NULL and an error of the context if it has none. */
const double *weft__features_column(const weft_features *x, const weft_frame *f, const char *name);
bool weft__features_on(const weft_features *x, const weft__column *c, const weft_frame *f, int64_t first,
                       weft__on on);
const weft__column *weft__features_find(const weft_features *x, const char *name);
bool        weft__features_is_fixed(const weft_features *x, const weft__column *c);
/* it is sound; else an error */
bool        weft__features_frame(const weft_features *x, const weft_frame *f);
/* The error that says where: series s of f, a row within it, a column, and a text as printf. */
void weft__features_fail(const weft_features *x, const weft_frame *f, int64_t s, int64_t row,
                         const char *column, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The raw values of a column of one series as doubles to `to`, checked to be finite unless gaps are
 * allowed. */
bool weft__features_raw(const weft_features *x, const weft_frame *f, int64_t s, const char *name, bool gaps,
                        double *to);
/* Whether time increases along a series, of the rows at t. */
bool        weft__features_increases(const weft_features *x, const weft_frame *f, int64_t s, const double *t);
/* The value of a fixed column of a series, which must be constant; a series without rows has none, and 0 is
 * written. */
bool weft__features_fixed(const weft_features *x, const weft_frame *f, int64_t s, const char *name,
                          double *value);
/* a span, or a step, scaled to -1 .. 1 */
double      weft__features_time(const weft_features *x, double t);

/* ---- prepared_series.c: series of a frame, transformed, as windows are cut from them ---- */
typedef struct weft__prepared {
    const weft_features *x;
    int64_t n, rows, width;                      /* series, rows, columns of z: known, past, target */
    int64_t *start;                              /* [n + 1] */
    real   *z, *fixed;                           /* [rows, width], [n, fixed] */
    double *time, *raw;                          /* [rows] or NULL; [target][rows] as they came */
    weft__on *on;                                /* [target], each from the first row on */
    void   *block;                               /* of all of them; weft__release */
} weft__prepared;
/* Series from .. from + n - 1 of f. gaps: NaN may stand anywhere but in the time. false and an error of
 * the context. */
bool weft__prepare(weft__prepared *r, const weft_features *x, const weft_frame *f, int64_t from, int64_t n,
                   bool gaps);
/* The inputs of rows first .. first + rows - 1 to `to`, of the past or of the future; begin: the window's
 * first row. */
void weft__prepared_past(const weft__prepared *r, int64_t begin, int64_t first, int64_t rows, real *to);
/* the masked columns of such rows of the past */
void        weft__prepared_mask(const weft__prepared *r, int64_t rows, real *to);
void weft__prepared_future(const weft__prepared *r, int64_t begin, int64_t first, int64_t rows, real *to);
#endif
