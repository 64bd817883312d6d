/* test_interpretable_mask.c - a memory row that a mask hides from a query changes no bit of its result, map
 * or a gradient, even if it is not finite. */
#include "tests/check.h"

/* Query i sees keys i and i + 1. Key TK - 1 is NaN: no bit of a query that does not see it may change. */
Test(interpretable_mask, hides_what_is_not_finite, .init = unchecked)
{
    enum { D = 6, TQ = 5, TK = 6, KEYS = TK * D };
    weft_real query[TQ * D], key[2][KEYS], seen[TQ * TK], *y[2], *all[2], *of_q[2], *of_key[2];
    for (int i = 0; i < TQ * D; i++)
        query[i] = (weft_real)cos(i);
    for (int i = 0; i < KEYS; i++) {
        key[0][i] = (weft_real)sin(i);
        key[1][i] = i < KEYS - D ? key[0][i] : (weft_real)(i % 2 ? NAN : INFINITY);
    }
    for (int i = 0; i < TQ * TK; i++)
        seen[i] = i % TK == i / TK || i % TK == i / TK + 1;
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_interpretable_attention *a = weft_interpretable_attention_new(
            m, "a", &(weft_interpretable_attention_opts){ .d_model = D, .heads = 2 });
        weft_tensor *q = weft_reals(w, query, WEFT_SHAPE(1, TQ, D)),
                    *mask = weft_reals(w, seen, WEFT_SHAPE(1, TQ, TK));
        for (int k = 0; k < 2; k++) {
            weft_tensor *of[] = { q, weft_reals(w, key[k], WEFT_SHAPE(1, TK, D)) }, *d[2], *map;
            weft_tensor *out =
                weft_interpretable_attention_run(a, of[0], of[1], WEFT_ALL_KEYS, mask, &map);
            weft_tensor *loss = weft_sum_all(weft_square(weft_slice(out, 1, 0, TQ - 1)));
            y[k] = numbers(out), all[k] = numbers(weft_transpose(map, 1, 2));
            WEFT_NO_GRAD(w)
                weft_gradients(loss, of, 2, d);
            of_q[k] = numbers(d[0]), of_key[k] = numbers(d[1]);
        }
        same_bits("results", y[1], y[0], (TQ - 1) * D);
        cr_expect(isnan(y[1][(TQ - 1) * D]) && !isnan(y[0][(TQ - 1) * D]));
        same_bits("map", all[1], all[0], (TQ - 1) * 2 * TK);
        same_bits("gradient of queries", of_q[1], of_q[0], TQ * D);
        same_bits("gradient of memory", of_key[1], of_key[0], KEYS);
    }
}
