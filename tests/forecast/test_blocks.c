/* test_blocks.c - tests the blocks of gated residual networks: ragged against plain input, groups against
 * single networks, gradients. tests/golden/models.json compares their values with PyTorch. */
#include "rnn/forecast/blocks/blocks.h"
#include "tests/nn/layers.h"

#define BLOCK_TOL TOL(1e-12, 2e-5)
/* The rows of y, sequence by sequence, have the bits of the same rows in another layout. */
static void same_rows(const char *name, weft_tensor *y, weft_tensor *want)
{
    weft_tensor *rows = weft_layout_of(y) == WEFT_PLAIN ? y : weft_to_layout(y, WEFT_CONCAT);
    same_bits(name, numbers(rows), numbers(want), weft_numel(want));
}

/* The gate and its skip may have different layouts. */
TABLE_TEST(blocks, gated_residual_sums_match_in_every_layout)
{
    for (int trainable = 0; trainable < 2; trainable++) {
        weft_module *m = weft_module_new(w, "m");
        weft__gate_add_norm *g = weft__gate_add_norm_new(m, "g", 3, 4, 0, trainable);
        renew(m);
        weft_tensor *x = ragged(w, 3, &some), *skip = ragged(w, 4, &some),
                    *packed_x = weft_to_layout(x, WEFT_PACKED), *packed = weft_to_layout(skip, WEFT_PACKED),
                    *rows = laid_out(skip, WEFT_ROWS);
        weft_tensor *pairs[][2] = { { packed_x, packed },
                                    { x, packed },
                                    { x, rows },
                                    { weft_plain(x), weft_plain(skip) },
                                    { weft_reshape(weft_plain(x), 3, (int64_t[]){ 3, 3, 3 }),
                                      weft_reshape(weft_plain(skip), 3, (int64_t[]){ 3, 3, 4 }) } };
        weft_tensor *y = weft__gate_add_norm_run(g, x, skip);
        for (int i = 0; i < COUNT(pairs); i++)
            same_rows("gate_add_norm", weft__gate_add_norm_run(g, pairs[i][0], pairs[i][1]), y);
    }
}

/* ---- GRN ---- */
static weft_tensor *run_grn(weft_tensor *const *x, void *g)       { return weft__grn_run(g, x[0], x[1]); }
static weft_tensor *run_grn_alone(weft_tensor *const *x, void *g) { return weft__grn_run(g, x[0], NULL); }

TABLE_TEST(blocks, gated_residual_networks_match_the_formula)
{
    static const struct { int64_t in, out, hidden, context; bool interpolate;
    } of_a_kind[] = { { 3, 3, 0, 0, false },
                      { 3, 5, 4, 0, false },
                      { 3, 5, 2, 2, true },
                      { 5, 2, 0, 2, true },
                      { 2, 2, 7, 2, false } };
    for (int k = 0; k < COUNT(of_a_kind); k++) {
        int64_t in = of_a_kind[k].in, out = of_a_kind[k].out, context = of_a_kind[k].context;
        weft_module *m = weft_module_new(w, "m");
        weft__grn *g = weft__grn_new(m, "g", &(weft__grn_opts){ in, out, of_a_kind[k].hidden, context, 0,
                                                                of_a_kind[k].interpolate });
        renew(m);
        weft_tensor *x = ragged(w, in, &some), *c = context ? drawn(w, WEFT_SHAPE(N, context)) : NULL;
        weft_tensor *y = weft__grn_run(g, x, c), *each = c ? weft_broadcast_to_tokens(c, x) : NULL;
        close_to("a context for each row", numbers(weft__grn_run(g, x, each)), numbers(y), TOKENS * out,
                 BLOCK_TOL);
        /* [N, 5, in] with a context [N, context] */
        weft_tensor *padded = weft__grn_run(g, weft_pad_packed_sequence(x, 5, 0, WEFT_ALIGN_LEFT), c);
        close_to("plain of rank 3",
                 numbers(weft_to_layout(weft_pack_padded_sequence(padded, &some, WEFT_ALIGN_LEFT),
                                        WEFT_CONCAT)),
                 numbers(y), TOKENS * out, BLOCK_TOL);
        if (w->dev.k->synchronous && k % 2 == 0)
            gradients_hold(m, (probe){ c ? run_grn : run_grn_alone, g }, (weft_tensor *[]){ x, c },
                           c ? 2 : 1);
    }
}

/* Networks of one shape that run as a group match separate runs. */
TABLE_TEST(blocks, grouped_networks_match_single_ones)
{
    enum { GROUPS = 3, IN = 3, OUT = 5 };
    for (int64_t out = IN; out <= OUT; out += OUT - IN) {
        weft__grn *one[GROUPS];
        weft_module *m = weft_module_new(w, "m");
        weft__grouped_grn *all = weft__grouped_grn_new(m, "all", GROUPS, IN, out, 0);
        for (int i = 0; i < GROUPS; i++)
            one[i] = weft__grouped_grn_add(all, i);
        renew(m);
        weft_tensor *x = drawn(w, WEFT_SHAPE(TOKENS, GROUPS, IN)), *y = weft__grouped_grn_run(all, x);
        for (int i = 0; i < GROUPS; i++) {
            weft_tensor *alone =
                weft__grn_run(one[i], weft_reshape(weft_slice(x, 1, i, i + 1), WEFT_SHAPE(TOKENS, IN)), NULL);
            close_to("a group", numbers(weft_slice(y, 1, i, i + 1)), numbers(alone), TOKENS * out, BLOCK_TOL);
        }
    }
}

/* ---- variable selection ---- */
static weft_tensor *run_selection(weft_tensor *const *x, void *v)
{
    return weft__selection_run(v, x[0], x[1], NULL);
}

TABLE_TEST(blocks, selection_matches_the_formula)
{
    enum { D_HIDDEN = 3, D_MODEL = 5, CONTEXT = 2 };
    for (int n = 1; n <= 4; n++) {
        weft_module *m = weft_module_new(w, "m");
        weft__selection *v = weft__selection_new(
            m, "v", &(weft__selection_opts){ n, D_HIDDEN, D_MODEL, CONTEXT, 0 });
        renew(m);
        weft_tensor *x = ragged(w, n, &some), *c = drawn(w, WEFT_SHAPE(N, CONTEXT)), *weights;
        weft_tensor *y = weft__selection_run(v, x, c, &weights);
        cr_assert(weft_layout_of(weights) == WEFT_CONCAT && weft_size(weights, 0) == TOKENS &&
                  weft_size(weights, 1) == n && weft_size(y, 1) == D_MODEL);
        if (w->dev.k->synchronous && n == 2)
            gradients_hold(m, (probe){ run_selection, v }, (weft_tensor *[]){ x, c }, 2);
    }
}

/* ---- attention with shared values ---- */
static weft_tensor *run_attention(weft_tensor *const *x, void *a)
{
    return weft__interpretable_run(a, x[0], x[1], WEFT_CAUSAL_TOP_LEFT, NULL);
}

TABLE_TEST(blocks, fused_attention_matches_full_scores)
{
    enum { D = 6, TQ = 3, TK = 4 };
    const weft_lengths lq = { .n = 2, .len = (int32_t[]){ TQ, TQ } };
    const weft_lengths lk = { .n = 2, .len = (int32_t[]){ TK, TK } };
    weft_module *m = weft_module_new(w, "m");
    weft__interpretable *a = weft__interpretable_new(m, "a", D, 2, 0);
    renew(m);
    weft_tensor *q = drawn(w, WEFT_SHAPE(2, TQ, D)), *memory = drawn(w, WEFT_SHAPE(2, TK, D)), *map, *all;
    weft_real later[2 * TQ * TK];
    for (int i = 0; i < COUNT(later); i++)
        later[i] = i % TK > i / TK % TQ;
    weft_tensor *forbidden = weft_reals(w, later, WEFT_SHAPE(2, TQ, TK));
    weft_tensor *fused = weft__interpretable_run(a, q, memory, WEFT_CAUSAL_TOP_LEFT, &map);
    close_to("fused and masked", numbers(fused),
             numbers(weft__interpretable_masked(a, q, memory, forbidden, &all)), 2 * TQ * D, BLOCK_TOL);
    /* [n, Tq, Tk, heads] */
    close_to("maps", numbers(weft_to_layout(map, WEFT_CONCAT)),
             numbers(weft_transpose(weft_transpose(all, 1, 2), 2, 3)), 2 * TQ * TK * 2, BLOCK_TOL);
    weft_tensor *open = weft__interpretable_run(a, q, memory, WEFT_ALL_KEYS, NULL);
    close_to("no mask", numbers(weft__interpretable_masked(a, q, memory, NULL, NULL)), numbers(open),
             2 * TQ * D, BLOCK_TOL);
    weft_tensor *packed = weft__interpretable_run(a, weft_pack_padded_sequence(q, &lq, WEFT_ALIGN_LEFT),
                                                  weft_pack_padded_sequence(memory, &lk, WEFT_ALIGN_LEFT),
                                                  WEFT_CAUSAL_TOP_LEFT, NULL);
    weft_tensor *plain = weft__interpretable_run(a, q, memory, WEFT_CAUSAL_TOP_LEFT, NULL);
    same_bits("packed", numbers(weft_pad_packed_sequence(packed, 0, 0, WEFT_ALIGN_LEFT)), numbers(plain),
              2 * TQ * D);
    weft__interpretable_masked(a, q, memory, weft_full(w, 1, WEFT_SHAPE(2, 1, TK)), &all);
    OK(w);
    for (int i = 0; i < 2 * 2 * TQ * TK; i++)
        cr_assert(fabs((double)numbers(all)[i] - 1. / TK) < 1e-6, "a query without keys attends evenly");
    if (w->dev.k->synchronous)
        gradients_hold(m, (probe){ run_attention, a },
                       (weft_tensor *[]){ ragged(w, D, &some), ragged(w, D, &some) }, 2);
}

/* A masked memory row changes no bit of a query's result, map or gradient, even if it is not finite.
 * Query i sees keys i and i + 1; the last key is not finite. */
TABLE_TEST(blocks, non_finite_masked_key_has_no_effect, .init = unchecked)
{
    enum { D = 6, TQ = 5, TK = 6, KEYS = TK * D };
    weft_real query[TQ * D], key[2][KEYS], hidden[TQ * TK], *y[2], *all[2], *of_q[2], *of_key[2];
    for (int i = 0; i < TQ * D; i++)
        query[i] = (weft_real)cos(i);
    for (int i = 0; i < KEYS; i++) {
        key[0][i] = (weft_real)sin(i);
        key[1][i] = i < KEYS - D ? key[0][i] : (weft_real)(i % 2 ? NAN : INFINITY);
    }
    for (int i = 0; i < TQ * TK; i++)
        hidden[i] = i % TK != i / TK && i % TK != i / TK + 1;
    weft__interpretable *a = weft__interpretable_new(weft_module_new(w, "m"), "a", D, 2, 0);
    weft_tensor *q = weft_reals(w, query, WEFT_SHAPE(1, TQ, D)),
                *forbidden = weft_reals(w, hidden, WEFT_SHAPE(1, TQ, TK));
    for (int k = 0; k < 2; k++) {
        weft_tensor *of[] = { q, weft_reals(w, key[k], WEFT_SHAPE(1, TK, D)) }, *d[2], *map;
        weft_tensor *out = weft__interpretable_masked(a, of[0], of[1], forbidden, &map);
        weft_tensor *loss = weft_sum_all(weft_square(weft_slice(out, 1, 0, TQ - 1)));
        y[k] = numbers(out);
        all[k] = numbers(weft_transpose(map, 1, 2));
        WEFT_NO_GRAD(w)
            weft_gradients(loss, of, 2, d);
        of_q[k] = numbers(d[0]);
        of_key[k] = numbers(d[1]);
    }
    same_bits("results", y[1], y[0], (TQ - 1) * D);
    cr_expect(isnan(y[1][(TQ - 1) * D]) && !isnan(y[0][(TQ - 1) * D]));
    same_bits("map", all[1], all[0], (TQ - 1) * 2 * TK);
    same_bits("gradient of queries", of_q[1], of_q[0], TQ * D);
    same_bits("gradient of memory", of_key[1], of_key[0], KEYS);
}

/* ---- first values, dropout ---- */
/* deviation 0: all 0 */
static void starts(const weft_module *m, const char *path, double deviation, double bound)
{
    weft_tensor *p = weft_find_parameter(m, path);
    cr_assert(p, "%s", path);
    int64_t n = weft_numel(p);
    double square = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        square += (double)of(m, path)[i] * (double)of(m, path)[i];
        most = fmax(most, fabs((double)of(m, path)[i]));
    }
    cr_assert(deviation == 0 ? most == 0 : fabs(sqrt(square / (double)n) - deviation) < .15 * deviation,
              "%s: %g, not %g", path, sqrt(square / (double)n), deviation);
    cr_assert(bound == 0 || most <= bound, "%s: %g", path, most);
}

CPU_TEST(blocks, initial_values_match_the_original)
{
    weft_module *m = weft_module_new(w, "m");
    static const struct { const char *path; double deviation, bound;
    } table[] = {                                /* uniform in +-b: deviation b / sqrt(3) */
        { "g.fc1.weight", .3162, 0 },          { "g.fc2.weight", .2236, 0 },
        { "g.glu1.fc1.weight", .2582, 0 },     { "g.fc1.bias", 0, 0 },
        { "g.project.bias", 0, 0 },            { "g.glu1.fc1.bias", 0, 0 },
        { "g.fc3.weight", .2, .34642 },        { "g.project.weight", .1291, .22361 },
        { "gate.glu.fc1.weight", .1581, .27387 }, { "gate.glu.fc1.bias", 0, 0 },
        { "gate.add_norm.mask", 0, 0 },        { "a.query_layers.3.weight", .2236, .38730 },
        { "a.output_layer.bias", 0, 0 },
    };
    weft__grn_new(m, "g", &(weft__grn_opts){ .in = 20, .out = 30, .hidden = 40, .context = 10 });
    weft__gate_add_norm_new(m, "gate", 20, 30, 0, true);
    weft__interpretable_new(m, "a", 32, 4, 0);
    for (int i = 0; i < COUNT(table); i++)
        starts(m, table[i].path, table[i].deviation, table[i].bound);
    cr_assert(!weft_find_parameter(m, "g.fc3.bias"));
}

CPU_TEST(blocks, dropout_is_off_outside_training)
{
    weft_module *m = weft_module_new(w, "m");
    weft__glu_layer *g = weft__glu_new(m, "glu", 64, 64, .5);
    weft__interpretable *a = weft__interpretable_new(m, "a", 8, 2, .5);
    weft_tensor *x = drawn(w, WEFT_SHAPE(4, 64)), *q = drawn(w, WEFT_SHAPE(3, 5, 8)), *map;
    cr_assert(memcmp(numbers(weft__glu_gate(g, x)), numbers(weft__glu_gate(g, x)), 512 * sizeof(weft_real)));
    weft__interpretable_run(a, q, q, WEFT_ALL_KEYS, &map);
    weft_real *of_map = numbers(weft_to_layout(map, WEFT_CONCAT));
    int zeros = 0;
    for (int i = 0; i < 3 * 5 * 5 * 2; i++)
        zeros += of_map[i] == 0;
    cr_assert(zeros > 45 && zeros < 105, "%d of 150 weights were dropped", zeros);
    WEFT_EVAL(w)
    {
        same_bits("glu", numbers(weft__glu_gate(g, x)), numbers(weft__glu_gate(g, x)), 512);
        same_bits("attention", numbers(weft__interpretable_run(a, q, q, WEFT_ALL_KEYS, NULL)),
                  numbers(weft__interpretable_run(a, q, q, WEFT_ALL_KEYS, NULL)), 3 * 5 * 8);
    }
}

CPU_TEST(blocks, invalid_sizes_are_refused)
{
    weft_module *m = weft_module_new(w, "m");
    weft__interpretable_new(m, "b", 2, 5, 0);
    FAILS(w, WEFT_EARG, "d_model 2, 5 heads");
    weft__selection_new(m, "c", &(weft__selection_opts){ 5000, 2, 4, 0, 0 });
    FAILS(w, WEFT_ESHAPE, "variable_selection: 5000 features; expected 1 .. 4096");
}
