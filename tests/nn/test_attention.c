/* test_attention.c - tests attention layers: a memory projected once, plain queries, failed allocations.
 * tests/golden/layers.json compares values and gradients with PyTorch. */
#include "layers.h"

enum { DQ = 6, DM = 6, WIDTH = 5, HEADS = 2, PAIRS = 256 };
static const int32_t q_len[N] = { 2, 1, 4, 3 }, m_len[N] = { 3, 0, 5, 1 }, ones[N] = { 1, 1, 1, 1 };
static const weft_lengths q_lengths = { .n = N, .len = q_len }, m_lengths = { .n = N, .len = m_len };
static const weft_attention_layer_opts layers[] = {
    { WEFT_ADDITIVE, DQ, DM, WIDTH, 0 },
    { WEFT_GENERAL, DQ, DM, 0, 0 },
    { WEFT_MULTIHEAD, 0, 0, DM, HEADS },
};

static weft_tensor *run(weft_tensor *const *x, void *layer)
{
    return weft_attention_run(layer, x[0], x[1], WEFT_ALL_KEYS, NULL);
}
static weft_tensor *run_projected(weft_tensor *const *x, void *layer)
{
    return weft_attention_query(layer, x[0], weft_attention_project(layer, x[1]), WEFT_ALL_KEYS, NULL);
}
static weft_tensor *run_on_itself(weft_tensor *const *x, void *layer)
{
    return weft_attention_run(layer, x[0], x[0], WEFT_CAUSAL_TOP_LEFT, NULL);
}

/* The same result and map from a memory that was projected before, and the same result without a map. */
static void projected_once(weft_attention_layer *l, weft_tensor *q, weft_tensor *memory, weft_causal causal)
{
    weft_attention_memory projected = weft_attention_project(l, memory);
    weft_tensor *map[2], *y = weft_attention_run(l, q, memory, causal, &map[0]),
                         *z = weft_attention_query(l, q, projected, causal, &map[1]);
    OK(weft_context_of(q));
    cr_assert(weft_layout_of(y) == weft_layout_of(q) && weft_rank(y) == 2 && weft_size(y, 1) == DM);
    close_to("y", numbers(z), numbers(y), weft_numel(y), EXACT);
    close_to("map", numbers(map[1]), numbers(map[0]), weft_numel(map[0]), EXACT);
    close_to("y without a map", numbers(weft_attention_run(l, q, memory, causal, NULL)), numbers(y),
             weft_numel(y), EXACT);
}

TABLE_TEST(attention, project_a_memory_once)
{
    for (int i = 0; i < COUNT(layers); i++) {
        weft_module *m = weft_module_new(w, "m");
        weft_attention_layer *l = weft_attention_new(m, "l", &layers[i]);
        renew(m);
        weft_tensor *memory = ragged(w, DM, &m_lengths), *q = ragged(w, DQ, &q_lengths),
                    *plain = drawn(w, WEFT_SHAPE(N, DQ));
        int last = layers[i].kind == WEFT_ADDITIVE ? WEFT_ALL_KEYS : WEFT_CAUSAL_STRICT;
        for (int causal = WEFT_ALL_KEYS; causal <= last; causal++) {
            projected_once(l, q, memory, (weft_causal)causal);
            projected_once(l, plain, memory, (weft_causal)causal);
        }
        gradients_hold(m, (probe){ run, l }, WEFT_LIST(plain, memory));
        gradients_hold(m, (probe){ run_projected, l }, WEFT_LIST(q, memory));
        if (layers[i].kind == WEFT_MULTIHEAD)
            gradients_hold(m, (probe){ run_on_itself, l }, WEFT_LIST(memory));
    }
}

CPU_TEST(attention, treat_a_plain_query_as_one_token_per_sequence)
{
    weft_module *m = weft_module_new(w, "m");
    weft_attention_layer *l =
        weft_attention_new(m, "l", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = DQ, .dm = DM });
    weft_tensor *q = drawn(w, WEFT_SHAPE(N, DQ)), *map, *y;
    /* with ids */
    weft_tensor *memory =
        ragged(w, DM, &(weft_lengths){ .n = N, .len = m_len, .id = (int64_t[]){ 40, 30, 20, 10 } });
    weft_tensor *as_ragged = weft_ragged(
        w, numbers(q), DQ, &(weft_lengths){ .n = N, .len = ones, .id = (int64_t[]){ 40, 30, 20, 10 } });
    y = weft_attention_run(l, q, memory, WEFT_ALL_KEYS, NULL);
    same_in_company(
        "y", numbers(y),
        numbers(weft_to_layout(weft_attention_run(l, as_ragged, memory, WEFT_ALL_KEYS, NULL), WEFT_CONCAT)),
        N * DM);
    weft_lengths empty = { .n = 0 };      /* no sequences at all */
    cr_assert(weft_numel(weft_attention_run(l, weft_zeros(w, WEFT_SHAPE(0, DQ)),
                                            weft_ragged(w, NULL, DM, &empty), WEFT_ALL_KEYS, &map)) == 0);
    OK(w);
}

/* Runs multi-head attention forward and backward, with a failure of the n-th allocation. Returns false if
 * that failed for lack of memory. */
static bool without(int table, int64_t n, weft_real *y, weft_real *dx)
{
    enum { D = 6 };
    weft *w = open_table(table);
    weft_attention_layer *a = weft_attention_new(
        weft_module_new(w, "m"), "a",
        &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = D, .heads = HEADS });
    dice_seed(3);
    weft_tensor *x = ragged(w, D, &m_lengths), *out, *d;
    OK(w);
    fail_in(w, n);
    out = weft_attention_run(a, x, x, WEFT_ALL_KEYS, NULL);
    weft_gradients(weft_sum_all(weft_mul(out, out)), &x, 1, &d);
    bool fine = weft_ok(w);
    cr_assert(fine || weft_error_code(w) == WEFT_ENOMEM, "%s", weft_error_message(w));
    fail_in(w, 0);
    if (fine) {
        memcpy(y, numbers(out), (size_t)weft_numel(out) * sizeof *y);
        memcpy(dx, numbers(d), (size_t)weft_numel(d) * sizeof *dx);
    }
    if (fine)
        CLEAN(w);
    else
        CLEAN_FAILED(w);
    return fine;
}
Test(attention, fail_or_change_no_bit_without_memory)
{
    for (int t = 0; t < COUNT(tables); t++) {
        weft_real want[2][PAIRS] = { { 0 } }, got[2][PAIRS] = { { 0 } };
        if (!table_is_here(tables[t].name) || tables[t].device == WEFT_CUDA)
            continue;
        cr_assert(without(t, 0, want[0], want[1]));
        int told = 0;
        for (int n = 1; n < 20; n++)
            if (without(t, n, got[0], got[1])) {
                same_bits(tables[t].name, got[0], want[0], PAIRS);
                same_bits(tables[t].name, got[1], want[1], PAIRS);
            } else
                told++;
        cr_expect(told > 1, "%s: %d failures", tables[t].name, told);
    }
}

/* Names of 0.2 make the same layers, with the same first values. */
CPU_TEST(attention, keep_the_names_of_0_2)
{
    weft_module *old = weft_module_new(w, "m"), *now = weft_module_new(w, "m");
    weft_attention_layer *was[] = {
        weft_multihead_attention_new(old, "a", &(weft_multihead_attention_opts){ .width = DM, .heads = 2 }),
        weft_general_attention_new(old, "b", &(weft_general_attention_opts){ .dq = DM, .dm = DM }),
        weft_additive_attention_new(old, "c", &(weft_additive_attention_opts){ DM, DM, WIDTH }),
    };
    weft_attention_layer_opts o[] = { { WEFT_MULTIHEAD, .width = DM, .heads = 2 },
                                      { WEFT_GENERAL, .dq = DM, .dm = DM },
                                      { WEFT_ADDITIVE, .dq = DM, .dm = DM, .width = WIDTH } };
    weft_layer_norm_layer *norm = weft_layer_norm_layer_new(old, "n", &(weft_layer_norm_opts){ .width = DM });
    weft_tensor *x = weft_layer_norm_layer_run(norm, ragged(w, DM, &m_lengths));
    weft_tensor *y[] = { weft_multihead_attention_run(was[0], x, x, WEFT_ALL_KEYS, NULL),
                         weft_general_attention_run(was[1], x, x, NULL),
                         weft_additive_attention_run(was[2], x, x, NULL) };
    for (int i = 0; i < COUNT(o); i++) {
        weft_attention_layer *l = weft_attention_new(now, (const char *[]){ "a", "b", "c" }[i], &o[i]);
        same_bits("y", numbers(weft_attention_run(l, x, x, WEFT_ALL_KEYS, NULL)), numbers(y[i]),
                  weft_numel(y[i]));
    }
}
