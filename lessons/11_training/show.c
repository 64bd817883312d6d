/* Lesson 11: prints a clipped gradient, the first gradient's norm for several initial
 * values, and seven training runs on the adding problem. */
#define _POSIX_C_SOURCE 200809L
#include "weft_op.h"
#include "weft_plot.h"
#include "given.h"
#include "known.h"

/* ---- the answer's functions, or those of a known run, see known.h ---- */
static known *being_made; /* by remember */

static void sum_of_biases(weft_module *lstm, double *sum, int rows)
{
    double x[MOST_ROWS];
    weft_read(weft_find_parameter(lstm, "bias_ih_l0"), sum, (size_t)rows * sizeof *sum);
    weft_read(weft_find_parameter(lstm, "bias_hh_l0"), x, (size_t)rows * sizeof *x);
    for (int j = 0; j < rows; j++)
        sum[j] += x[j];
}

/* Sets the bias. Returns whether the sum of both is known; only the sum counts. */
static bool set_bias(weft_module *lstm, int hidden, double value, known *k)
{
    double sum[MOST_ROWS];
    (being_made ? known_forget_bias : forget_bias)(lstm, hidden, value);
    sum_of_biases(lstm, sum, 4 * hidden);
    if (being_made)
        memcpy(being_made->bias, sum, sizeof sum);
    return near(sum, k->bias, 4 * hidden, 1e-14);
}

static double updated(weft_module *m, weft_optim *o, weft_tensor *loss, double most)
{
    if (!being_made)
        return update(m, o, loss, most);
    double norm = known_update(m, o, loss, most);
    being_made->norm[being_made->updates++] = norm;
    return norm;
}

static bool is_known(const known *k, double most)
{
    for (int u = 0; u < k->updates; u++)
        if (!updates_as_known(most, k->norm[u]))
            return false;
    return k->done && !being_made;
}

#include "samples.h"

static const setting settings[] = {
    { "tanh, gain 1.5, SGD .3, no limit", false, 1.5, NAN, false, .3, INFINITY, 500 },
    { "tanh, gain 1.5, SGD .3, limit 1", false, 1.5, NAN, false, .3, 1, 500 },
    { "LSTM, as PyTorch, Adam .01, limit 1", true, 0, NAN, true, .01, 1, 1500 },
    { "LSTM, forget bias 1, Adam .01, limit 1", true, 0, 1, true, .01, 1, 1500 },
    { "LSTM, forget bias 3, Adam .01, limit 1", true, 0, 3, true, .01, 1, 1500 },
    { "LSTM, forget bias 3, Adam .0003, limit 1", true, 0, 3, true, .0003, 1, 500 },
    { "LSTM, forget bias 3, Adam 1, limit 1", true, 0, 3, true, 1, 1, 500 },
};
enum { SETTINGS = sizeof settings / sizeof *settings };
static const double baseline = 1 / 6.; /* loss of the constant answer 1 */

/* ---- the adding problem ---- */
/* Fills x [BATCH, STEPS, 2] with numbers and marks, one mark of 1 in each half, and y
 * [BATCH] with the sums of marked numbers. */
static void adding(double *x, double *y)
{
    for (int s = 0; s < BATCH; s++) {
        int a = dice_below(STEPS / 2), b = STEPS / 2 + dice_below(STEPS / 2);
        y[s] = 0;
        for (int t = 0; t < STEPS; t++, x += 2) {
            x[0] = (dice() + 1) / 2, x[1] = t == a || t == b;
            y[s] += x[0] * x[1];
        }
    }
}

typedef struct {
    weft_module *all;
    weft_rnn *rnn;
    weft_linear *out;
    weft_optim *optim;
} model;

static model model_new(weft *w, const setting *s, known *k, bool *same)
{
    weft_module *m = weft_module_new(w, "net");
    const weft_rnn_opts o = { .input = 2, .hidden = UNITS };
    model n = { .all = m };
    n.rnn = s->lstm ? weft_lstm_new(m, "rnn", &o) : weft_elman_new(m, "rnn", &o);
    n.out = weft_linear_new(m, "out", &(weft_linear_opts){ .in = UNITS, .out = 1 });
    n.optim = s->adam ? weft_adam_new(m, &(weft_adam_opts){ .lr = s->rate }) :
                        weft_sgd_new(m, &(weft_sgd_opts){ .lr = s->rate });
    if (s->gain > 0)
        weft_initialise(weft_find_parameter(m, "rnn.weight_hh_l0"),
                        (weft_init){ WEFT_INIT_ORTHOGONAL, s->gain, 0 });
    if (!isnan(s->bias))
        *same = set_bias(weft_rnn_module(n.rnn), UNITS, s->bias, k);
    return n;
}

static weft_tensor *loss_of(weft *w, const model *n)
{
    static double x[BATCH * STEPS * 2], y[BATCH];
    adding(x, y);
    weft_tensor *all = weft_reals(w, x, WEFT_SHAPE(BATCH, STEPS, 2));
    weft_state last = weft_rnn_run(n->rnn, all, WEFT_ZERO_STATE).last;
    weft_tensor *sum = weft_linear_run(n->out, weft_final_state(n->rnn, last));
    return weft_mean_loss(
        weft_mse_loss(sum, weft_reals(w, y, WEFT_SHAPE(BATCH, 1)), NULL));
}

static known runs[SETTINGS], none;
static course courses[SETTINGS];

void train(const setting *s, course *c)
{
    weft *w = lesson_open(1);
    const bool listed = s >= settings && s < settings + SETTINGS;
    const int which = listed ? (int)(s - settings) : -1;
    known *k = which < 0 ? &none : runs + which;
    bool same = true;
    model n = model_new(w, s, k, &same);
    if (same && is_known(k, s->most)) {
        *c = courses[which];
        lesson_close(w);
        return;
    }
    *c = (course){ .blown = false };
    dice_seed(5);
    for (int u = 0; u < s->updates && !c->blown; u++) {
        weft_tensor *loss = loss_of(w, &n);
        double value = weft_item(loss), norm = updated(n.all, n.optim, loss, s->most);
        c->blown = !weft_ok(w) || !(value < 1e6);
        c->first_norm = u ? c->first_norm : norm;
        c->loss[u / WINDOW] += value / WINDOW;
        c->norm[u / WINDOW] = fmax(c->norm[u / WINDOW], norm);
        weft_clear(w);
    }
    weft_recover(w); /* infinite numbers are an expected result */
    lesson_close(w);
}

/* Returns the number of updates until a window's mean loss is below half of the
 * baseline; 0: it never is. */
static int learnt(const setting *s, const course *c)
{
    for (int k = 0; k < s->updates / WINDOW && !c->blown; k++)
        if (c->loss[k] < baseline / 2)
            return (k + 1) * WINDOW;
    return 0;
}

void remember(void)
{
    for (int k = 0; k < SETTINGS; k++) {
        being_made = runs + k;
        train(settings + k, courses + k);
        runs[k].done = true;
    }
    remember_samples();
    being_made = NULL;
}

/* ---- the program ---- */
static void show_clip(double most)
{
    double a[2] = { 3, 4 }, b[1] = { 12 };
    double norm = clip(2, (int[]){ 2, 1 }, (double *[]){ a, b }, most);
    printf("gradient (3, 4) (12), limit %s: norm %s, clipped (%s, %s) (%s)\n",
           digits(most), digits(norm), digits(a[0]), digits(a[1]), digits(b[0]));
}

static void show_first(void)
{
    static const double gain[] = { .5, 1, 1.5, 2 }, bias[] = { NAN, 1, 3 };
    course c;
    puts("\nthe gradient's norm at the first update");
    for (int k = 0; k < 4; k++) {
        train(&(setting){ "", false, gain[k], NAN, false, .01, INFINITY, 1 }, &c);
        printf("  tanh, orthogonal, gain %-4s %8s\n", digits(gain[k]),
               digits(c.first_norm));
    }
    for (int k = 0; k < 3; k++) {
        train(&(setting){ "", true, 0, bias[k], false, .01, INFINITY, 1 }, &c);
        printf("  LSTM, %-20s %8s\n",
               k == 0 ? "as PyTorch" :
               k == 1 ? "forget bias 1" :
                        "forget bias 3",
               digits(c.first_norm));
    }
}

void show(void)
{
    show_clip(1), show_clip(20);
    show_first();
    printf("\nthe adding problem; the answer 1 has loss %s\n", digits(baseline));
    for (int k = 0; k < SETTINGS; k++) {
        course c;
        train(settings + k, &c);
        int when = learnt(settings + k, &c);
        printf("  %-41s ", settings[k].name);
        if (c.blown)
            puts("blows up");
        else if (when)
            printf("half of that after %d updates\n", when);
        else
            printf("never half of that in %d updates\n", settings[k].updates);
    }
    show_samples();
}

/* ---- the picture ---- */
/* Rounds to two digits, which are the same on every processor. */
static double two(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.1e", x);
    return x < 1e6 && x > 0 ? strtod(text, NULL) : NAN;
}

/* The picture leaves out the tanh layers and the rate of 1. Their training depends on
 * the last digits, which differ between processors. */
enum { FROM = 2, BEHIND = 6, GAINS = 7 };
static const char *const names[] = { "",
                                     "",
                                     "as PyTorch, rate .01",
                                     "forget bias 1, .01",
                                     "forget bias 3, .01",
                                     "forget bias 3, .0003" };

static weft_curve curve(int k, double *y, const double *of)
{
    static double x[WINDOWS];
    for (int j = 0; j < WINDOWS; j++)
        x[j] = (j + 1) * WINDOW, y[j] = two(of[j]);
    return (weft_curve){
        .name = names[k], .n = settings[k].updates / WINDOW, .x = x, .y = y
    };
}

static weft_curve first_norms(double *x, double *y)
{
    for (int k = 0; k < GAINS; k++) {
        course c;
        x[k] = .5 + .25 * k;
        train(&(setting){ "", false, x[k], NAN, false, .01, INFINITY, 1 }, &c);
        y[k] = two(c.first_norm);
    }
    return (weft_curve){
        .name = "tanh, orthogonal first values", .n = GAINS, .x = x, .y = y
    };
}

weft_status draw(const char *path)
{
    static double losses[SETTINGS][WINDOWS], norms[SETTINGS][WINDOWS], gain[GAINS],
        first[GAINS];
    static double at[2] = { WINDOW, WINDOW * WINDOWS }, same[2] = { 1 / 6., 1 / 6. },
                  limit[2] = { 1, 1 };
    double highest[2] = { 1, 1 };
    weft_curve loss[BEHIND], norm[BEHIND], firsts = first_norms(gain, first);
    /* the references come first, because later curves cover earlier ones */
    loss[1] = (weft_curve){ .name = "1/6", .n = 2, .x = at, .y = same };
    norm[0] = (weft_curve){ .name = "limit", .n = 2, .x = at, .y = limit };
    for (int k = FROM; k < BEHIND; k++) {
        course c;
        train(settings + k, &c);
        loss[k] = curve(k, losses[k], c.loss), norm[k] = curve(k, norms[k], c.norm);
        for (int j = 0; j < norm[k].n; j++)
            highest[0] = highest[1] = fmax(highest[0], norms[k][j]);
    }
    norm[1] =
        (weft_curve){ .name = "clipped", .n = 2, .x = at, .y = highest, .low = limit };
    const weft_chart charts[3] = {
        { "the first gradient", "gain", "norm", NULL, 0, 10, &firsts, 1 },
        { "mean loss", "updates", "loss", NULL, 0, 10, loss + 1, BEHIND - 1 },
        { "largest norm, before clipping", "updates", "norm", NULL, 0, 10, norm,
          BEHIND },
    };
    return weft_plot_lines(path, "the adding problem over 80 numbers", charts, 3, 1);
}
