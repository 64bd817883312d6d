/* fuzz_ragged.c - fuzzes weft_read_hdf5: lengths, rows and tokens equal those of libhdf5. Options: 1, in the
 * group "g". */
#include "weft_lab.h"
#include "fuzz.h"

MUTATES_HDF5

static void compare_lengths(hid_t file, const char *path, const weft_dataset *d)
{
    plain_set set;
    if (plain_closed(file, path))
        return;
    SAME(plain_read(file, path, &set) && set.rank == 1 && (int64_t)set.n == d->n,
         "%s: %zu lengths, read were %lld", path, set.n, (long long)d->n);
    for (int64_t i = 0; i < d->n; i++)
        SAME(d->len[i] >= 0 && d->len[i] == set.at[i] && d->offset[i + 1] - d->offset[i] == d->len[i],
             "%s: length %lld", path, (long long)i);
    free(set.at);
}

static void compare(const uint8_t *bytes, size_t n, const char *group, const weft_dataset *d)
{
    char path[40];
    hid_t file = plain_open(bytes, n);
    SAME(file >= 0 && d->offset[0] == 0, "weft read the file, libhdf5 does not open it");
    snprintf(path, sizeof path, "%s/lengths", group);
    compare_lengths(file, path, d);
    plain_set set;
    snprintf(path, sizeof path, "%s/%s", group, d->ints ? "tokens" : "rows");
    bool is = plain_read(file, path, &set);
    SAME(is || plain_closed(file, path), "%s was read, but is not in the file", path);
    int64_t size[] = { is ? d->offset[d->n] : 0, d->columns };
    if (d->rows && is)
        plain_same(path, &set, 2, size, d->rows);
    else if (is)
        SAME(set.rank == 1 && (int64_t)set.n == size[0], "%s has %zu tokens, read were %lld", path, set.n,
             (long long)size[0]);
    for (int64_t i = 0; d->ints && i < size[0]; i++)
        SAME(set.at[i] == d->ints[i], "%s: token %lld", path, (long long)i);
    free(set.at);
    H5Fclose(file);
}

/* Reads all sequences by index, last to first. Equals the whole file, or is refused like it. */
static void compare_parts(const char *path, const char *group, weft_status whole, const weft_dataset *d)
{
    weft_hdf5 *f;
    weft_dataset part = { 0 };
    int32_t index[1000];
    weft_status s = weft_open_hdf5(path, group, &f);
    int64_t n = weft_hdf5_shape(f).n, read = 0;
    for (int64_t left = n; left > 0 && !s; left -= read) {
        read = left < 1000 ? left : 1000;
        for (int64_t i = 0; i < read; i++)
            index[i] = (int32_t)(left - 1 - i);
        s = weft_read_hdf5_part(f, index, read, &part);
        for (int64_t i = 0; i < read && !s && !whole; i++) {
            int64_t at = d->offset[index[i]], rows = part.len[i];
            SAME(rows == d->len[index[i]], "sequence %d has another length", index[i]);
            for (int64_t k = 0; d->ints && k < rows; k++)
                SAME(part.ints[part.offset[i] + k] == d->ints[at + k], "sequence %d", index[i]);
            for (int64_t k = 0; d->rows && k < rows * d->columns; k++)
                SAME(!memcmp(&part.rows[part.offset[i] * d->columns + k], &d->rows[at * d->columns + k],
                             sizeof *d->rows),
                     "sequence %d", index[i]);
        }
        weft_dataset_free(&part);
    }
    SAME(!s == !whole, "the whole is %s, its parts are %s: %s", whole ? "refused" : "read",
         s ? "refused" : "read", weft_file_message());
    weft_close_hdf5(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *path = fuzz_file(data + 1, size - 1), *group = data[0] & 1 ? "g" : "";
    weft_dataset d;
    fuzz_watch(size - 1);
    weft_status s = weft_read_hdf5(path, group, &d);
    fuzz_watched(s);
    if (s)
        SAME(!d.n && !d.len && !d.offset && !d.rows && !d.ints, "an error leaves data: %s",
             weft_file_message());
    else
        compare(data + 1, size - 1, group, &d);
    compare_parts(path, group, s, &d);
    weft_dataset_free(&d);
    return 0;
}
