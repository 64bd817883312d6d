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
/* Makes a module below another. The rules for names and failure are those of weft_module_new, and a
 * parent of NULL gives an inert module. Like Module.add_module. */
WEFT_API weft_module *weft_submodule_new(weft_module *parent, const char *name);
/* Returns the context of a module, also a failed one; NULL if m is NULL or inert. */
WEFT_API weft *weft_module_context(const weft_module *m);

/* ---- buffers ---- */
/* Returns the number of buffers in m and all modules below it. Like len(list(m.buffers())). */
WEFT_API int weft_buffer_count(const weft_module *m);
/* Returns buffer i below m, 0 .. weft_buffer_count(m) - 1, in the order of their creation. path and
 * Errors: as for weft_parameter_at. Like m.named_buffers(). */
WEFT_API weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path);

#ifdef __cplusplus
}
#endif
#endif
