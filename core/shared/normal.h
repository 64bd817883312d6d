/* normal.h - uniform and normal random numbers from draws of philox.h, with the same bits on every
 * instruction set and device.
 *
 * So log and cos are series instead of library functions, and products are rounded before they are added.
 * Files that include this are compiled with -ffp-contract=off; for nvcc weft__times does the same. The code
 * uses only +, -, *, / and sqrt of doubles, whose bits IEEE 754 defines. C and C++. */
#ifndef WEFT_SHARED_NORMAL_H
#define WEFT_SHARED_NORMAL_H
#include <string.h>
#include "core/shared/philox.h"

/* Multiplies; the compiler never fuses it with an addition. */
WEFT__BOTH double weft__times(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}
/* Returns c[0] + x (c[1] + x (c[2] + ..)), from the last coefficient to the first. */
WEFT__BOTH double weft__series(double x, const double *c, int n)
{
    double sum = c[n - 1];
    for (int i = n - 2; i >= 0; i--)
        sum = c[i] + weft__times(sum, x);
    return sum;
}
/* Returns log u of a normal (not denormal) number. u = 2^k m with m in sqrt(1/2) .. sqrt(2), and log m = 2
 * atanh(s) = 2 s (1 + s^2 / 3 + s^4 / 5 ..) with s = (m - 1) / (m + 1). */
WEFT__BOTH double weft__log(double u)
{
    const double c[] = { 1. / 3,  1. / 5,  1. / 7,  1. / 9,  1. / 11, 1. / 13,
                         1. / 15, 1. / 17, 1. / 19, 1. / 21, 1. / 23 };
    /* few bits, so that its product with k is exact */
    const double ln2_high = 6.93147180369123816490e-1, ln2_low = 1.90821492927058770002e-10;
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    /* the fraction of sqrt(2) */
    uint64_t fraction = bits & 0xFFFFFFFFFFFFFu, up = fraction > 0x6A09E667F3BCCu;
    double k = (double)((int64_t)(bits >> 52) - 1023 + (int64_t)up), m;
    bits = fraction | (uint64_t)(1023 - up) << 52;
    memcpy(&m, &bits, sizeof m);
    double f = m - 1, s = f / (m + 1), z = weft__times(s, s);
    double tail = weft__times(weft__times(s, z), weft__series(z, c, 11));
    return weft__times(k, ln2_high) + (2 * s + (2 * tail + weft__times(k, ln2_low)));
}
/* Returns cos(2 pi v) for 0 <= v < 1: the nearest quarter turn, and the series of cos or sin for the
 * remainder, at most an eighth of a turn. */
WEFT__BOTH double weft__cos_of_turns(double v)
{
    const double c[] = { 1,
                         -1. / 2,
                         1. / 24,
                         -1. / 720,
                         1. / 40320,
                         -1. / 3628800,
                         1. / 479001600,
                         -1. / 87178291200,
                         1. / 20922789888000 };
    const double s[] = { 1,
                         -1. / 6,
                         1. / 120,
                         -1. / 5040,
                         1. / 362880,
                         -1. / 39916800,
                         1. / 6227020800,
                         -1. / 1307674368000,
                         1. / 355687428096000 };
    int quarter = (int)(4 * v + .5);
    double x = weft__times(v - .25 * quarter, 6.283185307179586477), z = weft__times(x, x);
    double even = weft__series(z, c, 9), odd = weft__times(x, weft__series(z, s, 9)),
           y = quarter & 1 ? odd : even;
    return (quarter + 1) & 2 ? -y : y;           /* cos x, -sin x, -cos x, sin x, cos x */
}
/* Returns one of the pair of Box and Muller 1958, for u in (0, 1] and v in [0, 1). */
WEFT__BOTH double weft__normal_of(double u, double v)
{
    return weft__times(sqrt(weft__times(-2, weft__log(u))), weft__cos_of_turns(v));
}
/* Turns a draw into a standard normal number: the radius from the high 32 bits as a number in (0, 1], the
 * angle from the low ones. The casts to 32 bits are for nvcc 13.0 with sm_100 and later. Without them its
 * PTX had a full 64-bit product for every other draw. */
WEFT__BOTH double weft__normal(uint64_t draw)
{
    return weft__normal_of(((double)(uint32_t)(draw >> 32) + 1) * 2.3283064365386963e-10,
                           (double)(uint32_t)draw * 2.3283064365386963e-10);
}
/* Return the next number below x, which is finite and not 0. */
WEFT__BOTH float weft__below_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += x > 0 ? UINT32_MAX : 1;
    memcpy(&x, &bits, sizeof bits);
    return x;
}
WEFT__BOTH double weft__below_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += x > 0 ? UINT64_MAX : 1;
    memcpy(&x, &bits, sizeof bits);
    return x;
}
/* Return a + b u, with u uniform in [0, 1) or standard normal. The product is rounded to the type first. A
 * uniform number is never the upper end a + b: if rounding gives that, the next number below is returned. */
WEFT__BOTH float weft__random_float(uint64_t draw, bool normal, float a, float b)
{
    float u = normal ? (float)weft__normal(draw) : weft__uniform_float(draw), end = a + b;
#ifdef __CUDA_ARCH__
    float y = a + __fmul_rn(b, u);
#else
    float y = a + b * u;
#endif
    return !normal && a < end && y >= end && end != 0 ? weft__below_float(end) : y;
}
WEFT__BOTH double weft__random_double(uint64_t draw, bool normal, double a, double b)
{
    double y = a + weft__times(b, normal ? weft__normal(draw) : weft__uniform(draw)), end = a + b;
    return !normal && a < end && y >= end && end != 0 ? weft__below_double(end) : y;
}
#endif
