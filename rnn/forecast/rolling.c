/* rolling.c - a forecast of any length: windows one after the other, each with what was predicted before
 * it as the past of its target. */
#include <math.h>
#include <string.h>
#include "rnn/forecast/series/features.h"

typedef struct {
    weft *w;
    const weft_features *x;
    const weft_frame *f; int64_t series;
    weft_forecast_model_fn *model; void *user;
    int64_t from, rows, quantiles; bool true_past;
    double *out, *all;
    weft__prepared p;                            /* of this series; predictions go into z and raw */
    weft_feature_counts n;
    /* of one window; one column of it */
    real *past, *future, *predicted; double *column; void *block;
    weft_mark start;
} job;

/* ---- begin ---- */
static bool options_are_sensible(job *j, const weft_rolling_forecast_opts *o)
{
    const weft_frame *f = j->f;
    weft *w = j->w;
    if (!weft__features_frame(j->x, f))
        return false;
    if (!j->model || !j->out)
        weft__fail(w, WEFT_EARG, "rolling_forecast: %s is NULL", j->model ? "out" : "the model");
    else if (j->series < 0 || j->series >= f->n)
        weft__fail(w, WEFT_EARG, "rolling_forecast: there is no series %lld of %lld", (long long)j->series,
                   (long long)f->n);
    if (w->status)
        return false;
    int64_t rows = f->start[j->series + 1] - f->start[j->series];
    j->rows = o && o->rows ? o->rows : rows - j->from;
    j->quantiles = o && o->quantiles ? o->quantiles : 1;
    if (j->from < 1 || j->from > rows || j->rows < 0 || j->rows > rows - j->from)
        weft__fail(
            w, WEFT_EARG,
            "rolling_forecast: series %lld has %lld rows; those from row 1 or more on are expected, not "
            "%lld from row %lld on",
            (long long)j->series, (long long)rows, (long long)j->rows, (long long)j->from);
    else if (j->quantiles < 1 || j->quantiles > 1 << 20)
        weft__fail(w, WEFT_EARG, "rolling_forecast: 1 quantile or more is expected (0 means 1)");
    return !w->status;
}

static bool allocate_job(job *j)
{
    const weft_features *x = j->x;
    int64_t context = x->context < j->from + j->rows ? x->context : j->from + j->rows,
            horizon = x->horizon < j->rows ? x->horizon : j->rows;
    size_t doubles = (size_t)horizon + 1, past = (size_t)(context * j->n.past) + 1,
           future = (size_t)(horizon * j->n.future) + 1;
    size_t predicted = (size_t)horizon * (size_t)(j->n.target * j->quantiles) + 1;
    j->block = weft__allocate(j->w, doubles * sizeof(double) + (past + future + predicted) * sizeof(real));
    if (!j->block)
        return false;
    j->column = j->block;
    j->past = (real *)(void *)(j->column + doubles);
    j->future = j->past + past;
    j->predicted = j->future + future;
    return true;
}

/* ---- one window ---- */
static void inputs_fail(job *j, int64_t row, int64_t k, bool past)
{
    int64_t time = j->x->time != NULL;
    weft__features_fail(j->x, j->f, j->series, row, k < time ? j->x->time : j->x->column[k - time].name,
                        "it is missing, but a window has it in its %s", past ? "past" : "future");
}

static bool all_there(job *j, const real *a, int64_t first, int64_t rows, int64_t columns, bool past)
{
    for (int64_t i = 0; i < rows * columns; i++)
        if (!isfinite(a[i])) {
            inputs_fail(j, first + i / columns, i % columns, past);
            return false;
        }
    return true;
}

static weft_tensor *call_model(job *j, int64_t at, int64_t rows)
{
    weft *w = j->w;
    int64_t begin = at > j->x->context ? at - j->x->context : 0;
    int32_t past_len = (int32_t)(at - begin), future_len = (int32_t)rows;
    weft__prepared_past(&j->p, begin, begin, past_len, j->past);
    weft__prepared_mask(&j->p, past_len, j->past);
    weft__prepared_future(&j->p, begin, at, rows, j->future);
    if (!all_there(j, j->past, begin, past_len, j->n.past, true) ||
        !all_there(j, j->future, at, rows, j->n.future, false))
        return NULL;
    int64_t id = (at - j->from) / j->x->horizon;
    weft_series_batch s = {
        .past = weft_ragged(w, j->past, j->n.past, &(weft_lengths){ .n = 1, .len = &past_len, .id = &id }),
        .future =
            weft_ragged(w, j->future, j->n.future, &(weft_lengths){ .n = 1, .len = &future_len, .id = &id }),
        .fixed = j->n.fixed ? weft_reals(w, j->p.fixed, WEFT_SHAPE(1, j->n.fixed)) : NULL
    };
    weft_mark before = weft__raise_floor(w);
    weft_tensor *y = w->status ? NULL : j->model(s, j->user);
    w->floor = before;
    w->running = "rolling_forecast";
    return y;
}

static bool is_good(job *j, const weft_tensor *y, int64_t at, int64_t needed)
{
    weft *w = j->w;
    char text[128];
    const char *wrong = w->status                ? NULL :
                        w->step != j->start.step ? "came after the end of the step (weft_clear)" :
                                                   weft__wrong(w, y);
    if (wrong)
        weft__fail(w, WEFT_EARG, "rolling_forecast: row %lld: the model's tensor %s", (long long)at, wrong);
    else if (!w->status &&
             (y->f.type != WEFT_REAL ||
              (y->f.batch ? weft__elements(&y->f) / (y->f.size[0] ? y->f.size[0] : 1) * y->f.batch->tokens :
                            weft__elements(&y->f)) != needed))
        weft__fail(w, WEFT_ESHAPE,
                   "rolling_forecast: row %lld: the model gives %s; %lld rows of %lld targets by %lld "
                   "quantiles are expected",
                   (long long)at, weft__text(&y->f, text), (long long)(needed / (j->n.target * j->quantiles)),
                   (long long)j->n.target, (long long)j->quantiles);
    return !w->status;
}

/* ---- what comes of it ---- */
/* Target k's column q of a window back to its units, in j->column. */
static bool undo(job *j, int64_t at, int64_t rows, int64_t k, int64_t q)
{
    const weft__column *c = &j->x->column[j->x->known + j->x->past + k];
    int64_t columns = j->n.target * j->quantiles;
    for (int64_t i = 0; i < rows; i++)
        j->column[i] = (double)j->predicted[i * columns + k * j->quantiles + q];
    weft__chain_undo(j->x, c, j->p.raw + k * j->p.rows, j->p.on[k], at, rows, j->column);
    for (int64_t i = 0; i < rows; i++)
        if (!isfinite(j->column[i])) {
            weft__features_fail(j->x, j->f, j->series, at + i, c->name,
                                "the model gives %g, transformed back %g",
                                (double)j->predicted[i * columns + k * j->quantiles + q], j->column[i]);
            return false;
        }
    return true;
}

/* The point forecast is the past of what follows, unless the truth is expected and known. */
static void feed_back(job *j, int64_t at, int64_t rows, int64_t k)
{
    const weft__prepared *p = &j->p;
    double *raw = p->raw + k * p->rows;
    for (int64_t i = 0; i < rows; i++) {
        real *z = &p->z[(at + i) * p->width + j->x->known + j->x->past + k];
        if (!j->true_past || !isfinite(*z))
            *z = j->predicted[(i * j->n.target + k) * j->quantiles + j->quantiles / 2];
        if (!j->true_past || !isfinite(raw[at + i]))
            raw[at + i] = j->column[i];
    }
}

static bool take_rows(job *j, int64_t at, int64_t rows)
{
    for (int64_t k = 0; k < j->n.target; k++) {
        for (int64_t q = 0; j->all && q < j->quantiles; q++) {
            if (!undo(j, at, rows, k, q))
                return false;
            for (int64_t i = 0; i < rows; i++)
                j->all[((at - j->from + i) * j->n.target + k) * j->quantiles + q] = j->column[i];
        }
        if (!undo(j, at, rows, k, j->quantiles / 2))
            return false;
        for (int64_t i = 0; i < rows; i++)
            j->out[(at - j->from + i) * j->n.target + k] = j->column[i];
        feed_back(j, at, rows, k);
    }
    return true;
}

static bool step(job *j, int64_t at, int64_t rows)
{
    int64_t needed = rows * j->n.target * j->quantiles;
    weft_mark mark = weft_mark_here(j->w);
    weft_tensor *y = call_model(j, at, rows);
    if (!is_good(j, y, at, needed))
        return false;
    y = y->f.batch ? weft_to_layout(y, WEFT_CONCAT) : y;
    weft_status s = weft__read(y, j->predicted, (size_t)needed * sizeof *j->predicted);
    bool good = s == WEFT_OK && take_rows(j, at, rows);
    weft_rewind(j->w, mark);
    return good;
}

static void run_job(job *j)
{
    weft *w = j->w;
    bool recording = weft_set_grad_enabled(w, false), training = weft_set_training(w, false);
    j->start = weft_mark_here(w);
    w->running = "rolling_forecast";
    if (weft__prepare(&j->p, j->x, j->f, j->series, 1, true) && allocate_job(j))
        for (int64_t at = j->from, end = j->from + j->rows; at < end; at += j->x->horizon)
            if (!step(j, at, end - at < j->x->horizon ? end - at : j->x->horizon))
                break;
    weft__release(w, j->p.block);
    weft__release(w, j->block);
    weft_set_grad_enabled(w, recording), weft_set_training(w, training);
    if (w->step == j->start.step)
        weft_rewind(w, j->start);
}

void weft_rolling_forecast(weft_features *x, const weft_frame *f, int64_t series, int64_t from,
                           weft_forecast_model_fn *model, void *user,
                           const weft_rolling_forecast_opts *o, double *out)
{
    weft *w = x && x->w ? x->w : weft__no_context();
    job j = {
        .w = w, .x = x, .f = f, .series = series, .model = model, .user = user, .from = from, .out = out
    };
    if (o)
        j.true_past = o->true_past, j.all = o->all;
    if (!weft__features_ready(x, "rolling_forecast") || !options_are_sensible(&j, o))
        return;
    j.n = weft_features_counts(x);
    run_job(&j);
    for (int64_t i = 0; w->status && i < j.rows * j.n.target; i++)
        out[i] = (double)NAN;
}
