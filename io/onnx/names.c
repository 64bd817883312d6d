/* names.c - the names of a graph, in a hash table of all scopes, with a slot for each; values that are
 * known without a run; functions. */
#include <string.h>
#include "io/onnx/graph.h"

bool weft__onnx_same(weft__pb a, weft__pb b)
{
    return weft__pb_size(a) == weft__pb_size(b) && !memcmp(a.next, b.next, weft__pb_size(a));
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
        weft__weights_fail(b->w, WEFT_EFORMAT, "%.*s is defined twice; expected one node for each name",
                           (int)(weft__pb_size(name) < 100 ? weft__pb_size(name) : 100),
                           (const char *)name.next);
    *e = (entry){ name, s->number, at };
    b->entries++;
    return !b->w->status;
}

static int new_slot(builder *b)
{
    weft_onnx *m = b->m;
    struct slot *slots = weft__onnx_grown(b->w, m->slot, m->slots, &b->slot_room, sizeof *slots);
    value *known = slots ? weft__onnx_grown(b->w, m->known, m->slots, &b->known_room, sizeof *known) : NULL;
    if (!known)
        return -1;
    m->slot = slots;
    m->known = known;
    return m->slots++;
}

int weft__onnx_defined(builder *b, const scope *s, weft__pb name)
{
    int at = new_slot(b);
    return at >= 0 && weft__onnx_define(b, s, name, at) ? at : -1;
}

/* ---- values that are known ---- */
bool weft__onnx_initialiser(builder *b, const scope *s, weft__pb message)
{
    weft__array *a = weft__weights_memory(b->w, sizeof *a);
    weft__pb name = { 0 }, m = message;
    int type, at;
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        name = f.number == 8 ? f.bytes : name;
    if (!a || !weft__onnx_tensor(b->w, message, a, &type) || (at = weft__onnx_defined(b, s, name)) < 0)
        return false;
    value *v = &b->m->known[at];
    *v = (value){ .rank = a->kind.rank,
                  .count = weft__onnx_product(a->kind.size, a->kind.rank),
                  .type = type };
    memcpy(v->size, a->kind.size, sizeof v->size);
    if (weft__number_is_float(a->kind.type)) {
        b->m->slot[at].initial = v->stored = a;
        b->m->slot[at].trained = v->rank > 0;
    } else if (a->kind.type == WEFT__ODD)
        *v = (value){ 0 }; /* texts, which no operator reads */
    else if ((v->number = weft__weights_memory(b->w, ((size_t)v->count + 1) * sizeof *v->number)))
        weft__array_read(b->w, a, WEFT__I64, v->number);
    return !b->w->status;
}

bool weft__onnx_load(builder *b, int at)
{
    const weft__array *a = b->m->slot[at].initial;
    value *v = &b->m->known[at];
    if (!a || v->x)
        return true;
    *v = weft__onnx_reals(b->r, weft_zeros(b->r->w, v->rank, v->size));
    if (v->type)
        weft__onnx_assign(b->r, v->x, a);
    return weft_ok(b->r->w);
}

bool weft__onnx_constant(builder *b, node *n, value *v)
{
    const attribute *a = n->attributes == 1 ? n->attribute : NULL;
    if (a && a->type == 4)
        *v = a->tensor;
    else if (a && (a->type == 1 || a->type == 6))
        *v = (value){ .type = WEFT__ONNX_FLOAT, .rank = a->type == 6, .size = { a->n } };
    else if (a && (a->type == 2 || a->type == 7))
        *v = (value){ .type = WEFT__ONNX_INT64, .rank = a->type == 7, .size = { a->n } };
    v->count = weft__onnx_product(v->size, v->rank);
    const weft_real *reals = a && a->type == 1 ? &(weft_real){ (weft_real)a->f } : a ? a->floats : NULL;
    if (weft__number_is_float(weft__onnx_number(v->type)) && reals)
        *v = weft__onnx_reals(b->r, weft_reals(b->r->w, reals, v->rank, v->size));
    else if (a && a->type != 4 && !weft__number_is_float(weft__onnx_number(v->type)))
        v->number = a->type == 2 || !a->n ? &n->attribute->i : a->ints;
    if (!v->x && !v->number && (v->count || !v->type))
        weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (Constant) has no numbers", n->name);
    return weft_ok(b->r->w) && !b->w->status;
}

/* ---- functions of the file ---- */
void weft__onnx_note_function(builder *b, weft__pb m)
{
    if (b->functions == MOST_FUNCTIONS)
        return;
    b->function[b->functions].body = m;
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        if (f.number == 1)
            b->function[b->functions].name = f.bytes;
        else if (f.number == 10)
            b->function[b->functions].domain = f.bytes;
    b->functions++;
}

weft__pb weft__onnx_function(const builder *b, weft__pb domain, weft__pb op)
{
    for (int i = 0; i < b->functions; i++)
        if (weft__onnx_same(b->function[i].name, op) && weft__onnx_same(b->function[i].domain, domain))
            return b->function[i].body;
    return (weft__pb){ 0 };
}
