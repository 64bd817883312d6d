/* plugin.c - finds and opens the plug-ins: libweft_cuda.so (libweft_cuda_f64.so for doubles) and those of
 * parallel/. If WEFT_BACKEND_PATH, an absolute path, is set, only that folder is searched. Otherwise weft
 * searches the folder of this library by its real path, and its subfolder weft. So argv[0], the
 * working directory and the parent folder cannot decide which code runs. Plug-ins are never closed, because
 * drivers do not support it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/inside.h"
#include "core/device/plugin.h"

#ifdef WEFT_DOUBLE
static const char name[] = "libweft_cuda_f64.so";
#else
static const char name[] = "libweft_cuda.so";
#endif
static const weft__kernels *opened;

/* Opens folder/below + file, or returns NULL. If the file exists, writes the reason. `accepts`, unless it
 * is NULL, checks the machine first. */
static void *open_in(const char *folder, const char *below, const char *file, weft__plugin_check *accepts,
                     char *reason, size_t size)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", folder, below, file) < 0)
        return NULL;
    bool exists = weft__file_exists(path) && (!accepts || accepts(reason, size));
    void *library = exists ? weft__open_library(path, reason, size) : NULL;
    free(path);
    return library;
}

static void *find_next_to_code(const char *file, weft__plugin_check *accepts, char *reason, size_t size)
{
    char *own = weft__own_path();
    if (own)
        *strrchr(own, '/') = 0;
    else {
        snprintf(reason, size,
                 "the folder of this library is unknown; set WEFT_BACKEND_PATH to the folder of %s", file);
        return NULL;
    }
    void *library = open_in(own, "", file, accepts, reason, size);
    if (!library && !*reason)
        library = open_in(own, "weft/", file, accepts, reason, size);
    if (!library && !*reason)
        snprintf(reason, size, "there is no %s in %s and %s/weft; WEFT_BACKEND_PATH names another folder",
                 file, own, own);
    free(own);
    return library;
}

/* A plug-in in WEFT_BACKEND_PATH is opened without the check of the machine: it may be the emulated GPU. */
void *weft__open_plugin(const char *file, weft__plugin_check *accepts, char *reason, size_t size)
{
    const char *needed = weft__variable("WEFT_BACKEND_PATH");
    if (!needed || !*needed)
        return find_next_to_code(file, accepts, reason, size);
    void *library = *needed == '/' ? open_in(needed, "", file, NULL, reason, size) : NULL;
    if (*needed != '/')
        snprintf(reason, size, "WEFT_BACKEND_PATH=%s: expected an absolute path", needed);
    else if (!library && !*reason)
        snprintf(reason, size, "there is no %s/%s; WEFT_BACKEND_PATH names the wrong folder", needed, file);
    return library;
}

/* Returns the plug-in's kernels if its version and types match this library, otherwise NULL. */
static const weft__kernels *check_plugin(void *library, char *reason, size_t size)
{
    const weft__plugin *(*hello)(void) = NULL;
    const weft__plugin *p = weft__find_function(library, "weft_backend_open_v1", &hello) ? hello() : NULL;
    if (!p)
        snprintf(reason, size, "%s has no weft_backend_open_v1", name);
    else if (p->abi != WEFT__PLUGIN_ABI || p->table_bytes != sizeof(weft__kernels) ||
             p->device_bytes != sizeof(weft__device))
        snprintf(reason, size,
                 "%s is of another version: contract %d with a table of %d bytes, here %d with %zu", name,
                 p->abi, p->table_bytes, WEFT__PLUGIN_ABI, sizeof(weft__kernels));
    else if (p->real_bytes != sizeof(real))
        snprintf(reason, size, "%s computes in numbers of %d bytes, this library in %zu", name, p->real_bytes,
                 sizeof(real));
    else
        return p->kernels;
    return NULL;
}

const weft__kernels *weft__cuda_kernels(char *reason, size_t size)
{
    weft__lock(WEFT__LOADING);
    if (!opened) {
        char text[512] = "";
        void *library = weft__open_plugin(name, weft__driver_has_gpu, text, sizeof text);
        opened = library ? check_plugin(library, text, sizeof text) : NULL;
        if (!opened)
            snprintf(reason, size, "open: no CUDA back end: %s", text);
    }
    const weft__kernels *k = opened;
    weft__unlock(WEFT__LOADING);
    return k;
}
