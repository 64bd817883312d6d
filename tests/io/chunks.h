/* chunks.h - what the tests of data sets in chunks share: sets of any form, and a module with one parameter,
 * "weight", full of sevens. */
#ifndef WEFT_TEST_CHUNKS_H
#define WEFT_TEST_CHUNKS_H
#include <hdf5.h>
#include <sys/resource.h>
#include "checkpoint.h"

typedef struct {
    int rank;
    hsize_t size[3], chunk[3], most[3];
    int level;
    bool shuffle, fletcher;
    hid_t type;
} form;

UNUSED static size_t numbers_of(const form *f)
{
    size_t n = 1;
    for (int i = 0; i < f->rank; i++)
        n *= (size_t)f->size[i];
    return n;
}

/* A new set; raw, which is of its type, in it, if there is some. */
UNUSED static hid_t put(hid_t file, const char *name, const form *f, const void *raw)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(f->rank, f->size, f->most[0] ? f->most : NULL);
    if (f->chunk[0])
        H5Pset_chunk(list, f->rank, f->chunk);
    if (f->shuffle)
        H5Pset_shuffle(list);
    if (f->level >= 0)
        H5Pset_deflate(list, (unsigned)f->level);
    if (f->fletcher)
        H5Pset_fletcher32(list);
    hid_t set = H5Dcreate2(file, name, f->type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(set >= 0 && (!raw || H5Dwrite(set, f->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw) >= 0));
    H5Sclose(space);
    H5Pclose(list);
    return set;
}

UNUSED static hid_t new_file(const char *path, bool newest)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (newest)
        H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    H5Pclose(list);
    cr_assert(file >= 0);
    return file;
}

UNUSED static void save(const char *path, const form *f, const void *raw)
{
    hid_t file = new_file(path, false);
    H5Dclose(put(file, "weight", f, raw));
    H5Fclose(file);
}

typedef struct { weft *w; weft_module *m; weft_tensor *weight; } small;

UNUSED static small small_new(int rank, const hsize_t *size)
{
    small k = { .w = open_on(WEFT_CPU) };
    int64_t extents[3] = { 0 };
    for (int i = 0; i < rank; i++)
        extents[i] = (int64_t)size[i];
    k.m = weft_module_new(k.w, "m");
    k.weight = weft_parameter(k.m, "weight", rank, extents, (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    OK(k.w);
    return k;
}

/* as small_new and reset make it; and libhdf5 has nothing open */
UNUSED static void stays(const small *k)
{
    weft_real *now = numbers(k->weight);
    for (int64_t i = 0; i < weft_numel(k->weight); i++)
        cr_assert_eq(now[i], 7);
    cr_assert_eq(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
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

UNUSED static long most_resident(void)                  /* KiB */
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}
#endif
