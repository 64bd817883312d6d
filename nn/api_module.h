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
/* Makes a module below another. A name has 1 to 63 bytes, no dots and no slashes, and is unique in
 * the parent. Errors: a bad name or one that the parent has. The module is then inert, as with a
 * parent of NULL. Like Module.add_module. */
WEFT_API weft_module *weft_submodule_new(weft_module *parent, const char *name);
/* Returns the context of a module, also a failed one; NULL if m is NULL or inert. */
WEFT_API weft *weft_module_context(const weft_module *m);

/* ---- buffers ---- */
/* Returns the number of buffers in m and all modules below it. Like len(list(m.buffers())). */
WEFT_API int weft_buffer_count(const weft_module *m);
/* Returns buffer i below m, 0 .. weft_buffer_count(m) - 1, in the order of their creation. *path,
 * unless path is NULL: its path below m, valid until weft_close. Errors: no such i; returns an
 * inert tensor, and *path is "". Like m.named_buffers(). */
WEFT_API weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path);

#ifdef __cplusplus
}
#endif
#endif
