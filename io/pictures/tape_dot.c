/* tape_dot.c - the tape in the language of graphviz: dot -Tsvg tape.dot. */
#include <stdlib.h>
#include "io/pictures/svg.h"
#include "io/pictures/tape.h"

/* What is no UTF-8, and control characters, become U+FFFD. */
static void put_quoted(FILE *to, const char *text)
{
    for (int n; *text; text += n ? n : 1) {
        n = weft__utf8_character(text);
        if (n == 0 || (unsigned char)*text < 0x20)
            fputs("\xEF\xBF\xBD", to);
        else
            fprintf(to, "%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", n, text);
    }
}

static void put_node(FILE *to, weft__graph *g, int64_t i)
{
    char line[WEFT__LINES][WEFT__LINE_ROOM];
    const weft__drawn *n = &g->node[i];
    char *tip = weft__tip_of(g, i);
    weft__lines_of(g, i, line);
    fprintf(to, "    n%lld [label=\"", (long long)i);
    for (int k = 0; k < WEFT__LINES; k++) {
        fputs(k && *line[k] ? "\\n" : "", to);
        put_quoted(to, line[k]);
    }
    fputs("\", tooltip=\"", to);
    put_quoted(to, tip ? tip : "");
    fprintf(to, "\", fillcolor=\"%s\"];\n", weft__node_colour(g, n));
    free(tip);
}

static void put_graph(FILE *to, weft__graph *g, const char *title)
{
    fputs("digraph tape {\n    rankdir=LR;\n    label=\"", to);
    put_quoted(to, title ? title : "");
    fputs("\";\n    node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=11];\n", to);
    for (int64_t i = 0; i < g->nodes; i++)
        put_node(to, g, i);
    for (int64_t i = 0; i < g->nodes; i++)
        for (int k = 0; k < weft__inputs_of(g, i); k++)
            fprintf(to, "    n%lld -> n%lld;\n", (long long)weft__input_of(g, i, k), (long long)i);
    fputs("}\n", to);
}

weft_status weft__tape_as_dot(weft__graph *g, const char *path, const char *title)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to)
        put_graph(to, g, title);
    bool good = to && !ferror(to);
    good = to && fclose(to) == 0 && good;
    weft_status status = good ? weft__write_file(path, &(weft__span){ text, size }, 1) :
                                weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "a picture");
    free(text);
    return status;
}
