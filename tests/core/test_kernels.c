/* test_kernels.c - tests every kernel of every table against the plain loops, on random shapes: odd sizes,
 * empty inputs, adding or overwriting, enough work for several threads. One and two threads give the same
 * bits. A case draws its inputs from the dice, so that each run gets the same ones, and passes its outputs to
 * one common comparison. */
#include "kernel_run.h"

/* ---- pointwise ---- */
static void play_flat(run *t)
{
    int64_t n = flat_size(t);
    real *x = reals(t, n, -2, 2), *factor = reals(t, 2, -2, 2);
    int32_t *ints = indices(t, n, -5, 9), *filled = room(t, n, sizeof *filled);
    factor[1] = 0;
    CALL(fill, n, dice_real(-1, 1), result_of(t, n, 0, 0));
    CALL(scale, n, factor[0], x, result_of(t, n, 1e-15, 1e-6), coin());
    CALL(divide, n, factor, result_of(t, n, 1e-14, 1e-5));
    CALL(divide, n, factor + 1, result_of(t, n, 0, 0));
    CALL(to_reals, n, ints, result_of(t, n, 0, 0));
    int32_t *rounded = room(t, n, sizeof *rounded);
    CALL(to_ints, n, x, rounded);
    CALL(to_reals, n, rounded, result_of(t, n, 0, 0));
    CALL(fill_ints, n, 3, filled);
    settle(t);
    for (int64_t i = 0; i < n; i++)
        cr_assert(filled[i] == 3);
    CALL(random, n, dice(UINT64_MAX), dice(UINT64_MAX), coin(), (real)1, (real)2,
         result_of(t, n, 1e-14, 2e-6));
}
KERNEL_TEST(flat)

#define UNARY(name, f, d, dd, lo, hi) { lo, hi },
static const double tested_on[][2] = {
#include "core/shared/pointwise.def"
};
static void play_unary(run *t)
{
    int f = t->round % WEFT__UNARIES, order = t->round / WEFT__UNARIES % 3;
    int64_t n = flat_size(t);
    bool wide = order == 0 && dice(3) == 0 && f != WEFT__exp && f != WEFT__pow && f != WEFT__log &&
                f != WEFT__sqrt && f != WEFT__rsqrt;
    real p = f == WEFT__clamp ? (real)-.5 : (real).3, q = (real).5;
    real *x = reals(t, n, wide ? -50 : tested_on[f][0], wide ? 50 : tested_on[f][1]), *g = reals(t, n, -1, 1),
        *y = room(t, n, sizeof *y);
    weft__device d = { .k = &weft__ref };
    weft__ref.unary(&d, f, 0, n, p, q, x, NULL, NULL, y, false);
    CALL(unary, f, order, n, p, q, x, y, order ? g : NULL, result_of(t, n, 2e-14, 4e-6), coin());
}
Test(kernels, unary) { everywhere("unary", play_unary, rounds(600, 20000)); }

static void play_nests(run *t)
{
    int64_t n[3];
    weft__grid g = random_nest(t, 3, n);
    real *a = reals(t, n[0], -2, 2), *b = reals(t, n[1], .5, 2), *c = reals(t, n[2], -1, 1);
    real *similar = reals(t, n[1], -2, 2);       /* some are equal */
    some_zeros(a, n[0]);
    memcpy(similar, a, (size_t)(n[1] < n[0] ? n[1] : n[0]) / 2 * sizeof *similar);
    for (int f = 0; f < WEFT__BINARIES; f++)
        CALL(binary, f, &g, a, f == WEFT__equal ? similar : b, result_of(t, elements(&g), 1e-15, 1e-6),
             coin());
    CALL(select, &g, a, b, c, result_of(t, elements(&g), 1e-15, 1e-6), coin());
}
static void play_sums(run *t)
{
    int64_t n[3];
    weft__grid g = random_nest(t, 1, n);
    int64_t all = elements(&g);
    CALL(spread, &g, reals(t, n[0], -1, 1), result_of(t, all, 1e-15, 1e-6), coin());
    CALL(sum, &g, reals(t, all, -1, 1), result_of(t, n[0], 1e-11, 2e-4), coin());
    const int64_t many = t->large ? 5000 + size(500) : size(700), few = 1 + size(9);
    const weft__grid tall = { 2, { many, few }, { { 0, 1 } } };
    for (int again = 0; again < 2; again++)      /* GPU blocks count each other in persistent counters */
        CALL(sum, &tall, reals(t, many * few, -1, 1), result_of(t, few, 1e-11, 2e-4), coin());
    int64_t rows = t->large ? 700 : size(40), width = t->large ? 60 + size(90) : size(80);
    int64_t ldx = width + size(5), ldy = width + size(5);
    int32_t *from = indices(t, rows * ldx, -9, 9), *to = room(t, rows * ldy, sizeof *to);
    CALL(block_ints, rows, width, from, ldx, to, ldy);
    settle(t);
    for (int64_t i = 0; i < rows * width; i++)
        cr_assert(to[i / width * ldy + i % width] == from[i / width * ldx + i % width]);
}
KERNEL_TEST(nests)
KERNEL_TEST(sums)

static void play_runs(run *t)
{
    weft__segments s = t->large ? segments(t, 50, 80, 40) :
                                  segments(t, size(7), size(4) ? 30 : 2000, coin() ? 1 : 1 + size(70));
    int64_t rows = segment_rows(&s), all = rows * s.inner, ends = s.count * s.inner;
    real *x = reals(t, all, -2, 2), *few = reals(t, ends, -1, 1);
    int32_t *at = room(t, ends, sizeof *at);
    CALL(segment_sum, &s, x, result_of(t, ends, 1e-12, 1e-4), coin());
    CALL(segment_spread, &s, few, result_of(t, all, 1e-15, 1e-6), coin());
    CALL(segment_max, &s, x, result_of(t, ends, 0, 0), at);
    CALL(segment_place, &s, few, at, result_of(t, all, 1e-15, 1e-6));
    CALL(segment_pick, &s, x, at, result_of(t, ends, 1e-15, 1e-6), coin());
    int64_t k = 1 + size(4);
    int32_t *best = room(t, ends * k, sizeof *best), *place = room(t, ends * k, sizeof *place);
    real *few_values = reals(t, all, -2, 2);
    for (int64_t i = 0; i < all; i++)            /* with ties, -inf and NaN */
        few_values[i] = dice(20) ? (real)floor((double)few_values[i]) : dice(2) ? -(real)INFINITY : (real)NAN;
    CALL(segment_topk, &s, k, few_values, best, place);
    CALL(to_reals, ends * k, best, result_of(t, ends * k, 0, 0));
    CALL(to_reals, ends * k, place, result_of(t, ends * k, 0, 0));
    CALL(cumsum, &s, coin(), x, result_of(t, all, 1e-12, 1e-4), coin());
    CALL(flip, &s, x, result_of(t, all, 1e-15, 1e-6), coin());
}
KERNEL_TEST(runs)

static void play_scans(run *t)
{
    weft__segments s = t->large ? segments(t, 50, 80, 40 + size(90)) :
                                  segments(t, size(7), size(4) ? 30 : 2000, coin() ? 1 : 1 + size(70));
    int64_t rows = segment_rows(&s), all = rows * s.inner, ends = s.count * s.inner;
    weft__scan k = { .s = s, .reverse = coin(), .later = coin(), .a_row = coin() ? s.inner : 0 };
    k.a = reals(t, all + s.inner, -1, .9);
    k.b = reals(t, all, -1, 1);
    k.first = !k.later && coin() ? reals(t, ends, -1, 1) : NULL;
    k.y = result_of(t, all, 1e-12, 1e-4);
    CALL(scan, &k);
    k.later = false;
    k.y = reals(t, all, -1, 1);
    k.dy = reals(t, all, -1, 1);
    k.db = (weft__into){ coin() ? result_of(t, all, 1e-12, 1e-4) : NULL, coin() };
    k.da = (weft__into){ coin() ? result_of(t, all, 1e-12, 1e-4) : NULL, coin() };
    k.dfirst = (weft__into){ coin() ? result_of(t, ends, 1e-12, 1e-4) : NULL, coin() };
    CALL(scan_back, &k);
}
KERNEL_TEST(scans)

static void play_softmax(run *t)
{
    weft__segments s = t->large ? segments(t, 60, 60, 1 + size(40))
        : segments(t, size(7), size(4) ? 40 : 1500, coin() ? 1 : 1 + size(40));
    int64_t all = segment_rows(&s) * s.inner, ends = s.count * s.inner;
    double scale = coin() ? 3 : 60;
    real *x = reals(t, all, -scale, scale), *mask = coin() ? some_zeros(reals(t, all, .1, 1), all) : NULL,
        *y = room(t, all, sizeof *y);
    for (int kind = WEFT__SOFTMAX; kind <= WEFT__LOG_SUM; kind++)
        CALL(softmax, &s, kind, mask, x, result_of(t, kind == WEFT__LOG_SUM ? ends : all, 1e-14, 4e-6));
    weft__device d = { .k = &weft__ref };
    weft__ref.softmax(&d, &s, WEFT__SOFTMAX, mask, x, y);
    CALL(softmax_back, &s, y, x, result_of(t, all, 1e-13, 4e-5), coin());
}
KERNEL_TEST(softmax)

/* ---- rows by index ---- */
static void play_index(run *t)
{
    int64_t rows = t->large ? 600 : size(50), width = t->large ? 60 + size(90) : size(70), n = 1 + size(60);
    /* an index out of range: the same fault everywhere, nothing is read */
    bool wrong = dice(6) == 0;
    int32_t *index = indices(t, rows, wrong ? -3 : -1, wrong ? n + 4 : n),
        *column = indices(t, rows, wrong ? -3 : -1, wrong ? width + 4 : width);
    real *x = reals(t, n * width, -1, 1), *many = reals(t, rows * width, -1, 1);
    const weft__segments each = { rows, width, 1, NULL };
    if (dice(3) == 0)
        index = indices(t, rows, n - 1, n);      /* all equal */
    CALL(gather, rows, width, n, x, index, dice_real(-1, 1), result_of(t, rows * width, 1e-15, 1e-6), coin());
    CALL(scatter, rows, width, n, many, index, result_of(t, n * width, 1e-12, 1e-4), coin());
    CALL(segment_pick, &each, many, column, result_of(t, rows, 1e-15, 1e-6), coin());
    CALL(segment_place, &each, reals(t, rows, -1, 1), column, result_of(t, rows * width, 1e-15, 1e-6));
    CALL(one_hot, rows, width, column, result_of(t, rows * width, 0, 0));
    int32_t *from = indices(t, n * width, -99, 99), *to = room(t, rows * width, sizeof *to);
    CALL(gather_ints, rows, width, n, from, index, 7, to);
    settle(t);
    for (int64_t i = 0; i < rows * width; i++) {
        int32_t r = index[i / width];
        cr_assert(to[i] == (r < 0 || r >= n ? 7 : from[r * width + i % width]));
    }
}
KERNEL_TEST(index)

static void play_ids(run *t)
{
    int64_t ids = t->large ? 5000 : size(90), n = t->large && coin() ? 900 : 1 + size(60);
    bool wrong = dice(6) == 0;
    int32_t *id = indices(t, ids, wrong ? -3 : -1, wrong ? n + 4 : n), *row = room(t, ids, sizeof *row),
            *used = room(t, n + 1, sizeof *used), *want = room(t, n + 1, sizeof *want);
    memset(want, -1, (size_t)(n + 1) * sizeof *want);
    CALL(ids_used, ids, n, id, row, used);
    settle(t);
    *result_of(t, 1, 0, 0) = (real)(ids ? row[0] : 0);
    for (int64_t i = 0; i < ids; i++) {
        int32_t r = id[i], is = r < 0 || r >= n ? (int32_t)n : r;
        cr_assert(row[i] == is);
        want[is] = is < n ? is : -1;
    }
    cr_assert(!memcmp(used, want, (size_t)(n + 1) * sizeof *want));
}
KERNEL_TEST(ids)

static void play_dropout(run *t)
{
    int64_t rows = t->large ? 500 : size(20), width = t->large ? 300 + size(99) : size(200),
            *id = room(t, rows, sizeof *id);
    for (int64_t r = 0; r < rows; r++)
        id[r] = (int64_t)dice(UINT64_MAX);
    int32_t *position = indices(t, rows, 0, 5000);
    CALL(dropout, rows, width, dice_real(0, 1), dice(UINT64_MAX), coin() ? id : NULL,
         coin() ? position : NULL, reals(t, rows * width, -1, 1), result_of(t, rows * width, 1e-13, 1e-5),
         coin());
}
KERNEL_TEST(dropout)

/* [n]: row numbers below n, or -1. once: no row occurs twice. */
static const int32_t *some_rows(run *t, int64_t n, bool once)
{
    int32_t *row = room(t, n, sizeof *row);
    for (int64_t r = 0; r < n; r++) {
        const int64_t other = size(r + 1);
        row[r] = (int32_t)r;
        if (!once)
            row[r] = (int32_t)size(n);
        else
            row[r] = row[other], row[other] = (int32_t)r;
    }
    for (int64_t r = 0; r < n; r++)
        row[r] = dice(5) ? row[r] : -1;
    return row;
}
static void play_blocks(run *t)
{
    enum { MOST = 40 };
    weft__block_copy block[MOST];
    const int64_t n = size(MOST), rows = t->large ? 300 : 1 + size(20), most = t->large ? 90 : 40;
    real *y = result_of(t, n * rows * (most + 5), 0, 0);
    const int32_t *from[] = { some_rows(t, rows, false), some_rows(t, rows, false) },
                  *to[] = { some_rows(t, rows, true), some_rows(t, rows, true) };
    for (int64_t i = 0; i < n; i++) {
        weft__block_copy *b = &block[i];
        *b = (weft__block_copy){ .rows = coin() ? rows : size(rows), .width = size(most), .add = coin() };
        if (dice(6) == 0)                        /* a long row */
            b->rows = 1, b->width = rows * most;
        b->ldx = b->width + size(5), b->ldy = b->width + size(5);
        b->x = reals(t, (b->rows == 1 ? 1 : rows) * b->ldx, -1, 1), b->y = y + i * rows * (most + 5);
        b->x = dice(5) ? b->x : NULL;
        if (b->rows == 1)
            continue;
        b->from = dice(3) ? NULL : from[dice(2)], b->to = dice(3) ? NULL : to[dice(2)];
    }
    CALL(blocks, n, block);
}
KERNEL_TEST(blocks)

static void play_glu(run *t)
{
    int64_t rows = t->large ? 500 : size(30), width = t->large ? 300 + size(99) : size(70);
    real *x = reals(t, rows * 2 * width, -4, 4);
    CALL(glu, rows, width, x, result_of(t, rows * width, 1e-14, 1e-5));
    CALL(glu_back, rows, width, x, reals(t, rows * width, -1, 1), result_of(t, rows * 2 * width, 1e-14, 1e-5),
         coin());
}
KERNEL_TEST(glu)

/* ---- products ---- */
/* A GPU may round the operands of a product to bfloat16, with 8 bits, if the context allows it. The operands
 * here are below 1. */
static double product_error(const weft__product *p, double in_fp32)
{
    return p->precision == WEFT_BF16 ? in_fp32 + sqrt((double)p->k) / 256 : in_fp32;
}
static void play_gemm(run *t)
{
    weft__product p = { .ta = coin(), .tb = coin(), .add = coin(), .batches = 1 + (dice(3) ? 0 : size(4)) };
    p.precision = dice(4) ? WEFT_FP32 : WEFT_BF16;
    p.m = t->large ? 60 + size(200) : size(coin() ? 8 : 70),
    p.n = t->large ? (dice(3) ? 100 : 450) + size(200) : size(coin() ? 5 : 90),
    p.k = t->large ? 300 + size(300) : size(50);
    p.lda = (p.ta ? p.m : p.k) + size(4), p.ldb = (p.tb ? p.k : p.n) + size(4), p.ldc = p.n + size(4);
    p.stride_a = (p.ta ? p.k : p.m) * p.lda + size(3), p.stride_b = (p.tb ? p.n : p.k) * p.ldb + size(3);
    p.stride_c = p.m * p.ldc + size(3);
    real *a = reals(t, p.batches * p.stride_a, -1, 1), *b = reals(t, p.batches * p.stride_b, -1, 1);
    static const int functions[] = { WEFT__UNARIES, WEFT__relu,    WEFT__leaky_relu, WEFT__elu,
                                     WEFT__tanh,    WEFT__sigmoid, WEFT__gelu,       WEFT__square };
    weft__finish then = { NULL, coin() ? 0 : p.n + size(3), functions[size(COUNT(functions))], (real).5, 0 };
    then.bias = coin() ? reals(t, (p.batches - 1) * then.stride + p.n, -1, 1) : NULL;
    p.then = coin() ? &then : NULL;
    if (then.f == WEFT__square && !dice(3))
        p.k = 0;
    CALL(gemm, &p, a, b, result_of(t, p.batches * p.stride_c, 1e-12, product_error(&p, 1e-4)));
}
Test(kernels, gemm) { everywhere("gemm", play_gemm, rounds(300, 5000)); }
/* Limits an emulated GPU: cuBLAS accepts only multiples of eight rows, adds no bias, or fails without
 * workspace. */
Test(kernels, gemm_of_few_algorithms_matches_plain_loops)
{
    static const char *const moods[] = { "rows", "nobias", "room" };
    for (int i = 0; i < COUNT(moods); i++) {
        setenv("WEFT_EMU_BLAS", moods[i], 1);
        everywhere(moods[i], play_gemm, table_is_here("cuda") ? rounds(100, 1000) : 1);
    }
}

static void play_deep_gemm(run *t)               /* gradients of weights: sums over many tokens */
{
    weft__product p = { .ta = true,
                        .add = coin(),
                        .batches = 1,
                        .m = 1 + size(t->large ? 200 : 40),
                        .n = 1 + size(t->large ? 120 : 30),
                        .k = 2040 + size(t->large ? 900 : 40),
                        .precision = dice(4) ? WEFT_FP32 : WEFT_BF16 };
    p.lda = p.m + size(4), p.ldb = p.n + size(4), p.ldc = p.n + size(4);
    real *a = reals(t, p.k * p.lda, -1, 1), *b = reals(t, p.k * p.ldb, -1, 1);
    CALL(gemm, &p, a, b, result_of(t, p.m * p.ldc, 1e-11, product_error(&p, 2e-4)));
}
Test(kernels, deep_gemm) { everywhere("deep gemm", play_deep_gemm, rounds(24, 500)); }

static void draw_offsets(run *t, int64_t n, int64_t longest, weft__ints *offset)
{
    int32_t *x = room(t, n + 1, sizeof *x);
    for (int64_t s = 0; s < n; s++)
        x[s + 1] = x[s] + (dice(6) ? (int32_t)size(longest + 1) : 0);
    *offset = (weft__ints){ x, x };
}
static void play_attention(run *t)
{
    const int64_t width = dice(4) ? 1 : 32;      /* widths that matrix tiles support */
    weft__attention a = { .sequences = t->large ? 1 + size(2) : size(6),
                          .heads = 1 + size(3),
                          .dk = size(8) ? width + size(20) : 0,
                          .dv = width + size(20),
                          .causal = (int)dice(4),
                          .shared_values = coin(),
                          .mean = coin(),
                          .scale = dice_real(.1, .6) };
    a.mean &= a.shared_values;
    t->d.precision = coin() ? WEFT_FP32 : WEFT_STRICT_FP32;     /* on a GPU: tensor cores, or plain kernels */
    /* several blocks of keys, for one thread or many */
    int64_t longest = t->large ? (a.mean ? 1100 : 700) : dice(8) ? 12 : 110;
    draw_offsets(t, a.sequences, dice(6) ? longest : 4, &a.q_offset);
    if (coin())
        a.k_offset = a.q_offset;
    else
        draw_offsets(t, a.sequences, longest, &a.k_offset);
    a.queries = a.q_offset.host[a.sequences], a.keys = a.k_offset.host[a.sequences];
    int64_t nq = a.queries * a.heads * a.dk, nk = a.keys * a.heads * a.dk,
            nv = a.keys * (a.shared_values ? 1 : a.heads) * a.dv,
            ny = a.queries * (a.mean ? 1 : a.heads) * a.dv;
    int32_t *map_offset = room(t, a.queries + 1, sizeof *map_offset);
    for (int64_t s = 0; s < a.sequences; s++)
        for (int64_t i = a.q_offset.host[s]; i < a.q_offset.host[s + 1]; i++)
            map_offset[i + 1] = map_offset[i] + a.k_offset.host[s + 1] - a.k_offset.host[s];
    a.map_offset = (weft__ints){ map_offset, map_offset };
    int64_t *id = room(t, a.queries, sizeof *id);
    int32_t *position = room(t, a.queries, sizeof *position);
    for (int64_t i = 0; i < a.queries; i++)
        id[i] = (int64_t)dice(UINT64_MAX), position[i] = (int32_t)dice(INT32_MAX);
    a.id = id, a.position = position, a.mask_key = dice(UINT64_MAX),
    a.below = coin() ? (uint32_t)dice(60000) : 0, a.kept = dice_real(1, 2);
    a.q = reals(t, nq, -1, 1), a.k = reals(t, nk, -1, 1), a.v = reals(t, nv, -1, 1),
    a.dy = reals(t, ny, -1, 1);
    a.y = result_of(t, ny, 1e-13, 1e-5), a.lse = result_of(t, a.queries * a.heads, 1e-13, 1e-5);
    a.map = coin() ? result_of(t, map_offset[a.queries] * a.heads, 1e-13, 1e-5) : NULL;
    t->k->attention(&t->d, &a);
    a.dq = coin() ? result_of(t, nq, 1e-12, 1e-4) : NULL,
    a.dk_ = coin() ? result_of(t, nk, 1e-12, 1e-4) : NULL;
    a.dv_ = coin() ? result_of(t, nv, 1e-12, 1e-4) : NULL;
    t->k->attention_back(&t->d, &a);
}
Test(kernels, attention) { everywhere("attention", play_attention, rounds(120, 3000)); }

/* ---- normalisation, losses ---- */
static void play_layer_norm(run *t)
{
    const bool wide = !t->large && coin() && coin();  /* each row is the work of a whole block on a GPU */
    weft__layer_norm n = { .groups = 1 + (coin() ? 0 : size(5)), .eps = (real)1e-3, .rms = coin() };
    n.add_x = coin(), n.add_gate = coin(), n.add_gain = coin(), n.add_shift = coin();
    n.rows = n.groups * (wide ? size(3) : t->large ? 700 : size(40));
    n.width = wide ? 1000 + size(1200) : t->large ? (coin() ? 100 : 20) + size(60) : size(90);
    const int64_t all = n.rows * n.width, gains = n.groups * n.width;
    n.gate = t->round % 2 ? reals(t, 2 * all, -4, 4) : NULL;
    n.x = reals(t, all, -2, 3), n.dy = reals(t, all, -1, 1);
    n.gain = coin() ? reals(t, gains, .5, 2) : NULL, n.shift = coin() ? reals(t, gains, -1, 1) : NULL;
    n.y = result_of(t, all, 1e-11, 2e-4), n.mean = result_of(t, n.rows, 1e-13, 2e-6),
    n.rstd = result_of(t, n.rows, 1e-10, 1e-3);
    CALL(layer_norm, &n);
    n.dx = coin() || t->round % 4 == 0 ? result_of(t, all, 1e-9, 1e-2) : NULL;
    n.dgate = n.gate && coin() ? result_of(t, 2 * all, 1e-9, 1e-2) : NULL;
    n.dgain = coin() ? result_of(t, gains, 1e-10, 1e-3) : NULL;
    n.dshift = coin() ? result_of(t, gains, 1e-12, 1e-4) : NULL;
    CALL(layer_norm_back, &n);
}
KERNEL_TEST(layer_norm)

static void play_entropy(run *t)
{
    weft__entropy e = { .rows = t->large ? 300 : size(20),
                        .classes = t->large ? 500 : 1 + size(coin() ? 45 : 900),
                        .has_ignore = coin(),
                        .ignore = -100 };
    bool wrong = dice(6) == 0;
    int32_t *class_ = indices(t, e.rows, wrong ? -2 : 0, e.classes + (wrong ? 2 : 0));
    for (int64_t r = 0; e.has_ignore && r < e.rows; r += 3)
        class_[r] = -100;
    e.smoothing = coin() ? dice_real(0, .3) : 0;
    e.class_weight = coin() ? reals(t, e.classes, .2, 2) : NULL;
    e.mask = coin() ? some_zeros(reals(t, e.rows, .2, 2), e.rows) : NULL;
    real *x = reals(t, e.rows * e.classes, -4, 4);
    CALL(entropy, &e, x, class_, result_of(t, e.rows, 1e-12, 1e-4));
    CALL(entropy_weight, &e, class_, result_of(t, e.rows, 1e-15, 1e-6));
    CALL(entropy_back, &e, x, class_, reals(t, e.rows, -1, 1), result_of(t, e.rows * e.classes, 1e-13, 1e-5),
         coin());
}
KERNEL_TEST(entropy)

/* Some labels are out of range, blank, or too many for the steps. */
static void play_ctc(run *t)
{
    weft__ctc c = { .sequences = t->large ? 40 : size(6), .classes = 2 + size(30), .skip = coin() };
    int64_t place[41] = { 0 };
    int32_t *step = room(t, c.sequences + 1, sizeof *step), *label = room(t, c.sequences + 1, sizeof *label);
    for (int64_t s = 0; s < c.sequences; s++) {
        step[s + 1] = step[s] + (int32_t)size(t->large ? 90 : 12);
        label[s + 1] = label[s] + (int32_t)size((step[s + 1] - step[s]) / (1 + size(2)) + 1);
        place[s + 1] = place[s] + (step[s + 1] - step[s] + 2) * 2 * (label[s + 1] - label[s] + 1);
    }
    const int64_t n = step[c.sequences], reals_of_x = n * c.classes;
    c.blank = (int32_t)size(c.classes);
    c.offset = (weft__ints){ step, step }, c.label_offset = (weft__ints){ label, label };
    c.place = memcpy(room(t, c.sequences + 1, sizeof *place), place,
                     (size_t)(c.sequences + 1) * sizeof *place);
    int32_t *labels = indices(t, label[c.sequences], 0, c.classes);
    for (int64_t i = 0; i < label[c.sequences]; i++)
        labels[i] = labels[i] == c.blank && dice(20) ? (labels[i] + 1) % (int32_t)c.classes : labels[i];
    c.labels = labels, c.logits = reals(t, reals_of_x, -4, 4);
    real *weight = result_of(t, c.sequences, 1e-15, 1e-6);
    CALL(ctc_weight, &c, coin() ? some_zeros(reals(t, c.sequences, .2, 2), c.sequences) : NULL, weight);
    c.weight = weight;
    c.alpha = reals(t, place[c.sequences], -1, 1), c.lse = reals(t, n, -1, 1);
    CALL(ctc, &c, result_of(t, c.sequences, 1e-12, 2e-5));
    CALL(ctc_back, &c, reals(t, c.sequences, -1, 1), result_of(t, reals_of_x, 1e-11, 2e-5), coin());
}
KERNEL_TEST(ctc)

/* ---- memory ---- */
static void play_memory(run *t)
{
    int64_t n = 1 + flat_size(t);
    size_t bytes = (size_t)n * sizeof(real);
    real *x = reals(t, n, -1, 1), *y = result_of(t, n, 0, 0),
         *on_device = t->k->allocate(&t->d, bytes, false), *more = t->k->allocate(&t->d, bytes, true),
         *host = malloc(bytes);
    CALL(upload, on_device, x, bytes);
    CALL(copy, more, on_device, bytes);
    CALL(download, host, more, bytes);
    same_bits("there and back", host, x, n);
    memcpy(y, host, bytes);
    free(host);
    CALL(release, on_device, false);
    CALL(release, more, true);
}
KERNEL_TEST(memory)
/* Uploads from memory that changes immediately afterwards. There is more data than the staging ring holds, in
 * pieces of awkward sizes. */
Test(kernels, uploads_copy_the_source_before_returning)
{
    enum { PIECE = 9973, PIECES = 300 };
    const weft__kernels *k;
    for (int i = 0; (k = table_of(i)); i++) {
        run *t = run_on(k, 1);
        real *there = t->k->allocate(&t->d, (size_t)PIECE * PIECES * sizeof *there, false),
             *here = malloc(PIECE * sizeof *here);
        for (int p = 0; p < PIECES; p++) {
            for (int l = 0; l < PIECE; l++)
                here[l] = (real)(p + l);
            CALL(upload, there + p * PIECE, here, PIECE * sizeof *here);
        }
        for (int p = 0; p < PIECES; p++) {
            CALL(download, here, there + p * PIECE, PIECE * sizeof *here);
            for (int l = 0; l < PIECE; l++)
                cr_assert(here[l] == (real)(p + l), "%s: number %d of piece %d is %g", k->name, l, p,
                          (double)here[l]);
        }
        free(here);
        CALL(release, there, false);
        run_end(t);
    }
}
