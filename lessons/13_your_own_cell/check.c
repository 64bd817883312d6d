/* Lesson 13: compares the student's cell with the same cell in weft's operators, on
 * random ragged batches, and its gradients with finite differences. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

enum { MOST_UNITS = 9, MOST_N = 5, MOST_LEN = 7, MOST_ROWS = MOST_N * MOST_LEN };
enum { NUMBERS = MOST_ROWS * MOST_UNITS, STATES = MOST_N * MOST_UNITS };
/* The batch under test. Arrays are longer than needed: wrong answers read the rest. */
static int n, H, len[MOST_N], rows;
static double s[2 * NUMBERS], v[2 * MOST_UNITS], first[STATES], dy[NUMBERS],
    dlast[STATES], h0[2 * MOST_UNITS];
typedef struct {
    double before[MOST_UNITS]; /* zeros, for a wrong index */
    double y[NUMBERS], last[STATES], ds[2 * NUMBERS], dv[MOST_UNITS], dfirst[STATES];
} results;
static results expected, got;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* ---- one step, right and with known mistakes ---- */
static double unit_with(int mistake, const double *sums, const double *h, int j)
{
    double N = mistake == F_HALVES ? sums[H + j] :
               mistake == F_PAIRS  ? sums[2 * j] :
                                     sums[j];
    double p = mistake == F_HALVES ? sums[j] :
               mistake == F_PAIRS  ? sums[2 * j + 1] :
                                     sums[H + j];
    double vh = mistake == F_UNIT_0 ? v[0] * h[0] : v[j] * h[j];
    bool apart = mistake == F_NO_STATE || mistake == F_V_ON_N || mistake == F_V_OUTSIDE;
    double sum = apart ? p : p + vh;
    double f = mistake == F_BARE ? sum : mistake == F_TANH ? tanh(sum) : sigmoid(sum);
    f += mistake == F_V_OUTSIDE ? vh : 0;
    N = mistake == F_V_ON_N ? N + vh : mistake == F_N_TANH ? tanh(N) : N;
    if (mistake == F_EXCHANGED)
        return (1 - f) * h[j] + f * N;
    return f * h[j] + (mistake == F_N_WHOLE ? 1 : 1 - f) * N;
}

static void forward_with(int mistake, double *to)
{
    for (int j = 0; j < H; j++)
        to[j] = unit_with(mistake, s, h0, j);
}

/* The gradients of a step. by: n [H], p [H], v [H], h [H]. */
static void step_back(int mistake, const double *sums, const double *h, const double *d,
                      double *by)
{
    for (int j = 0; j < H; j++) {
        double f = sigmoid(sums[H + j] + (mistake == B_NO_STATE ? 0 : v[j] * h[j])),
               N = sums[j];
        double slope = mistake == B_NO_SLOPE   ? 1 :
                       mistake == B_HALF_SLOPE ? f :
                       mistake == B_TANH_SLOPE ? 1 - f * f :
                                                 f * (1 - f);
        double factor = mistake == B_SIGN   ? N - h[j] :
                        mistake == B_ONLY_H ? h[j] :
                                              h[j] - N;
        double p = d[j] * factor * slope;
        double of_n = d[j] * (mistake == B_N_BY_F  ? f :
                              mistake == B_N_WHOLE ? 1 :
                                                     1 - f);
        by[j] = mistake == B_HALVES ? p : of_n;
        by[H + j] = mistake == B_HALVES ? of_n : p;
        by[2 * H + j] = p * (mistake == B_DV_NO_H  ? 1 :
                             mistake == B_DV_TWICE ? v[j] * h[j] :
                                                     h[j]);
        by[3 * H + j] = (mistake == B_ONLY_GATE ? 0 : d[j] * f) +
                        (mistake == B_NO_GATE   ? 0 :
                         mistake == B_GATE_NO_V ? p :
                                                  p * v[j]);
    }
}

static void backward_with(int mistake, double *by)
{
    step_back(mistake, s, h0, dy, by);
    for (int j = 0; j < H; j++) {
        by[2 * H + j] += mistake == B_DV_SET ? 0 : dlast[j];
        by[3 * H + j] += mistake == B_DH_ADDED ? first[j] : 0;
    }
}

/* An array has H numbers of a step, or of each sequence or token; with SUMS 2 H, for n
 * and p. */
enum { STEP, SEQUENCES, TOKENS, SUMS = 4 };
static int count_of(int layout)
{
    int of = layout % SUMS;
    return (layout & SUMS ? 2 : 1) * H *
           (of == TOKENS    ? rows :
            of == SEQUENCES ? n :
                              1);
}

/* Names number k of an array. */
static const char *place(int layout, int k)
{
    static char text[80];
    int of = layout % SUMS, wide = layout & SUMS ? 2 * H : H, s = 0, t = k / wide,
        at = 0;
    while (of == TOKENS && t >= len[s])
        t -= len[s++];
    if (of != STEP)
        at = snprintf(text, sizeof text, "sequence %d, ", of == TOKENS ? s : t);
    if (of == TOKENS)
        at += snprintf(text + at, sizeof text - (size_t)at, "token %d, ", t);
    snprintf(text + at, sizeof text - (size_t)at, "unit %d%s", k % H,
             wide == H    ? "" :
             k % wide < H ? " of n" :
                            " of p");
    return text;
}

/* Gives a hint for the first wrong number. */
static void first_wrong(const char *what, const double *mine, const double *right,
                        int layout)
{
    int count = count_of(layout), k = first_off(mine, right, count, 1e-10);
    if (k == count)
        return;
    hint_of_float(what, mine, right, count);
    hint("%s right up to %s, which is %s instead of %s", what, place(layout, k),
         BOTH(mine[k], right[k]));
}

static void check_forward(void)
{
    double to[2 * MOST_UNITS] = { 0 }, right[MOST_UNITS];
    forward(H, s, v, h0, to);
    forward_with(RIGHT, right);
    if (near(to, right, H, 1e-12))
        return;
    if (all_zero(to, H))
        hint("forward leaves the state at zero: compute f, then h'");
    hint_of_mistakes(to, H, 1e-12, hints, F_EXCHANGED, F_UNIT_0, forward_with);
    int j = first_off(to, right, H, 1e-12);
    double sum = s[H + j] + v[j] * h0[j];
    if (fabs(sum) > 3 && to[j] == (sum > 0 ? h0 : s)[j])
        hint("forward: f is %d for a sum of %s: compute the sigmoid for large sums too",
             sum > 0, digits(sum));
    first_wrong("forward: the states are", to, right, STEP);
}

static void check_backward(void)
{
    double ds[2 * MOST_UNITS] = { 0 }, dv[MOST_UNITS], dh[MOST_UNITS];
    double by[4 * MOST_UNITS], right[4 * MOST_UNITS];
    memcpy(dv, dlast, sizeof dv); /* earlier steps */
    memcpy(dh, first, sizeof dh); /* an old value */
    backward(H, s, v, h0, dy, ds, dv, dh);
    memcpy(by, ds, 2 * (size_t)H * sizeof *ds);
    memcpy(by + 2 * H, dv, (size_t)H * sizeof *dv);
    memcpy(by + 3 * H, dh, (size_t)H * sizeof *dh);
    backward_with(RIGHT, right);
    if (near(by, right, 4 * H, 1e-12))
        return;
    if (all_zero(ds, 2 * H) && all_zero(dh, H))
        hint("forward is right; backward leaves all gradients at zero");
    hint_of_mistakes(by, 4 * H, 1e-12, hints, B_NO_STATE, B_HALVES, backward_with);
    for (int k = 0; k < 4 * H; k++)
        if (isnan(by[k]) && s[k % H] == h0[k % H])
            hint("backward gives NaN if h and n are equal, here %s: compute f from its "
                 "sum, not as a quotient",
                 digits(h0[k % H]));
    first_wrong("backward: the gradients by n and p are", by, right, STEP | SUMS);
    first_wrong("backward: ds is right, and dv is", by + 2 * H, right + 2 * H, STEP);
    first_wrong("backward: ds and dv are right, and dh is", by + 3 * H, right + 3 * H,
                STEP);
}

/* ---- a batch by weft: the rows of weight_ih are the sums of all tokens ---- */
static weft_state reference(const weft_cell_input *in, void *user)
{
    (void)user;
    weft_tensor *sum =
        weft_add(weft_slice(in->x, 1, H, 2 * H), weft_mul(in->h, in->own[0]));
    weft_tensor *keeps = weft_mul(weft_sigmoid(sum), in->h),
                *rest = weft_sigmoid(weft_neg(sum));
    return (weft_state){ weft_add(keeps, weft_mul(rest, weft_slice(in->x, 1, 0, H))),
                         NULL };
}

static void transposed(const double *from, int high, int wide, double *to)
{
    for (int k = 0; k < high * wide; k++)
        to[k % wide * high + k / wide] = from[k];
}

static void read_grad(weft_tensor *of, double *to)
{
    weft_read(weft_grad(of), to, (size_t)weft_numel(of) * sizeof *to);
}

static void by_weft(weft_cell_step *step, results *r)
{
    static double turned[2 * NUMBERS];
    int32_t token[MOST_ROWS], length[MOST_N];
    const weft_cell cell = cell_of(step);
    weft *w = lesson_open(13);
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *layer =
        weft_rnn_of_cell(m, "r", &cell, &(weft_rnn_opts){ .input = rows, .hidden = H });
    weft_tensor *sums = weft_find_parameter(m, "r.weight_ih_l0"),
                *of_v = weft_find_parameter(m, "r.v_l0");
    weft_tensor *begin = weft_parameter(m, "first", WEFT_SHAPE(1, n, H),
                                        (weft_init){ .kind = WEFT_INIT_ZERO });
    for (int k = 0; k < rows; k++)
        token[k] = k;
    for (int k = 0; k < n; k++)
        length[k] = len[k];
    const weft_lengths lengths = { .n = n, .len = length };
    transposed(s, rows, 2 * H, turned);
    weft_assign_values(sums, turned, rows * 2 * H), weft_assign_values(of_v, v, H);
    weft_assign_values(begin, first, n * H);
    weft_initialise(weft_find_parameter(m, "r.bias_ih_l0"),
                    (weft_init){ .kind = WEFT_INIT_ZERO });
    weft_tensor *x = weft_one_hot(weft_ragged_ints(w, token, &lengths), rows);
    weft_rnn_out out =
        weft_rnn_run(layer, x, (weft_state){ weft_scale(begin, 1), NULL });
    weft_tensor *by_y = weft_sum_all(weft_mul(out.y, weft_ragged(w, dy, H, &lengths)));
    weft_tensor *by_last =
        weft_sum_all(weft_mul(out.last.h, weft_reals(w, dlast, WEFT_SHAPE(1, n, H))));
    weft_read_sequences(out.y, r->y, (size_t)(rows * H) * sizeof *r->y);
    weft_read(out.last.h, r->last, (size_t)(n * H) * sizeof *r->last);
    weft_backward(weft_add(by_y, by_last));
    read_grad(sums, turned), read_grad(of_v, r->dv), read_grad(begin, r->dfirst);
    transposed(turned, 2 * H, rows, r->ds);
    lesson_close(w);
}

/* ---- a batch with known mistakes ---- */
static void run_with(int mistake, double *y)
{
    const double zeros[MOST_UNITS] = { 0 };
    double h[MOST_UNITS];
    for (int k = 0, row = 0; k < n; k++) {
        const double *begin =
            mistake == R_ZEROS ? zeros : first + (mistake == R_FIRST_0 ? 0 : k * H);
        if (mistake != R_CARRIED || k == 0)
            memcpy(h, begin, sizeof h);
        for (int t = 0; t < len[k]; t++, row++) {
            int read = mistake == R_BY_STEPS ? (t * n + k) % MOST_ROWS : row;
            for (int j = 0; j < H; j++)
                y[row * H + j] = unit_with(RIGHT, s + read * 2 * H,
                                           mistake == R_NO_STATE ? begin : h, j);
            memcpy(h, y + row * H, (size_t)H * sizeof *h);
        }
    }
}

/* Starts the gradient of the state that sequence k ends with. */
static void begin_back(int mistake, int k, bool is_first, double *dh)
{
    int row = mistake == RB_FILLED ? 0 : k;
    for (int i = 0; mistake == RB_FILLED && i < k; i++)
        row += len[i] > 0;
    for (int j = 0; j < H; j++) {
        double direct = dlast[row * H + j];
        if (mistake == RB_LAST_ALL || mistake == RB_NO_LAST)
            dh[j] = 0;
        else if (mistake == RB_CROSS_ON || mistake == RB_CROSS_ADDS)
            dh[j] += mistake == RB_CROSS_ADDS && !len[k] ? 0 : direct;
        else if (mistake != RB_CROSS || is_first)
            dh[j] = direct;
    }
}

/* Returns the state that a step gets. */
static const double *state_before(int mistake, int k, int row, bool is_first)
{
    static const double zeros[MOST_UNITS];
    if (mistake == RB_AFTER || (mistake == RB_AFTER_LATER && !is_first))
        return expected.y + row * H;
    if (!is_first || mistake == RB_ROW_BEFORE || (mistake == RB_ROW_0 && row > 0))
        return expected.y + (row - 1) * H;
    return mistake == RB_BEGIN_0 ? zeros : first + k * H;
}

static void back_with(int mistake, double *ds)
{
    double dh[MOST_UNITS] = { 0 }, by[4 * MOST_UNITS], d[MOST_UNITS];
    bool down = mistake == RB_CROSS;
    for (int c = 0, begin = down ? rows : 0; c < n; c++) {
        int k = down ? n - 1 - c : c;
        begin -= down ? len[k] : 0;
        begin_back(mistake, k, c == 0, dh);
        for (int i = len[k] - 1; i >= 0; i--) {
            int row = begin + (mistake == RB_FORWARDS ? len[k] - 1 - i : i);
            for (int j = 0; j < H; j++)
                d[j] = (mistake == RB_NO_DY ? 0 : dy[row * H + j]) +
                       (mistake == RB_NO_CARRY && i < len[k] - 1 ? 0 : dh[j]) +
                       (mistake == RB_LAST_ALL ? dlast[k * H + j] : 0);
            const double *h = state_before(mistake, k, row, row == begin);
            step_back(RIGHT, s + row * 2 * H, h, d, by);
            memcpy(ds + row * 2 * H, by, 2 * (size_t)H * sizeof *ds);
            memcpy(dh, by + 3 * H, (size_t)H * sizeof *dh);
            if (mistake == RB_NO_TOKEN_0 && i == 0)
                memset(ds + row * 2 * H, 0, 2 * (size_t)H * sizeof *ds);
        }
        begin += down ? 0 : len[k];
    }
}

static void check_run(const batch *b)
{
    memset(got.last, 0, sizeof got.last), memset(got.y, 0, sizeof got.y);
    run(b, got.y, got.last);
    if (!near(got.y, expected.y, rows * H, 1e-12)) {
        if (all_zero(got.y, rows * H))
            hint("forward and backward are right; run leaves y at zero");
        hint_of_mistakes(got.y, rows * H, 1e-12, hints, R_CARRIED, R_BY_STEPS,
                         run_with);
        first_wrong("run: y is", got.y, expected.y, TOKENS);
    }
    for (int k = 0; k < n; k++)
        if (!near(got.last + k * H, expected.last + k * H, H, 1e-12)) {
            if (!len[k])
                hint("run: sequence %d has no tokens, so its last state is its row of "
                     "`first`",
                     k);
            hint("run: y is right; `last` of sequence %d is not the state after its "
                 "token %d of %d: a sequence that has ended keeps its state",
                 k, len[k], len[k]);
        }
}

/* Returns the loss of the student's run whose direct gradients are dy and dlast. */
static double loss_of(const batch *b)
{
    static results r;
    run(b, r.y, r.last);
    return dot(r.y, dy, rows * H) + dot(r.last, dlast, n * H);
}

/* Compares a gradient with the difference of two losses, at a random number of x. */
static void check_difference(const batch *b, const char *name, double *x,
                             const double *by, int layout)
{
    const double e = 1e-5;
    int k = dice_below(count_of(layout));
    double old = x[k];
    x[k] = old + e;
    double more = loss_of(b);
    x[k] = old - e;
    double less = loss_of(b), slope = (more - less) / (2 * e);
    x[k] = old;
    if (!near(by + k, &slope, 1, 1e-7))
        hint("%s is %s at %s, but the loss changes by %s per unit (finite differences)",
             name, digits(by[k]), place(layout, k), digits(slope));
}

static void check_run_back(const batch *b)
{
    memset(got.ds, 0, sizeof got.ds), memset(got.dfirst, 0, sizeof got.dfirst);
    if (H % 2)
        old_values(got.ds, rows * 2 * H, true), old_values(got.dfirst, n * H, true);
    for (int j = 0; j < H; j++)
        got.dv[j] = 5; /* an old value */
    run_back(b, expected.y, dy, dlast, got.ds, got.dv, got.dfirst);
    if (!near(got.ds, expected.ds, rows * 2 * H, 1e-10)) {
        if (all_zero(got.ds, rows * 2 * H))
            hint("run is right; run_back leaves ds at zero");
        hint_of_mistakes(got.ds, rows * 2 * H, 1e-10, hints, RB_NO_LAST, RB_FORWARDS,
                         back_with);
        first_wrong("run_back: ds is", got.ds, expected.ds, TOKENS | SUMS);
    }
    double old[MOST_UNITS], of_one[MOST_UNITS] = { 0 };
    for (int j = 0; j < H; j++)
        old[j] = expected.dv[j] + 5;
    if (near(got.dv, old, H, 1e-10))
        hint("ds is right; dv still has its old value in it: set it to 0 before the "
             "first step");
    for (int row = rows - len[n - 1]; row < rows; row++) {
        const double *h =
            row > rows - len[n - 1] ? expected.y + (row - 1) * H : first + (n - 1) * H;
        for (int j = 0; j < H; j++)
            of_one[j] += expected.ds[row * 2 * H + H + j] * h[j];
    }
    if (n > 1 && !near(got.dv, expected.dv, H, 1e-10) && near(got.dv, of_one, H, 1e-10))
        hint("%s", hints[RB_DV_OF_ONE]);
    first_wrong("run_back: ds is right, and dv is", got.dv, expected.dv, STEP);
    for (int k = 0; k < n; k++)
        if (!len[k] && !near(got.dfirst + k * H, dlast + k * H, H, 1e-10))
            hint("run_back: sequence %d has no tokens, so its dfirst is its dlast", k);
    first_wrong("run_back: ds and dv are right, and dfirst is", got.dfirst,
                expected.dfirst, SEQUENCES);
    check_difference(b, "ds", s, got.ds, TOKENS | SUMS);
    check_difference(b, "dv", v, got.dv, STEP);
    check_difference(b, "dfirst", first, got.dfirst, SEQUENCES);
}

static void check_light(void)
{
    memset(&got, 0, sizeof got);
    if (answer_here())
        by_weft(light, &got);
    share(&got, sizeof got);
    if (near(got.y, expected.y, rows * H, 1e-12)) {
        if (!near(got.ds, expected.ds, rows * 2 * H, 1e-10) ||
            !near(got.dv, expected.dv, H, 1e-10))
            hint("light computes the right states, but its gradients are wrong: use "
                 "weft's operators only, and no weft_detach");
        return;
    }
    double one[NUMBERS];
    for (int m = F_EXCHANGED; m <= F_UNIT_0; m++) {
        for (int k = 0, row = 0; k < n; k++)
            for (int t = 0; t < len[k]; t++, row++)
                for (int j = 0; j < H; j++)
                    one[row * H + j] = unit_with(
                        m, s + row * 2 * H, t ? one + (row - 1) * H : first + k * H, j);
        if (near(got.y, one, rows * H, 1e-12))
            hint("light: %s", hints[m]);
    }
    for (int k = 0, row = 0; k < n; row += len[k++])
        if (len[k] && near(got.y + row * H, first + k * H, H, 1e-12))
            hint("the functions of loops are right; light returns the old state: write "
                 "forward in operators");
    first_wrong("light: the states are", got.y, expected.y, TOKENS);
}

static void check_batch(int sequences, int units, bool ends)
{
    n = sequences, H = units;
    for (int k = 0; k < n; k++)
        len[k] = ends && k % 2 ? 0 : (k == 0) + dice_below(MOST_LEN);
    if (n == MOST_N && H == MOST_UNITS) /* all rows are in use */
        for (int k = 0; k < n; k++)
            len[k] = MOST_LEN;
    rows = sum_of(n, len);
    DICE_FILL(s), DICE_FILL(v), DICE_FILL(first), DICE_FILL(dy), DICE_FILL(dlast),
        DICE_FILL(h0);
    for (int k = 0; k < rows * 2 * H && n % 2 == 0; k++)
        s[k] *= n % 4 ? 4 : 30;
    if (n % 2 == 0)
        s[0] = h0[0] = first[0] = 0; /* as at the beginning of a text */
    if (n > 2 && H % 2) { /* the loss does not see the last token of sequence 2 */
        memset(dlast + 2 * H, 0, (size_t)H * sizeof *dlast);
        if (len[2])
            memset(dy + (sum_of(3, len) - 1) * H, 0, (size_t)H * sizeof *dy);
    }
    const batch b = { n, H, len, s, v, first };
    check_forward(), check_backward();
    by_weft(reference, &expected);
    check_run(&b), check_run_back(&b), check_light();
}

void check(void)
{
    dice_seed(13);
    check_batch(3, 2, false), check_batch(1, 1, false), check_batch(MOST_N, 3, true);
    check_batch(MOST_N, MOST_UNITS, false);
    for (int k = 0; k < 12; k++)
        check_batch(1 + dice_below(MOST_N), 1 + dice_below(MOST_UNITS), dice_below(2));
}
