/* Lesson 9: what is returned for h is y, which has no axis of layers. */
#include "lesson.h"

/* A state [1, slots, hidden], 0 in the slots where step t begins a sequence. */
static weft_tensor *kept(const window *in, int t, weft_tensor *state)
{
    weft_real goes_on[in->slots];
    for (int s = 0; s < in->slots; s++)
        goes_on[s] = !in->begins[t * in->slots + s];
    return weft_mul(state, weft_reals(in->w, goes_on, WEFT_SHAPE(1, in->slots, 1)));
}

weft_state read_window(const window *in, weft_tensor **y)
{
    weft_state state = in->state;
    for (int t = 0; t < in->steps; t++) {
        weft_state before = { kept(in, t, state.h), kept(in, t, state.c) };
        weft_rnn_out out = weft_rnn_step(in->lstm, in->x[t], before);
        y[t] = out.y;
        state = out.last;
    }
    return (weft_state){ weft_detach(y[in->steps - 1]), weft_detach(state.c) };
}
