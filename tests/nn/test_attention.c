/* test_attention.c - attention layers over a ragged memory, against loops over sequences, queries and
 * keys. */
#include "layers.h"

/* ---- attention: by loops over sequences, queries, keys ---- */
enum { DQ = 4, DM = 6, WIDTH = 5, HEADS = 2, PAIRS = 256 };
typedef struct { int64_t first_q, q, first_k, k; } stretch;       /* rows of one sequence */
typedef double score(const weft_module *m, const weft_real *q, const weft_real *k, int head);

static double dot(const weft_real *a, const weft_real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double additive_score(const weft_module *m, const weft_real *q, const weft_real *k, int head)
{
    double sum = 0;
    (void)head;
    for (int i = 0; i < WIDTH; i++)
        sum += (double)of(m, "l.score")[i] *
               tanh(dot(of(m, "l.query_weight") + i * DQ, q, DQ) +
                    dot(of(m, "l.memory_weight") + i * DM, k, DM) + (double)of(m, "l.bias")[i]);
    return sum;
}

static double general_score(const weft_module *m, const weft_real *q, const weft_real *k, int head)
{
    double sum = 0;
    (void)head;
    for (int i = 0; i < DQ; i++)
        sum += (double)q[i] * dot(of(m, "l.weight") + i * DM, k, DM);
    return sum;
}

static void attend(const weft_module *m, score *f, weft_causal causal, int heads, stretch s,
                   const weft_real *q, int64_t dq, const weft_real *k, int64_t dk, const weft_real *v,
                   int64_t dv, weft_real *y, weft_real *map)
{
    int64_t wide = dv / heads;                   /* of a head */
    for (int64_t i = 0; i < s.q; i++, map += s.k * heads)
        for (int h = 0; h < heads; h++) {
            double e[PAIRS], total = 0;
            for (int64_t j = 0; j < s.k; j++) {
                bool seen = !causal || j <= i + (causal == WEFT_CAUSAL_TOP_LEFT ?
                                                     0 :
                                                     s.k - s.q - (causal == WEFT_CAUSAL_STRICT));
                total += e[j] = seen ? exp(f(m, q + (s.first_q + i) * dq, k + (s.first_k + j) * dk, h)) : 0;
            }
            for (int64_t j = 0; j < s.k; j++)
                map[j * heads + h] = (weft_real)(total > 0 ? e[j] / total : 0);
            for (int64_t c = h * wide; c < (h + 1) * wide; c++) {
                double sum = 0;
                for (int64_t j = 0; j < s.k; j++)
                    sum += (double)map[j * heads + h] * (double)v[(s.first_k + j) * dv + c];
                y[(s.first_q + i) * dv + c] = (weft_real)sum;
            }
        }
}

static const int32_t q_len[N] = { 2, 1, 4, 3 }, m_len[N] = { 3, 0, 5, 1 }, ones[N] = { 1, 1, 1, 1 };
static const weft_lengths q_lengths = { .n = N, .len = q_len }, m_lengths = { .n = N, .len = m_len };

typedef weft_tensor *runner(void *layer, weft_tensor *q, weft_tensor *memory, weft_tensor **map);

/* Ragged queries, in two layouts, and plain ones. */
static void attention_holds(weft *w, const weft_module *m, score *f, runner *run, void *layer)
{
    for (int kind = 0; kind < 3; kind++) {
        const int32_t *len = kind == 2 ? ones : q_len;
        weft_tensor *memory = ragged(w, DM, &m_lengths), *map,
                    *q = kind == 2 ? drawn(w, WEFT_SHAPE(N, DQ)) : ragged(w, DQ, &q_lengths);
        weft_real want[16 * DM], want_map[PAIRS], *rows = numbers(q), *keys = numbers(memory);
        stretch s = { 0 };
        int64_t pairs = 0;
        for (int i = 0; i < N; i++, s.first_q += s.q, s.first_k += s.k, pairs += s.q * s.k) {
            s.q = len[i];
            s.k = m_len[i];
            attend(m, f, WEFT_ALL_KEYS, 1, s, rows, DQ, keys, DM, keys, DM, want, want_map + pairs);
        }
        weft_tensor *y = run(layer, kind == 1 ? weft_to_layout(q, WEFT_PACKED) : q,
                             weft_to_layout(memory, kind == 1 ? WEFT_PACKED : WEFT_CONCAT), &map);
        OK(w);
        cr_assert(weft_layout_of(y) == WEFT_PLAIN ? kind == 2 : kind < 2);
        cr_assert(weft_rank(y) == 2 && weft_size(y, 0) == s.first_q && weft_size(y, 1) == DM);
        close_to("y", numbers(kind == 2 ? y : weft_to_layout(y, WEFT_CONCAT)), want, weft_numel(y), EXACT);
        cr_assert(weft_numel(map) == pairs && weft_size(map, 1) == 1 && weft_lengths_of(map).n == s.first_q);
        close_to("map", numbers(map), want_map, pairs, EXACT);
        close_to("without a map", numbers(run(layer, q, memory, NULL)), numbers(run(layer, q, memory, &map)),
                 weft_numel(y), EXACT);
    }
}

static weft_tensor *at_once(void *layer, weft_tensor *q, weft_tensor *memory, weft_tensor **map)
{
    return weft_attention_run(layer, q, memory, WEFT_ALL_KEYS, map);
}
static weft_tensor *projected_once(void *layer, weft_tensor *q, weft_tensor *memory, weft_tensor **map)
{
    return weft_attention_query(layer, q, weft_attention_project(layer, memory), WEFT_ALL_KEYS, map);
}
static weft_tensor *probe_projected(weft_tensor *const *x, void *layer)
{
    return projected_once(layer, x[0], x[1], NULL);
}
static weft_tensor *probe_run(weft_tensor *const *x, void *layer)
{
    return weft_attention_run(layer, x[0], x[1], WEFT_ALL_KEYS, NULL);
}

Test(attention, additive_and_general)
{
    static const weft_attention_layer_opts opts[] = { { WEFT_ADDITIVE, DQ, DM, WIDTH, 0 },
                                                      { WEFT_GENERAL, DQ, DM, 0, 0 } };
    FOR_DEVICES(w)
    for (int i = 0; i < 2; i++) {
        weft_module *m = weft_module_new(w, "m");
        weft_attention_layer *l = weft_attention_new(m, "l", &opts[i]);
        score *f = i ? general_score : additive_score;
        renew(m);
        attention_holds(w, m, f, at_once, l);
        attention_holds(w, m, f, projected_once, l);
        weft_tensor *memory = ragged(w, DM, &m_lengths), *q = ragged(w, DQ, &q_lengths);
        gradients_hold(m, (probe){ probe_run, l }, (weft_tensor *[]){ q, memory }, 2);
        gradients_hold(m, (probe){ probe_run, l }, (weft_tensor *[]){ drawn(w, WEFT_SHAPE(N, DQ)), memory },
                       2);
        gradients_hold(m, (probe){ probe_projected, l }, (weft_tensor *[]){ q, memory }, 2);
    }
}

/* ---- several heads ---- */
static double head_score(const weft_module *m, const weft_real *q, const weft_real *k, int head)
{
    (void)m;
    return dot(q + head * (DM / HEADS), k + head * (DM / HEADS), DM / HEADS) / sqrt(DM / HEADS);
}

static void heads_hold(weft *w, const weft_module *m, weft_attention_layer *l, bool self, bool plain,
                       weft_causal causal)
{
    const int32_t *len = plain ? ones : self ? m_len : q_len;
    weft_tensor *memory = ragged(w, DM, &m_lengths), *map = NULL;
    weft_tensor *q = self  ? memory :
                     plain ? drawn(w, WEFT_SHAPE(N, DM)) :
                             ragged(w, DM, &(weft_lengths){ .n = N, .len = len });
    weft_real part[3][16 * DM], mixed[16 * DM], want[16 * DM], want_map[PAIRS],
        *weight = of(m, "l.in_proj_weight"), *bias = of(m, "l.in_proj_bias");
    for (int i = 0; i < 3; i++)
        product(numbers(i ? memory : q), weight + i * DM * DM, bias + i * DM, weft_size(i ? memory : q, 0),
                DM, DM, part[i]);
    stretch s = { 0 };
    int64_t pairs = 0;
    for (int i = 0; i < N; i++, s.first_q += s.q, s.first_k += s.k, pairs += s.q * s.k) {
        s.q = len[i];
        s.k = m_len[i];
        attend(m, head_score, causal, HEADS, s, part[0], DM, part[1], DM, part[2], DM, mixed,
               want_map + HEADS * pairs);
    }
    product(mixed, of(m, "l.out_proj.weight"), of(m, "l.out_proj.bias"), s.first_q, DM, DM, want);
    weft_tensor *y = weft_attention_run(l, q, memory, causal, &map);
    OK(w);
    cr_assert((weft_layout_of(y) == WEFT_PLAIN) == plain && weft_size(y, 0) == s.first_q &&
              weft_size(y, 1) == DM);
    close_to("y", numbers(y), want, weft_numel(y), EXACT);
    cr_assert(weft_numel(map) == HEADS * pairs && weft_size(map, 1) == HEADS &&
              weft_lengths_of(map).n == s.first_q);
    close_to("map", numbers(map), want_map, HEADS * pairs, EXACT);
    close_to("without a map", numbers(weft_attention_run(l, q, memory, causal, NULL)), want, weft_numel(y),
             EXACT);
    weft_attention_memory projected = weft_attention_project(l, memory);
    weft_tensor *apart = weft_attention_query(l, q, projected, causal, &map);
    same_bits("projected once", numbers(apart), numbers(y), weft_numel(y));
}

static weft_tensor *probe_cross(weft_tensor *const *x, void *l)
{
    return weft_attention_run(l, x[0], x[1], WEFT_CAUSAL_TOP_LEFT, NULL);
}
static weft_tensor *probe_self(weft_tensor *const *x, void *l)
{
    return weft_attention_run(l, x[0], x[0], WEFT_ALL_KEYS, NULL);
}

Test(attention, multihead_attention)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_attention_layer *l = weft_attention_new(
            m, "l", &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = DM, .heads = HEADS });
        cr_assert(weft_parameter_numel(m) == 3 * DM * DM + 3 * DM + DM * DM + DM);
        cr_assert(of(m, "l.in_proj_bias")[0] == 0 && of(m, "l.out_proj.bias")[0] == 0);
        renew(m);
        for (int causal = WEFT_ALL_KEYS; causal <= WEFT_CAUSAL_STRICT; causal++)
            for (int kind = 0; kind < 3; kind++)
                heads_hold(w, m, l, kind == 1, kind == 2, (weft_causal)causal);
        gradients_hold(m, (probe){ probe_cross, l },
                       (weft_tensor *[]){ ragged(w, DM, &q_lengths), ragged(w, DM, &m_lengths) }, 2);
        gradients_hold(m, (probe){ probe_self, l }, (weft_tensor *[]){ ragged(w, DM, &m_lengths) }, 1);
    }
}

Test(attention, a_plain_query_is_one_token_a_sequence)
{
    weft *w = open_on(WEFT_CPU);
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
    CLEAN(w);
}

Test(attention, a_decoder_step_takes_no_memory_from_the_system, .init = unchecked)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_attention_layer *a = weft_attention_new(
        m, "a", &(weft_attention_layer_opts){ .kind = WEFT_ADDITIVE, .dq = DQ, .dm = DM, .width = WIDTH });
    weft_attention_layer *g =
        weft_attention_new(m, "g", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = DQ, .dm = DM });
    weft_embedding *e = weft_embedding_new(
        m, "e", &(weft_embedding_opts){ .rows = 9, .columns = DQ, .padding = 0, .has_padding = true });
    int64_t before = 0;
    for (int step = 0; step < 6; step++) {
        weft_tensor *memory = ragged(w, DM, &m_lengths), *q = weft_embedding_run(e, weft_arange(w, 0, N, 1)),
                    *map;
        for (int i = 0; i < 5; i++)
            q = weft_slice(weft_add(weft_attention_run(a, q, memory, WEFT_ALL_KEYS, &map),
                                    weft_attention_run(g, q, memory, WEFT_ALL_KEYS, NULL)),
                           1, 0, DQ);
        weft_backward(weft_sum_all(q));
        weft_clear(w);
        cr_assert(step < 3 || allocations(w) == before, "step %d allocates", step);
        before = allocations(w);
    }
    CLEAN(w);
}

/* Multi-head attention, forward and backward; the allocation that is the n-th from its beginning fails.
 * False: it failed for want of memory. */
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
Test(attention, memory_that_is_not_there_is_told_or_changes_no_bit)
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
