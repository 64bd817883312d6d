/* forecast_arx.c - see forecast_arx.h. One matrix of sums of products serves all orders: a smaller order is a part of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "forecast_arx.h"

enum { WIDTH = 3 * ORDER + 1, CONSTANT = 3 * ORDER };             /* B, I, dI at ORDER lags each, and 1 */
typedef struct { const double *I, *dI, *B; int64_t rows; } series;

static series series_of(const weft_frame *f, int64_t s)
{
    int64_t from = f->start[s];
    return (series){ weft_frame_column(f, "I") + from, weft_frame_column(f, "dI") + from, weft_frame_column(f, "B") + from, f->start[s + 1] - from };
}

/* ---- least squares ---- */
typedef struct { double xx[WIDTH][WIDTH], xy[WIDTH]; } sums;

static void add_row(sums *all, const series *s, int64_t t)
{
    double x[WIDTH];
    for (int i = 0; i < ORDER; i++) {
        x[i] = s->B[t - 1 - i];
        x[ORDER + i] = s->I[t - i];
        x[2 * ORDER + i] = s->dI[t - i];
    }
    x[CONSTANT] = 1;
    for (int i = 0; i < WIDTH; i++) {
        all->xy[i] += x[i] * s->B[t];
        for (int k = 0; k <= i; k++)
            all->xx[i][k] += x[i] * x[k];
    }
}

static sums *sums_of(const weft_frame *f)        /* to be freed */
{
    sums *all = memory(1, sizeof *all);
    for (int64_t i = 0; i < f->n; i++) {
        series s = series_of(f, i);
        for (int64_t t = ORDER; t < s.rows; t++)
            add_row(all, &s, t);
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
    memset(a->weight, 0, sizeof a->weight);
    for (int i = 0; good && i < n; i++)
        a->weight[column[i]] = x[i];
    return good;
}

/* ---- forecasts ---- */
static double at(const double *x, int64_t t, int64_t first) { return x[t > first ? t : first]; }

void arx_forecast(const arx *a, const weft_frame *f, int64_t number, int64_t from, int64_t past, int64_t n, double *out)
{
    series s = series_of(f, number);
    int64_t first = from - past;
    for (int64_t t = from; t < from + n; t++) {
        double sum = a->weight[CONSTANT];
        for (int i = 0; i < a->p; i++)
            sum += a->weight[i] * (t - 1 - i >= from ? out[t - 1 - i - from] : at(s.B, t - 1 - i, first));
        for (int i = 0; i < a->q; i++)
            sum += a->weight[ORDER + i] * at(s.I, t - i, first) + a->weight[2 * ORDER + i] * (t - i >= first ? s.dI[t - i] : 0);
        out[t - from] = sum;
    }
}

double baseline_rmse(const arx *a, const weft_frame *f, const weft_windows *windows)
{
    double *out = NULL, sum = 0, rows = 0;
    for (int64_t i = 0; i < weft_windows_count(windows); i++) {
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

arx arx_fit(const weft_frame *training, const weft_frame *validation, const weft_windows *windows)
{
    static const int orders[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };
    enum { N = sizeof orders / sizeof *orders, RIDGES = 5 };
    sums *all = sums_of(training);
    arx best = { 0 };
    double least = INFINITY;
    for (int i = 0; i < N * N * RIDGES; i++) {
        arx a = { .p = orders[i / RIDGES / N], .q = orders[i / RIDGES % N], .ridge = pow(100, -1 - i % RIDGES) };
        double rmse = fit(&a, all) ? baseline_rmse(&a, validation, windows) : INFINITY;
        if (rmse < least) {                      /* NaN, of one that runs away, is not less */
            least = rmse;
            best = a;
        }
    }
    free(all);
    return best;
}
