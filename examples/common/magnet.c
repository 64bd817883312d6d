/* magnet.c - the field by Bouc 1967 and Wen 1976: B = a I + (1 - a) z, and the hidden z follows the
 * current by
 *     dz / dt = I' (A - |z|^n (beta sign(I' z) + gamma)).
 * How far z has come depends on all turning points of the current before it: a function of I by itself cannot
 * tell, nor can one of I and dI. */
#include <math.h>
#include <stdlib.h>
#include "magnet.h"
#include "program.h"

/* ---- random numbers of its own, so that data are the same whatever the model draws ---- */
/* Splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double uniform(uint64_t *state)
{
    return (double)(mixed(*state += 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}
static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * uniform(state);
}
static int64_t whole(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(uniform(state) * (double)(high - low + 1));
}

/* The sum of twelve: near enough to normal for a meter's noise, and without a logarithm that machines
 * round differently. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

/* ---- the magnet: n is 2 and A is 1 ---- */
/* share: a, the part of the field that has no memory */
static const double share = 0.1, beta = 0.7, gamma_ = 0.3;
enum { INNER = 16 };                             /* steps of the integration from row to row */

static double slope(double z, double dI)
{
    return dI * (1 - z * z * (dI * z > 0 ? beta + gamma_ : gamma_ - beta));
}

/* z after the current has changed by dI, evenly: Heun's method. */
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

/* The next level: up or down, small loops and large ones. */
static double level(uint64_t *state, double from)
{
    double to = from;
    while (fabs(to - from) < least_change)
        to = between(state, -strongest, strongest);
    return to;
}

/* Ramps that begin and end gently, and flat tops; the change in each row, the sum of which is the current. */
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

/* What a converter of this step would say: keeps the last bits of one compiler or another out of the data. */
static double digital(double x) { return floor(x * 0x1p20 + 0.5) * 0x1p-20; }

static void add_series(weft_frame *f, part p, int64_t number, const field_opts *o)
{
    uint64_t state = mixed(mixed((uint64_t)o->seed * 3 + (uint64_t)p) + (uint64_t)number);
    int64_t rows = whole(&state, LEAST_ROWS, MOST_ROWS);
    double *I = memory((size_t)rows * 3, sizeof *I), *dI = I + rows, *B = dI + rows, z = 0;
    draw_current(&state, rows, I);
    for (int64_t t = 0; t < rows; t++) {
        I[t] = digital(I[t]);
        dI[t] = I[t] - (t ? I[t - 1] : 0);
        z = moved(z, dI[t]);
        B[t] = digital(share * I[t] + (1 - share) * z + (o->noise > 0 ? o->noise * normal(&state) : 0));
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
