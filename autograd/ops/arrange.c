/* arrange.c - the operators with which weft__apply brings ragged inputs to one layout: view (the same numbers
 * with another form) and arrange (one gather between two layouts). */
#include "autograd/op.h"

static weft_tensor *call_view(const weft_op *op, weft_tensor *x, const void *attributes, size_t bytes)
{
    return weft__call(weft__context(&x, 1), op, &(weft__inputs){ &x, 1, attributes, bytes }, NULL, false)
        ->y[0];
}

/* ---- view: the same numbers ---- */
static weft_tensor *view_back(const weft_call *c, weft_tensor *dy, int i)
{
    return weft__view(dy, &c->x[i]->f);
}
static const weft_op op_view = {
    .name = "view", .layout = WEFT_ROWS, .unread = 1, .shape = weft__form_shape, .backward = view_back
};

weft_tensor *weft__view(weft_tensor *x, const weft__form *f)
{
    return x && weft__forms_equal(&x->f, f) ? x : call_view(&op_view, x, f, sizeof *f);
}

weft_tensor *weft__new_view(weft_tensor *x) { return call_view(&op_view, x, &x->f, sizeof x->f); }

/* ---- arrange ---- */
/* Arranges between two layouts of one batch. The gather is its own transpose, so it packs and unpacks. */
typedef weft__arrangement arrangement;

static void arrange_run(weft_call *c)
{
    const arrangement *a = c->attributes;
    int64_t rows = weft__layout_rows(&a->to), from = weft__layout_rows(&c->x[0]->f);
    weft__ints index = weft__map_between(a->to.batch, &c->x[0]->f, &a->to);
    if (!index.host || !rows)
        return;
    int64_t wide = count(c->y[0]) / rows;
    if (is_real(c, 0))
        RUN(c, gather, rows, wide, from, X(c, 0), index.device, a->fill, Y(c, 0), c->add);
    else
        RUN(c, gather_ints, rows, wide, from, I(c, 0), index.device, (int32_t)a->fill, YI(c, 0));
}

static void describe_fill(const weft_call *c, char *text, size_t size)
{
    real fill = ((const arrangement *)c->attributes)->fill;
    if (fill != 0)
        snprintf(text, size, "fill=%g", (double)fill);
}

static weft_tensor *arrange_back(const weft_call *c, weft_tensor *dy, int i)
{
    return weft__arranged(dy, &c->x[i]->f, 0);
}
static const weft_op op_arrange = { .name = "to_layout",
                                    .layout = WEFT_ROWS,
                                    .adds = true,
                                    .moves = true,
                                    .unread = 1,
                                    .shape = weft__form_shape,
                                    .forward = arrange_run,
                                    .backward = arrange_back,
                                    .describe = describe_fill };

weft_tensor *weft__arranged(weft_tensor *x, const weft__form *to, real fill)
{
    arrangement a = { *to, fill };
    bool lies_so = weft__forms_equal(&x->f, to) && to->layout != WEFT_PADDED; /* padding still needs `fill` */
    weft_tensor *y = lies_so ? weft__new_view(x) : call_view(&op_arrange, x, &a, sizeof a);
    weft__copy_lookup(y, x);
    return y;
}

weft_tensor *weft__arranged_as(weft_tensor *x, const weft__form *like)
{
    if (x->w->status)
        return x;
    weft__form to = weft__as_layout(x->f, like->batch, like->layout, 0, WEFT_ALIGN_LEFT, like->place);
    return weft__forms_equal(&x->f, &to) ? x : weft__arranged(x, &to, 0);
}
