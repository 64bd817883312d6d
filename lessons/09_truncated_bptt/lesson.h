/* Lesson 9: the functions that you write. */
#ifndef WEFT_LESSON_09
#define WEFT_LESSON_09
#include "weft.h"

/* A window of a text that several slots read side by side: in each slot sequences stand
 * one behind the other, and all slots stop after `steps` tokens. */
typedef struct {
    weft *w;
    weft_rnn *lstm;
    int steps, slots;
    weft_tensor *const *x;     /* [steps]; x[t] [slots, input]: token t of every slot */
    const bool *begins;        /* [steps * slots]; begins[t * slots + s]: in slot s
                                * token t is the first of its sequence */
    weft_state state;          /* h and c [1, slots, hidden]: what the window before has
                                * returned; zeros before the first window */
} window;

/* Reads a window by weft_rnn_step, so that y[t] [slots, hidden] is what the LSTM says
 * of whole sequences: what came before in the slot has no part in it if it is of
 * another sequence. Returns the states that the next window goes on from, h and c
 * [1, slots, hidden], without the tape that has led to them. */
weft_state read_window(const window *in, weft_tensor **y);
#endif
