/* file.c - whole files. A file appears at once or not at all: the bytes go to a temporary file beside it, to the disk, and are renamed
 * into place; whatever fails, and whenever the process is killed, the old file or the new one is there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/io.h"

/* ---- writing ---- */
static bool write_all(int file, const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(file, bytes, size < 1 << 30 ? size : 1 << 30);
        if (n < 0 && errno != EINTR)
            return false;
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool fill_file(const char *name, mode_t mode, const weft__span *spans, int n)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    bool good = file >= 0 && (!mode || fchmod(file, mode) == 0);
    for (int i = 0; i < n && good; i++)
        good = write_all(file, spans[i].bytes, spans[i].size);
    good = good && fsync(file) == 0;
    int why = errno;
    if (file >= 0 && close(file) && good)
        return false;
    errno = why;
    return good;
}

static bool is_dead(const char *digits)          /* the process of that number */
{
    char *end;
    long id = strtol(digits, &end, 10);
    return end != digits && !*end && id > 0 && id <= INT_MAX && kill((pid_t)id, 0) && errno == ESRCH;
}

static void sweep(const char *folder, const char *base)           /* temporaries of processes that were killed while they wrote */
{
    DIR *d = opendir(folder);
    size_t n = strlen(base);
    for (struct dirent *e; d && (e = readdir(d)); )
        if (!strncmp(e->d_name, base, n) && !strncmp(e->d_name + n, ".tmp.", 5) && is_dead(e->d_name + n + 5))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

static bool sync_folder(const char *folder)      /* so that the new name survives a power cut; some file systems cannot */
{
    int d = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0)
        return true;
    bool good = fsync(d) == 0 || errno == EINVAL || errno == ENOTSUP;
    int why = errno;
    close(d);
    errno = why;
    return good;
}

static weft_status cannot(const char *path, int why)
{
    return weft__file_fail(WEFT_EIO, "%.500s cannot be written: %s; what was there is as it was", path, strerror(why));
}

static weft_status replace(const char *path, const weft__span *spans, int n)
{
    char name[PATH_MAX + 32], folder[PATH_MAX], base[PATH_MAX];
    struct stat old;
    bool is = stat(path, &old) == 0;
    if (is && !S_ISREG(old.st_mode))
        return weft__file_fail(WEFT_EIO, "%s cannot be written: it is not a regular file", path);
    snprintf(name, sizeof name, "%s.tmp.%ld", path, (long)getpid());
    snprintf(folder, sizeof folder, "%s", path);
    snprintf(base, sizeof base, "%s", path);
    const char *in = dirname(folder);
    sweep(in, basename(base));
    if (!fill_file(name, is ? old.st_mode & 0777 : 0, spans, n) || rename(name, path)) {
        int why = errno;
        unlink(name);
        return cannot(path, why);
    }
    if (!sync_folder(in))
        return weft__file_fail(WEFT_EIO, "%s is written, but may not survive a power cut: %s", path, strerror(errno));
    return WEFT_OK;
}

weft_status weft__write_file(const char *path, const weft__span *spans, int n)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;       /* temporaries are named by the process */
    char target[PATH_MAX];
    if (!path || !*path)
        return weft__file_fail(WEFT_EARG, "no path is given for a file to be written");
    if (strlen(path) >= sizeof target)
        return cannot(path, ENAMETOOLONG);
    if (!realpath(path, target))                 /* what a link points to is replaced, not the link */
        snprintf(target, sizeof target, "%s", path);
    pthread_mutex_lock(&one);
    weft_status s = replace(target, spans, n);
    pthread_mutex_unlock(&one);
    return s;
}

/* ---- reading ---- */
static weft_status read_to(const char *path, int file, unsigned char *bytes, size_t from, size_t to)
{
    while (from < to) {
        ssize_t n = read(file, bytes + from, to - from < 1 << 30 ? to - from : 1 << 30);
        if (n < 0 && errno != EINTR)
            return weft__file_fail(WEFT_EIO, "%s cannot be read: %s", path, strerror(errno));
        if (n == 0)
            return weft__file_fail(WEFT_EIO, "%s became shorter while it was read", path);
        from += n > 0 ? (size_t)n : 0;
    }
    return WEFT_OK;
}

static weft_status read_open(const char *path, int file, weft__head *head, unsigned char **bytes, size_t *size)
{
    struct stat s;
    unsigned char first[512];
    if (fstat(file, &s))
        return weft__file_fail(WEFT_EIO, "%s cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return weft__file_fail(WEFT_EFORMAT, "%s is not a regular file", path);
    size_t all = (size_t)s.st_size, n = all < sizeof first ? all : sizeof first;
    weft_status status = read_to(path, file, first, 0, n);
    if (!status)
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
    *bytes = p;
    *size = all;
    return WEFT_OK;
}

weft_status weft__read_file(const char *path, weft__head *head, unsigned char **bytes, size_t *size)
{
    if (!path || !*path)
        return weft__file_fail(WEFT_EARG, "no path is given for a file to be read");
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);         /* a FIFO must not make us wait for a writer */
    if (file < 0)
        return weft__file_fail(errno == ENOENT ? WEFT_ENOENT : WEFT_EIO, "%s cannot be read: %s", path, strerror(errno));
    weft_status status = read_open(path, file, head, bytes, size);
    close(file);
    return status;
}
