/* cpu_ref.c - the back end "ref": plain loops on one thread, the specification that all others are tested against. */
#define K(name) ref_##name
#include "core/loops_pointwise.h"
#include "core/loops_sums.h"
#include "core/loops_index.h"
#include "core/loops_products.h"
#include "core/loops_norm.h"
#include "core/loops_losses.h"
#include "core/loops_recur.h"
#include "core/loops_optimisers.h"
#define TABLE      weft__ref
#define TABLE_NAME "ref"
#include "core/cpu_table.h"
