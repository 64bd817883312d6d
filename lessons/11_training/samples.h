/* samples.h - lesson 11: trains a model of characters on a hundred lines, such as "two
 * and three are five", with the student's update and forget_bias, and prints samples.
 * Included by show.c. */
#ifndef WEFT_LESSON_11_SAMPLES
#define WEFT_LESSON_11_SAMPLES
#include "weft_op.h"
#include "given.h"

enum { END, BLANK, LETTER_A, CHARACTERS = LETTER_A + 26 };
enum { LINE = 40, LINES = 16, CELLS = 48, SAMPLES = 50 };
static const char *const number[] = {
    "nought",   "one",     "two",     "three",     "four",     "five",   "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
};

typedef struct {
    weft_module *all;
    weft_embedding *embed;
    weft_rnn *rnn;
    weft_linear *out;
    weft_optim *optim;
} writer;

static writer writer_new(weft *w, known *k, bool *same)
{
    weft_module *m = weft_module_new(w, "writer");
    writer n = { .all = m };
    n.embed = weft_embedding_new(
        m, "embed", &(weft_embedding_opts){ .rows = CHARACTERS, .columns = 16 });
    n.rnn = weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 16, .hidden = CELLS });
    n.out = weft_linear_new(m, "out",
                            &(weft_linear_opts){ .in = CELLS, .out = CHARACTERS });
    n.optim = weft_adam_new(m, &(weft_adam_opts){ .lr = .01 });
    *same = set_bias(weft_rnn_module(n.rnn), CELLS, 1, k);
    return n;
}

/* Computes the loss of LINES random lines. Each is a sequence: in begins with END, and
 * next ends with it. */
static weft_tensor *lines_loss(weft *w, const writer *n)
{
    int32_t in[LINES * LINE], next[LINES * LINE], len[LINES];
    int at = 0;
    for (int s = 0; s < LINES; s++) {
        char line[LINE];
        int a = dice_below(10), b = dice_below(10);
        len[s] = snprintf(line, sizeof line, "%s and %s are %s", number[a], number[b],
                          number[a + b]) +
                 1;
        for (int t = 0, last = END; t < len[s]; t++, at++) {
            in[at] = last;
            last = next[at] = !line[t]       ? END :
                              line[t] == ' ' ? BLANK :
                                               LETTER_A + line[t] - 'a';
        }
    }
    const weft_lengths lengths = { .n = LINES, .len = len };
    weft_tensor *x = weft_embedding_run(n->embed, weft_ragged_ints(w, in, &lengths));
    weft_tensor *y =
        weft_linear_run(n->out, weft_rnn_run(n->rnn, x, WEFT_ZERO_STATE).y);
    return weft_mean_loss(
        weft_cross_entropy(y, weft_ragged_ints(w, next, &lengths), NULL));
}

static weft_tensor *scores(weft_decode_rows *rows, void *user)
{
    const writer *n = user;
    weft_tensor *x = weft_embedding_run(n->embed, rows->tokens);
    weft_rnn_out o = weft_rnn_step(n->rnn, x, rows->state);
    rows->state = o.last;
    return weft_linear_run(n->out, o.y);
}

/* Returns 1 for a line of the right form, 2 if it is also true, otherwise 0. */
static int worth(const char *line)
{
    char right[LINE];
    for (int k = 0; k < 10 * 10 * 19; k++) {
        int a = k % 10, b = k / 10 % 10, c = k / 100;
        snprintf(right, sizeof right, "%s and %s are %s", number[a], number[b],
                 number[c]);
        if (!strcmp(line, right))
            return 1 + (a + b == c);
    }
    return 0;
}

static void show_lines(weft *w, writer *n, int updates, double temperature)
{
    weft_tensor *zeros = weft_zeros(w, WEFT_SHAPE(1, SAMPLES, CELLS));
    const weft_decode_opts o = { .has_begin = true,
                                 .has_end = true,
                                 .limit = LINE - 1,
                                 .sample = true,
                                 .temperature = temperature };
    weft_decoded d =
        weft_decode(w, SAMPLES, (weft_state){ zeros, zeros }, scores, n, &o);
    char line[SAMPLES][LINE] = { "" };
    int of_form = 0, right = 0;
    for (int s = 0; s < d.n; s++) {
        for (int t = 0; t < d.len[s]; t++) {
            int k = d.tokens[s * d.limit + t];
            line[s][t] = k < LETTER_A ? ' ' : (char)('a' + k - LETTER_A);
        }
        of_form += worth(line[s]) > 0, right += worth(line[s]) == 2;
    }
    printf(
        "after %4d updates, temperature %s: %2d of %d have the form, %2d are right\n",
        updates, digits(temperature), of_form, SAMPLES, right);
    for (int s = 0; s < 3 && s < d.n; s++)
        printf("    %s\n", line[s]);
    weft_decoded_free(&d);
}

static known samples;
static char *samples_text;

void show_samples(void)
{
    weft *w = lesson_open(1);
    bool same;
    writer n = writer_new(w, &samples, &same);
    if (same && is_known(&samples, 1)) {
        fputs(samples_text, stdout);
        lesson_close(w);
        return;
    }
    puts("\na model of characters");
    dice_seed(7);
    for (int u = 0; u <= 400; u++) { /* later samples differ between processors */
        if (u == 0 || u == 20 || u == 50 || u == 100 || u == 200 || u == 400)
            show_lines(w, &n, u, 1);
        if (u == 400)
            show_lines(w, &n, u, .3);
        updated(n.all, n.optim, lines_loss(w, &n), 1);
        weft_clear(w);
    }
    lesson_close(w);
}

static void remember_samples(void)
{
    size_t bytes;
    FILE *output = stdout;
    stdout = open_memstream(&samples_text, &bytes);
    being_made = &samples;
    show_samples();
    fclose(stdout);
    stdout = output, samples.done = true;
}
#endif
