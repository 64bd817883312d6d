/* test_readers.c - what readers of files owe to whoever gives them a file: numbers as they are stored or an
 * error, memory in the file's measure, names of formats that are not ours, the texts that h5py writes, CSV of
 * other habits. */
#include "sets.h"
#include "tests/failing_malloc.h"
#include "tests/listen.h"

static const char *put_bytes(const char *name, const void *at, size_t n)
{
    const char *path = in_folder(name);
    write_bytes(path, at, n);
    return path;
}
static const char *put_text(const char *name, const char *text)
{
    return put_bytes(name, text, strlen(text));
}

/* ---- numbers that a float32 does not hold ---- */
static const char *with_numbers(const char *name, hid_t type, const double values[6])
{
    const char *path = in_folder("numbers.h5");
    hid_t f = new_file(path);
    add_set(f, name, type, 2, (hsize_t[]){ 2, 3 }, values);
    if (!strcmp(name, "rows"))
        add_set(f, "lengths", H5T_STD_I32LE, 1, (hsize_t[]){ 1 }, (double[]){ 2 });
    H5Fclose(f);
    return path;
}

Test(readers, a_float64_beyond_float32_is_told_with_its_place)
{
    const double big[] = { 1, INFINITY, NAN, 4, -1e300, 6 },
                 fine[] = { 1, INFINITY, -INFINITY, 4, 1e-300, 3.4e38 };
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(2, 3), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    weft_dataset d;
    hid_t types[] = { H5T_IEEE_F64LE, H5T_IEEE_F64BE };
    for (int i = 0; i < COUNT(types) && sizeof(weft_real) == 4; i++) {
        REFUSES(weft_load_state_dict(with_numbers("x", types[i], big), m, NULL), WEFT_EFORMAT,
                "numbers.h5: x[1, 1] is -1e+300, which is too large");
        same_bits("x", numbers(x), ((weft_real[]){ 7, 7, 7, 7, 7, 7 }), 6);
        REFUSES(weft_read_hdf5(with_numbers("rows", types[i], big), NULL, &d), WEFT_EFORMAT,
                "rows[1, 1] is -1e+300");
        cr_assert(d.n == 0 && !d.rows && !d.len);
    }
    for (int i = 0; i < COUNT(types); i++) {     /* what is infinite in the file stays so */
        DOES(weft_load_state_dict(with_numbers("x", types[i], fine), m, NULL));
        DOES(weft_read_hdf5(with_numbers("rows", types[i], fine), NULL, &d));
        const weft_real *a = numbers(x), *b = d.rows;
        cr_assert(isinf(a[1]) && a[2] < 0 && isinf(b[2]) && a[4] == (weft_real)1e-300 &&
                  b[5] == (weft_real)3.4e38 && !memcmp(a, b, 6 * sizeof *a));
        weft_dataset_free(&d);
    }
    cr_assert_eq(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    CLEAN(w);
    end_folder();
}

/* Halfway between two of them, to the even one, as C rounds. */
Test(readers, a_float64_is_rounded_to_the_nearest_in_both_orders_of_bytes)
{
    const double half[] = {
        4.0000002384185791, -4.0000002384185791, 4.00000071525573730, 1 + 0x1p-24, 0.1, 1e-45
    };
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(2, 3), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    hid_t types[] = { H5T_IEEE_F64LE, H5T_IEEE_F64BE };
    for (int i = 0; i < COUNT(types); i++) {
        DOES(weft_load_state_dict(with_numbers("x", types[i], half), m, NULL));
        const weft_real *is = numbers(x);
        for (int k = 0; k < COUNT(half); k++)
            cr_assert(is[k] == (weft_real)half[k], "type %d: %.17g became %.17g", i, half[k], (double)is[k]);
    }
    CLEAN(w);
    end_folder();
}

/* ---- shapes of which nothing is stored ---- */
static const char *declared(const char *name, hid_t type, hsize_t n, int rank, bool text)
{
    const char *path = in_folder("declared.h5");
    hsize_t size[6] = { n, n, n, n, n, n }, chunk[6] = { 1, 1, 1, 1, 1, 1 };
    hid_t f = new_file(path), list = H5Pcreate(H5P_DATASET_CREATE),
          space = text ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, size, NULL);
    if (rank > 1)
        H5Pset_chunk(list, rank, chunk);
    hid_t set = H5Dcreate2(f, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(set >= 0);
    if (strcmp(name, "lengths") && strcmp(name, "a"))
        add_set(f, "lengths", H5T_STD_I32LE, 1, (hsize_t[]){ 1 }, (double[]){ 0 });
    if (!strcmp(name, "ids"))
        add_set(f, "a", H5T_IEEE_F64LE, 1, (hsize_t[]){ 0 }, NULL);
    H5Dclose(set), H5Sclose(space), H5Pclose(list), H5Fclose(f);
    return path;
}

/* A file of 2 KB that declares 16 GB: refused before memory is asked for. */
Test(readers, memory_is_asked_for_what_is_stored)
{
    weft_dataset d;
    weft_frame f = { 0 };
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 0x7ffffff0);
    failing.armed = true;
    failing.largest = 0;
    REFUSES(weft_read_hdf5(declared("lengths", H5T_STD_I32LE, INT32_MAX - 1, 1, false), NULL, &d),
            WEFT_EFORMAT, "lengths does not have the bytes");
    REFUSES(weft_frame_read_hdf5(&f, declared("a", H5T_STD_U8LE, INT32_MAX - 1, 1, false), NULL,
                                 (const char *[]){ "a", NULL }),
            WEFT_EFORMAT, "does not have the bytes");
    REFUSES(weft_frame_read_hdf5(&f, declared("ids", text, 1, 1, true), NULL, (const char *[]){ "a", NULL }),
            WEFT_EFORMAT, "ids does not have the bytes");
    failing.armed = false;
    cr_assert(failing.largest < 1 << 20, "%zu bytes were asked for", failing.largest);
    H5Tclose(text);
    end_folder();
}

Test(readers, a_shape_of_large_numbers_is_cut_in_a_message)
{
    weft__kind huge = { WEFT__F32_BE,
                        6,
                        { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX } };
    struct { char text[128], behind[64]; } room;
    memset(&room, 'x', sizeof room);
    weft__kind_text(&huge, room.text);
    cr_assert_eq(strlen(room.text), 127);
    for (size_t i = 0; i < sizeof room.behind; i++)
        cr_assert_eq(room.behind[i], 'x', "byte %zu behind the buffer was written", i);
}

/* ---- texts of others ---- */
/* ids as a text of these n bytes, padded as h5py (zeros), C or Fortran pad it. */
static const char *with_ids(const char *letters, size_t n, H5T_cset_t set, H5T_str_t pad)
{
    const char *path = in_folder("ids.h5");
    hid_t f = new_file(path), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, n), H5Tset_cset(text, set), H5Tset_strpad(text, pad);
    add_set(f, "a", H5T_IEEE_F64LE, 1, (hsize_t[]){ 2 }, (double[]){ 1, 2 });
    add_set(f, "lengths", H5T_STD_I64LE, 1, (hsize_t[]){ 2 }, (double[]){ 1, 1 });
    add_set(f, "ids", text, 0, NULL, letters);
    H5Tclose(text);
    H5Fclose(f);
    return path;
}

Test(readers, ids_are_texts_of_any_plain_kind)
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
            WEFT_EFORMAT, "\"ids\" has 1 lines, there are 2 series");
    hid_t file = H5Fopen(with_ids("x\n", 2, H5T_CSET_ASCII, H5T_STR_NULLPAD), H5F_ACC_RDWR, H5P_DEFAULT),
          text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    H5Ldelete(file, "ids", H5P_DEFAULT);
    add_set(file, "ids", text, 0, NULL, &(char *){ "one\ntwo\n" });
    H5Tclose(text), H5Fclose(file);
    REFUSES(weft_frame_read_hdf5(&f, in_folder("ids.h5"), NULL, a), WEFT_EFORMAT,
            "\"ids\" is no text of fixed length");
    end_folder();
}

/* ---- files of other programs where weights are expected ---- */
typedef struct { const char *name; const char *bytes; size_t n; const char *what, *how; } foreign;
#define FOREIGN(name, bytes, what, how) { name, bytes, sizeof(bytes) - 1, what, how }
#define TEN     "          "
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
/* first bytes as torch 2.5, NumPy 2, safetensors 0.4, pickle and onnx 1.17 write them */
static const foreign others[] = {
    FOREIGN("model.pt",
            "PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0archive/"
            "data.pklFB\x0e\0ZZZZZZZZZZZZZZ\x80\2}q\0",
            "model.pt is a file of torch.save", "torch.load"),
    FOREIGN("old.pt", "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.", "a file of torch.save",
            "torch.load"),
    FOREIGN("weights.h5",
            "PK\3\4-\0\0\0\0\0\0\0!\0\xc4N\x1c\xea\xff\xff\xff\xff\xff\xff\xff\xff\x05\0\x14\0x."
            "npy\1\0\x10\0\x98\0",
            "weights.h5 is a NumPy archive (.npz)", "numpy.load"),
    FOREIGN(
        "m.safetensors",
        "\x3d\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}    \0\0\0\0",
        "a safetensors file", "safetensors.torch"),
    /* 640 bytes of JSON: the length begins as a pickle of protocol 2 does */
    FOREIGN("long.safetensors", "\x80\2\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},"
            TEN HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED, "a safetensors file", "safetensors.torch"),
    FOREIGN("m.onnx",
            "\x08\x08\x12\x07pytorch\x1a\x05"
            "2.5.1:\x8c\1",
            "an ONNX model", "onnx.load"),
    FOREIGN("m.pkl", "\x80\4\x95\x10\0\0\0\0\0\0\0}\x94", "a pickle of Python's", "pickle.load"),
    FOREIGN("m.keras",
            "PK\3\4\x14\0\0\0\0\0\0\0!\0\xc4N\x1c\xea\x40\0\0\0\x40\0\0\0\x0d\0\0\0metadata.json{}",
            "a zip archive", "Unpack"),
};

Test(readers, files_of_other_programs_say_what_they_are)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_parameter(m, "x", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    for (int i = 0; i < COUNT(others); i++) {
        const char *path = put_bytes(others[i].name, others[i].bytes, others[i].n);
        for (int k = 0; k < 3; k++) {
            int32_t x;
            weft_checkpoint_item item = { "x", WEFT_I32, &x, 1 };
            weft_status s = k == 0 ? weft_load(path, m, NULL, NULL, 0) :
                            k == 1 ? weft_load_state_dict(path, m, NULL) :
                                     weft_load(path, NULL, NULL, &item, 1);
            const char *says = weft_file_message(), *line = strchr(says, '\n');
            cr_assert(s == WEFT_EFORMAT && strstr(says, others[i].what) && strstr(says, others[i].how) &&
                          strstr(says, "weft_load_state_dict"),
                      "%d: %s", i, says);
            cr_assert(line && !strchr(line + 1, '\n'), "two lines are expected: %s", says);
        }
    }
    CLEAN(w);
    end_folder();
}

/* Keras keeps its arrays under other names and in other forms: no name fits, and the message says why. */
Test(readers, files_of_keras_say_what_to_do)
{
    static const char *const names[][2] = { { "layers/lstm/cell/vars", "layers/lstm/cell/vars/0" },
                                            { "model_weights/lstm", "model_weights/lstm/kernel:0" } };
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_parameter(m, "x", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    for (int i = 0; i < COUNT(names); i++) {
        const char *path = in_folder("keras.h5");
        hid_t f = new_file(path), links = H5Pcreate(H5P_LINK_CREATE);
        H5Pset_create_intermediate_group(links, 1);
        H5Gclose(H5Gcreate2(f, names[i][0], links, H5P_DEFAULT, H5P_DEFAULT));
        add_set(f, names[i][1], H5T_IEEE_F32LE, 1, (hsize_t[]){ 2 }, (double[]){ 1, 2 });
        H5Pclose(links), H5Fclose(f);
        REFUSES(weft_load_state_dict(path, m, NULL), WEFT_EFORMAT, "it is a file of Keras");
        REFUSES(weft_load_state_dict(path, m, &(weft_load_report){ 0 }), WEFT_EFORMAT, "transposed");
    }
    CLEAN(w);
    end_folder();
}

/* ---- CSV ---- */
Test(readers, csv_of_other_habits)
{
    weft_dataset d;
    weft_frame f = { 0 };
    const weft_csv_opts excel = { .delimiter = ';' }, tabs = { '\t', true }, gaps = { .empty_is_nan = true };
    DOES(weft_read_csv(put_text("e.csv", "id;a;b\n\"x;y\";1;2\n\"x;y\";3;4\n"), "id", ab, 2, &excel, &d));
    cr_assert(d.n == 1 && d.len[0] == 2 && d.rows[3] == 4);
    weft_dataset_free(&d);
    DOES(weft_frame_read_csv(&f, put_text("t.csv", "a\tb\tc,d\n1\t\t,\n\"\"\t4\t\n"), NULL, ab, &tabs));
    cr_assert(f.rows == 2 && f.column[0][0] == 1 && isnan(f.column[1][0]) && isnan(f.column[0][1]) &&
              f.column[1][1] == 4);
    weft_frame_free(&f);
    DOES(weft_frame_read_csv(&f, put_text("g.csv", "id,a,b\nx,,2\nx,3,\n"), "id", ab, &gaps));
    cr_assert(isnan(f.column[0][0]) && isnan(f.column[1][1]) && f.column[0][1] == 3);
    DOES(weft_frame_add_static_csv(&f, put_text("h.csv", "id\tc\nx\t\n"), "id", WEFT_NAMES("c"), &tabs));
    cr_assert(isnan(weft_frame_column(&f, "c")[1]));
    REFUSES(weft_read_csv(put_text("s.csv", "id,a,b\nx, ,2\n"), "id", ab, 2, &gaps, &d), WEFT_EFORMAT,
            "s.csv:2: column \"a\": a number was expected, not \" \"");
    REFUSES(weft_frame_add_static_csv(&f, put_text("h.csv", "id,c\nx,\n"), "id", WEFT_NAMES("e"), NULL),
            WEFT_EFORMAT, "no column is named \"e\", but \"id\", \"c\"");
    weft_frame_free(&f);
    for (const char *bad = "\"\n\r5e.+-"; *bad; bad++) {
        const weft_csv_opts o = { .delimiter = *bad };
        REFUSES(weft_read_csv("x", "id", ab, 2, &o, &d), WEFT_EARG, "weft_read_csv: the delimiter is byte");
        REFUSES(weft_frame_read_csv(&f, "x", "id", ab, &o), WEFT_EARG,
                "weft_frame_read_csv: the delimiter is byte");
    }
    end_folder();
}

/* Rows of one id need not be adjacent: both readers join them, as pandas' groupby does. */
Test(readers, csv_ids_that_come_again_are_one_sequence)
{
    static const char text[] = "id,a,b\nx,1,2\ny,3,4\nx,5,6\nz,7,8\ny,9,10\ny,11,12\n"
                               "\"\",13,14\nx,15,16\n";
    static const weft_real want[] = { 1, 2, 5, 6, 15, 16, 3, 4, 9, 10, 11, 12, 7, 8, 13, 14 };
    const char *path = put_text("again.csv", text);
    weft_dataset d;
    weft_frame f = { 0 };
    DOES(weft_read_csv(path, "id", ab, 2, NULL, &d));
    DOES(weft_frame_read_csv(&f, path, "id", ab, NULL));
    cr_assert(d.n == 4 && f.n == 4 && d.offset[4] == 8 && f.rows == 8);
    for (int i = 0; i < 4; i++)
        cr_assert(d.offset[i] == f.start[i] && d.len[i] == (i < 2 ? 3 : 1));
    same_bits("joined", d.rows, want, 16);
    for (int i = 0; i < 16; i++)
        cr_assert_eq(f.column[i % 2][i / 2], (double)want[i]);
    weft_dataset_free(&d);
    weft_frame_free(&f);
    end_folder();
}

/* Nanoseconds since 1970 lie 256 apart as doubles: those between are refused, not rounded in silence, and so
 * they are in a frame's column with fractions. */
Test(readers, csv_integers_that_a_double_does_not_hold_are_refused)
{
    static const char *const bad[] = { "1764249600000000100",   "-9007199254740993",    "+9007199254740993",
                                       "00009007199254740993 ", "18446744073709551615",
                                       "100000000000000000000000000000000001" };
    static const char *const good[] = { "1764249600000000000",  "-9007199254740992",  "9007199254740994",
                                        "18446744073709551616", "9007199254740993.0", "9007199254740993e0",
                                        "1e300" };
    weft_dataset d;
    weft_frame f = { 0 };
    char text[200];
    for (int i = 0; i < COUNT(bad); i++) {
        snprintf(text, sizeof text, "id,a,b\nx,1,.5\nx,1,%s\n", bad[i]);
        const char *path = put_text("big.csv", text);
        REFUSES(weft_frame_read_csv(&f, path, "id", ab, NULL), WEFT_EFORMAT,
                "column \"b\": a double does not hold the ");
        REFUSES(weft_read_csv(path, "id", ab, 2, NULL, &d), WEFT_EFORMAT,
                "big.csv:3: column \"b\": a double does not hold the integer");
    }
    for (int i = 0; i < COUNT(good); i++) {
        snprintf(text, sizeof text, "id,a,b\nx,1,%s\n", good[i]);
        DOES(weft_frame_read_csv(&f, put_text("big.csv", text), "id", ab, NULL));
        cr_assert_eq(f.column[1][0], strtod(good[i], NULL));
        weft_frame_free(&f);
    }
    end_folder();
}

Test(readers, csv_lines_may_not_end_with_carriage_returns_alone)
{
    weft_dataset d;
    REFUSES(weft_read_csv(put_text("mac.csv", "id,a,b\rx,1,2\rx,3,4\r"), "id", ab, 2, NULL, &d), WEFT_EFORMAT,
            "mac.csv:1: lines end with \\r alone; tr");
    end_folder();
}

Test(readers, csv_has_no_zero_bytes)
{
    static const char text[] = "id,a,b\nx\0y,1,2\nx\0z,3,4\n", utf16[] = "i\0d\0,\0a\0,\0b\0\n\0";
    weft_dataset d;
    REFUSES(weft_read_csv(put_bytes("z.csv", text, sizeof text - 1), "id", ab, 2, NULL, &d), WEFT_EFORMAT,
            "z.csv:2: there is a zero byte");
    REFUSES(weft_read_csv(put_bytes("u.csv", utf16, sizeof utf16 - 1), "id", ab, 2, NULL, &d), WEFT_EFORMAT,
            "u.csv:1: there is a zero byte");
    end_folder();
}

Test(readers, csv_says_which_columns_there_are)
{
    weft_dataset d;
    REFUSES(weft_read_csv(put_text("c.csv", "id,alpha,\"be\nta\"\n"), "id", ab, 2, NULL, &d), WEFT_EFORMAT,
            "c.csv:1: no column is named \"a\", but \"id\", \"alpha\", \"be\nta\"");
    REFUSES(weft_read_csv(put_text("c.csv", "id;a;b\n1;2;3\n"), "id", ab, 2, NULL, &d), WEFT_EFORMAT,
            "no column is named \"id\", but all of it is \"id;a;b\"");
    char wide[20000];
    size_t at = 0;
    for (int i = 0; i < 1000; i++)
        at += (size_t)snprintf(wide + at, sizeof wide - at, "%scolumn%d", i ? "," : "", i);
    REFUSES(weft_read_csv(put_text("c.csv", wide), "id", ab, 2, NULL, &d), WEFT_EFORMAT,
            "but \"column0\", \"column1\",");
    cr_assert(strlen(weft_file_message()) < 1000 && strstr(weft_file_message(), ", .."));
    end_folder();
}
