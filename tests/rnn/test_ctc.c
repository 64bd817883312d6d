/* test_ctc.c - tests CTC against all paths, PyTorch's numbers and warp-ctc's, and tests infinite
 * and NaN logits, masks and company. */
#include "tests/check.h"

enum { CLASSES = 5 };
static weft_real wave(int64_t i, int seed)
{
    return (weft_real)(3 * sin(seed + 1.7 * (double)i + .3 * (double)(i % 11)));
}

/* Returns the gradient of the sum by x, in the user's order. */
static weft_real *gradient_of(weft_loss l, weft_tensor *x, bool recorded)
{
    weft_tensor *dx;
    (recorded ? weft_gradients_recorded : weft_gradients)(l.sum, &x, 1, &dx);
    return numbers(weft_to_layout(dx, WEFT_CONCAT));
}

/* ---- numbers of others ---- */
/* torch.nn.functional.ctc_loss of PyTorch 2 in double, reduction="none": losses, and gradients of the first
 * and the last step. Sequence 1 has no labels; in sequence 4 the labels fill the steps. */
static const int32_t steps[] = { 7, 5, 4, 6, 9, 3 }, labels[] = { 3, 0, 3, 3, 9, 2 },
                     label[] = { 1, 2, 1, 2, 2, 1, 3, 3, 1, 1, 2, 3, 2, 1, 3, 1, 2, 3, 4, 4 };
static const weft_lengths step_lengths = { .n = 6, .len = steps }, label_lengths = { .n = 6, .len = labels };
static const double torch_loss[] = { 6.471253299930, 11.555754711573, 20.128425308734,
                                     7.320792555079, 35.424944806825, 7.848538437166 };
static const double torch_first[][CLASSES] = {
    { .027186011, -.578019367, .002845630, .011916754, .536070972 },
    { -.494338040, .061856393, .002281157, .290735880, .139464611 },
    { .431169359, .002910140, -.987813093, .548223700, .005509894 },
    { .124619703, .004595819, .585742071, -.719020705, .004063112 },
    { .005065826, -.978785642, .954320394, .009591347, .009808074 },
    { .003950934, .503550840, .241550930, .003492977, -.752545681 },
};
static const double torch_last[][CLASSES] = {
    { -.907929790, -.057009819, .308224403, .008785077, .647930130 },
    { -.962661781, .569145070, .257763672, .133898657, .001854382 },
    { .015303297, -.992626440, .938589704, .034496341, .004237098 },
    { -.661172035, .002179227, .069379327, .585853663, .003759818 },
    { .005014886, .625393527, .323427558, -.995510128, .041674156 },
    { .061732083, .004703949, .460275659, .468570248, -.995281940 },
};
static weft_tensor *torch_logits(weft *w)
{
    weft_real x[34 * CLASSES], *to = x;
    for (int s = 0; s < 6; s++)
        for (int64_t i = 0; i < (int64_t)steps[s] * CLASSES; i++)
            *to++ = wave(i, s);
    return weft_ragged(w, x, CLASSES, &step_lengths);
}

TABLE_TEST(ctc, matches_torch_in_each_layout)
{
    double total = 0;
    for (int s = 0; s < 6; s++)
        total += torch_loss[s];
    FOR_LAYOUTS(layout)
    for (int recorded = 0; recorded < 2; recorded++) {
        weft_tensor *x = laid_out(torch_logits(w), layout);
        weft_loss l = weft_ctc(x, laid_out(weft_ragged_ints(w, label, &label_lengths), layout), NULL);
        OK(w);
        weft_real sums[] = { (weft_real)weft_item(l.sum), (weft_real)weft_item(l.weight) },
                  want[] = { (weft_real)total, 6 };
        close_to("sum and weight", sums, want, 2, TOL(1e-10, 1e-6));
        const weft_real *g = gradient_of(l, x, recorded);
        for (int s = 0; s < 6; g += CLASSES * steps[s++])
            for (int k = 0; k < CLASSES; k++) {
                weft_real got[] = { g[k], g[CLASSES * (steps[s] - 1) + k] },
                          both[] = { (weft_real)torch_first[s][k], (weft_real)torch_last[s][k] };
                close_to(recorded ? "composed" : "fused", got, both, 2, TOL(2e-9, 2e-6));
            }
        weft_clear(w);
    }
}

/* warp-ctc, tests/test_cpu.cpp: options_test has the blank 5 and probabilities as inputs. */
TABLE_TEST(ctc, matches_warp_ctc)
{
    static const double p[10][6] = {
        { .633766, .221185, .0917319, .0129757, .0142857, .0260553 },
        { .111121, .588392, .278779, .0055756, .00569609, .010436 },
        { .0357786, .633813, .321418, .00249248, .00272882, .0037688 },
        { .0663296, .643849, .280111, .00283995, .0035545, .00331533 },
        { .458235, .396634, .123377, .00648837, .00903441, .00623107 },
        { .30176, .28562, .0831517, .0862751, .0816851, .161508 },
        { .24082, .397533, .0557226, .0546814, .0557528, .19549 },
        { .230246, .450868, .0389607, .038309, .0391602, .202456 },
        { .280884, .429522, .0326593, .0339046, .0326856, .190345 },
        { .423286, .315517, .0338439, .0393744, .0339315, .154046 },
    };
    const int32_t of_label[] = { 0, 1, 2, 1, 0, 0, 1, 1, 0 };
    weft_real x[60];
    for (int i = 0; i < 60; i++)
        x[i] = (weft_real)log(p[i / 6][i % 6]);
    weft_tensor *logits = weft_ragged(w, x, 6, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 5, 5 } });
    weft_tensor *all = weft_ragged_ints(w, of_label, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 5, 4 } });
    weft_loss l = weft_ctc(logits, all, &(weft_ctc_opts){ .blank = 5 });
    weft_real sum[] = { (weft_real)weft_item(l.sum) }, want[] = { (weft_real)(3.34211 + 5.42262) };
    close_to("costs", sum, want, 1, 2e-6);
    static const double dx[] = { -.366234, .221185, .0917319, .0129757, .0142857, .0260553 };
    const weft_real *g = gradient_of(l, logits, false);
    for (int k = 0; k < 6; k++)
        cr_assert(fabs((double)g[k] - dx[k]) < 2e-6);
}

/* ---- all paths ---- */
enum { T = 5, C = 3 };
static double by_paths(int t, const weft_real *x, int n, const int32_t *want, int32_t blank)
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
TABLE_TEST(ctc, is_the_sum_over_all_paths)
{
    for (int round = 0; round < rounds(60, 2000); round++) {
        weft_real x[T * C];
        int32_t t = (int32_t)dice(T + 1), n = (int32_t)dice((uint64_t)t + 1), blank = (int32_t)dice(C), l[T],
                need = n;
        dice_fill(x, T * C, -3, 3);
        for (int i = 0; i < n; i++) {
            l[i] = (blank + 1 + (int32_t)dice(C - 1)) % C;
            need += i && l[i] == l[i - 1];
        }
        weft_loss loss = weft_ctc(weft_ragged(w, x, C, &(weft_lengths){ .n = 1, .len = &t }),
                                  weft_ragged_ints(w, l, &(weft_lengths){ .n = 1, .len = &n }),
                                  &(weft_ctc_opts){ .blank = blank, .skip_infeasible = true });
        weft_real got[] = { (weft_real)weft_item(loss.sum), (weft_real)weft_item(loss.weight) };
        weft_real want[] = { need > t ? 0 : (weft_real)by_paths(t, x, n, l, blank), need <= t };
        close_to("paths", got, want, 2, TOL(1e-11, 5e-6));
        cr_assert(need <= t || isinf(by_paths(t, x, n, l, blank)));
        weft_clear(w);
    }
}

/* ---- long ones, from PyTorch in double ---- */
static void one_long(weft *w, int32_t t, int32_t n, double loss, double of_gradient, const double *middle)
{
    enum { LONG = 7 };
    weft_real *x = malloc((size_t)t * LONG * sizeof *x), want[LONG];
    int32_t *l = malloc((size_t)n * sizeof *l);
    double sum = 0;
    for (int64_t i = 0; i < (int64_t)t * LONG; i++)
        x[i] = wave(i, 9);
    for (int32_t i = 0; i < n; i++)
        l[i] = 1 + (i * i + i / 3) % 6;
    weft_tensor *logits = weft_ragged(w, x, LONG, &(weft_lengths){ .n = 1, .len = &t });
    weft_loss y = weft_ctc(logits, weft_ragged_ints(w, l, &(weft_lengths){ .n = 1, .len = &n }), NULL);
    const weft_real *g = gradient_of(y, logits, false);
    for (int64_t i = 0; i < (int64_t)t * LONG; i++)
        sum += fabs((double)g[i]);
    for (int k = 0; k < LONG; k++)
        want[k] = (weft_real)middle[k];
    cr_assert(fabs(weft_item(y.sum) / loss - 1) < TOL(1e-11, 1e-6), "loss %.10f", weft_item(y.sum));
    cr_assert(fabs(sum / of_gradient - 1) < TOL(1e-10, 1e-5), "gradient %.10f", sum);
    close_to("a step in the middle", g + t / 2 * LONG, want, LONG, TOL(1e-8, 2e-5));
    free(x), free(l);
    weft_clear(w);
}
TABLE_TEST(ctc, is_exact_for_many_labels_and_steps, .timeout = 120)
{
    one_long(
        w, 2600, 1100, 4016.2652762242, 2231.9972318183,
        (double[]){ -.065574028, -.124340447, .346231389, -.106987349, .019128766, .143694009, -.212152340 });
    one_long(w, 10000, 40, 34030.0627079520, 12613.2473430468,
             (double[]){ -.512805726, -.102627910, -.072549893, .021549825, .828854894, -.149100709,
                         -.013320481 });
}

/* ---- neighbours of a sequence ---- */
/* Losses and gradients of one sequence alone, and in the batch, have the same bits. */
TABLE_TEST(ctc, gives_the_same_bits_in_any_company)
{
    weft_tensor *all = torch_logits(w);
    weft_real *g = gradient_of(weft_ctc(all, weft_ragged_ints(w, label, &label_lengths), NULL), all, false);
    const int32_t *l = label;
    for (int s = 0; s < 6; l += labels[s], g += steps[s++] * CLASSES) {
        weft_real x[9 * CLASSES];
        for (int i = 0; i < steps[s] * CLASSES; i++)
            x[i] = wave(i, s);
        weft_tensor *one = weft_ragged(w, x, CLASSES, &(weft_lengths){ .n = 1, .len = &steps[s] });
        weft_loss y =
            weft_ctc(one, weft_ragged_ints(w, l, &(weft_lengths){ .n = 1, .len = &labels[s] }), NULL);
        same_in_company("gradient", gradient_of(y, one, false), g, steps[s] * CLASSES);
    }
}

/* NaN stays in its sequence. Logits of -inf that leave no path give an infinite loss and the gradient 0. */
TABLE_TEST(ctc, keeps_nan_and_infinity_in_their_sequence, .init = unchecked)
{
    weft_tensor *x = torch_logits(w), *y = weft_ragged_ints(w, label, &label_lengths);
    weft_real *sound = gradient_of(weft_ctc(x, y, NULL), x, false), *bad = numbers(x), *g;
    for (int kind = 0; kind < 3; kind++)
        for (int recorded = 0; recorded < 2; recorded++) {
            weft_real changed[34 * CLASSES], mask[6] = { 1, 1, 1, 0, 1, 1 };
            memcpy(changed, bad, sizeof changed);
            for (int i = 16; i < 22; i++) /* sequence 3, class 3; or one step */
                if (kind != 1 || i == 18)
                    changed[i * CLASSES + 3] = kind == 1 ? (weft_real)NAN : -(weft_real)INFINITY;
            for (int k = 0; kind == 2 && k < CLASSES; k++)
                changed[18 * CLASSES + k] = -(weft_real)INFINITY;
            x = weft_ragged(w, changed, CLASSES, &step_lengths),
            y = weft_ragged_ints(w, label, &label_lengths);
            weft_loss l = weft_ctc(x, y, NULL);
            cr_assert(kind == 1 ? isnan(weft_item(l.sum)) : isinf(weft_item(l.sum)), "kind %d", kind);
            g = gradient_of(l, x, recorded);
            close_to("others before", g, sound, 16 * CLASSES, TOL(1e-12, 2e-6));
            close_to("others after", g + 22 * CLASSES, sound + 22 * CLASSES, 12 * CLASSES, TOL(1e-12, 2e-6));
            for (int i = 16 * CLASSES; i < 22 * CLASSES; i++)
                cr_assert(kind == 1 || g[i] == 0, "kind %d: gradient %g", kind, (double)g[i]);
            cr_assert(kind != 1 || isnan(g[18 * CLASSES + 3]));
            l = weft_ctc(x, y, &(weft_ctc_opts){ .mask = weft_reals(w, mask, WEFT_SHAPE(6)) });
            cr_assert(isfinite(weft_item(l.sum)) && weft_item(l.weight) == 5);
            g = gradient_of(l, x, recorded);
            close_to("masked", g + 22 * CLASSES, sound + 22 * CLASSES, 12 * CLASSES, TOL(1e-12, 2e-6));
            for (int i = 16 * CLASSES; i < 22 * CLASSES; i++)
                cr_assert(g[i] == 0);
            weft_clear(w);
        }
}

TABLE_TEST(ctc, takes_masks_empty_batches_and_skips)
{
    weft_real mask[] = { 2, 0, (weft_real).5, 1, 1, 0 };
    weft_tensor *x = torch_logits(w), *y = weft_ragged_ints(w, label, &label_lengths);
    weft_loss l = weft_ctc(x, y, &(weft_ctc_opts){ .mask = weft_reals(w, mask, WEFT_SHAPE(6)) });
    weft_real got[] = { (weft_real)weft_item(l.sum), (weft_real)weft_item(l.weight) },
              want[] = { 0, (weft_real)4.5 };
    for (int s = 0; s < 6; s++)
        want[0] += mask[s] * (weft_real)torch_loss[s];
    close_to("mask", got, want, 2, TOL(1e-10, 1e-6));
    const int32_t none[] = { 0, 0 };
    weft_lengths empty = { .n = 2, .len = none };
    l = weft_ctc(weft_ragged(w, NULL, 3, &empty), weft_ragged_ints(w, NULL, &empty), NULL);
    cr_assert(weft_item(l.sum) == 0 && weft_item(l.weight) == 2);
    l = weft_ctc(weft_ragged(w, NULL, 3, &(weft_lengths){ 0 }),
                 weft_ragged_ints(w, NULL, &(weft_lengths){ 0 }), NULL);
    cr_assert(weft_item(l.sum) == 0 && weft_item(l.weight) == 0 && weft_item(weft_mean_loss(l)) == 0);
}

TABLE_TEST(ctc, refuses_what_does_not_fit, .init = synchronised)
{
    const bool cpu = strcmp(weft_device_name(w), "cuda") != 0;
    int32_t bad[20];
    weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(2), (weft_init){ .kind = WEFT_INIT_ZERO });
#define WITH(at, value)                                 \
    (memcpy(bad, label, sizeof bad), bad[at] = (value), \
     weft_ctc(torch_logits(w), weft_ragged_ints(w, bad, &label_lengths), NULL))
    WITH(19, 5);
    FAILS(w, WEFT_EARG, cpu ? "ctc: sequence 5: label 1 is 5; expected 0 .. 4 without the blank 0" : "19");
    WITH(3, -1);
    FAILS(w, WEFT_EARG, cpu ? "ctc: sequence 2: label 0 is -1" : "-1");
    WITH(6, 0);
    FAILS(w, WEFT_EARG, cpu ? "ctc: sequence 3: label 0 is 0, the blank" : "the blank");
    WITH(10, 1);
    FAILS(w, WEFT_EARG,
          cpu ? "ctc: sequence 4: 9 labels with 1 repeats need 10 steps, but there are 9; give more steps, "
                "or set "
                "skip_infeasible" :
                "the labels of sequence 4 need 10 steps");
    weft_tensor *x = torch_logits(w), *y = weft_ragged_ints(w, label, &label_lengths);
    FAILS_AT(w, weft_ctc(x, y, &(weft_ctc_opts){ .blank = 5 }), WEFT_ESHAPE,
             "blank 5; expected one of the classes 0 .. 4");
    x = torch_logits(w);
    FAILS_AT(w, weft_ctc(x, weft_argmax(x, -1), &(weft_ctc_opts){ .mask = weft_scalar(w, 1) }), WEFT_ESHAPE,
             "plain [6]");
    FAILS_AT(w, weft_ctc(torch_logits(w), weft_ints(w, NULL, WEFT_SHAPE(6)), NULL), WEFT_ESHAPE, "6 and 0");
}

/* ---- greedy ---- */
TABLE_TEST(ctc, decodes_greedily_in_each_layout, .init = unchecked)
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
TABLE_TEST(ctc, aligns_by_the_best_of_all_paths)
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

TABLE_TEST(ctc, aligns_long_labels_and_refuses_what_has_no_path, .init = synchronised)
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
TABLE_TEST(ctc, beams_find_the_best_of_all_labelings, .timeout = 120)
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
TABLE_TEST(ctc, beams_take_ties_layouts_and_empty_sequences, .init = unchecked)
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

/* ---- derivatives ---- */
static weft_tensor *ctc_of(weft_tensor *const *x, void *user)
{
    weft *w = weft_context_of(x[0]);
    weft_tensor *y = weft_ragged_ints(w, label, &label_lengths);
    weft_real mask[] = { 2, 1, (weft_real).5, 1, 0, 1 };
    weft_ctc_opts o = { .mask = *(int *)user % 2 ? weft_reals(w, mask, WEFT_SHAPE(6)) : NULL };
    return weft_mean_loss(weft_ctc(weft_tanh(x[0]), y, &o));
}
CPU_TEST(ctc, gradients_match_differences, .timeout = 120)
{
    for (int layout = WEFT_PACKED; sizeof(weft_real) == 8 && layout <= WEFT_ROWS; layout++) {
        weft_tensor *x = laid_out(torch_logits(w), layout);
        double first = weft_gradcheck(ctc_of, &x, 1, 1, &layout),
               second = weft_gradcheck(ctc_of, &x, 1, 2, &layout);
        OK(w);
        cr_assert(first < 1e-8 && second < 1e-7, "layout %d: %g, %g", layout, first, second);
        weft_clear(w);
    }
}
