/* Lesson 4: one step of an LSTM. Fill in both functions; lesson.h says what they do. */
#include <math.h>
#include "lesson.h"

void step(const lstm *r, const double *x, const double *c, const double *h, made *to)
{
    (void)x, (void)c, (void)h;
    for (int j = 0; j < r->H; j++) {
        to->i[j] = to->f[j] = to->g[j] = to->o[j] = 0;  /* your four gates here, */
        to->c[j] = 0;                                   /* the cell, */
        to->h[j] = 0;                                   /* and what it shows */
    }
}

void flip_flop(unit *m)
{
    m->b[GATE_O] = 0;   /* which gates open, which close, at 0, at 1, at . and at ? */
}
