/* checkpoint.c - checkpoints of weft as files with weights: their parameters and buffers, and the other
 * contents for `weft info`. */
#include <string.h>
#include "io/weights/weights.h"

typedef struct { weft__weights *w; weft__sealed *f; } lister;

/* Adds a fact about an array: its kind, and its value if it is a text or a few numbers. */
static void add_value(lister *l, const char *key, const char *path)
{
    enum { FEW = 4, SHORT = 200 };
    weft__kind k;
    char kind[128], text[1 + SHORT] = " ";
    unsigned char raw[SHORT] = "";
    double reals[FEW];
    int64_t ints[FEW];
    if (!weft__sealed_find(l->f, path, &k))
        return;
    bool whole = weft__number_is_int(k.type), listed = k.rank == 1 && weft__number_is_any(k.type) &&
         k.size[0] <= FEW, is_text = k.rank == 1 && k.size[0] < SHORT && k.type == WEFT__CHARS;
    if (listed || is_text)
        weft__sealed_read(l->f, path, &k, is_text ? (void *)(text + 1) : raw);
    if (listed) {
        weft__turn(weft__number_bytes(k.type), raw, weft__kind_bytes(&k));
        weft__convert(path, path, &k, whole ? WEFT__I64 : WEFT__F64, NULL, raw, whole ? (void *)ints : reals);
    }
    for (int64_t i = 0, n = 0; listed && i < k.size[0] && !l->f->status; i++)
        n += whole ? snprintf(text + n, SHORT - (size_t)n, " %lld", (long long)ints[i]) :
                     snprintf(text + n, SHORT - (size_t)n, " %.7g", reals[i]);
    weft__weights_fact(l->w, key, "%s%s", weft__kind_text(&k, kind), text[1] ? text : "");
}

static bool add_item(const char *name, bool is_group, void *user)
{
    lister *l = user;
    const char *path = weft__weights_print(l->w, "items/%s", name);
    if (!is_group)
        add_value(l, path, path);
    return !l->w->status;
}

static bool count_stream(const char *name, bool is_group, void *count)
{
    *(int *)count += !is_group && *name >= '0' && *name <= '9';
    return true;
}

static void add_facts(lister *l)
{
    static const char *const keys[] = { "library_version", "format_version", "real" };
    static const char *const optimisers[] = { "SGD", "RMSprop", "Adam", "AdamW" };
    char text[64];
    weft__kind found;
    int64_t rule = -1;
    int streams = 0;
    for (int i = 0; i < 3; i++)
        if (weft__sealed_text(l->f, "/", keys[i], text, sizeof text))
            weft__weights_fact(l->w, keys[i], "%s", text);
    weft__weights_fact(l->w, "checksum", "ok");
    if (weft__sealed_find(l->f, "optimizer/rule", &found)) {
        weft__sealed_read(l->f, "optimizer/rule", &(weft__kind){ WEFT__I64, 1, { 1 } }, &rule);
        weft__weights_fact(l->w, "optimiser", "%s", (uint64_t)rule < 4 ? optimisers[rule] : "unknown");
    }
    add_value(l, "rate", "optimizer/lr");
    add_value(l, "steps", "optimizer/steps");
    weft__sealed_each(l->f, "streams", count_stream, &streams);
    weft__weights_fact(l->w, "streams", "%d", streams);
    weft__sealed_each(l->f, "items", add_item, l);
}

void weft__checkpoint_facts(weft__weights *w)
{
    const weft__image image = { w->image, w->size };
    w->status = weft__check_seal(w->path, &image);
    lister l = { w, w->status ? NULL : weft__sealed_look(w->path, &image) };
    if (l.f)
        add_facts(&l);
    weft_status s = l.f ? weft__sealed_end(l.f) : WEFT_ENOMEM;
    w->status = w->status ? w->status : s;
}

/* The names are paths below parameters/ or buffers/, as in HDF5. */
void weft__read_checkpoint_weights(weft__weights *w)
{
    weft__checkpoint_facts(w);
    int64_t facts = w->facts, n = 0;
    weft__read_safetensors(w);
    for (int64_t i = 0; i < w->n; i++) {
        const char *name = w->array[i].name;
        if (strncmp(name, "parameters/", 11) && strncmp(name, "buffers/", 8))
            continue;
        w->array[n] = w->array[i];
        w->array[n].name = w->array[n].place = strchr(name, '/') + 1;
        n++;
    }
    w->n = n;
    w->facts = facts;
}
