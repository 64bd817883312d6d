/* test_csv.c - tests CSV as datasets and as frames, which share one reader: quotes, gaps, ids in any order,
 * other delimiters and locales. Every error names its line. */
#include "tests/core/comma.h"
#include "sets.h"

#define A_FRAME(f, path, opts) weft_frame_read_csv(f, path, "id", ab, opts)
#define A_SET(path, opts, d)   weft_read_csv(path, "id", ab, 2, opts, d)

/* Both readers give the rows a, b of n sequences of these lengths. */
static void csv_is(const char *path, const weft_csv_opts *opts, int n, const int32_t *len, const double *rows)
{
    weft_dataset d;
    weft_frame f = { 0 };
    int64_t row = 0;
    DOES(A_SET(path, opts, &d));
    DOES(A_FRAME(&f, path, opts));
    cr_assert(d.n == n && f.n == n && d.columns == 2 && !d.ints && d.offset[n] == f.rows);
    for (int s = 0; s < n; s++) {
        cr_assert(d.len[s] == len[s] && d.offset[s] == row && f.start[s] == row, "sequence %d", s);
        for (int32_t i = 0; i < len[s]; i++, row++)
            for (int c = 0; c < 2; c++) {
                double want = rows[2 * row + c], is = f.column[c][row];
                cr_assert(isnan(want) ? isnan(is) && isnan(d.rows[2 * row + c]) :
                                        is == want && d.rows[2 * row + c] == (weft_real)want,
                          "row %lld, column %d", (long long)row, c);
            }
    }
    weft_dataset_free(&d);
    weft_frame_free(&f);
}

FILE_TEST(csv, dialects_are_read)
{
    static const struct {
        const char *text;
        weft_csv_opts opts;
        int n;
        int32_t len[4];
        double rows[16];
    } all[] = {
        { "\xEF\xBB\xBFid,\"b\",note,a\r\nx,1,\"one, \"\"two\"\"\nthree\",2\r\nx,-.5e1,,4\n\n\"x "
          "y\",\" 6\",,\"0x10 \"\nx,7,,8",
          { 0 },
          2,
          { 3, 1 },
          { 2, 1, 4, -5, 8, 7, 16, 6 } },
        { "id,a,b\n1,nan,1\n1,-2,2\n2,NaN,3\n2,inf,-inf\n",
          { 0 },
          2,
          { 2, 2 },
          { NAN, 1, -2, 2, NAN, 3, INFINITY, -INFINITY } },
        { "id;a;b\n\"x;y\";1;2\n\"x;y\";3;4\n", { .delimiter = ';' }, 1, { 2 }, { 1, 2, 3, 4 } },
        { "a\tb\tid\n1\t\t\"\"\n\t4\t\n", { '\t', true }, 1, { 2 }, { 1, NAN, NAN, 4 } },
        { "id,a,b\n", { 0 }, 0, { 0 }, { 0 } },
        /* rows of one id need not be adjacent, as for pandas' groupby */
        { "id,a,b\nx,1,2\ny,3,4\nx,5,6\nz,7,8\ny,9,10\ny,11,12\n\"\",13,14\nx,15,16\n",
          { 0 },
          4,
          { 3, 3, 1, 1 },
          { 1, 2, 5, 6, 15, 16, 3, 4, 9, 10, 11, 12, 7, 8, 13, 14 } },
    };
    for (int locale = 0; locale < 2; locale++) {
        for (int i = 0; i < COUNT(all); i++)
            csv_is(put_text("a.csv", all[i].text), &all[i].opts, all[i].n, all[i].len, all[i].rows);
        locale ? comma_end() : comma_begin();
    }
}

FILE_TEST(csv, million_numbers_are_read)
{
    enum { ROWS = 100000 };
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    weft_dataset d;
    fputs("id,a,b\n", f);
    for (int i = 0; i < ROWS; i++)
        fprintf(f, "%d,%d,%d.5\n", i / 7, i, -i);
    fclose(f);
    DOES(A_SET(put_bytes("l.csv", text, size), NULL, &d));
    cr_assert(d.n == ROWS / 7 + 1 && d.len[0] == 7 && d.offset[d.n] == ROWS &&
              d.rows[2 * (ROWS - 1)] == ROWS - 1 && d.rows[2 * 3 + 1] == (weft_real)-3.5);
    weft_dataset_free(&d);
    free(text);
}

/* ---- refused files ---- */
static void refused(const char *path, const weft_csv_opts *opts, weft_status kind, const char *says)
{
    weft_dataset d;
    weft_frame f = { 0 };
    REFUSES(A_SET(path, opts, &d), kind, says);
    cr_assert(!d.n && !d.len && !d.offset && !d.rows);
    REFUSES(A_FRAME(&f, path, opts), kind, says);
    cr_assert(!f.n && !f.columns);
}

FILE_TEST(csv, errors_name_the_line)
{
    static const weft_csv_opts gaps = { .empty_is_nan = true };
    static const struct { const char *text, *says; const weft_csv_opts *opts;
    } bad[] = {
        { "", "bad.csv:1: the file is empty", NULL },
        { "\n\n", ": the file is empty", NULL },
        { "id,a\n1,2\n", "bad.csv:1: no column is named \"b\"; expected one of \"id\", \"a\"", NULL },
        { "id,alpha,\"be\nta\"\n",
          "bad.csv:1: no column is named \"a\"; expected one of \"id\", \"alpha\"", NULL },
        { "id;a;b\n1;2;3\n",
          "no column is named \"id\"; expected another .delimiter, or the only column \"id;a;b\"", NULL },
        { "id,a,b,a\n", "two columns are named \"a\"", NULL },
        { "id,a,b\n1,2\n", ":2: 2 fields; expected 3, as in the header", NULL },
        { "id,a,b\n1,2,3\n\n1,2,3,4\n", ":4: 4 fields", NULL },
        { "id,a,b\n1,2,3\n1,,3\n", ":3: column \"a\": \"\"; expected a number", NULL },
        { "id,a,b\nx, ,2\n", ":2: column \"a\": \" \"; expected a number", &gaps },
        { "id,a,b\n1,2,3x\n", ":2: column \"b\": \"3x\"; expected a number", NULL },
        { "id,a,b\n1,2, \n", ":2: column \"b\": \" \"; expected a number", NULL },
        { "id,a,b\n1,2,1e999\n", ":2: column \"b\": \"1e999\" is too large", NULL },
        { "id,a,b\n\"x\ny\",2,?\n", ":2: column \"b\"", NULL },
        { "id,a,b\n\"x\ny\",2,3\n1,?,2\n", ":4: column \"a\"", NULL },
        { "id,a,b\n1,\"2,3\n", ":2: a quote is never closed", NULL },
        { "id,a,b\n1,\"2\"2,3\n", ":2: text after a closing quote", NULL },
        { "id,a,b\rx,1,2\rx,3,4\r",
          "bad.csv:1: lines end with \\r; expected \\n; convert them with tr", NULL },
    };
    for (int i = 0; i < COUNT(bad); i++)
        refused(put_text("bad.csv", bad[i].text), bad[i].opts, WEFT_EFORMAT, bad[i].says);
    static const char zero[] = "id,a,b\nx\0y,1,2\nx\0z,3,4\n", utf16[] = "i\0d\0,\0a\0,\0b\0\n\0";
    refused(put_bytes("z.csv", zero, sizeof zero - 1), NULL, WEFT_EFORMAT, "z.csv:2: a zero byte");
    refused(put_bytes("u.csv", utf16, sizeof utf16 - 1), NULL, WEFT_EFORMAT, "u.csv:1: a zero byte");
    refused(in_folder("no.csv"), NULL, WEFT_ENOENT, "no.csv");
    char wide[20000];
    size_t at = 0;
    for (int i = 0; i < 1000; i++)
        at += (size_t)snprintf(wide + at, sizeof wide - at, "%scolumn%d", i ? "," : "", i);
    refused(put_text("c.csv", wide), NULL, WEFT_EFORMAT, "expected one of \"column0\", \"column1\",");
    cr_assert(strlen(weft_file_message()) < 1000 && strstr(weft_file_message(), ", .."));
}

Test(csv, invalid_arguments_are_refused)
{
    weft_dataset d;
    static const char *const hole[] = { "a", NULL };
    const char *says = "expected a name for the id, at least one column and a dataset";
    REFUSES(weft_read_csv("x", NULL, ab, 2, NULL, &d), WEFT_EARG, says);
    REFUSES(weft_read_csv("x", "id", NULL, 2, NULL, &d), WEFT_EARG, says);
    REFUSES(weft_read_csv("x", "id", hole, 2, NULL, &d), WEFT_EARG, says);
    REFUSES(weft_read_csv("x", "id", ab, 0, NULL, &d), WEFT_EARG, says);
    REFUSES(weft_read_csv("x", "id", ab, 2, NULL, NULL), WEFT_EARG, says);
    for (const char *c = "\"\n\r5e.+-"; *c; c++)
        refused("x", &(weft_csv_opts){ .delimiter = *c }, WEFT_EARG, "_csv: the delimiter is byte");
}

/* Nanoseconds since 1970 are 256 apart as doubles. Those in between are refused and not rounded, also in a
 * frame's column with fractions. */
FILE_TEST(csv, integers_beyond_a_double_are_refused)
{
    static const char *const bad[] = { "1764249600000000100",   "-9007199254740993",    "+9007199254740993",
                                       "00009007199254740993 ", "18446744073709551615",
                                       "100000000000000000000000000000000001" };
    static const char *const good[] = { "1764249600000000000",  "-9007199254740992",  "9007199254740994",
                                        "18446744073709551616", "9007199254740993.0", "9007199254740993e0",
                                        "1e300" };
    weft_frame f = { 0 };
    char text[200];
    for (int i = 0; i < COUNT(bad); i++) {
        snprintf(text, sizeof text, "id,a,b\nx,1,.5\nx,1,%s\n", bad[i]);
        refused(put_text("big.csv", text), NULL, WEFT_EFORMAT, "column \"b\": a double does not hold the ");
    }
    for (int i = 0; i < COUNT(good); i++) {
        snprintf(text, sizeof text, "id,a,b\nx,1,%s\n", good[i]);
        DOES(A_FRAME(&f, put_text("big.csv", text), NULL));
        cr_assert_eq(f.column[1][0], strtod(good[i], NULL));
        weft_frame_free(&f);
    }
}

