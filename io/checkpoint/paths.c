/* paths.c - a table of a root's parameters and buffers sorted by path. It compares a file of n names with a
 * module of n names in little more than linear time. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

static int by_path(const void *a, const void *b)
{
    return strcmp(((const weft__known *)a)->p->path, ((const weft__known *)b)->p->path);
}

static int path_only(const void *path, const void *it)
{
    return strcmp(path, ((const weft__known *)it)->p->path);
}

static weft__known *find(const weft__paths *table, const char *path)
{
    return bsearch(path, table->entry, table->n, sizeof *table->entry, path_only);
}

bool weft__paths_make(weft__paths *table, const weft_module *m, weft__stage *s)
{
    size_t n = 0;
    for (const weft__parameter *p = m->root->first; p; p = p->next_in_root)
        n++;
    *table = (weft__paths){ .entry = calloc(n + 1, sizeof *table->entry) };
    if (!table->entry) {
        weft__stage_fail(s, WEFT_ENOMEM, "no memory for the names of %zu parameters", n);
        return false;
    }
    for (const weft__parameter *p = m->root->first; p; p = p->next_in_root)
        table->entry[table->n++].p = p;
    qsort(table->entry, n, sizeof *table->entry, by_path);
    return true;
}

void weft__paths_end(weft__paths *table)
{
    free(table->entry);
    *table = (weft__paths){ 0 };
}

weft__known *weft__paths_of(const weft__paths *table, const weft__parameter *p)
{
    return find(table, p->path);
}

const weft__parameter *weft__paths_find(const weft__paths *table, const weft_module *m, const char *name)
{
    char path[2 * WEFT__NAMED];
    int n = snprintf(path, sizeof path, "%s.%s", m->path, name);
    const weft__known *k = n < (int)sizeof path ? find(table, path) : NULL;
    return k && weft__is_below(k->p->module, m) ? k->p : NULL;
}
