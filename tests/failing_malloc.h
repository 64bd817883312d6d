/* failing_malloc.h - a malloc for tests that fails on request, but only when the library calls it.
 *
 * Readers and writers of files allocate by malloc, not by a context's allocator, so a test makes malloc fail.
 * Calls from libhdf5, Criterion and the test itself never fail. Sanitizers do not allow another malloc: there
 * nothing fails, and COUNTED is 0. */
#ifndef WEFT_TESTS_FAILING_MALLOC_H
#define WEFT_TESTS_FAILING_MALLOC_H
#include "tests/check.h"

#if !CHECK_SANITIZED && defined(__GLIBC__)
#define COUNTED 1
#else
#define COUNTED 0
#endif

extern struct failing {
    bool armed;                                  /* counts calls, and fails number `at` */
    long at;                                     /* number of the call that fails, from 1; 0: none */
    long seen;                                   /* calls counted so far; set to 0 before arming */
    size_t largest;                              /* largest size that was requested, in bytes */
} failing;

/* Calls repeatedly; allocation 1, 2, .. fails. Sets s to the result of each call and runs the body after it.
 * The last call has no allocation left that could fail. */
#define FOR_EACH_FAILURE(s, call)                                                            \
    for (failing.at = 1; failing.seen = 0, failing.armed = true, s = (call),                 \
        failing.armed = false, failing.seen >= failing.at; failing.at++)
#endif
