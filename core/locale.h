/* locale.h - the "C" locale for this thread, whatever the program's own is: a decimal comma would spoil
 * what is printed, CSV, JSON and SVG alike. */
#ifndef WEFT_CORE_LOCALE_H
#define WEFT_CORE_LOCALE_H
#include <locale.h>

/* Puts this thread into the "C" locale; the result goes to weft__plain_locale_end. */
locale_t weft__plain_locale(void);
void     weft__plain_locale_end(locale_t before);
#endif
