/* streaming_model.c - the model and a batch of users; see streaming_model.h. */
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "streaming_model.h"

/* Fowler, Noll and Vo's hash of bytes. */
static uint64_t mixed(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t print_of(const model *m)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < weft_parameter_count(m->all); i++) {
        const char *path;
        weft_tensor *x = weft_parameter_at(m->all, i, &path);
        size_t n = (size_t)weft_numel(x);
        weft_real *values = memory(n, sizeof *values);
        weft_read(x, values, n * sizeof *values);
        hash = mixed(mixed(hash, path, strlen(path)), values, n * sizeof *values);
        free(values);
    }
    return hash;
}

model model_open(const settings *s, int64_t most)
{
    weft *w = open_context(WEFT_CPU, s->seed, 1);
    weft_module *m = weft_module_new(w, "streaming");
    const weft_rnn_opts lstm = { .input = s->hidden, .hidden = s->hidden, .layers = (int)s->layers };
    const weft_embedding_opts table = { .rows = BYTES, .columns = s->hidden };
    size_t numbers = (size_t)(s->layers * most * s->hidden);
    model it = {
        .w = w,
        .all = m,
        .table = weft_embedding_new(m, "table", &table),
        .lstm = weft_lstm_new(m, "lstm", &lstm),
        .head = weft_linear_new(m, "head", &(weft_linear_opts){ .in = s->hidden, .out = BYTES }),
        .hidden = s->hidden,
        .layers = s->layers,
        .most = most,
        .h = memory(numbers, sizeof(weft_real)),
        .c = memory(numbers, sizeof(weft_real)),
        .scores = memory((size_t)(most * BYTES), sizeof(weft_real)),
    };
    check_context(w, "making the model");
    if (s->file)
        check_file(weft_load(s->file, m, NULL, NULL, 0));
    weft_set_training(w, false), weft_set_grad_enabled(w, false);
    it.print = print_of(&it);
    return it;
}

void model_close(model *m)
{
    weft_close(m->w);
    free(m->h), free(m->c), free(m->scores);
}

int64_t model_bytes(const model *m) { return weft_usage_of(m->w).host_bytes; }

/* ---- a step ---- */
/* [layers, n, hidden], from n users, or back to them */
static void gather(const model *m, int64_t n, state *const *users, bool back)
{
    size_t bytes = (size_t)m->hidden * sizeof *m->h;
    for (int64_t l = 0; l < m->layers; l++)
        for (int64_t i = 0; i < n; i++) {
            weft_real *h = m->h + (l * n + i) * m->hidden, *c = m->c + (l * n + i) * m->hidden;
            weft_real *of_h = users[i]->h + l * m->hidden, *of_c = users[i]->c + l * m->hidden;
            memcpy(back ? of_h : h, back ? h : of_h, bytes);
            memcpy(back ? of_c : c, back ? c : of_c, bytes);
        }
}

static int32_t largest(const weft_real *scores)
{
    int32_t best = 0;
    for (int32_t j = 1; j < BYTES; j++)
        best = scores[j] > scores[best] ? j : best;
    return best;
}

void model_step(model *m, int64_t n, state *const *users, const int32_t *token, int32_t *likeliest)
{
    size_t bytes = (size_t)(m->layers * n * m->hidden) * sizeof *m->h;
    gather(m, n, users, false);
    weft_state before = { weft_reals(m->w, m->h, WEFT_SHAPE(m->layers, n, m->hidden)),
                          weft_reals(m->w, m->c, WEFT_SHAPE(m->layers, n, m->hidden)) };
    weft_rnn_out out =
        weft_rnn_step(m->lstm, weft_embedding_run(m->table, weft_ints(m->w, token, WEFT_SHAPE(n))), before);
    weft_read(weft_linear_run(m->head, out.y), m->scores, (size_t)(n * BYTES) * sizeof *m->scores);
    weft_read(out.last.h, m->h, bytes), weft_read(out.last.c, m->c, bytes);
    check_context(m->w, "a step of %d users", (int)n);
    weft_clear(m->w);
    gather(m, n, users, true);
    for (int64_t i = 0; i < n; i++)
        likeliest[i] = largest(m->scores + i * BYTES), users[i]->tokens++;
}

/* ---- states as bytes ---- */
static const char format[] = "weft state 1\n"; /* the name and the version */
enum { NAME = sizeof format - 1, HEAD = NAME + 3 * 4 + 2 * 8, CHECK = 8 };

static unsigned char *put(unsigned char *to, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (unsigned char)(x >> 8 * i);
    return to;
}
static uint64_t take(const unsigned char **from, int bytes)
{
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint64_t) * (*from)++ << 8 * i;
    return x;
}

/* The bits of a number, as an integer, and back. */
static uint64_t bits_of(weft_real x)
{
    uint64_t bits = 0;
    uint32_t word;
    if (sizeof x == sizeof bits)
        memcpy(&bits, &x, sizeof x);
    else
        memcpy(&word, &x, sizeof word), bits = word;
    return bits;
}
static weft_real of_bits(uint64_t bits)
{
    weft_real x;
    uint32_t word = (uint32_t)bits;
    if (sizeof x == sizeof bits)
        memcpy(&x, &bits, sizeof x);
    else
        memcpy(&x, &word, sizeof word);
    return x;
}

static int64_t numbers_of(const model *m) { return m->layers * m->hidden; }

state state_new(const model *m)
{
    size_t n = (size_t)numbers_of(m);
    return (state){ memory(n, sizeof(weft_real)), memory(n, sizeof(weft_real)), 0 };
}
void state_free(state *s) { free(s->h), free(s->c); }

size_t state_size(const model *m) { return HEAD + 2 * (size_t)numbers_of(m) * sizeof(weft_real) + CHECK; }

void state_save(const model *m, const state *s, unsigned char *bytes)
{
    unsigned char *at = bytes;
    memcpy(at, format, NAME), at += NAME;
    at = put(at, sizeof(weft_real), 4), at = put(at, (uint64_t)m->layers, 4);
    at = put(at, (uint64_t)m->hidden, 4), at = put(at, m->print, 8), at = put(at, (uint64_t)s->tokens, 8);
    for (int64_t i = 0; i < numbers_of(m); i++)
        at = put(at, bits_of(s->h[i]), sizeof(weft_real));
    for (int64_t i = 0; i < numbers_of(m); i++)
        at = put(at, bits_of(s->c[i]), sizeof(weft_real));
    put(at, mixed(0, bytes, (size_t)(at - bytes)), CHECK);
}

const char *state_restore(const model *m, const unsigned char *bytes, size_t n, state *s)
{
    const unsigned char *at = bytes + NAME, *end = bytes + n - CHECK;
    if (n < HEAD + CHECK || memcmp(bytes, format, NAME))
        return "these bytes are no state of version 1";
    if (take(&at, 4) != sizeof(weft_real) || take(&at, 4) != (uint64_t)m->layers ||
        take(&at, 4) != (uint64_t)m->hidden)
        return "the state is of a model of another size";
    if (n != state_size(m) || take(&end, CHECK) != mixed(0, bytes, n - CHECK))
        return "some of these bytes have changed, or are missing";
    if (take(&at, 8) != m->print)
        return "the state is of a model with other weights";
    s->tokens = (int64_t)take(&at, 8);
    for (int64_t i = 0; i < numbers_of(m); i++)
        s->h[i] = of_bits(take(&at, sizeof(weft_real)));
    for (int64_t i = 0; i < numbers_of(m); i++)
        s->c[i] = of_bits(take(&at, sizeof(weft_real)));
    return NULL;
}
