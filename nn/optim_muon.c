/* optim_muon.c - the directions of Muon (Jordan et al. 2024): the momentum of a matrix, made nearly
 * orthogonal by Newton-Schulz steps, which are products of existing kernels.
 *
 * A step of X, whose norm is at most 1, is a X + (b A + c A A) X with A = X X^T. It moves each singular value
 * towards 1. A tall X is multiplied from the right instead, so A has the smaller extent. A direction is
 * computed in o->v, which is 0 between steps. Then Muon's update is elementwise, and the check for non-finite
 * numbers is that of all rules. */
#include <math.h>
#include "nn/optim.h"

/* A matrix in row-major order; k: its smaller extent. */
typedef struct matrix { int64_t rows, columns, k; } matrix;

static matrix matrix_of(const weft__slot *s)
{
    const int64_t *size = s->p->value.f.size;
    return (matrix){ size[0], size[1], size[0] < size[1] ? size[0] : size[1] };
}

/* The work space has a norm, two squares and a matrix. */
int64_t weft__muon_work_size(const weft_optim *o)
{
    int64_t most = 0;
    for (int i = 0; i < o->n; i++)
        if (o->slot[i].muon) {
            matrix x = matrix_of(o->slot + i);
            int64_t n = 2 * x.k * x.k + x.rows * x.columns;
            most = n > most ? n : most;
        }
    return most + 1;
}

static void multiply(weft__device *d, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const real *a,
                     const real *b, real *c)
{
    weft__product p = { .ta = ta,
                        .tb = tb,
                        .m = m,
                        .n = n,
                        .k = k,
                        .lda = ta ? m : k,
                        .ldb = tb ? k : n,
                        .ldc = n,
                        .batches = 1,
                        .precision = d->precision };
    d->k->gemm(d, &p, a, b, c);
}

static void newton_schulz_step(weft__device *d, const matrix *size, real *x, real *work)
{
    const double a = 3.4445, b = -4.775, c = 2.0315;
    int64_t k = size->k, square = k * k, n = size->rows * size->columns;
    bool tall = size->rows > size->columns;
    real *gram = work, *factor = gram + square, *product = factor + square;
    multiply(d, tall, !tall, k, k, tall ? size->rows : size->columns, x, x, gram);
    multiply(d, false, false, k, k, k, gram, gram, factor);
    d->k->scale(d, square, (real)(b / c), gram, factor, true);
    multiply(d, false, false, size->rows, size->columns, k, tall ? x : factor, tall ? factor : x, product);
    d->k->scale(d, n, (real)a, x, x, false);
    d->k->scale(d, n, (real)c, product, x, true);
}

/* x /= max(norm, eps). An infinite norm gives 0. */
static void normalise(const weft_optim *o, int64_t n, real *x)
{
    weft__device *d = &o->w->dev;
    real *norm = o->muon_work;
    d->k->norm(d, n, 2, x, true, o->guard);
    d->k->clip(d, n, 2, (real)INFINITY, o->guard, x, norm);       /* stores the norm only */
    d->k->unary(d, WEFT__clamp, 0, 1, o->update.eps, (real)INFINITY, norm, NULL, NULL, norm, false);
    d->k->divide(d, n, norm, x);
}

static double adjustment(const weft_optim *o, const matrix *x)
{
    double rows = (double)x->rows, columns = (double)x->columns;
    return o->match_rms_adamw ? .2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns));
}

static void direction(const weft_optim *o, const weft__slot *s)
{
    weft__device *d = &o->w->dev;
    matrix size = matrix_of(s);
    int64_t n = size.rows * size.columns;
    real *x = o->v + s->offset, mu = o->update.beta1, share = o->update.nesterov ? mu : 1;
    if (n == 0)
        return;
    /* Nesterov: (1 - mu) g + mu m', with the next momentum m' = mu m + (1 - mu) g. Otherwise m'. */
    d->k->scale(d, n, (1 - mu) * (o->update.nesterov ? 1 + mu : 1), o->module->root->gradients + s->p->offset,
                x, false);
    d->k->scale(d, n, mu * share, o->m + s->offset, x, true);
    normalise(o, n, x);
    for (int i = 0; i < o->muon_steps; i++)
        newton_schulz_step(d, &size, x, o->muon_work + 1);
    d->k->scale(d, n, (real)adjustment(o, &size), x, x, false);
}

void weft__muon_directions(weft_optim *o)
{
    for (int i = 0; i < o->n; i++)
        if (o->slot[i].muon && !o->slot[i].idle)
            direction(o, o->slot + i);
}

void weft__muon_clear(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    for (int i = 0; i < o->n; i++)
        if (o->slot[i].muon && !o->slot[i].idle)
            d->k->fill(d, o->slot[i].n, 0, o->v + o->slot[i].offset);
}
