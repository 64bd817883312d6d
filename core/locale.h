/* locale.h - switches this thread to the "C" locale. A decimal comma of the program's locale would break CSV,
 * JSON and SVG output. */
#ifndef WEFT_CORE_LOCALE_H
#define WEFT_CORE_LOCALE_H
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* Switches to the "C" locale. Pass the result to weft__plain_locale_end. */
locale_t weft__plain_locale(void);
void     weft__plain_locale_end(locale_t before);
/* Work like strtod and vsnprintf in the "C" locale: the decimal point is ".". */
double   weft__plain_number(const char *text, char **end);
int      weft__plain_text(char *text, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
#endif
