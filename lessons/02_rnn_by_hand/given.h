/* given.h - the layer that lesson 2 shows: three letters, two units. */
#ifndef WEFT_LESSON_02_GIVEN
#define WEFT_LESSON_02_GIVEN
#include "lesson.h"

enum { LETTERS = 3, UNITS = 2, STEPS = 4 };
static const char word[] = "abba";
static const double given_w[] = { 0.5, -0.3, -0.6, 0.8, 0.2, 0.4 };
static const double given_u[] = { 0.1, 0.4, -0.2, 0.7 };
static const double given_b[] = { 0.1, 0.0 }, given_c[] = { 0.0, -0.1 };
static const rnn given = { LETTERS, UNITS, given_w, given_u, given_b, given_c };

/* show.c: computes h [steps, H] from x [steps, I] with weft's layer and r's weights. */
void by_weft(const rnn *r, int steps, const double *x, double *h);
#endif
