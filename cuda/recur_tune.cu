/* recur_tune.cu - finds the fastest kernel of a recurrent layer on this device by timing the program's calls.
 * Until then the estimate of recur_choice.cu decides.
 *
 * Three calls of each possible kernel are timed by events, the estimate's kernel first. Nothing waits for an
 * event; it is read at the next such layer. Then the class of the layer has its kernel, in this program and,
 * through the cache, in later ones. It is never decided again. A class is the cell, the direction, reset, one
 * product or three, the units up to a power of two, and the number of octets up to a power of two.
 *
 * Kernels differ in their last bits. Deterministic contexts, parallel runs and WEFT_CACHE=off use the
 * estimate. */
#ifndef WEFT_DOUBLE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/recur.h"

enum { SAMPLES = 3, MAX_OPEN = 64, MIN_STEPS = 8 };
/* A class that is not decided yet. kind: the kernel of the call being timed, or -1. */
struct trial {
    int number, kind, samples[KERNEL_KINDS];
    double best_ms[KERNEL_KINDS], steps;         /* best_ms: milliseconds per step */
    cudaEvent_t start, stop;
};
static struct { int n; trial open[MAX_OPEN]; } trials[MOST_GPUS];
static const char letters[KERNEL_KINDS + 1] = KIND_LETTERS;

/* ---- classes ---- */
static int log_of(int64_t n, int limit)          /* the exponent of the next power of two */
{
    int log = 0;
    while (log < limit && (int64_t)1 << log < n)
        log++;
    return log;
}
static int class_of(const weft__device *d, const weft__recurrence *r, bool back)
{
    const layer_class c = { r->cell, r->reset.host != NULL, back, d->precision != WEFT_FP32,
                            log_of((r->hidden + 31) / 32, UNIT_CLASSES - 1),
                            log_of((r->live.host[0] + SEQUENCES - 1) / SEQUENCES, OCTET_CLASSES - 1) };
    return number_of(c);
}
bool tune_is_on(const weft__device *d, const weft__recurrence *r)
{
    return !d->deterministic && !d->parallel && r->hidden <= MAX_UNITS && !cache_is_off();
}
bool tune_result(const weft__device *d, int number, kernel_kind *kind)
{
    const char letter = cached(d, TIMINGS)[number], *found = strchr(letters, letter);
    *kind = found && letter ? (kernel_kind)(found - letters) : GENERAL;
    return found && letter;
}
bool tune_class_result(const weft__device *d, const weft__recurrence *r, bool back, kernel_kind *kind)
{
    return tune_result(d, class_of(d, r, back), kind);
}

/* ---- timing ---- */
static trial *trial_of(const weft__device *d, int number) /* NULL: too many open trials */
{
    trial *open = trials[d->index].open;
    int i = 0;
    while (i < trials[d->index].n && open[i].number != number)
        i++;
    if (i == MAX_OPEN)
        return NULL;
    if (i == trials[d->index].n) {
        trial created = { number, -1, {}, { INFINITY, INFINITY, INFINITY, INFINITY }, 0, NULL, NULL };
        if (refused(cudaEventCreate(&created.start)))
            return NULL;
        if (refused(cudaEventCreate(&created.stop))) {
            cudaEventDestroy(created.start);
            return NULL;
        }
        open[i] = created, trials[d->index].n++;
    }
    return &open[i];
}
static void close_trial(const weft__device *d, trial *t)
{
    cudaEventDestroy(t->start), cudaEventDestroy(t->stop);
    *t = trials[d->index].open[--trials[d->index].n];
}
/* Reads the last timing if it is finished. One that cannot be read is dropped. */
static void collect(trial *t)
{
    float ms = 0;
    if (t->kind < 0)
        return;
    const cudaError_t status = cudaEventQuery(t->stop);
    if (status == cudaErrorNotReady) {
        refused(status);
        return;
    }
    if (!refused(status) && !refused(cudaEventElapsedTime(&ms, t->start, t->stop))) {
        t->best_ms[t->kind] = fmin(t->best_ms[t->kind], (double)ms / t->steps);
        t->samples[t->kind]++;
    }
    t->kind = -1;
}
/* Returns the first possible kernel with too few samples, beginning with the estimated one; -1: none. */
static int next_kind(const trial *t, const bool (&possible)[KERNEL_KINDS], int estimated)
{
    for (int i = 0; i < KERNEL_KINDS; i++)
        if (possible[(estimated + i) % KERNEL_KINDS] && t->samples[(estimated + i) % KERNEL_KINDS] < SAMPLES)
            return (estimated + i) % KERNEL_KINDS;
    return -1;
}
static kernel_kind decide(const weft__device *d, trial *t, const bool (&possible)[KERNEL_KINDS])
{
    int best = GENERAL;
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        if (possible[kind] && t->best_ms[kind] < t->best_ms[best])
            best = kind;
    const layer_class c = class_of(t->number);
    if (d->log > 0)
        fprintf(stderr,
                "weft: GPU %d: %s layers of up to %d units and %d sequences, %s: the %s kernel is fastest; "
                "microseconds per step: general %.2f, block %.2f, cluster %.2f, group %.2f\n",
                d->index, name_of(c.cell), 32 << c.units, SEQUENCES << c.octets,
                c.back ? "backward" : "forward", name_of((kernel_kind)best), 1e3 * t->best_ms[GENERAL],
                1e3 * t->best_ms[BLOCKS], 1e3 * t->best_ms[CLUSTERS], 1e3 * t->best_ms[GROUPS]);
    store_cached(d, TIMINGS, t->number, letters[best]);
    close_trial(d, t);
    return (kernel_kind)best;
}
kernel_kind tune(weft__device *d, const weft__recurrence *r, bool back, const bool (&possible)[KERNEL_KINDS],
                 kernel_kind estimated, timing *now)
{
    const int number = class_of(d, r, back);
    trial *t = r->steps < MIN_STEPS ? NULL : trial_of(d, number);
    if (!t)
        return estimated;
    collect(t);
    const int kind = t->kind >= 0 ? (int)estimated : next_kind(t, possible, estimated);
    if (kind < 0)
        return decide(d, t, possible);
    d->trials++;
    if (t->kind >= 0)
        return estimated;
    t->steps = (double)r->steps;
    if (!refused(cudaEventRecord(t->start, stream_of(d)))) {
        t->kind = kind;
        now->class_number = number;
    }
    return (kernel_kind)kind;
}
void tune_end(weft__device *d, const timing *now)
{
    trial *t = now->class_number >= 0 ? trial_of(d, now->class_number) : NULL;
    if (t && t->kind >= 0 && (d->failure[0] || refused(cudaEventRecord(t->stop, stream_of(d)))))
        t->kind = -1;
}
#endif
