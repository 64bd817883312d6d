/* scale.c - axes, colours of numbers, and short texts; see scale.h. */
#include <string.h>
#include "io/pictures/scale.h"

static const double largest = 1e100;

/* ---- axes ---- */
static double exponent_of(const weft__axis *a, double value)
{
    return a->base == 2 ? log2(value) : a->base ? log10(value) : value;
}

bool weft__axis_can_show(const weft__axis *a, double value)
{
    return fabs(value) < largest && (!a->base || value > 0);
}

void weft__axis_widen(weft__axis *a, double value)
{
    value = exponent_of(a, value);
    a->low = a->used && a->low < value ? a->low : value;
    a->high = a->used && a->high > value ? a->high : value;
    a->used = true;
}

/* Returns the step 1, 2 or 5 x 10^k that divides a span into at most `most` pieces. */
static double step_of(double span, int most)
{
    double step = pow(10, floor(log10(span / most))), factor = span / most / step;
    return step * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

void weft__axis_choose_step(weft__axis *a, int most, bool outwards)
{
    if (!a->used)
        a->high = 1;
    double room = a->base ? 1e-6 : fmax(fabs(a->low), fabs(a->high)) * 1e-6;
    if (a->high - a->low <= fmax(room, 1e-200)) {
        a->low -= room > 1e-200 ? room * 1e5 : 1;
        a->high += room > 1e-200 ? room * 1e5 : 1;
    }
    a->step = step_of(a->high - a->low, most);
    if (a->base)
        a->step = fmax(1, ceil(a->step));        /* whole powers */
    if (outwards) {
        bool full = a->base && fabs(a->high / a->step - round(a->high / a->step)) < 1e-9;
        a->low = floor(a->low / a->step + 1e-9) * a->step;
        a->high = ceil(a->high / a->step - 1e-9) * a->step;
        a->high += full ? 0.1 * (a->high - a->low) : 0;     /* so that no curve runs along the frame */
    }
}

double weft__axis_pixel(const weft__axis *a, double value)
{
    return a->from + (exponent_of(a, value) - a->low) / (a->high - a->low) * (a->to - a->from);
}

int weft__axis_ticks(const weft__axis *a, double tick[WEFT__TICKS])
{
    static const double parts[] = { 1, 2, 5 };
    /* a short range of powers of ten has marks between them */
    int n = 0, of_each = a->base == 10 && a->high - a->low <= 3 ? 3 : 1;
    double room = a->step * 1e-9;
    for (double i = ceil(a->low / a->step - 1e-9) - (of_each > 1); i * a->step <= a->high + room; i++)
        for (int k = 0; k < of_each && n < WEFT__TICKS; k++) {
            double value = i * a->step + (k ? log10(parts[k]) : 0);
            tick[n] = a->base ? pow(a->base, i * a->step) * parts[k] : value + 0.0;
            n += value >= a->low - room && value <= a->high + room && weft__axis_can_show(a, tick[n]);
        }
    return n;
}

const char *weft__axis_text(const weft__axis *a, double tick, char text[WEFT__SHORT])
{
    bool powers = a->base == 10 && (a->low < -4 - 1e-9 || a->high > 6 + 1e-9);
    double power = floor(log10(tick) + 1e-9);
    if (powers)
        snprintf(text, WEFT__SHORT, "%.0fe%.0f", tick / pow(10, power), power + 0.0);
    else
        snprintf(text, WEFT__SHORT, "%.8g", tick);
    return text;
}

/* ---- colours ---- */
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
                               "%s: a scale from %g over %g to %g; expected low <= middle <= high, low < "
                               "high, and none above 1e100",
                               function, g.low, g.middle, g.high);
    double reach = ends ? 0 : farthest(values, n, g.middle);
    *out = (weft__scale){ ends ? g.low : g.middle - reach, g.middle, ends ? g.high : g.middle + reach,
                          g.label, false };
    return WEFT_OK;
}

double weft__scale_place(const weft__scale *s, double value)
{
    double from = value - s->middle, side = from < 0 ? s->middle - s->low : s->high - s->middle;
    return side > 0 ? fmax(-1, fmin(1, from / side)) : from < 0 ? -1 : from > 0 ? 1 : 0;
}

/* WCAG 2: the contrast is (L + .05) / (M + .05) for luminances L >= M. At a luminance of .179 white and black
 * have the same contrast, 4.58. */
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
    weft__paint p = { .ink = luminance_of(c) < .179 ? "white" : "black" };
    snprintf(p.fill, sizeof p.fill, "#%02x%02x%02x", (unsigned)c[0] & 255, (unsigned)c[1] & 255,
             (unsigned)c[2] & 255);
    return p;
}

/* Lightness changes in even steps, equally on both sides, so a print in grey shows the distance. */
static weft__paint place_paint(bool weights, double place)
{
    static const int middles[2][3] = { { 238, 238, 238 }, { 255, 255, 255 } },
                     sides[3][2][3] = { { { 107, 174, 214 }, { 8, 69, 148 } },
                                        { { 253, 141, 60 }, { 140, 45, 4 } },
                                        { { 107, 174, 214 }, { 8, 48, 107 } } };
    int percent = (int)lround(fabs(place) * 100), half = percent > 50, part = percent - 50 * half, c[3];
    const int(*side)[3] = sides[weights ? 2 : place > 0];
    for (int k = 0; k < 3; k++) {
        int from = half ? side[0][k] : middles[weights][k], to = side[half][k];
        c[k] = (from * (50 - part) + to * part + 25) / 50;
    }
    return weft__paint_of(c);
}

weft__paint weft__scale_paint(const weft__scale *s, double value)
{
    return isfinite(value) ? place_paint(s->weights, weft__scale_place(s, value)) :
                             (weft__paint){ "#000000", "white" };
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
static const double THICK = 14;

/* A number of the scale next to its bar; part: 0 low, 1 high. */
static void draw_number(weft__svg *svg, double value, double x, double y, double length, double part,
                        bool upright)
{
    char text[WEFT__SHORT];
    weft__short_number(text, value, 3);
    if (upright)
        weft__svg_text(svg, x + 20, y + (1 - part) * (length - 9) + 9, "", WEFT__START, text);
    else
        weft__svg_text(svg, x + part * length, y + THICK + 13, "",
                       part > 0.9 ? WEFT__END : part < 0.1 ? WEFT__START : WEFT__MIDDLE, text);
}

void weft__scale_bar(weft__svg *svg, const weft__scale *s, double x, double y, double length, bool upright)
{
    double middle = (s->middle - s->low) / (s->high - s->low);
    const double parts[] = { 0, middle / 2, middle, (1 + middle) / 2, 1 };
    weft__svg_put(svg, "<defs><linearGradient id=\"scale\" %s>\n",
                  upright ? "x2=\"0\" y1=\"1\" y2=\"0\"" : "x2=\"1\"");
    for (int i = 0; i < 5; i++)
        weft__svg_put(svg, "<stop offset=\"%g\" stop-color=\"%s\"/>\n", parts[i],
                      weft__scale_paint(s, s->low + parts[i] * (s->high - s->low)).fill);
    weft__svg_put(svg, "</linearGradient></defs>\n");
    weft__svg_box(svg, x, y, upright ? THICK : length, upright ? length : THICK, "url(#scale)", NULL, NULL);
    draw_number(svg, s->low, x, y, length, 0, upright);
    draw_number(svg, s->high, x, y, length, 1, upright);
    if (middle > 0.15 && middle < 0.85)
        draw_number(svg, s->middle, x, y, length, middle, upright);
    weft__svg_text(svg, upright ? x : x + length + 10, upright ? y - 9 : y + 11, "small", WEFT__START,
                   s->label);
}
