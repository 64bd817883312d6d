/* test_hdf5_reads.c - tests an open HDF5 file as a dataset. Batches and parts have the bytes of the whole
 * file, in any order, and no other bytes are read. Also tests files that change and failed allocations.
 * tests/fuzz tests damage. */
#include <fcntl.h>
#include <pthread.h>
#include "sets.h"
#include "tests/failing_malloc.h"

enum { MOST = 30, LONGEST = 9, WIDE = 3 };
#define OPENS(path, group, d) DOES(open_shape(path, group, d))

static weft_status open_shape(const char *path, const char *group, weft_dataset *d)
{
    weft_hdf5 *f;
    weft_status s = weft_open_hdf5(path, group, &f);
    *d = weft_hdf5_shape(f);
    cr_assert(d->file == f && !d->rows && !d->ints);
    return s;
}
static void close_shape(weft_dataset *d)
{
    weft_close_hdf5((weft_hdf5 *)(uintptr_t)d->file);
    *d = (weft_dataset){ 0 };
}
static int open_files(void) { return files_in("/proc/self/fd"); }

typedef struct {
    const char *set;
    hid_t type;
    bool compact;
    hsize_t user_block;
    age age;
} layout;

/* Lengths as given, numbers 0, 1, 2, .. and some odd ones, in the group "g". */
static void write_layout(const char *path, const layout *k, const int32_t *len, int64_t n)
{
    double lengths[MOST], values[MOST * LONGEST * WIDE];
    hsize_t rows = 0;
    bool tokens = !strcmp(k->set, "g/tokens");
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = len[i];
        rows += (hsize_t)len[i];
    }
    for (hsize_t i = 0; i < rows * WIDE; i++)
        values[i] = i % 7 == 5 && !tokens ? -INFINITY : (double)i / (tokens ? 1 : 3);
    form f = { .type = k->type, .rank = tokens ? 1 : 2, .size = { rows, WIDE }, .compact = k->compact };
    hid_t file = new_file_of(path, k->age, k->user_block);
    put_set(file, k->set, &f, H5T_NATIVE_DOUBLE, values);
    put_numbers(file, "g/lengths", H5T_STD_I64LE, (hsize_t)n, 0, lengths);
    H5Fclose(file);
}

/* ---- parts of a file ---- */
static void same_as_whole(const weft_dataset *whole, const weft_dataset *part, const int32_t *index,
                          int64_t n)
{
    weft_dataset got;
    size_t row = whole->columns ? (size_t)whole->columns * sizeof(weft_real) : sizeof(int32_t);
    DOES(weft_read_hdf5_part(part->file, index, n, &got));
    cr_assert(got.n == n && got.columns == whole->columns && !got.file && got.offset[0] == 0);
    for (int64_t i = 0; i < n; i++) {
        const char *a = whole->columns ? (char *)whole->rows : (char *)whole->ints,
                   *b = got.columns ? (char *)got.rows : (char *)got.ints;
        cr_assert(got.len[i] == whole->len[index[i]] && got.id[i] == index[i]);
        cr_assert(!memcmp(a + (size_t)whole->offset[index[i]] * row, b + (size_t)got.offset[i] * row,
                          (size_t)got.len[i] * row));
        cr_assert_eq(got.offset[i + 1], got.offset[i] + got.len[i]);
    }
    weft_dataset_free(&got);
}

static void same_batch(weft *w, const weft_dataset *whole, const weft_dataset *part, const int32_t *index,
                       int64_t n)
{
    weft_tensor *a = weft_dataset_batch(w, whole, index, n), *b = weft_dataset_batch(w, part, index, n);
    cr_assert(weft_ok(w), "%s", weft_error_message(w));
    cr_assert(weft_numel(a) == weft_numel(b));
    size_t size = (size_t)weft_numel(a) * (whole->columns ? sizeof(weft_real) : sizeof(int32_t));
    void *x = malloc(size + 1), *y = malloc(size + 1);
    weft_read(a, x, size), weft_read(b, y, size);
    cr_assert(!memcmp(x, y, size));
    free(x), free(y);
    weft_clear(w);
}

/* Indices: all in order, reversed, first and last, none, one many times, random. */
static void every_order(weft *w, const weft_dataset *whole, const weft_dataset *part)
{
    int32_t index[2 * MOST], all = (int32_t)whole->n;
    cr_assert(part->n == all && part->columns == whole->columns &&
              !memcmp(part->len, whole->len, (size_t)all * sizeof *part->len) &&
              !memcmp(part->offset, whole->offset, (size_t)(all + 1) * sizeof *part->offset));
    same_as_whole(whole, part, NULL, 0);
    for (int k = 0; k < 6 && all; k++) {
        int32_t n = k < 2 ? all : k == 2 ? 2 : (int32_t)dice(2 * all + 1);
        for (int32_t i = 0; i < n; i++)
            index[i] = k == 0 ? i :
                       k == 1 ? all - 1 - i :
                       k == 2 ? i * (all - 1) :
                       k == 3 ? all / 2 :
                                (int32_t)dice(all);
        same_as_whole(whole, part, index, n);
        same_batch(w, whole, part, index, n);
    }
}

FILE_TEST(hdf5_reads, rows_match_the_whole_file)
{
    const hid_t f32 = H5T_IEEE_F32LE, f64 = H5T_IEEE_F64LE;
    const layout all_layouts[] = { { "g/rows", f32, false, 0, OLDEST },
                                   { "g/rows", f64, false, 0, OF_1_8 },
                                   { "g/rows", H5T_IEEE_F32BE, false, 0, OF_1_8 },
                                   { "g/rows", H5T_IEEE_F64BE, false, 512, OLDEST },
                                   { "g/rows", f32, false, 2048, OF_1_8 },
                                   { "g/rows", f32, true, 0, OF_1_8 },
                                   { "g/rows", f64, true, 1024, OLDEST },
                                   { "g/tokens", H5T_STD_I32LE, false, 0, OF_1_8 },
                                   { "g/tokens", H5T_STD_I32LE, true, 0, OLDEST } };
    const char *path = in_folder("layouts.h5");
    int files = open_files();
    for (int k = 0; k < rounds(90, 900); k++) {
        const layout *f = &all_layouts[k % COUNT(all_layouts)];
        int32_t len[MOST];
        int64_t n = (int64_t)dice(MOST);
        dice_lengths(len, n, LONGEST);
        for (int i = 0; i < n && k % 11 == 0; i++)
            len[i] = 0;
        write_layout(path, f, len, n);
        weft_dataset whole, part;
        DOES(weft_read_hdf5(path, "g", &whole));
        OPENS(path, "g", &part);
        if (whole.offset[n] && !f->compact)
            cr_assert(part.file && !part.rows && !part.ints && open_files() == files + 1);
        every_order(w, &whole, &part);
        weft_dataset_free(&whole), close_shape(&part);
        is_empty(&part);
        cr_assert(open_files() == files && !H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL));
    }
}

/* ---- no more than that ---- */
/* Returns a count of this process: bytes read ("rchar") or calls ("syscr"). Each call reads 80 bytes,
 * because the length of the whole file changes with the digits of its counts. */
static long long count_of(const char *what)
{
    char text[81] = "";
    int f = open("/proc/self/io", O_RDONLY);
    cr_assert(f >= 0 && read(f, text, 80) == 80);
    close(f);
    const char *at = strstr(text, what);
    cr_assert(at);
    return atoll(at + strlen(what) + 1);
}

enum { LARGE = 100000, EACH = 32, COLUMNS = 32 }; /* 410 MB of zeros, which take no space on disk */
static const char *large_file(void)
{
    const char *path = in_folder("large.h5");
    static double len[LARGE];
    form f = { .type = H5T_IEEE_F32LE, .rank = 2, .size = { (hsize_t)LARGE * EACH, COLUMNS }, .early = true };
    for (int i = 0; i < LARGE; i++)
        len[i] = EACH;
    hid_t file = new_file(path);
    put_numbers(file, "lengths", H5T_STD_I32LE, LARGE, 0, len);
    put_set(file, "rows", &f, H5T_NATIVE_DOUBLE, NULL);
    H5Fclose(file);
    return path;
}

FILE_TEST(hdf5_reads, only_requested_rows_are_read)
{
    const char *path = large_file();
    weft_dataset d, some;
    int32_t index[100];
    long before = most_resident();
    long long at = count_of("rchar"), look = count_of("rchar") - at;
    at = count_of("rchar");
    OPENS(path, NULL, &d);
    long long opened = count_of("rchar") - at - look;
    cr_assert(d.n == LARGE && opened >= 4 * LARGE && opened < 4 * LARGE + 200000, "%lld bytes", opened);
    for (int i = 0; i < 100; i++)
        index[i] = (int32_t)(i * 997 % LARGE);
    at = count_of("rchar");
    DOES(weft_read_hdf5_part(d.file, index, 100, &some));
    long long read = count_of("rchar") - at - look, asked = 100ll * EACH * COLUMNS * 4;
    cr_assert(read == asked, "read %lld bytes for %lld", read, asked);
    weft_dataset_free(&some), close_shape(&d);
    cr_assert(CHECK_SANITIZED || most_resident() - before < 20000, "%ld KB more", most_resident() - before);
}

FILE_TEST(hdf5_reads, neighbours_take_one_read)
{
    weft_dataset d, some;
    int32_t index[200];
    OPENS(large_file(), NULL, &d);
    for (int i = 0; i < 200; i++)
        index[i] = 5000 + i + (i < 100 ? 0 : 1000);
    long long at = count_of("syscr"), look = count_of("syscr") - at;
    at = count_of("syscr");
    DOES(weft_read_hdf5_part(d.file, index, 200, &some));
    long long calls = count_of("syscr") - at - look;
    cr_assert(calls == 2, "%lld calls", calls);
    weft_dataset_free(&some), close_shape(&d);
}

/* ---- refused ---- */
static const int32_t lens[] = { 2, 0, 3 }, all[] = { 0, 1, 2 }, odd[] = { 0, 3 };
static const char *plain_file(void)
{
    const char *path = in_folder("plain.h5");
    write_layout(path, &(layout){ "g/rows", H5T_IEEE_F64LE, false, 0, OF_1_8 }, lens, 3);
    return path;
}

FILE_TEST(hdf5_reads, invalid_requests_are_refused)
{
    weft_dataset d, out;
    weft_hdf5 *f;
    int files = open_files();
    REFUSES(open_shape(plain_file(), NULL, &d), WEFT_EFORMAT, "data set \"lengths\" is not in the file");
    is_empty(&d);
    REFUSES(open_shape(in_folder("none.h5"), NULL, &d), WEFT_ENOENT, "none.h5");
    REFUSES(open_shape(P_tmpdir, NULL, &d), WEFT_EFORMAT, "not a regular file");
    REFUSES(open_shape(put_text("empty.h5", ""), NULL, &d), WEFT_EFORMAT, "empty.h5");
    REFUSES(weft_open_hdf5(NULL, NULL, &f), WEFT_EARG, "expected a path and a pointer for the file");
    REFUSES(weft_open_hdf5("x", NULL, NULL), WEFT_EARG, "expected a path and a pointer for the file");
    cr_assert_eq(open_files(), files);
    OPENS(plain_file(), "g", &d);
    REFUSES(weft_write_hdf5(&d, in_folder("copy.h5"), NULL), WEFT_EARG, "a dataset with lengths from 0 on");
    REFUSES(weft_read_hdf5_part(d.file, odd, 2, &out), WEFT_EARG,
            "index 1 is sequence 3; expected 0 .. 2");
    REFUSES(weft_read_hdf5_part(d.file, (int32_t[]){ -1 }, 1, &out), WEFT_EARG, "index 0 is sequence -1");
    for (int k = 0; k < 3; k++)
        REFUSES(weft_read_hdf5_part(k ? d.file : NULL, k == 2 ? odd : NULL, k == 2 ? -1 : k, &out), WEFT_EARG,
                "an open file, 0 .. 2^31 - 2 indices");
    cr_assert_eq(weft_hdf5_shape(NULL).n, 0);
    weft_dataset_batch(w, &d, odd, 2);
    FAILS(w, WEFT_EARG, "dataset_batch: index 1 is 3; expected 0 .. 2");
    weft_dataset more = d; /* a program's own mistake */
    more.len = (int32_t[]){ 2, 0, 10 }, more.offset = (int64_t[]){ 0, 2, 2, 12 };
    weft_dataset_batch(w, &more, all, 3);
    FAILS(w, WEFT_EARG, "rows 0 .. 11; expected rows of \"g/rows\", which has 5");
    close_shape(&d);
    cr_assert_eq(open_files(), files);
}

/* ---- windows of a plan ---- */
FILE_TEST(hdf5_reads, tokens_of_a_plan_match_the_whole_file)
{
    const char *path = in_folder("plan.h5");
    for (int k = 0; k < 40; k++) {
        layout f = { k % 2 ? "g/tokens" : "g/rows", k % 2 ? H5T_STD_I32LE : H5T_IEEE_F32LE, .age = OF_1_8 };
        int32_t len[MOST];
        dice_lengths(len, MOST, LONGEST);
        write_layout(path, &f, len, MOST);
        weft_dataset whole, part;
        weft_plan p;
        DOES(weft_read_hdf5(path, "g", &whole));
        OPENS(path, "g", &part);
        cr_assert_eq(weft_plan_make(weft_planner_named("streams"), len, MOST,
                                    &(weft_plan_opts){ .slots = 3, .window = 4 }, &p),
                     WEFT_OK);
        for (int64_t b = 0; b < p.batches; b++, weft_clear(w)) {
            weft_plan_step step = weft_plan_step_of(w, &p, b);
            int32_t shift = (int32_t)dice(2 * LONGEST) - LONGEST;
            weft_tensor *x = weft_plan_tokens(&step, &whole, shift, 7),
                        *y = weft_plan_tokens(&step, &part, shift, 7);
            int64_t tokens = 0;
            for (int64_t i = 0; i < step.lengths.n; i++)
                tokens += step.lengths.len[i];
            char in[4096] = { 0 }, from[4096] = { 0 };
            size_t size = (size_t)tokens * (k % 2 ? sizeof(int32_t) : WIDE * sizeof(weft_real));
            weft_read(x, in, size), weft_read(y, from, size);
            cr_assert(weft_ok(w) && !memcmp(in, from, size), "%s", weft_error_message(w));
        }
        weft_plan_free(&p), weft_dataset_free(&whole), close_shape(&part);
    }
}

FILE_TEST(hdf5_reads, too_large_number_is_reported_when_read)
{
    if (sizeof(weft_real) == 8)
        return;
    const char *path = in_folder("big.h5");
    double x[12] = { 0 };
    x[7] = 1e300;
    hid_t file = new_file(path);
    put_numbers(file, "lengths", H5T_STD_I32LE, 3, 0, (double[]){ 2, 3, 1 });
    put_numbers(file, "rows", H5T_IEEE_F64LE, 6, 2, x);
    H5Fclose(file);
    weft_dataset d, out;
    OPENS(path, NULL, &d);
    DOES(weft_read_hdf5_part(d.file, (int32_t[]){ 2, 0 }, 2, &out));
    weft_dataset_free(&out);
    REFUSES(weft_read_hdf5_part(d.file, all, 3, &out), WEFT_EFORMAT,
            "is 1e+300; expected a number that a float32 holds");
    is_empty(&out);
    FAILS_AT(w, weft_dataset_batch(w, &d, all, 3), WEFT_EFORMAT, "dataset_batch: ");
    close_shape(&d);
}

FILE_TEST(hdf5_reads, cut_or_replaced_file_is_reported)
{
    const char *path = plain_file();
    weft_dataset d, before, out;
    DOES(weft_read_hdf5(path, "g", &before));
    OPENS(path, "g", &d);
    weft_dataset other = { .n = 1, .columns = 1, .len = (int32_t[]){ 1 }, .rows = (weft_real[]){ 9 } };
    DOES(weft_write_hdf5(&other, path, "g")); /* another file of that name */
    same_as_whole(&before, &d, all, 3);
    close_shape(&d), weft_dataset_free(&before);
    OPENS(plain_file(), "g", &d);
    cr_assert_eq(truncate(in_folder("plain.h5"), 300), 0);
    REFUSES(weft_read_hdf5_part(d.file, all, 3, &out), WEFT_EIO, "became shorter after it was opened");
    is_empty(&out);
    close_shape(&d);
}

/* ---- memory ---- */
static weft_status open_and_read(const char *path, weft_dataset *d, weft_dataset *out)
{
    weft_status s = open_shape(path, "g", d);
    *out = (weft_dataset){ 0 };
    return s ? s : weft_read_hdf5_part(d->file, all, 3, out);
}

FILE_TEST(hdf5_reads, survives_failure_of_each_allocation)
{
    const char *path = plain_file();
    weft_dataset d, out;
    int files = open_files();
    weft_status s;
    FOR_EACH_FAILURE(s, open_and_read(path, &d, &out)) {
        close_shape(&d);
        nothing_is_open();
        cr_assert_eq(open_files(), files);
        cr_assert(s == WEFT_ENOMEM && strstr(weft_file_message(), "memory"), "allocation %ld: %s", failing.at,
                  weft_file_message());
        is_empty(&out);
    }
    DOES(s);
    close_shape(&d);
    cr_assert_eq(open_files(), files);
    cr_assert(!COUNTED || failing.at > 8, "only %ld allocations", failing.at - 1);
    weft_dataset_free(&out);
}

/* ---- threads ---- */
static weft_dataset shared_data, whole_data;
static void *reads(void *of)
{
    weft_stream *s = weft_stream_new((uint64_t)(intptr_t)of, "reads");
    long wrong = 0;
    for (int k = 0; k < 200; k++) {
        weft_dataset out;
        int32_t i = (int32_t)weft_stream_below(s, shared_data.n);
        wrong += weft_read_hdf5_part(shared_data.file, &i, 1, &out) != WEFT_OK ||
                 memcmp(out.rows, whole_data.rows + whole_data.offset[i] * WIDE,
                        (size_t)out.len[0] * WIDE * sizeof(weft_real));
        weft_dataset_free(&out);
    }
    weft_stream_free(s);
    return (void *)wrong;
}

FILE_TEST(hdf5_reads, several_threads_read_one_file)
{
    pthread_t thread[4];
    const char *path = in_folder("threads.h5");
    int32_t len[MOST];
    dice_lengths(len, MOST, LONGEST);
    write_layout(path, &(layout){ "g/rows", H5T_IEEE_F64BE, .age = OF_1_8 }, len, MOST);
    DOES(weft_read_hdf5(path, "g", &whole_data));
    OPENS(path, "g", &shared_data);
    for (intptr_t i = 0; i < 4; i++)
        cr_assert(!pthread_create(thread + i, NULL, reads, (void *)i));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        cr_assert(!wrong);
    }
    close_shape(&shared_data), weft_dataset_free(&whole_data);
}

FILE_TEST(hdf5_reads, cached_pages_keep_their_bytes)
{
    unsigned char x[40000], y[40000];
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)dice(256);
    const char *path = put_bytes("pages", x, sizeof x);
    weft__paged p = { .file = open(path, O_RDONLY | O_CLOEXEC), .size = sizeof x };
    cr_assert(weft__paged_read(&p, 100, 20000, y) && !memcmp(x + 100, y, 20000));
    memset(y, 7, sizeof y);
    int f = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert(pwrite(f, y, sizeof y, 0) == (ssize_t)sizeof y);
    cr_assert(weft__paged_read(&p, 5, 30000, y) && !memcmp(x + 5, y, 30000));
    cr_assert(weft__paged_read(&p, 39990, 10, y) && y[0] == 7);
    cr_assert(!ftruncate(f, 0) && weft__paged_read(&p, 0, 40000, y) && !p.status);
    weft__paged_end(&p);
    cr_assert(!weft__paged_read(&p, 0, 1, y) && p.status == WEFT_EIO && strstr(p.reason, "shorter"));
    close(p.file), close(f);
}
