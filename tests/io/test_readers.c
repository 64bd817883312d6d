/* test_readers.c - tests guarantees of file readers: numbers as stored or an error, memory in proportion to
 * the file, names of unsupported formats, and texts that h5py writes. test_csv.c tests CSV. */
#include "sets.h"
#include "tests/failing_malloc.h"

/* ---- numbers that a float32 does not hold ---- */
static const char *with_numbers(const char *name, hid_t type, const double values[6])
{
    const char *path = in_folder("numbers.h5");
    hid_t f = new_file(path);
    put_numbers(f, name, type, 2, 3, values);
    if (!strcmp(name, "rows"))
        put_numbers(f, "lengths", H5T_STD_I32LE, 1, 0, (double[]){ 2 });
    H5Fclose(f);
    return path;
}

FILE_TEST(readers, float64_beyond_float32_is_reported_with_its_position)
{
    const double big[] = { 1, INFINITY, NAN, 4, -1e300, 6 },
                 fine[] = { 1, INFINITY, -INFINITY, 4, 1e-300, 3.4e38 },
                 half[] = {
                     4.0000002384185791, -4.0000002384185791, 4.00000071525573730, 1 + 0x1p-24, 0.1, 1e-45
                 };
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(2, 3), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    weft_dataset d;
    hid_t types[] = { H5T_IEEE_F64LE, H5T_IEEE_F64BE };
    for (int i = 0; i < COUNT(types) && sizeof(weft_real) == 4; i++) {
        REFUSES(weft_load_weights(with_numbers("x", types[i], big), m, NULL, NULL), WEFT_EFORMAT,
                "numbers.h5: x[1, 1] is -1e+300; expected a number that a float32 holds");
        same_bits("x", numbers(x), ((weft_real[]){ 7, 7, 7, 7, 7, 7 }), 6);
        REFUSES(weft_read_hdf5(with_numbers("rows", types[i], big), NULL, &d), WEFT_EFORMAT,
                "rows[1, 1] is -1e+300");
        cr_assert(d.n == 0 && !d.rows && !d.len);
    }
    for (int i = 0; i < COUNT(types); i++) {     /* an infinity in the file stays one */
        DOES(weft_load_weights(with_numbers("x", types[i], fine), m, NULL, NULL));
        DOES(weft_read_hdf5(with_numbers("rows", types[i], fine), NULL, &d));
        const weft_real *a = numbers(x), *b = d.rows;
        cr_assert(isinf(a[1]) && a[2] < 0 && isinf(b[2]) && a[4] == (weft_real)1e-300 &&
                  b[5] == (weft_real)3.4e38 && !memcmp(a, b, 6 * sizeof *a));
        weft_dataset_free(&d);
        DOES(weft_load_weights(with_numbers("x", types[i], half), m, NULL, NULL));
        for (int k = 0; k < COUNT(half); k++)        /* halfway: to the even one, as C rounds */
            cr_assert_eq(numbers(x)[k], (weft_real)half[k], "%.17g became %.17g", half[k],
                         (double)numbers(x)[k]);
    }
    nothing_is_open();
}

/* ---- shapes without stored data ---- */
static const char *declared(const char *name, hid_t type, bool text)
{
    const char *path = in_folder("declared.h5");
    hid_t f = new_file(path);
    if (text)
        put_letters(f, name, type, NULL);
    else
        put_numbers(f, name, type, INT32_MAX - 1, 0, NULL);
    if (text) {
        put_numbers(f, "lengths", H5T_STD_I32LE, 1, 0, (double[]){ 0 });
        put_numbers(f, "a", H5T_IEEE_F64LE, 0, 0, NULL);
    }
    H5Fclose(f);
    return path;
}

/* A file of 2 KB that declares 16 GB is refused before any allocation. */
FILE_TEST(readers, memory_follows_the_stored_size)
{
    weft_dataset d;
    weft_frame f = { 0 };
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 0x7ffffff0);
    failing.armed = true;
    failing.largest = 0;
    REFUSES(weft_read_hdf5(declared("lengths", H5T_STD_I32LE, false), NULL, &d),
            WEFT_EFORMAT, "lengths is incomplete: the file lacks bytes");
    REFUSES(weft_frame_read_hdf5(&f, declared("a", H5T_STD_U8LE, false), NULL,
                                 (const char *[]){ "a", NULL }),
            WEFT_EFORMAT, "is incomplete: the file lacks bytes");
    REFUSES(weft_frame_read_hdf5(&f, declared("ids", text, true), NULL, (const char *[]){ "a", NULL }),
            WEFT_EFORMAT, "ids is incomplete");
    failing.armed = false;
    cr_assert(failing.largest < 1 << 20, "%zu bytes were requested", failing.largest);
    H5Tclose(text);
}

Test(readers, long_shape_is_cut_in_a_message)
{
    weft__kind huge = { WEFT__F32 | WEFT__BIG,
                        6,
                        { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX } };
    struct { char text[128], tail[64]; } room;
    memset(&room, 'x', sizeof room);
    weft__kind_text(&huge, room.text);
    cr_assert_eq(strlen(room.text), 127);
    for (size_t i = 0; i < sizeof room.tail; i++)
        cr_assert_eq(room.tail[i], 'x', "byte %zu after the buffer was written", i);
}

/* ---- texts of others ---- */
/* ids as a text of these n bytes, padded as h5py (zeros), C or Fortran pad it. */
static const char *with_ids(const char *letters, size_t n, H5T_cset_t set, H5T_str_t pad)
{
    const char *path = in_folder("ids.h5");
    hid_t f = new_file(path), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, n), H5Tset_cset(text, set), H5Tset_strpad(text, pad);
    put_numbers(f, "a", H5T_IEEE_F64LE, 2, 0, (double[]){ 1, 2 });
    put_numbers(f, "lengths", H5T_STD_I64LE, 2, 0, (double[]){ 1, 1 });
    put_letters(f, "ids", text, letters);
    H5Tclose(text);
    H5Fclose(f);
    return path;
}

FILE_TEST(readers, ids_may_be_any_plain_text_type)
{
    static const struct { const char *bytes; size_t n; H5T_cset_t set; H5T_str_t pad;
    } good[] = {
        { "one\ntwo\n", 8, H5T_CSET_ASCII, H5T_STR_NULLPAD },
        { "one\ntwo\n", 9, H5T_CSET_ASCII, H5T_STR_NULLTERM },
        { "one\ntwo", 7, H5T_CSET_ASCII, H5T_STR_NULLPAD },
        { "one\ntwo\n", 8, H5T_CSET_UTF8, H5T_STR_NULLPAD },
        { "one\ntwo\n   ", 11, H5T_CSET_ASCII, H5T_STR_SPACEPAD },
        { "one\ntwo\n\0\0", 10, H5T_CSET_UTF8, H5T_STR_NULLTERM },
    };
    const char *const a[] = { "a", NULL };
    weft_frame f = { 0 };
    for (int i = 0; i < COUNT(good); i++) {
        DOES(weft_frame_read_hdf5(&f, with_ids(good[i].bytes, good[i].n, good[i].set, good[i].pad), NULL, a));
        cr_assert(f.n == 2 && !strcmp(f.id[0], "one") && !strcmp(f.id[1], "two"), "%d: %s, %s", i, f.id[0],
                  f.id[1]);
        weft_frame_free(&f);
    }
    REFUSES(weft_frame_read_hdf5(&f, with_ids("one\n", 4, H5T_CSET_ASCII, H5T_STR_NULLPAD), NULL, a),
            WEFT_EFORMAT, "\"ids\" has 1 lines; expected 2, one for each series");
    REFUSES(weft_frame_read_hdf5(&f, with_ids("a\nb\nc", 5, H5T_CSET_ASCII, H5T_STR_NULLPAD), NULL, a),
            WEFT_EFORMAT, "\"ids\" has more lines than series; expected 2");
    hid_t file = H5Fopen(with_ids("x\n", 2, H5T_CSET_ASCII, H5T_STR_NULLPAD), H5F_ACC_RDWR, H5P_DEFAULT),
          text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    H5Ldelete(file, "ids", H5P_DEFAULT);
    put_letters(file, "ids", text, &(char *){ "one\ntwo\n" });
    H5Tclose(text), H5Fclose(file);
    REFUSES(weft_frame_read_hdf5(&f, in_folder("ids.h5"), NULL, a), WEFT_EFORMAT,
            "\"ids\" is not a text of fixed length");
}

typedef struct {
    const char *name;
    const char *bytes;
    size_t n;
    const char *format;
} foreign;
#define FOREIGN(name, bytes, format)           \
    {                                          \
        name, bytes, sizeof(bytes) - 1, format \
    }
#define TEN     "          "
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
/* first bytes as torch 2.5, NumPy 2, safetensors 0.4, pickle and onnx 1.17 write them; none is complete */
static const foreign others[] = {
    FOREIGN("model.pt",
            "PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0archive/"
            "data.pklFB\x0e\0ZZZZZZZZZZZZZZ\x80\2}q\0",
            "PyTorch"),
    FOREIGN("old.pt", "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.", "PyTorch before 1.6"),
    FOREIGN("weights.h5",
            "PK\3\4-\0\0\0\0\0\0\0!\0\xc4N\x1c\xea\xff\xff\xff\xff\xff\xff\xff\xff\x05\0\x14\0x."
            "npy\1\0\x10\0\x98\0",
            "NumPy"),
    FOREIGN("m.safetensors",
            "\x3d\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}    \0\0\0",
            "safetensors"),
    /* 640 bytes of JSON: the length begins as a pickle of protocol 2 does */
    FOREIGN("long.safetensors",
            "\x80\2\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}," TEN HUNDRED HUNDRED HUNDRED HUNDRED
                HUNDRED HUNDRED,
            "safetensors"),
    FOREIGN("m.onnx",
            "\x08\x08\x12\x07pytorch\x1a\x05"
            "2.5.1:\x8c\1",
            "ONNX"),
    FOREIGN("m.pkl", "\x80\4\x95\x10\0\0\0\0\0\0\0}\x94", "Python pickle"),
    FOREIGN("m.keras",
            "PK\3\4\x14\0\0\0\0\0\0\0!\0\xc4N\x1c\xea\x40\0\0\0\x40\0\0\0\x0d\0\0\0metadata.json{}", "Keras"),
};

FILE_TEST(readers, files_of_other_programs_are_recognised)
{
    weft_module *m = weft_module_new(w, "m");
    weft_parameter(m, "x", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    for (int i = 0; i < COUNT(others); i++) {
        const char *path = put_bytes(others[i].name, others[i].bytes, others[i].n);
        int32_t x;
        weft_checkpoint_item item = { "x", WEFT_I32, &x, 1 };
        REFUSES(weft_load(path, m, NULL, NULL, 0), WEFT_EFORMAT, others[i].format);
        MESSAGE_HAS("weft_load_weights");
        REFUSES(weft_load(path, NULL, NULL, &item, 1), WEFT_EFORMAT, others[i].format);
        REFUSES(weft_load_weights(path, m, NULL, NULL), WEFT_EFORMAT, others[i].format);
        REFUSES(weft_load_weights(path, m, NULL, &(weft_load_report){ 0 }), WEFT_EFORMAT, others[i].name);
    }
}
