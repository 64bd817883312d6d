/* path.c - paths: of an HDF5 file, which its signature proves, and in it, of groups and data sets. */
#include <string.h>
#include <unistd.h>
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

weft_status weft__h5_signature(const char *path, const unsigned char *bytes, size_t head, size_t size)
{
    static const char sign[] = "\211HDF\r\n\032\n";
    enum { N = sizeof sign - 1 };
    char at[N];
    int file = -1;
    bool found = head >= N && !memcmp(bytes, sign, N);
    weft_status s = found ? WEFT_OK : weft__open_file(path, &file, &size);
    for (size_t base = 512; !found && !s && base < size; base *= 2)      /* behind a user block */
        found = pread(file, at, N, (off_t)base) == N && !memcmp(at, sign, N);
    if (file >= 0)
        close(file);
    if (s || found)
        return s;
    return weft__file_fail(WEFT_EFORMAT, "%s is not an HDF5 file: none begins at byte 0, 512, 1024 or so on",
                           path);
}
