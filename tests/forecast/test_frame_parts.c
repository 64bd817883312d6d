/* test_frame_parts.c - tests that frames written as CSV are read back bit for bit, and that the parts of a
 * frame split by series, rows or time make the whole. */
#include <unistd.h>
#include "tests/core/comma.h"
#include "series_data.h"

static void same_number(double a, double b)
{
    cr_assert(isnan(a) ? isnan(b) && signbit(a) == signbit(b) : !memcmp(&a, &b, sizeof a), "%.17g is %.17g",
              a, b);
}

/* Compares rows of f from `from` with those of g from `at`, in every column. */
static void same_rows(const weft_frame *f, int64_t from, const weft_frame *g, int64_t at, int64_t rows)
{
    cr_assert_eq(f->columns, g->columns);
    for (int64_t c = 0; c < f->columns; c++) {
        cr_assert_str_eq(f->name[c], g->name[c]);
        for (int64_t r = 0; r < rows; r++)
            same_number(f->column[c][from + r], g->column[c][at + r]);
    }
}

static int64_t rows_of(const weft_frame *f, int64_t s) { return f->start[s + 1] - f->start[s]; }

static void same_series(const weft_frame *f, int64_t s, const weft_frame *g, int64_t t)
{
    cr_assert_str_eq(f->id[s], g->id[t]);
    cr_assert_eq(rows_of(f, s), rows_of(g, t));
    same_rows(f, f->start[s], g, g->start[t], rows_of(f, s));
}

static void same_frame(const weft_frame *f, const weft_frame *g)
{
    cr_assert(f->n == g->n && f->rows == g->rows);
    for (int64_t s = 0; s < f->n; s++)
        same_series(f, s, g, s);
}

/* ---- CSV ---- */
/* Any double: its bits drawn, or one of those that are hard. */
static double any_double(void)
{
    static const double hard[] = { 0,      -0.0,   0.1,
                                   1e300,  -1e-308, 5e-324,
                                   NAN,    INFINITY, -INFINITY,
                                   1.0 / 3, 123456789012345678., 0x1.fffffffffffffp1023 };
    uint64_t bits = dice(UINT64_MAX);
    double d;
    memcpy(&d, &bits, sizeof d);
    return dice(3) ? d : hard[dice(COUNT(hard))];
}

static weft_frame any_frame(int64_t n, const char *const *ids, const char *const *names, int64_t most)
{
    weft_frame f = { 0 };
    for (int64_t s = 0; s < n; s++) {
        static double values[8][64];
        const double *columns[8];
        int64_t rows = 1 + (int64_t)dice((uint64_t)most);
        for (int c = 0; names[c]; c++) {
            columns[c] = values[c];
            for (int64_t r = 0; r < rows; r++)
                values[c][r] = any_double();
        }
        DOES(weft_frame_add(&f, ids[s], names, columns, rows));
    }
    return f;
}

static const char *const odd_ids[] = { "a",         "",     "one, two", "\"",       "say \"x\"",
                                       "line\nend", "cr\r", " ",        "\xC3\xA9", "7" };
static const char *const odd_names[] = { "x", "a,b", "quote\"d", "new\nline", " y ", NULL };

static void there_and_back(const weft_frame *f)
{
    const char *path = in_folder("f.csv");
    scoped_frame back = { 0 };
    DOES(weft_frame_write_csv(f, path));
    DOES(weft_frame_read_csv(&back, path, "id", (const char *const *)f->name, NULL));
    same_frame(f, &back);
}

Test(frame_csv, round_trip_keeps_every_bit, .fini = end_folder)
{
    for (int k = 0; k < rounds(60, 1000); k++) {
        scoped_frame f = any_frame(1 + (int64_t)dice(COUNT(odd_ids)), odd_ids, odd_names, 40);
        there_and_back(&f);
        comma_begin();
        there_and_back(&f);
        comma_end();
    }
}

Test(frame_csv, has_the_expected_bytes, .fini = end_folder)
{
    const char *path = in_folder("f.csv");
    scoped_frame f = { 0 };
    const double x[] = { 1, -2.5, 0.1 }, y[] = { NAN, 1e300, -INFINITY };
    DOES(weft_frame_add(&f, "s, t", WEFT_NAMES("x", "y\""), (const double *const[]){ x, y }, 2));
    DOES(weft_frame_add(&f, NULL, WEFT_NAMES("x", "y\""), (const double *const[]){ x + 2, y + 2 }, 1));
    DOES(weft_frame_write_csv(&f, path));
    char text[200] = "";
    FILE *in = fopen(path, "rb");
    cr_assert(in && fread(text, 1, sizeof text - 1, in) && !fclose(in));
    cr_assert_str_eq(text, "id,x,\"y\"\"\"\n\"s, t\",1,nan\n\"s, t\",-2.5,1e+300\n1,0.1,-inf\n");
}

Test(frame_csv, empty_frame_is_a_header, .fini = end_folder)
{
    scoped_frame f = any_frame(1, odd_ids, odd_names, 3), none, all;
    DOES(weft_frame_split(&f, &(weft_frame_split_opts){ .series = 1 }, &all, &none));
    there_and_back(&none);
    cr_assert(none.n == 0 && none.columns == f.columns);
}

Test(frame_csv, invalid_frames_are_refused, .fini = end_folder)
{
    const char *path = in_folder("f.csv");
    const double x[] = { 1 };
    const double *const columns[] = { x };
    weft_frame f = { 0 };
    REFUSES(weft_frame_write_csv(NULL, path), WEFT_EARG, "the frame is NULL");
    REFUSES(weft_frame_write_csv(&f, path), WEFT_EARG, "no column");
    DOES(weft_frame_add(&f, "a", WEFT_NAMES("x"), columns, 1));
    REFUSES(weft_frame_write_csv(&f, NULL), WEFT_EARG, "path is NULL");
    REFUSES(weft_frame_write_csv(&f, "/no/such/folder/f.csv"), WEFT_EIO, "/no/such");
    DOES(weft_frame_add(&f, "b", WEFT_NAMES("x"), columns, 0));
    REFUSES(weft_frame_write_csv(&f, path), WEFT_EARG, "series 1, \"b\", has no row");
    weft_frame_free(&f);
    for (int i = 0; i < 3; i++)
        DOES(weft_frame_add(&f, (const char *[]){ "a", "b", "a" }[i], WEFT_NAMES("x"), columns, 1));
    REFUSES(weft_frame_write_csv(&f, path), WEFT_EARG, "two series have the id \"a\"");
    weft_frame_free(&f);
    DOES(weft_frame_add(&f, "a", WEFT_NAMES("id"), columns, 1));
    REFUSES(weft_frame_write_csv(&f, path), WEFT_EARG, "column \"id\"");
    weft_frame_free(&f);
    cr_assert(access(path, F_OK), "a refused frame left a file");
}

/* ---- parts ---- */
static void is_free(weft_frame *first, weft_frame *rest)
{
    cr_assert(!first->n && !first->columns && !first->column && !rest->n && !rest->columns && !rest->column);
}

static weft_frame random_frame(int most)
{
    int64_t rows[9];
    int n = 1 + (int)dice(8);
    for (int i = 0; i < n; i++)
        rows[i] = (int64_t)dice((uint64_t)most);
    return series_random(n, rows);
}

CPU_TEST(frame_split, parts_by_series_make_the_whole)
{
    for (int k = 0; k < rounds(60, 1000); k++) {
        scoped_frame f = random_frame(20), first, rest;
        int32_t order[9];
        int64_t count = 1 + (int64_t)dice((uint64_t)f.n);
        weft_stream_permutation(weft_stream_of(w, "split"), f.n, order);
        bool stand = dice(2);
        weft_frame_split_opts o = { .series = count, .order = stand ? NULL : order };
        DOES(weft_frame_split(&f, &o, &first, &rest));
        cr_assert(first.n == count && rest.n == f.n - count && first.rows + rest.rows == f.rows);
        for (int64_t i = 0; i < f.n; i++)
            same_series(&f, stand ? i : order[i], i < count ? &first : &rest, i < count ? i : i - count);
    }
}

/* Both parts have each series, and its rows end to end. */
static void are_the_whole(const weft_frame *f, const weft_frame *first, const weft_frame *rest)
{
    cr_assert(first->n == f->n && rest->n == f->n && first->rows + rest->rows == f->rows);
    for (int64_t s = 0; s < f->n; s++) {
        int64_t head = rows_of(first, s);
        cr_assert(!strcmp(f->id[s], first->id[s]) && !strcmp(f->id[s], rest->id[s]));
        cr_assert_eq(head + rows_of(rest, s), rows_of(f, s));
        same_rows(f, f->start[s], first, first->start[s], head);
        same_rows(f, f->start[s] + head, rest, rest->start[s], rows_of(rest, s));
    }
}

Test(frame_split, parts_by_fraction_make_the_whole)
{
    static const double fractions[] = { 0, 1, 0.5, 0.8, 1.0 / 3 };
    for (int k = 0; k < rounds(60, 1000); k++) {
        scoped_frame f = random_frame(20), first, rest;
        double fraction = fractions[dice(COUNT(fractions))];
        weft_frame_split_opts o = { .fraction = fraction == 0 ? WEFT_ZERO : fraction };
        DOES(weft_frame_split(&f, &o, &first, &rest));
        are_the_whole(&f, &first, &rest);
        for (int64_t s = 0; s < f.n; s++)
            cr_assert_eq(rows_of(&first, s), (int64_t)floor(fraction * (double)rows_of(&f, s) + 0.5));
    }
}

Test(frame_split, parts_by_time_make_the_whole)
{
    for (int k = 0; k < rounds(60, 1000); k++) {
        scoped_frame f = random_frame(30), first, rest;
        const double *t = weft_frame_column(&f, "t");
        /* at a row's own time, that row is of the rest */
        double limit = f.rows && dice(2) ? t[dice((uint64_t)f.rows)] :
                                           (double[]){ -INFINITY, INFINITY, 110.5 }[dice(3)];
        DOES(weft_frame_split(&f, &(weft_frame_split_opts){ .time = "t", .limit = limit }, &first, &rest));
        are_the_whole(&f, &first, &rest);
        for (int64_t r = 0; r < first.rows; r++)
            cr_assert(weft_frame_column(&first, "t")[r] < limit);
        for (int64_t r = 0; r < rest.rows; r++)
            cr_assert(weft_frame_column(&rest, "t")[r] >= limit);
    }
}

Test(frame_split, empty_frame_has_empty_parts)
{
    weft_frame f = { 0 }, first = { .n = 77 }, rest = { .columns = 77 };
    DOES(weft_frame_split(&f, &(weft_frame_split_opts){ .fraction = .5 }, &first, &rest));
    is_free(&first, &rest);
}

static void not_split(const weft_frame *f, weft_frame_split_opts o, const char *text)
{
    weft_frame a = { .n = 77 }, b = { .columns = 77 };
    REFUSES(weft_frame_split(f, &o, &a, &b), WEFT_EARG, text);
    cr_assert(strstr(weft_file_message(), "weft_frame_split: "));
    is_free(&a, &b);
}

Test(frame_split, invalid_arguments_are_refused)
{
    const int64_t rows[] = { 3, 4 };
    weft_frame f = series_random(2, rows), a, b, none = { 0 };
    weft_frame_split_opts one = { .series = 1 };
    not_split(NULL, one, "the frame is NULL");
    REFUSES(weft_frame_split(&f, &one, &a, &a), WEFT_EARG, "parts: expected two other frames");
    REFUSES(weft_frame_split(&f, &one, &f, &a), WEFT_EARG, "parts: expected two other frames");
    a = b = (weft_frame){ .n = 77 };
    REFUSES(weft_frame_split(&f, &one, NULL, &a), WEFT_EARG, "parts: expected two other frames");
    REFUSES(weft_frame_split(&f, &one, &b, NULL), WEFT_EARG, "parts: expected two other frames");
    is_free(&a, &b);
    a.n = 77;
    REFUSES(weft_frame_split(&f, &one, &a, &f), WEFT_EARG, "parts: expected two other frames");
    is_free(&a, &b);
    cr_assert(f.n == 2);
    REFUSES(weft_frame_split(&f, NULL, &a, &b), WEFT_EARG, "fraction 0, time NULL; expected exactly one");
    is_free(&a, &b);
    not_split(&f, (weft_frame_split_opts){ .series = 3 }, "3 of 2 series; expected 1 .. 2");
    not_split(&f, (weft_frame_split_opts){ .series = -1 }, "-1 of 2 series");
    not_split(&none, one, "1 of 0 series");
    not_split(&f, (weft_frame_split_opts){ .series = 1, .order = (int32_t[]){ 0, 0 } }, "order[1] is 0");
    not_split(&f, (weft_frame_split_opts){ .series = 1, .order = (int32_t[]){ 2, 0 } }, "order[0] is 2");
    not_split(&f, (weft_frame_split_opts){ .fraction = 1.5 }, "fraction 1.5");
    not_split(&f, (weft_frame_split_opts){ .fraction = -.5 }, "fraction -0.5");
    not_split(&f, (weft_frame_split_opts){ .fraction = -(double)NAN }, "fraction -nan");
    not_split(&f, (weft_frame_split_opts){ .time = "q" }, "no column \"q\"");
    not_split(&f, (weft_frame_split_opts){ .time = "t", .limit = NAN }, "limit nan");
    double *t = weft_frame_column(&f, "t");
    t[4] = 1700000000.25;
    t[5] = 1700000000.125;
    not_split(&f, (weft_frame_split_opts){ .time = "t" },
              "series \"1\", row 2: the time is 1700000000.125; expected a time after 1700000000.25");
    /* exactly one criterion is required */
    const int32_t order[] = { 1, 0 };
    const char *exactly = "expected exactly one of series, fraction and time";
    not_split(&f, (weft_frame_split_opts){ 0 }, exactly);
    not_split(&f, (weft_frame_split_opts){ .order = order }, exactly);
    not_split(&f, (weft_frame_split_opts){ .limit = 5 }, exactly);
    not_split(&f, (weft_frame_split_opts){ .series = 1, .fraction = .5 }, "series 1, fraction 0.5, time NU");
    not_split(&f, (weft_frame_split_opts){ .series = 1, .time = "t" }, "time \"t\"; expected exactly one");
    not_split(&f, (weft_frame_split_opts){ .fraction = WEFT_ZERO, .time = "t" }, exactly);
    not_split(&f, (weft_frame_split_opts){ .series = 1, .fraction = .5, .time = "t" }, exactly);
    not_split(&f, (weft_frame_split_opts){ .fraction = .5, .order = order }, "order without series");
    not_split(&f, (weft_frame_split_opts){ .time = "t", .order = order }, "order without series");
    not_split(&f, (weft_frame_split_opts){ .fraction = .5, .limit = 2 }, "limit without time");
    not_split(&f, (weft_frame_split_opts){ .series = 1, .limit = 2 }, "limit without time");
    weft_frame_free(&f);
}
