/* op_inputs.h - generates inputs for the cases of op_cases.h: random shapes, lengths and layouts in each
 * round, and numbers. */
#ifndef WEFT_OP_INPUTS_H
#define WEFT_OP_INPUTS_H
#include "op_cases.h"

static int32_t lens[2][8];
static int64_t sequences, extent_of[128];

static void draw_round(void)
{
    sequences = 1 + (int64_t)dice(4);
    for (int b = 0; b < 2; b++)
        for (int64_t s = 0; s < sequences; s++)
            lens[b][s] = (int32_t)dice(5);
    for (int c = 'a'; c <= 'd'; c++)
        extent_of[c] = 1 + (int64_t)dice(3);
    for (int c = '0'; c <= '9'; c++)
        extent_of[c] = c - '0';
}

static int64_t shape_of(const char *shape, int *rank, int64_t size[6], int *batch)
{
    int64_t n = 1;
    *batch = *shape == '~' ? 0 : *shape == '=' ? 1 : -1, *rank = 0;
    for (const char *c = shape + (*batch >= 0); *c && *c != '.'; c++, n *= size[(*rank)++]) {
        size[*rank] = *rank || *batch < 0 ? extent_of[(unsigned char)*c] : 0;
        for (int64_t s = 0; *batch >= 0 && *rank == 0 && s < sequences; s++)
            size[0] += lens[*batch][s];
    }
    return n;
}

/* The numbers of a case are the points of one even grid in shuffled order. No two are close to each other or
 * to 0, so a difference quotient never crosses the corner of a max, a where or a mask. */
static int64_t grid_points, grid_step, grid_at;

static void grid_new(int64_t n)
{
    grid_points = n ? n : 1;
    grid_at = (int64_t)dice((uint64_t)grid_points);
    for (grid_step = 1 + (int64_t)dice((uint64_t)grid_points);; grid_step++) {
        int64_t a = grid_points, b = grid_step;
        while (b) {
            int64_t rest = a % b;
            a = b, b = rest;
        }
        if (a == 1)
            return;
    }
}

static weft_real grid_next(double low, double high)
{
    grid_at = (grid_at + grid_step) % grid_points;
    return (weft_real)(low + (high - low) * ((double)grid_at + .5 + (grid_points % 2 ? .01 : 0)) /
                                 (double)grid_points);
}

/* Creates an input, ragged in this layout if its shape is ragged. WEFT_PLAIN picks a random layout. A
 * sequence has the same numbers in every layout. */
static weft_tensor *input(weft *w, const char *shape, double low, double high, weft_layout layout)
{
    int64_t size[6], n, rows;
    int rank, b;
    int32_t row[8], column[8];
    n = shape_of(shape, &rank, size, &b);
    weft_real *values = calloc((size_t)n + 1, sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = grid_next(low, high);
    weft_tensor *x = weft_reals(w, values, rank, size);
    free(values);
    if (b < 0)
        return x;
    weft_lengths l = { .n = sequences, .len = lens[b] };
    x = weft_ragged_like(x, weft_ragged(w, (weft_real[64]){ 0 }, 1, &l));
    layout = layout ? layout : (weft_layout)(WEFT_PACKED + dice(3));
    if (layout != WEFT_ROWS)
        return weft_to_layout(x, layout);
    /* as wide as the longest sequence may be, so most rows have padding */
    cr_assert_eq(weft_first_fit(&l, 5, row, column, &rows), WEFT_OK);
    return weft_to_rows(x, &(weft_placement){ rows, 5, row, column });
}

static int inputs(weft *w, const op_case *c, weft_tensor **x, weft_layout layout)
{
    int n = 0, rank, b;
    int64_t size[6], all = 0;
    bool was = weft_set_grad_enabled(w, false);
    for (int i = 0; i < 4 && *c->shapes[i]; i++)
        all += shape_of(c->shapes[i], &rank, size, &b);
    grid_new(all);
    for (; n < 4 && *c->shapes[n]; n++)
        x[n] = input(w, c->shapes[n], c->low, c->high, layout);
    weft_set_grad_enabled(w, was);
    return n;
}
#endif
