/* file_write.c - writes whole files atomically.
 *
 * The bytes go to a new file in the same folder, then to the disk, and the file is renamed. After any failure
 * or kill the path has the old file or the new one.
 *
 * The new file has no name while it is written (O_TMPFILE), so a killed program leaves nothing. Just before
 * the rename it gets a name, ".weft-tmp-" and random digits. File systems without O_TMPFILE (NFS) give it
 * that name from the start. It is created with mode 0600, so two writers of one path never share a file, and
 * others cannot read it before it has the mode of the file that it replaces. A writer deletes only the file
 * that it has created. It never removes files of other writers, because a name does not prove the owner. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "io/io.h"

enum { TRIES = 100, LINKS = 40 };                 /* names to try; links to follow */

typedef struct target {
    char *path; const char *base;                /* the path without links; its last part */
    int folder;                                  /* open; names are relative to it */
    bool exists; struct stat old;                    /* whether a file exists; its attributes */
    char temporary[32];                          /* name of the new file; "" without one */
} target;

static weft_status write_failed(const char *path, int error)
{
    return weft__file_fail(error == ENOMEM ? WEFT_ENOMEM : WEFT_EIO,
                           "%.500s: cannot be written: %s; the old file is unchanged", path, strerror(error));
}

/* ---- bytes ---- */
size_t weft__write_all(int file, const void *bytes, size_t size)
{
    /* at a limit of the file size the kernel sends a signal that ends the program */
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    sigpending(&pending);
    size_t written = 0;
    int error = 0;
    while (written < size && !error) {
        ssize_t n =
            write(file, (const char *)bytes + written, size - written < 1 << 30 ? size - written : 1 << 30);
        error = n < 0 && errno != EINTR ? errno : 0;
        written += n > 0 ? (size_t)n : 0;
    }
    if (error == EFBIG && !sigismember(&pending, SIGXFSZ))
        while (sigtimedwait(&limit, NULL, &(struct timespec){ 0 }) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* ---- the target of links ---- */
/* to be freed; NULL, with errno: not a link, or memory is short */
static char *read_link(const char *link)
{
    char *to = malloc(PATH_MAX), *path = NULL;
    ssize_t n = to ? readlink(link, to, PATH_MAX - 1) : -1;
    const char *slash = strrchr(link, '/');
    if (n > 0) {
        to[n] = 0;
        if (asprintf(&path, "%.*s%s", *to == '/' || !slash ? 0 : (int)(slash + 1 - link), link, to) < 0)
            path = NULL;
    }
    int error = errno;
    free(to);
    errno = error;
    return path;
}

/* Follows the links of a path, so that the file is replaced and not the link. To be freed; NULL, with
 * errno. */
static char *resolve_links(const char *path)
{
    char *target_path = strdup(path);
    for (int i = 0; target_path && i < LINKS; i++) {
        char *next = read_link(target_path);
        if (!next && errno != ENOMEM)
            return target_path;
        free(target_path);
        target_path = next;
    }
    errno = target_path ? ELOOP : ENOMEM;
    free(target_path);
    return NULL;
}

static weft_status find_target(target *t, const char *path)
{
    *t = (target){ .folder = -1, .path = resolve_links(path) };
    if (!t->path)
        return write_failed(path, errno);
    const char *slash = strrchr(t->path, '/');
    char *folder = slash ? strndup(t->path, (size_t)(slash + 1 - t->path)) : strdup(".");
    t->base = slash ? slash + 1 : t->path;
    t->folder = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int error = errno;
    free(folder);
    if (t->folder < 0)
        return write_failed(path, error);
    /* an analyzer reports t->path as leaked if t->old is filled directly */
    struct stat old = { 0 };
    t->exists = *t->base == 0 || fstatat(t->folder, t->base, &old, AT_SYMLINK_NOFOLLOW) == 0;
    t->old = old;
    if (t->exists && !S_ISREG(t->old.st_mode))
        return weft__file_fail(WEFT_EIO, "%.500s: cannot be written: not a regular file; expected a file or "
                                         "a new name", path);
    return WEFT_OK;
}

static void end_target(target *t)
{
    if (t->folder >= 0)
        close(t->folder);
    free(t->path);
}

/* ---- the new file ---- */
static void choose_name(target *t)
{
    uint64_t chance;
    struct timespec now;
    /* soon after booting there may be no random bytes; the name need not be secret */
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance) {
        clock_gettime(CLOCK_REALTIME, &now);
        chance = (uint64_t)now.tv_nsec << 16 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 40;
    }
    snprintf(t->temporary, sizeof t->temporary, ".weft-tmp-%016llx", (unsigned long long)chance);
}

/* Creates the file under a new name, or gives a new name to `file` if that is 0 or more. Returns the file;
 * -1, with errno. */
static int create_name(target *t, int file)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    for (int i = 0; i < TRIES; i++) {
        choose_name(t);
        int made = file < 0 ? openat(t->folder, t->temporary,
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) :
                              linkat(AT_FDCWD, link, t->folder, t->temporary, AT_SYMLINK_FOLLOW);
        if (made >= 0)
            return file < 0 ? made : file;
        *t->temporary = 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Returns a new file, without a name where the file system and /proc allow it. */
static int begin_target(target *t)
{
    int file = openat(t->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0 && access("/proc/self/fd", X_OK) == 0)
        return file;
    if (file >= 0)
        close(file);
    return create_name(t, -1);
}

/* umask() reports the mask only by changing it, for all threads. Without /proc a file is private. */
static mode_t mode_mask(void)
{
    char text[512];
    int status = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = status < 0 ? 0 : read(status, text, sizeof text - 1);
    if (status >= 0)
        close(status);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nUmask:");
    return line ? (mode_t)strtoul(line + 7, NULL, 8) : 0077;
}

/* Gives the new file group, mode and owner of the old one, as far as allowed and supported. If the group
 * cannot be kept, our group gets the rights of all others. */
static void copy_attributes(int file, const target *t)
{
    mode_t mode = t->exists ? t->old.st_mode & 0777 : 0666 & ~mode_mask();
    struct stat s;
    bool other = t->exists && fstat(file, &s) == 0;
    if (other && s.st_gid != t->old.st_gid && fchown(file, (uid_t)-1, t->old.st_gid))
        mode = (mode & 0707) | (mode & 0007) << 3;
    /* a refusal is not a failure: the file has fewer rights, not more */
    (void)!fchmod(file, mode);
    if (other && s.st_uid != t->old.st_uid)
        (void)!fchown(file, t->old.st_uid, (gid_t)-1);
}

static bool write_spans(int file, const target *t, const weft__span *spans, int n)
{
    for (int i = 0; i < n; i++)
        if (weft__write_all(file, spans[i].bytes, spans[i].size) < spans[i].size)
            return false;
    copy_attributes(file, t);
    return fsync(file) == 0;
}

/* ---- rename ---- */
/* makes the new name survive a power cut; some file systems cannot do this */
static bool sync_folder(const target *t)
{
    int d = openat(t->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0)
        return true;
    bool ok = fsync(d) == 0 || errno == EINVAL || errno == ENOTSUP;
    int error = errno;
    close(d);
    errno = error;
    return ok;
}

static bool move_into_place(target *t, int file)
{
    return (*t->temporary || create_name(t, file) >= 0) &&
           renameat(t->folder, t->temporary, t->folder, t->base) == 0;
}

static weft_status replace(target *t, const weft__span *spans, int n)
{
    int file = begin_target(t);
    if (file < 0)
        return write_failed(t->path, errno);
    bool ok = write_spans(file, t, spans, n) && move_into_place(t, file);
    int error = errno;
    if (!ok && *t->temporary)
        unlinkat(t->folder, t->temporary, 0);
    close(file);
    if (!ok)
        return write_failed(t->path, error);
    if (!sync_folder(t))
        return weft__file_fail(WEFT_EIO, "%.500s: written, but a power cut may undo it: %s", t->path,
                               strerror(errno));
    return WEFT_OK;
}

weft_status weft__write_file(const char *path, const weft__span *spans, int n)
{
    target t;
    if (!path || !*path)
        return weft__file_fail(WEFT_EARG, "path is NULL or empty; expected the path of a file to write");
    weft_status s = find_target(&t, path);
    if (!s)
        s = replace(&t, spans, n);
    end_target(&t);
    return s;
}

weft_status weft_write_file(const char *path, const void *bytes, size_t size)
{
    if (size && !bytes)
        return weft__file_fail(WEFT_EARG, "weft_write_file: bytes is NULL; expected %zu bytes", size);
    return weft__write_file(path, &(weft__span){ bytes, size }, 1);
}
