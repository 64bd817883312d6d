/* forecast_judge.c - see forecast_judge.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "forecast_judge.h"

enum { CHUNK = 64 };                             /* windows at a time */

/* ---- windows ---- */
enum { SUMS = 5 };
typedef struct { double loss, weight, squares, inside, rows; } sums;
_Static_assert(sizeof(sums) == SUMS * sizeof(double), "numbers that are added up over shards");

static const double *truth(const weft_frame *f, int64_t series, int64_t row)
{
    return weft_frame_column(f, "B") + f->start[series] + row;
}

static void add_rows(sums *s, const double *predicted, const double *B, int64_t rows)
{
    for (int64_t t = 0; t < rows; t++, predicted += QUANTILES) {
        double miss = predicted[MEDIAN] - B[t];
        s->squares += miss * miss;
        s->inside += predicted[0] <= B[t] && B[t] <= predicted[QUANTILES - 1];
        s->rows++;
    }
}

static void add_windows(sums *s, weft_forecaster *f, weft_windows *windows, const weft_frame *frame,
                        const int32_t *index, int64_t n)
{
    weft_window_batch b = weft_windows_batch(windows, index, n, NULL);
    weft_tensor *y = model_run(f, &b.series, NULL);
    weft_loss loss = model_loss(y, b.target);
    s->loss += weft_item(loss.sum);
    s->weight += weft_item(loss.weight);
    double *predicted = memory((size_t)weft_numel(y) + 1, sizeof *predicted), *next = predicted;
    weft_windows_inverse_transform(windows, y, predicted);
    for (int64_t i = 0; i < n; i++) {
        weft_window v = weft_window_at(windows, index[i]);
        add_rows(s, next, truth(frame, v.series, v.origin), v.future);
        next += v.future * QUANTILES;
    }
    free(predicted);
}

static sums judge_some(const model *m, weft_forecaster *f, weft_windows *windows, const weft_frame *frame,
                       const weft_part *shard)
{
    sums s = { 0 };
    for (int64_t from = 0; from < shard->n; from += CHUNK) {
        add_windows(&s, f, windows, frame, shard->index + from,
                    shard->n - from < CHUNK ? shard->n - from : CHUNK);
        weft_clear(m->w);
    }
    return s;
}

score judge(const model *m, weft_forecaster *f, weft_windows *windows, const weft_frame *frame)
{
    sums all;
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_parallel_begin(m->ranks, NULL, weft_windows_counts(windows).windows);
        for (weft_part shard; weft_parallel_next(m->ranks, &shard);) {
            sums s = judge_some(m, f, windows, frame, &shard);
            weft_parallel_add_values(m->ranks, (const double *)&s, SUMS);
        }
    }
    check_context(m->w, "judging");
    memcpy(&all, weft_parallel_values(m->ranks), sizeof all);
    return (score){ all.loss / all.weight, sqrt(all.squares / all.rows), all.inside / all.rows };
}

/* ---- whole series ---- */
static weft_tensor *predict(weft_series_batch series, void *user) { return model_run(user, &series, NULL); }

int64_t rolling_from(const settings *s, const weft_frame *frame, int64_t series)
{
    int64_t rows = frame->start[series + 1] - frame->start[series];
    return rows > s->context ? s->context : (rows + 1) / 2;
}

void rolling(const model *m, const weft_frame *frame, int64_t series, int64_t from, double *all, double *out)
{
    weft_rolling_forecast_opts o = { .quantiles = QUANTILES, .all = all };
    weft_rolling_forecast(m->features, frame, series, from, predict, m->best, &o, out);
    weft_clear(m->w);
    check_context(m->w, "a rolling forecast");
}

/* Adds a series' squares of what a forecast misses, from row `from` on; how many rows that were. */
static double add_misses(double *squares, const weft_frame *frame, int64_t series, int64_t from,
                         const double *out)
{
    int64_t n = frame->start[series + 1] - frame->start[series] - from;
    for (int64_t t = 0; t < n; t++)
        *squares += (out[t] - truth(frame, series, from)[t]) * (out[t] - truth(frame, series, from)[t]);
    return (double)n;
}

static void write_forecasts(const char *path, const settings *s, const weft_frame *frame,
                            const weft_parallel_result *of)
{
    FILE *file = fopen(path, "w");
    bool fine = file && fputs("series,row,B,forecast\n", file) >= 0;
    for (int64_t i = 0; fine && i < frame->n; i++) {
        int64_t from = rolling_from(s, frame, i), n = of[i].n / (int64_t)sizeof(double);
        for (int64_t t = 0; t < n; t++)
            fprintf(file, "%lld,%lld,%.9g,%.9g\n", (long long)i, (long long)(from + t),
                    truth(frame, i, from)[t], ((const double *)of[i].bytes)[t]);
    }
    fine = fine && !ferror(file);
    if (!file || fclose(file) || !fine)
        quit(1, "%s: %s", path, strerror(errno));
}

/* The series of a shard, all at a time. */
static void rolling_some(const model *m, const settings *s, const weft_frame *frame, const weft_part *part)
{
    weft_rolling_series *of = memory((size_t)part->n, sizeof *of);
    for (int64_t k = 0; k < part->n; k++) {
        int64_t i = part->index[k], from = rolling_from(s, frame, i),
                rows = frame->start[i + 1] - frame->start[i] - from;
        of[k] = (weft_rolling_series){ i, from, rows, memory((size_t)rows, sizeof(double)), NULL };
    }
    weft_rolling_forecasts(m->features, frame, of, part->n, predict, m->best,
                           &(weft_rolling_forecast_opts){ .quantiles = QUANTILES });
    check_context(m->w, "rolling forecasts");
    weft_clear(m->w);
    for (int64_t k = 0; k < part->n; k++) {
        weft_parallel_put(m->ranks, k, of[k].out, of[k].rows * (int64_t)sizeof(double));
        free(of[k].out);
    }
    free(of);
}

/* Each rank forecasts the series of its shards, and all get all, in their order. */
double rolling_rmse(const model *m, const settings *s, const weft_frame *frame, const char *path)
{
    double squares = 0, rows = 0;
    WEFT_NO_GRAD(m->w) {
        weft_parallel_begin(m->ranks, NULL, frame->n);
        for (weft_part part; weft_parallel_next(m->ranks, &part);)
            rolling_some(m, s, frame, &part);
    }
    check_context(m->w, "rolling forecasts");
    const weft_parallel_result *of = weft_parallel_gathered(m->ranks, NULL);
    for (int64_t i = 0; i < frame->n; i++)
        rows += add_misses(&squares, frame, i, rolling_from(s, frame, i), of[i].bytes);
    if (path && weft_parallel_place_of(m->ranks).rank == 0)
        write_forecasts(path, s, frame, of);
    return sqrt(squares / rows);
}

double arx_rolling_rmse(const arx *a, const settings *s, const weft_frame *frame)
{
    double squares = 0, rows = 0;
    for (int64_t i = 0; i < frame->n; i++) {
        int64_t from = rolling_from(s, frame, i), n = frame->start[i + 1] - frame->start[i] - from;
        double *out = memory((size_t)n, sizeof *out);
        arx_forecast(a, frame, i, from, from, n, out);
        rows += add_misses(&squares, frame, i, from, out);
        free(out);
    }
    return sqrt(squares / rows);
}
