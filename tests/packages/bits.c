/* bits.c - prints checksums of results on every instruction set of this machine, to compare the bits of two builds
 * of the library: `bits PROGRAMS` runs that many random programs of tests/hunt, and trains a model in each
 * precision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/hunt/hunt.h"

static uint64_t checksum(uint64_t before, const void *bytes, int64_t n)
{
    for (int64_t i = 0; bytes && i < n; i++)
        before = (before ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return before;
}

static void run_program(const char *isa, uint64_t seed)
{
    static const hunt_way way = { .name = "packed", .threads = 2, .layout = HUNT_PACKED };
    hunt_program p = hunt_program_of(seed);
    hunt_result r = hunt_run(&p, &way);
    int64_t size = (int64_t)sizeof(weft_real);
    uint64_t sum = checksum(checksum(1, r.failure, (int64_t)strlen(r.failure)), r.dx, r.tokens * p.width * size);
    sum = checksum(checksum(sum, r.y, r.tokens * r.width * size), r.ds, p.n * HUNT_STATE * size);
    printf("program %llu on %s: %016llx\n", (unsigned long long)seed, isa, (unsigned long long)sum);
    hunt_end(&r);
}

/* Trains with most kinds of layers and prints a checksum of the losses and the parameters. */
static void train(const char *isa, weft_precision precision)
{
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = 2, .precision = precision });
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *embed = weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 50, .columns = 40 });
    weft_rnn *lstm = weft_lstm_new(m, "lstm", &(weft_rnn_opts){ .input = 40, .hidden = 48, .bidirectional = true });
    weft_rnn *gru = weft_gru_new(m, "gru", &(weft_rnn_opts){ .input = 96, .hidden = 37 });
    weft_linear *out = weft_linear_new(m, "out", &(weft_linear_opts){ .in = 37, .out = 50 });
    weft_optim *rule = precision == WEFT_FP32 ? weft_adam_new(m, NULL) :
                       precision == WEFT_TF32 ?
                           weft_rmsprop_new(m, &(weft_rmsprop_opts){ .momentum = .9, .centered = true }) :
                           weft_sgd_new(m, &(weft_sgd_opts){ .lr = .1, .momentum = .9, .dampening = .1 });
    int32_t len[40], in[40 * 39], n = 0;
    for (int i = 0; i < 40; n += len[i++])
        len[i] = i;
    for (int i = 0; i < n; i++)
        in[i] = i * i % 47;
    uint64_t sum = 1;
    for (int step = 0; step < 5 && weft_ok(w); step++) {
        weft_lengths lengths = { .n = 40, .len = len };
        weft_tensor *x = weft_embedding_run(embed, weft_ragged_ints(w, in, &lengths));
        x = weft_dropout(weft_rnn_run(lstm, x, WEFT_ZERO_STATE).y, .2, "drop", false);
        x = weft_linear_run(out, weft_rnn_run(gru, x, WEFT_ZERO_STATE).y);
        weft_tensor *loss = weft_mean_loss(weft_cross_entropy(x, weft_ragged_ints(w, in, &lengths), NULL));
        weft_backward(loss);
        weft_clip_grad_norm(m, 1, 0);
        weft_optim_step(rule);
        double value = weft_item(loss);
        sum = checksum(sum, &value, sizeof value);
        weft_clear(w);
    }
    weft_tensor *y = weft_embedding_run(embed, weft_arange(w, 0, 50, 1));
    static weft_real numbers[50 * 40];
    weft_read(y, numbers, sizeof numbers);
    printf("training on %s, precision %d: %016llx%s\n", isa, (int)precision,
           (unsigned long long)checksum(sum, numbers, sizeof numbers), weft_ok(w) ? "" : weft_error_message(w));
    weft_close(w);
}

int main(int argc, char **argv)
{
    static const char *const isas[] = { "ref", "generic", "avx2", "avx512", "amx", "amx-emulated", "neon-bf16" };
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        setenv("WEFT_ISA", isas[i], 1);
        weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .precision = WEFT_BF16 });
        bool here = weft_ok(w);
        weft_close(w);
        for (int seed = 1; here && i < 4 && argc > 1 && seed <= atoi(argv[1]); seed++)
            run_program(isas[i], (uint64_t)seed);
        for (int p = 0; here && p < 3; p++)
            train(isas[i], (weft_precision[]){ WEFT_FP32, WEFT_TF32, WEFT_BF16 }[p]);
    }
}
