/* text.h - texts of all files: the "C" locale, checked UTF-8, numbers that read back the same. */
#ifndef WEFT_IO_TEXT_H
#define WEFT_IO_TEXT_H
#include <stdio.h>
#include "io/io.h"

/* Returns the number of bytes of the UTF-8 character at s; 0 at the final 0, or if it is malformed (overlong,
 * surrogate, cut short). */
int      weft__utf8_character(const char *s);
/* Returns the number of bytes of s before its final 0, or before the first malformed character. */
size_t   weft__utf8_valid(const char *s);
/* Counts the characters of s as a reader would; a malformed byte counts as one. */
int      weft__utf8_length(const char *s);
/* Writes the fewest digits, 15 to 17, that read back as the same number, which must not be NaN. Returns the
 * number of bytes. In the "C" locale. */
int      weft__shortest(char text[40], double value);
/* Prints a text with its quotes, as JSON. Malformed UTF-8 becomes U+FFFD. */
void     weft__print_json(FILE *to, const char *text);
/* Changes a number that is relative to the integer `from` into one relative to `to`. Returns false, and
 * leaves it unchanged, if it is not an integer or a double does not hold the result. NaN and infinity
 * stay. */
bool     weft__move_origin(double *value, int64_t from, int64_t to);
#endif
