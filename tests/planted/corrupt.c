/* corrupt.c - a planted bug: one bit of a weight in a checkpoint is flipped. The checksums of weft_load must
 * find it. */
#include "../io/files.h"

static weft_module *model(weft *w)
{
    weft_module *m = weft_module_new(w, "m");
    weft_linear_new(m, "l", &(weft_linear_opts){ .in = 5, .out = 3 });
    return m;
}

/* Flips the lowest bit of each number `value` in the file. Returns their count. */
static int turn_over(const char *path, weft_real value)
{
    FILE *f = fopen(path, "r+b");
    cr_assert(f);
    unsigned char image[1 << 16];
    size_t n = fread(image, 1, sizeof image, f);
    int    times = 0;
    for (size_t i = 0; i + sizeof value <= n; i++)
        if (!memcmp(image + i, &value, sizeof value)) {
            image[i] ^= 1;
            times++;
        }
    rewind(f);
    cr_assert(fwrite(image, 1, n, f) == n && !fclose(f));
    return times;
}

Test(planted, corrupt)
{
    const char  *path = in_folder("corrupt.h5");
    weft        *w = open_on(WEFT_REF);
    weft_module *m = model(w);
    cr_assert(weft_save(path, m, NULL, NULL, 0) == WEFT_OK, "%s", weft_file_message());
    cr_assert(weft_load(path, m, NULL, NULL, 0) == WEFT_OK, "%s", weft_file_message());
    cr_assert(turn_over(path, numbers(weft_find_parameter(m, "l.weight"))[4]) > 0,
              "the weight is not in the file");
    weft_status s = weft_load(path, m, NULL, NULL, 0);
    end_folder();
    CLEAN(w);
    cr_assert(s == WEFT_OK, "load: %s: %s", weft_status_name(s), weft_file_message());
}
