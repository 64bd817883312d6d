/* broadcast.c - broadcasting as in NumPy, except that a ragged tensor's rows are never broadcast by accident.
 * Two operators are each other's transpose: the sum to a smaller form and the repetition to a larger one. */
#include "autograd/op.h"

static void steps(const weft__form *y, const weft__form *x, int64_t *step)
{
    int64_t s = 1;
    for (int i = y->rank - 1, j = x->rank - 1; i >= 0; i--, j--) {
        bool along = j >= 0 && (x->size[j] != 1 || y->size[i] == 1);
        step[i] = along ? s : 0;
        s *= j >= 0 ? x->size[j] : 1;
    }
}

/* Returns whether axes `to` and i are contiguous in every operand, so that they merge into one. */
static bool is_run(const weft__grid *g, int n, int to, int i)
{
    for (int k = 0; k < n; k++)
        if (g->step[k][to] != g->step[k][i] * g->size[i])
            return false;
    return true;
}

static void merge(weft__grid *g, int n)
{
    int to = 0;
    for (int i = 1; i < g->rank; i++) {
        bool run = is_run(g, n, to, i);
        to += !run;
        g->size[to] = run ? g->size[to] * g->size[i] : g->size[i];
        for (int k = 0; k < n; k++)
            g->step[k][to] = g->step[k][i];
    }
    g->rank = g->rank ? to + 1 : 0;
}

static bool rows_agree(const weft__form *ragged, const weft__form *other)
{
    return other->batch ? ragged->rank == other->rank :
                          other->rank < ragged->rank || (other->rank == ragged->rank && other->size[0] == 1);
}

static bool broadcast_with(weft__form *y, const weft__form *x)
{
    if ((y->batch && !rows_agree(y, x)) || (x->batch && !rows_agree(x, y)))
        return false;
    weft__form wide = y->batch || (!x->batch && y->rank >= x->rank) ? *y : *x;
    for (int i = wide.rank - 1, iy = y->rank - 1, ix = x->rank - 1; i >= 0; i--, iy--, ix--) {
        int64_t ny = iy < 0 ? 1 : y->size[iy], nx = ix < 0 ? 1 : x->size[ix];
        if (ny != nx && ny != 1 && nx != 1)
            return false;
        wide.size[i] = ny == 1 ? nx : ny;
    }
    *y = wide;
    return true;
}

bool weft__broadcast(weft__grid *g, const weft__form *const *x, int n, weft__form *y)
{
    *y = *x[0];
    for (int k = 1; k < n; k++)
        if (!broadcast_with(y, x[k]))
            return false;
    *g = (weft__grid){ .rank = y->rank };
    for (int i = 0; i < y->rank; i++)
        g->size[i] = y->size[i];
    for (int k = 0; k < n; k++)
        steps(y, x[k], g->step[k]);
    merge(g, n);
    return true;
}

/* ---- sum to a smaller form, and its transpose; the attribute is the result's form ---- */
static weft__grid broadcast_grid(const weft__form *small, const weft__form *large)
{
    weft__grid g;
    weft__form y;
    weft__broadcast(&g, (const weft__form *[]){ small, large }, 2, &y);
    return g;
}

static bool to_form(weft_call *c)                /* a result with rows takes the input's layout */
{
    weft__form *y = &c->y[0]->f;
    *y = *(const weft__form *)c->attributes;
    const weft__form *x = &c->x[0]->f;
    if (y->batch && x->batch)
        weft__copy_layout(y, x);
    return true;
}

static void sum_run(weft_call *c)
{
    weft__grid g = broadcast_grid(&c->y[0]->f, &c->x[0]->f);
    RUN(c, sum, &g, X(c, 0), Y(c, 0), c->add);
}
static weft_tensor *sum_back(const weft_call *c, weft_tensor *dy, int i)
{
    return weft__spread_to(dy, &c->x[i]->f);
}
static const weft_op op_sum = LINEAR_RECORD("sum", WEFT_PLAIN, to_form, sum_run, sum_back, NULL);

weft_tensor *weft__sum_to(weft_tensor *x, const weft__form *f)
{
    return !x || weft__forms_equal(&x->f, f) ? x : APPLY_WITH(&op_sum, *f, x);
}

void weft__run_spread(weft_call *c, const weft__grid *g, int64_t first)
{
    if (is_real(c, 0))
        RUN(c, spread, g, X(c, 0) + first, Y(c, 0), c->add);
    else
        RUN(c, spread_ints, g, I(c, 0) + first, YI(c, 0));
}

static void spread_run(weft_call *c)
{
    weft__grid g = broadcast_grid(&c->x[0]->f, &c->y[0]->f);
    weft__run_spread(c, &g, 0);
}
static weft_tensor *spread_back(const weft_call *c, weft_tensor *dy, int i)
{
    return weft__sum_to(dy, &c->x[i]->f);
}
static const weft_op op_spread = LINEAR_RECORD("broadcast", WEFT_PLAIN, to_form, spread_run, spread_back,
                                               NULL);

weft_tensor *weft__spread_to(weft_tensor *x, const weft__form *f)
{
    return !x || weft__forms_equal(&x->f, f) ? x : APPLY_WITH(&op_spread, *f, x);
}

int64_t weft__extents(const weft__form *f, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= f->size[i];
    return n;
}

int64_t weft__numbers(const weft__form *f)
{
    return f->batch ? f->batch->tokens * weft__extents(f, 1, f->rank) : weft__extents(f, 0, f->rank);
}
