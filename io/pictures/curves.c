/* curves.c - charts: curves and bands over a common x axis, with a y axis on the left and, if a curve wants
 * it, another on the right; axes even or by powers; several charts in one picture. */
#include <math.h>
#include "io/pictures/svg.h"

enum { WIDTH = 960, HEIGHT = 500, LEFT = 78, RIGHT = 78, TOP = 84, BOTTOM = 62, LEGEND = 18 };
enum { MARKED = 60 };                            /* a curve of at most so many points gets dots */
enum { BAND = 44 };                              /* for the title of several charts */

/* of a base: in exponents of it */
typedef struct { double low, high, step; int base; bool used; } range;
typedef struct {
    weft__svg *svg;
    range x, y[2];
    const weft_curve *curves;
    int64_t n;
    const char *labels[2];
} picture;

/* ---- ranges ---- */
static double scale_value(const range *r, double value)
{
    return r->base == 2 ? log2(value) : r->base ? log10(value) : value;
}
/* NaN does not */
static bool range_takes(const range *r, double value)
{
    return fabs(value) < 1e100 && (!r->base || value > 0);
}

static bool point_is_drawable(const picture *p, const weft_curve *c, int64_t i)
{
    const range *y = &p->y[c->right_axis];
    return range_takes(&p->x, c->x[i]) && range_takes(y, c->y[i]) && (!c->low || range_takes(y, c->low[i]));
}

static void widen(range *r, double value)
{
    value = scale_value(r, value);
    r->low = r->used && r->low < value ? r->low : value;
    r->high = r->used && r->high > value ? r->high : value;
    r->used = true;
}

static void widen_all(picture *p)
{
    for (int k = 0; k < p->n; k++)
        for (int64_t i = 0; i < p->curves[k].n; i++)
            if (point_is_drawable(p, &p->curves[k], i)) {
                widen(&p->x, p->curves[k].x[i]);
                widen(&p->y[p->curves[k].right_axis], p->curves[k].y[i]);
                if (p->curves[k].low)
                    widen(&p->y[p->curves[k].right_axis], p->curves[k].low[i]);
            }
}

/* To whole steps outwards (the x axis keeps its ends); a range of one value gets some room. */
static void settle_range(range *r, int most, bool outwards)
{
    if (!r->used)
        *r = (range){ 0, 1, 0, r->base, false };
    double room = r->base ? 1e-6 : fmax(fabs(r->low), fabs(r->high)) * 1e-6;
    if (r->high - r->low <= fmax(room, 1e-200)) {
        r->low -= room > 1e-200 ? room * 1e5 : 1;
        r->high += room > 1e-200 ? room * 1e5 : 1;
    }
    r->step = weft__svg_step(r->high - r->low, most);
    if (r->base)
        r->step = fmax(1, ceil(r->step));        /* whole powers */
    if (outwards) {
        r->low = floor(r->low / r->step + 1e-9) * r->step;
        r->high = ceil(r->high / r->step - 1e-9) * r->step;
    }
}

static double decade_position(const picture *p, double exponent)
{
    return LEFT + (exponent - p->x.low) / (p->x.high - p->x.low) * (WIDTH - LEFT - RIGHT);
}
static double pixel_row(const range *y, double exponent)
{
    return HEIGHT - BOTTOM - (exponent - y->low) / (y->high - y->low) * (HEIGHT - TOP - BOTTOM);
}

/* ---- axes ---- */
typedef struct { double at, value; } tick;       /* at: on the scale */
enum { TICKS = 64 };

static int ticks(const range *r, tick *out)
{
    static const double parts[] = { 1, 2, 5 };
    /* a short range of powers of ten is marked between them, too */
    int n = 0, of_each = r->base == 10 && r->high - r->low <= 3 ? 3 : 1;
    for (double i = ceil(r->low / r->step - 1e-9) - (of_each > 1); i * r->step <= r->high + r->step * 1e-9;
         i++)
        for (int k = 0; k < of_each && n < TICKS; k++) {
            double at = i * r->step + (k ? log10(parts[k]) : 0);
            if (at >= r->low - r->step * 1e-9 && at <= r->high + r->step * 1e-9)
                out[n++] = (tick){ at, r->base ? pow(r->base, i * r->step) * parts[k] : at + 0.0 };
        }
    return n;
}

static void draw_x_axis(picture *p, const char *label)
{
    tick t[TICKS];
    for (int n = ticks(&p->x, t), i = 0; i < n; i++) {
        double at = decade_position(p, t[i].at);
        weft__svg_line(p->svg, at, TOP, at, HEIGHT - BOTTOM, "grid");
        weft__svg_textf(p->svg, at, HEIGHT - BOTTOM + 20, "tick", WEFT__MIDDLE, "%.8g", t[i].value);
    }
    weft__svg_line(p->svg, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis");
    weft__svg_text(p->svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 18, "head", WEFT__MIDDLE, label);
}

static void draw_turned(weft__svg *s, double x, const char *label)
{
    double y = (TOP + HEIGHT - BOTTOM) / 2.0;
    weft__svg_put(s, "<g transform=\"rotate(-90 %.1f %.1f)\">\n", x, y);
    weft__svg_text(s, x, y, "head", WEFT__MIDDLE, label);
    weft__svg_put(s, "</g>\n");
}

static void draw_y_axis(picture *p, bool right)
{
    const range *y = &p->y[right];
    if (!y->used && (right || p->y[1].used))
        return;
    double at = right ? WIDTH - RIGHT : LEFT;
    bool grid = !right || !p->y[0].used;
    tick t[TICKS];
    for (int n = ticks(y, t), i = 0; i < n; i++) {
        double level = pixel_row(y, t[i].at);
        if (grid)
            weft__svg_line(p->svg, LEFT, level, WIDTH - RIGHT, level, "grid");
        weft__svg_textf(p->svg, at + (right ? 8 : -8), level + 4, "tick", right ? WEFT__START : WEFT__END,
                        "%.6g", t[i].value);
    }
    weft__svg_line(p->svg, at, TOP, at, HEIGHT - BOTTOM, "axis");
    draw_turned(p->svg, right ? WIDTH - 16 : 22, p->labels[right]);
}

/* ---- curves ---- */
static double x_of(const picture *p, const weft_curve *c, int64_t i)
{
    return decade_position(p, scale_value(&p->x, c->x[i]));
}
static double level_of(const picture *p, const weft_curve *c, double value)
{
    const range *y = &p->y[c->right_axis];
    return pixel_row(y, scale_value(y, value));
}
static double y_of(const picture *p, const weft_curve *c, int64_t i) { return level_of(p, c, c->y[i]); }

/* Colours are counted by curves: a band has that of the curve before it. */
static const char *colour_of(const picture *p, int k)
{
    int curves = 0;
    for (int i = 0; i <= k; i++)
        curves += !p->curves[i].low;
    return weft__svg_colour(curves ? curves - 1 : 0);
}

/* Points from .. to - 1, along the upper edge and back along the lower one. */
static void draw_area(picture *p, const weft_curve *c, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        weft__svg_put(p->svg, "%s%.1f %.1f", i > from ? "L" : "M", x_of(p, c, i), y_of(p, c, i));
    for (int64_t i = to - 1; i >= from; i--)
        weft__svg_put(p->svg, "L%.1f %.1f", x_of(p, c, i), level_of(p, c, c->low[i]));
    weft__svg_put(p->svg, "Z");
}

static void draw_band(picture *p, const weft_curve *c, const char *colour)
{
    weft__svg_put(p->svg, "<path class=\"band\" fill=\"%s\" d=\"", colour);
    for (int64_t i = 0; i < c->n; ) {
        int64_t from = i;
        while (i < c->n && point_is_drawable(p, c, i))
            i++;
        if (i > from)
            draw_area(p, c, from, i);
        else
            i++;
    }
    weft__svg_put(p->svg, "\"/>\n");
}

static void draw_line(picture *p, const weft_curve *c, const char *colour)
{
    bool down_now = false;                       /* the pen; a point that cannot be drawn lifts it */
    weft__svg_put(p->svg, "<path class=\"curve\" stroke=\"%s\" d=\"M", colour);
    for (int64_t i = 0; i < c->n; i++) {
        bool good = point_is_drawable(p, c, i);
        if (good)
            weft__svg_put(p->svg, "%s%.1f %.1f", down_now ? "L" : i ? "M" : "", x_of(p, c, i), y_of(p, c, i));
        down_now = good;
    }
    weft__svg_put(p->svg, "\"/>\n");
}

static void draw_dots(picture *p, const weft_curve *c, const char *colour)
{
    for (int64_t i = 0; i < c->n; i++)
        if (point_is_drawable(p, c, i))
            weft__svg_put(p->svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\" "
                          "class=\"gap\"><title>%.6g: %.6g</title></circle>\n",
                          x_of(p, c, i), y_of(p, c, i), colour, c->x[i], c->y[i]);
}

/* ---- the legend: curves and bands that have a name, in rows that fit ---- */
static double entry_width(const char *name) { return 31 + 7.5 * weft__utf8_length(name) + 24; }

static bool is_named(const weft_curve *c) { return c->name && *c->name; }

/* Where an entry of that width lies that follows x, y: there, or where the next row begins. */
static void next_entry(double width, double *x, double *y)
{
    if (*x > LEFT && *x + width - 24 > WIDTH - 10)
        *x = LEFT, *y += LEGEND;
}

static int legend_rows(const picture *p)
{
    double x = LEFT, y = 0;
    for (int k = 0; k < p->n; k++)
        if (is_named(p->curves + k)) {
            next_entry(entry_width(p->curves[k].name), &x, &y);
            x += entry_width(p->curves[k].name);
        }
    return 1 + (int)(y / LEGEND);
}

static void draw_legend(picture *p)
{
    double x = LEFT, y = 58 - LEGEND / 2. * (legend_rows(p) - 1);
    for (int k = 0; k < p->n; k++) {
        const char *name = p->curves[k].name;
        if (!is_named(p->curves + k))
            continue;
        next_entry(entry_width(name), &x, &y);
        if (p->curves[k].low)
            weft__svg_put(p->svg,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"24\" height=\"14\" class=\"band\" "
                          "fill=\"%s\"/>\n",
                          x, y - 7, colour_of(p, k));
        else
            weft__svg_put(p->svg,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                          "stroke-width=\"4\"/>\n",
                          x, y, x + 24, y, colour_of(p, k));
        weft__svg_text(p->svg, x + 31, y + 4, "name", WEFT__START, name);
        x += entry_width(name);
    }
}

static bool curves_are_complete(const weft_curve *curves, int64_t n)
{
    bool good = n >= 0 && (curves || n == 0);
    for (int64_t i = 0; good && i < n; i++)
        good = curves[i].n >= 0 && (curves[i].n == 0 || (curves[i].x && curves[i].y));
    return good;
}

/* ---- charts ---- */
static bool is_base(int base) { return base == 0 || base == 2 || base == 10; }

static void draw_chart(weft__svg *svg, const weft_chart *c)
{
    picture p = { svg,  { .base = c->x_base }, { { .base = c->y_base }, { .base = c->y_base } }, c->curves,
                  c->n, { c->left, c->right } };
    widen_all(&p);
    if (!p.x.base && p.x.low > 0 && p.x.low < p.x.high / 5)
        p.x.low = 0;
    settle_range(&p.x, 10, false);
    settle_range(&p.y[0], 8, true);
    settle_range(&p.y[1], 8, true);
    draw_x_axis(&p, c->x_label);
    draw_y_axis(&p, false);
    draw_y_axis(&p, true);
    for (int k = 0; k < p.n; k++)
        if (p.curves[k].low)
            draw_band(&p, &p.curves[k], colour_of(&p, k));
    for (int k = 0; k < p.n; k++) {
        if (p.curves[k].low)
            continue;
        draw_line(&p, &p.curves[k], colour_of(&p, k));
        if (p.curves[k].n <= MARKED)
            draw_dots(&p, &p.curves[k], colour_of(&p, k));
    }
    draw_legend(&p);
}

static weft_status check_charts(const weft_chart *charts, int64_t n, int columns)
{
    if (!charts)
        return weft__file_fail(WEFT_EARG, "weft_plot_lines: charts is NULL");
    if (n < 1 || n > 100 || columns < 0)
        return weft__file_fail(
            WEFT_EARG, "weft_plot_lines: %lld charts in %d columns; 1 .. 100 charts and 0 (means 1) or more "
                       "columns are expected",
            (long long)n, columns);
    for (int i = 0; i < n; i++)
        if (!curves_are_complete(charts[i].curves, charts[i].n) || !is_base(charts[i].x_base) ||
            !is_base(charts[i].y_base))
            return weft__file_fail(
                WEFT_EARG,
                "weft_plot_lines: chart %d: curves with x and y, and bases 0, 2 or 10, are expected", i);
    return WEFT_OK;
}

static void draw_side_by_side(weft__svg *svg, const weft_chart *charts, int n, int columns)
{
    for (int i = 0; i < n; i++) {
        weft__svg_put(svg, "<g transform=\"translate(%d %d)\">\n", WIDTH * (i % columns),
                      BAND + HEIGHT * (i / columns));
        weft__svg_text(svg, LEFT, 36, "head", WEFT__START, charts[i].title);
        draw_chart(svg, &charts[i]);
        weft__svg_put(svg, "</g>\n");
    }
}

weft_status weft_plot_lines(const char *path, const char *title, const weft_chart *charts, int64_t n,
                            int columns)
{
    weft_status s = check_charts(charts, n, columns);
    if (s != WEFT_OK)
        return s;
    weft__svg svg;
    bool whole = n == 1 && !charts->title;
    columns = columns < 1 ? 1 : columns < n ? columns : (int)n;
    weft__svg_begin(&svg, path, title, WIDTH * columns,
                    whole ? HEIGHT : BAND + HEIGHT * (((int)n + columns - 1) / columns));
    if (whole)
        draw_chart(&svg, charts);
    else
        draw_side_by_side(&svg, charts, (int)n, columns);
    return weft__svg_end(&svg);
}
