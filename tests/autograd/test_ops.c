/* test_ops.c - every operator of op_cases.def: gradients and gradients of gradients against central
 * differences in the double build (<= 1e-7, <= 1e-5, relative to max(1, norm)), on every kernel table and
 * random shapes. A kernel that is spoiled a little in its derivative is caught. */
#include "op_inputs.h"

typedef struct { function *f; } probed;

static weft_tensor *scalar_of(weft_tensor *const *x, void *user)  /* sum y sin(1 + k): sees order and sign */
{
    weft_tensor *y = ((probed *)user)->f(x, NULL);
    weft *w = weft_context_of(x[0]);
    if (!weft_ok(w) || !y)
        return y;
    weft_real *p = weft__take(w, WEFT__IN_KEEP, weft__bytes(&y->f));
    for (int64_t k = 0; p && k < weft_numel(y); k++)
        p[k] = (weft_real)sin(1 + (double)k);
    return p ? weft_sum_all(weft_mul(y, weft__tensor(w, &y->f, p))) : y;
}

static double error_of(weft *w, const op_case *c, bool second)
{
    weft_tensor *x[4];
    probed p = { c->f };
    int n = inputs(w, c, x, WEFT_PLAIN);
    double e = 0;
    /* slow twice over: that it runs is for here */
    if (CHECK_SANITIZED && getenv("WEFT_SMALL")) {
        weft_tensor *of = scalar_of(x, &p), *g[4];
        bool was = weft_set_grad_enabled(w, false);
        weft_gradients(of, x, n, g);
        weft_set_grad_enabled(w, was);
    } else
        e = weft_gradcheck(scalar_of, x, n, 1 + second, &p);
    cr_expect(weft_ok(w), "%s: %s", c->name, weft_error_message(w));
    weft_clear(w);
    return e;
}

static void check_all(bool second, double allowed)
{
    FOR_DEVICES(w)
        FOR_CASES(c)
            for (int r = 0; r < rounds(3, 100) && c.orders >= 1 + second; r++) {
                dice_seed((uint64_t)(1 + case_i + 200 * c.variant + 1000 * r));
                draw_round();
                double e = error_of(w, &c, second);
                cr_expect(e <= allowed, "%s, shapes %d, round %d on %s: off by %.2e", c.name, c.variant, r,
                          weft_device_name(w), e);
            }
}

Test(ops, gradients)        { check_all(false, TOL(1e-7, 3e-2)); }
Test(ops, second_gradients) { if (sizeof(weft_real) == 8) check_all(true, 1e-5); }

/* ---- the checks see ---- */
static weft__kernels bad;
static const weft__kernels *fine;
static int bad_f, bad_order;

static void spoil(weft__device *d, int64_t n, weft_real *x)
{
    if (n)
        fine->scale(d, n, (weft_real)1.001, x, x, false);
}
static void bad_unary(weft__device *d, int f, int order, int64_t n, real p, real q, const real *x,
                      const real *y, const real *g, real *out, bool add)
{
    fine->unary(d, f, order, n, p, q, x, y, g, out, add);
    if (f == bad_f && order == bad_order)
        spoil(d, n, out);
}
static void bad_softmax_back(weft__device *d, const weft__segments *s, const real *y, const real *dy,
                             real *dx, bool add)
{
    fine->softmax_back(d, s, y, dy, dx, add);
    spoil(d, s->count * s->length * s->inner, dx);
}
static void bad_layer_norm_back(weft__device *d, const weft__layer_norm *n)
{
    fine->layer_norm_back(d, n);
    if (n->dgain)
        spoil(d, n->groups * n->width, n->dgain);
}
static void bad_attention_back(weft__device *d, const weft__attention *a)
{
    fine->attention_back(d, a);
    if (a->dk_)
        spoil(d, a->keys * a->heads * a->dk, a->dk_);
}
static void bad_scatter(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x,
                        const int32_t *index, real *y, bool add)
{
    fine->scatter(d, rows - 1, width, n, x, index, y, add);            /* forgets the last row */
}
static void bad_spread(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    weft__segments less = *s;
    less.inner = s->inner;
    fine->segment_spread(d, &less, x, y, add);
    if (!s->offset && s->count && s->length)
        spoil(d, s->inner, y);                                    /* the first row */
}
static void bad_place(weft__device *d, const weft__segments *s, const real *x, const int32_t *at, real *y)
{
    fine->segment_place(d, s, x, at, y);
    fine->segment_place(d, s, x, at, y);                          /* twice */
}
static void bad_cumsum(weft__device *d, const weft__segments *s, bool reverse, const real *x, real *y,
                       bool add)
{
    (void)reverse;
    fine->cumsum(d, s, false, x, y, add);                         /* forgets to turn round */
}
static void bad_column(weft__device *d, int64_t rows, int64_t width, const real *x, const int32_t *column,
                       real *y)
{
    fine->place(d, rows, width, x, column, y);
    spoil(d, rows * width, y);
}
static void bad_gemm(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    weft__product less = *p;
    /* a weight's gradient without the last row */
    less.k -= p->ta && p->k > 1;
    fine->gemm(d, &less, a, b, c);
}

static op_case case_of(const char *name, int variant)
{
    FOR_CASES(c)
        if (!strcmp(c.name, name) && c.variant == variant)
            return c;
    cr_assert_fail("no case %s", name);
    return operators[0];
}

/* good kernels pass, bad ones do not */
static void must_see(weft *w, const char *name, int variant, bool second)
{
    op_case c = case_of(name, variant);
    double with[2];
    fine = w->dev.k;
    for (int spoiled = 0; spoiled < 2; spoiled++) {
        w->dev.k = spoiled ? &bad : fine;
        dice_seed(7);
        sequences = 2, lens[0][0] = 3, lens[0][1] = 2, lens[1][0] = 2, lens[1][1] = 4;
        for (int e = 'a'; e <= 'd'; e++)
            extent_of[e] = 3;
        for (int e = '0'; e <= '9'; e++)
            extent_of[e] = e - '0';
        with[spoiled] = error_of(w, &c, second);
    }
    w->dev.k = fine;
    cr_expect(with[0] <= (second ? 1e-5 : 1e-7), "%s: off by %.2e without a mutation", name, with[0]);
    cr_expect(!(with[1] <= (second ? 1e-5 : 1e-7)), "%s: a mutated derivative passes with %.2e", name,
              with[1]);
}

Test(ops, mutated_derivatives_are_caught)
{
    static const char *const unary[] = { "neg",    "exp",     "log",        "sqrt",       "rsqrt",
                                         "square", "abs",     "reciprocal", "sin",        "cos",
                                         "tanh",   "sigmoid", "relu",       "leaky_relu", "elu",
                                         "gelu",   "silu",    "softplus",   "clamp",      "pow" };
    if (sizeof(weft_real) == 4)
        return;                                  /* float cannot see a factor of 1.001 */
    weft *w = open_on(WEFT_REF);
    bad = *w->dev.k, bad.unary = bad_unary;
    for (bad_f = 0; bad_f < COUNT(unary); bad_f++) {
        bad_order = 1, must_see(w, unary[bad_f], 0, false);
        bad_order = 2;
        if (!strchr("nalr", unary[bad_f][0]) || !strcmp(unary[bad_f], "rsqrt") ||
            !strcmp(unary[bad_f], "log"))
            if (strcmp(unary[bad_f], "clamp"))
                must_see(w, unary[bad_f], 0, true); /* those whose second derivative is not 0 */
    }
    static const struct {
        const char *name;
        int variant;
        size_t at;
        void (*kernel)(void);
    } others[] = {
#define BAD(name, kernel, function) BAD_OF(name, 0, kernel, function)
#define BAD_OF(name, variant, kernel, function) \
    { name, variant, offsetof(weft__kernels, kernel), (void (*)(void))function }
        BAD("softmax", softmax_back, bad_softmax_back),
        BAD("layer_norm", layer_norm_back, bad_layer_norm_back),
        BAD("attention", attention_back, bad_attention_back),
        BAD("index_select", scatter, bad_scatter),
        BAD("sum_1", segment_spread, bad_spread),
        BAD("max", segment_place, bad_place),
        BAD("cumsum", cumsum, bad_cumsum),
        BAD("take_along", place, bad_column),
        BAD("matmul", gemm, bad_gemm),
        BAD_OF("matmul", 3, gemm, bad_gemm)
    };
    for (int i = 0; i < COUNT(others); i++) {
        bad = *w->dev.k;
        memcpy((char *)&bad + others[i].at, &others[i].kernel, sizeof others[i].kernel);
        must_see(w, others[i].name, others[i].variant, false);
    }
    CLEAN(w);
}

/* ---- what the walk does beyond one operator ---- */
TABLE_TEST(ops, walks)
{
    weft_tensor *x = weft_scalar(w, 3), *g, *y = weft_mul(x, weft_detach(weft_square(x)));
    weft_gradients(y, &x, 1, &g);
    cr_assert_eq(weft_item(g), 9);           /* x^2 is a constant there */
    weft_gradients(y, (weft_tensor *[]){ y }, 1, &g);
    cr_assert_eq(weft_item(g), 1);
    weft_gradients(x, &x, 1, &g);
    cr_assert_eq(weft_item(g), 1);
    weft_tensor *two[2], *unused = weft_scalar(w, 1);
    weft_gradients(y, (weft_tensor *[]){ x, unused }, 2, two);
    cr_assert_eq(weft_item(two[0]), 9);
    cr_assert_eq(weft_item(two[1]), 0);      /* no way there */
    weft_set_grad_enabled(w, false);
    weft_tensor *off = weft_square(x);
    weft_set_grad_enabled(w, true);
    weft_gradients(off, &x, 1, &g);
    FAILS(w, WEFT_EARG, "not the result of an operator on the tape");
}

/* The list of results may be the list that was asked for, or overlap it. */
TABLE_TEST(ops, gradients_into_the_list_asked_for)
{
    for (int recorded = 0; recorded < 2; recorded++) {
        weft_tensor *x[3] = { weft_scalar(w, 3), weft_scalar(w, 5), NULL }, *y = weft_mul(x[0], x[1]);
        void (*of)(weft_tensor *, weft_tensor *const *, int64_t, weft_tensor **) =
            recorded ? weft_gradients_recorded : weft_gradients;
        weft_tensor *again[] = { x[0], x[1], NULL };
        of(y, x, 2, x);
        cr_assert(weft_item(x[0]) == 5 && weft_item(x[1]) == 3);
        of(y, again, 2, again + 1);
        cr_assert(weft_item(again[1]) == 5 && weft_item(again[2]) == 3);
        weft_clear(w);
    }
}

/* What weft_gradients returns is a constant; recorded, it has gradients of its own, also under NO_GRAD. */
TABLE_TEST(ops, gradients_are_recorded_when_asked_for)
{
    weft_tensor *x = weft_scalar(w, 3), *y = weft_mul(x, weft_square(x)), *g, *second;
    int64_t entries = weft_usage_of(w).tape;
    weft_gradients(y, &x, 1, &g);
    cr_assert(weft_usage_of(w).tape == entries && weft_is_grad_enabled(w));
    weft_gradients(weft_add(weft_mul(x, g), y), &x, 1, &second);
    cr_assert_eq(weft_item(second), 27 + 27);
    weft_gradients(g, &x, 1, &second);
    FAILS(w, WEFT_EARG, "as results of weft_gradients are (weft_gradients_recorded records)");
    x = weft_scalar(w, 3), y = weft_mul(x, weft_mul(x, x));
    WEFT_NO_GRAD(w) {
        weft_gradients_recorded(y, &x, 1, &g);
        cr_assert(!weft_is_grad_enabled(w));
    }
    weft_gradients_recorded(g, &x, 1, &g);
    weft_gradients(g, &x, 1, &second);
    cr_assert(weft_item(g) == 18 && weft_item(second) == 6);
}

/* Attention over 128 tokens: a walk that is not recorded has no map of all pairs. */
Test(ops, gradients_take_little_memory, .init = unchecked)
{
    enum { T = 128, D = 8 };
    int64_t peak[2];
    static weft_real v[T * D];
    for (int recorded = 0; recorded < 2; recorded++) {
        weft *w = open_on(WEFT_CPU);
        dice_fill(v, T * D, -1, 1);
        weft_tensor *x = weft_ragged(w, v, D, &(weft_lengths){ .n = 1, .len = (int32_t[]){ T } }), *g;
        weft_attention_opts o = { .heads = 1 };
        weft_tensor *loss = weft_sum_all(weft_square(weft_attention(x, x, x, &o, NULL)));
        (recorded ? weft_gradients_recorded : weft_gradients)(loss, &x, 1, &g);
        peak[recorded] = weft_usage_of(w).host_peak;
        CLEAN(w);
    }
    cr_assert(4 * peak[0] < peak[1], "%lld bytes, recorded %lld", (long long)peak[0], (long long)peak[1]);
}

/* A comparison is a constant, also of what the network gives: as a mask it stops no walk. */
TABLE_TEST(ops, comparisons_have_no_gradient)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2, 3),
                                    (weft_init){ WEFT_INIT_CONSTANT, (weft_real).5, 0 }),
                *g[2], *x = weft_scalar(w, 2);
    weft_tensor *logits = weft_matmul(weft_full(w, 1, WEFT_SHAPE(4, 2)), p), *zero = weft_scalar(w, 0);
    weft_tensor *(*const all[])(weft_tensor *, weft_tensor *) = { weft_less,    weft_less_equal,
                                                                  weft_greater, weft_greater_equal,
                                                                  weft_equal,   weft_not_equal };
    for (int i = 0; i < COUNT(all); i++) {
        weft_tensor *mask = all[i](weft_max(logits, 1), zero);
        weft_backward(weft_mean_loss(weft_cross_entropy(logits, weft_ints(w, NULL, WEFT_SHAPE(4)),
                                                        &(weft_ce_opts){ .mask = mask })));
        OK(w);
        weft_gradients(all[i](weft_square(x), zero), (weft_tensor *[]){ x, zero }, 2, g);
        cr_assert_eq(weft_item(g[0]), 0);
        cr_assert_eq(weft_item(g[1]), 0);
    }
    weft_gradients(weft_mul(weft_greater(weft_tanh(x), zero), x), &x, 1, g);
    cr_assert_eq(weft_item(g[0]), 1);
}

TABLE_TEST(ops, backward_of_a_parameter_adds_ones)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(1), (weft_init){ WEFT_INIT_CONSTANT, 3, 0 });
    weft_backward(p);
    weft_backward(weft_square(p));
    weft_backward(p);
    cr_assert_eq(numbers(weft_grad(p))[0], 1 + 2 * 3 + 1);
    weft_freeze(m, "p", true);               /* which zeroes what was there */
    weft_backward(p);
    FAILS(w, WEFT_EARG, "backward: no parameter that is not frozen has led to the loss");
    cr_assert_eq(numbers(weft_grad(p))[0], 0);
}

/* ---- what is no loss ---- */
static weft_tensor *two(weft *w, weft_module **m)
{
    *m = weft_module_new(w, "m");
    return weft_parameter(*m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 3, 0 });
}

TABLE_TEST(ops, a_loss_has_one_element)
{
    weft_module *m;
    weft_tensor *p = two(w, &m), *y = weft_square(p), *g;
    weft_gradients(y, &p, 1, &g);
    cr_assert_eq(numbers(g)[1], 6);
    weft_backward(y);
    FAILS(w, WEFT_ESHAPE,
          "backward: the loss is [2]; one element is expected (weft_mean_loss, weft_sum_all)");
    weft_backward(p);
    FAILS(w, WEFT_ESHAPE, "backward: the loss is [2]; one element is expected");
    weft_backward(weft_reshape(weft_sum_all(weft_square(p)), WEFT_SHAPE(1, 1)));
    cr_assert(weft_ok(w) && numbers(weft_grad(p))[1] == 6, "%s", weft_error_message(w));
}

TABLE_TEST(ops, a_loss_is_gone_back_from_once)
{
    weft_module *m;
    weft_tensor *p = two(w, &m), *shared = weft_square(p), *loss = weft_sum_all(shared),
                *other = weft_mean_all(shared), *g;
    weft_gradients(loss, &p, 1, &g);
    weft_backward(loss);
    weft_gradients(loss, &p, 1, &g);
    weft_backward(other);
    cr_assert(weft_ok(w) && numbers(weft_grad(p))[0] == 6 + 3, "%s", weft_error_message(w));
    weft_backward(loss);
    FAILS(w, WEFT_EARG, "backward: a second time of the same loss");
    weft_backward(weft_sum_all(weft_square(p)));
    OK(w);
}

TABLE_TEST(ops, a_loss_depends_on_something_to_train)
{
    weft_module *m;
    weft_tensor *p = two(w, &m), *none;
    weft_backward(weft_sum_all(weft_square(weft_detach(p))));
    FAILS(w, WEFT_EARG, "backward: no parameter that is not frozen has led to the loss");
    weft_backward(weft_sum_all(weft_less(p, weft_scalar(w, 0))));
    FAILS(w, WEFT_EARG, "no parameter that is not frozen has led to the loss");
    weft_freeze(m, "*", true);
    weft_backward(weft_sum_all(weft_square(p)));
    FAILS(w, WEFT_EARG, "no parameter that is not frozen has led to the loss");
    weft_freeze(m, "*", false);
    none = weft_ragged(w, NULL, 2, &(weft_lengths){ .n = 0 });
    /* a batch of nothing has a gradient, of zeros */
    weft_backward(weft_sum_all(weft_mul(none, weft_reshape(p, WEFT_SHAPE(1, 2)))));
    cr_assert(weft_ok(w) && weft__node_of(p)->given && numbers(weft_grad(p))[0] == 0, "%s",
              weft_error_message(w));
}

/* The kernel's map (when nothing is recorded) is the operators'. */
TABLE_TEST(ops, attention_maps)
{
    int32_t nq[3] = { 2, 0, 3 }, nk[3] = { 4, 2, 1 };
    weft_real x[5 * 4], y[7 * 4];
    weft_tensor *q = weft_ragged(w, dice_fill(x, 20, -2, 2), 4, &(weft_lengths){ .n = 3, .len = nq }),
                *k = weft_ragged(w, dice_fill(y, 28, -2, 2), 4, &(weft_lengths){ .n = 3, .len = nk });
    for (int causal = 0; causal < 4; causal++) {
        weft_attention_opts o = { .heads = 2, .causal = (weft_causal)causal };
        weft_tensor *maps[2], *out[2];
        for (int recorded = 0; recorded < 2; recorded++) {
            weft_set_grad_enabled(w, recorded);
            out[recorded] = weft_attention(q, k, k, &o, &maps[recorded]);
        }
        cr_assert_eq(weft_numel(maps[0]), weft_numel(maps[1]));
        close_to("map", numbers(maps[0]), numbers(maps[1]), weft_numel(maps[1]), TOL(1e-13, 1e-6));
        close_to("result", numbers(out[0]), numbers(out[1]), weft_numel(out[1]), TOL(1e-13, 2e-6));
    }
}

/* ---- values: what the gradients cannot tell ---- */
static void equals(weft_tensor *y, int64_t n, const double *want)
{
    weft_real *got = numbers(y), w[64];
    cr_assert_eq(weft_numel(y), n);
    for (int64_t i = 0; i < n; i++)
        w[i] = (weft_real)want[i];
    close_to("value", got, w, n, TOL(1e-14, 1e-6));
}
#define IS(y, ...) \
    equals(y, (int64_t)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (double[]){ __VA_ARGS__ })
#define T(w, rank_and_shape, ...) weft_reals(w, (weft_real[]){ __VA_ARGS__ }, rank_and_shape)

TABLE_TEST(ops, values)
{
    weft_tensor *a = weft_reals(w, (weft_real[]){ 1, 2, 3, 4, 5, 6 }, WEFT_SHAPE(2, 3)),
                *b = weft_reals(w, (weft_real[]){ 3, 2, 1 }, WEFT_SHAPE(3));
    IS(weft_add(a, b), 4, 4, 4, 7, 7, 7);
    IS(weft_less(a, b), 1, 0, 0, 0, 0, 0);
    IS(weft_equal(a, b), 0, 1, 0, 0, 0, 0);
    IS(weft_not_equal(a, b), 1, 0, 1, 1, 1, 1);
    IS(weft_greater_equal(a, b), 0, 1, 1, 1, 1, 1);
    IS(weft_less_equal(a, b), 1, 1, 0, 0, 0, 0);
    IS(weft_minimum(a, b), 1, 2, 1, 3, 2, 1);
    IS(weft_maximum(a, b), 3, 2, 3, 4, 5, 6);
    IS(weft_sum(a, 0), 5, 7, 9);
    IS(weft_mean(a, 1), 2, 5);
    IS(weft_max(a, 0), 4, 5, 6);
    IS(weft_cumsum(a, 1), 1, 3, 6, 4, 9, 15);
    IS(weft_flip(a, 1), 3, 2, 1, 6, 5, 4);
    IS(weft_transpose(a, 0, 1), 1, 4, 2, 5, 3, 6);
    IS(weft_tile(a, 0, 2), 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6);
    IS(weft_tile(a, 1, 2), 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
    IS(weft_matmul_with(a, false, a, true), 14, 32, 32, 77);
    IS(weft_one_hot(weft_ints(w, (int32_t[]){ 1, -1, 0 }, WEFT_SHAPE(3)), 2), 0, 1, 0, 0, 1, 0);
    IS(weft_to_reals(weft_arange(w, 0, 3, 1)), 0, 1, 2);
    IS(weft_index_select(a, weft_ints(w, (int32_t[]){ 1, -1, 1 }, WEFT_SHAPE(3))), 4, 5, 6, 0, 0, 0, 4, 5, 6);
    IS(weft_where(weft_greater(a, weft_scalar(w, 3)), a, weft_scalar(w, 0)), 0, 0, 0, 4, 5, 6);
    IS(weft_reciprocal(weft_reals(w, (weft_real[]){ 0, 4 }, WEFT_SHAPE(2))), 0, .25);
    IS(weft_softmax(a, 1, weft_zeros(w, WEFT_SHAPE(2, 3))), 0, 0, 0, 0, 0, 0);
    IS(weft_full(w, 7, WEFT_SHAPE(2)), 7, 7);
}
