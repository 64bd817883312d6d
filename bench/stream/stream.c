/* stream.c - measures inference with one token a call, alternately in weft and in onnxruntime if installed.
 *
 * The model is an embedding of 256 rows (or real inputs), one LSTM of H units and a linear layer to 256, for
 * B sequences at a time.
 *
 * stream [--library LIBONNXRUNTIME --models FOLDER] [--units H,..] [--batch B,..] [--calls N] [--precision
 * fp32|strict_fp32|tf32|bf16] stream --bare N [--units H] [--batch B]
 *
 * Both carry the state from call to call, have the weights of bench/formula.c and one thread, and must give
 * the same logits. weft also imports the file that onnxruntime runs. A line describes one shape: the median
 * time of a call in each program, their ratio, that of the imported model, weft's time for a token if one
 * call gets many, the 99.9th percentile of the calls, and that of an equally long empty loop. --bare: only N
 * calls of weft with the embedding, to count instructions. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/bench.h"
#include "weft_onnx.h"

enum { CLASSES = 256, MOST_BATCH = 64, MOST = 16, TOGETHER = 512, BY_TURNS = 50 };

typedef struct asked {
    const char *library, *models;
    int64_t units[MOST], batch[MOST];
    int shapes, batches, calls, bare;
    weft_precision precision;
} asked;

static double now_us(void) { return 1e3 * now_ms(); }

/* ---- weft ---- */
/* table NULL: x holds real numbers */
typedef struct model {
    weft *w;
    weft_module *m;
    weft_embedding *table;
    weft_rnn *lstm;
    weft_linear *head;
    int64_t H, B;
    int32_t id[MOST_BATCH];
    weft_real *x, *h, *c, *logits;
    weft_onnx *imported;                         /* the same model from a file; NULL: not measured */
} model;

static bool open_model(model *s, weft_precision precision, bool table, int64_t H, int64_t B)
{
    const weft_opts o = { .device = WEFT_CPU, .threads = 1, .precision = precision };
    *s = (model){ .w = weft_open(&o), .H = H, .B = B };
    s->m = weft_module_new(s->w, "m");
    if (table)
        s->table = weft_embedding_new(s->m, "table", &(weft_embedding_opts){ .rows = CLASSES, .columns = H });
    s->lstm = weft_lstm_new(s->m, "lstm", &(weft_rnn_opts){ .input = H, .hidden = H });
    s->head = weft_linear_new(s->m, "head", &(weft_linear_opts){ .in = H, .out = CLASSES });
    weft_set_training(s->w, false);
    weft_set_grad_enabled(s->w, false);
    s->x = keep(B * H, sizeof *s->x);
    s->h = keep(B * H, sizeof *s->h);
    s->c = keep(B * H, sizeof *s->c);
    s->logits = keep(B * CLASSES, sizeof *s->logits);
    return set_weights(s->m, 2 / sqrt((double)H)) && weft_ok(s->w);
}

/* the input of call t */
static int32_t token(int64_t t, int64_t b) { return (int32_t)((t * 7 + b * 13) % CLASSES); }
static weft_real number(int64_t t, int64_t b, int64_t i)
{
    return (weft_real)((t * 31 + b * 17 + i * 7) % 64) / 32 - 1;
}
static void fill_input(model *s, int64_t t)
{
    for (int64_t b = 0; b < s->B; b++) {
        s->id[b] = token(t, b);
        for (int64_t i = 0; !s->table && i < s->H; i++)
            s->x[b * s->H + i] = number(t, b, i);
    }
}

static void call_weft(model *s, bool imported)
{
    const int64_t B = s->B, H = s->H;
    const size_t bytes = (size_t)(B * H) * sizeof *s->h;
    weft_state before = { weft_reals(s->w, s->h, WEFT_SHAPE(1, B, H)),
                          weft_reals(s->w, s->c, WEFT_SHAPE(1, B, H)) };
    weft_tensor *in = s->table ? weft_ints(s->w, s->id, WEFT_SHAPE(B)) :
                                 weft_reals(s->w, s->x, WEFT_SHAPE(B, H));
    weft_tensor *out[3];                         /* logits, h, c */
    if (imported) {
        weft_onnx_run(s->imported, WEFT_LIST(in, before.h, before.c), out, 3);
    } else {
        weft_rnn_out y = weft_rnn_step(s->lstm, s->table ? weft_embedding_run(s->table, in) : in, before);
        out[0] = weft_linear_run(s->head, y.y);
        out[1] = y.last.h;
        out[2] = y.last.c;
    }
    weft_read(out[0], s->logits, (size_t)(B * CLASSES) * sizeof *s->logits);
    weft_read(out[1], s->h, bytes);
    weft_read(out[2], s->c, bytes);
    weft_clear(s->w);
}

/* Returns the time of a token in calls with many tokens of each sequence, the least of five. */
static double together(model *s)
{
    int64_t rows = s->B * TOGETHER;
    int32_t *id = keep(rows, sizeof *id), len[MOST_BATCH];
    weft_real *x = keep(s->table ? 1 : rows * s->H, sizeof *x);
    double least = HUGE_VAL;
    for (int64_t i = 0; i < rows; i++) {
        id[i] = token(i % TOGETHER, i / TOGETHER);
        len[i % s->B] = TOGETHER;
        for (int64_t k = 0; !s->table && k < s->H; k++)
            x[i * s->H + k] = number(i % TOGETHER, i / TOGETHER, k);
    }
    for (int round = 0; round < 5; round++) {
        const weft_lengths l = { .n = s->B, .len = len };
        double from = now_us();
        weft_tensor *in = s->table ? weft_embedding_run(s->table, weft_ragged_ints(s->w, id, &l)) :
                                     weft_ragged(s->w, x, s->H, &l);
        weft_linear_run(s->head, weft_rnn_run(s->lstm, in, WEFT_ZERO_STATE).y);
        least = fmin(least, (now_us() - from) / TOGETHER);
        weft_clear(s->w);
    }
    return least;
}

/* ---- onnxruntime, from its shared library; PyPI's wheel has no header ---- */
enum { INTERFACE = 1, WARNINGS = 2, ALL_OPTIMISATIONS = 99, ARENA = 1, DEFAULT_MEMORY = 0 };
enum { FLOAT = 1, INT64 = 7 };

/* The functions have fixed indices in a table. The code requests the first version of the interface that has
 * them all. A status that is not NULL is an error. */
typedef struct api {
    void *skip_0[2];
    const char *(*message)(const void *status); /* 2 */
    void *(*env_new)(int level, const char *name, void **out);
    void *skip_4[3];
    void *(*session_new)(void *env, const char *path, void *options, void **out); /* 7 */
    void *skip_8;
    void *(*run)(void *session, const void *options, const char *const *in_names, const void *const *in,
                 size_t n, const char *const *out_names, size_t m, void **out); /* 9 */
    void *(*options_new)(void **out);
    void *skip_11[12];
    void *(*set_optimisation)(void *options, int level); /* 23 */
    void *(*set_threads)(void *options, int threads);
    void *skip_25[24];
    void *(*tensor_over)(const void *memory, void *data, size_t bytes, const int64_t *shape, size_t rank,
                         int type, void **out); /* 49 */
    void *skip_50[19];
    void *(*memory_new)(int allocator, int type, void **out); /* 69 */
} api;
typedef struct base {
    const api *(*table)(uint32_t version);
} base;

/* The state alternates between two buffers, so inputs and outputs are bound twice. */
enum { BOUND = 3 };
typedef struct peer {
    const api *f;
    void *session, *memory;                      /* they stay in the library until the program ends */
    void *in[2][BOUND], *out[2][BOUND];
    int64_t id[MOST_BATCH];
    float *x, *h[2], *c[2], *logits;
    int at;
} peer;

static bool good(const peer *p, void *status)
{
    if (status)
        fprintf(stderr, "onnxruntime: %s\n", p->f->message(status));
    return !status;
}

/* Opens the model of a file, on one thread. Returns false, with a message on stderr, if that fails. */
static bool open_session(peer *p, const char *library, const char *path)
{
    const base *(*hello)(void) = NULL;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL),
         *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    void *env = NULL, *options = NULL;
    memcpy(&hello, &symbol, sizeof hello);
    const base *from = hello ? hello() : NULL;
    p->f = from ? from->table(INTERFACE) : NULL;
    if (!p->f) {
        fprintf(stderr, "stream: %s is not onnxruntime: %s\n", library,
                handle ? "it has no OrtGetApiBase" : dlerror());
        return false;
    }
    return good(p, p->f->env_new(WARNINGS, "stream", &env)) && good(p, p->f->options_new(&options)) &&
           good(p, p->f->set_optimisation(options, ALL_OPTIMISATIONS)) &&
           good(p, p->f->set_threads(options, 1)) &&
           good(p, p->f->session_new(env, path, options, &p->session)) &&
           good(p, p->f->memory_new(ARENA, DEFAULT_MEMORY, &p->memory));
}

/* Makes a tensor over the program's memory; NULL, with a message on stderr, if that fails. */
static void *tensor_over(const peer *p, void *data, int type, int rank, const int64_t *shape)
{
    void *out = NULL;
    size_t bytes = type == INT64 ? sizeof(int64_t) : sizeof(float);
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)shape[i];
    void *status = p->f->tensor_over(p->memory, data, bytes, shape, (size_t)rank, type, &out);
    return good(p, status) ? out : NULL;
}

static bool open_peer(peer *p, const asked *a, bool table, int64_t H, int64_t B)
{
    const int64_t rows[] = { B, H }, state[] = { 1, B, H }, logits[] = { B, CLASSES };
    char path[512];
    snprintf(path, sizeof path, "%s/%s_%d.onnx", a->models, table ? "table" : "real", (int)H);
    bool bound = open_session(p, a->library, path);
    p->x = keep(B * H, sizeof *p->x);
    p->logits = keep(B * CLASSES, sizeof *p->logits);
    for (int i = 0; i < 2; i++) {
        p->h[i] = keep(B * H, sizeof *p->h[i]);
        p->c[i] = keep(B * H, sizeof *p->c[i]);
    }
    for (int i = 0; bound && i < 2; i++) {
        p->in[i][0] = table ? tensor_over(p, p->id, INT64, 1, rows) : tensor_over(p, p->x, FLOAT, 2, rows);
        p->in[i][1] = tensor_over(p, p->h[i], FLOAT, 3, state);
        p->in[i][2] = tensor_over(p, p->c[i], FLOAT, 3, state);
        p->out[i][0] = tensor_over(p, p->logits, FLOAT, 2, logits);
        p->out[i][1] = tensor_over(p, p->h[!i], FLOAT, 3, state);
        p->out[i][2] = tensor_over(p, p->c[!i], FLOAT, 3, state);
        for (int k = 0; k < BOUND; k++)
            bound = bound && p->in[i][k] && p->out[i][k];
    }
    return bound;
}

static bool call_peer(peer *p)
{
    static const char *const in[BOUND] = { "x", "h", "c" };
    static const char *const out[BOUND] = { "logits", "h_out", "c_out" };
    const int at = p->at;
    p->at = !at;
    return good(p, p->f->run(p->session, NULL, in, (const void *const *)p->in[at], BOUND, out, BOUND,
                             p->out[at]));
}

typedef struct measured {
    double *weft, *peer, *imported, *idle;
    int n;
} measured;

static double part(double *x, int n, double share)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[(int)(share * (n - 1))];
}

/* Returns the extra time of an empty loop of that length, which is the noise of the machine. */
static double idle(double us)
{
    double from = now_us(), now;
    while ((now = now_us()) - from < us)
        ;
    return now - from - us;
}
static bool same_logits(const model *s, const peer *p)
{
    for (int64_t i = 0; i < s->B * CLASSES; i++)
        if (!(fabs((double)s->logits[i] - (double)p->logits[i]) < 1e-4)) {
            fprintf(stderr, "stream: H=%d B=%d: logit %d is %g here, %g there\n", (int)s->H, (int)s->B,
                    (int)i, (double)s->logits[i], (double)p->logits[i]);
            return false;
        }
    return true;
}

/* Calls weft for `turns` inputs from number t on, and stores the times. */
static void call_by_turns(model *s, bool imported, int64_t t, int64_t turns, double *us)
{
    for (int64_t i = t; i < t + turns; i++) {
        fill_input(s, i);
        double from = now_us();
        call_weft(s, imported);
        us[i] = now_us() - from;
    }
}

/* Alternates calls of weft, of the peer and of the imported model, with the same inputs and states. peer
 * NULL: weft only. */
static bool measure_calls(model *s, peer *p, measured *m)
{
    const size_t bytes = (size_t)(s->B * s->H) * sizeof *s->h;
    weft_real *h = keep(s->B * s->H, sizeof *h), *c = keep(s->B * s->H, sizeof *c);
    for (int64_t t = 0; t < m->n; t += BY_TURNS) {
        int64_t turns = m->n - t < BY_TURNS ? m->n - t : BY_TURNS;
        memcpy(h, s->h, bytes);
        memcpy(c, s->c, bytes);
        call_by_turns(s, false, t, turns, m->weft);
        for (int64_t i = t; i < t + turns; i++)
            m->idle[i] = idle(m->weft[i]);
        for (int64_t i = t; p && i < t + turns; i++) {
            for (int64_t b = 0; b < s->B; b++)
                p->id[b] = token(i, b);
            for (int64_t k = 0; !s->table && k < s->B * s->H; k++)
                p->x[k] = (float)number(i, k / s->H, k % s->H);
            double from = now_us();
            if (!call_peer(p))
                return false;
            m->peer[i] = now_us() - from;
        }
        if (p && !same_logits(s, p))
            return false;
        if (s->imported) {
            memcpy(s->h, h, bytes);
            memcpy(s->c, c, bytes);
            call_by_turns(s, true, t, turns, m->imported);
        }
        if (p && s->imported && !same_logits(s, p))
            return false;
    }
    return !failed(s->w, "stream");
}

/* Imports the file that the peer runs. */
static bool import_model(model *s, const asked *a)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s_%d.onnx", a->models, s->table ? "table" : "real", (int)s->H);
    s->imported = weft_import_onnx(path, s->w, NULL);
    if (!s->imported)
        fprintf(stderr, "stream: %s\n", weft_file_message());
    return s->imported;
}

static bool measure_shape(const asked *a, bool table, int64_t H, int64_t B)
{
    model s;
    peer p = { 0 };
    measured m = { .n = a->calls };
    double **all[] = { &m.weft, &m.peer, &m.imported, &m.idle };
    for (int i = 0; i < 4; i++)
        *all[i] = keep(a->calls, sizeof(double));
    bool ok = open_model(&s, a->precision, table, H, B) &&
              (!a->library || (open_peer(&p, a, table, H, B) && import_model(&s, a))) &&
              measure_calls(&s, a->library ? &p : NULL, &m);
    if (ok) {
        double us = part(m.weft, m.n, .5), peer_us = part(m.peer, m.n, .5);
        printf("%s H=%d B=%d weft %.2f us", table ? "stream" : "stream-real", (int)H, (int)B, us);
        if (a->library)
            printf(" onnxruntime %.2f us ratio %.2f, imported %.2f us", peer_us, peer_us / us,
                   part(m.imported, m.n, .5));
        printf(" together %.2f us, 99.9 %% within %.2f us, idle %.2f us\n", together(&s),
               part(m.weft, m.n, .999), part(m.idle, m.n, .999));
        fflush(stdout);
    }
    weft_close(s.w);
    free_kept();
    return ok;
}

static bool call_only(const asked *a)
{
    model s;
    bool ok = open_model(&s, a->precision, true, a->units[0], a->batch[0]);
    for (int t = 0; ok && t < a->bare; t++) {
        fill_input(&s, t);
        call_weft(&s, false);
    }
    ok = ok && !failed(s.w, "stream");
    weft_close(s.w);
    free_kept();
    return ok;
}

/* ---- options ---- */
static int numbers_of(const char *text, int64_t *to)
{
    int n = 0;
    for (; *text && n < MOST; text += strspn(text, ","))
        to[n++] = strtol(text, (char **)(uintptr_t)&text, 10);
    return n;
}

static bool read_asked(int argc, char **argv, asked *a)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        int precision = which_of("fp32,strict_fp32,tf32,bf16", value);
        if (!strcmp(option, "--library"))
            a->library = value;
        else if (!strcmp(option, "--models"))
            a->models = value;
        else if (!strcmp(option, "--units"))
            a->shapes = numbers_of(value, a->units);
        else if (!strcmp(option, "--batch"))
            a->batches = numbers_of(value, a->batch);
        else if (!strcmp(option, "--calls"))
            a->calls = atoi(value);
        else if (!strcmp(option, "--bare"))
            a->bare = atoi(value);
        else if (!strcmp(option, "--precision") && precision >= 0)
            a->precision = (weft_precision)precision;
        else
            return false;
    }
    for (int i = 0; i < a->batches; i++)
        if (a->batch[i] < 1 || a->batch[i] > MOST_BATCH)
            return false;
    return argc % 2 && a->calls > 0 && !a->library == !a->models;
}

int main(int argc, char **argv)
{
    asked a = {
        .units = { 32, 64, 128, 256, 512 }, .shapes = 5, .batch = { 1, 8 }, .batches = 2, .calls = 20000
    };
    if (!read_asked(argc, argv, &a)) {
        fputs("stream [--library LIBONNXRUNTIME --models FOLDER] [--units H,..] [--batch B,..] "
              "[--calls N] [--bare N] [--precision fp32|tf32|bf16]\n", stderr);
        return 2;
    }
    if (a.bare)
        return call_only(&a) ? 0 : 1;
    for (int table = 1; table >= 0; table--)
        for (int b = 0; b < a.batches; b++)
            for (int h = 0; h < a.shapes; h++)
                if (!measure_shape(&a, table, a.units[h], a.batch[b]))
                    return 1;
    return 0;
}
