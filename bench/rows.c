/* rows.c - clocks, counts, and one line of JSON for each measurement. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"

bool by_cpu_time;

double now_ms(void)
{
    struct timespec t;
    clock_gettime(by_cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
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

bool settled(weft *w, settling *s)
{
    int64_t trials = weft_usage_of(w).trials;
    s->quiet = trials == s->trials ? s->quiet + 1 : 0;
    s->trials = trials;
    return s->quiet == 2 || ++s->steps == 100;
}

void count_launches(row *r, weft *w, const weft_usage *before, int n)
{
    weft_usage now = weft_usage_of(w);
    r->launches = (now.launches - before->launches) / n;
    for (int i = 0; i < 4; i++)
        r->recurrent[i] = now.recurrent[i] - before->recurrent[i];
}

int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(times *t)
{
    qsort(t->ms, (size_t)t->n, sizeof *t->ms, by_value);
    return t->n % 2 ? t->ms[t->n / 2] : (t->ms[t->n / 2 - 1] + t->ms[t->n / 2]) / 2;
}

int which_of(const char *names, const char *value)
{
    size_t length = strlen(value);
    int    i = 0;
    for (const char *p = names; *p; p += strcspn(p, ","), p += *p == ',', i++)
        if (strcspn(p, ",") == length && !strncmp(p, value, length))
            return i;
    return -1;
}

enum { MOST_KEPT = 64 };
static void *kept[MOST_KEPT];
static int kept_count;

void *keep(int64_t n, size_t size)
{
    void *p = kept_count < MOST_KEPT ? calloc((size_t)n + 1, size) : NULL;
    if (!p) {
        fprintf(stderr, "weft_bench: out of memory\n");
        exit(1);
    }
    return kept[kept_count++] = p;
}

void free_kept(void)
{
    while (kept_count > 0)
        free(kept[--kept_count]);
}

static void print_who(const settings *s, weft *w)
{
    const char *said = getenv("WEFT_GEMM");
    bool blas = said && *said ? strcmp(said, "own") != 0 : s->open.gemm == WEFT_OPENBLAS_GEMM;
    bool own = !blas || s->open.device == WEFT_CUDA;
    printf("{\"who\": \"weft-%s-%s%s\", \"threads\": %d, ", weft_version(), weft_device_name(w),
           own ? "" : "-openblas", weft_threads(w));
}

static void print_shape(const row *r)
{
    printf("\"case\": \"%s\", ", r->name);
    if (r->what)
        printf("\"what\": \"%s\", ", r->what);
    printf("\"B\": %lld, \"T\": %lld, \"I\": %lld, ", (long long)r->B, (long long)r->T, (long long)r->I);
    if (!r->what)
        printf("\"H\": %lld, \"layers\": %d, \"bidirectional\": %s, ", (long long)r->H, r->layers,
               r->bidirectional ? "true" : "false");
    if (r->heads)
        printf("\"heads\": %d, ", r->heads);
    if (r->axis)
        printf("\"axis\": \"%s\", \"vocabulary\": %lld, \"lean\": %s, ", r->axis, (long long)r->vocabulary,
               r->lean ? "true" : "false");
    if (r->beams)
        printf("\"beams\": %d, ", r->beams);
    if (r->horizon)
        printf("\"horizon\": %lld, ", (long long)r->horizon);
    printf("\"lengths\": \"%s\", \"tokens\": %lld, ", r->lengths, (long long)r->tokens);
}

/* Prints the kernels that ran recurrent layers on a GPU. */
static void print_kernels(const row *r)
{
    static const char *const names[] = { "general", "block", "cluster", "group" };
    const char *before = "\"kernel\": \"";
    for (int i = 0; i < 4; i++)
        if (r->recurrent[i]) {
            printf("%s%s", before, names[i]);
            before = "+";
        }
    if (*before == '+')
        printf("\", ");
}

/* Prints the proof of equal work, and memory. */
static void print_proof(const settings *s, weft *w, const row *r, bool train)
{
    weft_usage held = weft_usage_of(w);
    printf("\"loss\": %.6g, \"norm\": %.6g, ", r->loss, r->norm);
    printf("\"context_bytes\": %lld, \"allocations\": %lld, ",
           (long long)(held.host_bytes + held.device_bytes), (long long)r->allocations);
    if (r->launches)
        printf("\"launches\": %lld, ", (long long)r->launches);
    print_kernels(r);
    if (train && s->step_bytes > 0)
        printf("\"peak_bytes\": %.0f, ", s->step_bytes);
}

static void print_speed(const settings *s, double flops, double ms)
{
    double gf_s = flops / ms * 1e-6;
    printf("\"gflop\": %.5g, \"gf_s\": %.4g, ", flops * 1e-9, gf_s);
    if (s->peak[1] > 0)
        printf("\"peak_gf_s_core\": %.4g, \"peak_gf_s\": %.4g, \"share\": %.3f, ", s->peak[0], s->peak[1],
               gf_s / s->peak[1]);
}

void emit(const settings *s, weft *w, const row *r, times *t)
{
    static const char *const precisions[] = { "fp32", "strict_fp32", "tf32", "bf16" };
    double ms = median(t);
    bool   train = !strcmp(r->pass, "train");
    print_who(s, w);
    print_shape(r);
    printf("\"layout\": \"%s\", \"pass\": \"%s\", \"precision\": \"%s\", ", r->layout, r->pass,
           sizeof(weft_real) == 8 ? "fp64" : precisions[s->open.precision]);
    if (r->what)
        printf("\"gb_s\": %.2f, \"copy_gb_s\": %.2f, \"copies\": %.2f, ", r->bytes / ms * 1e-6,
               r->bytes / r->copy_ms * 1e-6, ms / r->copy_ms);
    else
        print_proof(s, w, r, train);
    if (r->work.forward > 0)
        print_speed(s, train ? r->work.train : r->work.forward, ms);
    printf("\"ms\": %.4f, \"ms_min\": %.4f, \"runs\": %d}\n", ms, t->ms[0], t->n);
    fflush(stdout);
}

bool failed(weft *w, const char *label)
{
    if (!weft_ok(w))
        fprintf(stderr, "weft_bench: %s: %s\n", label, weft_error_message(w));
    return !weft_ok(w);
}
