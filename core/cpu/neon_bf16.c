/* neon_bf16.c - the fast kernels for ARM with BF16 matrix products (bfmmla). cpu.c uses them only on such
 * CPUs. A compiler without these instructions builds a table that is never chosen. */
#if defined(__aarch64__) && !defined(WEFT_DOUBLE)
#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
#define TILES
#define TILES_BFMMLA
#endif
#define K(name)    neon_bf16_##name
#define TABLE      weft__neon_bf16
#define TABLE_NAME "neon-bf16"
#include "core/cpu/tier.h"

bool weft__bf16_is_compiled(void)
{
#ifdef TILES
    return true;
#else
    return false;
#endif
}
#else
typedef int weft__no_neon_bf16;
#endif
