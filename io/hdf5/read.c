/* read.c - reading HDF5 files in memory, with suspicion; see hdf5.h. */
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/session.h"

static const char bad_header[] = "its header is none, goes beyond the file, or does not fit its checksum";

enum { LINKS = 100000, NAME = 256 };

/* ---- objects ---- */
/* Follows a path only by hard links, and looks at each header before libhdf5 does; false if there is
 * nothing, or at an error: a soft or external link. */
static bool follow_path(weft__h5 *h, const char *path, weft__h5_header *header)
{
    char part[2 * NAME];
    if (h->status || strlen(path) >= sizeof part)
        return false;
    for (const char *end = path; end; ) {
        end = strchr(end + (end != path), '/');
        size_t n = end ? (size_t)(end - path) : strlen(path);
        memcpy(part, path, n);
        part[n] = 0;
        H5L_info_t info;
        htri_t is = H5Lexists(h->file, part, H5P_DEFAULT);
        if (is == 0)
            return false;
        if (is < 0 || H5Lget_info(h->file, part, &info, H5P_DEFAULT) < 0)
            weft__h5_broken(h, part, "cannot be found");
        else if (info.type != H5L_TYPE_HARD)
            weft__h5_fail(h, WEFT_EFORMAT, "%s is a link to somewhere else", part);
        else if (!weft__h5_look(h, info.u.address, header))
            weft__h5_fail(h, WEFT_EFORMAT, "%s is damaged: %s", part, bad_header);
        if (h->status)
            return false;
    }
    return true;
}

bool weft__h5_is(weft__h5 *h, const char *path) { return follow_path(h, path, &(weft__h5_header){ 0 }); }

static const char *not_plain(bool filtered)
{
    return filtered ? "is compressed; only plain arrays are read" :
                      "is stored in chunks or elsewhere; only plain arrays are read";
}

/* Why a set with this header is not opened; NULL: it is. */
static const char *refused(const weft__h5 *h, const weft__h5_header *header)
{
    weft__h5_chunks c;
    if (!header->set)
        return "is not a data set";
    if (header->chunked)
        return h->checked ? not_plain(header->filtered) : weft__h5_chunked(h, header, &c);
    return header->filtered || header->external ?
               "has filters or lies in another file; only plain arrays are read" :
               NULL;
}

/* Less than 0: not there, or an error, or header->odd: of a type that is not read, so it stays closed. */
static hid_t open_set(weft__h5 *h, const char *path, weft__h5_header *header)
{
    *header = (weft__h5_header){ 0 };
    bool there = follow_path(h, path, header);
    const char *why = there ? refused(h, header) : NULL;
    if (why)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, why);
    header->odd = there && header->odd && !why;
    if (!there || why || header->odd)
        return H5I_INVALID_HID;
    hid_t object = H5Oopen(h->file, path, H5P_DEFAULT);
    if (object >= 0 && H5Iget_type(object) == H5I_DATASET)
        return object;
    if (object < 0)
        weft__h5_broken(h, path, "cannot be opened");
    else
        weft__h5_fail(h, WEFT_EFORMAT, "%s is not a data set", path);
    weft__h5_close(object);
    return H5I_INVALID_HID;
}

/* ---- kinds ---- */
static void type_of(hid_t set, weft__kind *k)    /* into k->type; of a text its bytes, too */
{
    hid_t type = H5Dget_type(set);
    k->type = weft__h5_number(type);
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && k->rank == 0) {
        k->type = WEFT__CHARS;
        k->rank = 1;
        k->size[0] = (int64_t)H5Tget_size(type);
    }
    weft__h5_close(type);
}

static bool kind_of(hid_t set, weft__kind *k)
{
    hsize_t size[WEFT_RANK];
    hid_t space = H5Dget_space(set);
    H5S_class_t shape = space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    int rank = shape == H5S_SIMPLE ? H5Sget_simple_extent_ndims(space) : 0;
    bool good = (shape == H5S_SCALAR || shape == H5S_SIMPLE) && rank >= 0 && rank <= WEFT_RANK &&
                (rank == 0 || H5Sget_simple_extent_dims(space, size, NULL) == rank);
    weft__h5_close(space);
    *k = (weft__kind){ .type = WEFT__ODD, .rank = good ? rank : 0 };
    for (int i = 0; i < k->rank; i++)
        k->size[i] = size[i] > INT64_MAX ? INT64_MAX : (int64_t)size[i];
    if (good)
        type_of(set, k);
    return good;
}

/* ---- storage ---- */
/* Before the end that the superblock names: of what lies behind it libhdf5 refuses some reads and not others,
 * as its buffer has it. Numbers that were never written lie nowhere. */
static bool in_use(const weft__h5 *h, haddr_t at, size_t bytes)
{
    return at == HADDR_UNDEF || (at <= h->read.end && bytes <= h->read.end - at);
}

/* why its storage is not a plain array; NULL if it is */
static const char *unfit(const weft__h5 *h, hid_t set, size_t bytes)
{
    hid_t list = H5Dget_create_plist(set);
    H5D_layout_t layout = list < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(list);
    int filters = list < 0 ? -1 : H5Pget_nfilters(list),
        outside = list < 0 ? -1 : H5Pget_external_count(list);
    weft__h5_close(list);
    if (layout != H5D_CONTIGUOUS && (h->checked || layout != H5D_COMPACT))
        return not_plain(filters > 0);
    if (filters || outside)
        return "has filters or lies in another file; only plain arrays are read";
    if (bytes > h->size || H5Dget_storage_size(set) != bytes)
        return "does not have the bytes that its shape needs";
    if (layout == H5D_CONTIGUOUS && bytes && !in_use(h, H5Dget_offset(set), bytes))
        return "lies beyond the end of the file that the file itself names";
    return NULL;
}

bool weft__h5_find(weft__h5 *h, const char *path, weft__kind *k)
{
    weft__h5_header header;
    hid_t set = open_set(h, path, &header);
    *k = (weft__kind){ .type = WEFT__ODD };
    if (set < 0)
        return header.odd;
    /* more bytes than the file has: told before memory is taken for them; chunks may be compressed */
    const char *why = !kind_of(set, k) ? "has a shape that cannot be read" :
                      !header.chunked && weft__kind_bytes(k) > h->size ? unfit(h, set, SIZE_MAX) :
                                                                         NULL;
    if (why)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, why);
    weft__h5_close(set);
    return !h->status;
}

/* ---- numbers ---- */
static void check_crc(weft__h5 *h, hid_t set, const char *path, const void *values, size_t bytes)
{
    uint32_t crc = 0;
    hid_t a = H5Aexists(set, WEFT__CRC) > 0 ? H5Aopen(set, WEFT__CRC, H5P_DEFAULT) : H5I_INVALID_HID;
    hid_t type = a < 0 ? H5I_INVALID_HID : H5Aget_type(a), space = a < 0 ? H5I_INVALID_HID : H5Aget_space(a);
    bool good = type >= 0 && space >= 0 && H5Tequal(type, H5T_STD_U32LE) > 0 &&
                H5Sget_simple_extent_npoints(space) == 1 && H5Aread(a, H5T_STD_U32LE, &crc) >= 0;
    if (!good)
        weft__h5_fail(h, WEFT_EFORMAT, "%s has no checksum", path);
    else if (crc != weft__crc32c(0, values, bytes))
        weft__h5_fail(h, WEFT_EFORMAT, "%s is damaged: its checksum is wrong", path);
    weft__h5_close(space);
    weft__h5_close(type);
    weft__h5_close(a);
}

/* The bytes of a plain set as they are in the file. */
static void read_as_it_is(weft__h5 *h, hid_t set, const char *path, void *raw)
{
    hid_t type = H5Dget_type(set);
    if (type < 0 || H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw) < 0)
        weft__h5_broken(h, path, "cannot be read");
    weft__h5_close(type);
}

/* The bytes of any set; false: an error. */
static bool read_raw(weft__h5 *h, hid_t set, const char *path, const weft__h5_header *header,
                     const weft__kind *want, unsigned char *raw)
{
    weft__h5_chunks c;
    if (!header->chunked)
        read_as_it_is(h, set, path, raw);
    else if (!weft__h5_chunked(h, header, &c))   /* NULL: as it was when the set was opened */
        weft__h5_read_chunks(h, path, &c, want, raw);
    return !h->status;
}

static void read_converted(weft__h5 *h, hid_t set, const char *path, const weft__h5_header *header,
                           const weft__kind *want, weft__number as, void *values)
{
    if (want->type == as) {
        read_raw(h, set, path, header, want, values);
        return;
    }
    unsigned char *raw = calloc(weft__kind_bytes(want) + 1, 1);
    if (!raw)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for the %zu bytes of %s", weft__kind_bytes(want), path);
    else if (read_raw(h, set, path, header, want, raw))
        weft__h5_convert(h, path, want, as, raw, values);
    free(raw);
}

static bool can_become(weft__number is, weft__number as)
{
    return is == as || (weft__number_is_int(is) && (weft__number_is_int(as) || weft__number_is_float(as))) ||
           (weft__number_is_float(is) && weft__number_is_float(as));
}

static void read_set(weft__h5 *h, hid_t set, const char *path, const weft__h5_header *header,
                     const weft__kind *want, weft__number as, void *values)
{
    char a[128], b[128];
    weft__kind is = { .type = WEFT__ODD };
    size_t bytes = weft__kind_bytes(want);
    if (set < 0 || !kind_of(set, &is) || !weft__kind_same(&is, want) || !can_become(is.type, as)) {
        weft__h5_fail(h, WEFT_EFORMAT, "%s is %s, expected is %s", path, weft__kind_text(&is, a),
                      weft__kind_text(want, b));
        return;
    }
    const char *why = header->chunked ? NULL : unfit(h, set, bytes);
    if (why)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, why);
    else
        read_converted(h, set, path, header, want, as, values);
    if (h->checked && !h->status)
        check_crc(h, set, path, values, bytes);
}

void weft__h5_read(weft__h5 *h, const char *path, const weft__kind *want, weft__number as, void *values)
{
    weft__h5_header header;
    hid_t set = open_set(h, path, &header);
    if (set >= 0 || header.odd)
        read_set(h, set, path, &header, want, as, values);
    else
        weft__h5_fail(h, WEFT_EFORMAT, "%s is not in the file", path);
    weft__h5_close(set);
}

bool weft__h5_place(weft__h5 *h, const char *path, const weft__kind *want, uint64_t *at)
{
    weft__h5_header header;
    size_t bytes = weft__kind_bytes(want);
    hid_t set = open_set(h, path, &header);
    const char *why = set < 0 ? "is not in the file" : header.chunked ? NULL : unfit(h, set, bytes);
    *at = why || header.chunked ? HADDR_UNDEF : H5Dget_offset(set);
    if (why)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, why);
    weft__h5_close(set);
    return !h->status && *at <= h->size && bytes <= h->size - *at;
}

/* ---- texts ---- */
static bool read_text(hid_t a, char *text, size_t size)
{
    hid_t type = H5Aget_type(a), space = H5Aget_space(a);
    bool good = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
                H5Tis_variable_str(type) == 0 && H5Tget_size(type) < size &&
                H5Sget_simple_extent_npoints(space) == 1;
    memset(text, 0, size);
    good = good && H5Aread(a, type, text) >= 0;
    weft__h5_close(space);
    weft__h5_close(type);
    return good;
}

bool weft__h5_text(weft__h5 *h, const char *path, const char *key, char *text, size_t size)
{
    *text = 0;
    htri_t is = h->status ? 0 : H5Aexists_by_name(h->file, path, key, H5P_DEFAULT);
    if (is == 0)
        return false;
    hid_t a = is < 0 ? H5I_INVALID_HID : H5Aopen_by_name(h->file, path, key, H5P_DEFAULT, H5P_DEFAULT);
    if (a < 0)
        weft__h5_broken(h, path, "has an attribute that cannot be opened");
    else if (!read_text(a, text, size))
        weft__h5_fail(h, WEFT_EFORMAT, "%s: its attribute %s is not a short text", path, key);
    weft__h5_close(a);
    return !h->status;
}

static size_t append_note(weft__h5 *h, const char *path, const char *key, char *text, size_t at, size_t size)
{
    char value[NAME];
    if (!strcmp(key, WEFT__CRC) || !weft__h5_text(h, path, key, value, sizeof value))
        return at;
    int n = snprintf(text + at, size - at, "%s%s %s", at ? ", " : "", key, value);
    if (n < 0 || (size_t)n >= size - at) {
        weft__h5_fail(h, WEFT_EFORMAT, "%s has too many attributes", path);
        return at;
    }
    return at + (size_t)n;
}

/* ---- names ---- libhdf5 is asked for them in the order in which it has them ---- */
/* To sort them it makes a table of as many as the file says that there are, and if that is not true, frees
 * what it never wrote. */
typedef struct { char name[NAME]; haddr_t address; } entry;
typedef struct { weft__h5 *h; const char *path; entry *list; int n, room; } names;

static void keep_name(names *k, const char *name, haddr_t address)
{
    if (k->n == k->room) {
        int room = 2 * k->room + 16;
        entry *more = realloc(k->list, (size_t)room * sizeof *more);
        if (!more) {
            weft__h5_fail(k->h, WEFT_ENOMEM, "no memory for the %d names in %s", room, k->path);
            return;
        }
        k->list = more;
        k->room = room;
    }
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
        weft__h5_fail(k->h, WEFT_EFORMAT, "%s/%.64s is a link to somewhere else", k->path, name);
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

void weft__h5_notes(weft__h5 *h, const char *path, char *text, size_t size)
{
    names k = { h, path, NULL, 0, 0 };
    size_t at = 0;
    *text = 0;
    if (!h->status && H5Aiterate_by_name(h->file, path, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, keep_attribute,
                                         &k, H5P_DEFAULT) < 0)
        weft__h5_broken(h, path, "has attributes that cannot be listed");
    sort_names(&k);
    for (int i = 0; i < k.n && !h->status; i++)
        at = append_note(h, path, k.list[i].name, text, at, size);
    free(k.list);
}

/* ---- groups ---- */
static bool is_group(weft__h5 *h, const char *path, const entry *e)
{
    weft__h5_header header;
    if (!weft__h5_look(h, e->address, &header))
        weft__h5_fail(h, WEFT_EFORMAT, "%s/%.64s is damaged: %s", path, e->name, bad_header);
    return !h->status && !header.set;
}

void weft__h5_each(weft__h5 *h, const char *path, weft__h5_visit *visit, void *user)
{
    names k = { h, path, NULL, 0, 0 };
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
