/* amx_emulated.c - the kernels of amx.c with emulated tiles, to test them on other machines. Only WEFT_ISA
 * selects them. */
#ifndef WEFT_DOUBLE
#define TILES
#define TILES_EMULATED
#define K(name)    amx_emulated_##name
#define TABLE      weft__amx_emulated
#define TABLE_NAME "amx-emulated"
#include "core/cpu/tier.h"
#else
typedef int weft__no_amx_emulated;
#endif
