/* api_module.h - modules inside modules, for authors of layers.
 *
 * Contents: modules inside modules, buffers. */
#ifndef WEFT_API_MODULE_H
#define WEFT_API_MODULE_H
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules inside modules ---- */
/* Makes a module below another. The rules for names are those of weft_module_new. Like
 * Module.add_module. */
WEFT_API weft_module *weft_submodule_new(weft_module *parent, const char *name);
/* Returns the context of a module. */
WEFT_API weft *weft_module_context(const weft_module *m);

/* ---- buffers ---- */
/* Returns the number of buffers below m. Like len(list(m.buffers())). */
WEFT_API int weft_buffer_count(const weft_module *m);
/* Returns buffer i below m, in the order of their creation. *path: as for weft_parameter_at.
 * Errors: no such i. Like m.named_buffers(). */
WEFT_API weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path);

#ifdef __cplusplus
}
#endif
#endif
