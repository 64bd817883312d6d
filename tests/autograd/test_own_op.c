/* test_own_op.c - tests operators that a program defines. Their raw functions get host memory wherever the
 * tensors are, or device memory on request. Gradients arrive as for library operators. */
#include "tests/check.h"
#include "autograd/tape.h"

static int ran, host_copies, in_place;  /* number of forward runs, and observations of the last one */

/* ---- the operator of the tutorial: x |x| ---- */
static bool like_x(weft_call *c)
{
    for (int k = 0; k < c->m; k++)
        weft_op_like(c->y[k], c->x[0]);
    return weft_dtype_of(c->x[0]) == WEFT_REAL || weft_op_refuse(c, "expected reals");
}
static void signed_square_run(weft_call *c)
{
    const weft_real *x = weft_op_data(c->x[0]);
    weft_real *y = weft_op_data(c->y[0]);
    ran++, host_copies = c->host && x != c->x[0]->data && y != c->y[0]->data;
    in_place = x == c->x[0]->data && y == c->y[0]->data;
    cr_assert(x == weft_op_data(c->x[0]) && y == weft_op_data(c->y[0]), "asked twice, it is the same");
    for (int64_t i = 0; i < weft_numel(c->x[0]); i++)
        y[i] = x[i] < 0 ? -x[i] * x[i] : x[i] * x[i];
}
static weft_tensor *signed_square_back(const weft_call *c, weft_tensor *dy, int i)
{
    (void)i;
    return weft_mul(dy, weft_scale(weft_abs(c->x[0]), 2));
}
static const weft_op signed_square = {
    .name = "signed_square", .shape = like_x, .forward = signed_square_run, .backward = signed_square_back
};
static weft_tensor *squared(weft_tensor *const *x, void *user)
{
    return (void)user, weft_sum_all(weft_op_apply(&signed_square, x, 1, NULL, 0));
}
static double by_hand(double x) { return x < 0 ? -x * x : x * x; }

static void right_everywhere(weft_tensor *x)
{
    weft_real want[64], slope[64], *of = numbers(x);
    int64_t n = weft_numel(x);
    for (int64_t i = 0; i < n; i++)
        want[i] = (weft_real)by_hand((double)of[i]), slope[i] = (weft_real)(2 * fabs((double)of[i]));
    weft_tensor *y = weft_op_apply(&signed_square, &x, 1, NULL, 0), *dx;
    weft_gradients(y, WEFT_LIST(x), &dx);
    cr_assert(weft_layout_of(y) == weft_layout_of(x) && weft_layout_of(dx) == weft_layout_of(x));
    close_to("forward", numbers(y), want, n, TOL(1e-15, 1e-6));
    close_to("backward", numbers(dx), slope, n, TOL(1e-15, 1e-6));
}

TABLE_TEST(own_op, gets_host_memory_on_every_device)
{
    static const int32_t len[] = { 3, 0, 5, 2 };
    weft_real rows[20];
    weft_lengths lengths = { .n = 4, .len = len };
    weft_tensor *r = weft_ragged(w, dice_fill(rows, 20, -2, 2), 2, &lengths);
    int32_t row[] = { 0, 0, 1, 0 }, column[] = { 0, 3, 0, 3 };
    right_everywhere(weft_reals(w, rows, WEFT_SHAPE(4, 5)));
    right_everywhere(weft_reals(w, rows, WEFT_SHAPE(1)));
    right_everywhere(weft_zeros(w, WEFT_SHAPE(3, 0)));
    right_everywhere(r);
    right_everywhere(weft_to_layout(r, WEFT_PACKED));
    right_everywhere(weft_ragged(w, NULL, 2, &(weft_lengths){ .n = 0 }));
    weft_tensor *in_rows = weft_to_rows(r, &(weft_placement){ 2, 5, row, column }),
                *y = weft_op_apply(&signed_square, &in_rows, 1, NULL, 0);
    same_bits("rows", numbers(y), numbers(weft_op_apply(&signed_square, &r, 1, NULL, 0)), 20);
    bool on_host = w->dev.k->synchronous;
    cr_assert(on_host ? in_place && !host_copies : host_copies, "%s", weft_device_name(w));
}

TABLE_TEST(own_op, has_second_derivatives)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ -2, -1, 1, 2 }, WEFT_SHAPE(4));
    cr_assert_lt(weft_gradcheck(squared, WEFT_LIST(x), 1, NULL), TOL(1e-8, 2e-2));
    cr_assert_lt(weft_gradcheck(squared, WEFT_LIST(x), 2, NULL), TOL(1e-7, 2e-2));
}

/* ---- raw forward and backward: y = a b k, k ints; the square of b is kept for the backward ---- */
static bool product_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]), weft_op_like(c->y[1], c->x[1]);
    return true;
}
static void product_run(weft_call *c)
{
    const weft_real *a = weft_op_data(c->x[0]), *b = weft_op_data(c->x[1]);
    const int32_t *k = weft_op_int_data(c->x[2]);
    weft_real *y = weft_op_data(c->y[0]), *kept = weft_op_data(c->y[1]);
    for (int64_t i = 0; i < weft_numel(c->x[0]); i++)
        y[i] = a[i] * b[i] * (weft_real)k[i], kept[i] = b[i] * (weft_real)k[i];
}
static void product_fused(const weft_call *c)
{
    const weft_real *dy = weft_op_dy(c, 0), *a = weft_op_data(c->x[0]), *bk = weft_op_data(c->y[1]);
    const int32_t *k = weft_op_int_data(c->x[2]);
    bool add;
    cr_assert(dy && !weft_op_dy(c, 1) && !weft_op_dx(c, 2, &add));
    for (int i = 0; i < 2; i++) {
        weft_real *dx = weft_op_dx(c, i, &add);
        for (int64_t j = 0; dx && j < weft_numel(c->x[0]); j++)
            dx[j] = (add ? dx[j] : 0) + dy[j] * (i ? a[j] * (weft_real)k[j] : bk[j]);
    }
}
static const weft_op product = { .name = "product",
                                 .results = 2,
                                 .shape = product_shape,
                                 .forward = product_run,
                                 .fused = product_fused };

static weft_tensor *two_uses(weft_tensor *a, weft_tensor *b, weft_tensor *k, bool own)
{
    if (!own)
        return weft_mul(weft_add(weft_mul(a, b), weft_mul(a, a)), weft_to_reals(k));
    return weft_add(weft_op_apply(&product, WEFT_LIST(a, b, k), NULL, 0),
                    weft_op_apply(&product, WEFT_LIST(a, a, k), NULL, 0));
}

static void raw_gradients(weft *w, weft_tensor *a, weft_tensor *b, weft_tensor *k)
{
    weft_tensor *got[2], *want[2], *y[2];
    bool was = weft_set_grad_enabled(w, true);
    for (int own = 0; own < 2; own++) {
        y[own] = two_uses(a, b, k, own);
        weft_set_grad_enabled(w, false);         /* makes the backward raw */
        weft_gradients(y[own], WEFT_LIST(a, b), own ? got : want);
        weft_set_grad_enabled(w, true);
    }
    weft_set_grad_enabled(w, was);
    close_to("y", numbers(y[1]), numbers(y[0]), weft_numel(y[0]), TOL(1e-14, 1e-5));
    for (int i = 0; i < 2; i++)
        close_to("dx", numbers(got[i]), numbers(want[i]), weft_numel(a), TOL(1e-14, 1e-5));
}

TABLE_TEST(own_op, raw_gradients_add_to_existing_ones)
{
    static const int32_t len[] = { 2, 0, 3 }, k[] = { 2, -1, 3, 0, 1 };
    weft_real a[5], b[5];
    weft_lengths l = { .n = 3, .len = len };
    dice_fill(a, 5, -1, 1), dice_fill(b, 5, -1, 1);
    weft_tensor *ints = weft_ints(w, k, WEFT_SHAPE(5));
    raw_gradients(w, weft_reals(w, a, WEFT_SHAPE(5)), weft_reals(w, b, WEFT_SHAPE(5)), ints);
    raw_gradients(w, weft_ragged(w, a, 0, &l), weft_to_layout(weft_ragged(w, b, 0, &l), WEFT_PACKED),
                  weft_ragged_ints(w, k, &l));
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(5), (weft_init){ WEFT_INIT_UNIFORM, -1, 1 });
    for (int i = 0; i < 2; i++)              /* two losses add to one gradient */
        weft_backward(weft_sum_all(two_uses(p, weft_reals(w, b, WEFT_SHAPE(5)), ints, true)));
    weft_real want[5], *of = numbers(p);
    for (int i = 0; i < 5; i++)
        want[i] = 2 * (weft_real)k[i] * (b[i] + 2 * of[i]);
    close_to("parameter", numbers(weft_grad(p)), want, 5, TOL(1e-14, 1e-5));
}

/* ---- an operator whose backward runs directly into the gradient ---- */
static void twice_run(weft_call *c)
{
    const weft_real *x = weft_op_data(c->x[0]);
    weft_real *y = weft_op_data(c->y[0]);
    for (int64_t i = 0; i < weft_numel(c->x[0]); i++)
        y[i] = (c->add ? y[i] : 0) + 2 * x[i];
}
static weft_tensor *twice_back(const weft_call *c, weft_tensor *dy, int i)
{
    return (void)i, weft_op_apply(c->op, &dy, 1, NULL, 0);
}
static const weft_op twice = { .name = "twice",
                               .adds = true,
                               .in_place = true,
                               .shape = like_x,
                               .forward = twice_run,
                               .backward = twice_back };

TABLE_TEST(own_op, adds_to_an_existing_gradient)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, -2, 3 }, WEFT_SHAPE(3)), *dx;
    weft_tensor *y = weft_add(weft_op_apply(&twice, &x, 1, NULL, 0),
                              weft_square(weft_op_apply(&twice, &x, 1, NULL, 0)));
    weft_set_grad_enabled(w, false);
    weft_gradients(y, WEFT_LIST(x), &dx);    /* 2 + 8 x */
    weft_set_grad_enabled(w, true);
    same_bits("dx", numbers(dx), ((weft_real[]){ 10, -14, 26 }), 3);
}

/* ---- an operator that starts kernels ---- */
static void on_device_run(weft_call *c)
{
    weft__device *d = &c->x[0]->w->dev;
    cr_assert(!c->host && weft_op_data(c->x[0]) == c->x[0]->data && weft_op_data(c->y[0]) == c->y[0]->data);
    d->k->scale(d, weft_numel(c->x[0]), 3, weft_op_data(c->x[0]), weft_op_data(c->y[0]), false);
}
static void on_device_fused(const weft_call *c)
{
    bool add;
    weft__device *d = &c->x[0]->w->dev;
    const weft_real *dy = weft_op_dy(c, 0);
    weft_real *dx = weft_op_dx(c, 0, &add);
    cr_assert(dy == weft__node_of(c->y[0])->grad->data);
    if (dx)
        d->k->scale(d, weft_numel(c->x[0]), 3, dy, dx, add);
}
static const weft_op on_device = { .name = "on_device",
                                   .device = true,
                                   .shape = like_x,
                                   .forward = on_device_run,
                                   .fused = on_device_fused };

TABLE_TEST(own_op, gets_device_memory_on_request)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, -2, 3 }, WEFT_SHAPE(3)), *dx;
    weft_tensor *y = weft_op_apply(&on_device, &x, 1, NULL, 0);
    weft_set_grad_enabled(w, false);
    weft_gradients(y, WEFT_LIST(x), &dx);
    weft_set_grad_enabled(w, true);
    same_bits("y", numbers(y), ((weft_real[]){ 3, -6, 9 }), 3);
    same_bits("dx", numbers(dx), ((weft_real[]){ 3, 3, 3 }), 3);
}

/* ---- an empty input, which may share its address with another one ---- */
static bool like_last(weft_call *c) { return weft_op_like(c->y[0], c->x[c->n - 1]), true; }
static void last_run(weft_call *c)
{
    const weft_real *empty = weft_op_data(c->x[0]), *x = weft_op_data(c->x[1]);
    weft_real *y = weft_op_data(c->y[0]);
    cr_assert(!c->x[0]->w->dev.k->synchronous || empty == c->x[0]->data);
    for (int64_t i = 0; i < weft_numel(c->x[1]); i++)
        y[i] = x[i] + 1;
}

TABLE_TEST(own_op, accepts_an_empty_input_with_another)
{
    static const weft_op last = { .name = "last", .shape = like_last, .forward = last_run };
    weft_tensor *empty = weft_zeros(w, WEFT_SHAPE(0)), *x = weft_full(w, 2, WEFT_SHAPE(1000));
    empty->data = x->data;
    weft_real *y = numbers(weft_op_apply(&last, WEFT_LIST(empty, x), NULL, 0));
    cr_assert(y[0] == 3 && y[999] == 3);
}

/* ---- misuse ---- */
static void beside_run(weft_call *c)             /* accesses a tensor that is not part of the call */
{
    const weft_real *more = weft_op_data(*(weft_tensor *const *)c->attributes);
    for (int i = 0; i < 3; i++)
        weft_op_data(c->y[0])[i] = weft_op_data(c->x[0])[i] + more[i];
}

TABLE_TEST(own_op, refuses_other_tensors_and_a_missing_function)
{
    static const weft_op beside = { .name = "beside", .shape = like_x, .forward = beside_run };
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, 2, 3 }, WEFT_SHAPE(3)), *more = weft_scale(x, 10);
    weft_tensor *y = weft_op_apply(&beside, &x, 1, &more, sizeof more);
    same_bits("sum", numbers(y), ((weft_real[]){ 11, 22, 33 }), 3);
    bool on_host = w->dev.k->synchronous;
    cr_assert_eq(weft_op_data(x), on_host ? x->data : NULL);
    if (!on_host)
        FAILS(w, WEFT_EARG, "op_data: outside a raw function; expected weft_read");
}

TABLE_TEST(own_op, does_not_run_without_memory, .init = unchecked)
{
    static int64_t on_host;
    int64_t failed = 0;
    for (bool done = false; !done; failed++) {  /* fails each request in turn, also those for copies */
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(100));
        int before = ran;
        fail_take(w, failed + 1);
        weft_op_apply(&signed_square, &x, 1, NULL, 0);
        done = takes_left(w);
        fail_take(w, 0);
        cr_assert_eq(ran, before + done);
        if (!done)
            FAILS(w, WEFT_ENOMEM, "out of memory");
        weft_clear(w);
    }
    if (w->dev.k->synchronous)
        on_host = failed;
    else
        cr_assert_eq(failed, on_host + 1, "the copies must share one allocation");
}

TABLE_TEST(own_op, steady_step_allocates_nothing, .init = unchecked)
{
    int64_t settled = 0;
    for (int step = 0; step < 8; step++) {
        weft_tensor *x = weft_full(w, 3, WEFT_SHAPE(1000)), *dx;
        weft_gradients(squared(&x, NULL), &x, 1, &dx);
        cr_assert_eq(numbers(dx)[999], 6);
        weft_clear(w);
        settled = step == 3 ? weft_usage_of(w).allocations : settled;
    }
    cr_assert_eq(weft_usage_of(w).allocations, settled, "%s", weft_device_name(w));
}
