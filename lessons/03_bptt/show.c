/* Lesson 3: prints how long the gradient still is, up to 60 steps before the loss. */
#include "weft_lab.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

double norm(const double *x) { return sqrt(dot(x, x, UNITS)); }

/* ---- by weft ---- */
static void read_of(weft_tensor *from, double *to)
{
    if (from)
        weft_read(from, to, (size_t)weft_numel(from) * sizeof *to);
}

/* Runs r forward and backward, over the same random x for both kinds of layer. */
static void run_and_walk(weft *w, weft_rnn *r, int steps, const double *last, walk *to)
{
    weft_rnn_set_traced(r, true);
    weft_tensor *x = weft_randn(w, WEFT_SHAPE(1, steps, INPUTS));
    weft_tensor *y = weft_rnn_run(r, x, WEFT_ZERO_STATE).y;
    weft_tensor *of_last = weft_slice(y, 1, steps - 1, steps);
    weft_tensor *weights = weft_reals(w, last, WEFT_SHAPE(1, 1, UNITS));
    weft_backward(weft_sum_all(weft_mul(of_last, weights)));
    weft_rnn_traced t = weft_rnn_trace(r, 0, false);
    read_of(t.h, to->h), read_of(t.dh, to->dh), read_of(t.dc, to->dc);
    if (t.gates == 4)
        read_of(t.gate[1], to->f);
    lesson_close(w);
}

static const weft_rnn_opts sizes = { .input = INPUTS, .hidden = UNITS };

void rnn_by_weft(double gain, unsigned seed, int steps, const double *last, walk *to)
{
    weft *w = lesson_open(seed);
    weft_module *m = weft_module_new(w, "n");
    weft_rnn *r = weft_elman_new(m, "r", &sizes);
    weft_tensor *u = weft_find_parameter(m, "r.weight_hh_l0");
    weft_initialise(u, (weft_init){ WEFT_INIT_ORTHOGONAL, gain, 0 });
    read_of(u, to->u);
    run_and_walk(w, r, steps, last, to);
}

void lstm_by_weft(double bias, unsigned seed, int steps, const double *last, walk *to)
{
    weft *w = lesson_open(seed);
    weft_module *m = weft_module_new(w, "n");
    weft_rnn *r = weft_lstm_new(m, "r", &sizes);
    double b[4 * UNITS] = { 0 }; /* rows of i, f, g, o */
    for (int k = UNITS; k < 2 * UNITS; k++)
        b[k] = bias;
    weft_assign_values(weft_find_parameter(m, "r.bias_ih_l0"), b, 4 * UNITS);
    run_and_walk(w, r, steps, last, to);
}

/* ---- the six layers ---- */
enum { LAYERS = 6 };
static const struct {
    bool lstm;
    double of;
    const char *name;
} layers[LAYERS] = {
    { false, 0.8, "RNN, gain 0.8" },    { false, 1, "RNN, gain 1" },
    { false, 1.3, "RNN, gain 1.3" },    { true, 0, "LSTM, forget bias 0" },
    { true, 1, "LSTM, forget bias 1" }, { true, 3, "LSTM, forget bias 3" },
};

/* Computes |dL/dh_t| of layer k, of an RNN with back. Returns whether weft agrees. */
static bool norms_of(int k, double norms[STEPS], walk *of)
{
    static double dh[STEPS * UNITS];
    double ones[UNITS];
    for (int j = 0; j < UNITS; j++)
        ones[j] = 1;
    memset(of, 0, sizeof *of), memset(dh, 0, sizeof dh);
    (layers[k].lstm ? lstm_by_weft : rnn_by_weft)(layers[k].of, 1, STEPS, ones, of);
    if (!layers[k].lstm)
        back(STEPS, UNITS, of->u, of->h, ones, dh);
    for (int t = 0; t < STEPS; t++)
        norms[t] = norm((layers[k].lstm ? of->dh : dh) + t * UNITS);
    return layers[k].lstm || near(dh, of->dh, STEPS * UNITS, 1e-10);
}

/* Prints how much of dL/dc is left: by the factors f alone, and by all paths. */
static void show_cell(const char *whose, double bias)
{
    static walk of;
    double ones[UNITS], f = 1 / (1 + exp(-bias));
    for (int j = 0; j < UNITS; j++)
        ones[j] = 1;
    memset(&of, 0, sizeof of);
    lstm_by_weft(bias, 1, STEPS, ones, &of);
    printf("%-6s %6s %9s %9.1e %9.1e\n", whose, digits(bias), digits(f),
           pow(f, STEPS - 1), norm(of.dc));
}

void show(void)
{
    static const int steps[] = { 59, 49, 39, 29, 19, 9, 0 };
    static walk of;
    double norms[STEPS];
    bool same = true;
    printf("|dL/dh_t|, L the sum of h_59\n%-20s", "t");
    for (int i = 0; i < 7; i++)
        printf("%9d", steps[i]);
    for (int k = 0; k < LAYERS; k++) {
        same &= norms_of(k, norms, &of);
        printf("\n%-20s", layers[k].name);
        for (int i = 0; i < 7; i++)
            printf("%9.1e", norms[steps[i]]);
    }
    printf("\nRNNs by hand and by weft: %s\n\n", same ? "the same" : "not the same");
    printf("%13s %9s %9s %9s\n", "forget bias", "f", "f^59", "|dL/dc_0|");
    for (int k = 3; k < LAYERS; k++)
        show_cell("", layers[k].of);
    show_cell("yours", forget_bias(STEPS));
}

weft_status draw(const char *path)
{
    static walk of;
    static double x[STEPS], y[LAYERS][STEPS], norms[STEPS];
    weft_curve curves[LAYERS];
    for (int k = 0; k < LAYERS; k++) {
        norms_of(k, norms, &of);
        for (int t = 0; t < STEPS; t++)
            y[k][t] = norms[STEPS - 1 - t];
        curves[k] =
            (weft_curve){ .name = layers[k].name, .n = STEPS, .x = x, .y = y[k] };
    }
    for (int t = 0; t < STEPS; t++)
        x[t] = t;
    const weft_chart chart = { .x_label = "steps back from the loss",
                               .left = "|dL/dh_t|",
                               .y_base = 10,
                               .curves = curves,
                               .n = LAYERS };
    return weft_plot_lines(path, "How far back does a loss see?", &chart, 1, 1);
}
