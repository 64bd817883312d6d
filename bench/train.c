/* train.c - what is measured of everything that trains: a forward pass without the tape, a training step
 * with it, and the proof of equal work. */
#include <math.h>
#include <string.h>
#include "bench.h"

/* Loss and gradient norm of one training step. */
static void prove(training *t)
{
    weft_zero_grad(t->all);
    for (int i = 0; i < t->graphs; i++) {
        weft_tensor *loss = t->loss(t->user);
        weft_backward(loss);
        t->row.loss += (double)weft_item(loss);
        weft_clear(t->w);
    }
    t->row.norm = (double)weft_item(weft_clip_grad_norm(t->all, (weft_real)INFINITY, 0));
    weft_clear(t->w);
}

static void one_graph(const training *t, bool train)
{
    if (train)
        weft_zero_grad(t->all);
    weft_tensor *loss = t->loss(t->user);
    if (train)
        weft_backward(loss);
}

static void step(const training *t, bool train)
{
    weft_set_grad_enabled(t->w, train);
    if (t->step)
        t->step(t->user, train);
    else
        one_graph(t, train);
    weft_synchronize(t->w);
    weft_clear(t->w);
}

/* In a child of memory.c: a single step, whose gradients are there already. */
static bool grow(const training *t, const settings *s)
{
    weft_zero_grad(t->all);
    double begin = begin_growth();
    step(t, true);
    *s->growth = growth_since(begin);
    return weft_ok(t->w);
}

static bool measure_pass(training *t, const settings *s, bool train)
{
    times    of = { 0 };
    settling warm = { weft_usage_of(t->w).trials, 0, 0 };
    double   start;
    do
        step(t, train);
    while (!settled(t->w, &warm));
    weft_usage before = weft_usage_of(t->w);
    do {
        start = now_ms();
        step(t, train);
    } while (more(&of, now_ms() - start, s));
    t->row.allocations = weft_usage_of(t->w).allocations - before.allocations;
    count_launches(&t->row, t->w, &before, of.n);
    t->row.pass = train ? "train" : "forward";
    if (failed(t->w, t->row.name))
        return false;
    emit(s, t->w, &t->row, &of);
    return true;
}

bool measure_training(training *t, const settings *s)
{
    if (s->growth)
        return grow(t, s);
    prove(t);
    return measure_pass(t, s, false) && measure_pass(t, s, true);
}

/* ---- a shape ---- */
static void cut_down(row *r)
{
    static const int64_t most[] = { 8, 12, 16, 16, 6 };
    int64_t *of[] = { &r->B, &r->T, &r->I, &r->H, &r->horizon };
    for (int i = 0; i < 5; i++)
        *of[i] = *of[i] < most[i] ? *of[i] : most[i];
}

bool measure(run_case *run, row r, const char *layouts, const settings *s)
{
    static char own[16];
    snprintf(own, sizeof own, "%.*s", (int)strcspn(layouts, " "), layouts);
    r.layout = s->layout ? s->layout : own;
    if (!strstr(layouts, r.layout)) {
        fprintf(stderr, "weft_bench: %s has no layout \"%s\", but: %s\n", r.name, r.layout, layouts);
        return false;
    }
    if (s->tiny)
        cut_down(&r);
    settings told = *s;
    told.step_bytes = step_bytes(run, r, s);
    bool good = run(r, &told);
    free_kept();
    return good;
}
