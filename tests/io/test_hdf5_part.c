/* test_hdf5_part.c - parts of datasets in HDF5: the numbers that the whole has, and no more reading than
 * they take. */
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/io/files.h"

static weft_hdf5 *opened(const char *path, const char *group)
{
    weft_hdf5 *f;
    cr_assert_eq(weft_open_hdf5(path, group, &f), WEFT_OK, "%s", weft_file_message());
    return f;
}

/* ---- the same numbers ---- */
static size_t bytes_of(const weft_dataset *d, int64_t i)
{
    return (size_t)d->len[i] * (d->rows ? sizeof *d->rows * (size_t)d->columns : sizeof *d->ints);
}
static const void *sequence(const weft_dataset *d, int64_t i)
{
    return d->rows ? (const void *)(d->rows + d->offset[i] * d->columns) : d->ints + d->offset[i];
}

/* Indices of any order, some twice, some side by side. */
static void compare(const weft_hdf5 *f, const weft_dataset *whole, int64_t n)
{
    int32_t index[64];
    weft_dataset part;
    for (int64_t i = 0; i < n; i++)
        index[i] = i && dice(2) && index[i - 1] + 1 < whole->n ? index[i - 1] + 1 :
                                                                 (int32_t)dice((uint64_t)whole->n);
    cr_assert_eq(weft_read_hdf5_part(f, index, n, &part), WEFT_OK, "%s", weft_file_message());
    cr_assert(part.n == n && part.columns == whole->columns && part.offset[0] == 0);
    for (int64_t i = 0; i < n; i++) {
        cr_assert(part.len[i] == whole->len[index[i]] && part.id[i] == index[i]);
        cr_assert(!memcmp(sequence(&part, i), sequence(whole, index[i]), bytes_of(&part, i)));
    }
    weft_dataset_free(&part);
}

static void compare_all(const char *path, const char *group)
{
    weft_dataset whole;
    cr_assert_eq(weft_read_hdf5(path, group, &whole), WEFT_OK, "%s", weft_file_message());
    weft_hdf5 *f = opened(path, group);
    weft_dataset shape = weft_hdf5_shape(f);
    cr_assert(shape.n == whole.n && shape.columns == whole.columns && !shape.rows && !shape.ints);
    cr_assert(!memcmp(shape.len, whole.len, (size_t)whole.n * sizeof *whole.len));
    cr_assert(!memcmp(shape.offset, whole.offset, (size_t)(whole.n + 1) * sizeof *whole.offset));
    for (int64_t n = 0; n < 64; n += 7)
        compare(f, &whole, whole.n ? n : 0);
    weft_close_hdf5(f);
    weft_dataset_free(&whole);
}

Test(hdf5_part, has_the_numbers_of_the_whole)
{
    static const char *const groups[] = { NULL, "/", "data", "a/b" };
    for (int k = 0; k < 60; k++) {
        int32_t len[20], tokens[20 * 9];
        weft_real rows[20 * 9 * 3];
        weft_dataset in = { .n = (int64_t)dice(20), .len = len };
        int64_t total = dice_lengths(len, in.n, 9);
        for (int64_t i = 0; i < total; i++)
            tokens[i] = (int32_t)dice(1000) - 500;
        dice_fill(rows, total * 3, -1, 1);
        in.columns = k % 2 ? 3 : 0, in.rows = k % 2 ? rows : NULL, in.ints = k % 2 ? NULL : tokens;
        const char *path = in_folder("d.h5");
        cr_assert_eq(weft_write_hdf5(&in, path, groups[k % 4]), WEFT_OK, "%s", weft_file_message());
        compare_all(path, groups[k % 4]);
    }
    end_folder();
}

/* rows [1000, 3] of a type, in 100 sequences of ten; compact: in the header of the set. */
static const char *of_others(hid_t type, double first, bool compact)
{
    static double rows[1000 * 3];
    int n = compact ? 50 : 1000, len[100];
    for (int i = 0; i < 3 * n; i++)
        rows[i] = first + i / 7.;
    for (int i = 0; i < n / 10; i++)
        len[i] = 10;
    const char *path = in_folder("foreign.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
          list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t one = H5Screate_simple(1, (hsize_t[]){ (hsize_t)n / 10 }, NULL),
          two = H5Screate_simple(2, (hsize_t[]){ (hsize_t)n, 3 }, NULL);
    cr_assert(H5Pset_layout(list, compact ? H5D_COMPACT : H5D_CONTIGUOUS) >= 0);
    hid_t a = H5Dcreate2(file, "lengths", H5T_STD_I32LE, one, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          b = H5Dcreate2(file, "rows", type, two, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(H5Dwrite(a, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, len) >= 0 &&
              H5Dwrite(b, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0);
    H5Dclose(a), H5Dclose(b), H5Sclose(one), H5Sclose(two), H5Pclose(list), H5Fclose(file);
    return path;
}

Test(hdf5_part, of_other_programs)
{
    const hid_t types[] = { H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE };
    for (int i = 0; i < 8; i++)
        compare_all(of_others(types[i % 4], -.5, i > 3), NULL);
#ifndef WEFT_DOUBLE
    weft_dataset part;
    weft_hdf5 *f = opened(of_others(H5T_IEEE_F64LE, 1e300, false), NULL);
    cr_assert_eq(weft_read_hdf5_part(f, (int32_t[]){ 2 }, 1, &part), WEFT_EFORMAT);
    cr_assert(strstr(weft_file_message(), "\"/rows\" from number 60 on[0] is 1e+300, which is too large") ||
                  strstr(weft_file_message(), "\"rows\" from number 60 on[0] is 1e+300, which is too large"),
              "%s", weft_file_message());
    cr_assert(!part.rows && !part.n);
    weft_close_hdf5(f);
#endif
    end_folder();
}

/* Masks follow a sequence, whichever part it was read in. */
static void masked(const weft_dataset *d, const int32_t *index, weft_real out[90])
{
    weft *w = open_on(WEFT_CPU);
    weft_tensor *x = weft_dropout(weft_dataset_batch(w, d, index, 3), .5, "drop", false);
    weft_read(weft_to_layout(x, WEFT_CONCAT), out, 90 * sizeof *out);
    CLEAN(w);
}

Test(hdf5_part, has_the_masks_of_the_whole)
{
    weft_hdf5 *f = opened(of_others(H5T_IEEE_F32LE, 1, false), NULL);
    const int32_t index[] = { 7, 3, 99 }, places[] = { 0, 1, 2 };
    weft_dataset whole, part;
    weft_real of_whole[90], of_part[90], by_place[90];
    cr_assert(weft_read_hdf5(file_name, NULL, &whole) == WEFT_OK &&
              weft_read_hdf5_part(f, index, 3, &part) == WEFT_OK);
    masked(&whole, index, of_whole), masked(&part, places, of_part);
    cr_assert(!memcmp(of_whole, of_part, sizeof of_part));
    free(part.id), part.id = NULL;
    masked(&part, places, by_place);
    cr_assert(memcmp(of_whole, by_place, sizeof by_place), "masks by their places would be others");
    weft_dataset_free(&whole), weft_dataset_free(&part);
    weft_close_hdf5(f);
    end_folder();
}

/* ---- no more than they take ---- */
static int64_t bytes_read(void)
{
    long long n = -1;
    char line[128];
    FILE *f = fopen("/proc/self/io", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "rchar: %lld", &n);
    if (f)
        fclose(f);
    return n;
}

Test(hdf5_part, reads_what_is_asked_for)
{
    enum { SEQUENCES = 4000, LENGTH = 100, COLUMNS = 16 };
    int32_t *len = calloc(SEQUENCES, sizeof *len);
    weft_real *rows = calloc((size_t)SEQUENCES * LENGTH * COLUMNS, sizeof *rows);
    weft_dataset part, data = { .n = SEQUENCES, .columns = COLUMNS, .len = len, .rows = rows };
    for (int i = 0; i < SEQUENCES; i++)
        len[i] = LENGTH, rows[(int64_t)i * LENGTH * COLUMNS] = (weft_real)i;
    const char *path = in_folder("large.h5");
    cr_assert_eq(weft_write_hdf5(&data, path, NULL), WEFT_OK, "%s", weft_file_message());
    int64_t before = bytes_read();
    weft_hdf5 *f = opened(path, NULL);
    cr_assert_eq(weft_read_hdf5_part(f, (int32_t[]){ 17, 18, 3999 }, 3, &part), WEFT_OK);
    const weft_real *row = part.rows;
    cr_assert(row[0] == 17 && row[LENGTH * COLUMNS] == 18 && row[2 * LENGTH * COLUMNS] == 3999);
    int64_t took = bytes_read() - before, needs = 3 * LENGTH * COLUMNS * (int64_t)sizeof *rows;
    cr_assert(before < 0 || (took >= needs && took < needs + 100000), "%lld", (long long)took);
    weft_dataset_free(&part);
    weft_close_hdf5(f);
    free(len), free(rows);
    end_folder();
}

/* [1 << 28, 2] reals that no one has written: 2 GB of the file's size, of which nothing is on the disk. */
Test(hdf5_part, opening_looks_at_little)
{
    const char *path = in_folder("sparse.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
          list = H5Pcreate(H5P_DATASET_CREATE);
    cr_assert(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 &&
              H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0);
    hid_t one = H5Screate_simple(1, (hsize_t[]){ 2 }, NULL),
          two = H5Screate_simple(2, (hsize_t[]){ 1 << 28, 2 }, NULL);
    hid_t a = H5Dcreate2(file, "lengths", H5T_STD_I32LE, one, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          b = H5Dcreate2(file, "rows", H5T_IEEE_F32LE, two, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(H5Dwrite(a, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, (int[]){ (1 << 28) - 5, 5 }) >= 0);
    H5Dclose(a), H5Dclose(b), H5Sclose(one), H5Sclose(two), H5Pclose(list), H5Fclose(file);
    struct rusage before, after;
    weft_dataset part;
    getrusage(RUSAGE_SELF, &before);
    weft_hdf5 *f = opened(path, NULL);
    cr_assert_eq(weft_read_hdf5_part(f, (int32_t[]){ 1 }, 1, &part), WEFT_OK, "%s", weft_file_message());
    getrusage(RUSAGE_SELF, &after);
    cr_assert(part.len[0] == 5 && part.rows[9] == 0);
    cr_assert(after.ru_maxrss - before.ru_maxrss < 100000, "%ld kB more", after.ru_maxrss - before.ru_maxrss);
    weft_dataset_free(&part);
    weft_close_hdf5(f);
    end_folder();
}

/* ---- what is refused ---- */
Test(hdf5_part, mistakes_and_damage_are_told)
{
    weft_hdf5 *f = opened(of_others(H5T_IEEE_F64LE, 0, false), NULL);
    weft_dataset part;
    cr_assert_eq(weft_read_hdf5_part(f, (int32_t[]){ 3, 100 }, 2, &part), WEFT_EARG);
    MESSAGE_HAS("index 1 is sequence 100; 0 .. 99 are expected");
    cr_assert_eq(weft_read_hdf5_part(f, (int32_t[]){ -1 }, 1, &part), WEFT_EARG);
    cr_assert_eq(weft_read_hdf5_part(f, NULL, 1, &part), WEFT_EARG);
    cr_assert_eq(weft_read_hdf5_part(f, NULL, -1, &part), WEFT_EARG);
    cr_assert_eq(weft_read_hdf5_part(NULL, NULL, 0, &part), WEFT_EARG);
    cr_assert_eq(truncate(file_name, 3000), 0);
    cr_assert_eq(weft_read_hdf5_part(f, (int32_t[]){ 99 }, 1, &part), WEFT_EIO);
    MESSAGE_HAS("has become shorter since it was opened");
    cr_assert(!part.len && !part.rows);
    weft_close_hdf5(f);
    cr_assert_eq(weft_open_hdf5(file_name, NULL, &f), WEFT_EFORMAT);
    cr_assert_null(f);
    cr_assert_eq(weft_open_hdf5(in_folder("nowhere.h5"), NULL, &f), WEFT_ENOENT);
    cr_assert_eq(weft_open_hdf5(folder, NULL, &f), WEFT_EFORMAT);
    cr_assert_eq(weft_open_hdf5(of_others(H5T_IEEE_F64LE, 0, false), "elsewhere", &f), WEFT_EFORMAT);
    cr_assert_eq(weft_open_hdf5(NULL, NULL, &f), WEFT_EARG);
    cr_assert_eq(weft_open_hdf5(file_name, NULL, NULL), WEFT_EARG);
    weft_close_hdf5(NULL);
    cr_assert(weft_hdf5_shape(NULL).n == 0);
    end_folder();
}
