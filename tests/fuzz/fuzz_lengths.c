/* fuzz_lengths.c - fuzzes lengths of any integer type in a valid file. They are accepted if and only if they
 * match the tokens. Then a loader returns each sequence once, and a packed batch returns the tokens. Input:
 * type, numbers. */
#include "weft_op.h"
#include "fuzz.h"

enum { LENGTHS = 64, TOKENS = 1024 };
typedef struct { hid_t type; size_t bytes; int64_t len[LENGTHS], tokens; int n; bool good; } needed;

static needed want_of(const uint8_t *data, size_t size)
{
    needed k = { .type = data[0] % 3 == 0 ? H5T_STD_I32LE :
                         data[0] % 3 == 1 ? H5T_STD_I64LE :
                                            H5T_STD_U8LE,
                 .good = true };
    k.bytes = H5Tget_size(k.type);
    for (size_t at = 1; at + k.bytes <= size && k.n < LENGTHS; at += k.bytes, k.n++) {
        int32_t i;
        int64_t *to = &k.len[k.n];
        memcpy(k.bytes == 4 ? (void *)&i : (void *)to, data + at, k.bytes);
        *to = k.bytes == 4 ? i : k.bytes == 1 ? data[at] : *to;
        k.good = k.good && *to >= 0 && *to <= TOKENS && (k.tokens += *to) <= TOKENS;
    }
    if (!k.good || data[0] & 64)                 /* or a count that differs from the lengths */ {
        k.tokens = data[0];
        k.good = false;
    }
    int64_t sum = 0;
    for (int i = 0; i < k.n && sum <= TOKENS; i++)
        sum = k.len[i] < 0 || k.len[i] > TOKENS ? TOKENS + 1 : sum + k.len[i];
    k.good = sum == k.tokens;
    return k;
}

static void add_set(hid_t file, const char *name, hid_t type, hsize_t n, hid_t memory, const void *values)
{
    hid_t space = H5Screate_simple(1, &n, NULL),
          set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (set < 0 || (n && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0))
        fuzz_found("trouble", "%s cannot be written", name);
    H5Dclose(set), H5Sclose(space);
}

static uint8_t *image_of(const needed *k, size_t *n)
{
    static int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i;
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(list, 4096, 0);
    hid_t file = H5Fcreate("image", H5F_ACC_TRUNC, H5P_DEFAULT, list);
    add_set(file, "lengths", k->type, (hsize_t)k->n, H5T_NATIVE_INT64, k->len);
    add_set(file, "tokens", H5T_STD_I32LE, (hsize_t)k->tokens, H5T_NATIVE_INT32, tokens);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    *n = (size_t)H5Fget_file_image(file, NULL, 0);
    uint8_t *image = malloc(*n);
    H5Fget_file_image(file, image, *n);
    H5Fclose(file), H5Pclose(list);
    return image;
}

/* Runs two epochs. Each has every sequence once; only a single sequence may exceed a batch's limit. */
static void deal(weft *w, const weft_dataset *d, int options)
{
    weft_loader_opts o = { .count = 1 + options % 5,
                           .tokens = options & 32 ? 20 : 0,
                           .keep_order = options & 16 };
    weft_loader *l = weft_loader_new(w, "l", d->n, d->len, &o);
    for (int epoch = 0; l && epoch < 2; epoch++) {
        int seen[LENGTHS] = { 0 };
        int64_t size, dealt = 0;
        for (const int32_t *at; (at = weft_loader_next(l, &size)); dealt += size) {
            int64_t tokens = 0;
            for (int64_t i = 0; i < size; i++) {
                SAME(at[i] >= 0 && at[i] < d->n && !seen[at[i]]++, "sequence %d comes twice", at[i]);
                tokens += d->len[at[i]];
            }
            SAME(size >= 1 && size <= o.count && (!o.tokens || size == 1 || tokens <= o.tokens),
                 "a batch of %lld sequences", (long long)size);
        }
        SAME(dealt == d->n, "%lld of %lld sequences", (long long)dealt, (long long)d->n);
    }
}

static void pack(weft *w, const weft_dataset *d)
{
    int32_t back[TOKENS + 1];
    weft_tensor *x = weft_ragged_ints(w, d->ints, &(weft_lengths){ .n = d->n, .len = d->len });
    x = weft_to_layout(weft_to_layout(x, WEFT_PACKED), WEFT_CONCAT);
    size_t bytes = (size_t)d->offset[d->n] * sizeof *back;
    SAME(weft_ok(w) && weft_numel(x) == d->offset[d->n], "%s", weft_error_message(w));
    weft_read(x, back, bytes);
    SAME(weft_ok(w), "%s", weft_error_message(w));
    SAME(!memcmp(back, d->ints, bytes), "tokens came back in another order");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    if (!size)
        return 0;
    needed k = want_of(data, size);
    uint8_t *image = image_of(&k, &n);
    const char *path = fuzz_file(image, n);
    free(image);
    weft_dataset d;
    fuzz_watch(n);
    weft_status s = weft_read_hdf5(path, NULL, &d);
    fuzz_watched(s);
    SAME(!s == k.good, "lengths that are %s: %s", k.good ? "good" : "wrong", weft_file_message());
    if (s)
        return 0;
    SAME(d.n == k.n && d.offset[d.n] == k.tokens, "%lld sequences of %lld tokens", (long long)d.n,
         (long long)d.offset[d.n]);
    for (int64_t i = 0; i < d.n; i++)
        SAME(d.len[i] == k.len[i], "length %lld is %d", (long long)i, d.len[i]);
    weft *w = weft_open(&(weft_opts){ .device = WEFT_REF, .threads = 1, .seed = 1 });
    deal(w, &d, data[0]);
    pack(w, &d);
    SAME(weft_ok(w), "%s", weft_error_message(w));
    weft_close(w);
    weft_dataset_free(&d);
    return 0;
}
