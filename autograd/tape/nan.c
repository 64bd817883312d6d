/* nan.c - with WEFT_CHECK=1, checks the results and gradients of each operator for NaN.
 *
 * The first NaN that an operator computes from inputs without NaN is an error. The message names operator and
 * element; all later NaNs follow from it. NaN in the program's data may mean a missing value, so it is
 * reported once and is not an error. Padding is not checked. */
#include <math.h>
#include "autograd/op.h"
#include "core/report/check.h"
#include "core/report/log.h"

/* ---- finding the element ---- */
/* Returns the numbers, reals or ints, on the host until the next call. NULL if empty or without memory. */
static const void *numbers_of(const weft_tensor *t)
{
    weft *w = t->w;
    struct weft__check *c = w->check;
    int64_t n = count(t);
    if (w->dev.k->synchronous || !n || !t->data)
        return t->data;
    if (n > c->elements) {
        weft__release(w, c->copy);
        c->copy = weft__allocate(w, (size_t)n * sizeof *c->copy);
        c->elements = c->copy ? n : 0;
    }
    if (c->copy)
        w->dev.k->download(&w->dev, c->copy, t->data, (size_t)weft__bytes(&t->f));
    return c->copy;
}

static bool any_nan(const real *x, int64_t n)
{
    bool any = false;
    for (int64_t i = 0; i < n; i++)
        any |= x[i] != x[i];
    return any;
}

/* Padding exists in the layouts ROWS and PADDED. */
static bool is_pad(const weft_tensor *t, int64_t element)
{
    if (t->f.layout != WEFT_ROWS && t->f.layout != WEFT_PADDED)
        return false;
    const struct weft__rows *rows = weft__rows_of(t->f.batch, &t->f);
    return !rows || rows->sequence.host[element / (count(t) / weft__layout_rows(&t->f))] < 0;
}

/* Returns the first element that is NaN, or -1. */
static int64_t first_nan(const weft_tensor *t)
{
    enum { CHUNK = 1024 };
    int64_t n = t->f.type == WEFT_REAL ? count(t) : 0;
    const real *x = n ? numbers_of(t) : NULL;
    for (int64_t from = 0; x && from < n; from += CHUNK) {
        int64_t end = n - from < CHUNK ? n : from + CHUNK;
        for (int64_t i = any_nan(x + from, end - from) ? from : end; i < end; i++)
            if (isnan(x[i]) && !is_pad(t, i))
                return i;
    }
    return -1;
}

static const char *locate(const weft_tensor *t, int64_t element, char text[192])
{
    const struct weft__rows *rows = t->f.batch ? weft__rows_of(t->f.batch, &t->f) : NULL;
    int64_t rest = element, inner = count(t), row = rows ? element / (inner / weft__layout_rows(&t->f)) : 0;
    int used = snprintf(text, 192, "[");
    for (int i = 0; i < t->f.rank; i++) {
        inner /= t->f.size[i];
        used += snprintf(text + used, 192 - (size_t)used, i ? ", %lld" : "%lld", (long long)(rest / inner));
        rest %= inner;
    }
    used += snprintf(text + used, 192 - (size_t)used, "]");
    if (rows && t->f.layout)
        snprintf(text + used, 192 - (size_t)used, " (sequence %d, position %d)", rows->sequence.host[row],
                 rows->position.host[row]);
    return text;
}
#define PLACE(t, element) locate(t, element, (char[192]){ 0 })

/* ---- finding the cause ---- */
static void blame_input(weft_call *c, int i, int64_t element) /* warns once: the NaN is in the data */
{
    weft *w = c->x[i]->w;
    const char *from = node(c->x[i])->parameter ? "a parameter" : "not made by an operator";
    if (!w->check->warned_given)
        weft__warn("WEFT_CHECK: %s: its result has NaN because input %d, %s %s, has one at %s", c->op->name,
                   i, WEFT__TEXT(&c->x[i]->f), from, PLACE(c->x[i], element));
    w->check->warned_given = true;
}

/* Returns whether NaN in the result comes from an input. An input that the result has overwritten can no
 * longer be checked. Inputs of a view were not checked. */
static bool comes_from_input(weft_call *c, const weft_tensor *y)
{
    bool any = false;
    for (int i = 0; i < c->n; i++) {
        bool overwritten = c->op->forward && c->x[i]->data == y->data;
        int64_t element = overwritten ? -1 : first_nan(c->x[i]);
        any |= element >= 0 || (overwritten && y->w->check->given);
        if (element >= 0 && !node(c->x[i])->entry_number && !y->w->tape->entry_name)
            blame_input(c, i, element);
    }
    return any || (c->add && y->w->check->given);                 /* the old value of y may have had one */
}

void weft__check_results(weft_call *c, bool moves)
{
    weft *w = c->x[0]->w;
    for (int k = 0; k < c->m && !w->status; k++) {
        const weft_tensor *y = c->y[k];
        int64_t element = first_nan(y);
        if (element >= 0 && (comes_from_input(c, y) || moves))
            w->check->given = true;
        else if (element >= 0)
            weft__fail(
                w, WEFT_ENUMERIC, "%s%s%s%s: the result %s has NaN at %s, and no input has one (WEFT_CHECK)",
                w->tape->entry_name ? "backward of " : "", w->tape->entry_name ? w->tape->entry_name : "",
                w->tape->entry_name ? ": " : "", c->op->name, WEFT__TEXT(&y->f), PLACE(y, element));
    }
}

/* NaN in the gradients before the call would have been reported, except NaN from the program's data. */
void weft__check_gradients(weft_call *c)
{
    weft *w = c->x[0]->w;
    for (int i = 0; i < c->n && !w->status && !w->check->given; i++) {
        const weft_tensor *g = node(c->x[i])->grad;
        int64_t element = g && !(node(c->x[i])->parameter && node(c->x[i])->frozen) ? first_nan(g) : -1;
        if (element >= 0)
            weft__fail(w, WEFT_ENUMERIC,
                       "backward of %s: the gradient of input %d, %s, has NaN at %s (WEFT_CHECK)",
                       c->op->name, i, WEFT__TEXT(&g->f), PLACE(g, element));
    }
}

/* ---- ints that a real cannot represent ---- */
void weft__check_exact(const weft_tensor *ints)
{
    struct weft__check *c = ints->w->check;
    const int32_t *x = c->warned_inexact ? NULL : numbers_of(ints);
    for (int64_t i = 0, n = count(ints); x && i < n && !c->warned_inexact; i++)
        if ((double)(real)x[i] != (double)x[i]) {
            c->warned_inexact = true;
            weft__warn("WEFT_CHECK: to_reals: %s: %d at %s becomes %.0f: a float holds integers up to %d "
                       "exactly. Keep ids as ints; add, equal, where and others take them",
                       WEFT__TEXT(&ints->f), (int)x[i], PLACE(ints, i), (double)(real)x[i], 1 << 24);
        }
}
