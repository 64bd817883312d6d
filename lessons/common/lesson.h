/* lesson.h - functions that every lesson defines, and helpers for checks.
 * A lesson's own lesson.h declares the functions that the student writes. */
#ifndef WEFT_LESSON_H
#define WEFT_LESSON_H
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"

/* ---- each lesson's show.c and check.c define these ---- */
/* Prints the lesson's numbers, computed with the student's functions. */
void show(void);
/* Writes a picture of the same numbers to path. Returns the status of weft's plot. */
weft_status draw(const char *path);
/* Returns if the answer is right; otherwise calls hint. */
void check(void);
/* Optional: computes results that all answers share, once for a class. */
void remember(void) __attribute__((weak));

/* ---- for check.c ---- */
/* Prints a hint for the student, and ends the program. */
_Noreturn void hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns whether |got[i] - want[i]| <= tolerance (1 + |want[i]|) for all i. NaN is not near, and only an
 * equal infinity is near to an infinity. */
bool near(const double *got, const double *want, int n, double tolerance);
/* Compare one number; `is` has the tolerance 1e-12. */
bool is_near(double got, double want, double tolerance);
bool is(double got, double want);
/* Returns the index of the first number that is not near, or n. */
int first_off(const double *got, const double *want, int n, double tolerance);
bool all_zero(const double *x, int n);
/* A known mistake: its result and its hint. */
typedef struct {
    double gives;
    const char *hint;
} known_mistake;
/* Gives the hint of the first mistake that gives `got`, or a hint if `got` is right to a float's
 * precision only. Hints begin with the name of the function. */
void hint_of_known(const char *function, double got, double right, const known_mistake *list, int n);
#define HINT_OF_KNOWN(function, got, right, list) \
    hint_of_known(function, got, right, list, sizeof(list) / sizeof *(list))
/* The same for n numbers and the mistakes first .. last of common/mistakes.h. make computes the result
 * of a mistake. */
void hint_of_mistakes(const double *got, int n, double tolerance, const char *const *hints, int first,
                      int last, void (*make)(int mistake, double *wrong));
/* Gives a hint if the n numbers are right to a float's precision, but not to a double's. */
void hint_of_float(const char *what, const double *got, const double *want, int n);
/* Sets the hint for an answer that crashes from now on; NULL: none. */
void hint_of_crash(const char *text);
/* For results that are not arrays, see common/answer.h. */
bool answer_here(void);
void share(void *data, size_t bytes);
/* Random numbers, the same in every run: dice is between -1 and 1, dice_below in 0 .. n - 1. */
void   dice_seed(unsigned seed);
double dice(void);
int    dice_below(int n);
void   dice_fill(double *x, int n);
#define DICE_FILL(array) dice_fill(array, sizeof(array) / sizeof *(array))

/* ---- for all files ---- */
/* Opens a context with one thread. lesson_ok and lesson_close report an error of the context and end
 * the program. */
weft  *lesson_open(unsigned seed);
void   lesson_ok(weft *w);
void   lesson_close(weft *w);
/* Returns whether n numbers are the same; true without numbers. */
bool same_ints(const int *a, const int *b, int n);
/* Returns the sum of the products a[k] * b[k]. */
double dot(const double *a, const double *b, int n);
/* Return the sum and the largest of n counts; 0 without counts. */
int sum_of(int n, const int *x);
int largest_of(int n, const int *x);
/* Formats x with four digits, the same on every processor: below 1e-12 it is 0, without a sign. The
 * text is valid for seven more calls. */
const char *digits(double x);
/* Fills x [n] with old values that a function must overwrite: NaN, or 7. */
void old_values(double *x, int n, bool nan);
/* Formats x with four digits, or with more if x and y look the same with four. */
const char *digits_unlike(double x, double y);
/* Both numbers, for "%s, not %s". */
#define BOTH(got, want) digits_unlike(got, want), digits_unlike(want, got)
#endif
