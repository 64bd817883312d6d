/* test_attention_cores.c - attention where the context asks for no more than TF32, as a GPU's tensor cores
 * make it: against loops in double, within what the rounding of each operand to 11 bits may do; that it is
 * another sum than fp32's; the company of other sequences and other queries; numbers that are not finite. */
#include "kernel_run.h"
#include "core/shared/attention.h"

/* ---- a batch ---- */
typedef struct shape {
    int sequences; int32_t q[6], k[6];           /* lengths */
    int64_t heads, dk, dv; int causal; bool shared, mean, drops;
} shape;
static const shape shapes[] = {
    { 4, { 1, 3, 0, 5 }, { 1, 0, 7, 9 }, 2, 4, 6, 0, false, false, false },
    { 3, { 70, 5, 130 }, { 70, 5, 130 }, 1, 8, 16, 1, false, false, false },
    { 2, { 65, 33 }, { 300, 64 }, 2, 12, 9, 2, false, false, true },
    { 2, { 300, 2 }, { 300, 2 }, 1, 33, 20, 2, false, false, false },
    { 2, { 40, 7 }, { 129, 12 }, 2, 64, 64, 0, false, false, true },
    { 2, { 66, 20 }, { 66, 31 }, 2, 70, 130, 3, false, false, false },
    { 3, { 20, 64, 3 }, { 20, 64, 3 }, 3, 16, 10, 0, true, false, true },
    { 2, { 90, 30 }, { 270, 40 }, 3, 10, 7, 2, true, true, false },
    { 1, { 520 }, { 520 }, 1, 5, 3, 1, false, false, true },
    { 2, { 3, 2 }, { 4, 2 }, 2, 0, 5, 0, false, false, false },
};
enum { Y, LSE, MAP, DQ, DK, DV, RESULTS };
static const char *const names[] = { "y", "lse", "map", "dq", "dk", "dv" };

static weft__ints offsets(run *t, int n, const int32_t *length)
{
    int32_t *x = room(t, n + 1, sizeof *x);
    for (int s = 0; s < n; s++)
        x[s + 1] = x[s] + length[s];
    return (weft__ints){ x, x };
}
static weft__attention batch(run *t, const shape *s)
{
    weft__attention a = { .sequences = s->sequences, .heads = s->heads, .dk = s->dk, .dv = s->dv,
                          .causal = s->causal, .shared_values = s->shared, .mean = s->mean,
                          .scale = s->dk ? 1 / (real)sqrt((double)s->dk) : 1 };
    a.q_offset = offsets(t, s->sequences, s->q), a.k_offset = offsets(t, s->sequences, s->k);
    a.queries = a.q_offset.host[s->sequences], a.keys = a.k_offset.host[s->sequences];
    int32_t *map = room(t, a.queries + 1, sizeof *map), *position = room(t, a.queries, sizeof *position);
    int64_t *id = room(t, a.queries, sizeof *id);
    for (int i = 0; i < s->sequences; i++)
        for (int64_t q = a.q_offset.host[i]; q < a.q_offset.host[i + 1]; q++)
            map[q + 1] = map[q] + s->k[i], id[q] = 7 * i - 9, position[q] = (int32_t)q;
    a.map_offset = (weft__ints){ map, map }, a.id = id, a.position = position;
    a.mask_key = 77, a.below = s->drops ? 20000 : 0, a.kept = (real)1.4;
    a.q = reals(t, a.queries * a.heads * a.dk, -2, 2), a.k = reals(t, a.keys * a.heads * a.dk, -2, 2);
    a.v = reals(t, a.keys * (a.shared_values ? 1 : a.heads) * a.dv, -1, 1);
    a.dy = reals(t, a.queries * (a.mean ? 1 : a.heads) * a.dv, -1, 1);
    return a;
}
static void sizes(const weft__attention *a, int64_t (*n)[RESULTS])
{
    (*n)[Y] = a->queries * (a->mean ? 1 : a->heads) * a->dv, (*n)[LSE] = a->queries * a->heads;
    (*n)[MAP] = a->map_offset.host[a->queries] * a->heads, (*n)[DQ] = a->queries * a->heads * a->dk;
    (*n)[DK] = a->keys * a->heads * a->dk, (*n)[DV] = a->keys * (a->shared_values ? 1 : a->heads) * a->dv;
}
/* Forward and backward; gradients are added to ones. */
static void attend(run *t, weft__attention a, weft_precision precision, real **got)
{
    int64_t n[RESULTS];
    sizes(&a, &n);
    for (int i = 0; i < RESULTS; i++) {
        got[i] = got[i] ? got[i] : room(t, n[i], sizeof(real));
        for (int64_t j = 0; i >= DQ && j < n[i]; j++)
            got[i][j] = 1;
    }
    t->d.precision = precision;
    a.y = got[Y], a.lse = got[LSE], a.map = got[MAP];
    t->k->attention(&t->d, &a);
    a.dq = got[DQ], a.dk_ = got[DK], a.dv_ = got[DV];
    t->k->attention_back(&t->d, &a);
    t->d.precision = WEFT_FP32;
}

/* ---- in double, and how far TF32 may be away ---- */
/* What rounding to 11 bits may do to a product of two numbers, relative to it. */
#define TWO_ROUNDINGS 0x1p-10
enum { MOST_KEYS = 600 };
typedef struct row {                             /* one query of one head */
    const weft__attention *a; int64_t s, h, q, k, keys, seen;    /* q, k: rows */
    /* weights, what dropout leaves of them, gradients of scores, and what each may be off */
    double w[MOST_KEYS], m[MOST_KEYS], ds[MOST_KEYS], off[MOST_KEYS], ds_off[MOST_KEYS], lse, lse_off;
} row;
typedef struct oracle { double *want[RESULTS], *may[RESULTS]; } oracle;

static void note(oracle *o, int which, int64_t i, double value, double off)
{
    o->want[which][i] += value, o->may[which][i] += off;
}
static const real *key_of(const row *r, int64_t j)
{
    return r->a->k + ((r->k + j) * r->a->heads + r->h) * r->a->dk;
}
static int64_t value_at(const row *r, int64_t j)
{
    return r->a->shared_values ? (r->k + j) * r->a->dv : ((r->k + j) * r->a->heads + r->h) * r->a->dv;
}
static int64_t result_at(const row *r)
{
    return (r->a->mean ? r->q : r->q * r->a->heads + r->h) * r->a->dv;
}
static void weigh_row(row *r)
{
    const weft__attention *a = r->a;
    const real *q = a->q + (r->q * a->heads + r->h) * a->dk;
    double most = -INFINITY, sum = 0, worst = 0;
    for (int64_t j = 0; j < r->seen; j++) {
        double s = 0, size = 0;
        for (int64_t e = 0; e < a->dk; e++)
            s += (double)q[e] * (double)key_of(r, j)[e], size += fabs((double)q[e] * (double)key_of(r, j)[e]);
        r->w[j] = s * (double)a->scale, r->off[j] = TWO_ROUNDINGS * size * (double)a->scale;
        most = fmax(most, r->w[j]), worst = fmax(worst, r->off[j]);
    }
    for (int64_t j = 0; j < r->seen; j++)
        sum += r->w[j] = exp(r->w[j] - most);
    r->lse = most + log(sum), r->lse_off = worst;
    for (int64_t j = 0; j < r->keys; j++) {
        const bool seen = j < r->seen;
        /* of a weight, to it */
        r->w[j] = seen ? r->w[j] / sum : 0, r->off[j] = seen ? r->off[j] + worst : 0;
        r->m[j] = !a->below ? 1 :
                  weft__philox_mask(weft__head_key(a->mask_key, r->h), a->id[r->q], a->position[r->q], j) <
                          a->below ?
                              0 :
                              (double)a->kept;
    }
}
static void results_of(const row *r, oracle *o)
{
    const weft__attention *a = r->a;
    const double share = a->mean ? 1 / (double)a->heads : 1;
    const int64_t at = r->q * a->heads + r->h;
    note(o, LSE, at, r->seen ? r->lse : -INFINITY, r->seen ? r->lse_off : 0);
    for (int64_t j = 0; j < r->keys; j++) {
        const double w = r->w[j] * r->m[j];
        note(o, MAP, (a->map_offset.host[r->q] + j) * a->heads + r->h, w, w * r->off[j]);
        for (int64_t c = 0; c < a->dv; c++) {
            const double term = share * w * (double)a->v[value_at(r, j) + c];
            note(o, Y, result_at(r) + c, term, fabs(term) * (r->off[j] + TWO_ROUNDINGS));
        }
    }
}
/* ds = w (m dy v - D), D the sum of all w m dy v. */
static void gradients_of_scores(row *r)
{
    const weft__attention *a = r->a;
    const double share = a->mean ? 1 / (double)a->heads : 1;
    double dots = 0, dots_off = 0;
    for (int64_t j = 0; j < r->seen; j++) {
        double dw = 0, size = 0;
        for (int64_t c = 0; c < a->dv; c++) {
            const double term = share * (double)a->dy[result_at(r) + c] * (double)a->v[value_at(r, j) + c];
            dw += term, size += fabs(term);
        }
        r->ds[j] = r->m[j] * dw, r->ds_off[j] = r->m[j] * size * TWO_ROUNDINGS;
        dots += r->w[j] * r->ds[j];
        dots_off += r->w[j] * r->m[j] * size * (r->off[j] + TWO_ROUNDINGS);
    }
    for (int64_t j = 0; j < r->seen; j++) {
        const double ds = r->w[j] * (r->ds[j] - dots);
        r->ds_off[j] = r->w[j] * (r->ds_off[j] + dots_off) + fabs(ds) * r->off[j], r->ds[j] = ds;
    }
}
static void gradients_of(const row *r, oracle *o)
{
    const weft__attention *a = r->a;
    const double share = a->mean ? 1 / (double)a->heads : 1, scale = (double)a->scale;
    const int64_t q_at = (r->q * a->heads + r->h) * a->dk;
    for (int64_t j = 0; j < r->seen; j++) {
        const int64_t k_at = key_of(r, j) - a->k;
        const double off = scale * (r->ds_off[j] + fabs(r->ds[j]) * TWO_ROUNDINGS);
        for (int64_t e = 0; e < a->dk; e++) {
            const double q = (double)a->q[q_at + e], k = (double)a->k[k_at + e];
            note(o, DQ, q_at + e, scale * r->ds[j] * k, off * fabs(k));
            note(o, DK, k_at + e, scale * r->ds[j] * q, off * fabs(q));
        }
        for (int64_t c = 0; c < a->dv; c++) {
            const double term = share * r->w[j] * r->m[j] * (double)a->dy[result_at(r) + c];
            note(o, DV, value_at(r, j) + c, term, fabs(term) * (r->off[j] + TWO_ROUNDINGS));
        }
    }
}
static void ask(const weft__attention *a, oracle *o)
{
    row r = { .a = a };
    for (r.s = 0; r.s < a->sequences; r.s++)
        for (r.h = 0; r.h < a->heads; r.h++)
            for (r.q = a->q_offset.host[r.s]; r.q < a->q_offset.host[r.s + 1]; r.q++) {
                const int64_t i = r.q - a->q_offset.host[r.s],
                              n = a->q_offset.host[r.s + 1] - a->q_offset.host[r.s];
                r.k = a->k_offset.host[r.s], r.keys = a->k_offset.host[r.s + 1] - r.k;
                r.seen = weft__keys_seen(a->causal, i, n, r.keys);
                weigh_row(&r), results_of(&r, o), gradients_of_scores(&r), gradients_of(&r, o);
            }
}

/* ---- right, and by another way than fp32 ---- */
static void within_bounds(run *t, const weft__attention *a, real *const *got)
{
    int64_t n[RESULTS];
    oracle o;
    sizes(a, &n);
    for (int i = 0; i < RESULTS; i++)
        o.want[i] = calloc((size_t)n[i] + 1, sizeof(double)),
        o.may[i] = calloc((size_t)n[i] + 1, sizeof(double));
    ask(a, &o);
    for (int i = 0; i < RESULTS; i++) {
        for (int64_t j = 0; j < n[i]; j++) {
            const double want = o.want[i][j] + (i >= DQ), off = fabs((double)got[i][j] - want);
            cr_assert((double)got[i][j] == want || off <= 1.1 * o.may[i][j] + TOL(1e-12, 2e-6),
                      "%s: %s[%d] of %d heads of %d and %d is %g, not %g, %g off, %g would do", t->k->name,
                      names[i], (int)j, (int)a->heads, (int)a->dk, (int)a->dv, (double)got[i][j], want, off,
                      o.may[i][j]);
        }
        free(o.want[i]), free(o.may[i]);
    }
}
static int64_t differing(const real *a, const real *b, int64_t n)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        k += memcmp(a + i, b + i, sizeof *a) != 0;
    return k;
}
static bool has_cores(const run *t) { return !strcmp(t->k->name, "cuda") && sizeof(real) == sizeof(float); }

Test(attention_cores, are_as_exact_as_tf32)
{
    ON_EVERY_TABLE(t)
        for (int i = 0; i < COUNT(shapes); i++) {
            const weft__attention a = batch(t, &shapes[i]);
            real *tf32[RESULTS] = { 0 }, *plain[RESULTS] = { 0 }, *bf16[RESULTS] = { 0 },
                 *strict[RESULTS] = { 0 };
            int64_t n[RESULTS];
            sizes(&a, &n);
            attend(t, a, WEFT_TF32, tf32);
            within_bounds(t, &a, tf32);
            if (has_cores(t)) {
                attend(t, a, WEFT_FP32, plain), attend(t, a, WEFT_BF16, bf16);
                attend(t, a, WEFT_STRICT_FP32, strict);
                for (int k = 0; k < RESULTS; k++) {
                    same_bits("strict fp32", strict[k], plain[k], n[k]);
                    same_bits("TF32 for BF16", bf16[k], tf32[k], n[k]);
                    cr_assert(a.dk < 8 || differing(tf32[k], plain[k], n[k]) > n[k] / 4, "%s %d is fp32's",
                              names[k], i);
                }
            }
            forget(t);
        }
}

/* Numbers that TF32 has, of one sign, with equal weights: what tensor cores cut when they add up would
 * show. */
Test(attention_cores, long_sums_are_not_cut)
{
    static const shape s = { 1, { 1 }, { 2000 }, 1, 8, 8, 0, false, false, false };
    ON_EVERY_TABLE(t) {
        const weft__attention a = batch(t, &s);
        real *got[RESULTS] = { 0 }, *const q = (real *)(uintptr_t)a.q, *const v = (real *)(uintptr_t)a.v;
        memset(q, 0, (size_t)a.dk * sizeof *q);
        for (int64_t i = 0; i < a.keys * a.dv; i++)
            v[i] = i < a.dv ? 4096 : (1 + (real)dice(1024) / 1024) / 16;
        attend(t, a, WEFT_TF32, got);
        for (int64_t c = 0; c < a.dv; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a.keys; j++)
                sum += (double)v[j * a.dv + c];
            close_to("the mean of the values", &got[Y][c], (real[]){ (real)(sum / (double)a.keys) }, 1,
                     TOL(1e-13, has_cores(t) ? 3e-6 : 1e-4));
        }
        forget(t);
    }
}

/* ---- company ---- */
/* One sequence at a time, in place, with its keys, and each query with all keys of its sequence. */
static void attend_apart(run *t, const weft__attention *a, weft_precision precision, bool queries, real **got)
{
    int32_t *of_q = room(t, 2, sizeof *of_q), *of_k = room(t, 2, sizeof *of_k);
    for (int s = 0; s < (int)a->sequences; s++) {
        const int32_t q = a->q_offset.host[s], end = a->q_offset.host[s + 1];
        of_k[0] = a->k_offset.host[s], of_k[1] = a->k_offset.host[s + 1];
        for (int32_t i = q; i < (queries ? end : q + 1); i++) {
            weft__attention b = *a;
            of_q[0] = i, of_q[1] = queries ? i + 1 : end;
            b.sequences = 1, b.q_offset = (weft__ints){ of_q, of_q }, b.k_offset = (weft__ints){ of_k, of_k };
            t->d.precision = precision;
            b.y = got[Y], b.lse = got[LSE], b.map = got[MAP];
            t->k->attention(&t->d, &b);
            b.dq = got[DQ], b.dk_ = queries ? NULL : got[DK], b.dv_ = queries ? NULL : got[DV];
            t->k->attention_back(&t->d, &b);
        }
    }
    t->d.precision = WEFT_FP32;
}
static const shape long_ones[] = {
    { 5, { 3, 0, 107, 7, 560 }, { 3, 0, 107, 7, 560 }, 2, 12, 9, 3, false, false, true },
    { 2, { 5, 250 }, { 5, 250 }, 2, 40, 33, 2, true, true, false },
    { 1, { 60 }, { 300 }, 2, 44, 37, 0, false, false, false },
    { 1, { 60 }, { 600 }, 2, 44, 37, 0, true, true, false },
};
static void company(run *t, const shape *s, weft_precision precision, bool queries)
{
    if (queries && (s->causal || s->q[0] > 100))
        return;
    const weft__attention a = batch(t, s);
    real *together[RESULTS] = { 0 }, *apart[RESULTS] = { 0 };
    int64_t n[RESULTS];
    sizes(&a, &n);
    attend(t, a, precision, together);
    for (int k = 0; k < RESULTS; k++) {
        apart[k] = room(t, n[k], sizeof(real));
        for (int64_t j = 0; k >= DQ && j < n[k]; j++)
            apart[k][j] = 1;
    }
    attend_apart(t, &a, precision, queries, apart);
    for (int k = 0; k < (queries ? DK : RESULTS); k++)
        same_bits(names[k], apart[k], together[k], n[k]);
    forget(t);
}
Test(attention_cores, a_sequence_and_a_query_do_not_know_their_neighbours)
{
    static const weft_precision precisions[] = { WEFT_FP32, WEFT_TF32 };
    ON_EVERY_TABLE(t)
        for (int p = 0; p < COUNT(precisions); p++)
            for (int queries = 0; queries < 2; queries++) {
                for (int i = 0; i < COUNT(shapes); i++)
                    company(t, &shapes[i], precisions[p], queries);
                for (int i = 0; i < (getenv("WEFT_SMALL") ? 0 : COUNT(long_ones)); i++)
                    company(t, &long_ones[i], precisions[p], queries);
            }
}
/* Only some of the gradients are wanted, or no map: the others stay what they are. */
Test(attention_cores, what_is_not_wanted_changes_nothing)
{
    ON_EVERY_TABLE(t)
        for (int i = 0; i < COUNT(shapes); i++) {
            weft__attention a = batch(t, &shapes[i]);
            real *all[RESULTS] = { 0 }, *one[RESULTS] = { 0 };
            int64_t n[RESULTS];
            sizes(&a, &n);
            attend(t, a, WEFT_TF32, all);
            for (int k = DQ; k < RESULTS; k++) {
                one[k] = room(t, n[k], sizeof(real));
                for (int64_t j = 0; j < n[k]; j++)
                    one[k][j] = 1;
                a.y = all[Y], a.lse = all[LSE];
                a.dq = k == DQ ? one[k] : NULL, a.dk_ = k == DK ? one[k] : NULL,
                a.dv_ = k == DV ? one[k] : NULL;
                t->d.precision = WEFT_TF32;
                t->k->attention_back(&t->d, &a);
                same_bits(names[k], one[k], all[k], n[k]);
            }
            forget(t);
        }
}

/* ---- what is not finite ---- */
/* Behind the mask it does no harm, to the bit; where it is seen, it is there. */
Test(attention_cores, what_a_query_does_not_see_may_be_anything)
{
    static const shape wide = { 1, { 150 }, { 150 }, 2, 70, 68, 1, false, false, false };
    static const shape narrow = { 1, { 150 }, { 150 }, 2, 16, 12, 2, false, false, true };
    static const real bad[] = { (real)NAN, (real)INFINITY, -(real)INFINITY };
    enum { AT = 100 };
    ON_EVERY_TABLE(t)
        for (int i = 0; has_cores(t) && i < 2 * COUNT(bad); i++) {
            weft__attention a = batch(t, i % 2 ? &wide : &narrow);
            real *fine[RESULTS] = { 0 }, *got[RESULTS] = { 0 };
            const int64_t rows = AT * a.heads, key = rows * a.dk + 3, value = rows * a.dv + 5;
            attend(t, a, WEFT_TF32, fine);
            real *const k = (real *)(uintptr_t)a.k, *const v = (real *)(uintptr_t)a.v, was_k = k[key],
                        was_v = v[value];
            k[key] = bad[i / 2], v[value] = bad[(i / 2 + 1) % COUNT(bad)];
            attend(t, a, WEFT_TF32, got);
            same_bits("y before it", got[Y], fine[Y], rows * a.dv);
            same_bits("lse", got[LSE], fine[LSE], rows);
            same_bits("dq before it", got[DQ], fine[DQ], rows * a.dk);
            int64_t odd = 0;
            for (int64_t j = rows * a.dv; j < a.queries * a.heads * a.dv; j++)
                odd += !isfinite((double)got[Y][j]);
            cr_assert(odd >= (a.queries - AT) / 2, "%s: %d are not finite", t->k->name, (int)odd);
            k[key] = was_k, v[value] = was_v;
            /* a query that sees only the keys before it: keys behind, and their values, know nothing of it */
            real *const q = (real *)(uintptr_t)a.q, *const dy = (real *)(uintptr_t)a.dy;
            const real was_q = q[key], was_dy = dy[value];
            q[key] = bad[i / 2], dy[value] = bad[i / 2];
            attend(t, a, WEFT_TF32, got);
            const int64_t behind = (AT + 1) * a.heads;
            same_bits("dk behind it", got[DK] + behind * a.dk, fine[DK] + behind * a.dk,
                      (a.keys - AT - 1) * a.heads * a.dk);
            same_bits("dv behind it", got[DV] + behind * a.dv, fine[DV] + behind * a.dv,
                      (a.keys - AT - 1) * a.heads * a.dv);
            cr_assert(!isfinite((double)got[DK][3]) && !isfinite((double)got[DV][5]), "%s lost it",
                      t->k->name);
            q[key] = was_q, dy[value] = was_dy;
            forget(t);
        }
}
