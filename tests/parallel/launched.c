/* launched.c - prints how this rank was launched and its share of the machine: launcher process and name,
 * default threads, processors that it is bound to, local and global rank. */
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
