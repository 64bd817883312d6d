/* avx2.c - the fast kernels for AVX2 and FMA (x86-64-v3). cpu.c uses them only on such CPUs. */
#if defined(__x86_64__)
#if !defined(__AVX2__) || !defined(__FMA__)
#error "avx2.c: compile it with -march=x86-64-v3"
#endif
#define K(name)    avx2_##name
#define TABLE      weft__avx2
#define TABLE_NAME "avx2"
#include "core/cpu/tier.h"
#else
typedef int weft__no_avx2;
#endif
