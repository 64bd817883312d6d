/* test_hdf5_reads.c - an open HDF5 file as a dataset: batches and parts have the bytes of the whole file, in
 * any order, and no others are read; damaged files, files that change, memory that runs out. */
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
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
static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    cr_assert(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void is_empty(const weft_dataset *d)
{
    cr_assert(d->n == 0 && !d->len && !d->offset && !d->rows && !d->ints && !d->file);
}

/* ---- files ---- */
typedef struct {
    const char *set;
    hid_t type;
    H5D_layout_t layout;
    hsize_t user_block;
    bool newest;
} form;

/* Lengths as given, numbers 0, 1, 2, .. and some odd ones, in the group "g". */
static void write_form(const char *path, const form *f, const int32_t *len, int64_t n)
{
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS),
          list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t rows = 0, sequences = (hsize_t)n;
    for (int64_t i = 0; i < n; i++)
        rows += (hsize_t)len[i];
    H5Pset_userblock(creation, f->user_block), H5Pset_layout(list, f->layout);
    if (f->newest)
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access),
          group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool tokens = !strcmp(f->set, "tokens");
    double lengths[MOST], numbers[MOST * LONGEST * WIDE];
    for (int64_t i = 0; i < n; i++)
        lengths[i] = len[i];
    for (hsize_t i = 0; i < rows * WIDE; i++)
        numbers[i] = i % 7 == 5 && !tokens ? -INFINITY : (double)i / (tokens ? 1 : 3);
    add_set(group, "lengths", H5T_STD_I64LE, 1, &sequences, lengths);
    hsize_t size[] = { rows, WIDE };
    hid_t space = H5Screate_simple(tokens ? 1 : 2, size, NULL),
          set = H5Dcreate2(group, f->set, f->type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert(set >= 0 &&
              (!rows || H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0));
    H5Dclose(set), H5Sclose(space), H5Gclose(group), H5Fclose(file);
    H5Pclose(list), H5Pclose(access), H5Pclose(creation);
}

/* ---- beside the whole ---- */
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
        cr_assert_eq(got.len[i], whole->len[index[i]]);
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

/* All in order, backwards, the first and the last, none, one of them many times, chance. */
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

Test(hdf5_reads, the_same_bytes_as_the_whole_file)
{
    const hid_t f32 = H5T_IEEE_F32LE, f64 = H5T_IEEE_F64LE;
    const form forms[] = { { "rows", f32, H5D_CONTIGUOUS, 0, false },
                           { "rows", f64, H5D_CONTIGUOUS, 0, true },
                           { "rows", H5T_IEEE_F32BE, H5D_CONTIGUOUS, 0, true },
                           { "rows", H5T_IEEE_F64BE, H5D_CONTIGUOUS, 512, false },
                           { "rows", f32, H5D_CONTIGUOUS, 2048, true },
                           { "rows", f32, H5D_COMPACT, 0, true },
                           { "rows", f64, H5D_COMPACT, 1024, false },
                           { "tokens", H5T_STD_I32LE, H5D_CONTIGUOUS, 0, true },
                           { "tokens", H5T_STD_I32LE, H5D_COMPACT, 0, false } };
    const char *path = in_folder("forms.h5");
    weft *w = open_on(WEFT_CPU);
    int files = open_files();
    for (int k = 0; k < rounds(90, 900); k++) {
        const form *f = &forms[k % COUNT(forms)];
        int32_t len[MOST];
        int64_t n = (int64_t)dice(MOST);
        dice_lengths(len, n, LONGEST);
        for (int i = 0; i < n && k % 11 == 0; i++)
            len[i] = 0;
        write_form(path, f, len, n);
        weft_dataset whole, part;
        DOES(weft_read_hdf5(path, "g", &whole));
        OPENS(path, "g", &part);
        if (whole.offset[n] && f->layout == H5D_CONTIGUOUS)
            cr_assert(part.file && !part.rows && !part.ints && open_files() == files + 1);
        every_order(w, &whole, &part);
        weft_dataset_free(&whole), close_shape(&part);
        is_empty(&part);
        cr_assert(open_files() == files && !H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL));
    }
    CLEAN(w);
    end_folder();
}

/* ---- no more than that ---- */
static long long bytes_read(void)
{
    long long n = -1;
    FILE *f = fopen("/proc/self/io", "r");
    cr_assert(f && fscanf(f, "rchar: %lld", &n) == 1);
    fclose(f);
    return n;
}

enum { LARGE = 100000, EACH = 32, COLUMNS = 32 }; /* 410 MB of zeros, of which the disk has none */
static const char *large_file(void)
{
    const char *path = in_folder("large.h5");
    static double len[LARGE];
    hsize_t n = LARGE, size[] = { (hsize_t)LARGE * EACH, COLUMNS };
    for (int i = 0; i < LARGE; i++)
        len[i] = EACH;
    hid_t file = new_file(path), list = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(2, size, NULL);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY), H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    add_set(file, "lengths", H5T_STD_I32LE, 1, &n, len);
    H5Dclose(H5Dcreate2(file, "rows", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space), H5Pclose(list), H5Fclose(file);
    return path;
}

static long resident(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

Test(hdf5_reads, no_more_is_read_than_is_asked_for)
{
    const char *path = large_file();
    weft_dataset d, some;
    int32_t index[100];
    long before = resident();
    long long at = bytes_read(), look = bytes_read() - at;
    at = bytes_read();
    OPENS(path, NULL, &d);
    long long opened = bytes_read() - at - look;
    cr_assert(d.n == LARGE && opened >= 4 * LARGE && opened < 4 * LARGE + 200000, "%lld bytes", opened);
    for (int i = 0; i < 100; i++)
        index[i] = (int32_t)(i * 997 % LARGE);
    at = bytes_read();
    DOES(weft_read_hdf5_part(d.file, index, 100, &some));
    long long read = bytes_read() - at - look, asked = 100ll * EACH * COLUMNS * 4;
    cr_assert(read == asked, "%lld bytes for %lld", read, asked);
    weft_dataset_free(&some), close_shape(&d);
    cr_assert(CHECK_SANITIZED || resident() - before < 20000, "%ld KB more", resident() - before);
    end_folder();
}

static long long calls_read(void)
{
    long long n = -1;
    FILE *f = fopen("/proc/self/io", "r");
    cr_assert(f && fscanf(f, "rchar: %*d wchar: %*d syscr: %lld", &n) == 1);
    fclose(f);
    return n;
}

Test(hdf5_reads, neighbours_are_read_by_one_call)
{
    weft_dataset d, some;
    int32_t index[200];
    OPENS(large_file(), NULL, &d);
    for (int i = 0; i < 200; i++)
        index[i] = 5000 + i + (i < 100 ? 0 : 1000);
    long long at = calls_read(), look = calls_read() - at;
    at = calls_read();
    DOES(weft_read_hdf5_part(d.file, index, 200, &some));
    long long calls = calls_read() - at - look;
    cr_assert(calls == 2, "%lld calls", calls);
    weft_dataset_free(&some), close_shape(&d);
    end_folder();
}

/* ---- refused ---- */
static const int32_t lens[] = { 2, 0, 3 }, all[] = { 0, 1, 2 }, odd[] = { 0, 3 };
static const form plain = { "rows", (hid_t)0, H5D_CONTIGUOUS, 0, true };
static const char *plain_file(void)
{
    const char *path = in_folder("plain.h5");
    form f = plain;
    f.type = H5T_IEEE_F64LE;
    write_form(path, &f, lens, 3);
    return path;
}

Test(hdf5_reads, refuses)
{
    weft_dataset d;
    int files = open_files();
    REFUSES(open_shape(plain_file(), NULL, &d), WEFT_EFORMAT, "there is no data set \"lengths\"");
    is_empty(&d);
    REFUSES(open_shape(in_folder("none.h5"), NULL, &d), WEFT_ENOENT, "none.h5");
    REFUSES(open_shape(P_tmpdir, NULL, &d), WEFT_EFORMAT, "not a regular file");
    write_bytes(in_folder("empty.h5"), "", 0);
    REFUSES(open_shape(in_folder("empty.h5"), NULL, &d), WEFT_EFORMAT, "empty.h5");
    cr_assert_eq(open_files(), files);
    OPENS(plain_file(), "g", &d);
    REFUSES(weft_write_hdf5(&d, in_folder("copy.h5"), NULL), WEFT_EARG, "a dataset with lengths from 0 on");
    weft *w = open_on(WEFT_CPU);
    weft_dataset_batch(w, &d, odd, 2);
    FAILS(w, WEFT_EARG, "dataset_batch: index 1 is 3; the dataset has sequences 0 .. 2");
    weft_dataset more = d; /* a program's own mistake */
    more.len = (int32_t[]){ 2, 0, 10 }, more.offset = (int64_t[]){ 0, 2, 2, 12 };
    weft_dataset_batch(w, &more, all, 3);
    FAILS(w, WEFT_EARG, "rows 0 .. 11 are asked for; \"g/rows\" has 5");
    CLEAN(w);
    close_shape(&d);
    cr_assert_eq(open_files(), files);
    end_folder();
}

/* ---- windows of a plan ---- */
Test(hdf5_reads, tokens_of_a_plan)
{
    const char *path = in_folder("plan.h5");
    for (int k = 0; k < 40; k++) {
        form f = plain;
        f.type = k % 2 ? H5T_STD_I32LE : H5T_IEEE_F32LE, f.set = k % 2 ? "tokens" : "rows";
        int32_t len[MOST];
        dice_lengths(len, MOST, LONGEST);
        write_form(path, &f, len, MOST);
        weft_dataset whole, part;
        weft_plan p;
        DOES(weft_read_hdf5(path, "g", &whole));
        OPENS(path, "g", &part);
        cr_assert_eq(weft_plan_make(weft_planner_named("streams"), len, MOST,
                                    &(weft_plan_opts){ .slots = 3, .window = 4 }, &p),
                     WEFT_OK);
        weft *w = open_on(WEFT_CPU);
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
        CLEAN(w);
    }
    end_folder();
}

Test(hdf5_reads, chunks_are_read_as_by_the_whole_reader)
{
    const char *path = in_folder("chunked.h5");
    hsize_t n = 1, size[] = { 4, 2 }, chunk[] = { 3, 1 };
    hid_t file = new_file(path), list = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(2, size, NULL);
    H5Pset_chunk(list, 2, chunk), H5Pset_deflate(list, 1);
    add_set(file, "lengths", H5T_STD_I32LE, 1, &n, (double[]){ 4 });
    hid_t set = H5Dcreate2(file, "rows", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    static const float values[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    cr_assert(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set), H5Sclose(space), H5Pclose(list), H5Fclose(file);
    weft_dataset d, part;
    weft_hdf5 *open_file;
    DOES(weft_read_hdf5(path, NULL, &d));
    DOES(weft_open_hdf5(path, NULL, &open_file));
    DOES(weft_read_hdf5_part(open_file, (int32_t[]){ 0 }, 1, &part));
    for (int i = 0; i < 8; i++)
        cr_assert(d.rows[i] == (weft_real)values[i] && part.rows[i] == d.rows[i]);
    weft_close_hdf5(open_file);
    weft_dataset_free(&d), weft_dataset_free(&part);
    end_folder();
}

Test(hdf5_reads, a_number_that_is_too_large_is_told_when_it_is_read)
{
    if (sizeof(weft_real) == 8)
        return;
    const char *path = in_folder("big.h5");
    double x[12] = { 0 };
    hsize_t three = 3, size[] = { 6, 2 };
    x[7] = 1e300;
    hid_t file = new_file(path);
    add_set(file, "lengths", H5T_STD_I32LE, 1, &three, (double[]){ 2, 3, 1 });
    add_set(file, "rows", H5T_IEEE_F64LE, 2, size, x);
    H5Fclose(file);
    weft_dataset d, out;
    OPENS(path, NULL, &d);
    DOES(weft_read_hdf5_part(d.file, (int32_t[]){ 2, 0 }, 2, &out));
    weft_dataset_free(&out);
    REFUSES(weft_read_hdf5_part(d.file, all, 3, &out), WEFT_EFORMAT,
            "is 1e+300, which is too large for float32");
    is_empty(&out);
    weft *w = open_on(WEFT_CPU);
    weft_dataset_batch(w, &d, all, 3);
    FAILS(w, WEFT_EFORMAT, "dataset_batch: ");
    CLEAN(w);
    close_shape(&d);
    end_folder();
}

/* ---- files that change ---- */
Test(hdf5_reads, a_file_that_is_cut_off_or_replaced)
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
    REFUSES(weft_read_hdf5_part(d.file, all, 3, &out), WEFT_EIO, "has become shorter since it was opened");
    is_empty(&out);
    close_shape(&d);
    end_folder();
}

/* ---- damage ---- */
Test(hdf5_reads, each_byte_damaged_is_refused_or_read_as_by_the_whole_reader)
{
    static const unsigned char to[] = { 0xff, 0, 0x80, 1 };
    const char *path = plain_file();
    bytes b = read_bytes(path);
    int files = open_files(), taken = 0;
    for (size_t i = 0; i < b.n; i++)
        for (int k = 0; k < COUNT(to); k++) {
            unsigned char was = b.at[i];
            b.at[i] = to[k];
            write_bytes(path, b.at, b.n);
            b.at[i] = was;
            weft_dataset whole, part;
            weft_status s = weft_read_hdf5(path, "g", &whole), t = open_shape(path, "g", &part);
            cr_assert((t == WEFT_OK || t == WEFT_EFORMAT) && (s || !t), "byte %zu: %d, %d: %s", i, s, t,
                      weft_file_message());
            if (!s && !t)
                same_as_whole(&whole, &part, all, whole.n < 3 ? whole.n : 3), taken++;
            weft_dataset_free(&whole), close_shape(&part);
            cr_assert(!H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) && open_files() == files);
        }
    ends_well();
    cr_assert(taken > 100);
    free(b.at);
    end_folder();
}

/* ---- memory ---- */
static weft_status open_and_read(const char *path, weft_dataset *d, weft_dataset *out)
{
    weft_status s = open_shape(path, "g", d);
    *out = (weft_dataset){ 0 };
    return s ? s : weft_read_hdf5_part(d->file, all, 3, out);
}

Test(hdf5_reads, every_allocation_may_fail)
{
    const char *path = plain_file();
    weft_dataset d, out;
    int files = open_files();
    for (failing.at = 1;; failing.at++) {
        failing.seen = 0;
        failing.armed = true;
        weft_status s = open_and_read(path, &d, &out);
        failing.armed = false;
        close_shape(&d);
        cr_assert(open_files() == files && !H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL));
        if (failing.seen < failing.at) {
            DOES(s);
            break;
        }
        cr_assert(s == WEFT_ENOMEM && strstr(weft_file_message(), "memory"), "allocation %ld: %s", failing.at,
                  weft_file_message());
        is_empty(&out);
    }
    cr_assert(!COUNTED || failing.at > 8, "only %ld allocations", failing.at - 1);
    weft_dataset_free(&out);
    end_folder();
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

Test(hdf5_reads, several_threads_read_one)
{
    pthread_t thread[4];
    const char *path = in_folder("threads.h5");
    int32_t len[MOST];
    form f = plain;
    f.type = H5T_IEEE_F64BE;
    dice_lengths(len, MOST, LONGEST);
    write_form(path, &f, len, MOST);
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
    end_folder();
}
