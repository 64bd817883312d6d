/* metrics.c - what is counted beside a loss: accuracies, edit distance. Nothing here is on the tape. */
#include <math.h>
#include <stdlib.h>
#include "autograd/fused.h"
#include "nn/loss.h"

/* ---- accuracies ---- */
typedef struct { weft_tensor *right, *counts; } hits;             /* per row: 0 or 1, and what it counts */

weft_tensor *weft__predicted(const char *name, weft_tensor *scores, weft_tensor *classes)
{
    char a[128], b[128];
    if (scores && !weft__wrong(scores->w, scores) && scores->f.type != WEFT_REAL)
        weft__fail(scores->w, WEFT_EARG, "%s: the scores are %s; reals are expected, scores before classes",
                   name, weft__text(&scores->f, a));
    weft_tensor *best = weft_argmax(scores, -1);
    if (weft_ok(best->w) && !weft__wrong(best->w, classes) && !weft__alike(&best->f, &classes->f, -1))
        weft__fail(best->w, WEFT_ESHAPE, "%s: scores %s, classes %s: [.., classes] and [..] are expected",
                   name, weft__text(&scores->f, a), weft__text(&classes->f, b));
    return best;
}

static hits compared(const char *name, weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    weft_tensor *best = weft__predicted(name, scores, classes);
    return (hits){ weft_equal(weft_to_reals(best), weft_to_reals(classes)),
                   weft__entropy_weight(classes, weft_size(scores, -1), opts, false) };
}

static weft_ratio token_hits(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    hits h = compared("accuracy", scores, classes, opts);
    return (weft_ratio){ weft_sum_all(weft_mul(h.right, h.counts)), weft_sum_all(h.counts) };
}

/* A sequence is right if nothing that counts in it is wrong; it counts if anything in it does. */
static weft_ratio sequence_hits(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    char text[128];
    if (scores && !weft__wrong(scores->w, scores) && !scores->f.batch)
        weft__fail(scores->w, WEFT_ESHAPE, "sequence_accuracy: the scores are %s; ragged ones are expected",
                   weft__text(&scores->f, text));
    hits h = compared("sequence_accuracy", scores, classes, opts);
    weft_tensor *none = weft_scalar(scores ? scores->w : NULL, 0);
    weft_tensor *wrong = weft_pool(weft_mul(weft_equal(h.right, none), h.counts), WEFT_POOL_SUM);
    weft_tensor *counts = weft_greater(weft_pool(h.counts, WEFT_POOL_SUM), none);
    return (weft_ratio){ weft_sum_all(weft_mul(weft_equal(wrong, none), counts)), weft_sum_all(counts) };
}

weft_tensor *weft_ratio_value(weft_ratio r)
{
    weft *w = weft_context_of(r.right);
    weft_tensor *y = NULL;
    WEFT_NO_GRAD(w)                              /* none of none is 0 / 1 */
        y = weft_div(r.right, weft_add(r.total, weft_equal(r.total, weft_scalar(w, 0))));
    return y;
}

weft_ratio weft_accuracy(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    weft_ratio r = { 0 };
    WEFT_NO_GRAD(weft_context_of(scores))
        r = token_hits(scores, classes, opts);
    return r;
}

weft_ratio weft_sequence_accuracy(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    weft_ratio r = { 0 };
    WEFT_NO_GRAD(weft_context_of(scores))
        r = sequence_hits(scores, classes, opts);
    return r;
}

/* ---- edit distance ---- */
static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* One row of the table is turned into the next in place: row[j] is the distance of a's first i to b's
 * first j, corner that of i - 1, j - 1. */
static void next_row(int64_t *row, int64_t i, int32_t symbol, const int32_t *b, int64_t nb)
{
    int64_t corner = row[0];
    row[0] = i;
    for (int64_t j = 1; j <= nb; j++) {
        int64_t changed = corner + (symbol != b[j - 1]);
        corner = row[j];
        row[j] = lesser(changed, lesser(row[j], row[j - 1]) + 1);
    }
}

int64_t weft_edit_distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb)
{
    na = na < 0 ? 0 : na, nb = nb < 0 ? 0 : nb;
    bool sound = (a || !na) && (b || !nb) && (uint64_t)nb < SIZE_MAX / sizeof(int64_t);
    int64_t *row = sound ? malloc(((size_t)nb + 1) * sizeof *row) : NULL;
    if (!row)
        return -1;
    for (int64_t j = 0; j <= nb; j++)
        row[j] = j;
    for (int64_t i = 1; i <= na; i++)
        next_row(row, i, a[i - 1], b, nb);
    int64_t distance = row[nb];
    free(row);
    return distance;
}
