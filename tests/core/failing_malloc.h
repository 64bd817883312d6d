/* failing_malloc.h - a program's own malloc, which fails on demand when the call comes from the program
 * itself (the library is linked into it), never from libhdf5 or Criterion: files are read where there may be
 * no context, so io asks malloc and not a context's allocator. Under a sanitizer, whose malloc cannot be
 * replaced, nothing fails (COUNTED is 0). Included once in a program. */
#ifndef WEFT_TESTS_FAILING_MALLOC_H
#define WEFT_TESTS_FAILING_MALLOC_H
#include <errno.h>
#include "tests/check.h"

/* the so-many-th call fails; calls so far; counting while armed */
UNUSED static long fail_at, seen;
UNUSED static bool armed;
UNUSED static size_t most_asked;                 /* the largest of them */

#if !CHECK_SANITIZED && defined(__GLIBC__)
#define COUNTED 1
extern char __executable_start, etext;
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static bool fails(const void *caller, size_t n)
{
    const char *at = caller;
    if (!armed || at < &__executable_start || at >= &etext)
        return false;
    most_asked = n > most_asked ? n : most_asked;
    if (++seen != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)             { return fails(__builtin_return_address(0), n) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m)
{
    return fails(__builtin_return_address(0), n * m) ? NULL : __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
    return fails(__builtin_return_address(0), n) ? NULL : __libc_realloc(p, n);
}
#else
#define COUNTED 0
#endif
#endif
