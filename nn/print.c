/* print.c - a module tree as text: a line a module, a line a parameter, in columns. */
#include <string.h>
#include "nn/nn.h"

/* widths of the first two columns */
typedef struct { FILE *file; const weft_module *top; int names, shapes; } sheet;

static const weft__parameter *first_name(const weft__parameter *p) { return p->tied ? p->tied : p; }
static int larger(int a, int b) { return a > b ? a : b; }

static void measure(sheet *s, const weft_module *m, int depth)
{
    char shape[128];
    s->names = larger(s->names, depth + (int)strlen(m == s->top ? m->path : m->name));
    for (const weft__parameter *p = m->parameters; p; p = p->next) {
        s->names = larger(s->names, depth + 2 + (int)strlen(p->name));
        s->shapes = larger(s->shapes, (int)strlen(weft__text(&first_name(p)->value.f, shape)));
    }
    for (const weft_module *c = m->child; c; c = c->sibling)
        measure(s, c, depth + 2);
}

static void print_parameter(const sheet *s, const weft__parameter *p, int depth)
{
    const weft__parameter *first = first_name(p);
    const weft_tensor *x = &first->value;
    char shape[128];
    fprintf(s->file, "%*s%-*s  %-*s  ", depth, "", s->names - depth, p->name, s->shapes,
            weft__text(&x->f, shape));
    if (p->tied)
        fprintf(s->file, "%12s  tied to %s\n", "-", first->path + strlen(first->module->root->path) + 1);
    else
        fprintf(s->file, "%12lld%s%s\n", (long long)weft__elements(&x->f), p->buffer ? "  buffer" : "",
                x->node.frozen ? "  frozen" : "");
}

static void print_module(const sheet *s, const weft_module *m, int depth)
{
    const char *name = m == s->top ? m->path : m->name;
    fprintf(s->file, "%*s%-*s  %*s  %12lld\n", depth, "", s->names - depth, name, s->shapes, "",
            (long long)weft_parameter_numel(m));
    for (const weft__parameter *p = m->parameters; p; p = p->next)
        print_parameter(s, p, depth + 2);
    for (const weft_module *c = m->child; c; c = c->sibling)
        print_module(s, c, depth + 2);
}

void weft_print_module(FILE *file, const weft_module *m)
{
    sheet s = { .file = file, .top = m };
    if (file && (!m || !m->w))
        fputs("(no module)\n", file);
    if (!file || !m || !m->w)
        return;
    measure(&s, m, 0);
    print_module(&s, m, 0);
}
