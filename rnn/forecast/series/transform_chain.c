/* transform_chain.c - applies the steps of a column one after the other, and inverts them. */
#include <string.h>
#include "rnn/forecast/series/features.h"

int64_t weft__chain_apply(const weft_features *x, const weft__column *c, int64_t n, double *y,
                          const weft__step_inputs inputs)
{
    int64_t first = -1;
    for (int i = 0; i < c->n && first < 0; i++)
        first = weft__step_apply(&c->step[i].t, x->state + c->step[i].at, n, y, inputs[i]);
    return first;
}

int weft__chain_deltas(const weft__column *c)
{
    int n = 0;
    for (int i = 0; i < c->n; i++)
        n += c->step[i].t.kind == WEFT_DELTA;
    return n;
}

/* Computes the input of every delta in the row before `from`. It runs the chain over the last rows before it,
 * one row for each delta. If the series did not begin there, the k-th delta spoils the first k of these rows,
 * but never the last one before its value was stored. */
static void last_seen(const weft_features *x, const weft__column *c, const double *raw,
                      const weft__step_inputs inputs, int64_t from, double seen[WEFT__STEPS])
{
    double rows[WEFT__STEPS];
    int64_t deltas = weft__chain_deltas(c), n = deltas < from ? deltas : from;
    if (!n)
        return;
    memcpy(rows, raw + from - n, (size_t)n * sizeof *rows);
    for (int i = 0; i < c->n; i++) {
        seen[i] = rows[n - 1];
        weft__step_apply(&c->step[i].t, x->state + c->step[i].at, n, rows,
                         inputs[i] ? inputs[i] + from - n : NULL);
    }
}

void weft__chain_undo(const weft_features *x, const weft__column *c, const double *raw,
                      const weft__step_inputs inputs, int64_t from, int64_t n, double *y)
{
    double seen[WEFT__STEPS] = { 0 };
    last_seen(x, c, raw, inputs, from, seen);
    for (int i = c->n; i-- > 0;)
        weft__step_undo(&c->step[i].t, x->state + c->step[i].at, n, y, inputs[i] ? inputs[i] + from : NULL,
                        seen[i]);
}
