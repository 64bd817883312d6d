/* test_data.c - ragged data from text, CSV and HDF5 with everything that can be wrong in them; the
 * loader's promises; the journal. */
#include <hdf5.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/core/comma.h"
#include "tests/io/files.h"

static const char *put(const char *name, const void *bytes, size_t n)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    cr_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    return path;
}
#define put_text(name, text) put(name, text, sizeof(text) - 1)

static void is_empty(const weft_dataset *d)
{
    cr_assert(d->n == 0 && !d->len && !d->offset && !d->rows && !d->ints);
}

/* ---- text ---- */
Test(data, text_lines_are_sequences)
{
    weft_dataset d;
    cr_assert_eq(weft_read_text(put_text("a.txt", "ab\n\nxyz\r\nlast"), NULL, &d), WEFT_OK);
    static const int32_t len[] = { 2, 0, 3, 4 }, tokens[] = { 'a', 'b', 'x', 'y', 'z', 'l', 'a', 's', 't' };
    static const int64_t offset[] = { 0, 2, 2, 5, 9 };
    cr_assert(d.n == 4 && !d.rows && !memcmp(d.len, len, sizeof len) &&
              !memcmp(d.offset, offset, sizeof offset) && !memcmp(d.ints, tokens, sizeof tokens));
    weft_dataset_free(&d);
    is_empty(&d);
    cr_assert_eq(weft_read_text(put_text("a.txt", ""), NULL, &d), WEFT_OK);
    cr_assert(d.n == 0 && d.offset[0] == 0);
    weft_dataset_free(&d);
    end_folder();
}

Test(data, text_may_be_anything)
{
    enum { N = 300000 };
    unsigned char *bytes = malloc(N);
    int64_t lines = 0, tokens = 0;
    for (int i = 0; i < N; i++)
        bytes[i] = (unsigned char)(i < N / 2 ? dice(256) : 'x');     /* binary, then one long line */
    bytes[N / 2] = '\n';
    for (int i = 0; i < N; i++) {
        lines += bytes[i] == '\n' || i == N - 1;
        tokens += bytes[i] != '\n' && !(bytes[i] == '\r' && i + 1 < N && bytes[i + 1] == '\n');
    }
    weft_dataset d;
    cr_assert_eq(weft_read_text(put("b.bin", bytes, N), NULL, &d), WEFT_OK);
    cr_assert(d.n == lines && d.offset[d.n] == tokens && d.len[d.n - 1] == N / 2 - 1);
    weft_dataset_free(&d);
    free(bytes);
    end_folder();
}

static void text_is(const char *path, weft_text_opts opts, int64_t n, const int32_t *len, const char *tokens)
{
    weft_dataset d;
    int64_t token = 0;
    cr_assert_eq(weft_read_text(path, &opts, &d), WEFT_OK);
    cr_assert(d.n == n && (!n || !memcmp(d.len, len, (size_t)n * sizeof *len)) && !d.rows && !d.columns);
    for (; tokens[token]; token++)
        cr_assert(token < d.offset[n] && d.ints[token] == (unsigned char)tokens[token], "token %lld",
                  (long long)token);
    cr_assert_eq(token, d.offset[n]);
    weft_dataset_free(&d);
}

Test(data, text_with_its_line_ends)
{
    const weft_text_opts kept = { .keep_line_ends = true }, one = { .one_sequence = true },
                         both = { true, true };
    const char *path = put_text("a.txt", "ab\n\nxyz\r\nlast");
    text_is(path, (weft_text_opts){ 0 }, 4, (int32_t[]){ 2, 0, 3, 4 }, "abxyzlast");
    text_is(path, kept, 4, (int32_t[]){ 3, 1, 4, 4 }, "ab\n\nxyz\nlast");
    text_is(path, one, 1, (int32_t[]){ 12 }, "ab\n\nxyz\nlast");
    text_is(path, both, 1, (int32_t[]){ 12 }, "ab\n\nxyz\nlast");
    path = put_text("a.txt", "\xE9\n\r\r\nb\r");
    text_is(path, kept, 3, (int32_t[]){ 2, 2, 2 }, "\xE9\n\r\nb\r");
    text_is(path, one, 1, (int32_t[]){ 6 }, "\xE9\n\r\nb\r");
    path = put_text("a.txt", "");
    text_is(path, kept, 0, (int32_t[]){ 0 }, "");
    text_is(path, one, 1, (int32_t[]){ 0 }, "");
    weft_dataset d;
    cr_assert_eq(weft_read_text(in_folder("not-there"), &one, &d), WEFT_ENOENT);
    is_empty(&d);
    end_folder();
}

/* Whatever the bytes: the lines with their ends, put together, are the one sequence. */
Test(data, lines_with_ends_are_the_text)
{
    for (int k = 0; k < rounds(100, 2000); k++) {
        unsigned char bytes[200];
        size_t n = dice(200);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)"ab\n\r"[dice(4)];
        const char *path = put("b.bin", bytes, n);
        weft_dataset lines, all;
        cr_assert(!weft_read_text(path, &(weft_text_opts){ .keep_line_ends = true }, &lines) &&
                  !weft_read_text(path, &(weft_text_opts){ .one_sequence = true }, &all));
        int64_t tokens = lines.offset[lines.n], ends = 0, at = 0;
        cr_assert(all.n == 1 && all.len[0] == tokens &&
                  (!tokens || !memcmp(all.ints, lines.ints, (size_t)tokens * sizeof *all.ints)));
        for (int64_t i = 0; i < lines.n; i++)
            ends += lines.len[i] && lines.ints[lines.offset[i + 1] - 1] == '\n';
        for (size_t i = 0; i < n; i++)
            if (!(bytes[i] == '\r' && i + 1 < n && bytes[i + 1] == '\n'))
                cr_assert_eq(all.ints[at++], bytes[i]);
        cr_assert(at == tokens && ends == lines.n - (n && bytes[n - 1] != '\n'));
        weft_dataset_free(&lines);
        weft_dataset_free(&all);
    }
    end_folder();
}

Test(data, text_that_cannot_be_read)
{
    weft_dataset d;
    cr_assert_eq(weft_read_text(in_folder("not-there"), NULL, &d), WEFT_ENOENT);
    MESSAGE_HAS("not-there");
    is_empty(&d);
    cr_assert_neq(weft_read_text(folder, NULL, &d), WEFT_OK);
    MESSAGE_HAS(folder);
    is_empty(&d);
    cr_assert_eq(weft_read_text(NULL, NULL, &d), WEFT_EARG);
    cr_assert_eq(weft_read_text("x", NULL, NULL), WEFT_EARG);
    weft_dataset_free(NULL);
    end_folder();
}

/* ---- CSV ---- */
static const char *const ab[] = { "a", "b" };

/* Sizes that are not those of the content: 0 in /proc, 4096 in /sys. No reader takes one for an empty
 * file. */
Test(data, files_of_the_kernel_are_refused)
{
    weft_dataset d;
    weft_hdf5 *part;
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU });
    weft_module *m = weft_module_new(w, "m");
    weft_frame f = { 0 };
    static const char *const a[] = { "a", NULL };
    const char *path = "/proc/self/status";
    const weft_status status[] = { weft_read_text(path, NULL, &d),
                                   weft_read_csv(path, "id", ab, 2, NULL, &d),
                                   weft_read_hdf5(path, NULL, &d),
                                   weft_open_hdf5(path, NULL, &part),
                                   weft_frame_read_csv(&f, path, NULL, a, NULL),
                                   weft_frame_read_hdf5(&f, path, NULL, a),
                                   weft_load(path, m, NULL, NULL, 0),
                                   weft_load_state_dict(path, m, NULL) };
    MESSAGE_HAS("/proc/self/status: its size is 0, but it has content");
    for (int i = 0; i < COUNT(status); i++)
        cr_assert_eq(status[i], WEFT_EFORMAT, "reader %d", i);
    cr_assert_eq(weft_read_text("/sys/kernel/mm/transparent_hugepage/enabled", NULL, &d) == WEFT_OK, false);
    cr_assert(strstr(weft_file_message(), "/sys/kernel"));
    weft_close(w);
}

Test(data, csv_with_quotes_and_line_ends_of_both_kinds)
{
    weft_dataset d;
    const char *path =
        put_text("a.csv", "\xEF\xBB\xBF"
                          "name,\"b\",note,a\r\nx,1,\"one, \"\"two\"\"\nthree\",2\r\nx,-.5e1,,4\n\n\"x "
                          "y\",\" 6\",,\"0x10 \"\nx,7,,8");
    cr_assert_eq(weft_read_csv(path, "name", ab, 2, NULL, &d), WEFT_OK, "%s", weft_file_message());
    static const int32_t len[] = { 3, 1 };
    static const weft_real rows[] = { 2, 1, 4, -5, 8, 7, 16, 6 };
    cr_assert(d.n == 2 && d.columns == 2 && !d.ints && d.offset[2] == 4 && !memcmp(d.len, len, sizeof len));
    same_bits("rows", d.rows, rows, COUNT(rows));
    weft_dataset_free(&d);
    end_folder();
}

Test(data, csv_with_missing_values)
{
    weft_dataset d;
    const char *path = put_text("a.csv", "id,a\n1,nan\n1,-2\n2,NaN\n2,inf\n");
    cr_assert_eq(weft_read_csv(path, "id", (const char *const[]){ "a" }, 1, NULL, &d), WEFT_OK, "%s",
                 weft_file_message());
    cr_assert(d.n == 2 && isnan(d.rows[0]) && d.rows[1] == -2 && isnan(d.rows[2]) && isinf(d.rows[3]));
    weft_dataset_free(&d);
    end_folder();
}

Test(data, csv_of_a_million_numbers_and_no_rows)
{
    weft_dataset d;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("id,a,b\n", f);
    for (int i = 0; i < 100000; i++)
        fprintf(f, "%d,%d,%d.5\n", i / 7, i, -i);
    fclose(f);
    cr_assert_eq(weft_read_csv(put("l.csv", text, size), "id", ab, 2, NULL, &d), WEFT_OK);
    cr_assert(d.n == 100000 / 7 + 1 && d.len[0] == 7 && d.offset[d.n] == 100000 &&
              d.rows[2 * 99999] == 99999 && d.rows[2 * 3 + 1] == (weft_real)-3.5);
    weft_dataset_free(&d);
    free(text);
    cr_assert_eq(weft_read_csv(put_text("e.csv", "id,a,b\n"), "id", ab, 2, NULL, &d), WEFT_OK);
    cr_assert(d.n == 0 && d.columns == 2 && d.offset[0] == 0);
    weft_dataset_free(&d);
    end_folder();
}

Test(data, csv_in_a_country_of_decimal_commas)
{
    weft_dataset d;
    comma_begin();
    cr_assert_eq(weft_read_csv(put_text("a.csv", "id,a,b\n1,1.5,2.25\n"), "id", ab, 2, NULL, &d), WEFT_OK);
    cr_assert(d.rows[0] == (weft_real)1.5 && d.rows[1] == (weft_real)2.25);
    weft_dataset_free(&d);
    comma_end();
    end_folder();
}

Test(data, csv_that_is_wrong_says_where)
{
    static const struct { const char *text, *says;
    } bad[] = {
        { "", ":1: a header" },
        { "\n\n", ": a header" },
        { "id,a\n1,2\n", ":1: no column is named \"b\"" },
        { "id,a,b,a\n", "two columns are named \"a\"" },
        { "id,a,b\n1,2\n", ":2: 2 fields, the header has 3" },
        { "id,a,b\n1,2,3\n\n1,2,3,4\n", ":4: 4 fields" },
        { "id,a,b\n1,2,3\n1,,3\n", ":3: column \"a\": a number was expected, not \"\"" },
        { "id,a,b\n1,2,3x\n", ":2: column \"b\": a number was expected, not \"3x\"" },
        { "id,a,b\n1,2, \n", ":2: column \"b\": a number was expected, not \" \"" },
        { "id,a,b\n1,2,1e999\n", ":2: column \"b\": \"1e999\" is too large" },
        { "id,a,b\n\"x\ny\",2,?\n", ":2: column \"b\"" },
        { "id,a,b\n\"x\ny\",2,3\n1,?,2\n", ":4: column \"a\"" },
        { "id,a,b\n1,\"2,3\n", ":2: a quote that is never closed" },
        { "id,a,b\n1,\"2\"2,3\n", ":2: text behind a closing quote" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_dataset d;
        const char *path = put("bad.csv", bad[i].text, strlen(bad[i].text));
        cr_assert_eq(weft_read_csv(path, "id", ab, 2, NULL, &d), WEFT_EFORMAT, "%d", i);
        MESSAGE_HAS("bad.csv");
        MESSAGE_HAS(bad[i].says);
        is_empty(&d);
    }
    weft_dataset d;
    cr_assert_eq(weft_read_csv(in_folder("no.csv"), "id", ab, 2, NULL, &d), WEFT_ENOENT);
    cr_assert_eq(weft_read_csv("x", NULL, ab, 2, NULL, &d), WEFT_EARG);
    cr_assert_eq(weft_read_csv("x", "id", NULL, 2, NULL, &d), WEFT_EARG);
    cr_assert_eq(weft_read_csv("x", "id", ab, 0, NULL, &d), WEFT_EARG);
    cr_assert_eq(weft_read_csv("x", "id", ab, 2, NULL, NULL), WEFT_EARG);
    end_folder();
}

Test(data, csv_of_any_bytes_does_no_harm)
{
    static const char letters[] = "id,ab\n\"\r,1.e-\0x";
    for (int k = rounds(2000, 20000); k--; ) {
        char text[200] = "id,a,b\n";
        size_t n = 7 + dice(190);
        for (size_t i = dice(4) ? 7 : 0; i < n; i++)
            text[i] = letters[dice(sizeof letters - 1)];
        weft_dataset d;
        weft_status s = weft_read_csv(put("f.csv", text, n), "id", ab, 2, NULL, &d);
        cr_assert(s == WEFT_OK || (s == WEFT_EFORMAT && d.n == 0));
        for (int64_t i = 0; s == WEFT_OK && i < d.n; i++)
            cr_assert(d.len[i] > 0 && d.offset[i + 1] - d.offset[i] == d.len[i]);
        weft_dataset_free(&d);
    }
    end_folder();
}

/* ---- HDF5 ---- */
Test(data, hdf5_there_and_back)
{
    static const char *const groups[] = { NULL, "", "/", "train", "/a/b/c", "a//b/", "./a/." };
    for (int k = 0; k < rounds(40, 400); k++) {
        int32_t len[20], tokens[20 * 9];
        weft_real rows[20 * 9 * 3];
        weft_dataset in = { .n = (int64_t)dice(20), .len = len }, out;
        int64_t total = dice_lengths(len, in.n, 9);
        for (int64_t i = 0; i < total; i++)
            tokens[i] = (int32_t)dice(1000) - 500;
        dice_fill(rows, total * 3, -1, 1);
        in.columns = k % 2 ? 3 : 0;
        in.rows = k % 2 ? rows : NULL;
        in.ints = k % 2 ? NULL : tokens;
        const char *group = groups[k % COUNT(groups)], *path = in_folder("d.h5");
        cr_assert_eq(weft_write_hdf5(&in, path, group), WEFT_OK, "%s", weft_file_message());
        cr_assert_eq(weft_read_hdf5(path, group, &out), WEFT_OK, "%s", weft_file_message());
        cr_assert(out.n == in.n && out.columns == in.columns && out.offset[out.n] == total &&
                  !memcmp(out.len, len, (size_t)in.n * sizeof *len));
        cr_assert(!memcmp(k % 2 ? (void *)out.rows : (void *)out.ints, k % 2 ? (void *)rows : (void *)tokens,
                          (size_t)total * (k % 2 ? 3 * sizeof *rows : sizeof *tokens)));
        weft_dataset_free(&out);
    }
    end_folder();
}

/* A file as others write it: data sets of these types and extents below the root. */
static const char *foreign(hid_t lengths_type, int lengths_rank, const int64_t *lengths, hsize_t n,
                           const char *rows_name, hid_t rows_type, int rank, hsize_t rows, hsize_t columns)
{
    static const double zeros[64];
    const char *path = in_folder("foreign.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t first[2] = { n, 1 }, second[2] = { rows, columns };
    hid_t space = H5Screate_simple(lengths_rank, first, NULL),
          set = H5Dcreate2(file, "lengths", lengths_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(n == 0 || H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, lengths) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    if (rows_name) {
        space = H5Screate_simple(rank, second, NULL);
        set = H5Dcreate2(file, rows_name, rows_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (rows * columns <= 64 && H5Tget_class(rows_type) != H5T_STRING)
            cr_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
        H5Dclose(set);
        H5Sclose(space);
    }
    H5Fclose(file);
    return path;
}

Test(data, hdf5_of_others)
{
    static const int64_t two[] = { 3, 1 }, negative[] = { 5, -1 }, huge[] = { 1LL << 33, 1 };
    weft_dataset d;
    const hid_t floats[] = { H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE },
                ints[] = { H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE };
    for (int i = 0; i < 12; i++) {
        const char *path = foreign(ints[i % 3], 1, two, 2, "rows", floats[i / 3], 2, 4, 5);
        cr_assert_eq(weft_read_hdf5(path, NULL, &d), WEFT_OK, "%d: %s", i, weft_file_message());
        cr_assert(d.n == 2 && d.len[0] == 3 && d.columns == 5 && d.rows[19] == 0);
        weft_dataset_free(&d);
    }
#define REFUSED(says, ...)                                                          \
    do {                                                                            \
        cr_assert_eq(weft_read_hdf5(foreign(__VA_ARGS__), NULL, &d), WEFT_EFORMAT); \
        MESSAGE_HAS("foreign.h5");                                                  \
        MESSAGE_HAS(says);                                                          \
        is_empty(&d);                                                               \
    } while (0)
    const hid_t i64 = H5T_STD_I64LE, f32 = H5T_IEEE_F32LE;
    REFUSED("5 rows, the lengths add up to 4", i64, 1, two, 2, "rows", f32, 2, 5, 5);
    REFUSED("sequence 1 has length -1", i64, 1, negative, 2, "rows", f32, 2, 4, 5);
    REFUSED("sequence 0 has length", i64, 1, huge, 2, "rows", f32, 2, 4, 5);
    REFUSED("lengths", f32, 1, two, 2, "rows", f32, 2, 4, 5);
    REFUSED("lengths", i64, 2, two, 2, "rows", f32, 2, 4, 5);
    REFUSED("numbers [N, columns] were expected", i64, 1, two, 2, "rows", f32, 1, 4, 1);
    REFUSED("integers [N] were expected", i64, 1, two, 2, "tokens", f32, 1, 4, 1);
    REFUSED("neither \"rows\" nor \"tokens\"", i64, 1, two, 2, NULL, f32, 1, 4, 1);
    cr_assert_eq(weft_read_hdf5(foreign(i64, 1, two, 2, "rows", f32, 2, 4, 5), "elsewhere", &d),
                 WEFT_EFORMAT);
    MESSAGE_HAS("elsewhere/lengths");
    cr_assert_eq(weft_read_hdf5(put_text("no.h5", "not HDF5 at all"), NULL, &d), WEFT_EFORMAT);
    cr_assert_eq(weft_read_hdf5(in_folder("nowhere.h5"), NULL, &d), WEFT_ENOENT);
    cr_assert_eq(weft_read_hdf5(file_name, NULL, NULL), WEFT_EARG);
    end_folder();
}

/* A text of empty lines has no token, and no memory for one. */
Test(data, hdf5_of_empty_sequences)
{
    weft_dataset in, out;
    cr_assert_eq(weft_read_text(put_text("lines.txt", "\n\n"), NULL, &in), WEFT_OK);
    cr_assert_eq(weft_write_hdf5(&in, in_folder("d.h5"), NULL), WEFT_OK, "%s", weft_file_message());
    cr_assert_eq(weft_read_hdf5(file_name, NULL, &out), WEFT_OK, "%s", weft_file_message());
    cr_assert(in.n == 2 && out.n == 2 && !out.columns && out.ints && !out.offset[2]);
    weft_dataset_free(&in);
    weft_dataset_free(&out);
    cr_assert_eq(weft_read_csv(put_text("head.csv", "id,x,y\n"), "id", (const char *[]){ "x", "y" }, 2, NULL,
                               &in), WEFT_OK);
    cr_assert_eq(weft_write_hdf5(&in, in_folder("d.h5"), NULL), WEFT_OK, "%s", weft_file_message());
    cr_assert_eq(weft_read_hdf5(file_name, NULL, &out), WEFT_OK, "%s", weft_file_message());
    cr_assert(out.n == 0 && out.columns == 2 && out.rows);
    weft_dataset_free(&in);
    weft_dataset_free(&out);
    end_folder();
}

Test(data, hdf5_cannot_be_written)
{
    int32_t len[] = { 1, -1 }, tokens[] = { 1 };
    weft_dataset d = { .n = 2, .len = len, .ints = tokens };
    cr_assert_eq(weft_write_hdf5(&d, in_folder("x.h5"), NULL), WEFT_EARG);
    d.n = 1;
    cr_assert_eq(weft_write_hdf5(&d, "/nowhere/x.h5", NULL), WEFT_EIO);
    cr_assert_eq(weft_write_hdf5(&d, NULL, NULL), WEFT_EARG);
    cr_assert_eq(weft_write_hdf5(NULL, "x", NULL), WEFT_EARG);
    d.ints = NULL;
    cr_assert_eq(weft_write_hdf5(&d, "x", NULL), WEFT_EARG);
    end_folder();
}

/* ---- the journal ---- */
static json_t *line_of(FILE *f)
{
    char line[4096];
    json_error_t e;
    cr_assert_not_null(fgets(line, sizeof line, f));
    json_t *j = json_loads(line, 0, &e);
    cr_assert(j, "%s in %s", e.text, line);
    return j;
}

Test(journal, lines_are_json)
{
    static const double values[] = { 0, 1, -1.5, 0.1, 1e300, 5e-324, 1.0 / 3, 123456789012345678.0 };
    const char *path = in_folder("log.jsonl");
    weft_journal *j;
    cr_assert_eq(weft_journal_open(path, false, &j), WEFT_OK);
    weft_journal_line_end(j);                    /* nothing in it: no line */
    for (int i = 0; i < COUNT(values); i++)
        weft_journal_number(j, (char[]){ (char)('a' + i), 0 }, values[i]);
    weft_journal_number(j, "nan", NAN);
    weft_journal_number(j, "inf", -INFINITY);
    weft_journal_number(j, NULL, 1);
    cr_assert(strstr(weft_file_message(), "log.jsonl: a member without a name"));
    weft_journal_text(j, NULL, "x");
    weft_journal_text(j, "quote \" back \\ line \n tab \t",
                      "\x01 \xC3\xA4 \xF0\x9F\x98\x80 bad \xC3( \xED\xA0\x80 \xFF");
    weft_journal_line_end(j);
    weft_journal_line_end(j);
    weft_journal_number(j, NULL, 1);             /* begins no line, either */
    weft_journal_line_end(j);
    weft_journal_text(j, "second", "line");
    weft_journal_line_end(j);
    weft_journal_number(j, "not ended", 1);
    weft_journal_close(j);
    FILE *f = fopen(path, "r");
    json_t *o = line_of(f);
    for (int i = 0; i < COUNT(values); i++)
        cr_assert_eq(json_number_value(json_object_get(o, (char[]){ (char)('a' + i), 0 })), values[i]);
    cr_assert(json_is_null(json_object_get(o, "nan")) && json_is_null(json_object_get(o, "inf")));
    cr_assert_eq(json_object_size(o), COUNT(values) + 3);
    cr_assert_str_eq(
        json_string_value(json_object_get(o, "quote \" back \\ line \n tab \t")),
        "\x01 \xC3\xA4 \xF0\x9F\x98\x80 bad \xEF\xBF\xBD( \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD");
    json_decref(o);
    o = line_of(f);
    cr_assert(json_object_size(o) == 1 && !strcmp(json_string_value(json_object_get(o, "second")), "line"));
    json_decref(o);
    cr_assert_eq(fgetc(f), EOF);
    fclose(f);
    end_folder();
}

Test(journal, appends_below_a_cut_line)
{
    const char *path = put_text("log.jsonl", "{\"a\": 1}\n{\"b\": ");
    for (int i = 0; i < 2; i++) {
        weft_journal *j;
        cr_assert_eq(weft_journal_open(path, true, &j), WEFT_OK);
        weft_journal_number(j, "c", i);
        weft_journal_line_end(j);
        weft_journal_close(j);
    }
    char text[100] = { 0 };
    FILE *f = fopen(path, "r");
    fread(text, 1, 99, f);
    fclose(f);
    cr_assert_str_eq(text, "{\"a\": 1}\n{\"b\": \n{\"c\": 0}\n{\"c\": 1}\n");
    end_folder();
}

Test(journal, null_swallows_everything)
{
    weft_journal *j = (weft_journal *)folder;
    cr_assert(weft_journal_open("/nowhere/log", false, &j) == WEFT_EIO && !j);
    MESSAGE_HAS("/nowhere/log");
    j = (weft_journal *)folder;
    cr_assert(weft_journal_open(NULL, false, &j) == WEFT_EARG && !j);
    MESSAGE_HAS("weft_journal_open: no path");
    cr_assert_eq(weft_journal_open("x", false, NULL), WEFT_EARG);
    weft_journal_number(NULL, "a", 1);
    weft_journal_text(NULL, "a", "b");
    weft_journal_line_end(NULL);
    weft_journal_close(NULL);
}
