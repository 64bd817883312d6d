/* test_series_memory.c - tests failed allocations while frames grow, are written and read. Each allocation of
 * weft fails once, and the frame does not change. */
#include <hdf5.h>
#include "series_data.h"
#include "tests/failing_malloc.h"

static const char *table, *mixed, *whole;        /* files */
static weft_frame f;

static weft_status adds(void)
{
    static const double a[300];
    return weft_frame_add(&f, "x", WEFT_NAMES("a", "b"), (const double *const[]){ a, a }, 300);
}
static weft_status first(void)
{
    scoped_frame g = { 0 };
    static const double a[3];
    weft_status s =
        weft_frame_add(&g, NULL, WEFT_NAMES("a", "b", "c"), (const double *const[]){ a, a, a }, 3);
    cr_assert(s == WEFT_OK ? g.n == 1 : g.n == 0 && g.columns == 0 && g.rows == 0);
    failing.armed = false;                               /* a failed call can be repeated */
    if (s != WEFT_OK)
        DOES(weft_frame_add(&g, NULL, WEFT_NAMES("d"), (const double *const[]){ a }, 2));
    cr_assert(g.start[0] == 0 && g.start[1] == g.rows);
    return s;
}
static weft_status reads(void)   { return weft_frame_read_csv(&f, mixed, "id", WEFT_NAMES("a", "b"), NULL); }
static weft_status whole_(void)  { return weft_frame_read_csv(&f, mixed, NULL, WEFT_NAMES("a", "b"), NULL); }
static weft_status hdf5(void)    { return weft_frame_read_hdf5(&f, whole, NULL, WEFT_NAMES("a", "b")); }
static weft_status writes(void)  { return weft_frame_write_hdf5(&f, whole, NULL); }
static weft_status shrinks(void) { return weft_frame_downsample(&f, 1, WEFT_DOWN_MEDIAN); }
static weft_status fixes(void)
{
    weft_status s = weft_frame_add_static_csv(&f, table, "id", WEFT_NAMES("c", "d"), NULL);
    if (s == WEFT_OK) {
        f.columns -= 2;                          /* as it was, for the next call */
        for (int i = 2; i < 4; i++)
            free(f.name[i]), free(f.column[i]);
    }
    return s;
}

Test(series_memory, survives_failure_of_each_allocation, .fini = end_folder)
{
    static weft_status (*const call[])(void) = { fixes, adds, first, reads, whole_, writes, hdf5, shrinks };
    mixed = put_text("csv", "id,a,b\n1,1,2\n0,3,4\n1,5,6\nx,1,1\n");
    table = put_text("table", "id,c,d\nx,2,2\n0,1,1\n");
    whole = put_text("h5", "");
    const double a[] = { 1, 2, 3 };
    DOES(weft_frame_add(&f, NULL, WEFT_NAMES("a", "b"), (const double *const[]){ a, a }, 3));
    for (int i = 0; i < COUNT(call); i++)
        for (failing.at = 1;; failing.at++) {
            weft_frame before = f;
            failing.seen = 0;
            failing.armed = true;
            weft_status s = call[i]();
            failing.armed = false;
            cr_assert_eq(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0,
                         "call %d, allocation %ld leaves handles", i, failing.at);
            if (failing.seen < failing.at) {
                DOES(s);
                cr_assert(!COUNTED || failing.at > 1, "call %d makes no allocation", i);
                break;
            }
            cr_assert_eq(s, WEFT_ENOMEM, "call %d, allocation %ld: %s: %s", i, failing.at,
                         weft_status_name(s), weft_file_message());
            cr_assert(f.n == before.n && f.rows == before.rows && f.columns == before.columns &&
                      f.start[f.n] == f.rows && f.column[1][2] == 3);
        }
    cr_assert(f.n == 1 + 1 + 3 + 1 + 6 && !strcmp(f.id[1], "x") && f.column[0][f.start[2] + 1] == 5);
    weft_frame_free(&f);
}
