/* tier.h - the fast back ends, compiled once for each instruction set. generic.c, avx2.c, avx512.c and amx.c
 * define K, TABLE and TABLE_NAME and include this file. Parts are included in the order of their
 * dependencies. Kernels without a fast version use the plain loop, vectorised by the compiler. */
#define FAST
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>
#include "core/cpu/cpu.h"
#include "core/cpu/vector.h"
#include "core/shared/attention.h"
#include "core/shared/ctc.h"
#include "core/shared/functions.h"
#include "core/shared/ints.h"
#include "core/shared/nests.h"
#include "core/shared/recur.h"
#include "core/shared/rules.h"

#include "core/cpu/memory.inc"
#include "core/cpu/ranges.inc"
#ifdef TILES
#include "core/cpu/tiles.h"
#endif

#include "core/cpu/pointwise/functions.inc"
#include "core/cpu/pointwise/random.inc"
#include "core/cpu/pointwise/plain.inc"
#include "core/cpu/pointwise/fast.inc"

#include "core/cpu/rowwise/sums_plain.inc"
#include "core/cpu/rowwise/sums_fast.inc"
#include "core/cpu/rowwise/scan.inc"
#include "core/cpu/indexing/plain.inc"
#include "core/cpu/indexing/fast.inc"
#include "core/cpu/indexing/ints.inc"
#include "core/cpu/rowwise/norm_plain.inc"
#include "core/cpu/rowwise/norm_fast.inc"
#include "core/cpu/rowwise/layer_norm.inc"
#include "core/cpu/rowwise/losses_plain.inc"
#include "core/cpu/rowwise/losses_fast.inc"
#include "core/cpu/rowwise/ctc_fast.inc"
#include "core/cpu/rowwise/ctc_plain.inc"

#include "core/cpu/matmul/plain.inc"
#include "core/cpu/matmul/fast.inc"
#include "core/cpu/matmul/many_terms.inc"
#ifdef TILES
#include "core/cpu/matmul/pack_tiles.inc"
#include "core/cpu/matmul/tiles.inc"
#endif
#include "core/cpu/matmul/few_rows.inc"
#include "core/cpu/matmul/kernel.inc"

#include "core/cpu/attention/product.inc"
#include "core/cpu/attention/pieces.inc"
#include "core/cpu/attention/forward.inc"
#include "core/cpu/attention/mean_forward.inc"
#include "core/cpu/attention/backward.inc"
#include "core/cpu/attention/mean_backward.inc"

#include "core/cpu/recurrent/cell.inc"
#include "core/cpu/recurrent/product.inc"
#ifdef TILES
#include "core/cpu/recurrent/product_tiles.inc"
#endif
#include "core/cpu/recurrent/layer.inc"
#include "core/cpu/recurrent/block.inc"
#include "core/cpu/recurrent/small_step.inc"
#include "core/cpu/recurrent/small_layer.inc"
#include "core/cpu/recurrent/kernels.inc"

#include "core/cpu/optimisers/plain.inc"
#include "core/cpu/optimisers/fast.inc"
#include "core/cpu/table.h"
