/* vector.h - vectors of VLEN reals, float or double: one source for AVX-512, AVX2, NEON and any other
 * target.
 *
 * The file that includes it is compiled for one instruction set, which determines VLEN. All functions are
 * static; otherwise the linker could merge copies, and a machine without AVX-512 would get AVX-512 code. Code
 * whose bits are promised uses v_fma, never a * b + c, because compilers fuse that or not. v_fma is fused
 * exactly if the instruction set has FMA.
 *
 * exp, log, tanh and sigmoid reduce their argument and evaluate a series. Float and double differ only in
 * the number of terms. All are within 4 ulp, and exact at 0 and infinity. NaN gives NaN. */
#ifndef WEFT_VECTOR_H
#define WEFT_VECTOR_H
#include <string.h>
#include <tgmath.h>
#include "core/kernels.h"

#ifndef VBYTES                                   /* a test may set another size */
#if defined __AVX512F__ && defined __AVX512DQ__
#define VBYTES 64
#elif defined __AVX2__ && defined __FMA__
#define VBYTES 32
#else
#define VBYTES 16
#endif
#endif
enum { VLEN = VBYTES / (int)sizeof(real) };
/* number of vector registers; kernels keep sums in most of them */
#if VBYTES == 64 || defined __aarch64__
#define V_REGISTERS 32
#else
#define V_REGISTERS 16
#endif

#ifdef WEFT_DOUBLE
typedef int64_t vint_;
#define V_SUFFIX(name) name##_pd
#define V_SIZE 8
enum { V_FRACTION = 52, V_BIAS = 1023, V_EXP_TERMS = 14, V_LOG_TERMS = 11 };
#define V_ROUNDER 0x1.8p52                       /* adding it leaves an integer in the low bits */
#define V_LN2_HIGH 6.93145751953125e-1           /* few bits, so its product with an exponent is exact */
#define V_LN2_LOW  1.42860682030941723212e-6
#define V_EXP_LEAST (-709.0) /* below this x, v_decay_ returns 0: exp(x) is denormal */
#define V_EXP_ZERO  (-746.0)
#define V_EXP_MOST  710.0
#define V_TANH_ONE  20.0                         /* tanh is 1 from here on */
#define V_NORMAL    0x1p-1022
#else
typedef int32_t vint_;
#define V_SUFFIX(name) name##_ps
#define V_SIZE 4
enum { V_FRACTION = 23, V_BIAS = 127, V_EXP_TERMS = 8, V_LOG_TERMS = 5 };
#define V_ROUNDER 0x1.8p23f
#define V_LN2_HIGH 0.693359375f
#define V_LN2_LOW  (-2.12194440e-4f)
#define V_EXP_LEAST (-88.0f)
#define V_EXP_ZERO  (-104.0f)
#define V_EXP_MOST  89.0f
#define V_TANH_ONE  10.0f
#define V_NORMAL    0x1p-126f
#endif
typedef real  vec  __attribute__((vector_size(VBYTES)));
/* comparisons: -1 where true */
typedef vint_ veci __attribute__((vector_size(VBYTES)));
typedef real  vec_at_ __attribute__((vector_size(VBYTES), aligned(sizeof(real)), may_alias));

#if VBYTES == 64 && defined __AVX512F__
#include <immintrin.h>
#define V_OWN(name) V_SUFFIX(_mm512_##name)
#elif VBYTES == 32 && defined __AVX2__
#include <immintrin.h>
#define V_OWN(name) V_SUFFIX(_mm256_##name)
#elif VBYTES == 16 && defined __SSE2__
#include <immintrin.h>
#define V_OWN(name) V_SUFFIX(_mm_##name)
#elif VBYTES == 16 && defined __aarch64__
#include <arm_neon.h>
#ifdef WEFT_DOUBLE
#define V_NEON(name) v##name##q_f64
#else
#define V_NEON(name) v##name##q_f32
#endif
#endif
/* whether v_fma is fused */
#if defined V_NEON
#define V_FUSED
#elif defined V_OWN ? defined __FMA__ : V_SIZE == 8 ? defined __FP_FAST_FMA : defined __FP_FAST_FMAF
#define V_FUSED
#endif

/* ---- memory ---- */
static inline vec  v_load(const real *p)    { return *(const vec_at_ *)p; }
static inline void v_store(real *p, vec x)  { *(vec_at_ *)p = x; }
static inline vec  v_set(real x)            { return x - (vec){ 0 }; }            /* not +: -0 + 0 is 0 */

/* Load and store the first n < VLEN reals without accessing other memory. Other lanes load as 0. */
#if VBYTES == 64 && defined V_OWN
#ifdef WEFT_DOUBLE
typedef __mmask8 v_mask_;
#else
typedef __mmask16 v_mask_;
#endif
static inline vec v_load_n(const real *p, int64_t n)
{
    return (vec)V_OWN(maskz_loadu)((v_mask_)((1u << n) - 1), p);
}
static inline void v_store_n(real *p, vec x, int64_t n)
{
    V_OWN(mask_storeu)(p, (v_mask_)((1u << n) - 1), x);
}
#elif VBYTES == 32 && defined V_OWN
static inline veci v_first_(int64_t n)
{
#ifdef WEFT_DOUBLE
    return (veci){ 0, 1, 2, 3 } < n - (veci){ 0 };
#else
    return (veci){ 0, 1, 2, 3, 4, 5, 6, 7 } < (vint_)n - (veci){ 0 };
#endif
}
static inline vec v_load_n(const real *p, int64_t n) { return (vec)V_OWN(maskload)(p, (__m256i)v_first_(n)); }
static inline void v_store_n(real *p, vec x, int64_t n)     { V_OWN(maskstore)(p, (__m256i)v_first_(n), x); }
#else
static inline vec v_load_n(const real *p, int64_t n)
{
    vec x = { 0 };
    for (int64_t i = 0; i < n && i < VLEN; i++)
        x[i] = p[i];
    return x;
}
static inline void v_store_n(real *p, vec x, int64_t n)
{
    for (int64_t i = 0; i < n && i < VLEN; i++)
        p[i] = x[i];
}
#endif
/* Load and store a whole vector, or n reals if n < VLEN. */
static inline vec  v_load_to(const real *p, int64_t n)      { return n < VLEN ? v_load_n(p, n) : v_load(p); }
static inline void v_store_to(real *p, vec x, int64_t n)
{
    if (n < VLEN)
        v_store_n(p, x, n);
    else
        v_store(p, x);
}

/* ---- arithmetic; the compiler provides + - * / < == and so on ---- */
#if VBYTES == 32 && defined V_OWN
static inline vec v_select(veci which, vec a, vec b)        { return (vec)V_OWN(blendv)(b, a, (vec)which); }
#elif VBYTES == 16 && \
    defined V_OWN /* with the undefined-behaviour sanitizer the plain form crashes gcc 12 */
static inline vec v_select(veci which, vec a, vec b)
{
    return (vec)V_OWN(or)(V_OWN(and)((vec)which, a), V_OWN(andnot)((vec)which, b));
}
#else
static inline vec v_select(veci which, vec a, vec b) { return (vec)((which & (veci)a) | (~which & (veci)b)); }
#endif
static inline vec v_abs(vec x) { return (vec)((veci)x & ~(veci)v_set(-(real)0)); }
/* -|x| */
static inline vec v_minus_(vec x)                           { return (vec)((veci)x | (veci)v_set(-(real)0)); }
static inline vec v_signed(vec x, vec sign) { return (vec)((veci)x | ((veci)sign & (veci)v_set(-(real)0))); }
#ifdef V_OWN
/* a < b ? a : b */
static inline vec v_min(vec a, vec b)                       { return (vec)V_OWN(min)(a, b); }
static inline vec v_max(vec a, vec b)                       { return (vec)V_OWN(max)(a, b); }
static inline vec v_sqrt(vec x)                             { return (vec)V_OWN(sqrt)(x); }
#else
static inline vec v_min(vec a, vec b)                       { return v_select((veci)(a < b), a, b); }
static inline vec v_max(vec a, vec b)                       { return v_select((veci)(a > b), a, b); }
#ifdef V_NEON
static inline vec v_sqrt(vec x)                             { return (vec)V_NEON(sqrt)(x); }
#else
static inline vec v_sqrt(vec x)
{
    for (int i = 0; i < VLEN; i++)
        x[i] = sqrt(x[i]);
    return x;
}
#endif
#endif
/* a b + c */
#if defined V_FUSED && defined V_OWN
static inline vec v_fma(vec a, vec b, vec c)                { return (vec)V_OWN(fmadd)(a, b, c); }
#elif defined V_NEON
static inline vec v_fma(vec a, vec b, vec c)                { return (vec)V_NEON(fma)(c, a, b); }
#elif defined V_FUSED
static inline vec v_fma(vec a, vec b, vec c)
{
    for (int i = 0; i < VLEN; i++)
        c[i] = fma(a[i], b[i], c[i]);
    return c;
}
#else
static inline vec v_fma(vec a, vec b, vec c)                { return a * b + c; }
#endif

/* Reductions over all lanes, by halves. The order is fixed, but depends on VLEN. */
#if VBYTES / V_SIZE == 16
#define V_LANES_(h)                                                                          \
    (h), 1 + (h), 2 + (h), 3 + (h), 4 + (h), 5 + (h), 6 + (h), 7 + (h), 8 + (h), 9 + (h),     \
        10 + (h), 11 + (h), 12 + (h), 13 + (h), 14 + (h), 15 + (h)
#elif VBYTES / V_SIZE == 8
#define V_LANES_(h) (h), 1 + (h), 2 + (h), 3 + (h), 4 + (h), 5 + (h), 6 + (h), 7 + (h)
#elif VBYTES / V_SIZE == 4
#define V_LANES_(h) (h), 1 + (h), 2 + (h), 3 + (h)
#endif
#if __has_builtin(__builtin_shufflevector)
#define V_SHUFFLED_(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else /* gcc 11 */
#define V_SHUFFLED_(a, b, ...) __builtin_shuffle(a, b, (veci){ __VA_ARGS__ })
#endif
#define V_TURNED_(x, h) V_SHUFFLED_(x, x, V_LANES_(h)) /* lane i is lane i + h of x */
static inline real v_sum(vec x)
{
#if VBYTES / V_SIZE > 8
    x += V_TURNED_(x, 8);
#endif
#if VBYTES / V_SIZE > 4
    x += V_TURNED_(x, 4);
#endif
#if VBYTES / V_SIZE > 2
    x += V_TURNED_(x, 2);
#endif
    return x[0] + x[1];
}
static inline vec v_larger_(vec a, vec b) { return v_select((veci)(a > b), a, b); }
static inline real v_largest(vec x)
{
#if VBYTES / V_SIZE > 8
    x = v_larger_(x, V_TURNED_(x, 8));
#endif
#if VBYTES / V_SIZE > 4
    x = v_larger_(x, V_TURNED_(x, 4));
#endif
#if VBYTES / V_SIZE > 2
    x = v_larger_(x, V_TURNED_(x, 2));
#endif
    return x[0] > x[1] ? x[0] : x[1];
}

/* Transposes VLEN vectors in log2(VLEN) rounds, each of which interleaves the first half of the vectors with
 * the second half. In vectors of 32 bytes, moves across the middle are expensive, so one round exchanges the
 * halves of vectors, and the others interleave within halves. */
#if VBYTES == 32 && V_SIZE == 8
#define V_HALF_LOW  0, 1, 4, 5
#define V_HALF_HIGH 2, 3, 6, 7
#define V_ZIP_LOW   0, 4, 2, 6
#define V_ZIP_HIGH  1, 5, 3, 7
#elif VBYTES == 32
#define V_HALF_LOW  0, 1, 2, 3, 8, 9, 10, 11
#define V_HALF_HIGH 4, 5, 6, 7, 12, 13, 14, 15
#define V_ZIP_LOW   0, 8, 1, 9, 4, 12, 5, 13
#define V_ZIP_HIGH  2, 10, 3, 11, 6, 14, 7, 15
#elif VBYTES / V_SIZE == 2
#define V_ZIP_LOW  0, 2
#define V_ZIP_HIGH 1, 3
#elif VBYTES / V_SIZE == 4
#define V_ZIP_LOW  0, 4, 1, 5
#define V_ZIP_HIGH 2, 6, 3, 7
#elif VBYTES / V_SIZE == 8
#define V_ZIP_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define V_ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define V_ZIP_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define V_ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif
static inline void v_zip_(vec *x, int count)     /* all rounds of interleaving */
{
    for (int n = 1; n < count; n *= 2) {
        vec y[VLEN];
        for (int i = 0; i < count / 2; i++) {
            y[2 * i] = V_SHUFFLED_(x[i], x[i + count / 2], V_ZIP_LOW);
            y[2 * i + 1] = V_SHUFFLED_(x[i], x[i + count / 2], V_ZIP_HIGH);
        }
        for (int i = 0; i < count; i++)
            x[i] = y[i];
    }
}
static inline void v_transpose(vec x[VLEN])
{
#ifdef V_HALF_LOW
    for (int i = 0; i < VLEN / 2; i++) {
        vec low = V_SHUFFLED_(x[i], x[i + VLEN / 2], V_HALF_LOW);
        x[i + VLEN / 2] = V_SHUFFLED_(x[i], x[i + VLEN / 2], V_HALF_HIGH), x[i] = low;
    }
    v_zip_(x, VLEN / 2), v_zip_(x + VLEN / 2, VLEN / 2);
#else
    v_zip_(x, VLEN);
#endif
}

/* ---- functions ---- *
 * Functions in loops over exp, tanh and similar are inlined: a call would spill all vector registers. */
#define INLINE static inline __attribute__((always_inline))
static const real v_factorial_[] = {
    /* 1 / i! */
    1,
    1,
    (real)(1 / 2.),
    (real)(1 / 6.),
    (real)(1 / 24.),
    (real)(1 / 120.),
    (real)(1 / 720.),
    (real)(1 / 5040.),
    (real)(1 / 40320.),
    (real)(1 / 362880.),
    (real)(1 / 3628800.),
    (real)(1 / 39916800.),
    (real)(1 / 479001600.),
    (real)(1 / 6227020800.),
};

static const real v_odd_[] = {                   /* 1 / (2 i + 3) */
    (real)(1 / 3.), (real)(1 / 5.), (real)(1 / 7.), (real)(1 / 9.), (real)(1 / 11.), (real)(1 / 13.),
    (real)(1 / 15.), (real)(1 / 17.), (real)(1 / 19.), (real)(1 / 21.), (real)(1 / 23.),
};

/* Returns the sum of c[i] x^i, i < n <= 12, by Estrin's scheme: pairs, then pairs of pairs. It has
 * the multiply-adds of Horner's scheme in shorter dependency chains. */
INLINE vec v_polynomial_(const real *c, int n, vec x)
{
    vec term[12];
    for (int i = 0; i < n; i++)
        term[i] = v_set(c[i]);
    for (; n > 1; n = (n + 1) / 2, x = x * x) {
        for (int i = 0; i < n / 2; i++)
            term[i] = v_fma(term[2 * i + 1], x, term[2 * i]);
        if (n % 2)
            term[n / 2] = term[n - 1];
    }
    return term[0];
}
/* Splits exp(x) = 2^n (1 + p), where p = exp(r) - 1 comes from a series with |r| <= ln 2 / 2 and is accurate
 * relative to p. The low bits of the result hold n. */
INLINE veci v_reduced_exp_(vec x, vec *p)
{
    vec shifted = v_fma(x, v_set((real)1.44269504088896340736), v_set(V_ROUNDER)),
        whole = shifted - V_ROUNDER;
    vec r = v_fma(whole, v_set(-V_LN2_LOW), v_fma(whole, v_set(-V_LN2_HIGH), x));
    *p = v_fma(v_polynomial_(v_factorial_ + 2, V_EXP_TERMS - 2, r), r * r, r);
    return (veci)shifted;
}
/* Returns 2^n, or 0 for n = -V_BIAS. */
static inline vec v_power_of_2_(veci n)                     { return (vec)((n + V_BIAS) << V_FRACTION); }

/* For x <= 0: returns p as above and sets *power to 2^n, or 0 where exp is below the normal numbers. */
INLINE vec v_decay_(vec x, vec *power)
{
    vec p;
    *power = v_power_of_2_(v_reduced_exp_(v_max(v_set(V_EXP_LEAST), x), &p));
    return p;
}
/* Multiplies by 2^n in two factors, so that denormal and infinite results are correct. */
INLINE vec v_exp(vec x)
{
    vec p;
    veci n = v_reduced_exp_(v_max(v_set(V_EXP_ZERO), v_min(v_set(V_EXP_MOST), x)), &p) -
             (veci)v_set(V_ROUNDER),
         half = n >> 1;
    return (p + 1) * v_power_of_2_(half) * v_power_of_2_(n - half);
}
/* Returns power (p + 1). Rounding the product separately could give a denormal, which kernels flush to 0. */
static inline vec v_decayed_(vec power, vec p)
{
#ifdef V_FUSED
    return v_fma(power, p, power);
#else
    return (p + 1) * power;
#endif
}
/* Uses exp(-|x|), which does not overflow: 1 / (1 + e), or e / (1 + e) for x < 0. */
INLINE vec v_sigmoid(vec x)
{
    vec power, p = v_decay_(v_minus_(x), &power), e = v_decayed_(power, p);
    return v_select((veci)(x < 0), e, v_set(1)) / (e + 1);
}
/* Returns -m / (2 + m) with m = exp(-2 |x|) - 1, which keeps the relative accuracy for small x. */
INLINE vec v_tanh(vec x)
{
    vec power, p = v_decay_(v_max(v_set(-2 * V_TANH_ONE), 2 * v_minus_(x)), &power),
               m = v_fma(power, p, power - 1);
    return v_signed(v_abs(m) / (m + 2), x);
}
/* Uses x = 2^n m, sqrt(1/2) <= m < sqrt(2): log(x) = n ln 2 + 2 atanh(f), f = (m - 1) / (m + 1), a series. */
static inline vec v_log(vec x)
{
    vec size = v_abs(x);
    veci tiny = (veci)(size < V_NORMAL);
    vec scaled = v_select(tiny, size * (real)((vint_)1 << V_FRACTION), size),
        root = v_set((real)0.70710678118654752440);
    veci n = ((veci)scaled - (veci)root) >> V_FRACTION;
    vec m = (vec)((veci)scaled - (n << V_FRACTION)), f = (m - 1) / (m + 1), s = f * f;
    vec q = v_polynomial_(v_odd_, V_LOG_TERMS, s);
    n -= tiny & V_FRACTION;
    vec e = __builtin_convertvector(n, vec), y = v_fma(2 * f, s * q, 2 * f);
    y = v_fma(e, v_set(V_LN2_HIGH), v_fma(e, v_set(V_LN2_LOW), y));
    y = v_select((veci)(x < (real)INFINITY), y, x);          /* infinity and NaN */
    return v_select((veci)(x <= 0), v_select((veci)(x < 0), v_set((real)NAN), v_set(-(real)INFINITY)), y);
}
#endif
