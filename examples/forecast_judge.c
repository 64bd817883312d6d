/* forecast_judge.c - see forecast_judge.h. */
#include <math.h>
#include <stdlib.h>
#include "common/program.h"
#include "forecast_judge.h"

enum { CHUNK = 64 };                             /* windows at a time */

/* ---- windows ---- */
typedef struct { double loss, weight, squares, inside, rows; } sums;

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

score judge(const model *m, weft_forecaster *f, weft_windows *windows, const weft_frame *frame)
{
    sums s = { 0 };
    int64_t n = weft_windows_counts(windows).windows;
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w)
        for (int64_t from = 0; from < n; from += CHUNK) {
            int32_t index[CHUNK];
            int64_t now = n - from < CHUNK ? n - from : CHUNK;
            for (int64_t i = 0; i < now; i++)
                index[i] = (int32_t)(from + i);
            add_windows(&s, f, windows, frame, index, now);
            weft_clear(m->w);
        }
    check_context(m->w, "judging");
    return (score){ s.loss / s.weight, sqrt(s.squares / s.rows), s.inside / s.rows };
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

double rolling_rmse(const model *m, const arx *a, const settings *s, const weft_frame *frame)
{
    double squares = 0, rows = 0;
    for (int64_t i = 0; i < frame->n; i++) {
        int64_t from = rolling_from(s, frame, i), n = frame->start[i + 1] - frame->start[i] - from;
        double *out = memory((size_t)n, sizeof *out);
        if (a)
            arx_forecast(a, frame, i, from, from, n, out);
        else
            rolling(m, frame, i, from, NULL, out);
        for (int64_t t = 0; t < n; t++)
            squares += (out[t] - truth(frame, i, from)[t]) * (out[t] - truth(frame, i, from)[t]);
        rows += (double)n;
        free(out);
    }
    return sqrt(squares / rows);
}
