/* fast_optimisers.h - norms, clipping and updates of flat vectors, in fixed chunks over the threads; their partial results are
 * put together in order. */
#include "core/fast_ranges.h"
#include "core/loops_optimisers.h"

enum { PIECES = 1024 };
typedef struct flat_job { int64_t piece; real power, factor; const real *x; real *y; double *part; int64_t *bad; } flat_job;
static int64_t piece_of(int64_t n) { return up(n / PIECES + 1, CHUNK); }

static double norm_of(int64_t n, real power, const real *x)
{
    double s[16] = { 0 }, all = 0;
    for (int64_t i = 0; i < n; i += 16)
        for (int l = 0; l < 16 && i + l < n; l++) {
            double v = fabs((double)x[i + l]);
            s[l] = power == 2 ? s[l] + v * v : power == 1 ? s[l] + v : v > s[l] || v != v ? v : s[l];
        }
    for (int l = 0; l < 16; l++)
        all = power == 1 || power == 2 ? all + s[l] : s[l] > all || isnan(s[l]) ? s[l] : all;
    return all;
}
static double square_sum(int64_t n, const real *x)                /* the common case, by vectors */
{
    double s[16] = { 0 }, all = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++)
            s[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < n; i++)
        all += (double)x[i] * (double)x[i];
    for (int l = 0; l < 16; l++)
        all += s[l];
    return all;
}
static void norm_range(const void *job, int64_t from, int64_t to)
{
    const flat_job *j = job;
    j->part[from / j->piece] = j->power == 2 ? square_sum(to - from, j->x + from) : norm_of(to - from, j->power, j->x + from);
}
static void K(norm)(weft__device *d, int64_t n, real power, const real *x, bool start, weft__guard *g)
{
    double part[PIECES];
    int64_t piece = piece_of(n);
    each_range(d, n, piece, norm_range, &(flat_job){ .piece = piece, .power = power, .x = x, .part = part });
    g->norm = start ? 0 : g->norm;
    for (int64_t i = 0; i < parts(n, piece); i++)
        g->norm = power == 1 || power == 2 ? g->norm + part[i] : part[i] > g->norm || isnan(part[i]) ? part[i] : g->norm;
}
static void clip_range(const void *job, int64_t from, int64_t to)
{
    const flat_job *j = job;
    for (int64_t i = from; i < to; i++)
        j->y[i] *= j->factor;
}
static void K(clip)(weft__device *d, int64_t n, real limit, const weft__guard *g, real *x)
{
    double factor = (double)limit / (g->norm + 1e-6);
    if (factor < 1)
        each_range(d, n, CHUNK, clip_range, &(flat_job){ .factor = (real)factor, .y = x });
}

static void guard_range(const void *job, int64_t from, int64_t to)            /* the first that is not finite; -1: none */
{
    const flat_job *j = job;
    veci bad = { 0 };
    EACH_VECTOR(i, to - from) {
        vec v = v_load_to(j->x + from + i, to - from - i);
        bad |= (veci)(v - v != 0);
    }
    bool any = false;
    for (int l = 0; l < VLEN; l++)
        any = any || bad[l];
    for (j->bad[from / j->piece] = -1; any && from < to; from++)
        if (!isfinite(j->x[from])) {
            j->bad[from / j->piece] = from;
            return;
        }
}
static void K(guard)(weft__device *d, int64_t n, const real *x, int64_t from, bool start, weft__guard *g)
{
    int64_t bad[PIECES], piece = piece_of(n);
    if (start)
        g->finite = 1;
    if (g->finite)
        each_range(d, n, piece, guard_range, &(flat_job){ .piece = piece, .x = x, .bad = bad });
    for (int64_t i = 0; g->finite && i < parts(n, piece); i++)
        if (bad[i] >= 0)
            g->finite = 0, g->bad = from + bad[i];
}

/* ---- rules: as in loops_optimisers.h, by vectors ---- */
typedef struct update_job { const weft__update *u; rule r; const real *dx; real *m, *v, *a, *x; } update_job;
static void sgd_range(const void *job, int64_t from, int64_t to)
{
    const update_job *j = job;
    const weft__update *u = j->u;
    for (int64_t i = from, n; i < to; i += VLEN) {
        n = to - i;
        vec x = v_load_to(j->x + i, n), g = v_fma(v_set(u->decay), x, v_load_to(j->dx + i, n));
        if (u->beta1 != 0) {
            vec m = j->r.first ? g : u->beta1 * v_load_to(j->m + i, n) + (1 - u->beta2) * g;
            v_store_to(j->m + i, m, n);
            g = u->nesterov ? g + u->beta1 * m : m;
        }
        v_store_to(j->x + i, x - u->lr * g, n);
    }
}
static void rmsprop_range(const void *job, int64_t from, int64_t to)
{
    const update_job *j = job;
    const weft__update *u = j->u;
    for (int64_t i = from, n; i < to; i += VLEN) {
        n = to - i;
        vec x = v_load_to(j->x + i, n), g = v_fma(v_set(u->decay), x, v_load_to(j->dx + i, n)), mean = v_set(0);
        vec v = u->beta2 * v_load_to(j->v + i, n) + (1 - u->beta2) * g * g;
        v_store_to(j->v + i, v, n);
        if (u->centered) {
            mean = u->beta2 * v_load_to(j->a + i, n) + (1 - u->beta2) * g;
            v_store_to(j->a + i, mean, n);
        }
        vec spread = v - mean * mean;            /* of equal gradients 0, and below it by rounding */
        vec step = g / (v_sqrt(v_select((veci)(spread < 0), v_set(0), spread)) + u->eps);
        if (u->beta1 != 0) {
            step = u->beta1 * v_load_to(j->m + i, n) + step;
            v_store_to(j->m + i, step, n);
        }
        v_store_to(j->x + i, x - u->lr * step, n);
    }
}
static void adam_range(const void *job, int64_t from, int64_t to)
{
    const update_job *j = job;
    const weft__update *u = j->u;
    bool apart = u->rule == WEFT__ADAMW;
    real shrink = apart ? 1 - u->lr * u->decay : 1, decay = apart ? 0 : u->decay, correct = 1 / j->r.correct;
    for (int64_t i = from, n; i < to; i += VLEN) {
        n = to - i;
        vec x = v_load_to(j->x + i, n), g = v_load_to(j->dx + i, n);
        g = decay != 0 ? v_fma(v_set(decay), x, g) : g;
        vec m = u->beta1 * v_load_to(j->m + i, n) + (1 - u->beta1) * g, v = u->beta2 * v_load_to(j->v + i, n) + (1 - u->beta2) * g * g;
        v_store_to(j->m + i, m, n);
        v_store_to(j->v + i, v, n);
        v_store_to(j->x + i, x * shrink - j->r.rate * m / (v_sqrt(v) * correct + u->eps), n);
    }
}
static void K(update)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *g, const real *dx,
                      real *m, real *v, real *a, real *x)
{
    static range_fn *const rules[] = {
        [WEFT__SGD] = sgd_range, [WEFT__RMSPROP] = rmsprop_range, [WEFT__ADAM] = adam_range, [WEFT__ADAMW] = adam_range };
    if (g->finite)
        each_range(d, n, CHUNK, rules[u->rule], &(update_job){ u, rule_of(u, g), dx, m, v, a, x });
}
