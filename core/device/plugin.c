/* plugin.c - finds and opens the library's plug-ins, libweft_cuda.so (the library of doubles:
 * libweft_cuda_f64.so) and those of parallel/, in $WEFT_BACKEND_PATH, an absolute path, if that is set; else
 * in the folder of the file that this code was loaded from, by its real path, or in its subfolder weft.
 * Nowhere else: who chooses argv[0] or the working directory, or owns the folder above, does not choose what
 * code runs here. None is ever closed: drivers do not like it. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/inside.h"
#include "core/device/plugin.h"

#ifdef WEFT_DOUBLE
static const char name[] = "libweft_cuda_f64.so";
#else
static const char name[] = "libweft_cuda.so";
#endif
static const weft__kernels *opened;

/* Why: what the loader says of a file that is there. wanted: NULL, or what must be true before it is
 * opened. */
static void *open_in(const char *folder, const char *below, const char *file, weft__wanted *wanted, char *why,
                     size_t size)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", folder, below, file) < 0)
        return NULL;
    bool there = access(path, F_OK) == 0 && (!wanted || wanted(why, size));
    void *library = there ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (there && !library)
        snprintf(why, size, "%s", dlerror());
    free(path);
    return library;
}

/* The folder of the file that this code was loaded from; to be freed, NULL if it is unknown. The loader knows
 * a program by its argv[0], so the kernel is asked; and a library that it has found by a relative path would
 * be another one in another working directory. */
static char *own_folder(void)
{
    Dl_info here;
    struct link_map *map = NULL;
    bool library = dladdr1(name, &here, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name[0];
    const char *file = library ? map->l_name : "/proc/self/exe";
    char *path = *file == '/' ? realpath(file, NULL) : NULL;
    if (path)
        *strrchr(path, '/') = 0;
    return path;
}

static void *find_beside(const char *file, weft__wanted *wanted, char *why, size_t size)
{
    char *own = own_folder();
    if (!own) {
        snprintf(
            why, size,
            "it is not known from where this library was loaded; WEFT_BACKEND_PATH names the folder of %s",
            file);
        return NULL;
    }
    void *library = open_in(own, "", file, wanted, why, size);
    if (!library && !*why)
        library = open_in(own, "weft/", file, wanted, why, size);
    if (!library && !*why)
        snprintf(why, size, "there is no %s in %s and %s/weft; WEFT_BACKEND_PATH names another folder", file,
                 own, own);
    free(own);
    return library;
}

/* What is wanted of the machine is not asked for one that the environment names: that may be the
 * emulation. */
void *weft__open_plugin(const char *file, weft__wanted *wanted, char *why, size_t size)
{
    const char *needed = secure_getenv("WEFT_BACKEND_PATH");
    if (!needed || !*needed)
        return find_beside(file, wanted, why, size);
    void *library = *needed == '/' ? open_in(needed, "", file, NULL, why, size) : NULL;
    if (*needed != '/')
        snprintf(why, size, "WEFT_BACKEND_PATH=%s: an absolute path is expected", needed);
    else if (!library && !*why)
        snprintf(why, size, "there is no %s/%s, where WEFT_BACKEND_PATH says", needed, file);
    return library;
}

static const weft__kernels *greet(void *library, char *why, size_t size)
{
    const weft__plugin *(*hello)(void) = NULL;
    void *symbol = dlsym(library, "weft_backend_open_v1");
    memcpy(&hello, &symbol, sizeof hello);       /* POSIX says that this works, C does not */
    const weft__plugin *p = hello ? hello() : NULL;
    if (!p)
        snprintf(why, size, "%s has no weft_backend_open_v1", name);
    else if (p->abi != WEFT__PLUGIN_ABI || p->table_bytes != sizeof(weft__kernels) ||
             p->device_bytes != sizeof(weft__device))
        snprintf(why, size,
                 "%s is of another version: contract %d with a table of %d bytes, here %d with %zu", name,
                 p->abi, p->table_bytes, WEFT__PLUGIN_ABI, sizeof(weft__kernels));
    else if (p->real_bytes != sizeof(real))
        snprintf(why, size, "%s computes in numbers of %d bytes, this library in %zu", name, p->real_bytes,
                 sizeof(real));
    else
        return p->kernels;
    return NULL;
}

const weft__kernels *weft__cuda_kernels(char *why, size_t size)
{
    weft__lock(WEFT__LOADING);
    if (!opened) {
        char text[512] = "";
        void *library = weft__open_plugin(name, weft__driver_has_gpu, text, sizeof text);
        opened = library ? greet(library, text, sizeof text) : NULL;
        if (!opened)
            snprintf(why, size, "open: no CUDA back end: %s", text);
    }
    const weft__kernels *k = opened;
    weft__unlock(WEFT__LOADING);
    return k;
}
