/* coloured.c - a text of bytes, each on the colour of its number: as a picture, and for a terminal. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "io/pictures/scale.h"

enum { BYTES = 100000, COLUMNS = 72 };           /* of a picture at most; of a line */
enum { LEFT = 24, TOP = 92, WIDE = 10, HIGH = 26 };     /* of a character's cell; of a line with its gap */

typedef struct {
    const unsigned char *text;
    int64_t n;
    const double *values;
    weft__scale scale;
    int columns;
    weft_colours colours;
} coloured;

static weft_status settle(const char *function, const char *text, int64_t n, const double *values,
                          const weft_text_colours *opts, coloured *out)
{
    weft_text_colours o = opts ? *opts : (weft_text_colours){ 0 };
    if (n < 0 || (n && (!text || !values)))
        return weft__file_fail(WEFT_EARG, "%s: %lld bytes, and their values, are expected; %s", function,
                               (long long)n,
                               n < 0 ? "0 is the least" :
                               !text ? "text is NULL" :
                                       "values is NULL");
    if (o.columns && (o.columns < 8 || o.columns > 1000))
        return weft__file_fail(WEFT_EARG, "%s: lines of %d columns; 8 .. 1000, or 0 for %d, are expected",
                               function, o.columns, (int)COLUMNS);
    if ((unsigned)o.colours > WEFT_COLOURS_NEVER)
        return weft__file_fail(WEFT_EARG, "%s: colours is %d, no weft_colours", function, (int)o.colours);
    *out = (coloured){ .text = (const unsigned char *)text, .n = n, .values = values,
                       .columns = o.columns ? o.columns : COLUMNS, .colours = o.colours };
    return weft__scale_of(function, &o.scale, values, n, &out->scale);
}

/* How a byte is shown, 1 .. 4 columns of printable ASCII. */
static int shown(unsigned char byte, char out[5])
{
    static const char named[] = "\a\b\t\n\v\f\r", name[] = "abtnvfr";
    const char *at = byte ? strchr(named, byte) : NULL;
    if (byte == '\\' || at)
        return snprintf(out, 5, "\\%c", byte == '\\' ? '\\' : name[at - named]);
    return snprintf(out, 5, byte >= ' ' && byte <= '~' ? "%c" : "\\x%02x", byte);
}

/* The line that begins at `from`: where the next one does, and how many columns it has. */
static int64_t line_end(const coloured *c, int64_t from, int *columns)
{
    char part[5];
    int64_t i = from;
    for (*columns = 0; i < c->n; i++) {
        int more = shown(c->text[i], part);
        if (*columns + more > c->columns)
            break;
        *columns += more;
        if (c->text[i] == '\n')
            return i + 1;
    }
    return i;
}

/* ---- a picture ---- */
static void draw_byte(weft__svg *svg, const coloured *c, int64_t i, double x, double y)
{
    char part[5], tip[64];
    int columns = shown(c->text[i], part);
    double value = c->values[i];
    weft__paint p = weft__scale_paint(&c->scale, value);
    if (isfinite(value))
        snprintf(tip, sizeof tip, "%lld, %s: %.6g", (long long)i, part, value + 0.0);
    else
        snprintf(tip, sizeof tip, "%lld, %s: not finite", (long long)i, part);
    weft__svg_box(svg, x, y, columns * WIDE, HIGH - 3, p.fill, tip);
    if (c->text[i] == ' ')
        return;
    weft__svg_put(svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"middle\" style=\"fill:%s\">",
                  x + columns * WIDE / 2.0, y + 16, columns > 1 ? "mono tight" : "mono", p.ink);
    weft__svg_escaped(svg, part);
    weft__svg_put(svg, "</text>\n");
}

static double draw_line(weft__svg *svg, const coloured *c, int64_t from, int64_t to, double y)
{
    char part[5];
    double x = LEFT;
    for (int64_t i = from; i < to; i++) {
        draw_byte(svg, c, i, x, y);
        x += shown(c->text[i], part) * WIDE;
    }
    return y + HIGH;
}

static void measure(const coloured *c, int *widest, int64_t *lines)
{
    *widest = 0;
    *lines = 0;
    for (int64_t i = 0; i < c->n; ++*lines) {
        int columns;
        i = line_end(c, i, &columns);
        *widest = columns > *widest ? columns : *widest;
    }
}

weft_status weft_plot_text(const char *path, const char *title, const char *text, int64_t n,
                           const double *values, const weft_text_colours *opts)
{
    coloured c;
    weft_status s = settle("weft_plot_text", text, n, values, opts, &c);
    if (s)
        return s;
    if (n > BYTES)
        return weft__file_fail(WEFT_EARG, "weft_plot_text: %lld bytes; at most %d are drawn", (long long)n,
                               (int)BYTES);
    int widest, columns;
    int64_t lines;
    measure(&c, &widest, &lines);
    double label = c.scale.label ? 34 + 6.5 * weft__utf8_length(c.scale.label) : 0, y = TOP,
           width = fmax(2 * LEFT + widest * WIDE, 48 + 10.5 * (title ? weft__utf8_length(title) : 0));
    weft__svg svg;
    weft__svg_begin(&svg, path, title, fmax(width, 2 * LEFT + 240 + label), TOP + (double)lines * HIGH + 20);
    weft__scale_lying(&svg, &c.scale, LEFT, 46, 240);
    for (int64_t i = 0, to; i < n; i = to) {
        to = line_end(&c, i, &columns);
        y = draw_line(&svg, &c, i, to, y);
    }
    return weft__svg_end(&svg);
}

/* ---- a terminal ---- */
enum { LEVELS = 5 };                           /* of colours to either side, of the 256 that terminals know */
static const char *code_of(double place)
{
    static const char *const below[] = { "48;5;153;38;5;16", "48;5;111;38;5;16", "48;5;69;38;5;16",
                                         "48;5;27;38;5;231", "48;5;19;38;5;231" },
                            *const above[] = { "48;5;223;38;5;16", "48;5;215;38;5;16", "48;5;208;38;5;16",
                                               "48;5;166;38;5;16", "48;5;130;38;5;231" };
    int level = (int)lround(fabs(place) * LEVELS);
    return level == 0 ? "0" : place < 0 ? below[level - 1] : above[level - 1];
}

static void put_piece(FILE *to, const char *code, const char *text)
{
    fprintf(to, "\033[%sm%s", code, text);
}

static void put_coloured_line(FILE *to, const coloured *c, int64_t from, int64_t end)
{
    char part[5];
    const char *before = NULL;
    for (int64_t i = from; i < end; i++) {
        bool good = isfinite(c->values[i]);
        const char *code = good ? code_of(weft__scale_place(&c->scale, c->values[i])) : "0;7;9";
        shown(c->text[i], part);
        if (before && !strcmp(code, before))
            fputs(part, to);
        else
            fprintf(to, before ? "\033[0;%sm%s" : "\033[%sm%s", code, part);
        before = code;
    }
    fputs("\033[0m\n", to);
}

static void put_coloured_scale(FILE *to, const weft__scale *s)
{
    char text[WEFT__SHORT];
    fprintf(to, "%s ", weft__short_number(text, s->low, 3));
    for (int i = -LEVELS; i <= LEVELS; i++)
        if (i ? i < 0 ? s->low < s->middle : s->middle < s->high : 1) {
            if (!i)
                fprintf(to, "\033[0m %s ", weft__short_number(text, s->middle, 3));
            else
                put_piece(to, code_of((double)i / LEVELS), "  ");
        }
    fprintf(to, "\033[0m %s%s%s\n", weft__short_number(text, s->high, 3), s->label ? " " : "",
            s->label ? s->label : "");
}

/* ---- without colours ---- */
/* 1 .. 9: how far a number is above the middle, or under it; '?': it is none; ' ': neither. */
static char mark_of(const coloured *c, int64_t i, bool above)
{
    if (!isfinite(c->values[i]))
        return above ? '?' : ' ';
    double place = weft__scale_place(&c->scale, c->values[i]);
    int tenths = (int)lround(fabs(place) * 9);
    return tenths && (place > 0) == above ? (char)('0' + tenths) : ' ';
}

/* A mark for each byte, in its first column; nothing where the line has none. */
static void put_marks(FILE *to, const coloured *c, int64_t from, int64_t end, bool above)
{
    char part[5];
    int64_t last = end;
    while (last > from && mark_of(c, last - 1, above) == ' ')
        last--;
    if (last > from)
        fputs(above ? "+ " : "- ", to);
    for (int64_t i = from; i < last; i++)
        fprintf(to, "%-*c", i + 1 < last ? shown(c->text[i], part) : 1, mark_of(c, i, above));
    if (last > from)
        fputc('\n', to);
}

static void put_marked_line(FILE *to, const coloured *c, int64_t from, int64_t end)
{
    char part[5];
    put_marks(to, c, from, end, true);
    fputs("  ", to);
    for (int64_t i = from; i < end; i++) {
        shown(c->text[i], part);
        fputs(part, to);
    }
    fputc('\n', to);
    put_marks(to, c, from, end, false);
}

static void put_marked_scale(FILE *to, const weft__scale *s)
{
    char text[WEFT__SHORT];
    fprintf(to, "+9 is %s", weft__short_number(text, s->high, 3));
    fprintf(to, ", nothing %s", weft__short_number(text, s->middle, 3));
    fprintf(to, ", -9 %s%s%s\n", weft__short_number(text, s->low, 3), s->label ? ": " : "",
            s->label ? s->label : "");
}

/* ---- to a file ---- */
static bool wants_colours(FILE *file, weft_colours colours)
{
    const char *no = secure_getenv("NO_COLOR"), *terminal = secure_getenv("TERM");
    if (colours != WEFT_COLOURS_AUTO)
        return colours == WEFT_COLOURS_ALWAYS;
    return isatty(fileno(file)) && !(no && *no) && terminal && strcmp(terminal, "dumb") != 0;
}

static void put_text(FILE *to, const coloured *c, bool in_colours)
{
    int columns;
    for (int64_t i = 0, end; i < c->n; i = end) {
        end = line_end(c, i, &columns);
        (in_colours ? put_coloured_line : put_marked_line)(to, c, i, end);
    }
    (in_colours ? put_coloured_scale : put_marked_scale)(to, &c->scale);
}

weft_status weft_print_text(FILE *file, const char *text, int64_t n, const double *values,
                            const weft_text_colours *opts)
{
    coloured c;
    weft_status s = settle("weft_print_text", text, n, values, opts, &c);
    if (s)
        return s;
    if (!file)
        return weft__file_fail(WEFT_EARG, "weft_print_text: file is NULL");
    errno = 0;
    locale_t before = weft__plain_locale();
    put_text(file, &c, wants_colours(file, c.colours));
    weft__plain_locale_end(before);
    if (ferror(file) || fflush(file))
        return weft__file_fail(WEFT_EIO, "weft_print_text: the file takes no more: %s", strerror(errno));
    return WEFT_OK;
}
