/* curves.c - draws charts, several in one picture: curves and bands over a common x axis, with a y axis on
 * the left and, if a curve uses it, one on the right. */
#include <stdlib.h>
#include "io/pictures/scale.h"

/* Pixels: LEGEND from row to row, APART from name to name, BAND for the title of several charts */
static const double LEGEND = 18, APART = 15, BAND = 44;
enum { MARKED = 32, NAMES = 32 }; /* most points of a curve with dots; most names at right ends */

typedef struct {
    weft__svg *svg;
    bool small;
    double width, height, left, right, top, bottom;     /* of the whole chart; of the area between the axes */
    weft__axis x, y[2];
    const weft_curve *curves;
    int64_t n;
} picture;

/* ---- ranges ---- */
static bool point_is_drawable(const picture *p, const weft_curve *c, int64_t i)
{
    const weft__axis *y = &p->y[c->right_axis];
    return weft__axis_can_show(&p->x, c->x[i]) && weft__axis_can_show(y, c->y[i]) &&
           (!c->low || weft__axis_can_show(y, c->low[i]));
}

static void widen_all(picture *p)
{
    for (int k = 0; k < p->n; k++)
        for (int64_t i = 0; i < p->curves[k].n; i++)
            if (point_is_drawable(p, &p->curves[k], i)) {
                weft__axis_widen(&p->x, p->curves[k].x[i]);
                weft__axis_widen(&p->y[p->curves[k].right_axis], p->curves[k].y[i]);
                if (p->curves[k].low)
                    weft__axis_widen(&p->y[p->curves[k].right_axis], p->curves[k].low[i]);
            }
}

/* ---- axes ---- */
static void draw_axis(picture *p, const weft__axis *a, bool upright, bool with_grid, double position,
                      int side)
{
    double tick[WEFT__TICKS];
    char text[WEFT__SHORT];
    int n = weft__axis_ticks(a, tick);
    weft__svg_put(p->svg, with_grid ? "<path class=\"grid\" d=\"" : "");
    for (int i = 0; with_grid && i < n; i++) {
        double level = weft__tenths(weft__axis_pixel(a, tick[i]));
        if (upright)
            weft__svg_put(p->svg, "M%g %gH%g", p->left, level, p->right);
        else
            weft__svg_put(p->svg, "M%g %gV%g", level, p->bottom, p->top);
    }
    weft__svg_put(p->svg, with_grid ? "\"/>\n" : "");
    for (int i = 0; i < n; i++) {
        double level = weft__axis_pixel(a, tick[i]);
        weft__axis_text(a, tick[i], text);
        if (upright)
            weft__svg_text(p->svg, position + side * (p->small ? 5 : 8), level + 4, "",
                           side > 0 ? WEFT__START : WEFT__END, text);
        else
            weft__svg_text(p->svg, level, position + (p->small ? 14 : 20), "label", WEFT__START, text);
    }
    if (upright)
        weft__svg_line(p->svg, position, p->top, position, p->bottom, "axis");
    else
        weft__svg_line(p->svg, p->left, position, p->right, position, "axis");
}

static void draw_axes(picture *p, const weft_chart *c)
{
    const char *const names[] = { c->left, c->right };
    double middle = (p->top + p->bottom) / 2;
    draw_axis(p, &p->x, false, true, p->bottom, 0);
    weft__svg_text(p->svg, (p->left + p->right) / 2, p->height - (p->small ? 6 : 18),
                   p->small ? "label" : "head label", WEFT__START, c->x_label);
    for (int right = 0; right < 2; right++) {
        if (!p->y[right].used && (right || p->y[1].used))
            continue;
        draw_axis(p, &p->y[right], true, !right || !p->y[0].used, right ? p->right : p->left, right ? 1 : -1);
        if (p->small)
            weft__svg_text(p->svg, 2, p->top - 10, "", WEFT__START, names[right]);
        else
            weft__svg_text_rotated(p->svg, -90, right ? p->width - 16 : 22, middle, "head", WEFT__MIDDLE,
                                   names[right]);
    }
}

/* ---- paths ---- */
/* A path under construction, relative and without points on a line through their neighbours. written: the
 * last point written; newest: the newest point; low, high: the slopes of lines from `written` that pass all
 * points after it. */
typedef struct {
    weft__svg *svg;
    double written[2], newest[2], low, high;
    bool waits;                                  /* `newest` is not written yet */
    int points;
} pen;
static const double tolerance = 0.15;            /* pixels */

static void put_last(pen *p)
{
    double x = weft__tenths(p->newest[0] - p->written[0]), y = weft__tenths(p->newest[1] - p->written[1]);
    if (p->waits)
        weft__svg_put(p->svg, "%s%g%s%g", p->points % 24 == 23 ? "\nl" : "l", x, y < 0 ? "" : " ", y);
    p->points += p->waits;
    p->waits = false;
    p->written[0] += x;
    p->written[1] += y;
}

static void line_to(pen *p, double x, double y)
{
    double run = x - p->written[0], slope = (y - p->written[1]) / run, room = tolerance / fabs(run);
    bool forward = run * (x - p->newest[0]) > 0;
    if (p->waits && !(forward && slope >= p->low && slope <= p->high)) {
        put_last(p);
        run = x - p->written[0];
        slope = (y - p->written[1]) / run;
        room = tolerance / fabs(run);
    }
    p->low = p->waits ? fmax(p->low, slope - room) : slope - room;
    p->high = p->waits ? fmin(p->high, slope + room) : slope + room;
    p->newest[0] = x;
    p->newest[1] = y;
    p->waits = true;
}

/* ---- curves ---- */
static double x_of(const picture *p, const weft_curve *c, int64_t i)
{
    return weft__axis_pixel(&p->x, c->x[i]);
}
static double level_of(const picture *p, const weft_curve *c, double value)
{
    return weft__axis_pixel(&p->y[c->right_axis], value);
}

/* Colours count curves; a band has the colour of the curve before it. */
static const char *colour_of(const picture *p, int k)
{
    int curves = 0;
    for (int i = 0; i <= k; i++)
        curves += !p->curves[i].low;
    return weft__svg_colour(curves ? curves - 1 : 0);
}

/* Returns the first point from i on that can be drawn, or that cannot. */
static int64_t next_point(const picture *p, const weft_curve *c, int64_t i, bool drawable)
{
    while (i < c->n && point_is_drawable(p, c, i) != drawable)
        i++;
    return i;
}

/* Draws consecutive points as a line, or as an area along the upper edge and back along the lower. */
static void draw_curve(picture *p, const weft_curve *c, const char *colour)
{
    int pieces = 0;
    weft__svg_put(p->svg, "<path class=\"%s=\"%s\" d=\"", c->low ? "band\" fill" : "curve\" stroke", colour);
    for (int64_t from = next_point(p, c, 0, true), to; from < c->n; from = next_point(p, c, to, true)) {
        double x = weft__tenths(x_of(p, c, from)), y = weft__tenths(level_of(p, c, c->y[from]));
        pen line = { .svg = p->svg, .written = { x, y }, .newest = { x, y } };
        to = next_point(p, c, from, false);
        weft__svg_put(p->svg, "M%g %g", x, y);
        for (int64_t i = from + 1; i < to; i++)
            line_to(&line, x_of(p, c, i), level_of(p, c, c->y[i]));
        for (int64_t i = to - 1; c->low && i >= from; i--)
            line_to(&line, x_of(p, c, i), level_of(p, c, c->low[i]));
        put_last(&line);
        weft__svg_put(p->svg, "%s%s", c->low ? "Z" : "", line.points > 8 || ++pieces % 8 == 0 ? "\n" : "");
    }
    weft__svg_put(p->svg, "\"/>\n");
}

/* A curve of few points has dots, if each is to the right of the one before; an outline has no dots. */
static bool has_dots(const weft_curve *c)
{
    for (int64_t i = 1; i < c->n && c->n <= MARKED; i++)
        if (c->x[i] <= c->x[i - 1])
            return false;
    return c->n <= MARKED;
}

static bool is_alone(const picture *p, const weft_curve *c, int64_t i)
{
    return !(i && point_is_drawable(p, c, i - 1)) && !(i + 1 < c->n && point_is_drawable(p, c, i + 1));
}

/* A small chart has dots only for points without a line. */
static void draw_dots(picture *p, const weft_curve *c, const char *colour)
{
    bool all = !p->small && has_dots(c);
    weft__svg_put(p->svg, "<g fill=\"%s\" class=\"gap\">\n", colour);
    for (int64_t i = 0; i < c->n; i++)
        if (point_is_drawable(p, c, i) && (all || is_alone(p, c, i)))
            weft__svg_put(
                p->svg, "<circle cx=\"%g\" cy=\"%g\" r=\"3.4\"><title>%.6g: %.6g</title></circle>\n",
                weft__tenths(x_of(p, c, i)), weft__tenths(level_of(p, c, c->y[i])), c->x[i], c->y[i]);
    weft__svg_put(p->svg, "</g>\n");
}

/* ---- the legend: named curves and bands, in rows that fit ---- */
static double entry_width(const char *name) { return 31 + 7.5 * weft__utf8_length(name) + 24; }

static bool is_named(const weft_curve *c) { return c->name && *c->name; }

/* Draws the legend from y on, or only measures it. Returns its number of rows. */
static int walk_legend(picture *p, double y, bool draw)
{
    double x = p->left, first = y;
    for (int k = 0; k < p->n; k++) {
        const char *name = p->curves[k].name;
        bool band = p->curves[k].low != NULL;
        if (!is_named(p->curves + k))
            continue;
        if (x > p->left && x + entry_width(name) - 24 > p->width - 10) {
            x = p->left;
            y += LEGEND;
        }
        if (draw) {
            weft__svg_box(p->svg, x, y - (band ? 7 : 2), 24, band ? 14 : 4, colour_of(p, k),
                          band ? "band" : NULL, NULL);
            weft__svg_text(p->svg, x + 31, y + 4, "", WEFT__START, name);
        }
        x += entry_width(name);
    }
    return 1 + (int)((y - first) / LEGEND);
}

/* ---- names at the right ends of curves ---- */
typedef struct {
    double y, level;                             /* y of the name and of the curve's last point */
    int curve;
} end_name;

static int by_level(const void *a, const void *b)
{
    const end_name *s = a, *t = b;
    return s->level != t->level ? (s->level > t->level) - (s->level < t->level) : s->curve - t->curve;
}

static bool ends(const picture *p, const weft_curve *c)
{
    return is_named(c) && !c->low && !c->right_axis && c->n && point_is_drawable(p, c, c->n - 1);
}

/* Returns the width of the longest name, if names are drawn at the ends, because a legend would need a second
 * row and all curves end at one x; otherwise 0. */
static double names_width(picture *p)
{
    int longest = 0;
    for (int k = 0; k < p->n; k++) {
        const weft_curve *c = p->curves + k, *first = p->curves;
        if (!ends(p, c) || c->x[c->n - 1] < first->x[first->n - 1] || c->x[c->n - 1] > first->x[first->n - 1])
            return 0;
        longest = weft__utf8_length(c->name) > longest ? weft__utf8_length(c->name) : longest;
    }
    return p->n <= NAMES && 7.2 * longest <= p->width / 3 && walk_legend(p, 0, false) > 1 ? 7.2 * longest : 0;
}

/* Names next to the last points, apart from each other. */
static void draw_names(picture *p)
{
    end_name end[NAMES];
    int n = 0;
    for (int k = 0; k < p->n && n < NAMES; k++) {
        const weft_curve *c = p->curves + k;
        if (ends(p, c))
            end[n++] = (end_name){ .level = level_of(p, c, c->y[c->n - 1]), .curve = k };
    }
    qsort(end, (size_t)n, sizeof *end, by_level);
    for (int k = 0; k < n; k++)
        end[k].y = fmax(end[k].level, k ? end[k - 1].y + APART : p->top);
    for (int k = n - 1; k >= 0; k--)
        end[k].y = fmin(end[k].y, k < n - 1 ? end[k + 1].y - APART : p->bottom);
    for (int k = 0; k < n; k++) {
        const weft_curve *c = p->curves + end[k].curve;
        double x = weft__tenths(x_of(p, c, c->n - 1)), far = p->small ? 8 : 18;
        int side = x + far + 7 * weft__utf8_length(c->name) > p->width ? -1 : 1;
        weft__svg_put(p->svg, "<path stroke=\"%s\" stroke-width=\"2\" d=\"M%g %gL%g %g\"/>\n",
                      colour_of(p, end[k].curve), x + side * 4, weft__tenths(end[k].level), x + side * far,
                      weft__tenths(end[k].y));
        weft__svg_text(p->svg, x + side * (far + 3), end[k].y + 4, "", side < 0 ? WEFT__END : WEFT__START,
                       c->name);
    }
}

/* ---- charts ---- */
/* Computes the area between the axes, and their ranges. */
static void measure(picture *p, double names)
{
    p->right = p->width - (p->small ? 24 : names > 0 ? names + 32 : 78);
    p->x.from = p->left;
    p->x.to = p->right;
    if (!p->x.base && p->x.low > 0 && p->x.low < p->x.high / 5)
        p->x.low = 0;
    weft__axis_choose_step(&p->x, p->small ? 5 : 10, p->small);
    for (int k = 0; k < 2; k++) {
        p->y[k].from = p->bottom;
        p->y[k].to = p->top;
        weft__axis_choose_step(&p->y[k], p->small ? 5 : 8, true);
    }
}

void weft__draw_chart(weft__svg *svg, const weft_chart *c, double width, double height, bool small)
{
    picture p = { svg, small, width, height, small ? 46 : 78, width, small ? 24 : 84,
                  height - (small ? 42 : 62), { .base = c->x_base },
                  { { .base = c->y_base }, { .base = c->y_base } }, c->curves, c->n };
    widen_all(&p);
    double names = names_width(&p);
    measure(&p, names);
    draw_axes(&p, c);
    for (int bands = 1; bands >= 0; bands--)     /* below all curves */
        for (int k = 0; k < p.n; k++) {
            const weft_curve *one = p.curves + k;
            if ((one->low != NULL) != bands)
                continue;
            draw_curve(&p, one, colour_of(&p, k));
            if (!one->low)
                draw_dots(&p, one, colour_of(&p, k));
        }
    if (names > 0 || small)
        draw_names(&p);
    else
        walk_legend(&p, 58 - LEGEND / 2 * (walk_legend(&p, 0, false) - 1), true);
}

static bool is_complete(const weft_chart *c)
{
    bool ok = c->n >= 0 && (c->curves || c->n == 0);
    for (int64_t i = 0; ok && i < c->n; i++)
        ok = c->curves[i].n >= 0 && (c->curves[i].n == 0 || (c->curves[i].x && c->curves[i].y));
    return ok && (c->x_base == 0 || c->x_base == 2 || c->x_base == 10) &&
           (c->y_base == 0 || c->y_base == 2 || c->y_base == 10);
}

static weft_status check_charts(const weft_chart *charts, int64_t n, int columns)
{
    if (!charts)
        return weft__file_fail(WEFT_EARG, "weft_plot_lines: charts is NULL");
    if (n < 1 || n > 100 || columns < 0)
        return weft__file_fail(
            WEFT_EARG, "weft_plot_lines: %lld charts in %d columns; expected 1 .. 100 charts and 0 (means "
                       "1) or more columns",
            (long long)n, columns);
    for (int i = 0; i < n; i++)
        if (!is_complete(charts + i))
            return weft__file_fail(
                WEFT_EARG,
                "weft_plot_lines: chart %d: expected curves with x and y, and bases 0, 2 or 10", i);
    return WEFT_OK;
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
    int rows = ((int)n + columns - 1) / columns;
    double width = columns > 1 ? 560 : 960, height = columns > 1 ? 380 : 480;
    weft__svg_begin(&svg, path, title, width * columns, whole ? height : BAND + height * rows);
    for (int i = 0; i < n; i++) {
        if (!whole)
            weft__svg_put(&svg, "<g transform=\"translate(%g %g)\">\n", width * (i % columns),
                          BAND + height * (i / columns));
        if (!whole)
            weft__svg_text(&svg, columns > 1 ? 24 : 78, 36, "head", WEFT__START, charts[i].title);
        weft__draw_chart(&svg, &charts[i], width, height, false);
        if (!whole)
            weft__svg_put(&svg, "</g>\n");
    }
    return weft__svg_end(&svg);
}
