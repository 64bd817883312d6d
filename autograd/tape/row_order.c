/* row_order.c - converts between ragged tensors and plain tensors of their rows.
 *
 * A plain tensor has no layout, so weft_plain records the order of the rows with its result. Operators that
 * keep the rows in place pass this record on. weft_ragged_like then refuses rows in another order than that
 * of `like`, because such rows would become tokens of other sequences. */
#include <string.h>
#include "autograd/op.h"

/* ---- orders ---- */
/* Returns whether the layout stores the rows sequence by sequence, in the user's order, without padding. */
static bool is_given_order(const weft__form *f)
{
    const weft_batch *b = f->batch;
    if (!b || f->layout == WEFT_CONCAT)
        return true;
    return f->layout == WEFT_PACKED && (b->longest <= 1 || b->live.host[0] == 1);
}

/* NULL means the user's order. */
static bool is_same_order(const weft__form *a, const weft__form *b)
{
    if (is_given_order(b) && (!a || is_given_order(a)))
        return true;
    return a && a->batch && a->layout == b->layout && a->place == b->place && a->batch->n == b->batch->n &&
           !memcmp(a->batch->len, b->batch->len, (size_t)b->batch->n * sizeof *b->batch->len);
}

static const weft__form *order_of(const weft_tensor *x) { return node(x)->order ? &node(x)->order->f : NULL; }

/* Until weft__carry_order the field `order` of a result is the input with the same rows, or the result itself
 * if no input has them. */
void weft__drop_row_order(weft_call *c)
{
    for (int k = 0; k < c->m; k++)
        node(c->y[k])->order = c->y[k];
}

void weft__keep_row_order(weft_call *c, int i) { node(c->y[0])->order = c->x[i]; }

/* Returns the order of a plain input with that number of rows, if known. An input of a rank below `least`
 * broadcasts, so its axis 0 is another axis. */
static const weft_tensor *known_order(const weft_tensor *x, int64_t rows, int least)
{
    bool has_rows = !x->f.batch && x->f.rank > 0 && x->f.rank >= least && x->f.size[0] == rows;
    return has_rows ? node(x)->order : NULL;
}

/* Recognises weft_plain. Axis 0 of a padded tensor holds sequences, in the user's order. */
static bool leaves_batch(const weft_call *c)
{
    return !c->op->forward && c->x[0]->f.batch && c->x[0]->f.layout != WEFT_PADDED;
}

static const weft_tensor *common_order(const weft_call *c, const weft_tensor *y)
{
    const weft_tensor *first = leaves_batch(c) ? c->x[0] : NULL;
    for (int i = 0; i < c->n; i++) {
        const weft_tensor *order = known_order(c->x[i], y->f.size[0], c->n > 1 ? y->f.rank : 1);
        if (order && first && !is_same_order(&first->f, &order->f))
            return NULL;
        first = first ? first : order;
    }
    return first && first->f.size[0] == y->f.size[0] ? first : NULL;
}

bool weft__rows_agree(const weft_call *c, int64_t rows, int least)
{
    static const char *const layouts[] = { "plain", "packed", "concat", "rows", "padded" };
    const weft_tensor *first = NULL;
    for (int i = 0; i < c->n && !c->x[i]->w->tape->entry_name; i++) {
        const weft_tensor *order = known_order(c->x[i], rows, least);
        if (order && first && !is_same_order(&first->f, &order->f))
            return weft__refuse(c,
                                "the rows of input %d (weft_plain of %s) and those before it (of %s) differ "
                                "in order; expected one order. Call weft_to_layout before weft_plain",
                                i, layouts[order->f.layout], layouts[first->f.layout]);
        first = first ? first : order;
    }
    return true;
}

/* Returns whether a result can have an order. Most calls have none and skip the search. */
static bool has_order(const weft_call *c)
{
    bool any = !c->op->forward;
    for (int i = 0; i < c->n; i++)
        any |= node(c->x[i])->order != NULL;
    return any;
}

void weft__carry_order(weft_call *c)
{
    if (!has_order(c)) {
        for (int k = 0; k < c->m; k++)
            node(c->y[k])->order = NULL;
        return;
    }
    for (int k = 0; k < c->m; k++) {
        weft_tensor *y = c->y[k];
        const weft_tensor *from = node(y)->order;
        if (y->f.batch || y->f.rank < 1 || from == y)
            node(y)->order = NULL;
        else
            node(y)->order = from ? node(from)->order : common_order(c, y);
    }
}

weft_tensor *weft_plain(weft_tensor *x)
{
    if (!x || weft__handle_error(x->w, x))
        return weft__failed(x, WEFT_EARG, "plain", "expected a tensor");
    weft__form f = weft__plain(x->f.type, x->f.rank, x->f.size);
    return weft__view(x, &f);
}

/* ---- from plain to ragged ---- */
static bool are_usable(weft_tensor *x, weft_tensor *like, const char *function)
{
    if (x && !weft__handle_error(x->w, x) && !weft__handle_error(x->w, like))
        return true;
    weft__failed_of(LIST(x, like), WEFT_EARG, function, "expected two tensors of the step");
    return false;
}

weft_tensor *weft__ragged_as(weft_tensor *x, const weft__form *like)
{
    weft__form f = x->f;
    weft__copy_layout(&f, like);
    return weft__view(x, &f);
}

weft_tensor *weft_ragged_like(weft_tensor *x, weft_tensor *like)
{
    if (!are_usable(x, like, "ragged_like"))
        return weft__inert_of(x);
    if (x->f.batch || !like->f.batch || x->f.rank < 1 || x->f.size[0] != like->f.size[0])
        return weft__failed(x, WEFT_ESHAPE, "ragged_like",
                            "expected a plain tensor with the rows of a ragged one; like is %s",
                            WEFT__TEXT(&like->f));
    if (!is_same_order(order_of(x), &like->f))
        return weft__failed(x, WEFT_ESHAPE, "ragged_like",
                            "like is %s; expected rows that are known to be in its order. weft_ragged_rows "
                            "takes rows sequence by sequence, weft_ragged_of packed ones",
                            WEFT__TEXT(&like->f));
    return weft__ragged_as(x, &like->f);
}

weft_tensor *weft_ragged_rows(weft_tensor *x, weft_tensor *like)
{
    if (!are_usable(x, like, "ragged_rows"))
        return weft__inert_of(x);
    const weft_batch *b = like->f.batch;
    if (x->f.batch || !b || x->f.rank < 1 || x->f.size[0] != b->tokens)
        return weft__failed(
            x, WEFT_ESHAPE, "ragged_rows",
            "expected a plain tensor with one row for each of %lld tokens of a ragged one; like is %s",
            (long long)(b ? b->tokens : 0), WEFT__TEXT(&like->f));
    weft__form given = weft__as_layout(like->f, like->f.batch, WEFT_CONCAT, 0, WEFT_ALIGN_LEFT, NULL);
    if (!is_same_order(order_of(x), &given))
        return weft__failed(x, WEFT_ESHAPE, "ragged_rows",
                            "the rows are in the order of a %s tensor (weft_plain); expected rows sequence "
                            "by sequence (weft_ragged_like takes rows in the order of like)",
                            node(x)->order->f.layout == WEFT_PACKED ? "packed" : "placed");
    return weft__arranged_as(weft__ragged_as(x, &given), &like->f);
}
