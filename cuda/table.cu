/* table.cu - the table of the back end's kernels, in the order of kernels.def, and the plug-in's only
 * exported function. */
#include "cuda/cuda.h"
#include "core/device/plugin.h"

/* Runs F with the context's GPU as current device, and restores the caller's. */
template <auto F> struct on_device;
template <class R, class... A, R (*F)(weft__device *, A...)> struct on_device<F> {
    static R call(weft__device *d, A... a)
    {
        if ((void (*)())F != (void (*)())K(close) && is_orphan(d))
            return R();
        const device_scope scope(context_of(d));
        return F(d, a...);
    }
};
#define SERVICE(result, name, parameters)       on_device<K(name)>::call,
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
static const weft__kernels table = { "cuda", false,
#include "core/kernels.def"
};

const weft__plugin *weft_backend_open_v1(void)
{
    static const weft__plugin plugin = { WEFT__PLUGIN_ABI, sizeof(real), sizeof(weft__device),
                                         sizeof(weft__kernels), &table };
    return &plugin;
}
