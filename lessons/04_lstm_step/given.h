/* given.h - the weights, states and token of lesson 4's step, and the same by weft. */
#ifndef WEFT_LESSON_04_GIVEN
#define WEFT_LESSON_04_GIVEN
#include "lesson.h"

enum { IN = 3, UNITS = 2 };
static const double given_w[] = {
    0.6, -0.4, 0.2,   0.9, 0.3, -0.4,               /* i: two rows */
    1.0, 0.5, 0.4,   -0.8, 0.2, 0.2,                /* f */
    1.2, -0.7, -0.2, -0.5, 0.4, -0.8,               /* g */
    0.3, 0.8, 0.6,    0.7, -0.6, 0.2,               /* o */
};
static const double given_u[] = {
    0.2, -0.3, 0.4, 0.1,  -0.5, 0.6, 0.3, 0.8,
    0.7, 0.2, -0.1, 0.9,  0.5, -0.2, 0.4, 0.3,
};
static const double given_bx[] = { 0.1, 0, 0.5, 0.5, 0, 0.1, -0.2, 0.3 };
static const double given_bh[] = { 0, 0.2, 0.1, 0, -0.1, 0, 0, 0.1 };
static const double given_x[] = { 1, 0, 0.5 };
static const double given_c[] = { 0.8, -0.5 }, given_h[] = { 0.4, -0.2 };
static const lstm given = { IN, UNITS, given_w, given_u, given_bx, given_bh };

/* show.c: runs weft's layer with r's weights over x [steps, I], and writes arrays
 * [steps, H]. c and h are the first states, NULL for zeros. */
void by_weft(const lstm *r, int steps, const double *x, const double *c,
             const double *h, made *to);
/* show.c: runs the student's unit over a text, and writes arrays [letters]. */
void unit_by_weft(const unit *m, const char *text, made *to);
#endif
