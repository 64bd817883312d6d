/* locale.c - switches this thread to the "C" locale and back; see locale.h. */
#include "core/locale.h"
#include <stdio.h>
#include <stdlib.h>

/* newlocale cannot fail here: glibc's "C" locale is a constant, without memory to free. */
locale_t weft__plain_locale(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain ? uselocale(plain) : (locale_t)0;
}

void weft__plain_locale_end(locale_t before)
{
    if (!before)
        return;
    locale_t plain = uselocale(before);
    if (plain != LC_GLOBAL_LOCALE && plain != before)
        freelocale(plain);
}

double weft__plain_number(const char *text, char **end)
{
    locale_t before = weft__plain_locale();
    double value = strtod(text, end);
    weft__plain_locale_end(before);
    return value;
}

int weft__plain_text(char *text, size_t size, const char *format, va_list list)
{
    locale_t before = weft__plain_locale();
    int n = vsnprintf(text, size, format, list);
    weft__plain_locale_end(before);
    return n;
}
