/* Lesson 14, solved. */
#include <math.h>
#include <stdlib.h>
#include "lesson.h"

int collapse(int steps, const int *path, int *out)
{
#ifdef START
    (void)steps, (void)path, (void)out;
    return 0; /* which classes of the path begin a label? */
#else
    int n = 0;
    for (int t = 0; t < steps; t++)
        if (path[t] != BLANK && (t == 0 || path[t] != path[t - 1]))
            out[n++] = path[t];
    return n;
#endif
}

#ifndef START
/* State s of 2 n + 1: even states are blanks, and state 2 k + 1 is label k. */
static int class_of(const int *labels, int s) { return s % 2 ? labels[s / 2] : BLANK; }

/* A path may jump over the blank between two different labels. */
static int may_jump(const int *labels, int s)
{
    return s % 2 && s > 1 && labels[s / 2] != labels[s / 2 - 1];
}

static double add_logs(double a, double b)
{
    double most = fmax(a, b);
    return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}
#endif

double log_probability(int steps, int classes, const double *score, int n,
                       const int *labels)
{
#ifdef START
    (void)steps, (void)classes, (void)score, (void)n, (void)labels;
    return 0; /* states: blank, label 0, blank, label 1, .., blank */
#else
    int states = 2 * n + 1;
    double *a = malloc((size_t)states * sizeof *a), sum;
    for (int s = 0; s < states; s++)
        a[s] = s ? -INFINITY : 0; /* before the first step: in the first blank */
    for (int t = 0; t < steps; t++)
        for (int s = states - 1; s >= 0; s--) { /* a[s - 1] is still the old one */
            double from = a[s];
            if (s > 0)
                from = add_logs(from, a[s - 1]);
            if (may_jump(labels, s))
                from = add_logs(from, a[s - 2]);
            a[s] = from + score[t * classes + class_of(labels, s)];
        }
    sum = n ? add_logs(a[states - 1], a[states - 2]) : a[0];
    free(a);
    return sum;
#endif
}

double best_path(int steps, int classes, const double *score, int n, const int *labels,
                 int *path)
{
#ifdef START
    (void)steps, (void)classes, (void)score, (void)n, (void)labels, (void)path;
    return 0; /* the same walk, with the largest instead of the sum */
#else
    int states = 2 * n + 1, s = states - 1;
    double *a = malloc((size_t)((steps + 1) * states) * sizeof *a), best;
    for (int k = 0; k < states; k++)
        a[k] = k ? -INFINITY : 0;
    for (int t = 0; t < steps; t++)
        for (int k = 0; k < states; k++) {
            const double *old = a + t * states;
            double from = fmax(old[k], k > 0 ? old[k - 1] : -INFINITY);
            if (may_jump(labels, k))
                from = fmax(from, old[k - 2]);
            a[(t + 1) * states + k] = from + score[t * classes + class_of(labels, k)];
        }
    const double *last = a + steps * states;
    if (n && last[s - 1] > last[s])
        s--;
    best = last[s];
    for (int t = steps; best > -INFINITY && t > 0; t--) {
        const double *old = a + (t - 1) * states;
        path[t - 1] = class_of(labels, s);
        int from = s;
        if (s > 0 && old[s - 1] > old[from])
            from = s - 1;
        if (may_jump(labels, s) && old[s - 2] > old[from])
            from = s - 2;
        s = from;
    }
    free(a);
    return best;
#endif
}
