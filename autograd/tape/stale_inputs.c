/* stale_inputs.c - detects parameters and buffers that have changed since an operator read them.
 *
 * The tape refers to inputs without a copy. Tensors of a step keep their numbers, but a parameter or
 * buffer can be assigned, loaded, updated or averaged before backward. Its gradient would then be wrong. So
 * the context counts all changes. A tensor stores the count of its last change, and an entry the count of
 * its call. The backward pass compares them before it runs an entry. A view shares its parameter's count. */
#include "autograd/backward.h"

static bool reads(const weft_op *op, int i) { return i > 31 || !(op->unread >> i & 1); }

static void refuse_changed(const weft_tensor *kept, const char *operator_name)
{
    weft__fail(
        kept->w, WEFT_EARG,
        "backward of %s: %s has changed since %s read it, by weft_assign, a file or an optimiser step; "
        "expected the old values. Change it after weft_backward, or give %s a copy, weft_scale(x, 1)",
        operator_name, node(kept)->path ? node(kept)->path : "a gradient", operator_name, operator_name);
}

bool weft__inputs_unchanged(const weft__entry *e)
{
    const weft_call *c = e->call;
    if (c->y[0]->w->tape->version == e->version)
        return true;
    for (int i = 0; i < c->n; i++) {
        const weft_tensor *kept = c->x[i]->step ? node(c->x[i])->base : c->x[i];
        if (kept && node(kept)->version > e->version && reads(c->op, i)) {
            refuse_changed(kept, c->op->name);
            return false;
        }
    }
    return true;
}
