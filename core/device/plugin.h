/* plugin.h - what a back end in a shared library of its own returns from the one function that it exports.
 * The library asks for all of it and takes the back end only if the contract is the same on both sides. */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H
#include "core/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif
/* counts changes of kernels.def and kernels.h that sizes do not show */
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
