/* svg.c - charts of the page: axes, figures with a title and a description. */
#include <stdarg.h>
#include "tools/page/page.h"

/* ---- figures ---- */
void begin_image(page *p, double height, const char *title, const char *format, ...)
{
    char description[400];
    va_list list;
    va_start(list, format);
    vsnprintf(description, sizeof description, format, list);
    va_end(list);
    int k = ++p->figures;
    put(p,
        "<figure>\n<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-labelledby=\"t%d d%d\"><title id=\"t%d\">",
        CHART_WIDTH, height, k, k, k);
    put_text(p, title);
    put(p, "</title><desc id=\"d%d\">", k);
    put_text(p, description);
    put(p, "</desc>\n");
}

void end_image(page *p) { put(p, "</svg>\n<figcaption>"); }
void end_figure(page *p) { put(p, "</figcaption>\n</figure>\n"); }

void put_multiples(page *p, void (*chart)(page *, int plan))
{
    int n = p->lab->plans < PAGE_MULTIPLES ? p->lab->plans : PAGE_MULTIPLES;
    if (n < p->lab->plans)
        put(p, "<p>Drawn are the first %d of %d plans; the table has all.</p>\n", n, p->lab->plans);
    put(p, "<div class=\"figures\">\n");
    for (int i = 0; i < n; i++)
        chart(p, i);
    put(p, "</div>\n");
}

void put_bar(page *p, const char *class_, double x, double top, double width, double bottom)
{
    weft__svg_box(&p->svg, x, top, width, bottom - top, NULL, class_, NULL);
}

/* ---- axes ---- */
static weft__axis axis_of(const double ends[2], int base, double from, double to)
{
    weft__axis a = { .base = base, .from = from, .to = to };
    for (int i = 0; i < 2; i++)
        if (weft__axis_takes(&a, ends[i]))
            weft__axis_widen(&a, ends[i]);
    weft__axis_settle(&a, 5, true);
    return a;
}

page_axes axes_of(const double ends[4], int base_x, int base_y, double height)
{
    return (page_axes){ axis_of(ends, base_x, CHART_LEFT, CHART_WIDTH - 2 * CHART_RIGHT),
                        axis_of(ends + 2, base_y, height - CHART_BOTTOM, CHART_TOP) };
}

void put_axes(page *p, const page_axes *a, const char *x_label, const char *y_label, double height)
{
    double tick[WEFT__TICKS], at;
    char text[WEFT__SHORT];
    for (int upright = 0; upright < 2; upright++) {
        const weft__axis *axis = upright ? &a->y : &a->x;
        for (int n = weft__axis_ticks(axis, tick), i = 0; i < n; i++) {
            at = weft__tenths(weft__axis_pixel(axis, tick[i]));
            if (upright)
                put(p, "<path class=\"grid\" d=\"M%g %gH%g\"/>\n", a->x.from, at, a->x.to);
            else
                put(p, "<path class=\"grid\" d=\"M%g %gV%g\"/>\n", at, a->y.to, a->y.from);
            if (fabs(tick[i]) < 99999.5)
                weft__axis_text(axis, tick[i], text);
            else
                weft__short_number(text, tick[i], 3);
            put_label(p, upright ? a->x.from - 5 : at, upright ? at + 4 : a->y.from + 14, "",
                      upright ? WEFT__END : WEFT__MIDDLE, "%s", text);
        }
    }
    put(p, "<path class=\"axis\" d=\"M%g %gV%gH%g\"/>\n", a->x.from, a->y.to, a->y.from, a->x.to);
    put_label(p, (a->x.from + a->x.to) / 2, height - 6, "", WEFT__MIDDLE, "%s", x_label);
    put_label(p, 2, a->y.to - 10, "", WEFT__START, "%s", y_label);
}
