/* os_macos.c - the operating system of macOS; see os.h. It is compiled by tests, and was never run. */
#ifdef __APPLE__
#include "core/os.h"
#include <crt_externs.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

/* Threads cannot be bound to processors here. */
bool weft__affinity(int process, weft__cpu_set *set)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    memset(set, 0, sizeof *set);
    for (long i = 0; i < n && i < (long)(8 * sizeof *set); i++)
        set->bits[i / 64] |= (uint64_t)1 << i % 64;
    return process == 0 && n > 0;
}

bool weft__allow_tiles(void) { return false; }

bool weft__has_arm_bf16(void)
{
    int has = 0;
    size_t n = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_BF16", &has, &n, NULL, 0) == 0 && has;
}

void *weft__allocate_pages(size_t bytes)        { return malloc(bytes); }
const char *weft__variable(const char *name)    { return issetugid() ? NULL : getenv(name); }
char **weft__environment(void)                  { return issetugid() ? NULL : *_NSGetEnviron(); }
void weft__random_bytes(void *bytes, size_t n)  { arc4random_buf(bytes, n); }

char *weft__own_path(void)
{
    static const char here;
    Dl_info info;
    return dladdr(&here, &info) && *info.dli_fname == '/' ? realpath(info.dli_fname, NULL) : NULL;
}

int weft__open_folder(const char *path) { return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

int weft__open_nameless(int folder)
{
    (void)folder;
    errno = ENOTSUP;
    return -1;
}

bool weft__name_file(int file, int folder, const char *name)
{
    (void)file, (void)folder, (void)name;
    return false;
}

/* Another thread that creates a file at this moment would create it with mode 0600. */
unsigned weft__umask(void)
{
    mode_t mask = umask(0077);
    umask(mask);
    return mask;
}
#else
typedef int weft__os_macos; /* C forbids an empty file */
#endif
