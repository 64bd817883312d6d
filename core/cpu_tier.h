/* cpu_tier.h - the fast back ends, one source for all: cpu_generic.c, cpu_avx2.c and cpu_avx512.c define K, TABLE and
 * TABLE_NAME, include this, and are compiled for their instruction set. What has no fast version is the plain loop, vectorised by
 * the compiler. */
#define FAST
#include "core/fast_pointwise.h"
#include "core/fast_sums.h"
#include "core/fast_index.h"
#include "core/fast_gemm.h"
#include "core/fast_norm.h"
#include "core/fast_losses.h"
#include "core/fast_attention_back.h"
#include "core/fast_recur.h"
#include "core/fast_optimisers.h"
#include "core/cpu_table.h"
