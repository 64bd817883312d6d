/* keras.c - lists the weights of Keras under the names and in the shapes of PyTorch. It reads .weights.h5 and
 * .keras of Keras 3, and .h5 of Keras 2.
 *
 * First it collects the parts of the layers that have variables: a cell, a direction, a dense layer. Then it
 * numbers the layers, and adds the arrays of each. Variables of other layers are listed as they are. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/keras.h"

typedef weft__keras_part part;
typedef weft__keras_variable variable;
typedef weft__keras_class class;
typedef weft__keras_parts reader;

enum { DEPTH = 32, KEY = 256, SMALLEST = 32 }; /* bytes of an object in a file */

/* ---- texts ---- */
static const char *below(weft__weights *w, const char *group, const char *name)
{
    return weft__joined(w, group, "/", name, strlen(name));
}

typedef struct {
    weft__weights *w;
    const char *text;
    size_t n;
} kept;
static void keep(const char *text, size_t n, void *user)
{
    kept *k = user;
    k->text = weft__weights_text(k->w, text, n);
    k->n = n;
}

/* Returns the text of an attribute, and its length; NULL: it does not exist. */
static const char *attribute(weft__weights *w, const char *path, const char *key, size_t *n)
{
    kept k = { w, NULL, 0 };
    bool found = weft__h5_texts(w->h, path, key, keep, &k);
    if (n)
        *n = k.n;
    return found ? k.text : NULL;
}

/* Returns the length of a name without a number: 4 for "lstm_12". */
static size_t stem(const char *name)
{
    size_t n = strlen(name), end = n;
    while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    return end && end < n && name[end - 1] == '_' ? end - 1 : n;
}

static class class_of(const char *name)
{
    static const char *const names[] = {
        "", "cell", "dense", "embedding", "layer_normalization", "batch_normalization"
    };
    size_t n = stem(name);
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (n == strlen(names[i]) && !memcmp(name, names[i], n))
            return (class)i;
    return n > 5 && !memcmp(name + n - 5, "_cell", 5) ? WEFT__CELL : WEFT__OTHER;
}

/* ---- parts ---- */
static part *add_part(reader *r, const part *like)
{
    part *p = weft__weights_memory(r->w, sizeof *p);
    if (!p)
        return NULL;
    *p = *like;
    if (r->last)
        r->last->next = p;
    else
        r->first = p;
    r->last = p;
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
    weft__kind kind;
    if (!counts(r) || !weft__h5_find(r->w->h, path, &kind))
        return false;
    variable *v = weft__weights_memory(r->w, sizeof *v);
    if (!v)
        return false;
    *v = (variable){ NULL, path, role, kind };
    if (p->last)
        p->last->next = v;
    else
        p->first = v;
    p->last = v;
    if (p->n < 4)
        p->v[p->n] = v;
    p->n++;
    return true;
}

/* ---- Keras 3: groups of layers, and in each a group "vars" ---- */
typedef struct level {
    reader *r;
    const char *group, *name; /* "layers/lstm/cell", "lstm" */
    class class;
    bool reverse, wrapped; /* wrapped: the layer in a TimeDistributed */
    int depth;
} level;

static void read_variables(const level *l)
{
    weft__weights *w = l->r->w;
    char number[24];
    part *p = add_part(
        l->r, &(part){ .name = l->name, .place = l->group, .class = l->class, .reverse = l->reverse });
    const char *vars = below(w, l->group, "vars"), *role = "";
    for (int i = 0; p && role; i++) {
        int n = snprintf(number, sizeof number, "%d", i);
        const char *copy = weft__joined(w, "", "", number, (size_t)n);
        role = add_variable(l->r, p, below(w, vars, copy), copy) ? copy : NULL;
    }
    if (p && p->class == WEFT__OTHER && l->wrapped && p->n == 1)
        p->class = WEFT__DENSE; /* without a bias */
}

static bool visit(const char *name, bool is_group, void *user);

/* Enters a group. Groups of the form have no name of their own; a layer has one from its user. */
static void enter(const level *up, const char *name)
{
    weft__weights *w = up->r->w;
    level l = *up;
    l.group = below(w, up->group, name);
    l.depth++;
    const char *own = attribute(w, below(w, l.group, "vars"), "name", NULL);
    class by_user = own ? class_of(own) : WEFT__OTHER;
    bool is_list = !strcmp(name, "layers") || !strcmp(name, "cells") ||
                   !strcmp(name, "_layer_checkpoint_dependencies"),
         is_inner = *up->name && (!strcmp(name, "cell") || !strcmp(name, "layer") ||
                                  !strcmp(name, "forward_layer") || !strcmp(name, "backward_layer"));
    l.wrapped = is_inner && !strcmp(name, "layer");
    l.reverse = up->reverse || (is_inner && *name == 'b');
    l.class = class_of(name) == WEFT__OTHER ? by_user : class_of(name);
    if (!is_list && !is_inner) {
        const char *last = own && *own ? own : name;
        l.name = weft__joined(w, up->name, ".", last, strlen(last));
    }
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
typedef struct {
    reader *r;
    const char *group, *top;
    part *before;
} old_layer;

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
    const char *name = top;
    for (const char *at = path; *at && !w->status; at += strspn(at, "/")) {
        char word[KEY];
        size_t n = strcspn(at, "/");
        snprintf(word, sizeof word, "%.*s", n < KEY ? (int)n : KEY - 1, at);
        at += n;
        p->reverse = p->reverse || !strncmp(word, "backward_", 9);
        if (!strcmp(word, top))
            name = top;
        else if (strncmp(word, "forward_", 8) && strncmp(word, "backward_", 9))
            name = weft__joined(w, name, ".", word, strlen(word));
    }
    p->name = name;
}

static void take_variable(const char *text, size_t n, void *user)
{
    const old_layer *o = user;
    weft__weights *w = o->r->w;
    const char *path = weft__weights_text(w, text, n), *slash = path ? strrchr(path, '/') : NULL;
    if (!path || !*path)
        return;
    const char *base = slash ? slash + 1 : path,
               *place = slash ? weft__joined(w, "", "", path, (size_t)(slash - path)) : "";
    size_t length = strlen(base);
    length -= length > 2 && !strcmp(base + length - 2, ":0") ? 2 : 0;
    part *p = o->before ? o->before->next : o->r->first;
    while (p && strcmp(p->place, place))
        p = p->next;
    if (!p && (p = add_part(o->r, &(part){ .place = place })))
        name_part(w, o->top, place, p);
    const char *set = below(w, below(w, o->group, o->top), path);
    if (p && !add_variable(o->r, p, set, weft__joined(w, "", "", base, length)))
        weft__weights_fail(w, WEFT_EFORMAT, "%.300s is not in the file, but weight_names lists it", set);
}

static class old_class(const part *p)
{
    static const struct {
        int n;
        const char *first, *second;
        class class;
    } classes[] = {
        { 0, "kernel", "recurrent_kernel", WEFT__CELL },
        { 0, "kernel", "bias", WEFT__DENSE },
        { 1, "kernel", NULL, WEFT__DENSE },
        { 1, "embeddings", NULL, WEFT__EMBEDDING },
        { 2, "gamma", "beta", WEFT__LAYER_NORM },
        { 4, "gamma", "beta", WEFT__BATCH_NORM },
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if ((!classes[i].n || p->n == classes[i].n) && !strcmp(p->v[0]->role, classes[i].first) &&
            (!classes[i].second || (p->n > 1 && !strcmp(p->v[1]->role, classes[i].second))))
            return classes[i].class;
    return WEFT__OTHER;
}

/* Removes the name of a cell, "lstm.lstm_cell_1", but not of one of several,
 * "rnn.stacked_rnn_cells.lstm_cell". */
static void drop_cell(weft__weights *w, part *p)
{
    const char *dot = strrchr(p->name, '.');
    const char *before = dot ? dot - 1 : p->name;
    while (before > p->name && before[-1] != '.')
        before--;
    if (p->class == WEFT__CELL && dot && class_of(dot + 1) == WEFT__CELL &&
        strncmp(before, "stacked_rnn_cells", 17))
        p->name = weft__joined(w, "", "", p->name, (size_t)(dot - p->name));
}

static void take_layer(const char *text, size_t n, void *user)
{
    old_layer o = *(old_layer *)user;
    weft__weights *w = o.r->w;
    o.top = weft__weights_text(w, text, n);
    o.before = o.r->last;
    if (!o.top || !*o.top || !counts(o.r))
        return;
    const char *group = below(w, o.group, o.top);
    if (!each_text(w->h, group, "weight_names", take_variable, &o) && !weft__h5_status(w->h))
        weft__weights_fail(w, WEFT_EFORMAT, "%.300s has no weight_names, but layer_names lists it", group);
    part *first = o.before ? o.before->next : o.r->first;
    bool one = true;
    for (part *p = first; p && !w->status; p = p->next) {
        p->class = p->n ? old_class(p) : WEFT__OTHER;
        drop_cell(w, p);
        one = one && !strcmp(p->name, first->name);
    }
    for (part *p = first; p && one; p = p->next)
        p->name = o.top; /* a wrapper of one layer has its name */
}

/* ---- files ---- */
static void read_file(weft__weights *w, const char *config, size_t config_bytes)
{
    reader r = { .w = w };
    const char *group = weft__h5_exists(w->h, "model_weights") ? "model_weights" : "/", *version;
    old_layer o = { &r, *group == '/' ? "" : group, NULL, NULL };
    w->format = "Keras";
    w->by_layer = true;
    bool old = each_text(w->h, group, "layer_names", take_layer, &o);
    if (old && !config)
        config = attribute(w, "/", "model_config", &config_bytes);
    if (!old)
        weft__h5_each(w->h, "/", visit, &(level){ .r = &r, .group = "", .name = "" });
    if (config && !w->status)
        weft__keras_layers(w, config, config_bytes, &r.config);
    if (old && (version = attribute(w, group, "keras_version", NULL)))
        weft__weights_fact(w, "producer", "Keras %.32s", version);
    if (!w->status)
        weft__keras_add_arrays(&r, old);
    if (!w->status)
        w->status = weft__h5_status(w->h);
}

void weft__read_keras(weft__weights *w) { read_file(w, NULL, 0); }

void weft__read_keras_zip(weft__weights *w)
{
    weft__zip zip;
    w->format = "Keras";
    if (!weft__zip_list(w, &zip))
        return;
    const weft__member *file = weft__zip_find(&zip, "model.weights.h5"),
                       *config = weft__zip_find(&zip, "config.json");
    if (!file) {
        weft__weights_fail(w, WEFT_EFORMAT,
                           "it has no model.weights.h5; expected a file that model.save wrote");
        return;
    }
    const char *text = config ? weft__joined(w, "", "", (const char *)config->bytes, config->size) : NULL;
    if (weft__hdf5_begin(w, (unsigned char *)(uintptr_t)file->bytes, file->size))
        read_file(w, text, config ? config->size : 0);
    weft__hdf5_end(w);
}
