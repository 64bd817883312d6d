/* given.h - the batches of lesson 8. */
#ifndef WEFT_LESSON_08_GIVEN
#define WEFT_LESSON_08_GIVEN
#include "lesson.h"

/* n sequences, stored end to end: INPUTS numbers x and a target y per token. Sequence s
 * has len[s] tokens and belongs to batch[s]. */
enum { MOST_TOKENS = 512, MOST_SEQUENCES = 80, INPUTS = 2, WEIGHTS = INPUTS + 1 };
typedef struct {
    int n, batches;
    const int *len, *batch;
    double x[MOST_TOKENS * INPUTS], y[MOST_TOKENS];
} task;

/* show.c: fills x and y. In the last `other` sequences y follows another rule. */
void task_fill(task *t, int other);

/* show.c: a linear layer over a task's batches, and its gradients [WEIGHTS]. The task
 * must outlive it. */
typedef struct {
    batches b;
    int sequences[MOST_SEQUENCES], longest[MOST_SEQUENCES];
} network;
void network_open(network *it, const task *t);
void network_gradient(const network *it, double *g);

/* show.c: writes the gradient of the sum of a batch's losses to g, and returns its
 * number of tokens. Batch -1: all batches as one. */
double sum_gradient(const task *t, int batch, double *g);
#endif
