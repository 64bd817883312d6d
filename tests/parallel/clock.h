/* clock.h - the time in seconds, for the transports and measurements of these tests. */
#ifndef WEFT_TEST_CLOCK_H
#define WEFT_TEST_CLOCK_H
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
#endif
