/* test_recur.c - the kernels recur and recur_back of every table, below the layers that use them: against a computation in double
 * that goes through one sequence at a time, against finite differences of that computation, against each other to the last bit
 * (alone or in a batch, one thread or two). */
#include "check.h"
#include "core/core.h"


/* ---- a layer's inputs, in double; the weights, sums and states that a kernel gets are these, rounded ---- */
typedef struct {
    weft__cell cell; bool reverse, states, bias, project, cell_dy;
    int64_t H, W, n, steps, tokens, G, S;        /* G: columns of sums, S: of the slots */
    int32_t len[64], live[64], start[65];
    int64_t at_h0, at_c0, at_w, at_hr, at_b, inputs;             /* where they begin in x; the sums come first */
    double *x, *dy, *dyc;
} layer;

static void *held[256];
static int holding;
static weft *lender;                             /* of arrays in memory that a real GPU sees as well as the host does; NULL: calloc */
static void *hold(int64_t n, size_t size)
{
    size_t bytes = ((size_t)n + 1) * size;
    cr_assert(holding < COUNT(held));
    if (!lender)
        return held[holding++] = calloc(bytes, 1);
    held[holding] = lender->dev.k->allocate(&lender->dev, bytes);
    cr_assert(held[holding]);
    return memset(held[holding++], 0, bytes);
}
static void let_go(void)
{
    while (holding && lender)
        lender->dev.k->release(&lender->dev, held[--holding]);
    while (holding)
        free(held[--holding]);
    lender = NULL;
}
static void borrow_from(weft *w)                 /* with WEFT_MANAGED, until let_go */
{
    const char *managed = getenv("WEFT_MANAGED");
    lender = managed && *managed && !w->dev.k->synchronous ? w : NULL;
}
static int32_t *seen_by_kernels(const int32_t *from, int64_t n) { return memcpy(hold(n, sizeof *from), from, (size_t)n * sizeof *from); }
static double *reals_of(int64_t n, double scale)
{
    double *p = hold(n, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (double)dice_real(-scale, scale);
    return p;
}

/* Lengths as packed order has them: longest first, ties and zeros among them. */
static void draw_lengths(layer *l, int64_t n, int32_t longest)
{
    l->n = n;
    dice_lengths(l->len, n, longest);
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k && l->len[k] > l->len[k - 1]; k--) {
            int32_t swap = l->len[k];
            l->len[k] = l->len[k - 1], l->len[k - 1] = swap;
        }
}
static void lay_out(layer *l)
{
    l->steps = l->n ? l->len[0] : 0, l->start[0] = 0;
    for (int64_t t = 0; t < l->steps; t++) {
        for (l->live[t] = 0; l->live[t] < l->n && l->len[l->live[t]] > t;)
            l->live[t]++;
        l->start[t + 1] = l->start[t] + l->live[t];
    }
    l->tokens = l->start[l->steps];
}
static void fill(layer *l)
{
    lay_out(l);
    l->G = l->H * (l->cell == WEFT__LSTM ? 4 : l->cell == WEFT__GRU ? 3 : 1), l->S = l->cell < WEFT__GRU ? l->H : 4 * l->H;
    if (!l->project)
        l->W = l->H;
    l->at_h0 = l->tokens * l->G;
    l->at_c0 = l->at_h0 + (l->states ? l->n * l->W : 0);
    l->at_w  = l->at_c0 + (l->states && l->cell == WEFT__LSTM ? l->n * l->H : 0);
    l->at_hr = l->at_w + l->G * l->W;
    l->at_b  = l->at_hr + (l->project ? l->W * l->H : 0);
    l->inputs = l->at_b + (l->bias ? l->H : 0);
    l->x = reals_of(l->inputs, 1);
    for (int64_t i = l->at_w; i < l->inputs; i++)
        l->x[i] *= 2 / sqrt((double)l->W);
    l->dy = reals_of(l->tokens * l->W, 1), l->dyc = reals_of(l->tokens * l->H, 1);
    for (int64_t i = 0; i < l->inputs; i++)
        l->x[i] = (double)(real)l->x[i];
}

/* ---- the computation in double, one sequence after the other ---- */
typedef struct { double *slots, *h, *c, *raw; } outputs;
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double side(const layer *l, const double *x, int64_t row, const double *h)               /* row of W_hh times h */
{
    double sum = 0;
    for (int64_t k = 0; k < l->W; k++)
        sum += x[l->at_w + row * l->W + k] * h[k];
    return sum;
}
/* Unit j of one token: u its sums [G], slots [S] and raw [H] out, c [H] in and out. */
static void unit(const layer *l, const double *x, int64_t j, const double *u, const double *h, double *slots, double *c,
                 double *raw)
{
    int64_t H = l->H;
    double sum[4] = { 0 };
    for (int64_t g = 0; g < l->G / H; g++)
        sum[g] = side(l, x, g * H + j, h);
    if (l->cell == WEFT__LSTM) {
        double i = logistic(u[j] + sum[0]), f = logistic(u[H + j] + sum[1]);
        double g = tanh(u[2 * H + j] + sum[2]), o = logistic(u[3 * H + j] + sum[3]);
        slots[j] = i, slots[H + j] = f, slots[2 * H + j] = g, slots[3 * H + j] = o;
        c[j] = f * c[j] + i * g;
        raw[j] = o * tanh(c[j]);
    } else if (l->cell == WEFT__GRU) {
        double r = logistic(u[j] + sum[0]), z = logistic(u[H + j] + sum[1]);
        double hn = sum[2] + (l->bias ? x[l->at_b + j] : 0), n = tanh(u[2 * H + j] + r * hn);
        slots[j] = r, slots[H + j] = z, slots[2 * H + j] = n, slots[3 * H + j] = hn;
        raw[j] = (1 - z) * n + z * h[j];
    } else
        slots[j] = raw[j] = l->cell == WEFT__RNN_TANH ? tanh(u[j] + sum[0]) : fmax(0, u[j] + sum[0]);
}
static void sequence(const layer *l, const double *x, int64_t s, outputs *y)
{
    double h[80] = { 0 }, c[80] = { 0 };
    for (int64_t j = 0; j < l->W && l->states; j++)
        h[j] = x[l->at_h0 + s * l->W + j];
    for (int64_t j = 0; j < l->H && l->states && l->cell == WEFT__LSTM; j++)
        c[j] = x[l->at_c0 + s * l->H + j];
    for (int64_t p = 0; p < l->len[s]; p++) {
        int64_t row = l->start[l->reverse ? l->len[s] - 1 - p : p] + s;
        double *raw = y->raw + row * l->H;
        for (int64_t j = 0; j < l->H; j++)
            unit(l, x, j, x + row * l->G, h, y->slots + row * l->S, c, raw);
        for (int64_t j = 0; j < l->W; j++) {
            h[j] = l->project ? 0 : raw[j];
            for (int64_t k = 0; k < l->H && l->project; k++)
                h[j] += x[l->at_hr + j * l->H + k] * raw[k];
        }
        memcpy(y->h + row * l->W, h, (size_t)l->W * sizeof *h);
        memcpy(y->c + row * l->H, c, (size_t)l->H * sizeof *c);
    }
}
static outputs plain_outputs(const layer *l)
{
    return (outputs){ hold(l->tokens * l->S, sizeof(double)), hold(l->tokens * l->W, sizeof(double)),
                      hold(l->tokens * l->H, sizeof(double)), hold(l->tokens * l->H, sizeof(double)) };
}
/* sum(dy h) + sum(dyc c) */
static double plainly(const layer *l, const double *x, outputs *y)
{
    double loss = 0;
    for (int64_t s = 0; s < l->n; s++)
        sequence(l, x, s, y);
    for (int64_t i = 0; i < l->tokens * l->W; i++)
        loss += l->dy[i] * y->h[i];
    for (int64_t i = 0; i < l->tokens * l->H && l->cell_dy; i++)
        loss += l->dyc[i] * y->c[i];
    return loss;
}

/* ---- a table's kernels on the same ---- */
static real *rounded(const double *from, int64_t n)
{
    real *p = hold(n, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (real)from[i];
    return p;
}
static weft__recurrence record(const layer *l)
{
    weft__recurrence r = { .cell = l->cell, .reverse = l->reverse, .sequences = l->n, .tokens = l->tokens, .steps = l->steps,
                           .hidden = l->H, .width = l->W, .live = { l->live, seen_by_kernels(l->live, l->steps) },
                           .start = { l->start, seen_by_kernels(l->start, l->steps + 1) } };
    bool lstm = l->cell == WEFT__LSTM;
    r.w_hh = rounded(l->x + l->at_w, l->G * l->W);
    r.w_hr = l->project ? rounded(l->x + l->at_hr, l->W * l->H) : NULL;
    r.b_hn = l->bias ? rounded(l->x + l->at_b, l->H) : NULL;
    r.h0 = l->states ? rounded(l->x + l->at_h0, l->n * l->W) : NULL;
    r.c0 = l->states && lstm ? rounded(l->x + l->at_c0, l->n * l->H) : NULL;
    r.h = hold(l->tokens * l->W, sizeof(real)), r.c = lstm ? hold(l->tokens * l->H, sizeof(real)) : NULL;
    r.raw = l->project ? hold(l->tokens * l->H, sizeof(real)) : NULL;
    r.gates = hold(l->tokens * l->S, sizeof(real));
    for (int64_t t = 0; t < l->tokens; t++)
        for (int64_t j = 0; j < l->S; j++)
            r.gates[t * l->S + j] = j < l->G ? (real)l->x[t * l->G + j] : (real)NAN;
    return r;
}
static void add_backward(const layer *l, weft__recurrence *r)
{
    r->dy = rounded(l->dy, l->tokens * l->W), r->dyc = l->cell_dy ? rounded(l->dyc, l->tokens * l->H) : NULL;
    r->dh0 = hold(l->n * l->W, sizeof(real)), r->dc0 = l->cell == WEFT__LSTM ? hold(l->n * l->H, sizeof(real)) : NULL;
    r->carry_h = hold(l->n * l->W, sizeof(real)), r->carry_c = hold(l->n * l->H, sizeof(real));
    r->h_before = hold(l->tokens * l->W, sizeof(real)), r->dh = l->project ? hold(l->tokens * l->W, sizeof(real)) : NULL;
}
static weft__recurrence run(weft *w, const layer *l, bool back)
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
static void close_to_plain(const char *what, const real *got, const double *want, int64_t n)
{
    real *expected = rounded(want, n);
    close_to(what, got, expected, n, TOL(1e-12, 3e-6));
}

/* ---- every shape that is wanted: calls fn with layers of all cells, directions, states ---- */
static const char *text(const layer *l)
{
    static char buffer[200];
    int at = snprintf(buffer, sizeof buffer, "cell %d%s%s%s H %lld W %lld lengths", l->cell, l->reverse ? " reverse" : "",
                      l->states ? " states" : "", l->bias ? " bias" : "", (long long)l->H, (long long)l->W);
    for (int64_t s = 0; s < l->n && at < 180; s++)
        at += snprintf(buffer + at, sizeof buffer - (size_t)at, " %d", l->len[s]);
    return buffer;
}
typedef void try_layer(weft *, const layer *);
static void every_layer(weft *w, int64_t H, int64_t n, int32_t longest, try_layer *fn)
{
    for (int kind = 0; kind < 40; kind++) {      /* five cells (the last with a projection), and three choices */
        layer l = { .cell = kind / 8 < 4 ? (weft__cell)(kind / 8) : WEFT__LSTM, .project = kind / 8 == 4, .reverse = kind & 1,
                    .states = kind & 2, .H = H, .W = 1 + H * 2 / 3 };
        l.bias = l.cell == WEFT__GRU && (kind & 4), l.cell_dy = l.cell == WEFT__LSTM && (kind & 4);
        borrow_from(w);
        draw_lengths(&l, n, longest);
        fill(&l);
        fn(w, &l);
        let_go();
    }
}

static void forward_is_plain(weft *w, const layer *l)
{
    outputs want = plain_outputs(l);
    plainly(l, l->x, &want);
    weft__recurrence r = run(w, l, false);
    close_to_plain(text(l), r.gates, want.slots, l->tokens * l->S);
    close_to_plain(text(l), r.h, want.h, l->tokens * l->W);
    if (r.c)
        close_to_plain(text(l), r.c, want.c, l->tokens * l->H);
    if (r.raw)
        close_to_plain(text(l), r.raw, want.raw, l->tokens * l->H);
}
Test(recur, forward_is_what_one_sequence_at_a_time_gives)
{
    static const int64_t sizes[] = { 1, 3, 7, 8, 13, 16, 33, 64 };
    FOR_DEVICES(w)
        for (int i = 0; i < COUNT(sizes); i++) {
            dice_seed((uint64_t)i);
            every_layer(w, sizes[i], sizes[i] < 33 ? 9 : 16, 6, forward_is_plain);
        }
}

/* ---- backward against finite differences ---- */
/* The gradient of all inputs: what the kernel says itself, and what its caller makes of it. */
static double *gradient_of(const layer *l, const weft__recurrence *r)
{
    double *g = hold(l->inputs, sizeof *g);
    for (int64_t t = 0; t < l->tokens; t++)
        for (int64_t j = 0; j < l->G; j++) {
            g[t * l->G + j] = (double)r->gates[t * l->S + j];
            int64_t side_of = l->cell == WEFT__GRU && j >= 2 * l->H ? j + l->H : j;
            double d = (double)r->gates[t * l->S + side_of];
            for (int64_t k = 0; k < l->W; k++)
                g[l->at_w + j * l->W + k] += d * (double)r->h_before[t * l->W + k];
            if (l->bias && j >= 2 * l->H)
                g[l->at_b + j - 2 * l->H] += d;
        }
    for (int64_t i = 0; i < l->n * l->W && l->states; i++)
        g[l->at_h0 + i] = (double)r->dh0[i];
    for (int64_t i = 0; i < l->n * l->H && l->states && r->dc0; i++)
        g[l->at_c0 + i] = (double)r->dc0[i];
    for (int64_t t = 0; t < l->tokens && l->project; t++)
        for (int64_t j = 0; j < l->W; j++)
            for (int64_t k = 0; k < l->H; k++)
                g[l->at_hr + j * l->H + k] += (double)r->dh[t * l->W + j] * (double)r->raw[t * l->H + k];
    return g;
}
static void backward_is_the_slope(weft *w, const layer *l)
{
    weft__recurrence r = run(w, l, true);
    outputs y = plain_outputs(l);
    double *got = gradient_of(l, &r), step = 1e-5;
    for (int64_t i = 0; i < l->inputs; i++) {
        double x = l->x[i];
        l->x[i] = x + step;
        double up = plainly(l, l->x, &y);
        l->x[i] = x - step;
        double slope = (up - plainly(l, l->x, &y)) / (2 * step);
        l->x[i] = x;
        cr_assert(fabs(got[i] - slope) <= TOL(1e-8, 1e-5) * fmax(1, fabs(slope)),
                  "%s: input %lld of %lld: %.12g, the slope is %.12g",
                  text(l), (long long)i, (long long)l->inputs, got[i], slope);
    }
}
Test(recur, backward_is_the_slope_of_forward)
{
    FOR_DEVICES(w)
        for (int64_t H = 1; H <= 5; H += 2) {
            dice_seed((uint64_t)H);
            every_layer(w, H, 5, 4, backward_is_the_slope);
        }
}

/* ---- every table against the plain loops, backward, too ---- */
static weft *plain_loops;
static void like_plain_loops(weft *w, const layer *l)
{
    weft__recurrence a = run(w, l, true), b = run(plain_loops, l, true);
    double tol = TOL(1e-12, 1e-5);               /* gradients grow to about 10 */
    close_to(text(l), a.gates, b.gates, l->tokens * l->S, tol);
    close_to(text(l), a.h_before, b.h_before, l->tokens * l->W, TOL(1e-12, 3e-6));
    close_to(text(l), a.dh0, b.dh0, l->n * l->W, tol);
    if (a.dc0)
        close_to(text(l), a.dc0, b.dc0, l->n * l->H, tol);
    if (a.dh)
        close_to(text(l), a.dh, b.dh, l->tokens * l->W, tol);
}
Test(recur, tiers_go_back_as_the_plain_loops_do)
{
    static const int64_t sizes[] = { 1, 7, 8, 13, 16, 33, 64, 80, 129 };
    plain_loops = open_on(WEFT_REF);
    FOR_DEVICES(w)
        for (int i = 0; i < COUNT(sizes); i++) {
            dice_seed((uint64_t)i);
            every_layer(w, sizes[i], 1 + (int64_t)dice(20), 5, like_plain_loops);
        }
    CLEAN(plain_loops);
}

/* So many units that a GPU's cluster has sixteen blocks for them, and sequences for two clusters. */
Test(recur, wide_layers_go_as_the_plain_loops_do)
{
    plain_loops = open_on(WEFT_REF);
    FOR_DEVICES(w)
        for (int i = 0; i < 4; i++) {
            static const weft__cell cells[] = { WEFT__LSTM, WEFT__LSTM, WEFT__GRU, WEFT__RNN_TANH };
            layer l = { .cell = cells[i], .reverse = i == 1, .bias = true, .states = true, .cell_dy = true, .H = 290, .n = 9,
                        .len = { 3, 2, 2, 1, 1, 1, 1, 1, 1 } };
            dice_seed((uint64_t)i);
            borrow_from(w);
            fill(&l);
            like_plain_loops(w, &l);
            let_go();
        }
    CLEAN(plain_loops);
}

/* ---- the same bits ---- */
/* The s-th sequence of l as a batch of its own. */
static layer alone(const layer *l, int64_t s)
{
    layer a = *l;
    a.n = 1, a.len[0] = l->len[s];
    fill(&a);
    for (int64_t t = 0; t < a.tokens; t++) {
        int64_t row = l->start[t] + s;
        memcpy(a.x + t * l->G, l->x + row * l->G, (size_t)l->G * sizeof *a.x);
        memcpy(a.dy + t * l->W, l->dy + row * l->W, (size_t)l->W * sizeof *a.dy);
        memcpy(a.dyc + t * l->H, l->dyc + row * l->H, (size_t)l->H * sizeof *a.dyc);
    }
    if (l->states)
        memcpy(a.x + a.at_h0, l->x + l->at_h0 + s * l->W, (size_t)l->W * sizeof *a.x);
    if (l->states && l->cell == WEFT__LSTM)
        memcpy(a.x + a.at_c0, l->x + l->at_c0 + s * l->H, (size_t)l->H * sizeof *a.x);
    memcpy(a.x + a.at_w, l->x + l->at_w, (size_t)(l->inputs - l->at_w) * sizeof *a.x);
    return a;
}
static void same_rows(const layer *l, int64_t s, const real *one, const real *all, int64_t width)
{
    for (int64_t t = 0; one && t < l->len[s]; t++)
        same_in_company(text(l), one + t * width, all + (l->start[t] + s) * width, width);
}
static void same_alone(weft *w, const layer *l)
{
    weft__recurrence all = run(w, l, false), all_back = run(w, l, true);
    for (int64_t s = 0; s < l->n; s += 1 + l->n / 4) {
        layer a = alone(l, s);
        weft__recurrence one = run(w, &a, false), back = run(w, &a, true);
        same_rows(l, s, one.gates, all.gates, l->S);
        same_rows(l, s, one.h, all.h, l->W);
        same_rows(l, s, one.c, all.c, l->H);
        same_rows(l, s, back.gates, all_back.gates, l->S);
        same_rows(l, s, back.dh, all_back.dh, l->W);
        same_rows(l, s, back.h_before, all_back.h_before, l->W);
        same_in_company(text(l), back.dh0, all_back.dh0 + s * l->W, l->W);
        if (back.dc0)
            same_in_company(text(l), back.dc0, all_back.dc0 + s * l->H, l->H);
    }
}
Test(recur, a_sequence_has_the_same_bits_alone_and_in_any_batch)
{
    static const int64_t sizes[] = { 1, 33, 129, 5, 8, 19, 64 };
    FOR_DEVICES(w)
        for (int i = 0; i < (getenv("WEFT_SMALL") ? 3 : COUNT(sizes)); i++) {
            dice_seed((uint64_t)i);
            every_layer(w, sizes[i], 3 + (int64_t)dice(40), 5, same_alone);
        }
}

/* The sequences of l in fewer columns, one after the other, here and there with a gap: the same layer, token by token. */
typedef struct folded { layer l; int32_t reset[256]; int64_t columns; } folded;
static void place(folded *f, const layer *l, int32_t column_of[64], int32_t at[64])
{
    int32_t end[64] = { 0 };
    for (int64_t s = 0; s < l->n; s++) {
        int64_t c = (int64_t)dice((uint64_t)(1 + l->n / 2));
        at[s] = end[c] + (int32_t)(l->len[s] ? dice(2) : 0), column_of[s] = (int32_t)c;
        end[c] = l->len[s] ? at[s] + l->len[s] : end[c];
    }
    int32_t rank[64];
    for (int64_t c = 0; c < 64; c++) {           /* the longest column first */
        rank[c] = 0;
        for (int64_t other = 0; other < 64; other++)
            rank[c] += end[other] > end[c] || (end[other] == end[c] && other < c);
    }
    for (int64_t c = 0; c < 64; c++)
        f->l.len[rank[c]] = end[c];
    for (int64_t s = 0; s < l->n; s++)
        column_of[s] = rank[column_of[s]];
    for (f->columns = 0; f->columns < 64 && f->l.len[f->columns]; f->columns++) {}
}
static int64_t folded_row(const folded *f, const int32_t *column_of, const int32_t *at, int64_t s, int64_t t)
{
    return f->l.start[at[s] + t] + column_of[s];
}
static void carry_over(const double *from, int64_t row, double *to, int64_t to_row, int64_t width)
{
    memcpy(to + to_row * width, from + row * width, (size_t)width * sizeof *to);
}
static void same_folded(weft *w, const layer *l)
{
    folded f = { .l = *l };
    int32_t column_of[64], at[64];
    place(&f, l, column_of, at);
    f.l.n = f.columns, f.l.states = false;
    fill(&f.l);                                  /* the sums and weights of a layer of columns; then those of l */
    memcpy(f.l.x + f.l.at_w, l->x + l->at_w, (size_t)(l->inputs - l->at_w) * sizeof *l->x);
    memset(f.l.dy, 0, (size_t)(f.l.tokens * l->W) * sizeof *f.l.dy), memset(f.l.dyc, 0, (size_t)(f.l.tokens * l->H) * sizeof *f.l.dyc);
    cr_assert(f.l.tokens <= COUNT(f.reset));
    for (int64_t i = 0; i < f.l.tokens; i++)
        f.reset[i] = WEFT__ANEW;
    for (int64_t s = 0; s < l->n; s++)
        for (int32_t t = 0; t < l->len[s]; t++) {
            int64_t from = l->start[t] + s, to = folded_row(&f, column_of, at, s, t);
            f.reset[to] = t == (l->reverse ? l->len[s] - 1 : 0) ? (int32_t)s : WEFT__ON;
            carry_over(l->x, from, f.l.x, to, l->G), carry_over(l->dy, from, f.l.dy, to, l->W), carry_over(l->dyc, from, f.l.dyc, to, l->H);
        }
    weft__recurrence plain = run(w, l, true), r = record(&f.l);
    add_backward(&f.l, &r);
    r.reset = (weft__ints){ f.reset, seen_by_kernels(f.reset, f.l.tokens) };
    r.sequences = l->n, r.h0 = plain.h0, r.c0 = plain.c0;
    r.dh0 = hold(l->n * l->W, sizeof(real)), r.dc0 = plain.dc0 ? hold(l->n * l->H, sizeof(real)) : NULL;
    w->dev.k->recur(&w->dev, &r);
    w->dev.k->recur_back(&w->dev, &r);
    w->dev.k->wait(&w->dev);
    for (int64_t s = 0; s < l->n; s++)
        for (int32_t t = 0; t < l->len[s]; t++) {
            int64_t a = folded_row(&f, column_of, at, s, t), b = l->start[t] + s;
            same_in_company(text(l), r.gates + a * l->S, plain.gates + b * l->S, l->S);
            same_in_company(text(l), r.h + a * l->W, plain.h + b * l->W, l->W);
            same_in_company(text(l), r.h_before + a * l->W, plain.h_before + b * l->W, l->W);
            if (r.dh)
                same_in_company(text(l), r.dh + a * l->W, plain.dh + b * l->W, l->W);
        }
    for (int64_t i = 0; i < f.l.tokens; i++)     /* gaps: nothing comes of them */
        for (int64_t j = 0; j < l->S && f.reset[i] == WEFT__ANEW; j++)
            cr_assert(r.gates[i * l->S + j] == 0);
    same_in_company(text(l), r.dh0, plain.dh0, l->n * l->W);
    if (r.dc0)
        same_in_company(text(l), r.dc0, plain.dc0, l->n * l->H);
}
Test(recur, columns_of_several_sequences_change_no_bit)
{
    static const int64_t sizes[] = { 5, 33, 129 };
    FOR_DEVICES(w)
        for (int i = 0; i < COUNT(sizes); i++) {
            dice_seed((uint64_t)i);
            every_layer(w, sizes[i], 1 + (int64_t)dice(20), 5, same_folded);
        }
}

static weft *one_thread;
static void same_by_threads(weft *w, const layer *l)
{
    weft__recurrence a = run(w, l, true), b = run(one_thread, l, true);
    same_bits(text(l), a.gates, b.gates, l->tokens * l->S);
    same_bits(text(l), a.h, b.h, l->tokens * l->W);
    same_bits(text(l), a.dh0, b.dh0, l->n * l->W);
    if (a.dc0)
        same_bits(text(l), a.dc0, b.dc0, l->n * l->H);
}
Test(recur, threads_change_no_bit)
{
    for (int i = 0; i < COUNT(tables); i++) {
        weft *w = open_table(i);
        if (!w)
            continue;
        if (tables[i].tier)
            setenv("WEFT_TIER", tables[i].name, 1);
        one_thread = open_with((weft_opts){ .device = tables[i].device, .threads = 1 });
        unsetenv("WEFT_TIER");
        dice_seed(7);
        every_layer(w, 64, 50, 7, same_by_threads);
        CLEAN(one_thread);
        CLEAN(w);
    }
}

/* ---- nothing, no memory ---- */
Test(recur, sequences_without_tokens_take_no_part)
{
    FOR_DEVICES(w)
        for (int empty = 0; empty < 2; empty++) {
            layer l = { .cell = WEFT__LSTM, .states = true, .H = 5, .n = 3, .len = { empty ? 0 : 2, 0, 0 } };
            borrow_from(w);
            fill(&l);
            weft__recurrence r = record(&l);
            w->dev.k->recur(&w->dev, &r);
            w->dev.k->wait(&w->dev);
            add_backward(&l, &r);
            for (int64_t i = 0; i < 15; i++)
                r.dh0[i] = r.dc0[i] = 3;
            w->dev.k->recur_back(&w->dev, &r);
            w->dev.k->wait(&w->dev);
            for (int64_t i = empty ? 0 : 5; i < 15; i++)
                cr_assert(r.dh0[i] == 3 && r.dc0[i] == 3);
            for (int64_t i = 0; i < 5 && !empty; i++)
                cr_assert(r.dh0[i] != 3 && r.dc0[i] != 3);
            let_go();
        }
}
Test(recur, asks_for_memory_once_and_says_when_there_is_none)
{
    FOR_DEVICES(w) {
        layer l = { .cell = WEFT__GRU, .bias = true, .H = 200, .n = 2, .len = { 3, 1 } };
        borrow_from(w);
        fill(&l);
        fail_in(w, 1);
        run(w, &l, false);
        fail_in(w, 0);
        bool needs_none = !strcmp(weft_device_name(w), "ref") || !w->dev.k->synchronous;
        cr_assert(needs_none || strstr(w->dev.failure, "memory"), "%s", w->dev.failure);
        w->dev.failure[0] = 0;
        run(w, &l, true);
        int64_t before = allocations(w);
        run(w, &l, true);
        cr_assert(allocations(w) == before);
        let_go();
    }
}
