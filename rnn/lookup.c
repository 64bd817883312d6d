/* lookup.c - lets a recurrent layer take the ids of an embedding instead of the looked-up rows.
 *
 * With many tokens and few rows (letters, phones, classes), the layer projects each row once. A token then
 * uses the projected row of its id. The bits are the same where the projection of a row does not depend on
 * other rows, as in the CPU's own products. Backward sums the gates' gradients by id. The gradients of w_ih,
 * of the biases and of the table are then products with one row for each table row. The looked-up rows stay
 * an input of the layer, so that a program can request their gradient. */
#include "autograd/fused.h"
#include "rnn/rnn.h"

enum { TOKENS_A_ROW = 4 };                       /* minimum tokens for each row */

static bool is_worth_it(const weft_tensor *x, const weft_tensor *table)
{
    const weft__device *d = &x->w->dev;
    /* On a GPU the bits of a product may depend on its number of rows. */
    bool by_tokens = d->deterministic && !d->k->synchronous;
    return table && !by_tokens && table->f.rank == 2 && table->f.size[0] <= WEFT__FEW_ROWS &&
           table->f.size[0] * TOKENS_A_ROW <= x->f.batch->tokens;
}

/* ---- the rows that occur; -1 looks up the row of zeros after the last one ---- */
static bool used_shape(weft_call *c)             /* inputs: ids, table */
{
    int64_t rows = c->x[1]->f.size[0] + 1;
    weft_op_like(c->y[0], c->x[0]);
    weft_op_set_shape(c->y[1], WEFT_I32, 1, &rows);
    return true;
}
static void used_run(weft_call *c)
{
    RUN(c, ids_used, count(c->x[0]), c->x[1]->f.size[0], I(c, 0), (int32_t *)(void *)Y(c, 0),
        (int32_t *)(void *)Y(c, 1));
}
static const weft_op op_used = { .name = "embedding_run",
                                 .results = 2,
                                 .layout = WEFT_ROWS,
                                 .no_gradient = true,
                                 .shape = used_shape,
                                 .forward = used_run };

weft__ids weft__ids_of(weft_tensor *x, const weft__form *order)
{
    weft_tensor *ids = NULL, *rows = weft__table_of(x, &ids);
    if (!is_worth_it(x, rows))
        return (weft__ids){ NULL, NULL };
    weft__form to = weft__as_layout(ids->f, order->batch, order->layout, 0, WEFT_ALIGN_LEFT, order->place);
    if (!weft__forms_equal(&ids->f, &to))
        ids = weft__arranged(ids, &to, -1);
    const weft_call *c = weft__apply(&op_used, (weft_tensor *[]){ ids, rows }, 2, NULL, 0);
    /* Rows without a token are zeros, whatever the table contains. */
    return (weft__ids){ c->y[0], weft_index_select(rows, c->y[1]) };
}
