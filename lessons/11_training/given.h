/* given.h - the runs that lesson 11 shows: the adding problem, trained in several ways.
 */
#ifndef WEFT_LESSON_11_GIVEN
#define WEFT_LESSON_11_GIVEN
#include "common/lesson.h"
#include "lesson.h"

enum { STEPS = 80, BATCH = 16, UNITS = 16, WINDOW = 50, WINDOWS = 30 };
/* A recurrent layer, an optimiser of it, and a limit of the gradient's norm. */
typedef struct {
    const char *name;
    bool lstm;
    double gain; /* of the orthogonal first values of weight_hh; 0: none */
    double bias; /* of the forget gate; NAN: as PyTorch has it */
    bool adam;
    double rate, most;
    int updates;
} setting;
/* Of each window of updates the mean loss and the largest norm before clipping; NAN
 * where the training had blown up. */
typedef struct {
    double loss[WINDOWS], norm[WINDOWS];
    double first_norm;
    bool blown;
} course;
/* show.c */
void train(const setting *s, course *c);
/* samples.h: a model of characters, and what it writes while it is trained. */
void show_samples(void);
#endif
