/* test_layers.c - tests linear, embedding, norm, dropout and MLP layers. op_cases.def tests gradients of
 * their operators, tests/golden values and gradients of models. */
#include "layers.h"

TABLE_TEST(layers, linear_matches_plain_loops)
{
    weft_real y[200];
    weft_module *m = weft_module_new(w, "m");
    weft_linear_new(m, "l", &(weft_linear_opts){ .in = 5, .out = 3 });
    weft_linear *u = weft_linear_new(m, "u", &(weft_linear_opts){ .in = 5, .out = 3, .no_bias = true });
    cr_assert(weft_parameter_numel(m) == 15 + 3 + 15 && !weft_find_parameter(m, "u.bias"));
    for (int i = 0; i < 18; i++)
        cr_assert(fabs((double)(i < 15 ? of(m, "l.weight")[i] : of(m, "l.bias")[i - 15])) <=
                  1 / sqrt(5) + 1e-7);
    weft_tensor *x[] = { drawn(w, WEFT_SHAPE(4, 5)), drawn(w, WEFT_SHAPE(2, 3, 5)), ragged(w, 5, &some),
                         drawn(w, WEFT_SHAPE(0, 5)) };
    for (int i = 0; i < COUNT(x); i++) {
        weft_tensor *r = weft_linear_run(u, x[i]);
        cr_assert(weft_rank(r) == weft_rank(x[i]) && weft_size(r, -1) == 3 &&
                  weft_layout_of(r) == weft_layout_of(x[i]));
        product(numbers(x[i]), of(m, "u.weight"), NULL, weft_numel(x[i]) / 5, 5, 3, y);
        close_to("y without bias", numbers(r), y, weft_numel(r), EXACT);
    }
}

/* ---- embedding ---- */
TABLE_TEST(layers, embedding_matches_plain_loops)
{
    static const int32_t id[TOKENS] = { 4, 0, 2, 2, 2, 1, 5, 4, 2 };
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *plain = weft_embedding_new(m, "plain", &(weft_embedding_opts){ .rows = 6, .columns = 3 });
    weft_embedding *padded = weft_embedding_new(
        m, "padded", &(weft_embedding_opts){ .rows = 6, .columns = 3, .padding = 2, .has_padding = true });
    for (int kind = 0; kind < 3; kind++) {
        weft_tensor *ids = kind == 2 ? weft_ragged_ints(w, id, &some) :
                           kind      ? weft_ints(w, id, WEFT_SHAPE(3, 3)) :
                                       weft_ints(w, id, WEFT_SHAPE(TOKENS));
        for (int with = 0; with < 2; with++) {
            const weft_real *table = of(m, with ? "padded.weight" : "plain.weight");
            weft_tensor *y = weft_embedding_run(with ? padded : plain, ids);
            weft_real *got = numbers(y), *gradient;
            cr_assert(weft_rank(y) == weft_rank(ids) + 1 && weft_size(y, -1) == 3 &&
                      weft_layout_of(y) == weft_layout_of(ids));
            int count[6] = { 0 };
            for (int t = 0; t < TOKENS; count[id[t]]++, t++)
                for (int j = 0; j < 3; j++)
                    cr_assert(got[3 * t + j] == table[3 * id[t] + j] &&
                              (got[3 * t + j] != 0) == !(with && id[t] == 2));
            weft_zero_grad(m);
            weft_backward(weft_sum_all(y));
            gradient = numbers(weft_grad(weft_find_parameter(m, with ? "padded.weight" : "plain.weight")));
            for (int i = 0; i < 18; i++)
                cr_assert(gradient[i] == (with && i / 3 == 2 ? 0 : (weft_real)count[i / 3]),
                          "gradient of row %d", i / 3);
        }
    }
}

CPU_TEST(layers, padding_row_stays_zero)
{
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *e = weft_embedding_new(
        m, "e", &(weft_embedding_opts){ .rows = 4, .columns = 2, .padding = 1, .has_padding = true });
    cr_assert(of(m, "e.weight")[2] == 0 && of(m, "e.weight")[3] == 0 && of(m, "e.weight")[0] != 0);
    renew(m);                                    /* for any earlier value */
    weft_real *y = numbers(weft_embedding_run(e, weft_ints(w, (int32_t[]){ 1, 3 }, WEFT_SHAPE(2))));
    cr_assert(y[0] == 0 && y[1] == 0 && y[2] == of(m, "e.weight")[6]);
}

/* ---- dropout ---- */
TABLE_TEST(layers, dropout_depends_on_the_path)
{
    weft_module *m = weft_module_new(w, "m");
    weft_dropout_layer *a = weft_dropout_new(m, "a", &(weft_dropout_opts){ .p = (weft_real).5 }),
                       *b = weft_dropout_new(m, "b", &(weft_dropout_opts){ .p = (weft_real).5 }),
                       *once = weft_dropout_new(
                           m, "once", &(weft_dropout_opts){ .p = (weft_real).5, .per_sequence = true });
    weft_dropout_layer *none = weft_dropout_new(m, "none", &(weft_dropout_opts){ 0 });
    weft *twin = open_on(WEFT_REF);          /* the same seed, step and call */
    static const weft_real ones[64 * TOKENS] = { 0 };
    weft_tensor *x = weft_add(weft_ragged(w, ones, 64, &some), weft_scalar(w, 1)),
                *of_twin = weft_add(weft_ragged(twin, ones, 64, &some), weft_scalar(twin, 1));
    weft_real *of_a = numbers(weft_dropout_run(a, x)), *of_b = numbers(weft_dropout_run(b, x)),
              *same = numbers(weft_dropout(x, (weft_real).5, "m.a", false));
    same_bits("named by its path", of_a, numbers(weft_dropout(of_twin, (weft_real).5, "m.a", false)),
              64 * TOKENS);
    cr_assert(memcmp(of_a, of_b, 64 * sizeof *of_a) && memcmp(of_a, same, 64 * sizeof *same),
              "another layer, another call: another mask");
    int kept = 0;
    for (int i = 0; i < 64 * TOKENS; i++) {
        cr_assert(of_a[i] == 0 || of_a[i] == 2);
        kept += of_a[i] != 0;
    }
    cr_assert(kept > 64 * TOKENS / 3 && kept < 64 * TOKENS * 2 / 3);
    weft_real *row = numbers(weft_dropout_run(once, x));
    same_bits("one mask a sequence", row, row + 64, 64);
    cr_assert(memcmp(row, row + 3 * 64, 64 * sizeof *row));
    cr_assert(weft_dropout_run(none, x) == x);
    weft_set_training(w, false);
    cr_assert(weft_dropout_run(a, x) == x);
    CLEAN(twin);
}

/* ---- MLP ---- */
static weft_tensor *leaky(weft_tensor *x) { return weft_leaky_relu(x, .01); }
static weft_tensor *elu(weft_tensor *x)   { return weft_elu(x, 1); }
static weft_tensor *(*const activations[])(weft_tensor *) = { weft_relu, leaky,     elu,         weft_gelu,
                                                              weft_silu, weft_tanh, weft_sigmoid };
static weft_tensor *run_mlp(weft_tensor *const *x, void *l) { return weft_mlp_run(l, x[0]); }

TABLE_TEST(layers, mlp_matches_its_layers)
{
    static const int64_t widths[] = { 4, 6, 5, 2 };
    weft_module *root = weft_module_new(w, "m");
    for (int a = WEFT_RELU; a <= WEFT_SIGMOID; a++) {
        const char *name = name_with("", a);
        weft_module *m = weft_submodule_new(root, name);
        weft_mlp *l = weft_mlp_new(m, "mlp", &(weft_mlp_opts){ 3, widths, (weft_activation)a, 0 });
        weft_tensor *x = ragged(w, 4, &some), *y = x;
        cr_assert(weft_parameter_numel(m) == 4 * 6 + 6 + 6 * 5 + 5 + 5 * 2 + 2);
        for (int i = 0; i < 3; i++) {
            y = weft_matmul_with(y, false, weft_parameter_at(m, 2 * i, NULL), true);
            y = weft_add(y, weft_parameter_at(m, 2 * i + 1, NULL));
            y = i < 2 ? activations[a - WEFT_RELU](y) : y;
        }
        cr_assert_not_null(weft_find_parameter(m, "mlp.4.bias"));
        close_to(name, numbers(weft_mlp_run(l, x)), numbers(y), TOKENS * 2, EXACT);
        if (a >= WEFT_GELU)                  /* the others have corners */
            gradients_hold(m, (probe){ run_mlp, l }, &x, 1);
    }
}

CPU_TEST(layers, mlp_drops_between_layers)
{
    weft_module *m = weft_module_new(w, "m");
    weft_mlp *l =
        weft_mlp_new(m, "mlp", &(weft_mlp_opts){ 2, (int64_t[]){ 3, 100, 2 }, WEFT_TANH, (weft_real).5 });
    weft_mlp *one =
        weft_mlp_new(m, "one", &(weft_mlp_opts){ 1, (int64_t[]){ 3, 2 }, WEFT_TANH, (weft_real).5 });
    weft_tensor *x = drawn(w, WEFT_SHAPE(4, 3));
    weft_real *a = numbers(weft_mlp_run(l, x)), *b = numbers(weft_mlp_run(l, x));
    weft *twin = open_on(WEFT_CPU);
    weft_module *of_twin = weft_submodule_new(weft_module_new(twin, "m"), "mlp");
    weft_linear *first = weft_linear_new(of_twin, "0", &(weft_linear_opts){ .in = 3, .out = 100 }),
                *second = weft_linear_new(of_twin, "3", &(weft_linear_opts){ .in = 100, .out = 2 });
    weft_tensor *y = weft_tanh(weft_linear_run(first, weft_reals(twin, numbers(x), WEFT_SHAPE(4, 3))));
    same_bits("its steps", a,
              numbers(weft_linear_run(second, weft_dropout(y, (weft_real).5, "m.mlp.2", false))), 8);
    cr_assert(a[0] != b[0] && numbers(weft_mlp_run(one, x))[0] == numbers(weft_mlp_run(one, x))[0]);
    weft_set_training(w, false);
    same_bits("evaluation", numbers(weft_mlp_run(l, x)), numbers(weft_mlp_run(l, x)), 8);
    CLEAN(twin);
}
