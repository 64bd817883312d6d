/* lesson.h - what every lesson has: the program that it shows, the check of a student's answer, a picture.
 * A lesson's own lesson.h declares what the student writes; show.c and check.c define the functions below. */
#ifndef WEFT_LESSON_H
#define WEFT_LESSON_H
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"

/* ---- of each lesson: show.c and check.c ---- */
/* Prints the lesson's numbers, with what the student has written. */
void show(void);
/* Writes the lesson's picture, of the same numbers. */
void draw(const char *path);
/* Returns if the answer is right; else it has called hint. */
void check(void);

/* ---- for check.c ---- */
/* Says in the student's terms what is wrong, and ends the program. */
_Noreturn void hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether |got - want| <= tolerance (1 + |want|) for all n; NaN is never near. */
bool near(const double *got, const double *want, int n, double tolerance);
/* The same of one number, to 1e-12. */
bool is(double got, double want);
/* The place of the first number that is not near; n if all are. */
int first_off(const double *got, const double *want, int n, double tolerance);
bool all_zero(const double *x, int n);
/* Known mistakes: the number that each gives, and its hint, which is given if got is that number. */
typedef struct {
    double gives;
    const char *hint;
} known_mistake;
void hint_of_known(double got, const known_mistake *list, int n);
#define HINT_OF_KNOWN(got, list) hint_of_known(got, list, sizeof(list) / sizeof *(list))
/* The same of n numbers, for mistakes `first` to `last` of common/mistakes.h; make writes their numbers. */
void hint_of_mistakes(const double *got, int n, double tolerance, const char *const *hints, int first,
                      int last, void (*make)(int mistake, double *wrong));
/* Gives a hint if the n numbers are right but for the digits that a float does not have. */
void hint_of_float(const char *what, const double *got, const double *want, int n);
/* Sets the hint for an answer that crashes from now on; NULL: none. */
void hint_of_crash(const char *text);
/* Whether this process has the answer, and makes data in the other one what it is here: for results
 * that are no arrays. common/answer.h says more. */
bool answer_here(void);
void share(void *data, size_t bytes);
/* Numbers that are the same in every run: between -1 and 1, below n. */
void   dice_seed(unsigned seed);
double dice(void);
int    dice_below(int n);
void   dice_fill(double *x, int n);
#define DICE_FILL(array) dice_fill(array, sizeof(array) / sizeof *(array))

/* ---- for all ---- */
/* A context of one thread; after an error the program says it and ends, also at lesson_close. */
weft  *lesson_open(unsigned seed);
void   lesson_ok(weft *w);
void   lesson_close(weft *w);
/* Four digits, the same for every processor: what is below 1e-12 is 0, and there is no -0. */
const char *digits(double x);
#endif
