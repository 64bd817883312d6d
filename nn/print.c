/* print.c - a module tree as text: a line a module, a line a parameter, in columns. */
#include <string.h>
#include "nn/nn.h"

typedef struct { FILE *file; int widest; } sheet;

static int indent(const weft_module *m, const weft_module *from)
{
    int depth = 0;
    for (; m != from; m = m->parent)
        depth += 2;
    return depth;
}

static int widest(const weft_module *m, const weft_module *from)
{
    int most = indent(m, from) + (int)strlen(m->name);
    for (const weft__parameter *p = m->parameters; p; p = p->next) {
        int here = indent(m, from) + 2 + (int)strlen(p->name);
        most = here > most ? here : most;
    }
    for (const weft_module *c = m->child; c; c = c->sibling) {
        int below = widest(c, from);
        most = below > most ? below : most;
    }
    return most;
}

static void print_parameter(const sheet *s, const weft__parameter *p, int depth)
{
    const weft__parameter *first = p->tied ? p->tied : p;
    char shape[128];
    weft__text(&first->value.f, shape);
    fprintf(s->file, "%*s%-*s  %-16s ", depth, "", s->widest - depth, p->name, shape);
    if (p->tied)
        fprintf(s->file, "%12s  tied to %s", "-", first->path + strlen(first->module->root->path) + 1);
    else
        fprintf(s->file, "%12lld%s%s", (long long)weft__elements(&first->value.f), p->buffer ? "  buffer" : "", first->value.frozen ? "  frozen" : "");
    fputc('\n', s->file);
}

static void print_module(const sheet *s, const weft_module *m, const weft_module *from)
{
    int depth = indent(m, from);
    fprintf(s->file, "%*s%-*s  %-16s %12lld\n", depth, "", s->widest - depth, m == from ? m->path : m->name, "", (long long)weft_parameter_count(m));
    for (const weft__parameter *p = m->parameters; p; p = p->next)
        print_parameter(s, p, depth + 2);
    for (const weft_module *c = m->child; c; c = c->sibling)
        print_module(s, c, from);
}

void weft_print_module(FILE *file, const weft_module *m)
{
    if (!file)
        return;
    if (!m || !m->w) {
        fputs("(no module)\n", file);
        return;
    }
    sheet s = { file, widest(m, m) };
    int root = (int)strlen(m->path);
    s.widest = root > s.widest ? root : s.widest;
    print_module(&s, m, m);
}
