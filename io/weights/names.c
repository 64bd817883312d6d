/* names.c - changes the names of a file's arrays to those of a module: prefixes and a map file. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

/* ---- order ---- */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const weft__array *)a)->name, ((const weft__array *)b)->name);
}

void weft__weights_sort(weft__weights *w)
{
    if (w->n)
        qsort(w->array, (size_t)w->n, sizeof *w->array, by_name);
    for (int64_t i = 1; i < w->n; i++)
        if (!strcmp(w->array[i - 1].name, w->array[i].name))
            weft__weights_fail(w, WEFT_EFORMAT, "two arrays have the name %.200s; expected different names",
                               w->array[i].name);
}

weft__array *weft__weights_find(const weft__weights *w, const char *name)
{
    const weft__array key = { .name = name };
    return w->n ? bsearch(&key, w->array, (size_t)w->n, sizeof *w->array, by_name) : NULL;
}

/* ---- the map file: a line "NAME-IN-FILE NAME-IN-MODULE"; # begins a comment ---- */
/* A word of a line; n 0: the line has no more. */
typedef struct {
    const char *at;
    size_t n;
} word;

static word next_word(const char **at, const char *end)
{
    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        ++*at;
    word k = { *at, 0 };
    while (*at < end && !strchr(" \t\r", **at))
        ++*at, k.n++;
    return k.n && *k.at == '#' ? (word){ k.at, 0 } : k;
}

/* Joins two texts. NULL after a failure. */
static const char *joined(weft__weights *w, const char *a, size_t n, const char *b)
{
    char *text = weft__weights_memory(w, n + strlen(b) + 1);
    if (text) {
        memcpy(text, a, n);
        memcpy(text + n, b, strlen(b) + 1);
    }
    return text;
}

/* Renames the arrays that a line names. A star at the end of both words means the rest of a name. */
static void apply_line(weft__weights *w, bool *named, const char *file, int line, word from, word to)
{
    bool star = from.at[from.n - 1] == '*', used = false;
    if (star != (to.at[to.n - 1] == '*')) {
        weft__weights_fail(w, WEFT_EFORMAT, "%s, line %d: a star ends one name; expected both names or none",
                           file, line);
        return;
    }
    size_t n = from.n - star;
    for (int64_t i = 0; i < w->n; i++) {
        const char *name = w->array[i].name;
        if (named[i] || strncmp(name, from.at, n) || (!star && name[n]))
            continue;
        w->array[i].place = w->array[i].place ? w->array[i].place : name;
        w->array[i].name = joined(w, to.at, to.n - star, name + n);
        named[i] = used = true;
        if (w->status)
            return;
    }
    if (!used)
        weft__weights_fail(w, WEFT_EFORMAT,
                           "%s, line %d: no array has the name %.*s; weft list shows all names", file, line,
                           from.n < 200 ? (int)from.n : 200, from.at);
}

static void apply_map(weft__weights *w, bool *named, const char *file, const char *at, const char *end)
{
    for (int line = 1; at < end && !w->status; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        word from = next_word(&at, stop), to = next_word(&at, stop), more = next_word(&at, stop);
        if (from.n && (!to.n || more.n))
            weft__weights_fail(w, WEFT_EFORMAT, "%s, line %d: found %s; expected two names", file, line,
                               to.n ? "more than two words" : "one word");
        else if (from.n)
            apply_line(w, named, file, line, from, to);
        at = stop + 1;
    }
}

static void read_map(weft__weights *w, bool *named, const char *file)
{
    unsigned char *bytes;
    size_t size;
    weft_status s = weft__read_file(file, NULL, &bytes, &size);
    if (s) {
        w->status = s;
        return;
    }
    if (memchr(bytes, 0, size))
        weft__weights_fail(w, WEFT_EFORMAT, "%s: not a text; expected lines of two names", file);
    else
        apply_map(w, named, file, (const char *)bytes, (const char *)bytes + size);
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
        a->place = a->place ? a->place : name;
        a->name = *add ? joined(w, add, strlen(add), rest) : rest;
    }
    if (!stripped)
        weft__weights_fail(w, WEFT_EFORMAT,
                           "no name begins with the prefix \"%.100s\"; the first name is %.100s", strip,
                           w->array[0].name);
}

bool weft__weights_rename(weft__weights *w, const weft_weights_opts *o)
{
    if (!o || w->status)
        return !w->status;
    bool *named = calloc((size_t)w->n + 1, sizeof *named);
    if (!named)
        weft__weights_fail(w, WEFT_ENOMEM, "no memory for the names of %lld arrays", (long long)w->n);
    else if (o->map)
        read_map(w, named, o->map);
    if (!w->status)
        change_prefixes(w, named, o->strip_prefix ? o->strip_prefix : "", o->add_prefix ? o->add_prefix : "");
    free(named);
    if (!w->status)
        weft__weights_sort(w);
    return !w->status;
}
