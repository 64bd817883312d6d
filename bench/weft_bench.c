/* weft_bench.c - measures training steps, layers, products and packing; prints one JSON object a line.
 *
 * `weft_bench --help` lists the options. docs/performance.md describes the cases.
 *
 * `forward` runs without the tape. `train` is zero_grad, forward, loss, backward; only g2p has an optimiser.
 * loss and norm belong to one such step, with weights and data from formula(). ms is the median of the runs
 * after two warm-up runs. gflop, gf_s: see formula.c; peak_gf_s, share: flops.c; peak_bytes: train.c.
 * allocations: in the measured runs; context_bytes: memory of the context after them. On a GPU the shapes
 * of lstm are longer. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define CASE(name) { #name, bench_##name }
static const struct {
    const char *name;
    bench_case *run;
} cases[] = { CASE(net), CASE(lstm), CASE(gru), CASE(bilstm), CASE(mingru), CASE(scan),
              CASE(transformer_lstm), CASE(tft), CASE(attention), CASE(g2p), CASE(decode), CASE(growth),
              CASE(gemm), CASE(pack), CASE(plan), CASE(long), CASE(never_slower), CASE(sweep),
              CASE(slow_pack), CASE(conv), CASE(crf), CASE(ctc) };

static bool run_named(const char *name, const settings *s)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, name))
            return cases[i].run(s);
    fprintf(stderr, "weft_bench: --case: found \"%s\"; weft_bench --help lists the cases\n", name);
    return false;
}

static bool read_option(const char *option, const char *value, settings *s, const char **names)
{
    static const weft_device devices[] = { WEFT_CPU, WEFT_REF, WEFT_CUDA };
    int index = 0;
    if (!strcmp(option, "--case")) {
        *names = value;
    } else if (!strcmp(option, "--threads")) {
        s->open.threads = atoi(value);
    } else if (!strcmp(option, "--runs")) {
        s->runs = atoi(value);
    } else if (!strcmp(option, "--layout")) {
        s->layout = value;
        index = which_of("packed,concat,rows,padded,plain", value);
    } else if (!strcmp(option, "--device")) {
        index = which_of("cpu,ref,cuda", value);
        s->open.device = devices[index < 0 ? 0 : index];
    } else {
        index = which_of("fp32,strict_fp32,tf32,bf16", value);
        s->open.precision = (weft_precision)(index < 0 ? 0 : index);
        return index >= 0 && !strcmp(option, "--precision");
    }
    return index >= 0;
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

/* Measures the machine's peak with the instruction set of the kernels. */
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
                "usage: weft_bench [OPTION]..\n\n"
                "  --case CASE,..   cases to measure (net,lstm,pack)\n"
                "  --cpu-time       measure the CPU time of all threads, not elapsed time\n"
                "  --device D       cpu, ref or cuda (cpu)\n"
                "  --layout L       packed, concat, rows, padded or plain (the first that the case has)\n"
                "  --precision P    fp32, strict_fp32, tf32 or bf16 (fp32)\n"
                "  --quick          measure fewer shapes\n"
                "  --runs N         timed runs (7)\n"
                "  --threads N      threads on the CPU (2)\n"
                "  --tiny           limit shapes to B 8, T 12, H 16, for tests\n\ncases:");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            fprintf(stderr, " %s", cases[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    bool ok = true;
    char name[32];
    find_peak(&s);
    for (const char *p = names; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        ok &= run_named(name, &s);
        p += n;
    }
    return !ok;
}
