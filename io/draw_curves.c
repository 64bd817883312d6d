/* draw_curves.c - curves over a common x axis, with a y axis on the left and, if a curve wants it, another on the right. */
#include <math.h>
#include "io/svg.h"

enum { WIDTH = 960, HEIGHT = 500, LEFT = 78, RIGHT = 78, TOP = 84, BOTTOM = 62 };
enum { MARKED = 60 };                            /* a curve of at most so many points gets dots */

typedef struct { double low, high, step; bool used; } range;
typedef struct { weft__svg svg; range x, y[2]; const weft_curve *curves; int n; const char *labels[2]; } picture;

/* ---- ranges ---- */
static bool drawable(const weft_curve *c, int64_t i) { return fabs(c->x[i]) < 1e100 && fabs(c->y[i]) < 1e100; }     /* NaN is not */

static void widen(range *r, double value)
{
    r->low = r->used && r->low < value ? r->low : value;
    r->high = r->used && r->high > value ? r->high : value;
    r->used = true;
}

static void widen_all(picture *p)
{
    for (int k = 0; k < p->n; k++)
        for (int64_t i = 0; i < p->curves[k].n; i++)
            if (drawable(&p->curves[k], i)) {
                widen(&p->x, p->curves[k].x[i]);
                widen(&p->y[p->curves[k].right_axis], p->curves[k].y[i]);
            }
}

/* To whole steps outwards (the x axis keeps its ends); a range of one value gets some room. */
static void settle(range *r, int most, bool outwards)
{
    if (!r->used)
        *r = (range){ 0, 1, 0, false };
    double room = fmax(fabs(r->low), fabs(r->high)) * 1e-6;
    if (r->high - r->low <= fmax(room, 1e-200)) {
        r->low -= room > 1e-200 ? room * 1e5 : 1;
        r->high += room > 1e-200 ? room * 1e5 : 1;
    }
    r->step = weft__svg_step(r->high - r->low, most);
    if (outwards) {
        r->low = floor(r->low / r->step + 1e-9) * r->step;
        r->high = ceil(r->high / r->step - 1e-9) * r->step;
    }
}

static double across(const picture *p, double x) { return LEFT + (x - p->x.low) / (p->x.high - p->x.low) * (WIDTH - LEFT - RIGHT); }
static double down(const range *y, double value)
{
    return HEIGHT - BOTTOM - (value - y->low) / (y->high - y->low) * (HEIGHT - TOP - BOTTOM);
}

/* ---- axes ---- */
static void draw_x_axis(picture *p, const char *label)
{
    const range *x = &p->x;
    for (double i = ceil(x->low / x->step - 1e-9); i * x->step <= x->high + x->step * 1e-9; i++) {
        double at = across(p, i * x->step);
        weft__svg_line(&p->svg, at, TOP, at, HEIGHT - BOTTOM, "grid");
        weft__svg_textf(&p->svg, at, HEIGHT - BOTTOM + 20, "tick", WEFT__MIDDLE, "%.8g", i * x->step + 0.0);
    }
    weft__svg_line(&p->svg, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis");
    weft__svg_text(&p->svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 18, "head", WEFT__MIDDLE, label);
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
    for (double i = round(y->low / y->step); i * y->step <= y->high + y->step * 1e-9; i++) {
        double level = down(y, i * y->step);
        if (grid)
            weft__svg_line(&p->svg, LEFT, level, WIDTH - RIGHT, level, "grid");
        weft__svg_textf(&p->svg, at + (right ? 8 : -8), level + 4, "tick", right ? WEFT__START : WEFT__END, "%.6g",
                        i * y->step + 0.0);
    }
    weft__svg_line(&p->svg, at, TOP, at, HEIGHT - BOTTOM, "axis");
    draw_turned(&p->svg, right ? WIDTH - 16 : 22, p->labels[right]);
}

/* ---- curves ---- */
static void draw_line(picture *p, const weft_curve *c, const char *colour)
{
    bool down_now = false;                       /* the pen; a point that cannot be drawn lifts it */
    weft__svg_put(&p->svg, "<path class=\"curve\" stroke=\"%s\" d=\"M", colour);
    for (int64_t i = 0; i < c->n; i++) {
        bool good = drawable(c, i);
        if (good)
            weft__svg_put(&p->svg, "%s%.1f %.1f", down_now ? "L" : i ? "M" : "", across(p, c->x[i]),
                          down(&p->y[c->right_axis], c->y[i]));
        down_now = good;
    }
    weft__svg_put(&p->svg, "\"/>\n");
}

static void draw_dots(picture *p, const weft_curve *c, const char *colour)
{
    for (int64_t i = 0; i < c->n; i++)
        if (drawable(c, i))
            weft__svg_put(&p->svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\" stroke=\"#ffffff\"><title>%.6g: %.6g</title></circle>\n",
                          across(p, c->x[i]), down(&p->y[c->right_axis], c->y[i]), colour, c->x[i], c->y[i]);
}

static void draw_legend(picture *p)
{
    double x = LEFT;
    for (int k = 0; k < p->n; k++) {
        const char *name = p->curves[k].name;
        weft__svg_put(&p->svg, "<line x1=\"%.1f\" y1=\"58\" x2=\"%.1f\" y2=\"58\" stroke=\"%s\" stroke-width=\"4\"/>\n", x, x + 24,
                      weft__svg_colour(k));
        weft__svg_text(&p->svg, x + 31, 62, "name", WEFT__START, name);
        x += 31 + 7.5 * (name ? weft__utf8_length(name) : 0) + 24;
    }
}

static bool complete(const weft_curve *curves, int n)
{
    bool good = n >= 0 && (curves || n == 0);
    for (int i = 0; good && i < n; i++)
        good = curves[i].n >= 0 && (curves[i].n == 0 || (curves[i].x && curves[i].y));
    return good;
}

weft_status weft_draw_curves(const char *path, const char *title, const char *x_label, const char *left, const char *right,
                             const weft_curve *curves, int n)
{
    if (!complete(curves, n))
        return weft__file_fail(WEFT_EARG, "weft_draw_curves: %d curves, not all of them with x and y", n);
    picture p = { .curves = curves, .n = n, .labels = { left, right } };
    widen_all(&p);
    if (p.x.low > 0 && p.x.low < p.x.high / 5)
        p.x.low = 0;
    settle(&p.x, 10, false);
    settle(&p.y[0], 8, true);
    settle(&p.y[1], 8, true);
    weft__svg_begin(&p.svg, path, title, WIDTH, HEIGHT);
    draw_x_axis(&p, x_label);
    draw_y_axis(&p, false);
    draw_y_axis(&p, true);
    for (int k = 0; k < n; k++) {
        draw_line(&p, &curves[k], weft__svg_colour(k));
        if (curves[k].n <= MARKED)
            draw_dots(&p, &curves[k], weft__svg_colour(k));
    }
    draw_legend(&p);
    return weft__svg_end(&p.svg);
}
