/* Lesson 9: a window of a text. Fill in read_window; lesson.h says what it does. */
#include "lesson.h"

weft_state read_window(const window *in, weft_tensor **y)
{
    weft_state state = in->state;
    for (int t = 0; t < in->steps; t++) {
        /* where in->begins says so, state has to be zeros: weft_mul by a tensor of
         * 0 and 1, which weft_reals makes of an array */
        /* then one weft_rnn_step: of its weft_rnn_out y[t] and the next state come */
        y[t] = weft_zeros(in->w, WEFT_SHAPE(in->slots, weft_size(state.h, 2)));
    }
    return state;                                /* with its tape? */
}
