/* Lesson 9: the functions that you write. */
#ifndef WEFT_LESSON_09
#define WEFT_LESSON_09
#include "weft.h"

/* A window of `steps` tokens, of a text that several slots read in parallel. In a slot,
 * one sequence follows another. */
typedef struct {
    weft *w;
    weft_rnn *lstm;
    int steps, slots;
    weft_tensor *const *x;     /* [steps]; x[t] [slots, input]: token t of every slot */
    const bool *begins;        /* [steps * slots]; begins[t * slots + s]: token t of
                                * slot s is the first of its sequence */
    weft_state state;          /* h and c [1, slots, hidden] that the window before
                                * returned; zeros for the first window */
} window;

/* Reads a window with weft_rnn_step and sets y[t] [slots, hidden] to the LSTM's outputs
 * for whole sequences: an earlier sequence in the same slot has no effect. Returns the
 * states for the next window, h and c [1, slots, hidden], detached from the tape. */
weft_state read_window(const window *in, weft_tensor **y);
#endif
