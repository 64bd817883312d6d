/* Lesson 6: the longest is first len[0], which an empty batch does not have. */
#include "lesson.h"

batch_size count(int n, const int32_t *len)
{
    int longest = len[0], tokens = len[0];
    for (int s = 1; s < n; s++) {
        tokens += len[s];
        if (len[s] > longest)
            longest = len[s];
    }
    if (n == 0)
        tokens = 0;
    return (batch_size){ n * longest, tokens };
}

/* Step t of [n, T, width] or [n, T], as [n, width]. */
static weft_tensor *step_of(weft_tensor *x, int64_t t, int64_t width)
{
    return weft_reshape(weft_slice(x, 1, t, t + 1), WEFT_SHAPE(weft_size(x, 0), width));
}

weft_rnn_out run_padded(weft_rnn *lstm, weft_tensor *x, weft_tensor *mask, bool reverse)
{
    weft *w = weft_context_of(x);
    int64_t n = weft_size(x, 0), T = weft_size(x, 1);
    weft_tensor *zero = weft_scalar(w, 0);
    weft_tensor *none = weft_zeros(w, WEFT_SHAPE(1, n, UNITS));
    weft_tensor *y[T];
    weft_state state = { none, none };
    for (int64_t k = 0; k < T; k++) {
        int64_t t = reverse ? T - 1 - k : k;
        weft_tensor *here = step_of(mask, t, 1);
        weft_tensor *clean = weft_where(here, step_of(x, t, INPUTS), zero);
        weft_rnn_out out = weft_rnn_step(lstm, clean, state);
        state.h = weft_where(here, out.last.h, state.h);
        state.c = weft_where(here, out.last.c, state.c);
        y[t] = weft_where(here, out.y, zero);
    }
    return (weft_rnn_out){ weft_stack(y, T, 1), state };
}

weft_tensor *mean_square(weft_tensor *y, weft_tensor *mask)
{
    weft_tensor *tokens = weft_sum_all(mask);
    return weft_div(weft_sum_all(weft_square(y)), weft_scale(tokens, UNITS));
}
