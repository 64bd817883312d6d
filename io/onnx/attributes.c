/* attributes.c - reads messages of an ONNX file: tensors, attributes, types and shapes. */
#include <string.h>
#include "io/onnx/graph.h"

bool weft__onnx_value(weft__weights *w, weft__pb message, value *v)
{
    weft__array *a = weft__weights_memory(w, sizeof *a);
    int type;
    *v = (value){ 0 };
    if (!a || !weft__onnx_tensor(w, message, a, &type))
        return false;
    if (a->kind.type == WEFT__ODD)
        return true; /* texts, which no operator reads */
    *v = (value){ .type = type,
                  .rank = a->kind.rank,
                  .count = weft__onnx_product(a->kind.size, a->kind.rank) };
    memcpy(v->size, a->kind.size, sizeof v->size);
    if (weft__number_is_float(a->kind.type))
        v->stored = a;
    else if ((v->number = weft__weights_memory(w, ((size_t)v->count + 1) * sizeof *v->number)))
        weft__array_read(w, a, WEFT__I64, v->number);
    return !w->status;
}

/* ---- attributes ---- */
/* Reads the list of floats or ints in the fields of this number. */
static bool read_list(weft__weights *w, weft__pb message, int number, attribute *a)
{
    weft__pb_type type = number == 7 ? WEFT__PB_32 : WEFT__PB_VARINT;
    weft__pb m = message;
    uint64_t bits;
    float one;
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        if (f.number == number && !weft__pb_count(&f, type, &a->n))
            return weft__onnx_damaged(w, f.bytes);
    a->floats = weft__weights_memory(w, ((size_t)a->n + 1) * sizeof *a->floats);
    a->ints = weft__weights_memory(w, ((size_t)a->n + 1) * sizeof *a->ints);
    a->n = 0;
    for (weft__pb_field f; !w->status && weft__pb_next(&message, &f);)
        while (f.number == number && weft__pb_number(&f, type, &bits)) {
            memcpy(&one, &(uint32_t){ (uint32_t)bits }, sizeof one);
            a->floats[a->n] = number == 7 ? (weft_real)one : 0;
            a->ints[a->n++] = (int64_t)bits;
        }
    return !w->status;
}

static bool read_texts(weft__weights *w, const record *f, attribute *a)
{
    weft__pb m = f->message, text;
    a->texts = weft__weights_memory(w, (size_t)f->count[9] * sizeof *a->texts);
    while (a->texts && weft__onnx_field(&m, 9, &text))
        a->texts[a->n++] = weft__onnx_text(w, text);
    return !w->status;
}

static bool read_attribute(weft__weights *w, const record *f, attribute *a)
{
    *a = (attribute){ .name = weft__onnx_text(w, f->bytes[1]),
                      .type = (int)f->value[20],
                      .i = (int64_t)f->value[3],
                      .text = "",
                      .graph = f->bytes[6] };
    memcpy(&a->f, &(uint32_t){ (uint32_t)f->value[2] }, sizeof a->f);
    for (int i = 2; i < 10 && !a->type; i++) /* files without the field 20 */
        a->type = f->count[i] ? i - 1 : 0;
    if (f->count[4] && !memchr(f->bytes[4].next, 0, weft__pb_size(f->bytes[4])))
        a->text = weft__onnx_text(w, f->bytes[4]);
    if (f->count[5] && !weft__onnx_value(w, f->bytes[5], &a->tensor))
        return false;
    if (a->tensor.stored && a->tensor.count == 1) {
        a->floats = weft__weights_memory(w, sizeof *a->floats);
        return a->floats && weft__array_read(w, a->tensor.stored, weft__number_of(WEFT_REAL), a->floats);
    }
    return !w->status && (a->type == A_FLOATS ? read_list(w, f->message, 7, a) :
                          a->type == A_INTS   ? read_list(w, f->message, 8, a) :
                                                read_texts(w, f, a));
}

/* Sets *a to the attribute of the function's caller with this name. Returns false if it leaves it out. */
static bool is_passed(const node *caller, weft__pb name, attribute *a)
{
    for (int i = 0; caller && i < caller->attributes; i++)
        if (weft__pb_is(name, caller->attribute[i].name)) {
            const char *own = a->name;
            *a = caller->attribute[i];
            a->name = own;
            return true;
        }
    return false;
}

bool weft__onnx_attributes(weft__weights *w, const record *fields, node *n, const node *caller)
{
    weft__pb m = fields->message;
    record f;
    n->attribute = weft__weights_memory(w, ((size_t)fields->count[5] + 1) * sizeof *n->attribute);
    while (weft__onnx_each(w, &m, 5, &f)) {
        attribute *a = &n->attribute[n->attributes];
        if (read_attribute(w, &f, a))
            n->attributes += !f.count[21] || is_passed(caller, f.bytes[21], a);
    }
    return !w->status;
}

/* ---- inputs and outputs ---- */
static bool read_shape(weft__weights *w, weft__pb m, weft_onnx_value *v)
{
    record extent;
    v->rank = 0;
    for (; weft__onnx_each(w, &m, 1, &extent); v->rank++) {
        if (v->rank == WEFT_RANK) {
            weft__weights_fail(w, WEFT_EFORMAT, "%.80s has more than %d axes", v->name, WEFT_RANK);
            return false;
        }
        int64_t size = extent.count[1] ? (int64_t)extent.value[1] : -1;
        v->size[v->rank] = size < 0 ? -1 : size;
        if (weft__pb_size(extent.bytes[2]))
            v->axis[v->rank] = weft__onnx_text(w, extent.bytes[2]);
    }
    return !w->status && (m.next == m.end || weft__onnx_damaged(w, m));
}

bool weft__onnx_describe(weft__weights *w, const record *info, weft_onnx_value *v, int *type)
{
    record of_type, tensor;
    if (!weft__onnx_fields(w, info->bytes[2], &of_type) || !weft__onnx_fields(w, of_type.bytes[1], &tensor))
        return false;
    *type = (int)tensor.value[1];
    *v = (weft_onnx_value){ .rank = -1, .name = weft__onnx_text(w, info->bytes[1]), .type = WEFT_I32 };
    if (weft__number_is_float(weft__onnx_number(*type)) || !*type)
        v->type = WEFT_REAL;
    return v->name && (!tensor.count[2] || read_shape(w, tensor.bytes[2], v));
}
