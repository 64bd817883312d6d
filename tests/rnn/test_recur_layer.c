/* test_recur_layer.c - tests recur_layer and recur_layer_back of every table against the plain loops,
 * including projection and sums over tokens. Small and large layers use different kernels. Covers requested
 * and omitted outputs, added outputs, and the same bits for any number of threads and for two directions
 * together. */
#include "recur_layer.h"

typedef struct { weft__recur_layer l; real *dx, *dw_ih, *dw_hh, *dw_hr, *db_ih, *db_hh; } whole;
enum { WANTED = 1, ADDED = 2 };                  /* for all gradients, or for none */
/* rows of the table that x is; 0: x has a row for each token */
static int64_t inputs, table;
static double slack;                             /* many steps make more of a difference */
static int how;
static uint64_t seed;                            /* of the layer at hand */

/* the same for every table: dice restart for each layer */
static real *random_reals(int64_t n, double scale)
{
    real *p = hold(n, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = dice_real(-scale, scale);
    return p;
}
static real *gradient(weft__into *into, int64_t n)
{
    real *p = random_reals(n, 1);
    if (how & WANTED)
        *into = (weft__into){ p, how & ADDED };
    return p;
}
static int64_t rows_of_x(const layer *l) { return table ? table : l->tokens; }
static void look_up(const layer *l, weft__recur_layer *y)
{
    int32_t *ids = hold(l->tokens, sizeof *ids);
    for (int64_t i = 0; i < l->tokens; i++)
        ids[i] = (int32_t)dice((uint32_t)table);
    y->ids = ids;
    y->rows = table;
    y->of_rows = hold(table * l->S, sizeof(real));
    for (int64_t i = 0; i < table * l->S; i++)
        y->of_rows[i] = (real)NAN;               /* rubbish */
}
static whole layer_of(const layer *l)
{
    dice_seed(seed);
    whole y = { .l = { .r = record(l), .inputs = inputs } };
    double scale = 1 / sqrt((double)(inputs + l->W));
    y.l.x = random_reals(rows_of_x(l) * inputs, 1);
    y.l.w_ih = random_reals(l->G * inputs, scale);
    y.l.total = hold(l->S, sizeof(real));
    if (l->bias || l->states != l->reverse) {
        y.l.b_ih = random_reals(l->G, 1);
        y.l.b_hh = random_reals(l->G, 1);
    }
    for (int64_t i = 0; i < l->tokens * l->S; i++)
        y.l.r.gates[i] = (real)NAN;              /* rubbish */
    add_backward(l, &y.l.r);
    if (table)
        look_up(l, &y.l);
    y.dx = gradient(&y.l.dx, rows_of_x(l) * inputs);
    y.dw_ih = gradient(&y.l.dw_ih, l->G * inputs);
    y.dw_hh = gradient(&y.l.dw_hh, l->G * l->W);
    y.dw_hr = l->project ? gradient(&y.l.dw_hr, l->W * l->H) : NULL;
    y.db_ih = gradient(&y.l.db_ih, l->G);
    y.db_hh = gradient(&y.l.db_hh, l->G);
    return y;
}
static void both_ways(weft *w, const weft__recur_layer *l)
{
    w->dev.k->recur_layer(&w->dev, l);
    w->dev.k->recur_layer_back(&w->dev, l);
    w->dev.k->wait(&w->dev);
}
static whole run_whole(weft *w, const layer *l)
{
    whole y = layer_of(l);
    both_ways(w, &y.l);
    return y;
}
/* The same without a table: a row of x for each token, and of its gradient, which the table's is the sum
 * of. */
static whole run_rows(weft *w, const layer *l)
{
    whole y = layer_of(l);
    const int32_t *ids = y.l.ids;
    real *x = hold(l->tokens * inputs, sizeof *x), *dx = hold(l->tokens * inputs, sizeof *dx);
    for (int64_t i = 0; i < l->tokens * inputs; i++)
        x[i] = y.l.x[ids[i / inputs] * inputs + i % inputs];
    y.l.x = x;
    y.l.ids = NULL;
    if (y.l.dx.to && !y.l.dx.add)
        memset(y.dx, 0, (size_t)(table * inputs) * sizeof *dx);
    y.l.dx = (weft__into){ y.l.dx.to ? dx : NULL, false };
    both_ways(w, &y.l);
    for (int64_t i = 0; i < l->tokens * inputs; i++)
        y.dx[ids[i / inputs] * inputs + i % inputs] += dx[i];
    return y;
}

/* ---- two of a layer, number by number ---- */
static void each_result(const layer *l, const whole *a, const whole *b, compare *fn)
{
    const struct { const char *what; const real *got, *want; int64_t n;
    } results[] = {
        { "h", a->l.r.h, b->l.r.h, l->tokens * l->W },  { "dx", a->dx, b->dx, rows_of_x(l) * inputs },
        { "dw_ih", a->dw_ih, b->dw_ih, l->G * inputs }, { "dw_hh", a->dw_hh, b->dw_hh, l->G * l->W },
        { "dw_hr", a->dw_hr, b->dw_hr, l->W * l->H },   { "db_ih", a->db_ih, b->db_ih, l->G },
        { "db_hh", a->db_hh, b->db_hh, l->G },          { "dh0", a->l.r.dh0, b->l.r.dh0, l->n * l->W },
        { "dc0", a->l.r.dc0, b->l.r.dc0, l->n * l->H },
    };
    for (int i = 0; i < COUNT(results); i++)
        if (results[i].got)                      /* some have no projection, or no c */
            fn(results[i].what, results[i].got, results[i].want, results[i].n);
}
static void near_by_size(const char *what, const real *got, const real *want, int64_t n)
{
    double most = 1;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)want[i]));
    close_to(what, got, want, n, TOL(1e-12, 1e-5) * slack * most);
}
static void against(weft *w, weft *other, const layer *l, compare *fn)
{
    seed++;
    whole a = run_whole(w, l), b = run_whole(other, l);
    each_result(l, &a, &b, fn);
}
static void like_plain_rows(weft *w, const layer *l)
{
    seed++;
    whole a = run_whole(w, l), b = run_rows(plain_loops, l), c = run_rows(w, l);
    each_result(l, &a, &b, near_by_size);
    same_in_company("h", a.l.r.h, c.l.r.h, l->tokens * l->W);
}
static void like_plain_loops(weft *w, const layer *l) { against(w, plain_loops, l, near_by_size); }
static void same_by_threads(weft *w, const layer *l)  { against(w, one_thread, l, alike); }

/* Both directions run together, with different weights. Each matches a separate run. */
static void like_each_alone(weft *w, const layer *l)
{
    layer other = *l;
    other.reverse = !l->reverse;
    other.x = hold(l->inputs, sizeof *other.x);
    for (int64_t i = 0; i < l->inputs; i++)
        other.x[i] = -l->x[i];
    seed += 2;
    whole a = run_whole(w, l), c = layer_of(l);
    seed++;
    whole b = run_whole(w, &other), d = layer_of(&other);
    c.l.beside = &d.l;
    both_ways(w, &c.l);
    each_result(l, &c, &a, alike), each_result(&other, &d, &b, alike);
}

static void every_size(weft *w, try_layer *fn)
{
    static const struct { int64_t H, inputs, n; int32_t longest;
    } sizes[] = {
        { 1, 1, 3, 6 },    { 5, 3, 9, 6 },   { 8, 16, 20, 6 }, { 13, 7, 30, 6 },  { 6, 4, 3, 50 },
        { 32, 16, 40, 6 }, { 33, 1, 17, 6 }, { 64, 64, 9, 6 }, { 100, 40, 7, 6 }, { 129, 2, 5, 6 }
    };
    for (int i = 0; i < (getenv("WEFT_SMALL") ? 4 : COUNT(sizes)); i++) {
        dice_seed((uint64_t)i);
        inputs = sizes[i].inputs;
        slack = sizes[i].longest > 6 ? 20 : 1;
        every_layer(w, sizes[i].H, sizes[i].n, sizes[i].longest, fn);
    }
}
LOOPS_TEST(recur_layer, matches_the_plain_loops)
{
    for (how = 0; how < 4; how++)
        if (how != ADDED)
            every_size(w, like_plain_loops);
}

/* Ids of a table's rows instead of rows. */
LOOPS_TEST(recur_layer, ids_of_a_table_match_its_rows)
{
    /* with nothing needed, and 1 with all; where that is dear, 7 with all */
    table = 7;
    for (how = getenv("WEFT_SMALL") ? WANTED | ADDED : 0; how < 4; how += WANTED | ADDED, table = 1)
        every_size(w, like_plain_rows);
}

/* ---- the same bits ---- */
/* More weights than fit in registers and shared memory. */
static void of_many_units(weft *w)
{
    inputs = 2;
    slack = 1;
    with_layer(w, (layer){ .cell = WEFT__lstm, .H = 300, .n = 3, .len = { 3, 3, 1 } }, 300, like_each_alone);
}
Test(recur_layer, both_directions_match_separate_runs)
{
    how = WANTED;
    inputs = 3;
    setenv("WEFT_EMU_PROCESSORS", "32", 1);      /* room for two groups of sixteen blocks */
    FOR_DEVICES(w) {
        every_layer(w, 5, 9, 6, like_each_alone);
        of_many_units(w);
    }
}
static void all_by_threads(weft *w) { every_size(w, same_by_threads); }
Test(recur_layer, threads_change_no_bit)
{
    how = WANTED;
    for (table = 0; table < (getenv("WEFT_SMALL") ? 1 : 8); table += 5)
        each_table_by_threads(2, all_by_threads);
}
