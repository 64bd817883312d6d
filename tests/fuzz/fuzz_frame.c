/* fuzz_frame.c - fuzzes weft_frame_read_hdf5: series, ids and numbers equal those of libhdf5. Options: 1, in
 * the group "g". */
#include "weft_forecast.h"
#include "fuzz.h"

static const char *const names[] = { "x", "y", NULL };

MUTATES_HDF5

static bool same(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

/* As the nearest double, like the other readers. */
static double number(const weft_frame *f, int64_t c, int64_t row)
{
    double v = f->column[c][row];
    return f->origin[c] && isfinite(v) ? (double)(f->origin[c] + (int64_t)v) : v;
}

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
    SAME(file >= 0, "weft read the file, libhdf5 does not open it");
    for (int c = 0; c < 2; c++) {
        snprintf(place, sizeof place, "%s/%s", group, names[c]);
        if (plain_closed(file, place))
            continue;
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
        SAME(f->n == 1 || plain_closed(file, place), "%lld series without lengths", (long long)f->n);
    free(set.at);
    compare_ids(file, group, f);
    H5Fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_frame f = { 0 };
    if (size < 2)
        return 0;
    const char *path = fuzz_file(data + 1, size - 1), *group = data[0] & 1 ? "g" : "";
    fuzz_watch(size - 1);
    weft_status s = weft_frame_read_hdf5(&f, path, group, names);
    fuzz_watched(s);
    if (s)
        SAME(!f.n && !f.rows && !f.columns, "an error leaves series: %s", weft_file_message());
    else
        compare_hdf5(data + 1, size - 1, group, &f);
    weft_frame_free(&f);
    return 0;
}
