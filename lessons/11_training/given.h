/* given.h - lesson 11: training runs on the adding problem. */
#ifndef WEFT_LESSON_11_GIVEN
#define WEFT_LESSON_11_GIVEN
#include "common/lesson.h"
#include "lesson.h"

enum { STEPS = 80, BATCH = 16, UNITS = 16, WINDOW = 50, WINDOWS = 30 };
/* A run: a recurrent layer, its optimiser, and the limit of the gradient's norm. */
typedef struct {
    const char *name;
    bool lstm;
    double gain; /* of an orthogonal initial weight_hh; 0: default initial values */
    double bias; /* of the forget gate; NAN: the default, as in PyTorch */
    bool adam;
    double rate, most;
    int updates;
} setting;
/* The mean loss and the largest norm before clipping, for each window of updates.
 * blown: the loss was not below 1e6, and training stopped. */
typedef struct {
    double loss[WINDOWS], norm[WINDOWS];
    double first_norm;
    bool blown;
} course;
/* show.c */
void train(const setting *s, course *c);
/* samples.h: trains a model of characters and prints samples of its output. */
void show_samples(void);
#endif
