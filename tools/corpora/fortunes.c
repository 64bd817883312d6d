/* fortunes.c - reads the texts of Debian's packages fortunes-min and fortunes, as bytes.
 *
 * Lines "%" separate the texts. Empty lines around a text are left out, and the line after a "%" is always
 * text. The order is the same everywhere: first fortunes-min, and in each package by the bytes of the file
 * names. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tools/corpora/corpora.h"

#define FOLDER "/usr/share/games/fortunes"

static int is_of_second(const char *name)
{
    return strcmp(name, "fortunes") && strcmp(name, "literature") && strcmp(name, "riddles");
}

static int by_package(const struct dirent **a, const struct dirent **b)
{
    int order = is_of_second((*a)->d_name) - is_of_second((*b)->d_name);
    return order ? order : strcmp((*a)->d_name, (*b)->d_name);
}
/* A text file has no extension. Its index (.dat) and a link (.u8) are in the same folder. */
static int is_text(const struct dirent *d) { return !strchr(d->d_name, '.'); }

/* Reads up to the next line "%" or the end, and returns the start of the next text. */
static const char *read_text(const char *text, const char *end, corpus_builder *b, bool *good)
{
    const char *start = text, *line = text, *stop = text;
    do {
        line = text;
        stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        text = stop < end ? stop + 1 : end;
    } while (text < end && (line == start || stop != line + 1 || *line != '%'));
    stop = line > start && stop == line + 1 && *line == '%' ? line : end;
    while (start < stop && *start == '\n')
        start++;
    while (stop > start && stop[-1] == '\n')
        stop--;
    for (const char *c = start; c < stop; c++)
        corpus_token(b, (unsigned char)*c);
    if (*good && stop > start)
        *good = corpus_end_sequence(b);
    return text;
}

static bool read_one(const char *name, corpus_builder *b)
{
    char path[512];
    struct stat s;
    snprintf(path, sizeof path, FOLDER "/%.255s", name);
    if (!stat(path, &s) && !S_ISREG(s.st_mode))
        return true;
    size_t n;
    SCOPED char *text = corpus_file(path, &n);
    bool ok = text != NULL;
    for (const char *p = text; ok && p < text + n;)
        p = read_text(p, text + n, b, &ok);
    return ok;
}

bool read_fortunes(const corpus_spec *s, corpus_builder *b)
{
    (void)s;
    struct stat both;
    if (stat(FOLDER "/literature", &both) || stat(FOLDER "/computers", &both)) {
        errno = ENOENT;
        return false;
    }
    struct dirent **file;
    int n = scandir(FOLDER, &file, is_text, by_package);
    if (n < 0) {
        say_error(FAILED, "corpora: %s: %s", FOLDER, strerror(errno));
        errno = EIO;
        return false;
    }
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = ok && read_one(file[i]->d_name, b);
        free(file[i]);
    }
    free(file);
    return ok;
}
