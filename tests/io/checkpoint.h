/* checkpoint.h - the common parts of the tests of checkpoints: a model with every kind of state, and a
 * checksum of its state. */
#ifndef WEFT_TEST_CHECKPOINT_H
#define WEFT_TEST_CHECKPOINT_H
#include "io/checkpoint/checkpoint.h"
#include "files.h"

typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *lstm;
    weft_linear *out;
    weft_optim *o;
    weft_tensor *carried;
} model;

UNUSED static model model_in(weft *w)
{
    model k = { .w = w, .m = weft_module_new(w, "net") };
    k.lstm = weft_lstm_new(
        k.m, "enc",
        &(weft_rnn_opts){
            .input = 3, .hidden = 5, .layers = 2, .bidirectional = true, .dropout = (weft_real).3 });
    k.out = weft_linear_new(k.m, "out", &(weft_linear_opts){ .in = 10, .out = 2 });
    k.carried = weft_buffer(k.m, "carried", WEFT_SHAPE(2, 3));
    weft_buffer(weft_rnn_module(k.lstm), "none", WEFT_SHAPE(4, 0));
    weft_parameter(k.m, "temperature", 0, NULL, (weft_init){ WEFT_INIT_CONSTANT, 2, 0 });
    weft_tie(k.m, "again", weft_find_parameter(k.m, "out.weight"));
    k.o = weft_adam_new(k.m, NULL);
    OK(w);
    return k;
}

UNUSED static model model_new(uint64_t seed)
{
    return model_in(open_with((weft_opts){ .device = WEFT_CPU, .seed = seed, .threads = 1 }));
}

/* random ragged batches from a stream of the context */
UNUSED static void train(const model *k, int steps)
{
    weft_stream *data = weft_stream_of(k->w, "data");
    for (int i = 0; i < steps; i++) {
        enum { N = 5, LONGEST = 7 };
        int32_t   len[N];
        weft_real x[N * LONGEST * 3], y[N * LONGEST * 2];
        for (int s = 0; s < N; s++)
            len[s] = (int32_t)weft_stream_below(data, LONGEST + 1);
        for (int j = 0; j < COUNT(x); j++)
            x[j] = (weft_real)weft_stream_normal(data);
        for (int j = 0; j < COUNT(y); j++)
            y[j] = (weft_real)weft_stream_uniform(data);
        weft_lengths l = { .n = N, .len = len };
        weft_tensor *h = weft_rnn_run(k->lstm, weft_ragged(k->w, x, 3, &l), WEFT_ZERO_STATE).y;
        weft_loss loss = weft_mse(weft_linear_run(k->out, h), weft_ragged(k->w, y, 2, &l), NULL);
        weft_backward(weft_mean_loss(loss));
        weft_optim_step(k->o);
        weft_clear(k->w);
    }
    OK(k->w);
}

static uint32_t crc_of(uint32_t crc, weft *w, const void *at, size_t n, bool device)
{
    if (!device || !n)
        return weft__crc32c(crc, at, n);
    void *host = malloc(n);
    w->dev.k->download(&w->dev, host, at, n);
    crc = weft__crc32c(crc, host, n);
    free(host);
    return crc;
}

/* All that a checkpoint keeps, as a checksum. */
UNUSED static uint32_t state_of(const model *k)
{
    uint32_t crc = 0, streams = 0;
    for (weft__parameter *p = k->m->root->first; p; p = p->next_in_root)
        crc = crc_of(crc, k->w, p->value.data, p->tied ? 0 : (size_t)weft__bytes(&p->value.f), true);
    weft__saved all[32];
    int n = weft__optim_entries(k->o, all, 32);
    for (int i = 0; i < n; i++)
        crc = crc_of(crc, k->w, all[i].data,
                     (size_t)all[i].n * weft__number_bytes(weft__number_of(all[i].type)), all[i].device);
    /* the order of streams and an unused stream are not state */
    for (weft_stream *s = k->w->random.streams; s; s = s->next)
        if (s->count)
            streams += weft__crc32c(weft__crc32c(s->key & 0xFFFFFFFF, s->name, strlen(s->name)), &s->count,
                                    sizeof s->count);
    crc = weft__crc32c(crc, &k->w->random.seed, sizeof k->w->random.seed);
    return weft__crc32c(crc, &k->w->random.draw, sizeof k->w->random.draw) ^ streams;
}
#endif
