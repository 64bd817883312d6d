/* failing_malloc.c - makes allocations of the library fail, in every test program: see failing_malloc.h. */
#include "tests/failing_malloc.h"
#include <errno.h>
#include <link.h>
#include "core/inside.h"

struct failing failing;

void fail_take(const weft *w, int64_t n) { weft__failing_take = (struct weft__failing_take){ w, n }; }
bool takes_left(const weft *w) { return w == weft__failing_take.w && weft__failing_take.left > 0; }

#if COUNTED
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static struct { uintptr_t from, to; } library;   /* the code of the library */

/* Finds the segment that holds weft_open: of the shared library, or of a program with the archive in it. */
static int find_library(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + object->dlpi_phdr[i].p_memsz;
        bool code = object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X;
        if (code && (uintptr_t)weft_open >= from && (uintptr_t)weft_open < to) {
            library.from = from;
            library.to = to;
            return 1;
        }
    }
    return 0;
}

static bool fails(const void *caller, size_t n)
{
    if (!failing.armed)
        return false;
    if (!library.to)
        dl_iterate_phdr(find_library, NULL);
    if ((uintptr_t)caller < library.from || (uintptr_t)caller >= library.to)
        return false;
    failing.largest = n > failing.largest ? n : failing.largest;
    if (++failing.seen != failing.at)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return fails(__builtin_return_address(0), n) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    return fails(__builtin_return_address(0), n * m) ? NULL : __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    return fails(__builtin_return_address(0), n) ? NULL : __libc_realloc(p, n);
}
#endif
