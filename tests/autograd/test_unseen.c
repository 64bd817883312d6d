/* test_unseen.c - tests that a NaN or an infinity that a query does not attend to changes no bit of its
 * result, its map or a gradient, under every causal mask, kernel and precision. */
#include "tests/check.h"

enum { HEADS = 2, MOST_ROWS = 560, MOST_WIDTH = 2 * 40, MOST = MOST_ROWS * MOST_WIDTH };
typedef struct shape { int queries, keys, width; } shape;         /* width of a head */
/* The non-finite rows: the first query and its gradient of y; keys and values from `key` on. */
typedef struct spoilt { bool first_query; int key; } spoilt;
typedef struct results { weft_real *y, *map, *kernel_y, *kernel_map, *dq, *dk, *dv; } results;
static const weft_real odd[] = { NAN, INFINITY, -INFINITY };

static weft_tensor *rows(weft *w, int n, int width, int from, int end, uint64_t seed)
{
    static weft_real x[MOST];
    dice_seed(seed);
    dice_fill(x, n * width, -1, 1);
    for (int i = from * width; i < end * width; i++)
        x[i] = i % 2 ? x[i] : odd[i % 3];
    return weft_ragged(w, x, width, &(weft_lengths){ .n = 1, .len = (int32_t[]){ n } });
}
static results attend(weft *w, shape s, weft_attention_opts o, bool with_map, spoilt bad)
{
    const int dv = o.shared_values ? s.width : HEADS * s.width, dy = o.mean_heads ? s.width : HEADS * s.width;
    weft_tensor *of[] = { rows(w, s.queries, HEADS * s.width, 0, bad.first_query, 1),
                          rows(w, s.keys, HEADS * s.width, bad.key, s.keys, 2),
                          rows(w, s.keys, dv, bad.key, s.keys, 3) };
    weft_tensor *d[3], *map, *y = weft_attention(of[0], of[1], of[2], &o, with_map ? &map : NULL);
    weft_tensor *loss = weft_sum_all(weft_mul(y, rows(w, s.queries, dy, 0, bad.first_query, 4)));
    results r = { .y = numbers(weft_to_layout(y, WEFT_CONCAT)),
                  .map = with_map ? numbers(weft_to_layout(map, WEFT_CONCAT)) : NULL };
    WEFT_NO_GRAD(w)
        weft_gradients(loss, of, 3, d);
    WEFT_NO_GRAD(w)                              /* the map of the kernel itself */
        r.kernel_y = numbers(weft_to_layout(weft_attention(of[0], of[1], of[2], &o, &map), WEFT_CONCAT));
    OK(w);
    r.kernel_map = numbers(weft_to_layout(map, WEFT_CONCAT));
    r.dq = numbers(d[0]), r.dk = numbers(d[1]), r.dv = numbers(d[2]);
    return r;
}
/* Compares queries from .. end, and keys from first_key on unless it is negative. */
static void compare(const char *what, shape s, weft_attention_opts o, results a, results b, int from, int end,
                    int first_key)
{
    const int wide = HEADS * s.width, dv = o.shared_values ? s.width : wide,
              dy = o.mean_heads ? s.width : wide;
    char name[200];
    snprintf(name, sizeof name, "%s: %d queries, %d keys, causal %d, shared %d, mean %d, map %d", what,
             s.queries, s.keys, (int)o.causal, o.shared_values, o.mean_heads, a.map != NULL);
    const int in_map = s.keys * HEADS;
    same_bits(name, a.y + from * dy, b.y + from * dy, (end - from) * dy);
    same_bits(name, a.kernel_y + from * dy, b.kernel_y + from * dy, (end - from) * dy);
    same_bits(name, a.kernel_map + from * in_map, b.kernel_map + from * in_map, (end - from) * in_map);
    if (a.map)
        same_bits(name, a.map + from * in_map, b.map + from * in_map, (end - from) * in_map);
    same_bits(name, a.dq + from * wide, b.dq + from * wide, (end - from) * wide);
    if (first_key < 0)
        return;
    same_bits(name, a.dk + first_key * wide, b.dk + first_key * wide, (s.keys - first_key) * wide);
    same_bits(name, a.dv + first_key * dv, b.dv + first_key * dv, (s.keys - first_key) * dv);
}
/* Tests three cases: keys that no query sees, keys that only the last query sees, and a first query that sees
 * only one key. */
static void unseen(weft *w, int queries, int width, weft_attention_opts o, bool with_map)
{
    const spoilt none = { false, 1 << 20 };
    shape s = { queries, queries, width };
    results want = attend(w, s, o, with_map, none);
    const int seen = o.causal == WEFT_CAUSAL_STRICT ? 2 : 1;
    compare("the last key", s, o, attend(w, s, o, with_map, (spoilt){ false, queries - seen }), want, 0,
            queries - 1, -1);
    compare("the first query", s, o, attend(w, s, o, with_map, (spoilt){ true, 1 << 20 }), want, 1, queries,
            1);
    weft_clear(w);
    if (o.causal != WEFT_CAUSAL_TOP_LEFT)
        return;
    s.keys += 9;
    want = attend(w, s, o, with_map, none);
    compare("keys beyond", s, o, attend(w, s, o, with_map, (spoilt){ false, queries }), want, 0, queries, 0);
    weft_clear(w);
}
static void all_kinds(weft *w, int queries, int width)
{
    static const struct { bool shared, mean;
    } kinds[] = { { false, false }, { true, false }, { true, true } };
    for (int causal = WEFT_CAUSAL_TOP_LEFT; causal <= WEFT_CAUSAL_STRICT; causal++)
        for (int k = 0; k < COUNT(kinds); k++)
            for (int with_map = 0; with_map < (queries < 100 ? 2 : 1); with_map++)
                unseen(w, queries, width,
                       (weft_attention_opts){ .heads = HEADS, .causal = (weft_causal)causal,
                                              .shared_values = kinds[k].shared,
                                              .mean_heads = kinds[k].mean },
                       with_map);
}
TABLE_TEST(unseen, changes_no_bit, .init = unchecked)
{
    all_kinds(w, 39, 5);
    all_kinds(w, 30, 40);
}
/* More than one block of keys. */
TABLE_TEST(unseen, changes_no_bit_of_long_sequences, .init = unchecked)
{
    all_kinds(w, strcmp(weft_device_name(w), "ref") ? 530 : 60, 8);
}
Test(unseen, changes_no_bit_in_other_precisions, .init = unchecked)
{
    static const weft_precision precisions[] = { WEFT_TF32, WEFT_BF16 };
    for (int i = 0; i < COUNT(tables); i++)
        for (int p = 0; p < COUNT(precisions) && table_is_here(tables[i].name); p++) {
            setenv("WEFT_ISA", tables[i].tier ? tables[i].name : "", 1);
            weft *w = open_with((weft_opts){ .device = tables[i].device, .precision = precisions[p] });
            all_kinds(w, 40, 40);
            CLEAN(w);
        }
    unsetenv("WEFT_ISA");
}
/* One query sees no key, another only finite keys, next to a sequence without keys. */
TABLE_TEST(unseen, other_sequences_change_no_bit, .init = unchecked)
{
    enum { D = 6, N = 12 };
    static weft_real x[2][2 * N * D];
    for (int i = 0; i < 2 * N * D; i++)
        x[0][i] = (weft_real)sin(i), x[1][i] = i < N * D ? x[0][i] : (weft_real)NAN;
    for (int causal = 0; causal <= WEFT_CAUSAL_STRICT; causal++) {
        weft_real *y[2], *map[2];
        for (int k = 0; k < 2; k++) {
            weft_tensor *of_all, *r = weft_ragged(
                w, x[k], D, &(weft_lengths){ .n = 2, .len = (int32_t[]){ N, N } });
            const weft_attention_opts o = { .heads = 2, .causal = (weft_causal)causal };
            y[k] = numbers(weft_to_layout(weft_attention(r, r, r, &o, &of_all), WEFT_CONCAT));
            map[k] = numbers(weft_to_layout(of_all, WEFT_CONCAT));
        }
        same_bits("results", y[1], y[0], N * D);
        same_bits("map", map[1], map[0], N * N * 2);
    }
}
/* A mask sets weights to 0 where the gradient is not finite. */
TABLE_TEST(unseen, masked_softmax_does_not_read_the_gradient, .init = unchecked)
{
    enum { N = 21, W = 3 };
    weft_real x[N * W], mask[N * W], dy[2][N * W];
    for (int i = 0; i < N * W; i++) {
        x[i] = (weft_real)sin(i), mask[i] = i % 5 != 2;
        dy[0][i] = (weft_real)cos(i), dy[1][i] = mask[i] != 0 ? dy[0][i] : (weft_real)NAN;
    }
    for (int axis = 0; axis < 2; axis++) {
        weft_real *dx[2];
        for (int k = 0; k < 2; k++) {
            weft_tensor *in = weft_reals(w, x, WEFT_SHAPE(N, W)), *d;
            weft_tensor *y = weft_softmax(in, axis, weft_reals(w, mask, WEFT_SHAPE(N, W)));
            weft_tensor *loss = weft_sum_all(weft_mul(y, weft_reals(w, dy[k], WEFT_SHAPE(N, W))));
            WEFT_NO_GRAD(w)
                weft_gradients(loss, &in, 1, &d);
            dx[k] = numbers(d);
        }
        same_bits("gradient", dx[1], dx[0], N * W);
    }
}
