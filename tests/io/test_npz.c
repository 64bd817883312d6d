/* test_npz.c - tests NumPy's files and the zip archives around arrays. numpy_files.py writes the fixtures. */
#include "archives.h"
#include "sets.h"

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
    weft__weights *all = open_weights(foreign("types.npz"), NULL);
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
    weft__weights_close(all);
}

FILE_TEST(npz, lone_compressed_and_zip64_files_are_read)
{
    static const char *const lone[] = { "lone.npy", "version2.npy", "version3.npy" };
    static const char *const archives[] = { "packed.npz", "zip64.npz" };
    for (int i = 0; i < COUNT(lone); i++) {
        weft__weights *all = open_weights(foreign(lone[i]), NULL);
        has_numbers(all, "array", i ? "float32 [2, 3]" : "float64 [2, 3]", six);
        weft__weights_close(all);
    }
    for (int i = 0; i < COUNT(archives); i++) {
        weft__weights *all = open_weights(foreign(archives[i]), NULL);
        cr_assert_eq(all->n, 2);
        has_numbers(all, "b", "float64 [3]", six);
        if (i)
            has_numbers(all, "w", "float32 [2, 3]", six);
        weft__weights_close(all);
    }
    REFUSES_WEIGHTS(foreign("objects.npz"), NULL, "x has Python objects");
}

/* ---- the header of an array ---- */
static const char *npy_reason(const char *dictionary, size_t numbers, weft__array *a)
{
    unsigned char bytes[256] = "\x93NUMPY\1";
    size_t n = strlen(dictionary);
    bytes[8] = (unsigned char)n;
    memcpy(bytes + 10, dictionary, n);
    return weft__npy_read(bytes, 10 + n + numbers, a);
}
#define SHAPE(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

FILE_TEST(npz, other_headers_are_refused)
{
    static const char *const bad[] = {
        "", "{}",
        SHAPE("(3,") " ",
        SHAPE("3"),
        SHAPE("(3)"),
        SHAPE("(-3,)"),
        SHAPE("(3,,)"),
        SHAPE("(3, 1 2)"),
        SHAPE("(3,)") "x",
        SHAPE("(3,), 'shape': (3,)"),
        SHAPE("(3,), 'other': 1"),
        SHAPE("(99999999999999999999,)"),
        SHAPE("(4294967296, 4294967296)"),
        SHAPE("(1, 1, 1, 1, 1, 1, 3)"),
        SHAPE("(4,)"),
        SHAPE("(2,)"),
        "{'descr': '<f4', 'shape': (3,)}", "{'descr': 'f4', 'fortran_order': 1, 'shape': (3,)}",
        "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}",
    };
    weft__array a = { .layer = -1 };
    cr_assert(!npy_reason(SHAPE("(3,)"), 12, &a) && a.kind.size[0] == 3);
    cr_assert(!npy_reason("{'shape':(3,1),'fortran_order':True,'descr':'>i4'} \n", 12, &a));
    cr_assert(a.kind.type == (WEFT__I32 | WEFT__BIG) && a.stride[1] == 3);
    for (int i = 0; i < COUNT(bad); i++)
        cr_assert(npy_reason(bad[i], 12, &a), "%s", bad[i]);
}

FILE_TEST(npz, written_header_is_numpys)
{
    static const char *const names[] = { "f4", "f8", "i4", "i8", "a/b", "zero_dim" };
    weft__weights *all = open_weights(foreign("types.npz"), NULL);
    char header[WEFT__NPY_HEADER];
    for (int i = 0; i < COUNT(names); i++) {
        const weft__array *a = array_of(all, names[i]);
        size_t n = weft__npy_header(&a->kind, header);
        cr_assert(n && !memcmp(header, a->bytes - n, n), "%s: %.*s", names[i], (int)n - 10, header + 10);
    }
    weft__kind k = { WEFT__F64, 6, { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX } };
    cr_assert(weft__npy_header(&k, header) == 192 && header[191] == '\n');
    cr_assert_eq(weft__npy_header(&array_of(all, "f2")->kind, header), 0);
    weft__weights_close(all);
}

/* ---- archives ---- */
static member array_member(const char *name) /* one number, 0 */
{
    static char npy[WEFT__NPY_HEADER + 8];
    weft__kind k = { WEFT__F64, 0, { 0 } };
    return (member){ name, npy, weft__npy_header(&k, npy) + 8, false };
}

FILE_TEST(npz, wrong_archives_are_refused)
{
    static const struct { size_t local, central; unsigned char to; const char *part; } bad[] = {
        { 6, 8, 1, "encrypted" }, { 8, 10, 12, "another method" }, { 0, 34, 1, "another volume" },
        { 14, 16, 1, "checksum is wrong" }, { 14, 0, 1, "header of a member and the directory differ" },
        { 30, 0, 'z', "header of a member and the directory differ" }, { 0, 42, 1, "lacks its header" },
        { 18, 20, 99, "another method" }, { 0, 28, 200, "directory is wrong" },
        { 0, 67, 9, "position of its directory" },
    };
    member a = array_member("a.npy"), two[] = { a, a };
    content zip = new_zip(&a, 1);
    size_t directory = zip.n - 22 - 46 - 5;
    for (int i = 0; i < COUNT(bad); i++) {
        content b = { malloc(zip.n), zip.n };
        memcpy(b.at, zip.at, zip.n);
        if (bad[i].local)
            b.at[bad[i].local] = bad[i].to;
        if (bad[i].central)
            b.at[directory + bad[i].central] = bad[i].to;
        REFUSES_WEIGHTS(put_bytes("f", b.at, b.n), NULL, bad[i].part);
        free(b.at);
    }
    free(zip.at);
    REFUSES_WEIGHTS(put_zip("f", two, 2), NULL, "two members have the name a.npy");
    REFUSES_WEIGHTS(put_zip("f", (member[]){ a, { "b.txt", "text", 4, false } }, 2), NULL,
                    "b.txt is not a .npy");
}

FILE_TEST(npz, members_may_not_share_bytes)
{
    member inner = array_member("b.npy");
    content hidden = new_zip(&inner, 1);
    member two[] = { { "a.npy", hidden.at, 30 + 5 + inner.n, false }, inner };
    content zip = new_zip(two, 2);
    number(zip.at + zip.n - 22 - 5 - 4, 30 + 5, 4); /* b's offset: now inside a */
    REFUSES_WEIGHTS(put_bytes("f", zip.at, zip.n), NULL, "two of its members overlap");
    free(hidden.at);
    free(zip.at);
}

FILE_TEST(npz, bomb_takes_no_memory)
{
    enum { N = 100 << 20 };
    char *zeros = calloc(N, 1);
    member m = { "a.npy", zeros, N, true };
    content zip = new_zip(&m, 1);
    free(zeros);
    long before = most_resident();
    REFUSES_WEIGHTS(put_bytes("f", zip.at, zip.n), NULL, "a.npy has 104857600 bytes, and all members more");
    number(zip.at + 22, 1 << 20, 4); /* a smaller size in both headers */
    number(zip.at + zip.n - 22 - 5 - 46 + 24, 1 << 20, 4);
    REFUSES_WEIGHTS(put_bytes("f", zip.at, zip.n), NULL, "cannot be inflated to its 1048576 bytes");
    cr_assert(most_resident() - before < 32 << 10, "%ld KiB", most_resident() - before);
    free(zip.at);
}

FILE_TEST(npz, damaged_files_are_survived)
{
    survives_damage(foreign("packed.npz"));
    survives_damage(foreign("zip64.npz"));
    survives_damage(foreign("lone.npy"));
}
