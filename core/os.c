/* os.c - the operating system of Linux; see os.h. */
#ifdef __linux__
#include "core/os.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- processors ---- */
bool weft__affinity(int process, weft__cpu_set *set)
{
    memset(set, 0, sizeof *set);
    return sched_getaffinity(process, sizeof *set, (cpu_set_t *)(void *)set) == 0;
}

bool weft__allow_tiles(void)
{
#if defined(__x86_64__)
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}

bool weft__has_arm_bf16(void)
{
#if defined(__aarch64__)
    enum { BF16 = 1 << 14 }; /* HWCAP2_BF16 */
    return getauxval(AT_HWCAP2) & BF16;
#else
    return false;
#endif
}

/* ---- memory, environment ---- */
void *weft__allocate_pages(size_t bytes)
{
    enum { HUGE_PAGE = 1 << 21 };
    void *p = NULL;
    if (bytes < 2 * HUGE_PAGE || posix_memalign(&p, HUGE_PAGE, bytes))
        return malloc(bytes);
    madvise(p, bytes, MADV_HUGEPAGE); /* only a hint: without it the pages are small */
    return p;
}

const char *weft__variable(const char *name) { return secure_getenv(name); }
char **weft__environment(void)               { return getauxval(AT_SECURE) ? NULL : environ; }

/* Soon after booting there may be no random bytes. */
void weft__random_bytes(void *bytes, size_t n)
{
    struct timespec now;
    if (getrandom(bytes, n, GRND_NONBLOCK) == (ssize_t)n)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t chance = (uint64_t)now.tv_nsec << 16 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 40;
    memcpy(bytes, &chance, n < sizeof chance ? n : sizeof chance);
}

/* ---- files ---- */
/* For a program the loader knows only argv[0], so /proc/self/exe is used. */
char *weft__own_path(void)
{
    static const char here;
    const char *file = "/proc/self/exe";
#ifdef __GLIBC__
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name[0])
        file = map->l_name;
#else
    Dl_info info, program;
    if (dladdr(&here, &info) && dladdr((void *)(uintptr_t)getauxval(AT_PHDR), &program) &&
        info.dli_fbase != program.dli_fbase)
        file = info.dli_fname;
#endif
    return *file == '/' ? realpath(file, NULL) : NULL;
}

int weft__open_folder(const char *path) { return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); }

/* weft__name_file needs /proc. */
int weft__open_nameless(int folder)
{
    int file = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0 || access("/proc/self/fd", X_OK) == 0)
        return file;
    close(file);
    return -1;
}

bool weft__name_file(int file, int folder, const char *name)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, link, folder, name, AT_SYMLINK_FOLLOW) == 0;
}

/* umask() reports the mask only by changing it, for all threads. */
unsigned weft__umask(void)
{
    char text[512];
    int status = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = status < 0 ? 0 : read(status, text, sizeof text - 1);
    if (status >= 0)
        close(status);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nUmask:");
    return line ? (unsigned)strtoul(line + 7, NULL, 8) : 077;
}
#else
typedef int weft__os_linux; /* C forbids an empty file */
#endif
