/* path.c - joins the paths of groups and data sets in HDF5 files, and reads lists. */
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/session.h"

bool weft__h5_join(char path[WEFT__H5_PATH], const char *group, const char *name)
{
    enum { ROOM = WEFT__H5_PATH };
    size_t length = 0, n;
    for (const char *part = group ? group : ""; *part && length < ROOM; part += n + (part[n] == '/')) {
        n = strcspn(part, "/");
        if (n > 1 || (n == 1 && *part != '.'))
            length += (size_t)snprintf(path + length, ROOM - length, "%.*s/", n < ROOM ? (int)n : ROOM, part);
    }
    return length < ROOM && snprintf(path + length, ROOM - length, "%s", name) < ROOM - (int)length;
}

void weft__h5_groups(weft__h5 *h, const char *path)
{
    char group[WEFT__H5_PATH];
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        snprintf(group, sizeof group, "%.*s", (int)(end - path), path);
        weft__h5_group(h, group);
    }
}

void *weft__h5_read_new(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as,
                        int64_t *origin)
{
    size_t n = weft__kind_bytes(kind) / weft__number_bytes(kind->type);
    void *values = calloc(n + 1, weft__number_bytes(as));
    h->origin = origin;
    if (values)
        weft__h5_read(h, path, kind, as, values);
    else
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for the %zu numbers of \"%s\"", n, path);
    h->origin = NULL;
    return values;
}

bool weft__h5_find_list(weft__h5 *h, const char *group, const char *name, bool integers,
                        char path[WEFT__H5_PATH], weft__kind *kind)
{
    char text[128];
    if (!weft__h5_join(path, group, name) || !weft__h5_find(h, path, kind))
        weft__h5_fail(h, WEFT_EFORMAT, "data set \"%.200s\" is not in the file", path);
    else if (kind->rank != 1 || kind->size[0] >= INT32_MAX ||
             !(integers ? weft__number_is_int(kind->type) : weft__number_is_any(kind->type)))
        weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" is %s; expected %s [n]", path,
                      weft__kind_text(kind, text), integers ? "integers" : "numbers");
    return !h->status;
}
