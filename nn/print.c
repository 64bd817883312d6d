/* print.c - prints a module as a table: a line for each parameter and buffer, then the totals. */
#include <string.h>
#include "autograd/fused.h"
#include "nn/nn.h"

/* Widths of the first two columns; numbers of trainable parameters, frozen parameters and buffers. */
typedef struct {
    FILE *file;
    const weft_module *top;
    int paths, shapes;
    int64_t trained, frozen, kept;
} sheet;

static int larger(int a, int b) { return a > b ? a : b; }
static const weft__parameter *first_name(const weft__parameter *p) { return p->tied ? p->tied : p; }

static const char *path_of(const sheet *s, const weft__parameter *p)     /* a tied one may be outside m */
{
    return weft__is_below(p->module, s->top) ? weft__path_below(p, s->top) : p->path;
}

static void measure_names(sheet *s)
{
    s->paths = larger((int)strlen(s->top->path), (int)strlen("in buffers"));
    s->shapes = (int)strlen("shape");
    for (const weft__parameter *p = NULL; (p = weft__next_name(s->top, p));) {
        s->paths = larger(s->paths, (int)strlen(path_of(s, p)));
        s->shapes = larger(s->shapes, (int)strlen(WEFT__TEXT(&first_name(p)->value.f)));
    }
}

static void print_row(sheet *s, const weft__parameter *p)
{
    const weft_tensor *x = &first_name(p)->value;
    int64_t n = weft__elements(&x->f);
    fprintf(s->file, "%-*s  %-*s  ", s->paths, path_of(s, p), s->shapes, WEFT__TEXT(&x->f));
    if (p->tied) {
        fprintf(s->file, "%12s  tied to %s\n", "-", path_of(s, p->tied));
        return;
    }
    *(p->buffer ? &s->kept : weft__node_of(x)->frozen ? &s->frozen : &s->trained) += n;
    fprintf(s->file, "%12lld%s%s\n", (long long)n, p->buffer ? "  buffer" : "",
            weft__node_of(x)->frozen ? "  frozen" : "");
}

static void print_total(const sheet *s, const char *name, int64_t n, bool needed)
{
    if (needed)
        fprintf(s->file, "%-*s  %*s  %12lld\n", s->paths, name, s->shapes, "", (long long)n);
}

void weft_print_module(FILE *file, const weft_module *m)
{
    sheet s = { .file = file, .top = m };
    if (file && (!m || !m->w))
        fputs("(no module)\n", file);
    if (!file || !m || !m->w)
        return;
    measure_names(&s);
    fprintf(file, "%-*s  %-*s  %12s\n", s.paths, m->path, s.shapes, "shape", "parameters");
    for (const weft__parameter *p = NULL; (p = weft__next_name(m, p));)
        print_row(&s, p);
    print_total(&s, "total", s.trained + s.frozen, true);
    print_total(&s, "to train", s.trained, s.frozen > 0);
    print_total(&s, "frozen", s.frozen, s.frozen > 0);
    print_total(&s, "in buffers", s.kept, s.kept > 0);
}
