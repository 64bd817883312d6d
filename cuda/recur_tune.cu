/* recur_tune.cu - finds the fastest kernel of a recurrent layer on this device by timing it. The estimate of
 * recur_choice.cu is for the first calls.
 *
 * Calls of a program are timed by events, three of each way that is possible, the estimate's first; nothing
 * waits for them, an event is looked at when the next such layer comes. Then the class of layers has its way,
 * in this program and, kept beside the verdicts, in those after it: it is never decided again. A class is the
 * cell, the direction, whether columns are several sequences, one product or three, up to how many units, and
 * the number of sequences to a factor of two.
 *
 * The ways differ in their last bits. So a context that is deterministic, or of a parallel run, goes by the
 * estimate alone, and so does everybody with WEFT_CACHE=off. */
#ifndef WEFT_DOUBLE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/recur.h"

enum { SAMPLES = 3, OPEN = 64, LEAST_STEPS = 8 };
/* A class that is not decided yet; the call that is timed, if `way` is one. */
struct trial {
    int number, way, samples[WAYS];
    double least[WAYS], steps;                   /* milliseconds a step */
    cudaEvent_t from, to;
};
static struct { int n; trial of[OPEN]; } trials[MOST_GPUS];
static const char letters[WAYS + 1] = WAY_LETTERS;

/* ---- classes ---- */
static int log_of(int64_t n, int most)           /* the power of two at or above it */
{
    int log = 0;
    while (log < most && (int64_t)1 << log < n)
        log++;
    return log;
}
static int class_of(const weft__device *d, const weft__recurrence *r, bool back)
{
    const layer_class c = { r->cell, r->reset.host != NULL, back, d->precision != WEFT_FP32,
                            log_of((r->hidden + 31) / 32, UNIT_CLASSES - 1),
                            log_of((r->live.host[0] + SEQUENCES - 1) / SEQUENCES, EIGHT_CLASSES - 1) };
    return number_of(c);
}
bool tune_is_on(const weft__device *d, const weft__recurrence *r)
{
    return !d->deterministic && !d->parallel && r->hidden <= MOST_UNITS && !findings_are_off();
}
bool tune_found(const weft__device *d, int number, recur_way *way)
{
    const char letter = findings_of(d, OF_CLASSES)[number], *at = strchr(letters, letter);
    *way = at && letter ? (recur_way)(at - letters) : GENERAL;
    return at && letter;
}
bool tune_knows(const weft__device *d, const weft__recurrence *r, bool back, recur_way *way)
{
    return tune_found(d, class_of(d, r, back), way);
}

/* ---- timing ---- */
static trial *trial_of(const weft__device *d, int number)         /* NULL: too many at a time */
{
    trial *of = trials[d->index].of;
    int i = 0;
    while (i < trials[d->index].n && of[i].number != number)
        i++;
    if (i == OPEN)
        return NULL;
    if (i == trials[d->index].n) {
        trial made = { number, -1, {}, { INFINITY, INFINITY, INFINITY, INFINITY }, 0, NULL, NULL };
        if (refused(cudaEventCreate(&made.from)))
            return NULL;
        if (refused(cudaEventCreate(&made.to))) {
            cudaEventDestroy(made.from);
            return NULL;
        }
        of[i] = made, trials[d->index].n++;
    }
    return &of[i];
}
static void close_trial(const weft__device *d, trial *t)
{
    cudaEventDestroy(t->from), cudaEventDestroy(t->to);
    *t = trials[d->index].of[--trials[d->index].n];
}
/* What was timed last, if it is done; one that cannot be read is forgotten. */
static void collect(trial *t)
{
    float ms = 0;
    if (t->way < 0)
        return;
    const cudaError_t now = cudaEventQuery(t->to);
    if (now == cudaErrorNotReady) {
        refused(now);
        return;
    }
    if (!refused(now) && !refused(cudaEventElapsedTime(&ms, t->from, t->to))) {
        t->least[t->way] = fmin(t->least[t->way], (double)ms / t->steps);
        t->samples[t->way]++;
    }
    t->way = -1;
}
/* Of the ways that are possible the first that has not enough times, `first` before others; -1: all have. */
static int next_way(const trial *t, const bool (&possible)[WAYS], int first)
{
    for (int i = 0; i < WAYS; i++)
        if (possible[(first + i) % WAYS] && t->samples[(first + i) % WAYS] < SAMPLES)
            return (first + i) % WAYS;
    return -1;
}
static recur_way decided(const weft__device *d, trial *t, const bool (&possible)[WAYS])
{
    int best = GENERAL;
    for (int way = 0; way < WAYS; way++)
        if (possible[way] && t->least[way] < t->least[best])
            best = way;
    const layer_class c = class_of(t->number);
    if (d->log > 0)
        fprintf(stderr,
                "weft: GPU %d: %s layers of up to %d units and %d sequences go %s %s: a step takes %.2f us "
                "by a kernel a step, %.2f in blocks, %.2f in clusters, %.2f in groups\n",
                d->index, name_of(c.cell), 32 << c.units, SEQUENCES << c.eights, c.back ? "back" : "forward",
                name_of((recur_way)best), 1e3 * t->least[GENERAL], 1e3 * t->least[BLOCKS],
                1e3 * t->least[CLUSTERS], 1e3 * t->least[GROUPS]);
    keep_finding(d, OF_CLASSES, t->number, letters[best]);
    close_trial(d, t);
    return (recur_way)best;
}
recur_way tune(weft__device *d, const weft__recurrence *r, bool back, const bool (&possible)[WAYS],
               recur_way first, timing *now)
{
    const int number = class_of(d, r, back);
    trial *t = r->steps < LEAST_STEPS ? NULL : trial_of(d, number);
    if (!t)
        return first;
    collect(t);
    const int way = t->way >= 0 ? (int)first : next_way(t, possible, first);
    if (way < 0)
        return decided(d, t, possible);
    d->trials++;
    if (t->way >= 0)
        return first;
    t->steps = (double)r->steps;
    if (!refused(cudaEventRecord(t->from, stream_of(d)))) {
        t->way = way;
        now->class_of = number;
    }
    return (recur_way)way;
}
void tune_end(weft__device *d, const timing *now)
{
    trial *t = now->class_of >= 0 ? trial_of(d, now->class_of) : NULL;
    if (t && t->way >= 0 && (d->failure[0] || refused(cudaEventRecord(t->to, stream_of(d)))))
        t->way = -1;
}
#endif
