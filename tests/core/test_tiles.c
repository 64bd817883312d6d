/* test_tiles.c - tests matrix products on tiles, real and emulated. Their bits equal a plain loop with a
 * fixed order of summation. Packed weights change no bit. Infinity, NaN and large numbers give the same
 * results as fp32. */
#include "kernel_run.h"

#ifndef WEFT_DOUBLE
static const weft__kernels *table_named(const char *name)
{
    char why[320];
    if (!table_is_here(name))
        return NULL;
    setenv("WEFT_ISA", name, 1);
    const weft__kernels *k = weft__cpu_kernels(WEFT_CPU, WEFT_BF16, why, sizeof why);
    unsetenv("WEFT_ISA");
    cr_assert_not_null(k, "%s", why);
    return k;
}
/* t is a run on each table with tiles. */
#define ON_TILES(t)                                         \
    for (int tiles_i = 0; tiles_i < TILE_TABLES; tiles_i++) \
        for (run *t = tiles_run(tiles_i); t; run_end(t), t = NULL)
static run *tiles_run(int i)
{
    const weft__kernels *k = table_named(tile_table(i));
    return k ? run_on(k, 2) : NULL;
}

/* ---- the specification ---- */
static float float_of(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
static uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, sizeof bits); return bits; }
static float nearest(float x)                    /* nearest bf16 number */
{
    return isnan(x) ? x : float_of((bits_of(x) + 0x7FFF + (bits_of(x) >> 16 & 1)) & 0xFFFF0000u);
}
static float cut_off(float x) { return float_of(bits_of(x) & 0xFFFF0000u); }
static void parts_of(int parts, bool left, float x, float part[2])
{
    part[0] = left && parts == 2 ? cut_off(x) : nearest(x);
    part[1] = nearest(x - part[0]);
}
static float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
/* elements of a are `column` apart, elements of b `row` */
typedef struct { const float *a, *b; int64_t row, column, k; } dot;
/* the arithmetic of ARM's bfmmla, which rounds to odd: an inexact result gets the last bit 1 */
static float odd_sum(float a, float b)
{
    volatile double s = (double)a + (double)b, of_b = s - (double)a, of_a = s - of_b,
                    rest = (double)a - of_a + ((double)b - of_b);
    uint64_t last;
    double d = s;
    memcpy(&last, &d, sizeof last);
    if (rest != 0 && !(last & 1))
        d = nextafter(d, rest > 0 ? (double)INFINITY : -(double)INFINITY);
    float f = (float)d;
    if (!isfinite(f) || (double)f == d)
        return flush(f);
    if (fabs((double)f) > fabs(d))
        f = nextafterf(f, 0);
    return flush(float_of(bits_of(f) | 1));
}
static float of_bfmmla(float sum, const dot *d, int64_t from)
{
    for (int64_t i = from; i < from + 16; i++) {
        float product[2] = { 0, 0 };
        for (int64_t k = i; k <= i + 16; k += 16)
            if (k < d->k)
                product[k != i] =
                    flush(flush(nearest(d->a[k * d->column])) * flush(nearest(d->b[k * d->row])));
        sum = odd_sum(sum, odd_sum(product[0], product[1]));
    }
    return sum;
}
static bool by_bfmmla;
static float of_tile(float sum, const dot *d, int64_t from, int parts, int u, int v)
{
    if (by_bfmmla)
        return of_bfmmla(sum, d, from);
    float chain[2] = { 0, 0 };
    for (int64_t i = 0; i < 32 && from + i < d->k; i++) {
        float x[2], y[2], *c = &chain[i / 16];
        parts_of(parts, true, d->a[(from + i) * d->column], x),
            parts_of(parts, false, d->b[(from + i) * d->row], y);
        *c = flush(fmaf(flush(x[u]), flush(y[v]), *c));
    }
    return flush(flush(sum) + flush(chain[0] + chain[1]));
}
static float of_run(const dot *d, int64_t from, int parts)
{
    static const struct { int n, u[3], v[3];
    } order[] = { { 0 }, { 1, { 0 }, { 0 } }, { 3, { 1, 0, 0 }, { 0, 0, 1 } } };
    float sum = 0, again = 0;
    for (int64_t k = from; k < d->k && k < from + 512; k += 32)
        for (int i = 0; i < order[parts].n; i++)
            sum = of_tile(sum, d, k, parts, order[parts].u[i], order[parts].v[i]);
    for (int64_t k = from; k < d->k && k < from + 512; k++) {
        float x = flush(d->a[k * d->column]), y = flush(d->b[k * d->row]);
        again = parts == 1 ? fmaf(nearest(x), nearest(y), again) : fmaf(x, y, again);
    }
    return isfinite(sum) ? sum : again;
}
static void specified(const weft__product *p, int parts, const float *a, const float *b, float *c)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            dot d = { a + (p->ta ? i : i * p->lda), b + (p->tb ? j * p->ldb : j), p->tb ? 1 : p->ldb,
                      p->ta ? p->lda : 1, p->k };
            float *to = c + i * p->ldc + j;
            for (int64_t k = 0; k < p->k; k += 512)
                *to = k || p->add ? *to + of_run(&d, k, parts) : of_run(&d, k, parts);
        }
}

/* ---- products ---- */
static const struct { weft_precision mode; int parts; } modes[] = { { WEFT_TF32, 2 }, { WEFT_BF16, 1 } };
/* Returns whether tiles are used, which the shape of the weights decides. */
static bool on_tiles(const weft__product *p)
{
    const int64_t other = p->ta ? p->m : p->k;
    return p->precision == WEFT_TF32 ? p->back && p->n >= 128 && other >= 128 && p->n * other >= 32768 &&
                                           p->n <= 4 * other :
           p->back                   ? p->n >= 32 && other >= 32 && p->n <= 4 * other :
                                       p->n >= 128 && other >= 128;
}
static weft__product product_of(int way, int64_t m, int64_t n, int64_t k)
{
    weft__product p = dense_product(way, m, n, k);
    p.lda += size(3);
    p.ldb += size(3);
    p.ldc += size(3);
    return p;
}
static int64_t size_a(const weft__product *p) { return (p->ta ? p->k : p->m) * p->lda; }
static int64_t size_b(const weft__product *p) { return (p->tb ? p->n : p->k) * p->ldb; }
static int64_t size_c(const weft__product *p) { return p->m * p->ldc; }
/* any two NaN are equal */
static void same_floats(const char *name, const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        cr_assert(bits_of(got[i]) == bits_of(want[i]) || (isnan(got[i]) && isnan(want[i])),
                  "%s: at %lld of %lld: %a, expected %a", name, (long long)i, (long long)n, (double)got[i],
                  (double)want[i]);
}
/* m, n, k: whole tiles, every kind of edge, more than a run, few rows, many rows */
static const int64_t shapes[][3] = {
    { 32, 32, 32 },  { 33, 65, 40 },  { 1, 32, 33 },    { 16, 96, 512 },
    { 47, 49, 530 }, { 300, 35, 64 }, { 64, 33, 1100 }, { 5, 130, 32 },
    { 1, 128, 128 }, { 9, 131, 530 }, { 140, 240, 33 }, { 3, 240, 140 },
};
/* Fills x with numbers of all sizes: 1, within 2^40 of it, random bits, near the smallest and the largest
 * number. */
static void wild(float *x, int64_t n, int kind)
{
    for (int64_t i = 0; i < n; i++) {
        float u = dice_real(-1, 1);
        x[i] = kind == 0 ? u :
               kind == 1 ? ldexpf(u, (int)dice(40) - 20) :
               kind == 2 ? u * 1e-19f :
                           float_of((uint32_t)dice(0x7F000000u));
        if (kind == 4 && dice(50) == 0)
            x[i] = (float[]){ INFINITY,
                              -INFINITY,
                              NAN,
                              3.4e38f,
                              -3.4e38f,
                              1e-40f,
                              float_of(0x7F800001),
                              float_of(0x7FFFFFFF) }[dice(8)];
        else if (kind == 4)
            x[i] = u;
    }
}
static void is_specified(run *t, int64_t m, int64_t n, int64_t k, int way, int kind)
{
    weft__product p = product_of(way, m, n, k);
    float *a = reals(t, size_a(&p), -1, 1), *b = reals(t, size_b(&p), -1, 1),
          *c = reals(t, size_c(&p), -1, 1), *want = room(t, size_c(&p), sizeof *want);
    wild(a, size_a(&p), kind), wild(b, size_b(&p), kind);
    by_bfmmla = !strcmp(t->k->name, "neon-bf16");
    int i = by_bfmmla ? 1 : (int)dice(COUNT(modes));
    p.precision = modes[i].mode, p.back = p.precision == WEFT_TF32 || coin();
    memcpy(want, c, (size_t)size_c(&p) * sizeof *c);
    if (on_tiles(&p)) {
        t->k->gemm(&t->d, &p, a, b, c);
        specified(&p, modes[i].parts, a, b, want);
    }
    char text[99];
    snprintf(text, sizeof text, "%s, %d parts, %lld x %lld x %lld, way %d, numbers %d", t->k->name,
             modes[i].parts, (long long)m, (long long)n, (long long)k, way, kind);
    same_floats(text, c, want, size_c(&p));
    forget(t);
}
Test(tiles, products_follow_the_documented_summation_order)
{
    ON_TILES(t)
        for (int i = 0; i < COUNT(shapes); i++)
            for (int j = 0; j < 5 * rounds(2, 8); j++)
                is_specified(t, shapes[i][0], shapes[i][1], shapes[i][2], (int)dice(8), j % 5);
}

/* ---- other tables, special numbers ---- */
/* Compares the products of two tables. */
static bool alike(run *t, const weft__kernels *other, const weft__product *p)
{
    const size_t n = (size_t)(size_c(p) * p->batches);
    float *a = reals(t, size_a(p) * p->batches, -1, 1), *b = reals(t, size_b(p) * p->batches, -1, 1),
          *c = room(t, (int64_t)n, sizeof *c), *d = room(t, (int64_t)n, sizeof *d);
    t->k->gemm(&t->d, p, a, b, c), other->gemm(&t->d, p, a, b, d);
    bool same = !memcmp(c, d, n * sizeof *c);
    forget(t);
    return same;
}
/* Products of tokens in WEFT_TF32, narrow ones, and those without weights do not use tiles. */
Test(tiles, other_products_have_the_bits_of_vector_kernels)
{
    const weft__kernels *vectors[] = { table_named("avx512"), table_named("avx2"), table_named("neon") };
    ON_TILES(t) {
        if (!vectors[tiles_i])
            continue;
        weft__product p = product_of(0, 40, 260, 160);
        p.precision = WEFT_TF32;
        cr_assert(alike(t, vectors[tiles_i], &p), "TF32, no gradient");
        p.back = true;
        cr_assert(tiles_i >= TF32_TABLES || !alike(t, vectors[tiles_i], &p),
                  "a gradient on tiles has an order of its own");
        p.batches = 3, p.stride_a = size_a(&p), p.stride_b = size_b(&p), p.stride_c = size_c(&p);
        cr_assert(alike(t, vectors[tiles_i], &p), "a batch");
        for (int i = 0; i < 200; i++) {
            p = product_of((int)dice(4), 1 + size(200), 1 + size(300), 1 + size(200));
            p.precision = coin() ? WEFT_BF16 : WEFT_TF32, p.back = coin();
            cr_assert(on_tiles(&p) || alike(t, vectors[tiles_i], &p), "%lld x %lld x %lld", (long long)p.m,
                      (long long)p.n, (long long)p.k);
        }
    }
}
/* Cached packed weights change no bit, on tiles and, rounded, on vectors. */
static void is_kept(run *t, int64_t m, int64_t n, int64_t k)
{
    weft__product p = product_of(2, m, n, k);
    p.ldb = k, p.precision = WEFT_BF16;
    float *a = reals(t, size_a(&p), -1, 1), *b = reals(t, size_b(&p), -1, 1),
          *c = room(t, size_c(&p), sizeof *c), *d = room(t, size_c(&p), sizeof *d);
    t->k->gemm(&t->d, &p, a, b, c);
    size_t bytes = t->k->gemm_packs(&t->d, &p);
    cr_assert(bytes, "%lld x %lld x %lld is not cached", (long long)m, (long long)n, (long long)k);
    void *kept = room(t, (int64_t)bytes, 1);
    t->k->gemm_pack(&t->d, &p, b, kept);
    memset(b, 0, (size_t)size_b(&p) * sizeof *b);            /* only the packed copy is read */
    p.packed = kept;
    t->k->gemm(&t->d, &p, a, b, d);
    same_floats(t->k->name, d, c, size_c(&p));
    forget(t);
}
Test(tiles, bf16_weights_stay_packed)
{
    static const char *const names[] = { "amx", "amx-emulated", "neon-bf16", "avx512", "avx2", "generic" };
    for (int i = 0; i < COUNT(names); i++) {
        const weft__kernels *k = table_named(names[i]);
        run *t = k ? run_on(k, 2) : NULL;
        for (int j = 0; t && j < 4 * COUNT(shapes); j++)
            is_kept(t, (int64_t[]){ 1, 3, 8, 40 }[j % 4], shapes[j / 4][1], shapes[j / 4][2]);
        if (t)
            run_end(t);
    }
}
/* One row contains NaN, infinity or huge numbers. It gives the result of fp32, and the other rows are
 * unchanged. */
static void odd_row(run *t, const weft__kernels *plain, const weft__product *p, float odd)
{
    float *a = reals(t, size_a(p), -1, 1), *b = reals(t, size_b(p), -1, 1),
          *c = room(t, size_c(p), sizeof *c), *d = room(t, size_c(p), sizeof *d);
    int64_t row = size(p->m);
    t->k->gemm(&t->d, p, a, b, c);
    /* several large terms overflow in one order, but not in another */
    for (int i = 0; i < (isfinite(odd) ? 1 : 3); i++) {
        int64_t at = size(p->k);
        a[p->ta ? at * p->lda + row : row * p->lda + at] = odd;
    }
    t->k->gemm(&t->d, p, a, b, d);
    for (int64_t i = 0; i < p->m; i++)
        if (i != row)
            same_bits("a neighbour", d + i * p->ldc, c + i * p->ldc, p->n);
    memset(c, 0, (size_t)size_c(p) * sizeof *c);
    plain->gemm(&t->d, p, a, b, c);
    for (int64_t j = 0; j < p->n; j++) {
        float x = d[row * p->ldc + j], y = c[row * p->ldc + j];
        bool same = isfinite(y) ? fabsf(x - y) <= 3e-5f * fabsf(odd) : isnan(y) ? isnan(x) : x == y;
        cr_assert(same, "column %lld of a row with %a: %a, plain loops give %a", (long long)j, (double)odd,
                  (double)x, (double)y);
    }
    forget(t);
}
Test(tiles, non_finite_numbers_give_the_fp32_result_in_their_row)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, 3.4028234e38f, -3.4028234e38f, 1e38f };
    ON_TILES(t)
        for (int i = 0; i < COUNT(odd); i++)
            for (int j = 0; j < COUNT(shapes); j++) {
                weft__product p = product_of((int)dice(4), shapes[j][0], shapes[j][1], shapes[j][2]);
                p.precision = coin() ? WEFT_BF16 : WEFT_TF32, p.back = true;
                odd_row(t, &weft__ref, &p, odd[i]);
            }
}
#else
Test(tiles, double_library_has_no_tiles)
{
    char why[320];
    setenv("WEFT_ISA", "amx", 1);
    cr_assert(!weft__cpu_kernels(WEFT_CPU, WEFT_BF16, why, sizeof why) && strstr(why, "float"), "%s", why);
}
#endif
