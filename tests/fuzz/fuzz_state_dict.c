/* fuzz_state_dict.c - fuzzes weft_load_weights: loaded shapes and finite numbers equal those of libhdf5
 * under the same names. Options: 1, with a report, so that matching parameters are loaded. */
#include "fuzz.h"

static model k;

MUTATES_HDF5

/* Compares each parameter with the file, under its flat or nested name. With a report, a parameter that does
 * not fit keeps its values. */
static void compare(const uint8_t *bytes, size_t n, bool all)
{
    hid_t file = plain_open(bytes, n);
    SAME(file >= 0, "weft read the file, libhdf5 does not open it");
    for (int i = 0; i < weft_parameter_count(k.m); i++) {
        const char *name;
        char path[200];
        weft_tensor *x = weft_parameter_at(k.m, i, &name);
        int64_t size[WEFT_RANK] = { 0 };
        weft_real numbers[100], stays = 100;
        for (int a = 0; a < weft_rank(x); a++)
            size[a] = weft_size(x, a);
        SAME(weft_numel(x) <= COUNT(numbers), "%s is too large", name);
        weft_read(x, numbers, (size_t)weft_numel(x) * sizeof *numbers);
        SAME(weft_ok(k.w), "%s cannot be read", name);
        snprintf(path, sizeof path, "%s", name);
        plain_set set = { 0 };
        /* weft has not checked the chunks of a set of another shape, so libhdf5 may not read them */
        plain_chunks = plain_has(file, path, weft_rank(x), size);
        bool is = plain_read(file, path, &set), closed = plain_closed(file, path);
        for (char *dot = path; !is && (dot = strchr(dot, '.')); )
            *dot = '/';
        plain_chunks = is || plain_has(file, path, weft_rank(x), size);
        is = is || plain_read(file, path, &set);
        closed = closed || plain_closed(file, path);
        if ((all && !closed) || (is && set.rank == weft_rank(x) && numbers[0] != stays)) {
            SAME(is, "%s was read, but is not in the file", name);
            plain_same(path, &set, weft_rank(x), size, numbers);
        }
        free(set.at);
    }
    H5Fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_load_report r;
    if (size < 2)
        return 0;
    if (!k.w)
        k = model_new(1);
    weft_real stays[100];
    for (int i = 0; i < COUNT(stays); i++)
        stays[i] = 100;
    for (int i = 0; i < weft_parameter_count(k.m); i++) {
        weft_tensor *x = weft_parameter_at(k.m, i, NULL);
        weft_assign_values(x, stays, weft_numel(x));
    }
    uint32_t before = model_state(&k);
    const char *path = fuzz_file(data + 1, size - 1);
    fuzz_watch(size - 1);
    weft_status s = weft_load_weights(path, k.m, NULL, data[0] & 1 ? &r : NULL);
    fuzz_watched(s);
    SAME(weft_ok(k.w), "the context has failed: %s", weft_error_message(k.w));
    if (s)
        SAME(model_state(&k) == before, "an error has changed something: %s", weft_file_message());
    else
        compare(data + 1, size - 1, !(data[0] & 1));
    return 0;
}
