/* plans.h - the common parts of the tests of planners: random lengths and options, and plans with their
 * measures. */
#ifndef WEFT_TEST_PLANS_H
#define WEFT_TEST_PLANS_H
#include "tests/check.h"

#define PLANS(e)          cr_assert_eq((e), WEFT_OK, "%s: %s", #e, weft_plan_message())
#define REFUSED(e, st, part)                                                                              \
    do {                                                                                                  \
        cr_assert_eq((e), st, "%s: %s", #e, weft_plan_message());                                         \
        cr_assert(strstr(weft_plan_message(), part), "\"%s\" without \"%s\"", weft_plan_message(), part); \
    } while (0)

/* A plan that is freed at the end of its scope. */
#define PLAN __attribute__((cleanup(weft_plan_free))) weft_plan

/* Returns the plan of n lengths by a planner and its options as text. */
UNUSED static weft_plan plan_of(const char *text, const int32_t *len, int64_t n)
{
    const weft_planner *planner;
    weft_plan_opts o;
    void *memory;
    weft_plan p;
    PLANS(weft_plan_parse(text, &planner, &o, &memory));
    PLANS(weft_plan_make(planner, len, n, &o, &p));
    free(memory);
    return p;
}

/* Fills in random lengths 0 .. longest of one of several distributions. Returns their number. */
UNUSED static int64_t any_lengths(int32_t *len, int64_t most, int32_t longest)
{
    int64_t n = (int64_t)dice((uint64_t)most + 1), kind = (int64_t)dice(6);
    for (int64_t i = 0; i < n; i++)
        len[i] = kind == 0 ? (int32_t)dice((uint64_t)longest + 1) :
                 kind == 1 ? longest / 2 + 1 :
                 kind == 2 ? (dice(2) ? 1 : longest) :
                 kind == 3 ? (int32_t)dice(1 + dice((uint64_t)longest + 1)) :
                 kind == 4 ? longest :
                             (dice(3) ? 1 + (int32_t)dice((uint64_t)longest) : 0);
    return n;
}
#endif
