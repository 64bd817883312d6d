/* memory.c - a driver for libhdf5 that reads a file in memory or page by page, never beyond its end.
 *
 * libhdf5's own "core" driver adds a buffer of metadata. A damaged file makes its sums of addresses and sizes
 * overflow: a block of 2^64 - 8 bytes seems adjacent to one at 0, and libhdf5 copies to an invalid address. A
 * driver without features has no such buffer, and each read is checked here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/session.h"

/* ---- pages ---- */
enum { PAGE = 1 << 14 };
/* a list, the last page used first */
struct weft__page { weft__page *next; size_t offset, n; unsigned char bytes[]; };

static bool fails(weft__paged *p, weft_status status, const char *reason)
{
    p->status = status;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
    return false;
}

bool weft__paged_pass(weft__paged *p, size_t offset, size_t n, void *to)
{
    if (p->status)
        return !n;
    int64_t received = weft__read_at(p->file, to, n, (int64_t)offset);
    if (received < 0)
        return fails(p, WEFT_EIO, strerror(errno));
    return (size_t)received == n || fails(p, WEFT_EIO, "the file became shorter after it was opened");
}

static weft__page *read_page(weft__paged *p, size_t from)
{
    size_t n = p->size - from < PAGE ? p->size - from : PAGE;
    weft__page *page = p->status ? NULL : malloc(sizeof *page + n);
    if (!page && !p->status)
        fails(p, WEFT_ENOMEM, "out of memory");
    if (!page || !weft__paged_pass(p, from, n, page->bytes)) {
        free(page);
        return NULL;
    }
    page->offset = from;
    page->n = n;
    page->next = p->first;
    return p->first = page;
}

/* Finds the page of this byte, and moves it to the front; NULL: it cannot be read. */
static weft__page *page_with(weft__paged *p, size_t offset)
{
    for (weft__page **link = &p->first, *page; (page = *link); link = &page->next)
        if (page->offset == offset - offset % PAGE) {
            *link = page->next;
            page->next = p->first;
            return p->first = page;
        }
    return read_page(p, offset - offset % PAGE);
}

bool weft__paged_read(weft__paged *p, size_t offset, size_t n, void *to)
{
    char *next = to;
    while (n) {
        const weft__page *page = page_with(p, offset);
        if (!page)
            return false;
        size_t from = offset - page->offset, count = page->n - from < n ? page->n - from : n;
        memcpy(next, page->bytes + from, count);
        next += count;
        offset += count;
        n -= count;
    }
    return true;
}

void weft__paged_end(weft__paged *p)
{
    for (weft__page *page; (page = p->first); free(page))
        p->first = page->next;
}

/* ---- bytes of the image ---- */
bool weft__h5_bytes(const weft__h5_image *i, size_t offset, size_t n, void *to)
{
    if (offset > i->size || n > i->size - offset)
        return false;
    if (i->bytes)
        memcpy(to, i->bytes + offset, n);
    return i->bytes || weft__paged_read(i->paged, offset, n, to);
}

bool weft__h5_has_text(const weft__h5 *h, size_t offset, const char *text, size_t n)
{
    char bytes[8];
    return weft__h5_bytes(&h->read, offset, n, bytes) && !memcmp(bytes, text, n);
}

bool weft__h5_inside(const weft__h5 *h, size_t end, uint64_t address, uint64_t n, size_t *offset)
{
    size_t base = (size_t)h->read.libhdf5_s.base_addr, size = end - base;
    *offset = base + (size_t)address;
    return address <= size && n <= size - address;
}

/* ---- the driver ---- */
/* Allocates nothing: the session holds libhdf5's part of an open file. */
static H5FD_t *open_image(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    weft__h5_image *const *given = H5Pget_driver_info(access);
    (void)name, (void)flags, (void)most;
    return given ? &(*given)->libhdf5_s : NULL;
}

static weft__h5_image *image_of(const H5FD_t *f) { return (weft__h5_image *)(uintptr_t)f; }
static herr_t close_image(H5FD_t *f)             { (void)f; return 0; }
static haddr_t end_of_use(const H5FD_t *f, H5FD_mem_t type) { (void)type; return image_of(f)->end; }
static haddr_t end_of_file(const H5FD_t *f, H5FD_mem_t type)
{
    (void)type;
    return image_of(f)->output ? image_of(f)->written : image_of(f)->size;
}

/* libhdf5 allocates memory for data before this end. */
static herr_t set_end_of_use(H5FD_t *f, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    if (end > image_of(f)->size)
        return -1;
    image_of(f)->end = end;
    return 0;
}

static herr_t read_image(H5FD_t *f, H5FD_mem_t type, hid_t transfer, haddr_t offset, size_t n, void *to)
{
    (void)type, (void)transfer;
    return weft__h5_bytes(image_of(f), (size_t)offset, n, to) ? 0 : -1;
}

static herr_t write_image(H5FD_t *f, H5FD_mem_t type, hid_t transfer, haddr_t offset, size_t n,
                          const void *from)
{
    weft__h5_image *i = image_of(f);
    (void)type, (void)transfer;
    if (!i->output || offset > i->size || n > i->size - offset)
        return -1;
    memcpy(i->bytes + offset, from, n);
    i->written = offset + n > i->written ? (size_t)offset + n : i->written;
    return 0;
}

/* A file that is written has the features of libhdf5's "core" driver, because they decide the positions of
 * data. */
static herr_t features(const H5FD_t *f, unsigned long *flags)
{
    const weft__h5_image *i = f ? image_of(f) : NULL;
    if (flags && i && i->output)
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                 H5FD_FEAT_AGGREGATE_SMALLDATA;
    else if (flags)
        *flags = i && i->swmr ? H5FD_FEAT_SUPPORTS_SWMR_IO : 0;
    return 0;
}

static const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)511,
#endif
    .name = "weft image",
    .maxaddr = HADDR_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(weft__h5_image *),
    .open = open_image,
    .close = close_image,
    .query = features,
    .get_eoa = end_of_use,
    .set_eoa = set_end_of_use,
    .get_eof = end_of_file,
    .read = read_image,
    .write = write_image,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t weft__h5_open_image(weft__h5_image *image, hid_t creation)
{
    static const char name[] = "weft image";
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
    image->driver = H5FDregister(&driver);
    if (list >= 0 && image->driver >= 0 && H5Pset_driver(list, image->driver, &image) >= 0 &&
        H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) >= 0 &&
        /* a wrong checksum stays wrong; for a file with a writer, libhdf5 would sleep and read again */
        H5Pset_metadata_read_attempts(list, 1) >= 0 &&
        (!image->output || H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0))
        file = image->output ? H5Fcreate(name, H5F_ACC_TRUNC, creation, list) :
                           H5Fopen(name, H5F_ACC_RDONLY | (image->swmr ? H5F_ACC_SWMR_READ : 0), list);
    weft__h5_close(list);
    return file;
}
