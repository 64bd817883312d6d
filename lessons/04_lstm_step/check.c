/* Lesson 4: the student's step beside weft's, and a memory of one bit in a hundred
 * texts. */
#include "common/lesson.h"
#include "given.h"

enum { WIDEST = 5, MOST_ROWS = 4 * WIDEST };
/* The layer that is checked. All have room for rows of WIDEST numbers, which wrong
 * answers read. */
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

/* Names the first unit whose number is off, with the digits that it takes to see it. */
static void first_off(const char *what, const double *got, const double *want)
{
    int j = 0, many = 4;
    char one[32], other[32];
    while (j < H && near(got + j, want + j, 1, 1e-12))
        j++;
    if (j == H)
        return;
    do {
        snprintf(one, sizeof one, "%.*g", many, got[j]);
        snprintf(other, sizeof other, "%.*g", many, want[j]);
    } while (!strcmp(one, other) && many++ < 17);
    hint("%s of unit %d is %s, which should be %s%s", what, j, one, other,
         near(got + j, want + j, 1, 1e-5) ? ": is something of it in float?" : "");
}

/* ---- the gates, and what comes of the usual mistakes ---- */
enum {
    RIGHT,
    INTERLEAVED,
    NO_STATE,
    STATE_C,
    WITHOUT_BX,
    WITHOUT_BH,
    W_TRANSPOSED,
    U_TRANSPOSED,
    W_STRIDE,
    U_STRIDE,
    W_GATE_TRANSPOSED,
    U_GATE_TRANSPOSED,
    W_BOUND,
    U_BOUND,
    U_DIAGONAL,
    MISTAKES
};
static const char *const hints[MISTAKES] = {
    [INTERLEAVED] = "the rows of a unit's gates do not lie side by side: rows 0 .. H - "
                    "1 are of gate i, one a unit, the next H of f",
    [NO_STATE] = "h has no part in the gates: U h is missing",
    [STATE_C] = "the gates look at c: U is multiplied by h; the cell is what only the "
                "gates may touch",
    [WITHOUT_BX] =
        "one bias only: b (bx) is missing; PyTorch's layer has two, and both are added",
    [WITHOUT_BH] = "one bias only: b' (bh) is missing; PyTorch's layer has two, and "
                   "both are added",
    [W_TRANSPOSED] =
        "w is used transposed: it is [4 H, I], so its row r begins at w + r * I",
    [U_TRANSPOSED] =
        "u is used transposed: it is [4 H, H], so its row r begins at u + r * H",
    [W_STRIDE] = "the rows of w are taken to have H numbers: w is [4 H, I], so its row "
                 "r begins at w + r * I",
    [U_STRIDE] = "the rows of u are taken to have I numbers: u is [4 H, H], so its row "
                 "r begins at u + r * H",
    [W_GATE_TRANSPOSED] = "each gate's block of w is used transposed: unit j has row j "
                          "of its gate's H rows, w[row * I + k]",
    [U_GATE_TRANSPOSED] = "each gate's block of u is used transposed: unit j has row j "
                          "of its gate's H rows, u[row * H + k]",
    [W_BOUND] = "the sum over w takes H numbers of x: x has I, so it stops at I",
    [U_BOUND] = "the sum over u takes I numbers of h: h has H, so it stops at H",
    [U_DIAGONAL] = "unit j takes its own number of h only: it takes those of all "
                   "units, row j of u times h",
};

/* Where number k of a row is in w or u, whose rows have `width` numbers. */
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
    double sum =
        (mistake == WITHOUT_BX ? 0 : bx[row]) + (mistake == WITHOUT_BH ? 0 : bh[row]);
    for (int k = 0; k < (mistake == W_BOUND ? H : I); k++)
        sum += x[k] * w[place(mistake, true, row, k)];
    for (int k = 0; k < (mistake == U_BOUND ? I : H) && mistake != NO_STATE; k++)
        if (mistake != U_DIAGONAL || k == j)
            sum += (mistake == STATE_C ? c : h)[k] * u[place(mistake, false, row, k)];
    return sum;
}

/* Whether gate k is as it would be of the rows of gate `rows`. */
static bool gate_is(const numbers *got, int k, int mistake, int rows)
{
    double want[WIDEST];
    for (int j = 0; j < H; j++) {
        double sum = sum_with(mistake, rows, j);
        want[j] = k == GATE_G ? tanh(sum) : sigmoid(sum);
    }
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
        hint("the rows are taken in the order %c %c %c %c; PyTorch's is i f g o",
             order[0], order[1], order[2], order[3]);
}

static void look_at_squash(const numbers *got, int k)
{
    double sum[WIDEST], other[WIDEST];
    for (int j = 0; j < H; j++) {
        sum[j] = sum_with(RIGHT, k, j);
        other[j] = k == GATE_G ? sigmoid(sum[j]) : tanh(sum[j]);
    }
    if (near(got->gate[k], sum, H, 1e-12))
        hint("%c is the sum itself: its %s is missing", gate_names[k],
             k == GATE_G ? "tanh" : "sigmoid");
    if (near(got->gate[k], other, H, 1e-12) && k == GATE_G)
        hint("g gets a sigmoid: it does not open or close, it is what is written, of "
             "either sign: tanh");
    if (near(got->gate[k], other, H, 1e-12))
        hint("%c gets a tanh: it opens or closes, between 0 and 1: sigmoid",
             gate_names[k]);
}

static void check_gates(const numbers *got)
{
    static const double zeros[WIDEST];
    bool any = false;
    for (int k = 0; k < 4; k++)
        any |= !near(got->gate[k], zeros, H, 0);
    if (!any)
        hint("step leaves the gates at zero: write sigmoid or tanh of each gate's sum");
    look_at_order(got);
    for (int k = 0; k < 4; k++) {
        if (gate_is(got, k, RIGHT, k))
            continue;
        look_at_squash(got, k);
        for (int m = RIGHT + 1; m < MISTAKES; m++)
            if (gate_is(got, k, m, k))
                hint("%s", hints[m]);
        double want[WIDEST];
        for (int j = 0; j < H; j++) {
            double sum = sum_with(RIGHT, k, j);
            want[j] = k == GATE_G ? tanh(sum) : sigmoid(sum);
        }
        char what[] = { 'g', 'a', 't', 'e', ' ', gate_names[k], 0 };
        first_off(what, got->gate[k], want);
    }
}

/* ---- the cell and its output, from gates that are right ---- */
static double cell_with(int way, const numbers *n, int j)
{
    double i = n->gate[0][j], f = n->gate[1][j], g = n->gate[2][j];
    switch (way) {
    case 0:
        return f * c[j] + i * g;
    case 1:
        return f * (c[j] + i * g);
    case 2:
        return i * c[j] + f * g;
    case 3:
        return f * c[j] + g;
    case 4:
        return i * g;
    default:
        return f * h[j] + i * g;
    }
}

static void check_cell(const numbers *n)
{
    static const char *const of_cell[] = {
        "",
        "the forget gate closes on what is written, too: f belongs to the old cell "
        "alone, c' = f * c + i * g",
        "i and f are exchanged in the cell: f is for the old c, i for g",
        "the input gate is missing: i * g is written, not g",
        "the old cell has no part in the new one: f * c is missing",
        "the cell is made of the old h: f keeps of c, which has not gone through tanh "
        "and o",
    };
    double want[WIDEST];
    for (int way = 0; way < 6; way++) {
        for (int j = 0; j < H; j++)
            want[j] = cell_with(way, n, j);
        if (!near(n->c, want, H, 1e-12))
            continue;
        if (way)
            hint("%s", of_cell[way]);
        return;
    }
    for (int j = 0; j < H; j++)
        want[j] = cell_with(0, n, j);
    first_off("the gates are right; c'", n->c, want);
}

static void check_output(const numbers *n)
{
    static const char *const of_output[] = {
        "",
        "tanh of the cell is missing: h' = o * tanh(c'), so that h stays between -1 "
        "and 1",
        "h is made of the old cell: the gate o looks at c', which this step has just "
        "made",
        "tanh is of the product: h' = o * tanh(c'), the gate comes after it",
        "the output gate is missing: h' = o * tanh(c')",
    };
    for (int way = 0; way < 5; way++) {
        double want[WIDEST];
        for (int j = 0; j < H; j++) {
            double o = n->gate[3][j], new = n->c[j];
            want[j] = way == 0 ? o * tanh(new) :
                      way == 1 ? o * new :
                      way == 2 ? o *tanh(c[j]) :
                      way == 3 ? tanh(o * new) :
                                 tanh(new);
        }
        if (!near(n->h, want, H, 1e-12))
            continue;
        if (way)
            hint("%s", of_output[way]);
        return;
    }
    double want[WIDEST];
    for (int j = 0; j < H; j++)
        want[j] = n->gate[3][j] * tanh(n->c[j]);
    first_off("gates and cell are right; h'", n->h, want);
}

static void check_step(void)
{
    const lstm layer = { I, H, w, u, bx, bh };
    numbers got, same;
    memset(&got, 0, sizeof got);
    step(&layer, x, c, h, arrays(&got));
    check_gates(&got), check_cell(&got), check_output(&got);
    by_weft(&layer, 1, x, c, h, arrays(&same));
    first_off("beside weft's layer h'", got.h, same.h);
    first_off("beside weft's layer c'", got.c, same.c);
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

/* c is not what it should be, for the first time. */
_Noreturn static void cell_is_off(const moment *m)
{
    double written = at(m->to.i, m) * at(m->to.g, m), f = at(m->to.f, m),
           now = at(m->to.c, m);
    char letter = m->text[m->t];
    if (strchr("01", letter) && fabs(f * m->before) > 0.04)
        hint("a %c does not end what was stored: f is %s there, and c goes from %s to "
             "%s",
             letter, digits(f), digits(m->before), digits(now));
    if (strchr("01", letter))
        hint("a %c writes i * g = %s * %s = %s; %s is wanted", letter,
             digits(at(m->to.i, m)), digits(at(m->to.g, m)), digits(written),
             letter == '1' ? "1" : "0");
    if (fabs(written) > fabs((1 - f) * m->before))
        hint("what is stored drifts: i is still %s at a %c, each such letter adds some "
             "of g, and %d letters after the bit c is %s instead of %s",
             digits(at(m->to.i, m)), letter, m->since, digits(now), digits(m->bit));
    hint("what is stored fades: f is %s at a %c, and %d letters after the bit c is %s "
         "instead of %s",
         digits(f), letter, m->since, digits(now), digits(m->bit));
}

/* off: since the last bit the first moment at which c was not what it should be, if
 * there was one. */
static void look(const moment *m, const moment *off)
{
    char letter = m->text[m->t];
    double want = letter == '?' ? m->bit * tanh(1) : 0, got = at(m->to.h, m);
    if (fabs(got - want) <= 0.05)
        return;
    if (letter != '?')
        hint("the unit shows %s at a %c: o is %s there; only a ? opens it", digits(got),
             letter, digits(at(m->to.o, m)));
    if (off->text)
        cell_is_off(off);
    hint("at a ? the unit shows %s, which should be %s: c is %s, o is %s", digits(got),
         digits(want), digits(at(m->to.c, m)), digits(at(m->to.o, m)));
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

/* Texts in which bits are frequent, and such in which one must be kept for long. */
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
        hint("the step is right; all weights of the memory are still 0: set them in "
             "flip_flop");
    for (int k = 0; k < 100; k++) {
        some_text(text, 1 + k * LONGEST / 100, 1 + k % 10);
        check_text(&m, text);
    }
    text[LONGEST] = 0;
    for (int k = 0; k < 6; k++) { /* one bit for long, and the same letter for long */
        text[0] = "10.101"[k], memset(text + 1, "...??1"[k], LONGEST - 2);
        text[LONGEST - 1] = '?';
        check_text(&m, text);
    }
}

static void check_layer(int inputs, int units)
{
    I = inputs, H = units;
    dice_fill(w, MOST_ROWS * WIDEST), dice_fill(u, MOST_ROWS * WIDEST);
    dice_fill(bx, MOST_ROWS), dice_fill(bh, MOST_ROWS);
    dice_fill(x, WIDEST), dice_fill(c, WIDEST), dice_fill(h, WIDEST);
    check_step();
}

void check(void)
{
    dice_seed(4);
    check_layer(3, 4), check_layer(5, 2), check_layer(1, 1), check_layer(2, 5);
    check_memory();
}
