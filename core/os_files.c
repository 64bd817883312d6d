/* os_files.c - opens, reads, writes and replaces files; see os.h.
 *
 * Replacing writes the bytes to a new file in the same folder and to the disk, and renames the file. After
 * any failure or kill the path has the old file or the new one.
 *
 * The new file has no name while it is written, so a killed program leaves nothing. Just before the rename
 * it gets a name, ".weft-tmp-" and random digits. File systems without nameless files (NFS, those of macOS)
 * give it that name from the start. It is created with mode 0600, so two writers of one path never share a
 * file, and others cannot read it before it has the mode of the file that it replaces. A writer deletes only
 * the file that it has created. It never removes files of other writers, because a name does not prove the
 * owner. */
#include "core/os.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100, LINKS = 40, PIECE = 1 << 30 }; /* names to try; links to follow; bytes of one call */

/* ---- reading ---- */
bool weft__file_exists(const char *path) { return access(path, F_OK) == 0; }
void weft__close_file(int file)          { close(file); }
void weft__make_folder(const char *path) { mkdir(path, 0700); }

int weft__open_to_read(const char *path, int64_t *size)
{
    struct stat s;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && fstat(file, &s)) {
        int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    if (file >= 0)
        *size = S_ISREG(s.st_mode) ? (int64_t)s.st_size : -1;
    return file;
}

int64_t weft__read_at(int file, void *bytes, size_t n, int64_t offset)
{
    size_t done = 0;
    while (done < n) {
        size_t piece = n - done < PIECE ? n - done : PIECE;
        ssize_t received = pread(file, (char *)bytes + done, piece, (off_t)(offset + (int64_t)done));
        if (received < 0 && errno != EINTR)
            return -1;
        if (received == 0)
            break;
        done += received > 0 ? (size_t)received : 0;
    }
    return (int64_t)done;
}

/* ---- writing ---- */
int weft__open_to_append(const char *path, bool empty, bool *cut)
{
    char last = '\n';
    int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (empty ? O_TRUNC : 0), 0666);
    off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    *cut = size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
    return file;
}

size_t weft__write_all(int file, const void *bytes, size_t size)
{
    /* at a limit of the file size the kernel sends a signal that ends the program */
    sigset_t limit, before, pending, now;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    sigpending(&pending);
    size_t written = 0;
    int error = 0, number;
    while (written < size && !error) {
        size_t piece = size - written < PIECE ? size - written : PIECE;
        ssize_t n = write(file, (const char *)bytes + written, piece);
        error = n < 0 && errno != EINTR ? errno : 0;
        written += n > 0 ? (size_t)n : 0;
    }
    if (error == EFBIG && !sigismember(&pending, SIGXFSZ) && !sigpending(&now) && sigismember(&now, SIGXFSZ))
        sigwait(&limit, &number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* ---- the target of links ---- */
typedef struct target {
    char *path;                                  /* without links */
    const char *base;                            /* its last part */
    int folder;                                  /* open; names are relative to it */
    bool exists;
    struct stat old;
    char temporary[32];                          /* name of the new file; "" without one */
} target;

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

/* Returns whether the path can be replaced. The folder is opened. */
static weft__replaced find_target(target *t, const char *path)
{
    *t = (target){ .folder = -1, .path = resolve_links(path) };
    if (!t->path)
        return WEFT__NOT_WRITTEN;
    const char *slash = strrchr(t->path, '/');
    char *folder = slash ? strndup(t->path, (size_t)(slash + 1 - t->path)) : strdup(".");
    t->base = slash ? slash + 1 : t->path;
    t->folder = folder ? weft__open_folder(folder) : -1;
    int error = errno;
    free(folder);
    errno = error;
    if (t->folder < 0)
        return WEFT__NOT_WRITTEN;
    /* an analyzer reports t->path as leaked if t->old is filled directly */
    struct stat old = { 0 };
    t->exists = *t->base == 0 || fstatat(t->folder, t->base, &old, AT_SYMLINK_NOFOLLOW) == 0;
    t->old = old;
    return t->exists && !S_ISREG(t->old.st_mode) ? WEFT__NOT_REGULAR : WEFT__REPLACED;
}

/* ---- the new file ---- */
/* Creates the file under a new name, or gives a new name to `file` if that is 0 or more. Returns the file;
 * -1, with errno. */
static int create_name(target *t, int file)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t chance = 0;
        weft__random_bytes(&chance, sizeof chance);
        snprintf(t->temporary, sizeof t->temporary, ".weft-tmp-%016llx", (unsigned long long)chance);
        int made = file >= 0 ? (weft__name_file(file, t->folder, t->temporary) ? file : -1) :
                               openat(t->folder, t->temporary,
                                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (made >= 0)
            return made;
        *t->temporary = 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Gives the new file group, mode and owner of the old one, as far as allowed and supported. If the group
 * cannot be kept, our group gets the rights of all others. */
static void copy_attributes(int file, const target *t)
{
    mode_t mode = t->exists ? t->old.st_mode & 0777 : 0666 & ~(mode_t)weft__umask();
    struct stat s;
    bool other = t->exists && fstat(file, &s) == 0;
    if (other && s.st_gid != t->old.st_gid && fchown(file, (uid_t)-1, t->old.st_gid))
        mode = (mode_t)((mode & 0707) | (mode & 0007) << 3);
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

static weft__replaced replace(target *t, const weft__span *spans, int n)
{
    int file = weft__open_nameless(t->folder);
    if (file < 0 && (file = create_name(t, -1)) < 0)
        return WEFT__NOT_WRITTEN;
    bool ok = write_spans(file, t, spans, n) && move_into_place(t, file);
    int error = errno;
    if (!ok && *t->temporary)
        unlinkat(t->folder, t->temporary, 0);
    close(file);
    errno = error;
    return !ok ? WEFT__NOT_WRITTEN : sync_folder(t) ? WEFT__REPLACED : WEFT__NOT_SYNCED;
}

weft__replaced weft__replace_file(const char *path, const weft__span *spans, int n)
{
    target t;
    weft__replaced result = find_target(&t, path);
    if (result == WEFT__REPLACED)
        result = replace(&t, spans, n);
    int error = errno;
    if (t.folder >= 0)
        close(t.folder);
    free(t.path);
    errno = error;
    return result;
}
