/* test_inflate.c - tests compressed chunks of a state dict. Each form of deflate output is inflated. A stream
 * that is shorter or longer than the chunk is refused without allocating its size. */
#define ZLIB_CONST
#include <zlib.h>
#include "sets.h"
#include "tests/failing_malloc.h"

/* ---- streams ---- */
/* Deflates the bytes, several times over, in one of several ways. The caller frees the result. */
static unsigned char *deflated_times(const void *from, size_t n, int times, int k, size_t *size)
{
    z_stream z = { 0 };
    cr_assert_eq(deflateInit2(&z, k % 10, Z_DEFLATED, 9 + k % 7, 1 + k % 9, k % 5), Z_OK);
    *size = times > 1 ? n : deflateBound(&z, n);
    unsigned char *out = malloc(*size + 1);
    z.next_out = out;
    z.avail_out = (uInt)*size;
    for (; times; times--) {
        z.next_in = from;
        z.avail_in = (uInt)n;
        cr_assert_eq(deflate(&z, times > 1 ? Z_NO_FLUSH : Z_FINISH), times > 1 ? Z_OK : Z_STREAM_END);
    }
    *size = z.total_out;
    deflateEnd(&z);
    return out;
}
static unsigned char *deflated(const void *from, size_t n, int k, size_t *size)
{
    return deflated_times(from, n, 1, k, size);
}

static void fill(unsigned char *to, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(kind == 0 ? dice(256) :
                                   kind == 1 ? dice(20) ? 0 : dice(3) :
                                   kind == 2 ? (unsigned char)"the warp and the weft "[i % 22] :
                                               i > 40 && dice(9) ? to[i - 1 - dice(40)] : dice(256));
}

/* A set of n numbers, whose one chunk is this stream. */
static void stream_set(const char *path, size_t n, const void *stream, size_t size)
{
    form f = { .rank = 1, .size = { n }, .chunk = { n }, .gzip = 10, .type = H5T_IEEE_F32LE };
    hid_t file = new_file(path), set = make_set(file, "weight", &f);
    cr_assert(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){ 0 }, size, stream) >= 0);
    H5Dclose(set);
    H5Fclose(file);
}

static bool has(weft_tensor *x, const float *want)         /* NaN is NaN */
{
    weft_real *is = numbers(x);
    for (int64_t i = 0; i < weft_numel(x); i++)
        if (is[i] != (weft_real)want[i] && !(isnan(is[i]) && isnan(want[i])))
            return false;
    return true;
}

static const char not_a_chunk[] = "weight has a damaged chunk";

FILE_TEST(inflate, deflated_bytes_are_restored)
{
    const char *path = in_folder("f");
    for (int k = 0; k < rounds(60, 2000); k++) {
        size_t n = 2 + dice(k % 5 ? 1300 : 50000), size;
        float *plain = malloc((n + 1) * sizeof *plain);
        fill((unsigned char *)plain, (n + 1) * sizeof *plain, k % 4);
        small m = small_in(w, 1, (hsize_t[]){ n });
        for (size_t there = n - 1; there <= n + 1; there++) {
            unsigned char *stream = deflated(plain, there * sizeof *plain, k, &size);
            stream[size] = 0;
            stream_set(path, n, stream, size);
            if (there == n) {
                DOES(weft_load_weights(path, m.m, NULL, NULL));
                cr_assert(has(m.weight, plain), "round %d", k);
                reset(&m);
                stream_set(path, n, stream, size + 1);
                REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, not_a_chunk);
                stream_set(path, n, stream, size - 1);
            }
            REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, not_a_chunk);
            free(stream);
        }
        stays(&m);
        free(plain);
    }
}

/* Streams of one byte more or less than the chunk, wherever its numbers end, and data that is not a zlib
 * stream. */
FILE_TEST(inflate, other_streams_are_refused)
{
    enum { N = 4 };
    static const struct { const char *name; int window; bool dictionary; } other[] = {
        { "gzip", 15 + 16, false }, { "raw", -15, false }, { "a dictionary", 15, true }
    };
    const char *path = in_folder("f");
    const unsigned char plain[4 * N + 1] = { 1, 2, 3 };
    unsigned char stream[100];
    small m = small_in(w, 1, (hsize_t[]){ N });
    for (int k = 0; k < COUNT(other); k++) {
        z_stream z = { .next_in = plain, .avail_in = 4 * N, .next_out = stream, .avail_out = sizeof stream };
        cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, other[k].window, 8, Z_DEFAULT_STRATEGY), Z_OK);
        cr_assert(!other[k].dictionary || deflateSetDictionary(&z, plain, 3) == Z_OK);
        cr_assert(deflate(&z, Z_FINISH) == Z_STREAM_END && deflateEnd(&z) == Z_OK);
        stream_set(path, N, stream, z.total_out);
        REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, not_a_chunk);
    }
    for (size_t n = 4 * N - 1; n <= 4 * N + 1; n += 2) {
        size_t size;
        unsigned char *near = deflated(plain, n, 6, &size);
        stream_set(path, N, near, size);
        REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, not_a_chunk);
        free(near);
    }
    stays(&m);
}

/* Each allocation of a load fails once, including zlib's, for a good file and for a stream that is too
 * long. */
FILE_TEST(inflate, survives_failure_of_each_allocation)
{
    enum { N = 3000 };
    const char *path = in_folder("f");
    float plain[2 * N] = { 1, 2, 3 };
    small m = small_in(w, 1, (hsize_t[]){ N });
    for (int k = 0; k < 2; k++) {
        int of_zlib = 0;                         /* its tables; its window, if it stops in the midst */
        size_t size;
        unsigned char *stream = deflated(plain, (size_t)(1 + k) * sizeof plain / 2, 6, &size);
        stream_set(path, N, stream, size);
        free(stream);
        weft_status s;
        FOR_EACH_FAILURE(s, weft_load_weights(path, m.m, NULL, NULL))
        {
            cr_assert_eq(s, WEFT_ENOMEM, "allocation %ld: %s", failing.at, weft_file_message());
            of_zlib += strstr(weft_file_message(), "weight: no memory to inflate a chunk") != NULL;
            stays(&m);
        }
        cr_assert_eq(s, k ? WEFT_EFORMAT : WEFT_OK, "%s", weft_file_message());
        nothing_is_open();
        cr_assert_eq(of_zlib, COUNTED ? 1 + k : 0, "%d", of_zlib);
        reset(&m);
    }
}

/* ---- more than it says ---- */
/* The one chunk of a set is a stream of `times` MiB of zeros. */
enum { BOMB = 1 << 16 };
static void bomb(const char *path, int times)
{
    static const unsigned char zeros[1 << 20];
    size_t size;
    unsigned char *stream = deflated_times(zeros, sizeof zeros, times, 6, &size);
    stream_set(path, BOMB, stream, size);
    free(stream);
}

FILE_TEST(inflate, bomb_takes_no_memory)
{
    const char *path = in_folder("f");
    bomb(path, 400);
    small m = small_in(w, 1, (hsize_t[]){ BOMB });
    long before = most_resident();
    REFUSES(weft_load_weights(path, m.m, NULL, NULL), WEFT_EFORMAT, "weight has a damaged chunk");
    cr_assert(most_resident() - before < 40 << 10, "%ld MiB", (most_resident() - before) >> 10);
    stays(&m);
}
