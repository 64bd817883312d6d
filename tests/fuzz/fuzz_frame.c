/* fuzz_frame.c - weft_frame_read_csv and weft_frame_read_hdf5: series, ids and numbers are those of a second
 * reading. Options: 1, CSV; of CSV 2, without ids; 4, empty fields are NaN; 8, weft_frame_add_static_csv. Of
 * HDF5 2, below the group "g". */
#include "fuzz.h"

static const char *const names[] = { "x", "y", NULL };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (size < 2)
        return size;
    return 1 + (data[0] & 1 ? LLVMFuzzerMutate(data + 1, size - 1, most - 1) :
                              h5_mutate(data + 1, size - 1, most - 1, seed, seed % 4 != 0));
}

static bool same(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

/* As the nearest double, which is all that the other readers give. */
static double number(const weft_frame *f, int64_t c, int64_t row)
{
    double v = f->column[c][row];
    return f->origin[c] && isfinite(v) ? (double)(f->origin[c] + (int64_t)v) : v;
}

/* ---- CSV ---- */
static int64_t series_of(const weft_frame *f, csv_cell id)
{
    for (int64_t s = 0; s < f->n; s++)
        if (table_same(id, (csv_cell){ f->id[s], strlen(f->id[s]) }))
            return s;
    return -1;
}

/* The rows of an id, wherever they stand, are its series in their order; series come in the order of their
 * first rows. */
static void compare_csv(const table *t, const weft_frame *f, bool ids)
{
    int64_t id = ids ? table_column(t, "id") : 0, at[] = { table_column(t, "x"), table_column(t, "y") },
            rows = t->records - 1, begun = 0;
    SAME(id >= 0 && at[0] >= 0 && at[1] >= 0 && f->rows == rows && f->columns == 2,
         "%lld rows, read were %lld", (long long)rows, (long long)f->rows);
    int64_t *next = calloc((size_t)f->n + 1, sizeof *next);
    for (int64_t r = 0; r < rows; r++) {
        int64_t s = ids ? series_of(f, table_cell(t, r, id)) : 0;
        SAME(s >= 0 && s <= begun, "row %lld is of series %lld, %lld have begun", (long long)r, (long long)s,
             (long long)begun);
        begun += s == begun;
        int64_t to = f->start[s] + next[s]++;
        SAME(to < f->start[s + 1], "series %lld is too short", (long long)s);
        for (int c = 0; c < 2; c++)
            SAME(same(table_number(t, r, at[c]), number(f, c, to)), "row %lld, column %s", (long long)r,
                 names[c]);
    }
    SAME(begun == f->n || !ids, "%lld series, read were %lld", (long long)begun, (long long)f->n);
    free(next);
}

/* Names of series that are there already, and columns: all or none. */
static void fix(const char *path, size_t n, const weft_csv_opts *o)
{
    weft_frame f = { 0 };
    const double x[] = { 1, 2 };
    for (int i = 0; i < 2; i++)
        SAME(!weft_frame_add(&f, i ? "b" : "a", WEFT_NAMES("t"), (const double *const[]){ x }, 2),
             "a series cannot be added");
    fuzz_watch(n);
    weft_status s = weft_frame_add_static_csv(&f, path, "id", names, o);
    fuzz_watched(s);
    SAME(f.columns == (s ? 1 : 3) && f.rows == 4 && !f.name[f.columns], "%lld columns", (long long)f.columns);
    weft_frame_free(&f);
}

static void read_csv(const uint8_t *bytes, size_t n, const char *path, int options)
{
    const weft_csv_opts o = { .empty_is_nan = options & 4 };
    weft_frame f = { 0 };
    fuzz_watch(n);
    weft_status s = weft_frame_read_csv(&f, path, options & 2 ? NULL : "id", names, &o);
    fuzz_watched(s);
    if (s)
        SAME(!f.n && !f.rows && !f.columns, "an error leaves series: %s", weft_file_message());
    else {
        table t = table_read(bytes, n, ',');
        compare_csv(&t, &f, !(options & 2));
        table_end(&t);
    }
    weft_frame_free(&f);
    if (options & 8)
        fix(path, n, &o);
}

/* ---- HDF5 ---- */
static void compare_ids(hid_t file, const char *group, const weft_frame *f)
{
    char place[40];
    snprintf(place, sizeof place, "%s/ids", group);
    char *text = plain_text(file, place), *at = text;
    for (int64_t s = 0; text && s < f->n; s++) {
        size_t n = strcspn(at, "\n");
        SAME(strlen(f->id[s]) == n && !memcmp(f->id[s], at, n), "the id of series %lld is \"%.100s\"",
             (long long)s, f->id[s]);
        at += n + (at[n] == '\n');
    }
    free(text);
}

static void compare_hdf5(const uint8_t *bytes, size_t n, const char *group, const weft_frame *f)
{
    char place[40];
    plain_set set;
    hid_t file = plain_open(bytes, n);
    SAME(file >= 0, "libhdf5 does not open what was read");
    for (int c = 0; c < 2; c++) {
        snprintf(place, sizeof place, "%s/%s", group, names[c]);
        SAME(plain_read(file, place, &set) && set.rank == 1 && (int64_t)set.n == f->rows,
             "%s has %zu rows, read were %lld", place, set.n, (long long)f->rows);
        for (int64_t r = 0; r < f->rows; r++)
            SAME(same(set.at[r], number(f, c, r)), "%s: row %lld is %g, read was %g", place, (long long)r,
                 set.at[r], number(f, c, r));
        free(set.at);
    }
    snprintf(place, sizeof place, "%s/lengths", group);
    if (plain_read(file, place, &set)) {
        SAME(set.rank == 1 && (int64_t)set.n == f->n, "%zu lengths, read were %lld", set.n, (long long)f->n);
        for (int64_t s = 0; s < f->n; s++)
            SAME((double)(f->start[s + 1] - f->start[s]) == set.at[s], "series %lld has length %g",
                 (long long)s, set.at[s]);
    } else
        SAME(f->n == 1, "%lld series without lengths", (long long)f->n);
    free(set.at);
    compare_ids(file, group, f);
    H5Fclose(file);
}

static void read_hdf5(const uint8_t *bytes, size_t n, const char *path, const char *group)
{
    weft_frame f = { 0 };
    fuzz_watch(n);
    weft_status s = weft_frame_read_hdf5(&f, path, group, names);
    fuzz_watched(s);
    if (s)
        SAME(!f.n && !f.rows && !f.columns, "an error leaves series: %s", weft_file_message());
    else
        compare_hdf5(bytes, n, group, &f);
    weft_frame_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *path = fuzz_file(data + 1, size - 1);
    if (data[0] & 1)
        read_csv(data + 1, size - 1, path, data[0]);
    else
        read_hdf5(data + 1, size - 1, path, data[0] & 2 ? "g" : "");
    return 0;
}
