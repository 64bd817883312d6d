/* svg.c - charts of the page: scales, axes, figures with a title and a description. */
#include <stdarg.h>
#include "tools/page/page.h"

/* ---- scales ---- */
static double bent(const scale *s, double value) { return s->logarithmic ? log10(value) : value; }

double scaled(const scale *s, double value)
{
    double low = bent(s, s->low), high = bent(s, s->high);
    return s->from + (bent(s, value) - low) / (high - low) * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten that is at least x. */
static double round_up(double x)
{
    double power = pow(10, floor(log10(x))), factor = x / power * (1 - 1e-9);
    return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}
static double round_down(double x) { return 1 / round_up(1 / x); }
static double step_of(const scale *s) { return round_up((s->high - s->low) / 5); }

scale scale_of(double low, double high, bool logarithmic, double from, double to)
{
    bool known = isfinite(low) && isfinite(high) && (!logarithmic || low > 0);
    scale s = { known ? low : 1, known ? high : 2, from, to, logarithmic };
    if (logarithmic) {
        s.low = round_down(s.low), s.high = round_up(s.high > s.low ? s.high : s.low * 1.5);
        return s;
    }
    if (s.high - s.low <= 1e-9 * fabs(s.high))
        s.high = s.low + (s.low > 0 ? s.low : 1);
    double step = step_of(&s);
    s.low = floor(s.low / step + 1e-9) * step, s.high = ceil(s.high / step - 1e-9) * step;
    return s;
}

/* The values to be marked, at most 32. */
static int ticks(const scale *s, double *tick)
{
    static const double parts[] = { 1, 2, 5 };
    int n = 0;
    for (int i = 0; !s->logarithmic && i < 32 && s->low + i * step_of(s) <= s->high + step_of(s) * 1e-6; i++)
        tick[n++] = s->low + i * step_of(s);
    if (!s->logarithmic)
        return n;
    double first = floor(log10(s->low) + 1e-9), span = log10(s->high / s->low), each = ceil(span / 6);
    for (double power = first; power <= log10(s->high) + 1e-9; power += each)
        for (int k = 0; k < (span <= 3 ? 3 : 1) && n < 32; k++) {
            double value = pow(10, power) * parts[k];
            if (value >= s->low * (1 - 1e-9) && value <= s->high * (1 + 1e-9))
                tick[n++] = value;
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
    put_label(p, 2, y->to - 10, "start", "%s", y_label);
}
