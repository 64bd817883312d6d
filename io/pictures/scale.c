/* scale.c - numbers of either sign as colours, and as short texts; see scale.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/pictures/scale.h"

/* ---- the scale ---- */
static const double largest = 1e100;

static double farthest(const double *values, int64_t n, double middle)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            most = fmax(most, fabs(values[i] - middle));
    return most > 0 ? fmin(most, largest) : 1;
}

weft_status weft__scale_of(const char *function, const weft_colour_scale *given, const double *values,
                           int64_t n, weft__scale *out)
{
    weft_colour_scale g = given ? *given : (weft_colour_scale){ 0 };
    bool ends = isnan(g.low) || isnan(g.high) || g.low < 0 || g.low > 0 || g.high < 0 || g.high > 0;
    if (!(fabs(g.low) <= largest && fabs(g.middle) <= largest && fabs(g.high) <= largest) ||
        (ends && !(g.low <= g.middle && g.middle <= g.high && g.low < g.high)))
        return weft__file_fail(WEFT_EARG,
                               "%s: a scale from %g over %g to %g; low <= middle <= high, low < high, and "
                               "none above 1e100, are expected",
                               function, g.low, g.middle, g.high);
    double reach = ends ? 0 : farthest(values, n, g.middle);
    *out = (weft__scale){ ends ? g.low : g.middle - reach, g.middle, ends ? g.high : g.middle + reach,
                          g.label };
    return WEFT_OK;
}

double weft__scale_place(const weft__scale *s, double value)
{
    double from = value - s->middle, side = from < 0 ? s->middle - s->low : s->high - s->middle;
    return side > 0 ? fmax(-1, fmin(1, from / side)) : from < 0 ? -1 : from > 0 ? 1 : 0;
}

/* ---- colours ---- */
/* WCAG 2: the contrast is (L + .05) / (M + .05) for luminances L >= M; white and black have the same, 4.58,
 * on a ground of .179. */
static double luminance_of(const int c[3])
{
    static const double weight[3] = { .2126, .7152, .0722 };
    double l = 0;
    for (int k = 0; k < 3; k++)
        l += weight[k] * (c[k] <= 10 ? c[k] / 255. / 12.92 : pow((c[k] / 255. + .055) / 1.055, 2.4));
    return l;
}

weft__paint weft__paint_of(const int c[3])
{
    weft__paint p = { .ink = luminance_of(c) < .179 ? "#ffffff" : "#000000" };
    snprintf(p.fill, sizeof p.fill, "#%02x%02x%02x", (unsigned)c[0] & 255, (unsigned)c[1] & 255,
             (unsigned)c[2] & 255);
    return p;
}

/* Even steps of lightness, the same to either side, so that grey paper shows the distance. */
weft__paint weft__place_paint(double place)
{
    static const int middle[3] = { 238, 238, 238 },
                     sides[2][2][3] = { { { 107, 174, 214 }, { 8, 69, 148 } },
                                        { { 253, 141, 60 }, { 140, 45, 4 } } };
    int at = (int)lround(fabs(place) * 100), half = at > 50, part = at - 50 * half, c[3];
    const int(*side)[3] = sides[place > 0];
    for (int k = 0; k < 3; k++) {
        int from = half ? side[0][k] : middle[k], to = side[half][k];
        c[k] = (from * (50 - part) + to * part + 25) / 50;
    }
    return weft__paint_of(c);
}

weft__paint weft__scale_paint(const weft__scale *s, double value)
{
    return isfinite(value) ? weft__place_paint(weft__scale_place(s, value)) :
                             (weft__paint){ "#000000", "#ffffff" };
}

/* ---- texts ---- */
static void shorten_exponent(char *text)         /* 1.2e-05 to 1.2e-5 */
{
    char *e = strchr(text, 'e');
    if (!e)
        return;
    char *digits = e + 2, *to = e + 1 + (e[1] == '-');
    digits += strspn(digits, "0");
    memmove(to, digits, strlen(digits) + 1);
}

const char *weft__short_number(char text[WEFT__SHORT], double value, int digits)
{
    double size = fabs(value);
    if (!isfinite(value))
        snprintf(text, WEFT__SHORT, "%s", isnan(value) ? "NaN" : value > 0 ? "Inf" : "-Inf");
    else if (size == 0)
        snprintf(text, WEFT__SHORT, "0");
    else if (size >= 1e-3 && size < pow(10, digits) - 0.5)
        snprintf(text, WEFT__SHORT, "%.*g", digits, value);
    else if (size >= 1e-3 && size < 99999.5)
        snprintf(text, WEFT__SHORT, "%.0f", value);
    else
        snprintf(text, WEFT__SHORT, "%.*e", digits - 2, value);
    shorten_exponent(text);
    return text;
}

/* ---- bars ---- */
enum { PIECES = 40, THICK = 14 };

/* The place in -1 .. 1 of a piece; a scale may have one side only. */
static double place_of(const weft__scale *s, double part)
{
    return weft__scale_place(s, s->low + part * (s->high - s->low));
}

static void draw_pieces(weft__svg *svg, const weft__scale *s, double x, double y, double length, bool upright)
{
    double piece = length / PIECES;
    for (int i = 0; i < PIECES; i++) {
        weft__paint p = weft__place_paint(place_of(s, (i + 0.5) / PIECES));
        if (upright)
            weft__svg_box(svg, x, y + length - (i + 1) * piece, THICK, piece + 0.3, p.fill, NULL);
        else
            weft__svg_box(svg, x + i * piece, y, piece + 0.3, THICK, p.fill, NULL);
    }
    weft__svg_put(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"axis\"/>\n", x, y,
                  upright ? THICK : length, upright ? length : THICK);
}

static double part_of_middle(const weft__scale *s) { return (s->middle - s->low) / (s->high - s->low); }

void weft__scale_upright(weft__svg *svg, const weft__scale *s, double x, double y, double length)
{
    char text[WEFT__SHORT];
    double middle = part_of_middle(s);
    draw_pieces(svg, s, x, y, length, true);
    weft__svg_text(svg, x + 20, y + 9, "tick", WEFT__START, weft__short_number(text, s->high, 3));
    weft__svg_text(svg, x + 20, y + length, "tick", WEFT__START, weft__short_number(text, s->low, 3));
    if (middle > 0.1 && middle < 0.9)
        weft__svg_text(svg, x + 20, y + (1 - middle) * length + 4, "tick", WEFT__START,
                       weft__short_number(text, s->middle, 3));
    weft__svg_text(svg, x, y - 9, "small", WEFT__START, s->label);
}

void weft__scale_lying(weft__svg *svg, const weft__scale *s, double x, double y, double length)
{
    char text[WEFT__SHORT];
    double middle = part_of_middle(s);
    draw_pieces(svg, s, x, y, length, false);
    weft__svg_text(svg, x, y + THICK + 13, "tick", WEFT__START, weft__short_number(text, s->low, 3));
    weft__svg_text(svg, x + length, y + THICK + 13, "tick", WEFT__END, weft__short_number(text, s->high, 3));
    if (middle > 0.2 && middle < 0.8)
        weft__svg_text(svg, x + middle * length, y + THICK + 13, "tick", WEFT__MIDDLE,
                       weft__short_number(text, s->middle, 3));
    weft__svg_text(svg, x + length + 10, y + 11, "small", WEFT__START, s->label);
}
