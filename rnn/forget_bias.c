/* forget_bias.c - what the bias of a forget gate starts as, if a program says so: bias_ih has all of it,
 * bias_hh none, so their sum is what was asked for. The rows of the other gates stay as they were drawn. */
#include <math.h>
#include "rnn/rnn.h"

const char *weft__forget_bias_fault(const weft_rnn_opts *o, bool forgets)
{
    return !forgets ? "only an LSTM or a CIFG has a forget_bias" :
           o->no_bias ? "a forget_bias without no_bias is expected" :
           !isfinite((real)o->forget_bias) ? "a finite forget_bias is expected" : NULL;
}

void weft__forget_bias(weft_tensor *const *weight, weft__cell cell, int64_t hidden, double value)
{
    weft_tensor *bias_ih = weight[WEFT__B_IH - WEFT__W_IH], *bias_hh = weight[WEFT__B_HH - WEFT__W_IH];
    weft *w = bias_ih->w;
    const int64_t forget = weft__gate_of(cell, 'f') * hidden;
    if (w->status)
        return;
    w->dev.k->fill(&w->dev, hidden, (real)weft__or(value, 0), bias_ih->data + forget);
    w->dev.k->fill(&w->dev, hidden, 0, bias_hh->data + forget);
    weft__changed(bias_ih);
    weft__changed(bias_hh);
}
