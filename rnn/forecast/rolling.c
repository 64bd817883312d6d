/* rolling.c - forecasts of any length by successive windows. Each window uses the predictions of earlier ones
 * as the past of its target. A batch has one window of each series. */
#include <math.h>
#include <string.h>
#include "rnn/forecast/series/features.h"

/* State of one series. */
typedef struct {
    weft_rolling_series opts;                    /* with rows for the forecast */
    int64_t next_row;                            /* row of the series where the next window begins */
    weft__prepared p;                            /* predictions are written to z and raw */
} job;
typedef struct {
    weft *w;
    const weft_features *x;
    const weft_frame *f;
    weft_forecast_model_fn *model; void *user;
    bool true_past; int64_t quantiles;
    job *job; int64_t n;
    weft_feature_counts counts;
    /* Windows of a batch, end to end; column: one column of one window. */
    real *past, *future, *fixed, *predicted; double *column; void *block;
    int32_t *past_len, *future_len; int64_t *id; job **active;
    weft_mark start;
} rolling;

/* ---- begin ---- */
static bool series_is_sensible(rolling *r, job *j)
{
    const weft_frame *f = r->f;
    weft *w = r->w;
    weft_rolling_series *o = &j->opts;
    if (!o->out)
        weft__fail(w, WEFT_EARG, "rolling_forecast: out is NULL");
    else if (o->series < 0 || o->series >= f->n)
        weft__fail(w, WEFT_EARG, "rolling_forecast: series %lld; expected a number from 0, below %lld",
                   (long long)o->series, (long long)f->n);
    if (w->status)
        return false;
    int64_t rows = f->start[o->series + 1] - f->start[o->series];
    o->rows = o->rows ? o->rows : rows - o->from;
    if (o->from < 1 || o->from > rows || o->rows < 0 || o->rows > rows - o->from)
        weft__fail(w, WEFT_EARG,
                   "rolling_forecast: series %lld has %lld rows; expected rows from row 1 or later, not %lld "
                   "from row %lld on",
                   (long long)o->series, (long long)rows, (long long)o->rows, (long long)o->from);
    j->next_row = o->from;
    return !w->status;
}

static bool options_are_sensible(rolling *r)
{
    weft *w = r->w;
    if (!weft__features_frame(r->x, r->f))
        return false;
    if (!r->model)
        weft__fail(w, WEFT_EARG, "rolling_forecast: the model is NULL");
    else if (r->quantiles < 1 || r->quantiles > 1 << 20)
        weft__fail(w, WEFT_EARG, "rolling_forecast: quantiles: expected 1 .. 2^20 (0 means 1)");
    for (int64_t i = 0; i < r->n && !w->status; i++)
        series_is_sensible(r, &r->job[i]);
    return !w->status;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Allocates for the longest possible windows of all series. */
static bool allocate_windows(rolling *r)
{
    const weft_features *x = r->x;
    int64_t context = 0, horizon = 0;
    for (int64_t i = 0; i < r->n; i++) {
        context += least(x->context, r->job[i].opts.from + r->job[i].opts.rows);
        horizon += least(x->horizon, r->job[i].opts.rows);
    }
    size_t n = (size_t)r->n + 1, columns = (size_t)(r->counts.target * r->quantiles);
    size_t past = (size_t)(context * r->counts.past) + 1, future = (size_t)(horizon * r->counts.future) + 1,
           predicted = (size_t)horizon * columns + 1, fixed = n * (size_t)r->counts.fixed + 1;
    size_t doubles = (size_t)x->horizon + 1, numbers = past + future + predicted + fixed;
    r->block = weft__allocate(r->w, doubles * sizeof(double) + n * (sizeof(int64_t) + sizeof(job *)) +
                                            2 * n * sizeof(int32_t) + numbers * sizeof(real));
    if (!r->block)
        return false;
    r->column = r->block;
    r->id = (int64_t *)(void *)(r->column + doubles);
    r->active = (job **)(void *)(r->id + n);
    r->past_len = (int32_t *)(void *)(r->active + n);
    r->future_len = r->past_len + n;
    r->past = (real *)(void *)(r->future_len + n);
    r->future = r->past + past;
    r->predicted = r->future + future;
    r->fixed = r->predicted + predicted;
    return true;
}

/* ---- one window of each series ---- */
static bool check_finite(rolling *r, const job *j, const real *a, int64_t first, int64_t rows,
                         int64_t columns, bool past)
{
    int64_t time = r->x->time != NULL;
    for (int64_t i = 0; i < rows * columns; i++)
        if (!isfinite(a[i])) {
            int64_t k = i % columns;
            weft__features_fail(r->x, r->f, j->opts.series, first + i / columns,
                                k < time ? r->x->time : r->x->column[k - time].name,
                                "it is missing, but a window has it in its %s", past ? "past" : "future");
            return false;
        }
    return true;
}

/* Returns the remaining rows, at most a horizon. */
static int64_t rows_of(const rolling *r, const job *j)
{
    return least(r->x->horizon, j->opts.from + j->opts.rows - j->next_row);
}

/* Writes the next window of a series as number i of the batch. */
static bool enter(rolling *r, job *j, int64_t i, real *past, real *future)
{
    int64_t begin = j->next_row > r->x->context ? j->next_row - r->x->context : 0, rows = rows_of(r, j);
    r->active[i] = j;
    r->id[i] = (j->next_row - j->opts.from) / r->x->horizon;
    r->past_len[i] = (int32_t)(j->next_row - begin);
    r->future_len[i] = (int32_t)rows;
    weft__prepared_past(&j->p, begin, begin, r->past_len[i], past);
    weft__prepared_mask(&j->p, r->past_len[i], past);
    weft__prepared_future(&j->p, begin, j->next_row, rows, future);
    if (r->counts.fixed)
        memcpy(r->fixed + i * r->counts.fixed, j->p.fixed, (size_t)r->counts.fixed * sizeof *r->fixed);
    return check_finite(r, j, past, begin, r->past_len[i], r->counts.past, true) &&
           check_finite(r, j, future, j->next_row, rows, r->counts.future, false);
}

/* Returns the number of series that have a window; -1 if a value is missing. */
static int64_t enter_all(rolling *r)
{
    int64_t n = 0;
    real *past = r->past, *future = r->future;
    for (int64_t i = 0; i < r->n; i++) {
        job *j = &r->job[i];
        if (rows_of(r, j) == 0)
            continue;
        if (!enter(r, j, n, past, future))
            return -1;
        past += r->past_len[n] * r->counts.past;
        future += r->future_len[n] * r->counts.future;
        n++;
    }
    return n;
}

static weft_tensor *call_model(rolling *r, int64_t n)
{
    weft *w = r->w;
    const weft_lengths past = { .n = n, .len = r->past_len, .id = r->id },
                       future = { .n = n, .len = r->future_len, .id = r->id };
    weft_series_batch s = {
        .past = weft_ragged(w, r->past, r->counts.past, &past),
        .future = weft_ragged(w, r->future, r->counts.future, &future),
        .fixed = r->counts.fixed ? weft_reals(w, r->fixed, WEFT_SHAPE(n, r->counts.fixed)) : NULL
    };
    weft__callback outer = weft__callback_begin(w, "the model of", "rolling_forecast");
    weft_tensor *y = w->status ? NULL : r->model(s, r->user);
    weft__callback_end(w, outer);
    w->running = "rolling_forecast";
    return y;
}

static bool is_good(rolling *r, const weft_tensor *y, int64_t begin, int64_t needed)
{
    weft *w = r->w;
    if (WEFT__IS_USABLE(w, y, "rolling_forecast: row %lld: the model's tensor", (long long)begin) &&
        (y->f.type != WEFT_REAL ||
         (y->f.batch ? weft__elements(&y->f) / (y->f.size[0] ? y->f.size[0] : 1) * y->f.batch->tokens :
                       weft__elements(&y->f)) != needed))
        weft__fail(w, WEFT_ESHAPE,
                   "rolling_forecast: row %lld: the model returned %s; expected %lld rows of %lld targets by "
                   "%lld quantiles",
                   (long long)begin, WEFT__TEXT(&y->f),
                   (long long)(needed / (r->counts.target * r->quantiles)), (long long)r->counts.target,
                   (long long)r->quantiles);
    return !w->status;
}

/* ---- results ---- */
/* Converts column q of target k of a predicted window back to its units, into r->column. */
static bool undo(rolling *r, const job *j, const real *predicted, int64_t rows, int64_t k, int64_t q)
{
    const weft__column *c = &r->x->column[r->x->known + r->x->past + k];
    int64_t columns = r->counts.target * r->quantiles;
    for (int64_t i = 0; i < rows; i++)
        r->column[i] = (double)predicted[i * columns + k * r->quantiles + q];
    weft__chain_undo(r->x, c, j->p.raw + k * j->p.rows, j->p.inputs[k], j->next_row, rows, r->column);
    for (int64_t i = 0; i < rows; i++)
        if (!isfinite(r->column[i])) {
            weft__features_fail(r->x, r->f, j->opts.series, j->next_row + i, c->name,
                                "the model predicted %g, in the units of the series %g",
                                (double)predicted[i * columns + k * r->quantiles + q], r->column[i]);
            return false;
        }
    return true;
}

/* Makes the point forecast the past of the next window, unless the true value is required and known. */
static void feed_back(rolling *r, const job *j, const real *predicted, int64_t rows, int64_t k)
{
    const weft__prepared *p = &j->p;
    double *raw = p->raw + k * p->rows;
    for (int64_t i = 0; i < rows; i++) {
        real *z = &p->z[(j->next_row + i) * p->width + r->x->known + r->x->past + k];
        if (!r->true_past || !isfinite(*z))
            *z = predicted[(i * r->counts.target + k) * r->quantiles + r->quantiles / 2];
        if (!r->true_past || !isfinite(raw[j->next_row + i]))
            raw[j->next_row + i] = r->column[i];
    }
}

static bool take_rows(rolling *r, job *j, const real *predicted, int64_t rows)
{
    int64_t first = j->next_row - j->opts.from, targets = r->counts.target;
    for (int64_t k = 0; k < targets; k++) {
        for (int64_t q = 0; j->opts.all && q < r->quantiles; q++) {
            if (!undo(r, j, predicted, rows, k, q))
                return false;
            for (int64_t i = 0; i < rows; i++)
                j->opts.all[((first + i) * targets + k) * r->quantiles + q] = r->column[i];
        }
        if (!undo(r, j, predicted, rows, k, r->quantiles / 2))
            return false;
        for (int64_t i = 0; i < rows; i++)
            j->opts.out[(first + i) * targets + k] = r->column[i];
        feed_back(r, j, predicted, rows, k);
    }
    j->next_row += rows;
    return true;
}

/* Runs one window of each remaining series. Returns false if none remains, or on failure. */
static bool step(rolling *r)
{
    int64_t n = enter_all(r), columns = r->counts.target * r->quantiles, rows = 0;
    if (n <= 0)
        return false;
    for (int64_t i = 0; i < n; i++)
        rows += r->future_len[i];
    weft_mark mark = weft_mark_here(r->w);
    weft_tensor *y = call_model(r, n);
    if (!is_good(r, y, r->active[0]->next_row, rows * columns))
        return false;
    y = y->f.batch ? weft_to_layout(y, WEFT_CONCAT) : y;
    const real *predicted = r->predicted;
    bool ok = weft__read(y, r->predicted, (size_t)(rows * columns) * sizeof *r->predicted) == WEFT_OK;
    for (int64_t i = 0; ok && i < n; predicted += r->future_len[i++] * columns)
        ok = take_rows(r, r->active[i], predicted, r->future_len[i]);
    weft_rewind(r->w, mark);
    return ok;
}

static void run_all(rolling *r)
{
    weft *w = r->w;
    bool recording = weft_set_grad_enabled(w, false), training = weft_set_training(w, false);
    r->start = weft_mark_here(w);
    w->running = "rolling_forecast";
    bool ok = true;
    for (int64_t i = 0; ok && i < r->n; i++)
        ok = weft__prepare(&r->job[i].p, r->x, r->f, r->job[i].opts.series, 1, true);
    if (ok && allocate_windows(r))
        while (step(r))
            ;
    for (int64_t i = 0; i < r->n; i++)
        weft__release(w, r->job[i].p.block);
    weft__release(w, r->block);
    weft_set_grad_enabled(w, recording), weft_set_training(w, training);
    weft_rewind(w, r->start);
}

static void fill_with_nan(const rolling *r)
{
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t k = 0; k < r->job[i].opts.rows * r->counts.target; k++)
            r->job[i].opts.out[k] = (double)NAN;
}

void weft_rolling_forecasts(weft_features *x, const weft_frame *f, const weft_rolling_series *series,
                            int64_t n, weft_forecast_model_fn *model, void *user,
                            const weft_rolling_forecast_opts *o)
{
    weft *w = x && x->w ? x->w : weft__no_context();
    rolling r = { .w = w, .x = x, .f = f, .model = model, .user = user, .quantiles = 1 };
    if (o) {
        r.true_past = o->true_past;
        r.quantiles = o->quantiles ? o->quantiles : 1;
    }
    if (!weft__features_ready(x, "rolling_forecast"))
        return;
    if (n < 0 || (n && !series) || (o && (o->rows || o->all)))
        weft__fail(w, WEFT_EARG, "rolling_forecasts: %s",
                   n < 0 || !series ? "series is NULL or n negative; expected 0 or more series" :
                                      "rows or all in the options; expected them in each series");
    r.job = w->status ? NULL : weft__allocate(w, ((size_t)n + 1) * sizeof *r.job);
    for (r.n = 0; r.job && r.n < n; r.n++)
        r.job[r.n] = (job){ .opts = series[r.n] };
    if (!r.job || !options_are_sensible(&r)) {
        weft__release(w, r.job);
        return;
    }
    r.counts = weft_features_counts(x);
    run_all(&r);
    if (w->status)
        fill_with_nan(&r);
    weft__release(w, r.job);
}

void weft_rolling_forecast(weft_features *x, const weft_frame *f, int64_t series, int64_t from,
                           weft_forecast_model_fn *model, void *user,
                           const weft_rolling_forecast_opts *o, double *out)
{
    const weft_rolling_forecast_opts defaults = { 0 }, *options = o ? o : &defaults;
    const weft_rolling_series input = {
        .series = series, .from = from, .rows = options->rows, .out = out, .all = options->all
    };
    weft_rolling_forecasts(x, f, &input, 1, model, user,
                           &(weft_rolling_forecast_opts){ .true_past = options->true_past,
                                                          .quantiles = options->quantiles });
}
