/* derivative.c - a planted bug: the derivative of x^3 is wrong by 1 in 10,000. weft_gradcheck must find
 * it. */
#include "../check.h"

static bool cube_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return true;
}

static void cube_forward(weft_call *c)
{
    weft_real *y = weft_op_data(c->y[0]), *x = weft_op_data(c->x[0]);
    for (int64_t i = 0; i < weft_numel(c->x[0]); i++)
        y[i] = x[i] * x[i] * x[i];
}

static weft_tensor *cube_backward(const weft_call *c, weft_tensor *dy, int i)
{
    (void)i;
    return weft_mul(dy, weft_scale(weft_square(c->x[0]), (weft_real)3.0003));
}

static const weft_op cube = {
    .name = "cube", .shape = cube_shape, .forward = cube_forward, .backward = cube_backward
};

static weft_tensor *loss(weft_tensor *const *x, void *user)
{
    (void)user;
    return weft_sum_all(weft_op_apply(&cube, x, 1, NULL, 0));
}

Test(planted, derivative)
{
    weft_real    v[6];
    weft        *w = open_on(WEFT_REF);
    weft_tensor *x = weft_reals(w, dice_fill(v, 6, .5, 2), WEFT_SHAPE(2, 3));
    double       off = weft_gradcheck(loss, &x, 1, 1, NULL);
    OK(w);
    cr_assert(off <= 1e-7, "gradcheck: off by %.1e", off);
    CLEAN(w);
}
