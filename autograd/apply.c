/* apply.c - how an operator is applied. Every one, a user's own included, comes through weft__apply: handles,
 * layouts, shape, memory, kernel, tape. What a user could do wrong is caught here and in no other place. */
#include <stdarg.h>
#include <string.h>
#include "autograd/autograd.h"
#include "core/log.h"

/* ---- handles ---- */
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

weft_tensor *weft__inert_beside(const weft_tensor *x) { return x ? &x->w->nil : &weft__no_context()->nil; }

static bool inputs_are_usable(weft *w, const weft_op *op, weft_tensor *const *x, int n)
{
    for (int i = 0; i < n && !w->status; i++) {
        const char *wrong = weft__wrong(w, x[i]);
        if (wrong)
            weft__fail(w, WEFT_EARG, "%s: input %d %s", op->name, i, wrong);
    }
    if (n == 0)
        weft__fail(w, WEFT_EARG, "%s: at least one input is expected", op->name);
    return !w->status;
}

static const weft_call *inert(weft *w)
{
    static _Thread_local weft_tensor *y[WEFT__RESULTS];
    static _Thread_local weft_call call;
    call = (weft_call){ .y = y };
    for (int k = 0; k < WEFT__RESULTS; k++)
        y[k] = &w->nil;
    return &call;
}

bool weft_op_refuse(const weft_call *c, const char *why)
{
    char text[300] = "", one[128];
    if (!c || c->n < 1 || !c->x[0])
        return false;
    for (int i = 0, at = 0; i < c->n && i < 3 && at < 280; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "",
                       weft__text(&c->x[i]->f, one));
    weft__fail(c->x[0]->w, WEFT_ESHAPE, "%s: %s: %s", c->op->name, text, why);
    return false;
}

#define WHY(format)                              /* what the caller's arguments say */ \
    char why[300];                                                                    \
    va_list list;                                                                     \
    va_start(list, format);                                                           \
    vsnprintf(why, sizeof why, format, list);                                         \
    va_end(list)

bool weft__refuse(const weft_call *c, const char *format, ...)
{
    WHY(format);
    return weft_op_refuse(c, why);
}

weft_tensor *weft__failed(weft_tensor *x, weft_status status, const char *function, const char *format, ...)
{
    WHY(format);
    weft *w = x ? x->w : weft__no_context();
    char text[128];
    const char *wrong = weft__wrong(w, x);
    if (wrong)
        weft__fail(w, WEFT_EARG, "%s: the tensor %s", function, wrong);
    weft__fail(w, status, "%s: %s: %s", function, x ? weft__text(&x->f, text) : "", why);
    return &w->nil;
}

weft_tensor *weft__failed_of(weft_tensor *const *x, int64_t n, weft_status status, const char *function,
                             const char *format, ...)
{
    WHY(format);
    weft *w = weft__context(x, n);
    char text[128];
    for (int64_t i = 0; i < n; i++) {
        const char *wrong = weft__wrong(w, x[i]);
        if (wrong)
            weft__fail(w, WEFT_EARG, "%s: input %lld %s", function, (long long)i, wrong);
    }
    weft__fail(w, status, "%s: %s: %s", function, n && x[0] ? weft__text(&x[0]->f, text) : "", why);
    return &w->nil;
}

/* ---- calls ---- */
/* the rank of a result that the shape function has not set */
enum { UNSHAPED = -1 };

static weft_call *call_new(weft *w, const weft_op *op, weft_tensor *const *x, int n, const void *attributes,
                           size_t bytes)
{
    int m = op->results ? op->results : 1;
    size_t pointers = (size_t)(n + m) * sizeof *x;
    weft_call *c = weft__take(w, &w->notes, (int64_t)(sizeof *c + pointers + bytes));
    if (!c)
        return NULL;
    weft_tensor **y = (weft_tensor **)(c + 1);
    *c = (weft_call){ op, y, y + m, m, n, y + m + n, false, false };
    memcpy(c->x, x, (size_t)n * sizeof *x);
    if (bytes)
        memcpy(y + m + n, attributes, bytes);
    for (int k = 0; k < m; k++)
        if (!(y[k] = weft__header(w, &(weft__form){ .rank = UNSHAPED })))
            return NULL;
    return c;
}

static weft_layout needed(const weft_op *op, const weft__form *first, const weft__form *f)
{
    if (op->layout == WEFT_ROWS)
        return f->layout;                        /* as they come */
    if (op->layout)
        return op->layout;
    weft_layout of_first = first ? first->layout : f->layout;
    return of_first == WEFT_ROWS ? WEFT_CONCAT : of_first;
}

/* All ragged inputs of one operator are of one batch; they come in one layout, by a gather where need be. */
static bool agree(weft_call *c)
{
    const weft__form *first = NULL;
    for (int i = 0; i < c->n; i++) {
        const weft__form *f = &c->x[i]->f;
        if (!f->batch)
            continue;
        if (first && first->batch != f->batch && !c->op->ragged_apart) {
            char why[200];
            weft__difference(first->batch, f->batch, why, sizeof why);
            return weft_op_refuse(c, why);
        }
        weft_layout want = needed(c->op, first, f);
        if (f->layout != want) {
            weft__form to = weft__laid(*f, f->batch, want, 0, WEFT_ALIGN_LEFT, NULL);
            c->x[i] = weft__arranged(c->x[i], &to, 0);
            if (c->x[i]->w->status)
                return false;                    /* no memory for it */
        }
        first = first ? first : &c->x[i]->f;
    }
    return !c->x[0]->w->status;
}

static void run_forward(weft *w, weft_call *c)
{
    const char *before = w->tape->raw;
    weft__work work;
    if (!weft__work_begin(w, &work, c, false))
        return;
    w->tape->raw = c->op->name;
    c->op->forward(c);
    w->tape->raw = before;
    weft__work_end(w, &work);
}

/* by WEFT_LOG=2: what runs on the way back is the time of the entry that is passed */
static void logged(weft *w, weft_call *c)
{
    bool own = !w->tape->walking;
    weft__log_row *before = own ? weft__log_enter(w, c->op->name, false) : NULL;
    for (int i = 0; i < c->n; i++)
        weft__log_bytes(w, weft__bytes(&c->x[i]->f));
    for (int k = 0; k < c->m; k++)
        weft__log_bytes(w, weft__bytes(&c->y[k]->f));
    run_forward(w, c);
    if (own)
        weft__log_leave(w, before);
}

static const weft_op op_arrange;                 /* below */

bool weft__run_call(weft_call *c)
{
    weft *w = c->x[0]->w;
    for (int k = 0; k < c->m; k++)
        if (!c->op->forward)
            c->y[k]->data = c->x[0]->data, c->y[k]->node.base = c->x[0]->step ? c->x[0]->node.base : c->x[0];
        else if (!c->y[k]->data && !(c->y[k]->data = weft__take(w, &w->data, weft__room(&c->y[k]->f))))
            return false;
    if (c->op->forward && w->logging)
        logged(w, c);
    else if (c->op->forward)
        run_forward(w, c);
    if (w->dev.fault.is || w->dev.failure[0])
        weft__check_faults(w, c->op->name);
    if (w->check)
        /* which fill pads as they were told, or make nothing */
        weft__check_results(c, c->op == &op_arrange || !c->op->forward);
    if (w->tape->watch)
        w->tape->watch(c->y[0], c->op->name, w->tape->watch_user);
    return !w->status;
}

static void record(weft *w, weft_call *c)
{
    struct weft__tape *t = w->tape;
    if (t->entries == t->room) {
        int64_t room = t->room ? 2 * t->room : 1024;
        weft__entry *entry = weft__allocate(w, (size_t)room * sizeof *entry);
        if (!entry)
            return;
        if (t->entries)
            memcpy(entry, t->entry, (size_t)t->entries * sizeof *entry);
        weft__release(w, t->entry);
        t->entry = entry, t->room = room;
    }
    t->entry[t->entries++] = (weft__entry){ c, t->changes, false };
    for (int k = 0; k < c->m; k++)
        c->y[k]->node.born = t->entries;
}

static bool results_are_possible(weft_call *c)
{
    bool fine = !c->x[0]->w->status;
    for (int k = 0; fine && k < c->m; k++) {
        if (c->y[k]->f.rank == UNSHAPED)
            return weft__refuse(c,
                                "its shape function has set no shape of result %d, or no possible one "
                                "(weft_op_like, weft_op_set_shape)",
                                k);
        fine = weft__possible(c->x[0]->w, &c->y[k]->f);
        if (fine && !c->op->forward &&
            (c->y[k]->f.type != c->x[0]->f.type || count(c->y[k]) != count(c->x[0])))
            fine = weft_op_refuse(c, "a view has as many elements as its input, and of its type");
    }
    return fine;
}

/* host: raw functions see host memory, see host.c */
static const weft_call *apply(const weft_op *op, weft_tensor *const *x, int n, const void *attributes,
                              size_t bytes, bool host)
{
    weft *w = weft__context(x, n);
    if (!inputs_are_usable(w, op, x, n) || !weft__tape_of(w))
        return inert(w);
    const char *before = w->running;
    w->running = op->name;
    weft_call *c = call_new(w, op, x, n, attributes, bytes);
    if (c)
        c->host = host;
    if (c && agree(c) && op->shape(c) && results_are_possible(c)) {
        weft__run_deferred(w);
        if (op->adds && w->tape->walking && !w->recording)
            w->tape->deferred = c;
        else if (weft__run_call(c) && w->recording)
            record(w, c);
    }
    if (w->status)
        return inert(w);
    w->running = before;
    return c;
}

const weft_call *weft__apply(const weft_op *op, weft_tensor *const *x, int n, const void *attributes,
                             size_t bytes)
{
    return apply(op, x, n, attributes, bytes, false);
}

static bool operator_is_sound(weft *w, const weft_op *op)     /* a record that a user wrote */
{
    if ((unsigned)op->results > WEFT__RESULTS)
        weft__fail(w, WEFT_EARG, "op_apply: %s has %d results; 0 (which means 1) .. %d are expected",
                   op->name, op->results, WEFT__RESULTS);
    else if ((unsigned)op->layout > WEFT_ROWS)
        weft__fail(w, WEFT_EARG,
                   "op_apply: %s wants the layout %d; plain, packed, concat or rows is expected", op->name,
                   (int)op->layout);
    else if (!op->forward && op->adds)
        weft__fail(w, WEFT_EARG, "op_apply: %s adds and has no forward; a view adds nothing", op->name);
    return !w->status;
}

weft_tensor *weft_op_apply(const weft_op *op, weft_tensor *const *x, int64_t n, const void *attributes,
                           size_t bytes)
{
    bool listed = x && n >= 0 && n <= INT32_MAX;
    weft *w = weft__context(x, listed ? n : x && n > 0);
    if (!op || !listed || !op->shape || !op->name || (bytes && !attributes))
        weft__fail(
            w, WEFT_EARG,
            "op_apply: an operator with a name and a shape function, its inputs and attributes are expected");
    else if (operator_is_sound(w, op))
        return apply(op, x, (int)n, attributes, bytes, !op->device)->y[0];
    return &w->nil;
}

/* ---- for records ---- */
bool weft__form_shape(weft_call *c)
{
    c->y[0]->f = *(const weft__form *)c->attributes;
    return true;
}

void weft_op_like(weft_tensor *y, const weft_tensor *x)
{
    if (y && x)
        y->f = x->f;
}

void weft_op_set_shape(weft_tensor *y, weft_dtype type, int rank, const int64_t *shape)
{
    if (y && (shape || rank < 1))
        y->f = rank >= 0 && rank <= WEFT_RANK ? weft__plain(type, rank, shape) :
                                                (weft__form){ .rank = UNSHAPED };
}

/* The raw function that asks goes on until it returns: in memory that is large enough (weft__room), and
 * no one looks at what comes of it. */
static void *in_vain(const weft_tensor *t, weft_dtype asked, void *seen)
{
    weft *w = t->w;
    char text[128];
    const char *by = w->tape->raw ? w->tape->raw : w->tape->passing;
    weft__fail(w, WEFT_EARG, "%s%s%s of %s%s; %s reads those", by ? by : "", by ? ": " : "",
               asked == WEFT_REAL ? "op_data" : "op_int_data", weft__text(&t->f, text),
               asked == WEFT_REAL ? "" : " of reals",
               asked == WEFT_REAL ? "weft_op_int_data" : "weft_op_data");
    return seen;
}

static void *data_of(const weft_tensor *t, weft_dtype type)
{
    const char *wrong = t ? weft__wrong(t->w, t) : NULL;
    const char *function = type == WEFT_REAL ? "op_data" : "op_int_data";
    if (wrong)
        weft__fail(t->w, WEFT_EARG, "%s: the tensor %s", function, wrong);
    if (!t || wrong)
        return NULL;
    if (t->w->tape)
        weft__run_deferred(t->w);                /* a raw look at a tensor: no call may be waiting */
    void *seen = weft__seen(t, function);
    return !seen || t->f.type == type ? seen : in_vain(t, type, seen);
}
real    *weft_op_data(const weft_tensor *t)     { return data_of(t, WEFT_REAL); }
int32_t *weft_op_int_data(const weft_tensor *t) { return data_of(t, WEFT_I32); }
