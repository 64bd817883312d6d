/* Lesson 8: checks the weights of random batches, and compares the gradient of several
 * batches with that of one. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

/* ---- the weight of each token ---- */
static const char *const meant[MEANS] = { "all tokens", "the sequences' means",
                                          "the batches' means" };
typedef struct {
    double tokens, sequences, filled, batches, given, longest, runs, ends;
} counts;

/* Counts one batch; -1: all batches. */
static counts count(const task *t, int which)
{
    counts c = { 0 };
    for (int s = 0, last = -1; s < t->n; s++)
        if (which < 0 || t->batch[s] == which) {
            if (t->len[s])
                c.runs += t->batch[s] != last, last = t->batch[s];
            c.tokens += t->len[s], c.sequences++, c.filled += t->len[s] > 0;
            c.longest = fmax(c.longest, t->len[s]), c.ends = t->len[s] > 0;
        }
    c.ends = which < 0 ? 0 : c.ends; /* batches whose last sequence has tokens */
    for (int i = 0; i < t->batches && which < 0; i++)
        c.given++, c.batches += count(t, i).tokens > 0, c.ends += count(t, i).ends;
    return c;
}

static double part(const task *t, int s, int way)
{
    counts all = count(t, -1), own = count(t, t->batch[s]);
    const double parts[] = {
        [BY_TOKENS] = all.tokens,
        [BY_SEQUENCES] = all.filled * t->len[s],
        [BY_BATCHES] = all.batches * own.tokens,
        [BY_CELLS] = all.sequences * all.longest,
        [BY_CELLS_OF_BATCH] = all.batches * own.sequences * own.longest,
        [BY_LENGTH] = t->len[s],
        [BY_TOKENS_OF_BATCH] = own.tokens,
        [WITH_EMPTY_SEQUENCES] = all.sequences * t->len[s],
        [WITH_EMPTY_BATCHES] = all.given * own.tokens,
        [BY_RUNS] = all.runs * own.tokens,
        [BY_ENDS] = all.ends * own.tokens,
        [BY_ONE] = 1,
        [BY_SEQUENCES_OF_BATCH] = own.filled * t->len[s],
        [BY_BATCHES_AND_LENGTH] = all.batches * t->len[s],
        [BY_SEQUENCES_ONLY] = all.filled,
        [BY_BATCHES_ONLY] = all.batches,
    };
    return 1 / parts[way];
}

static int weights_of(const task *t, int way, double *weight)
{
    int n = 0;
    for (int s = 0; s < t->n; s++)
        for (int k = 0; k < t->len[s]; k++)
            weight[n++] = part(t, s, way);
    return n;
}

static void check_weigh(const task *t, mean_of which)
{
    double got[MOST_TOKENS], want[MOST_TOKENS], wrong[MOST_TOKENS], sum = 0;
    int n = weights_of(t, BY_TOKENS + (int)which, want);
    old_values(got, MOST_TOKENS, t->n % 2);
    weigh(which, t->n, t->len, t->batches, t->batch, got);
    if (near(got, want, n, 1e-12))
        return;
    for (int k = 0; k < n; k++)
        sum += got[k];
    if (sum == 0)
        hint("weigh leaves the weights at zero: weight[k] is the factor of token k's "
             "loss (in C, 1 / n is 0 for an int n above 1; write 1. / n)");
    hint_of_float("the weights are", got, want, n);
    for (int way = BY_TOKENS; way <= BY_BATCHES_ONLY; way++)
        if (weights_of(t, way, wrong), near(got, wrong, n, 1e-12))
            hint("for the mean of %s a token weighs %s", meant[which], hints[way]);
    hint("for the mean of %s the weights add up to %s. They must add up to 1, and "
         "token 1 must weigh %s",
         meant[which], digits_unlike(sum, 1), digits(want[0]));
}

/* ---- several batches, one gradient ---- */
/* Adds g, then divides the sum so far. A division by 0 gives 0, as in weft. */
static void divide_in_loop(double wrong[MISTAKES][WEIGHTS], int which, int k, double g,
                           double by)
{
    wrong[which][k] = by ? (wrong[which][k] + g) / by : 0;
}

/* Computes the gradients that the known mistakes give. */
static void gradients_with(const task *t, double wrong[MISTAKES][WEIGHTS])
{
    counts all = count(t, -1);
    double g[WEIGHTS], g_first[WEIGHTS], cells = 0, tokens = 0, last = 1, first = 1,
                                         some = 0;
    memset(wrong, 0, MISTAKES * sizeof *wrong);
    for (int i = 0; i < t->batches; i++) {
        double own = sum_gradient(t, i, g);
        counts c = count(t, i);
        if (i == 0)
            memcpy(g_first, g, sizeof g_first), first = own;
        cells += c.sequences * c.longest, tokens += own, last = own;
        some += all_zero(g, WEIGHTS) ? 0 : own;
        for (int k = 0; k < WEIGHTS; k++) {
            wrong[SUM_OF_MEANS][k] += own ? g[k] / own : 0;
            wrong[A_SUM][k] += g[k], wrong[LAST_ONLY][k] = g[k] / all.tokens;
            wrong[FIRST_ALWAYS][k] = (i ? wrong[FIRST_ALWAYS][k] : 0) + g_first[k];
            divide_in_loop(wrong, MEAN_IN_TURN, k, own ? g[k] / own : 0, tokens);
            divide_in_loop(wrong, DIVIDED_TOO_OFTEN, k, g[k], tokens);
            divide_in_loop(wrong, DIVIDED_BY_OWN, k, g[k], own);
            divide_in_loop(wrong, DIVIDED_BY_BATCHES, k, g[k], t->batches);
            divide_in_loop(wrong, DIVIDED_BY_ALL, k, g[k], all.tokens);
            divide_in_loop(wrong, MEAN_DIVIDED_BY_OWN, k, own ? g[k] / own : 0, own);
            divide_in_loop(wrong, MEAN_DIVIDED_BY_BATCHES, k, own ? g[k] / own : 0,
                           t->batches);
        }
    }
    for (int k = 0; k < WEIGHTS; k++) {
        double sum = wrong[A_SUM][k];
        wrong[MEAN_OF_MEANS][k] = wrong[SUM_OF_MEANS][k] / t->batches;
        wrong[PER_SEQUENCE][k] = sum / all.sequences,
        wrong[PER_BATCH][k] = sum / t->batches;
        wrong[MEAN_BY_TOKENS][k] = wrong[SUM_OF_MEANS][k] / all.tokens;
        wrong[SUM_BY_TOKENS_AND_BATCHES][k] = sum / all.tokens / t->batches;
        wrong[SUM_BY_TOKENS_TWICE][k] = sum / all.tokens / all.tokens;
        wrong[FIRST_ALWAYS][k] /= first * t->batches;
        wrong[ZERO_LEFT_OUT][k] = some ? sum / some : 0;
        wrong[PER_CELL][k] = sum / cells, wrong[LAST_TOKENS][k] = last ? sum / last : 0;
    }
}

static void hint_of_means(const task *t)
{
    double least = INFINITY, most = 0;
    for (int i = 0; i < t->batches; i++) {
        double n = count(t, i).tokens;
        if (n)
            least = fmin(least, n), most = fmax(most, n);
    }
    hint("the gradient is that of the mean of the batches' means: batches of %s and %s "
         "tokens count the same, so a token of the smaller one weighs %s times as much",
         digits(least), digits(most), digits(most / least));
}

/* Computes the loss, and checks that the tape of the last batch was cleared. */
static weft_loss (*first_loss)(const batches *b, int i);
static int asked;
static weft_loss watched_loss(const batches *b, int i)
{
    if (weft_ok(b->w) && weft_usage_of(b->w).tape > 0)
        hint("before batch %d the tape still has the batch before it: call weft_clear "
             "after each batch, because memory suffices for one",
             i + 1);
    asked++;
    return first_loss(b, i);
}

/* Computes the answer's gradient, in the process that has the answer. */
static void accumulated(const task *t, double got[WEIGHTS])
{
    network it;
    network_open(&it, t);
    first_loss = it.b.loss, it.b.loss = watched_loss, asked = 0;
    accumulate(&it.b);
    if (asked < t->batches)
        hint("accumulate computes the loss of %d of %d batches", asked, t->batches);
    if (!weft_ok(it.b.w))
        hint("weft reports: %s (tensors end at weft_clear: read the weight before it)",
             weft_error_message(it.b.w));
    network_gradient(&it, got);
    lesson_close(it.b.w);
}

static void check_accumulate(const task *t)
{
    double whole[WEIGHTS], got[WEIGHTS], wrong[MISTAKES][WEIGHTS],
        tokens = sum_gradient(t, -1, whole);
    if (answer_here())
        accumulated(t, got);
    share(got, sizeof got);
    for (int k = 0; k < WEIGHTS; k++)
        whole[k] /= tokens;
    if (near(got, whole, WEIGHTS, 1e-10))
        return;
    if (all_zero(got, WEIGHTS))
        hint("the gradient is 0: call weft_backward(l.sum) for each batch");
    gradients_with(t, wrong);
    if (near(got, wrong[MEAN_OF_MEANS], WEIGHTS, 1e-10))
        hint_of_means(t);
    for (int m = SUM_OF_MEANS; m < MISTAKES; m++)
        if (near(got, wrong[m], WEIGHTS, 1e-10))
            hint("%s", hints[m]);
    hint_of_float("the gradient is", got, whole, WEIGHTS);
    int k = first_off(got, whole, WEIGHTS, 1e-10);
    hint("the gradient of weight %d is %s, not %s, as for one big batch", k + 1,
         BOTH(got[k], whole[k]));
}

/* ---- the splits ---- */
/* Makes n random sequences of less than `most` tokens, the first of them longer by
 * `longer`. The last batch stays empty. */
static void dealt(task *t, int *len, int *batch, int n, int batches, int most,
                  int longer)
{
    for (int s = 0; s < n; s++)
        len[s] = dice_below(most), batch[s] = dice_below(batches - 1);
    len[0] += longer;
    *t = (task){ .n = n, .batches = batches, .len = len, .batch = batch };
    task_fill(t, 1);
}

void check(void)
{
    static const int lens[][12] = { { 70, 20, 10, 1, 2 },
                                    { 5, 3, 1, 2 },
                                    { 4, 0, 7, 1, 0, 12, 3, 3, 9, 2, 6, 1 },
                                    { 4, 0, 7, 1, 0, 12, 3, 3, 9, 2, 6, 1 },
                                    { 8, 6, 7, 0 },
                                    { 9 } };
    static const int batch[][12] = { { 0, 0, 0, 1, 1 },
                                     { 0, 0, 1, 1 },
                                     { 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3 },
                                     { 2, 1, 0, 2, 1, 0, 2, 1, 0, 3, 3, 3 },
                                     { 0, 0, 2, 1 },
                                     { 0 } };
    static const int n[] = { 5, 4, 12, 12, 4, 1 }, of[] = { 2, 2, 4, 4, 3, 1 };
    enum { GIVEN = 6, ALL = GIVEN + 3 };
    static task t[ALL];
    static int random_len[3][MOST_SEQUENCES], random_batch[3][MOST_SEQUENCES];
    dice_seed(80);
    for (int i = 0; i < GIVEN; i++) {
        t[i] = (task){ .n = n[i], .batches = of[i], .len = lens[i], .batch = batch[i] };
        task_fill(&t[i], n[i] > 1 ? 1 + dice_below(2) : 0);
    }
    for (int s = 0, k = 0; s < t[2].n; s++) /* batch 1 has the loss 0 */
        for (int j = 0; j < t[2].len[s]; j++, k++)
            if (t[2].batch[s] == 1)
                t[2].y[k] = .5 * t[2].x[k * INPUTS] + .5 * t[2].x[k * INPUTS + 1] + .5;
    dealt(&t[GIVEN], random_len[0], random_batch[0], 24, 9, 10, 0);
    dealt(&t[GIVEN + 1], random_len[1], random_batch[1], 17, 12, 6, 300);
    dealt(&t[GIVEN + 2], random_len[2], random_batch[2], MOST_SEQUENCES, 50, 7, 0);
    for (int i = 0; i < ALL; i++)
        for (int m = 0; m < MEANS; m++)
            check_weigh(&t[i], (mean_of)m);
    for (int i = 0; i < ALL; i++)
        check_accumulate(&t[i]);
}
