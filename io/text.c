/* text.c - UTF-8, and numbers as texts; see io.h. */
#include <math.h>
#include <stdlib.h>
#include "io/io.h"

int weft__utf8_character(const char *s)
{
    unsigned char a = (unsigned char)s[0], b = (unsigned char)(a ? s[1] : 0);
    int n = a < 0x80 ? a != 0 : a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : a < 0xF5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (a == 0xE0 && b < 0xA0) || (a == 0xF0 && b < 0x90), surrogate = a == 0xED && b > 0x9F,
         too_large = a == 0xF4 && b > 0x8F;      /* above 10FFFF */
    return overlong || surrogate || too_large ? 0 : n;
}

size_t weft__utf8_valid(const char *s)
{
    const char *end = s;
    for (int n; (n = weft__utf8_character(end));)
        end += n;
    return (size_t)(end - s);
}

int weft__utf8_length(const char *s)
{
    int n = 0;
    for (int bytes; *s; s += bytes ? bytes : 1, n++)
        bytes = weft__utf8_character(s);
    return n;
}

int weft__shortest(char text[40], double value)
{
    int digits = 15, n = snprintf(text, 40, "%.*g", digits, value);
    while (digits < 17 && strtod(text, NULL) != value)
        n = snprintf(text, 40, "%.*g", ++digits, value);
    return n;
}

void weft__print_json(FILE *to, const char *text)
{
    fputc('"', to);
    for (int n; *text; text += n ? n : 1) {
        n = weft__utf8_character(text);
        if (*text == '"' || *text == '\\')
            fputc('\\', to);
        if (n == 0)
            fputs("\xEF\xBF\xBD", to);
        else if ((unsigned char)*text < ' ')
            fprintf(to, "\\u%04x", (unsigned)*text);
        else
            fwrite(text, 1, (size_t)n, to);
    }
    fputc('"', to);
}

bool weft__move_origin(double *value, int64_t from, int64_t to)
{
    int64_t by, moved;
    if (from == to || !isfinite(*value))
        return true;
    if (*value != trunc(*value) || fabs(*value) >= 0x1p63 || __builtin_sub_overflow(from, to, &by) ||
        __builtin_add_overflow((int64_t)*value, by, &moved) || (double)moved >= 0x1p63 ||
        (int64_t)(double)moved != moved)
        return false;
    *value = (double)moved;
    return true;
}
