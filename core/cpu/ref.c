/* ref.c - the back end "ref": plain loops on one thread, the specification for the tests of all others. Parts
 * are included in the order of their dependencies. */
#define K(name) ref_##name
#include <math.h>
#include <string.h>
#include <tgmath.h>
#include "core/cpu/cpu.h"
#include "core/shared/attention.h"
#include "core/shared/ctc.h"
#include "core/shared/functions.h"
#include "core/shared/ints.h"
#include "core/shared/nests.h"
#include "core/shared/recur.h"
#include "core/shared/rules.h"

#include "core/cpu/memory.inc"
#include "core/cpu/pointwise/plain.inc"
#include "core/cpu/rowwise/sums_plain.inc"
#include "core/cpu/indexing/plain.inc"
#include "core/cpu/indexing/ints.inc"
#include "core/cpu/matmul/plain.inc"
#include "core/cpu/rowwise/norm_plain.inc"
#include "core/cpu/rowwise/losses_plain.inc"
#include "core/cpu/rowwise/ctc_plain.inc"
#include "core/cpu/recurrent/plain.inc"
#include "core/cpu/optimisers/plain.inc"
#define TABLE      weft__ref
#define TABLE_NAME "ref"
#include "core/cpu/table.h"
