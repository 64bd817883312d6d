/* test_parameters.c - tests parameters and buffers: assigning, tying, freezing, and operations on all
 * gradients. */
#include "autograd/tape.h"
#include "tests/nn/trees.h"

/* ---- assigning ---- */
TABLE_TEST(parameters, assign_carries_a_value_over_steps)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *state = weft_buffer(m, "state", WEFT_SHAPE(2, 3)), *p = vector(m, "p", 2, zero);
    for (int i = 0; i < 5; i++) {
        weft_assign(state, weft_add(state, weft_full(w, 2, WEFT_SHAPE(2, 3))));
        weft_clear(w);
    }
    uint64_t version = m->w->tape->version;
    cr_assert(all_are(state, 10) && weft__node_of(state)->version == version);
    weft_assign(p, weft_reals(w, (weft_real[]){ 5, 6 }, WEFT_SHAPE(2)));
    cr_assert(numbers(p)[0] == 5 && numbers(p)[1] == 6 && weft__node_of(p)->version > version);
    version = m->w->tape->version;
    weft_assign_values(p, (weft_real[]){ 7, 8 }, 2);
    uint64_t now = weft__node_of(p)->version;
    cr_assert(numbers(p)[1] == 8 && now > version && weft__node_of(state)->version < now);
    weft_assign_values(state, (weft_real[]){ 1, 2, 3, 4, 5, 6 }, 6);
    weft_assign(state, state);
    cr_assert(numbers(state)[5] == 6);
}

CPU_TEST(parameters, invalid_assignments_are_refused)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2, 3), constant(1)),
                *buffer = weft_buffer(m, "b", WEFT_SHAPE(2, 3));
    weft_real row[6] = { 0 };
    for (int kind = 0; kind < 5; kind++) {
        weft_tensor *now = weft_zeros(w, WEFT_SHAPE(2, 3));
        weft_tensor *ragged = weft_ragged(w, row, 3, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 2 } });
        struct { weft_tensor *kept, *value; weft_status status; const char *part;
        } bad[] = { { p, weft_zeros(w, WEFT_SHAPE(3, 2)), WEFT_ESHAPE, "[3, 2]" },
                    { buffer, weft_zeros(w, WEFT_SHAPE(6)), WEFT_ESHAPE, "equal shapes" },
                    { p, weft_ints(w, NULL, WEFT_SHAPE(2, 3)), WEFT_ESHAPE, "ints" },
                    { buffer, ragged, WEFT_ESHAPE, "concat" },
                    { now, now, WEFT_EARG, "ends with the step" } };
        weft_assign(bad[kind].kept, bad[kind].value);
        FAILS(w, bad[kind].status, bad[kind].part);
    }
    weft_assign_values(p, row, 5);
    FAILS(w, WEFT_ESHAPE, "5 numbers to [2, 3]");
    weft_assign_values(p, NULL, 6);
    FAILS(w, WEFT_ESHAPE, "NULL");
    weft_assign_values(weft_zeros(w, WEFT_SHAPE(6)), row, 6);
    FAILS(w, WEFT_EARG, "ends with the step");
    cr_assert(all_are(p, 1) && all_are(buffer, 0));
}

/* ---- tying ---- */
TABLE_TEST(parameters, tied_names_share_value_and_gradient)
{
    weft_module *m = weft_module_new(w, "m"), *a = weft_submodule_new(m, "a"),
                *b = weft_submodule_new(m, "b");
    weft_tensor *p = vector(a, "p", 4, constant(3));
    weft_tie(b, "q", p);
    cr_assert(weft_find_parameter(m, "b.q") == p && weft_find_parameter(b, "q") == p);
    cr_assert(weft_parameter_count(m) == 1 && weft_parameter_numel(m) == 4 && weft_parameter_count(b) == 0);
    weft_backward(weft_sum_all(
        weft_add(weft_square(weft_find_parameter(m, "a.p")), weft_scale(weft_find_parameter(m, "b.q"), 5))));
    cr_assert(all_are(weft_grad(p), 2 * 3 + 5));
    weft_assign(weft_find_parameter(m, "b.q"), weft_full(w, 1, WEFT_SHAPE(4)));
    cr_assert(all_are(weft_find_parameter(m, "a.p"), 1));
    weft_clear(w);
}

CPU_TEST(parameters, incompatible_parameters_are_not_tied)
{
    weft_module *m = weft_module_new(w, "m"), *root = weft_module_new(w, "root");
    weft_tie(m, "q", vector(root, "p", 4, zero));
    FAILS(w, WEFT_EARG, "root.p; expected a parameter below the root m");
    weft_tie(m, "q", weft_buffer(m, "b", WEFT_SHAPE(4)));
    FAILS(w, WEFT_EARG, "not a parameter");
    weft_tie(m, "q", weft_zeros(w, WEFT_SHAPE(4)));
    FAILS(w, WEFT_EARG, "not a parameter");
    cr_assert_null(weft_find_parameter(m, "q"));
}

/* ---- freezing ---- */
TABLE_TEST(parameters, frozen_parameters_get_no_gradient)
{
    weft_module *m = weft_module_new(w, "m"), *a = weft_submodule_new(m, "a"),
                *b = weft_submodule_new(m, "b");
    weft_tensor *p = vector(a, "p", 4, constant(2)), *q = vector(a, "q", 4, constant(3)),
                *r = vector(b, "r", 4, constant(4));
    weft_buffer(a, "s", WEFT_SHAPE(2));
    weft_freeze(a, "*", true);
    weft_backward(weft_sum_all(weft_mul(weft_mul(p, q), r)));
    cr_assert(all_are(weft_grad(p), 0) && all_are(weft_grad(q), 0) && all_are(weft_grad(r), 6));
    weft_freeze(m, "a.q", false);
    weft_backward(weft_sum_all(weft_mul(weft_mul(p, q), r)));
    cr_assert(all_are(weft_grad(p), 0) && all_are(weft_grad(q), 8) && all_are(weft_grad(r), 12));
    weft_freeze(b, "r", true);
    cr_assert(all_are(weft_grad(r), 0), "freezing must drop the earlier gradient");
    weft_freeze(m, "*", false);
    weft_backward(weft_sum_all(weft_mul(p, r)));
    cr_assert(all_are(weft_grad(p), 4) && all_are(weft_grad(r), 2));
    weft_clear(w);
}

CPU_TEST(parameters, patterns_freeze_parameters)
{
    static const struct { const char *pattern; int frozen; } t[] = {            /* bits: a.w, a.b, c.a.w, w */
        { "*", 15 },    { "a.*", 3 },    { "*.w", 5 },      { "w", 8 },     { "a.w", 1 },
        { "?.?", 3 },   { "*a.[wx]", 5 }, { "c*", 4 },      { "*.?", 7 },
    };
    weft_module *m = weft_module_new(w, "m"), *a = weft_submodule_new(m, "a"),
                *c = weft_submodule_new(weft_submodule_new(m, "c"), "a");
    weft_tensor *p[] = { vector(a, "w", 1, zero), vector(a, "b", 2, zero), vector(c, "w", 3, zero),
                         vector(m, "w", 4, zero) };
    weft_buffer(m, "buffer", WEFT_SHAPE(2));
    weft_tie(m, "tied", p[0]);
    for (int i = 0; i < COUNT(t); i++) {
        weft_freeze(m, "*", false);
        weft_freeze(m, t[i].pattern, true);
        OK(w);
        for (int k = 0; k < COUNT(p); k++)
            cr_assert_eq(weft__node_of(p[k])->frozen, t[i].frozen >> k & 1, "\"%s\", parameter %d",
                         t[i].pattern, k);
    }
    weft_freeze(m, "*", false);
    static const char *const nothing[] = { "", "a", "m.*", "a.W", "buffer", "tied", NULL };
    for (int i = 0; i < COUNT(nothing); i++) {
        weft_freeze(m, nothing[i], true);
        cr_assert(strstr(weft_error_message(w), nothing[i] ? nothing[i] : "NULL"));
        FAILS(w, WEFT_EARG, "matches no parameter below m; expected a pattern of paths");
        cr_assert(!weft__node_of(p[0])->frozen && !weft__node_of(p[1])->frozen);
    }
    weft_freeze(weft_submodule_new(m, "none"), "*", true);
    FAILS(w, WEFT_EARG, "freeze: \"*\" matches no parameter below m.none");
}

/* ---- gradients as a whole ---- */
TABLE_TEST(parameters, gradients_are_zeroed_and_divided_below_a_module)
{
    weft_module *m = weft_module_new(w, "m"), *a = weft_submodule_new(m, "a"),
                *b = weft_submodule_new(m, "b");
    weft_tensor *p = vector(a, "p", 5, constant(2)), *q = vector(b, "q", 6, constant(3)),
                *r = vector(a, "r", 40, constant(4));
    weft_backward(weft_add(weft_sum_all(weft_square(p)),
                           weft_add(weft_sum_all(weft_square(q)), weft_sum_all(weft_square(r)))));
    cr_assert(all_are(weft_grad(p), 4) && all_are(weft_grad(q), 6) && all_are(weft_grad(r), 8));
    weft_divide_grad(a, weft_scalar(w, 4));
    cr_assert(all_are(weft_grad(p), 1) && all_are(weft_grad(q), 6) && all_are(weft_grad(r), 2));
    weft_divide_grad(m, weft_full(w, 2, WEFT_SHAPE(1, 1)));
    cr_assert(all_are(weft_grad(p), .5) && all_are(weft_grad(q), 3) && all_are(weft_grad(r), 1));
    weft_zero_grad(a);
    cr_assert(all_are(weft_grad(p), 0) && all_are(weft_grad(r), 0) && all_are(weft_grad(q), 3));
    weft_backward(weft_sum_all(weft_square(r)));
    weft_divide_grad(b, weft_scalar(w, 0));
    cr_assert(all_are(weft_grad(q), 0) && all_are(weft_grad(r), 8), "a weight of 0 gives gradients of 0");
    weft_clear(w);
}

TABLE_TEST(parameters, flat_gradient_joins_all_gradients)
{
    weft_module *m = weft_module_new(w, "m"), *a = weft_submodule_new(m, "a"),
                *empty = weft_submodule_new(m, "empty");
    weft_tensor *p = vector(m, "p", 5, constant(2)), *q = vector(a, "q", 3, constant(3)),
                *r = vector(a, "r", 20, constant(4)), *last = vector(m, "last", 1, constant(5)), *g;
    weft_buffer(a, "b", WEFT_SHAPE(7));
    weft_tie(m, "again", q);
    weft_freeze(a, "r", true);
    weft_backward(weft_add(weft_sum_all(weft_square(p)),
                           weft_add(weft_sum_all(weft_mul(q, weft_reals(w, (weft_real[]){ 7, 8, 9 },
                                                                        WEFT_SHAPE(3)))),
                                    weft_add(weft_sum_all(r), weft_sum_all(last)))));
    g = weft_flat_gradient(m);
    cr_assert(weft_rank(g) == 1 && weft_numel(g) == weft_parameter_numel(m) && weft_numel(g) == 29);
    weft_zero_grad(m);                       /* it is a copy */
    for (int i = 0; i < 29; i++)
        cr_assert_eq(numbers(g)[i], i < 5 ? 4 : i < 8 ? 2 + i : i < 28 ? 0 : 1, "%d", i);
    cr_assert(numbers(weft_flat_gradient(m))[6] == 0 && weft_numel(weft_flat_gradient(a)) == 23);
    weft_assign(weft_grad(r), weft_full(w, 3, WEFT_SHAPE(20)));
    cr_assert(all_are(weft_flat_gradient(a), 0), "a frozen parameter's gradient must be 0");
    cr_assert(weft_numel(weft_flat_gradient(empty)) == 0);
    OK(w);
    weft_clear(w);
}

CPU_TEST(parameters, invalid_divisors_are_refused)
{
    weft_module *m = weft_module_new(w, "m");
    weft_divide_grad(m, vector(m, "p", 5, constant(2)));
    FAILS(w, WEFT_ESHAPE, "[5]; expected one real");
    weft_divide_grad(m, weft_ints(w, NULL, 0, NULL));
    FAILS(w, WEFT_ESHAPE, "one real");
}
