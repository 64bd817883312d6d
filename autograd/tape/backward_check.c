/* backward_check.c - checks that a tensor can be a loss, before any gradient changes. */
#include "autograd/backward.h"

const char *weft__why_not_on_tape(const weft_tensor *t)
{
    return node(t)->unrecorded ?
               "it was computed while the tape was off (WEFT_NO_GRAD, weft_set_grad_enabled)" :
               "it is a constant, such as a result of weft_gradients (weft_gradients_recorded records)";
}

bool weft__is_loss(weft_tensor *t)
{
    weft *w = t->w;
    if (count(t) != 1)
        weft__fail(w, WEFT_ESHAPE,
                   "backward: the loss is %s; expected one element (weft_mean_loss, weft_sum_all). "
                   "weft_gradients takes any shape",
                   WEFT__TEXT(&t->f));
    else if (!node(t)->entry_number && !node(t)->parameter)
        weft__fail(w, WEFT_EARG, "backward: the loss is not a result on the tape: %s",
                   weft__why_not_on_tape(t));
    else if (node(t)->loss_used)
        weft__fail(w, WEFT_EARG,
                   "backward: the gradients of this loss were added before; expected one weft_backward for "
                   "each loss. weft_gradients returns them without adding");
    node(t)->loss_used = !node(t)->parameter && !w->status;
    return !w->status;
}

bool weft__reaches_parameters(const weft_tensor *loss)
{
    if (node(loss)->reached_pass != loss->w->tape->pass && !(node(loss)->parameter && !node(loss)->frozen))
        weft__fail(loss->w, WEFT_EARG,
                   "backward: no trainable parameter contributes to the loss; expected one. The loss depends "
                   "only on constants, frozen parameters, results of weft_detach, or operators while the "
                   "tape was off (WEFT_NO_GRAD)");
    return !loss->w->status;
}
