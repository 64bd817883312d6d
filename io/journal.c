/* journal.c - journals: one JSON object a line.
 *
 * A line is built in memory and written by one system call, so a killed program leaves whole lines. If a line
 * is cut (a full disk), the next one starts on a new line. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/text.h"

struct weft_journal {
    char *path, *line;
    size_t size, capacity;
    int fd, members;                             /* number of members of the open line; 0: no open line */
    bool lost;                                   /* memory was short for this line */
    bool cut;                                    /* the file ends within a line */
};

/* ---- a line ---- */
static void append_text(weft_journal *j, const char *text, size_t n)
{
    if (j->size + n > j->capacity && !j->lost) {
        size_t capacity = 2 * j->capacity + n + 256;
        char *more = realloc(j->line, capacity);
        j->lost = !more;
        j->line = more ? more : j->line;
        j->capacity = more ? capacity : j->capacity;
    }
    if (j->lost)
        return;
    memcpy(j->line + j->size, text, n);
    j->size += n;
}

static void add_string(weft_journal *j, const char *s)
{
    char code[8];
    append_text(j, "\"", 1);
    while (s && *s) {
        unsigned char c = (unsigned char)*s;
        int n = weft__utf8_character(s);
        if (n == 0)
            append_text(j, "\xEF\xBF\xBD", 3);           /* U+FFFD replaces malformed UTF-8 */
        else if (c == '"' || c == '\\')
            append_text(j, code, (size_t)snprintf(code, sizeof code, "\\%c", c));
        else if (c < 0x20)
            append_text(j, code, (size_t)snprintf(code, sizeof code, "\\u%04x", c));
        else
            append_text(j, s, (size_t)n);
        s += n ? n : 1;
    }
    append_text(j, "\"", 1);
}

static void begin_line(weft_journal *j)
{
    j->size = 0;
    j->members = 0;
    j->lost = false;
    if (j->cut)
        append_text(j, "\n", 1);
    append_text(j, "{", 1);
}

static bool member(weft_journal *j, const char *name)
{
    if (!j)
        return false;
    if (!name) {
        weft__file_fail(WEFT_EARG, "%s: name is NULL; expected a name; this member was not written", j->path);
        return false;
    }
    if (!j->members)
        begin_line(j);
    if (j->members++)
        append_text(j, ", ", 2);
    add_string(j, name);
    append_text(j, ": ", 2);
    return true;
}

void weft_journal_number(weft_journal *j, const char *name, double value)
{
    if (!member(j, name))
        return;
    char text[40] = "null";
    void *before = weft__plain_locale();
    int n = isfinite(value) ? weft__shortest(text, value) : 4;
    weft__plain_locale_end(before);
    append_text(j, text, (size_t)n);
}

void weft_journal_text(weft_journal *j, const char *name, const char *value)
{
    if (member(j, name))
        add_string(j, value);
}

void weft_journal_line_end(weft_journal *j)
{
    if (!j || !j->members)
        return;
    j->members = 0;
    append_text(j, "}\n", 2);
    if (j->lost) {
        weft__file_fail(WEFT_ENOMEM, "%s: no memory for a line, which was not written", j->path);
        return;
    }
    size_t n = weft__write_all(j->fd, j->line, j->size);
    if (n < j->size)
        weft__file_fail(WEFT_EIO, "%s: cannot be written: %s", j->path, strerror(errno));
    if (n)
        j->cut = j->line[n - 1] != '\n';
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
    free(j->path);
    free(j->line);
    free(j);
}
