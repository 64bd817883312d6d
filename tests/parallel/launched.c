/* launched.c - says who has started this rank and what it takes of the machine: the launcher's process and
 * name, threads by default, processors that it is bound to, its number on this machine and among all. */
#include <stdio.h>
#include <string.h>
#include "core/inside.h"

int main(void)
{
    char path[64], name[64] = "?";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)weft__launcher());
    FILE *file = fopen(path, "r");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = 0;
    if (file)
        fclose(file);
    printf("%d %s threads %d CPUs %d local rank %d rank %d\n", (int)weft__launcher(), name, weft__cores(),
           weft__cpus(), weft__local_rank(), weft__launched_rank());
    return 0;
}
