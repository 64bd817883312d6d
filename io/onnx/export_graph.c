/* export_graph.c - writes an ONNX graph: initializers, nodes from texts, inputs, outputs, and the file.
 * Numbers of fields are those of onnx.proto. */
#include <stdarg.h>
#include <string.h>
#include "io/onnx/export.h"

void weft__ex_fail(graph *x, weft_status status, const char *format, ...)
{
    char text[2400];
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    x->status = weft__file_fail(status, "weft_export_onnx: %s", text);
    longjmp(x->failed, 1);
}

void *weft__ex_memory(graph *x, size_t bytes)
{
    void *p = weft__piece_new(&x->memory, bytes);
    if (!p)
        weft__ex_fail(x, WEFT_ENOMEM, "no memory for the graph");
    return p;
}

const char *weft__ex_text(graph *x, const char *format, ...)
{
    char text[WEFT__PATH + 64];
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    char *copy = weft__ex_memory(x, strlen(text) + 1);
    return memcpy(copy, text, strlen(text) + 1);
}

void weft__ex_reserve(graph *x, const char *name)
{
    struct used *new = weft__ex_memory(x, sizeof *new);
    for (const struct used *u = x->used; u; u = u->next)
        if (!strcmp(u->name, name))
            weft__ex_fail(x, WEFT_EARG, "two inputs, outputs or parameters have the name \"%.200s\"; "
                                        "expected unique names", name);
    if (!*name || *name == '/')
        weft__ex_fail(x, WEFT_EARG, "the name \"%.200s\" of an input or output; expected a text that does "
                                    "not begin with /", name);
    *new = (struct used){ x->used, name };
    x->used = new;
}

/* ---- protobuf ---- */
/* A field is a tag, its number and wire type, and a value: a varint, four bytes, or a length and bytes. */
enum { VARINT = 0, BYTES = 2, FOUR_BYTES = 5 };

static void put(proto *m, const void *bytes, size_t n)
{
    if (n > m->room - m->n) {
        unsigned char *larger = weft__ex_memory(m->x, m->room = 2 * (m->n + n));
        if (m->n)
            memcpy(larger, m->bytes, m->n);
        m->bytes = larger;
    }
    if (n)
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
static void put_int(proto *m, int field, int64_t number)
{
    put_varint(m, (uint64_t)field << 3 | VARINT);
    put_varint(m, (uint64_t)number);
}
/* Begins a field whose n bytes the caller writes next. */
static void put_begin(proto *m, int field, size_t n)
{
    put_varint(m, (uint64_t)field << 3 | BYTES);
    put_varint(m, n);
}
static void put_bytes(proto *m, int field, const void *bytes, size_t n)
{
    put_begin(m, field, n);
    put(m, bytes, n);
}
static void put_text(proto *m, int field, const char *text) { put_bytes(m, field, text, strlen(text)); }
static void put_message(proto *m, int field, const proto *message)
{
    put_bytes(m, field, message->bytes, message->n);
}

/* ---- initializers ---- */
static const char *new_name(graph *x) { return weft__ex_text(x, "/%d", x->names++); }

const char *weft__ex_initializer(graph *x, const char *name, int type, int rank, const int64_t *shape,
                                 const void *numbers, size_t bytes)
{
    proto head = { .x = x };
    name = name ? name : new_name(x);
    for (int i = 0; i < rank; i++)
        put_int(&head, 1, shape[i]);
    put_int(&head, 2, type);
    put_text(&head, 8, name);
    put_begin(&head, 9, bytes);
    put_begin(&x->initializers, 5, head.n + bytes);
    put(&x->initializers, head.bytes, head.n);
    put(&x->initializers, numbers, bytes);
    weft__turn(type == INT64 ? 8 : 4, x->initializers.bytes + x->initializers.n - bytes, bytes);
    return name;
}

static const char *constant_of(graph *x, int type, int rank, const void *bytes, size_t n)
{
    struct constant *k = x->constants;
    while (k && (k->type != type || k->rank != rank || k->n != n || memcmp(k->bytes, bytes, n)))
        k = k->next;
    if (k)
        return k->name;
    const int64_t size = (int64_t)(n / sizeof(int64_t));
    k = weft__ex_memory(x, sizeof *k + n);
    *k = (struct constant){ x->constants, new_name(x), type, rank, n };
    weft__ex_initializer(x, k->name, type, rank, &size, bytes, n);
    memcpy(k->bytes, bytes, n);
    x->constants = k;
    return k->name;
}

/* ---- nodes ---- */
/* The text of nodes that is being read, and its arguments. name: the last %s. */
typedef struct reader { graph *x; const char *at, *name; va_list list; } reader;

static bool skip(reader *r, const char *word)
{
    r->at += strspn(r->at, ", ");
    const bool found = !strncmp(r->at, word, strlen(word));
    r->at += found ? strlen(word) : 0;
    return found;
}

/* Reads a number. Returns whether it is a float. */
static bool read_number(reader *r, double *number, int64_t *whole)
{
    const char *start = r->at;
    char *end;
    if (skip(r, "%g")) {
        *number = va_arg(r->list, double);
        return true;
    }
    if (skip(r, "%lld"))
        *whole = va_arg(r->list, long long);
    else if (skip(r, "%d"))
        *whole = va_arg(r->list, int);
    else {
        *number = weft__plain_number(start, &end);
        *whole = (int64_t)*number;
        r->at = end;
    }
    return memchr(start, '.', (size_t)(r->at - start)) != NULL;
}

/* Reads a list whose [ has been read. Returns the number of elements. */
static int read_list(reader *r, int64_t list[AXES])
{
    double number;
    int n = 0;
    if (skip(r, "%*p")) {
        n = va_arg(r->list, int);
        memcpy(list, va_arg(r->list, const void *), (size_t)n * sizeof *list);
    }
    while (!skip(r, "]"))
        read_number(r, &number, &list[n++]);
    return n;
}

static void read_attribute(reader *r, proto *node)
{
    enum { REAL = 1, WHOLE, TEXT, WHOLES = 7, TEXTS } type; /* numbers of onnx.proto */
    const size_t length = strcspn(r->at, "=");
    proto m = { .x = r->x };
    int64_t list[AXES];
    double number;
    put_bytes(&m, 1, r->at, length);
    r->at += length + 1;
    if (skip(r, "[Relu]")) {
        put_text(&m, 9, "Relu");
        type = TEXTS;
    } else if (skip(r, "[")) {
        for (int i = 0, n = read_list(r, list); i < n; i++)
            put_int(&m, 8, list[i]);
        type = WHOLES;
    } else if (skip(r, "%s")) {
        put_text(&m, 4, va_arg(r->list, const char *));
        type = TEXT;
    } else if (read_number(r, &number, list)) {
        put_varint(&m, 2 << 3 | FOUR_BYTES);
        put(&m, &(float){ (float)number }, sizeof(float));
        type = REAL;
    } else {
        put_int(&m, 3, *list);
        type = WHOLE;
    }
    put_int(&m, 20, type);
    put_message(node, 5, &m);
}

static const char *read_node(reader *r, const char *op, size_t length);
/* Reads an input. NULL: it is left out. */
static const char *read_input(reader *r)
{
    int64_t list[AXES];
    double number;
    if (skip(r, "%s")) {
        const char *name = va_arg(r->list, const char *);
        return *r->at == '(' ? read_node(r, name, strlen(name)) : (r->name = name);
    }
    if (skip(r, "$"))
        return r->name;
    if (skip(r, "@"))
        return input(r->x, *r->at++ - '0')->name;
    if (skip(r, "[")) {
        const int n = read_list(r, list);
        return constant_of(r->x, INT64, 1, list, (size_t)n * sizeof *list);
    }
    if (*r->at >= 'A' && *r->at <= 'Z') {
        const char *op = r->at;
        r->at += strcspn(op, ":(");
        return read_node(r, op, (size_t)(r->at - op));
    }
    if (read_number(r, &number, list))
        return constant_of(r->x, FLOAT, 0, &(float){ (float)number }, sizeof(float));
    return constant_of(r->x, INT64, 0, list, sizeof *list);
}

/* Reads the inputs and attributes of a node, and adds it. */
static const char *read_node(reader *r, const char *op, size_t length)
{
    graph *x = r->x;
    proto node = { .x = x }, attributes = node;
    const char *name;
    int absent = 0, results = 1;                 /* absent: inputs that are left out so far */
    if (skip(r, ":"))
        results = *r->at++ - '0';
    for (r->at++; !skip(r, ")");)
        if (*r->at >= 'a' && *r->at <= 'z')
            read_attribute(r, &attributes);
        else if (skip(r, "%*p")) {
            const int n = va_arg(r->list, int);
            const char *const *given = va_arg(r->list, const void *);
            for (int i = 0; i < n; i++)
                put_text(&node, 1, given[i]);
        } else if ((name = read_input(r)) == NULL)
            absent++;
        else {
            for (; absent; absent--)
                put_text(&node, 1, "");
            put_text(&node, 1, name);
        }
    for (int i = 0; i < results; i++)
        put_text(&node, 2, x->out[i] = new_name(x));
    put_bytes(&node, 4, op, length);
    put(&node, attributes.bytes, attributes.n);
    put_message(&x->nodes, 1, &node);
    return x->out[0];
}

const char *weft__ex_nodes(graph *x, const char *text, ...)
{
    reader r = { .x = x, .at = text };
    va_start(r.list, text);
    const char *name = read_input(&r);
    va_end(r.list);
    return name;
}

/* ---- inputs, outputs and the file ---- */
void weft__ex_end(graph *x, bool output, const char *name, weft_dtype type, const value *v)
{
    proto info = { .x = x }, kind = info, tensor = info, shape = info, node = info;
    weft__ex_reserve(x, name);
    for (int i = 0; i < v->axes; i++) {
        proto dim = { .x = x };
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
    proto head = { .x = x }, name = head, opset = head, tail = head;
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
    for (int i = 0; i < PARTS; i++)
        spans[i] = (weft__span){ part[i]->bytes, part[i]->n };
    x->status = weft__write_file(path, spans, PARTS);
}
