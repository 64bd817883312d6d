/* refuse.c - fails an operator in the context of its inputs, with their shapes in the message. */
#include <string.h>
#include "autograd/op.h"
#include "core/os.h"

weft *weft__context(weft_tensor *const *x, int64_t n)
{
    weft *failed = weft__no_context();
    for (int64_t i = 0; i < n; i++)
        if (x[i] && !x[i]->w->status)
            return x[i]->w;
        else if (x[i] && failed == weft__no_context())
            failed = x[i]->w;
    return failed;
}

weft_tensor *weft__inert_of(const weft_tensor *x) { return x ? &x->w->nil : &weft__no_context()->nil; }

/* For ints instead of reals, returns a hint at the converting function, unless the message names it. */
static const char *way_out(const weft_tensor *x, const char *reason)
{
    bool of_ints = x && !weft__handle_error(x->w, x) && x->f.type == WEFT_I32;
    return of_ints && strstr(reason, "reals") && !strstr(reason, "weft_to_reals") ? " (weft_to_reals)" : "";
}

bool weft_op_refuse(const weft_call *c, const char *reason)
{
    char text[300] = "";
    if (!c || c->n < 1 || !c->x[0])
        return false;
    for (int i = 0, length = 0; i < c->n && i < 3 && length < 280; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%s", i ? ", " : "",
                           WEFT__TEXT(&c->x[i]->f));
    weft__fail(c->x[0]->w, WEFT_ESHAPE, "%s: %s: %s%s", c->op->name, text, reason, way_out(c->x[0], reason));
    return false;
}

bool weft__refuse(const weft_call *c, const char *format, ...)
{
    char reason[300];
    WEFT__PLAIN_TEXT(reason, sizeof reason, format);
    return weft_op_refuse(c, reason);
}

weft_tensor *weft__failed(weft_tensor *x, weft_status status, const char *function, const char *format, ...)
{
    char reason[300];
    WEFT__PLAIN_TEXT(reason, sizeof reason, format);
    weft *w = x ? x->w : weft__no_context();
    if (WEFT__IS_USABLE(w, x, "%s: the tensor", function))
        weft__fail(w, status, "%s: %s: %s%s", function, WEFT__TEXT(&x->f), reason, way_out(x, reason));
    return &w->nil;
}

weft_tensor *weft__failed_of(weft_tensor *const *x, int64_t n, weft_status status, const char *function,
                             const char *format, ...)
{
    char reason[300];
    WEFT__PLAIN_TEXT(reason, sizeof reason, format);
    weft *w = weft__context(x, n);
    for (int64_t i = 0; i < n; i++)
        if (!WEFT__IS_USABLE(w, x[i], "%s: input %lld", function, (long long)i))
            return &w->nil;
    weft__fail(w, status, "%s: %s: %s%s", function, n && x[0] ? WEFT__TEXT(&x[0]->f) : "", reason,
               n ? way_out(x[0], reason) : "");
    return &w->nil;
}
