/* tier.h - the fast back ends, one source for all: generic.c, avx2.c, avx512.c and amx.c define K, TABLE and
 * TABLE_NAME, include this, and are compiled for their instruction set. The parts stand in the order in which
 * they use each other. What has no fast version is the plain loop, vectorised by the compiler. */
#define FAST
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>
#include "core/cpu/cpu.h"
#include "core/cpu/vector.h"
#include "core/shared/attention.h"
#include "core/shared/functions.h"
#include "core/shared/ints.h"
#include "core/shared/nests.h"
#include "core/shared/recur.h"
#include "core/shared/rules.h"
#ifdef TILES
#include "core/cpu/tiles.h"
#endif

#include "core/cpu/loops/memory.inc"
#include "core/cpu/fast/ranges.inc"

#include "core/cpu/fast/functions.inc"
#include "core/cpu/fast/random.inc"
#include "core/cpu/loops/pointwise.inc"
#include "core/cpu/fast/pointwise.inc"

#include "core/cpu/loops/sums.inc"
#include "core/cpu/fast/sums.inc"
#include "core/cpu/loops/index.inc"
#include "core/cpu/fast/index.inc"
#include "core/cpu/loops/ints.inc"
#include "core/cpu/loops/norm.inc"
#include "core/cpu/fast/norm.inc"
#include "core/cpu/fast/layer_norm.inc"
#include "core/cpu/loops/losses.inc"
#include "core/cpu/fast/losses.inc"

#include "core/cpu/loops/products.inc"
#include "core/cpu/fast/gemm.inc"
#include "core/cpu/fast/gemm_deep.inc"
#ifdef TILES
#include "core/cpu/fast/split.inc"
#include "core/cpu/fast/gemm_tiles.inc"
#endif
#include "core/cpu/fast/gemm_few.inc"
#include "core/cpu/fast/gemm_kernel.inc"

#include "core/cpu/fast/attention_tile.inc"
#include "core/cpu/fast/attention_deal.inc"
#include "core/cpu/fast/attention.inc"
#include "core/cpu/fast/attention_mean.inc"
#include "core/cpu/fast/attention_back.inc"
#include "core/cpu/fast/attention_mean_back.inc"

#include "core/cpu/fast/recur_cell.inc"
#include "core/cpu/fast/recur_tile.inc"
#ifdef TILES
#include "core/cpu/fast/recur_tiles.inc"
#endif
#include "core/cpu/fast/recur.inc"
#include "core/cpu/fast/recur_block.inc"
#include "core/cpu/fast/recur_units.inc"
#include "core/cpu/fast/recur_small.inc"
#include "core/cpu/fast/recur_kernels.inc"

#include "core/cpu/loops/optimisers.inc"
#include "core/cpu/fast/optimisers.inc"
#include "core/cpu/table.h"
