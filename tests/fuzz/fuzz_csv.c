/* fuzz_csv.c - fuzzes weft_read_csv, weft_frame_read_csv and weft_frame_add_static_csv against a second
 * reader (table.c). Options: 1, ';' between fields; 2, empty fields are NaN; 4, a frame; 8, a frame without
 * ids; 16, a table of fixed columns. */
#include "weft_forecast.h"
#include "fuzz.h"

static const char *const names[] = { "x", "y", NULL };

/* The result, a dataset or a frame. */
typedef struct {
    int64_t n;
    const int64_t *start;                        /* [n + 1] rows */
    const weft_dataset *d;
    const weft_frame *f;
} sequences;

static bool same(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

/* Compares a number with the text: a frame has the nearest double, a dataset the nearest weft_real. */
static bool is_number(const sequences *q, int64_t row, int c, double want)
{
    if (q->d)
        return same((double)(weft_real)want, (double)q->d->rows[2 * row + c]);
    double v = q->f->column[c][row];
    return same(want, q->f->origin[c] && isfinite(v) ? (double)(q->f->origin[c] + (int64_t)v) : v);
}

static bool is_first(const table *t, int64_t id, int64_t row)
{
    for (int64_t r = 0; r < row; r++)
        if (table_same(table_cell(t, r, id), table_cell(t, row, id)))
            return false;
    return true;
}

/* Sequences are sorted by id, and rows keep the order of the file. id -1: one sequence. */
static void compare(const table *t, int64_t id, const sequences *q)
{
    int64_t at[] = { table_column(t, "x"), table_column(t, "y") }, rows = t->records - 1, s = 0, k = 0;
    SAME(at[0] >= 0 && at[1] >= 0 && q->start[q->n] == rows, "%lld rows, read were %lld", (long long)rows,
         (long long)q->start[q->n]);
    for (int64_t first = 0; first < rows && (id >= 0 || !first); first++) {
        if (id >= 0 && !is_first(t, id, first))
            continue;
        SAME(s < q->n && q->start[s] == k, "sequence %lld begins with row %lld", (long long)s, (long long)k);
        csv_cell name = id < 0 ? (csv_cell){ 0 } : table_cell(t, first, id);
        SAME(id < 0 || !q->f || table_same(name, (csv_cell){ q->f->id[s], strlen(q->f->id[s]) }),
             "the id of sequence %lld", (long long)s);
        for (int64_t r = first; r < rows; r++) {
            if (id >= 0 && !table_same(table_cell(t, r, id), name))
                continue;
            for (int c = 0; c < 2; c++)
                SAME(is_number(q, k, c, table_number(t, r, at[c])), "row %lld, column %s", (long long)r,
                     names[c]);
            k++;
        }
        SAME(q->start[++s] == k, "sequence %lld ends with row %lld", (long long)s - 1, (long long)k);
    }
    SAME(s == q->n || id < 0, "%lld sequences, read were %lld", (long long)s, (long long)q->n);
}

static void read_dataset(const uint8_t *bytes, size_t n, const char *path, const weft_csv_opts *o,
                         char delimiter)
{
    weft_dataset d;
    fuzz_watch(n);
    weft_status s = weft_read_csv(path, "id", names, 2, o, &d);
    fuzz_watched(s);
    if (s) {
        SAME(!d.n && !d.len && !d.rows, "an error leaves data: %s", weft_file_message());
        return;
    }
    table t = table_read(bytes, n, delimiter);
    SAME(table_column(&t, "id") >= 0 && d.columns == 2, "%lld columns", (long long)d.columns);
    compare(&t, table_column(&t, "id"), &(sequences){ d.n, d.offset, &d, NULL });
    table_end(&t);
    weft_dataset_free(&d);
}

static void read_frame(const uint8_t *bytes, size_t n, const char *path, const weft_csv_opts *o,
                       char delimiter, bool ids)
{
    weft_frame f = { 0 };
    fuzz_watch(n);
    weft_status s = weft_frame_read_csv(&f, path, ids ? "id" : NULL, names, o);
    fuzz_watched(s);
    if (s) {
        SAME(!f.n && !f.rows && !f.columns, "an error leaves series: %s", weft_file_message());
        return;
    }
    table t = table_read(bytes, n, delimiter);
    SAME((!ids || table_column(&t, "id") >= 0) && f.columns == 2, "%lld columns", (long long)f.columns);
    compare(&t, ids ? table_column(&t, "id") : -1, &(sequences){ f.n, f.start, NULL, &f });
    table_end(&t);
    weft_frame_free(&f);
}

/* Adds columns for existing series: all or none. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const weft_csv_opts o = { .delimiter = data[0] & 1 ? ';' : 0, .empty_is_nan = data[0] & 2 };
    const char *path = fuzz_file(data + 1, size - 1), delimiter = data[0] & 1 ? ';' : ',';
    if (data[0] & 4)
        read_frame(data + 1, size - 1, path, &o, delimiter, !(data[0] & 8));
    else
        read_dataset(data + 1, size - 1, path, &o, delimiter);
    if (data[0] & 16)
        fix(path, size - 1, &o);
    return 0;
}
