/* arx.c - see arx.h. One matrix of sums of products serves all orders: a smaller order
 * is a part of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "arx.h"
#include "program.h"

enum { WIDTH = 3 * ORDER + 1, CONSTANT = 3 * ORDER };             /* B, I, dI at ORDER lags each, and 1 */
typedef struct { const double *I, *dI, *B; int64_t rows; } series;

static series series_of(const weft_frame *f, int64_t s)
{
    int64_t from = f->start[s];
    return (series){ weft_frame_column(f, "I") + from, weft_frame_column(f, "dI") + from,
                     weft_frame_column(f, "B") + from, f->start[s + 1] - from };
}

/* ---- what a row is forecast from ---- */
static double at(const double *x, int64_t t, int64_t first) { return x[t > first ? t : first]; }

/* Row t from known rows first .. from - 1 and, from there on, from forecasts. */
static void inputs(const series *s, int64_t t, int64_t first, int64_t from, const double *forecast,
                   double x[WIDTH])
{
    for (int i = 0; i < ORDER; i++) {
        x[i] = t - 1 - i >= from ? forecast[t - 1 - i - from] : at(s->B, t - 1 - i, first);
        x[ORDER + i] = at(s->I, t - i, first);
        x[2 * ORDER + i] = t - i >= first ? s->dI[t - i] : 0;
    }
    x[CONSTANT] = 1;
}

/* ---- least squares ---- */
typedef struct { double xx[WIDTH][WIDTH], xy[WIDTH]; } sums;

static void add(sums *all, const double *x, double y, int n, const int *column)
{
    for (int i = 0; i < n; i++) {
        all->xy[column[i]] += x[column[i]] * y;
        for (int k = 0; k <= i; k++)
            all->xx[column[i]][column[k]] += x[column[i]] * x[column[k]];
    }
}

/* Which of the WIDTH columns an order uses. */
static int columns_of(int p, int q, int column[WIDTH])
{
    int n = 0;
    for (int i = 0; i < CONSTANT; i++)
        if (i % ORDER < (i < ORDER ? p : q))
            column[n++] = i;
    column[n++] = CONSTANT;
    return n;
}

static sums *sums_of(const weft_frame *f)        /* to be freed */
{
    sums *all = memory(1, sizeof *all);
    double x[WIDTH];
    int column[WIDTH], n = columns_of(ORDER, ORDER, column);
    for (int64_t i = 0; i < f->n; i++) {
        series s = series_of(f, i);
        for (int64_t t = ORDER; t < s.rows; t++) {
            inputs(&s, t, 0, t, NULL, x);
            add(all, x, s.B[t], n, column);
        }
    }
    return all;
}

/* Cholesky's way: a = L L^T in place, then both triangles; false if a is not positive. */
static bool solve(int n, double a[WIDTH][WIDTH], double *x)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            double sum = a[i][k];
            for (int j = 0; j < k; j++)
                sum -= a[i][j] * a[k][j];
            if (i == k && !(sum > 0))
                return false;
            a[i][k] = i == k ? sqrt(sum) : sum / a[k][k];
        }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= a[k][i] * x[k];
        x[i] /= a[i][i];
    }
    return true;
}

/* Adds the solution to the weights. */
static bool fit(arx *a, const sums *all)
{
    static double xx[WIDTH][WIDTH];
    double x[WIDTH];
    int column[WIDTH], n = columns_of(a->p, a->q, column);
    for (int i = 0; i < n; i++) {
        x[i] = all->xy[column[i]];
        for (int k = 0; k <= i; k++)
            xx[i][k] = all->xx[column[i]][column[k]];
        xx[i][i] += a->ridge * all->xx[CONSTANT][CONSTANT];
    }
    bool good = solve(n, xx, x);
    for (int i = 0; good && i < n; i++)
        a->weight[column[i]] += x[i];
    return good;
}

/* ---- forecasts ---- */
void arx_forecast(const arx *a, const weft_frame *f, int64_t number, int64_t from, int64_t past, int64_t n,
                  double *out)
{
    series s = series_of(f, number);
    double x[WIDTH];
    int column[WIDTH], columns = columns_of(a->p, a->q, column);
    for (int64_t t = from; t < from + n; t++) {
        inputs(&s, t, from - past, from, out, x);
        out[t - from] = 0;
        for (int i = 0; i < columns; i++)
            out[t - from] += a->weight[column[i]] * x[column[i]];
    }
}

double baseline_rmse(const arx *a, const weft_frame *f, const weft_windows *windows)
{
    double *out = NULL, sum = 0, rows = 0;
    for (int64_t i = 0; i < weft_windows_counts(windows).windows; i++) {
        weft_window v = weft_window_at(windows, i);
        const double *B = series_of(f, v.series).B + v.origin;
        out = realloc(out, (size_t)v.future * sizeof *out);
        if (!out)
            quit(1, "out of memory");
        if (a)
            arx_forecast(a, f, v.series, v.origin, v.past, v.future, out);
        for (int32_t t = 0; t < v.future; t++) {
            double miss = (a ? out[t] : B[-1]) - B[t];
            sum += miss * miss;
        }
        rows += v.future;
    }
    free(out);
    return sqrt(sum / rows);
}

/* ---- the weights that are best over whole windows ---- */
/* Gauss and Newton's steps, from the weights that are best one row ahead. */
/* Adds one window: how its forecasts change with each weight, through the forecasts before them, too; and
 * what they miss. */
static void add_window(sums *all, const arx *a, const weft_frame *f, weft_window v, double *out,
                       double (*by)[WIDTH])
{
    series s = series_of(f, v.series);
    int column[WIDTH], n = columns_of(a->p, a->q, column);
    arx_forecast(a, f, v.series, v.origin, v.past, v.future, out);
    for (int64_t t = 0; t < v.future; t++) {
        inputs(&s, v.origin + t, v.origin - v.past, v.origin, out, by[t]);
        for (int i = 0; i < a->p && i < t; i++)
            for (int k = 0; k < n; k++)
                by[t][column[k]] += a->weight[i] * by[t - 1 - i][column[k]];
        add(all, by[t], s.B[v.origin + t] - out[t], n, column);
    }
}

static void improve(arx *a, const weft_frame *f, const weft_windows *windows)
{
    int64_t most = 0, n = weft_windows_counts(windows).windows;
    for (int64_t i = 0; i < n; i++) {
        int32_t future = weft_window_at(windows, i).future;
        most = future > most ? future : most;
    }
    sums *all = memory(1, sizeof *all);
    double *out = memory((size_t)most, sizeof *out), (*by)[WIDTH] = memory((size_t)most, sizeof *by);
    for (int64_t i = 0; i < n; i += 2)
        add_window(all, a, f, weft_window_at(windows, i), out, by);
    fit(a, all);
    free(all);
    free(out);
    free(by);
}

/* ---- the best of all ---- */
typedef struct { arx best; double least; const weft_frame *frame; const weft_windows *windows; } contest;

static void try(contest *c, const arx *a)
{
    double rmse = baseline_rmse(a, c->frame, c->windows);
    if (rmse < c->least) {                       /* NaN, of one that runs away, is not less */
        c->least = rmse;
        c->best = *a;
    }
}

arx arx_fit(const weft_frame *training, const weft_windows *to_train, const weft_frame *validation,
            const weft_windows *to_judge)
{
    static const int orders[] = { 1, 2, 3, 4, 6, 8, 12, 16 };
    enum { N = sizeof orders / sizeof *orders, RIDGES = 5, STEPS = 5 };
    contest c = { .least = INFINITY, .frame = validation, .windows = to_judge };
    sums *all = sums_of(training);
    for (int i = 0; i < N * N * RIDGES; i++) {
        arx a = { .p = orders[i / RIDGES / N],
                  .q = orders[i / RIDGES % N],
                  .ridge = pow(100, -1 - i % RIDGES) };
        if (fit(&a, all))
            try(&c, &a);
    }
    for (int i = 1; i < N; i += 2) {             /* 2, 4, 8, 16 of each */
        arx a = { .p = orders[i], .q = orders[i], .ridge = 1e-6 };
        fit(&a, all);
        for (int step = 0; step < STEPS; step++) {
            improve(&a, training, to_train);
            try(&c, &a);
        }
    }
    free(all);
    return c.best;
}
