/* api_series.h - time series, from a file to a forecast.
 *
 * Contents: frames of named columns, features, windows, a forecast of any length. */
#ifndef WEFT_API_SERIES_H
#define WEFT_API_SERIES_H
#include "../../io/api_io.h"
#include "api_forecast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- time series: a frame is n series end to end, of the same named columns ---- *
 * Plain memory of the program, zero-initialised is an empty one. Its functions return a status and
 * leave it as it was on any error; messages name file, line, column. NaN stands for a missing
 * value: a frame may have it, but a window may not. */
typedef struct {
    int64_t  n, rows, columns;                   /* series, rows of all of them, columns */
    int64_t *start;                              /* [n + 1] the first row of each series */
    /* [n] of the series, [columns]; both lists end with NULL, so they are lists of names, too */
    char   **id, **name;
    double **column;                             /* [columns][rows], the series end to end */
    /* [columns] what is added to each number of a column. 0, unless a file has an integer that a
     * double does not hold, such as a time in nanoseconds: the column's numbers are less it. */
    int64_t *origin;
    int64_t  room;                               /* the library's own */
} weft_frame;
/* Lists of names end with NULL. It lives as long as a WEFT_LIST. */
#ifndef __cplusplus
#define WEFT_NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#else
extern "C++" {
template <typename... X> constexpr weft__list<const char *, sizeof...(X) + 1> weft__names(X... x)
{
    return { { x..., nullptr } };
}
}
#define WEFT_NAMES(...) weft__names(__VA_ARGS__).data()
#endif

/* Adds a series: columns[i] has `rows` numbers of names[i], copied. The first series names the
 * columns; later ones have the same, in any order. id NULL: its number. Errors: a column with an
 * origin, and a number that a double does not hold less this origin. */
WEFT_API weft_status weft_frame_add(weft_frame *f, const char *id, const char *const *names,
                                    const double *const *columns, int64_t rows) WEFT_MUST_USE;
/* Reads the series of a CSV file, as weft_read_csv does: rows with the same text in column `id`,
 * next to each other or not, are one series, in the order in which the ids first appear. id
 * NULL: the whole file is one series, and its path its id. A column with an integer (int64) that a
 * double does not hold gets the first such integer as its origin; all its numbers are exact, or
 * the file is refused. */
WEFT_API weft_status weft_frame_read_csv(weft_frame *f, const char *path, const char *id,
                                         const char *const *names,
                                         const weft_csv_opts *opts) WEFT_MUST_USE;
/* CSV that weft_frame_read_csv reads to the same bits: a line a row, the series' id in a column
 * "id" before all others; fields are quoted as in RFC 4180, NaN is nan, whatever its bits below the
 * sign. All of the file or nothing. Errors: a frame without columns, or with one named "id"; two
 * series of one id; a series without rows; in a column with an origin, a number that is not an
 * integer. */
WEFT_API weft_status weft_frame_write_csv(const weft_frame *f, const char *path) WEFT_MUST_USE;
/* HDF5: below `group` (NULL: the root) a data set [N] of numbers (any that weft_read_hdf5 reads;
 * integers get an origin as in weft_frame_read_csv) for each name, and
 * "lengths" [n]; without lengths all is one series. A text "ids" of n lines (of fixed length, ASCII
 * or UTF-8: numpy.bytes_ in h5py) names them. Written is a new file with this group and all
 * columns, as float64, and as int64 with an origin; no id may have a line end. */
WEFT_API weft_status weft_frame_read_hdf5(weft_frame *f, const char *path, const char *group,
                                          const char *const *names) WEFT_MUST_USE;
WEFT_API weft_status weft_frame_write_hdf5(const weft_frame *f, const char *path,
                                           const char *group) WEFT_MUST_USE;
/* One more column. PER_ROW: values [rows], copied; NULL: zeros, to be filled through
 * weft_frame_column. PER_SERIES: values [n], one for all rows of a series. */
typedef enum { WEFT_PER_ROW, WEFT_PER_SERIES } weft_column_values;
WEFT_API weft_status weft_frame_add_column(weft_frame *f, const char *name, const double *values,
                                           weft_column_values which) WEFT_MUST_USE;
/* Columns of one value a series, from a CSV file of one row for each series' id. */
WEFT_API weft_status weft_frame_add_static_csv(weft_frame *f, const char *path, const char *id,
                                               const char *const *names,
                                               const weft_csv_opts *opts) WEFT_MUST_USE;
/* The numbers of a column [rows] less its origin, to be read or changed; NULL if there is none of
 * that name. */
WEFT_API double *weft_frame_column(const weft_frame *f, const char *name);
/* Fewer rows, each column and series by itself. INTERVAL: rows 0, k, 2k, .., ceil(rows / k) of
 * them. MEAN, MEDIAN: of each k rows that follow one another, from row 0; what is left at the end
 * is dropped (floor(rows / k)). Of an even number the median is the mean of the middle two. */
typedef enum { WEFT_DOWN_INTERVAL, WEFT_DOWN_MEAN, WEFT_DOWN_MEDIAN } weft_downsampling;
WEFT_API weft_status weft_frame_downsample(weft_frame *f, int64_t factor,
                                           weft_downsampling how) WEFT_MUST_USE;
/* How a frame is split: exactly one of series, fraction and time says it.
 * series: the first so many (1 .. n) of them and the others; order NULL: as they stand, else a
 * permutation of 0 .. n - 1 [n], as weft_stream_permutation draws it.
 * fraction, 0 (WEFT_ZERO) .. 1: of each series the first round(fraction * its rows) and its other
 * rows; both parts have all series, some perhaps without a row.
 * time, the name of an increasing column: of each series the rows before `limit`, and those from it
 * on. The limit does not count from the column's origin: it is a time as the file has it. */
typedef struct {
    int64_t series; const int32_t *order;
    double fraction;
    const char *time; double limit;
} weft_frame_split_opts;
/* A frame in two, say for training and validation. What *first and *rest were is not looked at;
 * they have the columns of f, are the program's to free, and empty after an error. */
WEFT_API weft_status weft_frame_split(const weft_frame *f, const weft_frame_split_opts *opts,
                                      weft_frame *first, weft_frame *rest) WEFT_MUST_USE;
WEFT_API void weft_frame_free(weft_frame *f);

/* ---- time series: features, what a model sees of a frame ---- *
 * A transform is one step on one column; the steps on a column are applied in the order in which
 * they are listed, each fitted on what the one before it gives. y is the value that comes in, x the
 * raw value of column `depends_on` in the same row. Fitted is fitted on all series at once; undone
 * on predictions. docs/design/series.md has the formulas' sources and what differs from
 * transformertf. */
typedef enum {
    /* (y - mean) / std, std of n - 1. Of a column that is constant, except for rounding, the std
     * counts as 1. */
    WEFT_STANDARD_SCALER,
    WEFT_MAX_SCALER,                             /* max y / (the largest |y|); max 0 means 1 */
    /* smallest y to min, largest to max (both 0: 0 and 1), a constant to the middle; clamp:
     * never beyond */
    WEFT_MIN_MAX_SCALER,
    WEFT_DELTA,       /* y[t] - y[t-1], 0 in a series' first row; undone from the last known y on */
    WEFT_LOG, WEFT_LOG1P,                        /* log(y + bias); log(1 + y) */
    WEFT_LOGISTIC,                               /* 1 / (1 + exp(-k (y - x0))); k 0 means 1 */
    /* the same with k (1 - alpha |y - x0|) for k; |y - x0| < 1 / (2 alpha) */
    WEFT_ADAPTIVE_LOGISTIC,
    WEFT_DIVIDE_BY,                              /* y / x */
    WEFT_POLYNOMIAL,                     /* y - p(x), p of this degree (0 .. 15) by least squares */
    WEFT_FIXED_POLYNOMIAL,                       /* y - (a[0] + a[1] x + .. + a[degree] x^degree) */
    /* y - g(x), g through the `points` points (a, b), linear between them, constant beyond; a
     * increases */
    WEFT_DISCRETE_FUNCTION,
    WEFT_TRANSFORMS
} weft_transform_kind;
typedef struct {
    const char *column; weft_transform_kind kind;
    const char *depends_on;                      /* from DIVIDE_BY on */
    double min, max; bool clamp;
    double bias, k, x0, alpha;
    int degree; const double *a, *b; int64_t points;
} weft_transform;

/* ABSOLUTE: time since the window's first row, [0, the longest span of a window in what was fitted]
 * to [-1, 1]. RELATIVE: time since the row before, [shortest, longest step] to [-1, 1], 0 in a
 * window's first row; steps that differ by rounding only are equal, and 0. */
typedef enum { WEFT_TIME_ABSOLUTE, WEFT_TIME_RELATIVE } weft_time;
/* Lists of columns end with NULL or are NULL; no column is in two. A known covariate is known of
 * the future, too. A model gets of the past [time, known .., past .., target ..], of the future
 * [time, known ..], and fixed [..], constant in a series. */
typedef struct {
    int64_t context, horizon;          /* rows of past and of future of a whole window, 1 or more */
    /* at least one target, and one known or the time */
    const char *const *known, *const *past, *const *target, *const *fixed;
    /* an increasing column, or NULL; no other column may have an origin */
    const char *time; weft_time time_as;
    const weft_transform *transforms; int n;     /* on any column but the time */
    bool unscaled;                 /* else a WEFT_STANDARD_SCALER follows each column's own steps */
    bool past_without_target;                    /* the model is not told the past of the target */
    const char *const *masked;  /* columns that are 0 in the past, after all transforms and noise */
} weft_features_opts;
typedef struct weft_features weft_features;
/* fitted: they were fitted, or loaded. */
typedef struct { int64_t past, future, fixed, target; bool fitted; } weft_feature_counts;
/* Copies all it is given; owned by the context, which has failed if that could not be. The
 * name (1 .. 30 bytes, without /) is that of its items. */
WEFT_API weft_features *weft_features_new(weft *w, const char *name,
                                          const weft_features_opts *opts);
/* How many numbers a row of past, future, target has, and how many a sequence's fixed: what a
 * model is built for. Zeros of features that could not be made. */
WEFT_API weft_feature_counts weft_features_counts(const weft_features *x);
/* Fits all transforms on these series, anew. Values that are not finite are errors of the
 * context that name series, row and column. */
WEFT_API void weft_features_fit(weft_features *x, const weft_frame *f);
/* All that was fitted as two items for weft_save and weft_load; the text says of what. Loaded into
 * features of other columns or transforms it is an error at the next use, and so is not to have
 * been fitted. Valid as long as x. */
enum { WEFT_FEATURES_ITEMS = 2 };
WEFT_API void weft_features_state(weft_features *x, weft_checkpoint_item items[2]);
/* One series' column transformed, all its rows; a fixed column: one number. */
WEFT_API void weft_features_transform(const weft_features *x, const char *column,
                                      const weft_frame *f, int64_t series, double *out);
/* n values for the rows of a series from `from` on back to its units. The frame has the columns
 * that transforms depend on, and for WEFT_DELTA the rows before `from`, of which there must be one.
 * Values beyond what a transform can give are taken as the nearest it can. */
WEFT_API void weft_features_inverse_transform(const weft_features *x, const char *column,
                                              const weft_frame *f, int64_t series, int64_t from,
                                              int64_t n, const double *values, double *out);

/* ---- time series: windows ---- *
 * A window is an origin in a series: the past are the up to `context` rows before it, the future
 * the up to `horizon` rows from it on. Origins are min_context, min_context + stride, .. as long as
 * min_horizon rows follow; so with all at 0 windows tile the series, and with min_horizon 1 every
 * row from `context` on is forecast exactly once: for validation. */
typedef struct {
    int64_t stride, min_context, min_horizon;    /* 0: the horizon, the context, the horizon */
    /* in training: the past cut to its newest, the future to its first rows, lengths uniform in
     * min .. what is there */
    bool shorten;
    /* in training: standard deviation of noise, added after the transforms, on all inputs but the
     * time, fixed and masked ones; not on targets */
    double past_noise, future_noise;
} weft_windows_opts;
typedef struct weft_windows weft_windows;
/* origin: its row within the series; lengths */
typedef struct { int64_t series, origin; int32_t past, future; } weft_window;
typedef struct { weft_series_batch series; weft_tensor *target; } weft_window_batch;
/* The windows of fitted features over a frame; numbers and what was fitted are copied: features
 * that are fitted anew change nothing of them. opts NULL: all 0. Lengths and noise come from the
 * streams "shorten.<name>" and "noise.<name>" (name 1 .. 30 bytes), only while the context is
 * training. Owned by the context, which has failed if there is no window, if a value is not finite,
 * time does not increase or a fixed column is not constant. */
WEFT_API weft_windows *weft_windows_new(weft_features *x, const char *name, const weft_frame *f,
                                        const weft_windows_opts *opts);
/* How many windows there are; series that are too short for one; lengths [windows], the rows of
 * past and future together, for a weft_loader, owned by v. */
typedef struct { int64_t windows, skipped; const int32_t *lengths; } weft_window_counts;
WEFT_API weft_window_counts weft_windows_counts(const weft_windows *v);
/* Where window i lies; all 0 and an error of the context if there is none. */
WEFT_API weft_window weft_window_at(const weft_windows *v, int64_t i);
/* padded: with 0 to the longest, plain tensors [n, T, ..] and their lengths; pads of the past lie
 * as past_align says, others behind. past_align is an error without padded. */
typedef struct { bool padded; weft_align past_align; } weft_windows_batch_opts;
/* The windows index[0 .. n-1] (what weft_loader_next gives) as tensors of the step, ids are the
 * windows' numbers: past, future, fixed (NULL if there are none), and target [rows of future,
 * targets]; ragged, or padded (opts NULL: ragged). All are transformed, the target too: a loss or a
 * metric of it is not in the series' units. */
WEFT_API weft_window_batch weft_windows_batch(weft_windows *v, const int32_t *index, int64_t n,
                                              const weft_windows_batch_opts *opts);
/* Predictions of windows in the series' units: predicted ragged, in the batch of a future [M,
 * targets * columns] (target 0's columns first), in any layout (padded ones:
 * weft_pack_padded_sequence with future_lengths first); out [M, targets * columns], sequence by
 * sequence. Waits for the device. */
WEFT_API void weft_windows_inverse_transform(weft_windows *v, weft_tensor *predicted, double *out);

/* ---- time series: a forecast of any length ---- *
 * model: from one window the predictions of its future rows [M, targets * quantiles]. Nothing is
 * recorded, dropout is off, memory is constant: what model makes ends before its next call. */
typedef weft_tensor *weft_forecast_model_fn(weft_series_batch series, void *user);
typedef struct {
    int64_t rows;                                /* how many, 0: to the end of the series */
    /* what is known of the target is its past, predictions where it is NaN; else always
     * predictions */
    bool true_past;
    /* of each target, 0 means 1; all NULL, or [rows, targets * quantiles] in the series' units */
    int quantiles; double *all;
} weft_rolling_forecast_opts;
/* Rows `from` (1 or more) and on of a series in hops of the horizon, each window with the
 * predictions before it as the past of its target. out [rows, targets] in the series' units; of
 * quantiles, ascending, number quantiles / 2. Known covariates must be there for all rows, past
 * ones for those before the last hop. On error the context has failed, and out is NaN, or as it
 * was if the arguments were refused. */
WEFT_API void weft_rolling_forecast(weft_features *x, const weft_frame *f, int64_t series,
                                    int64_t from, weft_forecast_model_fn *model, void *user,
                                    const weft_rolling_forecast_opts *opts, double *out);
/* Where a forecast of one of several series begins, how many rows it has, 0: to the end, and where
 * it goes: as above, `all` may be NULL. */
typedef struct { int64_t series, from, rows; double *out, *all; } weft_rolling_series;
/* The same of n series, a window of each that has one left in a batch: fewer and larger calls of
 * the model, whose window i is that of the i-th such series. opts.rows is 0 and opts.all NULL. What
 * a model whose bits do not depend on a sequence's company forecasts is the same. On error all of
 * them are NaN. */
WEFT_API void weft_rolling_forecasts(weft_features *x, const weft_frame *f,
                                     const weft_rolling_series *series, int64_t n,
                                     weft_forecast_model_fn *model, void *user,
                                     const weft_rolling_forecast_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
