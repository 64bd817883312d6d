/* Lesson 12: the four formulas at ten points, exactly, and three at one that ints
 * cannot hold. */
#include "common/lesson.h"
#include "lesson.h"

static bool is(double got, double want) { return near(&got, &want, 1, 1e-12); }

/* Counts are whole numbers: a float cannot hold large ones. */
static void hint_of_digits(const char *of, double got, double want)
{
    if (is(got, want) || !near(&got, &want, 1, 1e-5))
        return;
    hint("%s is %.12g, and %.12g is expected: a float has seven digits, take double",
         of, got, want);
}

/* After ten right small shapes. */
static void check_large(const char *of, double got, double want)
{
    hint_of_digits(of, got, want);
    if (!is(got, want))
        hint("%s is right for small shapes, but of large ones it says %s instead of "
             "%s: ints overflow above 2^31: begin with 2.0 *, and each product that "
             "follows is one of doubles",
             of, digits(got), digits(want));
}

/* A factor that is missing, or there twice. */
static void hint_of_factor(const char *of, double got, double want, const char *name,
                           double factor, const char *what)
{
    if (is(got, want / factor))
        hint("%s: the factor %s is missing: %s", of, name, what);
    if (is(got, want * factor))
        hint("%s: the factor %s is there once too often: %s", of, name, what);
}

/* ---- an LSTM ---- */
static void check_lstm_flops(int I, int H, int B, int T)
{
    const double got = lstm_flops(I, H, B, T), weights = 4. * H * (I + H),
                 want = 2 * weights * B * T;
    if (is(got, want))
        return;
    hint_of_digits("lstm_flops", got, want);
    if (is(got, want * 3 / 4))
        hint(
            "lstm_flops has three gates: those are a GRU's; an LSTM has four, i f g o");
    if (is(got, 2 * 4. * H * I * H * B * T))
        hint("lstm_flops multiplies I by H: a row of both weights has I + H numbers");
    if (got == 0)
        hint("lstm_flops is 0: a product of a matrix [4 H, I + H] with a vector, for "
             "each token");
    if (is(got, want / 2))
        hint("lstm_flops is half of what is expected: a multiplication and an addition "
             "are two FLOPs");
    if (is(got, want / 4) || is(got, want / 8))
        hint("lstm_flops has one gate: an LSTM has four, i f g o");
    if (is(got, 2 * 4. * H * I * B * T) || is(got, 2 * 4. * H * H * B * T))
        hint("lstm_flops has one of both products: W is [4 H, I], U is [4 H, H]");
    if (is(got, 2 * weights * T) || is(got, 2 * weights * B))
        hint("lstm_flops counts one %s: there are B = %d sequences and T = %d steps",
             is(got, 2 * weights * T) ? "sequence" : "step", B, T);
    hint_of_factor("lstm_flops", got, want, "T", T, "the steps");
    hint_of_factor("lstm_flops", got, want, "B", B, "the sequences of a step");
    hint_of_factor("lstm_flops", got, want, "2", 2,
                   "a multiplication and an addition are two FLOPs");
    hint_of_factor("lstm_flops", got, want, "4", 4, "the gates i f g o");
    hint("lstm_flops(%d, %d, %d, %d) is %s; %s is expected", I, H, B, T, digits(got),
         digits(want));
}

static void check_lstm_bytes(int I, int H, int B, int T)
{
    const double got = lstm_bytes(I, H, B, T), weights = 4. * H * (I + H),
                 of = I + 4. * H;
    const double want = 4 * T * (weights + B * of);
    if (is(got, want))
        return;
    hint_of_digits("lstm_bytes", got, want);
    if (is(got, 4 * T * (weights * 3 / 4 + B * of)))
        hint("lstm_bytes has the weights of three gates: an LSTM has four, i f g o");
    if (is(got, 4 * T * (4. * H * I * H + B * of)))
        hint("lstm_bytes multiplies I by H: a row of both weights has I + H numbers");
    if (is(got, 4 * T * (weights + B * (5. * H))))
        hint("lstm_bytes takes x as long as h: x has I numbers, h and c have H each");
    if (is(got, want / 4))
        hint("lstm_bytes counts numbers: each of them has 4 bytes");
    if (is(got, 4 * (weights + T * B * of)))
        hint("the weights are counted once for all steps: nothing stays in the cache, "
             "so each of the T = %d steps reads them again",
             T);
    if (is(got, 4. * T * B * (weights + of)))
        hint("the weights are counted for each sequence: a step reads them once for "
             "all B = %d of them, which is why one makes batches",
             B);
    if (is(got, 4 * T * (weights + B * (of - H))) ||
        is(got, 4 * T * (weights + B * (of - 2 * H))))
        hint("of each sequence a step reads x, h and c, and it writes h and c: I + 4 H "
             "numbers");
    if (is(got, 4 * T * (weights / 4 + B * of)))
        hint("lstm_bytes has the weights of one gate: an LSTM has four, i f g o");
    hint_of_factor("lstm_bytes", got, want, "T", T,
                   "each step reads and writes all of that again");
    if (is(got, 2 * want))
        hint("lstm_bytes is twice what is expected: the 2 of FLOPs has no place here, "
             "and a number has 4 bytes, not 8");
    if (is(got, 4 * T * (2 * weights + B * of)))
        hint("lstm_bytes reads the weights twice: two FLOPs are done with each of "
             "them, but it is read once");
    if (is(got, 4. * T * weights))
        hint("lstm_bytes has the weights alone: what of x, h and c?");
    hint("lstm_bytes(%d, %d, %d, %d) is %s; %s is expected", I, H, B, T, digits(got),
         digits(want));
}

/* ---- attention ---- */
static double attention(int d, double T, double of_projections, double of_pairs)
{
    return of_projections * T * d * d + of_pairs * T * T * d;
}

static void check_attention(int d, int n, const int *len)
{
    double want = 0, no_sum = 0, no_projections = 0, no_two = 0, three = 0, one = 0,
           own = 0, most = 0, all = 0;
    for (int s = 0; s < n; s++) {
        want += attention(d, len[s], 8, 4), no_sum += attention(d, len[s], 8, 2);
        no_projections += attention(d, len[s], 0, 4),
            no_two += attention(d, len[s], 4, 2);
        three += attention(d, len[s], 6, 4), one += attention(d, len[s], 2, 4);
        own += attention(d, len[s], 8, 0) + 4. * len[s] * d;
        most = fmax(most, len[s]), all += len[s];
    }
    const double got = attention_flops(d, n, len);
    if (is(got, want))
        return;
    hint_of_digits("attention_flops", got, want);
    if (is(got, attention(d, all, 8, 4)))
        hint("attention_flops takes the square of all %g tokens: tokens of different "
             "sequences have no scores, so the squares are summed up",
             all);
    if (is(got, n * attention(d, most, 8, 4)))
        hint("attention_flops takes each sequence as long as the longest: there are no "
             "pads here");
    if (is(got, no_sum))
        hint("attention_flops has the scores, but the weighed sum of v is missing: as "
             "many FLOPs again");
    if (is(got, no_projections))
        hint("attention_flops has the pairs alone: q, k, v and the result are four "
             "products with [d, d]");
    if (is(got, no_two))
        hint("attention_flops is half of what is expected: a multiplication and an "
             "addition are two FLOPs");
    if (is(got, 2 * want))
        hint("attention_flops is twice what is expected: the 2 of a multiplication and "
             "an addition is there twice");
    if (is(got, three))
        hint("attention_flops has three projections, q, k and v: the result is a "
             "fourth one");
    if (is(got, one))
        hint("attention_flops has one projection: q, k, v and the result are four");
    if (is(got, own))
        hint("attention_flops has one score a token: each of the T tokens has one with "
             "each of the T, so a factor T is missing there");
    hint("attention_flops of width %d over %d sequences, the first of %d tokens, is "
         "%s; %s is expected",
         d, n, len[0], digits(got), digits(want));
}

static void check_crossing(int d)
{
    const int got = crossing(d);
    if (got == 2 * d)
        return;
    if (got == 4 * d)
        hint(
            "crossing is 4 d: the four projections are missing, or the weighed sum is");
    if (got == 6 * d)
        hint("crossing is 6 d: attention's FLOPs lack the 2 of a multiplication and an "
             "addition");
    if (got == d)
        hint("crossing is d: 4 T d has both the scores and the weighed sum already");
    hint("crossing(%d) is %d: there the LSTM takes %s FLOPs a token, attention %s", d,
         got, digits(16. * d * d), digits(8. * d * d + 4. * got * d));
}

void check(void)
{
    dice_seed(12);
    for (int k = 0; k < 10; k++) {
        int I = 3 + dice_below(60), H = I + 1 + dice_below(60);
        int B = 2 + dice_below(30), T = B + 1 + dice_below(9);
        check_lstm_flops(I, H, B, T), check_lstm_bytes(I, H, B, T);
        check_lstm_flops(H, I, T, B), check_lstm_bytes(H, I, T, B);
    }
    check_large("lstm_flops", lstm_flops(40000, 50000, 30, 20),
                8. * 50000 * 90000 * 30 * 20);
    check_large("lstm_bytes", lstm_bytes(40000, 50000, 30, 20),
                4. * 20 * (4. * 50000 * 90000 + 30 * 240000.));
    for (int k = 0; k < 10; k++) {
        int len[6];
        for (int s = 0; s < 6; s++)
            len[s] = dice_below(40);
        len[0] = 40 + k;
        check_attention(8 + dice_below(100), 1 + k % 6, len);
    }
    check_large("attention_flops", attention_flops(50000, 2, (int[]){ 60000, 50000 }),
                attention(50000, 60000, 8, 4) + attention(50000, 50000, 8, 4));
    for (int k = 0; k < 10; k++)
        check_crossing(16 + dice_below(500));
}
