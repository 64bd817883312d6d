/* roofline.c - kernels under the roof of a machine (Williams, Waterman, Patterson 2009): FLOPs a byte, GF/s,
 * both by powers of ten. */
#include <math.h>
#include <stdlib.h>
#include "io/pictures/svg.h"

enum { WIDTH = 960, HEIGHT = 560, LEFT = 78, RIGHT = 40, TOP = 64, BOTTOM = 62, POINTS = 100, LETTER = 7 };
static const double least = 1e-12, most = 1e12;  /* of all numbers */

typedef struct { double x, y, width; } place;    /* of a label: its lower left corner */
typedef struct {
    weft__svg svg;
    double peak, bandwidth;
    const weft_roofline_point *points;
    int n;
    double x[2], y[2];                           /* the axes: powers of ten */
    place label[POINTS];
} picture;

static double column_of(const picture *p, double intensity)
{
    return LEFT + (log10(intensity) - p->x[0]) / (p->x[1] - p->x[0]) * (WIDTH - LEFT - RIGHT);
}
static double level_of(const picture *p, double rate)
{
    return HEIGHT - BOTTOM - (log10(rate) - p->y[0]) / (p->y[1] - p->y[0]) * (HEIGHT - TOP - BOTTOM);
}
static double roof_at(const picture *p, double intensity) { return fmin(p->peak, intensity * p->bandwidth); }

/* ---- axes ---- */
/* Around the points and the ridge, and some room. */
static void measure(picture *p)
{
    double ridge = p->peak / p->bandwidth, low = ridge / 5, high = ridge * 5, bottom = p->peak / 5,
           top = p->peak;
    for (int i = 0; i < p->n; i++) {
        low = fmin(low, p->points[i].intensity);
        high = fmax(high, p->points[i].intensity);
        bottom = fmin(bottom, p->points[i].rate);
        top = fmax(top, p->points[i].rate);
    }
    p->x[0] = log10(low / 1.5), p->x[1] = log10(high * 2);
    p->y[0] = log10(fmin(bottom / 1.5, roof_at(p, low / 1.5))), p->y[1] = log10(top * 1.8);
}

static void draw_tick(picture *p, bool upright, double value, int digit, bool named)
{
    double at = upright ? level_of(p, value) : column_of(p, value);
    if (upright)
        weft__svg_line(&p->svg, LEFT, at, WIDTH - RIGHT, at, digit > 1 ? "fine" : "grid");
    else
        weft__svg_line(&p->svg, at, TOP, at, HEIGHT - BOTTOM, digit > 1 ? "fine" : "grid");
    if (named)
        weft__svg_textf(&p->svg, upright ? LEFT - 8 : at, upright ? at + 4 : HEIGHT - BOTTOM + 20, "tick",
                        upright ? WEFT__END : WEFT__MIDDLE, "%.6g", value);
}

/* Lines at all digits, names at powers of ten, of a short axis at 2 and 5, too. */
static void draw_axis(picture *p, bool upright)
{
    const double *range = upright ? p->y : p->x;
    bool brief = range[1] - range[0] <= 3;
    for (double power = floor(range[0]); power <= range[1]; power++)
        for (int digit = 1; digit <= 9; digit++) {
            double value = pow(10, power) * digit, exponent = log10(value);
            if (exponent > range[0] && exponent < range[1])
                draw_tick(p, upright, value, digit, digit == 1 || (brief && (digit == 2 || digit == 5)));
        }
}

static void draw_axes(picture *p)
{
    draw_axis(p, false);
    draw_axis(p, true);
    weft__svg_line(&p->svg, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis");
    weft__svg_line(&p->svg, LEFT, TOP, LEFT, HEIGHT - BOTTOM, "axis");
    weft__svg_text(&p->svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 18, "head", WEFT__MIDDLE,
                   "FLOPs for each byte");
    double y = (TOP + HEIGHT - BOTTOM) / 2.0;
    weft__svg_put(&p->svg, "<g transform=\"rotate(-90 22.0 %.1f)\">\n", y);
    weft__svg_text(&p->svg, 22, y, "head", WEFT__MIDDLE, "GF/s");
    weft__svg_put(&p->svg, "</g>\n");
}

/* ---- the roof ---- */
static void draw_roof(picture *p)
{
    double ridge = p->peak / p->bandwidth, start = fmax(pow(10, p->x[0]), pow(10, p->y[0]) / p->bandwidth);
    double x0 = column_of(p, start), y0 = level_of(p, start * p->bandwidth), x1 = column_of(p, ridge),
           y1 = level_of(p, p->peak), floor_ = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    weft__svg_put(&p->svg, "<path class=\"memory\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n", x0,
                  y0, x1, y1, x1, floor_, x0, floor_);
    weft__svg_put(&p->svg, "<path class=\"compute\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n", x1,
                  y1, right, y1, right, floor_, x1, floor_);
    weft__svg_put(
        &p->svg,
        "<g><title>peak %.6g GF/s, bandwidth %.6g GB/s; they meet at %.6g FLOPs for each byte</title>\n"
        "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/></g>\n",
        p->peak, p->bandwidth, ridge, x0, y0, x1, y1, right, y1);
    weft__svg_put(&p->svg, "<path class=\"ridge\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x1, y1, x1, floor_);
    weft__svg_textf(&p->svg, right - 6, y1 - 8, "head", WEFT__END, "peak %.4g GF/s", p->peak);
    double angle = atan2(y1 - y0, x1 - x0) * 180 / acos(-1), x = (x0 + 2 * x1) / 3, y = (y0 + 2 * y1) / 3;
    weft__svg_put(&p->svg, "<g transform=\"rotate(%.1f %.1f %.1f)\">\n", angle, x, y);
    weft__svg_textf(&p->svg, x, y - 8, "head", WEFT__MIDDLE, "bandwidth %.4g GB/s", p->bandwidth);
    weft__svg_put(&p->svg, "</g>\n");
    weft__svg_text(&p->svg, x1 - 8, floor_ - 10, "small", WEFT__END, "bound by memory");
    weft__svg_text(&p->svg, x1 + 8, floor_ - 24, "small", WEFT__START, "bound by arithmetic");
    weft__svg_textf(&p->svg, x1 + 8, floor_ - 10, "small", WEFT__START, "from %.3g FLOPs for each byte on",
                    ridge);
}

/* ---- points ---- */
/* How far two boxes of a label's height lie in one another; 0: they do not. */
static double overlap(place a, place b)
{
    double x = fmin(a.x + a.width, b.x + b.width) - fmax(a.x, b.x), y = 14 - fabs(a.y - b.y);
    return x > 0 && y > 0 ? x * y : 0;
}

static double cost_of(const picture *p, place at, int labels)
{
    double cost = at.x < LEFT || at.x + at.width > WIDTH - RIGHT ? 1e4 : 0;
    cost += at.y - 14 < TOP || at.y > HEIGHT - BOTTOM - 36 ? 1e4 : 0;
    for (int i = 0; i < labels; i++)
        cost += overlap(at, p->label[i]);
    for (int i = 0; i < p->n; i++) {
        double x = column_of(p, p->points[i].intensity), y = level_of(p, p->points[i].rate);
        cost += overlap(at, (place){ x - 5, y + 7, 10 });
    }
    for (double x = at.x; x <= at.x + at.width; x += at.width / 4 + 1) {
        double part = p->x[0] + (x - LEFT) / (WIDTH - LEFT - RIGHT) * (p->x[1] - p->x[0]);
        double level = level_of(p, roof_at(p, pow(10, part)));
        cost += level < at.y + 3 && level > at.y - 13 ? 60 : 0;
    }
    return cost;
}

/* Beside its point, below, or above, where the least lies under it. */
static place place_label(const picture *p, int i, double width)
{
    double x = column_of(p, p->points[i].intensity), y = level_of(p, p->points[i].rate);
    double best = HUGE_VAL;
    const double at[][2] = { { x + 9, y + 4 },          { x - 9 - width, y + 4 }, { x - width / 2, y + 20 },
                             { x - width / 2, y - 10 }, { x + 6, y + 18 },        { x + 6, y - 8 },
                             { x - width - 6, y + 18 }, { x - width - 6, y - 8 },
                             { x + 18, y + 34 },        { x - width - 18, y + 34 }, { x + 18, y + 50 },
                             { x + 18, y - 26 },        { x - width - 18, y - 26 } };
    place chosen = { 0 };
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        place here = { at[k][0], at[k][1], width };
        double cost = cost_of(p, here, i) + (double)k;
        if (cost < best) {
            best = cost;
            chosen = here;
        }
    }
    return chosen;
}

/* From a point to its label, if that lies away from it. */
static void draw_leader(picture *p, int i)
{
    place l = p->label[i];
    double x = column_of(p, p->points[i].intensity), y = level_of(p, p->points[i].rate),
           to_x = fmax(l.x, fmin(l.x + l.width, x)), to_y = l.y > y ? l.y - 12 : l.y + 3;
    if (fabs(l.y - 4 - y) > 20)
        weft__svg_line(&p->svg, x, y, to_x, to_y, "leader");
}

static double part_of_roof(const picture *p, int i)      /* in percent */
{
    return 100 * p->points[i].rate / roof_at(p, p->points[i].intensity);
}

static void draw_label(picture *p, int i)
{
    const char *name = p->points[i].name;
    p->label[i] = place_label(p, i, LETTER * ((name ? weft__utf8_length(name) : 0) + 6));
    draw_leader(p, i);
    weft__svg_put(&p->svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"point\">", p->label[i].x, p->label[i].y);
    weft__svg_escaped(&p->svg, name);
    weft__svg_put(&p->svg, "%s%.0f %%</text>\n", name ? ", " : "", part_of_roof(p, i));
}

static void draw_point(picture *p, int i)
{
    const weft_roofline_point *at = &p->points[i];
    weft__svg_put(&p->svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" class=\"gap\"><title>",
                  column_of(p, at->intensity), level_of(p, at->rate), weft__svg_colour(1));
    weft__svg_escaped(&p->svg, at->name);
    weft__svg_put(&p->svg, "%s%.6g FLOPs for each byte, %.6g GF/s, %.3g %% of the roof</title></circle>\n",
                  at->name ? ": " : "", at->intensity, at->rate, part_of_roof(p, i));
}

/* ---- the whole ---- */
static bool is_drawable(double value) { return value >= least && value <= most; }

static weft_status check(double peak, double bandwidth, const weft_roofline_point *points, int64_t n)
{
    if (!is_drawable(peak) || !is_drawable(bandwidth))
        return weft__file_fail(
            WEFT_EARG,
            "weft_plot_roofline: a peak of %g GF/s, a bandwidth of %g GB/s; numbers in 1e-12 .. "
            "1e12 are expected",
            peak, bandwidth);
    if (n < 0 || n > POINTS || (n && !points))
        return weft__file_fail(WEFT_EARG, "weft_plot_roofline: %lld points%s; 0 .. %d are drawn",
                               (long long)n, n && !points ? ", and points is NULL" : "", (int)POINTS);
    for (int i = 0; i < n; i++)
        if (!is_drawable(points[i].intensity) || !is_drawable(points[i].rate))
            return weft__file_fail(
                WEFT_EARG,
                "weft_plot_roofline: point %d has %g FLOPs for each byte and %g GF/s; numbers "
                "in 1e-12 .. 1e12 are expected",
                i, points[i].intensity, points[i].rate);
    return WEFT_OK;
}

weft_status weft_plot_roofline(const char *path, const char *title, double peak, double bandwidth,
                               const weft_roofline_point *points, int64_t n)
{
    weft_status s = check(peak, bandwidth, points, n);
    if (s)
        return s;
    picture p = { .peak = peak, .bandwidth = bandwidth, .points = points, .n = (int)n };
    measure(&p);
    weft__svg_begin(&p.svg, path, title, WIDTH, HEIGHT);
    weft__svg_put(&p.svg,
                  "<style>\n"
                  ".fine { stroke: #f1f1f1; stroke-width: 1 } .memory { fill: #56b4e9; fill-opacity: 0.16 } "
                  ".compute { fill: #e69f00; fill-opacity: 0.14 }\n"
                  ".roof { stroke: #333333; stroke-width: 3; fill: none; stroke-linejoin: round } "
                  ".ridge { stroke: #777777; stroke-dasharray: 5 4; fill: none } "
                  ".leader { stroke: #777777; stroke-width: 1 }\n"
                  ".point { fill: #111111; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; "
                  "paint-order: stroke }\n"
                  "@media screen and (prefers-color-scheme: dark) {\n"
                  ".fine { stroke: #20252a } .roof { stroke: #dddddd } .ridge, .leader { stroke: #a0a6ac } "
                  ".point { fill: #ececec; stroke: #14171a }\n"
                  "}\n"
                  "</style>\n");
    draw_axes(&p);
    draw_roof(&p);
    for (int i = 0; i < p.n; i++)
        draw_label(&p, i);
    for (int i = 0; i < p.n; i++)
        draw_point(&p, i);
    return weft__svg_end(&p.svg);
}
