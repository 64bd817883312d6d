/* windows_inverse.c - converts predictions back to the series' units. */
#include <math.h>
#include "rnn/forecast/series/windows.h"

static bool can_be_undone(weft_windows *v, weft_tensor *predicted, const double *out)
{
    if (!WEFT__IS_USABLE(v->w, predicted, "windows_inverse_transform: the tensor of predictions"))
        return false;
    if (!out)
        weft__fail(v->w, WEFT_EARG, "windows_inverse_transform: out is NULL");
    else if (!predicted->f.batch || predicted->f.type != WEFT_REAL || predicted->f.rank != 2 ||
             predicted->f.size[1] < 1 || predicted->f.size[1] % v->x->target)
        weft__fail(v->w, WEFT_ESHAPE,
                   "windows_inverse_transform: the predictions are %s; expected ragged [rows, %lld * "
                   "columns] of reals",
                   WEFT__TEXT(&predicted->f), (long long)v->x->target);
    const weft_batch *b = v->w->status ? NULL : predicted->f.batch;
    for (int64_t s = 0; b && s < b->n && !v->w->status; s++)
        if (weft__has_window(v, b->id[s]) && b->len[s] > weft__window(v, b->id[s]).future)
            weft__fail(v->w, WEFT_ESHAPE,
                       "windows_inverse_transform: sequence %lld has %d rows, but window %lld only %d",
                       (long long)s, b->len[s], (long long)b->id[s], weft__window(v, b->id[s]).future);
    return !v->w->status;
}

/* Inverts one column of one window: `rows` numbers with a stride of `columns`. */
static void undo_column(weft_windows *v, int64_t window, int64_t target, int32_t rows, int64_t columns,
                        const real *from, double *to, double *spare)
{
    weft_window a = weft__window(v, window);
    const weft__prepared *p = &v->p;
    const weft__column *c = &v->x->column[v->x->known + v->x->past + target];
    int64_t begin = p->start[a.series];
    weft__step_inputs inputs;
    for (int i = 0; i < WEFT__STEPS; i++)
        inputs[i] = p->inputs[target][i] ? p->inputs[target][i] + begin : NULL;
    for (int32_t r = 0; r < rows; r++)
        spare[r] = (double)from[r * columns];
    weft__chain_undo(v->x, c, p->raw + target * p->rows + begin, inputs, a.origin, rows, spare);
    for (int32_t r = 0; r < rows; r++) {
        to[r * columns] = spare[r];
        if (!isfinite(spare[r]))
            weft__fail(v->w, WEFT_ENUMERIC,
                       "windows_inverse_transform: window %lld, row %d, target \"%.100s\": %g, in the units "
                       "of the series, is %g",
                       (long long)window, r, c->name, (double)from[r * columns], spare[r]);
    }
}

void weft_windows_inverse_transform(weft_windows *v, weft_tensor *predicted, double *out)
{
    weft *w = v && v->w ? v->w : weft__no_context();
    if (w->status || !can_be_undone(v, predicted, out))
        return;
    weft_lengths l = weft_lengths_of(predicted);
    int64_t columns = predicted->f.size[1], each = columns / v->x->target, rows = predicted->f.batch->tokens,
            longest = predicted->f.batch->longest;
    real *from = weft__take(w, WEFT__ARENA_CALLS, (rows * columns + 1) * (int64_t)sizeof *from);
    double *spare = weft__take(w, WEFT__ARENA_CALLS, (longest + 1) * (int64_t)sizeof *spare);
    if (!from || !spare ||
        weft__read(weft_to_layout(weft_detach(predicted), WEFT_CONCAT), from,
                   (size_t)(rows * columns) * sizeof *from) != WEFT_OK)
        return;
    for (int64_t s = 0; s < l.n; s++) {
        for (int64_t k = 0; k < columns; k++)
            undo_column(v, l.id[s], k / each, l.len[s], columns, from + k, out + k, spare);
        from += l.len[s] * columns;
        out += l.len[s] * columns;
    }
}
