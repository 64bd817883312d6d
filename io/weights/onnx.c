/* onnx.c - lists the arrays of ONNX files: initialisers under their names, and the weights of LSTM, GRU and
 * RNN nodes as layers with PyTorch's names. */
#include <string.h>
#include "io/weights/onnx.h"

/* ---- messages ---- */
bool weft__onnx_fields(weft__weights *w, weft__pb message, weft__onnx_record *to)
{
    *to = (weft__onnx_record){ .message = message };
    for (weft__pb_field f; weft__pb_next(&message, &f);)
        if (f.number < WEFT__ONNX_FIELDS) {
            to->bytes[f.number] = f.bytes;
            to->value[f.number] = f.value;
            to->count[f.number]++;
        }
    return message.next == message.end || weft__onnx_damaged(w, message);
}

bool weft__onnx_field(weft__pb *message, int number, weft__pb *bytes)
{
    for (weft__pb_field f; weft__pb_next(message, &f);) {
        *bytes = f.bytes;
        if (f.number == number)
            return true;
    }
    return false;
}

bool weft__onnx_each(weft__weights *w, weft__pb *message, int number, weft__onnx_record *f)
{
    weft__pb bytes;
    return !w->status && weft__onnx_field(message, number, &bytes) && weft__onnx_fields(w, bytes, f);
}

/* ---- tensors ---- */
/* The type of numbers, and the field of a TensorProto that has them if raw_data has not. */
static const struct { unsigned char number, field, wire; } types[] = {
    [WEFT__ONNX_FLOAT] = { WEFT__F32, 4, WEFT__PB_32 }, [WEFT__ONNX_DOUBLE] = { WEFT__F64, 10, WEFT__PB_64 },
    [WEFT__ONNX_HALF] = { WEFT__F16, 5, 0 }, [WEFT__ONNX_BFLOAT16] = { WEFT__BF16, 5, 0 },
    [WEFT__ONNX_UINT8] = { WEFT__U8, 5, 0 }, [WEFT__ONNX_BOOL] = { WEFT__U8, 5, 0 },
    [3] = { WEFT__I8, 5, 0 }, [4] = { WEFT__U16, 5, 0 }, [5] = { WEFT__I16, 5, 0 },
    [12] = { WEFT__U32, 11, 0 }, [13] = { WEFT__U64, 11, 0 },
    [WEFT__ONNX_INT32] = { WEFT__I32, 5, 0 }, [WEFT__ONNX_INT64] = { WEFT__I64, 7, 0 }
};

static int field_of(int type)                    /* 0: weft does not read the type */
{
    return type > 0 && type < (int)(sizeof types / sizeof *types) ? types[type].field : 0;
}

weft__number weft__onnx_number(int type) { return field_of(type) ? types[type].number : WEFT__ODD; }

const char *weft__onnx_text(weft__weights *w, weft__pb bytes)
{
    return weft__weights_text(w, bytes.next, weft__pb_size(bytes));
}

bool weft__onnx_damaged(weft__weights *w, weft__pb message)
{
    weft__weights_fail(w, WEFT_EFORMAT, "damaged at byte %zu; expected a field of a protobuf message",
                       (size_t)(message.next - w->image));
    return false;
}

/* The numbers of a tensor: raw bytes in the image, or `count` numbers in fields. */
typedef struct { weft__pb raw; bool has_raw, external; int64_t count; } numbers;

/* Reads all fields of a TensorProto, but only counts numbers that need decoding. */
static bool read_header(weft__weights *w, weft__pb m, weft__array *a, int *type, numbers *n)
{
    uint64_t value;
    bool good = true;
    for (weft__pb_field f; good && weft__pb_next(&m, &f);) {
        bool own = f.number == field_of(*type), packed = f.type == WEFT__PB_BYTES;
        if (f.number == 1)
            while (weft__pb_number(&f, WEFT__PB_VARINT, &value))
                if (a->kind.rank < WEFT_RANK && value <= INT64_MAX)
                    a->kind.size[a->kind.rank++] = (int64_t)value;
                else
                    a->kind.rank = WEFT_RANK + 1;
        else if (f.number == 2)
            *type = (int)f.value;
        else if (f.number == 8)
            good = (a->name = weft__onnx_text(w, f.bytes));
        else if (f.number == 9 || (own && packed && types[*type].wire != WEFT__PB_VARINT)) {
            n->raw = f.bytes;
            n->has_raw = true;
        } else if (own)
            good = weft__pb_count(&f, types[*type].wire, &n->count);
        else if (f.number == 14)
            n->external = f.value;
    }
    return (good && m.next == m.end) || weft__onnx_damaged(w, m);
}

/* Decodes the numbers in the fields of a message, up to `size` bytes of them. */
static void decode(weft__weights *w, weft__pb message, int type, size_t size, weft__array *a)
{
    size_t each = weft__number_bytes(a->kind.type), n = 0;
    unsigned char *to = weft__weights_memory(w, size);
    uint64_t value;
    a->bytes = to;
    for (weft__pb_field f; to && weft__pb_next(&message, &f);)
        for (; n < size && f.number == types[type].field && weft__pb_number(&f, types[type].wire, &value);
             n += each)
            for (size_t i = 0; i < each; i++)
                to[n + i] = (unsigned char)(value >> 8 * i);
}

bool weft__onnx_tensor(weft__weights *w, weft__pb message, weft__array *a, int *type)
{
    char text[128];
    numbers n = { 0 };
    *a = (weft__array){ .name = "", .layer = -1 };
    *type = 0;
    if (!read_header(w, message, a, type, &n))
        return false;
    a->kind.type = weft__onnx_number(*type);
    size_t size = n.has_raw ? weft__pb_size(n.raw) : (size_t)n.count * weft__number_bytes(a->kind.type);
    if (n.external)
        weft__weights_fail(w, WEFT_EFORMAT, "%.100s is stored in another file; save the model with its data "
                           "inside (onnx.save_model(onnx.load(path), path2))", a->name);
    else if (a->kind.rank > WEFT_RANK)
        weft__weights_fail(w, WEFT_EFORMAT, "%.100s has an extent below 0, or more than %d axes", a->name,
                           WEFT_RANK);
    else if (a->kind.type != WEFT__ODD && weft__kind_bytes(&a->kind) != size)
        weft__weights_fail(w, WEFT_EFORMAT, "%.100s has %zu bytes of numbers; expected those of %s", a->name,
                           size, weft__kind_text(&a->kind, text));
    if (w->status || a->kind.type == WEFT__ODD)
        return !w->status;
    weft__set_strides(a);
    a->bytes = n.raw.next;
    if (!n.has_raw && size)
        decode(w, message, *type, size, a);
    return !w->status;
}

/* ---- recurrent nodes ---- */
const weft__onnx_cell *weft__onnx_cell_of(const char *op)
{
    /* ONNX: i o f c; z r h. weft: i f g o; r z n. */
    static const weft__onnx_cell cells[] = { { "LSTM", 4, { 0, 2, 3, 1 } },
                                             { "GRU", 3, { 1, 0, 2 } },
                                             { "RNN", 1, { 0 } } };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strcmp(op, cells[i].op))
            return &cells[i];
    return NULL;
}

weft__array weft__onnx_part(const weft__array *x, int direction, int64_t from, int64_t rows,
                            const weft__onnx_cell *cell)
{
    weft__array a = *x;
    size_t first = (size_t)(direction * x->stride[0] + from * x->stride[1]);
    a.kind.rank--;
    a.bytes = x->bytes ? x->bytes + first * weft__number_bytes(x->kind.type) : NULL;
    for (int i = 0; i < a.kind.rank; i++) {
        a.kind.size[i] = x->kind.size[i + 1];
        a.stride[i] = x->stride[i + 1];
    }
    a.kind.size[0] = rows;
    a.gates = cell->gates > 1 ? cell->gates : 0;
    memcpy(a.order, cell->order, sizeof a.order);
    return a;
}

int weft__onnx_direction(const weft__onnx_cell *cell, const weft__array *w, const weft__array *r,
                         const weft__array *b, int direction, weft__array out[4])
{
    const int64_t *sw = w->kind.size, *sr = r->kind.size, rows = sw[1];
    if (w->kind.rank != 3 || r->kind.rank != 3 || sr[0] != sw[0] || sr[1] != rows || sr[2] > rows ||
        sr[2] * cell->gates != rows || direction >= sw[0] || sw[0] > 2 ||
        (b && (b->kind.rank != 2 || b->kind.size[0] != sw[0] || b->kind.size[1] / 2 != rows ||
               b->kind.size[1] % 2)))
        return 0;
    out[0] = weft__onnx_part(w, direction, 0, rows, cell);
    out[1] = weft__onnx_part(r, direction, 0, rows, cell);
    if (b) {
        out[2] = weft__onnx_part(b, direction, 0, rows, cell);
        out[3] = weft__onnx_part(b, direction, rows, rows, cell);
    }
    return b ? 4 : 2;
}

/* ---- the graph ---- */
/* A node: its cell if it is recurrent, its name and the names of its first inputs. */
typedef struct { const weft__onnx_cell *cell; const char *name, *input[4]; int inputs; } node;

static bool read_node(weft__weights *w, const weft__onnx_record *f, node *n)
{
    weft__pb m = f->message, input;
    const char *op = weft__onnx_text(w, f->bytes[4]);
    *n = (node){ .name = weft__onnx_text(w, f->bytes[3]), .cell = op ? weft__onnx_cell_of(op) : NULL };
    while (n->inputs < 4 && weft__onnx_field(&m, 1, &input))
        n->input[n->inputs++] = weft__onnx_text(w, input);
    return !w->status && n->cell;
}

/* Returns the path of a node's layer: "/encoder/lstm/LSTM_1" gives "encoder.lstm", like PyTorch. */
static const char *layer_name(weft__weights *w, const char *name, int number)
{
    const char *end = *name == '/' ? strrchr(name, '/') : name;
    if (end == name)
        return *name ? name : weft__weights_print(w, "layer%d", number);
    char *text = (char *)(uintptr_t)weft__weights_print(w, "%.*s", (int)(end - name - 1), name + 1);
    for (char *p = text; (p = strchr(p, '/')); )
        *p = '.';
    return text;
}

/* Adds a layer's arrays, and marks the initialisers that they replace. */
enum { IN_LAYER = -2 };
static void add_layer(weft__weights *w, const node *r, int64_t initialisers, int number, const char *path,
                      int level)
{
    static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };
    weft__array *of[4] = { NULL }, all[4];
    for (int i = 1; i < r->inputs; i++)
        of[i] = weft__weights_find(&(weft__weights){ .array = w->array, .n = initialisers }, r->input[i]);
    if (!of[1] || !of[2] || of[1]->kind.rank != 3 || (r->inputs > 3 && *r->input[3] && !of[3]) ||
        of[1]->layer == IN_LAYER)
        return; /* computed weights stay as they are; another node may have the same weights */
    weft__array w_ih = *of[1], w_hh = *of[2], bias = of[3] ? *of[3] : w_ih;
    for (int i = 1; i < 4; i++)
        if (of[i])
            of[i]->layer = IN_LAYER; /* before the list grows */
    for (int d = 0; d < w_ih.kind.size[0] && !w->status; d++) {
        int n = weft__onnx_direction(r->cell, &w_ih, &w_hh, of[3] ? &bias : NULL, d, all);
        if (!n)
            weft__weights_fail(w, WEFT_EFORMAT, "node %.100s (%s): the shapes of its weights do not agree",
                               r->name, r->cell->op);
        for (int i = 0; i < n; i++) {
            all[i].name = weft__weights_print(w, "%s.%s_l%d%s", path, names[i], level, d ? "_reverse" : "");
            all[i].layer = number;
            weft__weights_add(w, &all[i]);
        }
    }
}

/* Lists the initialisers. */
static void read_graph(weft__weights *w, const weft__onnx_record *f)
{
    weft__pb m = f->message, tensor;
    weft__array a;
    int type;
    while (weft__onnx_field(&m, 5, &tensor) && weft__onnx_tensor(w, tensor, &a, &type))
        weft__weights_add(w, &a);
    weft__weights_fact(w, "nodes", "%d", f->count[1]);
    weft__weights_fact(w, "inputs", "%d", f->count[11]);
    weft__weights_fact(w, "outputs", "%d", f->count[12]);
}

/* Puts the arrays of the recurrent nodes in place of their initialisers. */
static void read_layers(weft__weights *w, weft__pb graph)
{
    int64_t n = w->n, kept = 0;
    int number = 0, level = 0;
    const char *before = "";
    weft__onnx_record f;
    node r;
    weft__weights_sort(w);
    while (weft__onnx_each(w, &graph, 1, &f))
        if (read_node(w, &f, &r)) {
            const char *path = layer_name(w, r.name, number);
            level = strcmp(path, before) ? 0 : level + 1;
            before = path;
            w->by_layer = w->by_kind = true;
            add_layer(w, &r, n, number++, path, level);
        }
    for (int64_t i = 0; i < w->n; i++)
        if (w->array[i].layer != IN_LAYER)
            w->array[kept++] = w->array[i];
    w->n = kept;
}

void weft__read_onnx_weights(weft__weights *w)
{
    weft__pb m = { w->image, w->image + w->size };
    weft__onnx_record f, graph, opset;
    if (!weft__onnx_fields(w, m, &f))
        return;
    if (f.count[1])
        weft__weights_fact(w, "ir version", "%lld", (long long)f.value[1]);
    if (f.count[2])
        weft__weights_fact(w, "producer", "%s", weft__onnx_text(w, f.bytes[2]));
    if (f.count[3])
        weft__weights_fact(w, "producer version", "%s", weft__onnx_text(w, f.bytes[3]));
    while (weft__onnx_each(w, &m, 8, &opset))
        if (opset.count[2])
            weft__weights_fact(w, "opset", "%lld", (long long)opset.value[2]);
    if (!f.bytes[7].next)
        weft__weights_fail(w, WEFT_EFORMAT, "it has no graph; expected an ONNX model");
    if (w->status || !weft__onnx_fields(w, f.bytes[7], &graph))
        return;
    read_graph(w, &graph);
    read_layers(w, f.bytes[7]);
}
