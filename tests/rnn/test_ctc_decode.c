/* test_ctc_decode.c - tests greedy decoding and prefix beam search of CTC, and alignments, against all paths
 * and all labelings of small sequences. */
#include "tests/rnn/ctc_cases.h"

/* ---- greedy ---- */
TABLE_TEST(ctc_decode, decodes_greedily_in_each_layout, .init = unchecked)
{
    /* Sequence 0: 1 1 0 1 2 means 1 1 2; sequence 1 has no steps; sequence 2 is all blanks. */
    const int32_t best[] = { 1, 1, 0, 1, 2, 0, 0 }, len[] = { 5, 0, 2 };
    weft_real x[7 * 3] = { 0 };
    for (int t = 0; t < 7; t++)
        x[t * 3 + best[t]] = 2;
    const double log_p = 2 - log(exp(2) + 2);
    FOR_LAYOUTS(layout)
    {
        weft_tensor *logits = laid_out(weft_ragged(w, x, 3, &(weft_lengths){ .n = 3, .len = len }), layout);
        weft_decoded d = weft_ctc_greedy(logits, 0);
        OK(w);
        cr_assert(d.n == 3 && d.best == 1 && d.limit == 5 && d.len[0] == 3 && d.len[1] == 0 && d.len[2] == 0);
        cr_assert(d.tokens[0] == 1 && d.tokens[1] == 1 && d.tokens[2] == 2 && d.tokens[3] == 0);
        cr_assert(fabs(d.score[0] - 5 * log_p) < 1e-5 && d.score[1] == 0 &&
                  fabs(d.score[2] - 2 * log_p) < 1e-5);
        weft_decoded_free(&d);
        weft_clear(w);
    }
    FAILS_AT(w, weft_ctc_greedy(torch_logits(w), 5), WEFT_EARG,
             "blank 5; expected one of the classes 0 .. 4");
    x[20] = (weft_real)NAN;
    FAILS_AT(w, weft_ctc_greedy(weft_ragged(w, x, 3, &(weft_lengths){ .n = 3, .len = len }), 0),
             WEFT_ENUMERIC, "sequence 2");
}

/* ---- alignment ---- */
/* Draws logits of T steps and n labels that fit them. */
typedef struct {
    int32_t t, n, blank, label[T];
    weft_real x[T * C];
} scene;
static scene some_scene(void)
{
    scene s = { .t = (int32_t)dice(T + 1), .blank = (int32_t)dice(C) };
    int32_t need = 0;
    dice_fill(s.x, T * C, -3, 3);
    for (int i = 0; i < s.t; i++) {
        s.label[i] = (s.blank + 1 + (int32_t)dice(C - 1)) % C;
        need += 1 + (i && s.label[i] == s.label[i - 1]);
        s.n = need <= s.t && dice(4) ? i + 1 : s.n;
        if (s.n <= i)
            break;
    }
    return s;
}
/* Returns log p of the best path, or of all paths, by enumeration. */
static double best_by_paths(const scene *s)
{
    double best = -HUGE_VAL, norm = 0;
    for (int k = 0, paths = (int)pow(C, s->t); k < paths; k++) {
        int32_t m = 0, before = -1;
        double score = 0;
        bool same = true;
        for (int i = 0, rest = k; i < s->t; i++, rest /= C) {
            const int32_t c = rest % C;
            score += (double)s->x[i * C + c];
            if (c != s->blank && c != before)
                same = same && m < s->n && s->label[m] == c, m++;
            before = c;
        }
        norm += exp(score);
        best = same && m == s->n ? fmax(best, score) : best;
    }
    return best - log(norm);
}
static double score_of_path(weft_tensor *logits, weft_tensor *path)
{
    return weft_item(weft_sum_all(weft_gather(weft_log_softmax(logits, -1, NULL), path)));
}
TABLE_TEST(ctc_decode, aligns_by_the_best_of_all_paths)
{
    for (int round = 0; round < rounds(60, 2000); round++) {
        const scene s = some_scene();
        FOR_LAYOUTS(layout)
        {
            weft_tensor *x = laid_out(weft_ragged(w, s.x, C, &(weft_lengths){ .n = 1, .len = &s.t }), layout);
            weft_tensor *path = weft_ctc_align(
                x, weft_ragged_ints(w, s.label, &(weft_lengths){ .n = 1, .len = &s.n }), s.blank);
            int32_t got[T], m = 0;
            weft_read_sequences(path, got, (size_t)s.t * sizeof *got);
            OK(w);
            for (int i = 0; i < s.t; i++)
                if (got[i] != s.blank && (i == 0 || got[i] != got[i - 1]))
                    cr_assert(m < s.n && got[i] == s.label[m++]);
            cr_assert(m == s.n);
            cr_assert(fabs(score_of_path(x, path) - best_by_paths(&s)) < TOL(1e-12, 2e-5));
            weft_clear(w);
        }
    }
}

TABLE_TEST(ctc_decode, aligns_early_if_paths_are_equal)
{
    static const int32_t steps_of = 6, labels_of = 3, two_ones[] = { 1, 1, 2 }, want[] = { 1, 0, 1, 2, 0, 0 };
    static const weft_real zeros[6 * 3];
    weft_tensor *x = weft_ragged(w, zeros, 3, &(weft_lengths){ .n = 1, .len = &steps_of });
    weft_tensor *y = weft_ragged_ints(w, two_ones, &(weft_lengths){ .n = 1, .len = &labels_of });
    int32_t got[6];
    weft_read_sequences(weft_ctc_align(x, y, 0), got, sizeof got);
    cr_assert_arr_eq(got, want, sizeof want);
}

TABLE_TEST(ctc_decode, aligns_long_labels_and_refuses_what_has_no_path, .init = synchronised)
{
    const bool cpu = strcmp(weft_device_name(w), "cuda") != 0;
    weft_tensor *x = torch_logits(w), *y = weft_ragged_ints(w, label, &label_lengths), *path;
    int32_t got[34], bad[20];
    path = weft_ctc_align(x, y, 0);
    weft_read_sequences(path, got, sizeof got);
    OK(w);
    cr_assert(score_of_path(x, path) < -weft_item(weft_ctc(x, y, NULL).sum)); /* one path of all */
    for (int i = 22, m = 7; i < 31; i++) /* the labels of sequence 4 fill the steps */
        cr_assert(got[i] == label[m + i - 22 + 2]);
    weft_real *changed = numbers(x);
    for (int i = 22; i < 31; i++)
        changed[i * CLASSES + 1] = -(weft_real)INFINITY;
    FAILS_AT(w, weft_ctc_align(weft_ragged(w, changed, CLASSES, &step_lengths), y, 0), WEFT_ENUMERIC,
             "ctc_align: sequence 4: logits of -infinity leave no path");
    y = weft_ragged_ints(w, label, &label_lengths);
    changed[22 * CLASSES + 1] = (weft_real)NAN;
    FAILS_AT(w, weft_ctc_align(weft_ragged(w, changed, CLASSES, &step_lengths), y, 0), WEFT_ENUMERIC,
             "ctc_align: sequence 4: a logit is NaN");
    memcpy(bad, label, sizeof bad);
    bad[10] = 1;
    (void)weft_ctc_align(torch_logits(w), weft_ragged_ints(w, bad, &label_lengths), 0);
    FAILS(
        w, WEFT_EARG,
        cpu ?
            "ctc_align: sequence 4: 9 labels with 1 repeats need 10 steps, but there are 9; give more steps" :
            "the labels of sequence 4 need 10 steps");
    FAILS_AT(w, weft_ctc_align(torch_logits(w), weft_ragged_ints(w, label, &label_lengths), 5), WEFT_ESHAPE,
             "blank 5");
}

/* ---- beams ---- */
/* A language model: depends on the last two labels and the sequence. */
static void bigram(void *user, int64_t sequence, const int32_t *l, int64_t n, double *score)
{
    for (int c = 0; c < C; c++)
        score[c] = sin(7. * c + 3 * (n ? l[n - 1] : -1) + (double)(n > 1 ? l[n - 2] : 5) + (double)sequence);
    if (user)
        score[*(const int32_t *)user] = -HUGE_VAL; /* forbids a label */
}
typedef struct {
    int32_t len, label[T];
    double score;
} labeling;
static int by_score(const void *a, const void *b)
{
    const double x = ((const labeling *)a)->score, y = ((const labeling *)b)->score;
    return (x < y) - (x > y);
}
/* Writes all labelings of at most t labels, best first, with the scores of the options. */
static int all_labelings(const scene *s, const weft_ctc_beam_opts *o, labeling *all)
{
    int n = 0;
    for (int32_t len = 0; len <= s->t; len++)
        for (int k = 0, count = (int)pow(C - 1, len); k < count; k++) {
            labeling l = { .len = len };
            double score[C];
            for (int i = 0, rest = k; i < len; i++, rest /= C - 1)
                l.label[i] = (o->blank + 1 + rest % (C - 1)) % C;
            l.score = -by_paths(s->t, s->x, len, l.label, o->blank);
            for (int i = 0; i < len; i++) {
                if (o->scorer)
                    o->scorer(o->user, 0, l.label, i, score);
                l.score += o->bonus + (o->scorer ? (o->weight == 0 ? 1 : o->weight) * score[l.label[i]] : 0);
            }
            if (l.score > -HUGE_VAL)
                all[n++] = l;
        }
    qsort(all, (size_t)n, sizeof *all, by_score);
    return n;
}
TABLE_TEST(ctc_decode, beams_find_the_best_of_all_labelings, .timeout = 120)
{
    for (int round = 0; round < rounds(60, 1000); round++) {
        static labeling all[64];
        const scene s = some_scene();
        int32_t forbidden = (s.blank + 1) % C;
        weft_ctc_beam_opts o = { .blank = s.blank, .beams = 64, .best = 64 };
        o.scorer = dice(3) ? bigram : NULL, o.user = dice(2) ? &forbidden : NULL;
        o.weight = dice(2) ? .7 : 0, o.bonus = dice(2) ? .4 : 0;
        const int n = all_labelings(&s, &o, all);
        cr_assert(n <= 64);
        for (int narrow = 0; narrow < 5; narrow++) {
            o.beams = o.best = narrow ? narrow : 64;
            weft_decoded d =
                weft_ctc_beam(weft_ragged(w, s.x, C, &(weft_lengths){ .n = 1, .len = &s.t }), &o);
            OK(w);
            for (int i = 0; i < o.best; i++) {
                int same = 0;
                const int32_t *got = d.tokens + i * d.limit;
                cr_assert(i == 0 || d.score[i] <= d.score[i - 1]);
                for (; same < n && d.len[i] >= 0; same++)
                    if (all[same].len == d.len[i] &&
                        !memcmp(all[same].label, got, (size_t)d.len[i] * sizeof *got))
                        break;
                cr_assert(d.len[i] < 0 ? d.score[i] == -HUGE_VAL && (narrow || i >= n) : same < n);
                if (d.len[i] >= 0)
                    cr_assert(d.score[i] < all[same].score + TOL(1e-11, 2e-5), "%g %g", d.score[i],
                              all[same].score);
                if (!narrow && i < n)
                    cr_assert(fabs(d.score[i] - all[i].score) < TOL(1e-11, 2e-5), "%d: %g, expected %g", i,
                              d.score[i], all[i].score);
            }
            weft_decoded_free(&d);
            weft_clear(w);
        }
    }
}

static void spoils(void *user, int64_t sequence, const int32_t *l, int64_t n, double *score)
{
    (void)l;
    if (sequence == 1 && n == 1)
        score[2] = (double)NAN;
    else if (user)
        weft_clear(user);
}
TABLE_TEST(ctc_decode, beams_take_ties_layouts_and_empty_sequences, .init = unchecked)
{
    const int32_t len[] = { 2, 0, 3 };
    weft_real x[5 * 3] = { 0 };
    FOR_LAYOUTS(layout)
    {
        weft_lengths l = { .n = 3, .len = len };
        weft_decoded d =
            weft_ctc_beam(laid_out(weft_ragged(w, x, 3, &l), layout), &(weft_ctc_beam_opts){ .best = 3 });
        OK(w);
        cr_assert(d.n == 3 && d.best == 3 && d.limit == 3);
        /* Of 9 paths 3 mean "1", and 3 mean "2": blank 1, 1 blank, 1 1. */
        cr_assert(d.len[0] == 1 && d.tokens[0] == 1 && d.len[1] == 1 && d.tokens[3] == 2 && d.len[2] == 0);
        cr_assert(fabs(d.score[0] - log(3. / 9)) < 1e-5 && fabs(d.score[2] - log(1. / 9)) < 1e-5);
        cr_assert(d.len[3] == 0 && d.score[3] == 0 && d.len[4] == -1 && d.score[4] == -HUGE_VAL);
        weft_decoded_free(&d);
        weft_clear(w);
    }
    const weft_lengths two = { .n = 2, .len = (int32_t[]){ 2, 3 } };
#define BEAM(...) weft_ctc_beam(weft_ragged(w, x, 3, &two), &(weft_ctc_beam_opts){ __VA_ARGS__ })
    FAILS_AT(w, BEAM(.beams = 2, .best = 3), WEFT_EARG, "beams 2, best 3");
    FAILS_AT(w, BEAM(.beams = -1), WEFT_EARG, "beams -1");
    FAILS_AT(w, BEAM(.bonus = HUGE_VAL), WEFT_EARG, "bonus inf");
    FAILS_AT(w, BEAM(.blank = 3), WEFT_EARG, "ctc_beam: blank 3");
    FAILS_AT(w, BEAM(.scorer = spoils), WEFT_ENUMERIC,
             "ctc_beam: sequence 1: the scorer wrote nan for label 2 after 1 labels");
    FAILS_AT(w, BEAM(.scorer = spoils, .user = w), WEFT_EARG, "the scorer of \"ctc_beam\"");
    x[14] = (weft_real)NAN;
    FAILS_AT(w, BEAM(.beams = 4), WEFT_ENUMERIC, "ctc_beam: sequence 1: a logit is NaN");
}
