/* paths.c - a hash table of a root's parameters and buffers by path, so that a file of n names is compared
 * with a module of n names in linear time. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

static uint64_t hash_of(const char *text)        /* FNV-1a */
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

/* The entry with this path, or the empty one where it belongs. */
static weft__known *place_of(const weft__paths *table, const char *path)
{
    size_t at = hash_of(path) & table->mask;
    while (table->entry[at].p && strcmp(table->entry[at].p->path, path))
        at = (at + 1) & table->mask;
    return &table->entry[at];
}

bool weft__paths_make(weft__paths *table, const weft_module *m, weft__h5 *h)
{
    size_t n = 0, size = 16;
    for (const weft__parameter *p = m->root->first; p; p = p->later)
        n++;
    while (size < 2 * n)
        size *= 2;
    *table = (weft__paths){ .entry = calloc(size, sizeof *table->entry), .mask = size - 1 };
    if (!table->entry) {
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for the names of %zu parameters", n);
        return false;
    }
    for (const weft__parameter *p = m->root->first; p; p = p->later)
        place_of(table, p->path)->p = p;
    return true;
}

void weft__paths_end(weft__paths *table)
{
    free(table->entry);
    *table = (weft__paths){ 0 };
}

weft__known *weft__paths_of(const weft__paths *table, const weft__parameter *p)
{
    return place_of(table, p->path);
}

const weft__parameter *weft__paths_find(const weft__paths *table, const weft_module *m, const char *name)
{
    char path[2 * WEFT__NAMED];
    int n = snprintf(path, sizeof path, "%s.%s", m->path, name);
    const weft__parameter *p = n < (int)sizeof path ? place_of(table, path)->p : NULL;
    return p && weft__below(p->module, m) ? p : NULL;
}
