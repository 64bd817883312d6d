/* measure.c - clocks, the CPU's name, and quantiles of measured numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tools/tools.h"

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double seconds_now(void) { return seconds_of(CLOCK_MONOTONIC); }
double cpu_seconds(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

void cpu_model(char *name, size_t size)
{
    char line[512], *found = NULL;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
    if (f)
        fclose(f);
    line[found ? strcspn(line, "\n") : 0] = 0;
    snprintf(name, size, "%s", found && found[1] ? found + 2 : "unknown");
}

void date_now(const char *format, char date[32])
{
    time_t now = time(NULL);
    struct tm day;
    strftime(date, 32, format, gmtime_r(&now, &day));
}

int by_length(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *x, int n, double q)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    double position = q * (n - 1), low = floor(position);
    int i = (int)low, next = i + 1 < n ? i + 1 : i;
    return x[i] + (position - low) * (x[next] - x[i]);
}
