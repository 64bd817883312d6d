/* output.c - prints results as JSON or as text. Elements of the outermost list have a line each. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

static bool follows;                             /* the next value needs a comma */
static int depth;

/* Prints a text in quotes. Bytes of a text that is not UTF-8, as a name of a file may be, become '?'. */
static void print_quoted(const char *text)
{
    char *copy = get_memory((int64_t)strlen(text), 1);
    json_t *value = json_string(memcpy(copy, text, strlen(text)));
    for (char *c = copy; !value && *c; c++)
        *c = (char)(*c & 0x80 ? '?' : *c);
    value = value ? value : json_string(copy);
    json_dumpf(value, stdout, JSON_ENCODE_ANY);
    json_decref(value);
    free(copy);
}

/* Prints comma and key. Returns whether the output is JSON. */
static bool begin_value(const char *key)
{
    if (!asked.json)
        return false;
    if (follows)
        fputs(depth == 1 ? ",\n" : ", ", stdout);
    follows = true;
    if (key) {
        print_quoted(key);
        fputs(": ", stdout);
    }
    return true;
}

void emit_begin(const char *key, char bracket)
{
    if (!begin_value(key))
        return;
    putchar(bracket);
    depth++;
    follows = false;
}

void emit_end(char bracket, const char *text)
{
    if (!asked.json) {
        fputs(text, stdout);
        return;
    }
    follows = --depth;
    printf(depth ? "%c" : "%c\n", bracket);
}

void emit_text(const char *key, const char *format, const char *value)
{
    char *escaped = get_memory(4 * (int64_t)strlen(value), 1), *to = escaped;
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if (*c < ' ' || *c == 127)
            to += snprintf(to, 5, "\\x%02x", *c);
        else
            *to++ = (char)*c;
    if (begin_value(key))
        print_quoted(value);
    else if (format)
        printf(format, escaped);
    free(escaped);
}

void emit_whole(const char *key, const char *format, int64_t n)
{
    if (begin_value(key))
        printf("%lld", (long long)n);
    else if (format)
        printf(format, (long long)n);
}

static void emit_digits(const char *key, const char *format, double x, int digits)
{
    bool json = begin_value(key);
    if (json && !isfinite(x))
        fputs("null", stdout);
    else if (json)
        printf("%.*g", digits, x);
    else if (format)
        printf(format, x);
}

void emit_real(const char *key, const char *format, double x) { emit_digits(key, format, x, 17); }

void emit_number(const char *key, const char *format, const numbers *x, int64_t i)
{
    if (x->type == WEFT__I64)
        emit_whole(key, "%lld", ((const int64_t *)x->values)[i]);
    else
        emit_digits(key, format, number_at(x, i), x->type == WEFT__F32 ? 9 : 17);
}

void emit_shape(const char *key, const char *format, const weft__kind *k)
{
    char text[160];
    if (begin_value(key))
        fputs(shape_text(k, text), stdout);
    else if (format)
        printf(format, shape_text(k, text));
}
