/* Lesson 10: trains a network that writes digits backwards, with and without its own
 * mistakes as input, and prints where it looks. */
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

/* ---- the network ---- */
network network_open(unsigned seed)
{
    network n = { .w = lesson_open(seed) };
    n.m = weft_module_new(n.w, "net");
    n.embed = weft_embedding_new(
        n.m, "embed", &(weft_embedding_opts){ .rows = CLASSES, .columns = EMBED });
    n.reads = weft_lstm_new(
        n.m, "reads",
        &(weft_rnn_opts){ .input = EMBED, .hidden = HIDDEN, .bidirectional = true });
    n.writes = weft_lstm_new(n.m, "writes",
                             &(weft_rnn_opts){ .input = EMBED, .hidden = HIDDEN });
    n.looks = weft_attention_new(
        n.m, "looks",
        &(weft_attention_layer_opts){
            .kind = WEFT_ADDITIVE, .dq = HIDDEN, .dm = 2 * HIDDEN, .width = WIDTH });
    n.says = weft_linear_new(n.m, "says",
                             &(weft_linear_opts){ .in = 3 * HIDDEN, .out = CLASSES });
    return n;
}

static weft_tensor *read_digits(network *n, const int32_t *digits,
                                const weft_lengths *lengths)
{
    weft_tensor *x =
        weft_embedding_run(n->embed, weft_ragged_ints(n->w, digits, lengths));
    return weft_rnn_run(n->reads, x, WEFT_ZERO_STATE).y;
}

/* Returns the scores of the next token, from the writer's output y and its context. */
static weft_tensor *say(network *n, weft_tensor *y, weft_tensor *memory,
                        weft_tensor **map)
{
    weft_tensor *seen = weft_attention_run(n->looks, y, memory, WEFT_ALL_KEYS, map);
    return weft_linear_run(n->says, weft_concat(WEFT_LIST(y, seen), 1));
}

/* ---- training, with teacher forcing ---- */
typedef struct {
    int32_t src[BATCH * MOST], in[BATCH * (MOST + 1)], out[BATCH * (MOST + 1)],
        len[BATCH], next_len[BATCH];
} examples;

static void examples_fill(examples *e)
{
    int32_t *src = e->src, *in = e->in, *out = e->out;
    for (int i = 0; i < BATCH; i++) {
        int n = e->len[i] = 1 + dice_below(MOST);
        e->next_len[i] = n + 1;
        for (int t = 0; t < n; t++)
            src[t] = DIGIT0 + dice_below(10);
        in[0] = BEGIN, out[n] = END;
        for (int t = 0; t < n; t++)
            in[t + 1] = out[t] = src[n - 1 - t];
        src += n, in += n + 1, out += n + 1;
    }
}

static void train(network *n, weft_optim *adam, int updates, double rate)
{
    weft_optim_set_lr(adam, rate);
    dice_seed(10 + (unsigned)weft_optim_steps(adam));
    for (int k = 0; k < updates; k++) {
        examples e;
        examples_fill(&e);
        weft_lengths src = { .n = BATCH, .len = e.len },
                     next = { .n = BATCH, .len = e.next_len };
        weft_tensor *memory = read_digits(n, e.src, &src);
        weft_tensor *x =
            weft_embedding_run(n->embed, weft_ragged_ints(n->w, e.in, &next));
        weft_tensor *scores =
            say(n, weft_rnn_run(n->writes, x, WEFT_ZERO_STATE).y, memory, NULL);
        weft_tensor *loss = weft_mean_loss(
            weft_cross_entropy(scores, weft_ragged_ints(n->w, e.out, &next), NULL));
        weft_backward(loss);
        weft_clip_grad_norm(n->m, 1, 0);
        weft_optim_step(adam);
        weft_clear(n->w);
    }
    lesson_ok(n->w);
}

/* ---- one step at a time ---- */
static const double *step(decoder *d, int token)
{
    reading *r = d->given;
    int32_t id = token;
    WEFT_NO_GRAD(r->net->w)
    {
        weft_tensor *x =
            weft_embedding_run(r->net->embed, weft_ints(r->net->w, &id, WEFT_SHAPE(1)));
        weft_rnn_out out = weft_rnn_step(r->net->writes, x, r->state);
        r->state = out.last;
        weft_read(say(r->net, out.y, r->memory, NULL), r->scores, sizeof r->scores);
    }
    return r->scores;
}
static double coin(decoder *d) { return (void)d, (dice() + 1) / 2; }

void reading_begin(reading *r, network *net, const int32_t *digits, int n)
{
    int32_t len = n;
    *r = (reading){ .d = { CLASSES, step, coin, r }, .net = net };
    weft_tensor *zero = weft_zeros(net->w, WEFT_SHAPE(1, 1, HIDDEN));
    r->state = (weft_state){ zero, zero };
    WEFT_NO_GRAD(net->w)
    r->memory = read_digits(net, digits, &(weft_lengths){ .n = 1, .len = &len });
}

static weft_tensor *weft_step(weft_decode_rows *rows, void *user)
{
    reading *r = user;
    weft_tensor *x = weft_embedding_run(r->net->embed, rows->tokens);
    weft_rnn_out out = weft_rnn_step(r->net->writes, x, rows->state);
    rows->state = out.last;
    return say(r->net, out.y, r->memory, NULL);
}

int by_weft(network *net, const int32_t *digits, int n, int limit, int *out)
{
    reading r;
    reading_begin(&r, net, digits, n);
    weft_decode_opts how = { .begin = BEGIN, .end = END, .limit = limit };
    weft_decoded said = weft_decode(net->w, 1, r.state, weft_step, &r, &how);
    lesson_ok(net->w);
    int written = said.len[0];
    for (int k = 0; k < written; k++)
        out[k] = said.tokens[k];
    weft_decoded_free(&said);
    return written;
}

/* ---- where it looks ---- */
void additive_scores(const weft_module *m, const char *name, int tokens,
                     const double *query, const double *memory, double *score)
{
    static const char *const names[] = { "query_weight", "memory_weight", "bias",
                                         "score" };
    double *value[4];
    int64_t extent[4];
    for (int k = 0; k < 4; k++) {
        char path[80];
        snprintf(path, sizeof path, "%s.%s", name, names[k]);
        weft_tensor *p = weft_find_parameter(m, path);
        extent[k] = weft_size(p, -1);
        value[k] = malloc((size_t)weft_numel(p) * sizeof **value);
        weft_read(p, value[k], (size_t)weft_numel(p) * sizeof **value);
    }
    for (int t = 0; t < tokens; t++) {
        score[t] = 0;
        for (int64_t j = 0; j < extent[3]; j++) {
            double sum = value[2][j];
            for (int64_t i = 0; i < extent[0]; i++)
                sum += value[0][j * extent[0] + i] * query[i];
            for (int64_t i = 0; i < extent[1]; i++)
                sum += value[1][j * extent[1] + i] * memory[t * extent[1] + i];
            score[t] += value[3][j] * tanh(sum);
        }
    }
    for (int k = 0; k < 4; k++)
        free(value[k]);
}

enum { SHOWN = 6, ROWS = SHOWN + 1, WIDE = 2 * HIDDEN };
static const int32_t shown[SHOWN] = { DIGIT0 + 3, DIGIT0 + 1, DIGIT0 + 4,
                                      DIGIT0 + 1, DIGIT0 + 5, DIGIT0 + 9 };

/* Computes the weights [ROWS, SHOWN] with the student's attend and with weft. Returns
 * whether weights and contexts agree. */
static bool look(network *n, double *weight, double *of_weft)
{
    int32_t in[ROWS] = { BEGIN }, len = SHOWN, rows = ROWS;
    double query[ROWS * HIDDEN], memory[ROWS * SHOWN * WIDE], score[ROWS * SHOWN];
    double context[ROWS * WIDE], same[ROWS * WIDE];
    int lens[ROWS];
    for (int t = 0; t < SHOWN; t++)
        in[t + 1] = shown[SHOWN - 1 - t];
    weft_lengths src = { .n = 1, .len = &len }, dst = { .n = 1, .len = &rows };
    weft_tensor *m = read_digits(n, shown, &src), *map;
    weft_tensor *x = weft_embedding_run(n->embed, weft_ragged_ints(n->w, in, &dst));
    weft_tensor *q = weft_rnn_run(n->writes, x, WEFT_ZERO_STATE).y;
    weft_tensor *seen = weft_attention_run(n->looks, q, m, WEFT_ALL_KEYS, &map);
    weft_read_sequences(q, query, sizeof query);
    weft_read_sequences(map, of_weft, ROWS * SHOWN * sizeof *of_weft);
    weft_read_sequences(seen, same, sizeof same);
    for (int k = 0; k < ROWS; k++) {
        lens[k] = SHOWN;
        weft_read_sequences(m, memory + k * SHOWN * WIDE,
                            SHOWN * WIDE * sizeof *memory);
        additive_scores(n->m, "looks", SHOWN, query + k * HIDDEN, memory,
                        score + k * SHOWN);
    }
    attend(ROWS, lens, score, WIDE, memory, weight, context);
    weft_clear(n->w);
    return near(context, same, ROWS * WIDE, 1e-9) &&
           near(weight, of_weft, ROWS * SHOWN, 1e-9);
}

static double hundredths(double x) { return round(100 * x) / 100; }

static void show_looks(network *n)
{
    double weight[ROWS * SHOWN], of_weft[ROWS * SHOWN];
    bool same = look(n, weight, of_weft);
    printf("where it looks while it writes 3 1 4 1 5 9 backwards\nwrites ");
    for (int t = 0; t < SHOWN; t++)
        printf("%6d", shown[t] - DIGIT0);
    for (int k = 0; k < ROWS; k++) {
        printf("\n%6c ", k < SHOWN ? '0' + shown[SHOWN - 1 - k] - DIGIT0 : '.');
        for (int t = 0; t < SHOWN; t++)
            printf("%6.2f", hundredths(weight[k * SHOWN + t]));
    }
    printf("\nby hand and by weft: %s\n", same ? "the same" : "not the same");
}

/* ---- teacher forcing, and free running ---- */
enum { TESTS = 200 };
static const double shares[] = { 1, .5, 0 };
static const char *const told[] = { "gold", "gold or its own", "its own tokens" };

/* Counts in right [MOST + 1] the right digits of TESTS at each place, and the tests
 * without a mistake. Returns the number of tests in which weft_decode writes the same
 * tokens, if share is 0. */
static int test(network *n, double share, int *right)
{
    int32_t digits[TESTS][MOST];
    int as_weft = 0;
    memset(right, 0, (MOST + 1) * sizeof *right);
    dice_seed(11);
    for (int k = 0; k < TESTS * MOST; k++)
        digits[k / MOST][k % MOST] = DIGIT0 + dice_below(10);
    for (int i = 0; i < TESTS; i++) {
        int gold[MOST], out[MOST], same[MOST], all = 0;
        reading r;
        for (int t = 0; t < MOST; t++)
            gold[MOST - 1 - t] = digits[i][t];
        reading_begin(&r, n, digits[i], MOST);
        int written = decode(&r.d, gold, share, MOST, out);
        for (int t = 0; t < written; t++)
            right[t] += out[t] == gold[t], all += out[t] == gold[t];
        right[MOST] += all == MOST;
        int by = share ? -1 : by_weft(n, digits[i], MOST, MOST, same);
        as_weft += by == written && !memcmp(out, same, (size_t)written * sizeof *out);
        weft_clear(n->w);
    }
    return as_weft;
}

static void show_test(network *n, int updates)
{
    int right[MOST + 1], as_weft = 0;
    for (int k = 0; k < 3; k++) {
        as_weft = test(n, shares[k], right);
        printf("%7d  %-16s ", updates, told[k]);
        for (int t = 0; t <= MOST; t++)
            printf("%5d", right[t]);
        printf("\n");
    }
    printf("         its own tokens are those of weft_decode: %d of %d\n", as_weft,
           TESTS);
}

/* Few updates, and the later ones small. Otherwise differences in last bits between
 * processors would grow until they show. */
static const struct {
    int updates;
    double rate;
} more[] = { { 0, 1e-2 }, { 150, 1e-2 }, { 150, 1e-3 } };

/* The network after each part of its training, which is the same for all answers. */
static network remembered[3];
void remember(void)
{
    for (int k = 0; k < 3; k++) {
        network n = network_open(10);
        weft_optim *adam = weft_adam_new(n.m, NULL);
        for (int j = 0; j <= k; j++)
            train(&n, adam, more[j].updates, more[j].rate);
        remembered[k] = n;
    }
}

void show(void)
{
    network n = network_open(10);
    weft_optim *adam = weft_adam_new(n.m, NULL);
    printf("%d times 8 digits: how often the first, second .. written digit is right\n",
           TESTS);
    printf("updates  each step reads    ");
    for (int t = 1; t <= MOST; t++)
        printf("%3d  ", t);
    printf("all\n");
    for (int k = 0, sum = 0; k < 3; k++) {
        if (remembered[k].w)
            n = remembered[k];
        else
            train(&n, adam, more[k].updates, more[k].rate);
        show_test(&n, sum += more[k].updates);
    }
    printf("\n");
    show_looks(&n);
    lesson_close(n.w);
}

weft_status draw(const char *path)
{
    static const char *const columns[SHOWN] = { "3", "1", "4", "1", "5", "9" };
    static const char *const rows[ROWS] = { "9", "5", "1", "4", "1", "3", "end" };
    double weight[ROWS * SHOWN], of_weft[ROWS * SHOWN];
    network n = network_open(10);
    weft_optim *adam = weft_adam_new(n.m, NULL);
    for (int k = 0; k < 3; k++)
        train(&n, adam, more[k].updates, more[k].rate);
    look(&n, weight, of_weft);
    lesson_close(n.w);
    for (int k = 0; k < ROWS * SHOWN; k++)
        weight[k] = hundredths(weight[k]);
    return weft_plot_heatmap(
        path, "The weight of each digit above, for each digit on the left", ROWS, SHOWN,
        weight, rows, columns, NULL);
}
