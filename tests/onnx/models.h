/* models.h - ONNX models for tests: golden cases of tests/interchange/onnx_files.py, and small graphs that a
 * test writes. */
#ifndef TESTS_ONNX_MODELS_H
#define TESTS_ONNX_MODELS_H
#include "io/onnx/api_onnx.h"
#include "tests/io/files.h"

/* ---- golden cases ---- */
enum { MOST_VALUES = 16 };
typedef struct {
    int32_t is_int, rank;
    int64_t size[WEFT_RANK], n;
    const unsigned char *numbers;
} golden_array;
typedef struct {
    char name[64];
    content model; /* in the file */
    int32_t inputs, outputs;
    golden_array value[MOST_VALUES]; /* the inputs, then the outputs */
} golden_case;

UNUSED static int32_t next_int(const unsigned char **p)
{
    int32_t n;
    memcpy(&n, *p, sizeof n);
    *p += sizeof n;
    return n;
}

UNUSED static golden_case next_case(const unsigned char **p)
{
    golden_case c = { .name = "" };
    int32_t n = next_int(p);
    memcpy(c.name, *p, (size_t)n);
    *p += n;
    c.model.n = (size_t)next_int(p);
    c.model.at = (unsigned char *)(uintptr_t)*p;
    *p += c.model.n;
    c.inputs = next_int(p);
    c.outputs = next_int(p);
    for (int i = 0; i < c.inputs + c.outputs; i++) {
        golden_array *a = &c.value[i];
        a->is_int = next_int(p);
        a->rank = next_int(p);
        a->n = 1;
        for (int k = 0; k < a->rank; k++)
            a->n *= a->size[k] = next_int(p);
        a->numbers = *p;
        *p += a->n * 4;
    }
    return c;
}
/* For each case `c` of a golden file. */
#define FOR_CASES(c, file)                                                                        \
    for (content c##_all = read_bytes(golden_path("interchange/onnx/" file)), c##_once = c##_all; \
         c##_once.at; c##_once.at = NULL)                                                         \
        for (const unsigned char *c##_at = c##_all.at; c##_at < c##_all.at + c##_all.n;)          \
            for (golden_case c = next_case(&c##_at); c.model.at; c.model.at = NULL)

UNUSED static weft_tensor *tensor_of(weft *w, const golden_array *a)
{
    weft_real reals[4096];
    float x;
    cr_assert(a->n <= COUNT(reals));
    for (int64_t i = 0; i < a->n; i++) {
        memcpy(&x, a->numbers + 4 * i, sizeof x);
        reals[i] = a->is_int ? 0 : (weft_real)x;
    }
    return a->is_int ?
               weft_ints(w, (const int32_t *)(const void *)memcpy(reals, a->numbers, (size_t)a->n * 4),
                         a->rank, a->size) :
               weft_reals(w, reals, a->rank, a->size);
}

/* ---- small graphs ---- */
typedef struct {
    unsigned char at[4096];
    size_t n;
} message;
UNUSED static void put_varint(message *m, uint64_t v)
{
    for (; v > 127; v >>= 7)
        m->at[m->n++] = (unsigned char)(v | 128);
    m->at[m->n++] = (unsigned char)v;
}
UNUSED static void put_field(message *m, int number, const void *bytes, size_t n)
{
    cr_assert(m->n + n + 16 < sizeof m->at);
    put_varint(m, (uint64_t)number << 3 | 2);
    put_varint(m, n);
    memcpy(m->at + m->n, bytes, n);
    m->n += n;
}
UNUSED static void put_name(message *m, int number, const char *text)
{
    put_field(m, number, text, strlen(text));
}
UNUSED static void put_part(message *m, int number, const message *part)
{
    put_field(m, number, part->at, part->n);
}
UNUSED static void put_number(message *m, int number, uint64_t v)
{
    put_varint(m, (uint64_t)number << 3);
    put_varint(m, v);
}

/* Adds a node: "Add a b > y". */
UNUSED static void put_node(message *graph, const char *text)
{
    message node = { .n = 0 };
    char copy[128], *save = NULL;
    bool after = false;
    snprintf(copy, sizeof copy, "%s", text);
    char *op = strtok_r(copy, " ", &save);
    for (char *word; (word = strtok_r(NULL, " ", &save));)
        if (*word == '>')
            after = true;
        else
            put_name(&node, after ? 2 : 1, word);
    put_name(&node, 3, text);
    put_name(&node, 4, op);
    put_part(graph, 1, &node);
}

/* Adds an initialiser of float32 with 1, 2, .. as raw data. */
UNUSED static void put_initial(message *graph, const char *name, int rank, const uint64_t *size, int n)
{
    message tensor = { .n = 0 };
    float numbers[64];
    for (int i = 0; i < n; i++)
        numbers[i] = (float)(i + 1);
    for (int i = 0; i < rank; i++)
        put_number(&tensor, 1, size[i]);
    put_number(&tensor, 2, 1);
    put_name(&tensor, 8, name);
    put_field(&tensor, 9, numbers, (size_t)n * sizeof *numbers);
    put_part(graph, 5, &tensor);
}

/* Adds an input (11) or output (12) of type float32, of any shape. */
UNUSED static void put_end(message *graph, int number, const char *name)
{
    message tensor = { .n = 0 }, type = { .n = 0 }, value = { .n = 0 };
    put_number(&tensor, 1, 1);
    put_part(&type, 1, &tensor);
    put_name(&value, 1, name);
    put_part(&value, 2, &type);
    put_part(graph, number, &value);
}

/* A graph from x to y, of nodes, "Neg x > y", and initialisers: "w[2,3]=6" has 6 numbers. */
UNUSED static message graph_of(const char *text)
{
    message g = { .n = 0 };
    char copy[300], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *p = strtok_r(copy, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
        char *name = p + strspn(p, " "), *at = strchr(name, '['), *n = strchr(name, '=');
        uint64_t size[WEFT_RANK];
        int rank = 0;
        for (char *s = at; s && *s != ']' && s[1] != ']'; rank++)
            size[rank] = strtoull(s + 1, &s, 10);
        if (at)
            *at = 0;
        if (n)
            put_initial(&g, name, rank, size, atoi(n + 1));
        else
            put_node(&g, name);
    }
    put_end(&g, 11, "x");
    put_end(&g, 12, "y");
    return g;
}

/* Returns a model of opset 17 with that graph. */
UNUSED static message model_of(const message *graph)
{
    message m = { .n = 0 }, set = { .n = 0 };
    put_number(&m, 1, 8);
    put_name(&m, 2, "test");
    put_part(&m, 7, graph);
    put_number(&set, 2, 17);
    put_part(&m, 8, &set);
    return m;
}
UNUSED static weft_onnx *import_graph(weft *w, const char *text)
{
    message g = graph_of(text), m = model_of(&g);
    return weft_import_onnx(put_bytes("graph.onnx", m.at, m.n), w, NULL);
}
#endif
