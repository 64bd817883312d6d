/* bits.c - prints checksums of results on every instruction set of this machine, to compare two builds of the
 * library: of random programs of tests/hunt, and of models trained in each precision. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/hunt/hunt.h"

static uint64_t sum;
static void add(const void *bytes, size_t n)
{
    for (size_t i = 0; bytes && i < n; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
}

static void run_program(uint64_t seed)
{
    static const hunt_way way = { .name = "packed", .threads = 2, .layout = HUNT_PACKED };
    hunt_program p = hunt_program_of(seed);
    hunt_result r = hunt_run(&p, &way);
    size_t size = sizeof(weft_real);
    add(r.failure, strlen(r.failure));
    add(r.y, (size_t)(r.tokens * r.width) * size);
    add(r.dx, (size_t)(r.tokens * p.width) * size);
    add(r.ds, (size_t)p.n * HUNT_STATE * size);
    hunt_end(&r);
}

static void train(weft_precision precision)
{
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = 2, .precision = precision });
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *embed = weft_embedding_new(m, "e", &(weft_embedding_opts){ .rows = 50, .columns = 40 });
    weft_rnn_opts inner = { .input = 40, .hidden = 48, .bidirectional = true },
                  outer = { .input = 96, .hidden = 50 };
    weft_rnn *lstm = weft_lstm_new(m, "l", &inner), *gru = weft_gru_new(m, "g", &outer);
    weft_optim *rule = weft_adam_new(m, NULL);
    if (precision == WEFT_TF32)
        rule = weft_rmsprop_new(m, &(weft_rmsprop_opts){ .momentum = .9, .centered = true });
    if (precision == WEFT_BF16)
        rule = weft_sgd_new(m, &(weft_sgd_opts){ .lr = .1, .momentum = .9, .dampening = .1 });
    int32_t len[40], in[40 * 39], n = 0;
    for (int i = 0; i < 40; n += len[i++])
        len[i] = i;
    for (int i = 0; i < n; i++)
        in[i] = i * i % 47;
    weft_lengths lengths = { .n = 40, .len = len };
    for (int step = 0; step < 5 && weft_ok(w); step++) {
        weft_tensor *x = weft_embedding_run(embed, weft_ragged_ints(w, in, &lengths));
        x = weft_dropout(weft_rnn_run(lstm, x, WEFT_ZERO_STATE).y, .2, "drop", false);
        x = weft_rnn_run(gru, x, WEFT_ZERO_STATE).y;
        weft_backward(weft_mean_loss(weft_cross_entropy(x, weft_ragged_ints(w, in, &lengths), NULL)));
        weft_clip_grad_norm(m, 1, 0);
        weft_optim_step(rule);
        weft_clear(w);
    }
    static weft_real numbers[50 * 40];
    weft_read(weft_embedding_run(embed, weft_arange(w, 0, 50, 1)), numbers, sizeof numbers);
    add(numbers, sizeof numbers);
    add(weft_error_message(w), strlen(weft_error_message(w)));
    weft_close(w);
}

int main(void)
{
    static const weft_precision precisions[] = { WEFT_FP32, WEFT_TF32, WEFT_BF16 };
    static const char *const isas[] = { "ref", "generic", "avx2", "avx512", "amx", "neon-bf16" };
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        setenv("WEFT_ISA", isas[i], 1);
        weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .precision = WEFT_BF16 });
        bool here = weft_ok(w);
        weft_close(w);
        for (int k = 0; here && k < 203; k++) {
            sum = 1;
            k < 3 ? train(precisions[k]) : run_program((uint64_t)k);
            printf("%s, %s %d: %" PRIx64 "\n", isas[i], k < 3 ? "training" : "program", k, sum);
        }
    }
}
