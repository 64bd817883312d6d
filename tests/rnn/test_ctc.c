/* test_ctc.c - tests CTC against all paths, PyTorch's numbers and warp-ctc's, and tests infinite
 * and NaN logits, masks and company. */
#include "tests/rnn/ctc_cases.h"

/* Returns the gradient of the sum by x, in the user's order. */
static weft_real *gradient_of(weft_loss l, weft_tensor *x, bool recorded)
{
    weft_tensor *dx;
    (recorded ? weft_gradients_recorded : weft_gradients)(l.sum, &x, 1, &dx);
    return numbers(weft_to_layout(dx, WEFT_CONCAT));
}

/* ---- numbers of others ---- */
/* torch.nn.functional.ctc_loss of PyTorch 2 in double, reduction="none": losses, and gradients of the first
 * and the last step. */
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
TABLE_TEST(ctc, gives_the_loss_of_each_sequence)
{
    weft_real mask[] = { 2, 0, 1, 1, 1, 1 }, want[6];
    for (int s = 0; s < 6; s++)
        want[s] = mask[s] * (weft_real)torch_loss[s];
    weft_tensor *weight, *y = weft_ragged_ints(w, label, &label_lengths);
    weft_ctc_opts o = { .mask = weft_reals(w, mask, WEFT_SHAPE(6)) };
    close_to("losses", numbers(weft_ctc_losses(torch_logits(w), y, &o, &weight)), want, 6, TOL(1e-11, 5e-6));
    same_bits("weights", numbers(weight), mask, 6);
}

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
