/* inspect.c - looking at the tape: a callback for every result, and the tape as text. */
#include "autograd/autograd.h"

void weft_on_result(weft *w, void (*fn)(const weft_tensor *, const char *, void *), void *user)
{
    struct weft__tape *t = w && !weft__is_no_context(w) ? weft__tape_of(w) : NULL;
    if (t)
        t->watch = fn, t->watch_user = user;
}

static void print_input(FILE *file, const weft_tensor *x)
{
    char text[128];
    if (x->node.born)
        fprintf(file, " %%%lld", (long long)x->node.born - 1);
    else
        fprintf(file, " %s%s", x->node.parameter ? "parameter" : "given", weft__text(&x->f, text));
}

void weft_print_tape(FILE *file, const weft *w)
{
    char text[128];
    if (!file || !w || !w->tape)
        return;
    for (int64_t e = 0; e < w->tape->entries; e++) {
        const weft_call *c = w->tape->entry[e].call;
        fprintf(file, "%%%lld = %s", (long long)e, c->op->name);
        for (int i = 0; i < c->n; i++)
            print_input(file, c->x[i]);
        fprintf(file, " -> %s\n", weft__text(&c->y[0]->f, text));
    }
}
