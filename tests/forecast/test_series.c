/* test_series.c - frames of time series: from memory, CSV and HDF5, one file or many; fixed columns, fewer
 * rows, and all that can be wrong. */
#include <hdf5.h>
#include <unistd.h>
#include "series_data.h"
#include "tests/io/files.h"

static const char *put(const char *name, const char *text)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    cr_assert(f && fwrite(text, 1, strlen(text), f) == strlen(text) && fclose(f) == 0);
    return path;
}

#define AB WEFT_NAMES("a", "b")

/* Series `s` of f has this id and these numbers of column a; b is ten times as much. */
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

static bool same_frames(const weft_frame *f, const weft_frame *g)
{
    bool same = f->n == g->n && f->rows == g->rows && f->columns == g->columns;
    for (int64_t s = 0; same && s < f->n; s++)
        same = f->start[s + 1] == g->start[s + 1] && !strcmp(f->id[s], g->id[s]);
    for (int64_t c = 0; same && c < f->columns; c++)
        same = !strcmp(f->name[c], g->name[c]) &&
               !memcmp(f->column[c], g->column[c], (size_t)f->rows * sizeof **f->column);
    return same;
}

/* ---- memory ---- */
Test(series, from_memory)
{
    weft_frame f = { 0 };
    const double a[] = { 1, 2, 3 }, b[] = { 10, 20, 30 };
    DOES(weft_frame_add(&f, "first", AB, (const double *const[]){ a, b }, 3));
    DOES(weft_frame_add(&f, NULL, WEFT_NAMES("b", "a"), (const double *const[]){ b, a }, 1));
    DOES(weft_frame_add(&f, "none", AB, NULL, 0));
    for (int i = 0; i < 100; i++)
        DOES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a + i % 3, b + i % 3 }, 1));
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

static bool end_with_null(const weft_frame *f)
{
    return !f->id[f->n] && !f->name[f->columns];
}

/* A frame's own names are a list of names: what was read from one file is the frame that the next is asked
 * for. */
Test(series, lists_of_a_frame_end_with_null)
{
    weft_frame f = { 0 }, g = { 0 };
    const double a[] = { 1, 2 }, b[] = { 10, 20 };
    DOES(weft_frame_add(&f, "x", AB, (const double *const[]){ a, b }, 2));
    cr_assert(end_with_null(&f));
    DOES(weft_frame_add(&g, "y", (const char *const *)f.name, (const double *const *)f.column, f.rows));
    for (int i = 0; i < 20; i++) {
        DOES(weft_frame_add(&g, NULL, (const char *const *)g.name, (const double *const *)g.column, 1));
        cr_assert(end_with_null(&g));
    }
    DOES(weft_frame_add_column(&f, "s", a, WEFT_PER_SERIES));
    DOES(weft_frame_add_static_csv(&f, put("t.csv", "id,u,v\nx,1,2\n"), "id", WEFT_NAMES("u", "v"), NULL));
    cr_assert(end_with_null(&f) && f.columns == 5);
    REFUSES(WEFT_EARG, "a new name",
            weft_frame_add_static_csv(&f, put("t.csv", "id,w,u\nx,1,2\n"), "id", WEFT_NAMES("w", "u"), NULL));
    cr_assert(end_with_null(&f) && f.columns == 5);
    DOES(weft_frame_write_hdf5(&f, in_folder("l.h5"), NULL));
    weft_frame_free(&g);
    DOES(weft_frame_read_hdf5(&g, in_folder("l.h5"), NULL, (const char *const *)f.name));
    cr_assert(end_with_null(&g) && same_frames(&f, &g));
    DOES(weft_frame_downsample(&g, 2, WEFT_DOWN_MEAN));
    cr_assert(end_with_null(&g));
    weft_frame_free(&g);
    DOES(weft_frame_read_csv(&g, put("c.csv", "a,b\n1,2\n"), NULL, AB, NULL));
    cr_assert(end_with_null(&g));
    weft_frame_free(&g);
    weft_frame_free(&f);
    end_folder();
}

Test(series, what_a_frame_does_not_take)
{
    weft_frame f = { 0 };
    const double a[] = { 1, 2, 3 };
    const double *const both[] = { a, a };
    REFUSES(WEFT_EARG, "weft_frame_add: no frame", weft_frame_add(NULL, NULL, AB, both, 3));
    REFUSES(WEFT_EARG, "names of columns", weft_frame_add(&f, NULL, NULL, both, 3));
    REFUSES(WEFT_EARG, "names of columns", weft_frame_add(&f, NULL, (const char *const[]){ NULL }, both, 3));
    REFUSES(WEFT_EARG, "column 1, \"a\", has no name of its own",
            weft_frame_add(&f, NULL, WEFT_NAMES("a", "a"), both, 3));
    REFUSES(WEFT_EARG, "has no name of its own", weft_frame_add(&f, NULL, WEFT_NAMES(""), both, 3));
    REFUSES(WEFT_EARG, "3 rows without columns", weft_frame_add(&f, NULL, AB, NULL, 3));
    REFUSES(WEFT_EARG, "-1 rows", weft_frame_add(&f, NULL, AB, both, -1));
    REFUSES(WEFT_EARG, "column \"b\" is NULL",
            weft_frame_add(&f, NULL, AB, (const double *const[]){ a, NULL }, 3));
    cr_assert(f.n == 0 && f.columns == 0);
    DOES(weft_frame_add(&f, NULL, AB, both, 3));
    REFUSES(WEFT_EARG, "has a column \"b\"", weft_frame_add(&f, NULL, WEFT_NAMES("a"), both, 3));
    REFUSES(WEFT_EARG, "a column \"c\", which the frame does not have",
            weft_frame_add(&f, NULL, WEFT_NAMES("a", "b", "c"), (const double *const[]){ a, a, a }, 3));
    REFUSES(WEFT_EARG, "\"a\": a new name", weft_frame_add_column(&f, "a", a, WEFT_PER_ROW));
    REFUSES(WEFT_EARG, "a new name", weft_frame_add_column(&f, NULL, a, WEFT_PER_ROW));
    REFUSES(WEFT_EARG, "\"c\": no values", weft_frame_add_column(&f, "c", NULL, WEFT_PER_SERIES));
    cr_assert(f.n == 1 && f.columns == 2 && f.rows == 3);
    f.start[1] = 2;                              /* not what the library makes */
    REFUSES(WEFT_EARG, "not what weft_frame_add and its kin make", weft_frame_add(&f, NULL, AB, both, 3));
    REFUSES(WEFT_EARG, "not what", weft_frame_downsample(&f, 2, WEFT_DOWN_MEAN));
    f.start[1] = 3;
    weft_frame_free(&f);
}

/* ---- CSV ---- */
Test(series, csv_one_file_or_many)
{
    weft_frame f = { 0 };
    DOES(weft_frame_read_csv(&f, put("one.csv", "b,other,a\n10,x,1\n20,,2\n"), NULL, AB, NULL));
    DOES(weft_frame_read_csv(&f, put("ids.csv", "id,a,b\nq,3,30\nq,4,40\np,5,50\n"), "id", AB, NULL));
    DOES(weft_frame_read_csv(&f, put("none.csv", "id,a,b\n"), "id", AB, NULL));
    cr_assert_eq(f.n, 3);
    DOES(weft_frame_read_csv(&f, put("empty.csv", "a,b\n"), NULL, AB, NULL));
    cr_assert_eq(f.n, 4);
    SERIES(&f, 0, in_folder("one.csv"), 1, 2);
    SERIES(&f, 1, "q", 3, 4);
    SERIES(&f, 2, "p", 5);
    series_is(&f, 3, in_folder("empty.csv"), 0, NULL);
    weft_frame_free(&f);
    end_folder();
}

Test(series, csv_rows_of_an_id_anywhere_are_one_series)
{
    weft_frame f = { 0 };
    DOES(weft_frame_read_csv(
        &f,
        put("mixed.csv",
            "t,id,a,b\n0,z,1,10\n0,m,2,20\n0,a,3,30\n1,z,4,40\n1,a,5,50\n2,m,6,60\n2,m,7,70\n2,z,8,80\n"),
        "id", AB, NULL));
    cr_assert_eq(f.n, 3);
    SERIES(&f, 0, "z", 1, 4, 8);
    SERIES(&f, 1, "m", 2, 6, 7);
    SERIES(&f, 2, "a", 3, 5);
    weft_frame_free(&f);
    for (int k = 0; k < rounds(30, 300); k++) {  /* against a plain loop over ids */
        char *text = NULL, id[9] = "";
        size_t size;
        int n = 1 + (int)dice(5), rows = 1 + (int)dice(300), series = 0;
        FILE *out = open_memstream(&text, &size);
        fputs("a,id,b\n", out);
        char *of = malloc((size_t)rows);
        for (int i = 0; i < rows; i++) {
            of[i] = i && dice(2) ? of[i - 1] : (char)('A' + (int)dice((uint64_t)n));
            fprintf(out, "%d,%c,%d\n", i, of[i], 10 * i);
            if (!strchr(id, of[i]))
                id[series++] = of[i], id[series] = 0;
        }
        fclose(out);
        DOES(weft_frame_read_csv(&f, put("r.csv", text), "id", AB, NULL));
        cr_assert(f.n == series && f.rows == rows);
        for (int s = 0; s < series; s++) {
            cr_assert(f.id[s][0] == id[s] && !f.id[s][1]);
            int64_t at = f.start[s];
            for (int i = 0; i < rows; i++)
                if (of[i] == id[s])
                    cr_assert(weft_frame_column(&f, "a")[at] == i &&
                              weft_frame_column(&f, "b")[at++] == 10 * i);
            cr_assert_eq(at, f.start[s + 1]);
        }
        weft_frame_free(&f);
        free(text);
        free(of);
    }
    end_folder();
}

Test(series, csv_keeps_what_a_double_holds)
{
    weft_frame f = { 0 };
    DOES(weft_frame_read_csv(&f, put("d.csv", "a,b\n1700000000.125,nan\n1e300,-inf\n"), NULL, AB, NULL));
    const double *a = weft_frame_column(&f, "a"), *b = weft_frame_column(&f, "b");
    cr_assert(a[0] == 1700000000.125 && a[1] == 1e300 && isnan(b[0]) && isinf(b[1]));
    weft_frame_free(&f);
    end_folder();
}

Test(series, csv_that_is_wrong_changes_nothing)
{
    static const struct { const char *text, *says;
    } bad[] = {
        { "", "bad.csv:1: a header" },
        { "id,a\n1,2\n", "bad.csv:1: no column is named \"b\"" },
        { "a,b\n1,2\n", "no column is named \"id\"" },
        { "id,a,b\n1,2,3\n1,2\n", "bad.csv:3: 2 fields" },
        { "id,a,b\n1,2,\n", "bad.csv:2: column \"b\": a number was expected, not \"\"" },
        { "id,a,b\n1,2,3\n2,2,1e999\n", "bad.csv:3: column \"b\": \"1e999\" is too large" },
    };
    weft_frame f = { 0 };
    const double a[] = { 1 }, b[] = { 10 };
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < COUNT(bad); i++) {
            REFUSES(WEFT_EFORMAT, bad[i].says,
                    weft_frame_read_csv(&f, put("bad.csv", bad[i].text), "id", AB, NULL));
            cr_assert(f.n == k && f.rows == k);
        }
        REFUSES(WEFT_ENOENT, "nowhere.csv",
                weft_frame_read_csv(&f, in_folder("nowhere.csv"), "id", AB, NULL));
        REFUSES(WEFT_EARG, "names of columns", weft_frame_read_csv(&f, "x", "id", NULL, NULL));
        REFUSES(WEFT_EARG, "no frame", weft_frame_read_csv(NULL, "x", "id", AB, NULL));
        DOES(weft_frame_add(&f, NULL, AB, (const double *const[]){ a, b }, 1));
    }
    cr_assert_neq(weft_frame_read_csv(&f, NULL, "id", AB, NULL), WEFT_OK);
    REFUSES(WEFT_EARG, "a column \"c\"", weft_frame_read_csv(&f, "x", "id", WEFT_NAMES("a", "b", "c"), NULL));
    SERIES(&f, 0, "0", 1);
    weft_frame_free(&f);
    end_folder();
}

Test(series, csv_of_any_bytes_does_no_harm)
{
    static const char letters[] = "id,ab\n\"\r,1.e-x1,2\n";
    for (int k = rounds(1000, 20000); k--; ) {
        char text[200] = "id,a,b\n";
        size_t n = 7 + dice(190);
        for (size_t i = dice(4) ? 7 : 0; i < n; i++)
            text[i] = letters[dice(sizeof letters - 1)];
        text[n] = 0;
        weft_frame f = { 0 };
        weft_status s = weft_frame_read_csv(&f, put("f.csv", text), dice(2) ? "id" : NULL, AB, NULL);
        cr_assert(s == WEFT_OK || (s == WEFT_EFORMAT && f.n == 0 && f.columns == 0));
        for (int64_t i = 0; i < f.n; i++)
            cr_assert(f.start[i + 1] >= f.start[i] && f.id[i]);
        weft_frame_free(&f);
    }
    end_folder();
}

/* ---- fixed columns ---- */
Test(series, fixed_columns)
{
    weft_frame f = { 0 };
    DOES(weft_frame_read_csv(&f, put("ids.csv", "id,a,b\nq,3,30\nq,4,40\np,5,50\nr,6,60\n"), "id", AB, NULL));
    DOES(weft_frame_add_column(&f, "s", (double[]){ 7, 8, 9 }, WEFT_PER_SERIES));
    const double *s = weft_frame_column(&f, "s");
    cr_assert(s[0] == 7 && s[1] == 7 && s[2] == 8 && s[3] == 9);
    DOES(weft_frame_add_static_csv(&f, put("table.csv", "height,id,x\n1.5,p,0\n2.5,q,0\n3,unused,0\n4,r,1\n"),
                                   "id", WEFT_NAMES("height", "x"), NULL));
    const double *h = weft_frame_column(&f, "height");
    cr_assert(h[0] == 2.5 && h[1] == 2.5 && h[2] == 1.5 && h[3] == 4 && weft_frame_column(&f, "x")[3] == 1);
    int64_t columns = f.columns;
    REFUSES(WEFT_EFORMAT, "two rows of \"p\"",
            weft_frame_add_static_csv(&f, put("t.csv", "id,c\np,1\nq,2\np,3\nr,4\n"), "id", WEFT_NAMES("c"),
                                      NULL));
    REFUSES(WEFT_EFORMAT, "two rows of \"p\"",
            weft_frame_add_static_csv(&f, put("t.csv", "id,c\np,1\np,3\nq,2\nr,4\n"), "id", WEFT_NAMES("c"),
                                      NULL));
    REFUSES(WEFT_EFORMAT, "no row of the series \"r\"",
            weft_frame_add_static_csv(&f, put("t.csv", "id,c\np,1\nq,2\n"), "id", WEFT_NAMES("c"), NULL));
    REFUSES(WEFT_EARG, "\"a\": a new name",
            weft_frame_add_static_csv(&f, put("t.csv", "id,c,a\np,1,1\nq,2,2\nr,3,3\n"), "id",
                                      WEFT_NAMES("c", "a"), NULL));
    REFUSES(WEFT_EARG, "the column with the series' ids",
            weft_frame_add_static_csv(&f, "t.csv", NULL, WEFT_NAMES("c"), NULL));
    REFUSES(WEFT_ENOENT, "nowhere",
            weft_frame_add_static_csv(&f, in_folder("nowhere"), "id", WEFT_NAMES("c"), NULL));
    REFUSES(WEFT_EARG, "names of columns", weft_frame_add_static_csv(&f, "t.csv", "id", NULL, NULL));
    cr_assert(f.columns == columns && !weft_frame_column(&f, "c"));
    weft_frame_free(&f);
    end_folder();
}

Test(series, a_table_of_no_rows)
{
    weft_frame f = { 0 };
    DOES(weft_frame_add(&f, "q", AB, (const double *const[]){ (double[]){ 1 }, (double[]){ 10 } }, 1));
    REFUSES(WEFT_EFORMAT, "no row of the series \"q\"",
            weft_frame_add_static_csv(&f, put("t.csv", "id,c\n"), "id", WEFT_NAMES("c"), NULL));
    weft_frame_free(&f);
    REFUSES(WEFT_EARG, "a frame that has a column",
            weft_frame_add_static_csv(&f, put("t.csv", "id,c\n"), "id", WEFT_NAMES("c"), NULL));
    end_folder();
}

/* ---- HDF5 ---- */
Test(series, hdf5_there_and_back)
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
            DOES(weft_frame_read_hdf5(&g, path, groups[k % COUNT(groups)], series_names));
            cr_assert(same_frames(&f, &g));
            weft_frame_free(&g);
        }
        weft_frame_free(&f);
    }
    end_folder();
}

static void add_set(hid_t file, const char *name, hid_t type, int rank, hsize_t n, const double *values)
{
    hsize_t size[2] = { n, 1 };
    hid_t space = H5Screate_simple(rank, size, NULL),
          set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

/* A file as others write it: a and b [3] and, if a type is given, lengths. */
static const char *foreign(hid_t a, hid_t b, int rank, hsize_t rows_b, hid_t lengths, double first,
                           double second)
{
    static const double values[] = { 1, 2, 3 }, tens[] = { 10, 20, 30 };
    const char *path = in_folder("foreign.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    add_set(file, "a", a, 1, 3, values);
    add_set(file, "b", b, rank, rows_b, tens);
    if (lengths >= 0)
        add_set(file, "lengths", lengths, 1, 2, (double[]){ first, second });
    H5Fclose(file);
    return path;
}

/* Others' ids into a file that has some, a text of so many bytes. */
static void write_ids(const char *path, const char *ids, size_t bytes)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), text = H5Tcopy(H5T_C_S1),
          space = H5Screate(H5S_SCALAR);
    H5Tset_size(text, bytes), H5Tset_cset(text, H5T_CSET_UTF8);
    H5Ldelete(file, "ids", H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, "ids", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Dwrite(set, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids) >= 0);
    H5Dclose(set), H5Tclose(text), H5Sclose(space), H5Fclose(file);
}

Test(series, hdf5_of_others)
{
    const hid_t f32 = H5T_IEEE_F32BE, f64 = H5T_IEEE_F64LE, i32 = H5T_STD_I32LE, i64 = H5T_STD_I64LE,
                u8 = H5T_STD_U8LE, no = H5I_INVALID_HID;
    weft_frame f = { 0 };
    DOES(weft_frame_read_hdf5(&f, foreign(f32, i64, 1, 3, no, 0, 0), NULL, AB));
    SERIES(&f, 0, in_folder("foreign.h5"), 1, 2, 3);
    DOES(weft_frame_read_hdf5(&f, foreign(u8, f64, 1, 3, i32, 2, 1), NULL, AB));
    SERIES(&f, 1, "1", 1, 2);
    SERIES(&f, 2, "2", 3);
    DOES(weft_frame_read_hdf5(&f, foreign(i32, i32, 1, 3, u8, 0, 3), NULL, WEFT_NAMES("b", "a")));
    series_is(&f, 3, "3", 0, NULL);
    SERIES(&f, 4, "4", 1, 2, 3);
    DOES(weft_frame_write_hdf5(&f, in_folder("ids.h5"), NULL));
    write_ids(file_name, "a\nb\nc\n\0", 8);
    REFUSES(WEFT_EFORMAT, "\"ids\" has 3 lines, there are 5 series",
            weft_frame_read_hdf5(&f, file_name, NULL, AB));
    write_ids(file_name, "a\nb\nc\nd\ne\nf", 12);
    REFUSES(WEFT_EFORMAT, "\"ids\" has more lines than there are series, 5",
            weft_frame_read_hdf5(&f, file_name, NULL, AB));
#define WRONG(says, ...) REFUSES(WEFT_EFORMAT, says, weft_frame_read_hdf5(&f, foreign(__VA_ARGS__), NULL, AB))
    WRONG("\"b\" has 2 rows, other columns have 3", f64, f64, 1, 2, no, 0, 0);
    WRONG("\"b\" is", f64, f64, 2, 3, no, 0, 0);
    WRONG("the lengths add up to 2", f64, f64, 1, 3, i64, 1, 1);
    WRONG("series 1 has length 2, 1 of 3 rows are left", f64, f64, 1, 3, i64, 2, 2);
    WRONG("series 0 has length -1", f64, f64, 1, 3, i64, -1, 4);
    WRONG("integers [n] were expected", f64, f64, 1, 3, f64, 2, 1);
    REFUSES(WEFT_EARG, "a column \"c\"",
            weft_frame_read_hdf5(&f, file_name, NULL, WEFT_NAMES("a", "b", "c")));
    weft_frame g = { 0 };
    REFUSES(WEFT_EFORMAT, "no data set \"c\"",
            weft_frame_read_hdf5(&g, file_name, NULL, WEFT_NAMES("a", "c")));
    REFUSES(WEFT_EFORMAT, "no data set \"elsewhere/a\"",
            weft_frame_read_hdf5(&g, file_name, "elsewhere", WEFT_NAMES("a", "c")));
    REFUSES(WEFT_ENOENT, "nowhere", weft_frame_read_hdf5(&g, in_folder("nowhere"), NULL, AB));
    REFUSES(WEFT_EFORMAT, "no.h5", weft_frame_read_hdf5(&g, put("no.h5", "not HDF5"), NULL, AB));
    cr_assert(f.n == 5 && g.n == 0 && g.columns == 0);
    f.id[2][0] = '\n';
    REFUSES(WEFT_EARG, "the id of series 2 has more than one line",
            weft_frame_write_hdf5(&f, file_name, NULL));
    f.id[2][0] = 'x';
    REFUSES(WEFT_EARG, "no path", weft_frame_write_hdf5(&f, NULL, NULL));
    REFUSES(WEFT_EARG, "no frame", weft_frame_write_hdf5(NULL, "x", NULL));
    cr_assert_neq(weft_frame_write_hdf5(&f, "/nowhere/x.h5", NULL), WEFT_OK);
    DOES(weft_frame_add_column(&f, "lengths", NULL, WEFT_PER_ROW));
    REFUSES(WEFT_EARG, "\"lengths\" is no name", weft_frame_write_hdf5(&f, "x", NULL));
    weft_frame_free(&f);
    end_folder();
}

/* ---- fewer rows ---- */
Test(series, fewer_rows_by_hand)
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
        weft_frame f = { 0 };
        for (int s = 0; s < 3; s++)              /* series by itself: the middle one is empty */
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
        weft_frame_free(&f);
    }
}

Test(series, fewer_rows_keep_constants_and_gaps)
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
        REFUSES(WEFT_EARG, "the factor is 0", weft_frame_downsample(&f, 0, WEFT_DOWN_MEAN));
        REFUSES(WEFT_EARG, "one of three ways", weft_frame_downsample(&f, 2, (weft_downsampling)3));
        weft_frame_free(&f);
    }
    const double infinite[] = { INFINITY, 1, INFINITY, INFINITY };
    for (int how = WEFT_DOWN_MEAN; how <= WEFT_DOWN_MEDIAN; how++) {
        DOES(weft_frame_add(&f, NULL, WEFT_NAMES("a"), (const double *const[]){ infinite }, 4));
        DOES(weft_frame_downsample(&f, 2, (weft_downsampling)how));
        cr_assert(f.column[0][0] == (double)INFINITY && f.column[0][1] == (double)INFINITY);
        weft_frame_free(&f);
    }
    REFUSES(WEFT_EARG, "no frame", weft_frame_downsample(NULL, 2, WEFT_DOWN_MEAN));
    DOES(weft_frame_downsample(&f, 2, WEFT_DOWN_MEDIAN));         /* of nothing */
}
