/* philox.h - Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011)
 * and the three kinds of counters in weft: dropout masks, attention masks, streams. A number depends on key
 * and counter only. So every back end, thread and backward pass draws the same number. C and C++. */
#ifndef WEFT_PHILOX_H
#define WEFT_PHILOX_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WEFT__BOTH static inline __host__ __device__
#else
#define WEFT__BOTH static inline
#endif

/* Writes the 128 bits of a counter (word 0 is the lowest) under a key (low word first). */
WEFT__BOTH void weft__philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0, b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1, d = (uint32_t)p;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* Returns the draw for dropout. 64 columns of the token (id, position) are eight counters of eight 16-bit
 * draws. Column j has draw j / 8 % 8 of counter j / 64 * 8 + j % 8. So eight neighbours are the same word
 * of eight consecutive counters, which suits vector units. An element is dropped if its draw is below
 * weft__threshold(p), which rounds p to a multiple of 2^-16. */
WEFT__BOTH uint32_t weft__philox_mask(uint64_t key, int64_t id, int32_t position, int64_t column)
{
    uint32_t counter[4] = { (uint32_t)(column / 64 * 8 + column % 8), (uint32_t)position,
                            (uint32_t)(uint64_t)id, (uint32_t)((uint64_t)id >> 32) },
             out[4];
    int64_t draw = column / 8 % 8;
    weft__philox(key, counter, out);
    return out[draw / 2] >> 16 * (draw % 2) & 0xFFFF;
}
WEFT__BOTH uint32_t weft__threshold(double p) { return (uint32_t)(p * 65536 + .5); }
/* Returns the key of a head, whose mask [queries, keys] is drawn like one of [tokens, columns]. */
WEFT__BOTH uint64_t weft__head_key(uint64_t key, int64_t head)
{
    return key + (uint64_t)head * 0xA0761D6478BD642Fu;
}
/* Returns a number in [0, 1) in steps of 2^-24, exact in float and double. */
WEFT__BOTH float weft__unit(uint32_t bits) { return (float)(bits >> 8) * 5.9604644775390625e-8f; }

/* Returns draw n of a stream: 64 bits, half of counter n / 2. No draw depends on earlier ones. */
WEFT__BOTH uint64_t weft__philox_draw(uint64_t key, uint64_t n)
{
    uint32_t counter[4] = { (uint32_t)(n >> 1), (uint32_t)(n >> 33), 0, 0 }, out[4];
    weft__philox(key, counter, out);
    return n & 1 ? out[2] | (uint64_t)out[3] << 32 : out[0] | (uint64_t)out[1] << 32;
}
/* Turns a draw into a number in [0, 1) in steps of 2^-53. */
WEFT__BOTH double weft__uniform(uint64_t draw) { return (double)(draw >> 11) * 1.1102230246251565e-16; }
/* The same in steps of 2^-24. Rounding the double to float could give 1. */
WEFT__BOTH float weft__uniform_float(uint64_t draw) { return weft__unit((uint32_t)(draw >> 32)); }
#endif
