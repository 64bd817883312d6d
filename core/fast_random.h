/* fast_random.h - which elements dropout keeps, 128 columns at a time; see weft__philox_mask. */
#ifndef WEFT_FAST_RANDOM_H
#define WEFT_FAST_RANDOM_H
#include "core/fast_ranges.h"
#include "core/philox.h"

/* A word of a counter is the lower half of a number of 64 bits, where it is multiplied as it stands, and what gathers in the upper half
 * does not matter. Even counters are in one vector and odd ones in another: in the end they are put together by a shift. */
typedef uint64_t vword __attribute__((vector_size(VBYTES)));
typedef uint64_t vword_at_ __attribute__((vector_size(VBYTES), aligned(4), may_alias));
enum { LANES = 16, DRAWS = 8 * LANES, TOGETHER = VBYTES / 4 };    /* counters: of DRAWS columns, of two vectors */
static inline vword product_of_halves(vword x, uint32_t factor)
{
    vword f = (vword){ 0 } + factor;
#if VBYTES == 64 && defined V_OWN
    return (vword)_mm512_mul_epu32((__m512i)x, (__m512i)f);
#elif VBYTES == 32 && defined V_OWN
    return (vword)_mm256_mul_epu32((__m256i)x, (__m256i)f);
#elif VBYTES == 16 && defined V_OWN
    return (vword)_mm_mul_epu32((__m128i)x, (__m128i)f);
#else
    return (x & 0xFFFFFFFFu) * f;
#endif
}
/* The words of counters from .. from + TOGETHER - 1 of that token, at word, word + LANES and so on. */
static void philox_lanes(uint64_t key, int64_t id, int32_t position, int64_t from, uint32_t *word)
{
    const vword none = { 0 };
    vword even = none, x[4][2];
    for (int i = 0; i < VBYTES / 8; i++)
        even[i] = 2 * (uint64_t)i;
    for (int o = 0; o < 2; o++) {
        x[0][o] = even + (uint64_t)(from + o), x[1][o] = none + (uint32_t)position;
        x[2][o] = none + (uint64_t)id, x[3][o] = none + ((uint64_t)id >> 32);
    }
    vword k0 = none + key, k1 = none + (key >> 32);
    UNROLLED for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
        UNROLLED for (int o = 0; o < 2; o++) {
            vword p = product_of_halves(x[0][o], 0xD2511F53u), q = product_of_halves(x[2][o], 0xCD9E8D57u);
            x[0][o] = q >> 32 ^ x[1][o] ^ k0, x[1][o] = q;
            x[2][o] = p >> 32 ^ x[3][o] ^ k1, x[3][o] = p;
        }
    for (int k = 0; k < 4; k++)
        *(vword_at_ *)(word + k * LANES) = (x[k][0] & 0xFFFFFFFFu) | x[k][1] << 32;
}
/* kept[i], i < n: 0 if the element in column + i goes, else the factor; column is a multiple of DRAWS. Eight counters make 64 columns. */
typedef int32_t eight_ __attribute__((vector_size(32), aligned(4), may_alias));
typedef vint_ eight_reals_ __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));
static void draw_kept(uint64_t key, int64_t id, int32_t position, int64_t column, int64_t n, uint32_t below, real factor, real kept[DRAWS])
{
    uint32_t word[4 * LANES];
    vint_ bits;
    memcpy(&bits, &factor, sizeof bits);
    for (int i = 0; i < LANES && i / 8 * 64 < n; i += TOGETHER)
        philox_lanes(key, id, position, column / 8 + i, word + i);
    for (int half = 0; half < LANES && half * 8 < n; half += 8)
        for (int k = 0; k < 4; k++, kept += 16) {
            const eight_ x = *(const eight_ *)(word + k * LANES + half), low = x & 0xFFFF, high = x >> 16 & 0xFFFF;
            *(eight_reals_ *)kept = __builtin_convertvector(low >= (int32_t)below, eight_reals_) & bits;
            *(eight_reals_ *)(kept + 8) = __builtin_convertvector(high >= (int32_t)below, eight_reals_) & bits;
        }
}
/* y = x times what is kept of it; what goes is 0, whatever it was. */
static void keep(int64_t n, const real *kept, const real *x, real *y)
{
    EACH_VECTOR(i, n) {
        vec k = v_load_to(kept + i, n - i);
        v_store_to(y + i, v_select((veci)(k != 0), k * v_load_to(x + i, n - i), v_set(0)), n - i);
    }
}
#endif
