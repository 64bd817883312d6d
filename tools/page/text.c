/* text.c - writes texts, numbers and tables. */
#include <string.h>
#include "tools/page/page.h"

/* Writes a character at a time, with a backslash before those that mean something in Markdown. */
static void put_markdown(page *p, const char *text)
{
    while (*text) {
        char character[5] = "";
        int n = weft__utf8_character(text);
        memcpy(character, text, n ? (size_t)n : 1);
        if (strchr("\\|*_`[]#", *text))
            put(p, "\\");
        weft__svg_escaped(&p->svg, *text == '\n' ? " " : character);
        text += n ? n : 1;
    }
}

void put_text(page *p, const char *text)
{
    if (p->paper)
        put_markdown(p, text ? text : "-");
    else
        weft__svg_escaped(&p->svg, text ? text : "-");
}

void put_between(page *p, const char *before, const char *text, const char *after)
{
    put(p, "%s", before);
    put_text(p, text);
    put(p, "%s", after);
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
        put(p, "%s", name[n] && !p->paper ? "<wbr/>" : "");
    }
}

void put_real(page *p, double x, int digits)
{
    char text[400];
    if (!isfinite(x)) {
        put(p, "%s", isnan(x) ? "-" : x < 0 ? "-∞" : "∞");
        return;
    }
    snprintf(text, sizeof text, "%.*f", digits, fabs(x));
    size_t whole = strcspn(text, ".");
    put(p, "%s", x < 0 && text[strspn(text, "0.")] ? "-" : "");
    for (size_t i = 0; i < whole; i++)
        put(p, "%c%s", text[i], (whole - i) % 3 == 1 && i + 1 < whole ? "," : "");
    put(p, "%s", text + whole);
}

/* Returns the best number of a column, or NaN if all are equal or the column has no better direction. */
static double best_of(const page_row *row, int rows, int k)
{
    double best = LAB_NONE;
    bool equal = true;
    for (int i = 0; i < rows; i++) {
        double value = row[i].cell[k].value;
        equal = equal && (isnan(value) || isnan(best) || value == best);
        if (!isnan(value) && (isnan(best) || (value - best) * row[i].cell[k].better > 0))
            best = value;
    }
    return equal || !row->cell[k].better ? LAB_NONE : best;
}

static void put_cell(page *p, const page_cell *c, bool bold)
{
    put(p, "<td%s data-label=\"%s\">%s", c->text ? " class=\"words\"" : "", c->head,
        c->bad ? "<strong class=\"bad\">" :
        bold   ? "<strong>" :
                 "");
    if (c->text)
        put_text(p, c->text);
    else
        put_real(p, c->value, c->digits);
    put(p, "%s</td>", bold || c->bad ? "</strong>" : "");
}

static void put_name(page *p, const page_row *row)
{
    if (row->name)
        put_text(p, row->name);
    else
        put_plan(p, row->plan);
}

/* The cells are numbers, written as on the page. */
static void put_markdown_table(page *p, const char *first_head, const page_row *row, int rows)
{
    put(p, "\n| %s |", first_head);
    for (int k = 0; k < row->n; k++)
        put(p, " %s |", row->cell[k].head);
    put(p, "\n| --- |");
    for (int k = 0; k < row->n; k++)
        put(p, " ---: |");
    for (int i = 0; i < rows; i++) {
        put(p, "\n| ");
        put_name(p, row + i);
        for (int k = 0; k < row->n; k++) {
            const char *bold = row[i].cell[k].value == best_of(row, rows, k) ? "**" : "";
            put(p, " | %s", bold);
            put_real(p, row[i].cell[k].value, row[i].cell[k].digits);
            put(p, "%s", bold);
        }
        put(p, " |");
    }
}

static void put_row(page *p, const page_row *row, int rows, int i)
{
    put(p, "<tr><th scope=\"row\">");
    put_name(p, row + i);
    put(p, "</th>");
    for (int k = 0; k < row[i].n; k++)
        put_cell(p, row[i].cell + k, row[i].cell[k].value == best_of(row, rows, k));
    put(p, "</tr>\n");
}

void put_table(page *p, const char *caption, const char *first_head, int rows,
               void (*fill)(const lab *, int i, page_row *), const char *missing)
{
    if (!rows && missing) {
        put_missing(p, missing);
        return;
    }
    SCOPED page_row *row = get_memory(rows, sizeof *row);
    int name = ++p->figures;
    for (int i = 0; i < rows; i++)
        row[i].plan = i, fill(p->lab, i, row + i);
    if (p->paper) {
        put_markdown_table(p, first_head, row, rows);
        put(p, "\n\n%s\n", caption);
        return;
    }
    put(p,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"t%d\">\n<table>\n<caption "
        "id=\"t%d\"><span>%s</span></caption>\n<thead><tr><th scope=\"col\">%s</th>",
        name, name, caption, first_head);
    for (int k = 0; k < row->n; k++)
        put(p, "<th scope=\"col\">%s</th>", row->cell[k].head);
    put(p, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < rows; i++)
        put_row(p, row, rows, i);
    put(p, "</tbody>\n</table>\n</div>\n");
}
