/* test_kernels_places.c - tests element-wise kernels at every alignment and length, with one operand aligned
 * differently from the others. Each element has the same bits at any position, and nothing past the end is
 * written. A GPU processes four elements together where alignment allows. */
#include "kernel_run.h"

enum { VECTORS = 5, OUT = VECTORS - 1, N = 1030, BEHIND = 8 };
typedef void call_of(run *t, int which, int64_t n, real **v);
/* from: first element compared. off: distance of each vector from an aligned address. */
static const struct { int from, off[VECTORS]; int64_t n;
} places[] = {
    { 0, { 0, 0, 0, 0, 0 }, N },     { 1, { 0, 0, 0, 0, 0 }, N }, { 2, { 0, 0, 0, 0, 0 }, N - 1 },
    { 3, { 0, 0, 0, 0, 0 }, N - 3 }, { 0, { 1, 1, 1, 1, 1 }, N }, { 3, { 1, 1, 1, 1, 1 }, N },
    { 0, { 2, 0, 3, 1, 0 }, N - 2 }, { 0, { 0, 0, 0, 0, 1 }, N }, { 1, { 3, 3, 3, 3, 0 }, N },
    { 2, { 2, 2, 2, 2, 2 }, 7 },     { 5, { 0, 0, 0, 0, 0 }, 6 },
};
static void same_everywhere(run *t, const char *name, int which, call_of *call, real *const *x)
{
    real *want[VECTORS], *work[VECTORS], *v[VECTORS];
    for (int j = 0; j < VECTORS; j++)
        want[j] = room(t, N, sizeof(real)), work[j] = room(t, N + BEHIND, sizeof(real));
    for (int i = 0; i < COUNT(places); i++) {
        const int from = places[i].from;
        for (int j = 0; j < VECTORS; j++) {
            memcpy(work[j] + places[i].off[j], x[j], N * sizeof(real));
            v[j] = work[j] + places[i].off[j] + from;
        }
        call(t, which, places[i].n - from, v);
        for (int j = 0; j < VECTORS; j++) {
            if (i == 0)
                memcpy(want[j], work[j], N * sizeof(real));
            for (int64_t k = 0; k < N; k++) {
                const real *y = &v[j][k - from],
                           *as = k < from || k >= places[i].n ? &x[j][k] : &want[j][k];
                cr_assert(!memcmp(y, as, sizeof *y), "%s: %s %d, place %d, vector %d: [%d] is %.9g, not %.9g",
                          t->k->name, name, which, i, j, (int)k, (double)*y, (double)*as);
            }
        }
    }
}
static weft__guard *guard(run *t)
{
    weft__guard *g = room(t, 1, sizeof *g);
    *g = (weft__guard){ .applied = 2, .finite = 1, .norm = 3 };
    return g;
}
static void flat(run *t, int which, int64_t n, real **v)
{
    switch (which) {
    case 0:  t->k->fill(&t->d, n, 3, v[OUT]); break;
    case 1:  t->k->scale(&t->d, n, (real).3, v[0], v[OUT], false); break;
    case 2:  t->k->scale(&t->d, n, (real).3, v[0], v[OUT], true); break;
    default: t->k->clip(&t->d, n, 1, 1, guard(t), v[OUT], NULL);
    }
}
static void unary(run *t, int which, int64_t n, real **v)
{
    t->k->unary(&t->d, which % WEFT__UNARIES, which / WEFT__UNARIES % 3, n, (real).3, (real).5, v[0], v[1],
                v[2], v[OUT], which / WEFT__UNARIES / 3);
}
/* dense, or one element broadcast */
static void nest(run *t, int which, int64_t n, real **v)
{
    const int64_t one = which / (WEFT__BINARIES + 1) % 2;
    const weft__grid g = { 1, { n }, { { 1 }, { one ? 0 : 1 }, { 1 } } };
    const bool add = which / (WEFT__BINARIES + 1) / 2;
    real *const b = v[one ? 3 : 1];
    if (which % (WEFT__BINARIES + 1) == WEFT__BINARIES)
        t->k->select(&t->d, &g, v[0], b, v[2], v[OUT], add);
    else
        t->k->binary(&t->d, which % (WEFT__BINARIES + 1), &g, v[0], b, v[OUT], add);
}
static void update(run *t, int which, int64_t n, real **v)
{
    const int rules = WEFT__MUON + 1;
    const weft__update u = { .rule = (weft__rule)(which % rules),
                             .lr = (real).01,
                             .decay = (real).1,
                             .eps = (real)1e-8,
                             .beta1 = (real).9,
                             .beta2 = (real)(which % rules == WEFT__SGD ? .1 : .95),
                             .nesterov = which / rules,
                             .centered = which / rules };
    t->k->update(&t->d, n, &u, guard(t), guard(t), v[3], v[1], v[0], v[2], v[OUT]);
}

static const struct { const char *name; call_of *call; int ways; double low, high; } kinds[] = {
    { "flat", flat, 4, -2, 2 },
    { "unary", unary, WEFT__UNARIES * 6, .1, .9 },
    { "nest", nest, (WEFT__BINARIES + 1) * 4, .5, 2 },
    { "update", update, 2 * (WEFT__MUON + 1), 2, 3 },
};
static void at_all_places(int kind)
{
    ON_EVERY_TABLE(t)
        for (int which = 0; which < kinds[kind].ways; which++) {
            real *x[VECTORS];
            for (int j = 0; j < VECTORS; j++)
                x[j] = j == 0 ? reals(t, N, kinds[kind].low, kinds[kind].high) : reals(t, N, -1, 1);
            for (int64_t i = 0; kinds[kind].call == nest && i < N; i++)
                x[3][i] = (real).7;              /* the same at every start */
            same_everywhere(t, kinds[kind].name, which, kinds[kind].call, x);
            forget(t);
        }
}
Test(kernels_places, flat_kernels_give_the_same_bits_at_every_alignment) { at_all_places(0); }
Test(kernels_places, unary_kernels_give_the_same_bits_at_every_alignment) { at_all_places(1); }
Test(kernels_places, nests_give_the_same_bits_at_every_alignment) { at_all_places(2); }
Test(kernels_places, updates_give_the_same_bits_at_every_alignment) { at_all_places(3); }

/* A nest of one row runs as a vector, one of several rows does not. */
RUN_TEST(kernels_places, a_row_alone_matches_the_row_of_many)
{
    enum { ROWS = 3, W = 37, ALL = ROWS * W };
    for (int which = 0; which < 2 * (WEFT__BINARIES + 1); which++) {
        const bool add = which % 2;
        real *a = reals(t, ALL, .5, 2), *b = reals(t, W, .5, 2), *c = reals(t, ALL, -1, 1);
        real *y = reals(t, ALL, -1, 1), *alone = room(t, ALL, sizeof *alone);
        memcpy(alone, y, ALL * sizeof *y);
        for (int r = -1; r < ROWS; r++) {    /* -1: all rows in one call; otherwise one row */
            const weft__grid many = { 2, { ROWS, W }, { { W, 1 }, { 0, 1 }, { W, 1 } } },
                             one = { 1, { W }, { { 1 }, { 1 }, { 1 } } }, *g = r < 0 ? &many : &one;
            const int64_t at = r < 0 ? 0 : r * W;
            real *to = r < 0 ? y : alone + at;
            if (which / 2 == WEFT__BINARIES)
                t->k->select(&t->d, g, a + at, b, c + at, to, add);
            else
                t->k->binary(&t->d, which / 2, g, a + at, b, to, add);
        }
        same_bits("a row alone", alone, y, ALL);
        forget(t);
    }
}
