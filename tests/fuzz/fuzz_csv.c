/* fuzz_csv.c - weft_read_csv: sequences and numbers are those of a second reading. Options: 1, ';' between
 * fields; 2, empty fields are NaN. */
#include "fuzz.h"

static const char *const columns[] = { "x", "y" };

static bool is_first(const table *t, int64_t id, int64_t row)
{
    for (int64_t r = 0; r < row; r++)
        if (table_same(table_cell(t, r, id), table_cell(t, row, id)))
            return false;
    return true;
}

/* Sequences come in the order of their ids, and the rows of each in that of the file. */
static void compare(const table *t, const weft_dataset *d)
{
    int64_t id = table_column(t, "id"), at[] = { table_column(t, "x"), table_column(t, "y") },
            rows = t->records - 1, s = 0, k = 0;
    SAME(id >= 0 && at[0] >= 0 && at[1] >= 0 && d->offset[d->n] == rows && d->columns == 2,
         "%lld rows, read were %lld", (long long)rows, (long long)d->offset[d->n]);
    for (int64_t first = 0; first < rows; first++) {
        if (!is_first(t, id, first))
            continue;
        SAME(s < d->n && d->offset[s] == k, "sequence %lld begins with row %lld", (long long)s, (long long)k);
        for (int64_t r = first; r < rows; r++) {
            if (!table_same(table_cell(t, r, id), table_cell(t, first, id)))
                continue;
            for (int c = 0; c < 2; c++) {
                double want = table_number(t, r, at[c]), is = (double)d->rows[2 * k + c];
                SAME(isnan(want)    ? isnan(is) :
                     isfinite(want) ? (double)(weft_real)want == is :
                                      want == is,
                     "row %lld: %g was read as %g", (long long)r, want, is);
            }
            k++;
        }
        SAME(d->len[s] == k - d->offset[s], "sequence %lld has %d rows", (long long)s, d->len[s]);
        s++;
    }
    SAME(s == d->n, "%lld sequences, read were %lld", (long long)s, (long long)d->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const weft_csv_opts o = { .delimiter = data[0] & 1 ? ';' : 0, .empty_is_nan = data[0] & 2 };
    const char *path = fuzz_file(data + 1, size - 1);
    weft_dataset d;
    fuzz_watch(size - 1);
    weft_status s = weft_read_csv(path, "id", columns, 2, &o, &d);
    fuzz_watched(s);
    if (s)
        SAME(!d.n && !d.len && !d.rows, "an error leaves data: %s", weft_file_message());
    else {
        table t = table_read(data + 1, size - 1, data[0] & 1 ? ';' : ',');
        compare(&t, &d);
        table_end(&t);
    }
    weft_dataset_free(&d);
    return 0;
}
