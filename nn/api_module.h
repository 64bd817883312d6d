/* api_module.h - modules inside modules, for authors of layers.
 *
 * Contents: modules inside modules, buffers. NULL and inert modules are as in api_nn.h. */
#ifndef WEFT_API_MODULE_H
#define WEFT_API_MODULE_H
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules inside modules ---- */
/* Makes a module inside `parent`. A name has 1 to 63 bytes, no dots and no slashes. It is unique
 * among the modules, parameters and buffers of the parent. Errors: a bad or existing name, a path
 * above 255 bytes, parent NULL or inert; returns an inert module. Like Module.add_module. */
WEFT_API weft_module *weft_submodule_new(weft_module *parent, const char *name);
/* Returns the context of a module, even if that context has failed; NULL if m is NULL or inert. */
WEFT_API weft *weft_module_context(const weft_module *m);

/* ---- buffers ---- */
/* Returns the number of buffers in m and all modules below it. Like len(list(m.buffers())). */
WEFT_API int weft_buffer_count(const weft_module *m);
/* Returns buffer i below m, 0 .. weft_buffer_count(m) - 1, in the order of their creation. Sets
 * *path to the buffer's path below m, valid until weft_close; path may be NULL. Errors: no such i;
 * returns an inert tensor and sets *path to "". Like m.named_buffers(). */
WEFT_API weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path);

#ifdef __cplusplus
}
#endif
#endif
