/* fuzz_ragged.c - weft_read_hdf5: lengths, rows and tokens are those that libhdf5 finds. Options: 1, below
 * the group "g". */
#include "fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return size < 2 ? size : 1 + h5_mutate(data + 1, size - 1, most - 1, seed, seed % 4 != 0);
}

static void compare_lengths(hid_t file, const char *path, const weft_dataset *d)
{
    plain_set set;
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
    SAME(file >= 0 && d->offset[0] == 0, "libhdf5 does not open what was read");
    snprintf(path, sizeof path, "%s/lengths", group);
    compare_lengths(file, path, d);
    plain_set set;
    snprintf(path, sizeof path, "%s/%s", group, d->ints ? "tokens" : "rows");
    SAME(plain_read(file, path, &set), "%s was read, but is not in the file", path);
    int64_t size[] = { d->offset[d->n], d->columns };
    if (d->rows)
        plain_same(path, &set, 2, size, d->rows);
    else
        SAME(set.rank == 1 && (int64_t)set.n == size[0], "%s has %zu tokens, read were %lld", path, set.n,
             (long long)size[0]);
    for (int64_t i = 0; d->ints && i < size[0]; i++)
        SAME(set.at[i] == d->ints[i], "%s: token %lld", path, (long long)i);
    free(set.at);
    H5Fclose(file);
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
    weft_dataset_free(&d);
    return 0;
}
