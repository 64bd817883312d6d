/* onnx.c - lists the arrays of ONNX files: initialisers under their names, and the weights of LSTM, GRU and
 * RNN nodes as layers with PyTorch's names. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/onnx.h"

/* ---- tensors ---- */
/* The type of numbers, and the field of a TensorProto that has them if raw_data has not. */
static const struct {
    unsigned char number, field, wire;
} types[] = {
    [WEFT__ONNX_FLOAT] = { WEFT__F32, 4, WEFT__PB_32 },
    [WEFT__ONNX_UINT8] = { WEFT__U8, 5, WEFT__PB_VARINT },
    [3] = { WEFT__I8, 5, WEFT__PB_VARINT },
    [4] = { WEFT__U16, 5, WEFT__PB_VARINT },
    [5] = { WEFT__I16, 5, WEFT__PB_VARINT },
    [WEFT__ONNX_INT32] = { WEFT__I32, 5, WEFT__PB_VARINT },
    [WEFT__ONNX_INT64] = { WEFT__I64, 7, WEFT__PB_VARINT },
    [WEFT__ONNX_BOOL] = { WEFT__U8, 5, WEFT__PB_VARINT },
    [WEFT__ONNX_HALF] = { WEFT__F16, 5, WEFT__PB_VARINT },
    [WEFT__ONNX_DOUBLE] = { WEFT__F64, 10, WEFT__PB_64 },
    [12] = { WEFT__U32, 11, WEFT__PB_VARINT },
    [13] = { WEFT__U64, 11, WEFT__PB_VARINT },
    [WEFT__ONNX_BFLOAT16] = { WEFT__BF16, 5, WEFT__PB_VARINT },
};

static bool is_known(int type)
{
    return type > 0 && type < (int)(sizeof types / sizeof *types) && types[type].field;
}

weft__number weft__onnx_number(int type) { return is_known(type) ? types[type].number : WEFT__ODD; }

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

/* Decodes the numbers in the fields of a message, `count` of them, or points to them in the image. */
static void decode(weft__weights *w, weft__pb message, int type, int64_t count, weft__array *a)
{
    size_t each = weft__number_bytes(types[type].number);
    unsigned char *to = NULL;
    uint64_t value;
    for (weft__pb_field f; weft__pb_next(&message, &f) && !w->status;) {
        if (f.number != types[type].field)
            continue;
        if (!a->bytes && types[type].wire != WEFT__PB_VARINT && f.type == WEFT__PB_BYTES &&
            weft__pb_size(f.bytes) == (size_t)count * each) {
            a->bytes = f.bytes.next;
            return;
        }
        if (!to && !(to = weft__weights_memory(w, (size_t)count * each)))
            return;
        a->bytes = a->bytes ? a->bytes : to;
        for (; weft__pb_number(&f, types[type].wire, &value); to += each)
            for (size_t i = 0; i < each; i++)
                to[i] = (unsigned char)(value >> 8 * i);
    }
}

/* Reads all fields of a TensorProto except its numbers, and counts these. */
typedef struct {
    weft__pb raw;
    bool has_raw, external;
    int64_t count;
} numbers;
static bool read_header(weft__weights *w, weft__pb message, weft__array *a, int *type, numbers *n)
{
    weft__pb m = message;
    uint64_t value;
    for (weft__pb_field f; weft__pb_next(&m, &f);) {
        if (f.number == 1)
            while (weft__pb_number(&f, WEFT__PB_VARINT, &value)) {
                if (a->kind.rank == WEFT_RANK || value > INT64_MAX)
                    a->kind.rank = WEFT_RANK + 1;
                else if (a->kind.rank < WEFT_RANK)
                    a->kind.size[a->kind.rank++] = (int64_t)value;
            }
        else if (f.number == 2)
            *type = (int)f.value;
        else if (f.number == 8)
            a->name = weft__onnx_text(w, f.bytes);
        else if (f.number == 9) {
            n->raw = f.bytes;
            n->has_raw = true;
        } else if (f.number == 14 && f.value)
            n->external = true;
    }
    if (m.next != m.end)
        return weft__onnx_damaged(w, m);
    return !w->status;
}

static bool count_numbers(weft__weights *w, weft__pb message, int type, int64_t *count)
{
    for (weft__pb_field f; weft__pb_next(&message, &f);)
        if (f.number == types[type].field && !weft__pb_count(&f, types[type].wire, count))
            return weft__onnx_damaged(w, f.bytes.next ? f.bytes : message);
    return true;
}

bool weft__onnx_tensor(weft__weights *w, weft__pb message, weft__array *a, int *type)
{
    numbers n = { 0 };
    *a = (weft__array){ .name = "", .layer = -1 };
    *type = 0;
    if (!read_header(w, message, a, type, &n))
        return false;
    if (n.external)
        weft__weights_fail(w, WEFT_EFORMAT,
                           "%.100s is stored in another file; save the model with its data inside "
                           "(onnx.save_model(onnx.load(path), path2))",
                           a->name);
    a->kind.type = weft__onnx_number(*type);
    if (a->kind.rank > WEFT_RANK)
        weft__weights_fail(w, WEFT_EFORMAT, "%.100s has an extent below 0, or more than %d axes", a->name,
                           WEFT_RANK);
    if (w->status || a->kind.type == WEFT__ODD)
        return !w->status;
    if (!n.has_raw && !count_numbers(w, message, *type, &n.count))
        return false;
    size_t each = weft__number_bytes(a->kind.type),
           size = n.has_raw ? weft__pb_size(n.raw) : (size_t)n.count * each;
    if (weft__kind_bytes(&a->kind) != size) {
        char text[128];
        weft__weights_fail(w, WEFT_EFORMAT, "%.100s has %zu bytes of numbers; expected those of %s", a->name,
                           size, weft__kind_text(&a->kind, text));
        return false;
    }
    weft__set_strides(a);
    if (n.has_raw)
        a->bytes = n.raw.next;
    else if (n.count)
        decode(w, message, *type, n.count, a);
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

/* Returns array [direction, from ..] of x as one with a rank below by 1 and `rows` rows. */
static weft__array part(const weft__array *x, int direction, int64_t from, int64_t rows,
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
    out[0] = part(w, direction, 0, rows, cell);
    out[1] = part(r, direction, 0, rows, cell);
    if (b) {
        out[2] = part(b, direction, 0, rows, cell);
        out[3] = part(b, direction, rows, rows, cell);
    }
    return b ? 4 : 2;
}

/* ---- the graph ---- */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const weft__array *)a)->name, ((const weft__array *)b)->name);
}

/* A recurrent node: its operator, name and the names of its first inputs. */
typedef struct {
    const weft__onnx_cell *cell;
    const char *name, *input[4];
    int inputs;
} recurrent;

static bool read_node(weft__weights *w, weft__pb m, recurrent *r)
{
    weft__pb name = { 0 }, op = { 0 }, input[4] = { { 0 } };
    char text[8] = "";
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        if (f.number == 1 && r->inputs < 4)
            input[r->inputs++] = f.bytes;
        else if (f.number == 3)
            name = f.bytes;
        else if (f.number == 4)
            op = f.bytes;
    if (m.next != m.end)
        return weft__onnx_damaged(w, m);
    if (weft__pb_size(op) < sizeof text && weft__pb_size(op))
        memcpy(text, op.next, weft__pb_size(op));
    r->cell = weft__onnx_cell_of(text);
    for (int i = 0; r->cell && i < r->inputs; i++)
        r->input[i] = weft__onnx_text(w, input[i]);
    r->name = r->cell ? weft__onnx_text(w, name) : "";
    return !w->status;
}

/* Returns the path of a node's layer: "/encoder/lstm/LSTM_1" gives "encoder.lstm", like PyTorch. */
static const char *layer_name(weft__weights *w, const char *name, int number)
{
    size_t bytes = strlen(name) + 32;
    char *text = weft__weights_memory(w, bytes);
    if (!text)
        return "";
    const char *end = *name == '/' ? strrchr(name, '/') : NULL;
    if (end && end > name) {
        memcpy(text, name + 1, (size_t)(end - name - 1));
        for (char *p = text; *p; p++)
            *p = *p == '/' ? '.' : *p;
        return text;
    }
    if (*name)
        snprintf(text, bytes, "%s", name);
    else
        snprintf(text, bytes, "layer%d", number);
    return text;
}

/* Adds a layer's arrays, and marks the initialisers that they replace. */
enum { IN_LAYER = -2 };
static void add_layer(weft__weights *w, const recurrent *r, int64_t initialisers, int number,
                      const char *path, int level)
{
    static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };
    weft__array *of[4] = { NULL }, all[4];
    for (int i = 1; i < r->inputs && initialisers; i++)
        of[i] = bsearch(&(weft__array){ .name = r->input[i] }, w->array, (size_t)initialisers,
                        sizeof *w->array, by_name);
    if (!of[1] || !of[2] || of[1]->kind.rank != 3 || (r->inputs > 3 && *r->input[3] && !of[3]))
        return; /* weights that are computed stay as they are */
    if (of[1]->layer == IN_LAYER)
        return; /* another node with the same weights */
    weft__array w_ih = *of[1], w_hh = *of[2], bias = of[3] ? *of[3] : w_ih;
    for (int i = 1; i < 4; i++)
        if (of[i])
            of[i]->layer = IN_LAYER; /* before the list grows */
    for (int d = 0; d < w_ih.kind.size[0]; d++) {
        int n = weft__onnx_direction(r->cell, &w_ih, &w_hh, of[3] ? &bias : NULL, d, all);
        if (!n)
            weft__weights_fail(w, WEFT_EFORMAT, "node %.100s (%s): the shapes of its weights do not agree",
                               r->name, r->cell->op);
        for (int i = 0; i < n && !w->status; i++) {
            size_t bytes = strlen(path) + 48;
            char *name = weft__weights_memory(w, bytes);
            if (name)
                snprintf(name, bytes, "%s.%s_l%d%s", path, names[i], level, d ? "_reverse" : "");
            all[i].place = all[i].name;
            all[i].name = name;
            all[i].layer = number;
            weft__weights_add(w, &all[i]);
        }
    }
}

/* Lists the initialisers, then the recurrent nodes. */
static void read_graph(weft__weights *w, weft__pb graph)
{
    weft__pb m = graph;
    int64_t nodes = 0, inputs = 0, outputs = 0;
    weft__array a;
    int type;
    for (weft__pb_field f; weft__pb_next(&m, &f) && !w->status;) {
        if (f.number == 5 && weft__onnx_tensor(w, f.bytes, &a, &type))
            weft__weights_add(w, &a);
        nodes += f.number == 1;
        inputs += f.number == 11;
        outputs += f.number == 12;
    }
    if (m.next != m.end && !w->status)
        weft__onnx_damaged(w, m);
    weft__weights_fact(w, "nodes", "%lld", (long long)nodes);
    weft__weights_fact(w, "inputs", "%lld", (long long)inputs);
    weft__weights_fact(w, "outputs", "%lld", (long long)outputs);
}

static void read_layers(weft__weights *w, weft__pb graph)
{
    int64_t n = w->n, kept = 0;
    recurrent r;
    const char *path = "", *before = "";
    if (n)
        qsort(w->array, (size_t)n, sizeof *w->array, by_name);
    for (struct {
             int number, level;
             weft__pb_field f;
         } at = { 0 };
         weft__pb_next(&graph, &at.f) && !w->status;) {
        if (at.f.number != 1 || !read_node(w, at.f.bytes, (memset(&r, 0, sizeof r), &r)) || !r.cell)
            continue;
        path = layer_name(w, r.name, at.number);
        at.level = strcmp(path, before) ? 0 : at.level + 1;
        before = path;
        w->by_layer = w->by_kind = true;
        add_layer(w, &r, n, at.number++, path, at.level);
    }
    for (int64_t i = 0; i < w->n; i++)
        if (w->array[i].layer != IN_LAYER)
            w->array[kept++] = w->array[i];
    w->n = kept;
}

void weft__read_onnx_weights(weft__weights *w)
{
    weft__pb m = { w->image, w->image + w->size }, graph = { 0 };
    for (weft__pb_field f, g; weft__pb_next(&m, &f) && !w->status;) {
        const char *text = f.number == 2 || f.number == 3 ? weft__onnx_text(w, f.bytes) : "";
        if (f.number == 1)
            weft__weights_fact(w, "ir version", "%lld", (long long)f.value);
        else if (f.number == 2 || f.number == 3)
            weft__weights_fact(w, f.number == 2 ? "producer" : "producer version", "%s", text ? text : "");
        else if (f.number == 7)
            graph = f.bytes;
        else if (f.number == 8)
            for (weft__pb opset = f.bytes; weft__pb_next(&opset, &g);)
                if (g.number == 2)
                    weft__weights_fact(w, "opset", "%lld", (long long)g.value);
    }
    if (m.next != m.end && !w->status)
        weft__onnx_damaged(w, m);
    if (!graph.next)
        weft__weights_fail(w, WEFT_EFORMAT, "it has no graph; expected an ONNX model");
    if (!w->status)
        read_graph(w, graph);
    if (!w->status)
        read_layers(w, graph);
}
