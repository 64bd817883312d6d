/* test_data.c - tests ragged data from text and HDF5 files with every kind of fault, and the journal.
 * test_csv.c tests CSV. */
#include <jansson.h>
#include "sets.h"

/* ---- text ---- */
static void text_is(const char *path, weft_text_opts opts, int64_t n, const int32_t *len, const char *tokens)
{
    weft_dataset d;
    int64_t token = 0;
    DOES(weft_read_text(path, &opts, &d));
    cr_assert(d.n == n && (!n || !memcmp(d.len, len, (size_t)n * sizeof *len)) && !d.rows && !d.columns);
    for (; tokens[token]; token++)
        cr_assert(token < d.offset[n] && d.ints[token] == (unsigned char)tokens[token], "token %lld",
                  (long long)token);
    cr_assert_eq(token, d.offset[n]);
    weft_dataset_free(&d);
    is_empty(&d);
}

FILE_TEST(data, text_keeps_line_ends_on_request)
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
}

FILE_TEST(data, invalid_texts_are_refused)
{
    weft_dataset d;
    in_folder("");
    REFUSES(weft_read_text(in_folder("not-there"), NULL, &d), WEFT_ENOENT, "not-there");
    is_empty(&d);
    REFUSES(weft_read_text(folder, NULL, &d), WEFT_EFORMAT, folder);
    is_empty(&d);
    REFUSES(weft_read_text(NULL, NULL, &d), WEFT_EARG, "path");
    REFUSES(weft_read_text("x", NULL, NULL), WEFT_EARG, "out is NULL; expected a dataset");
}

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
                                   weft_load_weights(path, m, NULL, NULL) };
    MESSAGE_HAS("/proc/self/status: size 0, but it has content");
    for (int i = 0; i < COUNT(status); i++)
        cr_assert_eq(status[i], WEFT_EFORMAT, "reader %d", i);
    cr_assert_eq(weft_read_text("/sys/kernel/mm/transparent_hugepage/enabled", NULL, &d) == WEFT_OK, false);
    cr_assert(strstr(weft_file_message(), "/sys/kernel"));
    weft_close(w);
}

/* ---- HDF5 ---- */
FILE_TEST(data, hdf5_round_trip_keeps_all)
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
        DOES(weft_write_hdf5(&in, path, group));
        DOES(weft_read_hdf5(path, group, &out));
        cr_assert(out.n == in.n && out.columns == in.columns && out.offset[out.n] == total &&
                  !memcmp(out.len, len, (size_t)in.n * sizeof *len));
        cr_assert(!memcmp(k % 2 ? (void *)out.rows : (void *)out.ints, k % 2 ? (void *)rows : (void *)tokens,
                          (size_t)total * (k % 2 ? 3 * sizeof *rows : sizeof *tokens)));
        weft_dataset_free(&out);
    }
}

/* A file as others write it: lengths [2], or [2, 1], and rows [rows, columns], or [rows]. */
static const char *foreign(hid_t lengths_type, const double *lengths, bool matrix, const char *name,
                           hid_t type, hsize_t rows, hsize_t columns)
{
    static const double zeros[64];
    const char *path = in_folder("foreign.h5");
    hid_t file = new_file(path);
    put_numbers(file, "lengths", lengths_type, 2, matrix, lengths);
    put_numbers(file, name, type, rows, columns, zeros);
    H5Fclose(file);
    return path;
}

FILE_TEST(data, hdf5_of_other_programs_is_read)
{
    static const double two[] = { 3, 1 }, negative[] = { 5, -1 }, huge[] = { (double)(1LL << 33), 1 };
    const hid_t i64 = H5T_STD_I64LE, f32 = H5T_IEEE_F32LE;
    const struct {
        const char *says;
        hid_t lengths_type;
        const double *lengths;
        bool matrix;
        const char *name;
        hid_t type;
        hsize_t rows, columns;
    } bad[] = {
        { "5 rows; expected 4, the sum of the lengths", i64, two, false, "rows", f32, 5, 5 },
        { "sequence 1 has length -1", i64, negative, false, "rows", f32, 4, 5 },
        { "sequence 0 has length 8589934592", i64, huge, false, "rows", f32, 4, 5 },
        { "\"lengths\" is float32 [2]; expected integers [n]", f32, two, false, "rows", f32, 4, 5 },
        { "\"lengths\" is int64 [2, 1]; expected integers [n]", i64, two, true, "rows", f32, 4, 5 },
        { "expected numbers [N, columns]", i64, two, false, "rows", f32, 4, 0 },
        { "expected integers [N]", i64, two, false, "tokens", f32, 4, 0 },
        { "neither \"rows\" nor \"tokens\"", i64, two, false, "others", f32, 4, 0 },
    };
    weft_dataset d;
    for (int i = 0; i < COUNT(bad); i++) {
        const char *path = foreign(bad[i].lengths_type, bad[i].lengths, bad[i].matrix, bad[i].name,
                                   bad[i].type, bad[i].rows, bad[i].columns);
        REFUSES(weft_read_hdf5(path, NULL, &d), WEFT_EFORMAT, bad[i].says);
        MESSAGE_HAS("foreign.h5");
        is_empty(&d);
    }
    REFUSES(weft_read_hdf5(foreign(i64, two, false, "rows", f32, 4, 5), "elsewhere", &d), WEFT_EFORMAT,
            "elsewhere/lengths");
    REFUSES(weft_read_hdf5(put_text("no.h5", "not HDF5 at all"), NULL, &d), WEFT_EFORMAT, "not an HDF5 file");
    REFUSES(weft_read_hdf5(in_folder("nowhere.h5"), NULL, &d), WEFT_ENOENT, "nowhere.h5");
    REFUSES(weft_read_hdf5("x", NULL, NULL), WEFT_EARG, "out is NULL; expected a dataset");
}

/* A text of empty lines has no token, a table may have no row. */
FILE_TEST(data, hdf5_keeps_empty_sequences)
{
    weft_dataset in, out;
    const char *path = in_folder("d.h5");
    for (int table = 0; table < 2; table++) {
        if (table)
            DOES(weft_read_csv(put_text("head.csv", "id,a,b\n"), "id", ab, 2, NULL, &in));
        else
            DOES(weft_read_text(put_text("lines.txt", "\n\n"), NULL, &in));
        DOES(weft_write_hdf5(&in, path, NULL));
        DOES(weft_read_hdf5(path, NULL, &out));
        cr_assert(out.n == (table ? 0 : 2) && out.columns == (table ? 2 : 0) && !out.offset[out.n]);
        cr_assert(table ? out.rows != NULL : out.ints != NULL);
        weft_dataset_free(&in), weft_dataset_free(&out);
    }
}

Test(data, hdf5_write_errors_are_reported)
{
    int32_t len[] = { 1, -1 }, tokens[] = { 1 };
    weft_dataset d = { .n = 2, .len = len, .ints = tokens };
    const char *says = "a dataset with lengths from 0 on";
    REFUSES(weft_write_hdf5(&d, "x.h5", NULL), WEFT_EARG, says);
    d.n = 1;
    REFUSES(weft_write_hdf5(&d, "/nowhere/x.h5", NULL), WEFT_EIO, "/nowhere/x.h5");
    REFUSES(weft_write_hdf5(&d, NULL, NULL), WEFT_EARG, says);
    REFUSES(weft_write_hdf5(NULL, "x", NULL), WEFT_EARG, says);
    d.ints = NULL;
    REFUSES(weft_write_hdf5(&d, "x", NULL), WEFT_EARG, says);
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

FILE_TEST(journal, lines_are_json)
{
    static const double values[] = { 0, 1, -1.5, 0.1, 1e300, 5e-324, 1.0 / 3, 123456789012345678.0 };
    const char *path = in_folder("log.jsonl");
    weft_journal *j;
    DOES(weft_journal_open(path, false, &j));
    weft_journal_line_end(j);                    /* nothing in it: no line */
    for (int i = 0; i < COUNT(values); i++)
        weft_journal_number(j, (char[]){ (char)('a' + i), 0 }, values[i]);
    weft_journal_number(j, "nan", NAN);
    weft_journal_number(j, "inf", -INFINITY);
    weft_journal_number(j, NULL, 1);
    cr_assert(strstr(weft_file_message(), "log.jsonl: name is NULL"));
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
}

FILE_TEST(journal, appends_after_a_cut_line)
{
    const char *path = put_text("log.jsonl", "{\"a\": 1}\n{\"b\": ");
    for (int i = 0; i < 2; i++) {
        weft_journal *j;
        DOES(weft_journal_open(path, true, &j));
        weft_journal_number(j, "c", i);
        weft_journal_line_end(j);
        weft_journal_close(j);
    }
    content b = read_bytes(path);
    cr_assert_str_eq((char *)b.at, "{\"a\": 1}\n{\"b\": \n{\"c\": 0}\n{\"c\": 1}\n");
}

Test(journal, open_errors_are_reported)
{
    weft_journal *j = (weft_journal *)folder;
    cr_assert(weft_journal_open("/nowhere/log", false, &j) == WEFT_EIO && !j);
    MESSAGE_HAS("/nowhere/log");
    j = (weft_journal *)folder;
    cr_assert(weft_journal_open(NULL, false, &j) == WEFT_EARG && !j);
    MESSAGE_HAS("weft_journal_open: path is NULL");
    cr_assert_eq(weft_journal_open("x", false, NULL), WEFT_EARG);
}
