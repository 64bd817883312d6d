/* Lesson 9: the state is never reset. */
#include "lesson.h"

weft_state read_window(const window *in, weft_tensor **y)
{
    weft_state state = in->state;
    for (int t = 0; t < in->steps; t++) {
        weft_rnn_out out = weft_rnn_step(in->lstm, in->x[t], state);
        y[t] = out.y;
        state = out.last;
    }
    return (weft_state){ weft_detach(state.h), weft_detach(state.c) };
}
