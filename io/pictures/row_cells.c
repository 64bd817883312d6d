/* row_cells.c - a placement's cells, checked; see row_cells.h. */
#include <stdlib.h>
#include "io/pictures/row_cells.h"

static weft_status no_memory(void)
{
    return weft__file_fail(WEFT_ENOMEM, "weft_plot_batch_values: out of memory");
}

static weft_status first_fit(const weft_lengths *l, int64_t longest, weft__row_cells *p)
{
    p->at = (weft_placement){ .width = longest };
    p->found = calloc(2 * (size_t)l->n + 1, sizeof *p->found);
    if (!p->found)
        return no_memory();
    p->at.row = p->found;
    p->at.column = p->found + l->n;
    weft_status s = longest ? weft_first_fit(l, longest, p->found, p->found + l->n, &p->at.rows) : WEFT_OK;
    return s ? weft__file_fail(s, "weft_plot_batch_values: %s", weft_plan_message()) : WEFT_OK;
}

/* false: one is taken, or is none of the placement's */
static bool take(weft__row_cells *p, int64_t sequence, int64_t len)
{
    int64_t row = p->at.row[sequence], column = p->at.column[sequence];
    if (row < 0 || row >= p->at.rows || column < 0 || column + len > p->at.width)
        return false;
    int32_t *cell = p->taken + row * p->at.width + column;
    for (int64_t t = 0; t < len; t++) {
        if (cell[t])
            return false;
        cell[t] = (int32_t)sequence + 1;
    }
    return true;
}

static weft_status take_all(const weft_lengths *l, weft__row_cells *p)
{
    for (int64_t i = 0; i < l->n; i++)
        if (l->len[i] && !take(p, i, l->len[i]))
            return weft__file_fail(
                WEFT_EARG,
                "weft_plot_batch_values: placement: sequence %lld has %d tokens, in row %d "
                "from column %d on; %lld rows of %lld columns, and no cell for two "
                "sequences, are expected",
                (long long)i, (int)l->len[i], (int)p->at.row[i], (int)p->at.column[i], (long long)p->at.rows,
                (long long)p->at.width);
    return WEFT_OK;
}

weft_status weft__row_cells_of(const weft_lengths *lengths, int64_t longest, const weft_placement *given,
                               int64_t most, weft__row_cells *out)
{
    *out = (weft__row_cells){ .at = given ? *given : (weft_placement){ 0 } };
    weft_status s = given ? WEFT_OK : first_fit(lengths, longest, out);
    if (s)
        return s;
    const weft_placement *at = &out->at;
    if (at->rows < 0 || at->width < 0 || (at->width && at->rows > most / at->width) ||
        (lengths->n && !(at->row && at->column)))
        return weft__file_fail(WEFT_EARG,
                               "weft_plot_batch_values: a placement of %lld rows of %lld columns; row and "
                               "column of each sequence, and at most %lld cells, are expected",
                               (long long)at->rows, (long long)at->width, (long long)most);
    out->taken = calloc((size_t)(at->rows * at->width) + 1, sizeof *out->taken);
    return out->taken ? take_all(lengths, out) : no_memory();
}

void weft__row_cells_end(weft__row_cells *p)
{
    free(p->taken);
    free(p->found);
}
