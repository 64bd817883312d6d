/* streaming.c - many users of one model, a token at a time.
 *
 * Each user has a state, and asks for the next token when it has its last answer. Requests come in an order
 * by chance; a thread answers those that wait for it together, up to a batch, since a step of eight users
 * costs little more than one. In the middle of its requests a user moves to another thread, its state as
 * bytes, as it could to another machine. What comes of it depends on none of this: a user's numbers are the
 * same bits in any company, on any thread, and the line `states` says a hash of all of them.
 *
 * A context is one thread's, and has the weights once, and once more packed, for as long as they stay as they
 * are; the line `contexts` says what that costs. Threads beyond the cores of the machine gain nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/options.h"
#include "common/program.h"
#include "streaming_server.h"

const char program[] = "streaming";

typedef struct { settings set; int64_t users, tokens, threads, batch; const char *save, *restore; } options;
static const option all[] = {
    SETTING("hidden", WHOLE, hidden, 128, 1, 65536, "units of each layer of the LSTM"),
    SETTING("layers", WHOLE, layers, 1, 1, 32, "layers of the LSTM"),
    SETTING("seed", WHOLE, seed, 1, 0, 1e15, "of the weights, and of the order of requests"),
    OTHER("model", TEXT, set.file, 0, 0, 0),
    OTHER("users", WHOLE, users, 100, 1, 1e6),
    OTHER("tokens", WHOLE, tokens, 100000, 1, 1e12),
    OTHER("threads", WHOLE, threads, 1, 1, 256),
    OTHER("batch", WHOLE, batch, 8, 1, 4096),
    OTHER("save", TEXT, save, 0, 0, 0),
    OTHER("restore", TEXT, restore, 0, 0, 0),
};
static const option_table table = {
    "streaming [--users N] [--tokens N, of all users] [--threads N] [--batch USERS] [--model FILE, its "
    "weights]\n"
    "    [--save FILE, the first user's state at the end] [--restore FILE, its state at first]\n"
    "with these settings:\n\n",
    all, sizeof all / sizeof *all, 3
};

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

/* ---- a state on its way ---- */
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
    const char *why = state_restore(m, bytes, fread(bytes, 1, room, file), s);
    if (why)
        quit(1, "%s: %s", path, why);
    fclose(file);
    free(bytes);
}

/* To the next thread; nothing of the state itself goes there but its bytes. */
static void move(const server *s, user *u, int threads)
{
    const model *from = server_model(s, u->thread);
    u->thread = (u->thread + 1) % threads;
    const model *to = server_model(s, u->thread);
    unsigned char *bytes = memory(state_size(from), 1);
    state_save(from, &u->s, bytes);
    state_free(&u->s);
    u->s = state_new(to);
    const char *why = state_restore(to, bytes, state_size(from), &u->s);
    if (why)
        quit(1, "user %d: %s", (int)u->number, why);
    free(bytes);
}

/* ---- requests ---- */
typedef struct { user *all, **idle; int64_t n, at_rest, left, tokens; double early; } crowd;

static crowd crowd_new(const options *o, const server *s)
{
    crowd c = { memory((size_t)o->users, sizeof *c.all), memory((size_t)o->users, sizeof *c.idle),
                o->users, o->users, o->tokens, o->tokens, 0 };
    for (int64_t i = 0; i < c.n; i++) {
        c.all[i] = (user){ .s = state_new(server_model(s, 0)), .number = i, .thread = (int)(i % o->threads),
                           .left = o->tokens / c.n + (i < o->tokens % c.n), .token = (int32_t)(i % BYTES) };
        c.idle[i] = &c.all[i];
    }
    for (int64_t i = c.n; i-- > 0;)              /* some may have nothing to ask */
        if (!c.idle[i]->left)
            c.idle[i] = c.idle[--c.at_rest];
    return c;
}

/* One of those that wait for nothing, by chance, asks. */
static void ask_one(crowd *c, server *s, weft_stream *chance)
{
    int64_t i = weft_stream_below(chance, c->at_rest);
    user *u = c->idle[i];
    c->idle[i] = c->idle[--c->at_rest];
    server_ask(s, u);
}

static void take_answers(crowd *c, server *s, int threads)
{
    for (user *u = server_answered(s, c->at_rest == 0), *next; u; u = next) {
        next = u->next;
        u->token = (u->answer + (int32_t)u->number + (int32_t)(u->s.tokens % 7)) % BYTES;
        u->left--;
        if (u->left == (c->tokens / c->n) / 2 && u->left)
            move(s, u, threads);
        if (u->left)
            c->idle[c->at_rest++] = u;
        if (--c->left == c->tokens - c->tokens / 10)
            c->early = megabytes_in_memory();
    }
}

static uint64_t hash_of_states(const crowd *c, const model *m)
{
    unsigned char *bytes = memory(state_size(m), 1);
    uint64_t hash = 0;
    for (int64_t i = 0; i < c->n; i++) {
        state_save(m, &c->all[i].s, bytes);
        for (size_t k = 0; k < state_size(m); k++)
            hash = (hash ^ bytes[k]) * 0x100000001b3u;
    }
    free(bytes);
    return hash;
}

static void report(const options *o, const server *s, const crowd *c, double took)
{
    served done = server_served(s);
    const model *m = server_model(s, 0);
    printf("%" PRId64 " tokens of %" PRId64 " users in %.2f s, %.0f a second; %.1f users a step; half of the "
           "answers within %.0f us, 99.9 %% within %.0f us\n",
           done.answers, c->n, took, (double)done.answers / took, (double)done.answers / (double)done.steps,
           server_within(s, .5), server_within(s, .999));
    printf("contexts: %d of %.2f MB each; a state is %zu bytes\n", (int)o->threads,
           (double)model_bytes(m) * 1e-6, state_size(m));
    printf("states: %016" PRIx64 "\n", hash_of_states(c, m));
    printf("memory: %.1f MB after a tenth, %.1f MB at the end\n", c->early, megabytes_in_memory());
}

int main(int argc, char **argv)
{
    options o = { 0 };
    options_preset(&table, &o);
    if (options_read(&table, &o, NULL, argc, argv) < argc)
        quit(2, "there is an argument too many; --help says what there is");
    server *s = server_open(&o.set, (int)o.threads, o.batch);
    crowd c = crowd_new(&o, s);
    weft_stream *chance = weft_stream_new((uint64_t)o.set.seed, "requests");
    if (o.restore)
        restore(server_model(s, 0), &c.all[0].s, o.restore);
    double start = seconds();
    while (c.left) {
        while (c.at_rest)
            ask_one(&c, s, chance);
        take_answers(&c, s, (int)o.threads);
    }
    report(&o, s, &c, seconds() - start);
    if (o.save)
        save(server_model(s, 0), &c.all[0].s, o.save);
    for (int64_t i = 0; i < c.n; i++)
        state_free(&c.all[i].s);
    free(c.all), free(c.idle);
    weft_stream_free(chance);
    server_close(s);
    return 0;
}
