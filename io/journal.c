/* journal.c - journals: one JSON object a line.
 *
 * A line is built in memory and written by one system call, so a killed program leaves whole lines. If a line
 * is cut (a full disk), the next one starts on a new line. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/io.h"

struct weft_journal {
    char *path, *line;
    size_t size;
    FILE *to;                                    /* writes the open line; NULL: none, or memory was short */
    int fd, members;                             /* number of members of the open line; 0: no open line */
    bool cut;                                    /* the file ends within a line */
};

/* ---- a line ---- */
/* Begins a member. Returns the line to write its value to, or NULL if nothing can be written. */
static FILE *member(weft_journal *j, const char *name)
{
    if (!j)
        return NULL;
    if (!name) {
        weft__file_fail(WEFT_EARG, "%s: name is NULL; expected a name; this member was not written", j->path);
        return NULL;
    }
    if (!j->members)
        j->to = open_memstream(&j->line, &j->size);
    if (j->to) {
        fputs(j->members ? ", " : j->cut ? "\n{" : "{", j->to);
        weft__print_json(j->to, name);
        fputs(": ", j->to);
    }
    j->members++;
    return j->to;
}

void weft_journal_number(weft_journal *j, const char *name, double value)
{
    FILE *to = member(j, name);
    char text[40] = "null";
    void *before = weft__plain_locale();
    if (isfinite(value))
        weft__shortest(text, value);
    weft__plain_locale_end(before);
    if (to)
        fputs(text, to);
}

void weft_journal_text(weft_journal *j, const char *name, const char *value)
{
    FILE *to = member(j, name);
    if (to)
        weft__print_json(to, value ? value : "");
}

void weft_journal_line_end(weft_journal *j)
{
    if (!j || !j->members)
        return;
    bool lost = !j->to || fputs("}\n", j->to) < 0 || ferror(j->to);
    lost = (j->to && fclose(j->to)) || lost || !j->line;
    size_t n = lost ? 0 : weft__write_all(j->fd, j->line, j->size);
    if (lost)
        weft__file_fail(WEFT_ENOMEM, "%s: no memory for a line, which was not written", j->path);
    else if (n < j->size)
        weft__file_fail(WEFT_EIO, "%s: cannot be written: %s", j->path, strerror(errno));
    j->cut = n ? j->line[n - 1] != '\n' : j->cut;
    free(j->line);
    j->line = NULL;
    j->to = NULL;
    j->members = 0;
}

/* ---- the file ---- */
weft_status weft_journal_open(const char *path, bool append, weft_journal **out)
{
    if (out)
        *out = NULL;
    if (!path || !out)
        return weft__file_fail(WEFT_EARG, "weft_journal_open: %s is NULL; expected a path and a pointer for "
                                          "the journal",
                               path ? "out" : "path");
    bool cut = false;                            /* a program was killed, or the disk was full */
    weft_journal *j = calloc(1, sizeof *j);
    char *copy = strdup(path);
    int fd = j && copy ? weft__open_to_append(path, !append, &cut) : -1;
    if (fd < 0) {
        weft_status s = j && copy ?
                            weft__file_fail(WEFT_EIO, "%s: cannot be written: %s", path, strerror(errno)) :
                            weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
        free(copy);
        free(j);
        return s;
    }
    *j = (weft_journal){ .path = copy, .fd = fd, .cut = cut };
    *out = j;
    return WEFT_OK;
}

void weft_journal_close(weft_journal *j)
{
    if (!j)
        return;
    weft__close_file(j->fd);
    if (j->to)
        fclose(j->to);
    free(j->path);
    free(j->line);
    free(j);
}
