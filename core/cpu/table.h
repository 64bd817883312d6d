/* table.h - a CPU back end's table of kernels, in the order of kernels.def, so a missing kernel does not
 * compile. Each kernel is wrapped: it flushes denormals to zero and restores the caller's mode. */
#include "core/device.h"
#include "core/cpu/rounding.h"

#define SERVICE(result, name, parameters)
#define KERNEL(result, name, parameters, names)           \
    static result K(flushed_##name) parameters            \
    {                                                     \
        const uint64_t before = weft__flush_denormals();  \
        K(name) names;                                    \
        weft__restore_denormals(before);                  \
    }
#include "core/kernels.def"

#define SERVICE(result, name, parameters)       K(name),
#define KERNEL(result, name, parameters, names) K(flushed_##name),
const weft__kernels TABLE = { TABLE_NAME, true,
#include "core/kernels.def"
};
