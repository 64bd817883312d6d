/* starve_malloc.c - fails the STARVE_AT-th allocation of the code named in STARVE_IN; preloaded by starve.sh.
 * Default: the program, which contains the library. "libc.so" or "libhdf5" select shared libraries by name.
 * The number of allocations is written to STARVE_SEEN. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static struct { uintptr_t from, to; } code[16];
static int codes;
static long fail_at;
static atomic_long seen;

static int note(struct dl_phdr_info *about, size_t size, void *needed)
{
    (void)size;
    bool program = !about->dlpi_name[0];
    if (needed ? program || !strstr(about->dlpi_name, needed) : !program)
        return 0;
    for (int i = 0; i < about->dlpi_phnum && codes < 16; i++)
        if (about->dlpi_phdr[i].p_type == PT_LOAD && about->dlpi_phdr[i].p_flags & PF_X) {
            code[codes].from = about->dlpi_addr + about->dlpi_phdr[i].p_vaddr;
            code[codes].to = code[codes].from + about->dlpi_phdr[i].p_memsz;
            codes++;
        }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("STARVE_AT"), *in = getenv("STARVE_IN");
    fail_at = at ? strtol(at, NULL, 10) : 0;
    dl_iterate_phdr(note, (void *)(uintptr_t)(in && *in ? in : NULL));
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    const char *path = getenv("STARVE_SEEN");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    int n = snprintf(text, sizeof text, "%ld\n", atomic_load(&seen));
    if (file >= 0 && write(file, text, (size_t)n) == n)
        close(file);
}

static bool fails(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    for (int i = 0; i < codes; i++)
        if (at >= code[i].from && at < code[i].to && atomic_fetch_add(&seen, 1) + 1 == fail_at) {
            errno = ENOMEM;
            return true;
        }
    return false;
}

#define STARVES fails(__builtin_return_address(0))
void *malloc(size_t n)                  { return STARVES ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m)        { return STARVES ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n)        { return STARVES ? NULL : __libc_realloc(p, n); }
void *memalign(size_t a, size_t n)      { return STARVES ? NULL : __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return STARVES ? NULL : __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n)
{
    *p = STARVES ? NULL : __libc_memalign(a, n);
    return *p ? 0 : ENOMEM;
}
