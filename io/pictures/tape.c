/* tape.c - draws the tape: selects the entries, finds their inputs, numbers and gradients, and writes the
 * graphviz form. tape_svg.c draws the SVG. */
#include <stdlib.h>
#include <string.h>
#include "io/pictures/svg.h"
#include "io/pictures/tape.h"

enum { MOST_SVG = 100, MOST_DOT = 10000 };       /* operators and leaves */

/* ---- the graph ---- */
static const weft_call *call_of(const weft__graph *g, int64_t i)
{
    return g->node[i].entry < 0 ? NULL : g->w->tape->entry[g->node[i].entry].call;
}

int weft__inputs_of(const weft__graph *g, int64_t i) { return call_of(g, i) ? call_of(g, i)->n : 0; }

int64_t weft__input_of(const weft__graph *g, int64_t i, int k)
{
    const weft_tensor *x = call_of(g, i)->x[k];
    return weft__node_of(x)->entry_number ? g->of_entry[weft__node_of(x)->entry_number - 1] :
                                            g->of_leaf[weft__leaf_of(&g->list, x)];
}

static int64_t add_node(weft__graph *g, weft_tensor *x, int64_t entry)
{
    g->node[g->nodes] = (weft__drawn){ .x = x, .entry = entry };
    return g->nodes++;
}

static void add_entry(weft__graph *g, int64_t entry)
{
    const weft_call *c = g->w->tape->entry[entry].call;
    for (int i = 0; i < c->n; i++) {
        int64_t leaf = weft__leaf_of(&g->list, c->x[i]);
        if (leaf >= 0 && g->of_leaf[leaf] < 0)
            g->of_leaf[leaf] = add_node(g, c->x[i], -1);
    }
    g->of_entry[entry] = add_node(g, c->y[0], entry);
}

/* needed: [entries] all, or those that `of` depends on */
static void find_needed(const weft__graph *g, bool *needed)
{
    int64_t entries = g->w->tape->entries;
    memset(needed, !g->target, (size_t)entries);
    if (g->target)
        needed[weft__node_of(g->target)->entry_number - 1] = true;
    for (int64_t e = entries; e-- > 0;) {
        const weft_call *c = g->w->tape->entry[e].call;
        for (int i = 0; needed[e] && i < c->n; i++)
            if (weft__node_of(c->x[i])->entry_number)
                needed[weft__node_of(c->x[i])->entry_number - 1] = true;
    }
}

static bool collect(weft__graph *g)              /* false: memory is short */
{
    int64_t entries = g->w->tape->entries;
    if (!weft__listing_begin(&g->list, g->w))
        return false;
    bool *needed = calloc((size_t)entries + 1, sizeof *needed);
    g->node = calloc((size_t)(entries + g->list.leaves) + 1, sizeof *g->node);
    g->of_entry = malloc(((size_t)entries + 1) * sizeof *g->of_entry);
    g->of_leaf = malloc(((size_t)g->list.leaves + 1) * sizeof *g->of_leaf);
    bool ok = needed && g->node && g->of_entry && g->of_leaf;
    if (ok) {
        memset(g->of_entry, -1, (size_t)entries * sizeof *g->of_entry);
        memset(g->of_leaf, -1, (size_t)g->list.leaves * sizeof *g->of_leaf);
        find_needed(g, needed);
        for (int64_t e = 0; e < entries; e++)
            if (needed[e])
                add_entry(g, e);
    }
    free(needed);
    g->list.named = INT64_MAX;                   /* leaves are nodes with their own shapes */
    return ok;
}

/* ---- numbers ---- */
static void walk(weft__graph *g, weft_tensor **by, weft_tensor **out)
{
    weft *w = g->w;
    weft_mark mark = weft_mark_here(w);
    int64_t n = 0;
    for (int64_t i = 0; i < g->nodes; i++)
        if (g->node[i].has_number && g->node[i].x->f.type == WEFT_REAL)
            by[n++] = g->node[i].x;
    weft_gradients(g->target, by, n, out);
    for (int64_t i = 0, k = 0; k < n; i++)
        if (g->node[i].x == by[k])
            g->node[i].has_gradient = weft__single_number(out[k++], &g->node[i].gradient);
    weft_rewind(w, mark);                        /* removes the entries that the picture has added */
}

static weft_status find_numbers(weft__graph *g, const char *path)
{
    weft_tensor **by = calloc(2 * (size_t)g->nodes + 1, sizeof *by);
    for (int64_t i = 0; i < g->nodes; i++)
        g->node[i].has_number = weft__single_number(g->node[i].x, &g->node[i].number);
    if (g->target && by)
        walk(g, by, by + g->nodes);
    free(by);
    if (g->target && g->w->status)
        return weft__file_fail(g->w->status, "weft_plot_tape: %s", weft_error_message(g->w));
    return by ? WEFT_OK : weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "a picture");
}

/* ---- texts ---- */
void weft__lines_of(const weft__graph *g, int64_t i, char line[WEFT__LINES][WEFT__LINE_ROOM])
{
    const weft__drawn *n = &g->node[i];
    const weft_call *c = call_of(g, i);
    char form[128], attributes[WEFT__ATTRIBUTES], number[24], gradient[32] = "";
    snprintf(number, sizeof number, "%.4g", n->number + 0.0);
    if (n->has_gradient)
        snprintf(gradient, sizeof gradient, " | %.4g", n->gradient + 0.0);
    snprintf(line[1], WEFT__LINE_ROOM, "%s", c ? weft__attributes(c, attributes) : "");
    snprintf(line[2], WEFT__LINE_ROOM, "%s%s", n->has_number ? number : weft__text(&n->x->f, form), gradient);
    *line[0] = 0;
    FILE *to = fmemopen(line[0], WEFT__LINE_ROOM, "w");
    if (to && c)
        fprintf(to, "%%%lld %.64s", (long long)n->entry, c->op->name);
    else if (to)
        weft__put_source(to, &g->list, n->x);
    if (to)
        fclose(to);
}

char *weft__tooltip_of(weft__graph *g, int64_t i)
{
    const weft__drawn *n = &g->node[i];
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (to && n->entry >= 0)
        weft__put_entry(to, &g->list, n->entry);
    else if (to) {
        weft__put_source(to, &g->list, n->x);
        fputc(' ', to);
        weft__put_form(to, n->x);
    }
    if (to && n->has_gradient)
        fprintf(to, ", gradient %.4g", n->gradient + 0.0);
    if (to && fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- the language of graphviz: dot -Tsvg tape.dot ---- */
/* Malformed UTF-8 and control characters become U+FFFD. */
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
    char *tip = weft__tooltip_of(g, i);
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

static weft_status as_dot(weft__graph *g, const char *path, const char *title)
{
    weft__svg to;
    weft__svg_open(&to, path);
    if (to.file)
        put_graph(to.file, g, title);
    return weft__svg_close(&to, "");
}

/* ---- the whole ---- */
static weft_status refused(weft *w, const weft_tensor *y)
{
    const char *error = w && y ? weft__handle_error(w, y) : NULL;
    if (!w || weft__is_no_context(w))
        return weft__file_fail(WEFT_EARG, "weft_plot_tape: the context is NULL, or its creation failed; "
                                          "expected a context");
    if (error)
        return weft__file_fail(WEFT_EARG, "weft_plot_tape: the tensor %s", error);
    if (!w->tape || !w->tape->entries)
        return weft__file_fail(WEFT_EARG, "weft_plot_tape: the tape is empty; expected operators since "
                                          "weft_clear, with gradients enabled");
    if (y && (!weft__node_of(y)->entry_number || y->f.type != WEFT_REAL))
        return weft__file_fail(WEFT_EARG, "weft_plot_tape: expected %s",
                               weft__node_of(y)->entry_number ? "a tensor of reals" :
                                                                "an operator's result on the tape");
    return WEFT_OK;
}

static weft_status draw_graph(weft__graph *g, const char *path, const char *title)
{
    const char *end = path ? strrchr(path, '.') : NULL;
    bool dot = end && (!strcmp(end, ".dot") || !strcmp(end, ".gv"));
    int most = dot ? MOST_DOT : MOST_SVG;
    if (g->nodes > most)
        return weft__file_fail(WEFT_EARG,
                               "weft_plot_tape: %lld operators and leaves; expected at most %d%s; pass an "
                               "earlier tensor, which has fewer%s",
                               (long long)g->nodes, most, dot ? "" : " as SVG",
                               dot ? "" : ", or a path that ends in .dot");
    weft_status status = find_numbers(g, path);
    return status ? status : (dot ? as_dot : weft__tape_as_svg)(g, path, title);
}

weft_status weft_plot_tape(const char *path, const char *title, weft *w, weft_tensor *of)
{
    weft__graph g = { .w = w, .target = of };
    weft_status status = refused(w, of);
    if (status)
        return status;
    void *before = weft__plain_locale();
    status = collect(&g) ? draw_graph(&g, path, title) :
                           weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "a picture");
    weft__listing_end(&g.list);
    free(g.node);
    free(g.of_entry);
    free(g.of_leaf);
    weft__plain_locale_end(before);
    return status;
}
