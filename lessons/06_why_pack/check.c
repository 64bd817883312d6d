/* Lesson 6: the student's padded program beside a packed run, with pads of 0, 7 and
 * NaN. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <sys/mman.h>
#include "common/lesson.h"
#include "given.h"

enum { N = 6, T = 6, ROWS = N * T, CELLS = ROWS * UNITS };

/* ---- count ---- */
static void check_one_count(int n, const int32_t *len)
{
    int longest = 0, tokens = 0;
    for (int s = 0; s < n; s++)
        tokens += len[s], longest = len[s] > longest ? len[s] : longest;
    batch_size got = count(n, len);
    if (tokens && !got.cells && !got.tokens)
        hint("count gives 0 of everything: write n times the longest length, and the "
             "sum of the lengths");
    if (got.tokens != tokens)
        hint("count finds %d tokens in %d sequences that have %d; each length counts "
             "once",
             got.tokens, n, tokens);
    if (n && longest && got.cells != n * longest && got.cells == n * len[0])
        hint("count takes the first sequence for the longest; they need not be sorted");
    if (n && longest && got.cells != n * longest && got.cells == n * len[n - 1])
        hint("count takes the last sequence for the longest; they need not be sorted");
    if (got.cells != n * longest)
        hint("count finds %d cells in %d sequences, the longest of %d; they are %d",
             got.cells, n, longest, n * longest);
}

/* A list of no lengths lies where nothing may be read. It is the reading itself that
 * ends here, so nothing else is under way, and hint may print. */
static void has_read(int number)
{
    (void)number;
    hint(
        "count reads len[0], or another length, of a batch that has no sequence: n may "
        "be 0");
}

static void check_no_count(void)
{
    enum { PAGES = 1 << 16 };
    void *room = mmap(NULL, 2 * PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return;
    signal(SIGSEGV, has_read);
    check_one_count(0, (const int32_t *)((char *)room + PAGES));
    signal(SIGSEGV, SIG_DFL);
    munmap(room, 2 * PAGES);
}

static void check_count(void)
{
    for (int k = 1; k < 20; k++) {
        int32_t len[12] = { 0 };
        int n = 1 + dice_below(12);
        for (int s = 0; s < n; s++)
            len[s] = k == 1 ? 5 : dice_below(9);
        check_one_count(n, len);
    }
    check_no_count();
}

/* ---- the two runs ---- */
static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih" };
enum { WEIGHTS = 4 * UNITS * (INPUTS + UNITS + 1) };
typedef struct {
    double y[CELLS], h[N * UNITS], c[N * UNITS], gradient[WEIGHTS];
} numbers;
typedef struct {
    int32_t len[N];
    double pad;
    bool reverse;
} one_case;

/* The gradient of a sum of y's squares, h and c that only tokens are in. */
static void gradients(weft_rnn_out out, weft_tensor *mask, const layers *l,
                      bool reverse, bool own, double *to)
{
    weft_tensor *of_y = weft_where(weft_reshape(mask, WEFT_SHAPE(N, T, 1)), out.y,
                                   weft_scalar(weft_context_of(mask), 0));
    weft_tensor *loss =
        weft_add(weft_sum_all(weft_square(of_y)),
                 weft_add(weft_sum_all(out.last.h), weft_sum_all(out.last.c)));
    for (int k = 0; k < 3; k++) {
        weft_tensor *by = weight_of(l, names[k], reverse, own), *d;
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
        hint("run_padded's %s has another shape than lesson.h says", what);
}

/* PACKED: of the oracle; ALL_CELLS: by a plain run; FORWARD: of the reverse layer, but
 * forward. */
typedef enum { PACKED, YOURS, ALL_CELLS, FORWARD } program;
static numbers run(const one_case *c, program what)
{
    numbers r;
    weft *w = lesson_open(66);
    layers l = layers_new(w);
    const weft_lengths lengths = { .n = N, .len = c->len };
    weft_tensor *x = padded_of(w, 67, N, T, c->len, c->pad);
    weft_tensor *mask = weft_length_mask(w, &lengths, T, WEFT_ALIGN_LEFT);
    weft_rnn_out out;
    weft_rnn *one = l.one[c->reverse];
    if (what == ALL_CELLS) {
        out = weft_rnn_run(one, c->reverse ? weft_flip(x, 1) : x, WEFT_ZERO_STATE);
        out.y = c->reverse ? weft_flip(out.y, 1) : out.y;
    } else {
        out = what == PACKED ? packed(&l, x, c) :
                               run_padded(one, x, mask, what == YOURS && c->reverse);
    }
    lesson_ok(w);
    shape_or_hint("y", out.y, WEFT_SHAPE(N, T, UNITS));
    shape_or_hint("last.h", out.last.h, WEFT_SHAPE(1, N, UNITS));
    shape_or_hint("last.c", out.last.c, WEFT_SHAPE(1, N, UNITS));
    weft_read(out.y, r.y, sizeof r.y);
    weft_read(out.last.h, r.h, sizeof r.h), weft_read(out.last.c, r.c, sizeof r.c);
    gradients(out, mask, &l, c->reverse, what != PACKED, r.gradient);
    lesson_close(w);
    return r;
}

/* ---- what is wrong with it ---- */
static bool near_in(const one_case *c, const double *got, const double *want,
                    bool tokens)
{
    for (int i = 0; i < ROWS; i++)
        if ((i % T < c->len[i / T]) == tokens &&
            !near(got + i * UNITS, want + i * UNITS, UNITS, 1e-9))
            return false;
    return true;
}

static bool any_nan(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (isnan(x[i]))
            return true;
    return false;
}

static void check_nan(const numbers *got)
{
    if (any_nan(got->y, CELLS) || any_nan(got->h, N * UNITS) ||
        any_nan(got->c, N * UNITS))
        hint("with NaN in the pads NaN comes out: 0 * NaN is NaN, so a product with "
             "the mask keeps it; weft_where chooses");
    if (any_nan(got->gradient, WEIGHTS))
        hint("with NaN in the pads y and the state are right, but the gradient is NaN: "
             "on the way back what was not chosen gets 0, and the step multiplies it "
             "by its NaN; clean x before the step");
}

static void check_last(const one_case *c, const numbers *got, const numbers *want)
{
    const char *way = c->reverse ? "reverse" : "forward";
    if (!near(got->h, want->h, N * UNITS, 1e-9)) {
        numbers naive = run(c, ALL_CELLS);
        if (near(got->h, naive.h, N * UNITS, 1e-9))
            hint("%s: y is right, last.h is not: what does the state do in the pads? "
                 "It must stay as the last token has left it",
                 way);
        const double nothing[UNITS] = { 0 };
        if (near(got->h, nothing, UNITS, 0))
            hint("%s: y is right, but last.h of sequence 1 is 0: in the pads the state "
                 "must stay as it was, not become 0",
                 way);
        hint("%s: y is right, last.h is not: sequence 1 has %s, and %s is right", way,
             digits(got->h[0]), digits(want->h[0]));
    }
    if (!near(got->c, want->c, N * UNITS, 1e-9))
        hint("%s: last.h is right, last.c is not: an LSTM's state is h and c, and both "
             "must stay as they are in the pads",
             way);
}

static void check_y(const one_case *c, const numbers *got, const numbers *want)
{
    if (!near_in(c, got->y, want->y, true)) {
        numbers naive = run(c, ALL_CELLS);
        if (c->reverse && near_in(c, got->y, naive.y, true))
            hint("reverse: the pads come first here, and each sequence begins with "
                 "what they have left; its last token must find a state of zeros");
        numbers forward = run(c, FORWARD);
        if (c->reverse && near_in(c, got->y, forward.y, true))
            hint("reverse: y is what the forward direction gives: reverse, too, begins "
                 "at step 0 and not at T - 1");
        hint("%s: y is wrong at tokens (pads are %s)",
             c->reverse ? "reverse" : "forward", digits(c->pad));
    }
    if (!near_in(c, got->y, want->y, false))
        hint("y is right at the tokens, but not 0 in the pads (pads of x are %s)",
             digits(c->pad));
}

static void check_case(const one_case *c)
{
    numbers got = run(c, YOURS), want = run(c, PACKED);
    if (isnan(c->pad))
        check_nan(&got);
    check_y(c, &got, &want), check_last(c, &got, &want);
    if (!near(got.gradient, want.gradient, WEIGHTS, 1e-9))
        hint("y and the state are right, their gradient by the weights is not (pads "
             "are %s); is there a weft_detach, or numbers that were read and written "
             "back?",
             digits(c->pad));
}

/* ---- the loss ---- */
static void check_mean(int tokens, const int32_t *len)
{
    const weft_lengths lengths = { .n = N, .len = len };
    weft *w = lesson_open(68);
    double y[CELLS], sum = 0;
    dice_fill(y, CELLS);
    for (int i = 0; i < CELLS; i++) {
        y[i] = i / UNITS % T < len[i / UNITS / T] ? y[i] : 0;
        sum += y[i] * y[i];
    }
    double got =
        weft_item(mean_square(weft_reals(w, y, WEFT_SHAPE(N, T, UNITS)),
                              weft_length_mask(w, &lengths, T, WEFT_ALIGN_LEFT)));
    lesson_close(w);
    double right = sum / tokens / UNITS, cells = sum / CELLS, rows = sum / tokens;
    if (near(&got, &right, 1, 1e-12))
        return;
    if (near(&got, &cells, 1, 1e-12))
        hint("mean_square is a mean over all %d cells, but there are %d tokens: it "
             "shrinks with every pad",
             ROWS, tokens);
    if (near(&got, &rows, 1, 1e-12))
        hint("mean_square divides by the tokens, but each has %d units", UNITS);
    hint("mean_square gives %s where %s is right", digits(got), digits(right));
}

void check(void)
{
    static const int32_t lens[][N] = { { 2, 6, 0, 3, 1, 5 },
                                       { 4, 4, 4, 4, 4, 4 },
                                       { 1, 2, 3, 4, 5, 6 } };
    static const double pads[] = { 0, 7, NAN };
    dice_seed(61);
    check_count();
    for (int k = 0; k < 18; k++) {
        one_case c = { .pad = pads[k / 6], .reverse = k % 6 / 3 };
        memcpy(c.len, lens[k % 3], sizeof c.len);
        check_case(&c);
    }
    check_mean(17, lens[0]), check_mean(24, lens[1]), check_mean(21, lens[2]);
}
