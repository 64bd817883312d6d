/* folder_write.c - writes a folder of files that belong together, whole or not at all: into a new folder
 * next to the place, which is renamed when it is complete. An old folder is replaced only if weft wrote
 * it: it has exactly these files, all of them regular, and the last one begins with the mark. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/io.h"

typedef struct {
    const char *const *files; int n;
    const char *mark;                            /* the first bytes of the last file */
    weft__write_one *write; const void *user;
} work;

static weft_status cannot(const char *folder, int why)
{
    return weft__file_fail(why == ENOMEM ? WEFT_ENOMEM : WEFT_EIO,
                           "%.500s cannot be written: %s; what was there is as it was", folder,
                           strerror(why));
}

/* to be freed; NULL: no memory */
static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static void remove_files(const char *folder, const work *w)
{
    for (int i = 0; i < w->n; i++) {
        char *path = join(folder, w->files[i]);
        if (path)
            unlink(path);
        free(path);
    }
    rmdir(folder);
}

static weft_status write_files(const char *folder, const work *w)
{
    weft_status s = WEFT_OK;
    for (int i = 0; !s && i < w->n; i++) {
        char *path = join(folder, w->files[i]);
        s = path ? w->write(path, i, w->user) : cannot(folder, ENOMEM);
        free(path);
    }
    return s;
}

static bool begins_with(const char *path, const char *mark)
{
    char bytes[64];
    size_t n = strlen(mark);
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool good = file >= 0 && n <= sizeof bytes && read(file, bytes, n) == (ssize_t)n &&
                !memcmp(bytes, mark, n);
    if (file >= 0)
        close(file);
    return good;
}

/* Whether an entry is one of the files, and a regular one. */
static bool is_part(int folder, const char *name, const work *w)
{
    struct stat s;
    for (int i = 0; i < w->n; i++)
        if (!strcmp(name, w->files[i]))
            return fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode);
    return false;
}

static weft_status foreign(const char *folder, const char *what, const char *name)
{
    return weft__file_fail(WEFT_EIO,
                           "%.500s cannot be written: %s%.200s. It was left as it was; move it away, or "
                           "choose another folder",
                           folder, what, name);
}

/* Refuses a folder that holds anything that weft did not write. An empty or missing one is fine. */
static weft_status check_old(const char *folder, const work *w)
{
    DIR *d = opendir(folder);
    if (!d)
        return errno == ENOENT ? WEFT_OK : cannot(folder, errno);
    weft_status s = WEFT_OK;
    int parts = 0;
    for (struct dirent *e; !s && (e = readdir(d)); ) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (!is_part(dirfd(d), e->d_name, w))
            s = foreign(folder, "it exists and holds something that weft did not write, ", e->d_name);
        parts++;
    }
    closedir(d);
    if (s || !parts)
        return s;
    char *last = join(folder, w->files[w->n - 1]);
    if (!last)
        return cannot(folder, ENOMEM);
    if (parts < w->n || !begins_with(last, w->mark))
        s = foreign(folder, "it exists, and its files were not written by weft", "");
    free(last);
    return s;
}

/* Gives `made` the place of `folder`. An old folder then is where `made` was; if something came into it after
 * it was checked, it goes back, or stays there and *kept is set. */
static weft_status replace(const char *made, const char *folder, const work *w, bool *kept)
{
    if (rename(made, folder) == 0)
        return WEFT_OK;
    weft_status s = errno == ENOTEMPTY || errno == EEXIST ? check_old(folder, w) : cannot(folder, errno);
    if (s)
        return s;
    if (renameat2(AT_FDCWD, made, AT_FDCWD, folder, RENAME_EXCHANGE))
        return cannot(folder, errno);
    s = check_old(made, w);
    *kept = s && renameat2(AT_FDCWD, made, AT_FDCWD, folder, RENAME_EXCHANGE);
    if (*kept)
        s = weft__file_fail(WEFT_EIO, "%.400s is written; the old one changed meanwhile and is now %.400s",
                            folder, made);
    return s;
}

/* So that the new name survives a power cut; some file systems cannot. */
static void sync_parent(const char *folder)
{
    char *parent = join(folder, "..");
    int d = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (d >= 0) {
        (void)!fsync(d);
        close(d);
    }
    free(parent);
}

/* Writes into a private folder next to the place. The new folder in it has the mode of any new folder. */
static weft_status write_beside(const char *folder, const work *w)
{
    char *own = NULL;
    const char *slash = strrchr(folder, '/');
    if (asprintf(&own, "%.*s.weft-tmp-XXXXXX", slash ? (int)(slash + 1 - folder) : 0, folder) < 0)
        return cannot(folder, ENOMEM);
    if (!mkdtemp(own)) {
        weft_status s = cannot(folder, errno);
        free(own);
        return s;
    }
    char *made = join(own, "whole");
    weft_status s = !made             ? cannot(folder, ENOMEM) :
                    mkdir(made, 0777) ? cannot(folder, errno) :
                                        write_files(made, w);
    bool kept = false;
    if (!s)
        s = replace(made, folder, w, &kept);
    if (!s)
        sync_parent(folder);
    if (made && !kept)
        remove_files(made, w);
    rmdir(own);
    free(made);
    free(own);
    return s;
}

weft_status weft__write_folder(const char *folder, const char *const *files, int n, const char *mark,
                               weft__write_one *write, const void *user)
{
    const work w = { files, n, mark, write, user };
    char *place = realpath(folder, NULL);        /* links are followed */
    if (!place)
        place = strdup(folder);
    if (!place)
        return cannot(folder, ENOMEM);
    for (size_t end = strlen(place); end > 1 && place[end - 1] == '/'; )
        place[--end] = 0;
    weft_status s = check_old(place, &w);
    if (!s)
        s = write_beside(place, &w);
    free(place);
    return s;
}
