/* export_graph.c - writes an ONNX graph: nodes, constants, dynamic axes, inputs, outputs, and the file.
 * Numbers of fields are those of onnx.proto. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "core/locale.h"
#include "io/io.h"
#include "io/onnx/export.h"

void weft__ex_fail(graph *x, weft_status status, const char *format, ...)
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

void *weft__ex_memory(graph *x, size_t bytes)
{
    struct piece *p = bytes < SIZE_MAX / 2 ? calloc(1, sizeof *p + bytes) : NULL;
    if (!p) {
        weft__ex_fail(x, WEFT_ENOMEM, "no memory for the graph");
        return NULL;
    }
    p->next = x->memory;
    x->memory = p;
    return p + 1;
}

const char *weft__ex_text(graph *x, const char *format, ...)
{
    char text[WEFT__PATH + 64];
    va_list list;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    char *copy = weft__ex_memory(x, strlen(text) + 1);
    return copy ? memcpy(copy, text, strlen(text) + 1) : "";
}

bool weft__ex_reserve(graph *x, const char *name)
{
    struct used *new = weft__ex_memory(x, sizeof *new);
    for (const struct used *u = x->used; u; u = u->next)
        if (!strcmp(u->name, name))
            weft__ex_fail(x, WEFT_EARG, "two inputs, outputs or parameters have the name \"%.200s\"; "
                                        "expected unique names", name);
    if (!*name || *name == '/')
        weft__ex_fail(x, WEFT_EARG, "the name \"%.200s\" of an input or output; expected a text that does "
                                    "not begin with /", name);
    if (new)
        *new = (struct used){ x->used, name }, x->used = new;
    return !x->status;
}

/* ---- protobuf ---- */
/* A field is a tag, its number and wire type, and a value: a varint, four bytes, or a length and bytes. */
enum { VARINT = 0, BYTES = 2, FOUR_BYTES = 5 };

static void put(proto *m, const void *bytes, size_t n)
{
    if (m->failed || n == 0)
        return;
    if (n > m->room - m->n) {
        size_t room = m->n + n < SIZE_MAX / 4 ? 2 * (m->n + n) : 0;
        unsigned char *larger = room ? realloc(m->bytes, room) : NULL;
        if (!larger) {
            m->failed = true;
            return;
        }
        m->bytes = larger, m->room = room;
    }
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}
static void put_varint(proto *m, uint64_t number)
{
    unsigned char byte[10];
    size_t n = 0;
    for (; number > 127; number >>= 7)
        byte[n++] = (unsigned char)(number | 128);
    byte[n++] = (unsigned char)number;
    put(m, byte, n);
}
static void put_tag(proto *m, int field, int wire) { put_varint(m, (uint64_t)field << 3 | (uint64_t)wire); }
static void put_int(proto *m, int field, int64_t number)
{
    put_tag(m, field, VARINT);
    put_varint(m, (uint64_t)number);
}
/* Begins a field whose n bytes the caller writes next. */
static void put_begin(proto *m, int field, size_t n)
{
    put_tag(m, field, BYTES);
    put_varint(m, n);
}
static void put_text(proto *m, int field, const char *text)
{
    put_begin(m, field, strlen(text));
    put(m, text, strlen(text));
}
/* Writes a message as a field, and frees the message. */
static void put_message(proto *m, int field, proto *message)
{
    m->failed |= message->failed;
    put_begin(m, field, message->n);
    put(m, message->bytes, message->n);
    free(message->bytes);
}

/* ---- initializers ---- */
static const char *new_name(graph *x) { return weft__ex_text(x, "/%d", x->names++); }

const char *weft__ex_initializer(graph *x, const char *name, int type, int rank, const int64_t *shape,
                                 const void *numbers, size_t bytes)
{
    proto head = { 0 };
    name = name ? name : new_name(x);
    for (int i = 0; i < rank; i++)
        put_int(&head, 1, shape[i]);
    put_int(&head, 2, type);
    put_text(&head, 8, name);
    put_begin(&head, 9, bytes);
    put_begin(&x->initializers, 5, head.n + bytes);
    put(&x->initializers, head.bytes, head.n);
    put(&x->initializers, numbers, bytes);
    if (!x->initializers.failed)
        weft__turn(type == INT64 ? 8 : 4, x->initializers.bytes + x->initializers.n - bytes, bytes);
    x->initializers.failed |= head.failed;
    free(head.bytes);
    return name;
}

const char *weft__ex_constant(graph *x, int type, int rank, const void *bytes, size_t n)
{
    struct constant *k = x->constants;
    while (k && (k->type != type || k->rank != rank || k->n != n || memcmp(k->bytes, bytes, n)))
        k = k->next;
    if (!k && (k = weft__ex_memory(x, sizeof *k + n))) {
        *k = (struct constant){ x->constants, new_name(x), type, rank, false, n };
        memcpy(k->bytes, bytes, n);
        x->constants = k;
    }
    return k ? k->name : "";
}

/* Writes a constant when a node first reads it, because onnxruntime warns of others. */
static void use(graph *x, const char *name)
{
    struct constant *k = x->constants;
    while (k && k->name != name)
        k = k->next;
    if (!k || k->used)
        return;
    k->used = true;
    weft__ex_initializer(x, name, k->type, k->rank, &(int64_t){ (int64_t)(k->n / sizeof(int64_t)) }, k->bytes,
                         k->n);
}

/* ---- nodes ---- */
static void add_attribute(proto *node, const attribute *a)
{
    static const struct { char type; int number, field; } types[] = {
        { 'f', 1, 2 }, { 'i', 2, 3 }, { 's', 3, 4 }, { 'I', 7, 8 }, { 'S', 8, 9 }
    };
    proto m = { 0 };
    int k = 0;
    while (types[k].type != a->type)
        k++;
    put_text(&m, 1, a->name);
    for (int i = 0; i < (types[k].number > 3 ? a->n : 1); i++)
        if (a->type == 'f') {
            put_tag(&m, types[k].field, FOUR_BYTES);
            put(&m, &(float){ (float)a->f }, sizeof(float));
        } else if (a->type == 'i' || a->type == 'I')
            put_int(&m, types[k].field, a->type == 'i' ? a->i : a->ints[i]);
        else
            put_text(&m, types[k].field, a->s);
    put_int(&m, 20, types[k].number);
    put_message(node, 5, &m);
}

const char *weft__ex_node(graph *x, const char *op, const char *const *in, size_t n, const attribute *a,
                          const char **out, int results)
{
    proto node = { 0 };
    const char *one, **names = out ? out : &one;
    while (n && !in[n - 1]) /* trailing inputs that are left out */
        n--;
    for (size_t i = 0; i < n; i++) {
        put_text(&node, 1, in[i] ? in[i] : "");
        use(x, in[i]);
    }
    for (int i = 0; i < results; i++)
        put_text(&node, 2, names[i] = new_name(x));
    put_text(&node, 4, op);
    for (; a && a->name; a++)
        add_attribute(&node, a);
    put_message(&x->nodes, 1, &node);
    return names[0];
}

const char *weft__ex_transpose(graph *x, const char *in, int axes, const int *order)
{
    int64_t perm[AXES];
    bool moved = false;
    for (int i = 0; i < axes; i++)
        perm[i] = order[i], moved |= order[i] != i;
    return moved ? NODE_WITH(x, "Transpose", ATTRIBUTES(INT_LIST("perm", axes, perm)), in) : in;
}

/* ---- dynamic axes ---- */
extent weft__ex_symbol(graph *x, const char *name, int64_t n, const char *source, int axis)
{
    int same = 0;
    for (int i = 0; i < x->symbols; i++) {       /* "time", "time2", .. */
        const bool named = !strncmp(x->symbol[i].name, name, strlen(name));
        if (named && x->symbol[i].n == n && !strcmp(name, "batch"))
            return (extent){ .n = n, .symbol = i + 1 };
        same += named;
    }
    if (x->symbols == SYMBOLS) {
        weft__ex_fail(x, WEFT_EARG, "more than %d dynamic axes", SYMBOLS);
        return (extent){ .n = n };
    }
    symbol *s = &x->symbol[x->symbols];
    *s = (symbol){ .n = n, .source = source, .axis = axis };
    snprintf(s->name, sizeof s->name, same ? "%.8s%d" : "%.8s", name, same + 1);
    return (extent){ .n = n, .symbol = ++x->symbols };
}

const char *weft__ex_size(graph *x, extent d)
{
    symbol *s = d.symbol ? &x->symbol[d.symbol - 1] : NULL;
    if (!s)
        return INTS(x, d.n);
    if (!s->size && !s->source)                  /* no tensor of the batch yet: the longest length */
        s->size = NODE(x, "ReduceMax", s->lengths);
    const int from = s->axis;
    if (!s->size)
        s->size = NODE_WITH(x, "Shape", ATTRIBUTES(INT("start", from), INT("end", from + 1)), s->source);
    return s->size;
}

const char *weft__ex_sizes(graph *x, int n, const extent *d)
{
    const char *part[AXES];
    for (int i = 0; i < n; i++)
        part[i] = weft__ex_size(x, d[i]);
    return CONCAT(x, part, n, 0);
}

/* ---- inputs, outputs and the file ---- */
void weft__ex_end(graph *x, bool output, const char *name, weft_dtype type, const value *v)
{
    proto info = { 0 }, kind = { 0 }, tensor = { 0 }, shape = { 0 }, node = { 0 };
    if (!weft__ex_reserve(x, name))
        return;
    for (int i = 0; i < v->axes; i++) {
        proto dim = { 0 };
        if (v->dim[i].symbol)
            put_text(&dim, 2, x->symbol[v->dim[i].symbol - 1].name);
        else
            put_int(&dim, 1, v->dim[i].n);
        put_message(&shape, 1, &dim);
    }
    put_int(&tensor, 1, type == WEFT_I32 ? INT64 : FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&kind, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &kind);
    put_message(output ? &x->outputs : &x->inputs, output ? 12 : 11, &info);
    if (!output)
        return;
    put_text(&node, 1, v->name);
    put_text(&node, 2, name);
    put_text(&node, 4, "Identity");
    put_message(&x->nodes, 1, &node);
}

void weft__ex_write(graph *x, const char *path)
{
    proto head = { 0 }, name = { 0 }, opset = { 0 }, tail = { 0 };
    put_int(&head, 1, 8);
    put_text(&head, 2, "weft");
    put_text(&head, 3, weft_version());
    put_text(&name, 2, "weft");
    put_begin(&head, 7, x->nodes.n + name.n + x->initializers.n + x->inputs.n + x->outputs.n);
    put_text(&opset, 1, "");
    put_int(&opset, 2, 17);
    put_message(&tail, 8, &opset);
    const proto *part[] = { &head, &x->nodes, &name, &x->initializers, &x->inputs, &x->outputs, &tail };
    enum { PARTS = sizeof part / sizeof *part };
    weft__span spans[PARTS];
    for (int i = 0; i < PARTS; i++) {
        spans[i] = (weft__span){ part[i]->bytes, part[i]->n };
        if (part[i]->failed)
            weft__ex_fail(x, WEFT_ENOMEM, "no memory for the model");
    }
    if (!x->status)
        x->status = weft__write_file(path, spans, PARTS);
    free(head.bytes), free(name.bytes), free(tail.bytes);
}
