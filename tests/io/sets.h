/* sets.h - what the tests of readers share: data sets as libhdf5 writes them. */
#ifndef WEFT_TEST_SETS_H
#define WEFT_TEST_SETS_H
#include <hdf5.h>
#include "checkpoint.h"
#include "tests/listen.h"

/* libhdf5 says at its end what it has lost, in its own words. */
UNUSED static void ends_well(void)
{
    listen_to_stderr();
    cr_assert(H5close() >= 0);
    const char *text = stop_listening();
    cr_assert_not(*text, "%.60s", text);
}

UNUSED static const char *const ab[] = { "a", "b", NULL };

/* A data set of n numbers or, with texts, one text of n bytes. */
UNUSED static void add_set(hid_t file, const char *name, hid_t type, int rank, const hsize_t *size,
                    const void *values)
{
    hid_t space = rank ? H5Screate_simple(rank, size, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          memory = rank ? H5T_NATIVE_DOUBLE : type;
    cr_assert(set >= 0 && (!values || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0));
    H5Dclose(set);
    H5Sclose(space);
}
UNUSED static hid_t new_file(const char *path)
{
    return H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}
#endif
