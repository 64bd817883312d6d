/* fast_optimisers.h - norms, clipping and updates of flat vectors, in fixed chunks over the threads; their partial results are
 * put together in order. */
#include "core/fast_ranges.h"
#include "core/loops_optimisers.h"

enum { PIECES = 1024 };
typedef struct flat_job { int64_t piece; real power, factor; const real *x; real *y; double *part; } flat_job;
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

/* The largest size by the bits of absolute values, which are in order: those of infinity are beyond all finite numbers', a NaN's beyond infinity's.
 * INFINITY: not all are finite. */
static inline veci larger_size(veci most, vec x)
{
    veci size = (veci)v_abs(x);
    return (veci)v_select(size > most, (vec)size, (vec)most);
}
static double largest(int64_t n, const real *x)
{
    veci size[4] = { { 0 } };
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
        for (int k = 0; k < 4; k++)
            size[k] = larger_size(size[k], v_load(x + i + k * VLEN));
    for (; i < n; i += VLEN)
        size[0] = larger_size(size[0], v_load_to(x + i, n - i));
    double most = 0;
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < VLEN; l++) {
            double v = (double)((vec)size[k])[l];
            most = isnan(v) ? (double)INFINITY : v > most ? v : most;
        }
    return most;
}
static void guard_range(const void *job, int64_t from, int64_t to)
{
    const flat_job *j = job;
    j->part[from / j->piece] = largest(to - from, j->x + from);
}
static void K(guard)(weft__device *d, int64_t n, const real *x, int64_t from, bool start, weft__guard *g)
{
    double part[PIECES];
    int64_t piece = piece_of(n), bad;
    if (start)
        g->finite = 1, g->most.g = 0;
    if (g->finite)
        each_range(d, n, piece, guard_range, &(flat_job){ .piece = piece, .x = x, .part = part });
    for (int64_t i = 0; g->finite && i < parts(n, piece); i++)
        if (part[i] == (double)INFINITY) {
            for (bad = i * piece; isfinite(x[bad]);)
                bad++;
            g->finite = 0, g->bad = from + bad;
        } else
            g->most.g = part[i] > g->most.g ? part[i] : g->most.g;
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
static range_fn *const rules[] = { [WEFT__SGD] = sgd_range, [WEFT__RMSPROP] = rmsprop_range, [WEFT__ADAM] = adam_range, [WEFT__ADAMW] = adam_range };
static void K(update)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *g, const real *dx,
                      real *m, real *v, real *a, real *x)
{
    if (g->finite)
        each_range(d, n, CHUNK, rules[u->rule], &(update_job){ u, rule_of(u, g), dx, m, v, a, x });
}

/* ---- the same into a few numbers beside the vectors, which are looked at ---- */
enum { REHEARSED = 512, FEW_PIECES = 128 };
typedef struct rehearsal { update_job u; bool moves; int64_t piece, *bad; weft__most *most; } rehearsal;
static void look(const real *was, const real *is, int64_t n, int64_t at, int64_t *bad, double *most)
{
    double before = largest(n, was), after = largest(n, is), all = before > after ? before : after;
    for (int64_t i = 0; all == (double)INFINITY && i < n; i++) {  /* one by one */
        if (isfinite(was[i]) && !isfinite(is[i]) && (*bad < 0 || at + i < *bad))
            *bad = at + i;
        *most = larger(larger(*most, was[i]), is[i]);
    }
    *most = all < (double)INFINITY && all > *most ? all : *most;
}
static void rehearse_range(const void *job, int64_t from, int64_t to)
{
    const rehearsal *h = job;
    const update_job *u = &h->u;
    real beside[4][REHEARSED], *const there[4] = { u->m, u->v, u->a, u->x };
    real *m = u->m ? beside[0] : NULL, *v = u->v ? beside[1] : NULL, *a = u->a ? beside[2] : NULL;
    weft__most *most = h->most + from / h->piece;
    double *const sizes[4] = { &most->m, &most->v, &most->a, &most->x };
    int64_t *bad = h->bad + from / h->piece;
    *bad = -1, *most = (weft__most){ 0 };
    for (int64_t n; from < to; from += n) {
        n = least(to - from, REHEARSED);
        for (int k = 0; k < 4; k++)
            if (there[k])
                memcpy(beside[k], there[k] + from, (size_t)n * sizeof(real));
        if (h->moves)
            rules[u->u->rule](&(update_job){ u->u, u->r, u->dx + from, m, v, a, beside[3] }, 0, n);
        for (int k = 0; k < 4; k++)
            if (there[k])
                look(there[k] + from, beside[k], n, from, bad, sizes[k]);
        for (int64_t i = 0; u->u->rule >= WEFT__ADAM && i < n; i++)
            ratios(u->u, m[i], v[i], most), ratios(u->u, u->m[from + i], u->v[from + i], most);
    }
}
static void K(rehearse)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *past, bool moves, const real *dx, const real *m, const real *v,
                        const real *a, const real *x, int64_t from, weft__guard *g)
{
    if (g->sure || !g->finite)
        return;
    int64_t bad[FEW_PIECES], piece = up(n / FEW_PIECES + 1, CHUNK);
    weft__most most[FEW_PIECES], *all = &g->most;
#define READ_ONLY(p) ((real *)(uintptr_t)(p))
    update_job job = { u, rule_of(u, past), dx, READ_ONLY(m), READ_ONLY(v), READ_ONLY(a), READ_ONLY(x) };
    each_range(d, n, piece, rehearse_range, &(rehearsal){ job, moves, piece, bad, most });
    for (int64_t i = 0; g->finite && i < parts(n, piece); i++) {
        all->x = fmax(all->x, most[i].x), all->m = fmax(all->m, most[i].m), all->v = fmax(all->v, most[i].v), all->a = fmax(all->a, most[i].a);
        if (bad[i] >= 0)
            rehearsed(from + bad[i], g);
    }
}
