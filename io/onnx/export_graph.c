/* export_graph.c - adds nodes, constants, dynamic axes and descriptions of values to an ONNX graph. Numbers
 * of fields are those of onnx.proto. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "core/locale.h"
#include "io/io.h"
#include "io/onnx/export.h"

void weft__export_fail(weft__export *x, weft_status status, const char *format, ...)
{
    char text[2400];
    va_list list;
    if (x->status)
        return;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    x->status = weft__file_fail(status, "weft_export_onnx: %s", text);
}

void *weft__export_memory(weft__export *x, size_t bytes)
{
    struct weft__export_piece *p = bytes < SIZE_MAX / 2 ? calloc(1, sizeof *p + bytes) : NULL;
    if (!p) {
        weft__export_fail(x, WEFT_ENOMEM, "no memory for the graph");
        return NULL;
    }
    p->next = x->memory;
    x->memory = p;
    return p + 1;
}

const char *weft__export_name_of(weft__export *x, const char *format, ...)
{
    char text[WEFT__PATH + 64];
    va_list list;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    char *copy = weft__export_memory(x, strlen(text) + 1);
    return copy ? memcpy(copy, text, strlen(text) + 1) : "";
}

bool weft__export_reserve(weft__export *x, const char *name)
{
    for (int i = 0; i < x->used_n; i++)
        if (!strcmp(x->used[i], name))
            weft__export_fail(x, WEFT_EARG,
                              "two inputs, outputs or parameters have the name \"%.200s\"; expected "
                              "unique names",
                              name);
    if (!*name || *name == '/')
        weft__export_fail(x, WEFT_EARG,
                          "the name \"%.200s\" of an input or output; expected a text that does not "
                          "begin with /",
                          name);
    if (x->used_n == x->used_room) {
        const int room = 2 * x->used_room + 64;
        const char **larger = realloc(x->used, (size_t)room * sizeof *larger);
        if (!larger) {
            weft__export_fail(x, WEFT_ENOMEM, "no memory for names");
            return false;
        }
        x->used = larger, x->used_room = room;
    }
    x->used[x->used_n++] = name;
    return !x->status;
}

/* ---- nodes ---- */
static void add_attribute(weft__proto *node, const weft__export_attribute *a)
{
    enum { F = 1, I, S, FLOATS = 6, INTS_, STRINGS };
    weft__proto m = { 0 };
    weft__proto_text(&m, 1, a->name);
    for (int i = 0; i < a->n && a->type == 'S'; i++)
        weft__proto_text(&m, 9, a->s);
    for (int i = 0; i < a->n && a->type == 'I'; i++)
        weft__proto_int(&m, 8, a->ints[i]);
    if (a->type == 'f')
        weft__proto_float(&m, 2, (float)a->f);
    else if (a->type == 'i')
        weft__proto_int(&m, 3, a->i);
    else if (a->type == 's')
        weft__proto_text(&m, 4, a->s);
    weft__proto_int(&m, 20,
                    a->type == 'f' ? F :
                    a->type == 'i' ? I :
                    a->type == 's' ? S :
                    a->type == 'I' ? INTS_ :
                                     STRINGS);
    weft__proto_message(node, 5, &m);
}

const char *weft__export_node(weft__export *x, const char *op, const char *const *in, int n,
                              const weft__export_attribute *a, const char **out, int results)
{
    weft__proto node = { 0 };
    const char *one, **names = out ? out : &one;
    while (n && !in[n - 1]) /* trailing inputs that are left out */
        n--;
    for (int i = 0; i < n; i++)
        weft__proto_text(&node, 1, in[i] ? in[i] : "");
    for (int i = 0; i < results; i++) {
        names[i] = weft__export_name_of(x, "/%d", x->names++);
        weft__proto_text(&node, 2, names[i]);
    }
    weft__proto_text(&node, 4, op);
    for (; a && a->name; a++)
        add_attribute(&node, a);
    weft__proto_message(&x->nodes, 1, &node);
    return names[0];
}

/* ---- constants ---- */
const char *weft__export_initializer(weft__export *x, const char *name, int type, int rank,
                                     const int64_t *shape, const void *numbers, size_t bytes)
{
    weft__proto head = { 0 };
    name = name ? name : weft__export_name_of(x, "/%d", x->names++);
    for (int i = 0; i < rank; i++)
        weft__proto_int(&head, 1, shape[i]);
    weft__proto_int(&head, 2, type);
    weft__proto_text(&head, 8, name);
    weft__proto_begin(&head, 9, bytes);
    weft__proto_begin(&x->initializers, 5, head.n + bytes);
    weft__proto_raw(&x->initializers, head.bytes, head.n);
    weft__proto_raw(&x->initializers, numbers, bytes);
    x->initializers.failed |= head.failed;
    weft__proto_free(&head);
    return name;
}

static const char *constant(weft__export *x, int type, int rank, const void *bytes, size_t n)
{
    struct weft__export_constant *k = x->constants;
    while (k && (k->type != type || k->rank != rank || k->n != n || memcmp(k->bytes, bytes, n)))
        k = k->next;
    if (k)
        return k->name;
    const int64_t extent = (int64_t)(n / sizeof(int64_t));
    const char *name = weft__export_initializer(x, NULL, type, rank, &extent, bytes, n);
    if (!(k = weft__export_memory(x, sizeof *k + n)))
        return name;
    *k = (struct weft__export_constant){ x->constants, name, type, rank, n };
    memcpy(k->bytes, bytes, n);
    x->constants = k;
    return name;
}
const char *weft__export_ints(weft__export *x, int n, const int64_t *values)
{
    return constant(x, WEFT__EXPORT_INT64, 1, values, (size_t)n * sizeof *values);
}
const char *weft__export_int(weft__export *x, int64_t value)
{
    return constant(x, WEFT__EXPORT_INT64, 0, &value, sizeof value);
}
const char *weft__export_number_of(weft__export *x, double value)
{
    const float number = (float)value;
    return constant(x, WEFT__EXPORT_FLOAT, 0, &number, sizeof number);
}

/* ---- usual nodes ---- */
const char *weft__export_transpose(weft__export *x, const char *in, int axes, const int *order)
{
    int64_t perm[WEFT__EXPORT_RANK];
    bool moved = false;
    for (int i = 0; i < axes; i++)
        perm[i] = order[i], moved |= order[i] != i;
    return moved ? NODE_WITH(x, "Transpose", ATTRIBUTES({ "perm", 'I', .n = axes, .ints = perm }), in) : in;
}
const char *weft__export_unsqueeze(weft__export *x, const char *in, int axis)
{
    return NODE(x, "Unsqueeze", in, INTS(x, axis));
}
const char *weft__export_squeeze(weft__export *x, const char *in, int axis)
{
    return NODE(x, "Squeeze", in, INTS(x, axis));
}
const char *weft__export_cast(weft__export *x, const char *in, int type)
{
    return NODE_WITH(x, "Cast", ATTRIBUTES(INT("to", type)), in);
}
const char *weft__export_slice(weft__export *x, const char *in, int axis, int64_t from, int64_t to)
{
    return NODE(x, "Slice", in, INTS(x, from), INTS(x, to), INTS(x, axis));
}

const char *weft__export_expand(weft__export *x, const char *in, int axes, const weft__dim *dim)
{
    const char *part[WEFT__EXPORT_RANK];
    if (axes == 0)
        return in;
    for (int i = 0; i < axes; i++)
        part[i] = weft__export_size(x, dim[i]);
    return NODE(x, "Expand", in,
                weft__export_node(x, "Concat", part, axes, ATTRIBUTES(INT("axis", 0)), NULL, 1));
}

/* ---- dynamic axes ---- */
weft__dim weft__export_symbol(weft__export *x, const char *name, int64_t n, const char *source, int axis)
{
    int same = 0;
    if (x->symbols == WEFT__EXPORT_SYMBOLS) {
        weft__export_fail(x, WEFT_EARG, "more than %d dynamic axes", WEFT__EXPORT_SYMBOLS);
        return (weft__dim){ .n = n };
    }
    weft__symbol *s = &x->symbol[x->symbols];
    for (int i = 0; i < x->symbols; i++) /* "time", "time2", .. */
        same += !strncmp(x->symbol[i].name, name, strlen(name));
    *s = (weft__symbol){ .n = n, .source = source, .axis = axis };
    snprintf(s->name, sizeof s->name, same ? "%.8s%d" : "%.8s", name, same + 1);
    return (weft__dim){ .n = n, .symbol = ++x->symbols };
}

weft__dim weft__export_batch_axis(weft__export *x, int64_t n, const char *source, int axis)
{
    for (int i = 0; i < x->symbols; i++)
        if (x->symbol[i].n == n && !strncmp(x->symbol[i].name, "batch", 5))
            return (weft__dim){ .n = n, .symbol = i + 1 };
    return weft__export_symbol(x, "batch", n, source, axis);
}

const char *weft__export_size(weft__export *x, weft__dim d)
{
    weft__symbol *s = d.symbol ? &x->symbol[d.symbol - 1] : NULL;
    if (!s)
        return INTS(x, d.n);
    if (!s->size && !s->source) /* no tensor of the batch yet: the longest length */
        s->size = NODE(x, "ReduceMax", s->lengths);
    else if (!s->size)
        s->size =
            NODE_WITH(x, "Shape", ATTRIBUTES(INT("start", s->axis), INT("end", s->axis + 1)), s->source);
    return s->size;
}

/* ---- inputs and outputs ---- */
void weft__export_add_value(weft__export *x, weft__proto *list, int field, const char *name, int type,
                            const weft__value *v)
{
    weft__proto info = { 0 }, kind = { 0 }, tensor = { 0 }, shape = { 0 };
    for (int i = 0; i < v->axes; i++) {
        weft__proto dim = { 0 };
        if (v->dim[i].symbol)
            weft__proto_text(&dim, 2, x->symbol[v->dim[i].symbol - 1].name);
        else
            weft__proto_int(&dim, 1, v->dim[i].n);
        weft__proto_message(&shape, 1, &dim);
    }
    weft__proto_int(&tensor, 1, type);
    weft__proto_message(&tensor, 2, &shape);
    weft__proto_message(&kind, 1, &tensor);
    weft__proto_text(&info, 1, name);
    weft__proto_message(&info, 2, &kind);
    weft__proto_message(list, field, &info);
}
