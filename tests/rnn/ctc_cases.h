/* ctc_cases.h - six sequences of logits and labels, and the loss of CTC by all paths. */
#ifndef WEFT_TESTS_CTC_CASES_H
#define WEFT_TESTS_CTC_CASES_H
#include "tests/check.h"

enum { CLASSES = 5 };
UNUSED static weft_real wave(int64_t i, int seed)
{
    return (weft_real)(3 * sin(seed + 1.7 * (double)i + .3 * (double)(i % 11)));
}

/* Sequence 1 has no labels; in sequence 4 the labels fill the steps. */
static const int32_t steps[] = { 7, 5, 4, 6, 9, 3 }, labels[] = { 3, 0, 3, 3, 9, 2 },
                     label[] = { 1, 2, 1, 2, 2, 1, 3, 3, 1, 1, 2, 3, 2, 1, 3, 1, 2, 3, 4, 4 };
static const weft_lengths step_lengths = { .n = 6, .len = steps }, label_lengths = { .n = 6, .len = labels };
UNUSED static weft_tensor *torch_logits(weft *w)
{
    weft_real x[34 * CLASSES], *to = x;
    for (int s = 0; s < 6; s++)
        for (int64_t i = 0; i < (int64_t)steps[s] * CLASSES; i++)
            *to++ = wave(i, s);
    return weft_ragged(w, x, CLASSES, &step_lengths);
}

/* Returns -log p of the labels by all paths. */
enum { T = 5, C = 3 };
UNUSED static double by_paths(int t, const weft_real *x, int n, const int32_t *want, int32_t blank)
{
    double p = 0, norm = 0;
    for (int k = 0, paths = (int)pow(C, t); k < paths; k++) {
        int32_t got[T], m = 0, before = -1;
        double score = 0;
        for (int i = 0, rest = k; i < t; i++, rest /= C) {
            int32_t c = rest % C;
            score += (double)x[i * C + c];
            if (c != blank && c != before)
                got[m++] = c;
            before = c;
        }
        norm += exp(score);
        p += m == n && !memcmp(got, want, (size_t)n * sizeof *got) ? exp(score) : 0;
    }
    return -log(p / norm);
}
#endif
