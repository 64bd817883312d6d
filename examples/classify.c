/* classify.c - classifies time series of different lengths by three networks, beside nearest neighbours.
 *
 *     classify [OPTION].. FOLDER NAME..
 *
 * FOLDER/NAME/NAME_TRAIN.ts and NAME_TEST.ts hold a data set of the archives UCR and UEA, as in the Python
 * package aeon. Each network is trained with several seeds. 1-NN takes the label of the training series with
 * the smallest distance of dynamic time warping (Sakoe & Chiba 1978, without a window), as aeon's
 * KNeighborsTimeSeriesClassifier does. The last columns are accuracies that aeon ships (--published). */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_lab.h"
#include "weft_sequence.h"
#include "common/options.h"
#include "common/program.h"
#include "common/series.h"

const char program[] = "classify";

typedef struct {
    struct { int64_t hidden, updates, batch; double lr, dropout, decay; } set;
    int64_t seeds, threads;
    const char *published;
} options;
static const option all_options[] = {
    SETTING("hidden", WHOLE, hidden, 64, 1, 4096, "units of a layer, in each direction"),
    SETTING("updates", WHOLE, updates, 1000, 1, 1e6, "updates of a training"),
    SETTING("batch", WHOLE, batch, 16, 1, 4096, "series of an update"),
    SETTING("lr", REAL, lr, 3e-3, 0, 10, "learning rate; falls to 0 on a cosine"),
    SETTING("dropout", REAL, dropout, 0.3, 0, 0.95, "probability of dropout"),
    SETTING("decay", REAL, decay, 1e-2, 0, 10, "weight decay (AdamW)"),
    OTHER("seeds", WHOLE, seeds, 5, 1, 100, "trainings of each network"),
    OTHER("threads", WHOLE, threads, 0, 0, 1024, "threads; 0: all cores"),
    OTHER("published", TEXT, published, 0, 0, 0, "folder with InceptionTime_accuracy.csv, HC2_accuracy.csv"),
};
static const option_table table = { "usage: classify [OPTION].. FOLDER NAME..\n", all_options,
                                    sizeof all_options / sizeof *all_options, 6 };

/* ---- nearest neighbour ---- */
/* Returns the DTW distance of two series, or a number of at least `most` if it is not smaller. */
static double dtw(const weft_dataset *a, int64_t i, const weft_dataset *b, int64_t k, double most,
                  double *row)
{
    const weft_real *x = a->rows + a->offset[i] * a->columns, *y = b->rows + b->offset[k] * b->columns;
    int64_t n = a->len[i], m = b->len[k], c = a->columns;
    for (int64_t t = 0; t < m; t++)
        row[t] = DBL_MAX;
    for (int64_t s = 0; s < n; s++) {
        double diagonal = s ? DBL_MAX : 0, left = DBL_MAX, least = DBL_MAX;
        for (int64_t t = 0; t < m; t++) {
            double before = fmin(fmin(row[t], left), diagonal), far = 0;
            for (int64_t j = 0; j < c; j++)
                far += pow(x[s * c + j] - y[t * c + j], 2);
            diagonal = row[t];
            row[t] = left = before + far;
            least = fmin(least, left);
        }
        if (least >= most)
            return least;
    }
    return row[m - 1];
}

/* Returns the accuracy of the nearest neighbour. */
static double judge_neighbours(const problem *p)
{
    const weft_dataset *a = &p->test.series, *b = &p->train.series;
    double *row = memory((size_t)b->offset[b->n], sizeof *row);
    int64_t right = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double best = DBL_MAX;
        int64_t nearest = 0;
        for (int64_t k = 0; k < b->n; k++) {
            double d = dtw(a, i, b, k, best, row);
            nearest = d < best ? k : nearest;
            best = fmin(best, d);
        }
        right += p->test.label[i] == p->train.label[nearest];
    }
    free(row);
    return (double)right / (double)a->n;
}

/* ---- networks ---- */
/* Gives each channel mean 0 and deviation 1 in the training series. */
static void standardise(problem *p)
{
    const weft_dataset *d = &p->train.series;
    for (int64_t c = 0; c < d->columns; c++) {
        double n = (double)d->offset[d->n], sum = 0, squares = 0;
        for (const weft_real *x = d->rows + c; x < d->rows + d->offset[d->n] * d->columns; x += d->columns) {
            sum += *x;
            squares += pow(*x, 2);
        }
        double mean = sum / n, deviation = sqrt(fmax(squares / n - mean * mean, DBL_MIN));
        for (int k = 0; k < 2; k++) {
            weft_dataset *both = k ? &p->test.series : &p->train.series;
            for (int64_t t = 0; t < both->offset[both->n]; t++) {
                weft_real *x = both->rows + t * d->columns + c;
                *x = (weft_real)((*x - mean) / deviation);
            }
        }
    }
}

/* Each network gives 2 hidden numbers for each token: two layers of both directions, or the convolutions of
 * Wang et al. 2017 (FCN) with layer norms instead of batch norms. */
typedef enum { LSTM, MINGRU, CONV, NETWORKS } network;
static const char *const network_name[] = { "LSTM", "minGRU", "conv" };
enum { CONVS = 3 };
typedef struct {
    weft *w;
    weft_module *all;
    weft_rnn *rnn;                               /* NULL: convolutions */
    weft_conv *conv[CONVS];
    weft_norm_layer *norm[CONVS];
    weft_dropout_layer *drop;
    weft_linear *out;
} net;

static net net_new(weft *w, network kind, const problem *p, const options *o)
{
    static const int64_t width[CONVS] = { 8, 5, 3 };
    const int64_t in = p->train.series.columns, h = o->set.hidden;
    const double drop = o->set.dropout;
    net m = { .w = w, .all = weft_module_new(w, "classify") };
    weft_linear_rnn_opts light = { WEFT_MINGRU, in, h, .layers = 2, .bidirectional = true, .dropout = drop };
    weft_rnn_opts full = { in, h, .layers = 2, .bidirectional = true, .dropout = drop };
    m.rnn = kind == LSTM   ? weft_lstm_new(m.all, "rnn", &full) :
            kind == MINGRU ? weft_linear_rnn_new(m.all, "rnn", &light) :
                             NULL;
    for (int i = 0; kind == CONV && i < CONVS; i++) {
        const weft_conv_opts conv = { .in = i ? 2 * h : in, .out = 2 * h, .width = width[i] };
        const char *const name[][CONVS] = { { "conv0", "conv1", "conv2" }, { "norm0", "norm1", "norm2" } };
        m.conv[i] = weft_conv_new(m.all, name[0][i], &conv);
        m.norm[i] = weft_layer_norm_new(m.all, name[1][i], &(weft_layer_norm_opts){ .width = 2 * h });
    }
    m.drop = weft_dropout_new(m.all, "drop", &(weft_dropout_opts){ .p = drop });
    m.out = weft_linear_new(m.all, "out", &(weft_linear_opts){ .in = 4 * h, .out = p->classes });
    return m;
}

/* Returns logits [n, classes] of the series index[0 .. n - 1]: from the mean and the largest of each unit. */
static weft_tensor *logits(const net *m, const weft_dataset *series, const int32_t *index, int64_t n)
{
    weft_tensor *y = weft_dataset_batch(m->w, series, index, n);
    if (m->rnn)
        y = weft_rnn_run(m->rnn, y, WEFT_ZERO_STATE).y;
    for (int i = 0; !m->rnn && i < CONVS; i++)
        y = weft_relu(weft_layer_norm_run(m->norm[i], weft_conv_run(m->conv[i], y)));
    y = weft_concat(WEFT_LIST(weft_pool(y, WEFT_POOL_MEAN), weft_pool(y, WEFT_POOL_MAX)), 1);
    return weft_linear_run(m->out, weft_dropout_run(m->drop, y));
}

static weft_tensor *labels(const net *m, const part *of, const int32_t *index, int64_t n)
{
    int32_t *right = memory((size_t)n, sizeof *right);
    for (int64_t i = 0; i < n; i++)
        right[i] = of->label[index[i]];
    weft_tensor *t = weft_ints(m->w, right, WEFT_SHAPE(n));
    free(right);
    return t;
}

static void train(const net *m, const part *data, const options *o)
{
    const weft_loader_opts batches = { .count = o->set.batch, .pool = 1 };
    weft_loader *loader = weft_loader_new(m->w, "train", data->series.n, data->series.len, &batches);
    weft_optim *adam = weft_adamw_new(m->all, &(weft_adam_opts){ .weight_decay = o->set.decay });
    int64_t n, updates = o->set.updates;
    for (int64_t step = 0; step < updates && weft_ok(m->w);) {
        const int32_t *index = weft_loader_next(loader, &n);
        if (!index)
            continue;
        weft_tensor *guess = logits(m, &data->series, index, n);
        weft_backward(weft_mean_loss(weft_cross_entropy(guess, labels(m, data, index, n), NULL)));
        weft_clip_grad_norm(m->all, 1, 0);
        weft_optim_set_lr(adam, weft_cosine_schedule(step++, updates, o->set.lr, updates / 20, 0));
        weft_optim_step(adam);
        weft_clear(m->w);
    }
}

static double judge(const net *m, const part *data)
{
    double right = 0;
    int64_t n = data->series.n;
    int32_t *all = memory((size_t)n, sizeof *all);
    for (int64_t i = 0; i < n; i++)
        all[i] = (int32_t)i;
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_tensor *guess = logits(m, &data->series, all, n);
        right = weft_item(weft_accuracy(guess, labels(m, data, all, n), NULL).right);
    }
    free(all);
    return right / (double)n;
}

/* Prints the mean and the deviation of the accuracy over seeds, in percent. */
static void run_network(network kind, const problem *p, const options *o)
{
    double sum = 0, squares = 0, n = (double)o->seeds;
    for (int64_t seed = 1; seed <= o->seeds; seed++) {
        weft *w = open_context(WEFT_CPU, seed, o->threads);
        net m = net_new(w, kind, p, o);
        train(&m, &p->train, o);
        double accuracy = judge(&m, &p->test);
        check_context(w, "%s, seed %lld", network_name[kind], (long long)seed);
        weft_close(w);
        sum += 100 * accuracy;
        squares += pow(100 * accuracy, 2);
    }
    printf("  %5.1f ±%4.1f", sum / n, n > 1 ? sqrt(fmax(squares - sum * sum / n, 0) / (n - 1)) : 0);
    fflush(stdout);
}

/* ---- the table ---- */
/* Prints the published accuracy of a method with the archive's own division, column 0 of its file. */
static void print_published(const char *folder, const char *method, const char *name)
{
    char text[64], *line = NULL;
    size_t room = 0, n = strlen(name);
    snprintf(text, sizeof text, "%s_accuracy.csv", method);
    const char *path = folder ? path_in(folder, text) : "/dev/null";
    FILE *in = fopen(path, "r");
    if (!in)
        quit(1, "%s: %s", path, strerror(errno));
    snprintf(text, sizeof text, "-");
    while (getline(&line, &room, in) >= 0)
        if (!strncmp(line, name, n) && line[n] == ',')
            snprintf(text, sizeof text, "%.1f", 100 * strtod(line + n + 1, NULL));
    free(line);
    fclose(in);
    printf("  %13s", text);
}

static void run_problem(const char *folder, const char *name, const options *o)
{
    problem p = read_problem(folder, name);
    int32_t least = INT32_MAX, most = 0;
    for (int64_t i = 0; i < p.train.series.n; i++) {
        least = p.train.series.len[i] < least ? p.train.series.len[i] : least;
        most = p.train.series.len[i] > most ? p.train.series.len[i] : most;
    }
    printf("%-20s %5lld %5lld  %4d..%-4d %3lld %3d", name, (long long)p.train.series.n,
           (long long)p.test.series.n, (int)least, (int)most, (long long)p.train.series.columns,
           (int)p.classes);
    fflush(stdout);
    double nearest = 100 * judge_neighbours(&p);
    standardise(&p);
    for (network k = 0; k < NETWORKS; k++)
        run_network(k, &p, o);
    printf("  %6.1f", nearest);
    print_published(o->published, "InceptionTime", name);
    print_published(o->published, "HC2", name);
    putchar('\n');
}

int main(int argc, char **argv)
{
    options o = { 0 };
    options_preset(&table, &o);
    int rest = options_read(&table, &o, NULL, argc, argv);
    if (argc - rest < 2)
        quit(2, "found %d arguments; expected FOLDER NAME..; see classify --help", argc - rest);
    printf("%-20s %5s %5s  %10s %3s %3s", "accuracy, %", "train", "test", "length", "in", "of");
    for (network k = 0; k < NETWORKS; k++)
        printf("  %11s", network_name[k]);
    printf("  %6s  %13s  %13s\n", "1-NN", "InceptionTime", "HC2");
    for (int i = rest + 1; i < argc; i++)
        run_problem(argv[rest], argv[i], &o);
    return 0;
}
