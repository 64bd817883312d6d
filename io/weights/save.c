/* save.c - weft_save_weights: writes weights as safetensors or HDF5, the same bytes for the same weights. */
#include <stdlib.h>
#include "io/weights/weights.h"

weft_status weft__weights_save(const char *path, weft__output *list, int64_t n)
{
    for (int64_t i = 0; weft__ends_in(path, ".safetensors") && i < n; i++)
        if (list[i].name[weft__utf8_valid(list[i].name)])
            return weft__file_fail(WEFT_EARG, "%s: the name \"%.200s\" is not UTF-8, as safetensors "
                                   "needs; HDF5 (a path that ends in .h5) takes other bytes", path,
                                   list[i].name);
    for (int64_t i = 0; i < n; i++)
        if (list[i].kind.type >= WEFT__CHARS)
            return weft__file_fail(WEFT_EFORMAT, "%s: %s has numbers that cannot be written; expected "
                                   "integers, or floats of 16 to 64 bits", path, list[i].name);
    if (weft__ends_in(path, ".safetensors"))
        return weft__save_safetensors(path, list, n, NULL);
#ifdef WEFT_IO_NONE
    return weft__file_fail(WEFT_EARG, "%s: this library was built without HDF5 (make IO=none); expected a "
                                      "path that ends in .safetensors", path);
#else
    if (weft__ends_in(path, ".h5") || weft__ends_in(path, ".hdf5"))
        return weft__save_hdf5(path, list, n);
    return weft__file_fail(WEFT_EARG, "%s: unknown ending, which selects the format; expected .safetensors, "
                           ".h5 or .hdf5", path);
#endif
}

/* ---- the module ---- */
weft_status weft_save_weights(const char *path, const weft_module *m)
{
    weft_status s = weft__check_storable(m, "weft_save_weights", path);
    if (s)
        return s;
    int64_t n = 0, k = 0;
    for (const weft__parameter *p = NULL; (p = weft__next_name(m, p));)
        n++;
    weft__output *list = calloc((size_t)n + 1, sizeof *list);
    if (!list)
        return weft__file_fail(WEFT_ENOMEM, "%s: no memory for %lld names", path, (long long)n);
    for (const weft__parameter *p = NULL; !s && (p = weft__next_name(m, p)); k++) {
        const weft_tensor *x = &weft__numbers_of(p)->value;
        void *values;
        list[k] = (weft__output){ weft__path_below(p, m), weft__kind_of(x), NULL };
        s = weft__download(path, list[k].name, m->w, &list[k].kind, x->data, &values);
        list[k].values = values;
    }
    if (!s)
        s = weft__weights_save(path, list, n);
    for (int64_t i = 0; i < k; i++)
        free((void *)(uintptr_t)list[i].values);
    free(list);
    return s;
}
