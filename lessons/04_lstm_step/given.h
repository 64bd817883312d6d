/* given.h - the step that lesson 4 shows, of two units, and what weft says to it. */
#ifndef WEFT_LESSON_04_GIVEN
#define WEFT_LESSON_04_GIVEN
#include "lesson.h"

enum { IN = 3, UNITS = 2 };
static const double given_w[] = {
    0.6, -0.4, 0.2,   0.9, 0.3, -0.4,               /* two rows of i, */
    1.0, 0.5, 0.4,   -0.8, 0.2, 0.2,                /* two of f, */
    1.2, -0.7, -0.2, -0.5, 0.4, -0.8,               /* of g */
    0.3, 0.8, 0.6,    0.7, -0.6, 0.2,               /* and of o */
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

/* show.c: the same layer of weft, over x [steps, I] from the states c and h, NULL for
 * zeros; into arrays [steps, H]. */
void by_weft(const lstm *r, int steps, const double *x, const double *c,
             const double *h, made *to);
/* show.c: what the student's unit makes of a text, arrays [letters]. */
void unit_by_weft(const unit *m, const char *text, made *to);
#endif
