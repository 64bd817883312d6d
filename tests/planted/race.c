/* race.c - a planted bug: all tasks of the pool write one plain counter. ThreadSanitizer must find it, in a
 * plain main. */
#include "core/inside.h"

static void count(void *argument, int64_t i) { *(int64_t *)argument += i; }

int main(void)
{
    weft   *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 3 });
    int64_t sum = 0;
    for (int round = 0; round < 100; round++)
        weft__parallel(&w->dev, 1000, count, &sum);
    printf("%lld\n", (long long)sum);
    weft_close(w);
    return 0;
}
