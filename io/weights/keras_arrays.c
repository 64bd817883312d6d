/* keras_arrays.c - gives variables of Keras the names and shapes of PyTorch: kernels are transposed, and
 * gates of a GRU reordered. An LSTM has its gates i f c o in PyTorch's order. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/keras.h"

typedef weft__keras_part part;
typedef weft__keras_variable variable;

const char *weft__joined(weft__weights *w, const char *prefix, const char *separator, const char *text,
                         size_t n)
{
    size_t a = strlen(prefix), b = a ? strlen(separator) : 0;
    char *out = weft__weights_memory(w, a + b + n + 1);
    if (!out)
        return "";
    memcpy(mempcpy(mempcpy(out, prefix, a), separator, b), text, n);
    return out;
}

/* ---- arrays ---- */
typedef struct {
    weft__weights *w;
    const part *p;
    int layer, gates;
    const char *cell;
} adding;

static weft__array *add(const adding *to, const char *role, const variable *v, const weft__kind *kind)
{
    weft__array a = { .place = v->path, .set = v->path, .kind = *kind, .layer = to->layer };
    a.name = weft__joined(to->w, to->p->name, ".", role, strlen(role));
    if (to->p->reverse && to->layer >= 0)
        a.name = weft__joined(to->w, a.name, "", "_reverse", 8);
    weft__set_strides(&a);
    a.cell = to->cell;
    if (to->gates == 3) { /* r z n here, z r h in the file */
        a.gates = 3;
        memcpy(a.order, (unsigned char[]){ 1, 0, 2 }, 3);
    }
    return weft__weights_add(to->w, &a);
}

/* Adds a kernel [in, out] as a weight [out, in]. */
static void add_kernel(const adding *to, const char *role, const variable *v)
{
    weft__kind kind = { v->kind.type, 2, { v->kind.size[1], v->kind.size[0] } };
    weft__array *a = add(to, role, v, &kind);
    if (!a)
        return;
    a->transposed = true;
    a->stride[0] = 1;
    a->stride[1] = kind.size[0];
}

/* Adds n numbers of a variable from number `first` on; -1: zeros. */
static void add_vector(const adding *to, const char *role, const variable *v, int64_t first, int64_t n)
{
    weft__array *a = add(to, role, v, &(weft__kind){ v->kind.type, 1, { n } });
    if (a && first >= 0) {
        a->first = first;
    } else if (a) {
        a->set = a->place = NULL;
        a->gates = 0;
    }
}

/* ---- parts ---- */
static bool is_matrix(const variable *v) { return v && v->kind.rank == 2; }
static bool is_vector(const variable *v, int64_t n) { return v && v->kind.rank == 1 && v->kind.size[0] == n; }

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

static void add_cell(adding *to, const weft__keras_config *config)
{
    const variable *bias = to->p->v[2];
    int64_t rows = to->p->v[1]->kind.size[1];
    bool two = bias && bias->kind.rank == 2;
    to->gates = gates_of(to->p);
    const char *guess = to->gates == 4 ? "lstm" :
                        to->gates == 1 ? "rnn_tanh" :
                        bias && !two   ? "gru_reset_before" :
                                         "gru_reset_after";
    to->cell = weft__keras_cell(to->w, config, to->p->number, to->p->reverse, guess);
    if (!to->cell && to->gates > 1 && (to->gates == 4 || bias))
        to->cell = guess;                        /* from the shapes */
    add_kernel(to, "weight_ih_l0", to->p->v[0]);
    add_kernel(to, "weight_hh_l0", to->p->v[1]);
    if (bias) {
        add_vector(to, "bias_ih_l0", bias, 0, rows);
        add_vector(to, "bias_hh_l0", bias, two ? rows : -1, rows);
    }
}

static bool is_dense(const part *p)
{
    const variable *v = p->v[0];
    bool guess = p->class == WEFT__OTHER && p->n == 2;
    return (p->class == WEFT__DENSE || guess) && is_matrix(v) &&
           (p->n == 1 || (p->n == 2 && is_vector(p->v[1], v->kind.size[1])));
}

/* Returns the names of n vectors of equal size; NULL: the variables are not such. */
static const char *const *norm_names(const part *p)
{
    static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
    bool valid = (p->class == WEFT__LAYER_NORM && p->n == 2) || (p->class == WEFT__BATCH_NORM && p->n == 4);
    for (int i = 0; i < p->n && valid; i++)
        valid = is_vector(p->v[i], p->v[0]->kind.size[0]);
    return valid ? names : NULL;
}

static bool has_numbers(const part *p)
{
    const variable *v = p->first;
    while (v && weft__number_is_any(v->kind.type) && weft__kind_bytes(&v->kind) != SIZE_MAX)
        v = v->next;
    return !v && p->n;
}

/* Returns whether the part is of a layer that PyTorch and weft have. */
static bool is_known(const part *p)
{
    return has_numbers(p) && ((p->class == WEFT__CELL && gates_of(p)) || is_dense(p) || norm_names(p) ||
                              (p->class == WEFT__EMBEDDING && p->n == 1 && is_matrix(p->v[0])));
}

static void add_part(weft__weights *w, const part *p, int layer, const weft__keras_config *config)
{
    adding to = { w, p, layer, 0, NULL };
    int i = 0;
    if (layer < 0) { /* as it is in the file */
        for (const variable *v = p->first; v; v = v->next)
            add(&to, v->role, v, &v->kind);
    } else if (p->class == WEFT__CELL) {
        add_cell(&to, config);
    } else if (p->class == WEFT__EMBEDDING) {
        add(&to, "weight", p->v[0], &p->v[0]->kind);
    } else if (is_dense(p)) {
        add_kernel(&to, "weight", p->v[0]);
        if (p->n == 2)
            add(&to, "bias", p->v[1], &p->v[1]->kind);
    } else {
        for (const variable *v = p->first; v; v = v->next)
            add(&to, norm_names(p)[i++], v, &v->kind);
    }
}

/* ---- the order of layers ---- */
static int in_model(const void *a, const void *b)
{
    const part *x = *(const part *const *)a, *y = *(const part *const *)b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) :
                                    weft__compare_places(x->place, y->place);
}

/* Sorts the parts by the model's description. Without one, or if it does not order all of them, the order of
 * layers is known for those of one class only. */
static void sort_parts(weft__weights *w, part **all, int64_t n)
{
    qsort(all, (size_t)n, sizeof *all, in_model);
    const part *before = NULL;
    for (int64_t i = 0; i < n; i++) {
        const part *p = all[i];
        if (!is_known(p))
            continue;
        w->by_kind = w->by_kind || p->number < 0 ||
                     (before && before->number == p->number && strcmp(before->name, p->name) &&
                      !weft__same_series(before->place, p->place));
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
        p->number = weft__keras_find(&r->config, p->name);
        all[n++] = p;
    }
    if (!in_order && n)
        sort_parts(r->w, all, n);
    for (int64_t i = 0; i < n && !r->w->status; i++) {
        bool known = is_known(all[i]);
        if (known) { /* both directions are one layer */
            layer += !before || strcmp(before->name, all[i]->name);
            before = all[i];
        }
        add_part(r->w, all[i], known ? layer : -1, &r->config);
    }
}
