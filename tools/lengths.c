/* lengths.c - a file of lengths: integers between white space. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/tools.h"

typedef struct {
    FILE *file;
    const char *path;
    int64_t line;
    int32_t *len;
    int64_t n, room;
} reader;

/* The next word, cut at n - 1 bytes; false at the end of the file. */
static bool next_word(reader *r, char *word, size_t n)
{
    int c;
    size_t at = 0;
    while ((c = getc(r->file)) != EOF && isspace(c))
        r->line += c == '\n';
    for (; c != EOF && !isspace(c); c = getc(r->file))
        if (at + 1 < n)
            word[at++] = (char)c;
    if (c != EOF)
        ungetc(c, r->file);
    word[at] = 0;
    return at > 0;
}

static bool add_length(reader *r, const char *word)
{
    char *end;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (errno || *end || value < 0 || value > INT32_MAX)
        return say_failure("%s:%lld: \"%.40s\" is no length; a whole number in 0 .. %d is expected", r->path,
                           (long long)r->line, word, INT32_MAX);
    if (r->n == r->room) {
        r->room = 2 * r->room + 1024;
        int32_t *more = realloc(r->len, (size_t)r->room * sizeof *more);
        if (!more)
            return say_failure("%s: no memory for %lld lengths", r->path, (long long)r->room);
        r->len = more;
    }
    r->len[r->n++] = (int32_t)value;
    return true;
}

int32_t *read_lengths(const char *path, int64_t *n)
{
    bool standard = !strcmp(path, "-"), good = true;
    reader r = { .file = standard ? stdin : fopen(path, "r"), .path = standard ? "stdin" : path, .line = 1 };
    char word[64];
    if (!r.file)
        return say_error(FAILED, "%s: %s", path, strerror(errno)), NULL;
    r.len = malloc(sizeof *r.len), r.room = 1;
    good = r.len || say_failure("%s: no memory", r.path);
    while (good && next_word(&r, word, sizeof word))
        good = add_length(&r, word);
    if (good && ferror(r.file))
        good = say_failure("%s: cannot be read: %s", r.path, strerror(errno));
    if (!standard)
        fclose(r.file);
    if (!good)
        free(r.len), r.len = NULL;
    *n = good ? r.n : 0;
    return r.len;
}
