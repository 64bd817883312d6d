/* Lesson 2: runs a recurrent layer of two units over "abba", by hand and by weft. */
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* Writes the one-hot vector of each letter to x [STEPS, LETTERS]. */
static void letters(double *x)
{
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < LETTERS; i++)
            x[t * LETTERS + i] = word[t] == 'a' + i;
}

static void assign(weft_module *m, const char *name, const double *values, int n)
{
    weft_assign_values(weft_find_parameter(m, name), values, n);
}

void by_weft(const rnn *r, int steps, const double *x, double *h)
{
    weft *w = lesson_open(1);
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *layer =
        weft_elman_new(m, "rnn", &(weft_rnn_opts){ .input = r->I, .hidden = r->H });
    assign(m, "rnn.weight_ih_l0", r->w, r->H * r->I),
        assign(m, "rnn.bias_ih_l0", r->b, r->H);
    assign(m, "rnn.weight_hh_l0", r->u, r->H * r->H),
        assign(m, "rnn.bias_hh_l0", r->c, r->H);
    weft_tensor *all = weft_reals(w, x, WEFT_SHAPE(1, steps, r->I));
    weft_read(weft_rnn_run(layer, all, WEFT_ZERO_STATE).y, h,
              (size_t)(steps * r->H) * sizeof *h);
    lesson_close(w);
}

/* Computes the terms W x, b + c, U h of unit j at step t, and their sum. */
static void parts(const double *x, const double *h, int t, int j, double part[4])
{
    part[0] = part[2] = 0;
    for (int i = 0; i < LETTERS; i++)
        part[0] += given_w[j * LETTERS + i] * x[t * LETTERS + i];
    for (int k = 0; k < UNITS && t; k++)
        part[2] += given_u[j * UNITS + k] * h[(t - 1) * UNITS + k];
    part[1] = given_b[j] + given_c[j];
    part[3] = part[0] + part[1] + part[2];
}

void show(void)
{
    double x[STEPS * LETTERS], h[STEPS * UNITS], same[STEPS * UNITS], part[4];
    letters(x);
    run(&given, STEPS, x, h);
    by_weft(&given, STEPS, x, same);
    printf("step letter unit      W x    b + c      U h      sum        h     weft\n");
    for (int t = 0; t < STEPS; t++)
        for (int j = 0; j < UNITS; j++) {
            parts(x, h, t, j, part);
            printf("%4d %6c %4d %8s %8s %8s %8s %8s %8s\n", t + 1, word[t], j,
                   digits(part[0]), digits(part[1]), digits(part[2]), digits(part[3]),
                   digits(h[t * UNITS + j]), digits(same[t * UNITS + j]));
        }
    printf("by hand and by weft: %s\n",
           near(h, same, STEPS * UNITS, 1e-12) ? "the same" : "not the same");
}

weft_status draw(const char *path)
{
    static const char *const rows[] = { "W x, unit 0",   "b + c, unit 0", "U h, unit 0",
                                        "sum, unit 0",   "h, unit 0",     "W x, unit 1",
                                        "b + c, unit 1", "U h, unit 1",   "sum, unit 1",
                                        "h, unit 1" };
    static const char *const columns[] = { "a", "b", "b", "a" };
    double x[STEPS * LETTERS], h[STEPS * UNITS], part[4], cell[10][STEPS];
    letters(x);
    run(&given, STEPS, x, h);
    for (int t = 0; t < STEPS; t++)
        for (int j = 0; j < UNITS; j++) {
            parts(x, h, t, j, part);
            for (int k = 0; k < 4; k++)
                cell[5 * j + k][t] = part[k];
            cell[5 * j + 4][t] = h[t * UNITS + j];
        }
    const weft_colour_scale scale = { -1, 0, 1, "the terms, their sum, and its tanh" };
    return weft_plot_heatmap(path, "abba through two units", 10, STEPS, cell[0], rows,
                             columns, &scale);
}
