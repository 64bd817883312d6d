/* Lesson 4: prints one step of an LSTM, operand by operand, and a memory of one bit. */
#include "weft_lab.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

static void assign(weft_module *m, const char *name, const double *values, int n)
{
    weft_assign_values(weft_find_parameter(m, name), values, n);
}

static weft_tensor *state(weft *w, const double *values, int H)
{
    return values ? weft_reals(w, values, WEFT_SHAPE(1, 1, H)) :
                    weft_zeros(w, WEFT_SHAPE(1, 1, H));
}

static weft_rnn *layer_of(weft *w, const lstm *r)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *layer =
        weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = r->I, .hidden = r->H });
    assign(m, "rnn.weight_ih_l0", r->w, 4 * r->H * r->I);
    assign(m, "rnn.weight_hh_l0", r->u, 4 * r->H * r->H);
    assign(m, "rnn.bias_ih_l0", r->bx, 4 * r->H);
    assign(m, "rnn.bias_hh_l0", r->bh, 4 * r->H);
    weft_rnn_set_traced(layer, true);
    return layer;
}

void by_weft(const lstm *r, int steps, const double *x, const double *c,
             const double *h, made *to)
{
    weft *w = lesson_open(1);
    weft_rnn *layer = layer_of(w, r);
    weft_state first = { state(w, h, r->H), state(w, c, r->H) };
    weft_rnn_run(layer, weft_reals(w, x, WEFT_SHAPE(1, steps, r->I)), first);
    weft_rnn_traced t = weft_rnn_trace(layer, 0, false);
    lesson_ok(w);
    weft_tensor *from[] = { t.gate[0], t.gate[1], t.gate[2], t.gate[3], t.c, t.h };
    double *into[] = { to->i, to->f, to->g, to->o, to->c, to->h };
    for (int k = 0; k < 6; k++)
        weft_read(from[k], into[k], (size_t)(steps * r->H) * sizeof(double));
    lesson_close(w);
}

/* ---- the step ---- */
typedef struct {
    double of[6][UNITS];
    made to;
} numbers;

static made *arrays(numbers *n)
{
    n->to = (made){ n->of[0], n->of[1], n->of[2], n->of[3], n->of[4], n->of[5] };
    return &n->to;
}

static void show_gate(int k, const numbers *mine, const numbers *same)
{
    const char *squash = k == GATE_G ? "tanh" : "sigmoid", letter = "ifgo"[k];
    printf("%c = %s(W_%c x + b_%c + U_%c h + b'_%c)\n", letter, squash, letter, letter,
           letter, letter);
    for (int j = 0; j < UNITS; j++) {
        int row = k * UNITS + j;
        double wx = dot(given_w + row * IN, given_x, IN),
               uh = dot(given_u + row * UNITS, given_h, UNITS);
        printf("  unit %d: %s(%s + %s + %s + %s) = %s(%s) = %s, weft %s\n", j, squash,
               digits(wx), digits(given_bx[row]), digits(uh), digits(given_bh[row]),
               squash, digits(wx + given_bx[row] + uh + given_bh[row]),
               digits(mine->of[k][j]), digits(same->of[k][j]));
    }
}

static void show_states(const made *m, const made *same)
{
    printf("c' = f * c + i * g\n");
    for (int j = 0; j < UNITS; j++)
        printf("  unit %d: %s * %s + %s * %s = %s, weft %s\n", j, digits(m->f[j]),
               digits(given_c[j]), digits(m->i[j]), digits(m->g[j]), digits(m->c[j]),
               digits(same->c[j]));
    printf("h' = o * tanh(c')\n");
    for (int j = 0; j < UNITS; j++)
        printf("  unit %d: %s * tanh(%s) = %s * %s = %s, weft %s\n", j, digits(m->o[j]),
               digits(m->c[j]), digits(m->o[j]), digits(tanh(m->c[j])), digits(m->h[j]),
               digits(same->h[j]));
}

/* ---- the memory ---- */
void unit_by_weft(const unit *m, const char *text, made *to)
{
    static const double zeros[4];
    const lstm r = { LETTERS, 1, m->w[0], m->u, m->b, zeros };
    int n = (int)strlen(text);
    double *x = calloc((size_t)n * LETTERS, sizeof *x);
    for (int t = 0; t < n; t++)
        x[t * LETTERS + (strchr("01.?", text[t]) - "01.?")] = 1;
    by_weft(&r, n, x, NULL, NULL, to);
    free(x);
}

static double hundredths(double x) { return round(100 * x) / 100 + 0.; } /* not -0 */

static void show_memory(void)
{
    static const char text[] = "?.1..?1?.0.?1..?";
    enum { N = sizeof text - 1 };
    double of[6][N];
    made to = { of[0], of[1], of[2], of[3], of[4], of[5] };
    unit m = { 0 };
    flip_flop(&m);
    unit_by_weft(&m, text, &to);
    printf("\nthe memory of one bit\nletter");
    for (int t = 0; t < N; t++)
        printf("%6c", text[t]);
    for (int k = 4; k < 6; k++) {
        printf("\n%c'    ", "ifgoch"[k]);
        for (int t = 0; t < N; t++)
            printf("%6.2f", hundredths(of[k][t]));
    }
    printf("\n");
}

void show(void)
{
    numbers mine, same;
    memset(&mine, 0, sizeof mine);
    step(&given, given_x, given_c, given_h, arrays(&mine));
    by_weft(&given, 1, given_x, given_c, given_h, arrays(&same));
    printf("x = (1, 0, 0.5)   c = (0.8, -0.5)   h = (0.4, -0.2)\n\n");
    for (int k = 0; k < 4; k++)
        show_gate(k, &mine, &same);
    show_states(&mine.to, &same.to);
    printf("by hand and by weft: %s\n", near(mine.of[0], same.of[0], 6 * UNITS, 1e-12) ?
                                            "the same" :
                                            "not the same");
    show_memory();
}

weft_status draw(const char *path)
{
    numbers n;
    step(&given, given_x, given_c, given_h, arrays(&n));
    const weft_cell_numbers cell = {
        WEFT_CELL_LSTM, IN,
        UNITS,          0,
        given_x,        given_h,
        given_c[0],     { n.to.i[0], n.to.f[0], n.to.g[0], n.to.o[0] },
        n.to.c[0],      n.to.h[0],
    };
    return weft_plot_cell(path, "One step of an LSTM of two units", &cell);
}
