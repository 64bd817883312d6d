/* generic.c - the fast kernels for the instruction set that the compiler takes by itself. */
#define K(name)    generic_##name
#define TABLE      weft__generic
#define TABLE_NAME "generic"
#include "core/cpu/tier.h"
