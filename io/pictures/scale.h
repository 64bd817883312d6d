/* scale.h - numbers of either sign as colours: blue below the middle, light grey at it, orange above; and
 * numbers as short texts. */
#ifndef WEFT_IO_SCALE_H
#define WEFT_IO_SCALE_H
#include "io/pictures/svg.h"

/* What a caller has given (NULL: all 0), settled by the numbers that are to be coloured. Refused, in the name
 * of `function`: a scale that does not rise, or ends that are no numbers below 1e100. */
typedef struct { double low, middle, high; const char *label; } weft__scale;
weft_status weft__scale_of(const char *function, const weft_colour_scale *given, const double *values,
                           int64_t n, weft__scale *out);
/* Where a number lies, which is finite: -1 low, 0 the middle, 1 high; beyond the ends it is there. */
double weft__scale_place(const weft__scale *, double value);

/* A colour, and an ink that is legible on it (contrast 4.5 or more). */
typedef struct { char fill[8]; const char *ink; } weft__paint;
/* Red, green and blue in 0 .. 255. */
weft__paint weft__paint_of(const int colour[3]);
/* Of a number; black of one that is not finite. */
weft__paint weft__scale_paint(const weft__scale *, double value);
/* The paint of a place in -1 .. 1. */
weft__paint weft__place_paint(double place);

/* Three digits, or as many as said, as short as they come: "0.123", "-12.3", "1234", "1.2e-5", "0", "NaN",
 * "-Inf". In the "C" locale. */
enum { WEFT__SHORT = 24 };
const char *weft__short_number(char text[WEFT__SHORT], double value, int digits);

/* A bar of the scale with its numbers and its label: upright, of that length, or lying. */
void weft__scale_upright(weft__svg *, const weft__scale *, double x, double y, double length);
void weft__scale_lying(weft__svg *, const weft__scale *, double x, double y, double length);
#endif
