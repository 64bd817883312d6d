/* output.c - prints results as text, or collects them and prints them as JSON. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/weights/numpy.h"
#include "tools/weights/arrays.h"

enum { DEPTH = 16 };
static json_t *open[DEPTH]; /* lists and objects without their ends; open[0] has all */
static int depth;

static void add(const char *key, json_t *value)
{
    if (depth && key)
        json_object_set_new(open[depth - 1], key, value);
    else if (depth)
        json_array_append_new(open[depth - 1], value);
}

void emit_begin(const char *key, char bracket)
{
    if (!asked.json)
        return;
    json_t *value = bracket == '{' ? json_object() : json_array();
    add(key, value);
    open[depth++] = value;
}

void emit_end(const char *text)
{
    if (!asked.json)
        fputs(text, stdout);
    else if (--depth == 0) {
        json_dumpf(open[0], stdout, 0);
        putchar('\n');
        json_decref(open[0]);
    }
}

/* JSON has '?' for the bytes of a text that is not UTF-8, as the name of a file may be. */
void emit_text(const char *key, const char *format, const char *value)
{
    json_t *text = asked.json ? json_string(value) : NULL;
    char *escaped = get_memory(4 * (int64_t)strlen(value), 1), *to = escaped;
    for (const char *c = value; !text && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            to += snprintf(to, 5, "\\x%02x", (unsigned char)*c);
        else
            *to++ = (char)(asked.json && *c & 0x80 ? '?' : *c);
    if (asked.json)
        add(key, text ? text : json_string(escaped));
    else if (format)
        printf(format, escaped);
    free(escaped);
}

void emit_whole(const char *key, const char *format, int64_t n)
{
    if (asked.json)
        add(key, json_integer(n));
    else if (format)
        printf(format, (long long)n);
}

void emit_real(const char *key, const char *format, double x)
{
    if (asked.json)
        add(key, isfinite(x) ? json_real(x) : json_null());
    else if (format)
        printf(format, x);
}

void emit_shape(const char *key, const char *format, const weft__kind *k)
{
    char text[160];
    emit_begin(key, '[');
    for (int i = 0; i < k->rank && asked.json; i++)
        emit_whole(NULL, NULL, k->size[i]);
    emit_end("");
    if (!asked.json && format)
        printf(format, shape_text(k, text));
}

/* ---- arrays ---- */
static void emit_block(const numbers *x, const weft__kind *k, const char *key, int axis, int64_t from)
{
    enum { LIMIT = 8 }; /* as weft_print */
    int64_t n = axis < k->rank && (x->n || !asked.json) ? k->size[axis] : 0, stride = 1;
    if (axis == k->rank && x->type == WEFT__I64)
        emit_whole(key, "%lld", ((const int64_t *)x->values)[from]);
    else if (axis == k->rank)
        emit_real(key, "%.4g", number_at(x, from));
    if (axis == k->rank)
        return;
    const char *comma = axis + 1 == k->rank ? ", " : ",\n ";
    for (int i = axis + 1; i < k->rank; i++)
        stride *= k->size[i];
    emit_begin(key, '[');
    fputs(asked.json ? "" : "[", stdout);
    for (int64_t i = 0; i < n; i++) {
        if (!asked.json && n > LIMIT && i == LIMIT / 2) {
            printf("%s...", comma);
            i = n - LIMIT / 2;
        }
        fputs(asked.json || !i ? "" : comma, stdout);
        emit_block(x, k, NULL, axis + 1, from + i * stride);
    }
    emit_end("]");
}

static int write_npy(const numbers *x, const weft__kind *shape, const char *path)
{
    weft__kind k = *shape;
    k.type = x->type;
    size_t bytes = weft__kind_bytes(&k);
    char *file = get_memory((int64_t)bytes + WEFT__NPY_HEADER, 1);
    size_t n = weft__npy_header(&k, file);
    memcpy(file + n, x->values, bytes);
    weft_status s = weft_write_file(path, file, n + bytes);
    free(file);
    return s ? say_unreadable() : SAME;
}

int emit_numbers(const char *name, const numbers *x, const weft__kind *k, const char *npy)
{
    char type[32];
    if (npy)
        return write_npy(x, k, npy);
    emit_begin(NULL, '{');
    emit_text("name", NULL, name);
    emit_text("dtype", NULL, type_text(k->type & ~(unsigned)WEFT__BIG, type));
    emit_shape("shape", x->type == WEFT__I64 ? "%s of ints " : "%s ", k);
    emit_block(x, k, "values", 0, 0);
    emit_end("\n");
    return SAME;
}
