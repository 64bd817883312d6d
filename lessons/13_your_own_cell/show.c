/* Lesson 13: prints one step and its gradients, then trains the student's cell and
 * an LSTM. */
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* ---- one step of two units ---- */
enum { UNITS = 2 };
static const double sums[] = { 0.5, -1, 1, -0.5 }, weights[] = { 2, -1 },
                    before[] = { 0.8, 0.4 }, by_new[] = { 1, 1 };

static double loss(const double *s, const double *v, const double *h)
{
    double to[UNITS] = { 0 };
    forward(UNITS, s, v, h, to);
    return to[0] + to[1];
}

/* Returns the difference of two losses around number k of x. */
static double slope(double *x, int k, const double *s, const double *v, const double *h)
{
    const double e = 1e-5, old = x[k];
    x[k] = old + e;
    double more = loss(s, v, h);
    x[k] = old - e;
    double less = loss(s, v, h);
    x[k] = old;
    return (more - less) / (2 * e);
}

static void show_step(void)
{
    double to[UNITS] = { 0 }, ds[2 * UNITS] = { 0 }, dv[UNITS] = { 0 },
           dh[UNITS] = { 0 };
    double s[2 * UNITS], v[UNITS], h[UNITS];
    memcpy(s, sums, sizeof s), memcpy(v, weights, sizeof v),
        memcpy(h, before, sizeof h);
    forward(UNITS, s, v, h, to);
    backward(UNITS, s, v, h, by_new, ds, dv, dh);
    for (int j = 0; j < UNITS; j++) {
        double f = 1 / (1 + exp(-(s[UNITS + j] + v[j] * h[j])));
        printf("unit %d: n = %s, p = %s, v = %s, h = %s: f = %s, h' = %s\n", j,
               digits(s[j]), digits(s[UNITS + j]), digits(v[j]), digits(h[j]),
               digits(f), digits(to[j]));
    }
    printf("\nthe loss is the sum of h'         by n      by p      by v      by h\n");
    for (int j = 0; j < UNITS; j++) {
        printf("unit %d: backward             %9.4f %9.4f %9.4f %9.4f\n", j, ds[j],
               ds[UNITS + j], dv[j], dh[j]);
        printf("        finite differences   %9.4f %9.4f %9.4f %9.4f\n",
               slope(s, j, s, v, h), slope(s, UNITS + j, s, v, h), slope(v, j, s, v, h),
               slope(h, j, s, v, h));
    }
}

/* ---- a ragged batch: the first sequence alone, and in a batch ---- */
static void show_batch(void)
{
    const int len[] = { 2, 0, 3 };
    double s[5 * 4], first[3 * UNITS] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6 },
                               y[5 * UNITS] = { 0 }, last[3 * UNITS] = { 0 };
    dice_seed(13), DICE_FILL(s);
    run(&(batch){ 3, UNITS, len, s, weights, first }, y, last);
    printf("\nsequence  tokens   states of unit 0           last\n");
    for (int k = 0, row = 0; k < 3; row += len[k++]) {
        printf("%8d %7d  ", k, len[k]);
        for (int t = 0; t < 3; t++)
            printf(t < len[k] ? " %7.4f" : "        ",
                   y[(row + (t < len[k] ? t : 0)) * UNITS % (5 * UNITS)]);
        printf("   %7.4f\n", last[k * UNITS]);
    }
}

/* ---- training: which key began the text? ---- */
enum { LETTERS = 7, KEYS = 4, HIDDEN = 8, TEXTS = 16, LONG = 20 };
enum { UPDATES = 200, EVERY = 40 };
typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *layer;
    weft_linear *head;
    double losses[UPDATES];
    int right, parameters;
} net;

static void net_open(net *n, bool lstm)
{
    const weft_cell cell = cell_of(light);
    const weft_rnn_opts opts = { .input = LETTERS, .hidden = HIDDEN };
    n->w = lesson_open(13);
    n->m = weft_module_new(n->w, "net");
    n->layer = lstm ? weft_lstm_new(n->m, "rnn", &opts) :
                      weft_rnn_of_cell(n->m, "rnn", &cell, &opts);
    n->parameters = (int)weft_parameter_numel(weft_rnn_module(n->layer));
    n->head =
        weft_linear_new(n->m, "head", &(weft_linear_opts){ .in = HIDDEN, .out = KEYS });
}

/* Makes texts, a key and up to 19 other letters, and returns the scores of the keys. */
static weft_tensor *scores_of(net *n, int32_t *key)
{
    int32_t token[TEXTS * LONG], len[TEXTS];
    for (int k = 0, row = 0; k < TEXTS; k++) {
        len[k] = 1 + dice_below(LONG);
        token[row++] = key[k] = dice_below(KEYS);
        for (int t = 1; t < len[k]; t++)
            token[row++] = KEYS + dice_below(LETTERS - KEYS);
    }
    const weft_lengths lengths = { .n = TEXTS, .len = len };
    weft_tensor *x = weft_one_hot(weft_ragged_ints(n->w, token, &lengths), LETTERS);
    return weft_linear_run(
        n->head,
        weft_final_state(n->layer, weft_rnn_run(n->layer, x, WEFT_ZERO_STATE).last));
}

static void train(net *n)
{
    int32_t key[TEXTS];
    double scores[TEXTS * KEYS];
    weft_optim *adam = weft_adam_new(n->m, &(weft_adam_opts){ .lr = .02 });
    dice_seed(13);
    for (int u = 0; u < UPDATES; u++) {
        weft_tensor *to = scores_of(n, key);
        weft_tensor *mean = weft_mean_loss(
            weft_cross_entropy(to, weft_ints(n->w, key, WEFT_SHAPE(TEXTS)), NULL));
        weft_read(mean, n->losses + u, sizeof *n->losses);
        weft_backward(mean);
        weft_optim_step(adam);
        weft_clear(n->w);
    }
    n->right = 0;
    for (int round = 0; round < 10; round++, weft_clear(n->w)) {
        weft_read(scores_of(n, key), scores, sizeof scores);
        for (int k = 0; k < TEXTS; k++) {
            int best = 0;
            for (int c = 1; c < KEYS; c++)
                best = scores[k * KEYS + c] > scores[k * KEYS + best] ? c : best;
            n->right += best == key[k];
        }
    }
    lesson_close(n->w);
}

static net mine, lstm;

void remember(void)
{
    if (!lstm.m)
        net_open(&lstm, true), train(&lstm);
}

static void train_both(void)
{
    net_open(&mine, false), train(&mine);
    remember();
}

void show(void)
{
    show_step(), show_batch();
    train_both();
    printf("\nupdate      yours     LSTM\n");
    for (int u = 0; u < UPDATES; u += EVERY)
        printf("%6d   %8.2f %8.2f\n", u, mine.losses[u], lstm.losses[u]);
    printf("%6d   %8.2f %8.2f\n", UPDATES, mine.losses[UPDATES - 1],
           lstm.losses[UPDATES - 1]);
    printf(
        "weights  %8d %8d\nof %d new texts, keys named: %d by yours, %d by the LSTM\n",
        mine.parameters, lstm.parameters, 10 * TEXTS, mine.right, lstm.right);
}

weft_status draw(const char *path)
{
    double x[UPDATES / 4], y[2][UPDATES / 4];
    train_both();
    for (int k = 0; k < UPDATES / 4; k++) {
        x[k] = 4 * k;
        y[0][k] = round(mine.losses[4 * k] * 1e3) / 1e3;
        y[1][k] = round(lstm.losses[4 * k] * 1e3) / 1e3;
    }
    const weft_curve curves[] = {
        { .name = "your cell", .n = UPDATES / 4, .x = x, .y = y[0] },
        { .name = "LSTM", .n = UPDATES / 4, .x = x, .y = y[1] }
    };
    const weft_chart chart = {
        .x_label = "update", .left = "loss", .curves = curves, .n = 2
    };
    return weft_plot_lines(path, "Your cell and an LSTM learn to keep a key", &chart, 1,
                           1);
}
