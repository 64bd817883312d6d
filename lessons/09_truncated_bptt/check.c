/* Lesson 9: compares several windows, in which sequences begin anywhere, with whole
 * sequences, and checks where gradients flow. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "lesson.h"

typedef struct {
    int slot, from, to;
} piece; /* a sequence: tokens from .. to - 1 of a slot */
enum { MOST_SLOTS = 20, MOST_ALL = 80, WIDEST = 5 };
enum { MOST_PIECES = MOST_SLOTS * MOST_ALL, MOST_X = MOST_PIECES * WIDEST };
static int I, H, SLOTS, STEPS, WINDOWS, ALL, PIECES; /* of the text under test */
static piece pieces[MOST_PIECES];
static double x[MOST_X], got[MOST_X], want[MOST_X];
static bool begins[MOST_ALL * MOST_SLOTS];

static weft_rnn *layer_new(weft *w)
{
    return weft_lstm_new(weft_module_new(w, "net"), "lstm",
                         &(weft_rnn_opts){ .input = I, .hidden = H });
}

/* Computes `want` with weft, one sequence at a time. */
static void read_whole(void)
{
    weft *w = lesson_open(5);
    weft_rnn *lstm = layer_new(w);
    for (int p = 0; p < PIECES; p++) {
        double in[MOST_ALL * WIDEST], out[MOST_ALL * WIDEST];
        int n = pieces[p].to - pieces[p].from;
        for (int t = 0; t < n; t++)
            memcpy(in + t * I, x + ((pieces[p].from + t) * SLOTS + pieces[p].slot) * I,
                   (size_t)I * sizeof *in);
        weft_tensor *y =
            weft_rnn_run(lstm, weft_reals(w, in, WEFT_SHAPE(1, n, I)), WEFT_ZERO_STATE)
                .y;
        weft_read(y, out, (size_t)(n * H) * sizeof *out);
        for (int t = 0; t < n; t++)
            memcpy(want + ((pieces[p].from + t) * SLOTS + pieces[p].slot) * H,
                   out + t * H, (size_t)H * sizeof *out);
    }
    lesson_close(w);
}

/* ---- known mistakes ---- */
static bool resets_here(int way, int t, int s)
{
    bool any = false;
    int first = t - t % STEPS; /* of the window */
    for (int k = 0; k < SLOTS; k++)
        any |= begins[t * SLOTS + k];
    switch (way) {
    case NO_RESET: return false;
    case RESET_LATE: return t && begins[(t - 1) * SLOTS + s];
    case RESET_FIRST_STEP_ONLY: return t % STEPS == 0 && begins[t * SLOTS + s];
    case RESET_ALL_SLOTS: return any;
    case RESET_INVERTED: return !begins[t * SLOTS + s];
    case RESET_TRANSPOSED:
        return begins[(first * SLOTS + s * STEPS + t - first) % (ALL * SLOTS)];
    case RESET_TRANSPOSED_BY_SLOTS:
        return begins[(first * SLOTS + s * SLOTS + t - first) % (ALL * SLOTS)];
    case RESET_EVERY_STEP: return true;
    case RESET_AS_SLOT_0: return begins[t * SLOTS];
    case RESET_EARLY: return t + 1 < ALL && begins[(t + 1) * SLOTS + s];
    case RESET_NOT_AT_FIRST: return t % STEPS && begins[t * SLOTS + s];
    case RESET_SINCE: {
        bool since = false;
        for (int k = first; k <= t; k++)
            since |= begins[k * SLOTS + s];
        return since;
    }
    default: return begins[t * SLOTS + s];
    }
}

static weft_state reset_with(weft *w, int way, int t, weft_state state)
{
    weft_real goes_on[MOST_SLOTS];
    for (int s = 0; s < SLOTS; s++)
        goes_on[s] = !resets_here(way, t, s);
    weft_tensor *by = weft_reals(w, goes_on, WEFT_SHAPE(1, SLOTS, 1));
    if (way == STATES_EXCHANGED)
        state = (weft_state){ state.c, state.h };
    if (way == H_FOR_C)
        state.c = state.h;
    return (weft_state){ way == RESET_C_ONLY ? state.h : weft_mul(state.h, by),
                         way == RESET_H_ONLY ? state.c : weft_mul(state.c, by) };
}

static weft_state carry_with(int way, weft_state state, weft_state zeros)
{
    if (way == CARRY_EXCHANGED)
        return (weft_state){ state.c, state.h };
    return (weft_state){ way == NO_CARRY || way == CARRY_C_ONLY ? zeros.h : state.h,
                         way == NO_CARRY || way == CARRY_H_ONLY ? zeros.c : state.c };
}

static void read_with(int reset, int carry, double *y)
{
    weft *w = lesson_open(5);
    weft_rnn *lstm = layer_new(w);
    weft_tensor *zero = weft_zeros(w, WEFT_SHAPE(1, SLOTS, H));
    weft_state zeros = { zero, zero }, state = zeros, first = zeros;
    for (int t = 0; t < ALL; t++) {
        if (t % STEPS == 0)
            state = first = carry_with(carry, state, zeros);
        int of = reset == X_OF_FIRST     ? t - t % STEPS :
                 reset == X_FROM_THE_END ? t - t % STEPS + STEPS - 1 - t % STEPS :
                                           t;
        weft_tensor *in = weft_reals(w, x + of * SLOTS * I, WEFT_SHAPE(SLOTS, I));
        weft_state before =
            reset_with(w, reset, t, reset == RESET_AND_STAY ? first : state);
        weft_rnn_out out = weft_rnn_step(lstm, in, before);
        weft_read(out.y, y + t * SLOTS * H, (size_t)(SLOTS * H) * sizeof *y);
        state = out.last;
    }
    lesson_close(w);
}

/* ---- the student's windows ---- */
typedef struct {
    weft *w;
    weft_tensor *x[MOST_ALL], *y[MOST_ALL];
    weft_state last; /* of the second window */
} run;

static void check_state(const char *name, const weft_tensor *x)
{
    char shape[64] = "";
    for (int k = 0; k < weft_rank(x) && k < 8; k++)
        sprintf(shape + strlen(shape), k ? ", %d" : "%d",
                (int)(weft_size(x, k) % 1000));
    if (weft_rank(x) != 3 || weft_size(x, 0) != 1 || weft_size(x, 1) != SLOTS ||
        weft_size(x, 2) != H)
        hint("the %s that read_window returns has the shape [%s]; a state is [1, "
             "slots, hidden], here [1, %d, %d], like in->state.%s",
             name, shape, SLOTS, H, name);
}

static void check_returned(const run *r, weft_state state, int n)
{
    if (!weft_ok(r->w))
        hint("window %d, weft reports: %s (states are [1, slots, units], here [1, %d, "
             "%d]; multiply them by [1, %d, 1])",
             n + 1, weft_error_message(r->w), SLOTS, H, SLOTS);
    if (!state.h || !state.c)
        hint("read_window does not return %s: the next window needs both h and c",
             state.h ? "c" : "h");
    check_state("h", state.h), check_state("c", state.c);
    for (int t = 0; t < STEPS; t++) {
        const weft_tensor *y = r->y[n * STEPS + t];
        if (!y)
            hint("y[%d] of window %d is not set", t, n + 1);
        if (weft_rank(y) != 2 || weft_size(y, 0) != SLOTS || weft_size(y, 1) != H)
            hint("y[%d] of window %d is not [slots, hidden], like .y of weft_rnn_step",
                 t, n + 1);
    }
}

static void read_windows(run *r)
{
    weft_tensor *zero = weft_zeros(r->w, WEFT_SHAPE(1, SLOTS, H));
    weft_state state = { zero, zero };
    weft_rnn *lstm = layer_new(r->w);
    for (int t = 0; t < ALL; t++)
        r->x[t] = weft_reals(r->w, x + t * SLOTS * I, WEFT_SHAPE(SLOTS, I));
    for (int n = 0; n < WINDOWS; n++) {
        window in = {
            r->w, lstm, STEPS, SLOTS, r->x + n * STEPS, begins + n * STEPS * SLOTS,
            state
        };
        state = read_window(&in, r->y + n * STEPS);
        check_returned(r, state, n);
        r->last = n == 1 ? state : r->last;
    }
    for (int t = 0; t < ALL; t++)
        weft_read(r->y[t], got + t * SLOTS * H, (size_t)(SLOTS * H) * sizeof *got);
    lesson_ok(r->w);
}

static int sequence_of(int slot, int t)
{
    for (int p = 0; p < PIECES; p++)
        if (pieces[p].slot == slot && pieces[p].from <= t && t < pieces[p].to)
            return p;
    return -1;
}

static void hint_of_places(bool contaminated)
{
    for (int t = 0; t < ALL; t++)
        for (int s = 0; s < SLOTS; s++) {
            int at = (t * SLOTS + s) * H, p = sequence_of(s, t);
            if (near(got + at, want + at, H, 1e-12))
                continue;
            if (contaminated)
                hint("sequence %d depends on sequence %d, the one before it in slot "
                     "%d: the state must be zeros where a sequence begins",
                     p + 1, p, s + 1);
            int j = first_off(got + at, want + at, H, 1e-12);
            hint("window %d, step %d, slot %d, which is token %d of sequence %d: "
                 "number %d of y is %s, not %s",
                 t / STEPS + 1, t % STEPS + 1, s + 1, t - pieces[p].from + 1, p + 1, j,
                 BOTH(got[at + j], want[at + j]));
        }
}

static void check_outputs(void)
{
    static double wrong[MOST_X];
    if (near(got, want, ALL * SLOTS * H, 1e-12))
        return;
    if (all_zero(got, ALL * SLOTS * H))
        hint("read_window leaves y at zero: y[t] is .y of weft_rnn_step for x[t]");
    for (int c = RIGHT; c < MISTAKES; c = c < NO_CARRY ? NO_CARRY : c + 1)
        for (int r = RIGHT; r < NO_CARRY; r++) {
            read_with(r, c, wrong);
            if (!near(got, wrong, ALL * SLOTS * H, 1e-12))
                continue;
            if (c == RIGHT && r == NO_RESET)
                hint_of_places(true);
            hint("%s", hints[c == RIGHT ? r : c]);
        }
    hint_of_places(false);
}

/* ---- gradients must flow within a window, not across its border ---- */
/* by: the largest gradient of the last y of window 2 by each x of windows 1 and 2.
 * and_state: the same, with the state that window 2 returns added to y. */
typedef struct {
    double by[2 * MOST_ALL], and_state[2 * MOST_ALL];
    double of_all[MOST_X]; /* of all y, by all x */
    int tape;
} gradients;

/* Writes the gradient of the sum of all y, each with its own factor, by each x. */
static void gradient_of_all(weft_tensor *const *y, weft_tensor *const *x_of, double *to)
{
    weft_tensor *sum = NULL, *by[MOST_ALL];
    for (int t = 0; t < ALL; t++) {
        weft_tensor *part = weft_scale(weft_sum_all(y[t]), 1 + t % 5);
        sum = sum ? weft_add(sum, part) : part;
    }
    weft_gradients(sum, x_of, ALL, by);
    for (int t = 0; t < ALL; t++)
        weft_read(by[t], to + t * SLOTS * I, (size_t)(SLOTS * I) * sizeof *to);
}

/* Computes the right gradient with weft. */
static void right_gradient(double *to)
{
    weft *w = lesson_open(5);
    weft_rnn *lstm = layer_new(w);
    weft_tensor *zero = weft_zeros(w, WEFT_SHAPE(1, SLOTS, H)), *y[MOST_ALL],
                *of[MOST_ALL];
    weft_state state = { zero, zero };
    for (int t = 0; t < ALL; t++) {
        if (t % STEPS == 0)
            state = (weft_state){ weft_detach(state.h), weft_detach(state.c) };
        of[t] = weft_reals(w, x + t * SLOTS * I, WEFT_SHAPE(SLOTS, I));
        weft_rnn_out out = weft_rnn_step(lstm, of[t], reset_with(w, RIGHT, t, state));
        y[t] = out.y, state = out.last;
    }
    gradient_of_all(y, of, to);
    lesson_close(w);
}

static double size_of(const weft_tensor *g)
{
    double v[MOST_SLOTS * WIDEST], most = 0;
    weft_read(g, v, (size_t)(SLOTS * I) * sizeof *v);
    for (int k = 0; k < SLOTS * I; k++)
        most = fmax(most, fabs(v[k]));
    return most;
}

static gradients gradients_of(run *r)
{
    static gradients g;
    g = (gradients){ .tape = (int)weft_usage_of(r->w).tape };
    weft_tensor *of = weft_sum_all(r->y[2 * STEPS - 1]), *by[2 * MOST_ALL];
    weft_tensor *state = weft_add(weft_sum_all(r->last.h), weft_sum_all(r->last.c));
    weft_gradients(of, r->x, 2 * STEPS, by);
    for (int t = 0; t < 2 * STEPS; t++)
        g.by[t] = size_of(by[t]);
    weft_gradients(weft_add(of, state), r->x, 2 * STEPS, by);
    for (int t = 0; t < 2 * STEPS; t++)
        g.and_state[t] = size_of(by[t]);
    gradient_of_all(r->y, r->x, g.of_all);
    lesson_ok(r->w);
    return g;
}

static void check_gradients(const gradients *g)
{
    if (g->by[2 * STEPS - 1] == 0)
        hint("no gradient flows from y[%d] to its own x: y must stay on the tape",
             STEPS - 1);
    if (g->by[STEPS] == 0)
        hint("no gradient flows from y[%d] to x[0] of the same window: the state is "
             "detached at every step. Detach only the returned state",
             STEPS - 1);
    for (int t = 0; t < STEPS; t++)
        if (g->by[t] != 0)
            hint("not detached: a loss in window 2 flows back through window 1, and in "
                 "window %d through all windows. Their tape, now of %d entries, must "
                 "stay in memory. Return weft_detach of h and c",
                 WINDOWS, g->tape);
    if (!near(g->and_state, g->by, 2 * STEPS, 1e-12))
        hint("the state is detached at the start of a window, but the returned state "
             "keeps its tape: return weft_detach of h and c");
    static double right[MOST_X];
    right_gradient(right);
    int k = first_off(g->of_all, right, ALL * SLOTS * I, 1e-9);
    if (k < ALL * SLOTS * I)
        hint(
            "every y is right, but its gradient by x[%d] of window %d is not: within a "
            "window h, c and y must stay on the tape. Detach only the returned state",
            k / (SLOTS * I) % STEPS, k / (SLOTS * I) / STEPS + 1);
}

/* ---- a text ---- */
static void check_text(void)
{
    run r = { 0 };
    static gradients g;
    dice_fill(x, ALL * SLOTS * I);
    for (int k = 0; k < ALL * SLOTS * I; k++)
        x[k] *= 2;
    memset(begins, 0, sizeof begins);
    for (int p = 0; p < PIECES; p++)
        begins[pieces[p].from * SLOTS + pieces[p].slot] = true;
    read_whole();
    if (answer_here()) {
        r.w = lesson_open(5);
        read_windows(&r);
    }
    share(got, sizeof got);
    check_outputs();
    if (answer_here()) {
        g = gradients_of(&r);
        lesson_close(r.w);
    }
    share(&g, sizeof g);
    check_gradients(&g);
}

static void sizes(int inputs, int units, int slots, int steps, int windows)
{
    I = inputs, H = units, SLOTS = slots, STEPS = steps, WINDOWS = windows;
    ALL = steps * windows, PIECES = 0;
}

/* Checks random sequences of up to `longest` tokens. The first fills two windows. */
static void check_random(int longest)
{
    for (int s = 0; s < SLOTS; s++)
        for (int t = 0, n; t < ALL; t += n) {
            n = s == 0 && t == 0 ? 2 * STEPS : 1 + dice_below(longest);
            n = n < ALL - t ? n : ALL - t;
            pieces[PIECES++] = (piece){ s, t, t + n };
        }
    check_text();
}

void check(void)
{
    static const piece given[] = { { 0, 0, 9 },   { 0, 9, 10 },  { 0, 10, 20 },
                                   { 1, 0, 4 },   { 1, 4, 11 },  { 1, 11, 13 },
                                   { 1, 13, 20 }, { 2, 0, 6 },   { 2, 6, 8 },
                                   { 2, 8, 16 },  { 2, 16, 19 }, { 2, 19, 20 } };
    dice_seed(9);
    sizes(2, 5, 3, 4, 5);
    memcpy(pieces, given, sizeof given);
    PIECES = sizeof given / sizeof *given;
    check_text();
    sizes(4, 2, MOST_SLOTS, 3, 4), check_random(7);
    sizes(1, 3, 1, 7, 2), check_random(9);
    sizes(3, 4, 2, 1, 6), check_random(4);
    sizes(2, 3, MOST_SLOTS, MOST_ALL / 2, 2), check_random(30);
}
