/* svg.h - an SVG picture under construction: shapes and texts in user units, one style sheet for all
 * pictures.
 *
 * Bytes are a function of the arguments: fixed number formats, the "C" locale, no dates. Nothing reaches
 * `path` before svg_end. Line ends between elements are optional: svg_end joins short lines. */
#ifndef WEFT_IO_SVG_H
#define WEFT_IO_SVG_H
#include <math.h>
#include "io/io.h"

typedef struct {
    FILE *file;
    char *text;
    size_t size;
    const char *path;
    void *old_locale;
    bool failed;                                 /* memory was short for a part of the picture */
} weft__svg;
typedef enum { WEFT__START, WEFT__MIDDLE, WEFT__END } weft__anchor;
enum { WEFT__COLOURS = 8, WEFT__COLUMNS = 300 }; /* WEFT__COLUMNS: longest line of the file, where a line can
                                                  * be cut */

/* Rounds a coordinate to tenths, for the format %g. */
static inline double weft__tenths(double x) { return round(x * 10) / 10 + 0.0; }

/* Opens an empty file of markup, such as a page with pictures. Closing appends `tail` and writes the file
 * atomically; it returns the first failure. After a failure all calls do nothing. */
void        weft__svg_open(weft__svg *, const char *path);
weft_status weft__svg_close(weft__svg *, const char *tail);
/* Opens a picture with a white ground and its title; width and height in pixels. The struct must not move
 * before svg_end. */
void        weft__svg_begin(weft__svg *, const char *path, const char *title, double width, double height);
/* Closes the picture and writes the file. */
weft_status weft__svg_end(weft__svg *);
/* Writes literal markup, as printf; never a user's text. */
void        weft__svg_put(weft__svg *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes an escaped text with a class of the style sheet ("": no class). Malformed UTF-8 becomes U+FFFD. NULL
 * writes nothing. */
void weft__svg_text(weft__svg *, double x, double y, const char *class_, weft__anchor, const char *text);
void weft__svg_textf(weft__svg *, double x, double y, const char *class_, weft__anchor, const char *format,
                     ...) __attribute__((format(printf, 6, 7)));
/* Writes a text with two classes, the second for its colour. */
void weft__svg_text_coloured(weft__svg *, double x, double y, const char *class_, const char *ink,
                             const char *text);
/* Writes a text rotated by `degrees` about x, y. */
void weft__svg_text_rotated(weft__svg *, double degrees, double x, double y, const char *class_, weft__anchor,
                            const char *text);
/* Writes only the escaped characters, for the inside of an element. */
void        weft__svg_escaped(weft__svg *, const char *text);
void        weft__svg_line(weft__svg *, double x1, double y1, double x2, double y2, const char *class_);
/* Writes a rectangle. fill: "#rrggbb" or another paint; class_, tip: a tooltip, both may be NULL. */
void weft__svg_box(weft__svg *, double x, double y, double width, double height, const char *fill,
                   const char *class_, const char *tip);
/* Return the i-th colour of a palette for colour-blind readers (Okabe & Ito 2008), and its light tint. */
const char *weft__svg_colour(int i);
const char *weft__svg_tint(int i);
#endif
