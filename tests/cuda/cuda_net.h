/* cuda_net.h - a small model, its training steps, and contexts on each GPU, for the tests of tests/cuda. */
#ifndef CUDA_NET_H
#define CUDA_NET_H
#include "tests/check.h"
#include "core/inside.h"

enum { WORDS = 12, WIDTH = 8, HIDDEN = 8, TOKENS = 4096 };
typedef struct net {
    weft *w;
    weft_module *all;
    weft_embedding *embed;
    weft_rnn *rnn;
    weft_linear *out;
    weft_optim *optim;
} net;

static const int32_t few[] = { 3, 0, 5, 1 };

UNUSED static net net_in(weft *w)
{
    weft_module *m = weft_module_new(w, "net");
    net n = { .w = w,
              .all = m,
              .embed =
                  weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = WORDS, .columns = WIDTH }),
              .rnn =
                  weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = WIDTH, .hidden = HIDDEN, .layers = 1 }),
              .out = weft_linear_new(m, "out", &(weft_linear_opts){ .in = HIDDEN, .out = WORDS }) };
    n.optim = weft_adamw_new(m, NULL);
    return n;
}

UNUSED static void train(const net *n, int64_t sequences, const int32_t *len)
{
    static int32_t tokens[TOKENS], next[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = i * 7 % WORDS;
        next[i] = (i * 7 + 3) % WORDS;
    }
    weft_lengths of = { .n = sequences, .len = len };
    weft_tensor *x = weft_ragged_ints(n->w, tokens, &of), *y = weft_ragged_ints(n->w, next, &of);
    weft_rnn_out r = weft_rnn_run(n->rnn, weft_embedding_run(n->embed, x), WEFT_ZERO_STATE);
    weft_backward(weft_mean_loss(weft_cross_entropy(weft_linear_run(n->out, r.y), y, NULL)));
    weft_clip_grad_norm(n->all, 1, 0);
    weft_optim_step(n->optim);
    if (weft_ok(n->w))
        weft_clear(n->w);
}
UNUSED static void train_few(const net *n) { train(n, COUNT(few), few); }

UNUSED static weft_real *bias(const net *n) { return numbers(weft_find_parameter(n->all, "out.bias")); }

#define FOR_CUDA(w)    for (weft *w = open_on(WEFT_CUDA); w; CLEAN(w), w = NULL)
#define CUDA_TEST(...) WITH_CONTEXTS(FOR_CUDA, __VA_ARGS__, .disabled = false)

/* Returns the bias after training in a separate context. */
UNUSED static weft_real *bias_after(int steps)
{
    static weft_real kept[WORDS];
    weft *w = open_on(WEFT_CUDA);
    net n = net_in(w);
    for (int i = 0; i < steps; i++)
        train_few(&n);
    memcpy(kept, bias(&n), sizeof kept);
    CLEAN(w);
    return kept;
}

UNUSED static weft *open_gpu(int index)
{
    return open_with((weft_opts){ .device = WEFT_CUDA, .index = index, .seed = 1 });
}

UNUSED static void check_device(const char *device, int index, const char *message)     /* WEFT_DEVICE */
{
    setenv("WEFT_DEVICE", device, 1);
    weft *w = open_with((weft_opts){ .device = WEFT_CPU });
    if (message)
        cr_assert(weft_error_code(w) == WEFT_EDEVICE && strstr(weft_error_message(w), message), "%s: %s",
                  device, weft_error_message(w));
    else
        cr_assert(weft_ok(w) && !strcmp(weft_device_name(w), "cuda") && w->dev.index == index, "%s: %s",
                  device, weft_error_message(w));
    weft_recover(w);
    cr_assert(weft_ok(w) == !message, "recovered, but the device was never opened");
    CLEAN_FAILED(w);
    unsetenv("WEFT_DEVICE");
}

#endif
