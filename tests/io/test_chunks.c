/* test_chunks.c - tests chunked data sets that libhdf5 wrote, with every shape, cut, filter and index, and
 * refused ones. test_inflate.c tests damaged zlib streams, tests/fuzz other damage. */
#include "io/hdf5/session.h"

uint32_t H5_checksum_metadata(const void *data, size_t n, uint32_t before);
#include "sets.h"

/* ---- every cut ---- */
static form any_form(hid_t type)
{
    form f = { .rank = 1 + (int)dice(3), .gzip = (int)dice(11), .shuffle = dice(2), .type = type };
    for (int i = 0; i < f.rank; i++) {
        f.size[i] = 1 + dice(f.rank == 1 ? 3000 : 14);
        f.chunk[i] = 1 + dice(f.size[i]);
        f.most[i] = dice(2) ? H5S_UNLIMITED : f.size[i] + dice(20);
    }
    return f;
}

/* n numbers with repetitions, so that they compress. */
static double *any_numbers(size_t n)
{
    double *values = calloc(n + 1, sizeof *values);
    int few = 1 + (int)dice(100);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)dice((uint64_t)few) / 8 - 3;
    return values;
}

static void save(const char *path, age a, const form *f, hid_t memory, const void *values)
{
    hid_t file = new_file_of(path, a, 0);
    put_set(file, "weight", f, memory, values);
    H5Fclose(file);
}

FILE_TEST(chunks, every_shape_and_filter_is_read)
{
    const char *path = in_folder("f");
    for (int k = 0; k < rounds(120, 3000); k++) {
        form f = any_form(k % 2 ? H5T_IEEE_F32LE : H5T_IEEE_F64BE);
        small m = small_in(w, f.rank, f.size);
        size_t n = (size_t)weft_numel(m.weight);
        double *values = any_numbers(n);
        save(path, dice(2) ? LATEST : OLDEST, &f, H5T_NATIVE_DOUBLE, values);
        DOES(weft_load_weights(path, m.m, NULL, NULL));
        weft_real *is = numbers(m.weight);
        for (size_t i = 0; i < n; i++)
            cr_assert(is[i] == (weft_real)values[i], "form %d, number %zu: %g, not %g", k, i, (double)is[i],
                      values[i]);
        free(values);
    }
}

/* All numbers of 16 bits, against libhdf5's own conversion; NaN is NaN. */
Test(chunks, every_half_and_bfloat_is_read)
{
    enum { N = 1 << 16 };
    static uint16_t raw[N];
    static double want[N], is[N];
    static float narrow[N];
    const weft__number kinds[] = { WEFT__F16, WEFT__BF16, WEFT__F16 | WEFT__BIG, WEFT__BF16 | WEFT__BIG };
    for (int k = 0; k < COUNT(kinds); k++) {
        weft__kind kind = { kinds[k], 1, { N } };
        for (int i = 0; i < N; i++)
            raw[i] = (uint16_t)((k < 2) == WEFT__LITTLE ? i : i >> 8 | (i & 255) << 8);
        memcpy(want, raw, sizeof raw);
        hid_t type = half_type(k % 2, k > 1);
        cr_assert(H5Tconvert(type, H5T_NATIVE_DOUBLE, N, want, NULL, H5P_DEFAULT) >= 0);
        H5Tclose(type);
        DOES(weft__convert("here", "x", &kind, WEFT__F64, NULL, (unsigned char *)raw, is));
        DOES(weft__convert("here", "x", &kind, WEFT__F32, NULL, (unsigned char *)raw, narrow));
        for (int i = 0; i < N; i++) {
            bool nan = k % 2 ? (i & 0x7fff) > 0x7f80 : (i & 0x7fff) > 0x7c00;
            cr_assert(nan ? isnan(is[i]) && isnan(narrow[i]) :
                            is[i] == want[i] && (double)narrow[i] == is[i] && signbit(is[i]) == (i >> 15),
                      "%s: %04x is %g, not %g", k % 2 ? "bfloat16" : "float16", (unsigned)i, is[i], want[i]);
        }
    }
    cr_assert(is[1] > 0 && is[1] < 1e-38 && is[0x3f80] == 1 && is[0xff80] == -(double)INFINITY);
}

/* ---- every index ---- */
enum { MANY = 1500 };                            /* chunks of one number: arrays in pages */
static const struct { age age; form f; } indexes[] = {
#define NO_LIMIT H5S_UNLIMITED
    { LATEST, { .rank = 1, .size = { 140000 }, .chunk = { 1 }, .most = { NO_LIMIT } } }, /* blocks in pages */
    { OLDEST, { .rank = 1, .size = { 20000 }, .chunk = { 3 } } },                        /* a deep tree */
    { OLDEST, { .rank = 2, .size = { 6, 5 }, .chunk = { 4, 2 }, .gzip = 6 } },
    { OLDEST, { .rank = 2, .size = { 0, 3 }, .chunk = { 4, 2 }, .most = { NO_LIMIT, 3 } } },
    { LATEST, { .rank = 1, .size = { 60 }, .chunk = { 60 }, .gzip = 6 } },               /* a single chunk */
    { LATEST, { .rank = 1, .size = { 60 }, .chunk = { 7 }, .early = true } },            /* implicit */
    { LATEST, { .rank = 1, .size = { 60 }, .chunk = { 7 } } },                           /* a fixed array */
    { LATEST, { .rank = 2, .size = { 7, 9 }, .chunk = { 2, 4 }, .most = { 20, 11 }, .gzip = 6 } },
    { LATEST, { .rank = 1, .size = { MANY }, .chunk = { 1 }, .most = { 2 * MANY } } },   /* in pages */
    /* extensible arrays: plain, by columns, shorter than a chunk */
    { LATEST, { .rank = 1, .size = { MANY }, .chunk = { 1 }, .most = { NO_LIMIT }, .gzip = 6 } },
    { LATEST, { .rank = 2, .size = { 7, 9 }, .chunk = { 2, 4 }, .most = { 20, NO_LIMIT } } },
    { LATEST, { .rank = 1, .size = { 3 }, .chunk = { 100 }, .most = { NO_LIMIT }, .gzip = 6 } },
    /* trees: of one level, of two */
    { LATEST, { .rank = 2, .size = { 7, 9 }, .chunk = { 2, 4 }, .most = { NO_LIMIT, NO_LIMIT }, .gzip = 6 } },
    { LATEST, { .rank = 2, .size = { 30, 40 }, .chunk = { 1, 1 }, .most = { NO_LIMIT, NO_LIMIT } } },
};

/* Numbers 1, 2, .. in an index of the table. */
static small save_indexed(weft *w, const char *path, int i)
{
    form f = indexes[i].f;
    small m = small_in(w, f.rank, f.size);
    int64_t n = weft_numel(m.weight);
    float *values = malloc((size_t)(n + 1) * sizeof *values);
    for (int64_t k = 0; k < n; k++)
        values[k] = (float)k + 1;
    f.type = H5T_IEEE_F32LE;
    f.shuffle = f.gzip;
    save(path, indexes[i].age, &f, H5T_NATIVE_FLOAT, n ? values : NULL);
    free(values);
    return m;
}

/* libhdf5 does not read them. The fuzzer found such a file. */
FILE_TEST(chunks, chunks_after_the_end_of_an_extensible_array_are_missing)
{
    enum { EXTENSIBLE = 10, END = 44, SUM = 68 };
    const char *path = in_folder("index.h5");
    small m = save_indexed(w, path, EXTENSIBLE);
    content b = read_bytes(path);
    unsigned char *head = memmem(b.at, b.n, "EAHD", 4);
    cr_assert(head && head[END] && (uint64_t)(head - (unsigned char *)b.at) < b.n - SUM);
    memset(head + END, 0, 8);
    head[END] = 5;
    uint32_t sum = H5_checksum_metadata(head, SUM, 0);
    memcpy(head + SUM, &sum, sizeof sum);
    write_bytes(path, b.at, b.n);
    REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, "lacks some of its chunks");
}

FILE_TEST(chunks, every_chunk_index_is_read)
{
    const char *path = in_folder("index.h5");
    for (int i = rounds(1, 0); i < COUNT(indexes); i++) {         /* libhdf5 takes 10 s to write the first */
        small m = save_indexed(w, path, i);
        DOES(weft_load_weights(path, m.m, NULL, NULL));
        for (int64_t k = 0; k < weft_numel(m.weight); k++)
            cr_assert_eq(numbers(m.weight)[k], (weft_real)(k + 1), "index %d, number %lld", i, (long long)k);
    }
}

/* ---- refused ---- */
FILE_TEST(chunks, declared_sizes_do_not_allocate)
{
    const char *path = in_folder("f");
    small m = small_in(w, 1, (hsize_t[]){ 4 });
    weft_load_report r;
    form f = { .rank = 2, .size = { 1u << 30, 1u << 30 }, .chunk = { 1 << 14, 1 << 14 }, .gzip = 9,
               .type = H5T_IEEE_F32LE };
    save(path, OLDEST, &f, H5T_NATIVE_FLOAT, NULL);
    long before = most_resident();
    REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_ESHAPE, "float32 [1073741824, 1073741824]");
    DOES(weft_load_weights(path, m.m, NULL, &r));
    cr_assert(r.other_shape == 1 && !r.loaded && most_resident() - before < 40 << 10);
    stays(&m);
}

FILE_TEST(chunks, invalid_chunks_are_refused)
{
    static const struct { age age; bool fletcher; hsize_t chunk; int written; const char *says;
    } bad[] = {
        { OLDEST, true, 4, 4, "weight has unsupported filters" },
        { LATEST, true, 4, 4, "weight has unsupported filters" },
        { OLDEST, false, 4, 0, "weight has a damaged tree of chunks" },
        { OLDEST, false, (1 << 22) + 1, 4,
          "weight has chunks larger than its shape, and of more than 16 MiB" },
        { OLDEST, false, 2, 2, "weight lacks some of its chunks" },
        { LATEST, false, 2, 2, "weight lacks some of its chunks" },
    };
    const char *path = in_folder("f");
    weft_load_report r;
    small m = small_in(w, 1, (hsize_t[]){ 4 });
    for (int i = 0; i < COUNT(bad); i++) {
        form f = { .rank = 1, .size = { 4 }, .chunk = { bad[i].chunk }, .most = { NO_LIMIT }, .gzip = 7,
                   .fletcher = bad[i].fletcher, .type = H5T_IEEE_F32LE };
        hid_t file = new_file_of(path, bad[i].age, 0), set = make_set(file, "weight", &f),
              here = H5Screate_simple(1, f.size, NULL);
        H5Sselect_hyperslab(here, H5S_SELECT_SET, (hsize_t[]){ 0 }, NULL,
                            (hsize_t[]){ (hsize_t)bad[i].written }, NULL);
        cr_assert(!bad[i].written ||
                  H5Dwrite(set, H5T_NATIVE_FLOAT, here, here, H5P_DEFAULT, (float[4]){ 0 }) >= 0);
        H5Sclose(here), H5Dclose(set), H5Fclose(file);
        REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, bad[i].says);
        REFUSES(weft_load_weights(path, m.m, NULL, &r), WEFT_EFORMAT, bad[i].says);
        stays(&m);
    }
}

/* A chunk that a filter did not shorten is stored unfiltered, and its key has a flag for that. */
FILE_TEST(chunks, skipped_filters_are_honoured)
{
    const char *path = in_folder("f");
    const float raw[4] = { 1, 2, -3, 4.5f };
    float stored[4];
    memcpy(stored, raw, sizeof raw), weft__turn(sizeof *raw, stored, sizeof raw);
    small m = small_in(w, 1, (hsize_t[]){ 4 });
    form f = { .rank = 1, .size = { 4 }, .chunk = { 4 }, .gzip = 7, .shuffle = true, .type = H5T_IEEE_F32LE };
    for (uint32_t mask = 1; mask <= 8; mask++) { /* 3 skips both filters; with 2 bytes are shuffled */
        hid_t file = new_file(path), set = make_set(file, "weight", &f);
        cr_assert(H5Dwrite_chunk(set, H5P_DEFAULT, mask, (hsize_t[]){ 0 }, sizeof raw, stored) >= 0);
        H5Dclose(set);
        H5Fclose(file);
        weft_status s = weft_load_weights(path, m.m, NULL, NULL);
        cr_assert_eq(s == WEFT_OK, mask == 2 || mask == 3, "mask %u: %s", mask, weft_file_message());
        weft_real *is = numbers(m.weight);
        for (int i = 0; mask == 3 && i < 4; i++)
            cr_assert_eq(is[i], (weft_real)raw[i]);
    }
}

/* Leaves of the tree contain the chunks of another leaf. The number is right, but some occur twice and some
 * are missing. */
FILE_TEST(chunks, repeated_leaf_is_refused)
{
    enum { N = 200, LEAF = 24 + 64 * 32 + 24 };
    const char *path = in_folder("f");
    float raw[N] = { 0 };
    small m = small_in(w, 1, (hsize_t[]){ N });
    form f = { .rank = 1, .size = { N }, .chunk = { 1 }, .gzip = 1, .type = H5T_IEEE_F32LE };
    save(path, OLDEST, &f, H5T_NATIVE_FLOAT, raw);
    content b = read_bytes(path);
    size_t leaf[8];
    int n = 0;
    for (size_t at = 0; at + LEAF <= b.n && n < COUNT(leaf); at++)
        if (!memcmp(b.at + at, "TREE\1", 6))     /* and level 0 */
            leaf[n++] = at;
    cr_assert_gt(n, 1);
    for (int i = 0; i < n; i++) {
        unsigned char was[LEAF], *at = b.at + leaf[i];
        memcpy(was, at, LEAF);
        memcpy(at, b.at + leaf[(i + 1) % n], LEAF);
        write_bytes(path, b.at, b.n);
        REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT,
                "weight has a repeated, missing or misplaced chunk");
        memcpy(at, was, LEAF);
    }
    stays(&m);
}
