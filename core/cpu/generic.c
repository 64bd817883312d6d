/* generic.c - the fast kernels for the compiler's default instruction set. */
#define K(name)    generic_##name
#define TABLE      weft__generic
#define TABLE_NAME "generic"
#include "core/cpu/tier.h"
