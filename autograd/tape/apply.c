/* apply.c - applies an operator: brings its ragged inputs to one layout and calls it (call.c). Every operator
 * passes through here, also a program's. Only this file and call.c check for mistakes of their authors. */
#include "autograd/op.h"

static weft_layout layout_needed(const weft_call *c, const weft__form *first, const weft__form *f)
{
    const weft_layout layout = c->op->layout;
    if (layout == WEFT_ROWS)
        return f->layout;                        /* any layout */
    if (layout == WEFT__ALONG && ((const weft__along *)c->attributes)->tokens)
        return WEFT_CONCAT;
    if (layout && layout != WEFT__ALONG)
        return layout;
    weft_layout of_first = first ? first->layout : f->layout;
    return of_first == WEFT_ROWS ? WEFT_CONCAT : of_first;
}

/* Brings all ragged inputs to one layout, by a gather where necessary. They must belong to one batch. */
static bool agree(weft_call *c)
{
    const weft__form *first = NULL;
    for (int i = 0; i < c->n; i++) {
        const weft__form *f = &c->x[i]->f;
        if (!f->batch)
            continue;
        if (first && first->batch != f->batch && !c->op->ragged_apart) {
            char reason[200];
            weft__difference(first->batch, f->batch, reason, sizeof reason);
            return weft__refuse(c, "the inputs belong to different batches: %s", reason);
        }
        weft_layout needed = layout_needed(c, first, f);
        if (f->layout != needed) {
            weft__form to = weft__as_layout(*f, f->batch, needed, 0, WEFT_ALIGN_LEFT, NULL);
            c->x[i] = weft__arranged(c->x[i], &to, 0);
            if (c->x[i]->w->status)
                return false;                    /* no memory */
        }
        first = first ? first : &c->x[i]->f;
    }
    return !c->x[0]->w->status;
}

const weft_call *weft__apply(const weft_op *op, weft_tensor *const *x, int n, const void *attributes,
                             size_t bytes)
{
    return weft__call(weft__context(x, n), op, &(weft__inputs){ x, n, attributes, bytes }, agree, false);
}

static bool operator_is_sound(weft *w, const weft_op *op)     /* checks a program's record */
{
    if ((unsigned)op->results > WEFT__RESULTS)
        weft__fail(w, WEFT_EARG, "op_apply: %s: %d results; expected 0 (which means 1) .. %d", op->name,
                   op->results, WEFT__RESULTS);
    else if ((unsigned)op->layout > WEFT_ROWS)
        weft__fail(w, WEFT_EARG, "op_apply: %s: layout %d; expected plain, packed, concat or rows", op->name,
                   (int)op->layout);
    else if (!op->forward && op->adds)
        weft__fail(w, WEFT_EARG, "op_apply: %s: .adds without .forward; expected both", op->name);
    return !w->status;
}

weft_tensor *weft_op_apply(const weft_op *op, weft_tensor *const *x, int64_t n, const void *attributes,
                           size_t bytes)
{
    bool listed = x && n >= 0 && n <= INT32_MAX;
    weft *w = weft__context(x, listed ? n : x && n > 0);
    const char *lacks = !op                    ? "the operator is NULL" :
                        !op->name              ? "the operator has no name; expected .name" :
                        !op->shape             ? "the operator has no shape function; expected .shape" :
                        !listed                ? "expected a list of inputs" :
                        (bytes && !attributes) ? "attributes are NULL; expected data of these bytes" :
                                                 NULL;
    if (lacks)
        weft__fail(w, WEFT_EARG, "op_apply: %s%s%s", op && op->name ? op->name : "",
                   op && op->name ? ": " : "", lacks);
    else if (operator_is_sound(w, op))
        return weft__call(w, op, &(weft__inputs){ x, (int)n, attributes, bytes }, agree, !op->device)->y[0];
    return &w->nil;
}

/* ---- for raw functions ---- */
/* The raw function continues after the failure, so it gets memory of sufficient size (weft__capacity). The
 * numbers are not used. */
static void *dummy_buffer(const weft_tensor *t, weft_dtype asked, void *seen)
{
    weft *w = t->w;
    const char *by = w->tape->raw_name ? w->tape->raw_name : w->tape->entry_name;
    weft__fail(w, WEFT_EARG, "%s%s%s of %s%s; expected %s", by ? by : "", by ? ": " : "",
               asked == WEFT_REAL ? "op_data" : "op_int_data", WEFT__TEXT(&t->f),
               asked == WEFT_REAL ? "" : " of reals",
               asked == WEFT_REAL ? "weft_op_int_data" : "weft_op_data");
    return seen;
}

static void *data_of(const weft_tensor *t, weft_dtype type)
{
    const char *function = type == WEFT_REAL ? "op_data" : "op_int_data";
    if (!t || !WEFT__IS_USABLE(t->w, t, "%s: the tensor", function))
        return NULL;
    if (t->w->tape)
        weft__run_deferred(t->w);                /* raw reads require that no call waits */
    void *seen = weft__host_data(t, function);
    return !seen || t->f.type == type ? seen : dummy_buffer(t, type, seen);
}
real    *weft_op_data(const weft_tensor *t)     { return data_of(t, WEFT_REAL); }
int32_t *weft_op_int_data(const weft_tensor *t) { return data_of(t, WEFT_I32); }
