/* streaming.c - serves many users of one model, one token per request.
 *
 * Each user has a state and requests the next token after each answer. A thread answers the waiting requests
 * together, up to a batch, because a step of eight users costs little more than one. Halfway a user moves to
 * another thread with its state as bytes, which could also go to another machine. A user's numbers are the
 * same bits in any batch and on any thread; the line `states` prints their hash.
 *
 * Each thread has a context with the weights and a packed copy of them. The line `contexts` prints the
 * memory. More threads than cores gain nothing. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/options.h"
#include "common/program.h"

const char program[] = "streaming";

typedef struct {
    int64_t hidden, layers, seed;
    const char *file;
} settings;
typedef struct {
    settings set;
    int64_t users, tokens, threads, batch;
    const char *save, *restore;
} options;
static const option all_options[] = {
    SETTING("hidden", WHOLE, hidden, 128, 1, 65536, "units of each layer of the LSTM"),
    SETTING("layers", WHOLE, layers, 1, 1, 32, "layers of the LSTM"),
    SETTING("seed", WHOLE, seed, 1, 0, 1e15, "seed of the weights and of the order of requests"),
    OTHER("model", TEXT, set.file, 0, 0, 0, "file of weights; without it they are random"),
    OTHER("users", WHOLE, users, 100, 1, 1e6, "number of users"),
    OTHER("tokens", WHOLE, tokens, 100000, 1, 1e12, "tokens of all users together"),
    OTHER("threads", WHOLE, threads, 1, 1, 256, "serving threads"),
    OTHER("batch", WHOLE, batch, 8, 1, 4096, "largest number of users in a step"),
    OTHER("save", TEXT, save, 0, 0, 0, "file for the first user's state at the end"),
    OTHER("restore", TEXT, restore, 0, 0, 0, "file with the first user's state at the start"),
};
static const option_table option_list = {
    "usage:\n"
    "  streaming [OPTION]..\n",
    all_options, sizeof all_options / sizeof *all_options, 3
};

/* ---- the model: a language model of bytes ---- */
enum { BYTES = 256 };                            /* the tokens */

/* hash: hash of the weights. A state moves between two models only if their hashes are equal. */
typedef struct {
    weft *w;
    weft_module *all;
    weft_embedding *table;
    weft_rnn *lstm;
    weft_linear *head;
    int64_t hidden, layers;
    weft_real *h, *c, *scores;                   /* of a batch */
    uint64_t hash;
} model;

/* numbers: h of all layers of a user, then c. tokens: count so far. */
typedef struct {
    weft_real *numbers;
    int64_t tokens;
} state;

/* FNV-1a. */
static uint64_t hashed(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_of(const model *m)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < weft_parameter_count(m->all); i++) {
        const char *path;
        weft_tensor *x = weft_parameter_at(m->all, i, &path);
        size_t n = (size_t)weft_numel(x);
        weft_real *values = memory(n, sizeof *values);
        weft_read(x, values, n * sizeof *values);
        hash = hashed(hashed(hash, path, strlen(path)), values, n * sizeof *values);
        free(values);
    }
    return hash;
}

/* Loads the weights from a file, or draws them from the seed. batch: largest number of users in a step. */
static model model_open(const settings *s, int64_t batch)
{
    weft *w = open_context(WEFT_CPU, s->seed, 1);
    weft_module *m = weft_module_new(w, "streaming");
    const weft_rnn_opts lstm = { .input = s->hidden, .hidden = s->hidden, .layers = (int)s->layers };
    const weft_embedding_opts table = { .rows = BYTES, .columns = s->hidden };
    size_t numbers = (size_t)(s->layers * batch * s->hidden);
    model it = {
        .w = w,
        .all = m,
        .table = weft_embedding_new(m, "table", &table),
        .lstm = weft_lstm_new(m, "lstm", &lstm),
        .head = weft_linear_new(m, "head", &(weft_linear_opts){ .in = s->hidden, .out = BYTES }),
        .hidden = s->hidden,
        .layers = s->layers,
        .h = memory(numbers, sizeof(weft_real)),
        .c = memory(numbers, sizeof(weft_real)),
        .scores = memory((size_t)(batch * BYTES), sizeof(weft_real)),
    };
    check_context(w, "making the model");
    if (s->file)
        check_file(weft_load(s->file, m, NULL, NULL, 0));
    weft_set_training(w, false);
    weft_set_grad_enabled(w, false);
    it.hash = hash_of(&it);
    return it;
}

static void model_close(model *m)
{
    weft_close(m->w);
    free(m->h);
    free(m->c);
    free(m->scores);
}

static int32_t largest(const weft_real *scores)
{
    int32_t best = 0;
    for (int32_t j = 1; j < BYTES; j++)
        best = scores[j] > scores[best] ? j : best;
    return best;
}

/* ---- a state as bytes ---- */
static const char format[] = "weft state 1\n"; /* the name and the version */
enum { NAME = sizeof format - 1, HEAD = NAME + 3 * 4 + 2 * 8, CHECK = 8 };

static size_t state_numbers(const model *m) { return 2 * (size_t)(m->layers * m->hidden); }
static state state_new(const model *m) { return (state){ memory(state_numbers(m), sizeof(weft_real)), 0 }; }
static size_t state_size(const model *m) { return HEAD + state_numbers(m) * sizeof(weft_real) + CHECK; }

/* Writes name and version of the format, sizes and hash of the model, tokens, numbers, and a checksum, in the
 * machine's byte order (little endian on x86 and ARM). */
static void state_save(const model *m, const state *s, unsigned char *bytes)
{
    const uint32_t sizes[] = { sizeof(weft_real), (uint32_t)m->layers, (uint32_t)m->hidden };
    size_t n = state_numbers(m) * sizeof(weft_real);
    memcpy(bytes, format, NAME);
    memcpy(bytes + NAME, sizes, sizeof sizes);
    memcpy(bytes + NAME + 12, &m->hash, 8);
    memcpy(bytes + NAME + 20, &s->tokens, 8);
    memcpy(bytes + HEAD, s->numbers, n);
    uint64_t check = hashed(0, bytes, HEAD + n);
    memcpy(bytes + HEAD + n, &check, CHECK);
}

/* Reads a state. Returns NULL, or the reason why these bytes are not a state of this model; the state then
 * stays unchanged. */
static const char *state_restore(const model *m, const unsigned char *bytes, size_t n, state *s)
{
    const uint32_t sizes[] = { sizeof(weft_real), (uint32_t)m->layers, (uint32_t)m->hidden };
    if (n < HEAD + CHECK || memcmp(bytes, format, NAME))
        return "these bytes are not a state of version 1";
    if (memcmp(bytes + NAME, sizes, sizeof sizes))
        return "the state belongs to a model of another size";
    uint64_t check = hashed(0, bytes, n - CHECK);
    if (n != state_size(m) || memcmp(bytes + n - CHECK, &check, CHECK))
        return "some of these bytes have changed or are missing";
    if (memcmp(bytes + NAME + 12, &m->hash, 8))
        return "the state belongs to a model with other weights";
    memcpy(&s->tokens, bytes + NAME + 20, 8);
    memcpy(s->numbers, bytes + HEAD, state_numbers(m) * sizeof(weft_real));
    return NULL;
}

/* ---- the server: a queue of requests, a context and a thread for each worker ---- */
/* Requests one token at a time, the one after `token`. */
typedef struct user {
    state s;
    int64_t number, remaining;                        /* requests that are still to come */
    int thread;                                  /* the thread that serves it */
    int32_t token, answer;
    double asked;                                /* time of the request */
    struct user *next;                           /* in a queue */
} user;
typedef struct {
    user *first, **end;
} line;

enum { MICROSECONDS = 1 << 14 };                 /* the last entry of a histogram counts longer times */
typedef struct {
    struct server *server;
    pthread_t id;
    pthread_cond_t asked;
    line waiting;
    model m;
} worker;
typedef struct server {
    pthread_mutex_t lock;                        /* guards all queues and counts */
    pthread_cond_t answered_cond;
    line answered;
    settings settings;
    int64_t batch;
    int threads;
    bool closing;
    worker *worker;
    int64_t steps, answers;
    int64_t after[MICROSECONDS + 1];             /* number of answers by microseconds */
} server;

static void line_clear(line *l)
{
    l->first = NULL;
    l->end = &l->first;
}

static void line_add(line *l, user *u)
{
    u->next = NULL;
    *l->end = u;
    l->end = &u->next;
}

static user *line_take(line *l)
{
    user *u = l->first;
    l->first = u ? u->next : NULL;
    if (!l->first)
        l->end = &l->first;
    return u;
}

/* Takes the waiting requests, up to a batch. Returns 0 when the server closes. */
static int64_t take_batch(worker *t, user **users)
{
    server *s = t->server;
    int64_t n = 0;
    pthread_mutex_lock(&s->lock);
    while (!t->waiting.first && !s->closing)
        pthread_cond_wait(&t->asked, &s->lock);
    while (n < s->batch && (users[n] = line_take(&t->waiting)))
        n++;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* Copies states [layers, n, hidden] from n users, or back to them. */
static void gather(const model *m, int64_t n, user *const *users, bool back)
{
    size_t bytes = (size_t)m->hidden * sizeof *m->h;
    for (int64_t l = 0; l < m->layers; l++)
        for (int64_t i = 0; i < n; i++) {
            weft_real *h = m->h + (l * n + i) * m->hidden, *c = m->c + (l * n + i) * m->hidden;
            weft_real *of_h = users[i]->s.numbers + l * m->hidden, *of_c = of_h + m->layers * m->hidden;
            memcpy(back ? of_h : h, back ? h : of_h, bytes);
            memcpy(back ? of_c : c, back ? c : of_c, bytes);
        }
}

/* Answers n users by one step of the model. */
static void step(model *m, user *const *users, int64_t n, int32_t *token)
{
    size_t bytes = (size_t)(m->layers * n * m->hidden) * sizeof *m->h;
    for (int64_t i = 0; i < n; i++)
        token[i] = users[i]->token;
    gather(m, n, users, false);
    weft_state before = { weft_reals(m->w, m->h, WEFT_SHAPE(m->layers, n, m->hidden)),
                          weft_reals(m->w, m->c, WEFT_SHAPE(m->layers, n, m->hidden)) };
    weft_rnn_out out =
        weft_rnn_step(m->lstm, weft_embedding_run(m->table, weft_ints(m->w, token, WEFT_SHAPE(n))), before);
    weft_read(weft_linear_run(m->head, out.y), m->scores, (size_t)(n * BYTES) * sizeof *m->scores);
    weft_read(out.last.h, m->h, bytes);
    weft_read(out.last.c, m->c, bytes);
    check_context(m->w, "a step of %d users", (int)n);
    weft_clear(m->w);
    gather(m, n, users, true);
    for (int64_t i = 0; i < n; i++) {
        users[i]->answer = largest(m->scores + i * BYTES);
        users[i]->s.tokens++;
    }
}

static void hand_back(worker *t, user *const *users, int64_t n)
{
    server *s = t->server;
    double now = seconds();
    pthread_mutex_lock(&s->lock);
    s->steps++;
    s->answers += n;
    for (int64_t i = 0; i < n; i++) {
        double us = (now - users[i]->asked) * 1e6;
        s->after[us < MICROSECONDS ? (int64_t)us : MICROSECONDS]++;
        line_add(&s->answered, users[i]);
    }
    pthread_cond_signal(&s->answered_cond);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *argument)
{
    worker *t = argument;
    server *s = t->server;
    user **users = memory((size_t)s->batch, sizeof *users);
    int32_t *token = memory((size_t)s->batch, sizeof *token);
    for (int64_t n; (n = take_batch(t, users));) {
        step(&t->m, users, n, token);
        hand_back(t, users, n);
    }
    free(users);
    free(token);
    return NULL;
}

static server *server_open(const settings *o, int threads, int64_t batch)
{
    server *s = memory(1, sizeof *s);
    *s = (server){ .settings = *o, .batch = batch, .threads = threads };
    s->worker = memory((size_t)threads, sizeof *s->worker);
    line_clear(&s->answered);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->answered_cond, NULL);
    for (int i = 0; i < threads; i++) {
        worker *t = &s->worker[i];
        t->server = s;
        t->m = model_open(o, batch);
        line_clear(&t->waiting);
        pthread_cond_init(&t->asked, NULL);
        if (pthread_create(&t->id, NULL, work, t))
            quit(1, "no thread %d", i + 1);
    }
    return s;
}

static void server_close(server *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    for (int i = 0; i < s->threads; i++)
        pthread_cond_signal(&s->worker[i].asked);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->threads; i++) {
        pthread_join(s->worker[i].id, NULL);
        model_close(&s->worker[i].m);
        pthread_cond_destroy(&s->worker[i].asked);
    }
    pthread_cond_destroy(&s->answered_cond);
    pthread_mutex_destroy(&s->lock);
    free(s->worker);
    free(s);
}

static void server_ask(server *s, user *u)
{
    worker *t = &s->worker[u->thread];
    u->asked = seconds();
    pthread_mutex_lock(&s->lock);
    line_add(&t->waiting, u);
    pthread_cond_signal(&t->asked);
    pthread_mutex_unlock(&s->lock);
}

/* Returns a list of the users that were answered; NULL if there are none and it may not wait. */
static user *server_answered(server *s, bool wait)
{
    pthread_mutex_lock(&s->lock);
    while (wait && !s->answered.first)
        pthread_cond_wait(&s->answered_cond, &s->lock);
    user *all = s->answered.first;
    line_clear(&s->answered);
    pthread_mutex_unlock(&s->lock);
    return all;
}

/* Returns the microseconds that a share of the answers did not exceed. */
static double within(const server *s, double share)
{
    int64_t needed = (int64_t)(share * (double)s->answers), so_far = 0, us = 0;
    for (; us < MICROSECONDS && so_far <= needed; us++)
        so_far += s->after[us];
    return (double)us;
}

static double megabytes_in_memory(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) * 1e-6;
}

/* ---- moving a state ---- */
static void save(const model *m, const state *s, const char *path)
{
    size_t n = state_size(m);
    unsigned char *bytes = memory(n, 1);
    state_save(m, s, bytes);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file))
        quit(1, "%s cannot be written", path);
    free(bytes);
}

static void restore(const model *m, state *s, const char *path)
{
    size_t room = state_size(m) + 1;
    unsigned char *bytes = memory(room, 1);
    FILE *file = fopen(path, "rb");
    if (!file)
        quit(1, "%s cannot be read", path);
    const char *reason = state_restore(m, bytes, fread(bytes, 1, room, file), s);
    if (reason)
        quit(1, "%s: %s", path, reason);
    fclose(file);
    free(bytes);
}

/* Moves a user to the next thread, through the bytes of its state. */
static void move(const server *s, user *u, int threads)
{
    const model *from = &s->worker[u->thread].m;
    u->thread = (u->thread + 1) % threads;
    const model *to = &s->worker[u->thread].m;
    unsigned char *bytes = memory(state_size(from), 1);
    state_save(from, &u->s, bytes);
    const char *reason = state_restore(to, bytes, state_size(from), &u->s);
    if (reason)
        quit(1, "user %d: %s", (int)u->number, reason);
    free(bytes);
}

/* early: megabytes after a tenth of the tokens */
typedef struct {
    user *all, **idle;
    int64_t n, resting, remaining, tokens;
    double early;
} crowd;

static crowd crowd_new(const options *o, const server *s)
{
    crowd c = { memory((size_t)o->users, sizeof *c.all), memory((size_t)o->users, sizeof *c.idle),
                o->users, o->users, o->tokens, o->tokens, 0 };
    for (int64_t i = 0; i < c.n; i++) {
        c.all[i] = (user){ .s = state_new(&s->worker[0].m),
                           .number = i,
                           .thread = (int)(i % o->threads),
                           .remaining = o->tokens / c.n + (i < o->tokens % c.n),
                           .token = (int32_t)(i % BYTES) };
        c.idle[i] = &c.all[i];
    }
    for (int64_t i = c.n; i-- > 0;)              /* users may be without requests */
        if (!c.idle[i]->remaining)
            c.idle[i] = c.idle[--c.resting];
    return c;
}

/* Makes a random idle user request a token. */
static void ask_one(crowd *c, server *s, weft_stream *chance)
{
    int64_t i = weft_stream_below(chance, c->resting);
    user *u = c->idle[i];
    c->idle[i] = c->idle[--c->resting];
    server_ask(s, u);
}

static void take_answers(crowd *c, server *s, int threads)
{
    for (user *u = server_answered(s, c->resting == 0), *next; u; u = next) {
        next = u->next;
        u->token = (u->answer + (int32_t)u->number + (int32_t)(u->s.tokens % 7)) % BYTES;
        u->remaining--;
        if (u->remaining == (c->tokens / c->n) / 2 && u->remaining)
            move(s, u, threads);
        if (u->remaining)
            c->idle[c->resting++] = u;
        if (--c->remaining == c->tokens - c->tokens / 10)
            c->early = megabytes_in_memory();
    }
}

static uint64_t hash_of_states(const crowd *c, const model *m)
{
    unsigned char *bytes = memory(state_size(m), 1);
    uint64_t hash = 0;
    for (int64_t i = 0; i < c->n; i++) {
        state_save(m, &c->all[i].s, bytes);
        hash = hashed(hash, bytes, state_size(m));
    }
    free(bytes);
    return hash;
}

static void report(const options *o, const server *s, const crowd *c, double took)
{
    const model *m = &s->worker[0].m;
    printf("%" PRId64 " tokens of %" PRId64 " users in %.2f s, %.0f a second; %.1f users a step; half of the "
           "answers within %.0f us, 99.9 %% within %.0f us\n",
           s->answers, c->n, took, (double)s->answers / took, (double)s->answers / (double)s->steps,
           within(s, .5), within(s, .999));
    printf("contexts: %d of %.2f MB each; a state is %zu bytes\n", (int)o->threads,
           (double)weft_usage_of(m->w).host_bytes * 1e-6, state_size(m));
    printf("states: %016" PRIx64 "\n", hash_of_states(c, m));
    printf("memory: %.1f MB after a tenth, %.1f MB at the end\n", c->early, megabytes_in_memory());
}

int main(int argc, char **argv)
{
    options o = { 0 };
    options_preset(&option_list, &o);
    if (options_read(&option_list, &o, NULL, argc, argv) < argc)
        quit(2, "found an argument; expected options only; see streaming --help");
    server *s = server_open(&o.set, (int)o.threads, o.batch);
    crowd c = crowd_new(&o, s);
    weft_stream *chance = weft_stream_new((uint64_t)o.set.seed, "requests");
    if (o.restore)
        restore(&s->worker[0].m, &c.all[0].s, o.restore);
    double start = seconds();
    while (c.remaining) {
        while (c.resting)
            ask_one(&c, s, chance);
        take_answers(&c, s, (int)o.threads);
    }
    report(&o, s, &c, seconds() - start);
    if (o.save)
        save(&s->worker[0].m, &c.all[0].s, o.save);
    for (int64_t i = 0; i < c.n; i++)
        free(c.all[i].s.numbers);
    free(c.all);
    free(c.idle);
    weft_stream_free(chance);
    server_close(s);
    return 0;
}
