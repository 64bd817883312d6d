/* slow_pack.c - is packing slow? An embedding, an LSTM, a linear layer, summed over time, on batches that are
 * padded and masked, or packed for the LSTM and unpacked behind it: forward, and forward with backward, over
 * the length of the sequences.
 *
 *     slow_pack [--out FOLDER] [--quick] [--runs N] [--threads N] [--batch N]
 *               [--device cpu|cuda|best] [--peer SCRIPT]
 *
 * Setup A has sequences of one length, where packing can win nothing; setup B those of T, T - 1, .. 1, where
 * half of the padded batch is pads. Users of PyTorch ask this (its issue 149194), whose backward through a
 * packed LSTM and pad_packed_sequence grows with the square of T. Where a Python with torch is found
 * (WEFT_PYTHON, otherwise python3) it does the same work, run by run in turns with weft, and is drawn too. A
 * table on stdout, slow_pack.jsonl and slow_pack.svg in FOLDER. The exit status is 1 if losses or gradients
 * do not agree. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/options.h"
#include "common/pictures.h"
#include "common/program.h"

const char program[] = "slow_pack";

enum { EMBED = 16, HIDDEN = 32, WORDS = 10, LONGEST = 512, LENGTHS = 5, MOST_RUNS = 99 };
enum { WEFT_PADDED_, WEFT_PACKED_, PEER_PADDED, PEER_PACKED, WAYS };             /* the curves */
static const char *const way_names[WAYS] = { "weft, padded", "weft, packed", "PyTorch, padded",
                                             "PyTorch, packed" };
static const char *const pass_names[] = { "forward", "forward + backward" };

typedef struct {
    int64_t runs, threads, batch;
    bool quick;
    weft_device device;
    const char *out, *peer;
} options;
static const option all_options[] = {
    OTHER("runs", WHOLE, runs, 0, 1, MOST_RUNS),
    OTHER("threads", WHOLE, threads, 0, 1, 1024),
    OTHER("batch", WHOLE, batch, 512, 1, 65536),
    OTHER("quick", FLAG, quick, 0, 0, 0),
    OTHER("device", DEVICE, device, 0, 0, 0),
    OTHER("out", TEXT, out, 0, 0, 0),
    OTHER("peer", TEXT, peer, 0, 0, 0),
};
static const option_table option_list = {
    "slow_pack [--out FOLDER] [--quick] [--runs N] [--threads N] [--batch N] [--device cpu|cuda|best] "
    "[--peer SCRIPT]\n",
    all_options, sizeof all_options / sizeof *all_options, 0,
};

typedef struct {
    weft *w;
    weft_module *all;
    weft_embedding *embed;
    weft_rnn *lstm;
    weft_linear *linear;
    int64_t batch, T;
    weft_lengths lengths;
    int32_t *len, *ids, *classes;
} bench;
typedef struct { double ms, loss, norm; } run;                    /* ms NaN: it failed */
typedef struct {
    int n;
    double ms[MOST_RUNS];
    run last;
} times;

/* ---- PyTorch, in a process that does a run for each line that it reads (bench/peers/slow_pack.py) ---- */
typedef struct {
    FILE *to, *from;                             /* NULL: there is none */
    pid_t pid;
    char who[100];
} peer;

static void peer_end(peer *p)
{
    if (p->to)
        fclose(p->to);                           /* it ends when there is nothing more to read */
    if (p->from)
        fclose(p->from);
    if (p->pid > 0)
        waitpid(p->pid, NULL, 0);
    *p = (peer){ 0 };
}

static peer peer_start(const char *script, int threads, const char *device)
{
    char number[16], line[200], *python = getenv("WEFT_PYTHON");
    int end[2];
    peer p = { 0 };
    python = python && *python ? python : "python3";
    snprintf(number, sizeof number, "%d", threads);
    if (access(script, R_OK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end))
        return p;
    signal(SIGPIPE, SIG_IGN);                    /* what is read tells that it has died */
    p.pid = fork();
    if (p.pid == 0) {
        dup2(end[1], STDIN_FILENO);
        dup2(end[1], STDOUT_FILENO);
        execlp(python, python, script, "--threads", number, "--device", device, (char *)NULL);
        _exit(127);
    }
    close(end[1]);
    p.to = fdopen(dup(end[0]), "w");
    p.from = fdopen(end[0], "r");
    if (p.pid < 0 || !p.to || !p.from || !fgets(line, sizeof line, p.from) ||
        sscanf(line, "{\"who\": \"%99[^\"]", p.who) != 1)
        peer_end(&p);
    return p;
}

static run peer_run(peer *p, char setup, int64_t batch, int64_t T, bool packed, bool train)
{
    run r = { NAN, NAN, NAN };
    char line[400] = "";
    if (!p->to)
        return r;
    fprintf(p->to, "%c %lld %lld %s %s\n", setup, (long long)batch, (long long)T,
            packed ? "packed" : "padded", train ? "train" : "forward");
    if (fflush(p->to) || !fgets(line, sizeof line, p->from)) {
        fprintf(stderr, "slow_pack: %s does not answer any more\n", p->who);
        peer_end(p);
    } else if (sscanf(line, "{\"ms\": %lf, \"loss\": %lf, \"norm\": %lf}", &r.ms, &r.loss, &r.norm) != 3) {
        fprintf(stderr, "slow_pack: %s: %s", p->who, line);
        r.ms = NAN;
    }
    return r;
}

/* ---- the same numbers here and there ---- */
static double formula(const char *name, int64_t i)                /* in -1/2 .. 1/2 */
{
    uint64_t key = 0;
    for (; *name; name++)
        key = key * 31 + (unsigned char)*name;
    uint64_t x = ((uint64_t)i * 2654435761u + key % 65521 * 40503u) % (1u << 31);
    x = (1103515245 * x + 12345) % (1u << 31);
    return (double)(x >> 15) / 65536 - .5;
}

static void set_weights(bench *b)
{
    static weft_real v[4 * HIDDEN * HIDDEN];                      /* no parameter is larger */
    const char *path;
    for (int i = 0; i < weft_parameter_count(b->all); i++) {
        weft_tensor *p = weft_parameter_at(b->all, i, &path);
        for (int64_t k = 0; k < weft_numel(p); k++)
            v[k] = (weft_real)(2 / sqrt(HIDDEN) * formula(path, k));
        weft_assign_values(p, v, weft_numel(p));
    }
}

static void set_batch(bench *b, char setup, int64_t T)
{
    b->T = T;
    for (int64_t s = 0; s < b->batch; s++) {
        b->len[s] = (int32_t)(setup == 'A' ? T : T - s % T);
        b->classes[s] = (int32_t)(s % 2);
        for (int64_t t = 0; t < T; t++)
            b->ids[s * T + t] = t < b->len[s] ? 1 + (int32_t)((formula("ids", s * T + t) + .5) * 9) : 0;
    }
}

/* ---- the model ---- */
static void build(bench *b)
{
    b->all = weft_module_new(b->w, "slow_pack");
    b->embed = weft_embedding_new(
        b->all, "embedding", &(weft_embedding_opts){ .rows = WORDS, .columns = EMBED, .has_padding = true });
    b->lstm = weft_lstm_new(b->all, "lstm", &(weft_rnn_opts){ .input = EMBED, .hidden = HIDDEN });
    b->linear = weft_linear_new(b->all, "linear", &(weft_linear_opts){ .in = HIDDEN, .out = 2 });
    set_weights(b);
}

static weft_tensor *loss_of(const bench *b, bool packed)
{
    weft_tensor *x = weft_embedding_run(b->embed, weft_ints(b->w, b->ids, WEFT_SHAPE(b->batch, b->T)));
    if (packed) {
        x = weft_rnn_run(b->lstm, weft_pack_padded_sequence(x, &b->lengths, WEFT_ALIGN_LEFT), WEFT_ZERO_STATE)
                .y;
        x = weft_pad_packed_sequence(x, b->T, 0, WEFT_ALIGN_LEFT);
    } else {
        weft_tensor *mask = weft_create_mask(b->w, b->T, &b->lengths, WEFT_ALIGN_LEFT, true);
        x = weft_rnn_run(b->lstm, x, WEFT_ZERO_STATE).y;
        x = weft_mul(x, weft_reshape(mask, WEFT_SHAPE(b->batch, b->T, 1)));
    }
    weft_tensor *classes = weft_ints(b->w, b->classes, WEFT_SHAPE(b->batch));
    return weft_mean_loss(weft_cross_entropy(weft_sum(weft_linear_run(b->linear, x), 1), classes, NULL));
}

/* ---- time ---- */
static run one_run(bench *b, bool packed, bool train)
{
    weft_set_grad_enabled(b->w, train);
    double start = seconds();
    if (train)
        weft_zero_grad(b->all);
    weft_tensor *loss = loss_of(b, packed);
    if (train)
        weft_backward(loss);
    weft_synchronize(b->w);
    run r = { (seconds() - start) * 1e3, weft_item(loss), 0 };
    if (train)
        r.norm = weft_item(weft_clip_grad_norm(b->all, INFINITY, 0));
    weft_clear(b->w);
    return r;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(times *t)
{
    qsort(t->ms, (size_t)t->n, sizeof *t->ms, by_size);
    return t->n ? (t->ms[(t->n - 1) / 2] + t->ms[t->n / 2]) / 2 : (double)NAN;
}

/* one that takes long is not run often: no more than 20 s in all */
static bool more(times *t, run r, const options *o)
{
    double all = 0;
    t->last = r;
    if (isfinite(r.ms))
        t->ms[t->n++] = r.ms;
    for (int i = 0; i < t->n; i++)
        all += t->ms[i];
    return isfinite(r.ms) && t->n < o->runs && all < 20e3;
}

/* Ours and theirs by turns, after a run of each that does not count, unless it took so long that one is
 * enough. */
static void measure(bench *b, peer *p, const options *o, char setup, bool packed, bool train, times t[2])
{
    bool go[2] = { true, p->to };
    t[0] = (times){ .last = one_run(b, packed, train) };
    t[1] = (times){ .last = peer_run(p, setup, b->batch, b->T, packed, train) };
    for (int i = 0; i < 2; i++)
        if (t[i].last.ms > 10e3) {
            more(&t[i], t[i].last, o);
            go[i] = false;
        }
    while (go[0] || go[1]) {
        go[0] = go[0] && more(&t[0], one_run(b, packed, train), o);
        go[1] = go[1] && more(&t[1], peer_run(p, setup, b->batch, b->T, packed, train), o);
    }
}

/* ---- what comes of it ---- */
/* ms: by setup, pass, way */
typedef struct {
    double T[LENGTHS], ms[2][2][WAYS][LENGTHS];
    int lengths, compared, agree;
} results;

static void note(weft_journal *j, const bench *b, const char *who, char setup, bool packed, bool train,
                 times *t)
{
    double ms = median(t);
    if (!t->n)
        return;
    weft_journal_text(j, "who", who);
    weft_journal_text(j, "setup", (char[]){ setup, 0 });
    weft_journal_number(j, "B", (double)b->batch);
    weft_journal_number(j, "T", (double)b->T);
    weft_journal_text(j, "layout", packed ? "packed" : "padded");
    weft_journal_text(j, "pass", train ? "train" : "forward");
    weft_journal_number(j, "ms", ms);
    weft_journal_number(j, "ms_min", t->ms[0]);
    weft_journal_number(j, "runs", t->n);
    weft_journal_number(j, "loss", t->last.loss);
    weft_journal_number(j, "norm", t->last.norm);
    weft_journal_line_end(j);
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-3 * fmax(fabs(a), fabs(b)) + 1e-5; }

/* One line of the table: four medians, how often each was run, whether all came to the same. */
static void one_line(bench *b, peer *p, const options *o, char setup, bool train, int at, results *r,
                     weft_journal *j)
{
    static times t[2][2];                                         /* by packed, whose */
    double (*ms)[LENGTHS] = r->ms[setup == 'B'][train];
    for (int packed = 0; packed < 2; packed++) {
        measure(b, p, o, setup, packed, train, t[packed]);
        note(j, b, "weft", setup, packed, train, &t[packed][0]);
        note(j, b, "PyTorch", setup, packed, train, &t[packed][1]);
        ms[WEFT_PADDED_ + packed][at] = median(&t[packed][0]);
        ms[PEER_PADDED + packed][at] = median(&t[packed][1]);
    }
    printf("%c  %4lld  %-18s", setup, (long long)b->T, pass_names[train]);
    for (int way = 0; way < (p->to ? WAYS : PEER_PADDED); way++) {
        times *of = &t[way % 2][way / 2];
        r->compared += of->n > 0;
        r->agree +=
            of->n > 0 && near(of->last.loss, t[0][0].last.loss) && near(of->last.norm, t[0][0].last.norm);
        printf("  %9.2f /%2d", ms[way][at], of->n);
    }
    puts("");
    fflush(stdout);
}

static weft_status draw(const options *o, const results *r, bool with_peer, const char *under)
{
    char titles[4][120], title[300];
    weft_curve curves[4][WAYS];
    weft_chart charts[4];
    for (int i = 0; i < 4; i++) {
        int setup = i / 2, train = i % 2;
        for (int way = 0; way < WAYS; way++)
            curves[i][way] =
                (weft_curve){ way_names[way], r->lengths, r->T, r->ms[setup][train][way], false, NULL };
        snprintf(titles[i], sizeof titles[i], "%s: %s",
                 setup ? "B, lengths T, T - 1, .. 1" : "A, all of length T", pass_names[train]);
        charts[i] = (weft_chart){ titles[i], "length T", "ms",      NULL,
                                  2,         10,         curves[i], with_peer ? WAYS : PEER_PADDED };
    }
    snprintf(title, sizeof title, "Packing: Embedding(10, 16), LSTM(16, 32), Linear(32, 2), batch %lld; %s",
             (long long)o->batch, under);
    return weft_plot_lines(path_in(o->out, "slow_pack.svg"), title, charts, 4, 2);
}

/* ---- the machine ---- */
static void print_cpu(void)
{
    char line[8192], name[200] = "an unknown processor";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "model name : %199[^\n]", name) != 1)
        ;
    puts(name);
    if (f)
        fclose(f);
}

/* ---- all of it ---- */
static bool compare(bench *b, peer *p, const options *o, const char *under)
{
    results r = { .lengths = o->quick ? 3 : LENGTHS };
    weft_journal *j;
    if (weft_journal_open(path_in(o->out, "slow_pack.jsonl"), false, &j))
        fprintf(stderr, "slow_pack: %s\n", weft_file_message());        /* what is measured is printed, too */
    printf("\n   %4s  %-18s", "T", "ms / runs");
    for (int way = 0; way < (p->to ? WAYS : PEER_PADDED); way++)
        printf("  %13s", way_names[way]);
    puts("");
    for (char setup = 'A'; setup <= 'B'; setup++)
        for (int at = 0; at < r.lengths; at++)
            for (int train = 0; train < 2; train++) {
                r.T[at] = 32 << at;
                set_batch(b, setup, 32 << at);
                one_line(b, p, o, setup, train, at, &r, j);
            }
    weft_journal_close(j);
    bool good = weft_ok(b->w) && j && draw(o, &r, p->to, under) == WEFT_OK;
    if (!good)
        fprintf(stderr, "slow_pack: %s\n", weft_ok(b->w) ? weft_file_message() : weft_error_message(b->w));
    printf("\n%d of %d losses and gradients agree; %s/slow_pack.svg\n", r.agree, r.compared, o->out);
    return good && r.agree == r.compared;
}

int main(int argc, char **argv)
{
    options o = { .device = WEFT_CPU, .out = ".", .peer = "bench/peers/slow_pack.py" };
    options_preset(&option_list, &o);
    if (options_read(&option_list, &o, NULL, argc, argv) < argc)
        quit(2, "`slow_pack --help` lists the options");
    o.runs = o.runs ? o.runs : o.quick ? 3 : 7;
    bench b = { .w = open_context(o.device, 1, o.threads), .batch = o.batch };
    b.len = memory((size_t)o.batch, sizeof *b.len);
    b.classes = memory((size_t)o.batch, sizeof *b.classes);
    b.ids = memory((size_t)o.batch * LONGEST, sizeof *b.ids);
    b.lengths = (weft_lengths){ .n = o.batch, .len = b.len };
    build(&b);
    char under[200];
    peer p = peer_start(o.peer, weft_threads(b.w), strcmp(weft_device_name(b.w), "cuda") ? "cpu" : "cuda");
    print_cpu();
    snprintf(under, sizeof under, "%s, threads: %d", weft_device_name(b.w), weft_threads(b.w));
    printf("weft %s, %s; medians of %d runs, batch %lld\n", weft_version(), under, (int)o.runs,
           (long long)o.batch);
    puts(p.to ? p.who :
                "no PyTorch: no Python with torch (WEFT_PYTHON names one), or no script for it (--peer)");
    bool good = compare(&b, &p, &o, under);
    peer_end(&p);
    weft_close(b.w);
    free(b.len);
    free(b.classes);
    free(b.ids);
    return !good;
}
