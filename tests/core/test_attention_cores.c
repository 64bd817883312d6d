/* test_attention_cores.c - tests attention on the tensor cores of a GPU. In TF32 the result is close to the
 * plain loops but not equal to fp32; three products of halves are as exact as fp32. A sequence and a query
 * have the same bits in every batch. Masked NaN and infinity have no effect. */
#include "kernel_run.h"

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
/* Gradients are added to ones. */
static void prepare(run *t, int which, int64_t n, real **x)
{
    *x = *x ? *x : room(t, n, sizeof **x);
    for (int64_t j = 0; j < n; j++)
        (*x)[j] = which >= DQ;
}
/* Forward and backward. */
static void attend(run *t, weft__attention a, weft_precision precision, real **got)
{
    int64_t n[RESULTS];
    sizes(&a, &n);
    for (int i = 0; i < RESULTS; i++)
        prepare(t, i, n[i], &got[i]);
    t->d.precision = precision;
    a.y = got[Y], a.lse = got[LSE], a.map = got[MAP];
    t->k->attention(&t->d, &a);
    a.dq = got[DQ], a.dk_ = got[DK], a.dv_ = got[DV];
    t->k->attention_back(&t->d, &a);
    t->d.precision = WEFT_FP32;
}

/* ---- accuracy ---- */
/* TF32 rounds operands to 11 bits. The inputs are 1 to 2 in size, so an error of this size, times
 * max(1, |want|), is allowed; in fp32 two thousandths of it. */
static void within_bounds(run *t, const weft__attention *a, real *const *got, double share)
{
    static const double may_be_off[RESULTS] = { 3e-3, 2e-3, 1.5e-3, 2e-3, 2.5e-3, 2.5e-3 };
    run *plain = run_on(&weft__ref, 1);
    real *want[RESULTS] = { 0 };
    int64_t n[RESULTS];
    sizes(a, &n);
    attend(plain, *a, WEFT_FP32, want);
    for (int i = 0; i < RESULTS; i++)
        cr_assert(is_close(names[i], got[i], want[i], n[i], share * may_be_off[i]),
                  "%s: %d heads of %d and %d", t->k->name, (int)a->heads, (int)a->dk, (int)a->dv);
    run_end(plain);
}
static int64_t differing(const real *a, const real *b, int64_t n)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        k += memcmp(a + i, b + i, sizeof *a) != 0;
    return k;
}
static bool has_cores(const run *t) { return !strcmp(t->k->name, "cuda") && sizeof(real) == sizeof(float); }

static const weft_precision precisions[] = { WEFT_FP32, WEFT_TF32 };
RUN_TEST(attention_cores, are_as_exact_as_their_precision)
{
    for (int i = 0; i < COUNT(shapes); i++) {
        const weft__attention a = batch(t, &shapes[i]);
        real *tf32[RESULTS] = { 0 }, *plain[RESULTS] = { 0 }, *bf16[RESULTS] = { 0 },
             *strict[RESULTS] = { 0 };
        int64_t n[RESULTS];
        sizes(&a, &n);
        attend(t, a, WEFT_TF32, tf32);
        within_bounds(t, &a, tf32, 1);
        if (has_cores(t)) {
            attend(t, a, WEFT_FP32, plain), attend(t, a, WEFT_BF16, bf16);
            attend(t, a, WEFT_STRICT_FP32, strict);
            within_bounds(t, &a, plain, 2e-3), within_bounds(t, &a, strict, 2e-3);
            for (int k = 0; k < RESULTS; k++) {
                same_bits("TF32 for BF16", bf16[k], tf32[k], n[k]);
                cr_assert(a.dk < 8 || differing(tf32[k], plain[k], n[k]) > n[k] / 4, "%s %d is fp32's",
                          names[k], i);
            }
        }
        forget(t);
    }
}

/* The values are exact in TF32, of one sign, and have equal weights. Bits that tensor cores drop in the sum
 * would show. */
RUN_TEST(attention_cores, sum_long_sequences_without_losing_bits)
{
    static const shape s = { 1, { 1 }, { 2000 }, 1, 8, 8, 0, false, false, false };
    const weft__attention a = batch(t, &s);
    real *got[RESULTS] = { 0 }, *const q = (real *)(uintptr_t)a.q, *const v = (real *)(uintptr_t)a.v;
    memset(q, 0, (size_t)a.dk * sizeof *q);
    for (int64_t i = 0; i < a.keys * a.dv; i++)
        v[i] = i < a.dv ? 4096 : (1 + (real)dice(1024) / 1024) / 16;
    for (int p = 0; p < COUNT(precisions); p++) {
        attend(t, a, precisions[p], got);
        for (int64_t c = 0; c < a.dv; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a.keys; j++)
                sum += (double)v[j * a.dv + c];
            close_to("the mean of the values", &got[Y][c], (real[]){ (real)(sum / (double)a.keys) }, 1,
                     TOL(1e-13, has_cores(t) ? 3e-6 : 1e-4));
        }
    }
}

/* The weight of a single key is 1, whatever its score. */
RUN_TEST(attention_cores, give_no_gradient_to_the_score_of_a_single_key)
{
    static const shape s = { 3, { 1, 40, 2 }, { 1, 1, 1 }, 2, 20, 33, 0, false, false, true };
    const weft__attention a = batch(t, &s);
    real *got[RESULTS] = { 0 };
    for (int p = WEFT_FP32; p <= WEFT_BF16; p++) {
        attend(t, a, (weft_precision)p, got);
        for (int64_t i = 0; i < a.queries * a.heads * a.dk; i++)
            cr_assert(got[DQ][i] == 1 && got[DK][i % (a.keys * a.heads * a.dk)] == 1, "number %d", (int)i);
    }
}

/* ---- independence of the batch ---- */
/* Runs one sequence at a time with its keys, in place, and each query with all keys of its sequence. */
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
    for (int k = 0; k < RESULTS; k++)
        prepare(t, k, n[k], &apart[k]);
    attend_apart(t, &a, precision, queries, apart);
    for (int k = 0; k < (queries ? DK : RESULTS); k++)
        same_bits(names[k], apart[k], together[k], n[k]);
    forget(t);
}
RUN_TEST(attention_cores, give_sequences_and_queries_the_same_bits_in_every_batch)
{
    for (int p = 0; p < COUNT(precisions); p++)
        for (int queries = 0; queries < 2; queries++) {
            for (int i = 0; i < COUNT(shapes); i++)
                company(t, &shapes[i], precisions[p], queries);
            for (int i = 0; i < (getenv("WEFT_SMALL") ? 0 : COUNT(long_ones)); i++)
                company(t, &long_ones[i], precisions[p], queries);
        }
}
/* If a gradient or the map is not requested, the other results stay the same. */
RUN_TEST(attention_cores, omitting_outputs_keeps_the_others)
{
    for (int i = 0; i < 2 * COUNT(shapes); i++) {
        const weft_precision precision = precisions[i % 2];
        weft__attention a = batch(t, &shapes[i / 2]);
        real *all[RESULTS] = { 0 }, *one[RESULTS] = { 0 };
        int64_t n[RESULTS];
        sizes(&a, &n);
        attend(t, a, precision, all);
        for (int k = DQ; k < RESULTS; k++) {
            prepare(t, k, n[k], &one[k]);
            a.y = all[Y], a.lse = all[LSE];
            a.dq = k == DQ ? one[k] : NULL, a.dk_ = k == DK ? one[k] : NULL,
            a.dv_ = k == DV ? one[k] : NULL;
            t->d.precision = precision;
            t->k->attention_back(&t->d, &a);
            same_bits(names[k], one[k], all[k], n[k]);
        }
        forget(t);
    }
}

/* Masked values change no bit. Visible ones reach the result. */
Test(attention_cores, masked_keys_may_be_nan)
{
    static const shape wide = { 1, { 150 }, { 150 }, 2, 70, 68, 1, false, false, false };
    static const shape narrow = { 1, { 150 }, { 150 }, 2, 16, 12, 2, false, false, true };
    static const real bad[] = { (real)NAN, (real)INFINITY, -(real)INFINITY };
    enum { AT = 100 };
    ON_EVERY_TABLE(t)
        for (int i = 0; has_cores(t) && i < 4 * COUNT(bad); i++) {
            const weft_precision precision = precisions[i / 2 % 2];
            const real odd_k = bad[i / 4], odd_v = bad[(i / 4 + 1) % COUNT(bad)];
            weft__attention a = batch(t, i % 2 ? &wide : &narrow);
            real *fine[RESULTS] = { 0 }, *got[RESULTS] = { 0 };
            const int64_t rows = AT * a.heads, key = rows * a.dk + 3, value = rows * a.dv + 5;
            attend(t, a, precision, fine);
            real *const k = (real *)(uintptr_t)a.k, *const v = (real *)(uintptr_t)a.v, was_k = k[key],
                        was_v = v[value];
            k[key] = odd_k, v[value] = odd_v;
            attend(t, a, precision, got);
            same_bits("y before it", got[Y], fine[Y], rows * a.dv);
            same_bits("lse", got[LSE], fine[LSE], rows);
            same_bits("dq before it", got[DQ], fine[DQ], rows * a.dk);
            int64_t odd = 0;
            for (int64_t j = rows * a.dv; j < a.queries * a.heads * a.dv; j++)
                odd += !isfinite((double)got[Y][j]);
            cr_assert(odd >= (a.queries - AT) / 2, "%s: %d are not finite", t->k->name, (int)odd);
            k[key] = was_k, v[value] = was_v;
            /* A causal query must not depend on later keys and their values. */
            real *const q = (real *)(uintptr_t)a.q, *const dy = (real *)(uintptr_t)a.dy;
            const real was_q = q[key], was_dy = dy[value];
            q[key] = odd_k, dy[value] = odd_k;
            attend(t, a, precision, got);
            const int64_t behind = (AT + 1) * a.heads;
            same_bits("dk of later keys", got[DK] + behind * a.dk, fine[DK] + behind * a.dk,
                      (a.keys - AT - 1) * a.heads * a.dk);
            same_bits("dv of later keys", got[DV] + behind * a.dv, fine[DV] + behind * a.dv,
                      (a.keys - AT - 1) * a.heads * a.dv);
            cr_assert(!isfinite((double)got[DK][3]) && !isfinite((double)got[DV][5]), "%s lost it",
                      t->k->name);
            q[key] = was_q, dy[value] = was_dy;
            forget(t);
        }
}
