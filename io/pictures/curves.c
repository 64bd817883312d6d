/* curves.c - charts: curves and bands over a common x axis, with a y axis on the left and, if a curve uses
 * it, another on the right; several charts in one picture. */
#include <stdlib.h>
#include "io/pictures/scale.h"

enum { LEFT = 78, RIGHT = 78, TOP = 84, BOTTOM = 62, LEGEND = 18, APART = 15 };
enum { MARKED = 32 };                            /* a curve of at most so many points gets dots */
enum { BAND = 44 };                              /* for the title of several charts */
enum { NAMES = 32 };                             /* at the right ends of curves, at most */

typedef struct {
    weft__svg *svg;
    double width, height, right;                 /* right: the end of the x axis */
    weft__axis x, y[2];
    const weft_curve *curves;
    int64_t n;
} picture;

/* ---- ranges ---- */
static bool point_is_drawable(const picture *p, const weft_curve *c, int64_t i)
{
    const weft__axis *y = &p->y[c->right_axis];
    return weft__axis_takes(&p->x, c->x[i]) && weft__axis_takes(y, c->y[i]) &&
           (!c->low || weft__axis_takes(y, c->low[i]));
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
static void draw_x_axis(picture *p, const char *label)
{
    double bottom = p->height - BOTTOM, tick[WEFT__TICKS];
    char text[WEFT__SHORT];
    int n = weft__axis_ticks(&p->x, tick);
    weft__svg_put(p->svg, "<path class=\"grid\" d=\"");
    for (int i = 0; i < n; i++)
        weft__svg_put(p->svg, "M%g %gV%d", weft__tenths(weft__axis_pixel(&p->x, tick[i])), bottom, TOP);
    weft__svg_put(p->svg, "\"/>\n");
    for (int i = 0; i < n; i++)
        weft__svg_text(p->svg, weft__axis_pixel(&p->x, tick[i]), bottom + 20, "label", WEFT__START,
                       weft__axis_text(&p->x, tick[i], text));
    weft__svg_line(p->svg, LEFT, bottom, p->right, bottom, "axis");
    weft__svg_text(p->svg, (LEFT + p->right) / 2, p->height - 18, "head", WEFT__MIDDLE, label);
}

static void draw_y_axis(picture *p, bool right, const char *label)
{
    const weft__axis *y = &p->y[right];
    if (!y->used && (right || p->y[1].used))
        return;
    double at = right ? p->right : LEFT, tick[WEFT__TICKS];
    char text[WEFT__SHORT];
    int n = weft__axis_ticks(y, tick);
    if (!right || !p->y[0].used) {
        weft__svg_put(p->svg, "<path class=\"grid\" d=\"");
        for (int i = 0; i < n; i++)
            weft__svg_put(p->svg, "M%d %gH%g", LEFT, weft__tenths(weft__axis_pixel(y, tick[i])), p->right);
        weft__svg_put(p->svg, "\"/>\n");
    }
    for (int i = 0; i < n; i++)
        weft__svg_text(p->svg, at + (right ? 8 : -8), weft__axis_pixel(y, tick[i]) + 4, "",
                       right ? WEFT__START : WEFT__END, weft__axis_text(y, tick[i], text));
    weft__svg_line(p->svg, at, TOP, at, p->height - BOTTOM, "axis");
    weft__svg_turned(p->svg, -90, right ? p->width - 16 : 22, (TOP + p->height - BOTTOM) / 2, "head",
                     WEFT__MIDDLE, label);
}

/* ---- paths ---- */
/* A path under construction, relative and without the points that lie on a line through their neighbours.
 * at: the last point that was written; last: the newest one; low, high: the slopes, from `at` on, of lines
 * that pass all points since then. */
typedef struct {
    weft__svg *svg;
    double at[2], last[2], low, high;
    bool waits;                                  /* `last` is not written yet */
    int points;
} pen;
static const double tolerance = 0.15;            /* pixels */

static void put_last(pen *p)
{
    double x = weft__tenths(p->last[0] - p->at[0]), y = weft__tenths(p->last[1] - p->at[1]);
    if (p->waits)
        weft__svg_put(p->svg, "%s%g%s%g", p->points % 24 == 23 ? "\nl" : "l", x, y < 0 ? "" : " ", y);
    p->points += p->waits;
    p->waits = false;
    p->at[0] += x;
    p->at[1] += y;
}

static void move_to(pen *p, double x, double y)
{
    p->at[0] = p->last[0] = weft__tenths(x);
    p->at[1] = p->last[1] = weft__tenths(y);
    weft__svg_put(p->svg, "M%g %g", p->at[0], p->at[1]);
}

static void line_to(pen *p, double x, double y)
{
    double run = x - p->at[0], slope = (y - p->at[1]) / run, room = tolerance / fabs(run);
    bool forward = run * (x - p->last[0]) > 0;
    if (p->waits && !(forward && slope >= p->low && slope <= p->high)) {
        put_last(p);
        run = x - p->at[0];
        slope = (y - p->at[1]) / run;
        room = tolerance / fabs(run);
    }
    p->low = p->waits ? fmax(p->low, slope - room) : slope - room;
    p->high = p->waits ? fmin(p->high, slope + room) : slope + room;
    p->last[0] = x;
    p->last[1] = y;
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

/* Colours are counted by curves: a band has that of the curve before it. */
static const char *colour_of(const picture *p, int k)
{
    int curves = 0;
    for (int i = 0; i <= k; i++)
        curves += !p->curves[i].low;
    return weft__svg_colour(curves ? curves - 1 : 0);
}

/* The first point from i on that can be drawn, or that cannot. */
static int64_t next_point(const picture *p, const weft_curve *c, int64_t i, bool drawable)
{
    while (i < c->n && point_is_drawable(p, c, i) != drawable)
        i++;
    return i;
}

/* Points that can be drawn in a row are a line, or an area along the upper edge and back along the lower. */
static void draw_curve(picture *p, const weft_curve *c, const char *colour)
{
    int pieces = 0;
    weft__svg_put(p->svg, "<path class=\"%s=\"%s\" d=\"", c->low ? "band\" fill" : "curve\" stroke", colour);
    for (int64_t from = next_point(p, c, 0, true), to; from < c->n; from = next_point(p, c, to, true)) {
        pen line = { .svg = p->svg };
        to = next_point(p, c, from, false);
        move_to(&line, x_of(p, c, from), level_of(p, c, c->y[from]));
        for (int64_t i = from + 1; i < to; i++)
            line_to(&line, x_of(p, c, i), level_of(p, c, c->y[i]));
        for (int64_t i = to - 1; c->low && i >= from; i--)
            line_to(&line, x_of(p, c, i), level_of(p, c, c->low[i]));
        put_last(&line);
        weft__svg_put(p->svg, "%s%s", c->low ? "Z" : "", line.points > 8 || ++pieces % 8 == 0 ? "\n" : "");
    }
    weft__svg_put(p->svg, "\"/>\n");
}

/* A curve of few points, each to the right of the one before: an outline has no dots. */
static bool has_dots(const weft_curve *c)
{
    for (int64_t i = 1; i < c->n && c->n <= MARKED; i++)
        if (c->x[i] <= c->x[i - 1])
            return false;
    return c->n <= MARKED;
}

static void draw_dots(picture *p, const weft_curve *c, const char *colour)
{
    weft__svg_put(p->svg, "<g fill=\"%s\" class=\"gap\">\n", colour);
    for (int64_t i = 0; i < c->n; i++)
        if (point_is_drawable(p, c, i))
            weft__svg_put(p->svg,
                          "<circle cx=\"%g\" cy=\"%g\" r=\"3.4\"><title>%.6g: %.6g</title></circle>\n",
                          weft__tenths(x_of(p, c, i)), weft__tenths(level_of(p, c, c->y[i])), c->x[i],
                          c->y[i]);
    weft__svg_put(p->svg, "</g>\n");
}

/* ---- the legend: curves and bands that have a name, in rows that fit ---- */
static double entry_width(const char *name) { return 31 + 7.5 * weft__utf8_length(name) + 24; }

static bool is_named(const weft_curve *c) { return c->name && *c->name; }

/* Moves x, y, where an entry would begin, to the next row if it does not fit into this one. */
static void next_entry(const picture *p, double width, double *x, double *y)
{
    if (*x > LEFT && *x + width - 24 > p->width - 10) {
        *x = LEFT;
        *y += LEGEND;
    }
}

static int legend_rows(const picture *p)
{
    double x = LEFT, y = 0;
    for (int k = 0; k < p->n; k++)
        if (is_named(p->curves + k)) {
            next_entry(p, entry_width(p->curves[k].name), &x, &y);
            x += entry_width(p->curves[k].name);
        }
    return 1 + (int)(y / LEGEND);
}

static void draw_legend(picture *p)
{
    double x = LEFT, y = 58 - LEGEND / 2. * (legend_rows(p) - 1);
    for (int k = 0; k < p->n; k++) {
        const char *name = p->curves[k].name;
        bool band = p->curves[k].low != NULL;
        if (!is_named(p->curves + k))
            continue;
        next_entry(p, entry_width(name), &x, &y);
        weft__svg_box(p->svg, x, y - (band ? 7 : 2), 24, band ? 14 : 4, colour_of(p, k),
                      band ? "band" : NULL, NULL);
        weft__svg_text(p->svg, x + 31, y + 4, "", WEFT__START, name);
        x += entry_width(name);
    }
}

/* ---- names at the right ends of curves ---- */
typedef struct {
    double y, level;                             /* of the name, of the curve's last point */
    int curve;
} end_name;

static int by_level(const void *a, const void *b)
{
    const end_name *s = a, *t = b;
    return s->level != t->level ? (s->level > t->level) - (s->level < t->level) : s->curve - t->curve;
}

/* Returns the width of the longest name, if names can stand at the ends: a legend would need a second row,
 * and all curves end at one x; else 0. */
static double names_width(const picture *p)
{
    int longest = 0;
    const double *x = NULL;
    for (int k = 0; k < p->n; k++) {
        const weft_curve *c = p->curves + k;
        if (!is_named(c) || c->low || c->right_axis || !c->n || !point_is_drawable(p, c, c->n - 1) ||
            (x && (c->x[c->n - 1] > *x || c->x[c->n - 1] < *x)))
            return 0;
        x = c->x + c->n - 1;
        longest = weft__utf8_length(c->name) > longest ? weft__utf8_length(c->name) : longest;
    }
    return p->n <= NAMES && longest <= 40 && legend_rows(p) > 1 ? 7.2 * longest : 0;
}

static void draw_names(picture *p)
{
    end_name end[NAMES];
    int n = (int)p->n;
    for (int k = 0; k < n; k++) {
        const weft_curve *c = p->curves + k;
        end[k] = (end_name){ .level = level_of(p, c, c->y[c->n - 1]), .curve = k };
    }
    qsort(end, (size_t)n, sizeof *end, by_level);
    for (int k = 0; k < n; k++)
        end[k].y = fmax(end[k].level, k ? end[k - 1].y + APART : TOP);
    for (int k = n - 1; k >= 0; k--)
        end[k].y = fmin(end[k].y, k < n - 1 ? end[k + 1].y - APART : p->height - BOTTOM);
    for (int k = 0; k < n; k++) {
        weft__svg_put(p->svg, "<path class=\"curve\" stroke=\"%s\" d=\"M%g %gL%g %g\"/>\n",
                      colour_of(p, end[k].curve), p->right + 4, weft__tenths(end[k].level), p->right + 18,
                      weft__tenths(end[k].y));
        weft__svg_text(p->svg, p->right + 22, end[k].y + 4, "", WEFT__START, p->curves[end[k].curve].name);
    }
}

/* ---- charts ---- */
static void draw_chart(weft__svg *svg, const weft_chart *c, double width, double height)
{
    picture p = { svg, width, height, width - RIGHT, { .base = c->x_base },
                  { { .base = c->y_base }, { .base = c->y_base } }, c->curves, c->n };
    widen_all(&p);
    if (!p.x.base && p.x.low > 0 && p.x.low < p.x.high / 5)
        p.x.low = 0;
    double names = names_width(&p);
    p.right = names > 0 ? width - names - 32 : p.right;
    p.x.from = LEFT;
    p.x.to = p.right;
    weft__axis_settle(&p.x, 10, false);
    for (int k = 0; k < 2; k++) {
        p.y[k].from = height - BOTTOM;
        p.y[k].to = TOP;
        weft__axis_settle(&p.y[k], 8, true);
    }
    draw_x_axis(&p, c->x_label);
    draw_y_axis(&p, false, c->left);
    draw_y_axis(&p, true, c->right);
    for (int bands = 1; bands >= 0; bands--)     /* below all curves */
        for (int k = 0; k < p.n; k++) {
            const weft_curve *one = p.curves + k;
            if ((one->low != NULL) != bands)
                continue;
            draw_curve(&p, one, colour_of(&p, k));
            if (!one->low && has_dots(one))
                draw_dots(&p, one, colour_of(&p, k));
        }
    if (names > 0)
        draw_names(&p);
    else
        draw_legend(&p);
}

static bool is_complete(const weft_chart *c)
{
    bool good = c->n >= 0 && (c->curves || c->n == 0);
    for (int64_t i = 0; good && i < c->n; i++)
        good = c->curves[i].n >= 0 && (c->curves[i].n == 0 || (c->curves[i].x && c->curves[i].y));
    return good && (c->x_base == 0 || c->x_base == 2 || c->x_base == 10) &&
           (c->y_base == 0 || c->y_base == 2 || c->y_base == 10);
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
        if (!is_complete(charts + i))
            return weft__file_fail(
                WEFT_EARG,
                "weft_plot_lines: chart %d: curves with x and y, and bases 0, 2 or 10, are expected", i);
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
            weft__svg_text(&svg, columns > 1 ? 24 : LEFT, 36, "head", WEFT__START, charts[i].title);
        draw_chart(&svg, &charts[i], width, height);
        if (!whole)
            weft__svg_put(&svg, "</g>\n");
    }
    return weft__svg_end(&svg);
}
