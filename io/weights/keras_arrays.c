/* keras_arrays.c - gives variables of Keras the names and shapes of PyTorch: kernels are transposed, and
 * gates of a GRU reordered. An LSTM has its gates i f c o in PyTorch's order. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/keras.h"

typedef weft__keras_part part;
typedef weft__keras_variable variable;

/* ---- the form of a part ---- */
static bool is_matrix(const variable *v) { return v && v->kind.rank == 2; }
static bool is_vector(const variable *v, int64_t n) { return v && v->kind.rank == 1 && v->kind.size[0] == n; }

/* The count of a layer's variables. The first has `rank` axes, the others are as long as its last axis. */
static const struct form { int least, most, rank; const char *role[4]; } forms[] = {
    [WEFT__DENSE] = { 1, 2, 2, { "weight", "bias" } },
    [WEFT__EMBEDDING] = { 1, 1, 2, { "weight" } },
    [WEFT__LAYER_NORM] = { 2, 2, 1, { "weight", "bias" } },
    [WEFT__BATCH_NORM] = { 4, 4, 1, { "weight", "bias", "running_mean", "running_var" } }
};

static bool has_form(const part *p)
{
    const struct form *f = &forms[p->class];
    bool fits = p->n >= f->least && p->n <= f->most && p->v[0]->kind.rank == f->rank;
    for (int i = 1; i < p->n && fits; i++)
        fits = is_vector(p->v[i], p->v[0]->kind.size[f->rank - 1]);
    return fits;
}

/* Returns the number of gates, 1, 3 or 4; 0: the variables are not those of a cell. */
static int gates_of(const part *p)
{
    const variable *kernel = p->v[0], *recurrent = p->v[1], *bias = p->v[2];
    if (p->n < 2 || p->n > 3 || !is_matrix(kernel) || !is_matrix(recurrent) || recurrent->kind.size[0] < 1)
        return 0;
    int64_t hidden = recurrent->kind.size[0], rows = recurrent->kind.size[1], gates = rows / hidden;
    bool two = gates == 3 && is_matrix(bias) && bias->kind.size[0] == 2 && bias->kind.size[1] == rows;
    bool valid = rows == kernel->kind.size[1] && rows % hidden == 0 &&
                 (gates == 1 || gates == 3 || gates == 4) && (!bias || two || is_vector(bias, rows));
    return valid ? (int)gates : 0;
}

/* Gives the class OTHER to a part that is not of a layer that PyTorch and weft have. */
static void check_class(part *p)
{
    const variable *v = p->first;
    while (v && weft__number_is_any(v->kind.type) && weft__kind_bytes(&v->kind) != SIZE_MAX)
        v = v->next;
    if (p->class == WEFT__OTHER && p->n == 2)
        p->class = WEFT__DENSE;                  /* a guess */
    p->gates = p->class == WEFT__CELL ? gates_of(p) : 0;
    if (v || !(p->gates || has_form(p)))
        p->class = WEFT__OTHER;
}

/* ---- arrays ---- */
typedef struct {
    weft__weights *w;
    const part *p;
    int layer;
    const char *cell;
} adding;

static weft__array *add(const adding *to, const char *role, const variable *v)
{
    const char *name = to->p->name, *end = to->p->reverse && to->layer >= 0 ? "_reverse" : "";
    weft__array a = { .place = v->path, .set = v->path, .kind = v->kind, .layer = to->layer };
    a.name = weft__weights_print(to->w, "%s%s%s%s", name, *name ? "." : "", role, end);
    weft__set_strides(&a);
    a.cell = to->cell;
    if (to->layer >= 0 && to->p->gates == 3) {   /* r z n here, z r h in the file */
        a.gates = 3;
        memcpy(a.order, (unsigned char[]){ 1, 0, 2 }, 3);
    }
    return weft__weights_add(to->w, &a);
}

/* Adds a kernel [in, out] as a weight [out, in]. */
static void add_kernel(const adding *to, const char *role, const variable *v)
{
    weft__array *a = add(to, role, v);
    if (!a)
        return;
    a->transposed = true;
    for (int i = 0; i < 2; i++) {
        a->kind.size[i] = v->kind.size[1 - i];
        a->stride[i] = i ? v->kind.size[1] : 1;
    }
}

/* Adds the bias of a cell from its number `first` on; -1: zeros. */
static void add_bias(const adding *to, const char *role, const variable *v, int64_t rows, int64_t first)
{
    variable bias = { .path = v->path, .kind = { v->kind.type, 1, { rows } } };
    weft__array *a = add(to, role, &bias);
    if (a && first >= 0) {
        a->first = first;
    } else if (a) {
        a->set = a->place = NULL;
        a->gates = 0;
    }
}

static void add_cell(adding *to, const weft__keras_config *config)
{
    const variable *bias = to->p->v[2];
    int64_t rows = to->p->v[1]->kind.size[1];
    bool two = bias && bias->kind.rank == 2;
    int gates = to->p->gates;
    const char *guess = gates == 4   ? "lstm" :
                        gates == 1   ? "rnn_tanh" :
                        bias && !two ? "gru_reset_before" :
                                       "gru_reset_after";
    to->cell = weft__keras_cell(to->w, config, to->p->number, to->p->reverse, guess);
    if (!to->cell && gates > 1 && (gates == 4 || bias))
        to->cell = guess;                        /* from the shapes */
    add_kernel(to, "weight_ih_l0", to->p->v[0]);
    add_kernel(to, "weight_hh_l0", to->p->v[1]);
    if (bias) {
        add_bias(to, "bias_ih_l0", bias, rows, 0);
        add_bias(to, "bias_hh_l0", bias, rows, two ? rows : -1);
    }
}

static void add_part(weft__weights *w, const part *p, int layer, const weft__keras_config *config)
{
    adding to = { w, p, layer, NULL };
    int i = 0;
    if (p->class == WEFT__CELL) {
        add_cell(&to, config);
        return;
    }
    for (const variable *v = p->first; v; v = v->next, i++)
        if (p->class == WEFT__OTHER)             /* as it is in the file */
            add(&to, v->role, v);
        else if (p->class == WEFT__DENSE && i == 0)
            add_kernel(&to, "weight", v);
        else
            add(&to, forms[p->class].role[i], v);
}

/* ---- the order of layers ---- */
static int in_model(const void *a, const void *b)
{
    const part *x = *(const part *const *)a, *y = *(const part *const *)b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : strverscmp(x->place, y->place);
}

/* Returns the length of a number "_12", or 0. */
static size_t number_length(const char *text)
{
    size_t digits = *text == '_' ? strspn(text + 1, "0123456789") : 0;
    return digits ? digits + 1 : 0;
}

/* Whether two paths differ only in the numbers after "_". Such layers are in the model's order. */
static bool same_series(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += number_length(a);
        b += number_length(b);
        if (!*a || *a != *b)
            return *a == *b;
    }
}

/* Sorts the parts by the model's description. Without one, or if it does not order all of them, the order of
 * layers is known for those of one class only. */
static void sort_parts(weft__weights *w, part **all, int64_t n)
{
    qsort(all, (size_t)n, sizeof *all, in_model);
    const part *before = NULL;
    for (int64_t i = 0; i < n; i++) {
        const part *p = all[i];
        if (p->class == WEFT__OTHER)
            continue;
        w->by_kind = w->by_kind || p->number < 0 ||
                     (before && before->number == p->number && strcmp(before->name, p->name) &&
                      !same_series(before->place, p->place));
        before = p;
    }
}

void weft__keras_add_arrays(weft__keras_parts *r, bool in_order)
{
    int layer = -1;
    int64_t n = 0;
    const part *before = NULL;
    part **all = weft__weights_memory(r->w, (size_t)r->n * sizeof *all);
    for (part *p = all ? r->first : NULL; p; p = p->next) {
        if (!p->n)
            continue;
        check_class(p);
        p->number = weft__keras_find(&r->config, p->name);
        all[n++] = p;
    }
    if (!in_order && n)
        sort_parts(r->w, all, n);
    for (int64_t i = 0; i < n && !r->w->status; i++) {
        bool known = all[i]->class != WEFT__OTHER;
        if (known) { /* both directions are one layer */
            layer += !before || strcmp(before->name, all[i]->name);
            before = all[i];
        }
        add_part(r->w, all[i], known ? layer : -1, &r->config);
    }
}
