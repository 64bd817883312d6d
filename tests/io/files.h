/* files.h - the common parts of tests of files: a folder for each test, whole files, and the errors of file
 * functions. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H
#include <sys/wait.h>
#include <unistd.h>
#include "tests/check.h"
#include "tests/zips.h"

/* ---- the folder ---- */
static char folder[64];

/* Returns a path in the folder. Eight buffers are used in turn. */
UNUSED static const char *in_folder(const char *name)
{
    static char path[8][160];
    static int  turn;
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/weft_XXXXXX", P_tmpdir);
        cr_assert_not_null(mkdtemp(folder));
    }
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof *path, "%s/%s", folder, name);
    return path[turn];
}

UNUSED static int files_in_folder(void) { return files_in(folder); }

UNUSED static void end_folder(void)              /* with the files in it */
{
    DIR *d = *folder ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d)); )
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    cr_assert(!d || rmdir(folder) == 0);
    *folder = 0;
}

/* A test with a context w on the CPU, and a folder that is removed at its end. */
#define FOR_FOLDER(w)  for (weft *w = open_on(WEFT_CPU); w; CLEAN(w), end_folder(), w = NULL)
#define FILE_TEST(...) WITH_CONTEXTS(FOR_FOLDER, __VA_ARGS__, .disabled = false)

/* ---- whole files ---- */
/* Returns the content, which is freed by the eighth call from now. */
UNUSED static content lent(content c)
{
    static void *blocks[8];
    static int turn;
    turn = (turn + 1) % COUNT(blocks);
    free(blocks[turn]);
    blocks[turn] = c.at;
    return c;
}

/* Returns the bytes of a file and a 0, which seven more calls do not free. */
UNUSED static content read_bytes(const char *path)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    content b = { NULL, 0 };
    fseek(f, 0, SEEK_END);
    b.n = (size_t)ftell(f);
    rewind(f);
    b.at = calloc(b.n + 1, 1);
    cr_assert(fread(b.at, 1, b.n, f) == b.n);
    fclose(f);
    return lent(b);
}

UNUSED static void write_bytes(const char *path, const void *at, size_t n)
{
    /* a file cut to nothing and written again is synced by some file systems */
    unlink(path);
    FILE *f = fopen(path, "wb");
    cr_assert(f && fwrite(at, 1, n, f) == n && fclose(f) == 0, "%s", path);
}

/* The same in the folder. Returns its path. */
UNUSED static const char *put_bytes(const char *name, const void *at, size_t n)
{
    const char *path = in_folder(name);
    write_bytes(path, at, n);
    return path;
}
UNUSED static const char *put_text(const char *name, const char *text)
{
    return put_bytes(name, text, strlen(text));
}

UNUSED static bool equal_files(const char *a, const char *b)
{
    content x = read_bytes(a), y = read_bytes(b);
    return x.n == y.n && !memcmp(x.at, y.at, x.n);
}

/* A file of tests/golden. The next call overwrites the path. */
UNUSED static const char *golden_path(const char *name)
{
    static char path[400];
    const char *tests = getenv("WEFT_TESTS");
    snprintf(path, sizeof path, "%s/golden/%s", tests ? tests : "tests", name);
    return path;
}

/* A file of another program, written by tests/interchange. */
UNUSED static const char *sample(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "interchange/%s", name);
    return golden_path(path);
}

/* ---- another process ---- */
UNUSED static int ended(pid_t child)             /* its exit status, 256 + the signal that killed it */
{
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- the error of a call ---- */
#define MESSAGE_HAS(part) \
    cr_assert(strstr(weft_file_message(), part), "\"%s\" is not in: %s", part, weft_file_message())

/* Check that a file function succeeds, or fails with this status and a message with this part. */
#define DOES(call)                                                                                      \
    do {                                                                                                \
        weft_status does_ = (call);                                                                     \
        cr_assert(does_ == WEFT_OK, "%s: %s: %s", #call, weft_status_name(does_), weft_file_message()); \
    } while (0)
#define REFUSES(call, kind, part)                                                                          \
    do {                                                                                                   \
        weft_status refuses_ = (call);                                                                     \
        cr_assert(refuses_ == (kind) && strstr(weft_file_message(), part),                                 \
                  "%s: expected %s with \"%s\", but there is %s: %s", #call, weft_status_name(kind), part, \
                  weft_status_name(refuses_), weft_file_message());                                        \
    } while (0)
#endif
