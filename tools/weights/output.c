/* output.c - prints results as text or as JSON. */
#include <jansson.h>
#include <math.h>
#include "io/weights/weights.h"
#include "tools/weights/arrays.h"

static char key[128]; /* of the next value; empty in a list */
static int64_t count; /* the last %d */

/* Prints what is before a value of JSON. */
static void begin_value(void)
{
    if (asked.json)
        printf(*key ? "%s\"%s\": " : "%s", asked.comma ? ", " : "", key);
    asked.comma = true;
    *key = 0;
}

/* form: for text, as below. JSON has no form for the bytes of a path that is not UTF-8. */
static void put_text(const char *form, const char *value)
{
    if (asked.json) {
        json_auto_t *quoted = json_string(value);
        quoted = quoted ? quoted : json_string("(not UTF-8)");
        json_dumpf(quoted, stdout, JSON_ENCODE_ANY);
        return;
    }
    char *text SCOPED = get_memory(4 * (int64_t)strlen(value), 1), *to = text;
    for (const char *c = value; *c; c++)
        to += snprintf(to, 5, (unsigned char)*c < ' ' || *c == 127 ? "\\x%02x" : "%c", (unsigned char)*c);
    printf(form, text);
}

static void put_real(const char *form, double x)
{
    printf(!asked.json ? form : isfinite(x) ? "%.17g" : "null", x);
}

/* Prints the next argument by a conversion, "%-16s": a form of n characters and a letter. */
static void put_value(const char *conversion, size_t n, char letter, va_list *list)
{
    char form[16], shape[128];
    snprintf(form, sizeof form, "%.*s%s", asked.json ? 1 : (int)n, conversion,
             letter == 'd' ? "lld" : letter == 'g' ? "g" : "s");
    begin_value();
    if (letter == 'd')
        printf(form, (long long)(count = va_arg(*list, int64_t)));
    else if (letter == 'g')
        put_real(form, va_arg(*list, double));
    else if (letter == 'k')
        printf(form, strchr(weft__kind_text(va_arg(*list, const weft__kind *), shape), '['));
    else
        put_text(form, letter == 's' ? va_arg(*list, const char *) :
                                       type_text(va_arg(*list, const weft__kind *)->type));
}

void emit(const char *form, ...)
{
    va_list list;
    va_start(list, form);
    for (const char *c = form; *c; c++)
        if (*c == '<') {
            snprintf(key, sizeof key, "%.*s", (int)strcspn(c + 1, ">"), c + 1);
            c = strchr(c, '>');
        } else if (*c == '%') {
            const char *end = strpbrk(c, "sdgtk");
            put_value(c, (size_t)(end - c), *end, &list);
            c = end;
        } else if (!strncmp(c, "(s)", 3)) {
            fputs(asked.json || count == 1 ? "" : "s", stdout);
            c += 2;
        } else if (asked.json == !!strchr("{[]}", *c)) {
            if (*c == '{' || *c == '[')
                begin_value();
            asked.comma = *c == '}' || *c == ']';
            putchar(*c);
        }
    va_end(list);
}

/* ---- arrays ---- */
/* Prints the part of an array whose first axis is `axis` and whose first number is x[from]. */
static void put_block(const numbers *x, const weft__kind *k, int axis, int64_t from)
{
    if (axis == k->rank) {
        if (weft__number_is_int(x->type))
            printf("%lld", (long long)number_at(x, from));
        else
            put_real("%.4g", (double)number_at(x, from));
        return;
    }
    int64_t n = x->n || !asked.json ? k->size[axis] : 0, stride = 1;
    const char *between = axis + 1 == k->rank ? ", " : ",\n ";
    for (int i = axis + 1; i < k->rank && x->n; i++)
        stride *= k->size[i];
    putchar('[');
    for (int64_t i = 0; i < n; i++) {
        fputs(i ? between : "", stdout);
        if (!asked.json && n > 8 && i == 4) { /* as weft_print */
            printf("...%s", between);
            i = n - 4;
        }
        put_block(x, k, axis + 1, from + i * stride);
    }
    putchar(']');
}

void emit_numbers(const char *name, const numbers *x, const weft__kind *k, const char *npy)
{
    if (!npy) {
        emit("{<name>%.0s<dtype>%.0t<shape>%k ", name, k, k);
        emit(weft__number_is_int(x->type) ? "of ints <values>" : "<values>");
        begin_value();
        put_block(x, k, 0, 0);
        emit("}\n");
        return;
    }
    weft__kind kind = *k;
    kind.type = x->type;
    size_t bytes = weft__kind_bytes(&kind);
    SCOPED char *file = get_memory((int64_t)bytes + WEFT__NPY_HEADER, 1);
    size_t header = weft__npy_header(&kind, file);
    memcpy(file + header, x->values, bytes);
    weft__turn(weft__number_bytes(kind.type), file + header, bytes);
    if (weft_write_file(npy, file, header + bytes))
        unreadable();
}
