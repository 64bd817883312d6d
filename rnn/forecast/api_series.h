/* api_series.h - time series, from a file to a forecast.
 *
 * Contents: frames of named columns, features, windows, a forecast of any length.
 *
 * The program owns frames; their functions return a status, see below. The context owns features
 * and windows, and their errors fail the context. Functions then return zeros or inert objects, and
 * the contents of `out` are unusable. With x or v NULL or inert, functions write nothing. Rows and
 * series count from 0. Lists of names end with NULL (WEFT_NAMES). */
#ifndef WEFT_API_SERIES_H
#define WEFT_API_SERIES_H
#include "../../io/api_io.h"
#include "api_forecast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- frames: n series end to end, with the same named columns ---- *
 * A frame is plain memory of the program; zero-initialised it is empty. Its functions return a
 * status and leave the frame unchanged on any error; weft_file_message names file, line and column.
 * NaN is a missing value, which frames may have and windows may not. Functions copy their input. */
typedef struct {
    int64_t n;                                   /* number of series */
    int64_t rows;                                /* number of rows of all series together */
    int64_t columns;                             /* number of columns */
    int64_t *start;                              /* [n + 1] first row of each series; [n]: rows */
    char **id;                                   /* [n], then NULL */
    char **name;                                 /* [columns], then NULL */
    double **column;                             /* [columns][rows], the series end to end */
    /* [columns] number in the file = number in `column` + origin. 0, unless a file has an integer
     * that a double does not hold, such as a time in nanoseconds. */
    int64_t *origin;
    int64_t room;                                /* private */
} weft_frame;
/* Makes a list of names that ends with NULL. It lives as long as a WEFT_LIST. */
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

/* Adds a series of `rows` rows, 0 or more: columns[i] [rows] has the numbers of names[i]. An origin
 * of the column is subtracted. The first series names the columns; later ones have the same names,
 * in any order. id NULL: the series' number; ids may repeat. Errors: an empty or repeated name; a
 * number that is not exact after subtracting the origin. Like pandas.concat. */
WEFT_API weft_status weft_frame_add(weft_frame *f, const char *id, const char *const *names,
                                    const double *const *columns, int64_t rows) WEFT_MUST_USE;
/* Reads the series of a CSV file as weft_read_csv does, and adds them. Rows with the same text in
 * column `id`, adjacent or not, are one series. Series are in the order of the ids in the file. id
 * NULL: the whole file is one series, whose id is its path. names: the columns to read, as for
 * weft_frame_add; opts may be NULL. If a column without origin gets an integer that a double does
 * not hold, the first such integer becomes its origin. It is subtracted from all rows of the
 * column, also those of earlier calls. A column that has an origin keeps it. Errors: names NULL; a
 * number, old or new, that is not exact after subtracting the origin. Like pandas.read_csv. */
WEFT_API weft_status weft_frame_read_csv(weft_frame *f, const char *path, const char *id,
                                         const char *const *names,
                                         const weft_csv_opts *opts) WEFT_MUST_USE;
/* Writes (or replaces) a CSV file that weft_frame_read_csv reads to the same bits. A line for each
 * row has the series' id in a first column "id". Origins are added, fields are quoted as in RFC
 * 4180, NaN is nan.
 * Errors: a frame without columns, or with one named "id"; two series of one id; a series without
 * rows; in a column with an origin, a number that is not an integer. Like DataFrame.to_csv. */
WEFT_API weft_status weft_frame_write_csv(const weft_frame *f, const char *path) WEFT_MUST_USE;
#ifndef WEFT_IO_NONE
/* Reads the series of an HDF5 file and adds them. names, required, lists the columns to read, as
 * for weft_frame_add. `group` (NULL: the root) has one data set [N] of numbers for each name. The
 * data set "lengths" [n] has the number of rows of each series; without it all rows are one series,
 * whose id is the path. Types are those of weft_read_hdf5; integers get an origin as in
 * weft_frame_read_csv. "ids" is one text of fixed length (numpy.bytes_ in h5py), ASCII or UTF-8,
 * with a line for each series; without it the ids of several series are numbers. Like
 * pandas.read_hdf. */
WEFT_API weft_status weft_frame_read_hdf5(weft_frame *f, const char *path, const char *group,
                                          const char *const *names) WEFT_MUST_USE;
/* Writes (or replaces) an HDF5 file for weft_frame_read_hdf5. `group` (NULL: the root) gets
 * "lengths", "ids" and a data set for each column: float64, or int64 with the origin added if the
 * column has an origin. Errors: a column named "lengths", "ids", "." or "..", or with a slash; an
 * id with a line end; in a column with an origin, NaN or another number that is not an integer.
 * Like DataFrame.to_hdf. */
WEFT_API weft_status weft_frame_write_hdf5(const weft_frame *f, const char *path,
                                           const char *group) WEFT_MUST_USE;
#endif
typedef enum { WEFT_PER_ROW, WEFT_PER_SERIES } weft_column_values;
/* Adds a column, a copy of values. PER_ROW: values [rows]; NULL: zeros. PER_SERIES: values [n],
 * each for all rows of a series; NULL is an error. Errors: an empty or existing name; a frame
 * without columns. Like DataFrame.assign. */
WEFT_API weft_status weft_frame_add_column(weft_frame *f, const char *name, const double *values,
                                           weft_column_values which) WEFT_MUST_USE;
/* Adds columns with one value for each series, from a CSV file with a row for each series. Column
 * `id` of the file has the series' ids. id and names, the columns to add, are required; opts may be
 * NULL. Other rows of the file are ignored. An integer that no double holds makes an origin.
 * Errors: a series without a row, an id with two rows. Like DataFrame.merge. */
WEFT_API weft_status weft_frame_add_static_csv(weft_frame *f, const char *path, const char *id,
                                               const char *const *names,
                                               const weft_csv_opts *opts) WEFT_MUST_USE;
/* Returns the numbers of a column [rows] without its origin, for reading and writing, valid until
 * the frame changes; NULL for an unknown column or NULL. Like DataFrame[name]. */
WEFT_API double *weft_frame_column(const weft_frame *f, const char *name);
/* How to downsample by a factor k. INTERVAL: rows 0, k, 2k, .., ceil(rows / k) of them. MEAN,
 * MEDIAN: of each k consecutive rows from row 0; the rest at the end is dropped (floor(rows / k)).
 * The median of an even number of values is the mean of the middle two. */
typedef enum { WEFT_DOWN_INTERVAL, WEFT_DOWN_MEAN, WEFT_DOWN_MEDIAN } weft_downsampling;
/* Downsamples each column of each series by a factor of 1 or more, in place. A NaN makes the mean
 * or median of its rows NaN. Like DataFrame.resample. */
WEFT_API weft_status weft_frame_downsample(weft_frame *f, int64_t factor,
                                           weft_downsampling how) WEFT_MUST_USE;
/* Set exactly one of series, fraction and time. */
typedef struct {
    int64_t series;              /* number of series of the first part, 1 .. n */
    const int32_t *order;        /* with series: NULL, or a permutation of 0 .. n - 1 [n] */
    double fraction;             /* 0 .. 1, 0 as WEFT_ZERO: the round(fraction * rows) first rows of
                                  * each series go to the first part; both parts have all series */
    const char *time;            /* name of an increasing column: the first part has, of each
                                  * series, the rows before `limit` */
    double limit;                /* with time: a time as in the file, origin included. A double
                                  * holds times in nanoseconds to 256 ns */
} weft_frame_split_opts;
/* Splits a frame in two, as for training and validation, by series or by rows of each series. opts
 * is required. Both parts have the columns of f and belong to the program. They are overwritten,
 * not freed, and empty after an error. Errors: first or rest is f, which stays unchanged;
 * opts->time does not increase or has NaN. Like train_test_split. */
WEFT_API weft_status weft_frame_split(const weft_frame *f, const weft_frame_split_opts *opts,
                                      weft_frame *first, weft_frame *rest) WEFT_MUST_USE;
/* Frees the arrays of a frame and zeroes it. NULL is allowed. */
WEFT_API void weft_frame_free(weft_frame *f);

/* ---- features: the inputs of a model from a frame ---- *
 * A transform is one step on one column. The steps of a column run in the order of the
 * list. Each is fitted to the output of the step before it, on all series together. Their inverses
 * convert predictions back. y is the input of a step, x the raw value of column `depends_on` in the
 * same row. docs/design/series.md has the formulas' sources and what differs from transformertf. */
typedef enum {
    /* (y - mean) / std, std with n - 1; std is 1 if y is constant, except for rounding */
    WEFT_STANDARD_SCALER,
    WEFT_MAX_SCALER,              /* max y / (the largest |y|); max 0 means 1 */
    /* smallest y to min, largest to max (both 0: 0 and 1), a constant to the middle */
    WEFT_MIN_MAX_SCALER,
    /* y[t] - y[t-1], 0 in a series' first row; its inverse adds up from y of the row before */
    WEFT_DELTA,
    WEFT_LOG,                     /* log(y + bias) */
    WEFT_LOG1P,                   /* log(1 + y) */
    WEFT_LOGISTIC,                /* 1 / (1 + exp(-k (y - x0))); k 0 means 1 */
    /* LOGISTIC with k (1 - alpha |y - x0|) instead of k. Errors: alpha |y - x0| of 1/2 or more */
    WEFT_ADAPTIVE_LOGISTIC,
    WEFT_DIVIDE_BY,               /* y / x */
    WEFT_POLYNOMIAL,              /* y - p(x), polynomial p fitted by least squares */
    WEFT_FIXED_POLYNOMIAL,        /* y - (a[0] + a[1] x + .. + a[degree] x^degree) */
    /* y - g(x), g linear between points (a[i], b[i]), constant beyond them; a increases */
    WEFT_DISCRETE_FUNCTION,
    WEFT_TRANSFORMS               /* the number of kinds */
} weft_transform_kind;
typedef struct {
    const char *column;           /* the column that it transforms; required */
    weft_transform_kind kind;
    const char *depends_on;       /* DIVIDE_BY and the kinds after it: a column of the frame,
                                   * required. If `column` is a target, that column must have
                                   * numbers also in rows to forecast. All other kinds: NULL */
    double min;                   /* MIN_MAX_SCALER: smallest result */
    double max;                   /* MIN_MAX_SCALER: largest result; MAX_SCALER: largest |result| */
    bool clamp;                   /* MIN_MAX_SCALER: results are limited to min .. max */
    double bias;                  /* LOG: added to y */
    double k;                     /* both LOGISTIC: steepness; 0: 1 */
    double x0;                    /* both LOGISTIC: y with the result 1/2 */
    double alpha;                 /* ADAPTIVE_LOGISTIC, 0 or more */
    int degree;                   /* POLYNOMIAL, FIXED_POLYNOMIAL: 0 .. 15 */
    const double *a;              /* FIXED_POLYNOMIAL: [degree + 1], DISCRETE_FUNCTION: [points] */
    const double *b;              /* DISCRETE_FUNCTION: [points] */
    int64_t points;               /* DISCRETE_FUNCTION: number of points */
} weft_transform;

/* ABSOLUTE: time since the window's first row, scaled linearly: -1 in that row, 1 at the longest
 * span of context + horizon rows in the fitted series. RELATIVE: time since the row before: -1 for
 * the shortest step, 1 for the longest, 0 in a window's first row and if all steps are equal,
 * except for rounding. */
typedef enum { WEFT_TIME_ABSOLUTE, WEFT_TIME_RELATIVE } weft_time;
/* Lists of columns end with NULL or are NULL; a column is in one of known, past, target and fixed.
 * Required are context, horizon, a target, and a known column or the time. The past of a model has
 * [time, known .., past .., target ..], the future [time, known ..]. */
typedef struct {
    int64_t context;              /* rows of past of a whole window, 1 or more */
    int64_t horizon;              /* rows of future of a whole window, 1 or more */
    const char *const *known;     /* covariates that are also known in the future */
    const char *const *past;      /* covariates that are known in the past only */
    const char *const *target;    /* columns to forecast, one or more */
    const char *const *fixed;     /* columns that are constant in a series */
    const char *time;             /* NULL, or a column that increases strictly in each series;
                                   * the only one that may have an origin */
    weft_time time_as;            /* 0: ABSOLUTE */
    const weft_transform *transforms;            /* [n], on any column but the time */
    int n;                        /* number of transforms */
    bool unscaled;                /* false: each column except the time gets a STANDARD_SCALER as
                                   * its last step. This includes fixed columns, and columns whose
                                   * last step is already a scaler */
    bool past_without_target;     /* the past does not have the target */
    const char *const *masked;    /* known, past, target or time columns that are 0 in the past,
                                   * after transforms and noise */
} weft_features_opts;
typedef struct weft_features weft_features;
typedef struct {
    int64_t past;                 /* columns of the past */
    int64_t future;               /* columns of the future */
    int64_t fixed;                /* fixed columns */
    int64_t target;               /* target columns */
    bool fitted;                  /* the features were fitted, or loaded */
} weft_feature_counts;
/* Makes features; opts is required, and copied with its lists. The name, 1 .. 30 bytes without /,
 * is that of its checkpoint items, so it is unique in a checkpoint. Errors: a column in two lists,
 * no target, neither a known column nor a time. Like ColumnTransformer of scikit-learn. */
WEFT_API weft_features *weft_features_new(weft *w, const char *name,
                                          const weft_features_opts *opts);
/* Returns the numbers of columns, the widths of the model; zeros if x is NULL or inert. */
WEFT_API weft_feature_counts weft_features_counts(const weft_features *x);
/* Fits all transforms to all series of f. An earlier fit is replaced; after an error it is kept.
 * Errors: values that are not finite (NaN too); the message names series, row and column. Like fit
 * of scikit-learn. */
WEFT_API void weft_features_fit(weft_features *x, const weft_frame *f);
enum { WEFT_FEATURES_ITEMS = 2 };
/* Writes two checkpoint items that refer to the fitted numbers of x, both valid as long as x. Pass
 * them to weft_save after a fit, or to weft_load instead of a fit. Errors, at the next use of x:
 * loaded items of other columns or transforms; features neither fitted nor loaded. */
WEFT_API void weft_features_state(weft_features *x, weft_checkpoint_item items[2]);
/* Transforms all rows of a column of one series into out [rows], one number for a fixed column.
 * Errors: another column, the time, NaN, a value outside the domain of a transform. Like transform
 * of scikit-learn. */
WEFT_API void weft_features_transform(const weft_features *x, const char *column,
                                      const weft_frame *f, int64_t series, double *out);
/* Converts values [n] of a column back to the series' units, into out [n], which may be values. The
 * values are those of rows from .. from + n - 1 of one series. f has these rows, the column, and
 * the columns named in .depends_on of its transforms. With WEFT_DELTA `from` is 1 or more, and the
 * sum starts at f's row from - 1; other rows of the column are not read. A fixed column ignores
 * `from`. Values beyond the range of a transform count as its nearest limit. Errors: another
 * column, rows that the series lacks, a result that is not finite. Like inverse_transform of
 * scikit-learn. */
WEFT_API void weft_features_inverse_transform(const weft_features *x, const char *column,
                                              const weft_frame *f, int64_t series, int64_t from,
                                              int64_t n, const double *values, double *out);

/* ---- windows ---- *
 * A window is an origin, a row of a series. Its past is up to `context` rows before the origin, its
 * future up to `horizon` rows from the origin on; both numbers are those of weft_features_opts.
 * Origins are min_context, min_context + stride, .. while the series has min_horizon rows from the
 * origin on. With stride, min_context and min_horizon 0, futures follow each other; a rest of fewer
 * than `horizon` rows is in no future. With min_horizon 1 instead, every row from `context` on is
 * forecast exactly once, for validation. */
typedef struct {
    int64_t stride;               /* rows from origin to origin; 0: the horizon */
    int64_t min_context;          /* fewest rows of past, 1 .. context; 0: the context */
    int64_t min_horizon;          /* fewest rows of future, 1 .. horizon; 0: the horizon */
    bool shorten;                 /* while training: keep the last rows of the past, the first of
                                   * the future. Numbers are uniform in min_context .. past and
                                   * min_horizon .. future, so with 0 in both all are kept */
    double past_noise;            /* while training: standard deviation of normal noise, added to
                                   * the transformed past, except to time and masked columns */
    double future_noise;          /* the same for the inputs of the future, not for the target */
} weft_windows_opts;
typedef struct weft_windows weft_windows;
typedef struct {
    int64_t series;               /* its number in the frame */
    int64_t origin;               /* first row of the future, counted in the series */
    int32_t past;                 /* rows of past, before .shorten */
    int32_t future;               /* rows of future, before .shorten */
} weft_window;
typedef struct {
    weft_series_batch series;     /* past, future and fixed */
    weft_tensor *target;          /* [rows of future, targets], ragged or padded as series.future */
} weft_window_batch;
/* Makes the windows of fitted features over a frame. Copies numbers and fit, so the program may
 * free f, and a later fit of x does not change the windows. opts NULL: all 0. Lengths and noise are
 * drawn from the streams "shorten.<name>" and "noise.<name>", only while the context is training.
 * The name has 1 .. 30 bytes; windows that shorten or add noise need different names. Owned by the
 * context. Errors: no window; a value that is not finite; a time that does not increase; a fixed
 * column that is not constant. Like TimeSeriesDataSet of PyTorch Forecasting. */
WEFT_API weft_windows *weft_windows_new(weft_features *x, const char *name, const weft_frame *f,
                                        const weft_windows_opts *opts);
typedef struct {
    int64_t windows;              /* number of all windows */
    int64_t skipped;              /* number of series that are too short for a window */
    const int32_t *lengths;       /* [windows] past + future of each; owned by the windows */
} weft_window_counts;
/* Returns the number of windows, and their lengths for a weft_loader; zeros for NULL. */
WEFT_API weft_window_counts weft_windows_counts(const weft_windows *v);
/* Returns series, origin and full lengths of window i; zeros for NULL. Errors: no such window. */
WEFT_API weft_window weft_window_at(const weft_windows *v, int64_t i);
typedef struct {
    bool padded;                  /* plain tensors [n, T, ..] with pads of 0; false: ragged */
    weft_align past_align;        /* side of the data of past, only with padded */
} weft_windows_batch_opts;
/* Returns the windows index[0 .. n - 1] (from weft_loader_next) as reals of the step, in this
 * order: past, future, target, and fixed [n, columns] or NULL. Ragged: [rows of all windows,
 * columns]. Padded: [n, T, columns]; future and target have the data first, past by past_align.
 * opts NULL: ragged. The ids of sequences are the windows' numbers. All values are transformed, so
 * a loss is not in the series' units. Errors: a window that does not exist; the tensors are
 * inert. */
WEFT_API weft_window_batch weft_windows_batch(weft_windows *v, const int32_t *index, int64_t n,
                                              const weft_windows_batch_opts *opts);
/* Converts predictions of windows to the series' units. predicted has the ragged batch of `future`
 * from weft_windows_batch, in any layout; its ids are the windows' numbers. Pack a padded one first
 * by weft_pack_padded_sequence. predicted is [M, targets * k]: k columns a target, such as
 * quantiles, target 0's first. Writes out [M, targets * k], window by window in the user's order.
 * Waits for the device. Errors: another shape, a result that is not finite. Like inverse_transform
 * of scikit-learn. */
WEFT_API void weft_windows_inverse_transform(weft_windows *v, weft_tensor *predicted, double *out);

/* ---- a forecast of any length ---- *
 * The model function returns a prediction for each future row of its windows, transformed as the
 * targets are: [M, targets * quantiles]. The quantiles of a target are side by side. The result is
 * ragged as series.future is, or plain with the windows end to end. NULL or an error ends the
 * forecast. Nothing is recorded, dropout is off, and the tensors of a call end after it. */
typedef weft_tensor *weft_forecast_model_fn(weft_series_batch series, void *user);
typedef struct {
    int64_t rows;                 /* number of rows to forecast; 0: to the end of the series */
    bool true_past;               /* Which target later windows read in rows already forecast.
                                   * false: the predictions. true: the frame's numbers, and the
                                   * prediction only where the frame has NaN */
    int quantiles;                /* of each target, 0 means 1 */
    double *all;                  /* NULL, or [rows, targets * quantiles] in the series' units */
} weft_rolling_forecast_opts;
/* Forecasts rows from, from + 1, .. of a series by fitted features, one horizon after the other.
 * Predictions are the past of the target in later windows. user is passed to model. Writes out
 * [rows, targets] in the series' units; of several quantiles, which must ascend, that with index
 * quantiles / 2. opts NULL: all 0. from is 1 or more, and the series has all rows to forecast; the
 * target may be NaN in them. In these rows the known columns must have numbers; so must the past
 * columns, except in the last window's `future`, which no later window reads. In the `context` rows
 * before `from` no column of the model's past may be NaN. On error the context has failed and out
 * is NaN, or unchanged if the arguments were refused. Like historical_forecasts of Darts. */
WEFT_API void weft_rolling_forecast(weft_features *x, const weft_frame *f, int64_t series,
                                    int64_t from, weft_forecast_model_fn *model, void *user,
                                    const weft_rolling_forecast_opts *opts, double *out);
typedef struct {
    int64_t series;               /* its number in the frame */
    int64_t from;                 /* first row to forecast, counted in the series; 1 or more */
    int64_t rows;                 /* number of rows; 0: to the end of the series */
    double *out;                  /* as in weft_rolling_forecast */
    double *all;                  /* NULL, or as in weft_rolling_forecast_opts */
} weft_rolling_series;
/* Forecasts n series together: a batch has one window of each series that is not finished, so the
 * model runs fewer and larger batches. A series may occur twice. opts: NULL, or with .rows 0 and
 * .all NULL. A forecast has the bits that it has alone if the model gives a sequence the same bits
 * in every batch. On error all forecasts are NaN, or unchanged if the arguments were refused. */
WEFT_API void weft_rolling_forecasts(weft_features *x, const weft_frame *f,
                                     const weft_rolling_series *series, int64_t n,
                                     weft_forecast_model_fn *model, void *user,
                                     const weft_rolling_forecast_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
