/* test_frame_integers.c - tests columns of integers that are too large for a double, such as times in
 * nanoseconds. They stay exact in both file formats, over several files, in parts of a frame and in
 * features. */
#include <inttypes.h>
#include "series_data.h"

#define NS INT64_C(1764249600000000000)

static weft_frame times(int64_t first, int64_t step, int n)
{
    char text[2000];
    int at = snprintf(text, sizeof text, "t,y\n");
    weft_frame f = { 0 };
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%" PRId64 ",%d\n", first + i * step, i * i);
    DOES(weft_frame_read_csv(&f, put_text("ns.csv", text), NULL, WEFT_NAMES("t", "y"), NULL));
    return f;
}

/* Column "t", its origin added, is first, first + step, .. */
static void are(const weft_frame *f, int64_t from, int64_t rows, int64_t first, int64_t step)
{
    cr_assert_str_eq(f->name[0], "t");
    for (int64_t i = 0; i < rows; i++)
        cr_assert_eq(f->origin[0] + (int64_t)f->column[0][from + i], first + i * step);
}

Test(frame_integers, are_exact_in_both_formats, .fini = end_folder)
{
    scoped_frame f = times(NS + 1, 100, 20), g = { 0 }, h = { 0 };
    cr_assert(f.origin[0] == NS + 1 && f.origin[1] == 0 && f.column[0][19] == 1900);
    are(&f, 0, 20, NS + 1, 100);
    DOES(weft_frame_write_csv(&f, in_folder("g.csv")));
    DOES(weft_frame_read_csv(&g, in_folder("g.csv"), "id", WEFT_NAMES("t", "y"), NULL));
    are(&g, 0, 20, NS + 1, 100);
    DOES(weft_frame_write_hdf5(&g, in_folder("h.h5"), "a"));
    DOES(weft_frame_read_hdf5(&h, in_folder("h.h5"), "a", WEFT_NAMES("t", "y")));
    are(&h, 0, 20, NS + 1, 100);
    cr_assert(h.rows == 20 && h.origin[1] == 0 && h.column[1][19] == 361);
}

/* The origin comes late: rows before it were doubles, and are less it now. */
Test(frame_integers, use_an_origin_when_doubles_are_too_coarse, .fini = end_folder)
{
    for (int negative = 0; negative < 2; negative++) {
        int64_t first = negative ? -NS : NS;
        scoped_frame f = times(first, 128, 8), g = { 0 };
        cr_assert_eq(f.origin[0], first + 128);
        are(&f, 0, 8, first, 128);
        DOES(weft_frame_write_hdf5(&f, in_folder("h.h5"), NULL));
        DOES(weft_frame_read_hdf5(&g, in_folder("h.h5"), NULL, WEFT_NAMES("t")));
        cr_assert_eq(g.origin[0], first + 128);
        are(&g, 0, 8, first, 128);
    }
    scoped_frame f = times(NS, 256, 8); /* doubles represent them all */
    cr_assert(f.origin[0] == 0 && f.column[0][1] == 1764249600000000256.);
}

Test(frame_integers, share_an_origin_over_several_files, .fini = end_folder)
{
    static const int64_t step[][2] = { { 256, 100 }, { 100, 256 }, { 100, 300 } };
    for (int i = 0; i < COUNT(step); i++) {
        scoped_frame f = times(NS, step[i][0], 5);
        char text[200];
        snprintf(text, sizeof text, "y,t\n1,%" PRId64 "\n2,%" PRId64 "\n", NS + 5000, NS + 5000 + step[i][1]);
        DOES(weft_frame_read_csv(&f, put_text("b.csv", text), NULL, WEFT_NAMES("y", "t"), NULL));
        are(&f, 0, 5, NS, step[i][0]);
        are(&f, 5, 2, NS + 5000, step[i][1]);
        cr_assert(f.n == 2 && f.column[1][6] == 2);
    }
}

Test(frame_integers, are_refused_when_too_far_apart, .fini = end_folder)
{
    scoped_frame f = times(NS, 100, 5);
    const double small[] = { 3 }, half[] = { 1764249600000000256.5 - 1764249600000000256. + 2.5 };
    const char *const names[] = { "t", "y", NULL }, *far = "column \"t\" counts from 1764249600000000100";
    REFUSES(weft_frame_add(&f, NULL, names, (const double *const[]){ small, small }, 1), WEFT_EARG, far);
    REFUSES(weft_frame_add(&f, NULL, names, (const double *const[]){ half, small }, 1), WEFT_EARG, far);
    put_text("b.csv", "t,y\n3,1\n1764249600000000001,2\n");
    REFUSES(weft_frame_read_csv(&f, in_folder("b.csv"), NULL, names, NULL), WEFT_EFORMAT,
            "does not hold the number of row 0, 3, less");
    put_text("b.csv", "t,y\n1764249600000000001,1\n3,2\n");
    REFUSES(weft_frame_read_csv(&f, in_folder("b.csv"), NULL, names, NULL), WEFT_EFORMAT,
            "b.csv:3: column \"t\": a double does not hold 3 less the column's first");
    cr_assert(f.n == 1 && f.rows == 5 && f.origin[0] == NS + 100);
    are(&f, 0, 5, NS, 100);
    const double near[] = { 1764249600000000512. }; /* as a number of the file's, not less an origin */
    DOES(weft_frame_add(&f, NULL, names, (const double *const[]){ near, small }, 1));
    are(&f, 5, 1, NS + 512, 0);
}

Test(frame_integers, are_split_and_downsampled, .fini = end_folder)
{
    scoped_frame f = times(NS + 1, 100, 20), a, b;
    DOES(
        weft_frame_split(&f, &(weft_frame_split_opts){ .time = "t", .limit = 1764249600000000512. }, &a, &b));
    cr_assert(a.rows == 6 && b.rows == 14);
    are(&a, 0, 6, NS + 1, 100);
    are(&b, 0, 14, NS + 601, 100);
    DOES(weft_frame_downsample(&b, 3, WEFT_DOWN_MEAN));
    are(&b, 0, 4, NS + 701, 300);
    DOES(weft_frame_downsample(&b, 2, WEFT_DOWN_MEDIAN));
    are(&b, 0, 2, NS + 851, 600);
    DOES(weft_frame_downsample(&a, 4, WEFT_DOWN_MEAN));
    a.column[0][0] += .5;
    REFUSES(weft_frame_write_csv(&a, in_folder("a.csv")), WEFT_EARG,
            "weft_frame_write_csv: column \"t\", row 0 of all: 1764249600000000001 + 150.5; expected");
    REFUSES(weft_frame_write_hdf5(&a, in_folder("a.h5"), "x"), WEFT_EARG,
            "weft_frame_write_hdf5: column \"t\", row 0");
    a.column[0][0] = NAN;
    DOES(weft_frame_write_csv(&a, in_folder("a.csv")));
    REFUSES(weft_frame_write_hdf5(&a, in_folder("a.h5"), "x"), WEFT_EARG, "nan; expected an integer");
}

static const char *told(const weft_frame *f, const char *time, const char *const *known)
{
    static char text[500];
    weft *w = open_on(WEFT_CPU);
    weft_features *x = weft_features_new(
        w, "x",
        &(weft_features_opts){
            .context = 4, .horizon = 2, .time = time, .known = known, .target = WEFT_NAMES("y") });
    weft_features_fit(x, f);
    snprintf(text, sizeof text, "%s", weft_error_message(w));
    weft_close(w);
    return text;
}

Test(frame_integers, serve_as_time_of_features, .fini = end_folder)
{
    scoped_frame f = times(NS + 1, 100, 20);
    cr_assert_str_eq(told(&f, "t", NULL), "");
    cr_assert(strstr(told(&f, NULL, WEFT_NAMES("t")),
                     "\"t\": it has integers that a double does not hold; expected"));
    f.column[0][7] = f.column[0][6];
    cr_assert(strstr(told(&f, "t", NULL),
                     "the time is 1764249600000000601 after 1764249600000000601"));
    REFUSES(weft_frame_split(&f, &(weft_frame_split_opts){ .time = "t" }, &(weft_frame){ 0 },
                             &(weft_frame){ 0 }),
            WEFT_EARG, "row 7: the time is 1764249600000000601; expected a time after 1764249600000000601");
}
