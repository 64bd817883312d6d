/* Lesson 5: trains an LSTM on the depth of brackets outside of quotes, and examines its
 * units. */
#include "weft_lab.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* ---- texts: tokens 0 1 2 are ( ) and " ---- */
static const char letters[] = "()\"";

/* Updates both targets for a token. Brackets count outside of quotes. */
static void follow(int token, int *depth, bool *quoted)
{
    if (token == 2)
        *quoted = !*quoted;
    else if (!*quoted)
        *depth += token ? -1 : 1;
}

static void make_text(int length, int32_t *token, double *target)
{
    int depth = 0;
    bool quoted = false;
    for (int t = 0; t < length; t++) {
        int k = dice_below(7);
        token[t] = k == 0 || (quoted && k == 1)          ? 2 :
                   dice() > 0 || (depth == 0 && !quoted) ? 0 :
                                                           1;
        follow(token[t], &depth, &quoted);
        target[t * OUTPUTS + DEPTH] = depth, target[t * OUTPUTS + QUOTE] = quoted;
    }
}

/* ---- the network ---- */
enum { SEED = 11, UPDATES = 4000, BATCH = 16, SHORT = 5 };
struct net {
    weft *w;
    weft_module *m;
    weft_rnn *lstm;
    weft_linear *head;
    long learnt[LONG + 1]; /* tokens of each depth in training */
};

static weft_tensor *answers(net *n, const int32_t *token, const weft_lengths *lengths)
{
    weft_tensor *x = weft_one_hot(weft_ragged_ints(n->w, token, lengths), 3);
    return weft_linear_run(n->head, weft_rnn_run(n->lstm, x, WEFT_ZERO_STATE).y);
}

static void update(net *n, weft_optim *adam, int u)
{
    static int32_t token[BATCH * LONG], len[BATCH];
    static double target[BATCH * LONG * OUTPUTS];
    const weft_lengths lengths = { .n = BATCH, .len = len };
    int rows = 0;
    for (int s = 0; s < BATCH; rows += len[s++]) {
        len[s] = SHORT + dice_below(LONG - SHORT + 1);
        make_text(len[s], token + rows, target + rows * OUTPUTS);
        for (int t = rows; t < rows + len[s]; t++)
            n->learnt[(int)target[t * OUTPUTS + DEPTH]]++;
    }
    weft_tensor *want = weft_ragged(n->w, target, OUTPUTS, &lengths);
    weft_backward(
        weft_mean_loss(weft_mse_loss(answers(n, token, &lengths), want, NULL)));
    weft_clip_grad_norm(n->m, 1, 2);
    weft_optim_set_lr(adam, weft_cosine_schedule(u, UPDATES, .02, 0, .0002));
    weft_optim_step(adam);
    weft_clear(n->w);
}

/* Sets the forget bias to 1, so that a cell keeps its value at first. Rows: i f g o. */
static void open_forget_gates(net *n)
{
    weft_tensor *bias = weft_find_parameter(n->m, "lstm.bias_hh_l0");
    double b[4 * UNITS];
    weft_read(bias, b, sizeof b);
    for (int j = UNITS; j < 2 * UNITS; j++)
        b[j] = 1;
    weft_assign_values(bias, b, 4 * UNITS);
}

static net *remembered;
void remember(void) { remembered = net_trained(); }

net *net_trained(void)
{
    if (remembered)
        return remembered;
    net *n = calloc(1, sizeof *n);
    n->w = lesson_open(SEED);
    n->m = weft_module_new(n->w, "m");
    n->lstm =
        weft_lstm_new(n->m, "lstm", &(weft_rnn_opts){ .input = 3, .hidden = UNITS });
    n->head = weft_linear_new(n->m, "head",
                              &(weft_linear_opts){ .in = UNITS, .out = OUTPUTS });
    open_forget_gates(n);
    weft_optim *adam = weft_adam_new(n->m, &(weft_adam_opts){ .lr = .02 });
    dice_seed(SEED);
    for (int u = 0; u < UPDATES; u++)
        update(n, adam, u);
    weft_rnn_set_traced(n->lstm, true); /* stores c for weft_rnn_trace */
    return n;
}

void net_free(net *n)
{
    lesson_close(n->w);
    free(n);
}

/* ---- reading ---- */
static void read_texts(net *n, const int32_t *token, const weft_lengths *lengths,
                       reading *to)
{
    answers(n, token, lengths);
    weft_rnn_traced t = weft_rnn_trace(n->lstm, 0, false);
    size_t numbers = (size_t)to->r.n * UNITS;
    weft_read_sequences(t.c, to->c, numbers * sizeof *to->c);
    weft_read_sequences(t.h, to->h, numbers * sizeof *to->h);
    weft_read(weft_find_parameter(n->m, "head.weight"), to->r.weight,
              sizeof to->r.weight);
    weft_read(weft_find_parameter(n->m, "head.bias"), to->r.bias, sizeof to->r.bias);
    to->r.c = to->c, to->r.h = to->h, to->r.target = to->target;
    weft_clear(n->w);
    lesson_ok(n->w);
}

void net_reads(net *n, int texts, int length, reading *to)
{
    static int32_t token[MOST];
    int32_t len[TEXTS];
    dice_seed(99);
    for (int s = 0; s < texts; s++) {
        len[s] = length;
        make_text(length, token + s * length, to->target + s * length * OUTPUTS);
    }
    to->r.n = texts * length;
    read_texts(n, token, &(weft_lengths){ .n = texts, .len = len }, to);
}

void net_reads_text(net *n, const char *text, reading *to)
{
    int32_t token[LONGEST], len[] = { (int32_t)strlen(text) };
    int depth = 0;
    bool quoted = false;
    for (int t = 0; t < len[0]; t++) {
        token[t] = (int32_t)(strchr(letters, text[t]) - letters);
        follow(token[t], &depth, &quoted);
        to->target[t * OUTPUTS + DEPTH] = depth,
                                 to->target[t * OUTPUTS + QUOTE] = quoted;
    }
    to->r.n = len[0];
    read_texts(n, token, &(weft_lengths){ .n = 1, .len = len }, to);
}

/* ---- the program ---- */
/* Round, never to -0: after training the last digits differ between processors. */
static double two(double x) { return round(x * 100) / 100 + 0.; }
static double three(double x) { return round(x * 1000) / 1000 + 0.; }

static void show_units(const record *r)
{
    printf("unit   c with depth   c with quote   h with depth   error of depth   of "
           "quote without it\n");
    for (int j = 0; j < UNITS; j++)
        printf("%4d %14.3f %14.3f %14.3f %16.2f %21.2f\n", j,
               three(correlation(r->n, r->c + j, UNITS, r->target + DEPTH, OUTPUTS)),
               three(correlation(r->n, r->c + j, UNITS, r->target + QUOTE, OUTPUTS)),
               three(correlation(r->n, r->h + j, UNITS, r->target + DEPTH, OUTPUTS)),
               two(error_without(r, DEPTH, j)), two(error_without(r, QUOTE, j)));
    printf("with all of them %50.2f %21.2f\n", two(error_without(r, DEPTH, -1)),
           two(error_without(r, QUOTE, -1)));
    printf("the depth is in unit %d, the quotes are in unit %d\n", unit_for(r, DEPTH),
           unit_for(r, QUOTE));
}

/* Returns the per cent of training tokens at depths from .. to. */
static double learnt(const net *n, int from, int to)
{
    long count = 0, all = 0;
    for (int d = 0; d <= LONG; d++) {
        count += d >= from && d <= to ? n->learnt[d] : 0;
        all += n->learnt[d];
    }
    return 100. * count / all;
}

static int deepest(const net *n)
{
    int d = LONG;
    while (d > 0 && !n->learnt[d])
        d--;
    return d;
}

/* Prints the mean error at depths from .. to. */
static void show_depths(const net *n, const record *r, int from, int to)
{
    double error = 0;
    int count = 0;
    for (int i = 0; i < r->n; i++) {
        double depth = r->target[i * OUTPUTS + DEPTH], answer = r->bias[DEPTH];
        for (int j = 0; j < UNITS; j++)
            answer += r->weight[DEPTH][j] * r->h[i * UNITS + j];
        if (depth >= from && depth <= to)
            error += fabs(answer - depth), count++;
    }
    printf("%5d .. %2d %8d %8.2f %14.2f %%\n", from, to, count,
           count ? two(error / count) : 0., learnt(n, from, to));
}

void show(void)
{
    static reading now;
    net *n = net_trained();
    net_reads(n, TEXTS, LONG, &now);
    show_units(&now.r);
    net_reads(n, TEXTS, LONGEST, &now);
    printf("\ntexts of %d tokens; those of training had up to %d, at depths up to %d\n",
           LONGEST, LONG, deepest(n));
    printf("      depth   tokens    error      of training\n");
    for (int from = 0; from <= 16; from += 4)
        show_depths(n, &now.r, from, from + 3);
    net_free(n);
}

/* ---- the picture: one text by its depth, the counter's c and the switch's c ---- */
static const char example[] =
    "(()((())\"((((()\"()((\"))))(((\"))()((((()))\"(\"\")\"(\"))))";
enum { EXAMPLE = sizeof example - 1, NAME = 10, LINE = NAME + EXAMPLE };

static void line(const char *name, const double *x, int step, char *text, double *value)
{
    double most = 0;
    snprintf(text, LINE + 1, "%-*s%s", NAME, name, example);
    for (int t = 0; t < EXAMPLE; t++)
        most = fmax(most, fabs(x[t * step]));
    for (int i = 0; i < LINE; i++)
        value[i] = i < NAME ? 0 : two(x[(i - NAME) * step] / most);
}

weft_status draw(const char *path)
{
    static reading now;
    char text[3 * LINE + 1], name[2][16];
    double value[3 * LINE];
    const weft_text_colours colours = { { -1, 0, 1, "of the largest in the line" },
                                        .columns = LINE };
    net *n = net_trained();
    net_reads(n, TEXTS, LONG, &now);
    int unit[] = { unit_for(&now.r, DEPTH), unit_for(&now.r, QUOTE) };
    net_reads_text(n, example, &now);
    line("depth", now.target + DEPTH, OUTPUTS, text, value);
    for (int k = 0; k < 2; k++) {
        snprintf(name[k], sizeof name[k], "c, unit %d", unit[k]);
        line(name[k], now.c + unit[k], UNITS, text + (k + 1) * LINE,
             value + (k + 1) * LINE);
    }
    weft_status status =
        weft_plot_text(path, "A counter and a switch", text, 3 * LINE, value, &colours);
    net_free(n);
    return status;
}
