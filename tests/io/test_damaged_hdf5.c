/* test_damaged_hdf5.c - HDF5 files whose structures are damaged, their sums put right: refused or read, never
 * a crash, and libhdf5 can be closed afterwards. */
#include "sets.h"

/* Addresses near 2^64 led its buffer of metadata to memory that is not there, a heap with a tree of huge
 * objects kept the file open for ever, and short nodes had their sums looked for before their beginning. */
uint32_t H5_checksum_metadata(const void *data, size_t n, uint32_t before);

static const char *const twelve[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", NULL };

/* A frame of so many columns of 1, 2; more than a few lie in a heap. */
static content frame_of(int columns, const char *path)
{
    const double x[] = { 1, 2 }, *column[COUNT(twelve)];
    const char *name[COUNT(twelve)] = { NULL };
    weft_frame f = { 0 };
    for (int i = 0; i < columns; i++) {
        name[i] = twelve[i];
        column[i] = x;
    }
    DOES(weft_frame_add(&f, "one", name, column, 2));
    DOES(weft_frame_write_hdf5(&f, path, NULL));
    weft_frame_free(&f);
    return read_bytes(path);
}

static void seal(unsigned char *at, size_t n)
{
    uint32_t sum = H5_checksum_metadata(at, n, 0);
    memcpy(at + n, &sum, sizeof sum);
}

/* Each byte of a structure, its sum behind it, in turn; the numbers lie elsewhere, or, held, in it. */
static void damage(const char *path, content b, size_t at, size_t from, size_t n, bool held)
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
            weft_status s = weft_frame_read_hdf5(&f, path, NULL, ab);
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

Test(damaged_hdf5, damaged_structures_with_right_sums_are_refused_or_read)
{
    /* where the root's object header lies, and what is before its messages */
    enum { HEADER = 48, HEAD = 7 };
    const char *path = in_folder("structure.h5");
    content b = frame_of(2, path);
    size_t n = HEAD + b.at[HEADER + HEAD - 1];
    cr_assert(!memcmp(b.at + HEADER, "OHDR\2\0", 6) && HEADER + n + 4 < b.n,
              "the file is not what this test takes it for");
    damage(path, b, HEADER, HEAD, n, false);
    free(b.at);
    end_folder();
}

Test(damaged_hdf5, damaged_heaps_and_trees_are_refused_or_read)
{
    enum { HEAP = 142, TREE = 34 };              /* bytes of their headers, without the sums */
    const char *path = in_folder("heap.h5");
    content b = frame_of(12, path);
    int heaps = 0, trees = 0;
    for (size_t at = 0; at + HEAP + 4 < b.n; at++) {
        bool is_heap = !memcmp(b.at + at, "FRHP", 4), is_tree = !memcmp(b.at + at, "BTHD", 4);
        if (is_heap || is_tree)
            damage(path, b, at, 5, is_heap ? HEAP : TREE, false);
        heaps += is_heap;
        trees += is_tree;
    }
    cr_assert(heaps && trees, "twelve columns lie in %d heaps and %d trees", heaps, trees);
    free(b.at);
    end_folder();
}

/* As libhdf5 writes groups if it is not told otherwise: names in a heap with a list of free places. */
static content oldest_frame(const char *path)
{
    hid_t f = new_file(path);
    for (int i = 0; i < 2; i++)
        put_numbers(f, i ? "b" : "a", H5T_IEEE_F64LE, 2, 0, (double[]){ 1, 2 });
    put_numbers(f, "gone", H5T_IEEE_F64LE, 2, 0, (double[]){ 1, 2 });
    cr_assert(H5Ldelete(f, "gone", H5P_DEFAULT) >= 0);
    H5Fclose(f);
    return read_bytes(path);
}

Test(damaged_hdf5, damaged_heaps_of_names_are_refused_or_read)
{
    enum { SIZE = 8, FREE = 16, DATA = 24 };
    const char *path = in_folder("names.h5");
    content b = oldest_frame(path);
    unsigned char *names = memmem(b.at, b.n, "HEAP", 5);
    cr_assert_not_null(names);
    uint64_t size, data, of[3] = { SIZE, FREE, DATA };
    memcpy(&size, names + SIZE, 8), memcpy(&data, names + DATA, 8);
    const uint64_t to[] = { UINT64_MAX, UINT64_MAX - 8, 0,    2,        7,   15,      16,
                            size - 8,   size - 1,       size, size + 1, b.n, 1u << 30 };
    for (int place = 0; place < 2; place++)      /* the head's, and those of the first free place */
        for (int k = 0; k < 3 - place; k++)
            for (int i = 0; i < COUNT(to); i++) {
                uint64_t first, was;
                memcpy(&first, names + FREE, 8);
                unsigned char *at = place ? b.at + data + first + 8 * (size_t)k : names + of[k];
                memcpy(&was, at, 8), memcpy(at, i || !place || k ? &to[i] : &first, 8); /* itself next */
                write_bytes(path, b.at, b.n);
                weft_frame f = { 0 };
                weft_status s = weft_frame_read_hdf5(&f, path, NULL, ab);
                cr_assert(s == WEFT_OK || (s == WEFT_EFORMAT && f.n == 0), "%s", weft_status_name(s));
                weft_frame_free(&f);
                memcpy(at, &was, 8);
            }
    ends_well();
    free(b.at);
    end_folder();
}

/* Numbers in the header itself, as libhdf5 writes a few of them if asked to. */
static content compact_frame(const char *path)
{
    form f = { .type = H5T_IEEE_F64LE, .rank = 1, .size = { 2 }, .compact = true };
    hid_t file = new_file_of(path, OF_1_8, 0);
    for (int i = 0; i < 2; i++)
        put_set(file, ab[i], &f, H5T_NATIVE_DOUBLE, (double[]){ 1, 2 });
    H5Fclose(file);
    return read_bytes(path);
}

Test(damaged_hdf5, damaged_headers_that_hold_numbers_are_refused_or_read)
{
    const char *path = in_folder("compact.h5");
    content b = compact_frame(path);
    weft_frame f = { 0 };
    DOES(weft_frame_read_hdf5(&f, path, NULL, ab));
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
static size_t message_in(content b, size_t at, size_t head, size_t n, int type)
{
    for (size_t m = at + head; m + 4 <= at + n; m += 4 + b.at[m + 1] + 256u * b.at[m + 2])
        if (b.at[m] == type)
            return m + 4;
    return 0;
}

/* libhdf5 looks for the parts of a compound behind a message that is too short for them: a type that no
 * reader takes is never opened. */
Test(damaged_hdf5, types_that_have_parts_stay_closed)
{
    /* of a data set's header, the length of its messages in two bytes */
    enum { HEAD = 8, TYPE = 3, LONG = 256, FLOAT = 1 };
    const char *path = in_folder("type.h5");
    content b = frame_of(2, path);
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
            weft_status s = weft_frame_read_hdf5(&f, path, NULL, ab);
            bool plain = to >> 4 >= 1 && to >> 4 <= 4 && (to & 15) <= FLOAT;
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

/* An end that the superblock names, but before numbers that are there: libhdf5 reads them or not, as its
 * buffer has it. The whole and its parts are refused alike. */
Test(damaged_hdf5, numbers_behind_the_end_that_is_named_are_refused)
{
    enum { END = 28, SUM = 44 };                 /* of a superblock of version 2 */
    static const int32_t len[] = { 3, 0, 2, 4 }, all[] = { 0, 1, 2, 3 },
                         ids[9] = { 5, 6, 7, 8, 9, 10, 11, 12, 13 };
    const char *path = in_folder("end.h5");
    weft_dataset d = { .n = COUNT(len), .len = (int32_t *)(uintptr_t)len, .ints = (int32_t *)(uintptr_t)ids };
    int refused = 0;
    cr_assert_eq(weft_write_hdf5(&d, path, NULL), WEFT_OK, "%s", weft_file_message());
    content b = read_bytes(path);
    for (uint64_t end = SUM; end <= b.n; end++) {
        weft_dataset whole = { 0 }, part = { 0 };
        weft_hdf5 *f = NULL;
        memcpy(b.at + END, &end, sizeof end);
        seal(b.at, SUM);
        write_bytes(path, b.at, b.n);
        weft_status s = weft_read_hdf5(path, NULL, &whole), of_parts = weft_open_hdf5(path, NULL, &f);
        of_parts = of_parts ? of_parts : weft_read_hdf5_part(f, all, COUNT(all), &part);
        cr_assert_eq(!s, !of_parts, "end %d: %s", (int)end, weft_file_message());
        cr_assert(s || (whole.ints[8] == 13 && part.ints[8] == 13), "end %d: other numbers", (int)end);
        cr_assert(!s || s == WEFT_EFORMAT, "end %d: %s", (int)end, weft_status_name(s));
        refused += s != WEFT_OK;
        weft_dataset_free(&whole), weft_dataset_free(&part);
        weft_close_hdf5(f);
    }
    cr_assert(refused > 100 && refused < (int)(b.n - SUM + 1), "%d of %d ends refused", refused, (int)b.n);
    ends_well();
    free(b.at);
    end_folder();
}
