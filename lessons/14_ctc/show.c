/* Lesson 14: lists all paths of two labels, and trains a network that reads letters of
 * unknown duration. */
#include "weft_plot.h"
#include "weft_sequence.h"
#include "common/lesson.h"
#include "lesson.h"

/* ---- all paths of "a b" in four steps ---- */
enum { STEPS = 4, LETTERS = 3 };
static const double table[STEPS * LETTERS] = { .2, .7, .1, .5, .4, .1,
                                               .6, .1, .3, .3, .1, .6 };

static void show_paths(void)
{
    double score[STEPS * LETTERS], sum = 0;
    int path[STEPS], out[STEPS], found = 0;
    for (int k = 0; k < STEPS * LETTERS; k++)
        score[k] = log(table[k]);
    printf("step      1     2     3     4\n");
    for (int k = 0; k < LETTERS; k++, putchar('\n'))
        for (int t = printf("%c   ", "-ab"[k]) * 0; t < STEPS; t++)
            printf("%6.1f", table[t * LETTERS + k]);
    printf("\npaths of \"ab\" and their probabilities\n");
    for (int i = 0; i < 81; i++) {
        double p = 1;
        for (int t = STEPS, rest = i; t-- > 0; rest /= LETTERS)
            p *= table[t * LETTERS + (path[t] = rest % LETTERS)];
        if (collapse(STEPS, path, out) != 2 || out[0] != 1 || out[1] != 2)
            continue;
        sum += p;
        for (int t = 0; t < STEPS; t++)
            putchar("-ab"[path[t]]);
        printf(" %.4f%s", p, ++found % 5 ? "   " : "\n");
    }
    printf("\nsum of %d paths %.4f\n", found, sum);
    printf("exp of log_probability %.4f\n",
           exp(log_probability(STEPS, LETTERS, score, 2, (int[]){ 1, 2 })));
}

/* ---- a network that reads letters of unknown duration ---- */
enum { CLASSES = 5, HIDDEN = 12, BATCH = 16, LABELS = 5, LONGEST = 8 * LABELS };
enum { UPDATES = 240, EVERY = 60, TESTS = 100 };
static const char names[] = "-abcd";

/* Texts, end to end. A letter lasts 2 .. 5 steps, after 1 .. 3 steps of silence. */
typedef struct {
    int n, steps, labels;
    int32_t len[TESTS], size[TESTS], heard[TESTS * LONGEST], label[TESTS * LABELS];
    double x[TESTS * LONGEST * CLASSES];
} texts;

static void hear(texts *to, int class, int steps)
{
    for (int t = 0; t < steps; t++, to->steps++, to->len[to->n]++) {
        double *x = to->x + to->steps * CLASSES;
        dice_fill(x, CLASSES);
        x[class] += 1.4;
        to->heard[to->steps] = class;
    }
}

static void make_texts(texts *to, int n)
{
    *to = (texts){ 0 };
    for (; to->n < n; to->n++) {
        to->size[to->n] = 1 + dice_below(LABELS);
        for (int k = 0; k < to->size[to->n]; k++) {
            int class = to->label[to->labels++] = 1 + dice_below(CLASSES - 1);
            hear(to, BLANK, 1 + dice_below(3));
            hear(to, class, 2 + dice_below(4));
        }
    }
}

typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *reads;
    weft_linear *says;
    weft_optim *adam;
} net;

static net net_open(void)
{
    net n = { .w = lesson_open(14) };
    n.m = weft_module_new(n.w, "net");
    n.reads = weft_lstm_new(
        n.m, "reads",
        &(weft_rnn_opts){ .input = CLASSES, .hidden = HIDDEN, .bidirectional = true });
    n.says = weft_linear_new(n.m, "says",
                             &(weft_linear_opts){ .in = 2 * HIDDEN, .out = CLASSES });
    n.adam = weft_adam_new(n.m, &(weft_adam_opts){ .lr = .02 });
    return n;
}

static weft_tensor *logits_of(const net *n, const texts *of)
{
    const weft_lengths lengths = { .n = of->n, .len = of->len };
    weft_tensor *x = weft_ragged(n->w, of->x, CLASSES, &lengths);
    return weft_linear_run(n->says, weft_rnn_run(n->reads, x, WEFT_ZERO_STATE).y);
}

static weft_loss loss_of(const net *n, const texts *of, weft_tensor *logits)
{
    const weft_lengths sizes = { .n = of->n, .len = of->size };
    return weft_ctc(logits, weft_ragged_ints(n->w, of->label, &sizes), NULL);
}

/* Trains and returns the mean loss of a text in the last update. */
static double train(const net *n, int updates)
{
    static texts some;
    double loss = 0;
    for (int u = 0; u < updates; u++) {
        make_texts(&some, BATCH);
        weft_tensor *mean = weft_mean_loss(loss_of(n, &some, logits_of(n, &some)));
        weft_backward(mean);
        weft_optim_step(n->adam);
        weft_read(mean, &loss, sizeof loss);
        weft_clear(n->w);
    }
    lesson_ok(n->w);
    return loss;
}

/* Reads texts: log [steps, classes], the logarithms of the probabilities. Returns
 * weft's sum of the losses. */
static double read_texts(const net *n, const texts *of, double *log)
{
    double sum;
    weft_tensor *logits = logits_of(n, of), *logs = weft_log_softmax(logits, 1, NULL);
    weft_read_sequences(logs, log, (size_t)(of->steps * CLASSES) * sizeof *log);
    weft_read(loss_of(n, of, logits).sum, &sum, sizeof sum);
    weft_clear(n->w);
    return sum;
}

static void greedy(int steps, const double *log, int *path)
{
    for (int t = 0; t < steps; t++)
        for (int k = path[t] = 0; k < CLASSES; k++)
            if (log[t * CLASSES + k] > log[t * CLASSES + path[t]])
                path[t] = k;
}

static texts tests;
static double logs[TESTS * LONGEST * CLASSES];

/* Prints how many texts are right, and whether weft's loss is the student's. */
static void judge(const net *n, int update, double loss)
{
    int right = 0, path[LONGEST], out[LONGEST];
    double sum = read_texts(n, &tests, logs), own = 0;
    for (int k = 0, row = 0, label = 0; k < tests.n;
         row += tests.len[k], label += tests.size[k++]) {
        greedy(tests.len[k], logs + row * CLASSES, path);
        right += collapse(tests.len[k], path, out) == tests.size[k] &&
                 same_ints(out, tests.label + label, tests.size[k]);
        own -= log_probability(tests.len[k], CLASSES, logs + row * CLASSES,
                               tests.size[k], tests.label + label);
    }
    printf("%6d  %9s  %5d   %s\n", update, update ? digits(loss) : "", right,
           fabs(own - sum) < 1e-9 * fabs(sum) ? "the same" : "not the same");
}

static void print_path(const char *name, const int32_t *path, int steps)
{
    printf("%-10s", name);
    for (int t = 0; t < steps; t++)
        putchar(names[path[t]]);
    putchar('\n');
}

static net trained(bool says)
{
    double loss = 0;
    net n = net_open();
    dice_seed(14);
    make_texts(&tests, TESTS);
    for (int update = 0; update <= UPDATES; update += EVERY) {
        loss = update ? train(&n, EVERY) : 0;
        if (says)
            judge(&n, update, loss);
    }
    return n;
}

void show(void)
{
    int path[LONGEST] = { 0 };
    show_paths();
    printf("\nupdate  loss/text  right   by hand and by weft\n");
    net n = trained(true);
    printf("\none text\n");
    greedy(tests.len[0], logs, path);
    print_path("heard", tests.heard, tests.len[0]);
    print_path("greedy", path, tests.len[0]);
    double p = best_path(tests.len[0], CLASSES, logs, tests.size[0], tests.label, path);
    print_path("best", path, tests.len[0]);
    print_path("labels", tests.label, tests.size[0]);
    printf(
        "the best path has %.0f %% of the probability of all paths of these labels\n",
        100 * exp(p - log_probability(tests.len[0], CLASSES, logs, tests.size[0],
                                      tests.label)));
    lesson_close(n.w);
}

weft_status draw(const char *path)
{
    double x[LONGEST], y[CLASSES][LONGEST];
    static const char *const name[] = { "blank", "a", "b", "c", "d" };
    weft_curve curves[CLASSES];
    net n = trained(false);
    read_texts(&n, &tests, logs);
    for (int k = 0; k < CLASSES; k++) {
        for (int t = 0; t < tests.len[0]; t++) {
            x[t] = t + 1;
            y[k][t] = round(1e3 * exp(logs[t * CLASSES + k])) / 1e3;
        }
        curves[k] =
            (weft_curve){ .name = name[k], .n = tests.len[0], .x = x, .y = y[k] };
    }
    const weft_chart chart = {
        .x_label = "step", .left = "probability", .curves = curves, .n = CLASSES
    };
    weft_status status = weft_plot_lines(
        path, "A network trained with CTC, reading one text", &chart, 1, 0);
    lesson_close(n.w);
    return status;
}
