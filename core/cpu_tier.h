/* cpu_tier.h - the fast back ends, one source for all: cpu_portable.c, cpu_avx2.c and cpu_avx512.c define K, TABLE and
 * TABLE_NAME, include this, and are compiled for their instruction set. What has no fast_ version is the plain loop, vectorised by
 * the compiler. */
#include "core/loops_pointwise.h"
#include "core/loops_sums.h"
#include "core/loops_index.h"
#include "core/loops_products.h"
#include "core/loops_norm.h"
#include "core/loops_losses.h"
#include "core/loops_recur.h"
#include "core/loops_optimisers.h"
#include "core/cpu_table.h"
