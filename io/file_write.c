/* file_write.c - writes whole files atomically; core/os_files.c says how. */
#include <errno.h>
#include <string.h>
#include "io/io.h"

weft_status weft__write_file(const char *path, const weft__span *spans, int n)
{
    if (!path || !*path)
        return weft__file_fail(WEFT_EARG, "path is NULL or empty; expected the path of a file to write");
    weft__replaced result = weft__replace_file(path, spans, n);
    if (result == WEFT__NOT_REGULAR)
        return weft__file_fail(WEFT_EIO, "%.500s: cannot be written: not a regular file; expected a file or "
                                         "a new name", path);
    if (result == WEFT__NOT_SYNCED)
        return weft__file_fail(WEFT_EIO, "%.500s: written, but a power cut may undo it: %s", path,
                               strerror(errno));
    if (result == WEFT__NOT_WRITTEN)
        return weft__file_fail(errno == ENOMEM ? WEFT_ENOMEM : WEFT_EIO,
                               "%.500s: cannot be written: %s; the old file is unchanged", path,
                               strerror(errno));
    return WEFT_OK;
}

weft_status weft_write_file(const char *path, const void *bytes, size_t size)
{
    if (size && !bytes)
        return weft__file_fail(WEFT_EARG, "weft_write_file: bytes is NULL; expected %zu bytes", size);
    return weft__write_file(path, &(weft__span){ bytes, size }, 1);
}
