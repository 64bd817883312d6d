/* Lesson 4: compares the student's step with weft's, and checks the memory of one bit
 * in a hundred texts. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

enum { WIDEST = 40, MOST_ROWS = 4 * WIDEST };
/* The layer under test. All arrays are large enough for rows of WIDEST numbers, which
 * wrong answers read. */
static int I, H;
static double w[MOST_ROWS * WIDEST], u[MOST_ROWS * WIDEST], bx[MOST_ROWS],
    bh[MOST_ROWS], x[WIDEST], c[WIDEST], h[WIDEST];
static const char gate_names[] = "ifgo";

typedef struct {
    double gate[4][WIDEST], c[WIDEST], h[WIDEST];
    made to;
} numbers;

static made *arrays(numbers *n)
{
    n->to = (made){ n->gate[0], n->gate[1], n->gate[2], n->gate[3], n->c, n->h };
    return &n->to;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Gives a hint for the first wrong unit. */
static void first_wrong(const char *what, const double *got, const double *want)
{
    int j = first_off(got, want, H, 1e-12);
    if (j < H)
        hint("%s of unit %d is %s, which should be %s%s", what, j,
             BOTH(got[j], want[j]),
             got[j] != 0 && is_near(got[j], want[j], 1e-5) ?
                 ": use double instead of float" :
             isnan(got[j]) ?
                 ": exp(s) is infinite above 709, and infinity / infinity is NaN" :
                 "");
}

/* ---- the gates ---- */
/* Returns the index of number k of a row in w or u. */
static int place(int mistake, bool of_w, int row, int k)
{
    int width = of_w ? I : H;
    if (mistake == (of_w ? W_TRANSPOSED : U_TRANSPOSED))
        return k * 4 * H + row;
    if (mistake == (of_w ? W_STRIDE : U_STRIDE))
        return row * (of_w ? H : I) + k;
    if (mistake == (of_w ? W_GATE_TRANSPOSED : U_GATE_TRANSPOSED))
        return row / H * H * width + k * H + row % H;
    return row * width + k;
}

static double sum_with(int mistake, int gate, int j)
{
    int row = mistake == INTERLEAVED ? 4 * j + gate : gate * H + j;
    int of_b = mistake == BIAS_OF_UNIT ? j : row;
    double sum = (mistake == WITHOUT_BX ? 0 :
                  mistake == BH_TWICE   ? bh[row] :
                                          bx[of_b]) +
                 (mistake == WITHOUT_BH ? 0 :
                  mistake == BX_TWICE   ? bx[row] :
                  mistake == BH_MINUS   ? -bh[row] :
                                          bh[of_b]);
    for (int k = 0; k < (mistake == W_BOUND ? H : I); k++)
        sum += x[k] * w[place(mistake, true, row, k)];
    for (int k = 0; k < (mistake == U_BOUND ? I : H) && mistake != NO_STATE; k++)
        if (mistake != U_DIAGONAL || k == j)
            sum += (mistake == STATE_C ? c : h)[k] * u[place(mistake, false, row, k)];
    return sum;
}

/* Computes gate k of all units from the rows of gate `rows`. */
static void gate_with(int mistake, int k, int rows, double *gate)
{
    for (int j = 0; j < H; j++) {
        double sum = sum_with(mistake, rows, j);
        gate[j] = k == GATE_G ? tanh(sum) : sigmoid(sum);
    }
}

static bool gate_is(const numbers *got, int k, int mistake, int rows)
{
    double want[WIDEST];
    gate_with(mistake, k, rows, want);
    return near(got->gate[k], want, H, 1e-12);
}

static void look_at_order(const numbers *got)
{
    char order[] = "????";
    for (int k = 0; k < 4; k++)
        for (int rows = 0; rows < 4; rows++)
            if (gate_is(got, k, RIGHT, rows))
                order[rows] = gate_names[k];
    if (!strchr(order, '?') && strcmp(order, gate_names))
        hint("the rows are read in the order %c %c %c %c; PyTorch's order is i f g o",
             order[0], order[1], order[2], order[3]);
}

static void look_at_squash(const numbers *got, int k)
{
    double sum[WIDEST], other[WIDEST], turned[WIDEST];
    for (int j = 0; j < H; j++) {
        sum[j] = sum_with(RIGHT, k, j);
        other[j] = k == GATE_G ? sigmoid(sum[j]) : tanh(sum[j]);
        turned[j] = k == GATE_G ? tanh(-sum[j]) : sigmoid(-sum[j]);
    }
    if (near(got->gate[k], turned, H, 1e-12))
        hint(
            "%c has the wrong sign: sigmoid(s) is 1 / (1 + e^-s), near 1 for a large s",
            gate_names[k]);
    if (near(got->gate[k], sum, H, 1e-12))
        hint("%c is the sum itself: apply %s to it", gate_names[k],
             k == GATE_G ? "tanh" : "sigmoid");
    if (near(got->gate[k], other, H, 1e-12) && k == GATE_G)
        hint("g is computed with sigmoid: it may be negative, so use tanh");
    if (near(got->gate[k], other, H, 1e-12))
        hint("%c is computed with tanh: a gate is between 0 and 1, so use sigmoid",
             gate_names[k]);
}

static void check_gates(const numbers *got)
{
    bool none = true;
    for (int k = 0; k < 4; k++)
        none &= all_zero(got->gate[k], H);
    if (none)
        hint("step leaves the gates at zero: write sigmoid or tanh of each gate's sum");
    look_at_order(got);
    for (int k = 0; k < 4; k++) {
        double want[WIDEST];
        if (gate_is(got, k, RIGHT, k))
            continue;
        look_at_squash(got, k);
        for (int m = INTERLEAVED; m <= BH_MINUS; m++)
            if (gate_is(got, k, m, k))
                hint("%s", hints[m]);
        gate_with(RIGHT, k, k, want);
        first_wrong((char[]){ 'g', 'a', 't', 'e', ' ', gate_names[k], 0 }, got->gate[k],
                    want);
    }
}

/* ---- the cell and its output, from gates that are right ---- */
static const numbers *answered;

static double cell_unit(int mistake, int j)
{
    double i = answered->gate[0][j], f = answered->gate[1][j], g = answered->gate[2][j];
    switch (mistake) {
    case CELL_ALL_FORGOTTEN: return f * (c[j] + i * g);
    case CELL_EXCHANGED: return i * c[j] + f * g;
    case CELL_NO_I: return f * c[j] + g;
    case CELL_NO_C: return i * g;
    case CELL_OF_H: return f * h[j] + i * g;
    case CELL_OF_UNIT_0: return f * c[0] + i * g;
    case CELL_F_TURNED: return (1 - f) * c[j] + i * g;
    case CELL_COUPLED: return (1 - i) * c[j] + i * g;
    case CELL_MINUS: return f * c[j] - i * g;
    case CELL_TANH: return tanh(f * c[j] + i * g);
    case CELL_TANH_OLD: return f * tanh(c[j]) + i * g;
    case CELL_O_FOR_I: return f * c[j] + answered->gate[3][j] * g;
    default: return f * c[j] + i * g;
    }
}

static double output_unit(int mistake, int j)
{
    double o = answered->gate[3][j], new = answered->c[j];
    switch (mistake) {
    case OUT_NO_TANH: return o * new;
    case OUT_OLD_C: return o * tanh(c[j]);
    case OUT_TANH_LAST: return tanh(o * new);
    case OUT_NO_O: return tanh(new);
    case OUT_SIGMOID: return o * sigmoid(new);
    case OUT_ADDED: return h[j] + o * tanh(new);
    default: return o * tanh(new);
    }
}

static void cell_with(int mistake, double *cell)
{
    for (int j = 0; j < H; j++)
        cell[j] = cell_unit(mistake, j);
}

static void output_with(int mistake, double *output)
{
    for (int j = 0; j < H; j++)
        output[j] = output_unit(mistake, j);
}

static void check_cell_and_output(const numbers *got)
{
    double want[WIDEST];
    answered = got;
    cell_with(RIGHT, want);
    if (!near(got->c, want, H, 1e-12))
        hint_of_mistakes(got->c, H, 1e-12, hints, CELL_ALL_FORGOTTEN, CELL_O_FOR_I,
                         cell_with);
    first_wrong("the gates are right; c'", got->c, want);
    output_with(RIGHT, want);
    if (!near(got->h, want, H, 1e-12))
        hint_of_mistakes(got->h, H, 1e-12, hints, OUT_NO_TANH, OUT_ADDED, output_with);
    first_wrong("gates and cell are right; h'", got->h, want);
}

static void check_step(void)
{
    const lstm layer = { I, H, w, u, bx, bh };
    numbers got, same;
    memset(&got, 0, sizeof got);
    for (int k = 0; k < 4; k++)
        old_values(got.gate[k], WIDEST, H % 2);
    old_values(got.c, WIDEST, H % 2), old_values(got.h, WIDEST, H % 2);
    step(&layer, x, c, h, arrays(&got));
    check_gates(&got), check_cell_and_output(&got);
    by_weft(&layer, 1, x, c, h, arrays(&same));
    first_wrong("next to weft's layer h'", got.h, same.h);
    first_wrong("next to weft's layer c'", got.c, same.c);
}

/* ---- the memory of one bit ---- */
enum { LONGEST = 60 };
typedef struct {
    const char *text;
    int t, since;
    double bit, before;
    made to;
} moment;

static double at(const double *of, const moment *m) { return of[m->t]; }

/* Explains the first wrong c. */
_Noreturn static void cell_is_off(const moment *m)
{
    double written = at(m->to.i, m) * at(m->to.g, m), f = at(m->to.f, m),
           now = at(m->to.c, m);
    char letter = m->text[m->t];
    if (strchr("01", letter) && fabs(f * m->before) > 0.04)
        hint("a %c does not clear the old bit: f is %s, and c goes from %s to %s",
             letter, digits(f), BOTH(m->before, now));
    if (strchr("01", letter))
        hint("a %c adds i * g = %s * %s = %s; it should add %s", letter,
             digits(at(m->to.i, m)), digits(at(m->to.g, m)), digits(written),
             letter == '1' ? "1" : "0");
    if (fabs(written) > fabs((1 - f) * m->before))
        hint("the stored bit drifts: i is still %s at a %c, so each such letter adds a "
             "part of g, and %d letters after the bit c is %s instead of %s",
             digits(at(m->to.i, m)), letter, m->since, BOTH(now, m->bit));
    hint("the stored bit fades: f is %s at a %c, and %d letters after the bit c is %s "
         "instead of %s",
         digits(f), letter, m->since, BOTH(now, m->bit));
}

/* Checks the output at moment m. off: the first moment since the last bit at which c
 * was wrong; off->text is NULL if c was right. */
static void look(const moment *m, const moment *off)
{
    char letter = m->text[m->t];
    double want = letter == '?' ? m->bit * tanh(1) : 0, got = at(m->to.h, m);
    if (fabs(got - want) <= 0.05)
        return;
    if (letter != '?')
        hint("the unit shows %s at a %c, because o is %s: only a ? may open o",
             digits(got), letter, digits(at(m->to.o, m)));
    if (off->text)
        cell_is_off(off);
    hint("at a ? the unit shows %s, which should be %s: c is %s, o is %s",
         BOTH(got, want), digits(at(m->to.c, m)), digits(at(m->to.o, m)));
}

static void check_text(const unit *m, const char *text)
{
    double of[6][LONGEST];
    moment now = { .text = text, .to = { of[0], of[1], of[2], of[3], of[4], of[5] } },
           off = { 0 };
    unit_by_weft(m, text, &now.to);
    for (; text[now.t]; now.t++, now.since++) {
        if (strchr("01", text[now.t]))
            now.bit = text[now.t] == '1', now.since = 0, off.text = NULL;
        if (!off.text && !(fabs(at(now.to.c, &now) - now.bit) < 0.04))
            off = now;
        look(&now, &off);
        now.before = at(now.to.c, &now);
    }
}

/* Makes a random text. A larger `kept` means that a bit must be stored for longer. */
static void some_text(char *text, int n, int kept)
{
    for (int t = 0; t < n; t++)
        text[t] = dice_below(kept) ? ".?"[dice_below(2)] : "01.?"[dice_below(4)];
    text[n] = 0;
}

static void check_memory(void)
{
    char text[LONGEST + 1];
    unit m, none;
    memset(&m, 0, sizeof m), memset(&none, 0, sizeof none);
    flip_flop(&m);
    if (!memcmp(&m, &none, sizeof m))
        hint("the step is right; the memory's weights are still 0: fill in flip_flop");
    if (answer_here())
        return; /* the rest runs only weft */
    for (int k = 0; k < 100; k++) {
        some_text(text, 1 + k * LONGEST / 100, 1 + k % 10);
        check_text(&m, text);
    }
    text[LONGEST] = 0;
    for (int k = 0; k < 6; k++) { /* one bit, or one letter, for the whole text */
        text[0] = "10.101"[k], memset(text + 1, "...??1"[k], LONGEST - 2);
        text[LONGEST - 1] = '?';
        check_text(&m, text);
    }
}

static void check_layer(int inputs, int units)
{
    I = inputs, H = units;
    DICE_FILL(w), DICE_FILL(u), DICE_FILL(bx), DICE_FILL(bh);
    DICE_FILL(x), DICE_FILL(c), DICE_FILL(h);
    for (int j = 0; j < WIDEST && H == I; j++)
        c[j] *= 5, x[j] *= H == 7 ? 2000 : 3; /* gates and cells far from 0 */
    check_step();
}

void check(void)
{
    dice_seed(4);
    check_layer(3, 4), check_layer(5, 2), check_layer(1, 1), check_layer(2, 5);
    check_layer(1, WIDEST), check_layer(4, 4), check_layer(WIDEST, 33);
    check_layer(7, 7); /* sums of thousands */
    check_memory();
}
