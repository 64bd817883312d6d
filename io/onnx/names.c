/* names.c - the names of a graph, in a hash table of all scopes, with a slot for each. */
#include <string.h>
#include "io/onnx/graph.h"

bool weft__onnx_same(weft__pb a, weft__pb b)
{
    size_t n = weft__pb_size(a);
    return n == weft__pb_size(b) && (!n || !memcmp(a.next, b.next, n));
}

static entry *place_of(entry *table, int64_t room, weft__pb name, int number)
{
    uint64_t hash = 0xCBF29CE484222325u + (uint64_t)number;
    for (const unsigned char *p = name.next; p < name.end; p++)
        hash = (hash ^ *p) * 0x100000001B3u;
    for (uint64_t i = hash ^ hash >> 29;; i++) {
        entry *e = &table[i & (uint64_t)(room - 1)];
        if (!e->name.next || (e->scope == number && weft__onnx_same(e->name, name)))
            return e;
    }
}

int weft__onnx_find(const builder *b, const scope *s, weft__pb name)
{
    for (; s && b->room; s = s->outer) {
        const entry *e = place_of(b->table, b->room, name, s->number);
        if (e->name.next)
            return e->slot;
    }
    return UNDEFINED;
}

bool weft__onnx_define(builder *b, const scope *s, weft__pb name, int at)
{
    if (2 * b->entries >= b->room) {
        int64_t room = b->room ? 2 * b->room : 256;
        entry *larger = weft__weights_memory(b->w, (size_t)room * sizeof *larger);
        if (!larger)
            return false;
        for (int64_t i = 0; i < b->room; i++)
            if (b->table[i].name.next)
                *place_of(larger, room, b->table[i].name, b->table[i].scope) = b->table[i];
        b->table = larger;
        b->room = room;
    }
    entry *e = place_of(b->table, b->room, name, s->number);
    if (e->name.next)
        weft__weights_fail(b->w, WEFT_EFORMAT, "%.100s is defined twice; expected one node for each name",
                           weft__onnx_text(b->w, name));
    *e = (entry){ name, s->number, at };
    b->entries++;
    return !b->w->status;
}

int weft__onnx_defined(builder *b, const scope *s, weft__pb name)
{
    weft_onnx *m = b->m;
    struct slot *slots = weft__weights_grown(b->w, m->slot, m->slots, sizeof *slots);
    value *known = weft__weights_grown(b->w, m->known, m->slots, sizeof *known);
    if (!slots || !known)
        return -1;
    m->slot = slots;
    m->known = known;
    return weft__onnx_define(b, s, name, m->slots) ? m->slots++ : -1;
}
