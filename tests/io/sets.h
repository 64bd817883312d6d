/* sets.h - the common parts of the tests of HDF5: files and data sets of any form, written by libhdf5. */
#ifndef WEFT_TEST_SETS_H
#define WEFT_TEST_SETS_H
#include <sys/resource.h>
#include "checkpoint.h"
#include "tests/halves.h"
#include "tests/listen.h"

UNUSED static const char *const ab[] = { "a", "b", NULL };

/* A new file in libhdf5's oldest format, that of 1.8, or the latest. */
typedef enum { OLDEST, OF_1_8, LATEST } age;
UNUSED static hid_t new_file_of(const char *path, age a, hsize_t user_block)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    H5F_libver_t bound = a == LATEST ? H5F_LIBVER_LATEST : H5F_LIBVER_V18;
    if (a != OLDEST)
        H5Pset_libver_bounds(access, bound, bound);
    H5Pset_userblock(creation, user_block);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    H5Pclose(access);
    H5Pclose(creation);
    cr_assert(file >= 0);
    return file;
}
UNUSED static hid_t new_file(const char *path)   { return new_file_of(path, OLDEST, 0); }

/* How a data set is stored. chunk 0: contiguous; most 0: of fixed size. gzip: level + 1, or 0. */
typedef struct {
    hid_t type;
    int rank;
    hsize_t size[3], chunk[3], most[3];
    int gzip;
    bool shuffle, fletcher, compact, early;
} form;

/* A new set "group/name", with its groups; it stays open. */
UNUSED static hid_t make_set(hid_t file, const char *name, const form *f)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE),
          space = H5Screate_simple(f->rank, f->size, f->most[0] ? f->most : NULL);
    H5Pset_create_intermediate_group(links, 1);
    if (f->chunk[0])
        H5Pset_chunk(list, f->rank, f->chunk);
    if (f->compact)
        H5Pset_layout(list, H5D_COMPACT);
    if (f->early)
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY), H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    if (f->shuffle)
        H5Pset_shuffle(list);
    if (f->gzip)
        H5Pset_deflate(list, (unsigned)f->gzip - 1);
    if (f->fletcher)
        H5Pset_fletcher32(list);
    hid_t set = H5Dcreate2(file, name, f->type, space, links, list, H5P_DEFAULT);
    cr_assert(set >= 0, "%s", name);
    H5Sclose(space), H5Pclose(list), H5Pclose(links);
    return set;
}

/* A set with these values of a type of memory. NULL: they are not written. */
UNUSED static void put_set(hid_t file, const char *name, const form *f, hid_t memory, const void *values)
{
    hid_t set = make_set(file, name, f);
    cr_assert(!values || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "%s", name);
    H5Dclose(set);
}

/* A plain set of numbers, [n] or [n, columns]. */
UNUSED static void put_numbers(hid_t file, const char *name, hid_t type, hsize_t n, hsize_t columns,
                               const double *values)
{
    form f = { .type = type, .rank = columns ? 2 : 1, .size = { n, columns } };
    put_set(file, name, &f, H5T_NATIVE_DOUBLE, values);
}

/* A text of a type of strings. */
UNUSED static void put_letters(hid_t file, const char *name, hid_t type, const void *letters)
{
    hid_t space = H5Screate(H5S_SCALAR),
          set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(set >= 0 && (!letters || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, letters) >= 0));
    H5Dclose(set), H5Sclose(space);
}

/* No dataset was read. */
UNUSED static void is_empty(const weft_dataset *d)
{
    cr_assert(d->n == 0 && !d->len && !d->offset && !d->rows && !d->ints && !d->file);
}

/* libhdf5 reports leaked objects at its end. */
UNUSED static void ends_well(void)
{
    listen_to_stderr();
    cr_assert(H5close() >= 0);
    const char *text = stop_listening();
    cr_assert_not(*text, "%.60s", text);
}

UNUSED static long most_resident(void)           /* KiB */
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* ---- a module with one parameter, "weight", full of sevens ---- */
typedef struct { weft_module *m; weft_tensor *weight; } small;

UNUSED static small small_in(weft *w, int rank, const hsize_t *size)
{
    small k = { .m = weft_module_new(w, "m") };
    int64_t extents[3] = { 0 };
    for (int i = 0; i < rank; i++)
        extents[i] = (int64_t)size[i];
    k.weight = weft_parameter(k.m, "weight", rank, extents, (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    OK(w);
    return k;
}

UNUSED static void reset(const small *k)
{
    int64_t n = weft_numel(k->weight);
    weft_real *seven = malloc((size_t)n * sizeof *seven);
    for (int64_t i = 0; i < n; i++)
        seven[i] = 7;
    weft_assign_values(k->weight, seven, n);
    free(seven);
}

/* It is as small_in and reset make it, and libhdf5 has nothing open. */
UNUSED static void stays(const small *k)
{
    weft_real *now = numbers(k->weight);
    for (int64_t i = 0; i < weft_numel(k->weight); i++)
        cr_assert_eq(now[i], 7);
    nothing_is_open();
}
#endif
