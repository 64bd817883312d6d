/* test_series.c - tests frames of time series: from memory, CSV and HDF5, from one file or many, with fixed
 * columns and fewer rows, and every error. */
#include "series_data.h"
#include "tests/io/sets.h"

#define AB WEFT_NAMES("a", "b")
/* Adds columns of a table, whose text this is, to a frame. */
#define ADD_TABLE(f, text, ...) \
    weft_frame_add_static_csv(f, put_text("t.csv", text), "id", WEFT_NAMES(__VA_ARGS__), NULL)

/* Checks id and numbers of column a of series `s` of f; b is ten times a. */
static void series_is(const weft_frame *f, int64_t s, const char *id, int64_t rows, const double *a)
{
    cr_assert_str_eq(f->id[s], id);
    cr_assert_eq(f->start[s + 1] - f->start[s], rows, "series %lld has %lld rows", (long long)s,
                 (long long)(f->start[s + 1] - f->start[s]));
    for (int64_t r = 0; r < rows; r++)
        cr_assert(weft_frame_column(f, "a")[f->start[s] + r] == a[r] &&
                  weft_frame_column(f, "b")[f->start[s] + r] == 10 * a[r]);
}
#define SERIES(f, s, id, ...) \
    series_is(f, s, id, COUNT(((double[]){ __VA_ARGS__ })), (double[]){ __VA_ARGS__ })

/* The names of a frame form a list that a second file can be read with. */
static bool end_with_null(const weft_frame *f) { return !f->id[f->n] && !f->name[f->columns]; }

static bool same_frames(const weft_frame *f, const weft_frame *g)
{
    bool same = f->n == g->n && f->rows == g->rows && f->columns == g->columns && end_with_null(g);
    for (int64_t s = 0; same && s < f->n; s++)
        same = f->start[s + 1] == g->start[s + 1] && !strcmp(f->id[s], g->id[s]);
    for (int64_t c = 0; same && c < f->columns; c++)
        same = !strcmp(f->name[c], g->name[c]) &&
               !memcmp(f->column[c], g->column[c], (size_t)f->rows * sizeof **f->column);
    return same;
}

/* ---- memory ---- */
Test(series, frames_are_built_from_memory)
{
    weft_frame f = { 0 };
    const double a[] = { 1, 2, 3 }, b[] = { 10, 20, 30 };
    DOES(weft_frame_add(&f, "first", AB, (const double *const[]){ a, b }, 3));
    DOES(weft_frame_add(&f, NULL, WEFT_NAMES("b", "a"), (const double *const[]){ b, a }, 1));
    DOES(weft_frame_add(&f, "none", (const char *const *)f.name, NULL, 0));
    for (int i = 0; i < 100; i++) {
        DOES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a + i % 3, b + i % 3 }, 1));
        cr_assert(end_with_null(&f));
    }
    cr_assert(f.n == 103 && f.rows == 104 && f.columns == 2 && f.start[0] == 0);
    SERIES(&f, 0, "first", 1, 2, 3);
    SERIES(&f, 1, "1", 1);
    series_is(&f, 2, "none", 0, NULL);
    SERIES(&f, 102, "102", 1);
    SERIES(&f, 101, "101", 3);
    DOES(weft_frame_add_column(&f, "c", NULL, WEFT_PER_ROW));
    cr_assert(weft_frame_column(&f, "c")[103] == 0 && !weft_frame_column(&f, "d") &&
              !weft_frame_column(&f, NULL) && !weft_frame_column(NULL, "a"));
    weft_frame_free(&f);
    cr_assert(f.n == 0 && !f.start && !f.column && !weft_frame_column(&f, "a"));
    weft_frame_free(&f);
    weft_frame_free(NULL);
}

Test(series, invalid_series_are_refused)
{
    scoped_frame f = { 0 };
    const double a[] = { 1, 2, 3 };
    const double *const both[] = { a, a };
    REFUSES(weft_frame_add(NULL, NULL, AB, both, 3), WEFT_EARG, "weft_frame_add: the frame is NULL");
    REFUSES(weft_frame_add(&f, NULL, NULL, both, 3), WEFT_EARG, "names: expected one column");
    REFUSES(weft_frame_add(&f, NULL, (const char *const[]){ NULL }, both, 3), WEFT_EARG, "names: expect");
    REFUSES(weft_frame_add(&f, NULL, WEFT_NAMES("a", "a"), both, 3), WEFT_EARG,
            "column 1, \"a\"; expected a unique name");
    REFUSES(weft_frame_add(&f, NULL, WEFT_NAMES(""), both, 3), WEFT_EARG, "expected a unique name");
    REFUSES(weft_frame_add(&f, NULL, AB, NULL, 3), WEFT_EARG, "3 rows, columns is NULL");
    REFUSES(weft_frame_add(&f, NULL, AB, both, -1), WEFT_EARG, "-1 rows");
    REFUSES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a, NULL }, 3), WEFT_EARG,
            "column \"b\" is NULL");
    cr_assert(f.n == 0 && f.columns == 0);
    DOES(weft_frame_add(&f, NULL, AB, both, 3));
    REFUSES(weft_frame_add(&f, NULL, WEFT_NAMES("a"), both, 3), WEFT_EARG, "no column \"b\"");
    REFUSES(weft_frame_add(&f, NULL, WEFT_NAMES("a", "b", "c"), (const double *const[]){ a, a, a }, 3),
            WEFT_EARG, "column \"c\" is new");
    REFUSES(weft_frame_add_column(&f, "a", a, WEFT_PER_ROW), WEFT_EARG, "expected a new name");
    REFUSES(weft_frame_add_column(&f, NULL, a, WEFT_PER_ROW), WEFT_EARG, "a new name");
    REFUSES(weft_frame_add_column(&f, "c", NULL, WEFT_PER_SERIES), WEFT_EARG, "\"c\": values is NULL");
    cr_assert(f.n == 1 && f.columns == 2 && f.rows == 3);
    f.start[1] = 2;                              /* the library does not create such a frame */
    REFUSES(weft_frame_add(&f, NULL, AB, both, 3), WEFT_EARG, "invalid frame");
    REFUSES(weft_frame_downsample(&f, 2, WEFT_DOWN_MEAN), WEFT_EARG, "invalid frame");
    f.start[1] = 3;
}

/* ---- CSV ---- */
Test(series, csv_may_have_one_file_or_many, .fini = end_folder)
{
    scoped_frame f = { 0 };
    DOES(weft_frame_read_csv(&f, put_text("one.csv", "b,other,a\n10,x,1\n20,,2\n"), NULL, AB, NULL));
    DOES(weft_frame_read_csv(&f, put_text("ids.csv", "id,a,b\nq,3,30\nq,4,40\np,5,50\n"), "id", AB, NULL));
    DOES(weft_frame_read_csv(&f, put_text("none.csv", "id,a,b\n"), "id", AB, NULL));
    cr_assert_eq(f.n, 3);
    DOES(weft_frame_read_csv(&f, put_text("empty.csv", "a,b\n"), NULL, AB, NULL));
    cr_assert(f.n == 4 && end_with_null(&f));
    SERIES(&f, 0, in_folder("one.csv"), 1, 2);
    SERIES(&f, 1, "q", 3, 4);
    SERIES(&f, 2, "p", 5);
    series_is(&f, 3, in_folder("empty.csv"), 0, NULL);
}

Test(series, invalid_csv_changes_nothing, .fini = end_folder)
{
    static const char text[] = "id,a,b\n1,2,3\n1,2\n";
    scoped_frame f = { 0 };
    const double a[] = { 1 }, b[] = { 10 };
    for (int k = 0; k < 2; k++) {
        REFUSES(weft_frame_read_csv(&f, put_text("bad.csv", text), "id", AB, NULL), WEFT_EFORMAT,
                "bad.csv:3: 2 fields");
        cr_assert(f.n == k && f.rows == k);
        REFUSES(weft_frame_read_csv(&f, "x", "id", NULL, NULL), WEFT_EARG, "names: expect");
        DOES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a, b }, 1));
    }
    REFUSES(weft_frame_read_csv(NULL, "x", "id", AB, NULL), WEFT_EARG, "the frame is NULL");
    REFUSES(weft_frame_read_csv(&f, NULL, "id", AB, NULL), WEFT_EARG, "path");
    REFUSES(weft_frame_read_csv(&f, "x", "id", WEFT_NAMES("a", "b", "c"), NULL), WEFT_EARG, "column \"c\"");
    SERIES(&f, 1, "1", 1);
}

/* ---- fixed columns ---- */
Test(series, fixed_columns_have_a_value_per_series, .fini = end_folder)
{
    scoped_frame f = { 0 };
    DOES(weft_frame_read_csv(&f, put_text("ids.csv", "id,a,b\nq,3,30\nq,4,40\np,5,50\nr,6,60\n"), "id", AB,
                             NULL));
    DOES(weft_frame_add_column(&f, "s", (double[]){ 7, 8, 9 }, WEFT_PER_SERIES));
    const double *s = weft_frame_column(&f, "s");
    cr_assert(s[0] == 7 && s[1] == 7 && s[2] == 8 && s[3] == 9);
    DOES(ADD_TABLE(&f, "height,id,x\n1.5,p,0\n2.5,q,0\n3,unused,0\n4,r,1\n", "height", "x"));
    const double *h = weft_frame_column(&f, "height");
    cr_assert(h[0] == 2.5 && h[1] == 2.5 && h[2] == 1.5 && h[3] == 4 && weft_frame_column(&f, "x")[3] == 1);
    int64_t columns = f.columns;
    REFUSES(ADD_TABLE(&f, "id,c\np,1\nq,2\np,3\nr,4\n", "c"), WEFT_EFORMAT, "two rows of \"p\"");
    REFUSES(ADD_TABLE(&f, "id,c\np,1\np,3\nq,2\nr,4\n", "c"), WEFT_EFORMAT, "two rows of \"p\"");
    REFUSES(ADD_TABLE(&f, "id,c\np,1\nq,2\n", "c"), WEFT_EFORMAT, "no row of \"r\"");
    REFUSES(ADD_TABLE(&f, "id,c,a\np,1,1\nq,2,2\nr,3,3\n", "c", "a"), WEFT_EARG, "expected a new name");
    REFUSES(weft_frame_add_static_csv(&f, "t.csv", NULL, WEFT_NAMES("c"), NULL), WEFT_EARG,
            "the column of ids");
    REFUSES(weft_frame_add_static_csv(&f, in_folder("nowhere"), "id", WEFT_NAMES("c"), NULL), WEFT_ENOENT,
            "nowhere");
    REFUSES(weft_frame_add_static_csv(&f, "t.csv", "id", NULL, NULL), WEFT_EARG, "names: expect");
    cr_assert(f.columns == columns && !weft_frame_column(&f, "c") && end_with_null(&f));
}

Test(series, empty_table_is_accepted, .fini = end_folder)
{
    weft_frame f = { 0 };
    DOES(weft_frame_add(&f, "q", AB, (const double *const[]){ (double[]){ 1 }, (double[]){ 10 } }, 1));
    REFUSES(ADD_TABLE(&f, "id,c\n", "c"), WEFT_EFORMAT, "no row of \"q\"");
    weft_frame_free(&f);
    REFUSES(ADD_TABLE(&f, "id,c\n", "c"), WEFT_EARG, "a frame that has a column");
}

/* ---- HDF5 ---- */
Test(series, hdf5_round_trip_keeps_all, .fini = end_folder)
{
    static const char *const groups[] = { NULL, "", "/", "train", "/a/b", "train/", "a//b/" };
    for (int k = 0; k < rounds(20, 200); k++) {
        int64_t rows[6], n = (int64_t)dice(6);
        for (int i = 0; i < n; i++)
            rows[i] = (int64_t)dice(9);
        weft_frame f = series_random((int)n, rows), g = { 0 };
        for (int64_t s = 0; s < n; s++)
            snprintf(f.id[s], 2, "%c", "ab c\"e"[s]);
        const char *path = in_folder("f.h5");
        DOES(weft_frame_write_hdf5(&f, path, groups[k % COUNT(groups)]));
        if (n) {
            DOES(weft_frame_read_hdf5(&g, path, groups[k % COUNT(groups)], (const char *const *)f.name));
            cr_assert(same_frames(&f, &g));
            weft_frame_free(&g);
        }
        weft_frame_free(&f);
    }
}

/* A file as others write it: a [3], b [rows], or [rows, columns], and, if a type is given, lengths [2]. */
typedef struct { hid_t a, b; hsize_t rows, columns; hid_t lengths; double first, second; } others;
static const char *foreign(others k)
{
    static const double values[] = { 1, 2, 3 }, tens[] = { 10, 20, 30 };
    const char *path = in_folder("foreign.h5");
    hid_t file = new_file(path);
    put_numbers(file, "a", k.a, 3, 0, values);
    put_numbers(file, "b", k.b, k.rows, k.columns, tens);
    if (k.lengths)
        put_numbers(file, "lengths", k.lengths, 2, 0, (double[]){ k.first, k.second });
    H5Fclose(file);
    return path;
}

Test(series, hdf5_of_other_programs_is_read, .fini = end_folder)
{
    const hid_t f32 = H5T_IEEE_F32BE, f64 = H5T_IEEE_F64LE, i32 = H5T_STD_I32LE, i64 = H5T_STD_I64LE,
                u8 = H5T_STD_U8LE;
    weft_frame f = { 0 }, g = { 0 };
    DOES(weft_frame_read_hdf5(&f, foreign((others){ .a = f32, .b = i64, .rows = 3 }), NULL, AB));
    SERIES(&f, 0, in_folder("foreign.h5"), 1, 2, 3);
    DOES(weft_frame_read_hdf5(&f, foreign((others){ u8, f64, 3, 0, i32, 2, 1 }), NULL, AB));
    SERIES(&f, 1, "1", 1, 2);
    SERIES(&f, 2, "2", 3);
    DOES(weft_frame_read_hdf5(&f, foreign((others){ i32, i32, 3, 0, u8, 0, 3 }), NULL, WEFT_NAMES("b", "a")));
    series_is(&f, 3, "3", 0, NULL);
    SERIES(&f, 4, "4", 1, 2, 3);
    const struct { others file; const char *says;
    } bad[] = {
        { { .a = f64, .b = f64, .rows = 2 }, "\"b\" has 2 rows; expected 3, as in the other columns" },
        { { .a = f64, .b = f64, .rows = 3, .columns = 1 },
          "\"b\" is float64 [3, 1]; expected numbers [n]" },
        { { f64, f64, 3, 0, i64, 1, 1 }, "lengths add up to 2" },
        { { f64, f64, 3, 0, i64, 2, 2 }, "series 1 has length 2; expected at most 1 of 3 rows" },
        { { f64, f64, 3, 0, i64, -1, 4 }, "series 0 has length -1" },
        { { f64, f64, 3, 0, f64, 2, 1 }, "expected integers [n]" },
    };
    for (int i = 0; i < COUNT(bad); i++)
        REFUSES(weft_frame_read_hdf5(&f, foreign(bad[i].file), NULL, AB), WEFT_EFORMAT, bad[i].says);
    const char *path = foreign((others){ .a = f64, .b = f64, .rows = 3 });
    REFUSES(weft_frame_read_hdf5(&f, path, NULL, WEFT_NAMES("a", "b", "c")), WEFT_EARG, "column \"c\"");
    REFUSES(weft_frame_read_hdf5(&g, path, NULL, WEFT_NAMES("a", "c")), WEFT_EFORMAT,
            "data set \"c\" is not in");
    REFUSES(weft_frame_read_hdf5(&g, path, "elsewhere", AB), WEFT_EFORMAT,
            "data set \"elsewhere/a\" is not in");
    REFUSES(weft_frame_read_hdf5(&g, in_folder("nowhere"), NULL, AB), WEFT_ENOENT, "nowhere");
    REFUSES(weft_frame_read_hdf5(&g, put_text("no.h5", "not HDF5"), NULL, AB), WEFT_EFORMAT, "no.h5");
    cr_assert(f.n == 5 && g.n == 0 && g.columns == 0);
    f.id[2][0] = '\n';
    REFUSES(weft_frame_write_hdf5(&f, path, NULL), WEFT_EARG, "the id of series 2 has a line break");
    f.id[2][0] = 'x';
    REFUSES(weft_frame_write_hdf5(&f, NULL, NULL), WEFT_EARG, "path is NULL");
    REFUSES(weft_frame_write_hdf5(NULL, "x", NULL), WEFT_EARG, "the frame is NULL");
    REFUSES(weft_frame_write_hdf5(&f, "/nowhere/x.h5", NULL), WEFT_EIO, "/nowhere/x.h5");
    DOES(weft_frame_add_column(&f, "lengths", NULL, WEFT_PER_ROW));
    REFUSES(weft_frame_write_hdf5(&f, "x", NULL), WEFT_EARG, "\"lengths\"; expected a name");
    weft_frame_free(&f);
}

/* ---- fewer rows ---- */
Test(series, downsampling_matches_worked_examples)
{
    static const double a[] = { 5, 1, 3, 8, 8, 2, 7, 4 }, t[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const struct { weft_downsampling how; int64_t k, n; double a[8], t[8];
    } given[] = {
        { WEFT_DOWN_INTERVAL, 3, 3, { 5, 8, 7 }, { 0, 3, 6 } },
        { WEFT_DOWN_INTERVAL, 8, 1, { 5 }, { 0 } },
        { WEFT_DOWN_INTERVAL, 100, 1, { 5 }, { 0 } },
        { WEFT_DOWN_MEAN, 3, 2, { 3, 6 }, { 1, 4 } },
        { WEFT_DOWN_MEAN, 2, 4, { 3, 5.5, 5, 5.5 }, { .5, 2.5, 4.5, 6.5 } },
        { WEFT_DOWN_MEAN, 9, 0, { 0 }, { 0 } },
        { WEFT_DOWN_MEDIAN, 3, 2, { 3, 8 }, { 1, 4 } },
        { WEFT_DOWN_MEDIAN, 4, 2, { 4, 5.5 }, { 1.5, 5.5 } },
        { WEFT_DOWN_MEDIAN, 9, 0, { 0 }, { 0 } },
        { WEFT_DOWN_MEAN, 1, 8, { 5, 1, 3, 8, 8, 2, 7, 4 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    };
    for (int i = 0; i < COUNT(given); i++) {
        scoped_frame f = { 0 };
        for (int s = 0; s < 3; s++)              /* series by series: the middle one is empty */
            DOES(weft_frame_add(&f, NULL, WEFT_NAMES("a", "t"), (const double *const[]){ a, t },
                                s == 1 ? 0 : 8));
        DOES(weft_frame_downsample(&f, given[i].k, given[i].how));
        cr_assert(f.n == 3 && f.rows == 2 * given[i].n && f.start[1] == given[i].n &&
                      f.start[2] == given[i].n,
                  "case %d", i);
        for (int s = 0; s < 2; s++)
            for (int64_t r = 0; r < given[i].n; r++)
                cr_assert(weft_frame_column(&f, "a")[s * given[i].n + r] == given[i].a[r] &&
                              weft_frame_column(&f, "t")[s * given[i].n + r] == given[i].t[r],
                          "case %d", i);
    }
}

Test(series, downsampling_keeps_constants_and_gaps)
{
    weft_frame f = { 0 };
    const double a[] = { .1, .1, .1, .1, .1, .1 }, b[] = { 1, NAN, 3, 4, 5, 6 };
    for (int how = WEFT_DOWN_INTERVAL; how <= WEFT_DOWN_MEDIAN; how++) {
        DOES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a, b }, 6));
        DOES(weft_frame_downsample(&f, 3, (weft_downsampling)how));
        cr_assert(f.rows == 2 && weft_frame_column(&f, "a")[0] == .1 && weft_frame_column(&f, "a")[1] == .1);
        cr_assert(how == WEFT_DOWN_INTERVAL ? weft_frame_column(&f, "b")[0] == 1 :
                                              isnan(weft_frame_column(&f, "b")[0]));
        cr_assert(weft_frame_column(&f, "b")[1] == (how == WEFT_DOWN_INTERVAL ? 4 : 5));
        DOES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a, b }, 6));      /* it still grows */
        cr_assert(f.rows == 8 && f.column[1][7] == 6);
        REFUSES(weft_frame_downsample(&f, 0, WEFT_DOWN_MEAN), WEFT_EARG, "factor 0");
        REFUSES(weft_frame_downsample(&f, 2, (weft_downsampling)3), WEFT_EARG, "weft_downsampling");
        weft_frame_free(&f);
    }
    const double infinite[] = { INFINITY, 1, INFINITY, INFINITY };
    for (int how = WEFT_DOWN_MEAN; how <= WEFT_DOWN_MEDIAN; how++) {
        DOES(weft_frame_add(&f, NULL, WEFT_NAMES("a"), (const double *const[]){ infinite }, 4));
        DOES(weft_frame_downsample(&f, 2, (weft_downsampling)how));
        cr_assert(f.column[0][0] == (double)INFINITY && f.column[0][1] == (double)INFINITY);
        weft_frame_free(&f);
    }
    REFUSES(weft_frame_downsample(NULL, 2, WEFT_DOWN_MEAN), WEFT_EARG, "the frame is NULL");
    DOES(weft_frame_downsample(&f, 2, WEFT_DOWN_MEDIAN));         /* of nothing */
}
