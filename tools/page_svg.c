/* page_svg.c - charts of the page: scales, axes, figures with a title and a description. */
#include <stdarg.h>
#include "tools/page.h"

/* ---- scales ---- */
static double bent(const scale *s, double value)
{
    return s->base == 2 ? log2(value) : s->base ? log10(value) : value;
}

double scaled(const scale *s, double value)
{
    double low = bent(s, s->low), high = bent(s, s->high);
    return s->from + (bent(s, value) - low) / (high - low) * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten, at most so many in the span. */
static double step_of(double span, int most)
{
    double step = pow(10, floor(log10(span / most))), factor = span / most / step;
    return step * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

scale scale_of(double low, double high, int base, double from, double to)
{
    scale s = { low, high, from, to, base };
    if (base) {
        s.low = isfinite(low) && low > 0 ? low : 1, s.high = isfinite(high) && high > s.low ? high : s.low;
        double first = floor(bent(&s, s.low) + 1e-9), last = ceil(bent(&s, s.high) - 1e-9);
        s.low = pow(base, first), s.high = pow(base, last > first ? last : first + 1);
        return s;
    }
    if (!isfinite(low) || !isfinite(high))
        s.low = 0, s.high = 1;
    if (s.high - s.low <= 1e-9 * fabs(s.high))
        s.high = s.low + (s.low ? fabs(s.low) : 1);
    double step = step_of(s.high - s.low, 5);
    s.low = floor(s.low / step + 1e-9) * step, s.high = ceil(s.high / step - 1e-9) * step;
    return s;
}

/* The values to be marked, at most 32. */
static int ticks(const scale *s, double *tick)
{
    int n = 0;
    if (!s->base) {
        double step = step_of(s->high - s->low, 5);
        for (int i = 0; i < 32 && s->low + i * step <= s->high + step * 1e-6; i++)
            tick[n++] = s->low + i * step;
        return n;
    }
    double first = bent(s, s->low), span = bent(s, s->high) - first, each = ceil(span / 6);
    for (int i = 0; i * each <= span + 1e-9 && n < 30; i++) {
        tick[n++] = pow(s->base, first + i * each);
        if (s->base == 10 && span <= 2 && i < span)
            tick[n] = 2 * tick[n - 1], tick[n + 1] = 5 * tick[n - 1], n += 2;
    }
    return n;
}

/* ---- figures ---- */
void begin_figures(page *p) { put(p, "<div class=\"figures\">\n"); }
void end_figures(page *p) { put(p, "</div>\n"); }

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

void put_label(page *p, double x, double y, const char *anchor, const char *format, ...)
{
    char text[200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(p, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_text(p, text);
    put(p, "</text>\n");
}

/* ---- axes ---- */
/* Short: 20000 is 20k. */
static void put_tick(page *p, double x, double y, const char *anchor, double value)
{
    double size = fabs(value);
    if (size >= 1e9)
        put_label(p, x, y, anchor, "%.3gG", value / 1e9);
    else if (size >= 1e6)
        put_label(p, x, y, anchor, "%.3gM", value / 1e6);
    else if (size >= 1e4)
        put_label(p, x, y, anchor, "%.3gk", value / 1e3);
    else
        put_label(p, x, y, anchor, "%.6g", size < 1e-12 ? 0 : value);
}

void put_axes(page *p, const scale *x, const scale *y, const char *x_label, const char *y_label,
              double height)
{
    double tick[34], at;
    for (int n = ticks(x, tick), i = 0; i < n; i++) {
        at = scaled(x, tick[i]);
        put(p, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, y->to, y->from);
        put_tick(p, at, y->from + 14, i == n - 1 && at > CHART_WIDTH - 20 ? "end" : "middle", tick[i]);
    }
    for (int n = ticks(y, tick), i = 0; i < n; i++) {
        at = scaled(y, tick[i]);
        put(p, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x->from, at, x->to);
        put_tick(p, x->from - 5, at + 4, "end", tick[i]);
    }
    put(p, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x->from, y->to, y->from, x->to);
    put_label(p, (x->from + x->to) / 2, height - 6, "middle", "%s", x_label);
    put_label(p, 2, y->to - 4, "start", "%s", y_label);
}
