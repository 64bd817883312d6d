/* test_chunks.c - state dicts in chunks, compressed, and of half precision: libhdf5 writes them, every shape,
 * cut and filter; what is refused. What lies in a compressed one: test_inflate.c. */
#include "io/hdf5/session.h"
#include "chunks.h"

/* ---- every cut ---- */
static form any_form(hid_t type)
{
    form f = { .rank = 1 + (int)dice(3), .level = (int)dice(11) - 1, .shuffle = dice(2), .type = type };
    for (int i = 0; i < f.rank; i++) {
        f.size[i] = 1 + dice(f.rank == 1 ? 3000 : 14);
        f.chunk[i] = 1 + dice(f.size[i]);
        f.most[i] = dice(2) ? H5S_UNLIMITED : f.size[i] + dice(20);
    }
    return f;
}

/* Numbers of the type's bytes, some of them equal so that there is something to compress. */
static void *any_numbers(const form *f)
{
    size_t n = numbers_of(f);
    double *values = calloc(n + 1, sizeof *values);
    int few = 1 + (int)dice(100);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)dice((uint64_t)few) / 8 - 3;
    cr_assert(H5Tconvert(H5T_NATIVE_DOUBLE, f->type, n, values, NULL, H5P_DEFAULT) >= 0);
    return values;
}

Test(chunks, of_every_shape_and_filter)
{
    const char *path = in_folder("f");
    const weft__number kinds[] = { WEFT__F32, WEFT__F64, WEFT__F32_BE, WEFT__F64_BE,
                                   WEFT__F16, WEFT__BF16, WEFT__F16_BE, WEFT__BF16_BE };
    for (int k = 0; k < rounds(120, 3000); k++) {
        hid_t type = weft__h5_type(kinds[k % COUNT(kinds)], 0);
        form f = any_form(type);
        size_t n = numbers_of(&f);
        void *raw = any_numbers(&f);
        hid_t file = new_file(path, dice(2));
        H5Dclose(put(file, "weight", &f, raw));
        H5Fclose(file);
        cr_assert(H5Tconvert(type, H5T_NATIVE_DOUBLE, n, raw, NULL, H5P_DEFAULT) >= 0);
        H5Tclose(type);
        small m = small_new(f.rank, f.size);
        DOES(weft_load_state_dict(path, m.m, NULL));
        weft_real *is = numbers(m.weight);
        for (size_t i = 0; i < n; i++)
            cr_assert(is[i] == (weft_real)((double *)raw)[i], "form %d, number %zu: %g, not %g", k, i,
                      (double)is[i], ((double *)raw)[i]);
        free(raw);
        CLEAN(m.w);
    }
    end_folder();
}

/* Many levels of the tree: more chunks than a node has. */
Test(chunks, many)
{
    enum { N = 20000 };
    static float raw[N];
    const char *path = in_folder("f");
    form f = { .rank = 1, .size = { N }, .chunk = { 3 }, .level = -1, .type = H5T_IEEE_F32LE };
    for (int i = 0; i < N; i++)
        raw[i] = (float)i;
    save(path, &f, raw);
    small m = small_new(1, f.size);
    DOES(weft_load_state_dict(path, m.m, NULL));
    weft_real *is = numbers(m.weight);
    for (int i = 0; i < N; i++)
        cr_assert_eq(is[i], (weft_real)i);
    CLEAN(m.w);
    end_folder();
}

Test(chunks, nothing_in_them)
{
    const char *path = in_folder("f");
    form f = { .rank = 2, .size = { 0, 3 }, .chunk = { 4, 2 }, .most = { H5S_UNLIMITED, 3 }, .level = 6,
               .type = H5T_IEEE_F32LE };
    save(path, &f, NULL);
    small m = small_new(2, f.size);
    DOES(weft_load_state_dict(path, m.m, NULL));
    CLEAN(m.w);
    end_folder();
}

/* ---- half precision ---- */
/* All numbers of 16 bits, against libhdf5's own conversion; NaN is NaN. */
Test(chunks, every_half_and_every_bfloat)
{
    enum { N = 1 << 16 };
    static uint16_t raw[N];
    static double want[N], is[N];
    static float narrow[N];
    const weft__number kinds[] = { WEFT__F16, WEFT__BF16, WEFT__F16_BE, WEFT__BF16_BE };
    for (int k = 0; k < COUNT(kinds); k++) {
        weft__kind kind = { kinds[k], 1, { N } };
        weft__h5 session = { .path = "here" };
        for (int i = 0; i < N; i++)
            raw[i] = (uint16_t)(k < 2 ? i : i >> 8 | (i & 255) << 8);
        memcpy(want, raw, sizeof raw);
        hid_t type = weft__h5_type(kinds[k], 0);
        cr_assert(H5Tconvert(type, H5T_NATIVE_DOUBLE, N, want, NULL, H5P_DEFAULT) >= 0);
        H5Tclose(type);
        weft__h5_convert(&session, "x", &kind, WEFT__F64, (unsigned char *)raw, is);
        weft__h5_convert(&session, "x", &kind, WEFT__F32, (unsigned char *)raw, narrow);
        cr_assert_eq(session.status, WEFT_OK);
        for (int i = 0; i < N; i++) {
            bool nan = k % 2 ? (i & 0x7fff) > 0x7f80 : (i & 0x7fff) > 0x7c00;
            cr_assert(nan ? isnan(is[i]) && isnan(narrow[i]) :
                            is[i] == want[i] && (double)narrow[i] == is[i] && signbit(is[i]) == (i >> 15),
                      "%s: %04x is %g, not %g", k % 2 ? "bfloat16" : "float16", (unsigned)i, is[i], want[i]);
        }
    }
    cr_assert(is[1] > 0 && is[1] < 1e-38 && is[0x3f80] == 1 && is[0xff80] == -(double)INFINITY);
}

static void half_set(const char *path, hid_t type, const uint16_t *raw, int64_t n)
{
    form f = { .rank = 1, .size = { (hsize_t)n }, .level = -1, .type = type };
    save(path, &f, raw);
}

Test(chunks, plain_half_precision)
{
    const char *path = in_folder("f");
    const uint16_t half[] = { 0x3c00, 0xc500, 0x7bff, 0x0001 }, brain[] = { 0x3f80, 0xc0a0, 0x7f7f, 0x0001 };
    const double is[] = { 1, -5, 65504, 0x1p-24 }, of_brain[] = { 1, -5, 0x1.fep127, 0x1p-133 };
    small m = small_new(1, (hsize_t[]){ 4 });
    weft_load_report r;
    for (int k = 0; k < 2; k++) {
        hid_t type = weft__h5_type(k ? WEFT__BF16 : WEFT__F16, 0);
        half_set(path, type, k ? brain : half, 4);
        H5Tclose(type);
        DOES(weft_load_state_dict(path, m.m, k ? &r : NULL));
        weft_real *now = numbers(m.weight);
        for (int i = 0; i < 4; i++)
            cr_assert(now[i] == (weft_real)(k ? of_brain : is)[i], "%g", (double)now[i]);
    }
    cr_assert(r.loaded == 1 && !r.other_shape && !r.missing && !r.extra);
    CLEAN(m.w);
    end_folder();
}

/* ---- refused ---- */
Test(chunks, what_they_declare_is_not_believed)
{
    const char *path = in_folder("f");
    small m = small_new(1, (hsize_t[]){ 4 });
    weft_load_report r;
    form f = { .rank = 2, .size = { 1u << 30, 1u << 30 }, .chunk = { 1 << 14, 1 << 14 }, .level = 9,
               .type = H5T_IEEE_F32LE };
    save(path, &f, NULL);
    long before = most_resident();
    REFUSES(weft_load_state_dict(path, m.m, NULL), WEFT_ESHAPE, "float32 [1073741824, 1073741824]");
    DOES(weft_load_state_dict(path, m.m, &r));
    cr_assert(r.other_shape == 1 && !r.loaded && most_resident() - before < 40 << 10);
    stays(&m);
    CLEAN(m.w);
    end_folder();
}

static void fletcher(hid_t file, form *f)
{
    f->fletcher = true;
    H5Dclose(put(file, "weight", f, (float[4]){ 0 }));
}
static void unwritten(hid_t file, form *f) { H5Dclose(put(file, "weight", f, NULL)); }
static void longer(hid_t file, form *f)
{
    f->most[0] = H5S_UNLIMITED, f->chunk[0] = (1 << 22) + 1;
    H5Dclose(put(file, "weight", f, (float[4]){ 0 }));
}
static void half_there(hid_t file, form *f)
{
    f->chunk[0] = 2;
    hid_t set = put(file, "weight", f, NULL), here = H5Screate_simple(1, (hsize_t[]){ 4 }, NULL);
    H5Sselect_hyperslab(here, H5S_SELECT_SET, (hsize_t[]){ 0 }, NULL, (hsize_t[]){ 2 }, NULL);
    cr_assert(H5Dwrite(set, H5T_NATIVE_FLOAT, here, here, H5P_DEFAULT, (float[4]){ 0 }) >= 0);
    H5Sclose(here);
    H5Dclose(set);
}

Test(chunks, refused)
{
    static const struct { void (*put)(hid_t, form *); const char *says; bool newest;
    } bad[] = { { fletcher, "weight has filters other than gzip", false },
                { unwritten, "weight has a tree of chunks that is damaged", false },
                { longer, "weight has chunks larger than its shape, and of more than 16 MiB", false },
                { half_there, "weight does not have all of its chunks", false },
                { half_there, "weight does not have all of its chunks", true },
                { fletcher, "weight has filters other than gzip", true } };
    const char *path = in_folder("f");
    weft_load_report r;
    small m = small_new(1, (hsize_t[]){ 4 });
    for (int i = 0; i < COUNT(bad); i++) {
        form f = { .rank = 1, .size = { 4 }, .chunk = { 4 }, .level = 6, .type = H5T_IEEE_F32LE };
        hid_t file = new_file(path, bad[i].newest);
        bad[i].put(file, &f);
        H5Fclose(file);
        REFUSES(weft_load_state_dict(path, m.m, NULL), WEFT_EFORMAT, bad[i].says);
        REFUSES(weft_load_state_dict(path, m.m, &r), WEFT_EFORMAT, bad[i].says);
        stays(&m);
    }
    CLEAN(m.w);
    end_folder();
}

/* A chunk that did not become shorter lies there as it is, and its key says so. */
Test(chunks, filters_that_were_skipped)
{
    const char *path = in_folder("f");
    const float raw[4] = { 1, 2, -3, 4.5f };
    small m = small_new(1, (hsize_t[]){ 4 });
    form f = {
        .rank = 1, .size = { 4 }, .chunk = { 4 }, .level = 6, .shuffle = true, .type = H5T_IEEE_F32LE
    };
    for (uint32_t mask = 1; mask <= 8; mask++) { /* 3: both are skipped; 2 alone: shuffled bytes, none here */
        hid_t file = new_file(path, false), set = put(file, "weight", &f, NULL);
        cr_assert(H5Dwrite_chunk(set, H5P_DEFAULT, mask, (hsize_t[]){ 0 }, sizeof raw, raw) >= 0);
        H5Dclose(set);
        H5Fclose(file);
        weft_status s = weft_load_state_dict(path, m.m, NULL);
        cr_assert_eq(s == WEFT_OK, mask == 2 || mask == 3, "mask %u: %s", mask, weft_file_message());
        weft_real *is = numbers(m.weight);
        for (int i = 0; mask == 3 && i < 4; i++)
            cr_assert_eq(is[i], (weft_real)raw[i]);
    }
    CLEAN(m.w);
    end_folder();
}

/* Leaves of the tree that hold another leaf's chunks: as many as must be, but some twice, some never. */
Test(chunks, a_leaf_twice)
{
    enum { N = 200, LEAF = 24 + 64 * 32 + 24 };
    const char *path = in_folder("f");
    float raw[N] = { 0 };
    small m = small_new(1, (hsize_t[]){ N });
    form f = { .rank = 1, .size = { N }, .chunk = { 1 }, .level = 0, .type = H5T_IEEE_F32LE };
    save(path, &f, raw);
    bytes b = read_bytes(path);
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
        REFUSES(weft_load_state_dict(path, m.m, NULL), WEFT_EFORMAT, "weight has a chunk twice");
        memcpy(at, was, LEAF);
    }
    write_bytes(path, b.at, b.n);
    stays(&m);
    DOES(weft_load_state_dict(path, m.m, NULL));
    free(b.at);
    CLEAN(m.w);
    end_folder();
}

/* Any bit of a small file: an error that changes nothing, or numbers; never a crash. */
Test(chunks, damaged_files_do_no_harm)
{
    const char *path = in_folder("f");
    small m = small_new(2, (hsize_t[]){ 6, 5 });
    form f = {
        .rank = 2, .size = { 6, 5 }, .chunk = { 4, 2 }, .level = 6, .shuffle = true, .type = H5T_IEEE_F32LE
    };
    float raw[30];
    for (int i = 0; i < 30; i++)
        raw[i] = (float)i;
    save(path, &f, raw);
    bytes b = read_bytes(path);
    for (int i = 0; i < rounds(3000, 100000); i++) {
        size_t bit = dice(8 * b.n);
        b.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_bytes(path, b.at, b.n);
        weft_assign_values(m.weight, (weft_real[30]){ 7 }, 30);
        weft_status s = weft_load_state_dict(path, m.m, NULL);
        weft_real *is = numbers(m.weight);
        cr_assert(s == WEFT_OK || (is[0] == 7 && is[1] == 0), "bit %zu: %s", bit, weft_file_message());
        b.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(b.at);
    CLEAN(m.w);
    end_folder();
}
