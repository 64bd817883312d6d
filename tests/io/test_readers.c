/* test_readers.c - what readers of files owe to whoever gives them a file: numbers as they are stored or an
 * error, memory in the file's measure, names of formats that are not ours, the texts that h5py writes, CSV of
 * other habits. */
#include <hdf5.h>
#include "checkpoint.h"
#include "tests/core/failing_malloc.h"
#include "tests/listen.h"

static const char *const ab[] = { "a", "b", NULL };

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

/* A data set of n numbers or, with texts, one text of n bytes. */
static void add_set(hid_t file, const char *name, hid_t type, int rank, const hsize_t *size,
                    const void *values)
{
    hid_t space = rank ? H5Screate_simple(rank, size, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          memory = rank ? H5T_NATIVE_DOUBLE : type;
    cr_assert(set >= 0 && (!values || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0));
    H5Dclose(set);
    H5Sclose(space);
}
static hid_t new_file(const char *path) { return H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT); }

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
    armed = true, most_asked = 0;
    REFUSES(weft_read_hdf5(declared("lengths", H5T_STD_I32LE, INT32_MAX - 1, 1, false), NULL, &d),
            WEFT_EFORMAT, "lengths does not have the bytes");
    REFUSES(weft_frame_read_hdf5(&f, declared("a", H5T_STD_U8LE, INT32_MAX - 1, 1, false), NULL,
                                 (const char *[]){ "a", NULL }),
            WEFT_EFORMAT, "does not have the bytes");
    REFUSES(weft_frame_read_hdf5(&f, declared("ids", text, 1, 1, true), NULL, (const char *[]){ "a", NULL }),
            WEFT_EFORMAT, "ids does not have the bytes");
    armed = false;
    cr_assert(most_asked < 1 << 20, "%zu bytes were asked for", most_asked);
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

/* ---- structures of libhdf5's, damaged, with its own sums put right ---- */
/* Addresses near 2^64 led its buffer of metadata to memory that is not there, a heap with a tree of huge
 * objects kept the file open for ever, and short nodes had their sums looked for before their beginning. */
uint32_t H5_checksum_metadata(const void *data, size_t n, uint32_t before);

static const char *const twelve[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", NULL };

/* A frame of so many columns of 1, 2; more than a few lie in a heap. */
static bytes frame_of(int columns, const char *path)
{
    const double x[] = { 1, 2 }, *column[COUNT(twelve)];
    const char *name[COUNT(twelve)] = { NULL };
    weft_frame f = { 0 };
    for (int i = 0; i < columns; i++)
        name[i] = twelve[i], column[i] = x;
    DOES(weft_frame_add(&f, "one", name, column, 2));
    DOES(weft_frame_write_hdf5(&f, path, "./"));
    weft_frame_free(&f);
    return read_bytes(path);
}

/* libhdf5 says at its end what it has lost, in its own words. */
static void ends_well(void)
{
    listen_to_stderr();
    cr_assert(H5close() >= 0);
    const char *text = stop_listening();
    cr_assert_not(*text, "%.60s", text);
}

static void seal(unsigned char *at, size_t n)
{
    uint32_t sum = H5_checksum_metadata(at, n, 0);
    memcpy(at + n, &sum, sizeof sum);
}

/* Each byte of a structure, its sum behind it, in turn; the numbers lie elsewhere, or, held, in it. */
static void damage(const char *path, bytes b, size_t at, size_t from, size_t n, bool held)
{
    static const unsigned char to[] = { 0xfe, 0, 0x80 };
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "empty");
    weft_frame f = { 0 };
    for (size_t i = at + from; i < at + n; i++)
        for (int k = 0; k < COUNT(to); k++) {
            unsigned char was = b.at[i];
            b.at[i] = to[k];
            seal(b.at + at, n);
            write_bytes(path, b.at, b.n);
            weft_status s = weft_frame_read_hdf5(&f, path, NULL, (const char *[]){ "a", "b", NULL });
            cr_assert(s == WEFT_OK || (s == WEFT_EFORMAT && f.n == 0), "byte %zu: %s: %s", i,
                      weft_status_name(s), weft_file_message());
            cr_assert(s || held || (f.rows == 2 && f.column[1][1] == 2), "byte %zu: other numbers", i);
            cr_assert_eq(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0,
                         "byte %zu, %d: the file stays open: %s", i, to[k], weft_file_message());
            weft_frame_free(&f);
            weft_load_report extra = { 0 };      /* all of the columns, by a walk of the group */
            s = weft_load_state_dict(path, m, &extra);
            cr_assert(s == WEFT_OK || s == WEFT_EFORMAT, "byte %zu: %s: %s", i, weft_status_name(s),
                      weft_file_message());
            b.at[i] = was;
        }
    seal(b.at + at, n);
    ends_well();
    CLEAN(w);
}

Test(readers, damaged_structures_with_right_sums_are_refused_or_read)
{
    /* where the root's object header lies, and what is before its messages */
    enum { HEADER = 48, HEAD = 7 };
    const char *path = in_folder("structure.h5");
    bytes b = frame_of(2, path);
    size_t n = HEAD + b.at[HEADER + HEAD - 1];
    cr_assert(!memcmp(b.at + HEADER, "OHDR\2\0", 6) && HEADER + n + 4 < b.n,
              "the file is not what this test takes it for");
    damage(path, b, HEADER, HEAD, n, false);
    free(b.at);
    end_folder();
}

Test(readers, damaged_heaps_and_trees_are_refused_or_read)
{
    enum { HEAP = 142, TREE = 34 };              /* bytes of their headers, without the sums */
    const char *path = in_folder("heap.h5");
    bytes b = frame_of(12, path);
    int heaps = 0, trees = 0;
    for (size_t at = 0; at + HEAP + 4 < b.n; at++)
        if (!memcmp(b.at + at, "FRHP", 4))
            damage(path, b, at, 5, HEAP, false), heaps++;
        else if (!memcmp(b.at + at, "BTHD", 4))
            damage(path, b, at, 5, TREE, false), trees++;
    cr_assert(heaps && trees, "twelve columns lie in %d heaps and %d trees", heaps, trees);
    free(b.at);
    end_folder();
}

/* Numbers in the header itself, as libhdf5 writes a few of them if asked to. */
static bytes compact_frame(const char *path)
{
    const double x[] = { 1, 2 };
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), list = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(1, (hsize_t[]){ 2 }, NULL);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), H5Pset_layout(list, H5D_COMPACT);
    hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    for (int i = 0; i < 2; i++) {
        hid_t set = H5Dcreate2(f, i ? "b" : "a", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
        cr_assert(set >= 0 && H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
        H5Dclose(set);
    }
    H5Sclose(space), H5Fclose(f), H5Pclose(list), H5Pclose(access);
    return read_bytes(path);
}

Test(readers, damaged_headers_that_hold_numbers_are_refused_or_read)
{
    const char *path = in_folder("compact.h5");
    bytes b = compact_frame(path);
    weft_frame f = { 0 };
    DOES(weft_frame_read_hdf5(&f, path, NULL, (const char *[]){ "a", "b", NULL }));
    cr_assert(f.rows == 2 && f.column[1][1] == 2);
    weft_frame_free(&f);
    int headers = 0;
    for (size_t at = 0; at + 64 < b.n; at++)
        if (!memcmp(b.at + at, "OHDR\2", 5)) {
            int flags = b.at[at + 5], width = 1 << (flags & 3);
            size_t head = (size_t)6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + (size_t)width;
            size_t messages =
                width == 1 ? b.at[at + head - 1] : b.at[at + head - 2] + 256u * b.at[at + head - 1];
            damage(path, b, at, head, head + messages, true), headers++;
        }
    cr_assert(headers == 3, "%d headers", headers);
    free(b.at);
    end_folder();
}

/* The first message of that type in the header at `at`, whose messages begin `head` bytes behind it; 0:
 * none. */
static size_t message_in(bytes b, size_t at, size_t head, size_t n, int type)
{
    for (size_t m = at + head; m + 4 <= at + n; m += 4 + b.at[m + 1] + 256u * b.at[m + 2])
        if (b.at[m] == type)
            return m + 4;
    return 0;
}

/* libhdf5 looks for the parts of a compound behind a message that is too short for them: a type that no
 * reader takes is never opened. */
Test(readers, types_that_have_parts_stay_closed)
{
    /* of a data set's header, the length of its messages in two bytes */
    enum { HEAD = 8, TYPE = 3, LONG = 256, FLOAT = 1 };
    const char *path = in_folder("type.h5");
    bytes b = frame_of(2, path);
    weft_frame f = { 0 };
    int refused = 0, sets = 0;
    for (size_t at = 49; at + HEAD + LONG < b.n; at++) {
        size_t type = memcmp(b.at + at, "OHDR\2\1", 6) ? 0 : message_in(b, at, HEAD, HEAD + LONG, TYPE);
        if (!type || (b.at[type] & 15) != FLOAT)
            continue;
        unsigned char was = b.at[type];
        for (int to = 0; to < 256; to++) {
            b.at[type] = (unsigned char)to;
            seal(b.at + at, HEAD + LONG);
            write_bytes(path, b.at, b.n);
            weft_status s = weft_frame_read_hdf5(&f, path, NULL, (const char *[]){ "a", "b", NULL });
            bool plain = to >> 4 >= 1 && to >> 4 <= 4 && (to & 15) == FLOAT;
            cr_assert(s == WEFT_EFORMAT || (s == WEFT_OK && plain), "type %x: %s", to, weft_status_name(s));
            refused += strstr(weft_file_message(), "something else than plain numbers") != NULL;
            weft_frame_free(&f);
        }
        b.at[type] = was, sets++;
        seal(b.at + at, HEAD + LONG);
    }
    cr_assert(sets >= 2 && refused > 200 * sets, "%d sets, %d types refused", sets, refused);
    ends_well();
    free(b.at);
    end_folder();
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
        "a safetensors file", "safetensors.numpy"),
    /* 640 bytes of JSON: the length begins as a pickle of protocol 2 does */
    FOREIGN("long.safetensors", "\x80\2\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},"
            TEN HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED, "a safetensors file", "safetensors.numpy"),
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
