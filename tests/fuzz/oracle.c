/* oracle.c - reads data sets through plain calls of libhdf5 (fuzz.h). */
#include "fuzz.h"

bool plain_chunks;

hid_t plain_open(const uint8_t *bytes, size_t n)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), file;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Pset_fapl_core(list, 1 << 16, 0);
    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
    H5Pset_file_image(list, (void *)(uintptr_t)bytes, n);
    file = H5Fopen("image", H5F_ACC_RDONLY, list);
    H5Pclose(list);
    return file;
}

/* Checks that the set is stored completely and has a supported type. libhdf5 crashes on some others. */
static bool is_plain(hid_t set, size_t n)
{
    hid_t type = H5Dget_type(set);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    size_t bytes = type < 0 ? 0 : H5Tget_size(type);
    hid_t list = H5Dget_create_plist(set);
    bool chunks = plain_chunks && H5Pget_layout(list) == H5D_CHUNKED;
    H5Pclose(list);
    bool is = (class == H5T_FLOAT || class == H5T_INTEGER) && bytes <= 8 &&
              (chunks || H5Dget_storage_size(set) == n * bytes);
    if (type >= 0)
        H5Tclose(type);
    return is;
}

bool plain_has(hid_t file, const char *path, int rank, const int64_t *size)
{
    hsize_t is[H5S_MAX_RANK];
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set);
    bool same = space >= 0 && H5Sget_simple_extent_ndims(space) == rank &&
                H5Sget_simple_extent_dims(space, is, NULL) == rank;
    for (int i = 0; i < rank && same; i++)
        same = is[i] == (hsize_t)size[i];
    if (space >= 0)
        H5Sclose(space);
    if (set >= 0)
        H5Dclose(set);
    return same;
}

bool plain_read(hid_t file, const char *path, plain_set *out)
{
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set);
    *out = (plain_set){ 0 };
    if (space >= 0) {
        out->rank = H5Sget_simple_extent_dims(space, out->size, NULL);
        out->n = (size_t)H5Sget_simple_extent_npoints(space);
        out->at = out->n < 1 << 24 && is_plain(set, out->n) ? calloc(out->n + 1, sizeof *out->at) : NULL;
        if (out->at && H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out->at) < 0)
            free(out->at), out->at = NULL;
        H5Sclose(space);
    }
    if (set >= 0)
        H5Dclose(set);
    return out->at != NULL;
}

bool plain_closed(hid_t file, const char *path)
{
    bool there = H5Lexists(file, path, H5P_DEFAULT) > 0;
    hid_t set = there ? H5Dopen2(file, path, H5P_DEFAULT) : -1;
    if (set >= 0)
        H5Dclose(set);
    return there && set < 0;
}

char *plain_text(hid_t file, const char *path)
{
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT), type = set < 0 ? -1 : H5Dget_type(set);
    char *text = NULL;
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type)) {
        text = calloc(H5Tget_size(type) + 1, 1);
        if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0)
            free(text), text = NULL;
    }
    if (type >= 0)
        H5Tclose(type);
    if (set >= 0)
        H5Dclose(set);
    return text;
}

void plain_same(const char *path, const plain_set *set, int rank, const int64_t *size,
                const weft_real *numbers)
{
    size_t n = 1;
    SAME(set->rank == rank, "%s has rank %d, read was %d", path, set->rank, rank);
    for (int i = 0; i < rank; i++) {
        SAME((int64_t)set->size[i] == size[i], "%s: extent %d is %lld, read was %lld", path, i,
             (long long)set->size[i], (long long)size[i]);
        n *= (size_t)size[i];
    }
    for (size_t i = 0; i < n; i++) {
        double is = set->at[i];
        SAME(isnan(is) ? isnan(numbers[i]) :
             isinf(is) ? (double)numbers[i] == is :
                         isfinite(numbers[i]) && numbers[i] == (weft_real)is,
             "%s: number %zu is %.17g, read was %.17g", path, i, is, (double)numbers[i]);
    }
}
