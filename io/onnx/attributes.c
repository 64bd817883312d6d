/* attributes.c - reads attributes, types and shapes of an ONNX graph. */
#include <string.h>
#include "io/onnx/model.h"

enum { A_FLOAT = 1, A_INT, A_STRING, A_TENSOR, A_GRAPH, A_FLOATS, A_INTS, A_STRINGS };

void *weft__onnx_grown(weft__weights *w, void *old, int64_t n, int64_t *room, size_t each)
{
    if (n < *room)
        return old;
    int64_t more = *room ? 2 * *room : 8;
    void *larger = weft__weights_memory(w, (size_t)more * each);
    if (larger && n)
        memcpy(larger, old, (size_t)n * each);
    if (larger)
        *room = more;
    return larger;
}

/* Adds the numbers of one field to the list of an attribute. */
static bool read_list(weft__weights *w, weft__pb_field f, attribute *a, int64_t *room)
{
    weft__pb_type type = f.number == 7 ? WEFT__PB_32 : WEFT__PB_VARINT;
    int64_t n = 0;
    uint64_t bits;
    float one;
    if (!weft__pb_count(&f, type, &n))
        return weft__onnx_damaged(w, f.bytes);
    while (weft__pb_number(&f, type, &bits)) {
        if (type == WEFT__PB_VARINT) {
            if (!(a->ints = weft__onnx_grown(w, a->ints, a->n, room, sizeof *a->ints)))
                return false;
            a->ints[a->n++] = (int64_t)bits;
        } else {
            if (!(a->floats = weft__onnx_grown(w, a->floats, a->n, room, sizeof *a->floats)))
                return false;
            memcpy(&one, &(uint32_t){ (uint32_t)bits }, sizeof one);
            a->floats[a->n++] = (weft_real)one;
        }
    }
    return true;
}

static bool read_tensor(weft__weights *w, weft__pb message, attribute *a)
{
    weft__array x;
    int type;
    if (!weft__onnx_tensor(w, message, &x, &type))
        return false;
    a->tensor =
        (value){ .type = type, .rank = x.kind.rank, .count = weft__onnx_product(x.kind.size, x.kind.rank) };
    memcpy(a->tensor.size, x.kind.size, sizeof x.kind.size);
    if (x.kind.type == WEFT__ODD)
        return true;
    bool reals = weft__number_is_float(x.kind.type);
    size_t each = reals ? sizeof(weft_real) : sizeof(int64_t);
    void *to = weft__weights_memory(w, ((size_t)a->tensor.count + 1) * each);
    if (reals)
        a->floats = to;
    else
        a->tensor.number = to;
    return to && weft__array_read(w, &x, !reals ? WEFT__I64 : weft__number_of(WEFT_REAL), to);
}

/* Reads one attribute. *ref: the name of the function's attribute that it refers to. */
static bool read_attribute(weft__weights *w, weft__pb m, attribute *a, const char **ref)
{
    /* of a value's field, for files without the field 20 */
    static const unsigned char type_of[10] = { 0, 0, A_FLOAT, A_INT, A_STRING, A_TENSOR, A_GRAPH,
                                               A_FLOATS, A_INTS, A_STRINGS };
    int64_t room = 0;
    bool fine = true;
    for (weft__pb_field f; fine && weft__pb_next(&m, &f);) {
        int type = f.number < 10 ? type_of[f.number] : 0;
        a->type = type == A_STRINGS || !a->type ? type : a->type;
        if (f.number == 1)
            fine = (a->name = weft__onnx_text(w, f.bytes));
        else if (f.number == 2)
            memcpy(&a->f, &(uint32_t){ (uint32_t)f.value }, sizeof a->f);
        else if (f.number == 3)
            a->i = (int64_t)f.value;
        else if (f.number == 4) {
            bool text = !memchr(f.bytes.next ? f.bytes.next : (const void *)"", 0, weft__pb_size(f.bytes));
            fine = (a->text = text ? weft__onnx_text(w, f.bytes) : "");
        } else if (f.number == 5)
            fine = read_tensor(w, f.bytes, a);
        else if (f.number == 6)
            a->graph = f.bytes;
        else if (f.number == 7 || f.number == 8)
            fine = read_list(w, f, a, &room);
        else if (f.number == 9) {
            a->texts = weft__onnx_grown(w, a->texts, a->n, &room, sizeof *a->texts);
            fine = a->texts && (a->texts[a->n++] = weft__onnx_text(w, f.bytes));
        } else if (f.number == 20)
            a->type = (int)f.value;
        else if (f.number == 21)
            fine = (*ref = weft__onnx_text(w, f.bytes));
    }
    bool has = (a->type != A_STRING || a->text) && (a->type != A_TENSOR || a->tensor.type);
    if (fine && m.next == m.end && !has && !*ref)
        weft__weights_fail(w, WEFT_EFORMAT, "attribute %.80s has no value", a->name ? a->name : "");
    return fine && !w->status && (m.next == m.end || weft__onnx_damaged(w, m));
}

bool weft__onnx_attributes(weft__weights *w, weft__pb m, node *n, const node *caller)
{
    int64_t room = 0;
    for (weft__pb_field f; weft__pb_next(&m, &f);) {
        attribute a = { .name = "" };
        const char *ref = NULL;
        if (f.number != 5)
            continue;
        if (!read_attribute(w, f.bytes, &a, &ref))
            return false;
        for (int i = 0; ref && i < (caller ? caller->attributes : 0); i++)
            if (!strcmp(caller->attribute[i].name, ref)) {
                const char *name = a.name;
                a = caller->attribute[i];
                a.name = name;
                ref = NULL;
            }
        if (ref)
            continue; /* the function's caller leaves it out */
        if (!(n->attribute = weft__onnx_grown(w, n->attribute, n->attributes, &room, sizeof a)))
            return false;
        n->attribute[n->attributes++] = a;
    }
    return true;
}

/* ---- inputs and outputs ---- */
static bool read_extent(weft__weights *w, weft__pb m, int64_t *size, const char **axis)
{
    *size = -1;
    for (weft__pb_field f; weft__pb_next(&m, &f) && !w->status;)
        if (f.number == 1)
            *size = (int64_t)f.value >= 0 ? (int64_t)f.value : -1;
        else if (f.number == 2 && weft__pb_size(f.bytes))
            *axis = weft__onnx_text(w, f.bytes);
    return !w->status && (m.next == m.end || weft__onnx_damaged(w, m));
}

static bool read_shape(weft__weights *w, weft__pb m, weft_onnx_value *v)
{
    v->rank = 0;
    for (weft__pb_field f; weft__pb_next(&m, &f);) {
        if (f.number != 1)
            continue;
        if (v->rank == WEFT_RANK) {
            weft__weights_fail(w, WEFT_EFORMAT, "%.80s has more than %d axes", v->name, WEFT_RANK);
            return false;
        }
        if (!read_extent(w, f.bytes, &v->size[v->rank], &v->axis[v->rank]))
            return false;
        v->rank++;
    }
    return m.next == m.end || weft__onnx_damaged(w, m);
}

bool weft__onnx_describe(weft__weights *w, weft__pb m, weft_onnx_value *v, weft__pb *name, int *type)
{
    weft__pb of_type = { 0 }, tensor = { 0 }, shape = { 0 };
    *v = (weft_onnx_value){ .rank = -1, .name = "" };
    *type = 0;
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        if (f.number == 1)
            *name = f.bytes;
        else if (f.number == 2)
            of_type = f.bytes;
    for (weft__pb_field f; weft__pb_next(&of_type, &f);)
        tensor = f.number == 1 ? f.bytes : tensor;
    for (weft__pb_field f; weft__pb_next(&tensor, &f);)
        if (f.number == 1)
            *type = (int)f.value;
        else if (f.number == 2)
            shape = f.bytes;
    if (m.next != m.end || of_type.next != of_type.end || tensor.next != tensor.end)
        return weft__onnx_damaged(w, m.next != m.end ? m : of_type.next != of_type.end ? of_type : tensor);
    v->name = weft__onnx_text(w, *name);
    v->type = weft__number_is_float(weft__onnx_number(*type)) || !*type ? WEFT_REAL : WEFT_I32;
    return v->name && (!shape.next || read_shape(w, shape, v));
}
