/* folder_write.c - a folder of files that belong together, written whole or not at all: into a folder of our
 * own beside the place, which is renamed when it is whole. One that is there changes places with it, if it
 * has none but such files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/io.h"

typedef struct { const char *const *files; int n; weft__write_one *write; const void *user; } work;

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

/* Whether nothing else lies there; it is replaced as a whole. */
static weft_status check_old(const char *folder, const work *w)
{
    DIR *d = opendir(folder);
    if (!d)
        return errno == ENOENT ? WEFT_OK : cannot(folder, errno);
    weft_status s = WEFT_OK;
    for (struct dirent *e; !s && (e = readdir(d)); ) {
        bool ours = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
        for (int i = 0; i < w->n; i++)
            ours = ours || !strcmp(e->d_name, w->files[i]);
        if (!ours)
            s = weft__file_fail(
                WEFT_EIO,
                "%.500s cannot be written: \"%.200s\" is there, which is no part of it; "
                "what was there is as it was",
                folder, e->d_name);
    }
    closedir(d);
    return s;
}

/* `made` gets the place of `folder`; what was there comes to where it was made. */
static weft_status replace(const char *made, const char *folder, const work *w)
{
    if (rename(made, folder) == 0)
        return WEFT_OK;
    weft_status s = errno == ENOTEMPTY || errno == EEXIST ? check_old(folder, w) : cannot(folder, errno);
    if (!s && renameat2(AT_FDCWD, made, AT_FDCWD, folder, RENAME_EXCHANGE))
        s = cannot(folder, errno);
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

/* Into a folder of our own that no one else may enter, in it the new one with the rights of any new
 * folder. */
static weft_status write_beside(const char *folder, const work *w)
{
    char *own = NULL;
    if (asprintf(&own, "%s.tmp.XXXXXX", folder) < 0)
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
    if (!s)
        s = replace(made, folder, w);
    if (!s)
        sync_parent(folder);
    if (made)
        remove_files(made, w);
    rmdir(own);
    free(made);
    free(own);
    return s;
}

weft_status weft__write_folder(const char *folder, const char *const *files, int n, weft__write_one *write,
                               const void *user)
{
    const work w = { files, n, write, user };
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
