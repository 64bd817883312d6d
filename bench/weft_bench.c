/* weft_bench.c - measures training steps, layers, products and packing; one JSON object a line on stdout.
 *
 *     weft_bench --case CASE,.. --threads N --runs R [--quick] [--tiny] [--layout L]
 *                [--device cpu|ref|cuda] [--precision fp32|strict_fp32|tf32|bf16] [--graphs] [--cpu-time]
 *
 *   net               Embedding(10,16), LSTM(16,32), Linear(32,2) summed over time, cross entropy; B=512,
 *                     triangle lengths
 *   slow_pack         the same model, packed for the LSTM or padded with a mask, lengths equal or triangle
 *   lstm              one LSTM layer, I=H, B=64, lengths uniform in [T/8, T], loss = sum of outputs
 *   gru               the same of a GRU
 *   bilstm            two bidirectional LSTM layers, I=H=256, B=64
 *   long              one LSTM layer, H = 32 and 128, the same 262,144 tokens as sequences of 32 .. 4,096,
 *                     and a single one of 70,000
 *   sweep             one LSTM layer, H = 32 .. 512, B = 1 .. 1,024 equal lengths of 128
 *   never_slower      one LSTM layer, every H of 16 .. 1,024 beside every B of 1 .. 512, T such that a step
 *                     stays short
 *   transformer_lstm  d=128, 4 heads, 2 LSTM layers, 2 blocks, dropout 0, B=64, past up to 300 steps of 4
 *                     features, future up to 100 of 3, masked MSE; packed, and padded as PyTorch does it
 *                     (plain tensors, masks), for the three kinds of lengths
 *   tft               Temporal Fusion Transformer, d=64, 4 heads, one LSTM layer, dropout 0, B=8 and 64, past
 *                     200 steps of 4 features, future 80 of 3, MSE
 *   attention         multi-head attention of sequences to themselves with its linear layers, loss = sum of
 *                     outputs
 *   g2p               sixteen updates of the demo's encoder-decoder with attention, optimiser and clipping
 *                     included
 *   decode            10,567 words by formula, read and written out by the demo's model, greedily and by
 *                     4 beams, 256 words and one at a time
 *   growth            an LSTM's training step as its length, sequences, units, vocabulary, features or
 *                     threads grow: bench/growth.py
 *   gemm              products in the shapes of layers, forwards and backwards; WEFT_GEMM=openblas has
 *                     OpenBLAS do them
 *   pack              to_layout there and back, pack_padded_sequence, pad_packed_sequence, forward and
 *                     backward, beside a plain copy of the same bytes
 *   plan              every planner that is for millions of sequences: 10 million log-normal lengths, in a
 *                     process each; seconds, and bytes a sequence, the check included
 *
 * --quick takes fewer shapes, --tiny cuts each down to B <= 8, T <= 12, H <= 16, for the emulation of a GPU.
 * --cpu-time measures the processor time of all threads: with one thread, times that other programs
 * disturb little. --layout: packed, concat, rows or padded, where a case has it. On a GPU the shapes of
 * lstm are longer. `forward` runs without the tape; `train` is zero_grad, forward, loss, backward, without
 * an optimiser but for g2p; loss and norm are those of one such step with weights and data by formula. ms
 * is the median of `runs` after two runs that are not counted. gflop, gf_s: see work.c; peak_gf_s, share:
 * flops.c; peak_bytes: memory.c. allocations: in the measured runs; context_bytes: what the context holds
 * after them. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define CASE(name) { #name, bench_##name }
static const struct {
    const char *name;
    bench_case *run;
} cases[] = { CASE(net), CASE(lstm), CASE(gru), CASE(bilstm), CASE(transformer_lstm), CASE(tft),
              CASE(attention), CASE(g2p), CASE(decode), CASE(growth), CASE(gemm), CASE(pack), CASE(plan),
              CASE(long), CASE(never_slower), CASE(sweep), CASE(slow_pack) };

static bool run_named(const char *name, const settings *s)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, name))
            return cases[i].run(s);
    fprintf(stderr, "weft_bench: there is no case \"%s\"\n", name);
    return false;
}

/* Which of the names, separated by commas, a value is; -1: none. */
static int which_of(const char *names, const char *value)
{
    size_t length = strlen(value);
    int    i = 0;
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',', i++)
        if (strcspn(at, ",") == length && !strncmp(at, value, length))
            return i;
    return -1;
}

static bool read_option(const char *option, const char *value, settings *s, const char **names)
{
    static const weft_device devices[] = { WEFT_CPU, WEFT_REF, WEFT_CUDA };
    int which = 0;
    if (!strcmp(option, "--case"))
        *names = value;
    else if (!strcmp(option, "--threads"))
        s->open.threads = atoi(value);
    else if (!strcmp(option, "--runs"))
        s->runs = atoi(value);
    else if (!strcmp(option, "--layout"))
        which = which_of("packed,concat,rows,padded,plain", s->layout = value);
    else if (!strcmp(option, "--device"))
        which = which_of("cpu,ref,cuda", value);
    else if (!strcmp(option, "--precision"))
        which = which_of("fp32,strict_fp32,tf32,bf16", value);
    else
        return false;
    if (!strcmp(option, "--device") && which >= 0)
        s->open.device = devices[which];
    if (!strcmp(option, "--precision") && which >= 0)
        s->open.precision = (weft_precision)which;
    return which >= 0;
}

static bool read_options(int argc, char **argv, settings *s, const char **names)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            s->quick = true;
        else if (!strcmp(argv[i], "--tiny"))
            s->tiny = true;
        else if (!strcmp(argv[i], "--graphs"))
            s->open.graphs = true;
        else if (!strcmp(argv[i], "--cpu-time"))
            by_cpu_time = true;
        else if (i + 1 == argc || !read_option(argv[i], argv[i + 1], s, names))
            return false;
        else
            i++;
    return true;
}

/* What the machine can do in the instruction set that the kernels will use. */
static void find_peak(settings *s)
{
    weft *w = weft_open(&s->open);
    if (weft_ok(w) && s->open.device != WEFT_CUDA) {
        s->peak[0] = fma_peak(weft_device_name(w), 1);
        s->peak[1] = weft_threads(w) > 1 ? fma_peak(weft_device_name(w), weft_threads(w)) : s->peak[0];
    }
    weft_close(w);
}

int main(int argc, char **argv)
{
    settings    s = { .open = { .device = WEFT_CPU, .seed = 1, .threads = 2 }, .runs = 7 };
    const char *names = "net,lstm,pack";
    if (!read_options(argc, argv, &s, &names)) {
        fprintf(stderr,
                "usage: weft_bench [--case CASE,..] [--threads N] [--runs R] [--quick] [--tiny] [--layout "
                "packed|concat|rows|padded]\n"
                "                  [--device cpu|ref|cuda] [--precision fp32|strict_fp32|tf32|bf16] "
                "[--graphs] [--cpu-time]\ncases:");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            fprintf(stderr, " %s", cases[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    bool good = true;
    char name[32];
    find_peak(&s);
    for (const char *at = names; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        good &= run_named(name, &s);
        at += n;
    }
    return !good;
}
