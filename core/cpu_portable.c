/* cpu_portable.c - the fast kernels for the instruction set that the compiler takes by itself. */
#define K(name)    portable_##name
#define TABLE      weft__portable
#define TABLE_NAME "portable"
#include "core/cpu_tier.h"
