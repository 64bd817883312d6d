/* known.h - lesson 11, for a class: training runs whose course is known, since one
 * process trains once for all answers. An answer's forget_bias must give the known
 * biases, and its update, called as often as in the run, must make the known calls:
 * weft_backward(loss), weft_clip_grad_norm(m, most, 2), weft_optim_step(o), and return
 * the norm. Then the run would have the known course. An answer that does anything else
 * trains itself. */
#ifndef WEFT_LESSON_11_KNOWN
#define WEFT_LESSON_11_KNOWN
#include "weft.h"

enum { MOST_UPDATES = 1500, MOST_ROWS = 4 * 48 };
typedef struct {
    bool done;
    int updates;
    double norm[MOST_UPDATES], bias[MOST_ROWS];
} known;

/* calls.c: calls update without work. Returns whether it makes the known calls, and
 * returns the norm. */
bool updates_as_known(double most, double norm);
/* check.c: the functions by weft. */
void   known_forget_bias(weft_module *lstm, int hidden, double value);
double known_update(weft_module *m, weft_optim *o, weft_tensor *loss, double most);
#endif
