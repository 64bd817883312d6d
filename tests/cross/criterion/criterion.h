/* criterion.h - the part of Criterion that the tests use, for machines where Criterion does not run: s390x
 * has no package, and under qemu's user mode its processes do not start. cross.sh puts this folder first.
 * run.c has main. */
#ifndef WEFT_TESTS_CROSS_CRITERION_H
#define WEFT_TESTS_CROSS_CRITERION_H
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cr_test {
    const char *suite, *name, *description;
    void (*body)(void), (*init)(void), (*fini)(void);
    double timeout;
    int signal, exit_code;
    bool disabled;
    struct cr_test *next;
} cr_test;
extern cr_test *cr_tests;
/* Prints the failure. Ends the test's process if `ends`. */
void cr_failed(bool ends, const char *file, int line, const char *what, ...);
_Noreturn void cr_skip(void);

#define Test(suite_, name_, ...)                                                                        \
    static void suite_##_##name_##_body(void);                                                          \
    static cr_test suite_##_##name_##_test = { .suite = #suite_, .name = #name_,                        \
                                               .body = suite_##_##name_##_body, __VA_ARGS__ };          \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                               \
    {                                                                                                   \
        suite_##_##name_##_test.next = cr_tests, cr_tests = &suite_##_##name_##_test;                   \
    }                                                                                                   \
    static void suite_##_##name_##_body(void)

/* Gives the suite's tests an init or fini: an entry without a body. */
#define TestSuite(suite_, ...)                                                                          \
    static cr_test suite_##_suite;                                                                      \
    __attribute__((constructor)) static void suite_##_suite_add(void)                                   \
    {                                                                                                   \
        suite_##_suite.next = cr_tests, cr_tests = &suite_##_suite;                                     \
    }                                                                                                   \
    static cr_test suite_##_suite = { .suite = #suite_, .name = "", __VA_ARGS__ }

#define CR_CHECK_(ends, good, ...)                                                 \
    do {                                                                           \
        if (!(good))                                                               \
            cr_failed(ends, __FILE__, __LINE__, #good, "" __VA_ARGS__);            \
    } while (0)
#define cr_assert(good, ...)                CR_CHECK_(true, good, __VA_ARGS__)
#define cr_expect(good, ...)                CR_CHECK_(false, good, __VA_ARGS__)
#define cr_expect_eq(a, b, ...)             CR_CHECK_(false, (a) == (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...)             CR_CHECK_(false, (a) < (b), __VA_ARGS__)
#define cr_expect_null(a, ...)              CR_CHECK_(false, !(a), __VA_ARGS__)
#define cr_assert_not(good, ...)            cr_assert(!(good), __VA_ARGS__)
#define cr_assert_eq(a, b, ...)             cr_assert((a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)            cr_assert((a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)             cr_assert((a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)            cr_assert((a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)             cr_assert((a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)            cr_assert((a) >= (b), __VA_ARGS__)
#define cr_assert_null(a, ...)              cr_assert(!(a), __VA_ARGS__)
#define cr_assert_not_null(a, ...)          cr_assert((a) != NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)         cr_assert(!strcmp(a, b), __VA_ARGS__)
#define cr_assert_str_empty(a, ...)         cr_assert(!*(a), __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)      cr_assert(!memcmp(a, b, n), __VA_ARGS__)
#define cr_assert_float_eq(a, b, most, ...) cr_assert(fabs((double)(a) - (double)(b)) <= (most), __VA_ARGS__)
#define cr_assert_fail(...)                 cr_failed(true, __FILE__, __LINE__, "fail", "" __VA_ARGS__)
#define cr_skip_test(...)                   cr_skip()
#endif
