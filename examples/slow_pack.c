/* slow_pack.c - is packing slow? An embedding, an LSTM, a linear layer, summed over time, on batches that are
 * padded and masked, or packed for the LSTM and unpacked behind it: forward, and forward with backward, over
 * the length of the sequences.
 *
 *     slow_pack [--out FOLDER] [--quick] [--runs N] [--threads N] [--batch N]
 *               [--device cpu|cuda|best] [--peer SCRIPT]
 *
 * Setup A has sequences of one length, where packing can win nothing; setup B those of T, T - 1, .. 1, where
 * half of the padded batch is pads. Users of PyTorch ask it (its issue 149194), whose backward through a
 * packed LSTM and pad_packed_sequence grows with the square of T. Where a Python with torch is found
 * (WEFT_PYTHON, else python3) it does the same work, run by run in turns with weft, and is drawn beside. A
 * table on stdout, slow_pack.jsonl and slow_pack.svg in FOLDER. The status is not 0 if losses or gradients of
 * all ways do not agree. */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "slow_pack_peer.h"
#include "weft.h"

enum { EMBED = 16, HIDDEN = 32, WORDS = 10, LONGEST = 512, LENGTHS = 5, MOST_RUNS = 99 };
enum { WEFT_PADDED_, WEFT_PACKED_, PEER_PADDED, PEER_PACKED, WAYS };             /* the curves */
static const char *const way_names[WAYS] = { "weft, padded", "weft, packed", "PyTorch, padded",
                                             "PyTorch, packed" };
static const char *const pass_names[] = { "forward", "forward + backward" };

typedef struct {
    int runs, threads;
    int64_t batch;
    bool quick;
    weft_device device;
    const char *out, *peer;
} options;
typedef struct {
    weft *w; weft_module *all;
    weft_embedding *embed; weft_rnn *lstm; weft_linear *linear;
    int64_t batch, T; weft_lengths lengths; int32_t *len, *ids, *classes;
} bench;
typedef struct { int n; double ms[MOST_RUNS]; run last; } times;

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
static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static run one_run(bench *b, bool packed, bool train)
{
    weft_set_grad_enabled(b->w, train);
    double start = now_ms();
    if (train)
        weft_zero_grad(b->all);
    weft_tensor *loss = loss_of(b, packed);
    if (train)
        weft_backward(loss);
    weft_synchronize(b->w);
    run r = { now_ms() - start, weft_item(loss), 0 };
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
    bool   go[2] = { true, p->to };
    t[0].n = t[1].n = 0;
    t[0].last = one_run(b, packed, train), t[1].last = peer_run(p, setup, b->batch, b->T, packed, train);
    for (int i = 0; i < 2; i++)
        if (t[i].last.ms > 10e3)
            more(&t[i], t[i].last, o), go[i] = false;
    while (go[0] || go[1]) {
        go[0] = go[0] && more(&t[0], one_run(b, packed, train), o);
        go[1] = go[1] && more(&t[1], peer_run(p, setup, b->batch, b->T, packed, train), o);
    }
}

/* ---- what comes of it ---- */
/* ms: by setup, pass, way */
typedef struct { int lengths; double T[LENGTHS], ms[2][2][WAYS][LENGTHS]; int compared, agree; } results;

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
        note(j, b, "weft", setup, packed, train, &t[packed][0]),
            note(j, b, "PyTorch", setup, packed, train, &t[packed][1]);
        ms[WEFT_PADDED_ + packed][at] = median(&t[packed][0]),
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
    char path[400], titles[4][120], title[300];
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
    snprintf(path, sizeof path, "%s/slow_pack.svg", o->out);
    return weft_plot_lines(path, title, charts, 4, 2);
}

/* ---- the machine ---- */
static void print_cpu(void)
{
    static const char *const flags[] = { " avx2 ", " fma ", " avx512f ", " avx512_bf16 ", " amx_bf16 " };
    char  line[8192];
    FILE *f = fopen("/proc/cpuinfo", "r");
    bool  named = false, flagged = false;
    while (f && !(named && flagged) && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        line[strcspn(line, "\n")] = ' ';
        if (value && !named && !strncmp(line, "model name", 10))
            named = printf("%s:", value + 2) > 0;
        for (size_t i = 0; value && !strncmp(line, "flags", 5) && i < sizeof flags / sizeof *flags; i++)
            flagged = true, strstr(value, flags[i]) && printf("%s", flags[i]);
    }
    puts(named || flagged ? "" : "an unknown processor");
    if (f)
        fclose(f);
}

/* ---- all of it ---- */
static bool compare(bench *b, peer *p, const options *o, const char *under)
{
    char path[400];
    results r = { .lengths = o->quick ? 3 : LENGTHS };
    snprintf(path, sizeof path, "%s/slow_pack.jsonl", o->out);
    weft_journal *j;
    if (weft_journal_open(path, false, &j))
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

static int number(const char *text, int least, int most)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < least || n > most) {
        fprintf(stderr, "slow_pack: a number from %d to %d was expected, not \"%s\"\n", least, most, text);
        exit(2);
    }
    return (int)n;
}

static options options_of(int argc, char **argv)
{
    static const struct option names[] = { { "out", 1, NULL, 'o' },   { "quick", 0, NULL, 'q' },
                                           { "runs", 1, NULL, 'r' },  { "threads", 1, NULL, 't' },
                                           { "batch", 1, NULL, 'b' }, { "device", 1, NULL, 'd' },
                                           { "peer", 1, NULL, 'p' },  { 0 } };
    static const char *const devices[] = {
        [WEFT_BEST] = "best", [WEFT_CPU] = "cpu", [WEFT_REF] = "ref", [WEFT_CUDA] = "cuda"
    };
    options o = { .batch = 512, .device = WEFT_CPU, .out = ".", .peer = "bench/peers/slow_pack.py" };
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        bool known = c != '?';
        switch (c) {
        case 'o': o.out = optarg; break;
        case 'q': o.quick = true; break;
        case 'r': o.runs = number(optarg, 1, MOST_RUNS); break;
        case 't': o.threads = number(optarg, 1, 1024); break;
        case 'b': o.batch = number(optarg, 1, 65536); break;
        case 'p': o.peer = optarg; break;
        case 'd':
            o.device = WEFT_BEST;
            while (o.device <= WEFT_CUDA && strcmp(devices[o.device], optarg))
                o.device++;
            known = o.device <= WEFT_CUDA;
        }
        if (!known) {
            fprintf(stderr, "slow_pack [--out FOLDER] [--quick] [--runs N] [--threads N] [--batch N] "
                            "[--device cpu|cuda|best] [--peer SCRIPT]\n");
            exit(2);
        }
    }
    o.runs = o.runs ? o.runs : o.quick ? 3 : 7;
    return o;
}

int main(int argc, char **argv)
{
    options o = options_of(argc, argv);
    bench b = { .w = weft_open(&(weft_opts){ .device = o.device, .seed = 1, .threads = o.threads }),
                .batch = o.batch };
    b.len = calloc((size_t)o.batch, sizeof *b.len), b.classes = calloc((size_t)o.batch, sizeof *b.classes);
    b.ids = calloc((size_t)o.batch * LONGEST, sizeof *b.ids);
    b.lengths = (weft_lengths){ .n = o.batch, .len = b.len };
    bool good = weft_ok(b.w) && b.len && b.classes && b.ids;
    if (good) {
        char under[200];
        bool on_gpu = !strcmp(weft_device_name(b.w), "cuda");
        build(&b);
        peer p = peer_start(o.peer, weft_threads(b.w), on_gpu ? "cuda" : "cpu");
        print_cpu();
        snprintf(under, sizeof under, "%s, threads: %d", weft_device_name(b.w), weft_threads(b.w));
        printf("weft %s, %s; medians of %d runs, batch %lld\n", weft_version(), under, o.runs,
               (long long)o.batch);
        printf("%s\n",
               p.to ?
                   p.who :
                   "no PyTorch: no Python with torch (WEFT_PYTHON names one), or no script for it (--peer)");
        good = compare(&b, &p, &o, under);
        peer_end(&p);
    } else {
        fprintf(stderr, "slow_pack: %s\n", weft_ok(b.w) ? "out of memory" : weft_error_message(b.w));
    }
    weft_close(b.w);
    free(b.len), free(b.classes), free(b.ids);
    return !good;
}
