/* paged.c - reads and keeps the pages of a file that are needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/hdf5.h"

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
