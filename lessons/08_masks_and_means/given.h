/* given.h - the batches of lesson 8. */
#ifndef WEFT_LESSON_08_GIVEN
#define WEFT_LESSON_08_GIVEN
#include "lesson.h"

/* n sequences of 2 numbers a token and a target, end to end, dealt to batches; a layer
 * of weft that predicts the targets. */
enum { MOST_TOKENS = 256, MOST_SEQUENCES = 24, INPUTS = 2, WEIGHTS = INPUTS + 1 };
typedef struct {
    int n, batches;
    const int *len, *batch;
    double x[MOST_TOKENS * INPUTS], y[MOST_TOKENS];
} task;

/* show.c: fills x and y. Targets of the last `other` sequences follow another rule. */
void task_fill(task *t, int other);

/* show.c: a network over a task's batches, and its gradients [WEIGHTS]. The task lives
 * as long. */
typedef struct {
    batches b;
    int sequences[MOST_SEQUENCES], longest[MOST_SEQUENCES];
} network;
void network_open(network *it, const task *t);
void network_gradient(const network *it, double *g);

/* show.c: the gradients of the sum of a batch's losses, and how many tokens it has; of
 * batch -1: of all at once. */
double sum_gradient(const task *t, int batch, double *g);
#endif
