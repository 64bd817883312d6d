/* checkpoint.c - describes the contents of a checkpoint of weft that are not weights, for `weft info`:
 * version, optimiser, random streams, the program's items. */
#include "io/weights/weights.h"

/* Adds a fact about a data set: its kind, and its value if it is a text or a few numbers. */
static void add_set(weft__weights *w, const char *key, const char *path)
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
    char *path = weft__weights_memory(w, WEFT__NAMED);
    if (path && snprintf(path, WEFT__NAMED, "items/%s", name) < WEFT__NAMED && !is_group)
        add_set(w, path, path);
    return path;
}

static bool count_stream(const char *name, bool is_group, void *count)
{
    *(int *)count += !is_group && *name >= '0' && *name <= '9';
    return true;
}

void weft__checkpoint_facts(weft__weights *w)
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
    add_set(w, "rate", "optimizer/lr");
    add_set(w, "steps", "optimizer/steps");
    weft__h5_each(w->h, "streams", count_stream, &streams);
    weft__weights_fact(w, "streams", "%d", streams);
    weft__h5_each(w->h, "items", add_item, w);
}
