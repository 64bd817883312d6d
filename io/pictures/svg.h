/* svg.h - an SVG picture under construction: shapes and texts in user units, one style sheet for all
 * pictures.
 *
 * Bytes are a function of the arguments: fixed number formats, the "C" locale, no dates. Nothing reaches
 * `path` before svg_end. */
#ifndef WEFT_IO_SVG_H
#define WEFT_IO_SVG_H
#include "io/text.h"

typedef struct { FILE *file; char *text; size_t size; const char *path; locale_t before; } weft__svg;
typedef enum { WEFT__START, WEFT__MIDDLE, WEFT__END } weft__anchor;
enum { WEFT__COLOURS = 8 };

/* Opens a picture with a white ground and its title; width and height in pixels. The result must stay
 * where it is put. */
void        weft__svg_begin(weft__svg *, const char *path, const char *title, double width, double height);
/* Writes the file, whole or not at all. Everything between is harmless after a failure, which is returned
 * here. */
weft_status weft__svg_end(weft__svg *);
/* Literal markup, as printf; never with a user's text. */
void        weft__svg_put(weft__svg *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text of a class of the style sheet, escaped; malformed UTF-8 becomes U+FFFD. NULL is no text. */
void weft__svg_text(weft__svg *, double x, double y, const char *class_, weft__anchor, const char *text);
void weft__svg_textf(weft__svg *, double x, double y, const char *class_, weft__anchor, const char *format,
                     ...) __attribute__((format(printf, 6, 7)));
/* Only the escaped characters, for inside of an element. */
void        weft__svg_escaped(weft__svg *, const char *text);
void        weft__svg_line(weft__svg *, double x1, double y1, double x2, double y2, const char *class_);
/* fill: "#rrggbb" or another paint; tip: a tooltip or NULL. */
void weft__svg_box(weft__svg *, double x, double y, double width, double height, const char *fill,
                   const char *tip);
/* The i-th colour of a palette that colour-blind readers can tell apart (Okabe & Ito 2008), and a light
 * tint of it. */
const char *weft__svg_colour(int i), *weft__svg_tint(int i);
/* The step 1, 2 or 5 x 10^k that divides a span into at most `most` pieces; the first multiple at or above
 * low. */
double      weft__svg_step(double span, int most);
#endif
