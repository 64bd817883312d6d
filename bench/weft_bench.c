/* weft_bench.c - measures training steps and packing; one JSON object a line on stdout.
 *
 *     weft_bench --case net,lstm,bilstm,long,pack,sweep,transformer_lstm --threads N --runs R [--quick] [--tiny] [--device cpu|ref|cuda] [--precision fp32|..]
 *
 * net     Embedding(10,16), LSTM(16,32), Linear(32,2) summed over time, cross entropy; B=512, triangle lengths
 * lstm    one LSTM layer, I=H, B=64, lengths uniform in [T/8, T], loss = sum of outputs
 * bilstm  two bidirectional layers, I=H=256, B=64
 * long    one LSTM layer, H=128, the same 32,768 tokens as sequences of 512 and of 4,096, and a single one of 70,000
 * sweep   one LSTM layer, H = 16 .. 128, B = 1 .. 2,048 equal lengths of 128
 * transformer_lstm  d=128, 4 heads, 2 LSTM layers, 2 blocks, dropout 0, B=64, past up to 300 steps of 4 features, future up to 100 of 3, masked MSE;
 *         packed, and padded as PyTorch does it (plain tensors, masks), for the three kinds of lengths
 * pack    arrange there and back, pack_padded, pad_packed, forward and backward, beside a plain copy of the same bytes
 *
 * --quick takes fewer shapes, --tiny cuts each down to B <= 8, T <= 12, H <= 16, for the emulation of a GPU.
 * On a GPU the shapes of lstm are longer. `forward` runs without the tape; `train` is zero_grad, forward, loss, backward, without an
 * optimiser; loss and norm are those of one such step with weights and data by formula. ms is the median of `runs`
 * after two runs that are not counted. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool more(times *t, double ms, const settings *s)
{
    double sum = 0;
    t->ms[t->n++] = ms;
    for (int i = 0; i < t->n; i++)
        sum += t->ms[i];
    return t->n < s->runs && t->n < MOST_RUNS && sum <= 20e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(times *t)
{
    qsort(t->ms, (size_t)t->n, sizeof *t->ms, by_value);
    return t->n % 2 ? t->ms[t->n / 2] : (t->ms[t->n / 2 - 1] + t->ms[t->n / 2]) / 2;
}

void emit(const settings *s, weft *w, const row *r, times *t)
{
    static const char *const precisions[] = { "fp32", "strict_fp32", "tf32", "bf16" };
    double ms = median(t);
    printf("{\"who\": \"weft-%s-%s\", \"threads\": %d, \"case\": \"%s\", ", weft_version(), weft_device_name(w), weft_threads(w), r->name);
    if (r->what)
        printf("\"what\": \"%s\", ", r->what);
    printf("\"B\": %lld, \"T\": %lld, \"I\": %lld, ", (long long)r->B, (long long)r->T, (long long)r->I);
    if (!r->what)
        printf("\"H\": %lld, \"layers\": %d, \"bidirectional\": %s, ", (long long)r->H, r->layers, r->bidirectional ? "true" : "false");
    if (r->horizon)
        printf("\"horizon\": %lld, ", (long long)r->horizon);
    printf("\"lengths\": \"%s\", \"tokens\": %lld, \"layout\": \"%s\", \"pass\": \"%s\", \"precision\": \"%s\", ", r->lengths, (long long)r->tokens,
           r->layout, r->pass, sizeof(weft_real) == 8 ? "fp64" : precisions[s->open.precision]);
    if (r->what)
        printf("\"gb_s\": %.2f, \"copy_gb_s\": %.2f, \"copies\": %.2f, ", r->bytes / ms * 1e-6, r->bytes / r->copy_ms * 1e-6, ms / r->copy_ms);
    if (!r->what)
        printf("\"loss\": %.6g, \"norm\": %.6g, ", r->loss, r->norm);
    printf("\"ms\": %.4f, \"ms_min\": %.4f, \"runs\": %d}\n", ms, t->ms[0], t->n);
    fflush(stdout);
}

bool failed(weft *w, const char *where)
{
    if (!weft_ok(w))
        fprintf(stderr, "weft_bench: %s: %s\n", where, weft_message(w));
    return !weft_ok(w);
}

static bool run_case(const char *name, const settings *s)
{
    static const struct { const char *name; bool (*run)(const settings *); } cases[] = {
        { "net", bench_net }, { "lstm", bench_lstm }, { "bilstm", bench_bilstm }, { "long", bench_long }, { "pack", bench_pack },
        { "sweep", bench_sweep }, { "transformer_lstm", bench_transformer_lstm },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, name))
            return cases[i].run(s);
    fprintf(stderr, "weft_bench: there is no case \"%s\"\n", name);
    return false;
}

static bool read_option(const char *option, const char *value, settings *s, const char **cases)
{
    if (!strcmp(option, "--case"))
        *cases = value;
    else if (!strcmp(option, "--threads"))
        s->open.threads = atoi(value);
    else if (!strcmp(option, "--runs"))
        s->runs = atoi(value);
    else if (!strcmp(option, "--device"))
        s->open.device = !strcmp(value, "cuda") ? WEFT_CUDA : !strcmp(value, "ref") ? WEFT_REF : WEFT_CPU;
    else if (!strcmp(option, "--precision"))
        s->open.precision = !strcmp(value, "tf32") ? WEFT_TF32 : !strcmp(value, "bf16") ? WEFT_BF16 : !strcmp(value, "strict_fp32") ? WEFT_STRICT_FP32 : WEFT_FP32;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    settings    s = { .open = { .device = WEFT_CPU, .seed = 1, .threads = 2 }, .runs = 7 };
    const char *cases = "net,lstm,pack";
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            s.quick = true;
        else if (!strcmp(argv[i], "--tiny"))
            s.tiny = true;
        else if (i + 1 == argc || !read_option(argv[i], argv[i + 1], &s, &cases)) {
            fprintf(stderr, "usage: weft_bench [--case net,lstm,bilstm,long,pack,sweep,transformer_lstm] [--threads N] [--runs R] [--quick] [--tiny] [--device cpu|ref|cuda] [--precision fp32|strict_fp32|tf32|bf16]\n");
            return 2;
        } else
            i++;
    bool good = true;
    char name[32];
    for (const char *at = cases; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        good &= run_case(name, &s);
        at += n;
    }
    return !good;
}
