/* prepared_series.c - transforms series once; windows copy their rows. Known, past and target columns are
 * adjacent, so the row of a past, or of a future, is one contiguous piece. */
#include <math.h>
#include <string.h>
#include "rnn/forecast/series/features.h"

/* ---- memory: one block ---- */
static void *take_part(char **memory, size_t bytes)
{
    void *part = *memory;
    *memory += (bytes + 15) / 16 * 16;
    return part;
}

static bool allocate_prepared(weft__prepared *r)
{
    const weft_features *x = r->x;
    size_t rows = (size_t)r->rows, n = (size_t)r->n,
           most = ((size_t)r->width + (size_t)x->target + 2) * 8 + (size_t)x->target * 8 * WEFT__STEPS;
    if (rows > SIZE_MAX / 4 / most || n > SIZE_MAX / 4 / (8 * (size_t)(x->fixed + 1))) {
        weft__fail(x->w, WEFT_ENOMEM, "features \"%s\": %lld rows are too many", x->name, (long long)r->rows);
        return false;
    }
    int64_t onto = 0;
    for (int64_t k = 0; k < x->target; k++)
        for (int i = 0; i < x->column[x->known + x->past + k].n; i++)
            onto += x->column[x->known + x->past + k].step[i].t.depends_on != NULL;
    size_t bytes = (n + 1) * 8 + rows * (size_t)r->width * sizeof(real) +
                   n * (size_t)x->fixed * sizeof(real) + rows * 8 * (1 + (size_t)x->target + (size_t)onto) +
                   (size_t)x->target * sizeof(weft__step_inputs) + 16 * (8 + (size_t)onto);
    char *memory = r->block = weft__allocate(x->w, bytes);
    if (!memory)
        return false;
    memset(memory, 0, bytes);
    r->start = take_part(&memory, (n + 1) * sizeof *r->start);
    r->inputs = take_part(&memory, (size_t)x->target * sizeof *r->inputs);
    r->z = take_part(&memory, rows * (size_t)r->width * sizeof *r->z);
    r->fixed = take_part(&memory, n * (size_t)x->fixed * sizeof *r->fixed);
    r->time = x->time ? take_part(&memory, rows * sizeof *r->time) : NULL;
    r->raw = take_part(&memory, rows * (size_t)x->target * sizeof *r->raw);
    for (int64_t k = 0; k < x->target; k++)      /* filled by keep */
        for (int i = 0; i < x->column[x->known + x->past + k].n; i++)
            if (x->column[x->known + x->past + k].step[i].t.depends_on)
                r->inputs[k][i] = take_part(&memory, rows * sizeof(double));
    return true;
}

/* ---- one series ---- */
/* Keeps the data for the inverse: the raw target and the columns of its transforms. */
static void keep_series(weft__prepared *r, int64_t target, const weft__step_inputs inputs, const double *y,
                        int64_t row, int64_t n)
{
    memcpy(r->raw + target * r->rows + row, y, (size_t)n * sizeof *y);
    for (int i = 0; i < WEFT__STEPS; i++)
        if (inputs[i])
            memcpy((double *)(uintptr_t)(r->inputs[target][i] + row), inputs[i], (size_t)n * sizeof *y);
}

static bool fill_column(weft__prepared *r, const weft_frame *f, int64_t s, int64_t k, int64_t row, bool gaps,
                        double *y)
{
    const weft_features *x = r->x;
    const weft__column *c = &x->column[k];
    weft__step_inputs inputs;
    int64_t n = f->start[s + 1] - f->start[s];
    if (!weft__features_inputs(x, c, f, f->start[s], inputs) ||
        !weft__features_raw(x, f, s, c->name, gaps, y))
        return false;
    if (k >= x->known + x->past && n)
        keep_series(r, k - x->known - x->past, inputs, y, row, n);
    int64_t bad = weft__chain_apply(x, c, n, y, inputs);
    for (int64_t i = 0; i < n; i++) {
        r->z[(row + i) * r->width + k] = (real)y[i];
        bad = bad < 0 && isfinite(y[i]) && !isfinite((real)y[i]) ? i : bad;
    }
    if (bad >= 0)
        weft__features_fail(x, f, s, bad, c->name, "outside the domain of its transforms");
    return bad < 0;
}

static bool fill_fixed(weft__prepared *r, const weft_frame *f, int64_t s, int64_t to)
{
    const weft_features *x = r->x;
    static const weft__step_inputs nothing;
    for (int64_t k = 0; k < x->fixed; k++) {
        const weft__column *c = &x->column[r->width + k];
        double value;
        if (!weft__features_fixed(x, f, s, c->name, &value))
            return false;
        if (f->start[s] == f->start[s + 1])      /* without rows no window reads it */
            continue;
        if (weft__chain_apply(x, c, 1, &value, nothing) >= 0 || !isfinite((real)value)) {
            weft__features_fail(x, f, s, 0, c->name, "outside the domain of its transforms");
            return false;
        }
        r->fixed[to * x->fixed + k] = (real)value;
    }
    return true;
}

static bool fill_series(weft__prepared *r, const weft_frame *f, int64_t from, bool gaps, double *y)
{
    for (int64_t s = from; s < from + r->n; s++) {
        int64_t row = f->start[s] - f->start[from];
        r->start[s - from + 1] = f->start[s + 1] - f->start[from];
        if (r->x->time && !(weft__features_raw(r->x, f, s, r->x->time, false, r->time + row) &&
                            weft__features_increases(r->x, f, s, r->time + row)))
            return false;
        if (!fill_fixed(r, f, s, s - from))
            return false;
        for (int64_t k = 0; k < r->width; k++)
            if (!fill_column(r, f, s, k, row, gaps, y))
                return false;
    }
    return true;
}

bool weft__prepare(weft__prepared *r, const weft_features *x, const weft_frame *f, int64_t from, int64_t n,
                   bool gaps)
{
    *r = (weft__prepared){ .x = x,
                           .n = n,
                           .rows = f->start && n ? f->start[from + n] - f->start[from] : 0,
                           .width = x->columns - x->fixed };
    double *y = weft__allocate(x->w, ((size_t)r->rows + 1) * sizeof *y);
    bool ok = y && allocate_prepared(r) && (!n || fill_series(r, f, from, gaps, y));
    weft__release(x->w, y);
    if (!ok) {
        weft__release(x->w, r->block);
        r->block = NULL;
    }
    return ok;
}

/* ---- rows ---- */
static double time_of(const weft__prepared *r, int64_t begin, int64_t row)
{
    if (r->x->time_as == WEFT_TIME_ABSOLUTE)
        return weft__features_time(r->x, r->time[row] - r->time[begin]);
    return row > begin ? weft__features_time(r->x, r->time[row] - r->time[row - 1]) : 0;
}

void weft__prepared_past(const weft__prepared *r, int64_t begin, int64_t first, int64_t rows, real *to)
{
    const weft_features *x = r->x;
    int64_t columns = x->known + x->past + (x->without_target ? 0 : x->target);
    for (int64_t row = first; row < first + rows; row++) {
        if (x->time)
            *to++ = x->time_masked ? 0 : (real)time_of(r, begin, row);
        memcpy(to, r->z + row * r->width, (size_t)columns * sizeof *to);
        to += columns;
    }
}

void weft__prepared_mask(const weft__prepared *r, int64_t rows, real *to)
{
    const weft_features *x = r->x;
    int64_t time = x->time != NULL, columns = weft_features_counts(x).past;
    for (int64_t k = 0; k < columns - time; k++)
        for (int64_t i = 0; x->column[k].masked && i < rows; i++)
            to[i * columns + time + k] = 0;
}

void weft__prepared_future(const weft__prepared *r, int64_t begin, int64_t first, int64_t rows, real *to)
{
    for (int64_t row = first; row < first + rows; row++) {
        if (r->x->time)
            *to++ = (real)time_of(r, begin, row);
        memcpy(to, r->z + row * r->width, (size_t)r->x->known * sizeof *to);
        to += r->x->known;
    }
}
