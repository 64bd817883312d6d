/* Lesson 12: checks the four formulas exactly for small shapes, and three of them for a
 * shape whose counts overflow an int. */
#include "common/lesson.h"
#include "lesson.h"

/* Checks one large shape, after ten small ones were right. */
static void check_large(const char *of, double got, double want)
{
    hint_of_known(of, got, want, NULL, 0);
    if (!is(got, want))
        hint("%s is right for small shapes, but for a large one it is %s, not %s: ints "
             "overflow above 2^31, so begin products with 2.0 *",
             of, BOTH(got, want));
}

/* ---- an LSTM ---- */
static void check_lstm_flops(int I, int H, int B, int T)
{
    const double got = lstm_flops(I, H, B, T), weights = 4. * H * (I + H),
                 want = 2 * weights * B * T;
    const known_mistake mistakes[] = {
        { want * 3 / 4, "counts three gates, as in a GRU: an LSTM has four" },
        { 2 * 4. * H * I * H * B * T,
          "multiplies I by H: a row of both weights has I + H numbers" },
        { 0, "is 0: count [4 H, I + H] times a vector, for each token" },
        { want / 2, "is half of the right number: a multiplication and an addition are "
                    "two FLOPs" },
        { want / 4, "counts one gate: an LSTM has four, i f g o" },
        { want / 8, "counts one gate: an LSTM has four, i f g o" },
        { 2 * 4. * H * I * B * T, "counts one of two products: U h is missing" },
        { 2 * 4. * H * H * B * T, "counts one of two products: W x is missing" },
        { want / B, "counts one sequence: the factor B is missing" },
        { want / T, "counts one step: the factor T is missing" },
        { want * B, "contains the factor B twice" },
        { want * T, "contains the factor T twice" },
        { want * 2, "contains the factor 2 twice: a multiplication and an addition are "
                    "two FLOPs" },
        { want * 4, "contains the factor 4 twice: one 4 is for the gates i f g o" },
        { 2 * 4. * H * (I + H + 2) * B * T, "counts the biases: leave them out" },
        { 2 * (4. * H * I + H) * B * T, "adds H where it must multiply: the products "
                                        "are [4 H, I] times x and [4 H, H] times h" },
    };
    if (is(got, want))
        return;
    HINT_OF_KNOWN("lstm_flops", got, want, mistakes);
    hint("lstm_flops(%d, %d, %d, %d) is %s, not %s", I, H, B, T, BOTH(got, want));
}

static void check_lstm_bytes(int I, int H, int B, int T)
{
    const double got = lstm_bytes(I, H, B, T), weights = 4. * H * (I + H),
                 of = I + 4. * H, want = 4 * T * (weights + B * of);
    static const char parts[] =
        "counts too little: a sequence's step reads x, h, c and writes h, c: I + 4 H";
    const known_mistake mistakes[] = {
        { 4 * T * (weights * 3 / 4 + B * of),
          "counts the weights of three gates: an LSTM has four, i f g o" },
        { 4 * T * (4. * H * I * H + B * of),
          "multiplies I by H: a row of both weights has I + H numbers" },
        { 4 * T * (weights + B * 5. * H),
          "counts H numbers for x: x has I numbers, h and c have H" },
        { want / 4, "counts numbers: each of them has 4 bytes" },
        { 4 * (weights + T * B * of),
          "counts the weights once for all steps: nothing stays in the cache, so each "
          "step reads them again" },
        { 4. * T * B * (weights + of),
          "counts the weights once per sequence: a step reads them once for all B" },
        { 4 * T * (weights + B * (of - H)), parts },
        { 4 * T * (weights + B * (of - 2 * H)), parts },
        { 4 * T * (weights / 4 + B * of),
          "counts the weights of one gate: an LSTM has four, i f g o" },
        { want / T, "counts one step: each step moves all these bytes again" },
        { want * T, "contains the factor T twice" },
        { 2 * want, "is twice the right number: leave out the 2 of FLOPs. A number has "
                    "4 bytes, not 8" },
        { 4 * T * (2 * weights + B * of),
          "counts the weights twice: a step reads each once" },
        { 4. * T * weights, "counts only the weights: add x, h and c" },
        { 4 * T * (4. * H * (I + H + 2) + B * of),
          "counts the biases: leave them out" },
        { 4 * T * (weights + B * (of + 4. * H)),
          "counts the gates: they do not leave the processor" },
    };
    if (is(got, want))
        return;
    HINT_OF_KNOWN("lstm_bytes", got, want, mistakes);
    hint("lstm_bytes(%d, %d, %d, %d) is %s, not %s", I, H, B, T, BOTH(got, want));
}

/* ---- attention ---- */
/* Returns the FLOPs for all sequences. The right factors are 8 and 4. */
static double attention(int d, int n, const int *len, double projections, double pairs)
{
    double sum = 0;
    for (int s = 0; s < n; s++)
        sum += projections * len[s] * d * d + pairs * len[s] * len[s] * d;
    return sum;
}

static void check_attention(int d, int n, const int *len)
{
    static const char once[] = "counts a pair of tokens once: each token reads all T "
                               "of its sequence, before and after it";
    int most = largest_of(n, len), all = sum_of(n, len);
    const double got = attention_flops(d, n, len), want = attention(d, n, len, 8, 4);
    const known_mistake mistakes[] = {
        { attention(d, 1, &all, 8, 4),
          "counts pairs of all tokens: tokens of different sequences have no scores" },
        { n * attention(d, 1, &most, 8, 4),
          "counts the longest length for each sequence: no pads" },
        { attention(d, n, len, 8, 2),
          "counts the scores, but not the weighted sum of v" },
        { attention(d, n, len, 0, 4),
          "counts only the pairs: add q, k, v and the result" },
        { want / 2, "is half of the right number: a multiplication and an addition are "
                    "two FLOPs" },
        { 2 * want, "contains the factor 2 twice" },
        { attention(d, n, len, 6, 4),
          "counts three projections: the result is a fourth one" },
        { attention(d, n, len, 2, 4),
          "counts one projection: q, k, v and the result are four" },
        { attention(d, n, len, 8, 0) + 4. * all * d,
          "counts one score per token: each pair of tokens has one, so a factor T is "
          "missing" },
        { attention(d, n, len, 10, 4),
          "counts five projections: q, k, v and the result are four" },
        { (attention(d, n, len, 8, 4) + attention(d, n, len, 8, 2) + 2. * all * d) / 2,
          once },
        { attention(d, n, len, 8, 2) + 2. * all * d, once },
        { attention(d, n, len, 8, 4) - 2. * all * d,
          "leaves out a token's pair with itself" },
        { attention(d, n, len, 0, 4) + 8. * all * d,
          "lacks a factor d in the projections: a matrix is [d, d]" },
        { attention(d, n, len, 0, 12),
          "counts the projections once per pair: a token has four" },
        { attention(d, n, len, 10, 2),
          "counts d d where it must count T d: a token has T scores" },
        { attention(d, n - 1, len, 8, 4), "leaves out the last sequence" },
        { n * attention(d, 1, len, 8, 4), "counts the first length for each sequence" },
    };
    if (is(got, want))
        return;
    HINT_OF_KNOWN("attention_flops", got, want, mistakes);
    hint("attention_flops of width %d over %d sequences, the first of %d tokens, is "
         "%s, not %s",
         d, n, len[0], BOTH(got, want));
}

static void check_crossing(int d)
{
    const int got = crossing(d);
    const known_mistake mistakes[] = {
        { 4 * d, "is 4 d: the four projections or the weighted sum are missing" },
        { 6 * d, "is 6 d: attention's FLOPs lack a factor 2" },
        { 3 * d, "is 3 d: count four projections, not two" },
        { 8 * d, "is 8 d: set 16 d d equal to 8 d d + 4 T d" },
        { d / 2, "is d / 2: solve 16 d d = 8 d d + 4 T d for T" },
        { 2 * d + 1, "is one too large: at 2 d both are equal" },
        { d, "is d: 4 T d contains both the scores and the weighted sum" },
    };
    if (got == 2 * d)
        return;
    HINT_OF_KNOWN("crossing", got, 2 * d, mistakes);
    hint("crossing(%d) is %d: there the LSTM takes %s FLOPs per token, attention %s", d,
         got, digits(16. * d * d), digits(8. * d * d + 4. * got * d));
}

void check(void)
{
    static const int large[] = { 60000, 50000 };
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
        len[k % 6 ? 1 : 0] = 40 + k; /* the first is not always the longest */
        len[2] *= k % 2; /* no tokens in every second batch */
        check_attention(8 + dice_below(100), 1 + k % 6, len);
    }
    check_large("attention_flops", attention_flops(50000, 2, large),
                attention(50000, 2, large, 8, 4));
    for (int k = 0; k < 10; k++)
        check_crossing(16 + dice_below(500));
}
