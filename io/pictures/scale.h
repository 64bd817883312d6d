/* scale.h - charts and their axes, colours of numbers, and numbers as short texts. */
#ifndef WEFT_IO_SCALE_H
#define WEFT_IO_SCALE_H
#include "io/pictures/svg.h"

/* ---- axes ---- */
/* An axis. base 2 or 10: logarithmic, and low, high and step are exponents; 0: linear. low and high are drawn
 * at the pixels from and to. */
typedef struct {
    int base;
    bool used;                                   /* some number was taken */
    double low, high, step, from, to;
} weft__axis;
/* Returns whether the axis can show a number. It cannot show NaN, 1e100 and, if logarithmic, 0. */
bool   weft__axis_can_show(const weft__axis *, double value);
/* Widens low .. high to a number that the axis takes. */
void   weft__axis_widen(weft__axis *, double value);
/* Chooses the step for at most `most` marks. Widens a range of one value. outwards: widens the range to whole
 * steps. */
void   weft__axis_choose_step(weft__axis *, int most, bool outwards);
double weft__axis_pixel(const weft__axis *, double value);
/* Lists the numbers that get a mark. Returns their count. */
enum { WEFT__TICKS = 64, WEFT__SHORT = 24 };
int    weft__axis_ticks(const weft__axis *, double tick[WEFT__TICKS]);
/* Writes a mark's number, all of an axis in one notation, in the "C" locale. */
const char *weft__axis_text(const weft__axis *, double tick, char text[WEFT__SHORT]);

/* ---- numbers of either sign as colours: blue below the middle, light grey, orange above ---- */
/* weights: 0 .. 1 from white to deep blue. */
typedef struct {
    double low, middle, high;
    const char *label;
    bool weights;
} weft__scale;
/* Fills in a caller's scale (NULL: all 0) from the numbers to be coloured. Errors, with the name of
 * `function`: the scale does not rise, or an end is NaN or above 1e100. */
weft_status weft__scale_of(const char *function, const weft_colour_scale *given, const double *values,
                           int64_t n, weft__scale *out);
/* Returns the position of a finite number: -1 low, 0 the middle, 1 high. Clamps numbers beyond the ends. */
double weft__scale_place(const weft__scale *, double value);

/* A colour, and the class of an ink that is legible on it (contrast 4.5 or more). */
typedef struct {
    char fill[8];
    const char *ink;
} weft__paint;
/* Returns the paint of red, green and blue in 0 .. 255. */
weft__paint weft__paint_of(const int colour[3]);
/* Returns the paint of a number; black for one that is not finite. */
weft__paint weft__scale_paint(const weft__scale *, double value);

/* Writes a number with that many digits, as short as possible: "0.123", "-12.3", "1234", "1.2e-5", "0",
 * "NaN", "-Inf". In the "C" locale. */
const char *weft__short_number(char text[WEFT__SHORT], double value, int digits);

/* Draws a bar of the scale with its numbers and its label. */
void weft__scale_bar(weft__svg *, const weft__scale *, double x, double y, double length, bool upright);

/* curves.c: Draws a chart at 0, 0. small: with narrow margins, few marks, and names at the ends of curves in
 * place of a legend. The file's style sheet has the classes of svg.c. */
void weft__draw_chart(weft__svg *, const weft_chart *, double width, double height, bool small);
#endif
