/* test_layers_given.c - tests options of layers: a missing size is named, weights can be tied, rows of a
 * table can be dropped. */
#include "layers.h"
#include "autograd/api_windows.h"

/* ---- sizes ---- */
CPU_TEST(layers_given, missing_size_is_named)
{
    weft_module *m = weft_module_new(w, "m");
#define MISSING(size, new, opts_type, ...)                                                 \
    do {                                                                                   \
        new (m, "x", &(opts_type){ __VA_ARGS__ });                                         \
        cr_assert(strstr(weft_error_message(w), "\"x\" in m: "), "%s", weft_error_message(w)); \
        FAILS(w, WEFT_EARG, size " is 0, or missing");                                     \
        new (m, "x", NULL);                                                                \
        FAILS(w, WEFT_EARG, "\"x\" in m: opts is NULL");                                   \
    } while (0)
    MISSING("out", weft_linear_new, weft_linear_opts, .in = 2);
    MISSING("columns", weft_embedding_new, weft_embedding_opts, .rows = 2);
    MISSING("width", weft_layer_norm_new, weft_layer_norm_opts, .eps = 1);
    MISSING("width", weft_attention_new, weft_attention_layer_opts, .kind = WEFT_ADDITIVE, .dq = 2, .dm = 2);
    MISSING("dm", weft_attention_new, weft_attention_layer_opts, .kind = WEFT_GENERAL, .dq = 2);
    MISSING("heads", weft_attention_new, weft_attention_layer_opts, .kind = WEFT_MULTIHEAD, .width = 2);
    cr_assert(!m->child && !m->first, "a refused layer left parameters");
    weft_dropout_layer *none = weft_dropout_new(m, "none", NULL);
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2));
    cr_assert(weft_dropout_run(none, x) == x);
}

CPU_TEST(layers_given, eps_of_a_norm_is_used)
{
    weft_module *m = weft_module_new(w, "m");
    static const double eps[] = { 0, 1e-5, 3, -1, NAN, INFINITY };
    weft_real y[6];
    for (int i = 0; i < COUNT(eps); i++) {
        weft_norm_layer *n =
            weft_layer_norm_new(m, name_with("n", i), &(weft_layer_norm_opts){ .width = 2, .eps = eps[i] });
        if (i > 2) {
            FAILS(w, WEFT_EARG, "layer_norm: eps");
            continue;
        }
        weft_tensor *x = weft_reals(w, (weft_real[]){ 1, 3 }, WEFT_SHAPE(2));     /* of variance 1 */
        weft_read(weft_layer_norm_run(n, x), y + 2 * i, 2 * sizeof *y);
    }
    weft_norm_layer *exact =
        weft_layer_norm_new(m, "exact", &(weft_layer_norm_opts){ .width = 2, .eps = WEFT_ZERO });
    weft_real z[2];
    weft_read(weft_layer_norm_run(exact, weft_reals(w, (weft_real[]){ 1, 3 }, WEFT_SHAPE(2))), z, sizeof z);
    same_bits("the default is 1e-5", y, y + 2, 2);
    cr_assert(fabs((double)y[5] - .5) < 1e-6 && fabs((double)z[1] - 1) < TOL(1e-12, 1e-6) && y[1] < z[1]);
}

TABLE_TEST(layers_given, rms_norm_has_a_weight_and_no_bias)
{
    weft_module *m = weft_module_new(w, "m");
    weft_norm_layer *n =
        weft_layer_norm_new(m, "n", &(weft_layer_norm_opts){ .width = 3, .eps = .5, .rms = true });
    cr_assert(weft_parameter_count(m) == 1 && !weft_find_parameter(m, "n.bias"));
    weft_real x[TOKENS * 3], want[TOKENS * 3];
    weft_tensor *given = weft_ragged(w, dice_fill(x, TOKENS * 3, -2, 2), 3, &some);
    weft_tensor *weight = weft_find_parameter(m, "n.weight");
    weft_assign(weight, weft_reals(w, (weft_real[]){ .5, 2, -1 }, WEFT_SHAPE(3)));
    for (int t = 0; t < TOKENS; t++)
        for (int j = 0; j < 3; j++) {
            const double a = (double)x[3 * t], b = (double)x[3 * t + 1], c = (double)x[3 * t + 2];
            want[3 * t + j] = (weft_real)((double)x[3 * t + j] / sqrt((a * a + b * b + c * c) / 3 + .5) *
                                          (j == 0 ? .5 :
                                           j == 1 ? 2 :
                                                    -1));
        }
    close_to("rms norm", numbers(weft_layer_norm_run(n, given)), want, TOKENS * 3, EXACT);
    weft_norm_layer *plain = weft_layer_norm_new(m, "p", &(weft_layer_norm_opts){ .width = 3, .rms = true });
    weft_tensor *y = weft_layer_norm_run(plain, given), *z = weft_rms_norm(given, NULL, 0);
    same_bits("the default of eps", numbers(y), numbers(z), TOKENS * 3);
}

/* ---- tied weights ---- */
typedef struct { weft_embedding *e; weft_linear *out; weft_tensor *ids; } tied;
static weft_tensor *run_tied(weft_tensor *const *x, void *user)
{
    const tied *t = user;
    (void)x;
    return weft_linear_run(t->out, weft_tanh(weft_embedding_run(t->e, t->ids)));
}

TABLE_TEST(layers_given, linear_layer_can_share_a_table)
{
    static const int32_t id[TOKENS] = { 4, 0, 2, 2, 2, 1, 5, 4, 2 };
    weft_module *m = weft_module_new(w, "m");
    tied t = { .e = weft_embedding_new(m, "e", &(weft_embedding_opts){ .rows = 6, .columns = 3 }) };
    weft_tensor *weight = weft_find_parameter(m, "e.weight");
    t.out = weft_linear_new(m, "out", &(weft_linear_opts){ .weight = weight });
    t.ids = weft_ragged_ints(w, id, &some);
    cr_assert(weft_parameter_numel(m) == 18 + 6 && weft_parameter_count(m) == 2, "counted once");
    cr_assert(weft_find_parameter(m, "out.weight") == weight);
    renew(m);
    weft_real rows[TOKENS * 3], want[TOKENS * 6];
    const weft_real *table = of(m, "e.weight");
    for (int i = 0; i < TOKENS * 3; i++)
        rows[i] = (weft_real)tanh((double)table[3 * id[i / 3] + i % 3]);
    product(rows, table, of(m, "out.bias"), TOKENS, 3, 6, want);
    close_to("tied", numbers(run_tied(NULL, &t)), want, TOKENS * 6, EXACT);
    gradients_hold(m, (probe){ run_tied, &t }, NULL, 0);       /* sum of the gradients through both uses */
    weft_linear *unbiased = weft_linear_new(
        m, "unbiased", &(weft_linear_opts){ .in = 3, .out = 6, .no_bias = true, .weight = weight });
    cr_assert(weft_parameter_numel(m) == 18 + 6);
    product(rows, table, NULL, TOKENS, 3, 6, want);
    close_to("unbiased", numbers(weft_linear_run(unbiased, weft_tanh(weft_embedding_run(t.e, t.ids)))),
             want, TOKENS * 6, EXACT);
}

CPU_TEST(layers_given, incompatible_weights_are_not_tied)
{
    weft *other = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m"), *root = weft_module_new(w, "root");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(4, 3), (weft_init){ 0 });
    weft_tensor *line = weft_parameter(m, "line", WEFT_SHAPE(4), (weft_init){ 0 });
    weft_tensor *buffer = weft_buffer(m, "buffer", WEFT_SHAPE(4, 3));
    weft_tensor *foreign =
        weft_parameter(weft_module_new(other, "m"), "p", WEFT_SHAPE(4, 3), (weft_init){ 0 });
    const struct { weft_module *m; weft_linear_opts o; weft_status status; const char *text; } bad[] = {
        { m, { .weight = weft_zeros(w, WEFT_SHAPE(4, 3)) }, WEFT_EARG, "is not a parameter" },
        { m, { .weight = buffer }, WEFT_EARG, "is not a parameter" },
        { m, { .weight = foreign }, WEFT_EARG, "linear \"x\" in m: the weight" },
        { root, { .weight = p }, WEFT_EARG, "expected a parameter below the root" },
        { m, { .weight = line }, WEFT_ESHAPE, "expected [out, in]" },
        { m, { .in = 4, .weight = p }, WEFT_ESHAPE, "the weight is [4, 3]" },
        { m, { .in = 3, .out = 3, .weight = p }, WEFT_ESHAPE, "with out = 3 and in = 3" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_linear *l = weft_linear_new(bad[i].m, "x", &bad[i].o);
        FAILS(w, bad[i].status, bad[i].text);
        weft_linear_run(l, weft_zeros(w, WEFT_SHAPE(2, 3)));
        FAILS(w, WEFT_EARG, "could not be made");
    }
    cr_assert(!m->child && !root->child && weft_parameter_count(root) == 0);
    CLEAN(other);
}

/* ---- dropout of rows ---- */
enum { ROWS = 400, WIDE = 3 };
typedef struct { weft *w; weft_module *m; weft_embedding *e; } dropping;
static dropping dropping_in(weft *w)
{
    weft_module *m = weft_module_new(w, "m");
    return (dropping){ w, m,
                       weft_embedding_new(m, "e", &(weft_embedding_opts){
                                                      .rows = ROWS, .columns = WIDE, .row_dropout = .25 }) };
}

/* factor[id]: 0 or 1 / (1 - p), of all ids in one call */
static void factors(const dropping *d, weft_real *factor)
{
    const weft_real *table = of(d->m, "e.weight"),
                    *y = numbers(weft_embedding_run(d->e, weft_arange(d->w, 0, ROWS, 1)));
    for (int i = 0; i < ROWS; i++) {
        factor[i] = y[WIDE * i] == 0 ? 0 : (weft_real)(1 / .75);
        for (int j = 0; j < WIDE; j++)
            cr_assert(fabs((double)y[WIDE * i + j] - (double)(factor[i] * table[WIDE * i + j])) < 1e-5,
                      "row %d is partly dropped", i);
    }
}

TABLE_TEST(layers_given, dropped_row_is_dropped_everywhere)
{
    static const int32_t id[TOKENS] = { 14, 0, 2, 2, 299, 1, 5, 14, -1 };
    dropping d = dropping_in(w);
    weft_real factor[ROWS], again[ROWS];
    factors(&d, factor);
    int gone = 0;
    for (int i = 0; i < ROWS; i++)
        gone += factor[i] == 0;
    cr_assert(gone > 60 && gone < 140, "%d of %d rows", gone, ROWS);
    const weft_real *table = of(d.m, "e.weight");
    weft_tensor *concat = weft_ragged_ints(w, id, &some), *plain = weft_ints(w, id, WEFT_SHAPE(3, 3));
    weft_tensor *y[] = { weft_embedding_run(d.e, concat), weft_embedding_run(d.e, plain),
                         weft_to_layout(weft_embedding_run(d.e, weft_to_layout(concat, WEFT_PACKED)),
                                        WEFT_CONCAT) };
    cr_assert(weft_layout_of(y[0]) == WEFT_CONCAT);
    for (int k = 0; k < COUNT(y); k++)
        for (int i = 0; i < TOKENS * WIDE; i++) {
            int row = id[i / WIDE];
            cr_assert(numbers(y[k])[i] == (row < 0 ? 0 : factor[row] * table[WIDE * row + i % WIDE]));
        }
    weft_backward(weft_sum_all(y[0]));
    const weft_real *g = numbers(weft_grad(weft_find_parameter(d.m, "e.weight")));
    cr_assert(g[2 * WIDE] == 2 * factor[2] && g[299 * WIDE] == factor[299] && g[7 * WIDE] == 0);
    weft_clear(w);
    factors(&d, again);
    cr_assert(memcmp(factor, again, sizeof again), "another step, another mask");
    weft_set_training(w, false);
    same_bits("evaluation", numbers(weft_embedding_run(d.e, weft_arange(w, 0, ROWS, 1))),
              of(d.m, "e.weight"), ROWS * WIDE);
}

CPU_TEST(layers_given, dropped_rows_depend_on_seed_and_path_only)
{
    weft *same = open_on(WEFT_REF), *other = open_with((weft_opts){ .seed = 2 });
    weft_real of_w[ROWS], of_same[ROWS], of_other[ROWS];
    dropping a = dropping_in(w), b = dropping_in(same), c = dropping_in(other);
    weft_dropout(weft_full(same, 1, WEFT_SHAPE(9)), .5, "m.e", false);      /* disturbs nothing */
    factors(&a, of_w), factors(&b, of_same), factors(&c, of_other);
    same_bits("a twin", of_w, of_same, ROWS);
    cr_assert(memcmp(of_w, of_other, sizeof of_w));
    for (int i = 0; i < 3; i++) {
        weft_embedding_new(
            a.m, "bad",
            &(weft_embedding_opts){ .rows = 2, .columns = 2, .row_dropout = (double[]){ 1, -.1, NAN }[i] });
        FAILS(w, WEFT_EARG, "row_dropout is");
    }
    CLEAN(same);
    CLEAN(other);
}
