/* text.c - texts, numbers and tables of the page. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "tools/page/page.h"

void put(page *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(p->to, format, list);
    va_end(list);
}

/* ---- texts ---- */
/* Bytes of a character in UTF-8; 0: it is malformed, overlong, a surrogate or none of HTML's. */
static int character(const unsigned char *s)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int n = *s < 0x80               ? 1 :
            *s >= 0xC2 && *s < 0xE0 ? 2 :
            *s >= 0xE0 && *s < 0xF0 ? 3 :
            *s >= 0xF0 && *s < 0xF5 ? 4 :
                                      0;
    uint32_t code = n > 1 ? *s & (0x7Fu >> n) : *s;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3F);
    }
    bool control = code < 0x20 ? code != '\t' && code != '\n' : code >= 0x7F && code < 0xA0;
    bool none =
        (code >= 0xD800 && code < 0xE000) || (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code < 0xFDF0);
    return !n || control || none || code < least[n] || code > 0x10FFFF ? 0 : n;
}

void put_text(page *p, const char *text)
{
    text = text ? text : "-";
    for (int n; *text; text += n ? n : 1) {
        n = character((const unsigned char *)text);
        const char *is = *text == '<' ? "&lt;" :
                         *text == '>' ? "&gt;" :
                         *text == '&' ? "&amp;" :
                         *text == '"' ? "&quot;" :
                                        NULL;
        if (is)
            fputs(is, p->to);
        else if (n)
            fwrite(text, 1, (size_t)n, p->to);
        else
            fputs("\xEF\xBF\xBD", p->to);
    }
}

void put_plan(page *p, int plan)
{
    const char *name = p->lab->plan[plan].made->text;
    put(p, "%d ", plan + 1);
    for (size_t n; *name; name += n) { /* options one by one */
        char part[200];
        n = strcspn(name, ":,/");
        n += name[n] != 0;
        n = n < sizeof part ? n : sizeof part - 1;
        snprintf(part, sizeof part, "%.*s", (int)n, name);
        put_text(p, part);
        put(p, "%s", name[n] ? "<wbr/>" : "");
    }
}

/* ---- numbers ---- */
/* Digits, of which the first `whole` get their commas. */
static void put_grouped(page *p, const char *digits, size_t whole)
{
    for (size_t i = 0; i < whole; i++) {
        fputc(digits[i], p->to);
        if ((whole - i) % 3 == 1 && i + 1 < whole)
            fputc(',', p->to);
    }
    fputs(digits + whole, p->to);
}

void put_number(page *p, int64_t n)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64, n < 0 ? -(uint64_t)n : (uint64_t)n);
    put(p, "%s", n < 0 ? "-" : "");
    put_grouped(p, digits, strlen(digits));
}

void put_real(page *p, double x, int digits)
{
    char text[400];
    if (!isfinite(x)) {
        put(p, "%s", isnan(x) ? "-" : x < 0 ? "-∞" : "∞");
        return;
    }
    snprintf(text, sizeof text, "%.*f", digits, fabs(x));
    bool zero = !text[strspn(text, "0.")];
    put(p, "%s", x < 0 && !zero ? "-" : "");
    put_grouped(p, text, strcspn(text, "."));
}

/* ---- tables ---- */
void begin_table(page *p, const char *caption, const char *const *heads)
{
    int k = ++p->figures;
    put(p,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"t%d\">\n<table>\n<caption "
        "id=\"t%d\"><span>%s</span></caption>\n<thead><tr>",
        k, k, caption);
    for (; *heads; heads++)
        put(p, "<th scope=\"col\">%s</th>", *heads);
    put(p, "</tr></thead>\n<tbody>\n");
}

void end_table(page *p) { put(p, "</tbody>\n</table>\n</div>\n"); }

/* The best of a column, value [plans]; NaN: all are equal, or none is better. */
static double best_of(const double *value, int plans, int better)
{
    double best = LAB_NONE;
    bool equal = true;
    for (int i = 0; i < plans && better; i++) {
        equal = equal && (isnan(value[i]) || isnan(best) || value[i] == best);
        if (!isnan(value[i]) && (isnan(best) || (value[i] - best) * better > 0))
            best = value[i];
    }
    return equal ? LAB_NONE : best;
}

void put_cell(page *p, double value, int digits, bool is_best)
{
    put(p, "<td>%s", is_best ? "<strong>" : "");
    put_real(p, value, digits);
    put(p, "%s</td>", is_best ? "</strong>" : "");
}

void put_plan_table(page *p, const char *caption, const page_column *columns, int n)
{
    int plans = p->lab->plans;
    const char **heads = calloc((size_t)n + 2, sizeof *heads);
    double *value = calloc((size_t)n * (size_t)plans + 1, sizeof *value);
    if (heads && value) {
        heads[0] = "planner";
        for (int k = 0; k < n; k++)
            heads[k + 1] = columns[k].head;
        for (int k = 0; k < n; k++)
            for (int i = 0; i < plans; i++)
                value[k * plans + i] = columns[k].get(p->lab->plan + i);
        begin_table(p, caption, heads);
        for (int i = 0; i < plans; i++) {
            put(p, "<tr><th scope=\"row\">");
            put_plan(p, i);
            put(p, "</th>");
            for (int k = 0; k < n; k++)
                put_cell(p, value[k * plans + i], columns[k].digits,
                         value[k * plans + i] == best_of(value + k * plans, plans, columns[k].better));
            put(p, "</tr>\n");
        }
        end_table(p);
    }
    free(heads), free(value);
}
