/* table.h - a CPU back end's table of kernels, in the order of kernels.def: one that was forgotten does
 * not compile. */
#include "core/core.h"

#define KERNEL(result, name, arguments) K(name),
const weft__kernels TABLE = { TABLE_NAME, true,
#include "core/kernels.def"
};
