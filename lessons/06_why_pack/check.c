/* Lesson 6: compares the student's padded program with a packed run, with pads of 0, 7
 * and NaN. */
#include "weft_op.h"
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

enum { MOST_N = 12, MOST_T = 40, CELLS = MOST_N * MOST_T * UNITS };
static int N, T; /* of the batch under test */

/* ---- count ---- */
static void check_one_count(int n, const int32_t *len)
{
    int longest = largest_of(n, len), tokens = sum_of(n, len);
    batch_size got = count(n, len);
    if (tokens && !got.cells && !got.tokens)
        hint("count gives 0 cells and 0 tokens: cells are n times the longest length, "
             "tokens the sum of lengths");
    if (got.tokens == n * longest && got.cells == tokens && tokens != n * longest)
        hint("count exchanges its results: .cells is n times the longest length, "
             ".tokens the sum of lengths");
    if (got.tokens != tokens)
        hint("count finds %d tokens in %d sequences, not %d: add each length once",
             got.tokens, n, tokens);
    if (got.cells == n * longest)
        return;
    for (int s = 0; s < n && longest; s += n > 1 ? n - 1 : 1)
        if (got.cells == n * len[s])
            hint("count uses the length of the %s sequence as the longest: sequences "
                 "need not be sorted",
                 s ? "last" : "first");
    hint("count finds %d cells in %d sequences of at most %d tokens, not %d", got.cells,
         n, longest, n * longest);
}

/* Checks an empty batch. Its list is at an address that cannot be read. */
static void check_no_count(void)
{
    hint_of_crash("count reads a length, such as len[0], of a batch without sequences: "
                  "n may be 0");
    check_one_count(0, (const int32_t *)sizeof(double));
    hint_of_crash(NULL);
}

static void check_count(void)
{
    for (int k = 1; k < 20; k++) { /* the last has only empty sequences */
        int32_t len[12] = { 0 };
        int n = 1 + dice_below(12);
        for (int s = 0; s < n; s++)
            len[s] = k == 1 ? 5 : k == 19 ? 0 : dice_below(9);
        check_one_count(n, len);
    }
    static int32_t many[300];
    for (int s = 0; s < 300; s++)
        many[s] = dice_below(200);
    check_one_count(300, many);
    check_no_count();
}

/* ---- the two runs ---- */
static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih" };
enum { WEIGHTS = 4 * UNITS * (INPUTS + UNITS + 1) };
typedef struct {
    double y[CELLS], h[MOST_N * UNITS], c[MOST_N * UNITS];
    double gradient[WEIGHTS + MOST_N * MOST_T * INPUTS]; /* by weights, then by x */
} numbers;
typedef struct {
    int n, steps;
    int32_t len[MOST_N];
    double pad;
    bool reverse;
} one_case;

/* Computes the gradient of a loss over h, c, and y at tokens. */
static void gradients(weft_rnn_out out, weft_tensor *x, weft_tensor *mask,
                      const layers *l, bool reverse, bool own, double *to)
{
    weft_tensor *of_y = weft_where(weft_reshape(mask, WEFT_SHAPE(N, T, 1)), out.y,
                                   weft_scalar(weft_context_of(mask), 0));
    weft_tensor *loss =
        weft_add(weft_sum_all(weft_square(of_y)),
                 weft_add(weft_sum_all(out.last.h), weft_sum_all(out.last.c)));
    for (int k = 0; k < 4; k++) {
        weft_tensor *by = k < 3 ? weight_of(l, names[k], reverse, own) : x, *d;
        weft_gradients(loss, WEFT_LIST(by), &d);
        weft_read(d, to, (size_t)weft_numel(by) * sizeof *to);
        to += weft_numel(by);
    }
}

static weft_rnn_out packed(const layers *l, weft_tensor *x, const one_case *c)
{
    const weft_lengths lengths = { .n = N, .len = c->len };
    weft_rnn_out out =
        weft_rnn_run(l->both, weft_pack_padded_sequence(x, &lengths, WEFT_ALIGN_LEFT),
                     WEFT_ZERO_STATE);
    int64_t k = c->reverse;
    out.y = weft_pad_packed_sequence(out.y, T, 0, WEFT_ALIGN_LEFT);
    return (weft_rnn_out){ weft_slice(out.y, 2, k * UNITS, (k + 1) * UNITS),
                           { weft_slice(out.last.h, 0, k, k + 1),
                             weft_slice(out.last.c, 0, k, k + 1) } };
}

static void shape_or_hint(const char *what, weft_tensor *x, int rank,
                          const int64_t *shape)
{
    bool right = x && weft_rank(x) == rank;
    for (int a = 0; right && a < rank; a++)
        right = weft_size(x, a) == shape[a];
    if (!right)
        hint("run_padded's %s does not have the shape in lesson.h", what);
}

/* Programs: those with a mistake of mistakes.def, and these. PACKED: the right one;
 * ALL_CELLS: pads count as tokens; FORWARD: the answer, run forward even with the
 * reverse layer. */
enum { PACKED = MISTAKES, YOURS, ALL_CELLS, FORWARD };

static weft_tensor *step_at(weft_tensor *x, int t, int width)
{
    return weft_reshape(weft_slice(x, 1, t, t + 1), WEFT_SHAPE(N, width));
}

/* Runs a padded program with a mistake. */
static weft_rnn_out mistaken(weft_rnn *lstm, weft_tensor *x, weft_tensor *mask,
                             bool reverse, int what)
{
    weft *w = weft_context_of(x);
    weft_tensor *zero = weft_scalar(w, 0),
                *none = weft_zeros(w, WEFT_SHAPE(1, N, UNITS)), *y[MOST_T];
    weft_state s = { none, none };
    for (int k = 0; k < T; k++) {
        int t = reverse ? T - 1 - k : k;
        weft_tensor *here = step_at(mask, what == MASK_OF_K ? k : t, 1);
        weft_tensor *in = step_at(x, what == X_OF_K ? k : t, INPUTS);
        in = what == TOKENS_LOST ? weft_where(here, zero, in) :
                                   weft_where(here, in, zero);
        weft_rnn_out out = weft_rnn_step(lstm, in, s);
        weft_state new = out.last;
        if (what == EXCHANGED)
            new = (weft_state){ out.last.c, out.last.h };
        s.h = what == SWAPPED ? weft_where(here, s.h, new.h) :
                                weft_where(here, new.h, s.h);
        s.c = what == SWAPPED ? weft_where(here, s.c, new.c) :
                                weft_where(here, new.c, s.c);
        y[what == Y_OF_K ? k : t] = weft_where(here, out.y, zero);
    }
    return (weft_rnn_out){ weft_stack(y, T, 1), s };
}

static weft_rnn_out out_of(const one_case *c, int what, const layers *l, weft_tensor *x,
                           weft_tensor *mask)
{
    weft_rnn *one = l->one[c->reverse];
    if (what == PACKED)
        return packed(l, x, c);
    if (what < MISTAKES)
        return mistaken(one, x, mask, c->reverse, what);
    if (what != ALL_CELLS)
        return run_padded(one, x, mask, what == YOURS && c->reverse);
    weft_rnn_out out =
        weft_rnn_run(one, c->reverse ? weft_flip(x, 1) : x, WEFT_ZERO_STATE);
    out.y = c->reverse ? weft_flip(out.y, 1) : out.y;
    return out;
}

static void compute(const one_case *c, int what, numbers *r)
{
    weft *w = lesson_open(66);
    layers l = layers_new(w);
    const weft_lengths lengths = { .n = N, .len = c->len };
    weft_tensor *x = padded_of(w, 67, N, T, c->len, c->pad);
    weft_tensor *mask = weft_length_mask(w, &lengths, T, WEFT_ALIGN_LEFT);
    weft_rnn_out out = out_of(c, what, &l, x, mask);
    size_t of_y = (size_t)(N * T * UNITS) * sizeof *r->y,
           of_state = (size_t)(N * UNITS) * sizeof *r->h;
    lesson_ok(w);
    shape_or_hint("y", out.y, WEFT_SHAPE(N, T, UNITS));
    shape_or_hint("last.h", out.last.h, WEFT_SHAPE(1, N, UNITS));
    shape_or_hint("last.c", out.last.c, WEFT_SHAPE(1, N, UNITS));
    weft_read(out.y, r->y, of_y);
    weft_read(out.last.h, r->h, of_state), weft_read(out.last.c, r->c, of_state);
    gradients(out, x, mask, &l, c->reverse, what != PACKED, r->gradient);
    lesson_close(w);
}

static numbers run(const one_case *c, int what)
{
    static numbers r;
    bool answers = what == YOURS || what == FORWARD;
    memset(&r, 0, sizeof r);
    if (!answers || answer_here())
        compute(c, what, &r);
    if (answers)
        share(&r, sizeof r);
    return r;
}

/* ---- hints for a wrong run ---- */
static bool near_in(const one_case *c, const double *got, const double *want,
                    bool tokens)
{
    for (int i = 0; i < N * T; i++)
        if ((i % T < c->len[i / T]) == tokens &&
            !near(got + i * UNITS, want + i * UNITS, UNITS, 1e-9))
            return false;
    return true;
}

/* NaN is not near itself. */
static void check_nan(const numbers *got)
{
    if (!near(got->y, got->y, N * T * UNITS, 0) ||
        !near(got->h, got->h, N * UNITS, 0) || !near(got->c, got->c, N * UNITS, 0))
        hint("with NaN in the pads the results are NaN: 0 * NaN is NaN, so a product "
             "with the mask keeps it. Use weft_where");
    if (!near(got->gradient, got->gradient, WEIGHTS, 0))
        hint("with NaN in the pads only the gradient is NaN: weft_where gives the "
             "branch that it did not take a gradient of 0, and the step's backward "
             "pass multiplies it by NaN. Clean x before the step");
}

static void check_last(const one_case *c, const numbers *got, const numbers *want)
{
    const char *way = c->reverse ? "reverse" : "forward";
    if (!near(got->h, want->h, N * UNITS, 1e-9)) {
        numbers naive = run(c, ALL_CELLS);
        if (near(got->h, naive.h, N * UNITS, 1e-9))
            hint("%s: y is right, but last.h is not: the state changes in the pads. It "
                 "must keep its value after the last token",
                 way);
        const double nothing[UNITS] = { 0 };
        if (near(got->h, nothing, UNITS, 0))
            hint("%s: y is right, but last.h of sequence 1 is 0: in the pads the state "
                 "must keep its value",
                 way);
        hint("%s: y is right, but last.h of sequence 1 is %s, not %s", way,
             BOTH(got->h[0], want->h[0]));
    }
    if (!near(got->c, want->c, N * UNITS, 1e-9))
        hint("%s: last.h is right, but last.c is not: an LSTM's state is h and c, and "
             "both must keep their values in the pads",
             way);
}

static void check_y(const one_case *c, const numbers *got, const numbers *want)
{
    if (!near_in(c, got->y, want->y, true)) {
        numbers naive = run(c, ALL_CELLS);
        if (c->reverse && near_in(c, got->y, naive.y, true))
            hint("reverse: the pads come first, and the last token of a sequence reads "
                 "the state that they leave. Its state must be 0");
        numbers forward = run(c, FORWARD);
        if (c->reverse && near_in(c, got->y, forward.y, true))
            hint("reverse: y is that of the forward direction: with reverse, begin at "
                 "step T - 1, not at step 0");
        for (int what = RIGHT + 1; what < MISTAKES; what++) {
            numbers wrong = run(c, what);
            if (near_in(c, got->y, wrong.y, true))
                hint("%s", hints[what]);
        }
        hint("%s: y is wrong at tokens (pads are %s)",
             c->reverse ? "reverse" : "forward", digits(c->pad));
    }
    if (!near_in(c, got->y, want->y, false))
        hint("y is right at the tokens, but not 0 in the pads (pads of x are %s)",
             digits(c->pad));
}

static void check_case(const one_case *c, const numbers *want)
{
    numbers got = run(c, YOURS);
    if (isnan(c->pad))
        check_nan(&got);
    check_y(c, &got, want), check_last(c, &got, want);
    if (!near(got.gradient, want->gradient, WEIGHTS, 1e-9))
        hint("y and the state are right, but their gradient by the weights is not "
             "(pads are %s): is there a weft_detach, or a weft_read?",
             digits(c->pad));
    if (!near(got.gradient + WEIGHTS, want->gradient + WEIGHTS, N * T * INPUTS, 1e-9))
        hint("the gradient by the weights is right, but that by x is not (pads are "
             "%s): is x detached?",
             digits(c->pad));
}

/* ---- the loss ---- */
/* Gives a hint if the mean of y's squares is wrong. sum: of the squares. */
static void hint_of_mean(double got, double sum, int tokens, const double *y)
{
    double right = sum / tokens / UNITS, plain = 0, numbers = 0;
    for (int i = 0; i < N * T * UNITS; i++)
        plain += y[i], numbers += y[i] != 0;
    if (is(got, right))
        return;
    if (is(got, sum / (N * T * UNITS)))
        hint("mean_square is a mean over all %d cells, but there are %d tokens", N * T,
             tokens);
    const known_mistake known[] = {
        { sum / tokens, "divides by the tokens only: each has UNITS numbers" },
        { sum, "is a sum: divide by tokens times UNITS" },
        { sqrt(right), "is the root of the mean: return the mean" },
        { plain / tokens / UNITS, "adds y: add its squares" },
        { sum / N / UNITS, "divides by the sequences: divide by the tokens" },
        { sum / numbers,
          "counts numbers that are not 0: a token's output may be 0, so use the mask" },
    };
    HINT_OF_KNOWN("mean_square", got, right, known);
    hint("mean_square gives %s, not %s", BOTH(got, right));
}

static void check_mean(const one_case *c)
{
    const weft_lengths lengths = { .n = N, .len = c->len };
    double y[CELLS], gradient[CELLS] = { 0 }, want[CELLS], sum = 0, got = 0;
    int tokens = sum_of(N, c->len), cells = N * T * UNITS;
    dice_seed(62), dice_fill(y, cells);
    for (int i = 0; i < cells; i++) {
        y[i] = i / UNITS % T < c->len[i / UNITS / T] && i % 3 ? y[i] : 0;
        sum += y[i] * y[i], want[i] = 2 * y[i] / tokens / UNITS;
    }
    if (answer_here()) {
        weft *w = lesson_open(68);
        weft_tensor *of = weft_reals(w, y, WEFT_SHAPE(N, T, UNITS)), *by;
        weft_tensor *mean =
            mean_square(of, weft_length_mask(w, &lengths, T, WEFT_ALIGN_LEFT));
        got = weft_item(mean);
        lesson_ok(w);
        weft_gradients(mean, WEFT_LIST(of), &by);
        if (weft_ok(w))
            weft_read(by, gradient, (size_t)cells * sizeof *gradient);
        weft_close(w);
    }
    share(&got, sizeof got), share(gradient, sizeof gradient);
    hint_of_mean(got, sum, tokens, y);
    if (!near(gradient, want, cells, 1e-10))
        hint("mean_square is right, but its gradient by y is not: is there a "
             "weft_detach, weft_item or weft_read?");
}

/* ---- the cases: in each of pads, forward and reverse ---- */
static const one_case cases[] = {
    { .n = 6, .steps = 6, .len = { 2, 6, 0, 3, 1, 5 } },
    { .n = 6, .steps = 6, .len = { 4, 4, 4, 4, 4, 4 } },
    { .n = 6, .steps = 7, .len = { 1, 2, 3, 4, 5, 6 } },
    { .n = 2, .steps = 3, .len = { 1, 3 } },
    { .n = 1, .steps = 5, .len = { 4 } },
    { .n = 1, .steps = 1, .len = { 1 } },
    { .n = 12, .steps = 40, .len = { 3, 40, 0, 21, 1, 39, 2, 40, 0, 17, 8, 30 } },
};
enum { CASES = sizeof cases / sizeof *cases, RUNS = 2 * 3 * CASES };
static numbers wanted[RUNS];
static bool known;

static one_case case_of(int k)
{
    static const double pads[] = { 0, 7, NAN };
    one_case c = cases[k % CASES];
    N = c.n, T = c.steps;
    c.pad = pads[k / (2 * CASES)], c.reverse = k / CASES % 2;
    return c;
}

void remember(void)
{
    for (int k = 0; k < RUNS && !known; k++) {
        one_case c = case_of(k);
        wanted[k] = run(&c, PACKED);
    }
    known = true;
}

void check(void)
{
    dice_seed(61);
    check_count();
    remember();
    for (int k = 0; k < RUNS; k++) {
        one_case c = case_of(k);
        check_case(&c, wanted + k);
        if (k < CASES && c.steps > 1)
            check_mean(&c);
    }
}
