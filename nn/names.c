/* names.c - finds modules and parameters by path, in constant time.
 *
 * A root keeps one hash table of the paths of all modules, parameters, buffers and tied names below it. Each
 * of these holds its own entry, so the table is an array of lists that doubles when it is full. */
#include <string.h>
#include "nn/nn.h"

enum { FEWEST = 16 };

static uint64_t mixed_in(uint64_t hash, const char *text)        /* FNV-1a */
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

static uint64_t hash_of(const char *path) { return mixed_in(0xCBF29CE484222325u, path); }

static weft__name **bucket(const weft__name_table *t, uint64_t hash)
{
    return &t->bucket[(hash ^ hash >> 32) & (uint64_t)(t->buckets - 1)];
}

static void put(weft__name_table *t, weft__name *name)
{
    weft__name **at = bucket(t, name->hash);
    name->next = *at;
    *at = name;
}

bool weft__names_reserve(weft_module *root)
{
    weft__name_table *t = &root->names, next = { .buckets = t->buckets ? 2 * t->buckets : FEWEST, .n = t->n };
    if (t->n < t->buckets)
        return true;
    size_t bytes = (size_t)next.buckets * sizeof(weft__name *);
    next.bucket = weft__allocate(root->w, bytes);
    if (!next.bucket)
        return false;
    memset(next.bucket, 0, bytes);
    for (int64_t i = 0; i < t->buckets; i++)
        for (weft__name *name = t->bucket[i], *rest; name; name = rest) {
            rest = name->next;
            put(&next, name);
        }
    weft__release(root->w, t->bucket);
    *t = next;
    return true;
}

void weft__names_add(weft_module *root, weft__name *name, const char *path, weft__parameter *p)
{
    *name = (weft__name){ .hash = hash_of(path), .path = path, .parameter = p };
    put(&root->names, name);
    root->names.n++;
}

void weft__names_remove(weft_module *root, weft__name *name)
{
    for (weft__name **at = bucket(&root->names, name->hash); *at; at = &(*at)->next)
        if (*at == name) {
            *at = name->next;
            root->names.n--;
            return;
        }
}

const weft__name *weft__name_below(const weft_module *m, const char *tail)
{
    const weft__name_table *t = &m->root->names;
    size_t head = strlen(m->path);
    uint64_t hash = mixed_in(mixed_in(hash_of(m->path), "."), tail);
    for (const weft__name *name = t->buckets ? *bucket(t, hash) : NULL; name; name = name->next)
        if (name->hash == hash && !strncmp(name->path, m->path, head) && name->path[head] == '.' &&
            !strcmp(name->path + head + 1, tail))
            return name;
    return NULL;
}

weft__parameter *weft__parameter_named(const weft_module *m, const char *path)
{
    const weft__name *name = m && m->w && path ? weft__name_below(m, path) : NULL;
    return name ? name->parameter : NULL;
}
