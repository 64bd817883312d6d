/* lesson.h - the parts of every lesson: its program, its picture, the check of a student's answer.
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
/* Returns if the answer is right; otherwise calls hint. */
void check(void);

/* ---- for check.c ---- */
/* Prints in the student's terms what is wrong, and ends the program. */
_Noreturn void hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns whether |got - want| <= tolerance (1 + |want|) for all n. NaN is not near. */
bool near(const double *got, const double *want, int n, double tolerance);
/* Compares one number, with tolerance 1e-12. */
bool is(double got, double want);
/* Returns the index of the first number that is not near; n: all are. */
int first_off(const double *got, const double *want, int n, double tolerance);
bool all_zero(const double *x, int n);
/* A known mistake: the number that it gives, and its hint. */
typedef struct {
    double gives;
    const char *hint;
} known_mistake;
/* Gives the hint of the first mistake that gives the number got. */
void hint_of_known(double got, const known_mistake *list, int n);
#define HINT_OF_KNOWN(got, list) hint_of_known(got, list, sizeof(list) / sizeof *(list))
/* The same for n numbers and the mistakes first .. last of common/mistakes.h. make writes the numbers
 * that a mistake gives. */
void hint_of_mistakes(const double *got, int n, double tolerance, const char *const *hints, int first,
                      int last, void (*make)(int mistake, double *wrong));
/* Gives a hint if the n numbers are right to a float's precision, but not to a double's. */
void hint_of_float(const char *what, const double *got, const double *want, int n);
/* Sets the hint for an answer that crashes from now on; NULL: none. */
void hint_of_crash(const char *text);
/* Whether this process has the answer, and makes data in the other one what it is here: for results
 * that are no arrays. common/answer.h says more. */
bool answer_here(void);
void share(void *data, size_t bytes);
/* Random numbers, the same in every run: between -1 and 1; 0 .. n - 1. */
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
/* Formats four digits, the same on every processor: numbers below 1e-12 are 0, without a sign. */
const char *digits(double x);
#endif
