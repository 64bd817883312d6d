/* path.c - places in a file by the names that a program gives: a group, and what lies in it. */
#include <string.h>
#include "io/hdf5/hdf5.h"

bool weft__h5_join(char path[WEFT__H5_PATH], const char *group, const char *name)
{
    enum { ROOM = WEFT__H5_PATH };
    size_t at = 0, n;
    for (const char *part = group ? group : ""; *part && at < ROOM; part += n + (part[n] == '/')) {
        n = strcspn(part, "/");
        if (n > 1 || (n == 1 && *part != '.'))
            at += (size_t)snprintf(path + at, ROOM - at, "%.*s/", n < ROOM ? (int)n : ROOM, part);
    }
    return at < ROOM && snprintf(path + at, ROOM - at, "%s", name) < ROOM - (int)at;
}

void weft__h5_groups(weft__h5 *h, const char *path)
{
    char group[WEFT__H5_PATH];
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        snprintf(group, sizeof group, "%.*s", (int)(end - path), path);
        weft__h5_group(h, group);
    }
}
