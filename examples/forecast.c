/* forecast.c - forecasts the field B(t) of a magnet with hysteresis from its current I(t), with ragged pasts
 * and futures.
 *
 *     forecast --out FILE      trains; `forecast --help` lists the settings; --resume continues from FILE
 *     forecast --test FILE     prints the errors on the test series
 *     mpirun -n 4 forecast ..  trains with four processes to the same bytes, see docs/cluster.md
 *
 * A model sees up to 200 rows of the past, (I, dI, B), and up to 80 rows of the future, the programmed
 * current (I, dI). It returns five quantiles of B for each row. --model chooses one of six. FILE holds
 * settings, scalers, weights, the best weights so far, and the state of the training. So a run that was
 * killed and resumed ends with the same bytes as one that was not. After kill -9 the log repeats the epochs
 * since the last save of FILE. Seconds and steps per second count the last process only. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/magnet.h"
#include "common/program.h"
#include "common/training.h"

const char program[] = "forecast";

enum { ENCODER_DECODER_LSTM, ATTENTION_LSTM, TRANSFORMER_LSTM, TFT, PF_TFT, XTFT, MODELS };
static const char *const model_names[] = { "encoder_decoder_lstm", "attention_lstm", "transformer_lstm",
                                           "tft", "pf_tft", "xtft", NULL };

/* The quantiles of each row. The middle one is the forecast, the outermost are the band. */
enum { QUANTILES = 5, MEDIAN = QUANTILES / 2 };
static const weft_real quantiles[QUANTILES] = { (weft_real).05, (weft_real).25, (weft_real).5,
                                                (weft_real).75, (weft_real).95 };

/* ---- options ---- */
typedef struct {
    training_settings train;
    int64_t model, hidden, layers, heads, blocks, context, horizon, stride, series, series_seed, patience;
    double dropout, noise;
} settings;
enum { SETTINGS = 22 };
typedef struct {
    settings set;
    run_options run;
    const char *forecasts;
    bool quick;
} options;

static const option all_options[] = {
    { "model", CHOICE, offsetof(options, set.model), ATTENTION_LSTM, 0, MODELS - 1,
      "encoder_decoder_lstm, attention_lstm, transformer_lstm, tft, pf_tft or xtft", model_names },
    SETTING("hidden", WHOLE, hidden, 64, 1, 4096, "width of the model (d_model, or units of each LSTM)"),
    SETTING("layers", WHOLE, layers, 1, 1, 8, "layers of each LSTM"),
    SETTING("heads", WHOLE, heads, 4, 1, 64, "heads of the attention; a divisor of the width"),
    SETTING("blocks", WHOLE, blocks, 1, 0, 16, "attention blocks of transformer_lstm"),
    SETTING("context", WHOLE, context, 200, 1, 1e5, "largest number of past rows in a window"),
    SETTING("horizon", WHOLE, horizon, 80, 1, 1e5, "largest number of rows to forecast"),
    SETTING("stride", WHOLE, stride, 20, 1, 1e6, "rows between two training windows"),
    SETTING("series", WHOLE, series, 160, 1, 1e6, "series to learn from"),
    SETTING("series-seed", WHOLE, series_seed, 1, 0, 9e15, "seed of the series"),
    SETTING("batch", WHOLE, train.batch, 8, 1, 65536, "windows per update"),
    SETTING("shards", WHOLE, train.shards, 0, 0, 65536,
            "parts of an update; fixes the result for any number of ranks; 0: one per rank"),
    SETTING("epochs", WHOLE, train.epochs, 25, 0, 1e6, "largest number of passes over the windows"),
    SETTING("warmup", WHOLE, train.warmup, 200, 0, 1e9, "updates until the full learning rate"),
    SETTING("patience", WHOLE, patience, 10, 1, 1e6, "epochs without a better validation loss before "
                                                     "training stops"),
    SETTING("seed", WHOLE, train.seed, 1, 0, 9e15, "seed of the weights, the order and dropout"),
    SETTING("dropout", REAL, dropout, 0, 0, 0.95, "probability of dropout"),
    SETTING("noise", REAL, noise, 0, 0, 10, "standard deviation of the noise of the measured field"),
    SETTING("lr", REAL, train.lr, 6e-3, 0, 10, "learning rate after warm-up; falls to 0 on a cosine"),
    SETTING("decay", REAL, train.decay, 0, 0, 10, "weight decay (AdamW)"),
    SETTING("clip", REAL, train.clip, 1, 1e-9, 1e9, "limit of the gradient's norm"),
    SETTING("average", REAL, train.average, 0.998, 0, 0.999999,
            "decay of the average of the weights, which judges; 0: no average"),
    OTHER("forecasts", TEXT, forecasts, 0, 0, 0, "CSV file for forecasts of whole series"),
    OTHER("quick", FLAG, quick, 0, 0, 0, "other defaults, for a trial of a second"),
};
static const option_table table = {
    "usage:\n"
    "  forecast [OPTION]..                trains, and saves to --out (forecast.h5)\n"
    "  forecast --test FILE [OPTION]..    prints the errors on the test series\n"
    "  mpirun -n RANKS forecast ..        trains with several processes, see docs/cluster.md\n",
    all_options, sizeof all_options / sizeof *all_options, SETTINGS,
};

static void make_quick(settings *s)
{
    s->hidden = 8;
    s->heads = 2;
    s->context = 40;
    s->horizon = 16;
    s->stride = 40;
    s->series = 6;
    s->train.batch = 16;
    s->train.epochs = 3;
    s->train.warmup = 5;
}

static options command_line(int argc, char **argv)
{
    options o = { .run.out = "forecast.h5" };
    options_preset(&table, &o);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            make_quick(&o.set);
    int rest = options_read(&table, &o, &o.run, argc, argv);
    if (rest < argc)
        quit(2, "found \"%s\"; expected options only; see forecast --help", argv[rest]);
    if (o.run.test && o.run.resume)
        quit(2, "expected only one of --test and --resume");
    return o;
}

/* ---- two models: the trained one, and the best so far ---- */
typedef struct {
    weft *w;
    weft_features *features;
    weft_module *all, *trained;                  /* all: net and best; trained: net */
    weft_forecaster *net, *best;
    weft_ema *average;                           /* average of net, or NULL */
    weft_parallel *ranks;                        /* they share the evaluation */
} model;

static weft_forecaster *forecaster_new(weft_module *m, const char *name, const settings *s,
                                       weft_feature_counts n)
{
    const int layers = (int)s->layers, heads = (int)s->heads;
    switch (s->model) {
    case ENCODER_DECODER_LSTM:
        return weft_encoder_decoder_lstm_new(
            m, name,
            &(weft_encoder_decoder_lstm_opts){ .num_past_features = n.past, .num_future_features = n.future,
                                               .d_encoder = s->hidden, .d_decoder = s->hidden,
                                               .num_encoder_layers = layers, .num_decoder_layers = layers,
                                               .dropout = s->dropout, .output_dim = QUANTILES });
    case ATTENTION_LSTM:
        return weft_attention_lstm_new(
            m, name,
            &(weft_attention_lstm_opts){ .num_past_features = n.past, .num_future_features = n.future,
                                         .d_model = s->hidden, .num_layers = layers, .num_heads = heads,
                                         .dropout = s->dropout, .output_dim = QUANTILES });
    case TRANSFORMER_LSTM:
        return weft_transformer_lstm_new(
            m, name,
            &(weft_transformer_lstm_opts){ .num_past_features = n.past, .num_future_features = n.future,
                                           .d_model = s->hidden, .num_layers = layers, .num_heads = heads,
                                           .num_transformer_blocks = (int)s->blocks,
                                           .dropout = s->dropout, .output_dim = QUANTILES });
    }
    /* the series have no static features, so two of these variants get the length of the past instead */
    return weft_tft_new(m, name,
                        &(weft_tft_opts){ .num_past_features = n.past, .num_future_features = n.future,
                                          .num_static_features = 1, .ctxt_seq_len = s->context,
                                          .d_model = s->hidden, .num_lstm_layers = layers, .num_heads = heads,
                                          .dropout = s->dropout, .output_dim = QUANTILES,
                                          .variant = (weft_tft_variant)(s->model - TFT) });
}

static model model_new(weft *w, const settings *s)
{
    weft_features_opts columns = { .context = s->context, .horizon = s->horizon,
                                   .known = WEFT_NAMES("I", "dI"), .target = WEFT_NAMES("B") };
    model m = { .w = w,
                .features = weft_features_new(w, "features", &columns),
                .all = weft_module_new(w, "forecast") };
    weft_feature_counts n = weft_features_counts(m.features);
    m.net = forecaster_new(m.all, "net", s, n);
    m.best = forecaster_new(m.all, "best", s, n);
    m.trained = weft_forecaster_module(m.net);
    m.average = s->train.average > 0 ? weft_ema_new(m.trained, s->train.average) : NULL;
    check_context(w, "%s", model_names[s->model]);
    weft_freeze(weft_forecaster_module(m.best), "*", true);
    m.ranks = weft_parallel_new(m.all, &(weft_parallel_opts){ .shards = (int)s->train.shards });
    check_context(w, "%s", "ranks");
    return m;
}

/* The average of the net becomes the best. */
static void model_keep(const model *m)
{
    weft_module *best = weft_forecaster_module(m->best);
    weft_ema_swap(m->average);
    for (int i = 0; i < weft_parameter_count(best); i++)
        weft_assign(weft_parameter_at(best, i, NULL), weft_parameter_at(m->trained, i, NULL));
    weft_ema_swap(m->average);
}

static weft_loss loss_by(weft_tensor *predicted, weft_tensor *target)
{
    weft_forecast_loss_opts o = { .kind = WEFT_FORECAST_QUANTILE, .quantiles = quantiles, .n = QUANTILES };
    return weft_forecast_loss(predicted, target, NULL, &o);
}

/* Makes windows over a frame. Evaluation forecasts all rows except the first few, most of them twice, from
 * pasts of all lengths. Training windows are shortened. */
static weft_windows *windows_new(const model *m, const settings *s, part p, const weft_frame *f)
{
    enum { LEAST_PAST = 16, LEAST_FUTURE = 8 };
    static const char *const names[] = { "train", "validation", "test" };
    weft_windows_opts o = { .stride = p == TRAIN ? s->stride : (s->horizon + 1) / 2,
                            .min_context = s->context < LEAST_PAST ? s->context : LEAST_PAST,
                            .min_horizon = s->horizon < LEAST_FUTURE ? s->horizon : LEAST_FUTURE,
                            .shorten = p == TRAIN };
    return weft_windows_new(m->features, names[p], f, &o);
}

/* ---- evaluation of windows ---- */
enum { CHUNK = 64 };                             /* windows at a time */
/* loss: in scaled numbers; rmse: of the median, in B's unit; inside: share of rows within the band */
typedef struct { double loss, rmse, inside; } score;
enum { LOSS, WEIGHT, SQUARES, INSIDE, ROWS, SUMS };               /* summed over windows and shards */

/* Returns quantiles of windows in B's unit; the caller frees them. sum: NULL, or gets their loss added. */
static double *forecast_windows(weft_forecaster *f, weft_windows *windows, const int32_t *index, int64_t n,
                                weft_forecast_maps *maps, double *sum)
{
    weft_window_batch b = weft_windows_batch(windows, index, n, NULL);
    weft_tensor *y = weft_forecast_run(f, &b.series, maps).y;
    if (sum) {
        weft_loss loss = loss_by(y, b.target);
        sum[LOSS] += weft_item(loss.sum);
        sum[WEIGHT] += weft_item(loss.weight);
    }
    double *predicted = memory((size_t)weft_numel(y) + 1, sizeof *predicted);
    weft_windows_inverse_transform(windows, y, predicted);
    return predicted;
}

static void add_windows(double sum[SUMS], weft_forecaster *f, weft_windows *windows, const weft_frame *frame,
                        const int32_t *index, int64_t n)
{
    double *predicted = forecast_windows(f, windows, index, n, NULL, sum), *next = predicted;
    for (int64_t i = 0; i < n; i++) {
        weft_window v = weft_window_at(windows, index[i]);
        const double *B = field_from(frame, v.series, v.origin);
        for (int64_t t = 0; t < v.future; t++, next += QUANTILES) {
            double miss = next[MEDIAN] - B[t];
            sum[SQUARES] += miss * miss;
            sum[INSIDE] += next[0] <= B[t] && B[t] <= next[QUANTILES - 1];
            sum[ROWS]++;
        }
    }
    free(predicted);
}

static score judge(const model *m, weft_forecaster *f, weft_windows *windows, const weft_frame *frame)
{
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_parallel_begin(m->ranks, NULL, weft_windows_counts(windows).windows);
        for (weft_part shard; weft_parallel_next(m->ranks, &shard);) {
            double sum[SUMS] = { 0 };
            for (int64_t from = 0; from < shard.n; from += CHUNK) {
                int64_t n = shard.n - from < CHUNK ? shard.n - from : CHUNK;
                add_windows(sum, f, windows, frame, shard.index + from, n);
                weft_clear(m->w);
            }
            weft_parallel_add_values(m->ranks, sum, SUMS);
        }
    }
    check_context(m->w, "judging");
    const double *all = weft_parallel_values(m->ranks);
    return (score){ all[LOSS] / all[WEIGHT], sqrt(all[SQUARES] / all[ROWS]), all[INSIDE] / all[ROWS] };
}

/* ---- evaluation of whole series: from row `from` on, each horizon starts from the previous forecast ---- */
static weft_tensor *predict(weft_series_batch series, void *user)
{
    return weft_forecast_run(user, &series, NULL).y;
}

static int64_t rolling_from(const settings *s, const weft_frame *f, int64_t series)
{
    int64_t rows = series_rows(f, series);
    return rows > s->context ? s->context : (rows + 1) / 2;
}

/* Adds the squared errors of a series' forecast, and their count. */
static void add_errors(double sum[2], const weft_frame *f, int64_t series, int64_t from, const double *out)
{
    const double *B = field_from(f, series, from);
    for (int64_t t = 0; t < series_rows(f, series) - from; t++, sum[1]++)
        sum[0] += (out[t] - B[t]) * (out[t] - B[t]);
}

static void write_forecasts(const char *path, const settings *s, const weft_frame *f,
                            const weft_parallel_result *results)
{
    FILE *file = fopen(path, "w");
    bool ok = file && fputs("series,row,B,forecast\n", file) >= 0;
    for (int64_t i = 0; ok && i < f->n; i++) {
        int64_t from = rolling_from(s, f, i), n = results[i].n / (int64_t)sizeof(double);
        const double *B = field_from(f, i, from), *forecast = results[i].bytes;
        for (int64_t t = 0; t < n; t++)
            fprintf(file, "%lld,%lld,%.9g,%.9g\n", (long long)i, (long long)(from + t), B[t], forecast[t]);
    }
    end_file(file, path);
}

/* Forecasts the series of a shard together. */
static void rolling_shard(const model *m, const settings *s, const weft_frame *f, const weft_part *shard)
{
    weft_rolling_series *series = memory((size_t)shard->n, sizeof *series);
    for (int64_t k = 0; k < shard->n; k++) {
        int64_t i = shard->index[k], from = rolling_from(s, f, i), rows = series_rows(f, i) - from;
        series[k] = (weft_rolling_series){ i, from, rows, memory((size_t)rows, sizeof(double)), NULL };
    }
    weft_rolling_forecasts(m->features, f, series, shard->n, predict, m->best,
                           &(weft_rolling_forecast_opts){ .quantiles = QUANTILES });
    check_context(m->w, "rolling forecasts");
    weft_clear(m->w);
    for (int64_t k = 0; k < shard->n; k++) {
        weft_parallel_put(m->ranks, k, series[k].out, series[k].rows * (int64_t)sizeof(double));
        free(series[k].out);
    }
    free(series);
}

/* Returns the root of the mean squared error over all series. Each rank forecasts those of its shards. path:
 * NULL, or a file of all forecasts that the first rank writes. */
static double rolling_rmse(const model *m, const settings *s, const weft_frame *f, const char *path)
{
    double sum[2] = { 0 };
    WEFT_NO_GRAD(m->w) {
        weft_parallel_begin(m->ranks, NULL, f->n);
        for (weft_part shard; weft_parallel_next(m->ranks, &shard);)
            rolling_shard(m, s, f, &shard);
    }
    check_context(m->w, "rolling forecasts");
    const weft_parallel_result *results = weft_parallel_gathered(m->ranks, NULL);
    for (int64_t i = 0; i < f->n; i++)
        add_errors(sum, f, i, rolling_from(s, f, i), results[i].bytes);
    if (path && weft_parallel_place_of(m->ranks).rank == 0)
        write_forecasts(path, s, f, results);
    return sqrt(sum[0] / sum[1]);
}

/* Does the same with AR-X. */
static double arx_rolling_rmse(const arx *a, const settings *s, const weft_frame *f)
{
    double sum[2] = { 0 };
    for (int64_t i = 0; i < f->n; i++) {
        int64_t from = rolling_from(s, f, i), n = series_rows(f, i) - from;
        double *out = memory((size_t)n, sizeof *out);
        arx_forecast(a, f, i, from, from, n, out);
        add_errors(sum, f, i, from, out);
        free(out);
    }
    return sqrt(sum[0] / sum[1]);
}

/* ---- training ---- */
enum { PER_EPOCH = 3 };                          /* training loss, validation loss, validation RMSE */
typedef struct {
    options o;
    model m;
    arx ar;
    training t;
    weft_frame frame[TEST + 1];
    weft_windows *windows[TEST + 1];
    double *history;                             /* [epochs][PER_EPOCH] */
    weft_early_stopping stopper;
} run;

static weft_loss loss_of(void *user, const weft_part *shard)
{
    run *r = user;
    weft_window_batch b = weft_windows_batch(r->windows[TRAIN], shard->index, shard->n, NULL);
    return loss_by(weft_forecast_run(r->m.net, &b.series, NULL).y, b.target);
}

static void after_update(void *user, weft_tensor *norm)
{
    (void)norm;
    training *t = &((run *)user)->t;
    t->meter[0] += weft_parallel_mean(t->parallel);
    t->meter[1]++;
    t->loss = t->meter[0] / t->meter[1];
}

static bool after_epoch(void *user)
{
    run *r = user;
    training *t = &r->t;
    bool best;
    double loss = t->meter[1] > 0 ? t->meter[0] / t->meter[1] : NAN;
    weft_ema_swap(r->m.average);
    score s = judge(&r->m, r->m.net, r->windows[VALIDATION], &r->frame[VALIDATION]);
    weft_ema_swap(r->m.average);
    bool enough = weft_early_stopping_step(&r->stopper, s.loss, &best);
    if (best)
        model_keep(&r->m);
    memcpy(r->history + PER_EPOCH * (t->epochs - 1), (double[]){ loss, s.loss, s.rmse },
           PER_EPOCH * sizeof loss);
    t->meter[0] = t->meter[1] = 0;
    training_print(t, "epoch %lld of %lld: loss %.5f, validation %.5f, RMSE %.5f, %.0f s%s\n",
                   (long long)t->epochs, (long long)t->set->epochs, loss, s.loss, s.rmse, training_seconds(t),
                   best ? "" : "  (not the best)");
    weft_journal_number(t->log, "epoch", (double)t->epochs);
    weft_journal_number(t->log, "update", (double)weft_optim_steps(t->optim));
    weft_journal_number(t->log, "loss", loss);
    weft_journal_number(t->log, "validation_loss", s.loss);
    weft_journal_number(t->log, "validation_rmse", s.rmse);
    weft_journal_number(t->log, "lr", (double)weft_optim_lr(t->optim));
    training_end_line(t);
    return enough;
}

/* ---- pictures of forecasts and true values ---- */
typedef struct {
    int64_t past, n;
    const double *I, *B;                         /* [past + n], of the frame */
    double *row;                                 /* [past + n], the start of one block */
    double *q[QUANTILES], *linear;               /* [n] */
} view;

/* Rows from - past .. from + n - 1 of a series. predicted [n, QUANTILES]: rows from `from` on. */
static view view_new(const run *r, int64_t series, int64_t from, int64_t past, int64_t n,
                     const double *predicted)
{
    const weft_frame *f = &r->frame[TEST];
    int64_t all = past + n, first = f->start[series] + from - past;
    view v = { .past = past, .n = n, .row = memory((size_t)(all + (QUANTILES + 1) * n), sizeof *v.row) };
    v.I = weft_frame_column(f, "I") + first;
    v.B = weft_frame_column(f, "B") + first;
    v.linear = v.row + all;
    for (int64_t t = 0; t < all; t++)
        v.row[t] = (double)(from - past + t);
    for (int q = 0; q < QUANTILES; q++) {
        v.q[q] = v.linear + n + q * n;
        for (int64_t t = 0; t < n; t++)
            v.q[q][t] = predicted[t * QUANTILES + q];
    }
    arx_forecast(&r->ar, f, series, from, past, n, v.linear);
    return v;
}

/* Returns a full test window with many turns of the current in its future. */
static int32_t telling_window(const run *r)
{
    const weft_frame *f = &r->frame[TEST];
    int64_t best = 0, most = -1;
    for (int64_t i = 0; i < weft_windows_counts(r->windows[TEST]).windows; i++) {
        weft_window w = weft_window_at(r->windows[TEST], i);
        const double *dI = weft_frame_column(f, "dI") + f->start[w.series] + w.origin;
        int64_t turns = (w.past + w.future) / 8;
        for (int32_t t = 1; t < w.future; t++)
            turns += 4 * (dI[t] * dI[t - 1] < 0);
        if (turns > most) {
            most = turns;
            best = i;
        }
    }
    return (int32_t)best;
}

enum { CURVES = 6 };
/* Draws past, true values, forecast with band, AR-X and current over time. */
static weft_chart time_chart(const view *v, const char *title, weft_curve curves[CURVES])
{
    const double *row = v->row + v->past;
    curves[0] = (weft_curve){ "field so far", v->past, v->row, v->B, false, NULL };
    curves[1] = (weft_curve){ "field, to come", v->n, row, v->B + v->past, false, NULL };
    curves[2] = (weft_curve){ "forecast", v->n, row, v->q[MEDIAN], false, NULL };
    curves[3] = (weft_curve){ "5 .. 95 %", v->n, row, v->q[QUANTILES - 1], false, v->q[0] };
    curves[4] = (weft_curve){ "AR-X", v->n, row, v->linear, false, NULL };
    curves[5] = (weft_curve){ "current", v->past + v->n, v->row, v->I, true, NULL };
    return (weft_chart){ title, "row", "B", "I", 0, 0, curves, CURVES };
}

/* Draws the field over the current, as loops. */
static weft_chart loop_chart(const view *v, const char *title, weft_curve curves[CURVES])
{
    const double *I = v->I + v->past;
    curves[0] = (weft_curve){ "field so far", v->past, v->I, v->B, false, NULL };
    curves[1] = (weft_curve){ "field, to come", v->n, I, v->B + v->past, false, NULL };
    curves[2] = (weft_curve){ "forecast", v->n, I, v->q[MEDIAN], false, NULL };
    curves[3] = (weft_curve){ "AR-X", v->n, I, v->linear, false, NULL };
    return (weft_chart){ title, "I", "B", NULL, 0, 0, curves, 4 };
}

/* Replaces the quantiles by their errors. */
static weft_chart error_chart(view *v, weft_curve curves[CURVES])
{
    const double *row = v->row + v->past;
    for (int q = 0; q < QUANTILES; q++)
        for (int64_t t = 0; t < v->n; t++)
            v->q[q][t] -= v->B[v->past + t];
    curves[0] = (weft_curve){ "forecast - field", v->n, row, v->q[MEDIAN], false, NULL };
    curves[1] = (weft_curve){ "5 .. 95 %", v->n, row, v->q[QUANTILES - 1], false, v->q[0] };
    curves[2] = (weft_curve){ "25 .. 75 %", v->n, row, v->q[QUANTILES - 2], false, v->q[1] };
    return (weft_chart){ "the same series: errors of the forecast", "row", "B", NULL, 0, 0, curves, 3 };
}

static void draw_forecasts(const char *path, const run *r, weft_window w, const double *predicted)
{
    const weft_frame *f = &r->frame[TEST];
    int64_t from = rolling_from(&r->o.set, f, w.series), n = series_rows(f, w.series) - from;
    double *all = memory((size_t)(n * (QUANTILES + 1)), sizeof *all);
    weft_rolling_forecast_opts o = { .quantiles = QUANTILES, .all = all };
    weft_rolling_forecast(r->m.features, f, w.series, from, predict, r->m.best, &o, all + n * QUANTILES);
    weft_clear(r->m.w);
    check_context(r->m.w, "a rolling forecast");
    view one = view_new(r, w.series, w.origin, w.past, w.future, predicted);
    view whole = view_new(r, w.series, from, from, n, all), wrong = view_new(r, w.series, from, from, n, all);
    weft_curve curves[4][CURVES];
    const weft_chart charts[] = {
        time_chart(&one, "a window: the current is known in advance, the field is not", curves[0]),
        loop_chart(&one, "the same window: the field over the current, a loop of hysteresis", curves[1]),
        time_chart(&whole, "a whole series, each forecast from the one before it", curves[2]),
        error_chart(&wrong, curves[3]),
    };
    check_file(weft_plot_lines(path, "The field of a magnet with hysteresis", charts, 4, 2));
    free(all);
    free(one.row);
    free(whole.row);
    free(wrong.row);
}

/* Returns the mean of the heads, [queries, keys]; 0 for masked keys. */
static void draw_attention(const char *path, const run *r, weft_window w, weft_tensor *map)
{
    map = weft_to_layout(map, WEFT_CONCAT);
    int64_t queries = w.future, keys = w.past + w.future, heads = weft_size(map, 1);
    weft_lengths seen = weft_lengths_of(map);
    double *weights = memory((size_t)(queries * keys), sizeof *weights);
    double *values = numbers_of(map), *next = values;
    check_context(r->m.w, "attention");
    for (int64_t i = 0; i < queries && i < seen.n; i++)
        for (int64_t k = 0; k < seen.len[i]; k++, next += heads)
            for (int64_t h = 0; h < heads; h++)
                weights[i * keys + k] += next[h] / (double)heads;
    char title[200];
    snprintf(title, sizeof title, "%s: attention of each future row to past (-) and future (+) rows",
             model_names[r->o.set.model]);
    draw_matrix(path, title, queries, keys, 0, -w.past, weights);
    free(values);
    free(weights);
}

static void draw_training(const char *path, const run *r)
{
    int64_t n = r->t.epochs;
    double *x = memory((PER_EPOCH + 1) * (size_t)(n + 1), sizeof *x), *y[PER_EPOCH];
    for (int k = 0; k < PER_EPOCH; k++) {
        y[k] = x + (k + 1) * n;
        for (int64_t i = 0; i < n; i++)
            y[k][i] = r->history[PER_EPOCH * i + k];
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(i + 1);
    const weft_curve loss[] = { { "training", n, x, y[0], false, NULL },
                                { "validation", n, x, y[1], false, NULL } };
    const weft_curve rmse = { "validation", n, x, y[2], false, NULL };
    const weft_chart charts[] = {
        { "quantile loss, of scaled numbers", "epochs", "loss", NULL, 0, 10, loss, 2 },
        { "RMSE of the median", "epochs", "B", NULL, 0, 10, &rmse, 1 },
    };
    check_file(weft_plot_lines(path, "Learning hysteresis", charts, 2, 2));
    free(x);
}

static void draw(const run *r)
{
    const char *folder = r->o.run.pictures;
    WEFT_NO_GRAD(r->m.w) WEFT_EVAL(r->m.w) {
        int32_t window = telling_window(r);
        weft_window w = weft_window_at(r->windows[TEST], window);
        weft_forecast_maps maps = { 0 };
        double *predicted = forecast_windows(r->m.best, r->windows[TEST], &window, 1, &maps, NULL);
        check_context(r->m.w, "a window to draw");
        if (maps.attention)
            draw_attention(path_in(folder, "attention.svg"), r, w, maps.attention);
        else
            printf("%s has no attention to draw\n", model_names[r->o.set.model]);
        draw_forecasts(path_in(folder, "forecast.svg"), r, w, predicted);
        draw_training(path_in(folder, "curve.svg"), r);
        free(predicted);
    }
    weft_clear(r->m.w);
}

/* ---- the report; speed: steps per second and seconds, as text ---- */
static void report(run *r, const char *speed)
{
    const settings *s = &r->o.set;
    const char *name = model_names[s->model];
    const weft_frame *f = &r->frame[TEST];
    weft_journal *log = r->t.log;
    score it = judge(&r->m, r->m.best, r->windows[TEST], f);
    double whole = rolling_rmse(&r->m, s, f, r->o.forecasts);
    if (!r->t.first)
        return;
    r->ar = arx_fit(&r->frame[TRAIN], r->windows[TRAIN], &r->frame[VALIDATION], r->windows[VALIDATION]);
    double still = baseline_rmse(NULL, f, r->windows[TEST]);
    double linear = baseline_rmse(&r->ar, f, r->windows[TEST]);
    printf("RMSE on %lld windows of %lld series that it never saw:\n",
           (long long)weft_windows_counts(r->windows[TEST]).windows, (long long)f->n);
    printf("  %-22s %9.5f\n", "persistence", still);
    printf("  %-22s %9.5f   p = %d, q = %d\n", "AR-X, linear", linear, r->ar.p, r->ar.q);
    printf("  %-22s %9.5f   %.1f %% of the rows are within the 90 %% band\n", name, it.rmse, 100 * it.inside);
    printf("forecasts of whole series after their first %lld rows:\n", (long long)s->context);
    printf("  %-22s %9.5f\n", "AR-X, linear", arx_rolling_rmse(&r->ar, s, f));
    printf("  %-22s %9.5f\n", name, whole);
    weft_journal_number(log, "test_rmse", it.rmse);
    weft_journal_number(log, "persistence", still);
    weft_journal_number(log, "ar_x", linear);
    weft_journal_number(log, "inside", it.inside);
    weft_journal_line_end(log);
    if (r->o.run.pictures)
        draw(r);
    printf("forecast: %s RMSE %.5f persistence %.5f ar-x %.5f ratio %.4f, %lld k parameters, %s\n", name,
           it.rmse, still, linear, it.rmse / linear,
           (long long)(weft_parameter_numel(r->m.trained) + 500) / 1000, speed);
}

/* Makes series, windows and model. path: a file with the scalers; NULL: fits them. */
static void prepare(run *r, const char *path)
{
    const settings *s = &r->o.set;
    training *t = &r->t;
    for (part p = TRAIN; p <= TEST; p++)
        r->frame[p] = field_series(p, &(field_opts){ s->series, s->series_seed, s->noise });
    r->m = model_new(open_context(r->o.run.device, s->train.seed, r->o.run.threads), s);
    weft_checkpoint_item scalers[WEFT_FEATURES_ITEMS];
    weft_features_state(r->m.features, scalers);
    if (path)
        check_file(weft_load(path, NULL, NULL, scalers, WEFT_FEATURES_ITEMS));
    else
        weft_features_fit(r->m.features, &r->frame[TRAIN]);
    for (part p = TRAIN; p <= TEST; p++)
        r->windows[p] = windows_new(&r->m, s, p, &r->frame[p]);
    check_context(r->m.w, "windows");
    r->history = memory(PER_EPOCH * (size_t)s->train.epochs + 1, sizeof *r->history);
    r->stopper = (weft_early_stopping){ .patience = s->patience - 1 };
    *t = (training){ .table = &table, .options = &r->o, .run = &r->o.run, .set = &s->train, .user = r,
                     .loss_of = loss_of, .after_update = after_update, .after_epoch = after_epoch,
                     .w = r->m.w, .all = r->m.all, .trained = r->m.trained, .average = r->m.average,
                     .first = weft_parallel_place_of(r->m.ranks).rank == 0, .digits = 4 };
    const weft_checkpoint_item items[] = {
        { "epochs_done", WEFT_I64, &t->epochs, 1 },
        { "over", WEFT_I64, &t->over, 1 },
        { "loader", WEFT_I64, t->position.at, 4 },
        { "meter", WEFT_F64, t->meter, 2 },
        { "history", WEFT_F64, r->history, PER_EPOCH * s->train.epochs + 1 },
        { "best_loss", WEFT_F64, &r->stopper.best, 1 },
        { "epochs_since", WEFT_I64, &r->stopper.bad, 1 },
        { "epochs_seen", WEFT_I64, &r->stopper.seen, 1 },
    };
    training_keep(t, scalers, WEFT_FEATURES_ITEMS);
    training_keep(t, items, sizeof items / sizeof *items);
}

static void test(run *r)
{
    const char *path = r->o.run.test;
    options_of_file(&table, &r->o, r->o.run.given, path);
    prepare(r, path);
    check_file(weft_load(path, r->m.all, NULL, r->t.items, r->t.item_count));
    double start = seconds();
    score it = judge(&r->m, r->m.best, r->windows[VALIDATION], &r->frame[VALIDATION]);
    char speed[64];
    snprintf(speed, sizeof speed, "%.0f windows/s",
             (double)weft_windows_counts(r->windows[VALIDATION]).windows / (seconds() - start));
    training_print(&r->t, "the best of %lld epochs, RMSE %.5f in validation\n", (long long)r->t.epochs,
                   it.rmse);
    report(r, speed);
}

static void train(run *r)
{
    training *t = &r->t;
    bool resumes = training_settings_of_file(&table, &r->o, &r->o.run);
    prepare(r, resumes ? r->o.run.out : NULL);
    weft_window_counts n = weft_windows_counts(r->windows[TRAIN]);
    training_data(t, n.windows, n.lengths, n.lengths, 0);
    training_resume(t, resumes);
    check_context(t->w, "to begin");
    training_open_log(t, resumes);
    if (training_run(t)) {
        char speed[64];
        snprintf(speed, sizeof speed, "%.1f steps/s, %.0f s", training_rate(t), training_seconds(t));
        report(r, speed);
    }
}

int main(int argc, char **argv)
{
    static run r;                                /* its memory lives until the program ends */
    r.o = command_line(argc, argv);
    if (r.o.run.test)
        test(&r);
    else
        train(&r);
    weft_journal_close(r.t.log);
    weft_close(r.m.w);
    return r.o.run.test ? 0 : training_status(&r.t);
}
