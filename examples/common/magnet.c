/* magnet.c - computes the data of examples/forecast.c; see magnet.h. The field is the model of Bouc 1967 and
 * Wen 1976: B = a I + (1 - a) z, where the hidden z follows the current:
 *     dz / dt = I' (A - |z|^n (beta sign(I' z) + gamma)).
 * z depends on all earlier turning points of the current, so no function of I and dI gives it. */
#include <math.h>
#include <stdlib.h>
#include "magnet.h"
#include "program.h"

/* ---- random numbers by Splitmix64 (Steele, Lea, Flood 2014); data do not depend on the model ---- */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double uniform(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return (double)(mixed(*state) >> 11) * 0x1p-53;
}

static int64_t whole(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(uniform(state) * (double)(high - low + 1));
}

/* Returns a sum of twelve uniform numbers, nearly normal. It needs no logarithm, which machines round
 * differently. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

/* ---- the magnet: n is 2 and A is 1 ---- */
/* share: a, the part of the field without memory */
static const double share = 0.1, beta = 0.7, gamma_ = 0.3;
enum { INNER = 16 };                             /* integration steps per row */

static double slope(double z, double dI)
{
    return dI * (1 - z * z * (dI * z > 0 ? beta + gamma_ : gamma_ - beta));
}

/* Returns z after a linear change dI of the current, by Heun's method. */
static double moved(double z, double dI)
{
    double h = dI / INNER;
    for (int i = 0; i < INNER; i++) {
        double first = slope(z, h), second = slope(z + first, h);
        z += 0.5 * (first + second);
    }
    return z;
}

/* ---- the current ---- */
enum { LEAST_ROWS = 300, MOST_ROWS = 900, LEAST_RAMP = 8, MOST_RAMP = 48, MOST_FLAT = 24 };
static const double strongest = 2.5, least_change = 0.2;          /* of the current */

/* Returns the next level, up or down, for small and large loops. */
static double level(uint64_t *state, double from)
{
    double to = from;
    while (fabs(to - from) < least_change)
        to = -strongest + 2 * strongest * uniform(state);
    return to;
}

/* Writes smooth ramps and flat tops: the change in each row. The sum of the changes is the current. */
static void draw_current(uint64_t *state, int64_t rows, double *current)
{
    double from = 0;
    for (int64_t t = 0; t < rows; ) {
        double to = level(state, from);
        int64_t ramp = whole(state, LEAST_RAMP, MOST_RAMP), flat = whole(state, 0, MOST_FLAT);
        for (int64_t i = 1; i <= ramp + flat && t < rows; i++, t++) {
            double x = i < ramp ? (double)i / (double)ramp : 1;
            current[t] = from + (to - from) * (x * x * (3 - 2 * x));
        }
        from = to;
    }
}

/* Rounds to the step of a converter, so that the data do not depend on the last bits of a compiler. */
static double quantise(double x) { return floor(x * 0x1p20 + 0.5) * 0x1p-20; }

static void add_series(weft_frame *f, part p, int64_t number, const field_opts *o)
{
    uint64_t state = mixed(mixed((uint64_t)o->seed * 3 + (uint64_t)p) + (uint64_t)number);
    int64_t rows = whole(&state, LEAST_ROWS, MOST_ROWS);
    double *I = memory((size_t)rows * 3, sizeof *I), *dI = I + rows, *B = dI + rows, z = 0;
    draw_current(&state, rows, I);
    for (int64_t t = 0; t < rows; t++) {
        I[t] = quantise(I[t]);
        dI[t] = I[t] - (t ? I[t - 1] : 0);
        z = moved(z, dI[t]);
        B[t] = quantise(share * I[t] + (1 - share) * z + (o->noise > 0 ? o->noise * normal(&state) : 0));
    }
    check_file(
        weft_frame_add(f, NULL, WEFT_NAMES("I", "dI", "B"), (const double *const[]){ I, dI, B }, rows));
    free(I);
}

weft_frame field_series(part p, const field_opts *o)
{
    weft_frame f = { 0 };
    int64_t n = p == TRAIN ? o->series : o->series / 8 > 4 ? o->series / 8 : 4;
    for (int64_t i = 0; i < n; i++)
        add_series(&f, p, i, o);
    return f;
}

int64_t series_rows(const weft_frame *f, int64_t series) { return f->start[series + 1] - f->start[series]; }

const double *field_from(const weft_frame *f, int64_t series, int64_t row)
{
    return weft_frame_column(f, "B") + f->start[series] + row;
}

/* ---- AR-X. All orders share one matrix of sums of products; a smaller order uses a part of it ---- */
enum { CONSTANT = WIDTH - 1 };                   /* B, I, dI at ORDER lags each, and 1 */
typedef struct { const double *I, *dI, *B; int64_t rows; } series;

static series series_of(const weft_frame *f, int64_t s)
{
    int64_t from = f->start[s];
    return (series){ weft_frame_column(f, "I") + from, weft_frame_column(f, "dI") + from,
                     weft_frame_column(f, "B") + from, f->start[s + 1] - from };
}

static double value_at(const double *x, int64_t t, int64_t first) { return x[t > first ? t : first]; }

/* Writes the inputs of row t: known rows first .. from - 1, and forecasts from row `from` on. */
static void inputs(const series *s, int64_t t, int64_t first, int64_t from, const double *forecast,
                   double x[WIDTH])
{
    for (int i = 0; i < ORDER; i++) {
        x[i] = t - 1 - i >= from ? forecast[t - 1 - i - from] : value_at(s->B, t - 1 - i, first);
        x[ORDER + i] = value_at(s->I, t - i, first);
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

/* Lists the columns, out of WIDTH, that an order uses. */
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

/* Solves by Cholesky: a = L L^T in place, then both triangles. Returns false if a is not positive definite.
 * */
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
    bool ok = solve(n, xx, x);
    for (int i = 0; ok && i < n; i++)
        a->weight[column[i]] += x[i];
    return ok;
}

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

static int64_t longest_future(const weft_windows *windows)
{
    int64_t most = 0;
    for (int64_t i = 0; i < weft_windows_counts(windows).windows; i++) {
        int64_t future = weft_window_at(windows, i).future;
        most = future > most ? future : most;
    }
    return most;
}

double baseline_rmse(const arx *a, const weft_frame *f, const weft_windows *windows)
{
    double *out = memory((size_t)longest_future(windows), sizeof *out), sum = 0, rows = 0;
    for (int64_t i = 0; i < weft_windows_counts(windows).windows; i++) {
        weft_window v = weft_window_at(windows, i);
        const double *B = series_of(f, v.series).B + v.origin;
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

/* ---- fit over whole windows ---- */
/* Adds a window to a Gauss-Newton step: its errors, and the derivatives of its forecasts by the weights,
 * including those through earlier forecasts (by). */
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
    size_t most = (size_t)longest_future(windows);
    sums *all = memory(1, sizeof *all);
    double *out = memory(most, sizeof *out), (*by)[WIDTH] = memory(most, sizeof *by);
    for (int64_t i = 0; i < weft_windows_counts(windows).windows; i += 2)
        add_window(all, a, f, weft_window_at(windows, i), out, by);
    fit(a, all);
    free(all);
    free(out);
    free(by);
}

/* ---- choice of the fit ---- */
typedef struct {
    arx best;
    double least;
    const weft_frame *frame;
    const weft_windows *windows;
} contest;

static void try(contest *c, const arx *a)
{
    double rmse = baseline_rmse(a, c->frame, c->windows);
    if (rmse < c->least) {                       /* false for NaN, the error of a diverging fit */
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
        arx a = { orders[i / RIDGES / N], orders[i / RIDGES % N], pow(100, -1 - i % RIDGES), { 0 } };
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
