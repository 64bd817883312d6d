/* text.c - draws a text, each byte on the colour of its number. */
#include <string.h>
#include "io/pictures/scale.h"

enum { BYTES = 100000, COLUMNS = 72 };           /* most bytes; columns of a line */
/* WIDE: the width of a character's cell; HIGH: the height of a line with its gap */
static const double LEFT = 24, TOP = 92, WIDE = 10, HIGH = 26;

typedef struct {
    weft__svg svg;
    const char *text;
    int64_t n;
    const double *values;
    weft__scale scale;
    int columns;
} picture;

static weft_status check(const char *text, int64_t n, const double *values, int columns)
{
    if (n < 0 || (n && (!text || !values)))
        return weft__file_fail(WEFT_EARG, "weft_plot_text: %lld bytes; %s", (long long)n,
                               n < 0 ? "expected 0 or more" :
                               !text ? "text is NULL; expected a text" :
                                       "values is NULL; expected one value for each byte");
    if (columns && (columns < 8 || columns > 1000))
        return weft__file_fail(WEFT_EARG,
                               "weft_plot_text: lines of %d columns; expected 8 .. 1000, or 0 for %d",
                               columns, (int)COLUMNS);
    if (n > BYTES)
        return weft__file_fail(WEFT_EARG, "weft_plot_text: %lld bytes; expected at most %d", (long long)n,
                               (int)BYTES);
    return WEFT_OK;
}

/* Writes a byte as 1 .. 4 columns of printable ASCII. Returns the number of columns. */
static int shown(char byte, char out[5])
{
    static const char named[] = "\a\b\t\n\v\f\r", name[] = "abtnvfr";
    const char *found = byte ? strchr(named, byte) : NULL;
    if (byte == '\\' || found)
        return snprintf(out, 5, "\\%c", byte == '\\' ? '\\' : name[found - named]);
    return snprintf(out, 5, byte >= ' ' && byte <= '~' ? "%c" : "\\x%02x", (unsigned char)byte);
}

/* Returns where the line that begins at `from` ends, and sets its number of columns. */
static int64_t line_end(const picture *p, int64_t from, int *columns)
{
    char part[5];
    int64_t i = from;
    for (*columns = 0; i < p->n; i++) {
        int more = shown(p->text[i], part);
        if (*columns + more > p->columns)
            break;
        *columns += more;
        if (p->text[i] == '\n')
            return i + 1;
    }
    return i;
}

static double draw_byte(picture *p, int64_t i, double x, double y)
{
    char part[5], tip[64];
    double width = shown(p->text[i], part) * WIDE, value = p->values[i];
    weft__paint paint = weft__scale_paint(&p->scale, value);
    snprintf(tip, sizeof tip, isfinite(value) ? "%lld, %s: %.6g" : "%lld, %s: not finite", (long long)i, part,
             value + 0.0);
    weft__svg_box(&p->svg, x, y, width, HIGH - 3, paint.fill, NULL, tip);
    if (p->text[i] != ' ')
        weft__svg_text_coloured(&p->svg, x + width / 2, y + 16, width > WIDE ? "mono tight" : "mono",
                                paint.ink, part);
    return x + width;
}

weft_status weft_plot_text(const char *path, const char *title, const char *text, int64_t n,
                           const double *values, const weft_text_colours *opts)
{
    weft_text_colours o = opts ? *opts : (weft_text_colours){ 0 };
    picture p = { .text = text, .n = n, .values = values, .columns = o.columns ? o.columns : COLUMNS };
    weft_status s = check(text, n, values, o.columns);
    if (!s)
        s = weft__scale_of("weft_plot_text", &o.scale, values, n, &p.scale);
    if (s)
        return s;
    int widest = 0, columns;
    double lines = 0, y = TOP, label = p.scale.label ? 34 + 6.5 * weft__utf8_length(p.scale.label) : 0;
    for (int64_t i = 0; i < n; lines++) {
        i = line_end(&p, i, &columns);
        widest = columns > widest ? columns : widest;
    }
    double width = fmax(2 * LEFT + widest * WIDE, 48 + 10.5 * (title ? weft__utf8_length(title) : 0));
    weft__svg_begin(&p.svg, path, title, fmax(width, 2 * LEFT + 240 + label), TOP + lines * HIGH + 20);
    weft__scale_bar(&p.svg, &p.scale, LEFT, 46, 240, false);
    for (int64_t i = 0; i < n; y += HIGH) {
        double x = LEFT;
        for (int64_t to = line_end(&p, i, &columns); i < to; i++)
            x = draw_byte(&p, i, x, y);
    }
    return weft__svg_end(&p.svg);
}
