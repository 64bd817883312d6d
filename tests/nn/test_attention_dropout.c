/* test_attention_dropout.c - tests dropout of attention weights. The mask is that of weft_dropout, the same
 * on every table, in every layout and batch, forward and backward. The remaining weights keep the mean.
 * op_cases.def tests the gradients. */
#include "tests/check.h"
#include "autograd/tape.h"

enum { HEADS = 2, WIDTH = 4, S = 5, MOST = 4096 };
static const weft_real P = (weft_real).25;
static const int32_t q_len[S] = { 3, 0, 5, 1, 4 }, k_len[S] = { 140, 3, 2, 1, 0 };
static const int64_t ids[S] = { 7, -1, (int64_t)5 << 40, 0, 9 };

static weft_attention_opts opts(weft_causal causal)
{
    return (weft_attention_opts){ .heads = HEADS, .causal = causal, .dropout = P, .name = "weights" };
}
static weft_tensor *drawn(weft *w, int64_t width, const weft_lengths *l)
{
    static weft_real x[MOST];
    return weft_ragged(w, dice_fill(x, MOST, -1, 1), width, l);
}
static const weft_real nothing[MOST * 8];
/* The weights that the kernel leaves, or the operators do. */
static weft_tensor *map_by(bool operators, weft_tensor *q, weft_tensor *k, const weft_attention_opts *o)
{
    weft *w = weft_context_of(q);
    weft_tensor *map;
    bool was = weft_set_grad_enabled(w, operators);
    weft_attention(q, k, k, o, &map);
    weft_set_grad_enabled(w, was);
    OK(w);
    return map;
}
/* the next mask of a name is its first in this step */
static void anew(weft *w) { if (w->tape) w->tape->dropouts = NULL; }

/* ---- the function that the mask is ---- */
/* With one head, the mask is that of weft_dropout for a tensor whose tokens are the queries and whose columns
 * are the keys. */
TABLE_TEST(attention_dropout, uses_the_mask_of_dropout)
{
    enum { K = 150 };
    int32_t keys[S];
    for (int s = 0; s < S; s++)
        keys[s] = K;
    weft_tensor *q = drawn(w, 1, &(weft_lengths){ .n = S, .len = q_len, .id = ids }),
                *k = weft_ragged(w, nothing, 1, &(weft_lengths){ .n = S, .len = keys });
    weft_tensor *ones = weft_add(
        weft_ragged(w, nothing, K, &(weft_lengths){ .n = S, .len = q_len, .id = ids }), weft_scalar(w, 1));
    weft_attention_opts o = { .dropout = P, .name = "m.a" };
    for (int i = 0; i < 3; i++) {            /* the first, second and third call of that name */
        anew(w);
        for (int other = 0; other < i; other++)
            weft_dropout(ones, P, "m.a", false);
        weft_real *map = numbers(map_by(i == 1, q, k, &o));
        anew(w);
        for (int other = 0; other < i; other++)
            weft_dropout(ones, P, "m.a", false);
        weft_real *mask = numbers(weft_dropout(ones, P, "m.a", false));
        for (int64_t at = 0; at < weft_numel(ones); at++)
            cr_assert(fabs((double)map[at] * K - (double)mask[at]) < 1e-4, "at %lld: %g, %g",
                      (long long)at, (double)map[at] * K, (double)mask[at]);
    }
}
CPU_TEST(attention_dropout, has_a_new_mask_for_each_head_call_step_name_and_seed)
{
    weft *twin = open_with((weft_opts){ .device = WEFT_CPU, .seed = 2 });
    enum { L = 64 };
    weft_real first[2][L * L * HEADS];
    for (int i = 0; i < 5; i++) {
        weft *now = i == 4 ? twin : w;
        if (i == 2)
            weft_clear(w);
        weft_tensor *x = weft_ragged(now, nothing, WIDTH, &(weft_lengths){ .n = 1, .len = (int32_t[]){ L } });
        weft_attention_opts o = opts(WEFT_ALL_KEYS);
        o.name = i == 3 ? "another" : o.name;
        memcpy(first[i > 0], numbers(map_by(false, x, x, &o)), sizeof first[0]);
        int same = 0, of_heads = 0;
        for (int j = 0; j < L * L * HEADS; j++) {
            same += i && (first[0][j] == 0) == (first[1][j] == 0);
            of_heads += j % HEADS && (first[i > 0][j] == 0) == (first[i > 0][j - 1] == 0);
        }
        double agree = 1 - 2 * .25 * .75;        /* expected agreement of independent masks */
        cr_assert(i == 0 || fabs(same / (double)(L * L * HEADS) - agree) < .03, "case %d: %d", i, same);
        cr_assert(fabs(of_heads / (double)(L * L) - agree) < .03, "case %d: heads agree %d times", i,
                  of_heads);
    }
    CLEAN(twin);
}

/* ---- off, and backward ---- */
TABLE_TEST(attention_dropout, is_off_outside_training)
{
    weft_tensor *q = drawn(w, WIDTH, &(weft_lengths){ .n = S, .len = q_len, .id = ids }),
                *k = drawn(w, WIDTH, &(weft_lengths){ .n = S, .len = k_len });
    weft_attention_opts o = opts(WEFT_CAUSAL_BOTTOM_RIGHT),
                        none = { .heads = HEADS, .causal = WEFT_CAUSAL_BOTTOM_RIGHT };
    weft_real *want = numbers(weft_attention(q, k, k, &none, NULL)),
              *dropped = numbers(weft_attention(q, k, k, &o, NULL));
    size_t bytes = (size_t)weft_numel(q) * sizeof *want;
    weft_set_training(w, false);
    weft_real *off = numbers(weft_attention(q, k, k, &o, NULL)), *map = numbers(map_by(false, q, k, &o));
    same_bits("not in training", off, want, weft_numel(q));
    cr_assert(memcmp(dropped, want, bytes) && map[HEADS] != 0);
    weft_set_training(w, true);
    uint64_t calls = w->tape->dropouts->calls;
    weft_attention(q, k, k, &none, NULL);
    cr_assert(w->tape->dropouts->calls == calls && calls == 0, "only what drops is a call");
}
/* y = M v and dv = M^T dy, with the M of the map. */
TABLE_TEST(attention_dropout, forward_map_and_backward_share_a_mask)
{
    enum { LQ = 70, LK = 90 };
    weft_lengths lq = { .n = 1, .len = (int32_t[]){ LQ } }, lk = { .n = 1, .len = (int32_t[]){ LK } };
    weft_tensor *q = drawn(w, WIDTH, &lq), *k = drawn(w, WIDTH, &lk), *v = drawn(w, HEADS, &lk),
                *dy = drawn(w, HEADS, &lq), *dv;
    weft_attention_opts o = opts(WEFT_CAUSAL_STRICT);
    weft_real *m = numbers(map_by(false, q, k, &o)), *values = numbers(v), *dys = numbers(dy),
              want[LQ * HEADS] = { 0 }, want_dv[LK * HEADS] = { 0 };
    anew(w);
    weft_tensor *y = weft_attention(q, k, v, &o, NULL), *loss = weft_sum_all(weft_mul(y, dy));
    weft_set_grad_enabled(w, false);
    weft_gradients(loss, &v, 1, &dv);
    for (int i = 0; i < LQ; i++)
        for (int j = 0; j < LK * HEADS; j++) {
            want[i * HEADS + j % HEADS] += m[i * LK * HEADS + j] * values[j];
            want_dv[j] += m[i * LK * HEADS + j] * dys[i * HEADS + j % HEADS];
        }
    close_to("y", numbers(y), want, LQ * HEADS, TOL(1e-13, 3e-6));
    close_to("dv", numbers(dv), want_dv, LK * HEADS, TOL(1e-13, 3e-6));
}

/* ---- refused options, failures of memory ---- */
CPU_TEST(attention_dropout, refuses_invalid_options)
{
    static const struct {
        weft_real dropout;
        const char *name;
        weft_causal causal;
        const char *says;
    } bad[] = { { (weft_real)-.1, "a", WEFT_ALL_KEYS, "dropout: expected 0 <= dropout < 1" },
                { 1, "a", WEFT_ALL_KEYS, "dropout: expected 0 <= dropout < 1" },
                { (weft_real)NAN, "a", WEFT_ALL_KEYS, "dropout: expected 0 <= dropout < 1" },
                { (weft_real).1, NULL, WEFT_ALL_KEYS, "name: expected a name" },
                { 0, "a", (weft_causal)4, "causal: expected a value of weft_causal" },
                { 0, "a", (weft_causal)-1, "causal: expected a value of weft_causal" } };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_tensor *q = drawn(w, WIDTH, &(weft_lengths){ .n = S, .len = q_len }), *map = NULL;
        weft_attention_opts o = { .dropout = bad[i].dropout, .name = bad[i].name, .causal = bad[i].causal };
        weft_attention(q, q, q, &o, &map);
        cr_assert(map && weft_numel(map) == 0, "an inert map");
        char all[200];
        snprintf(all, sizeof all, "attention: [13, 4] concat: %s", bad[i].says);
        FAILS(w, WEFT_EARG, all);
    }
}
