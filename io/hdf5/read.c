/* read.c - reads HDF5 files that may be damaged or hostile; see hdf5.h. */
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/session.h"

static const char bad_header[] = "its header is missing, ends outside the file, or has a wrong checksum";

enum { LINKS = 100000, NAME = 256 };

/* ---- objects ---- */
/* Follows a path by hard links only, and checks each header before libhdf5 reads it. Returns false if nothing
 * is there, and after an error: a soft or external link. */
bool weft__h5_find_header(weft__h5 *h, const char *path, weft__h5_header *header)
{
    char part[2 * NAME];
    if (h->status || strlen(path) >= sizeof part)
        return false;
    if (!strcmp(path, "/"))
        return weft__h5_read_header(h, h->root, header);
    for (const char *end = path; end;) {
        end = strchr(end + (end != path), '/');
        size_t n = end ? (size_t)(end - path) : strlen(path);
        memcpy(part, path, n);
        part[n] = 0;
        H5L_info_t info;
        htri_t exists = H5Lexists(h->file, part, H5P_DEFAULT);
        if (exists == 0)
            return false;
        if (exists < 0 || H5Lget_info(h->file, part, &info, H5P_DEFAULT) < 0)
            weft__h5_broken(h, part, "cannot be found");
        else if (info.type != H5L_TYPE_HARD)
            weft__h5_fail(h, WEFT_EFORMAT, "%s is a soft or external link; expected the object itself", part);
        else if (!weft__h5_read_header(h, info.u.address, header))
            weft__h5_fail(h, WEFT_EFORMAT, "%s is damaged: %s", part, bad_header);
        if (h->status)
            return false;
    }
    return true;
}

bool weft__h5_exists(weft__h5 *h, const char *path)
{
    return weft__h5_find_header(h, path, &(weft__h5_header){ 0 });
}

/* Describes the data set at a path. Returns false if it does not exist, and after an error. */
static bool find_set(weft__h5 *h, const char *path, weft__h5_set *s)
{
    weft__h5_header header = { 0 };
    bool exists = weft__h5_find_header(h, path, &header);
    const char *reason = exists ? weft__h5_describe_set(h, &header, s) : NULL;
    if (reason)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, reason);
    return exists && !reason;
}

bool weft__h5_find(weft__h5 *h, const char *path, weft__kind *k)
{
    weft__h5_set s = { .kind = { .type = WEFT__ODD } };
    bool found = find_set(h, path, &s);
    /* before memory is allocated for it; chunks may be compressed */
    if (found && !s.chunked && weft__kind_bytes(&s.kind) > h->read.size)
        weft__h5_fail(h, WEFT_EFORMAT, "%s is incomplete: the file lacks bytes of its shape", path);
    *k = s.kind;
    return found && !h->status;
}

/* ---- numbers ---- */
static void check_crc(weft__h5 *h, const char *path, const void *values, size_t bytes)
{
    uint32_t crc = 0;
    hid_t a = H5Aopen_by_name(h->file, path, WEFT__CRC, H5P_DEFAULT, H5P_DEFAULT),
          type = a < 0 ? H5I_INVALID_HID : H5Aget_type(a), space = a < 0 ? H5I_INVALID_HID : H5Aget_space(a);
    bool ok = type >= 0 && space >= 0 && H5Tequal(type, H5T_STD_U32LE) > 0 &&
              H5Sget_simple_extent_npoints(space) == 1 && H5Aread(a, H5T_STD_U32LE, &crc) >= 0;
    weft__turn(sizeof crc, &crc, sizeof crc);
    if (!ok)
        weft__h5_fail(h, WEFT_EFORMAT, "%s has no checksum", path);
    else if (crc != weft__crc32c(0, values, bytes))
        weft__h5_fail(h, WEFT_EFORMAT, "%s is damaged: its checksum is wrong", path);
    weft__h5_close(space);
    weft__h5_close(type);
    weft__h5_close(a);
}

/* Reads the bytes of the set as stored. Returns false after an error. */
static bool read_raw(weft__h5 *h, const char *path, const weft__h5_set *s, unsigned char *raw)
{
    size_t bytes = weft__kind_bytes(&s->kind);
    if (s->chunked)
        weft__h5_read_chunks(h, path, s, raw);
    else if (h->read.bytes)
        memcpy(raw, h->read.bytes + s->offset, bytes);
    else if (!weft__paged_pass(h->read.paged, s->offset, bytes, raw))
        weft__h5_fail(h, WEFT_EFORMAT, "%s cannot be read", path);
    return !h->status;
}

static void read_converted(weft__h5 *h, const char *path, const weft__h5_set *s, weft__number as,
                           void *values)
{
    size_t bytes = weft__kind_bytes(&s->kind);
    if (s->kind.type == as) {
        read_raw(h, path, s, values);
        return;
    }
    unsigned char *raw = calloc(bytes + 1, 1);
    if (!raw)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for the %zu bytes of %s", bytes, path);
    else if (read_raw(h, path, s, raw))
        h->status = weft__convert(h->path, path, &s->kind, as, h->origin, raw, values);
    free(raw);
}

static bool can_become(weft__number stored, weft__number requested)
{
    return stored == requested || (weft__number_is_int(stored) && weft__number_is_any(requested)) ||
           (weft__number_is_float(stored) && weft__number_is_float(requested));
}

void weft__h5_read(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as, void *values)
{
    char a[128], b[128];
    weft__h5_set s;
    if (!find_set(h, path, &s))
        weft__h5_fail(h, WEFT_EFORMAT, "%s is not in the file", path);
    else if (!weft__kind_same(&s.kind, kind) || !can_become(s.kind.type, as))
        weft__h5_fail(h, WEFT_EFORMAT, "%s is %s; expected %s", path, weft__kind_text(&s.kind, a),
                      weft__kind_text(kind, b));
    else if (s.unfit)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, s.unfit);
    else
        read_converted(h, path, &s, as, values);
    if (h->checked && !h->status)
        check_crc(h, path, values, weft__kind_bytes(kind));
    if (!h->status && s.kind.type == as)
        weft__turn(weft__number_bytes(as), values, weft__kind_bytes(kind));
}

void *weft__h5_read_new(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as,
                        int64_t *origin)
{
    size_t n = weft__kind_bytes(kind) / weft__number_bytes(kind->type);
    void *values = calloc(n + 1, weft__number_bytes(as));
    h->origin = origin;
    if (values)
        weft__h5_read(h, path, kind, as, values);
    else
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for the %zu numbers of \"%s\"", n, path);
    h->origin = NULL;
    return values;
}

bool weft__h5_find_list(weft__h5 *h, const char *group, const char *name, bool integers,
                        char path[WEFT__H5_PATH], weft__kind *kind)
{
    char text[128];
    if (!weft__h5_join(path, group, name) || !weft__h5_find(h, path, kind))
        weft__h5_fail(h, WEFT_EFORMAT, "data set \"%.200s\" is not in the file", path);
    else if (kind->rank != 1 || kind->size[0] >= INT32_MAX ||
             !(integers ? weft__number_is_int(kind->type) : weft__number_is_any(kind->type)))
        weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" is %s; expected %s [n]", path,
                      weft__kind_text(kind, text), integers ? "integers" : "numbers");
    return !h->status;
}

bool weft__h5_place(weft__h5 *h, const char *path, uint64_t *offset)
{
    weft__h5_set s;
    bool found = find_set(h, path, &s);
    const char *reason = found ? s.unfit : "is not in the file";
    if (reason)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, reason);
    *offset = s.offset;
    return !reason && !s.chunked;
}

/* ---- names ---- */
/* Names have the order of the file. To sort them libhdf5 would allocate a table of the size that the file
 * claims. If that size is wrong, libhdf5 frees entries that it never wrote. */
typedef struct {
    char name[NAME];
    haddr_t address;
} entry;
typedef struct {
    weft__h5 *h;
    const char *path;
    entry *list;
    int n;
} names;

static void keep_name(names *k, const char *name, haddr_t address)
{
    entry *more = weft__grown(k->list, k->n, sizeof *more);
    if (!more) {
        weft__h5_fail(k->h, WEFT_ENOMEM, "no memory for the %d names in %s", k->n + 1, k->path);
        return;
    }
    k->list = more;
    if (!*name || strlen(name) >= NAME || k->n == LINKS) {
        weft__h5_fail(k->h, WEFT_EFORMAT, "%s holds too much, or a name that is empty or too long", k->path);
        return;
    }
    snprintf(k->list[k->n].name, NAME, "%s", name);
    k->list[k->n++].address = address;
}

static herr_t keep_attribute(hid_t object, const char *name, const H5A_info_t *info, void *user)
{
    (void)object, (void)info;
    names *k = user;
    keep_name(k, name, HADDR_UNDEF);
    return weft__h5_status(k->h) ? 1 : 0;
}

static herr_t keep_link(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    (void)group;
    names *k = user;
    if (info->type != H5L_TYPE_HARD)
        weft__h5_fail(k->h, WEFT_EFORMAT, "%s/%.64s is a soft or external link; expected the object itself",
                      k->path, name);
    else
        keep_name(k, name, info->u.address);
    return weft__h5_status(k->h) ? 1 : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static void sort_names(names *k)
{
    if (k->n)
        qsort(k->list, (size_t)k->n, sizeof *k->list, by_name);
}

static void read_text(weft__h5 *h, const char *path, const char *key, char text[NAME])
{
    hid_t a = H5Aopen_by_name(h->file, path, key, H5P_DEFAULT, H5P_DEFAULT),
          type = a < 0 ? H5I_INVALID_HID : H5Aget_type(a), space = a < 0 ? H5I_INVALID_HID : H5Aget_space(a);
    memset(text, 0, NAME);
    if (a < 0)
        weft__h5_broken(h, path, "has an attribute that cannot be opened");
    else if (type < 0 || space < 0 || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
             H5Tget_size(type) >= NAME || H5Sget_simple_extent_npoints(space) != 1 ||
             H5Aread(a, type, text) < 0)
        weft__h5_fail(h, WEFT_EFORMAT, "%s: its attribute %s is not a short text", path, key);
    weft__h5_close(space);
    weft__h5_close(type);
    weft__h5_close(a);
}

void weft__h5_each_text(weft__h5 *h, const char *path, weft__h5_visit_text *visit, void *user)
{
    names k = { h, path, NULL, 0 };
    char text[NAME];
    if (!h->status && H5Aiterate_by_name(h->file, path, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, keep_attribute,
                                         &k, H5P_DEFAULT) < 0)
        weft__h5_broken(h, path, "has attributes that cannot be listed");
    sort_names(&k);
    for (int i = 0; i < k.n && !h->status; i++) {
        if (!strcmp(k.list[i].name, WEFT__CRC))
            continue;
        read_text(h, path, k.list[i].name, text);
        if (!h->status)
            visit(k.list[i].name, text, user);
    }
    free(k.list);
}

/* ---- groups ---- */
static bool is_group(weft__h5 *h, const char *path, const entry *e)
{
    weft__h5_header header;
    if (!weft__h5_read_header(h, e->address, &header))
        weft__h5_fail(h, WEFT_EFORMAT, "%s/%.64s is damaged: %s", path, e->name, bad_header);
    return !h->status && !header.layout.count;
}

void weft__h5_each(weft__h5 *h, const char *path, weft__h5_visit *visit, void *user)
{
    names k = { h, path, NULL, 0 };
    if (!h->status && H5Literate_by_name(h->file, path, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, keep_link, &k,
                                         H5P_DEFAULT) < 0)
        weft__h5_broken(h, path, "cannot be listed");
    sort_names(&k);
    for (int i = 0; i < k.n && !h->status; i++) {
        bool group = is_group(h, path, &k.list[i]);
        if (h->status || !visit(k.list[i].name, group, user))
            break;
    }
    free(k.list);
}
