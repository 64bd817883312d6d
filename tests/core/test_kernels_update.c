/* test_kernels_update.c - tests the kernels of optimisers of every table against the plain loops.
 * test_kernels.c tests the others. */
#include "kernel_run.h"

static void as_result(run *t, const weft__guard *g)               /* the guard in device memory, as numbers */
{
    real *x = result_of(t, 6, 1e-12, 1e-5);
    x[0] = (real)g->norm, x[1] = (real)g->applied, x[2] = (real)g->skipped, x[3] = (real)g->in_a_row,
    x[4] = (real)g->bad, x[5] = (real)g->finite;
    *result_of(t, 1, 0, 0) = g->finite ? (real)g->most.g : 0;
}
static void play_norms(run *t)
{
    int64_t n = flat_size(t), half = n / 3;
    static const double powers[] = { 1, 2, INFINITY };
    real power = (real)powers[dice(3)], *x = result(t, reals(t, n, -2, 2), n, 1e-12, 1e-5);
    weft__guard *g = room(t, 1, sizeof *g);
    *g = (weft__guard){ .bad = -1, .applied = 3, .skipped = 2, .in_a_row = 1 };
    if (n && dice(3) == 0)
        x[size(n)] = coin() ? (real)NAN : (real)INFINITY;
    for (int piece = 0; piece < 2; piece++) {
        CALL(norm, piece ? n - half : half, power, x + (piece ? half : 0), !piece, g);
        CALL(guard, piece ? n - half : half, x + (piece ? half : 0), piece ? 100 + half : 100, !piece, g);
    }
    weft__guard *past = room(t, 1, sizeof *past);
    *past = (weft__guard){ .applied = 1, .skipped = 5, .in_a_row = 2, .finite = coin() };
    CALL(guard_end, past, g, false);
    CALL(guard_end, coin() ? past : NULL, g, true);
    settle(t);
    if (g->finite)
        CALL(clip, n, power, (real)(n ? 3 : 1), g, x, coin() ? NULL : result_of(t, 1, 1e-12, 1e-5));
    settle(t);
    g->norm = isfinite(g->norm) ? g->norm : -1;
    for (int i = 0; !g->finite && i < t->outputs; i++)
        for (int64_t l = 0; l < t->out[i].n; l++)
            t->out[i].x[l] = isfinite(t->out[i].x[l]) ? t->out[i].x[l] : 77;
    as_result(t, g), as_result(t, past);
}
Test(kernels_update, norms) { everywhere("norms", play_norms, rounds(120, 2000)); }

static weft__update some_update(double lr)
{
    return (weft__update){ .rule = (weft__rule)dice(WEFT__MUON + 1),
                           .lr = (real)lr,
                           .decay = coin() ? (real).1 : 0,
                           .eps = (real)1e-8,
                           .nesterov = coin(),
                           .centered = coin(),
                           .decoupled = coin() };
}
static void play_update(run *t)
{
    int64_t n = flat_size(t);
    weft__update u = some_update(.01);
    bool adam = u.rule >= WEFT__ADAM;
    u.beta1 = adam || coin() ? (real).9 : 0, u.beta2 = u.rule == WEFT__SGD ? (real).1 : (real).95;
    weft__guard *g = room(t, 1, sizeof *g), *past = room(t, 1, sizeof *past);
    *g = (weft__guard){ .applied = size(3), .finite = dice(5) != 0 };
    *past = (weft__guard){ .applied = size(3), .finite = coin() };
    real *m = result(t, reals(t, n, -1, 1), n, 1e-13, 1e-5),
         *v = result(t, reals(t, n, 2, 3), n, 1e-13, 1e-5),
         *a = result(t, reals(t, n, -1, 1), n, 1e-13, 1e-5);
    CALL(update, n, &u, past, g, result(t, reals(t, n, -1, 1), n, 0, 0), m, v, a,
         result_of(t, n, 1e-13, 1e-5));
}
Test(kernels_update, update) { everywhere("update", play_update, rounds(160, 3000)); }

/* Predicts whether the update is finite, from sizes or element by element. Only the guard is written. */
static void as_foreseen(run *t, const weft__guard *g)
{
    real *x = result_of(t, 9, 1e-12, 1e-5);
    const weft__most *m = &g->most;
    x[0] = (real)g->sure, x[1] = (real)g->known, x[2] = (real)g->over, x[3] = (real)g->finite,
    x[4] = (real)g->bad;
    x[5] = g->finite ? (real)m->x : 0, x[6] = g->finite ? (real)m->m : 0, x[7] = g->finite ? (real)m->v : 0,
    x[8] = g->finite ? (real)m->a : 0;
}
static void play_rehearse(run *t)
{
    int64_t n = 1 + flat_size(t), half = n / 3;
    const double huge = sizeof(real) == 8 ? 1e308 : 1e38, lr = ((double[]){ .01, huge, .01 })[dice(3)];
    weft__update u = some_update(lr);
    u.beta1 = coin() ? (real).9 : 0, u.beta2 = (real).99;
    bool adam = u.rule >= WEFT__ADAM, moves = dice(4) != 0;
    real *dx = reals(t, n, -1, 1), *x = reals(t, n, -4, 4),
         *m = adam || u.beta1 != 0 ? reals(t, n, -2, 2) : NULL,
         *v = u.rule == WEFT__SGD || u.rule == WEFT__LION ? NULL : reals(t, n, 4, 5),
         *a = u.rule == WEFT__RMSPROP && u.centered ? reals(t, n, -1, 1) : NULL;
    weft__guard *g = room(t, 1, sizeof *g), *past = room(t, 1, sizeof *past);
    *past = (weft__guard){ .applied = size(3), .finite = 1 };
    *g = (weft__guard){ .bad = -1, .finite = dice(6) != 0, .known = coin(), .most = { 1, 4, 2, 5, 1 } };
    if (dice(3) == 0)
        x[size(n)] = (real)huge;
    const weft__foresight first = { u, dice(3) == 0 };
    for (int piece = 0; piece < 2; piece++) {
        int64_t from = piece ? half : 0, length = piece ? n - half : half;
        CALL(rehearse, length, piece ? NULL : &first, &u, past, moves, dx + from, m ? m + from : NULL,
             v ? v + from : NULL, a ? a + from : NULL, x + from, 100 + from, g);
    }
    settle(t);
    as_foreseen(t, g);
}
Test(kernels_update, rehearse) { everywhere("rehearse", play_rehearse, rounds(160, 3000)); }
