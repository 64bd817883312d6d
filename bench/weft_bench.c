/* weft_bench.c - measures training steps, layers, products and packing; one JSON object a line on stdout.
 *
 *     weft_bench --case CASE,.. --threads N --runs R [--quick] [--tiny] [--layout L]
 *                [--device cpu|ref|cuda] [--precision fp32|strict_fp32|tf32|bf16] [--cpu-time]
 *
 * docs/performance.md describes the cases.
 *
 * --quick takes fewer shapes, --tiny cuts each down to B <= 8, T <= 12, H <= 16, for the emulation of a GPU.
 * --cpu-time measures the processor time of all threads: with one thread, times that other programs
 * disturb little. --layout: packed, concat, rows or padded, where a case has it. On a GPU the shapes of
 * lstm are longer. `forward` runs without the tape; `train` is zero_grad, forward, loss, backward, without
 * an optimiser except in g2p; loss and norm are those of one such step with weights and data by formula. ms
 * is the median of `runs` after two runs that are not counted. gflop, gf_s: formula.c; peak_gf_s, share:
 * flops.c; peak_bytes: train.c. allocations: in the measured runs; context_bytes: what the context holds
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

static bool read_option(const char *option, const char *value, settings *s, const char **names)
{
    static const weft_device devices[] = { WEFT_CPU, WEFT_REF, WEFT_CUDA };
    int which = 0;
    if (!strcmp(option, "--case")) {
        *names = value;
    } else if (!strcmp(option, "--threads")) {
        s->open.threads = atoi(value);
    } else if (!strcmp(option, "--runs")) {
        s->runs = atoi(value);
    } else if (!strcmp(option, "--layout")) {
        s->layout = value;
        which = which_of("packed,concat,rows,padded,plain", value);
    } else if (!strcmp(option, "--device")) {
        which = which_of("cpu,ref,cuda", value);
        s->open.device = devices[which < 0 ? 0 : which];
    } else {
        which = which_of("fp32,strict_fp32,tf32,bf16", value);
        s->open.precision = (weft_precision)(which < 0 ? 0 : which);
        return which >= 0 && !strcmp(option, "--precision");
    }
    return which >= 0;
}

static bool read_options(int argc, char **argv, settings *s, const char **names)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            s->quick = true;
        else if (!strcmp(argv[i], "--tiny"))
            s->tiny = true;
        else if (!strcmp(argv[i], "--cpu-time"))
            by_cpu_time = true;
        else if (i + 1 == argc || !read_option(argv[i], argv[i + 1], s, names))
            return false;
        else
            i++;
    return true;
}

/* Measures the peak rate of multiply-adds in the instruction set that the kernels will use. */
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
                "[--cpu-time]\ncases:");
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
