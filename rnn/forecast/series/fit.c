/* fit.c - fits features to all series of a frame; transforms single columns and back. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "rnn/forecast/series/features.h"

typedef struct { weft_features *x; const weft_frame *f; double *y, *spare, *state; } fitting;

static int64_t length(const weft_frame *f, int64_t s) { return f->start[s + 1] - f->start[s]; }

/* ---- time ---- */
static double longest_span(const weft_features *x, const weft_frame *f, const double *t)
{
    double longest = 0;
    int64_t rows = x->context + x->horizon;
    for (int64_t s = 0; s < f->n; s++)
        for (int64_t i = f->start[s]; i < f->start[s + 1]; i++) {
            int64_t last = i + rows - 1 < f->start[s + 1] ? i + rows - 1 : f->start[s + 1] - 1;
            longest = fmax(longest, t[last] - t[i]);
        }
    return longest;
}

/* Finds the shortest and the longest step. They are set equal if they differ only by rounding of the times or
 * of their difference. */
static void extreme_steps(const weft_frame *f, const double *t, double *low, double *high)
{
    double largest = 0;
    bool any = false;
    *low = *high = 0;
    for (int64_t s = 0; s < f->n; s++)
        for (int64_t i = f->start[s] + 1; i < f->start[s + 1]; i++) {
            double step = t[i] - t[i - 1];
            *low = any ? fmin(*low, step) : step;
            *high = any ? fmax(*high, step) : step;
            largest = fmax(largest, fmax(fabs(t[i]), fabs(t[i - 1])));
            any = true;
        }
    if (*high - *low <= 1e-6 * *high + 8 * DBL_EPSILON * largest)
        *low = *high;
}

static void fit_time(fitting *p)
{
    weft_features *x = p->x;
    double low = 0, high = 0;
    if (!x->time)
        return;
    for (int64_t s = 0; s < p->f->n; s++) {
        double *t = p->y + p->f->start[s];
        if (!weft__features_raw(x, p->f, s, x->time, false, t) || !weft__features_increases(x, p->f, s, t))
            return;
    }
    if (x->time_as == WEFT_TIME_ABSOLUTE)
        high = longest_span(x, p->f, p->y);
    else
        extreme_steps(p->f, p->y, &low, &high);
    p->state[x->n - 3] = low;
    p->state[x->n - 2] = high;
}

/* ---- columns ---- */
/* Writes to y all rows of a column, or for a fixed one a value for each series with rows. Returns their
 * number, or -1 on an error. */
static int64_t gather_values(fitting *p, const weft__column *c, bool fixed)
{
    int64_t n = 0;
    for (int64_t s = 0; s < p->f->n; s++) {
        if (fixed ? !weft__features_fixed(p->x, p->f, s, c->name, &p->y[n]) :
                    !weft__features_raw(p->x, p->f, s, c->name, false, p->y + n))
            return -1;
        n += fixed ? length(p->f, s) > 0 : length(p->f, s);
    }
    return n;
}

static void apply_step(fitting *p, const weft__column *c, const weft__step *step, const double *inputs,
                       bool fixed)
{
    const weft_frame *f = p->f;
    for (int64_t s = 0, row = 0; s < f->n; s++) {
        int64_t n = fixed ? length(f, s) > 0 : length(f, s);
        int64_t bad = weft__step_apply(&step->t, p->state + step->at, n, p->y + row,
                                       inputs ? inputs + f->start[s] : NULL);
        if (bad >= 0) {
            weft__features_fail(p->x, f, s, bad, c->name, "outside the domain of transform %d",
                                (int)(step - c->step));
            return;
        }
        row += n;
    }
}

static bool column_is_finite(fitting *p, const char *name)
{
    for (int64_t s = 0; s < p->f->n; s++)
        if (!weft__features_raw(p->x, p->f, s, name, false, p->spare))
            return false;
    return true;
}

static double largest(int64_t n, const double *y)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(y[i]));
    return most;
}

static void fit_column(fitting *p, const weft__column *c)
{
    weft_features *x = p->x;
    weft__step_inputs inputs;
    bool fixed = weft__features_is_fixed(x, c);
    double size = 0;                             /* size of the operands of the previous step's difference */
    int64_t n = gather_values(p, c, fixed);
    if (n < 0 || !weft__features_inputs(x, c, p->f, 0, inputs))
        return;
    for (int i = 0; i < c->n && !x->w->status; i++) {
        const weft__step *s = &c->step[i];
        if (inputs[i] && !column_is_finite(p, s->t.depends_on))
            return;
        const char *reason = weft__step_fit(&s->t, p->state + s->at, n, p->y, inputs[i], size, p->spare);
        size = weft__step_subtracts(s->t.kind) ? fmax(size, largest(n, p->y)) : 0;
        if (reason)
            weft__fail(x->w, WEFT_EARG, "features \"%s\": column \"%.100s\": transform %d: %s", x->name,
                       c->name, i, reason);
        else
            apply_step(p, c, s, inputs[i], fixed);
    }
}

void weft_features_fit(weft_features *x, const weft_frame *f)
{
    if (!weft__features_made(x) || x->w->status || !weft__features_frame(x, f))
        return;
    weft *w = x->w;
    w->running = "features_fit";
    size_t rows = (size_t)(f->rows > f->n ? f->rows : f->n);
    double *block = weft__allocate(w, (4 * rows + (size_t)x->n) * sizeof *block);
    if (!block)
        return;
    fitting p = { x, f, block, block + rows, block + 4 * rows };
    memset(p.state, 0, (size_t)x->n * sizeof *p.state);
    fit_time(&p);
    for (int64_t k = 0; k < x->columns && !w->status; k++)
        fit_column(&p, &x->column[k]);
    if (!w->status) {                            /* all or nothing */
        memcpy(x->state, p.state, (size_t)x->n * sizeof *x->state);
        x->state[x->n - 1] = 1;
        memcpy(x->stored_text, x->text, strlen(x->text) + 1);
    }
    weft__release(w, block);
}

/* ---- single columns ---- */
static const weft__column *find_column(const weft_features *x, const char *function, const char *column,
                                       const weft_frame *f, int64_t series)
{
    if (!weft__features_ready(x, function) || !weft__features_frame(x, f))
        return NULL;
    const weft__column *c = column ? weft__features_find(x, column) : NULL;
    if (!c)
        weft__fail(x->w, WEFT_EARG, "%s: features \"%s\" have no column \"%.100s\"", function, x->name,
                   column ? column : "NULL");
    else if (series < 0 || series >= f->n)
        weft__fail(x->w, WEFT_EARG, "%s: series %lld; expected a number from 0, below %lld", function,
                   (long long)series, (long long)f->n);
    return x->w->status ? NULL : c;
}

void weft_features_transform(const weft_features *x, const char *column, const weft_frame *f, int64_t series,
                             double *out)
{
    weft__step_inputs inputs;
    const weft__column *c = find_column(x, "features_transform", column, f, series);
    if (!c || !weft__features_inputs(x, c, f, f->start[series], inputs))
        return;
    bool fixed = weft__features_is_fixed(x, c);
    if (!out)
        weft__fail(x->w, WEFT_EARG, "features_transform: out is NULL");
    else if (fixed ? weft__features_fixed(x, f, series, column, out) :
                     weft__features_raw(x, f, series, column, false, out)) {
        int64_t bad = weft__chain_apply(x, c, fixed ? 1 : length(f, series), out, inputs);
        if (bad >= 0)
            weft__features_fail(x, f, series, bad, column, "outside the domain of its transforms");
    }
}

static bool rows_are_there(const weft_features *x, const weft__column *c, const weft_frame *f, int64_t s,
                           int64_t from, int64_t n, bool fixed)
{
    if (from < 0 || n < 0 || (!fixed && from > length(f, s) - n))
        weft__fail(x->w, WEFT_EARG,
                   "features_inverse_transform: series %lld has %lld rows, not %lld from row %lld on",
                   (long long)s, (long long)length(f, s), (long long)n, (long long)from);
    else if (n && !from && weft__chain_deltas(c))
        weft__fail(x->w, WEFT_EARG,
                   "features_inverse_transform: column \"%.100s\" is a chain with differences; expected rows "
                   "from 1 on, because row 0 has no previous value",
                   c->name);
    return !x->w->status;
}

void weft_features_inverse_transform(const weft_features *x, const char *column, const weft_frame *f,
                                     int64_t series, int64_t from, int64_t n, const double *values,
                                     double *out)
{
    weft__step_inputs inputs;
    const weft__column *c = find_column(x, "features_inverse_transform", column, f, series);
    if (!c || !weft__features_inputs(x, c, f, f->start[series], inputs))
        return;
    bool fixed = weft__features_is_fixed(x, c);
    if (n && (!values || !out))
        weft__fail(x->w, WEFT_EARG, "features_inverse_transform: values or out is NULL");
    if (x->w->status || !rows_are_there(x, c, f, series, from, n, fixed))
        return;
    const double *raw = weft__features_column(x, f, column);
    if (!raw)
        return;
    memmove(out, values, (size_t)n * sizeof *out);
    weft__chain_undo(x, c, raw + f->start[series], inputs, from, n, out);
    for (int64_t i = 0; i < n && !x->w->status; i++)
        if (!isfinite(out[i]))
            weft__features_fail(x, f, series, from + i, column, "%g, in the units of the series, is %g",
                                values == out ? (double)NAN : values[i], out[i]);
}
