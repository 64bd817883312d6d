/* test_hdf5_newer.c - tests HDF5 files as h5py writes them today: every integer and float type in either byte
 * order, bool, a user block, SWMR, and numbers out of range. test_chunks.c tests indexes of chunks. */
#include "sets.h"

enum { N = 60, ROWS = 20 };
static const int32_t lengths[2] = { 8, 12 };
static const char *const only_x[] = { "x", NULL };
typedef struct { age age; bool chunked; int gzip; hsize_t user_block, most; } way;

/* A set of one or two axes; chunks of 7 numbers along the first. */
static void put(hid_t file, const char *name, const way *v, hid_t type, hsize_t n, hsize_t columns,
                hid_t memory, const void *values)
{
    form f = { .type = type, .rank = columns ? 2 : 1, .size = { n, columns }, .gzip = v->gzip };
    if (v->chunked) {
        f.chunk[0] = n < 7 ? n : 7;
        f.chunk[1] = 2;
        f.most[0] = v->most ? v->most : n;
        f.most[1] = columns;
        f.shuffle = v->gzip;
    }
    put_set(file, name, &f, memory, values);
}

/* The values 0 .. N - 1, bool: 0 and 1 in turn, as "x", "tokens" or "rows", and "lengths". */
static const char *file_of(const way *v, hid_t type, bool truth)
{
    const char *path = in_folder("types.h5");
    hid_t file = new_file_of(path, v->age, v->user_block);
    int values[N];
    signed char bits[N];
    for (int i = 0; i < N; i++) {
        bits[i] = i % 2;
        values[i] = i;
    }
    const void *numbers_ = truth ? (const void *)bits : values;
    hid_t memory = truth ? type : H5T_NATIVE_INT,
          lens = truth || H5Tget_class(type) == H5T_FLOAT ? H5T_STD_I16BE : type;
    put(file, "x", v, type, N, 0, memory, numbers_);
    put(file, "tokens", v, type, ROWS, 0, memory, numbers_);
    put(file, "lengths", v, lens, 2, 0, H5T_NATIVE_INT, lengths);
    put(file, "g/rows", v, type, ROWS, 3, memory, numbers_);
    put(file, "g/lengths", v, lens, 2, 0, H5T_NATIVE_INT, lengths);
    H5Fclose(file);
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

static void check_all(const way *v, hid_t type, bool truth)
{
    const char *path = file_of(v, type, truth);
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(N), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    weft_load_report r;
    weft_frame frame = { 0 };
    if (H5Tget_class(type) != H5T_FLOAT)
        check_dataset(path, true, truth);
    check_dataset(path, false, truth);
    DOES(weft_load_weights(path, m, NULL, &r));
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

FILE_TEST(hdf5_newer, every_type_and_form_is_read)
{
    static const way ways[] = { { OLDEST, false, 0, 0, 0 },
                                { OLDEST, true, 6, 0, 0 },
                                { LATEST, false, 0, 0, 0 },
                                { LATEST, true, 6, 512, 0 },
                                { LATEST, true, 0, 2048, H5S_UNLIMITED } };
    const hid_t types[] = { H5T_STD_I8LE,  H5T_STD_U8BE,  H5T_STD_I16LE, H5T_STD_I16BE, H5T_STD_U16LE,
                            H5T_STD_U16BE, H5T_STD_I32LE, H5T_STD_I32BE, H5T_STD_U32LE, H5T_STD_U32BE,
                            H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_U64LE, H5T_STD_U64BE, H5T_IEEE_F32LE,
                            H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE };
    for (int k = 0; k < COUNT(ways); k++) {
        for (int i = 0; i < COUNT(types); i++)
            check_all(&ways[k], types[i], false);
        for (int half = 0; half < 4; half++) {
            hid_t t = half_type(half > 1, half % 2);
            check_all(&ways[k], t, false);
            H5Tclose(t);
        }
        hid_t t = bool_type();
        check_all(&ways[k], t, true);
        H5Tclose(t);
    }
}

/* ---- integers out of range: the message has position and value ---- */
static const char *with_integers(const char *name, hid_t type, hid_t memory, const void *four)
{
    const char *path = in_folder("fit.h5");
    const way v = { .chunked = true };
    hid_t file = new_file(path);
    put(file, name, &v, type, 4, 0, memory, four);
    put(file, strcmp(name, "lengths") ? "lengths" : "tokens", &v, H5T_STD_I32LE, 1, 0, H5T_NATIVE_INT,
        (int[]){ 4 });
    H5Fclose(file);
    return path;
}

FILE_TEST(hdf5_newer, integers_out_of_range_are_named)
{
    static const struct { const char *name; bool is_unsigned; int64_t four[4]; const char *says; } bad[] = {
        { "tokens", false, { 1, 2, 1LL << 31, 4 },
          "tokens[2] is 2147483648; expected a number that an int32 holds" },
        { "tokens", false, { 1, -(1LL << 31) - 1, 3, 4 },
          "tokens[1] is -2147483649; expected a number that an int32" },
        { "tokens", true, { 1, 2, 3, -1 },
          "tokens[3] is 18446744073709551615; expected a number that an int32" },
        { "lengths", true, { 1, 1, 1, -1 },
          "lengths[3] is 18446744073709551615; expected a number that an int64" },
        { "lengths", false, { 1, 1, 1, -5 }, "sequence 3 has length -5" },
        { "x", false, { 0, 1764249600000000100, 0, 0 }, "x[0] is 0; a double does not hold that less" },
        { "x", false, { 0, 0, -9007199254740993, 0 }, "less the first large integer, -9007199254740993" },
        { "x", true, { -1, 0, 0, 0 }, "x[0] is 18446744073709551615; expected an integer that a double" },
    };
    const int64_t good[] = { INT64_MIN, 1764249600000000000, -9007199254740992, 1LL << 62 };
    weft_dataset d;
    weft_frame f = { 0 };
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
}

FILE_TEST(hdf5_newer, file_open_for_swmr_writing_is_read)
{
    enum { SUM = 44 };                           /* of the superblock */
    const char *path = in_folder("swmr.h5");
    form f = { .type = H5T_IEEE_F32LE, .rank = 1, .size = { N }, .chunk = { 7 }, .most = { H5S_UNLIMITED },
               .gzip = 6 };
    small m = small_in(w, 1, f.size);
    float values[N] = { 0 };
    values[N - 1] = 60;
    hid_t file = new_file_of(path, LATEST, 0), access = H5Pcreate(H5P_FILE_ACCESS);
    put_set(file, "weight", &f, H5T_NATIVE_FLOAT, values);
    H5Fclose(file);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    file = H5Fopen(path, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, access);
    cr_assert(file >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    DOES(weft_load_weights(path, m.m, NULL, NULL)); /* a writer with SWMR lets others read */
    cr_assert_eq(numbers(m.weight)[N - 1], 60);
    content b = read_bytes(path);
    b.at[SUM] ^= 1;                              /* damaged files are not retried */
    const char *damaged = put_bytes("sum.h5", b.at, b.n);
    REFUSES(weft_load_weights(damaged, m.m, NULL, NULL), WEFT_EFORMAT, "cannot be opened");
    H5Fclose(file);
    DOES(weft_load_weights(path, m.m, NULL, NULL));
    file = H5Fopen(path, H5F_ACC_RDWR, access);
    cr_assert(file >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, "h5clear -s");
    H5Fclose(file), H5Pclose(access);
}
