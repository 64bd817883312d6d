/* locale.h - the "C" locale for this thread, whatever the program's own is: a decimal comma would spoil
 * what is printed, CSV, JSON and SVG alike. */
#ifndef WEFT_CORE_LOCALE_H
#define WEFT_CORE_LOCALE_H
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* Puts this thread into the "C" locale; the result goes to weft__plain_locale_end. */
locale_t weft__plain_locale(void);
void     weft__plain_locale_end(locale_t before);
/* strtod and vsnprintf as in the "C" locale: the decimal point is ".". */
double   weft__plain_number(const char *text, char **end);
int      weft__plain_text(char *text, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
#endif
