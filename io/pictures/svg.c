/* svg.c - the shapes of svg.h as markup. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "io/pictures/svg.h"

/* A dark page has another colour of text. A text on a cell or a plate keeps its own: on-light, white, black.
 * A reader without media queries draws everything on white. */
static const char style[] =
    "<style>\n"
    "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 12px; "
    "fill: #333333 } .title { font-size: 17px; font-weight: bold; fill: #111111 } "
    ".head { font-size: 13px; font-weight: bold }\n"
    ".small { font-size: 10px; fill: #666666 } .symbol { font-size: 13px; fill: #111111 } "
    ".on-light { font-size: 13px; fill: #111111 } .label { text-anchor: middle } "
    ".number { font-size: 11px; font-weight: bold; text-anchor: middle } .white { fill: #ffffff } "
    ".black { fill: #000000 }\n"
    ".mono { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 15px; "
    "text-anchor: middle } .tight { font-size: 12px } .ground { fill: #ffffff }\n"
    ".axis { stroke: #666666; fill: none } .grid { stroke: #e4e4e4; fill: none } "
    ".mark { stroke: #333333; stroke-width: 1.5; fill: none } .band { fill-opacity: 0.22 } "
    ".curve { stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; fill: none }\n"
    ".gap { stroke: #ffffff } .pad { fill: url(#hatch); stroke: #dddddd; stroke-width: 0.5 } "
    ".hatch { fill: #f5f5f5 } .stripe { fill: #bbbbbb }\n"
    "@media screen and (prefers-color-scheme: dark) {\n"
    "text { fill: #dddddd } .title, .symbol { fill: #ececec } .small { fill: #b4b8bc } "
    ".on-light { fill: #111111 } .white { fill: #ffffff } .black { fill: #000000 } "
    ".ground { fill: #14171a }\n"
    ".axis { stroke: #a0a6ac } .grid { stroke: #33383e } .mark { stroke: #dddddd } .gap { stroke: #14171a } "
    ".hatch { fill: #1f2327 } .stripe { fill: #5a6067 }\n";
static const char hatch[] =
    "}\n"
    "</style>\n"
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\">"
    "<rect width=\"6\" height=\"6\" class=\"hatch\"/><rect width=\"1.6\" height=\"6\" "
    "class=\"stripe\"/></pattern></defs>\n";

static const char *const anchors[] = { "start", "middle", "end" };
static const char *const colours[WEFT__COLOURS] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                    "#e69f00", "#56b4e9", "#8a7500", "#555555" };
static const char *const tints[WEFT__COLOURS] = { "#80bce8", "#f6c3a0", "#a3dfcb", "#eccbdd",
                                                  "#f8dc9d", "#c9e6f8", "#eee59b", "#d0d0d0" };

static const char *const on_dark[WEFT__COLOURS] = { "#56b4e9", "#ff9a5c", "#35d0a5", "#eaa0c8",
                                                    "#f0b53a", "#9ad4f5", "#d8c84a", "#bdbdbd" };

const char *weft__svg_colour(int i) { return colours[i % WEFT__COLOURS]; }
const char *weft__svg_tint(int i) { return tints[i % WEFT__COLOURS]; }

/* ---- the file ---- */
void weft__svg_open(weft__svg *s, const char *path)
{
    *s = (weft__svg){ .path = path };
    s->file = open_memstream(&s->text, &s->size);
    s->old_locale = weft__plain_locale();
}

void weft__svg_begin(weft__svg *s, const char *path, const char *title, double width, double height)
{
    weft__svg_open(s, path);
    weft__svg_put(s,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>",
                  width, height, width, height);
    weft__svg_escaped(s, title);
    weft__svg_put(s, "</title>\n%s", style);
    for (int i = 0; i < WEFT__COLOURS; i++)      /* a rule of the style sheet overrides an attribute */
        weft__svg_put(s, "[fill='%s'] { fill: %s } [stroke='%s'] { stroke: %s }%c", colours[i], on_dark[i],
                      colours[i], on_dark[i], i % 4 == 3 ? '\n' : ' ');
    weft__svg_put(s, "%s<rect width=\"100%%\" height=\"100%%\" class=\"ground\"/>\n", hatch);
    weft__svg_text(s, 24, 30, "title", WEFT__START, title);
}

/* Joins elements to lines of WEFT__COLUMNS at most. Returns the new size. A line end after a '>' is between
 * elements, because texts have that character escaped. */
static size_t join_lines(char *text, size_t size)
{
    size_t to = 0, start = 0;
    for (size_t from = 0; from < size; from++) {
        text[to++] = text[from];
        if (text[from] != '\n')
            continue;
        const char *end = memchr(text + from + 1, '\n', size - from - 1);
        size_t next = end ? (size_t)(end - text) - from : 0;
        if (start && next && to > 1 && text[to - 2] == '>' && to - start + next <= WEFT__COLUMNS)
            to--;
        else
            start = to;
    }
    return to;
}

weft_status weft__svg_close(weft__svg *s, const char *tail)
{
    weft__plain_locale_end(s->old_locale);
    bool ok = s->file && !ferror(s->file) && !s->failed;
    if (s->file && fclose(s->file))
        ok = false;
    size_t size = ok ? join_lines(s->text, s->size) : 0;
    weft_status status =
        ok ? weft__write_file(s->path, (weft__span[]){ { s->text, size }, { tail, strlen(tail) } }, 2) :
             weft__file_fail(WEFT_ENOMEM, "%s: out of memory", s->path ? s->path : "a picture");
    free(s->text);
    *s = (weft__svg){ 0 };
    return status;
}

void weft__svg_put(weft__svg *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (s->file)
        vfprintf(s->file, format, arguments);
    va_end(arguments);
}

weft_status weft__svg_end(weft__svg *s) { return weft__svg_close(s, "</svg>\n"); }

/* ---- texts ---- */
/* Returns the entity of a markup character. Returns U+FFFD for malformed UTF-8, for control characters, which
 * XML does not allow even escaped, and for U+FFFE and U+FFFF. Otherwise NULL. n: its bytes. */
static const char *replacement(const char *s, int n)
{
    bool control = n == 1 && (unsigned char)*s < 0x20 && *s != '\t' && *s != '\n';
    if (n == 0 || control || (n == 3 && !strncmp(s, "\xEF\xBF", 2) && (unsigned char)s[2] >= 0xBE))
        return "\xEF\xBF\xBD";
    return *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : *s == '"' ? "&quot;" : NULL;
}

void weft__svg_escaped(weft__svg *s, const char *text)
{
    for (int n; s->file && text && *text; text += n ? n : 1) {
        n = weft__utf8_character(text);
        const char *other = replacement(text, n);
        fwrite(other ? other : text, 1, other ? strlen(other) : (size_t)n, s->file);
    }
}

void weft__svg_text(weft__svg *s, double x, double y, const char *class_, weft__anchor anchor,
                    const char *text)
{
    if (!text)
        return;
    weft__svg_put(s, "<text x=\"%g\" y=\"%g\"", weft__tenths(x), weft__tenths(y));
    if (*class_)
        weft__svg_put(s, " class=\"%s\"", class_);
    if (anchor)
        weft__svg_put(s, " text-anchor=\"%s\"", anchors[anchor]);
    weft__svg_put(s, ">");
    weft__svg_escaped(s, text);
    weft__svg_put(s, "</text>\n");
}

void weft__svg_textf(weft__svg *s, double x, double y, const char *class_, weft__anchor anchor,
                     const char *format, ...)
{
    char text[200];
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    weft__svg_text(s, x, y, class_, anchor, text);
}

void weft__svg_text_coloured(weft__svg *s, double x, double y, const char *class_, const char *ink,
                             const char *text)
{
    char both[40];
    snprintf(both, sizeof both, "%s %s", class_, ink);
    weft__svg_text(s, x, y, both, WEFT__START, text);
}

void weft__svg_text_rotated(weft__svg *s, double degrees, double x, double y, const char *class_,
                            weft__anchor anchor, const char *text)
{
    weft__svg_put(s, "<g transform=\"rotate(%g %g %g)\">", weft__tenths(degrees), weft__tenths(x),
                  weft__tenths(y));
    weft__svg_text(s, x, y, class_, anchor, text);
    weft__svg_put(s, "</g>\n");
}

/* ---- shapes ---- */
void weft__svg_line(weft__svg *s, double x1, double y1, double x2, double y2, const char *class_)
{
    weft__svg_put(s, "<path d=\"M%g %gL%g %g\" class=\"%s\"/>\n", weft__tenths(x1), weft__tenths(y1),
                  weft__tenths(x2), weft__tenths(y2), class_);
}

void weft__svg_box(weft__svg *s, double x, double y, double width, double height, const char *fill,
                   const char *class_, const char *tip)
{
    weft__svg_put(s, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"", weft__tenths(x),
                  weft__tenths(y), weft__tenths(width), weft__tenths(height));
    if (fill)
        weft__svg_put(s, " fill=\"%s\"", fill);
    if (class_)
        weft__svg_put(s, " class=\"%s\"", class_);
    if (tip) {
        weft__svg_put(s, "><title>");
        weft__svg_escaped(s, tip);
        weft__svg_put(s, "</title></rect>\n");
    } else {
        weft__svg_put(s, "/>\n");
    }
}
