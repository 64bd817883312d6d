/* plugin.h - the interface of a back end in a shared library, which exports one function. The library uses
 * the back end only if all values agree on both sides. */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H
#include "core/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif
/* incremented for changes of kernels.def and kernels.h that do not change sizes */
enum { WEFT__PLUGIN_ABI = 10 };
typedef struct weft__plugin {
    int32_t abi, real_bytes, device_bytes, table_bytes;
    const weft__kernels *kernels;
} weft__plugin;
WEFT_API const weft__plugin *weft_backend_open_v1(void);
#ifdef __cplusplus
}
#endif
#endif
