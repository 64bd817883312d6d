/* plugin.c - finds and opens libweft_cuda.so: in $WEFT_BACKEND_PATH if that is set, else beside the library (or the program that
 * the library was linked into), else in its subfolder weft, else where the loader looks. It is never closed: drivers do not like it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/core.h"
#include "core/plugin.h"

static const char name[] = "libweft_cuda.so";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const weft__kernels *opened;

static void *open_in(const char *folder, const char *sub, char *why, size_t size)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s%s", folder, sub, name) >= (int)sizeof path)
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library && !why[0])
        snprintf(why, size, "%s", dlerror());
    return library;
}

/* The folder of the file that this code was loaded from, with its slash; "" if unknown. */
static const char *own_folder(char path[4096])
{
    Dl_info here;
    path[0] = 0;
    if (dladdr(name, &here) && here.dli_fname && strchr(here.dli_fname, '/'))
        snprintf(path, 4096, "%.*s", (int)(strrchr(here.dli_fname, '/') + 1 - here.dli_fname), here.dli_fname);
    return path;
}

/* Why: what the loader said of the first file that is there but does not load, else of the last place. Where a plug-in is, the driver is asked for
 * a GPU before it is opened; not of one that the environment names: that may be the emulation. */
static void *find(char *why, size_t size)
{
    const char *wanted = getenv("WEFT_BACKEND_PATH");
    char own[4096];
    if (wanted && *wanted)
        return open_in(wanted, "/", why, size);
    static const char *const below[] = { "", "../", "weft/" };    /* an example lies one folder below the library */
    own_folder(own);
    for (size_t i = 0; own[0] && i < sizeof below / sizeof *below; i++) {
        char none[256] = "", path[4200];
        snprintf(path, sizeof path, "%s%s%s", own, below[i], name);
        if (access(path, F_OK))
            continue;
        if (!weft__driver_has_gpu(why, size))
            return NULL;
        snprintf(path, sizeof path, "%s%s", own, below[i]);
        void *library = open_in(path, "", none, sizeof none);
        if (library)
            return library;
        if (!strstr(none, "No such file"))
            snprintf(why, size, "%s", none);
    }
    return why[0] || !weft__driver_has_gpu(why, size) ? NULL : open_in("", "", why, size);
}

static const weft__kernels *greet(void *library, char *why, size_t size)
{
    const weft__plugin *(*hello)(void) = NULL;
    void *symbol = dlsym(library, "weft_backend_open_v1");
    memcpy(&hello, &symbol, sizeof hello);       /* POSIX says that this works, C does not */
    const weft__plugin *p = hello ? hello() : NULL;
    if (!p)
        snprintf(why, size, "%s has no weft_backend_open_v1", name);
    else if (p->abi != WEFT__PLUGIN_ABI || p->table_bytes != sizeof(weft__kernels) || p->device_bytes != sizeof(weft__device))
        snprintf(why, size, "%s is of another version: contract %d with a table of %d bytes, here %d with %zu", name, p->abi, p->table_bytes,
                 WEFT__PLUGIN_ABI, sizeof(weft__kernels));
    else if (p->real_bytes != sizeof(real))
        snprintf(why, size, "%s computes in numbers of %d bytes, this library in %zu", name, p->real_bytes, sizeof(real));
    else
        return p->kernels;
    return NULL;
}

const weft__kernels *weft__cuda_kernels(char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    if (!opened) {
        char text[256] = "";
        void *library = find(text, sizeof text);
        opened = library ? greet(library, text, sizeof text) : NULL;
        if (!opened)
            snprintf(why, size, "open: no CUDA back end: %s", text);
    }
    const weft__kernels *k = opened;
    pthread_mutex_unlock(&lock);
    return k;
}
