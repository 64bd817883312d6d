/* hdf5.c - lists the data sets of an HDF5 file as arrays: state dicts with flat ("encoder.weight") or nested
 * names ("encoder/weight"), as h5py writes them, checkpoints of weft, and files of Keras. For `weft info` it
 * also describes what else a checkpoint has: version, optimiser, random streams, the program's items.
 *
 * A process may have one open session on HDF5 files, so it ends before the file is in use: an array then
 * points into the file's bytes. Sets in chunks are read later, in a session of their own. */
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/hdf5.h"
#include "io/weights/weights.h"

enum { DEPTH = 16, OBJECTS = 100000 };

typedef struct {
    weft__weights *w;
    const char *group; /* the group that is visited; "" is the root */
    size_t prefix;     /* bytes of paths that are not in names */
    int depth, objects;
    bool keras; /* a set has a name that only Keras gives */
} visiting;

/* ---- sessions ---- */
static unsigned char *read_set(weft__weights *w, const char *set)
{
    weft__kind kind;
    void *raw = NULL;
    if (weft__hdf5_begin(w, w->hdf5, w->hdf5_size) && weft__h5_find(w->h, set, &kind))
        raw = weft__h5_read_new(w->h, set, &kind, kind.type, NULL);
    if (raw)
        weft__turn(weft__number_bytes(kind.type), raw, weft__kind_bytes(&kind));
    weft__hdf5_end(w, false);
    return raw;
}

bool weft__hdf5_begin(weft__weights *w, unsigned char *bytes, size_t size)
{
    if (w->status)
        return false;
    w->h = weft__h5_open(w->path, bytes, size, false);
    if (!w->h)
        w->status = WEFT_ENOMEM;
    w->hdf5 = bytes;
    w->hdf5_size = size;
    w->read_set = read_set;
    return w->h && !weft__h5_status(w->h);
}

/* Makes arrays with contiguous sets point into the file. */
static void place_sets(weft__weights *w)
{
    uint64_t offset;
    for (int64_t i = 0; i < w->n && !weft__h5_status(w->h); i++) {
        weft__array *a = &w->array[i];
        size_t bytes = weft__number_bytes(a->kind.type);
        if (!a->set || !weft__number_is_any(a->kind.type) || !weft__h5_place(w->h, a->set, &offset))
            continue;
        a->bytes = w->hdf5 + offset + (size_t)a->first * bytes;
        if (weft__array_is_inside(a, w->hdf5, w->hdf5_size))
            a->set = NULL;
        else
            weft__h5_fail(w->h, WEFT_EFORMAT, "%s is incomplete: the file lacks bytes of its shape", a->set);
    }
}

void weft__hdf5_end(weft__weights *w, bool place)
{
    if (!w->h)
        return;
    if (place && !w->status)
        place_sets(w);
    weft_status s = weft__h5_end(w->h);
    w->status = w->status ? w->status : s;
    w->h = NULL;
}

/* ---- data sets ---- */
/* Keras names its arrays vars/0, vars/1 (.weights.h5) or kernel:0 (.h5). */
static bool is_of_keras(const char *path)
{
    size_t n = strlen(path);
    const char *vars = strstr(path, "vars/");
    return (n > 2 && !strcmp(path + n - 2, ":0")) ||
           (vars && (vars == path || vars[-1] == '/') && strspn(vars + 5, "0123456789") == strlen(vars + 5));
}

static void add_set(weft__weights *w, const char *path, size_t prefix)
{
    weft__array a = { .layer = -1, .set = weft__weights_text(w, path, strlen(path)) };
    char *name = (char *)(uintptr_t)weft__weights_print(w, "%s", path + prefix);
    if (w->status || !weft__h5_find(w->h, path, &a.kind))
        return;
    a.name = name;
    a.place = strchr(name, '/') ? a.set + prefix : NULL;
    while ((name = strchr(name, '/')))
        *name = '.';
    weft__set_strides(&a);
    weft__weights_add(w, &a);
}

/* Visits the data sets of a group and its subgroups. */
static bool visit_entry(const char *name, bool is_group, void *user)
{
    visiting *v = user;
    const char *before = v->group;
    char path[WEFT__NAMED];
    int n = snprintf(path, sizeof path, "%s%s%s", before, *before ? "/" : "", name);
    if (n >= (int)sizeof path || v->depth >= DEPTH || ++v->objects > OBJECTS) {
        weft__h5_fail(v->w->h, WEFT_EFORMAT, "%s: more than 100,000 objects or 16 levels, or a name above "
                      "319 bytes; expected a state dict", path);
        return false;
    }
    if (is_group) {
        v->group = path;
        v->depth++;
        weft__h5_each(v->w->h, path, visit_entry, v);
        v->group = before;
        v->depth--;
    } else {
        v->keras = v->keras || is_of_keras(path);
        add_set(v->w, path, v->prefix);
    }
    return !v->w->status && !weft__h5_status(v->w->h);
}

static void list_sets(weft__weights *w)
{
    visiting v = { .w = w, .group = "" };
    if (weft__h5_exists(w->h, "parameters") &&
        (weft__h5_exists(w->h, "streams") || weft__h5_exists(w->h, "items") ||
         weft__h5_exists(w->h, "buffers")))
        weft__h5_fail(w->h, WEFT_EFORMAT, "damaged: a checkpoint of weft without its first bytes; load an "
                      "earlier checkpoint");
    weft__h5_each(w->h, "/", visit_entry, &v);
    v.keras = v.keras || (weft__h5_exists(w->h, "model_weights") && /* names of Keras 3 have no :0 */
                          weft__h5_texts(w->h, "model_weights", "layer_names", NULL, NULL));
    if (!v.keras || weft__h5_status(w->h))
        return;
    w->n = 0;
    w->format = "Keras";
    weft__read_keras(w);
}

/* ---- checkpoints of weft ---- */
static void list_checkpoint(weft__weights *w)
{
    static const char *const groups[] = { "parameters", "buffers" };
    w->format = "weft checkpoint";
    weft__checkpoint_facts(w);
    if (!weft__hdf5_begin(w, w->image, w->size))
        return;
    for (int i = 0; i < 2; i++)
        weft__h5_each(w->h, groups[i], visit_entry,
                      &(visiting){ .w = w, .group = groups[i], .prefix = strlen(groups[i]) + 1 });
}

void weft__read_hdf5_weights(weft__weights *w)
{
    if (w->size >= strlen(WEFT__MAGIC) && !memcmp(w->image, WEFT__MAGIC, strlen(WEFT__MAGIC)))
        list_checkpoint(w);
    else if (weft__hdf5_begin(w, w->image, w->size))
        list_sets(w);
    weft__hdf5_end(w, true);
}

/* ---- writing ---- */
weft_status weft__save_hdf5(const char *path, weft__output *list, int64_t n)
{
    weft__h5 *h = weft__h5_new(path, 0, false);
    if (!h)
        return WEFT_ENOMEM;
    qsort(list, (size_t)n, sizeof *list, weft__by_text);
    for (int64_t i = 0; i < n; i++) {
        if (strchr(list[i].name, '/') || !*list[i].name || !strcmp(list[i].name, "."))
            weft__h5_fail(h, WEFT_EFORMAT, "\"%.200s\" cannot be a name in HDF5; expected one without /",
                          list[i].name);
        weft__h5_write(h, list[i].name, &list[i].kind, list[i].values);
    }
    return weft__h5_write_file(h);
}
