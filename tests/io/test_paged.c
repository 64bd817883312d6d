/* test_paged.c - a file that is read page by page: what was read once stays as it was. */
#include <fcntl.h>
#include "io/hdf5/hdf5.h"
#include "sets.h"

Test(paged, libhdf5_sees_what_was_looked_at)
{
    const char *path = in_folder("pages");
    unsigned char x[40000], y[40000];
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)dice(256);
    write_bytes(path, x, sizeof x);
    weft__paged p = { .file = open(path, O_RDONLY | O_CLOEXEC), .size = sizeof x };
    cr_assert(weft__paged_read(&p, 100, 20000, y) && !memcmp(x + 100, y, 20000));
    memset(y, 7, sizeof y);
    int f = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert(pwrite(f, y, sizeof y, 0) == (ssize_t)sizeof y);
    cr_assert(weft__paged_read(&p, 5, 30000, y) && !memcmp(x + 5, y, 30000));
    cr_assert(weft__paged_read(&p, 39990, 10, y) && y[0] == 7);
    cr_assert(!ftruncate(f, 0) && weft__paged_read(&p, 0, 40000, y) && !p.status);
    weft__paged_end(&p);
    cr_assert(!weft__paged_read(&p, 0, 1, y) && p.status == WEFT_EIO && strstr(p.why, "shorter"));
    close(p.file), close(f);
    end_folder();
}
