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
void end_figure(page *p) { put(p, p->paper ? "*\n\n" : "</figcaption>\n</figure>\n"); }

void begin_data(page *p, const char *heads) { put_between(p, "<data value=\"", heads, ""); }
void end_data(page *p) { put(p, "\"></data>"); }

/* Writes the numbers of all curves, an outline with its area once, without points that only widen axes. */
static void put_numbers(page *p, const weft_chart *c)
{
    char heads[200], number[WEFT__SHORT];
    snprintf(heads, sizeof heads, "curve,%s,%s,low", c->x_label, c->left);
    for (char *k = heads + 6; (k = strstr(k, ", ")); k++)
        *k = ' ';
    begin_data(p, heads);
    for (int i = 0; i < c->n; i++) {
        const weft_curve *k = c->curves + i;
        if ((i + 1 < c->n && k[1].x == k->x && k[1].y == k->y) || (k->n == 1 && k->low))
            continue;
        for (int j = 0; j < k->n; j++) {
            if (!isfinite(k->y[j]) || !isfinite(k->x[j]))
                continue;
            put(p, ";");
            if (k->name)
                put_text(p, k->name);
            else
                put(p, "curve %d", i + 1);
            put(p, ",%s", weft__short_number(number, k->x[j], 6));
            put(p, ",%s,", weft__short_number(number, k->y[j], 6));
            if (k->low && isfinite(k->low[j]))
                put(p, "%s", weft__short_number(number, k->low[j], 6));
        }
    }
    end_data(p);
}

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

/* Writes a chart as a file named after the report and the title, and links it, up to the opened caption. */
static void put_file(page *p, const char *title, const weft_chart *chart)
{
    char path[4096];
    size_t n = strlen(p->paper), stem = n > 3 && !strcmp(p->paper + n - 3, ".md") ? n - 3 : n;
    snprintf(path, sizeof path, "%.*s-%s.svg", stem < 4000 ? (int)stem : 4000, p->paper, title);
    for (char *c = path + (stem < 4000 ? stem : 4000); *c; c++)
        *c = *c == ' ' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
    p->failed = weft_plot_lines(path, title, chart, 1, 0) != WEFT_OK || p->failed;
    const char *slash = strrchr(path, '/');
    put(p, "![%s](<%s>)\n\n*", title, slash ? slash + 1 : path);
}

void put_chart(page *p, double height, const char *title, const weft_chart *c, const char *format, ...)
{
    char description[400];
    va_list list;
    if (p->paper) {
        put_file(p, title, c);
        return;
    }
    va_start(list, format);
    vsnprintf(description, sizeof description, format, list);
    va_end(list);
    begin_image(p, height, title, description);
    weft__draw_chart(&p->svg, c, CHART_WIDTH, height, true);
    end_image(p);
    put_numbers(p, c);
}
