/* tier.h - the fast back ends, one source for all: generic.c, avx2.c and avx512.c define K, TABLE and
 * TABLE_NAME, include this, and are compiled for their instruction set. What has no fast version is the plain loop, vectorised by
 * the compiler. */
#define FAST
#include "core/cpu/fast/pointwise.inc"
#include "core/cpu/fast/sums.inc"
#include "core/cpu/fast/index.inc"
#include "core/cpu/fast/gemm.inc"
#include "core/cpu/fast/norm.inc"
#include "core/cpu/fast/losses.inc"
#include "core/cpu/fast/attention_back.inc"
#include "core/cpu/fast/recur.inc"
#include "core/cpu/fast/optimisers.inc"
#include "core/cpu/table.h"
