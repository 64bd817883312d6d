/* axes.c - reorders axes (permute, transpose) and repeats elements along an axis. */
#include "autograd/op.h"

/* ---- permute; the inverse permutation is its transpose ---- */
typedef weft__axis_order order;

static bool permute_shape(weft_call *c)
{
    const order *o = c->attributes;
    const weft__form *x = &c->x[0]->f;
    weft__form *y = &c->y[0]->f;
    *y = *x;
    if (x->batch && o->axis[0] != 0)
        return weft_op_refuse(c, "expected the ragged rows in axis 0 (weft_plain)");
    for (int i = 0; i < x->rank; i++)
        y->size[i] = x->size[o->axis[i]];
    if (o->axis[0] != 0)
        weft__drop_row_order(c);
    return true;
}
static void permute_run(weft_call *c)
{
    const order *o = c->attributes;
    const weft__form *x = &c->x[0]->f;
    weft__grid g = { .rank = x->rank };
    for (int i = 0; i < x->rank; i++) {
        g.size[i] = x->size[o->axis[i]];
        g.step[0][i] = weft__extents(x, o->axis[i] + 1, x->rank);
    }
    weft__run_spread(c, &g, 0);
}
static weft_tensor *permute_back(const weft_call *c, weft_tensor *dy, int i)
{
    const order *o = c->attributes;
    order back = *o;
    (void)i;
    for (int k = 0; k < c->x[0]->f.rank; k++)
        back.axis[o->axis[k]] = k;
    return APPLY_WITH(c->op, back, dy);
}
static void describe_order(const weft_call *c, char *text, size_t size)
{
    const order *o = c->attributes;
    char axes[2 * WEFT_RANK + 1] = "";
    for (int i = 0; i < c->x[0]->f.rank; i++)
        axes[2 * i] = (char)('0' + o->axis[i]), axes[2 * i + 1] = i + 1 < c->x[0]->f.rank ? ' ' : 0;
    snprintf(text, size, "axes=%s", axes);
}
static const weft_op op_permute = LINEAR_RECORD("permute", WEFT_PLAIN, permute_shape, permute_run,
                                                permute_back, describe_order);

weft_tensor *weft_permute(weft_tensor *x, const int *axes)
{
    order o = { .one = 0 };
    unsigned seen = 0;
    if (!x || weft__handle_error(x->w, x) || (x->f.rank && !axes))
        return weft__failed(x, WEFT_EARG, "permute", "expected a tensor and one entry for each axis");
    for (int i = 0, rank = x->f.rank; i < rank; i++) {
        int axis = axes[i] < 0 && axes[i] >= -rank ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || seen >> axis & 1)
            return weft__failed(x, WEFT_EARG, "permute",
                                "axis %d at position %d; expected each of 0 .. %d once", axes[i], i,
                                rank - 1);
        seen |= 1u << axis;
        o.axis[i] = axis;
    }
    return APPLY_WITH(&op_permute, o, x);
}

static void describe_swap(const weft_call *c, char *text, size_t size)
{
    const order *o = c->attributes;
    snprintf(text, size, "axis=%d, other=%d", o->one, o->other);
}
static const weft_op op_transpose = LINEAR_RECORD("transpose", WEFT_PLAIN, permute_shape, permute_run,
                                                  permute_back, describe_swap);

weft_tensor *weft_transpose(weft_tensor *x, int axis, int other)
{
    if (!weft__find_axis(x, &axis, "transpose") || !weft__find_axis(x, &other, "transpose"))
        return weft__inert_of(x);
    order o = { .one = axis, .other = other };
    for (int i = 0; i < x->f.rank; i++)
        o.axis[i] = i == axis ? other : i == other ? axis : i;
    return APPLY_WITH(&op_transpose, o, x);
}

/* ---- repeat: adds an axis of size 1, broadcasts along it, merges it ---- */
static weft_tensor *repeated(weft_tensor *x, int axis, int64_t times, bool before, const char *name)
{
    if (!weft__find_axis(x, &axis, name))
        return weft__inert_of(x);
    if (times < 0 || x->f.rank == WEFT_RANK || (x->f.batch && axis == 0))
        return weft__failed(x, WEFT_ESHAPE, name,
                            "axis %d, %lld times; expected a tensor of rank 1 .. 5, 0 times or more, and an "
                            "axis other than ragged rows",
                            axis, (long long)times);
    weft__form many, end = x->f;
    int fresh = axis + !before;                  /* position of the new axis */
    if (__builtin_mul_overflow(end.size[axis], times, &end.size[axis]))
        return weft__failed(x, WEFT_ESHAPE, name, "%lld times: too many elements", (long long)times);
    weft_tensor *one = weft__insert_axis(x, fresh), *y;
    many = one->f;
    many.size[fresh] = times;
    y = weft__spread_to(one, &many);
    if (y->f.batch)
        weft__copy_layout(&end, &y->f);
    return weft__view(y, &end);
}

weft_tensor *weft_tile(weft_tensor *x, int axis, int64_t times)
{
    return repeated(x, axis, times, true, "tile");
}
weft_tensor *weft_repeat_interleave(weft_tensor *x, int axis, int64_t times)
{
    return repeated(x, axis, times, false, "repeat_interleave");
}
