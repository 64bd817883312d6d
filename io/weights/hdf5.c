/* hdf5.c - lists the data sets of an HDF5 file as arrays: state dicts with flat ("encoder.weight") or nested
 * names ("encoder/weight"), as h5py writes them, checkpoints of weft, and files of Keras. For `weft info` it
 * also describes what else a checkpoint has: version, optimiser, random streams, the program's items.
 *
 * A process may have one open session on HDF5 files, so it ends before the file is in use: an array then
 * points into the file's bytes. Sets in chunks are read later, in a session of their own. */
#include <stdlib.h>
#include <string.h>
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
bool weft__hdf5_begin(weft__weights *w, unsigned char *bytes, size_t size)
{
    if (w->status)
        return false;
    w->h = weft__h5_open(w->path, bytes, size, false);
    if (!w->h)
        w->status = WEFT_ENOMEM;
    w->hdf5 = bytes;
    w->hdf5_size = size;
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
/* Adds a fact about a data set: its kind, and its value if it is a text or a few numbers. */
static void add_value(weft__weights *w, const char *key, const char *path)
{
    enum { FEW = 4, SHORT = 200 };
    weft__kind k;
    char kind[128], text[1 + SHORT] = " ";
    double reals[FEW];
    int64_t ints[FEW];
    if (!weft__h5_find(w->h, path, &k))
        return;
    bool whole = weft__number_is_int(k.type);
    bool listed = k.rank == 1 && k.size[0] <= FEW && weft__number_is_any(k.type);
    if (k.rank == 1 && k.size[0] < SHORT && k.type == WEFT__CHARS)
        weft__h5_read(w->h, path, &k, WEFT__CHARS, text + 1);
    else if (listed)
        weft__h5_read(w->h, path, &k, whole ? WEFT__I64 : WEFT__F64, whole ? (void *)ints : reals);
    for (int64_t i = 0, n = 0; listed && i < k.size[0] && !weft__h5_status(w->h); i++)
        n += whole ? snprintf(text + n, SHORT - (size_t)n, " %lld", (long long)ints[i]) :
                     snprintf(text + n, SHORT - (size_t)n, " %.7g", reals[i]);
    weft__weights_fact(w, key, "%s%s", weft__kind_text(&k, kind), text[1] ? text : "");
}

static bool add_item(const char *name, bool is_group, void *user)
{
    weft__weights *w = user;
    const char *path = weft__weights_print(w, "items/%s", name);
    if (!is_group)
        add_value(w, path, path);
    return !w->status;
}

static bool count_stream(const char *name, bool is_group, void *count)
{
    *(int *)count += !is_group && *name >= '0' && *name <= '9';
    return true;
}

static void add_facts(weft__weights *w)
{
    static const char *const keys[] = { "library_version", "format_version", "real" };
    static const char *const optimisers[] = { "SGD", "RMSprop", "Adam", "AdamW" };
    char text[64];
    int64_t rule = -1;
    int streams = 0;
    for (int i = 0; i < 3; i++)
        if (weft__h5_text(w->h, "/", keys[i], text, sizeof text))
            weft__weights_fact(w, keys[i], "%s", text);
    weft__weights_fact(w, "checksum", "ok");
    if (weft__h5_exists(w->h, "optimizer")) {
        weft__h5_read(w->h, "optimizer/rule", &(weft__kind){ WEFT__I64, 1, { 1 } }, WEFT__I64, &rule);
        weft__weights_fact(w, "optimiser", "%s", (uint64_t)rule < 4 ? optimisers[rule] : "unknown");
    }
    add_value(w, "rate", "optimizer/lr");
    add_value(w, "steps", "optimizer/steps");
    weft__h5_each(w->h, "streams", count_stream, &streams);
    weft__weights_fact(w, "streams", "%d", streams);
    weft__h5_each(w->h, "items", add_item, w);
}

static void list_checkpoint(weft__weights *w)
{
    static const char *const groups[] = { "parameters", "buffers" };
    weft__image image = { w->image, w->size };
    w->format = "weft checkpoint";
    w->status = weft__check_seal(w->path, &image);
    if (!weft__hdf5_begin(w, w->image, w->size))
        return;
    for (int i = 0; i < 2; i++)
        weft__h5_each(w->h, groups[i], visit_entry,
                      &(visiting){ .w = w, .group = groups[i], .prefix = strlen(groups[i]) + 1 });
    add_facts(w);
}

void weft__read_hdf5_weights(weft__weights *w)
{
    if (w->size >= strlen(WEFT__MAGIC) && !memcmp(w->image, WEFT__MAGIC, strlen(WEFT__MAGIC)))
        list_checkpoint(w);
    else if (weft__hdf5_begin(w, w->image, w->size))
        list_sets(w);
    weft__hdf5_end(w, true);
}
