/* names.c - changes the names of a file's arrays to those of a module: prefixes and a map file. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

/* ---- order ---- */
int weft__by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void weft__weights_sort(weft__weights *w)
{
    if (w->n)
        qsort(w->array, (size_t)w->n, sizeof *w->array, weft__by_text);
    for (int64_t i = 1; i < w->n; i++)
        if (!strcmp(w->array[i - 1].name, w->array[i].name))
            weft__weights_fail(w, WEFT_EFORMAT, "two arrays have the name %.200s; expected different names",
                               w->array[i].name);
}

weft__array *weft__weights_find(const weft__weights *w, const char *name)
{
    const weft__array key = { .name = name };
    return w->n ? bsearch(&key, w->array, (size_t)w->n, sizeof *w->array, weft__by_text) : NULL;
}

/* ---- the map file: a line "NAME-IN-FILE NAME-IN-MODULE"; # begins a comment ---- */
/* Renames the arrays that a line names. A star at the end of both words means the rest of a name. */
static void apply_line(weft__weights *w, bool *named, const char *file, int line, const char *from,
                       const char *to)
{
    size_t n = strlen(from) - 1, k = strlen(to) - 1;
    bool star = from[n] == '*', used = false;
    if (star != (to[k] == '*'))
        weft__weights_fail(w, WEFT_EFORMAT, "%s, line %d: a star ends one name; expected both names or none",
                           file, line);
    for (int64_t i = 0; i < w->n && !w->status; i++) {
        const char *name = w->array[i].name;
        if (named[i] || (star ? strncmp(name, from, n) : strcmp(name, from)))
            continue;
        w->array[i].name = star ? weft__weights_print(w, "%.*s%s", (int)k, to, name + n) :
                                  weft__weights_print(w, "%s", to);
        named[i] = used = true;
    }
    if (!used)
        weft__weights_fail(w, WEFT_EFORMAT, "%s, line %d: no array has the name %.200s; weft list shows all "
                                            "names", file, line, from);
}

/* Returns the next word of a line; NULL: no more, or a comment. */
static const char *next_word(char *line, char **rest)
{
    const char *word = strtok_r(line, " \t\r", rest);
    return word && *word != '#' ? word : NULL;
}

static void apply_map(weft__weights *w, bool *named, const char *file, char *text)
{
    char *rest = NULL;
    for (int line = 1; text && !w->status; line++) {
        const char *from = next_word(strsep(&text, "\n"), &rest), *to = from ? next_word(NULL, &rest) : NULL;
        bool more = to && next_word(NULL, &rest);
        if (from && (!to || more))
            weft__weights_fail(w, WEFT_EFORMAT, "%s, line %d: found %s; expected two names", file, line,
                               to ? "more than two words" : "one word");
        else if (from)
            apply_line(w, named, file, line, from, to);
    }
}

static void read_map(weft__weights *w, bool *named, const char *file)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    w->status = weft__read_file(file, NULL, &bytes, &size);
    if (!w->status && memchr(bytes, 0, size))
        weft__weights_fail(w, WEFT_EFORMAT, "%s: not a text; expected lines of two names", file);
    if (!w->status)
        apply_map(w, named, file, (char *)bytes);
    free(bytes);
}

/* ---- prefixes ---- */
static void change_prefixes(weft__weights *w, const bool *named, const char *strip, const char *add)
{
    size_t n = strlen(strip);
    bool stripped = !n || !w->n;
    for (int64_t i = 0; i < w->n && !w->status; i++) {
        weft__array *a = &w->array[i];
        const char *name = a->name, *rest = strncmp(name, strip, n) ? name : name + n;
        stripped = stripped || rest > name;
        if (named[i] || (rest == name && !*add) || !*rest)
            continue;
        a->name = *add ? weft__weights_print(w, "%s%s", add, rest) : rest;
    }
    if (!stripped)
        weft__weights_fail(w, WEFT_EFORMAT, "no name begins with the prefix \"%.100s\"; the first name is "
                           "%.100s", strip, w->array[0].name);
}

bool weft__weights_rename(weft__weights *w, const weft_weights_opts *o)
{
    bool *named = o ? weft__weights_memory(w, (size_t)w->n) : NULL;
    if (named && o->map)
        read_map(w, named, o->map);
    if (named && !w->status)
        change_prefixes(w, named, o->strip_prefix ? o->strip_prefix : "", o->add_prefix ? o->add_prefix : "");
    if (named && !w->status)
        weft__weights_sort(w);
    return !w->status;
}
