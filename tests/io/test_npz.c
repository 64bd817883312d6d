/* test_npz.c - tests NumPy's files and the zip archives around arrays. numpy_files.py writes the fixtures. */
#include "archives.h"

static const double six[] = { 0, 1, 2, 3, 4, 5 };

FILE_TEST(npz, arrays_of_all_types_are_read)
{
    static const struct { const char *name, *kind; } types[] = {
        { "f2", "float16" }, { "f4", "float32" }, { "f8", "float64" }, { "i1", "int8" }, { "i2", "int16" },
        { "i4", "int32" }, { "i8", "int64" }, { "u1", "bytes" }, { "u2", "uint16" }, { "u4", "uint32" },
        { "u8", "uint64" }, { "big_f2", "big-endian float16" }, { "big_f4", "big-endian float32" },
        { "big_f8", "big-endian float64" }, { "big_i2", "big-endian int16" },
        { "big_i4", "big-endian int32" }, { "big_i8", "big-endian int64" }, { "big_u2", "big-endian uint16" },
        { "big_u4", "big-endian uint32" }, { "big_u8", "big-endian uint64" }, { "fortran", "float32" },
    };
    weft__weights *all = open_weights(sample("types.npz"), NULL);
    cr_assert(all->n == 27 && !strcmp(all->format, "NumPy"));
    for (int i = 0; i < COUNT(types); i++) {
        char kind[64];
        snprintf(kind, sizeof kind, "%s [2, 3]", types[i].kind);
        has_numbers(all, types[i].name, kind, six);
    }
    has_numbers(all, "bool", "bytes [2, 3]", (double[]){ 0, 1, 1, 1, 1, 1 });
    has_numbers(all, "zero_dim", "float64 []", (double[]){ 2.5 });
    has_numbers(all, "empty", "float64 [0, 3]", NULL);
    has_numbers(all, "a/b", "float32 [1]", (double[]){ 1 });
    cr_assert(array_of(all, "text")->kind.type == WEFT__ODD &&
              array_of(all, "complex")->kind.type == WEFT__ODD);
}

FILE_TEST(npz, lone_compressed_and_zip64_files_are_read)
{
    static const char *const lone[] = { "lone.npy", "version2.npy", "version3.npy" };
    static const char *const archives[] = { "packed.npz", "zip64.npz" };
    for (int i = 0; i < COUNT(lone); i++) {
        weft__weights *all = open_weights(sample(lone[i]), NULL);
        has_numbers(all, "array", i ? "float32 [2, 3]" : "float64 [2, 3]", six);
    }
    for (int i = 0; i < COUNT(archives); i++) {
        weft__weights *all = open_weights(sample(archives[i]), NULL);
        cr_assert_eq(all->n, 2);
        has_numbers(all, "b", "float64 [3]", six);
        if (i)
            has_numbers(all, "w", "float32 [2, 3]", six);
    }
}

FILE_TEST(npz, written_header_is_numpys)
{
    static const char *const names[] = { "f4", "f8", "i4", "i8", "a/b", "zero_dim" };
    weft__weights *all = open_weights(sample("types.npz"), NULL);
    char header[WEFT__NPY_HEADER];
    for (int i = 0; i < COUNT(names); i++) {
        const weft__array *a = array_of(all, names[i]);
        size_t n = weft__npy_header(&a->kind, header);
        cr_assert(n && !memcmp(header, a->bytes - n, n), "%s: %.*s", names[i], (int)n - 10, header + 10);
    }
    weft__kind k = { WEFT__F64, 6, { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX } };
    cr_assert(weft__npy_header(&k, header) == 192 && header[191] == '\n');
    cr_assert_eq(weft__npy_header(&array_of(all, "f2")->kind, header), 0);
}
