/* names.c - finds modules, parameters and buffers by path and by number, in constant time.
 *
 * A root keeps one hash table of the paths of all modules, parameters, buffers and tied names below it. Each
 * of these holds its own entry, so the table is an array of lists that doubles when it is full. */
#include <stdint.h>
#include <string.h>
#include "core/os.h"
#include "nn/nn.h"

enum { FEWEST = 16 };

static uint64_t hash_text(uint64_t hash, const char *text) /* FNV-1a */
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

static uint64_t hash_of(const char *path) { return hash_text(0xCBF29CE484222325u, path); }

static weft__name **bucket(const weft__name_table *t, uint64_t hash)
{
    return &t->bucket[(hash ^ hash >> 32) & (uint64_t)(t->buckets - 1)];
}

static void insert_entry(weft__name_table *t, weft__name *name)
{
    weft__name **link = bucket(t, name->hash);
    name->next = *link;
    *link = name;
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
            insert_entry(&next, name);
        }
    weft__release(root->w, t->bucket);
    *t = next;
    return true;
}

void weft__names_add(weft_module *root, weft__name *name, const char *path, weft__parameter *p)
{
    *name = (weft__name){ .hash = hash_of(path), .path = path, .parameter = p };
    insert_entry(&root->names, name);
    root->names.n++;
}

void weft__names_remove(weft_module *root, weft__name *name)
{
    for (weft__name **link = bucket(&root->names, name->hash); *link; link = &(*link)->next)
        if (*link == name) {
            *link = name->next;
            root->names.n--;
            return;
        }
}

const weft__name *weft__name_below(const weft_module *m, const char *tail)
{
    const weft__name_table *t = &m->root->names;
    size_t head = strlen(m->path);
    uint64_t hash = hash_text(hash_text(hash_of(m->path), "."), tail);
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

/* ---- by number ---- */
static bool append_item(weft_module *m, weft__listed *l, weft__parameter *p)
{
    if (l->n == l->capacity) {
        int room = l->capacity ? 2 * l->capacity : 16;
        struct weft__listed_one *list = weft__try_allocate(m->w, (size_t)room * sizeof *list);
        if (!list)
            return false;
        if (l->n)
            memcpy(list, l->item, (size_t)l->n * sizeof *list);
        weft__release(m->w, l->item);
        l->item = list;
        l->capacity = room;
    }
    l->item[l->n++] = (struct weft__listed_one){ p, p->path };
    return true;
}

/* Extends the list to all parameters below m. Without memory, or in a failed context, it stays too short. */
static void extend(weft_module *m, bool buffers)
{
    weft__listed *l = &m->lists[buffers];
    while (l->last != m->below_last) {
        weft__parameter *p = l->last ? l->last->next_in_root : m->below_first;
        bool belongs = !p->tied && p->buffer == buffers && weft__is_below(p->module, m);
        if (belongs && !append_item(m, l, p))
            return;
        l->last = p;
    }
}

void weft__list_parameters(weft_module *m)
{
    extend(m, false);
    extend(m, true);
}

/* p is NULL if the number is out of range. */
static struct weft__listed_one item_at(const weft_module *m, bool buffers, int i)
{
    if (!m || !m->w || i < 0 || i >= m->count[buffers])
        return (struct weft__listed_one){ 0 };
    weft__listed *l = &((weft_module *)(uintptr_t)m)->lists[buffers];
    if (i >= l->n)
        extend((weft_module *)(uintptr_t)m, buffers);
    if (i < l->n)
        return l->item[i];
    weft__parameter *p = NULL;
    while ((p = weft__next_parameter(m, p)) && (p->buffer != buffers || i-- > 0))
        ;
    return (struct weft__listed_one){ p, p ? p->path : NULL };
}

static int count_below(const weft_module *m, bool buffers) { return m && m->w ? m->count[buffers] : 0; }

static weft_tensor *nth(const weft_module *m, bool buffers, int i, const char **path)
{
    struct weft__listed_one one = item_at(m, buffers, i);
    if (path)
        *path = one.p ? one.path + strlen(m->path) + 1 : "";
    if (one.p)
        return &one.p->value;
    weft__fail(m ? m->w : NULL, WEFT_EARG, "%s_at: number %d; expected 0 .. %d",
               buffers ? "buffer" : "parameter", i, count_below(m, buffers) - 1);
    return weft__inert(m);
}

int weft_parameter_count(const weft_module *m) { return count_below(m, false); }
int weft_buffer_count(const weft_module *m)    { return count_below(m, true); }
weft_tensor *weft_parameter_at(const weft_module *m, int i, const char **path)
{
    return nth(m, false, i, path);
}
weft_tensor *weft_buffer_at(const weft_module *m, int i, const char **path) { return nth(m, true, i, path); }

/* Stores the path for the message of an operator that gets this NULL. */
static void note_missing(const weft_module *m, const char *path)
{
    if (!m || !m->w || !path || weft__is_no_context(m->w))
        return;
    weft__explain_null(
        m->w, "is NULL (weft_find_parameter found no \"%.80s\" below %.80s; weft_print_module lists all)",
        path, m->path);
}

weft_tensor *weft_find_parameter(const weft_module *m, const char *path)
{
    weft__parameter *p = weft__parameter_named(m, path);
    if (!p) {
        note_missing(m, path);
        return NULL;
    }
    return p->tied ? &p->tied->value : &p->value;
}

int64_t weft_parameter_numel(const weft_module *m) { return m && m->w ? m->elements : 0; }
