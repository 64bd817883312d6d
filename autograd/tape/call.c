/* call.c - one call of an operator: checks the handles of inputs, makes the results, runs the raw function
 * and records the call. Before this, apply.c and arrange.c bring the inputs to one layout. */
#include <string.h>
#include "autograd/op.h"
#include "core/report/check.h"
#include "core/report/profile.h"

/* Returns whether the operator's functions belong to the program and run as callbacks. */
static bool is_own(const weft_call *c) { return c->host || c->op->device; }
weft__callback weft__op_callback_begin(weft *w, const weft_call *c, const char *kind)
{
    return is_own(c) ? weft__callback_begin(w, kind, c->op->name) : weft__callback_current(w);
}

/* ---- checks ---- */
static bool inputs_are_usable(weft *w, const weft_op *op, weft_tensor *const *x, int n)
{
    for (int i = 0; i < n && !w->status; i++)
        if (!WEFT__IS_USABLE(w, x[i], "%s: input %d", op->name, i))
            return false;
    if (n == 0)
        weft__fail(w, WEFT_EARG, "%s: no inputs; expected one or more", op->name);
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

/* Rank of a result until the shape function has set it. */
enum { UNSHAPED = -1 };

static weft_call *call_new(weft *w, const weft_op *op, weft_tensor *const *x, int n, const void *attributes,
                           size_t bytes)
{
    int m = op->results ? op->results : 1;
    size_t pointers = (size_t)(n + m) * sizeof *x;
    weft_call *c = weft__take(w, WEFT__ARENA_CALLS, (int64_t)(sizeof *c + pointers + bytes));
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

/* ---- running a call ---- */
static void run_forward(weft *w, weft_call *c)
{
    const char *before = w->tape->raw_name;
    weft__work work;
    if (!weft__work_begin(w, &work, c, false))
        return;
    w->tape->raw_name = c->op->name;
    if (is_own(c)) {
        weft__callback outer = weft__op_callback_begin(w, c, "the forward function of");
        c->op->forward(c);
        weft__callback_end(w, outer);
    } else
        c->op->forward(c);
    w->tape->raw_name = before;
    weft__work_end(w, &work);
}

/* run_forward with profiling. During a backward pass the time counts for the entry whose backward runs. */
static void timed(weft *w, weft_call *c)
{
    bool own = !w->tape->unrecorded_pass;
    weft__timed *before = own ? weft__profile_enter(w, c->op->name, false) : NULL;
    for (int i = 0; i < c->n; i++)
        weft__profile_bytes(w, weft__bytes(&c->x[i]->f));
    for (int k = 0; k < c->m; k++)
        weft__profile_bytes(w, weft__bytes(&c->y[k]->f));
    run_forward(w, c);
    if (own)
        weft__profile_leave(w, before);
}

static void show(weft *w, const weft_call *c)
{
    struct weft__tape *t = w->tape;
    weft__callback outer = weft__callback_begin(w, "the function of weft_on_result", NULL);
    t->watching = true;
    t->watch(c->y[0], c->op->name, t->watch_user);
    t->watching = false;
    weft__callback_end(w, outer);
}

static bool run_call(weft_call *c)
{
    weft *w = c->x[0]->w;
    for (int k = 0; k < c->m; k++)
        if (!c->op->forward)
            c->y[k]->data = c->x[0]->data,
            node(c->y[k])->base = c->x[0]->step ? node(c->x[0])->base : c->x[0];
        else if (!c->y[k]->data &&
                 !(c->y[k]->data = weft__take(w, WEFT__ARENA_DATA, weft__capacity(&c->y[k]->f))))
            return false;
    if (c->op->forward && w->profiling)
        timed(w, c);
    else if (c->op->forward)
        run_forward(w, c);
    if (w->dev.fault.is || w->dev.failure[0])
        weft__check_faults(w, c->op->name);
    if (w->check)
        weft__check_results(c, c->op->moves || !c->op->forward);
    if (w->tape->watch && !w->tape->watching)
        show(w, c);
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
        t->entry = entry;
        t->room = room;
    }
    t->entry[t->entries++] = (weft__entry){ c, t->version, false };
    for (int k = 0; k < c->m; k++)
        node(c->y[k])->entry_number = t->entries;
}

static bool results_are_possible(weft_call *c)
{
    bool ok = !c->x[0]->w->status;
    for (int k = 0; ok && k < c->m; k++) {
        if (c->y[k]->f.rank == UNSHAPED)
            return weft__refuse(c,
                                "the shape function has not set a valid shape of result %d; expected "
                                "weft_op_like or weft_op_set_shape",
                                k);
        ok = weft__extents_are_possible(c->x[0]->w, &c->y[k]->f);
        if (ok && !c->op->forward && (c->y[k]->f.type != c->x[0]->f.type || count(c->y[k]) != count(c->x[0])))
            ok = weft_op_refuse(c, "a view; expected the type and number of elements of its input");
    }
    return ok;
}

static bool own_shape(weft *w, weft_call *c)
{
    weft__callback outer = weft__op_callback_begin(w, c, "the shape function of");
    bool ok = c->op->shape(c);
    weft__callback_end(w, outer);
    return ok;
}

static bool has_shape(weft_call *c)
{
    weft *w = c->y[0]->w;
    bool ok = is_own(c) ? own_shape(w, c) : c->op->shape(c);
    if (!ok)                                   /* a second error is ignored */
        weft__fail(w, WEFT_EARG, "%s: the shape function failed; expected a reason by weft_op_refuse",
                   c->op->name);
    return ok;
}

static const weft_call *apply_call(weft *w, const weft_op *op, const weft__inputs *in,
                                   bool agree(weft_call *), bool host)
{
    if (!inputs_are_usable(w, op, in->x, in->n) || !weft__tape_of(w))
        return inert(w);
    const char *before = w->running;
    w->running = op->name;
    weft_call *c = call_new(w, op, in->x, in->n, in->attributes, in->bytes);
    if (c)
        c->host = host;
    if (c && (!agree || agree(c)) && has_shape(c) && results_are_possible(c)) {
        if (!w->tape->unrecorded_pass)
            weft__carry_order(c);
        weft__run_deferred(w);
        if (op->adds && w->tape->unrecorded_pass && !w->recording) {
            w->tape->deferred = c;
            w->tape->run = run_call;
        } else if (run_call(c) && w->recording) {
            record(w, c);
        } else if (!w->recording) {
            for (int k = 0; k < c->m; k++)
                node(c->y[k])->unrecorded = true;
        }
    }
    if (w->status)
        return inert(w);
    w->running = before;
    return c;
}

const weft_call *weft__call(weft *w, const weft_op *op, const weft__inputs *in, bool agree(weft_call *),
                            bool host)
{
    if (!w->check)
        return apply_call(w, op, in, agree, host);
    if (!weft__check_enter(w, op->name))
        return inert(w);
    const weft_call *c = apply_call(w, op, in, agree, host);
    weft__check_leave(w);
    return c;
}

/* ---- for shape functions ---- */
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

bool weft__form_shape(weft_call *c)
{
    c->y[0]->f = *(const weft__form *)c->attributes;
    return true;
}
