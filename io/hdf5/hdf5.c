/* hdf5.c - sessions on HDF5 files in memory, their errors, and writing; see hdf5.h. */
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/session.h"

/* ---- errors ---- */
weft_status weft__h5_status(const weft__h5 *h) { return h->status; }

void weft__h5_fail(weft__h5 *h, weft_status status, const char *format, ...)
{
    char text[512];
    if (h->status)
        return;
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    h->status = weft__file_fail(status, "%s: %s", h->path, text);
}

static herr_t innermost(unsigned n, const H5E_error2_t *error, void *user)
{
    if (n == 0 && error->desc)
        snprintf(user, 160, ": %s", error->desc);
    return 0;
}

void weft__h5_broken(weft__h5 *h, const char *path, const char *problem)
{
    char reason[160] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, reason);
    weft__h5_fail(h, h->read.output ? WEFT_ENOMEM : WEFT_EFORMAT, "%s %s%s", path, problem, reason);
}

/* ---- the image ---- *
 * libhdf5 writes into our memory through the driver of memory.c. A failed allocation in the middle of an
 * operation would leave it with objects that it cannot close. So the image is enlarged before each operation
 * by the most that it may need; running out of memory there is an ordinary error. */
enum { SLACK = 1 << 17 };                        /* the most metadata of one operation */

/* Without memory for its own structures libhdf5 may crash. So a session first allocates more than those need,
 * and frees it for libhdf5 to use: see docs/design/checkpoints.md. */
enum { TO_BEGIN = 16 << 20, TO_GO_ON = 1 << 20 };

static bool has_plenty(weft__h5 *h, size_t bytes)
{
    if (!weft__has_memory(bytes))
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for libhdf5, which may need %zu MB", bytes >> 20);
    return !h->status;
}

/* Replaces the image by a larger one; the new bytes are zero. */
static void enlarge(weft__h5 *h, size_t size)
{
    unsigned char *larger = calloc(1, size);
    if (!larger) {
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for a file of %zu bytes", size);
        return;
    }
    if (h->read.size)
        memcpy(larger, h->read.bytes, h->read.size);
    free(h->read.bytes);
    h->read.bytes = larger;
    h->read.size = size;
}

static bool reserve(weft__h5 *h, size_t bytes)
{
    size_t most = SIZE_MAX / 4, end = (size_t)h->read.end;
    if (h->status || !has_plenty(h, TO_GO_ON))
        return false;
    if (bytes > most)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for a file of more than %zu bytes", most);
    else if (end + bytes + SLACK > h->read.size)
        enlarge(h, end + bytes + SLACK > 2 * h->read.size ? end + bytes + SLACK : 2 * h->read.size);
    return !h->status;
}

/* ---- sessions ---- */
static weft__h5 *begin_file(const char *path, bool checked)
{
    weft__h5 *h = calloc(1, sizeof *h);
    if (!h) {
        weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
        return NULL;
    }
    h->path = path;
    h->checked = checked;
    h->file = H5I_INVALID_HID;
    if (!has_plenty(h, TO_BEGIN)) {
        free(h);
        return NULL;
    }
    /* libhdf5 may be thread-safe for single calls, but not for a sequence of calls */
    weft__lock(WEFT__FILES);
    H5Eget_auto2(H5E_DEFAULT, &h->print, &h->print_user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (H5PLget_loading_state(&h->plugins) >= 0)
        H5PLset_loading_state(0);                /* a file must not make libhdf5 load code */
    return h;
}

static weft_status end_file(weft__h5 *h)
{
    if (h->file >= 0 && H5Fclose(h->file) < 0)
        weft__h5_broken(h, "the file", "cannot be closed");
    if (h->read.driver > 0)                      /* H5Fclose still calls it */
        H5FDunregister(h->read.driver);
    H5PLset_loading_state(h->plugins);
    H5Eset_auto2(H5E_DEFAULT, h->print, h->print_user);
    weft__unlock(WEFT__FILES);
    return h->status;
}

weft__h5 *weft__h5_new(const char *path, size_t user_block, bool checked)
{
    weft__h5 *h = begin_file(path, checked);
    if (!h)
        return NULL;
    h->owns = h->read.output = true;
    if (!reserve(h, user_block))
        return h;
    hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    if (creation >= 0 && H5Pset_userblock(creation, user_block) >= 0 &&
        H5Pset_obj_track_times(creation, 0) >= 0)
        h->file = weft__h5_open_image(&h->read, creation);
    if (h->file < 0)
        weft__h5_broken(h, "the file", "cannot be created");
    weft__h5_close(creation);
    return h;
}

static weft__h5 *open_image(weft__h5 *h, weft__h5_image image)
{
    if (!h)
        return NULL;
    h->read = image;
    if (!weft__h5_root_is_sound(h))              /* the first failure counts */
        weft__h5_fail(h, WEFT_EFORMAT, "the file is damaged: its root is not a group");
    else if ((h->file = weft__h5_open_image(&h->read, H5P_DEFAULT)) < 0)
        weft__h5_broken(h, "the file", "cannot be opened");
    return h;
}

weft__h5 *weft__h5_open(const char *path, unsigned char *image, size_t size, bool checked)
{
    return open_image(begin_file(path, checked), (weft__h5_image){ .bytes = image, .size = size });
}

weft__h5 *weft__h5_open_paged(const char *path, weft__paged *paged)
{
    return open_image(begin_file(path, false), (weft__h5_image){ .paged = paged, .size = paged->size });
}

/* Fails if the file has no HDF5 signature at byte 0, 512, 1024 and so on. */
static weft_status check_signature(const char *path, const unsigned char *bytes, size_t head, size_t size)
{
    static const char sign[] = "\211HDF\r\n\032\n";
    enum { N = sizeof sign - 1 };
    char signature[N];
    int file = -1;
    bool found = head >= N && !memcmp(bytes, sign, N);
    weft_status s = found ? WEFT_OK : weft__open_file(path, &file, &size);
    for (size_t base = 512; !found && !s && base < size; base *= 2)      /* after a user block */
        found = weft__read_at(file, signature, N, (int64_t)base) == N && !memcmp(signature, sign, N);
    if (file >= 0)
        weft__close_file(file);
    if (s || found)
        return s;
    return weft__file_fail(WEFT_EFORMAT, "%s: not an HDF5 file; expected its signature at byte 0, 512, 1024, "
                                         "2048 ..",
                           path);
}

weft_status weft__h5_open_file(const char *path, weft__h5 **h)
{
    unsigned char *image;
    size_t size;
    weft_status s = weft__read_file(path, check_signature, &image, &size);
    *h = s ? NULL : weft__h5_open(path, image, size, false);
    if (*h)
        (*h)->owns = true;
    else if (!s)
        free(image);
    return s || *h ? s : WEFT_ENOMEM;
}

weft_status weft__h5_end(weft__h5 *h)
{
    weft_status s = end_file(h);
    weft__paged *paged = h->read.paged;
    if (paged && paged->status)
        s = weft__file_fail(paged->status, "%s: cannot be read: %s", h->path, paged->reason);
    if (paged)
        weft__paged_end(paged);
    if (h->owns)
        free(h->read.bytes);
    free(h);
    return s;
}

weft_status weft__h5_finish(weft__h5 *h, unsigned char **image, size_t *size)
{
    if (reserve(h, 0) && H5Fflush(h->file, H5F_SCOPE_GLOBAL) < 0)
        weft__h5_broken(h, "the file", "cannot be finished");
    *size = (size_t)h->read.end;
    weft_status s = end_file(h);
    if (s)
        free(h->read.bytes);
    *image = s ? NULL : h->read.bytes;
    free(h);
    return s;
}

weft_status weft__h5_write_file(weft__h5 *h)
{
    const char *path = h->path;
    unsigned char *image;
    size_t size;
    weft_status s = weft__h5_finish(h, &image, &size);
    if (!s)
        s = weft__write_file(path, &(weft__span){ image, size }, 1);
    free(image);
    return s;
}

/* ---- writing ---- */
/* A float of 16 bits, as h5py writes it: float16 has 10 bits of fraction, bfloat16 has 7. */
static hid_t short_float(size_t fraction)
{
    hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    size_t exponent = 15 - fraction;
    if (t >= 0 && (H5Tset_fields(t, 15, fraction, exponent, 0, fraction) < 0 ||
                   H5Tset_ebias(t, ((size_t)1 << (exponent - 1)) - 1) < 0 || H5Tset_size(t, 2) < 0)) {
        H5Tclose(t);
        t = H5I_INVALID_HID;
    }
    return t;
}

/* Returns libhdf5's type for one that is written, to be closed; text: bytes of a text. */
static hid_t type_of(weft__number type, size_t text)
{
    const hid_t plain[] = {
        [WEFT__F32] = H5T_IEEE_F32LE, [WEFT__F64] = H5T_IEEE_F64LE, [WEFT__I8] = H5T_STD_I8LE,
        [WEFT__I16] = H5T_STD_I16LE,  [WEFT__I32] = H5T_STD_I32LE,  [WEFT__I64] = H5T_STD_I64LE,
        [WEFT__U8] = H5T_STD_U8LE,    [WEFT__U16] = H5T_STD_U16LE,  [WEFT__U32] = H5T_STD_U32LE,
        [WEFT__U64] = H5T_STD_U64LE
    };
    if (type == WEFT__F16 || type == WEFT__BF16)
        return short_float(type == WEFT__F16 ? 10 : 7);
    if (type < WEFT__CHARS)
        return H5Tcopy(plain[type]);
    hid_t t = type == WEFT__CHARS ? H5Tcopy(H5T_C_S1) : H5I_INVALID_HID;
    if (t < 0 || (H5Tset_size(t, text) >= 0 && H5Tset_cset(t, H5T_CSET_UTF8) >= 0))
        return t;
    H5Tclose(t);
    return H5I_INVALID_HID;
}

void weft__h5_group(weft__h5 *h, const char *path)
{
    if (!reserve(h, 0))
        return;
    hid_t list = H5Pcreate(H5P_GROUP_CREATE), group = H5I_INVALID_HID;
    if (list >= 0 && H5Pset_obj_track_times(list, 0) >= 0)
        group = H5Gcreate2(h->file, path, H5P_DEFAULT, list, H5P_DEFAULT);
    if (group < 0)
        weft__h5_broken(h, path, "cannot be created");
    weft__h5_close(group);
    weft__h5_close(list);
}

bool weft__h5_join(char path[WEFT__H5_PATH], const char *group, const char *name)
{
    enum { ROOM = WEFT__H5_PATH };
    size_t length = 0, n;
    for (const char *part = group ? group : ""; *part && length < ROOM; part += n + (part[n] == '/')) {
        n = strcspn(part, "/");
        if (n > 1 || (n == 1 && *part != '.'))
            length += (size_t)snprintf(path + length, ROOM - length, "%.*s/", n < ROOM ? (int)n : ROOM, part);
    }
    return length < ROOM && snprintf(path + length, ROOM - length, "%s", name) < ROOM - (int)length;
}

void weft__h5_groups(weft__h5 *h, const char *path)
{
    char group[WEFT__H5_PATH];
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        snprintf(group, sizeof group, "%.*s", (int)(end - path), path);
        weft__h5_group(h, group);
    }
}

static void attribute(weft__h5 *h, const char *path, const char *key, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR), a = H5I_INVALID_HID;
    if (space >= 0 && type >= 0)
        a = H5Acreate_by_name(h->file, path, key, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (a < 0 || H5Awrite(a, type, value) < 0)
        weft__h5_broken(h, path, "cannot get its attribute");
    weft__h5_close(a);
    weft__h5_close(space);
}

void weft__h5_describe(weft__h5 *h, const char *path, const char *key, const char *text)
{
    if (!reserve(h, strlen(text)))
        return;
    hid_t type = type_of(WEFT__CHARS, strlen(text) + 1);
    attribute(h, path, key, type, text);
    weft__h5_close(type);
}

/* Returns the values as files store them; *copy is to be freed. */
static const void *in_file_order(weft__h5 *h, const weft__kind *k, const void *values, void **copy)
{
    if (WEFT__LITTLE || !values)
        return values;
    size_t bytes = weft__kind_bytes(k);
    *copy = malloc(bytes + 1);
    if (!*copy) {
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for %zu bytes", bytes);
        return values;
    }
    weft__turn(weft__number_bytes(k->type), memcpy(*copy, values, bytes), bytes);
    return *copy;
}

void weft__h5_write(weft__h5 *h, const char *path, const weft__kind *k, const void *values)
{
    if (!reserve(h, weft__kind_bytes(k)))
        return;
    hsize_t size[WEFT_RANK] = { 0 };
    for (int i = 0; i < k->rank; i++)
        size[i] = (hsize_t)k->size[i];
    bool text = k->type == WEFT__CHARS;          /* one string of that many bytes */
    hid_t type = type_of(k->type, (size_t)k->size[0]), set = H5I_INVALID_HID,
          list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = k->rank && !text ? H5Screate_simple(k->rank, size, NULL) : H5Screate(H5S_SCALAR);
    if (type >= 0 && space >= 0 && list >= 0 && H5Pset_obj_track_times(list, 0) >= 0 &&
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0)
        set = H5Dcreate2(h->file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    void *turned = NULL;
    values = in_file_order(h, k, values, &turned);
    if (set < 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values ? values : "") < 0)
        weft__h5_broken(h, path, "cannot be stored");
    uint32_t crc = weft__crc32c(0, values, weft__kind_bytes(k));
    free(turned);
    weft__turn(sizeof crc, &crc, sizeof crc);
    if (h->checked && !h->status)
        attribute(h, path, WEFT__CRC, H5T_STD_U32LE, &crc);
    weft__h5_close(set);
    weft__h5_close(list);
    weft__h5_close(space);
    weft__h5_close(type);
}
