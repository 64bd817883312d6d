/* test_damaged_hdf5.c - tests HDF5 files with damaged structures and corrected checksums. They are refused or
 * read, without a crash, and libhdf5 can be closed afterwards. */
#include "io/hdf5/session.h"
#include "sets.h"

/* Addresses near 2^64 led its buffer of metadata to memory that is not there, a heap with a tree of huge
 * objects kept the file open for ever, and short nodes had their sums looked for before their beginning. */
uint32_t H5_checksum_metadata(const void *data, size_t n, uint32_t before);

static const char *const twelve[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", NULL };

/* Writes a frame with this number of columns of 1, 2. Many columns are stored in a heap. */
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

/* Damages each byte of a structure in turn. Its checksum follows it. The numbers are elsewhere in the file
 * or, with held, in the structure. */
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
            weft_load_report extra = { 0 };      /* all columns, by a walk of the group */
            s = weft_load_weights(path, m, NULL, &extra);
            cr_assert(s == WEFT_OK || s == WEFT_EFORMAT, "byte %zu: %s: %s", i, weft_status_name(s),
                      weft_file_message());
            b.at[i] = was;
        }
    seal(b.at + at, n);
    ends_well();
    CLEAN(w);
}

/* Numbers in the header itself, as libhdf5 writes a few of them if asked to. */
static content compact_frame(const char *path)
{
    form f = { .rank = 1, .size = { 2 }, .compact = true };
    hid_t file = new_file_of(path, OF_1_8, 0);
    for (int i = 0; i < 2; i++) {
        f.type = i ? H5T_STD_I32LE : H5T_IEEE_F64LE;
        put_set(file, ab[i], &f, H5T_NATIVE_DOUBLE, (double[]){ 1, 2 });
    }
    H5Fclose(file);
    return read_bytes(path);
}

/* Returns the size of the structure at `at` without its checksum, or 0 if none is there, and the size of its
 * head. all: includes headers of data sets, not only of the root. */
static size_t structure_at(content b, size_t at, bool all, size_t *head)
{
    enum { HEAP = 142, TREE = 34, ROOT = 48 };
    *head = 5;
    if (!memcmp(b.at + at, "FRHP", 4) || !memcmp(b.at + at, "BTHD", 4))
        return b.at[at] == 'F' ? HEAP : TREE;
    if (memcmp(b.at + at, "OHDR\2", 5) || !(all || at == ROOT))
        return 0;
    int flags = b.at[at + 5], width = 1 << (flags & 3);
    *head = (size_t)6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + (size_t)width;
    return *head + (width == 1 ? b.at[at + *head - 1] : b.at[at + *head - 2] + 256u * b.at[at + *head - 1]);
}

/* A root with links in its header, one with links in a heap and a tree, data sets with numbers in their
 * headers. */
FILE_TEST(damaged_hdf5, damaged_structures_with_valid_sums_are_refused_or_read)
{
    const char *path = in_folder("structure.h5");
    for (int k = 0; k < 3; k++) {
        content b = k == 2 ? compact_frame(path) : frame_of(k ? 12 : 2, path);
        int structures = 0;
        for (size_t at = 0, head, n; at + 150 < b.n; at++)
            if ((n = structure_at(b, at, k == 2, &head))) {
                damage(path, b, at, head, n, k == 2);
                structures++;
            }
        cr_assert_eq(structures, k ? 3 : 1, "file %d has %d structures", k, structures);
    }
}

/* Writes groups in libhdf5's default format: names in a heap with a list of free space. */
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

FILE_TEST(damaged_hdf5, damaged_heaps_of_names_are_refused_or_read)
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
    for (int place = 0; place < 2; place++)      /* those of the header and of the first free block */
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
}

/* Returns the first message of this type in the header at `at`, or 0. Messages begin `head` bytes after
 * it. */
static size_t message_in(content b, size_t at, size_t head, size_t n, int type)
{
    for (size_t m = at + head; m + 4 <= at + n; m += 4 + b.at[m + 1] + 256u * b.at[m + 2])
        if (b.at[m] == type)
            return m + 4;
    return 0;
}

/* Returns whether the frame of the file can be read. Columns that libhdf5 can open must have the values that
 * it reads. */
static bool reads_as_libhdf5(const char *path)
{
    weft_frame f = { 0 };
    weft_status s = weft_frame_read_hdf5(&f, path, NULL, ab);
    cr_assert(s == WEFT_OK || (s == WEFT_EFORMAT && f.n == 0), "%s", weft_file_message());
    hid_t file = s ? -1 : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int c = 0; c < f.columns; c++) {
        double want[8] = { 0 };
        hid_t set = H5Dopen2(file, ab[c], H5P_DEFAULT);
        bool open = set >= 0;
        cr_assert(!open || f.rows <= COUNT(want));
        cr_assert(!open || H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, want) >= 0);
        for (int64_t r = 0; r < f.rows && open; r++)
            cr_assert(f.column[c][r] == want[r] || isnan(want[r]), "%g, not %g", f.column[c][r], want[r]);
        weft__h5_close(set);
    }
    weft__h5_close(file);
    weft_frame_free(&f);
    return !s;
}

/* Flips each bit of the shapes, types and addresses in headers. */
FILE_TEST(damaged_hdf5, headers_of_sets_match_libhdf5)
{
    static const int messages[] = { 1, 3, 8 };
    const char *path = in_folder("set.h5");
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int k = 0; k < 2; k++) {
        content b = k ? compact_frame(path) : frame_of(2, path);
        int read = 0, tried = 0;
        for (size_t at = 49, head, n; at + 150 < b.n; at++)
            for (int i = 0; i < COUNT(messages) && (n = structure_at(b, at, true, &head)); i++) {
                size_t m = message_in(b, at, head, n, messages[i]);
                for (size_t bit = 8 * m; m && bit < 8 * (m + b.at[m - 3]); bit++, tried++) {
                    b.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
                    seal(b.at + at, n);
                    write_bytes(path, b.at, b.n);
                    read += reads_as_libhdf5(path);
                    b.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
                }
                seal(b.at + at, n);
            }
        cr_assert(tried > 700 && read < tried / 2, "%d of %d were read", read, tried);
    }
    ends_well();
}

/* An end that the superblock names, but before numbers that are there: libhdf5 reads them or not, as its
 * buffer has it. The whole and its parts are refused alike. */
FILE_TEST(damaged_hdf5, numbers_beyond_the_named_end_are_refused)
{
    enum { LENGTHS = 10, END = 28, SUM = 44 };                /* of a superblock of version 2 */
    static const int32_t len[] = { 3, 0, 2, 4 }, all[] = { 0, 1, 2, 3 },
                         ids[9] = { 5, 6, 7, 8, 9, 10, 11, 12, 13 };
    const char *path = in_folder("end.h5");
    weft_dataset d = { .n = COUNT(len), .len = (int32_t *)(uintptr_t)len, .ints = (int32_t *)(uintptr_t)ids };
    int refused = 0;
    cr_assert_eq(weft_write_hdf5(&d, path, NULL), WEFT_OK, "%s", weft_file_message());
    content b = read_bytes(path);
    b.at[LENGTHS] = 16;                          /* bytes of a length; all have 8 */
    seal(b.at, SUM);
    write_bytes(path, b.at, b.n);
    REFUSES(weft_read_hdf5(path, NULL, &d), WEFT_EFORMAT, "its root is not a group");
    b.at[LENGTHS] = 8;
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
}
