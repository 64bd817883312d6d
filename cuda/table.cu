/* table.cu - the back end's table, in the order of kernels.def, and the one function that the plug-in
 * exports. */
#include "cuda/cuda.h"
#include "core/device/plugin.h"

/* Every kernel begins and ends with the caller's own GPU. */
template <auto F> struct visiting;
template <class R, class... A, R (*F)(weft__device *, A...)> struct visiting<F> {
    static R call(weft__device *d, A... a)
    {
        if ((void (*)())F != (void (*)())K(close) && is_orphan(d))
            return R();
        const visit here(context_of(d));
        return F(d, a...);
    }
};
#define SERVICE(result, name, parameters)       visiting<K(name)>::call,
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
static const weft__kernels table = { "cuda", false,
#include "core/kernels.def"
};

const weft__plugin *weft_backend_open_v1(void)
{
    static const weft__plugin us = { WEFT__PLUGIN_ABI, sizeof(real), sizeof(weft__device),
                                     sizeof(weft__kernels), &table };
    return &us;
}
