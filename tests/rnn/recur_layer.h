/* recur_layer.h - layers for the tests of recur and recur_back: their inputs in double, a table's kernels on
 * these numbers, comparison of two runs, loops over every cell, direction and state. */
#ifndef WEFT_RECUR_LAYER_H
#define WEFT_RECUR_LAYER_H
#include "tests/check.h"
#include "core/inside.h"

/* ---- a layer's inputs, in double ---- */
/* The weights, sums and states that a kernel gets are these, rounded. */
typedef struct {
    weft__cell cell; bool reverse, states, bias, project, cell_dy;
    int64_t H, W, n, steps, tokens, G, S;        /* G: columns of sums, S: of the slots */
    int32_t len[64], live[64], start[65];
    /* where they begin in x; the sums come first */
    int64_t at_h0, at_c0, at_w, at_hr, at_b, inputs;
    double *x, *dy, *dyc;
} layer;

static void *held[256];
static int holding;
/* of arrays in memory that a real GPU sees as well as the host does; NULL: calloc */
static weft *lender;
UNUSED static void *hold(int64_t n, size_t size)
{
    size_t bytes = ((size_t)n + 1) * size;
    cr_assert(holding < COUNT(held));
    if (!lender)
        return held[holding++] = calloc(bytes, 1);
    held[holding] = lender->dev.k->allocate(&lender->dev, bytes, false);
    cr_assert(held[holding]);
    return memset(held[holding++], 0, bytes);
}
UNUSED static void let_go(void)
{
    while (holding && lender)
        lender->dev.k->release(&lender->dev, held[--holding], false);
    while (holding)
        free(held[--holding]);
    lender = NULL;
}
UNUSED static void borrow_from(weft *w)                 /* with WEFT_MANAGED, until let_go */
{
    const char *managed = getenv("WEFT_MANAGED");
    lender = managed && *managed && !w->dev.k->synchronous ? w : NULL;
}
UNUSED static int32_t *seen_by_kernels(const int32_t *from, int64_t n)
{
    return memcpy(hold(n, sizeof *from), from, (size_t)n * sizeof *from);
}
UNUSED static double *reals_of(int64_t n, double scale)
{
    double *p = hold(n, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (double)dice_real(-scale, scale);
    return p;
}

/* Lengths as packed order has them: longest first, ties and zeros among them. */
UNUSED static void draw_lengths(layer *l, int64_t n, int32_t longest)
{
    l->n = n;
    dice_lengths(l->len, n, longest);
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k && l->len[k] > l->len[k - 1]; k--) {
            int32_t swap = l->len[k];
            l->len[k] = l->len[k - 1];
            l->len[k - 1] = swap;
        }
}
UNUSED static void lay_out(layer *l)
{
    l->steps = l->n ? l->len[0] : 0;
    l->start[0] = 0;
    for (int64_t t = 0; t < l->steps; t++) {
        for (l->live[t] = 0; l->live[t] < l->n && l->len[l->live[t]] > t;)
            l->live[t]++;
        l->start[t + 1] = l->start[t] + l->live[t];
    }
    l->tokens = l->start[l->steps];
}
UNUSED static bool has_c(weft__cell cell)     { return cell == WEFT__lstm || cell == WEFT__cifg; }
UNUSED static bool has_apart(weft__cell cell) { return cell == WEFT__gru || cell == WEFT__mgu; }
UNUSED static void fill(layer *l)
{
    lay_out(l);
    static const int gates[] = { [WEFT__rnn_tanh] = 1, [WEFT__rnn_relu] = 1, [WEFT__gru] = 3,
                                 [WEFT__lstm] = 4,     [WEFT__cifg] = 3,     [WEFT__mgu] = 2 };
    l->G = l->H * gates[l->cell];
    l->S = l->G + (has_apart(l->cell) ? l->H : 0);
    if (!l->project)
        l->W = l->H;
    l->at_h0 = l->tokens * l->G;
    l->at_c0 = l->at_h0 + (l->states ? l->n * l->W : 0);
    l->at_w  = l->at_c0 + (l->states && has_c(l->cell) ? l->n * l->H : 0);
    l->at_hr = l->at_w + l->G * l->W;
    l->at_b  = l->at_hr + (l->project ? l->W * l->H : 0);
    l->inputs = l->at_b + (l->bias ? l->H : 0);
    l->x = reals_of(l->inputs, 1);
    for (int64_t i = l->at_w; i < l->inputs; i++)
        l->x[i] *= 2 / sqrt((double)l->W);
    l->dy = reals_of(l->tokens * l->W, 1);
    l->dyc = reals_of(l->tokens * l->H, 1);
    for (int64_t i = 0; i < l->inputs; i++)
        l->x[i] = (double)(real)l->x[i];
}

/* ---- a table's kernels on these inputs ---- */
UNUSED static real *rounded(const double *from, int64_t n)
{
    real *p = hold(n, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (real)from[i];
    return p;
}
UNUSED static weft__recurrence record(const layer *l)
{
    weft__recurrence r = { .cell = l->cell, .reverse = l->reverse, .sequences = l->n,
                           .tokens = l->tokens, .steps = l->steps, .to = l->steps,
                           .hidden = l->H, .width = l->W,
                           .live = { l->live, seen_by_kernels(l->live, l->steps) },
                           .start = { l->start, seen_by_kernels(l->start, l->steps + 1) } };
    bool two = has_c(l->cell);
    r.w_hh = rounded(l->x + l->at_w, l->G * l->W);
    r.w_hr = l->project ? rounded(l->x + l->at_hr, l->W * l->H) : NULL;
    r.b_h_alone = l->bias ? rounded(l->x + l->at_b, l->H) : NULL;
    r.h0 = l->states ? rounded(l->x + l->at_h0, l->n * l->W) : NULL;
    r.c0 = l->states && two ? rounded(l->x + l->at_c0, l->n * l->H) : NULL;
    r.h = hold(l->tokens * l->W, sizeof(real));
    r.c = two ? hold(l->tokens * l->H, sizeof(real)) : NULL;
    r.raw = l->project ? hold(l->tokens * l->H, sizeof(real)) : NULL;
    r.gates = hold(l->tokens * l->S, sizeof(real));
    for (int64_t t = 0; t < l->tokens; t++)
        for (int64_t j = 0; j < l->S; j++)
            r.gates[t * l->S + j] = j < l->G ? (real)l->x[t * l->G + j] : (real)NAN;
    return r;
}
UNUSED static void add_backward(const layer *l, weft__recurrence *r)
{
    r->dy = rounded(l->dy, l->tokens * l->W);
    r->dyc = l->cell_dy ? rounded(l->dyc, l->tokens * l->H) : NULL;
    r->dh0 = hold(l->n * l->W, sizeof(real));
    r->dc0 = has_c(l->cell) ? hold(l->n * l->H, sizeof(real)) : NULL;
    r->carry_h = hold(l->n * l->W, sizeof(real));
    r->carry_c = hold(l->n * l->H, sizeof(real));
    r->h_before = hold(l->tokens * l->W, sizeof(real));
    r->dh = l->project ? hold(l->tokens * l->W, sizeof(real)) : NULL;
}
UNUSED static weft__recurrence run(weft *w, const layer *l, bool back)
{
    weft__recurrence r = record(l);
    w->dev.k->recur(&w->dev, &r);
    w->dev.k->wait(&w->dev);
    if (back) {
        add_backward(l, &r);
        w->dev.k->recur_back(&w->dev, &r);
        w->dev.k->wait(&w->dev);
    }
    return r;
}

/* ---- two runs, array by array ---- */
UNUSED static const char *text(const layer *l)
{
    static char buffer[200];
    int at = snprintf(buffer, sizeof buffer, "cell %d%s%s%s H %lld W %lld lengths", l->cell,
                      l->reverse ? " reverse" : "", l->states ? " states" : "", l->bias ? " bias" : "",
                      (long long)l->H, (long long)l->W);
    for (int64_t s = 0; s < l->n && at < 180; s++)
        at += snprintf(buffer + at, sizeof buffer - (size_t)at, " %d", l->len[s]);
    return buffer;
}
typedef void compare(const char *what, const real *got, const real *want, int64_t n);
UNUSED static double allowed;
UNUSED static void near(const char *what, const real *got, const real *want, int64_t n)
{
    close_to(what, got, want, n, allowed);
}
UNUSED static void alike(const char *what, const real *got, const real *want, int64_t n)
{
    same_bits(what, got, want, n);
}
UNUSED static void each_array(const layer *l, const weft__recurrence *a, const weft__recurrence *b,
                              compare *fn)
{
    const struct { const char *what; const real *got, *want; int64_t n;
    } arrays[] = {
        { "gates", a->gates, b->gates, l->tokens * l->S },
        { "h", a->h, b->h, l->tokens * l->W },
        { "c", a->c, b->c, l->tokens * l->H },
        { "raw", a->raw, b->raw, l->tokens * l->H },
        { "h_before", a->h_before, b->h_before, l->tokens * l->W },
        { "dh", a->dh, b->dh, l->tokens * l->W },
        { "dh0", a->dh0, b->dh0, l->n * l->W },
        { "dc0", a->dc0, b->dc0, l->n * l->H },
    };
    for (int i = 0; i < COUNT(arrays); i++) {
        char what[240];
        snprintf(what, sizeof what, "%s: %s", text(l), arrays[i].what);
        if (arrays[i].got)                       /* some have no projection, no c, or no backward */
            fn(what, arrays[i].got, arrays[i].want, arrays[i].n);
    }
}

/* ---- every shape that is expected: calls fn with layers of all cells, directions, states ---- */
typedef void try_layer(weft *, const layer *);
UNUSED static void every_layer(weft *w, int64_t H, int64_t n, int32_t longest, try_layer *fn)
{
    /* In slow builds, a changing subset for each cell; in doubly slow ones, fewer. */
    static int times;
    const int step = !CHECK_SANITIZED ? 1 : getenv("WEFT_SMALL") ? 7 : 3;
    /* Six cells, two of them also with a projection, and three options. */
    for (int kind = times++ % step; kind < 64; kind += step) {
        const int at = kind / 8;
        layer l = { .cell = at < WEFT__CELLS  ? (weft__cell)at :
                            at == WEFT__CELLS ? WEFT__lstm :
                                                WEFT__cifg,
                    .project = at >= WEFT__CELLS,
                    .reverse = kind & 1,
                    .states = kind & 2,
                    .H = H,
                    .W = 1 + H * 2 / 3 };
        l.bias = has_apart(l.cell) && (kind & 4);
        l.cell_dy = has_c(l.cell) && (kind & 4);
        borrow_from(w);
        draw_lengths(&l, n, longest);
        fill(&l);
        fn(w, &l);
        let_go();
    }
}

/* Calls fn on each table with a context of `threads` threads. one_thread is the same with one thread. */
UNUSED static weft *one_thread;
UNUSED static void each_table_by_threads(int threads, void (*fn)(weft *))
{
    for (int i = 0; i < COUNT(tables); i++) {
        /* others have no more of them */
        if (!table_is_here(tables[i].name) || (threads > 2 && !tables[i].tier))
            continue;
        if (tables[i].tier)
            setenv("WEFT_ISA", tables[i].name, 1);
        weft *w = open_with((weft_opts){ .device = tables[i].device, .threads = threads });
        one_thread = open_with((weft_opts){ .device = tables[i].device, .threads = 1 });
        unsetenv("WEFT_ISA");
        fn(w);
        CLEAN(one_thread);
        CLEAN(w);
    }
}

/* A test on every table, with the reference of all of them. */
UNUSED static weft *plain_loops;
#define FOR_DEVICES_AND_LOOPS(w)                                                                       \
    for (plain_loops = open_on(WEFT_REF); plain_loops; CLEAN(plain_loops), plain_loops = NULL) \
        FOR_DEVICES(w)
#define LOOPS_TEST(...) WITH_CONTEXTS(FOR_DEVICES_AND_LOOPS, __VA_ARGS__, .disabled = false)

/* Calls fn with a layer of this shape, whose numbers are drawn here. */
UNUSED static void with_layer(weft *w, layer l, uint64_t seed, try_layer *fn)
{
    dice_seed(seed);
    borrow_from(w);
    fill(&l);
    fn(w, &l);
    let_go();
}
#endif
