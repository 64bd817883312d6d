/* test_kernel_bits.c - tests properties of kernels other than values. A row has the same bits in every batch.
 * Masks come from the published generator. An index out of range is reported and not read. OpenBLAS gives the
 * products. WEFT_ISA selects a table or is refused. */
#include "kernel_run.h"
#include "core/shared/philox.h"

/* Copies pieces of any width to positions of other layouts. -0 stays -0. */
RUN_TEST(bits, copies_keep_negative_zero)
{
    enum { N = 21, ROWS = 3, W = N / ROWS };
    const weft__grid across = { 2, { ROWS, W }, { { 1, ROWS } } },
                     same = { 1, { N }, { { 1 }, { 1 }, { 1 } } };
    const weft__segments runs = { .offset = NULL, .length = ROWS, .count = 1, .inner = W };
    real *x = room(t, N, sizeof *x), *y = room(t, N, sizeof *y), *one = room(t, N, sizeof *one);
    int32_t *row = room(t, N, sizeof *row);
    const weft__kernels *k = t->k;
    for (int i = 0; i < N; i++)
        x[i] = -(real)0, one[i] = 1, row[i] = i % ROWS;
    for (int way = 0; way < 8; way++) {
        int64_t n = way == 7 ? ROWS : N;
        for (int i = 0; i < N; i++)
            y[i] = 1;
        switch (way) {
        case 0: k->gather(&t->d, ROWS, W, ROWS, x, row, 1, y, false); break;
        case 1: k->blocks(&t->d, 1, &(weft__block_copy){ ROWS, W, x, W, y, W, false, NULL, NULL }); break;
        case 2: k->spread(&t->d, &across, x, y, false); break;
        case 3: k->segment_spread(&t->d, &runs, x, y, false); break;
        case 4: k->flip(&t->d, &runs, x, y, false); break;
        case 5: k->select(&t->d, &same, one, x, one, y, false); break;
        case 6: k->scale(&t->d, N, 1, x, y, false); break;
        default: k->segment_pick(&t->d, &(weft__segments){ ROWS, W, 1, NULL }, x, row, y, false);
        }
        for (int64_t i = 0; i < n; i++)
            cr_assert(y[i] == 0 && signbit(y[i]), "%s: way %d, number %d is %g", k->name, way, (int)i,
                      (double)y[i]);
    }
}

/* ---- random numbers ---- */
Test(bits, philox_matches_the_published_vectors)
{
    /* from Random123's kat_vectors */
    static const struct { uint64_t key; uint32_t counter[4], out[4]; } known[] = {
        { 0, { 0, 0, 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { ~(uint64_t)0, { ~0u, ~0u, ~0u, ~0u }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { 0x299f31d0a4093822u, { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
            { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (int i = 0; i < COUNT(known); i++) {
        uint32_t out[4];
        weft__philox(known[i].key, known[i].counter, out);
        cr_assert_arr_eq(out, known[i].out, sizeof out);
    }
}
Test(bits, streams_and_masks_use_documented_counters)
{
    uint32_t counter[4] = { 5, 2, 0, 0 }, out[4];
    weft__philox(77, counter, out);
    uint64_t n = ((uint64_t)2 << 33) + 10;       /* counter n / 2, its two halves */
    cr_assert_eq(weft__philox_draw(77, n), out[0] | (uint64_t)out[1] << 32);
    cr_assert_eq(weft__philox_draw(77, n + 1), out[2] | (uint64_t)out[3] << 32);
    for (uint32_t j = 0; j < 300; j++) {         /* The token (id, position) is in words 2, 3 and 1. */
        uint32_t mask[4] = { j / 64 * 8 + j % 8, 7, 0x89abcdef, 0x01234567 };
        weft__philox(77, mask, out);
        cr_assert_eq(weft__philox_mask(77, 0x0123456789abcdef, 7, j),
                     out[j / 16 % 4] >> (j / 8 % 2 ? 16 : 0) & 0xFFFF);
    }
    cr_assert(weft__threshold(0) == 0 && weft__threshold(.25) == 16384 && weft__threshold(1) == 65536);
    cr_assert(weft__unit(~0u) < 1 && weft__uniform(~(uint64_t)0) < 1 && weft__uniform_float(~(uint64_t)0) < 1
        && weft__unit(255) == 0);
}
RUN_TEST(bits, dropout_is_a_function_of_id_position_and_column)
{
    enum { W = 131, ROWS = 300 };            /* split between two threads */
    int64_t id[ROWS];
    int32_t position[ROWS];
    real *x = room(t, ROWS * W, sizeof *x), *y = room(t, ROWS * W, sizeof *y),
         *row = room(t, W, sizeof *row);
    int64_t kept = 0;
    for (int r = 0; r < ROWS; r++)
        id[r] = ((int64_t)r << 33) + 5, position[r] = r * 3;
    t->k->fill(&t->d, ROWS * W, 1, x);
    t->k->dropout(&t->d, ROWS, W, (real).25, 99, id, position, x, y, false);
    for (int r = 0; r < ROWS; r++) {
        t->k->dropout(&t->d, 1, W, (real).25, 99, id + r, position + r, x, row, false);
        same_bits("a row alone", row, y + r * W, W);
        for (int j = 0; j < W; j++) {
            cr_assert((y[r * W + j] != 0) == (weft__philox_mask(99, id[r], position[r], j) >= 16384));
            kept += y[r * W + j] != 0;
        }
    }
    cr_assert(fabs((double)kept / (ROWS * W) - .75) < .01);
}

/* ---- independence of the batch ---- */
static void rows_alone(run *t, int64_t rows, int64_t width)
{
    real *x = reals(t, rows * width, -3, 3), *mask = some_zeros(reals(t, rows * width, .5, 1), rows * width),
        *y = room(t, rows * width, sizeof *y);
    real *one = room(t, width, sizeof *one), *gain = reals(t, width, .5, 2),
         *mean = room(t, rows, sizeof *mean), *rstd = room(t, rows, sizeof *rstd), a, b;
    weft__segments all = { rows, width, 1, NULL }, alone = { 1, width, 1, NULL };
    for (int kind = WEFT__SOFTMAX; kind <= WEFT__LOG_SOFTMAX; kind++) {
        t->k->softmax(&t->d, &all, kind, mask, x, y);
        for (int64_t r = 0; r < rows; r++) {
            t->k->softmax(&t->d, &alone, kind, mask + r * width, x + r * width, one);
            same_bits("a softmax alone", one, y + r * width, width);
        }
    }
    weft__layer_norm n = { .rows = rows,
                           .width = width,
                           .groups = 1,
                           .eps = (real)1e-5,
                           .x = x,
                           .gain = gain,
                           .shift = gain,
                           .y = y,
                           .mean = mean,
                           .rstd = rstd };
    t->k->layer_norm(&t->d, &n);
    for (int64_t r = 0; r < rows; r++) {
        n.rows = 1, n.x = x + r * width, n.y = one, n.mean = &a, n.rstd = &b;
        t->k->layer_norm(&t->d, &n);
        same_bits("a layer norm alone", one, y + r * width, width);
        cr_assert(a == mean[r] && b == rstd[r]);
    }
    int32_t *class_ = indices(t, rows, 0, width);
    weft__entropy e = { .rows = rows, .classes = width, .smoothing = (real).1 },
        single = { .rows = 1, .classes = width, .smoothing = (real).1 };
    t->k->entropy(&t->d, &e, x, class_, mean);
    for (int64_t r = 0; r < rows; r++) {
        t->k->entropy(&t->d, &single, x + r * width, class_ + r, &a);
        same_bits("a loss alone", &a, mean + r, 1);
    }
}
RUN_TEST(bits, a_row_does_not_depend_on_its_batch)
{
    static const int64_t shapes[][2] = { { 3, 1 }, { 40, 7 }, { 500, 40 }, { 100, 333 } };
    for (int i = 0; i < COUNT(shapes); i++)
        rows_alone(t, shapes[i][0], shapes[i][1]);
}

/* Takes some of n from `at` on and returns their number. If fewer than `least` remain, it includes earlier
 * ones again. */
static int64_t some_of(int64_t *at, int64_t n, int64_t least)
{
    int64_t some = least + size(30);
    some = some < n ? some : n;
    *at = *at + some < n ? *at : n - some;
    return some;
}
/* An extent of the weights may change how a product is computed if it is below 32, and on a GPU always. The
 * number of tokens must not. */
static bool on_gpu(const run *t) { return !strcmp(t->k->name, "cuda"); }
static void products_of_parts(run *t, bool ta, bool tb, int64_t m, int64_t n, int64_t k)
{
    weft__product p = dense_product(ta + 2 * tb, m, n, k);
    real *a = reals(t, m * k, -1, 1), *b = reals(t, k * n, -1, 1), *c = room(t, m * n, sizeof *c),
        *part = room(t, m * n, sizeof *part);
    t->k->gemm(&t->d, &p, a, b, c);
    for (int64_t i = 0, rows; i < m; i += rows) {                 /* some rows of a per call */
        rows = some_of(&i, m, ta ? 32 : 1);
        weft__product q = p;
        q.m = rows;
        t->k->gemm(&t->d, &q, a + (ta ? i : i * k), b, part + i * n);
    }
    same_bits("rows apart", part, c, m * n);
    for (int64_t j = 0, some; j < n && !on_gpu(t); j += some) {   /* some columns of b per call */
        some = some_of(&j, n, 32);
        weft__product q = p;
        q.n = some;
        t->k->gemm(&t->d, &q, a, b + (tb ? j * k : j), part + j);
    }
    if (!on_gpu(t))
        same_bits("columns apart", part, c, m * n);
    forget(t);
}
static void products_of_neighbours(void)
{
    static const int64_t shapes[][3] = {
        { 1, 1, 5 }, { 7, 40, 33 }, { 97, 3, 300 }, { 130, 70, 270 }, { 260, 96, 520 }
    };
    ON_EVERY_TABLE(t)
        for (int i = 0; i < COUNT(shapes); i++)
            for (int way = 0; way < 4; way++)
                if (!on_gpu(t) || !(way & 1))
                    products_of_parts(t, way & 1, way & 2, shapes[i][0], shapes[i][1], shapes[i][2]);
}
Test(bits, a_product_does_not_depend_on_its_batch) { products_of_neighbours(); }
/* cuBLAS may refuse some numbers of rows. */
Test(bits, a_padded_product_does_not_depend_on_its_batch)
{
    setenv("WEFT_EMU_BLAS", "rows", 1);
    products_of_neighbours();
}

/* A product that gathers windows has the bits of the product of their copies. */
static void product_of_windows(run *t, bool of_weight, int64_t rows, int64_t columns, int64_t width,
                               int64_t m)
{
    enum { FROM = 50 };
    const int64_t k = width * columns;
    const weft__gathered g = { indices(t, rows * width, -1, FROM), width, columns };
    weft__product p = of_weight ? dense_product(1, m, k, rows) : dense_product(2, rows, m, k);
    real *x = reals(t, FROM * columns, -1, 1), *other = reals(t, (of_weight ? rows : k) * m, -1, 1),
         *copy = room(t, rows * k, sizeof *copy), *y = room(t, p.m * p.n, sizeof *y),
         *of_copy = room(t, p.m * p.n, sizeof *of_copy);
    t->k->gather(&t->d, rows * width, columns, FROM, x, g.index, 0, copy, false);
    t->k->gemm(&t->d, &p, of_weight ? other : copy, of_weight ? copy : other, of_copy);
    p.gathered = &g;
    cr_assert(t->k->gemm_gathers(&t->d, &p) || on_gpu(t) || !strcmp(t->k->name, "ref"));
    if (t->k->gemm_gathers(&t->d, &p)) {
        t->k->gemm(&t->d, &p, of_weight ? other : x, of_weight ? x : other, y);
        same_bits("windows", y, of_copy, p.m * p.n);
    }
    forget(t);
}
Test(bits, a_product_of_windows_is_that_of_their_copies)
{
    static const int64_t shapes[][4] = {
        { 1, 3, 2, 5 }, { 37, 64, 3, 40 }, { 700, 100, 3, 70 }, { 2051, 17, 3, 33 }, { 2100, 200, 4, 200 }
    };
    ON_EVERY_TABLE(t)
        for (int i = 0; i < 2 * COUNT(shapes); i++) {
            const int64_t *s = shapes[i / 2];
            product_of_windows(t, i % 2, s[0], s[1], s[2], s[3]);
        }
}

/* ---- faults, OpenBLAS, tiers ---- */
RUN_TEST(bits, the_first_index_out_of_range_is_reported)
{
    static const int32_t index[] = { 0, -1, 7, 5, 9 };
    real x[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, y[10];
    t->k->gather(&t->d, 5, 2, 5, x, index, -3, y, false);
    cr_assert(t->d.fault.is && t->d.fault.row == 2 && t->d.fault.value == 7 && t->d.fault.below == 5);
    close_to("bad rows are filled", y, ((real[]){ 1, 2, -3, -3, -3, -3, -3, -3, -3, -3 }), 10, 0);
    t->d.fault = (weft__fault){ 0 };
    t->k->gather(&t->d, 2, 2, 5, x, index, -3, y, false);
    cr_assert(!t->d.fault.is, "-1 must be accepted");
    t->k->gather(&t->d, 1, 2, 5, x, (int32_t[]){ -2 }, -3, y, false);
    cr_assert(t->d.fault.is && t->d.fault.value == -2, "-2 is one");
    t->d.fault = (weft__fault){ 0 };
    t->k->entropy(&t->d, &(weft__entropy){ .rows = 1, .classes = 2 }, x, index + 1, y);
    cr_assert(t->d.fault.is && t->d.fault.value == -1 && y[0] == 0, "-1 must be a fault");
}
/* OpenBLAS gives the same products as the library's kernels, two in a batch. */
static void products_by_blas(void)
{
    static const int64_t shapes[][3] = { { 300, 70, 90 }, { 1, 1, 1 },     { 7, 513, 3 },
                                         { 64, 1, 1000 }, { 1, 130, 257 }, { 33, 40, 65 } };
    char why[320];
    ON_EVERY_TABLE(t)
        for (int i = 0; i < 8 * COUNT(shapes); i++, forget(t)) {
            const int64_t m = shapes[i / 8][0], n = shapes[i / 8][1], k = shapes[i / 8][2];
            weft__product p = dense_product(i % 8, m, n, k);
            p.batches = 2, p.stride_a = m * k, p.stride_b = k * n, p.stride_c = m * n;
            real *a = reals(t, 2 * m * k, -1, 1), *b = reals(t, 2 * k * n, -1, 1),
                 *c = reals(t, 2 * m * n, -1, 1), *want = room(t, 2 * m * n, sizeof *want);
            memcpy(want, c, (size_t)(2 * m * n) * sizeof *c);
            t->d.blas = NULL;
            t->k->gemm(&t->d, &p, a, b, want);
            t->d.blas = weft__blas(WEFT_DEFAULT_GEMM, why, sizeof why);
            t->k->gemm(&t->d, &p, a, b, c);
            close_to("OpenBLAS", c, want, 2 * m * n, TOL(4e-15, 1e-6) * sqrt((double)k + 4));
        }
}
static bool opens(weft_gemm wanted, const char *text)
{
    char why[320];
    bool is = weft__blas(wanted, why, sizeof why);
    cr_assert(*text ? strstr(why, text) != NULL : !*why, "%s", why);
    return is;
}
Test(bits, openblas_matches_the_kernels)
{
    setenv("WEFT_GEMM", "openblas", 1);
    cr_assert(opens(WEFT_DEFAULT_GEMM, ""));
    products_by_blas();
}
Test(bits, missing_blas_falls_back_or_fails)
{
    setenv("WEFT_GEMM", "own", 1);
    cr_assert(!opens(WEFT_OPENBLAS_GEMM, ""));
    setenv("WEFT_GEMM", "/nowhere/libopenblas.so", 1);
    cr_assert(!opens(WEFT_DEFAULT_GEMM, "WEFT_GEMM=/nowhere"));
}
Test(bits, options_select_the_product_implementation)
{
    unsetenv("WEFT_GEMM");
    cr_assert(!opens(WEFT_DEFAULT_GEMM, "") && !opens(WEFT_OWN_GEMM, "") && opens(WEFT_OPENBLAS_GEMM, ""));
    weft *own = weft_open(&(weft_opts){ .device = WEFT_CPU, .gemm = WEFT_OWN_GEMM }),
         *blas = weft_open(&(weft_opts){ .device = WEFT_CPU, .gemm = WEFT_OPENBLAS_GEMM }),
         *wrong = weft_open(&(weft_opts){ .device = WEFT_CPU, .gemm = (weft_gemm)3 });
    cr_assert(weft_ok(own) && weft_ok(blas) && !own->dev.blas && blas->dev.blas);
    cr_assert(weft_error_code(wrong) == WEFT_EARG);
    cr_assert(strstr(weft_error_message(wrong), "open: gemm 3; expected one of weft_gemm"));
    weft_close(own), weft_close(blas), weft_close(wrong);
}
Test(bits, loading_restores_the_environment)
{
    setenv("WEFT_GEMM", "openblas", 1);
    unsetenv("OPENBLAS_CORETYPE"), setenv("OPENBLAS_NUM_THREADS", "3", 1);
    cr_assert(opens(WEFT_DEFAULT_GEMM, ""));
    cr_assert_null(getenv("OPENBLAS_CORETYPE"), "a variable set during loading was not removed");
    cr_assert_str_eq(getenv("OPENBLAS_NUM_THREADS"), "3", "the user's variable was changed");
}

Test(bits, tiers_are_selected_or_refused)
{
    char why[160] = "";
    unsetenv("WEFT_TABLES");
    for (int i = 0; i < COUNT(tables) && tables[i].device != WEFT_CUDA; i++) {
        setenv("WEFT_ISA", tables[i].name, 1);
        const weft__kernels *k = weft__cpu_kernels(WEFT_CPU, WEFT_FP32, why, sizeof why);
        cr_assert(table_is_here(tables[i].name) ? k && !strcmp(k->name, tables[i].name) :
                                                  !k && strstr(why, tables[i].name) &&
                                                      (strstr(why, "instructions") || strstr(why, "float")));
        cr_assert(weft__cpu_kernels(WEFT_REF, WEFT_FP32, why, sizeof why) == &weft__ref);
    }
    for (int i = 0; i < TILE_TABLES; i++)
        for (int p = WEFT_FP32; p <= WEFT_BF16 && table_is_here(tile_table(i)); p++) {
            setenv("WEFT_ISA", tile_table(i), 1);
            const weft__kernels *k = weft__cpu_kernels(WEFT_CPU, (weft_precision)p, why, sizeof why);
            bool tiles = p >= (i < TF32_TABLES ? WEFT_TF32 : WEFT_BF16);
            cr_assert(k && tiles == !strcmp(k->name, tile_table(i)), "%s: %s", tile_table(i), k->name);
            cr_assert(tiles || i || !strcmp(k->name, "avx512"), "FP32 on a CPU with AMX runs %s", k->name);
        }
    unsetenv("WEFT_ISA");
    cr_assert_not_null(weft__cpu_kernels(WEFT_CPU, WEFT_FP32, why, sizeof why));
}
