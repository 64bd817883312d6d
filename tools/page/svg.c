/* svg.c - writes figures with a title and a description. */
#include <stdarg.h>
#include <string.h>
#include "tools/page/page.h"

void begin_image(page *p, double height, const char *title, const char *description)
{
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
        put(p, "<p>Only the first %d of %d plans are drawn; the table lists all.</p>\n", n, p->lab->plans);
    put(p, "<div class=\"figures\">\n");
    for (int i = 0; i < n; i++)
        chart(p, i);
    put(p, "</div>\n");
}

void add_bar(page_bars *b, double left, double right, double height)
{
    const double bar[3][5] = { { left, left, right, right, right }, { 0, height, height, 0, NAN }, { 0 } };
    if (b->n + 5 > 5 * PAGE_BARS)
        return;
    memcpy(b->x + b->n, bar[0], sizeof bar[0]);
    memcpy(b->y + b->n, bar[1], sizeof bar[1]);
    memcpy(b->low + b->n, bar[2], sizeof bar[2]);
    b->n += 5;
}

weft_curve curve_of_bars(const page_bars *b, bool filled)
{
    return (weft_curve){ .n = b->n, .x = b->x, .y = b->y, .low = filled ? b->low : NULL };
}

void put_box(page *p, const char *class_, double x, double top, double width, double bottom)
{
    weft__svg_box(&p->svg, x, top, width, bottom - top, NULL, class_, NULL);
}

void put_chart(page *p, double height, const char *title, const weft_chart *c, const char *format, ...)
{
    char description[400];
    va_list list;
    va_start(list, format);
    vsnprintf(description, sizeof description, format, list);
    va_end(list);
    begin_image(p, height, title, description);
    weft__draw_chart(&p->svg, c, CHART_WIDTH, height, true);
    end_image(p);
}
