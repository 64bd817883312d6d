/* file.c - reads and writes whole files; keeps the message of this thread's last file function that failed.
 *
 * The message belongs to the thread: files are also read without a context, and their failures change no
 * context. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "io/io.h"

/* ---- the message ---- */
static _Thread_local char message[1024];

const char *weft_file_message(void) { return message; }

weft_status weft__file_fail(weft_status status, const char *format, ...)
{
    char text[sizeof message];                   /* an argument may be the last message */
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    memcpy(message, text, sizeof message);
    return status;
}

/* ---- files ---- */
bool weft__ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), k = strlen(ending);
    return n > k && weft__same_letters(path + n - k, ending);
}

static weft_status read_to(const char *path, int file, unsigned char *bytes, size_t from, size_t to)
{
    int64_t n = weft__read_at(file, bytes + from, to - from, (int64_t)from);
    if (n < 0)
        return weft__file_fail(WEFT_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if ((size_t)n < to - from)
        return weft__file_fail(WEFT_EIO,
                               "%s: %zu bytes; expected %zu: the file became shorter while it was "
                               "read, or is a file of /sys or /proc; copy those with cat first",
                               path, from + (size_t)n, to);
    return WEFT_OK;
}

static weft_status read_open(const char *path, int file, size_t all, weft__head *head, unsigned char **bytes,
                             size_t *size)
{
    unsigned char first[WEFT__HEAD + 1];
    size_t n = all < WEFT__HEAD ? all : WEFT__HEAD;
    weft_status status = read_to(path, file, first, 0, n);
    first[n] = 0;
    if (!status && head)
        status = head(path, first, n, all);
    if (status)
        return status;
    unsigned char *p = malloc(all + 1);
    if (!p)
        return weft__file_fail(WEFT_ENOMEM, "%s: no memory for its %zu bytes", path, all);
    memcpy(p, first, n);
    status = read_to(path, file, p, n, all);
    if (status) {
        free(p);
        return status;
    }
    p[all] = 0;
    *bytes = p;
    *size = all;
    return WEFT_OK;
}

/* A file of /proc has size 0 whatever its content. All readers trust the size, so they refuse such a file. */
static weft_status check_regular(const char *path, int file, int64_t size)
{
    char byte;
    if (size < 0)
        return weft__file_fail(WEFT_EFORMAT, "%s: not a regular file; expected a file, not a folder or a "
                                             "device", path);
    int64_t more = size ? 0 : weft__read_at(file, &byte, 1, 0);
    if (more < 0)
        return weft__file_fail(WEFT_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (more)
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: size 0, but it has content, as files of /proc; expected the real size; "
                               "copy it with cat, and read the copy",
                               path);
    return WEFT_OK;
}

weft_status weft__open_file(const char *path, int *file, size_t *size)
{
    *file = -1;
    if (!path || !*path)
        return weft__file_fail(WEFT_EARG, "path is NULL or empty; expected the path of a file to read");
    int64_t bytes;
    int opened = weft__open_to_read(path, &bytes);
    if (opened < 0)
        return weft__file_fail(errno == ENOENT ? WEFT_ENOENT : WEFT_EIO, "%s: cannot be read: %s", path,
                               strerror(errno));
    weft_status status = check_regular(path, opened, bytes);
    if (status) {
        weft__close_file(opened);
        return status;
    }
    *file = opened;
    *size = (size_t)bytes;
    return WEFT_OK;
}

weft_status weft__read_file(const char *path, weft__head *head, unsigned char **bytes, size_t *size)
{
    int file;
    size_t all;
    weft_status status = weft__open_file(path, &file, &all);
    if (status)
        return status;
    status = read_open(path, file, all, head, bytes, size);
    weft__close_file(file);
    return status;
}

/* ---- writing; core/os_files.c says how ---- */
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
