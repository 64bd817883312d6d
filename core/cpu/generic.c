/* generic.c - the fast kernels for the compiler's default instruction set. On 64-bit ARM that has NEON. */
#define K(name)    generic_##name
#define TABLE      weft__generic
#ifdef __aarch64__
#define TABLE_NAME "neon"
#else
#define TABLE_NAME "generic"
#endif
#include "core/cpu/tier.h"
