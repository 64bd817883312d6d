/* test_chunks.c - state dicts in chunks, compressed, and of half precision: libhdf5 writes them, every shape,
 * cut and filter; what inflates to more than it says takes no memory; what is refused. */
#include <hdf5.h>
#include <sys/resource.h>
#include "checkpoint.h"
#include "io/hdf5/session.h"

typedef struct {
    int rank;
    hsize_t size[3], chunk[3], most[3];
    int level;
    bool shuffle, fletcher;
    hid_t type;
} form;

static size_t numbers_of(const form *f)
{
    size_t n = 1;
    for (int i = 0; i < f->rank; i++)
        n *= (size_t)f->size[i];
    return n;
}

/* A new set; raw, which is of its type, in it, if there is some. */
static hid_t put(hid_t file, const char *name, const form *f, const void *raw)
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

static hid_t new_file(const char *path, bool newest)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (newest)
        H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    H5Pclose(list);
    cr_assert(file >= 0);
    return file;
}

static void save(const char *path, const form *f, const void *raw)
{
    hid_t file = new_file(path, false);
    H5Dclose(put(file, "weight", f, raw));
    H5Fclose(file);
}

typedef struct { weft *w; weft_module *m; weft_tensor *weight; } small;

static small small_new(int rank, const hsize_t *size)
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

static void stays(const small *k)
{
    weft_real *now = numbers(k->weight);
    for (int64_t i = 0; i < weft_numel(k->weight); i++)
        cr_assert_eq(now[i], 7);
    cr_assert_eq(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* ---- every cut ---- */
static form any_form(hid_t type)
{
    form f = { .rank = 1 + (int)dice(3), .level = (int)dice(11) - 1, .shuffle = dice(2), .type = type };
    for (int i = 0; i < f.rank; i++) {
        f.size[i] = 1 + dice(f.rank == 1 ? 3000 : 14);
        f.chunk[i] = 1 + dice(f.size[i]);
        f.most[i] = dice(2) || i ? H5S_UNLIMITED : f.size[i];
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
        save(path, &f, raw);
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

/* ---- inflating ---- */
/* The stream that libhdf5's filter makes of these bytes; to be freed. */
static unsigned char *deflated(const unsigned char *from, size_t n, int level, size_t *size)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(list, 1 << 16, 0);
    hid_t file = H5Fcreate("deflated", H5F_ACC_TRUNC, H5P_DEFAULT, list);
    form f = { .rank = 1, .size = { n }, .chunk = { n }, .level = level, .type = H5T_STD_U8LE };
    hid_t set = put(file, "x", &f, from);
    hsize_t bytes_there = 0;
    uint32_t mask = 1;
    H5Dflush(set);
    cr_assert(H5Dget_chunk_storage_size(set, (hsize_t[]){ 0 }, &bytes_there) >= 0);
    unsigned char *out = malloc((size_t)bytes_there);
    cr_assert(H5Dread_chunk(set, H5P_DEFAULT, (hsize_t[]){ 0 }, &mask, out) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    H5Pclose(list);
    *size = mask ? 0 : (size_t)bytes_there;
    return out;
}

static void fill(unsigned char *to, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(kind == 0 ? dice(256) :
                                   kind == 1 ? dice(20) ? 0 : dice(3) :
                                   kind == 2 ? (unsigned char)"the warp and the weft "[i % 22] :
                                               i > 40 && dice(9) ? to[i - 1 - dice(40)] : dice(256));
}

Test(chunks, what_was_deflated_inflates)
{
    weft__inflating *z = malloc(weft__inflating_bytes());
    for (int k = 0; k < rounds(60, 2000); k++) {
        size_t n = 1 + dice(k % 5 ? 5000 : 200000), size;
        unsigned char *plain = malloc(n), *back = malloc(n + 1);
        fill(plain, n, k % 4);
        unsigned char *stream = deflated(plain, n, k % 10, &size);
        if (size) {
            back[n] = 0xA5;
            cr_assert(weft__inflate(z, stream, size, back, n) && !memcmp(back, plain, n) && back[n] == 0xA5);
            cr_assert(!weft__inflate(z, stream, size, back, n - 1), "more than there is room for");
            cr_assert(back[n] == 0xA5 && !weft__inflate(z, stream, size - 1, back, n));
            cr_assert(!weft__inflate(z, stream, size, back, n + 1), "less than there is room for");
        }
        free(plain), free(back), free(stream);
    }
    free(z);
}

/* A changed bit is found, or by a hair's breadth makes the same bytes; nothing is written beside them. */
Test(chunks, damaged_streams)
{
    enum { N = 3000 };
    weft__inflating *z = malloc(weft__inflating_bytes());
    unsigned char plain[N], back[N + 8];
    for (int k = 0; k < 8; k++) {
        size_t size;
        fill(plain, N, k % 4);
        unsigned char *stream = deflated(plain, N, 1 + k, &size);
        for (int i = 0; size && i < rounds(2000, 100000); i++) {
            size_t bit = dice(8 * size);
            stream[bit / 8] ^= (unsigned char)(1 << bit % 8);
            memset(back + N, 0xA5, 8);
            if (weft__inflate(z, stream, size, back, N))
                cr_assert(!memcmp(back, plain, N), "bit %zu", bit);
            for (int j = N; j < N + 8; j++)
                cr_assert_eq(back[j], 0xA5);
            stream[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        for (size_t i = 0; i < size; i++)
            cr_assert(!weft__inflate(z, stream, i, back, N), "the first %zu bytes", i);
        free(stream);
    }
    free(z);
}

/* ---- more than it says ---- */
/* `value`, its first bit the highest (as codes are) or the lowest. */
static void add_bits(unsigned char *to, size_t *at, unsigned value, int n, bool highest)
{
    for (int i = 0; i < n; i++, ++*at)
        to[*at / 8] |= (unsigned char)((value >> (highest ? n - 1 - i : i) & 1) << *at % 8);
}

/* A stream that makes `n` zeros and more, by the fixed codes: a zero, then 258 more each 13 bits. */
static unsigned char *zeros(size_t n, size_t *size)
{
    unsigned char *stream = calloc(n / 258 * 13 / 8 + 100, 1);
    size_t at = 16;
    stream[0] = 0x78, stream[1] = 0x9c;
    add_bits(stream, &at, 1, 1, false);
    add_bits(stream, &at, 1, 2, false);
    add_bits(stream, &at, 0x30, 8, true);
    for (size_t made = 1; made < n; made += 258) {
        add_bits(stream, &at, 0xc5, 8, true);
        add_bits(stream, &at, 0, 5, true);
    }
    add_bits(stream, &at, 0, 7, true);
    *size = at / 8 + 5;
    return stream;
}

/* The one chunk of a set is such a stream. */
enum { BOMB = 1 << 16 };
static void bomb(const char *path, size_t n)
{
    size_t size;
    unsigned char *stream = zeros(n, &size);
    form f = { .rank = 1, .size = { BOMB }, .chunk = { BOMB }, .level = 9, .type = H5T_IEEE_F32LE };
    hid_t file = new_file(path, false), set = put(file, "weight", &f, NULL);
    cr_assert(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){ 0 }, size, stream) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    free(stream);
}

static long most_resident(void)                  /* KiB */
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

Test(chunks, a_bomb_takes_no_memory)
{
    const char *path = in_folder("f");
    bomb(path, 400 << 20);
    small m = small_new(1, (hsize_t[]){ BOMB });
    long before = most_resident();
    REFUSES(weft_load_state_dict(path, m.m, NULL), WEFT_EFORMAT, "weight has a chunk that is damaged");
    cr_assert(most_resident() - before < 40 << 10, "%ld MiB", (most_resident() - before) >> 10);
    stays(&m);
    CLEAN(m.w);
    end_folder();
}

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

/* ---- refused ---- */
static void fletcher(hid_t file, form *f)
{
    f->fletcher = true;
    H5Dclose(put(file, "weight", f, (float[4]){ 0 }));
}
static void unwritten(hid_t file, form *f) { H5Dclose(put(file, "weight", f, NULL)); }
static void longer(hid_t file, form *f)
{
    f->most[0] = H5S_UNLIMITED, f->chunk[0] = 100;
    H5Dclose(put(file, "weight", f, (float[4]){ 0 }));
}
static void integers(hid_t file, form *f)
{
    f->type = H5T_STD_I32LE;
    H5Dclose(put(file, "weight", f, (int[4]){ 0 }));
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
static void newest(hid_t file, form *f) { H5Dclose(put(file, "weight", f, (float[4]){ 0 })); }

Test(chunks, refused)
{
    static const struct { void (*put)(hid_t, form *); const char *says; bool newest;
    } bad[] = { { fletcher, "weight has filters other than gzip", false },
                { unwritten, "weight has a tree of chunks that is damaged", false },
                { longer, "weight has chunks that are empty, or larger than its shape", false },
                { integers, "weight is int32 [4]; floating-point numbers", false },
                { half_there, "weight does not have all of its chunks", false },
                { newest, "cannot be opened", true } };
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
