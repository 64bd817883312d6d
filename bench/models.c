/* models.c - the cases that train: a small classifier, and recurrent layers alone.
 *
 * Weights, inputs and token ids come from a formula (formula.c). */
#include <math.h>
#include <stdlib.h>
#include "bench.h"

typedef struct bench {
    weft *w; weft_module *all;
    weft_embedding *embed; weft_rnn *rnn; weft_linear *out;      /* embed, out: of a classifier only */
    bool classifier;
    weft_lengths lengths; int32_t *len, *ids, *classes;
    weft_tensor *x;                              /* [tokens, I], on the device from the start, as its peers have it */
    row row;
} bench;

static weft_tensor *classifier_loss(bench *b)
{
    weft_tensor *h = weft_embed(b->embed, weft_ragged_ints(b->w, b->ids, &b->lengths));
    h = weft_linear_run(b->out, weft_rnn_run(b->rnn, h, WEFT_ZERO_STATE).y);
    weft_tensor *classes = weft_ints(b->w, b->classes, WEFT_SHAPE(b->lengths.n));
    return weft_mean_loss(weft_cross_entropy(weft_pool(h, WEFT_POOL_SUM), classes, NULL));
}

static weft_tensor *sum_of_outputs(bench *b)
{
    weft_tensor *x = weft_ragged_like(b->x, weft_ragged_ints(b->w, b->ids, &b->lengths));
    return weft_total(weft_rnn_run(b->rnn, x, WEFT_ZERO_STATE).y);
}

static weft_tensor *loss_of(void *user) { return (((bench *)user)->classifier ? classifier_loss : sum_of_outputs)(user); }

static void build(bench *b)
{
    const row *r = &b->row;
    b->all = weft_module_new(b->w, "bench");
    if (b->classifier)
        b->embed = weft_embedding_with(b->all, "embedding", &(weft_embedding_opts){ .rows = 10, .columns = r->I, .has_padding = true });
    b->rnn = weft_lstm_new(b->all, "lstm", &(weft_rnn_opts){ .input = r->I, .hidden = r->H, .layers = r->layers, .bidirectional = r->bidirectional });
    if (b->classifier)
        b->out = weft_linear_new(b->all, "linear", r->H, 2);
}

/* Tokens are 1 .. 9, classes 0 and 1 in turn; of 0, the padding, there is none. */
static bool make_data(bench *b)
{
    row *r = &b->row;
    b->len = calloc((size_t)r->B, sizeof *b->len);
    b->classes = calloc((size_t)r->B, sizeof *b->classes);
    r->tokens = b->len ? make_lengths(r->lengths, 1, b->len, r->B, (int32_t)r->T) : 0;
    b->lengths = (weft_lengths){ r->B, b->len, NULL };
    b->ids = calloc((size_t)r->tokens, sizeof *b->ids);
    if (!b->len || !b->classes || !b->ids)
        return false;
    for (int64_t i = 0; i < r->tokens; i++)
        b->ids[i] = 1 + (int32_t)((formula("ids", i) + .5) * 9);
    for (int64_t i = 0; i < r->B; i++)
        b->classes[i] = (int32_t)(i % 2);
    b->x = b->classifier ? NULL : weft_buffer(b->all, "x", WEFT_SHAPE(r->tokens, r->I));
    return !b->x || fill(b->x, "x", 2);
}

static int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

static bool run(row r, bool classifier, const settings *s)
{
    r.layout = "packed";
    if (s->tiny)
        r.B = at_most(r.B, 8), r.T = at_most(r.T, 12), r.I = at_most(r.I, 16), r.H = at_most(r.H, 16);
    bench b = { .row = r, .classifier = classifier, .w = weft_open(&s->open) };
    build(&b);
    bool good = make_data(&b) && set_weights(b.all, 2 / sqrt((double)b.row.H)) && measure_training(&(training){ b.w, b.all, loss_of, &b, b.row }, s);
    weft_close(b.w);
    free(b.len); free(b.classes); free(b.ids);
    return good;
}

bool bench_net(const settings *s)
{
    static const int64_t all[] = { 32, 64, 128, 256, 512 }, quick[] = { 64, 256 };
    bool good = true;
    for (int i = 0; i < (s->quick ? 2 : 5); i++)
        good &= run((row){ .name = "net", .lengths = "triangle", .B = 512, .T = (s->quick ? quick : all)[i], .I = 16, .H = 32, .layers = 1 }, true, s);
    return good;
}

static bool lstm(const char *name, const char *lengths, int64_t H, int64_t B, int64_t T, bool two, const settings *s)
{
    return run((row){ .name = name, .lengths = lengths, .B = B, .T = T, .I = H, .H = H, .layers = two ? 2 : 1, .bidirectional = two }, false, s);
}

bool bench_lstm(const settings *s)
{
    static const int64_t cpu[][3] = { { 128, 64, 128 }, { 256, 64, 128 }, { 128, 8, 256 }, { 512, 64, 128 }, { 1024, 64, 64 } };
    static const int64_t gpu[][3] = { { 128, 64, 512 }, { 256, 64, 512 }, { 32, 64, 512 }, { 64, 64, 512 }, { 512, 64, 512 }, { 1024, 64, 512 } };
    bool on_gpu = s->open.device == WEFT_CUDA, good = true;
    for (int i = 0; i < (s->quick ? 2 : on_gpu ? 6 : 5); i++) {
        const int64_t *shape = on_gpu ? gpu[i] : cpu[i];
        good &= lstm("lstm", "uniform", shape[0], shape[1], shape[2], false, s);
    }
    return good;
}

bool bench_bilstm(const settings *s) { return lstm("bilstm", "uniform", 256, 64, 128, true, s); }

bool bench_long(const settings *s)
{
    return lstm("long", "equal", 128, 64, 512, false, s) && lstm("long", "equal", 128, 8, 4096, false, s) &&
           (s->quick || lstm("long", "equal", 128, 1, 70000, false, s));
}

/* From what this prints with WEFT_RECUR=general, =block and =cluster the GPU's table of choices is made. */
bool bench_sweep(const settings *s)
{
    static const int64_t units[] = { 32, 64, 128, 256, 512 }, sequences[] = { 1, 8, 32, 64, 128, 256, 512, 1024 };
    bool good = true;
    for (int h = 0; h < (s->quick ? 1 : 5); h++)
        for (int b = 0; b < (s->quick ? 2 : 8); b++)
            good &= lstm("sweep", "equal", units[h], sequences[b], 128, false, s);
    return good;
}
