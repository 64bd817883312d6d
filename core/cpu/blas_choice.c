/* blas_choice.c - uses OpenBLAS by default on a CPU without vector kernels of weft, if it is at least 1.3
 * times faster there.
 *
 * Both are timed once on a product. The result is kept in ${XDG_CACHE_HOME:-$HOME/.cache}/weft, in a file for
 * each precision and each CPU, as OpenBLAS names it. A file that cannot be read, or is of another OpenBLAS,
 * is ignored, and the product is timed again, which takes 20 milliseconds. WEFT_CACHE=off: nothing is timed,
 * and weft's kernels are used. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/inside.h"

enum { N = 192, RUNS = 5, LINE = 256, PATH = 1024 };

/* ---- the file ---- */
static bool file_of(const char *subject, char path[PATH], bool make)
{
    const char *cache = weft__variable("XDG_CACHE_HOME"), *home = weft__variable("HOME");
    bool is_xdg = cache && *cache == '/';
    if (!is_xdg && (!home || *home != '/'))
        return false;
    int n = snprintf(path, PATH, "%s%s", is_xdg ? cache : home, is_xdg ? "" : "/.cache");
    if (n < 0 || n > PATH - 64)
        return false;
    if (make)
        weft__make_folder(path);
    snprintf(path + n, 8, "/weft");
    if (make)
        weft__make_folder(path);
    snprintf(path + n + 5, 40, "/gemm-%016llx", (unsigned long long)weft__hash(0, subject));
    return true;
}

/* Returns the stored ratio of times, or 0. */
static double stored_ratio(const char *subject)
{
    char path[PATH], text[2 * LINE] = "";
    FILE *file = file_of(subject, path, false) ? fopen(path, "re") : NULL;
    if (!file)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, file), k = strlen(subject);
    fclose(file);
    text[n] = 0;
    bool fits = n > k && !memcmp(text, subject, k) && text[k] == '\n';
    double ratio = fits ? weft__plain_number(text + k, NULL) : 0;
    return ratio > 0 && ratio < 1e6 ? ratio : 0;
}

static void store_ratio(const char *subject, double ratio)
{
    char path[PATH], text[2 * LINE];
    if (!file_of(subject, path, true))
        return;
    int n = snprintf(text, sizeof text, "%s\n%d.%02d\n", subject, (int)ratio, (int)(100 * ratio) % 100);
    weft__replace_file(path, &(weft__span){ text, (size_t)n }, 1); /* a failure only means to time it again */
}

/* ---- timing ---- */
/* Returns the shortest time of a product by d's kernels, with d->blas or without. */
static double time_of(weft__device *d, const real *a, real *c)
{
    const weft__product p = { .m = N, .n = N, .k = N, .lda = N, .ldb = N, .ldc = N, .batches = 1 };
    double best = 0;
    for (int i = 0; i < RUNS; i++) {
        int64_t start = weft__now();
        d->k->gemm(d, &p, a, a, c);
        double ns = (double)(weft__now() - start);
        best = i == 0 || ns < best ? ns : best;
    }
    return best > 1 ? best : 1;
}

static double measured_ratio(weft__device *d, weft__blas_gemm *gemm)
{
    real *a = d->allocate(2 * N * N * sizeof *a, d->user);
    if (!a)
        return 0;
    for (int i = 0; i < N * N; i++)
        a[i] = (real)(i % 7 - 3);
    double own = time_of(d, a, a + N * N);
    d->blas = gemm;
    double ratio = own / time_of(d, a, a + N * N);
    d->blas = NULL;
    d->release(a, d->user);
    return ratio;
}

weft__blas_gemm *weft__faster_blas(weft__device *d)
{
    const double in_percent = 130;
    static atomic_int choice[2]; /* by precision; 0: unknown, 1: own, 2: OpenBLAS */
    const char *off = weft__variable("WEFT_CACHE");
    char name[160], subject[LINE], reason[160];
    int precision = sizeof(real) == sizeof(double), known = atomic_load(&choice[precision]);
    weft__blas_gemm *gemm = (off && !strcmp(off, "off")) || known == 1 ? NULL :
                            weft__open_blas("openblas", name, reason, sizeof reason);
    if (!gemm || known)
        return gemm;
    snprintf(subject, sizeof subject, "weft gemm 1: %s, %s, weft %s", precision ? "float64" : "float32", name,
             weft_version());
    double ratio = stored_ratio(subject);
    if (ratio <= 0 && (ratio = measured_ratio(d, gemm)) > 0)
        store_ratio(subject, ratio);
    bool faster = ratio * 100 >= in_percent;
    atomic_store(&choice[precision], faster ? 2 : 1);
    return faster ? gemm : NULL;
}
