/* keras_arrays.c - gives variables of Keras the names and shapes of PyTorch: kernels are transposed, and
 * gates of a GRU reordered. An LSTM has its gates i f c o in PyTorch's order.
 *
 * The order of layers, and what recurrent layers compute, are in the JSON text of a model. A text that is not
 * as expected describes no layers; nothing depends on it but the order. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/keras.h"

typedef weft__keras_part part;
typedef weft__keras_variable variable;

/* ---- the description of a model ---- */
/* A layer, "encoder.lstm" for one in a nested model, and the part of the text that describes it. */
typedef struct { const char *name, *config; } described;
typedef struct { described *layer; int64_t n; } model;

enum { DEPTH = 16, LAYERS = 4096 };

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t\r\n"); }

/* Returns the end of the value that begins at p: the next "," or closing bracket outside of it. */
static const char *value_end(const char *p)
{
    int64_t depth = 0;
    for (; *p; p++) {
        if (*p == '"') {
            for (p++; *p && *p != '"'; p++)
                p += *p == '\\' && p[1];
            if (!*p)
                return p;
        } else if (*p == '{' || *p == '[')
            depth++;
        else if (depth == 0 && strchr(",]}", *p))
            return p;
        else if (*p == '}' || *p == ']')
            depth--;
    }
    return p;
}

/* Returns the value after an opening bracket or a ","; NULL: no more. */
static const char *next_value(const char *p)
{
    if (!*p || !strchr("{[,", *p))
        return NULL;
    p = skip_blanks(p + 1);
    return *p && !strchr("]},", *p) ? p : NULL;
}

/* Returns the value of a member of an object; NULL: no such member. */
static const char *member(const char *object, const char *key)
{
    size_t n = strlen(key);
    const char *p = object && *object == '{' ? next_value(object) : NULL;
    for (; p; p = next_value(value_end(p)))
        if (*p == '"' && !strncmp(p + 1, key, n) && p[n + 1] == '"') {
            p = skip_blanks(p + n + 2);
            return *p == ':' ? skip_blanks(p + 1) : NULL;
        }
    return NULL;
}

/* Returns the text of a JSON string without escapes. Returns `other` for any other value. */
static const char *text_of(weft__weights *w, const char *v, const char *other)
{
    size_t n = v && *v == '"' ? strcspn(v + 1, "\"\\") : 0;
    return n && v[n + 1] == '"' ? weft__weights_print(w, "%.*s", (int)n, v + 1) : other;
}

static bool begins_with(const char *v, char letter) { return v && *v == letter; }

static void add_layers(weft__weights *w, const char *text, const char *prefix, int depth, model *out)
{
    const char *all = member(member(text, "config"), "layers"), *v = depth < DEPTH && all ? all : "";
    for (v = next_value(v); v && out->n < LAYERS && !w->status; v = next_value(value_end(v))) {
        const char *config = member(v, "config"), *name = text_of(w, member(config, "name"), NULL);
        if (!name)
            continue;
        const char *path = *prefix ? weft__weights_print(w, "%s.%s", prefix, name) : name;
        out->layer[out->n++] = (described){ path, config };
        add_layers(w, v, path, depth + 1, out);
    }
}

/* Returns the number of the layer that has this name, or that a part with this name belongs to; -1: none. */
static int64_t find_layer(const model *c, const char *name)
{
    for (size_t n = strlen(name); n;) {
        for (int64_t i = 0; i < c->n; i++)
            if (!strncmp(c->layer[i].name, name, n) && !c->layer[i].name[n])
                return i;
        while (n && name[--n] != '.')
            continue;
    }
    return -1;
}

/* Returns the cell that a recurrent layer computes, with its reset gate and activations: `cell`, or the
 * one of its description; NULL: the layer has no description. */
static const char *cell_of(weft__weights *w, const model *c, int64_t layer, bool reverse, const char *cell)
{
    static const char *const parts[] = { "backward_layer", "layer", "cell" };
    const char *v = layer < 0 ? NULL : c->layer[layer].config,
               *merge = text_of(w, member(v, "merge_mode"), "concat");
    bool backwards = false, gru = !strncmp(cell, "gru", 3), plain = !strncmp(cell, "rnn", 3);
    for (size_t i = !reverse; i < sizeof parts / sizeof *parts; i++) {
        const char *inner = member(member(v, parts[i]), "config");
        backwards = backwards || (!reverse && begins_with(member(v, "go_backwards"), 't'));
        v = inner ? inner : v;
        i += i == 0 && inner; /* the layer of the other direction is not its part */
    }
    const char *first = text_of(w, member(v, "activation"), NULL),
               *second = text_of(w, member(v, "recurrent_activation"), "sigmoid");
    if (!first)
        return NULL;
    if (backwards)
        return weft__weights_print(w, "%s with go_backwards", cell);
    if (strcmp(merge, "concat"))
        return weft__weights_print(w, "%s with merge_mode %s", cell, merge);
    if (gru && begins_with(member(v, "reset_after"), 'f'))
        cell = "gru_reset_before";
    if (plain && !strcmp(first, "relu"))
        return "rnn_relu";
    if (!strcmp(first, "tanh") && (plain || !strcmp(second, "sigmoid")))
        return cell;
    return weft__weights_print(w, "%s with %s and %s", cell, first, plain ? "no gates" : second);
}

/* ---- the class of a part ---- */
/* old: the first variables in Keras 2. A part has `least` to `most` variables; the first has `rank` axes, the
 * others are as long as its last axis. role: the names in PyTorch. Cells have forms of their own. */
static const struct { const char *name, *old[2]; int least, most, rank; const char *role[4]; } forms[] = {
    [WEFT__CELL] = { "cell", { "kernel", "recurrent_kernel" }, 2, 3, 2, { NULL } },
    [WEFT__DENSE] = { "dense", { "kernel", NULL }, 1, 2, 2, { "weight", "bias" } },
    [WEFT__EMBEDDING] = { "embedding", { "embeddings", NULL }, 1, 1, 2, { "weight" } },
    [WEFT__LAYER_NORM] = { "layer_normalization", { "gamma", "beta" }, 2, 2, 1, { "weight", "bias" } },
    [WEFT__BATCH_NORM] = { "batch_normalization", { "gamma", "beta" }, 4, 4, 1,
                           { "weight", "bias", "running_mean", "running_var" } },
};
enum { CLASSES = sizeof forms / sizeof *forms };

/* Whether the rest of a name is a number: "", "_12". */
static bool is_number(const char *rest)
{
    return !*rest || (*rest == '_' && rest[1] && !rest[1 + strspn(rest + 1, "0123456789")]);
}

weft__keras_class weft__keras_class_of(const char *name)
{
    const char *cell = strstr(name, "_cell");
    if (cell && is_number(cell + 5))
        return WEFT__CELL;
    for (int i = 1; i < CLASSES; i++)
        if (!strncmp(name, forms[i].name, strlen(forms[i].name)) && is_number(name + strlen(forms[i].name)))
            return (weft__keras_class)i;
    return WEFT__OTHER;
}

static bool is_matrix(const variable *v) { return v && v->kind.rank == 2; }
static bool is_vector(const variable *v, int64_t n) { return v && v->kind.rank == 1 && v->kind.size[0] == n; }

/* Returns the number of gates, 1, 3 or 4; 0: the variables are not those of a cell. */
static int gates_of(const part *p)
{
    const variable *kernel = p->v[0], *recurrent = p->v[1], *bias = p->v[2];
    if (p->n > 3 || !is_matrix(kernel) || !is_matrix(recurrent) || recurrent->kind.size[0] < 1)
        return 0;
    int64_t hidden = recurrent->kind.size[0], rows = recurrent->kind.size[1], gates = rows / hidden;
    bool two = gates == 3 && is_matrix(bias) && bias->kind.size[0] == 2 && bias->kind.size[1] == rows;
    bool valid = rows == kernel->kind.size[1] && rows % hidden == 0 &&
                 (gates == 1 || gates == 3 || gates == 4) && (!bias || two || is_vector(bias, rows));
    return valid ? (int)gates : 0;
}

static bool has_form(const part *p, int class)
{
    int rank = forms[class].rank;
    bool fits = p->n >= forms[class].least && p->n <= forms[class].most && p->v[0]->kind.rank == rank;
    for (int i = 1; i < p->n && fits && class != WEFT__CELL; i++)
        fits = is_vector(p->v[i], p->v[0]->kind.size[rank - 1]);
    return fits && (class != WEFT__CELL || gates_of(p));
}

/* Finds the class of a part of Keras 2. A part that is not of a layer that PyTorch and weft have is OTHER. */
static void set_class(part *p)
{
    const char *first = p->v[0]->role, *second = p->n > 1 ? p->v[1]->role : "";
    for (int i = 1; i < CLASSES && p->class == WEFT__OTHER; i++)
        if (!strcmp(first, forms[i].old[0]) && (!forms[i].old[1] || !strcmp(second, forms[i].old[1])) &&
            has_form(p, i))
            p->class = (weft__keras_class)i;
    if (p->class == WEFT__OTHER && p->n == 2)
        p->class = WEFT__DENSE;                  /* a guess */
    bool valid = has_form(p, p->class);
    for (const variable *v = p->first; v; v = v->next)
        valid = valid && weft__number_is_any(v->kind.type) && weft__kind_bytes(&v->kind) != SIZE_MAX;
    p->class = valid ? p->class : WEFT__OTHER;
}

/* ---- arrays ---- */
typedef struct {
    weft__weights *w;
    const part *p;
    int layer, gates;
    const char *cell;
} adding;

static weft__array *add(const adding *to, const char *role, const variable *v)
{
    const char *name = to->p->name, *end = to->p->reverse && to->layer >= 0 ? "_reverse" : "";
    weft__array a = { .place = v->path, .set = v->path, .kind = v->kind, .layer = to->layer };
    a.name = weft__weights_print(to->w, "%s%s%s%s", name, *name ? "." : "", role, end);
    weft__set_strides(&a);
    a.cell = to->cell;
    if (to->gates == 3) {                        /* r z n here, z r h in the file */
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
        a->set = NULL;
        a->place = a->name;
        a->gates = 0;
    }
}

static void add_cell(adding *to, const model *c)
{
    const variable *bias = to->p->v[2];
    int64_t rows = to->p->v[1]->kind.size[1];
    bool two = bias && bias->kind.rank == 2;
    const int gates = to->gates = gates_of(to->p);
    const char *guess = gates == 4   ? "lstm" :
                        gates == 1   ? "rnn_tanh" :
                        bias && !two ? "gru_reset_before" :
                                       "gru_reset_after";
    to->cell = cell_of(to->w, c, to->p->number, to->p->reverse, guess);
    if (!to->cell && gates > 1 && (gates == 4 || bias))
        to->cell = guess;                        /* from the shapes */
    add_kernel(to, "weight_ih_l0", to->p->v[0]);
    add_kernel(to, "weight_hh_l0", to->p->v[1]);
    if (bias) {
        add_bias(to, "bias_ih_l0", bias, rows, 0);
        add_bias(to, "bias_hh_l0", bias, rows, two ? rows : -1);
    }
}

static void add_part(weft__weights *w, const part *p, int number, const model *c)
{
    adding to = { w, p, number, 0, NULL };
    int i = 0;
    if (p->class == WEFT__CELL) {
        add_cell(&to, c);
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
/* Compares two texts, with their numbers by value: "dense_2" is before "dense_10". */
static int by_numbers(const char *a, const char *b)
{
    while (*a && *b) {
        size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
        if (n && m && n != m)
            return n < m ? -1 : 1;
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++;
        b++;
    }
    return *a ? 1 : *b ? -1 : 0;
}

static int in_model(const void *a, const void *b)
{
    const part *x = *(const part *const *)a, *y = *(const part *const *)b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : by_numbers(x->place, y->place);
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

void weft__keras_add_arrays(weft__keras_parts *r, const char *description, bool in_order)
{
    int layers = -1;
    int64_t n = 0;
    model c = { NULL, 0 };
    const part *before = NULL;
    part **all = weft__weights_memory(r->w, (size_t)r->n * sizeof *all);
    if (description && (c.layer = weft__weights_memory(r->w, LAYERS * sizeof *c.layer)))
        add_layers(r->w, skip_blanks(description), "", 0, &c);
    for (part *p = all ? r->first : NULL; p; p = p->next) {
        if (!p->n)
            continue;
        set_class(p);
        p->number = find_layer(&c, p->name);
        all[n++] = p;
    }
    if (!in_order && n)
        sort_parts(r->w, all, n);
    for (int64_t i = 0; i < n && !r->w->status; i++) {
        bool known = all[i]->class != WEFT__OTHER;
        if (known) { /* both directions are one layer */
            layers += !before || strcmp(before->name, all[i]->name);
            before = all[i];
        }
        add_part(r->w, all[i], known ? layers : -1, &c);
    }
}
