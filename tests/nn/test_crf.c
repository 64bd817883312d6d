/* test_crf.c - tests conditional random fields against all paths, in every layout. */
#include "tests/check.h"

enum { K = 3, N = 8, SEQUENCES = 4 };
static const int32_t lens[SEQUENCES] = { 4, 0, 1, 3 }, tags[N] = { 1, 1, 0, 2, 2, 0, 2, 1 };
static const weft_lengths lengths = { .n = SEQUENCES, .len = lens };

typedef struct {
    weft_crf *c;
    weft_real x[N * K], start[K], end[K], move[K * K];
} field;
static field field_of(weft *w)
{
    weft_module *m = weft_module_new(w, "m");
    field f = { .c = weft_crf_new(m, "crf", &(weft_crf_opts){ .tags = K }) };
    dice_fill(f.x, N * K, -2, 2);
    weft_real *values[] = { f.start, f.end, f.move };
    static const char *const names[] = { "crf.start_transitions", "crf.end_transitions", "crf.transitions" };
    for (int i = 0; i < 3; i++) {
        weft_tensor *p = weft_find_parameter(m, names[i]);
        weft_assign_values(p, dice_fill(values[i], weft_numel(p), -1, 1), weft_numel(p));
    }
    return f;
}
static double score_of(const field *f, const weft_real *x, int32_t n, const int32_t *y)
{
    double score = n ? (double)f->start[y[0]] + (double)f->end[y[n - 1]] : 0;
    for (int32_t t = 0; t < n; t++)
        score += (double)x[t * K + y[t]] + (t ? (double)f->move[y[t - 1] * K + y[t]] : 0);
    return score;
}

/* Sums over all paths: the loss, marginals [N, K], and the best path of each sequence. */
static double by_paths(const field *f, weft_real *marginal, int32_t *best)
{
    double loss = 0;
    for (int s = 0, at = 0; s < SEQUENCES; at += lens[s++]) {
        double z = 0, most = -HUGE_VAL, share[4 * K] = { 0 };
        for (int path = 0; path < (int)pow(K, lens[s]); path++) {
            int32_t y[4];
            for (int t = 0, rest = path; t < lens[s]; t++, rest /= K)
                y[t] = rest % K;
            double score = score_of(f, f->x + at * K, lens[s], y);
            z += exp(score);
            for (int t = 0; t < lens[s]; t++)
                share[t * K + y[t]] += exp(score);
            if (score > most)
                most = score, memcpy(best + at, y, (size_t)lens[s] * sizeof *y);
        }
        for (int i = 0; i < lens[s] * K; i++)
            marginal[at * K + i] = (weft_real)(share[i] / z);
        loss += lens[s] ? log(z) - score_of(f, f->x + at * K, lens[s], tags + at) : 0;
    }
    return loss;
}

TABLE_TEST(crf, is_the_sum_over_all_paths)
{
    field f = field_of(w);
    weft_real marginal[N * K];
    int32_t best[N], got[N];
    const double want = by_paths(&f, marginal, best);
    FOR_LAYOUTS(layout)
    for (int recording = 0; recording < 2; recording++) {
        weft_set_grad_enabled(w, recording);
        weft_tensor *x = laid_out(weft_ragged(w, f.x, K, &lengths), layout);
        weft_loss l = weft_crf_loss(f.c, x, laid_out(weft_ragged_ints(w, tags, &lengths), layout));
        weft_real sums[] = { (weft_real)weft_item(l.sum), (weft_real)weft_item(l.weight) },
                  both[] = { (weft_real)want, N };
        close_to("loss and weight", sums, both, 2, TOL(1e-12, 2e-6));
        weft_tensor *p = weft_to_layout(weft_crf_marginals(f.c, x), WEFT_CONCAT);
        close_to("marginals", numbers(p), marginal, N * K, TOL(1e-12, 2e-6));
        weft_read_sequences(weft_crf_best(f.c, x), got, sizeof got);
        cr_assert_arr_eq(got, best, sizeof best);
        weft_clear(w);
    }
    weft_set_grad_enabled(w, true);
}

/* The best path scores at least as much as 1,000 random ones. */
CPU_TEST(crf, finds_no_better_random_path)
{
    enum { LONG = 40 };
    field f = field_of(w);
    weft_real x[LONG * K];
    int32_t n = LONG, y[LONG];
    dice_fill(x, LONG * K, -2, 2);
    weft_tensor *best = weft_crf_best(f.c, weft_ragged(w, x, K, &(weft_lengths){ .n = 1, .len = &n }));
    weft_read_sequences(best, y, sizeof y);
    const double most = score_of(&f, x, LONG, y);
    for (int i = 0; i < 1000; i++) {
        for (int t = 0; t < LONG; t++)
            y[t] = (int32_t)dice(K);
        cr_assert(score_of(&f, x, LONG, y) <= most);
    }
}

REF_TEST(crf, refuses_what_does_not_fit, .init = unchecked)
{
    field f = field_of(w);
    int32_t bad[N];
    memcpy(bad, tags, sizeof bad);
    bad[6] = K; /* token 1 of sequence 3 */
    FAILS_AT(w, weft_crf_loss(f.c, weft_ragged(w, f.x, K, &lengths), weft_ragged_ints(w, bad, &lengths)),
             WEFT_EARG, "tag 3 at token 1 of sequence 3; expected 0 .. 2");
    weft_tensor *x = weft_ragged(w, f.x, K, &lengths);
    FAILS_AT(w, weft_crf_loss(f.c, x, weft_ints(w, tags, WEFT_SHAPE(N))), WEFT_ESHAPE, "of the batch");
    FAILS_AT(w, weft_crf_best(f.c, weft_ragged(w, f.x, 2, &lengths)), WEFT_ESHAPE, "ragged [N, 3]");
    weft_crf_new(weft_module_new(w, "large"), "crf", &(weft_crf_opts){ .tags = 46341 });
    FAILS(w, WEFT_EARG, "46341 tags; expected at most 46340");
    f.x[4] = (weft_real)NAN;
    FAILS_AT(w, weft_crf_best(f.c, weft_ragged(w, f.x, K, &lengths)), WEFT_ENUMERIC, "sequence 0");
}

static weft_tensor *loss_of(weft_tensor *const *x, void *user)
{
    weft *w = weft_context_of(x[0]);
    return weft_mean_loss(weft_crf_loss(user, x[0], weft_ragged_ints(w, tags, &lengths)));
}
CPU_TEST(crf, gradients_match_differences, .timeout = 60)
{
    field f = field_of(w);
    FOR_LAYOUTS(layout)
    {
        weft_tensor *x = laid_out(weft_ragged(w, f.x, K, &lengths), layout);
        double first = weft_gradcheck(loss_of, &x, 1, 1, f.c),
               second = weft_gradcheck(loss_of, &x, 1, 2, f.c);
        OK(w);
        cr_assert(first < TOL(1e-8, 2e-3) && second < TOL(1e-7, 2e-2), "layout %d: %g, %g", layout, first,
                  second);
        weft_clear(w);
    }
}
