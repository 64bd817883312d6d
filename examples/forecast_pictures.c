/* forecast_pictures.c - see forecast_pictures.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "forecast_judge.h"
#include "forecast_pictures.h"

/* ---- a forecast beside the truth ---- */
/* Rows from - past .. from + n - 1 of a series; the forecasts begin at `from`. */
typedef struct {
    int64_t past, n;
    double *block, *row, *I, *B;                 /* [past + n] */
    double *q[QUANTILES], *linear;               /* [n] */
} view;

static view view_new(const gallery *g, int64_t series, int64_t from, int64_t past, int64_t n)
{
    int64_t all = past + n, first = g->frame->start[series] + from - past;
    view v = { .past = past,
               .n = n,
               .block = memory((size_t)(3 * all + (QUANTILES + 1) * n), sizeof *v.block) };
    v.row = v.block, v.I = v.row + all, v.B = v.I + all, v.linear = v.B + all;
    for (int q = 0; q < QUANTILES; q++)
        v.q[q] = v.linear + n + q * n;
    for (int64_t t = 0; t < all; t++) {
        v.row[t] = (double)(from - past + t);
        v.I[t] = weft_frame_column(g->frame, "I")[first + t];
        v.B[t] = weft_frame_column(g->frame, "B")[first + t];
    }
    arx_forecast(g->ar, g->frame, series, from, past, n, v.linear);
    return v;
}

static void take(view *v, const double *predicted)                /* [n, QUANTILES] */
{
    for (int64_t i = 0; i < v->n * QUANTILES; i++)
        v->q[i % QUANTILES][i / QUANTILES] = predicted[i];
}

/* The window of the test with most to see: full, and the current turns often in its future. */
static int32_t telling_window(const gallery *g)
{
    int64_t best = 0, most = -1;
    for (int64_t i = 0; i < weft_windows_counts(g->windows).windows; i++) {
        weft_window w = weft_window_at(g->windows, i);
        const double *dI = weft_frame_column(g->frame, "dI") + g->frame->start[w.series] + w.origin;
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
/* Past, truth, forecast with its band, AR-X; and the current. */
static weft_chart time_chart(const view *v, const char *title, weft_curve curves[CURVES])
{
    const double *row = v->row + v->past;
    const weft_curve all[CURVES] = {
        { "field so far", v->past, v->row, v->B, false, NULL },
        { "field, to come", v->n, row, v->B + v->past, false, NULL },
        { "forecast", v->n, row, v->q[MEDIAN], false, NULL },
        { "5 .. 95 %", v->n, row, v->q[QUANTILES - 1], false, v->q[0] },
        { "AR-X", v->n, row, v->linear, false, NULL },
        { "current", v->past + v->n, v->row, v->I, true, NULL },
    };
    memcpy(curves, all, sizeof all);
    return (weft_chart){ title, "row", "B", "I", 0, 0, curves, CURVES };
}

/* The same over the current: loops. */
static weft_chart loop_chart(const view *v, weft_curve curves[CURVES])
{
    const weft_curve all[] = {
        { "field so far", v->past, v->I, v->B, false, NULL },
        { "field, to come", v->n, v->I + v->past, v->B + v->past, false, NULL },
        { "forecast", v->n, v->I + v->past, v->q[MEDIAN], false, NULL },
        { "AR-X", v->n, v->I + v->past, v->linear, false, NULL },
    };
    memcpy(curves, all, sizeof all);
    return (weft_chart){
        "the same window: the field over the current, a loop of hysteresis", "I", "B", NULL, 0, 0, curves, 4
    };
}

/* Quantiles without the truth: by how much they are wrong. misses [QUANTILES, n]. */
static weft_chart error_chart(const view *v, double *misses, weft_curve curves[CURVES])
{
    const double *row = v->row + v->past;
    double *miss[QUANTILES];
    for (int q = 0; q < QUANTILES; q++) {
        miss[q] = misses + q * v->n;
        for (int64_t t = 0; t < v->n; t++)
            miss[q][t] = v->q[q][t] - v->B[v->past + t];
    }
    curves[0] = (weft_curve){ "forecast - field", v->n, row, miss[MEDIAN], false, NULL };
    curves[1] = (weft_curve){ "5 .. 95 %", v->n, row, miss[QUANTILES - 1], false, miss[0] };
    curves[2] = (weft_curve){ "25 .. 75 %", v->n, row, miss[QUANTILES - 2], false, miss[1] };
    return (weft_chart){ "the same series: by how much it is wrong", "row", "B", NULL, 0, 0, curves, 3 };
}

/* The quantiles of a window, in B's unit; to be freed. */
static double *forecast_of(const gallery *g, int32_t window, weft_forecast_maps *maps)
{
    weft_window_batch b = weft_windows_batch(g->windows, &window, 1, NULL);
    weft_tensor *y = model_run(g->m->best, &b.series, maps);
    double *predicted = memory((size_t)weft_numel(y) + 1, sizeof *predicted);
    weft_windows_inverse_transform(g->windows, y, predicted);
    check_context(g->m->w, "a window to draw");
    return predicted;
}

static void draw_forecasts(const char *path, const gallery *g, int32_t window, const double *predicted)
{
    weft_window w = weft_window_at(g->windows, window);
    int64_t series = w.series, from = rolling_from(g->set, g->frame, series),
            rows = g->frame->start[series + 1] - g->frame->start[series];
    view one = view_new(g, series, w.origin, w.past, w.future),
         whole = view_new(g, series, from, from, rows - from);
    double *all = memory((size_t)(whole.n * 2 * QUANTILES), sizeof *all), *misses = all + whole.n * QUANTILES;
    take(&one, predicted);
    rolling(g->m, g->frame, series, from, all, misses);
    take(&whole, all);
    weft_curve curves[4][CURVES];
    const weft_chart charts[] = {
        time_chart(&one, "a window: the current is known in advance, the field is not", curves[0]),
        loop_chart(&one, curves[1]),
        time_chart(&whole, "a whole series, each forecast from the one before it", curves[2]),
        error_chart(&whole, misses, curves[3]),
    };
    check_file(weft_plot_lines(path, "The field of a magnet with hysteresis", charts, 4, 2));
    free(all);
    free(one.block);
    free(whole.block);
}

/* ---- attention ---- */
/* cells at most: each is the mean of several rows, of several keys */
enum { TALL = 40, WIDE = 70, LABEL = 12 };

/* The mean of the heads: [queries][keys], 0 for what a query may not see. To be freed. */
static double *weights_of(const gallery *g, weft_tensor *map, int64_t queries, int64_t keys)
{
    map = weft_to_layout(map, WEFT_CONCAT);
    int64_t n = weft_numel(map), heads = weft_size(map, 1);
    weft_lengths seen = weft_lengths_of(map);
    double *weights = memory((size_t)(queries * keys), sizeof *weights);
    weft_real *values = memory((size_t)n + 1, sizeof *values), *next = values;
    weft_read(map, values, (size_t)n * sizeof *values);
    check_context(g->m->w, "attention");
    for (int64_t i = 0; i < queries && i < seen.n; i++)
        for (int64_t k = 0; k < seen.len[i]; k++, next += heads)
            for (int64_t h = 0; h < heads; h++)
                weights[i * keys + k] += (double)next[h] / (double)heads;
    free(values);
    return weights;
}

/* Fewer cells, and 1 is the largest of them; returns what that was. */
static double shrink(const double *weights, int64_t queries, int64_t keys, int rows, int columns,
                     double *cells)
{
    double most = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double sum = 0, n = 0;
            for (int64_t i = r * queries / rows; i < (r + 1) * queries / rows; i++)
                for (int64_t k = c * keys / columns; k < (c + 1) * keys / columns; k++, n++)
                    sum += weights[i * keys + k];
            cells[r * columns + c] = sum / n;
            most = fmax(most, sum / n);
        }
    for (int i = 0; most > 0 && i < rows * columns; i++)
        cells[i] /= most;
    return most;
}

/* Each fifth cell's first row, counted from the origin of the window. */
static void label(char text[][LABEL], const char **labels, int n, int64_t rows, int64_t first)
{
    for (int i = 0; i < n; i++) {
        snprintf(text[i], LABEL, "%+d", (int)(first + i * rows / n));
        labels[i] = i % 5 ? NULL : text[i];
    }
}

static void draw_attention(const char *path, const gallery *g, int32_t window, weft_tensor *map)
{
    weft_window w = weft_window_at(g->windows, window);
    int64_t queries = w.future, keys = w.past + w.future;
    int rows = queries < TALL ? (int)queries : TALL, columns = keys < WIDE ? (int)keys : WIDE;
    double cells[TALL * WIDE], *weights = weights_of(g, map, queries, keys);
    char title[200], text[2][WIDE][LABEL];
    const char *labels[2][WIDE];
    double most = shrink(weights, queries, keys, rows, columns, cells);
    label(text[0], labels[0], rows, queries, 0);
    label(text[1], labels[1], columns, keys, -w.past);
    snprintf(title, sizeof title,
             "%s: where each row of the future looks, past (-) and future (+); 1 is a weight of %.3f",
             model_names[g->set->model], most);
    check_file(weft_plot_heatmap(path, title, rows, columns, cells, labels[0], labels[1], NULL));
    free(weights);
}

/* ---- the training ---- */
static void draw_training(const char *path, const gallery *g)
{
    double *x = memory((PER_EPOCH + 1) * (size_t)(g->epochs + 1), sizeof *x), *y[PER_EPOCH];
    for (int k = 0; k < PER_EPOCH; k++)
        y[k] = x + (k + 1) * g->epochs;
    for (int64_t i = 0; i < g->epochs; i++) {
        x[i] = (double)(i + 1);
        for (int k = 0; k < PER_EPOCH; k++)
            y[k][i] = g->history[PER_EPOCH * i + k];
    }
    const weft_curve loss[] = { { "training", g->epochs, x, y[0], false, NULL },
                                { "validation", g->epochs, x, y[1], false, NULL } };
    const weft_curve rmse = { "validation", g->epochs, x, y[2], false, NULL };
    const weft_chart charts[] = { { "quantile loss, of scaled numbers", "epochs", "loss", NULL, 0, 10, loss,
                                    2 },
                                  { "RMSE of the median", "epochs", "B", NULL, 0, 10, &rmse, 1 } };
    check_file(weft_plot_lines(path, "Learning hysteresis", charts, 2, 2));
    free(x);
}

void draw(const char *folder, const gallery *g)
{
    char path[3][4096];
    static const char *const names[3] = { "forecast.svg", "attention.svg", "curve.svg" };
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    WEFT_NO_GRAD(g->m->w) WEFT_EVAL(g->m->w) {
        int32_t window = telling_window(g);
        weft_forecast_maps maps = { 0 };
        double *predicted = forecast_of(g, window, &maps);
        if (maps.attention)
            draw_attention(path[1], g, window, maps.attention);
        else
            printf("%s has no attention to be drawn\n", model_names[g->set->model]);
        draw_forecasts(path[0], g, window, predicted);
        draw_training(path[2], g);
        free(predicted);
    }
    weft_clear(g->m->w);
}
