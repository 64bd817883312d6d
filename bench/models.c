/* models.c - the cases that train: a small classifier, and recurrent layers alone. */
#include <stdlib.h>
#include "bench.h"

typedef struct bench {
    weft *w; weft_module *all;
    weft_embedding *embed; weft_rnn *rnn; weft_linear *out;      /* embed, out: of a classifier only */
    bool classifier;
    weft_lengths lengths; int32_t *len, *ids, *classes; weft_real *x;
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
    return weft_total(weft_rnn_run(b->rnn, weft_ragged(b->w, b->x, b->row.I, &b->lengths), WEFT_ZERO_STATE).y);
}

static void step(bench *b, bool train)
{
    weft_recording(b->w, train);
    if (train)
        weft_zero_grad(b->all);
    weft_tensor *loss = (b->classifier ? classifier_loss : sum_of_outputs)(b);
    if (train)
        weft_backward(loss);
    weft_wait(b->w);
    weft_clear(b->w);
}

static bool measure(bench *b, const settings *s)
{
    for (int train = 0; train < 2; train++) {
        times  t = { 0 };
        double start;
        step(b, train);
        step(b, train);
        do {
            start = now_ms();
            step(b, train);
        } while (more(&t, now_ms() - start, s));
        if (failed(b->w, b->row.name))
            return false;
        b->row.pass = train ? "train" : "forward";
        emit(s, b->w, &b->row, &t);
    }
    return true;
}

static void build(bench *b)
{
    const row *r = &b->row;
    b->all = weft_module_new(b->w, "bench");
    b->rnn = weft_lstm_new(b->all, "lstm", &(weft_rnn_opts){ .input = r->I, .hidden = r->H, .layers = r->layers, .bidirectional = r->bidirectional });
    if (b->classifier) {
        b->embed = weft_embedding_with(b->all, "embed", &(weft_embedding_opts){ .rows = 10, .columns = r->I, .has_padding = true });
        b->out = weft_linear_new(b->all, "out", r->H, 2);
    }
}

/* Every token is a 1; the reals are anything in -1 .. 1; every class is 0. */
static bool make_data(bench *b)
{
    row *r = &b->row;
    b->len = calloc((size_t)r->B, sizeof *b->len);
    b->classes = calloc((size_t)r->B, sizeof *b->classes);
    r->tokens = b->len ? make_lengths(r->lengths, b->len, r->B, (int32_t)r->T) : 0;
    b->lengths = (weft_lengths){ r->B, b->len, NULL };
    b->ids = calloc((size_t)r->tokens, sizeof *b->ids);
    b->x = calloc((size_t)(r->tokens * r->I), sizeof *b->x);
    if (!b->len || !b->classes || !b->ids || !b->x)
        return false;
    for (int64_t i = 0; i < r->tokens; i++)
        b->ids[i] = 1;
    for (int64_t i = 0; i < r->tokens * r->I; i++)
        b->x[i] = (weft_real)(i * 7919 % 2003) / 1001 - 1;
    return true;
}

static bool run(row r, bool classifier, const settings *s)
{
    r.layout = "packed";
    bench b = { .row = r, .classifier = classifier, .w = weft_open(&s->open) };
    build(&b);
    bool good = make_data(&b) && measure(&b, s);
    weft_close(b.w);
    free(b.len); free(b.classes); free(b.ids); free(b.x);
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
    static const int64_t all[][3] = { { 128, 8, 256 }, { 128, 64, 128 }, { 256, 64, 128 }, { 512, 64, 128 }, { 1024, 64, 64 } };
    bool good = true;
    for (int i = s->quick ? 1 : 0; i < (s->quick ? 3 : 5); i++)
        good &= lstm("lstm", "uniform", all[i][0], all[i][1], all[i][2], false, s);
    return good;
}

bool bench_bilstm(const settings *s) { return lstm("bilstm", "uniform", 256, 64, 128, true, s); }

bool bench_long(const settings *s)
{
    return lstm("long", "equal", 128, 64, 512, false, s) && lstm("long", "equal", 128, 8, 4096, false, s) &&
           (s->quick || lstm("long", "equal", 128, 1, 70000, false, s));
}
