/* text.h - what every text that io reads or writes needs: the "C" locale whatever the program's own is,
 * UTF-8 that is checked, numbers that come back the same. */
#ifndef WEFT_IO_TEXT_H
#define WEFT_IO_TEXT_H
#include <stdio.h>
#include "core/locale.h"
#include "io/io.h"

/* Returns the bytes of the UTF-8 character at s; 0 at the final 0, and if it is malformed (overlong,
 * surrogate, cut short). */
int      weft__utf8_character(const char *s);
/* Characters of s as a reader would count them, malformed bytes one each. */
int      weft__utf8_length(const char *s);
/* The fewest digits, 15 to 17, that read back as the same number, which is no NaN; how many bytes. In the "C"
 * locale. */
int      weft__shortest(char text[40], double value);
/* Changes a number less the integer `from` to the same number less `to`. Returns false, and leaves it, if
 * it is no integer, or if a double does not hold the difference; NaN and infinity stay as they are. */
bool     weft__move_origin(double *value, int64_t from, int64_t to);
#endif
