/* avx512.c - the fast kernels for AVX-512 (x86-64-v4). cpu.c uses them only on such CPUs. */
#if defined(__x86_64__)
#if !defined(__AVX512F__) || !defined(__AVX512DQ__)
#error "avx512.c: compile it with -march=x86-64-v4"
#endif
#define K(name)    avx512_##name
#define TABLE      weft__avx512
#define TABLE_NAME "avx512"
#include "core/cpu/tier.h"
#else
typedef int weft__no_avx512;
#endif
