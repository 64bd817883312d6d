/* layers.c - pairs the layers of a file without stable names (Keras, ONNX) with the layers of a module. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

enum { ROLE = 64, SIDE = 43, SHOWN = 6 };           /* bytes of a role, of a line's half; lines */

/* An array of the file or a parameter of the module. Items with one owner and number are a layer. role: the
 * last part of its name, with layer number 0. */
typedef struct {
    weft__array *array;
    const weft__parameter *p;
    const void *owner;
    int64_t number;
    char role[ROLE];
} item;
/* n items: a layer of the file, or one of a module with both directions. partner: the other side's. */
typedef struct layer {
    item *item;
    int64_t n;
    bool used;
    struct layer *partner;
} layer;
typedef struct { layer *layer; int64_t layers; } side;

/* ---- both sides ---- */
/* Splits a name into role and layer number: "out.bias_hh_l1_reverse" is bias_hh_l0_reverse of layer 1. */
static int64_t split_name(const char *name, char role[ROLE])
{
    const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name, *l = strstr(last, "_l");
    long long number = 0;
    while (l && !isdigit((unsigned char)l[2]))
        l = strstr(l + 1, "_l");
    if (l) {
        char *end;
        number = strtoll(l + 2, &end, 10);
        snprintf(role, ROLE, "%.*s_l0%s", (int)(l - last < 40 ? l - last : 40), last, end);
    } else {
        snprintf(role, ROLE, "%s", last);
    }
    return (int64_t)number;
}

/* Divides items into layers. */
static side divide(weft__weights *w, item *list, int64_t n)
{
    side s = { weft__weights_memory(w, (size_t)n * sizeof *s.layer), 0 };
    for (int64_t i = 0; s.layer && i < n; i++) {
        if (!i || list[i].owner != list[i - 1].owner || list[i].number != list[i - 1].number)
            s.layer[s.layers++].item = &list[i];
        s.layer[s.layers - 1].n++;
    }
    return s;
}

static int by_layer(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : strcmp(x->array->name, y->array->name);
}

/* Lists the arrays of layers that have no name of the module. */
static side list_file(weft__weights *w, const weft_module *m)
{
    int64_t n = 0;
    item *list = weft__weights_memory(w, (size_t)w->n * sizeof *list);
    for (weft__array *a = w->array; list && a < w->array + w->n; a++) {
        if (a->layer < 0 || weft__parameter_named(m, a->name))
            continue;
        list[n].array = a;
        split_name(a->name, list[n].role);
        list[n++].number = a->layer;
    }
    if (n)
        qsort(list, (size_t)n, sizeof *list, by_layer);
    return divide(w, list, n);
}

/* Lists parameters without an array of their name. */
static side list_module(weft__weights *w, const weft_module *m)
{
    int64_t n = 0;
    for (const weft__parameter *p = NULL; (p = weft__next_parameter(m, p));)
        n++;
    item *list = weft__weights_memory(w, (size_t)n * sizeof *list);
    n = 0;
    for (const weft__parameter *p = NULL; list && (p = weft__next_parameter(m, p));) {
        if (weft__weights_find(w, weft__path_below(p, m)))
            continue;
        list[n].p = p;
        list[n].owner = p->module;
        list[n].number = split_name(weft__path_below(p, m), list[n].role);
        n++;
    }
    return divide(w, list, n);
}

/* ---- pairs ---- */
static item *with_role(const layer *l, const char *role)
{
    for (int64_t i = 0; i < l->n; i++)
        if (!strcmp(l->item[i].role, role))
            return &l->item[i];
    return NULL;
}

/* Returns the value of the note "cell" of a recurrent layer, or "". */
static const char *cell_of(const weft__parameter *p)
{
    const weft__note *n = p->module->notes;
    while (n && strcmp(n->key, "cell"))
        n = n->next;
    return n ? n->value : "";
}

/* Whether the layers have the same roles and shapes; if not exact, the same roles, numbers of axes and kind
 * of cell. */
static bool agree(const layer *file, const layer *module, bool exact)
{
    bool same = file->n == module->n;
    for (int64_t i = 0; i < module->n && same; i++) {
        const item *f = with_role(file, module->item[i].role);
        const weft__parameter *p = module->item[i].p;
        weft__kind expected = weft__kind_of(&p->value);
        if (!f)
            return false;
        expected.type = f->array->kind.type;
        same = exact ? weft__kind_same(&f->array->kind, &expected) :
                       f->array->kind.rank == expected.rank &&
                           (!f->array->cell || !strncmp(f->array->cell, cell_of(p), 3));
    }
    return same;
}

/* Returns "NAME: ROLE [3, 4]" of layer i of a side, or "". */
static const char *describe(weft__weights *w, const side *s, int64_t i, const weft_module *m)
{
    char kind[128];
    if (i >= s->layers)
        return "";
    const item *it = s->layer[i].item, *end = it + s->layer[i].n;
    while (it + 1 < end && strncmp(it->role, "weight", 6))
        it++;
    const char *name = it->array ? it->array->name : weft__path_below(it->p, m), *dot = strrchr(name, '.');
    weft__kind k = it->array ? it->array->kind : weft__kind_of(&it->p->value);
    return weft__weights_print(w, "%.*s: %.12s %s", dot ? (int)(dot - name < 14 ? dot - name : 14) : 0, name,
                               it->role, strchr(weft__kind_text(&k, kind), '['));
}

/* Fails with both lists side by side. */
static void fail(weft__weights *w, const weft_module *m, const side *file, const side *module)
{
    const char *text = "";
    int64_t lines = file->layers > module->layers ? file->layers : module->layers;
    for (int64_t i = 0; i < lines && i < SHOWN; i++)
        text = weft__weights_print(w, "%s\n%-*.*s | %.*s", text, SIDE, SIDE, describe(w, file, i, m), SIDE,
                                   describe(w, module, i, m));
    weft__weights_fail(w, WEFT_EFORMAT, "its layers do not fit the module. Layers of the file | of the "
                       "module; a map file (.map) can pair names:%s%s", text, lines > SHOWN ? "\n.." : "");
}

/* Finds the layer of the file for layer i of the module: the next one, or the next unused one of its kind.
 * A single matrix may be an embedding or a linear layer without bias: it must have the shape. If both have
 * it, their order is unknown, and the result is NULL. */
static layer *partner_of(const weft__weights *w, const side *file, const side *module, int64_t i)
{
    layer *found = NULL;
    if (!w->by_kind)
        return i < file->layers ? &file->layer[i] : NULL;
    for (int64_t k = 0; k < file->layers; k++) {
        layer *l = &file->layer[k];
        if (l->used || !agree(l, &module->layer[i], l->n == 1))
            continue;
        if (found && l->n == 1 && l->item->array->transposed != found->item->array->transposed)
            return NULL;
        found = found ? found : l;
    }
    return found;
}

/* The layers of an ONNX file are its recurrent ones; the module may have others. */
static bool pair_all(const weft__weights *w, const side *file, const side *module)
{
    bool partial = !strcmp(w->format, "ONNX");
    int64_t pairs = 0;
    for (int64_t i = 0; i < module->layers; i++) {
        layer *l = module->layer[i].partner = partner_of(w, file, module, i);
        if (!l && partial)
            continue;
        if (!l || !agree(l, &module->layer[i], true))
            return false;
        l->used = true;
        pairs++;
    }
    return pairs == file->layers;
}

static void rename_arrays(const weft_module *m, const side *module)
{
    for (int64_t i = 0; i < module->layers; i++)
        for (int64_t k = 0; module->layer[i].partner && k < module->layer[i].n; k++) {
            const item *it = &module->layer[i].item[k];
            weft__array *a = with_role(module->layer[i].partner, it->role)->array;
            a->name = weft__path_below(it->p, m);
        }
}

/* A GRU with the reset gate before the product, or with other activations, is another function. */
static bool check_cells(weft__weights *w, const weft_module *m)
{
    for (int64_t i = 0; i < w->n && !w->status; i++) {
        const weft__array *a = &w->array[i];
        const weft__parameter *p = a->cell ? weft__parameter_named(m, a->name) : NULL;
        if (p && strcmp(cell_of(p), a->cell))
            weft__weights_fail(w, WEFT_EFORMAT, "%s belongs to a layer with the cell %.100s; the module's "
                               "has %s; make the layer by weft_rnn_of_cell (examples/cells_steps.h has "
                               "gru_reset_before)", a->place, a->cell, cell_of(p));
    }
    return !w->status;
}

bool weft__match_layers(weft__weights *w, const weft_module *m)
{
    side file = list_file(w, m), module = list_module(w, m);
    if (file.layers && !pair_all(w, &file, &module))
        fail(w, m, &file, &module);
    if (file.layers && !w->status)
        rename_arrays(m, &module);
    return check_cells(w, m);
}
