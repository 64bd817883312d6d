/* keras.c - lists the weights of Keras under the names and in the shapes of PyTorch. It reads .weights.h5 and
 * .keras of Keras 3, and .h5 of Keras 2.
 *
 * First it collects the parts of the layers that have variables: a cell, a direction, a dense layer. Then it
 * numbers the layers, and adds the arrays of each. Variables of other layers are listed as they are. */
#include <string.h>
#include "io/weights/keras.h"

typedef weft__keras_part part;
typedef weft__keras_variable variable;
typedef weft__keras_parts reader;

enum { DEPTH = 32, SMALLEST = 32 }; /* bytes of an object in a file */

/* ---- texts ---- */
static const char *joined(weft__weights *w, const char *a, const char *separator, const char *b)
{
    return weft__weights_print(w, "%s%s%s", a, *a ? separator : "", b);
}

typedef struct { weft__weights *w; const char *text; } kept;

static void keep(const char *text, size_t n, void *user)
{
    kept *k = user;
    k->text = weft__weights_text(k->w, text, n);
}

/* Returns the text of an attribute; NULL: it does not exist. */
static const char *attribute(weft__weights *w, const char *path, const char *key)
{
    kept k = { w, NULL };
    return weft__h5_texts(w->h, path, key, keep, &k) ? k.text : NULL;
}

/* ---- parts ---- */
static part *add_part(reader *r, const part *like)
{
    part *p = weft__weights_memory(r->w, sizeof *p);
    if (!p)
        return NULL;
    *p = *like;
    p->end = &p->first;
    *r->end = p;
    r->end = &p->next;
    r->n++;
    return p;
}

/* Fails if the file has fewer bytes than such objects need: its groups form a cycle. */
static bool counts(reader *r)
{
    if (++r->objects > (int64_t)(r->w->size / SMALLEST))
        weft__weights_fail(r->w, WEFT_EFORMAT, "its groups contain each other; expected a tree of layers");
    return !r->w->status;
}

static bool add_variable(reader *r, part *p, const char *path, const char *role)
{
    variable like = { .path = path, .role = role }, *v = NULL;
    if (counts(r) && weft__h5_find(r->w->h, path, &like.kind))
        v = weft__weights_memory(r->w, sizeof *v);
    if (!v)
        return false;
    *v = like;
    *p->end = v;
    p->end = &v->next;
    if (p->n < 4)
        p->v[p->n] = v;
    p->n++;
    return true;
}

/* ---- Keras 3: groups of layers, and in each a group "vars" ---- */
typedef struct level {
    reader *r;
    const char *group, *name; /* "layers/lstm/cell", "lstm" */
    weft__keras_class class;
    bool reverse, wrapped; /* wrapped: the layer in a TimeDistributed */
    int depth;
} level;

static void read_variables(const level *l)
{
    weft__weights *w = l->r->w;
    const char *vars = joined(w, l->group, "/", "vars"), *role;
    part *p = add_part(
        l->r, &(part){ .name = l->name, .place = l->group, .class = l->class, .reverse = l->reverse });
    if (!p)
        return;
    do
        role = weft__weights_print(w, "%d", p->n);
    while (add_variable(l->r, p, joined(w, vars, "/", role), role));
    if (p->class == WEFT__OTHER && l->wrapped && p->n == 1)
        p->class = WEFT__DENSE; /* without a bias */
}

static bool visit(const char *name, bool is_group, void *user);

/* Enters a group. Groups of the form have no name of their own; a layer has one from its user. */
static void enter(const level *up, const char *name)
{
    weft__weights *w = up->r->w;
    level l = *up;
    l.group = joined(w, up->group, "/", name);
    l.depth++;
    const char *own = attribute(w, joined(w, l.group, "/", "vars"), "name");
    own = own && *own ? own : name;
    bool is_list = !strcmp(name, "layers") || !strcmp(name, "cells") ||
                   !strcmp(name, "_layer_checkpoint_dependencies"),
         is_inner = *up->name && (!strcmp(name, "cell") || !strcmp(name, "layer") ||
                                  !strcmp(name, "forward_layer") || !strcmp(name, "backward_layer"));
    l.wrapped = is_inner && !strcmp(name, "layer");
    l.reverse = up->reverse || (is_inner && *name == 'b');
    l.class = weft__keras_class_of(name);
    l.class = l.class == WEFT__OTHER ? weft__keras_class_of(own) : l.class;
    if (!is_list && !is_inner)
        l.name = joined(w, up->name, ".", own);
    if (l.depth > DEPTH)
        weft__weights_fail(w, WEFT_EFORMAT, "%.200s is below more than %d groups; expected layers", l.group,
                           DEPTH);
    else if (!w->status)
        weft__h5_each(w->h, l.group, visit, &l);
}

static bool visit(const char *name, bool is_group, void *user)
{
    const level *l = user;
    if (!counts(l->r))
        return false;
    if (is_group && !strcmp(name, "vars"))
        read_variables(l);
    else if (is_group && (l->depth || strcmp(name, "optimizer")))
        enter(l, name);
    return !l->r->w->status && !weft__h5_status(l->r->w->h);
}

/* ---- Keras 2: attributes list the layers, and the variables of each ---- */
typedef struct { reader *r; const char *group, *top; part **first; } old_layer;  /* first part of the layer */

/* Visits an attribute that may be divided: layer_names0, layer_names1, .. Returns false if it does not
 * exist. */
static bool each_text(weft__h5 *h, const char *path, const char *key, weft__h5_take *take, void *user)
{
    char part_key[64];
    int n = 0;
    if (weft__h5_texts(h, path, key, take, user))
        return true;
    do
        snprintf(part_key, sizeof part_key, "%s%d", key, n);
    while (weft__h5_texts(h, path, part_key, take, user) && ++n < 1000);
    return n > 0;
}

/* Names the part of a layer by the path of its variables, "bi/forward_lstm/lstm_cell_1". */
static void name_part(weft__weights *w, const char *top, const char *path, part *p)
{
    p->name = top;
    for (const char *at = path; *at && !w->status; at += strspn(at, "/")) {
        const char *word = weft__weights_print(w, "%.*s", (int)strcspn(at, "/"), at);
        at += strlen(word);
        p->reverse = p->reverse || !strncmp(word, "backward_", 9);
        if (!strcmp(word, top))
            p->name = top;
        else if (strncmp(word, "forward_", 8) && strncmp(word, "backward_", 9))
            p->name = joined(w, p->name, ".", word);
    }
}

static void take_variable(const char *text, size_t n, void *user)
{
    const old_layer *o = user;
    weft__weights *w = o->r->w;
    const char *path = weft__weights_text(w, text, n), *slash = path ? strrchr(path, '/') : NULL;
    if (!path || !*path)
        return;
    const char *place = weft__weights_print(w, "%.*s", slash ? (int)(slash - path) : 0, path),
               *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    length -= length > 2 && !strcmp(base + length - 2, ":0") ? 2 : 0;
    part *p = *o->first;
    while (p && strcmp(p->place, place))
        p = p->next;
    if (!p && (p = add_part(o->r, &(part){ .place = place })))
        name_part(w, o->top, place, p);
    const char *set = joined(w, joined(w, o->group, "/", o->top), "/", path);
    if (p && !add_variable(o->r, p, set, weft__weights_print(w, "%.*s", (int)length, base)))
        weft__weights_fail(w, WEFT_EFORMAT, "%.300s is not in the file, but weight_names lists it", set);
}

/* Removes the name of a cell, "lstm.lstm_cell_1", but not of one of several,
 * "rnn.stacked_rnn_cells.lstm_cell". */
static void drop_cell(weft__weights *w, part *p)
{
    const char *dot = strrchr(p->name, '.');
    if (dot && weft__keras_class_of(dot + 1) == WEFT__CELL && !strstr(p->name, "stacked_rnn_cells"))
        p->name = weft__weights_print(w, "%.*s", (int)(dot - p->name), p->name);
}

static void take_layer(const char *text, size_t n, void *user)
{
    old_layer o = *(old_layer *)user;
    weft__weights *w = o.r->w;
    o.top = weft__weights_text(w, text, n);
    o.first = o.r->end;
    if (!o.top || !*o.top || !counts(o.r))
        return;
    const char *group = joined(w, o.group, "/", o.top);
    if (!each_text(w->h, group, "weight_names", take_variable, &o) && !weft__h5_status(w->h))
        weft__weights_fail(w, WEFT_EFORMAT, "%.300s has no weight_names, but layer_names lists it", group);
    bool one = true;
    for (part *p = *o.first; p && !w->status; p = p->next) {
        drop_cell(w, p);
        one = one && !strcmp(p->name, (*o.first)->name);
    }
    for (part *p = *o.first; p && one; p = p->next)
        p->name = o.top; /* a wrapper of one layer has its name */
}

/* ---- files ---- */
static void read_file(weft__weights *w, const char *config)
{
    reader r = { .w = w, .end = &r.first };
    const char *group = weft__h5_exists(w->h, "model_weights") ? "model_weights" : "/", *version;
    w->format = "Keras";
    w->by_layer = true;
    bool old = each_text(w->h, group, "layer_names", take_layer,
                         &(old_layer){ .r = &r, .group = *group == '/' ? "" : group });
    if (!old)
        weft__h5_each(w->h, "/", visit, &(level){ .r = &r, .group = "", .name = "" });
    else if (!config)
        config = attribute(w, "/", "model_config");
    if (old && (version = attribute(w, group, "keras_version")))
        weft__weights_fact(w, "producer", "Keras %.32s", version);
    if (!w->status)
        weft__keras_add_arrays(&r, config, old);
}

void weft__read_keras(weft__weights *w) { read_file(w, NULL); }

void weft__read_keras_zip(weft__weights *w)
{
    weft__zip zip;
    w->format = "Keras";
    if (!weft__zip_list(w, &zip))
        return;
    const weft__member *file = weft__zip_find(&zip, "model.weights.h5"),
                       *config = weft__zip_find(&zip, "config.json");
    if (!file)
        weft__weights_fail(w, WEFT_EFORMAT,
                           "it has no model.weights.h5; expected a file that model.save wrote");
    const char *text = file && config ? weft__weights_text(w, config->bytes, config->size) : NULL;
    if (file && weft__hdf5_begin(w, (unsigned char *)(uintptr_t)file->bytes, file->size))
        read_file(w, text);
    weft__hdf5_end(w, true);
}
