/* softmax.c - softmax, log-softmax and logsumexp along an axis, or over the tokens of each sequence, with an
 * optional mask. Where the mask is 0, result and gradient are 0. An unrecorded backward pass uses the fused
 * kernel of softmax, a recorded one the operators. */
#include "autograd/op.h"

static weft_tensor *run_on(weft__softmax kind, const weft__along *a, weft_tensor *x, weft_tensor *mask);

static weft_tensor *mask_input(const weft_call *c) { return c->n > 1 ? c->x[1] : NULL; }
static void run_as(weft_call *c, weft__softmax kind)
{
    RUN(c, softmax, SEGMENTS(c), kind, c->n > 1 ? X(c, 1) : NULL, X(c, 0), Y(c, 0));
}

static bool check(weft_call *c)
{
    ((weft__along *)(uintptr_t)c->attributes)->whole = c->x[0]->f;
    if (!is_real(c, 0) || (c->n > 1 && !weft__forms_equal(&c->x[0]->f, &c->x[1]->f)))
        return weft_op_refuse(c, "expected reals, and a mask of the same shape");
    return true;
}

static bool shape_of_input(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return check(c);
}

/* Returns the softmax by operators, with the sum repeated along its run. */
static weft_tensor *softmax_over_axis(weft_tensor *x, const weft__along *a)
{
    return weft__expand(weft__reduce(x, a), a);
}
static weft_tensor *masked_gradient(const weft_call *c, weft_tensor *dy)    /* dy where the mask is not 0 */
{
    return mask_input(c) ? weft_where(mask_input(c), dy, weft_scalar(dy->w, 0)) : dy;
}

/* ---- softmax: dx = y (dy - sum(dy y)) ---- */
static void softmax_run(weft_call *c) { run_as(c, WEFT__SOFTMAX); }
static weft_tensor *softmax_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft__along a = weft__current_along(c);
    weft_tensor *y = c->y[0];
    dy = masked_gradient(c, dy);
    return i ? NULL : weft__given_times(weft_sub(dy, softmax_over_axis(weft__given_times(dy, y), &a)), y);
}
static void softmax_fused(const weft_call *c)
{
    bool add;
    real *dx = weft_op_dx(c, 0, &add);
    if (dx)
        RUN(c, softmax_back, SEGMENTS(c), Y(c, 0), weft_op_dy(c, 0), dx, add);
}

/* ---- log-softmax: dx = dy - softmax(x) sum(dy) ---- */
static void log_softmax_run(weft_call *c) { run_as(c, WEFT__LOG_SOFTMAX); }
static weft_tensor *log_softmax_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft__along a = weft__current_along(c);
    if (i)
        return NULL;
    dy = masked_gradient(c, dy);
    return weft_sub(
        dy, weft__given_times(softmax_over_axis(dy, &a), run_on(WEFT__SOFTMAX, &a, c->x[0], mask_input(c))));
}

/* ---- logsumexp: dx = softmax(x) dy ---- */
static bool logsumexp_shape(weft_call *c) { return check(c) && weft__reduced_shape(c); }
static void logsumexp_run(weft_call *c) { run_as(c, WEFT__LOG_SUM); }
static weft_tensor *logsumexp_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft__along a = weft__current_along(c);
    return i ? NULL :
               weft__given_times(weft__expand(dy, &a), run_on(WEFT__SOFTMAX, &a, c->x[0], mask_input(c)));
}

#define RECORD(its_name, its_shape, run, back, its_fused, its_unread)                           \
    {                                                                                          \
        .name = its_name, .layout = WEFT__ALONG, .unread = its_unread, .shape = its_shape,     \
        .forward = run, .backward = back, .fused = its_fused, .describe = weft__describe_along \
    }
static const weft_op records[] = {
    RECORD("softmax", shape_of_input, softmax_run, softmax_back, softmax_fused, 1),
    RECORD("log_softmax", shape_of_input, log_softmax_run, log_softmax_back, NULL, 0),
    RECORD("logsumexp", logsumexp_shape, logsumexp_run, logsumexp_back, NULL, 0),
};

static weft_tensor *run_on(weft__softmax kind, const weft__along *a, weft_tensor *x, weft_tensor *mask)
{
    const weft_op *op = &records[kind];
    return mask ? APPLY_WITH(op, *a, x, mask) : APPLY_WITH(op, *a, x);
}

static weft_tensor *softmax_of(weft__softmax kind, weft_tensor *x, int axis, weft_tensor *mask)
{
    const char *name = records[kind].name;
    if (!weft__find_axis(x, &axis, name))
        return mask ? weft__failed_of(LIST(x, mask), WEFT_EARG, name, "expected a tensor and its mask") :
                      weft__inert_of(x);
    weft__along a = weft__along_axis(x, axis, true);
    return run_on(kind, &a, x, mask);
}

weft_tensor *weft_softmax(weft_tensor *x, int axis, weft_tensor *mask)
{
    return softmax_of(WEFT__SOFTMAX, x, axis, mask);
}
weft_tensor *weft_log_softmax(weft_tensor *x, int axis, weft_tensor *mask)
{
    return softmax_of(WEFT__LOG_SOFTMAX, x, axis, mask);
}
weft_tensor *weft_logsumexp(weft_tensor *x, int axis, weft_tensor *mask)
{
    return softmax_of(WEFT__LOG_SUM, x, axis, mask);
}
