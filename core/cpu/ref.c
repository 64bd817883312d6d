/* ref.c - the back end "ref": plain loops on one thread, the specification that all others are tested
 * against. The parts stand in the order in which they use each other. */
#define K(name) ref_##name
#include <math.h>
#include <string.h>
#include <tgmath.h>
#include "core/cpu/cpu.h"
#include "core/shared/attention.h"
#include "core/shared/functions.h"
#include "core/shared/ints.h"
#include "core/shared/nests.h"
#include "core/shared/recur.h"
#include "core/shared/rules.h"

#include "core/cpu/loops/memory.inc"
#include "core/cpu/loops/pointwise.inc"
#include "core/cpu/loops/sums.inc"
#include "core/cpu/loops/index.inc"
#include "core/cpu/loops/ints.inc"
#include "core/cpu/loops/products.inc"
#include "core/cpu/loops/norm.inc"
#include "core/cpu/loops/losses.inc"
#include "core/cpu/loops/recur.inc"
#include "core/cpu/loops/optimisers.inc"
#define TABLE      weft__ref
#define TABLE_NAME "ref"
#include "core/cpu/table.h"
