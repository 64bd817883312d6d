/* torch.c - lists the tensors of a PyTorch file (.pt, .pth): a zip archive with a pickle, which describes the
 * tensors, and one member for each storage. */
#include <string.h>
#include "io/weights/pickle.h"

enum { PATH = 512, DEPTH = 32, FACTS = 20, TEXT = 80 };
enum { SPARE = 16 << 20 };                       /* bytes of a tensor that repeats few numbers by stride 0 */

typedef struct {
    weft__weights *w;
    weft__zip zip;
    const char *pickle;                          /* "archive/data.pkl" */
    size_t folder;                               /* bytes of "archive/" */
    bool big;                                    /* numbers are in big-endian order */
    char path[PATH];                             /* names of the dictionaries around the current value */
    size_t visits, most;
    const char *foreign;                         /* a class that was seen */
} reader;

static const weft__member *member_of(const reader *r, const char *prefix, const char *name, size_t n)
{
    char path[PATH];
    int length = snprintf(path, sizeof path, "%.*s%s%.*s", (int)r->folder, r->pickle, prefix,
                          n < PATH ? (int)n : PATH, name);
    return length < PATH ? weft__zip_find(&r->zip, path) : NULL;
}

/* ---- one tensor ---- */
static bool is_count(const weft__value *v) { return v->tag == WEFT__P_INT && v->whole >= 0; }

/* Sets type, shape and strides. Returns the reason if they are wrong. */
static const char *read_shape(const weft__items *tensor, weft__array *a)
{
    const weft__value *item = tensor->item;
    const weft__items *size = item[2].items, *stride = item[3].items;
    int type = weft__value_number(&item[0].items->item[1]);
    if (type == WEFT__CHARS)                     /* _rebuild_tensor_v3: its last argument is the type */
        type = tensor->n > 6 ? weft__value_number(&item[6]) : -1;
    if (!is_count(&item[1]) || item[2].tag != WEFT__P_TUPLE || item[3].tag != WEFT__P_TUPLE ||
        size->n != stride->n)
        return "has no shape; expected an offset, sizes and strides";
    a->kind.type = WEFT__ODD;
    if (type < 0 || type >= WEFT__CHARS || size->n > WEFT_RANK)
        return NULL;                             /* complex, float8, 7 axes .. */
    a->kind = (weft__kind){ .type = (weft__number)type, .rank = (int)size->n };
    for (size_t i = 0; i < size->n; i++) {
        if (!is_count(&size->item[i]) || !is_count(&stride->item[i]))
            return "has a size or stride that is not a count";
        a->kind.size[i] = size->item[i].whole;
        a->stride[i] = stride->item[i].whole;
    }
    return NULL;
}

static const char *read_tensor(const reader *r, const weft__items *tensor, weft__array *a)
{
    const weft__value *storage = tensor->item[0].items->item;
    const weft__member *m = member_of(r, "data/", storage[2].text, storage[2].n);
    const char *reason = read_shape(tensor, a);
    uint64_t bytes = weft__number_bytes(a->kind.type), from, size;
    if (reason || a->kind.type == WEFT__ODD)
        return reason;
    uint64_t element = weft__value_number(&storage[1]) == WEFT__CHARS ? 1 : bytes;
    if (!m || !is_count(&storage[4]) ||
        __builtin_mul_overflow((uint64_t)storage[4].whole, element, &size) || size > m->size)
        return "has a storage that is not in the file, or not as long as its elements";
    if (__builtin_mul_overflow((uint64_t)tensor->item[1].whole, bytes, &from) || from > size)
        return "begins after its storage";
    a->bytes = m->bytes + from;
    if (!weft__array_is_inside(a, m->bytes, (size_t)size))
        return "ends after its storage";
    if (weft__kind_bytes(&a->kind) > 2 * r->w->size + SPARE)
        return "repeats its numbers more often than weft reads; save tensor.contiguous()";
    if (r->big && bytes > 1)
        a->kind.type |= WEFT__BIG;
    return NULL;
}

static void add_tensor(reader *r, const weft__value *v, size_t length)
{
    weft__array a = { .layer = -1 };
    a.name = weft__weights_text(r->w, length ? r->path : "tensor", length ? length : 6);
    const char *reason = a.name ? read_tensor(r, v->items, &a) : NULL;
    if (reason)
        weft__weights_fail(r->w, WEFT_EFORMAT, "%.200s %s", a.name, reason);
    else if (a.name)
        weft__weights_add(r->w, &a);
}

/* ---- nested values ---- */
/* Appends a key to the path. Returns the new length; 0 if the key is not a name, and after a failure. */
static size_t append_key(reader *r, size_t length, const weft__value *key)
{
    char *to = r->path + length;
    size_t left = PATH - length, n = left;
    const char *dot = length ? "." : "";
    if (key->tag == WEFT__P_INT)
        n = (size_t)snprintf(to, left, "%s%lld", dot, (long long)key->whole);
    else if (key->tag == WEFT__P_TEXT && key->n < left && !memchr(key->text, 0, key->n))
        n = (size_t)snprintf(to, left, "%s%.*s", dot, (int)key->n, key->text);
    else if (key->tag != WEFT__P_TEXT)
        return 0;
    if (n >= left)
        weft__weights_fail(r->w, WEFT_EFORMAT, "a name after %.100s has a 0 inside, or more than %d bytes",
                           r->path, PATH - 1);
    return r->w->status ? 0 : length + n;
}

/* Lists the tensors in a value. A dictionary inside itself is not listed again. */
static void walk(reader *r, const weft__value *v, size_t length, int depth)
{
    size_t step = v->tag == WEFT__P_DICT ? 2 : 1;
    r->foreign = v->tag == WEFT__P_FOREIGN ? v->text : r->foreign;
    if (v->tag == WEFT__P_TENSOR)
        add_tensor(r, v, length);
    if (v->tag < WEFT__P_TUPLE || v->tag > WEFT__P_DICT || v->items->visited)
        return;
    if (depth == DEPTH)
        weft__weights_fail(r->w, WEFT_EFORMAT, "%.200s is nested more than %d deep; expected a dictionary of "
                           "tensors", r->path, DEPTH);
    v->items->visited = true;
    for (size_t i = 0; i < v->items->n && !r->w->status; i += step) {
        const weft__value *item = &v->items->item[i + step - 1];
        weft__value index = { .tag = WEFT__P_INT, .whole = (int64_t)i };
        if (++r->visits > r->most)
            weft__weights_fail(r->w, WEFT_EFORMAT, "data.pkl has the same objects too often; expected a "
                               "dictionary of tensors");
        size_t more = item->tag < WEFT__P_TUPLE ? 0 : append_key(r, length, step == 2 ? item - 1 : &index);
        if (more)
            walk(r, item, more, depth + 1);
    }
    v->items->visited = false;
}

/* Lists the tensors in a value, and drops those of a list before. Returns their number. */
static int64_t list_tensors(reader *r, const weft__value *v)
{
    r->visits = 0;
    r->w->n = 0;
    walk(r, v, 0, 0);
    return r->w->n;
}

/* ---- the part with the weights ---- */
/* Returns the value at a path such as "a.b"; keys may contain dots. NULL: none. */
static const weft__value *find_part(const weft__value *v, const char *path)
{
    size_t n = strlen(path);
    const weft__value *found = NULL;
    for (size_t i = 0; v->tag == WEFT__P_DICT && i < v->items->n && !found; i += 2) {
        const weft__value *key = &v->items->item[i];
        if (key->tag != WEFT__P_TEXT || !key->n || key->n > n || memcmp(key->text, path, key->n))
            continue;
        if (key->n == n)
            found = key + 1;
        else if (path[key->n] == '.')
            found = find_part(key + 1, path + key->n + 1);
    }
    return found;
}

/* Lists the chosen part, or the dictionary of weights in a training checkpoint, under one of a few names. */
static void list_part(reader *r, const weft__value *top)
{
    static const char *const names[] = { "state_dict", "model_state_dict", "model",
                                         "module", "weights", "params" };
    const weft__value *part = r->w->part ? find_part(top, r->w->part) : top, *v;
    const char *name = NULL;
    if (!part)
        weft__weights_fail(r->w, WEFT_EFORMAT, "it has no part %.200s", r->w->part);
    for (size_t i = 0; i < sizeof names / sizeof *names && !r->w->part; i++)
        if ((v = find_part(top, names[i])) && v->tag == WEFT__P_DICT && list_tensors(r, v)) {
            part = name ? top : v;
            name = names[i];
        }
    if (part != top && name)
        weft__weights_fact(r->w, "part", "%s", name);
    if (part)
        list_tensors(r, part);
}

/* ---- facts ---- */
static bool is_plain_text(const weft__value *v)
{
    bool plain = v->tag == WEFT__P_TEXT && v->n && v->n <= TEXT;
    for (uint32_t i = 0; plain && i < v->n; i++)
        plain = v->text[i] >= ' ' && v->text[i] <= '~';
    return plain;
}

static void add_facts(reader *r, const weft__value *top)
{
    for (size_t i = 0; top->tag == WEFT__P_DICT && i < top->items->n && r->w->facts < FACTS; i += 2) {
        const weft__value *key = &top->items->item[i], *v = key + 1;
        const char *name = is_plain_text(key) ? weft__weights_text(r->w, key->text, key->n) : NULL;
        if (name && v->tag == WEFT__P_INT)
            weft__weights_fact(r->w, name, "%lld", (long long)v->whole);
        else if (name && v->tag == WEFT__P_REAL)
            weft__weights_fact(r->w, name, "%.9g", v->real);
        else if (name && is_plain_text(v))
            weft__weights_fact(r->w, name, "%.*s", (int)v->n, v->text);
    }
}

/* ---- the archive ---- */
static const weft__member *find_pickle(reader *r)
{
    for (int64_t i = 0; i < r->zip.n; i++) {
        const char *name = r->zip.member[i].name, *slash = strchr(name, '/');
        if (slash && !strcmp(slash, "/data.pkl")) {
            r->pickle = name;
            r->folder = (size_t)(slash + 1 - name);
            return &r->zip.member[i];
        }
    }
    weft__weights_fail(r->w, WEFT_EFORMAT, "the zip archive has no member data.pkl; expected a file of "
                       "torch.save");
    return NULL;
}

static void read_layout(reader *r)
{
    const weft__member *order = member_of(r, "byteorder", "", 0), *version = member_of(r, "version", "", 0);
    r->big = order && order->size == 3 && !memcmp(order->bytes, "big", 3);
    if (order && !r->big && (order->size != 6 || memcmp(order->bytes, "little", 6)))
        weft__weights_fail(r->w, WEFT_EFORMAT, "its byte order is unknown; expected \"little\" or \"big\"");
    weft__weights_fact(r->w, "format", "torch.save, version %c", version && version->size &&
                       version->bytes[0] >= '0' && version->bytes[0] <= '9' ? version->bytes[0] : '?');
}

void weft__read_torch(weft__weights *w)
{
    static const char advice[] = "in Python: torch.save(model.state_dict(), path)";
    reader r = { .w = w };
    weft__value top;
    const weft__member *pickle = weft__zip_list(w, &r.zip) ? find_pickle(&r) : NULL;
    if (!pickle)
        return;
    r.most = 4 * pickle->size + 1000;
    read_layout(&r);
    if (!weft__pickle_read(w, pickle, &top))
        return;
    list_part(&r, &top);
    add_facts(&r, &top);
    if (!w->n && r.foreign)
        weft__weights_fail(w, WEFT_EFORMAT, "it has no tensors, but an object of %.100s, which weft does not "
                           "create; %s", r.foreign, advice);
    else if (!w->n)
        weft__weights_fail(w, WEFT_EFORMAT, "it has no tensors; %s", advice);
}
