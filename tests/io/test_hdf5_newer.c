/* test_hdf5_newer.c - HDF5 files as h5py writes them today: every integer and float type in either byte
 * order, bool, libver="latest" with each of its indexes of chunks, a user block, SWMR; numbers that do not
 * fit; damage. */
#include "io/hdf5/session.h"
#include "checkpoint.h"

enum { N = 60, ROWS = 20 };
static const int32_t lengths[2] = { 8, 12 };
typedef struct { bool latest, chunked, gzip; hsize_t user_block; hsize_t most; } form;

static hid_t new_file(const char *path, const form *f)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    if (f->latest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_userblock(creation, f->user_block);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    cr_assert(file >= 0);
    H5Pclose(access), H5Pclose(creation);
    return file;
}

/* Values of a memory type, stored as `type`; chunks of 7 numbers along the first axis. */
static void put(hid_t file, const char *name, const form *f, hid_t type, int rank, const hsize_t *size,
                hid_t memory, const void *values)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[] = { size[0] < 7 ? size[0] : 7, 2 },
            most[] = { f->most ? f->most : size[0], rank > 1 ? size[1] : 0 };
    if (f->chunked)
        H5Pset_chunk(list, rank, chunk);
    if (f->gzip)
        H5Pset_shuffle(list), H5Pset_deflate(list, 5);
    hid_t space = H5Screate_simple(rank, size, f->chunked ? most : NULL),
          set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(set >= 0 && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "%s", name);
    H5Dclose(set), H5Sclose(space), H5Pclose(list);
}

/* The values 0 .. N - 1, bool: 0 and 1 in turn, as "x", "tokens" or "rows", and "lengths". */
static const char *file_of(const form *f, hid_t type, bool truth)
{
    const char *path = in_folder("types.h5");
    hid_t file = new_file(path, f), rows = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int values[N];
    signed char bits[N];
    for (int i = 0; i < N; i++)
        bits[i] = i % 2, values[i] = truth ? i % 2 : i;
    const void *numbers_ = truth ? (const void *)bits : values;
    hid_t memory = truth ? type : H5T_NATIVE_INT,
          lens = truth || H5Tget_class(type) == H5T_FLOAT ? H5T_STD_I16BE : type;
    put(file, "x", f, type, 1, (hsize_t[]){ N }, memory, numbers_);
    put(file, "tokens", f, type, 1, (hsize_t[]){ ROWS }, memory, numbers_);
    put(file, "lengths", f, lens, 1, (hsize_t[]){ 2 }, H5T_NATIVE_INT, lengths);
    put(file, "g/rows", f, type, 2, (hsize_t[]){ ROWS, 3 }, memory, numbers_);
    put(file, "g/lengths", f, lens, 1, (hsize_t[]){ 2 }, H5T_NATIVE_INT, lengths);
    H5Gclose(rows), H5Fclose(file);
    return path;
}

static void check_dataset(const char *path, bool tokens, bool truth)
{
    weft_dataset d, part;
    weft_hdf5 *file;
    const char *group = tokens ? NULL : "g";
    DOES(weft_read_hdf5(path, group, &d));
    DOES(weft_open_hdf5(path, group, &file));
    DOES(weft_read_hdf5_part(file, (int32_t[]){ 1 }, 1, &part));
    cr_assert(d.n == 2 && d.len[0] == 8 && d.len[1] == 12 && part.len[0] == 12);
    for (int i = 0; i < (tokens ? ROWS : N); i++)
        cr_assert_eq(tokens ? d.ints[i] : (int)d.rows[i], truth ? i % 2 : i);
    for (int i = 0; i < 12; i++)
        cr_assert_eq(tokens ? part.ints[i] : (int)part.rows[3 * i], truth ? (tokens ? i : 3 * i) % 2 :
                                                                   tokens ? 8 + i : 24 + 3 * i);
    weft_close_hdf5(file);
    weft_dataset_free(&d), weft_dataset_free(&part);
}

static void check_all(const form *f, hid_t type, bool truth)
{
    const char *path = file_of(f, type, truth);
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(N), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    weft_load_report r;
    weft_frame frame = { 0 };
    static const char *const only_x[] = { "x", NULL };
    if (H5Tget_class(type) != H5T_FLOAT)
        check_dataset(path, true, truth);
    check_dataset(path, false, truth);
    DOES(weft_load_state_dict(path, m, &r));
    cr_assert_eq(r.loaded, 1);
    hid_t one = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);        /* for the frame: one series */
    cr_assert(one >= 0 && H5Ldelete(one, "lengths", H5P_DEFAULT) >= 0);
    H5Fclose(one);
    DOES(weft_frame_read_hdf5(&frame, path, NULL, only_x));
    for (int i = 0; i < N; i++) {
        int want = truth ? i % 2 : i;
        cr_assert(numbers(x)[i] == want && frame.column[0][i] == want, "number %d", i);
    }
    weft_frame_free(&frame);
    CLEAN(w);
}

static hid_t bool_type(void)                     /* h5py's */
{
    hid_t t = H5Tenum_create(H5T_STD_I8LE);
    H5Tenum_insert(t, "FALSE", (signed char[]){ 0 });
    H5Tenum_insert(t, "TRUE", (signed char[]){ 1 });
    return t;
}

Test(hdf5_newer, every_type_in_every_form)
{
    static const form forms[] = { { false, false, false, 0, 0 },
                                  { false, true, true, 0, 0 },
                                  { true, false, false, 0, 0 },
                                  { true, true, true, 512, 0 },
                                  { true, true, false, 2048, H5S_UNLIMITED } };
    const hid_t types[] = { H5T_STD_I8LE,  H5T_STD_U8BE,  H5T_STD_I16LE, H5T_STD_I16BE, H5T_STD_U16LE,
                            H5T_STD_U16BE, H5T_STD_I32LE, H5T_STD_I32BE, H5T_STD_U32LE, H5T_STD_U32BE,
                            H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_U64LE, H5T_STD_U64BE, H5T_IEEE_F32LE,
                            H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE };
    for (int k = 0; k < COUNT(forms); k++) {
        for (int i = 0; i < COUNT(types); i++)
            check_all(&forms[k], types[i], false);
        for (weft__number half = WEFT__F16; half <= WEFT__BF16_BE; half++) {
            hid_t t = weft__h5_type(half, 0);
            check_all(&forms[k], t, false);
            H5Tclose(t);
        }
        hid_t t = bool_type();
        check_all(&forms[k], t, true);
        H5Tclose(t);
    }
    end_folder();
}

/* ---- integers that do not fit: the place and the value are said ---- */
static const char *with_integers(const char *name, hid_t type, hid_t memory, const void *four)
{
    const char *path = in_folder("fit.h5");
    const form f = { .chunked = true };
    hid_t file = new_file(path, &f);
    put(file, name, &f, type, 1, (hsize_t[]){ 4 }, memory, four);
    if (strcmp(name, "lengths"))
        put(file, "lengths", &f, H5T_STD_I32LE, 1, (hsize_t[]){ 1 }, H5T_NATIVE_INT, (int[]){ 4 });
    else
        put(file, "tokens", &f, H5T_STD_I32LE, 1, (hsize_t[]){ 1 }, H5T_NATIVE_INT, (int[]){ 4 });
    H5Fclose(file);
    return path;
}

Test(hdf5_newer, integers_that_do_not_fit_are_named)
{
    static const struct { const char *name; bool is_unsigned; int64_t four[4]; const char *says; } bad[] = {
        { "tokens", false, { 1, 2, 1LL << 31, 4 }, "tokens[2] is 2147483648, which an int32 does not hold" },
        { "tokens", false, { 1, -(1LL << 31) - 1, 3, 4 }, "tokens[1] is -2147483649, which an int32" },
        { "tokens", true, { 1, 2, 3, -1 }, "tokens[3] is 18446744073709551615, which an int32" },
        { "lengths", true, { 1, 1, 1, -1 }, "lengths[3] is 18446744073709551615, which an int64" },
        { "lengths", false, { 1, 1, 1, -5 }, "sequence 3 has length -5" },
        { "x", false, { 0, 1764249600000000100, 0, 0 }, "x[0] is 0; a double does not hold that less" },
        { "x", false, { 0, 0, -9007199254740993, 0 }, "less the first large integer, -9007199254740993" },
        { "x", true, { -1, 0, 0, 0 }, "x[0] is 18446744073709551615, an integer that a double" },
    };
    const int64_t good[] = { INT64_MIN, 1764249600000000000, -9007199254740992, 1LL << 62 };
    weft_dataset d;
    weft_frame f = { 0 };
    static const char *const only_x[] = { "x", NULL };
    for (int i = 0; i < COUNT(bad); i++)
        for (int big = 0; big < 2; big++) {
            hid_t type = bad[i].is_unsigned ? big ? H5T_STD_U64BE : H5T_STD_U64LE :
                         big                ? H5T_STD_I64BE :
                                              H5T_STD_I64LE,
                  memory = bad[i].is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
            const char *path = with_integers(bad[i].name, type, memory, bad[i].four);
            if (*bad[i].name == 'x')
                REFUSES(weft_frame_read_hdf5(&f, path, NULL, only_x), WEFT_EFORMAT, bad[i].says);
            else
                REFUSES(weft_read_hdf5(path, NULL, &d), WEFT_EFORMAT, bad[i].says);
        }
    DOES(weft_frame_read_hdf5(&f, with_integers("x", H5T_STD_I64BE, H5T_NATIVE_INT64, good), NULL, only_x));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(f.column[0][i], (double)good[i]);
    weft_frame_free(&f);
    end_folder();
}

/* ---- indexes of chunks ---- */
enum { MANY = 1500 };                            /* chunks of one number: arrays in pages */
typedef struct { int rank; hsize_t size[2], chunk[2], most[2]; bool gzip, early; } indexed;
static const indexed indexes[] = {
    { 1, { 140000 }, { 1 }, { H5S_UNLIMITED }, false, false },                   /* data blocks in pages */
    { 1, { 60 }, { 60 }, { 60 }, true, false },                                  /* a single chunk */
    { 1, { 60 }, { 7 }, { 60 }, false, true },                                   /* implicit */
    { 1, { 60 }, { 7 }, { 60 }, false, false },                                  /* a fixed array */
    { 2, { 7, 9 }, { 2, 4 }, { 20, 11 }, true, false },                          /* and room */
    { 1, { MANY }, { 1 }, { 2 * MANY }, false, false },                          /* in pages */
    { 1, { MANY }, { 1 }, { H5S_UNLIMITED }, true, false },                      /* an extensible array */
    { 2, { 7, 9 }, { 2, 4 }, { 20, H5S_UNLIMITED }, false, false },              /* by columns */
    { 1, { 3 }, { 100 }, { H5S_UNLIMITED }, true, false },                       /* shorter than a chunk */
    { 2, { 7, 9 }, { 2, 4 }, { H5S_UNLIMITED, H5S_UNLIMITED }, true, false },    /* a tree */
    { 2, { 30, 40 }, { 1, 1 }, { H5S_UNLIMITED, H5S_UNLIMITED }, false, false }, /* of two levels */
};

static int64_t save_indexed(const char *path, const indexed *k)
{
    const form latest = { .latest = true };
    hid_t file = new_file(path, &latest), list = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(k->rank, k->size, k->most);
    int64_t n = (int64_t)(k->size[0] * (k->rank > 1 ? k->size[1] : 1));
    float *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)i + 1;
    H5Pset_chunk(list, k->rank, k->chunk);
    if (k->gzip)
        H5Pset_shuffle(list), H5Pset_deflate(list, 5);
    if (k->early)
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set), H5Sclose(space), H5Pclose(list), H5Fclose(file);
    free(values);
    return n;
}

static weft_module *module_of(weft *w, const indexed *k, weft_tensor **x)
{
    weft_module *m = weft_module_new(w, "m");
    int64_t size[] = { (int64_t)k->size[0], (int64_t)k->size[1] };
    *x = weft_parameter(m, "x", k->rank, size, (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    return m;
}

Test(hdf5_newer, every_index_of_chunks)
{
    const char *path = in_folder("index.h5");
    for (int i = rounds(1, 0); i < COUNT(indexes); i++) {         /* libhdf5 takes 10 s to write the first */
        weft *w = open_on(WEFT_CPU);
        weft_tensor *x;
        weft_module *m = module_of(w, &indexes[i], &x);
        int64_t n = save_indexed(path, &indexes[i]);
        DOES(weft_load_state_dict(path, m, NULL));
        for (int64_t k = 0; k < n; k++)
            cr_assert_eq(numbers(x)[k], (weft_real)(k + 1), "index %d, number %lld", i, (long long)k);
        CLEAN(w);
    }
    end_folder();
}

/* Corrects the checksum of a block of n bytes. */
static void seal(unsigned char *at, size_t n)
{
    weft__h5_image image = { .bytes = at, .size = n };
    uint32_t sum;
    cr_assert(weft__h5_sum(&image, 0, n - 4, &sum));
    memcpy(at + n - 4, &sum, 4);
}

/* A bit of the file is turned; where it is in a header of known length, half of the time with a right
 * checksum. An error changes nothing, and nothing crashes. */
Test(hdf5_newer, damaged_indexes_do_no_harm)
{
    static const struct { char sign[5]; size_t bytes; } header[] = { { "FAHD", 28 },
                                                                     { "EAHD", 72 },
                                                                     { "BTHD", 38 } };
    const char *path = in_folder("index.h5");
    for (int i = 1; i < COUNT(indexes); i++) {       /* the first is large */
        weft *w = open_on(WEFT_CPU);
        weft_tensor *x;
        weft_module *m = module_of(w, &indexes[i], &x);
        save_indexed(path, &indexes[i]);
        bytes b = read_bytes(path), copy = { malloc(b.n), b.n };
        size_t at = 0, known = 0;
        for (size_t k = 0; k + 80 < b.n; k++)
            for (int h = 0; h < COUNT(header); h++)
                if (!memcmp(b.at + k, header[h].sign, 4))
                    at = k, known = header[h].bytes;
        for (int k = 0; k < rounds(200, 10000); k++) {
            memcpy(copy.at, b.at, b.n);
            size_t first = b.n < 4096 ? b.n : 4096,
                   bit = known && k % 2 ? 8 * at + 32 + dice(8 * (known - 8)) : dice(8 * first);
            copy.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (known && k % 2)
                seal(copy.at + at, known);
            write_bytes(path, copy.at, b.n);
            weft_assign_values(x, (weft_real[2400]){ 7 }, weft_numel(x));
            weft_status s = weft_load_state_dict(path, m, NULL);
            cr_assert(s == WEFT_OK || (numbers(x)[0] == 7 && numbers(x)[1] == 0), "bit %zu", bit);
        }
        free(b.at), free(copy.at);
        CLEAN(w);
    }
    cr_assert_eq(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    end_folder();
}

/* ---- a writer that is still there ---- */
Test(hdf5_newer, a_file_that_is_being_written)
{
    const char *path = in_folder("swmr.h5");
    indexed k = { 1, { 60 }, { 7 }, { H5S_UNLIMITED }, true, false };
    weft *w = open_on(WEFT_CPU);
    weft_tensor *x;
    weft_module *m = module_of(w, &k, &x);
    save_indexed(path, &k);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, access);
    cr_assert(file >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    DOES(weft_load_state_dict(path, m, NULL));   /* a writer with SWMR lets others read */
    cr_assert_eq(numbers(x)[59], 60);
    H5Fclose(file);
    DOES(weft_load_state_dict(path, m, NULL));
    file = H5Fopen(path, H5F_ACC_RDWR, access);
    cr_assert(file >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    REFUSES(weft_load_state_dict(path, m, NULL), WEFT_EFORMAT, "h5clear -s");
    H5Fclose(file), H5Pclose(access);
    write_bytes(path, "not HDF5 at all", 15);
    REFUSES(weft_load_state_dict(path, m, NULL), WEFT_EFORMAT, "is not an HDF5 file");
    CLEAN(w);
    end_folder();
}
