/* test_recur.c - tests the kernels recur and recur_back of every table without layers: against the plain
 * loops, and bit for bit in batches and with one or two threads. test_rnn.c compares the plain loops with
 * public operators, the golden vectors compare with PyTorch. */
#include "recur_layer.h"

static void like_plain_loops(weft *w, const layer *l)
{
    weft__recurrence a = run(w, l, false), b = run(plain_loops, l, false);
    allowed = TOL(1e-12, 3e-6);
    each_array(l, &a, &b, near);
    weft__recurrence c = run(w, l, true), d = run(plain_loops, l, true);
    allowed = TOL(1e-12, 1e-5);                  /* gradients grow to about 10 */
    each_array(l, &c, &d, near);
}
LOOPS_TEST(recur, tiers_match_the_plain_loops)
{
    static const int64_t sizes[] = { 1, 3, 7, 8, 13, 16, 33, 64, 80, 129 };
    for (int i = 0; i < COUNT(sizes); i++) {
        dice_seed((uint64_t)i);
        every_layer(w, sizes[i], 1 + (int64_t)dice(20), 5, like_plain_loops);
    }
}

/* With 290 units a GPU's cluster has sixteen blocks, and the sequences need two clusters. With 514 a GPU
 * computes the products of a step back in eight parts. */
LOOPS_TEST(recur, wide_layers_match_the_plain_loops)
{
    static const weft__cell cells[] = { WEFT__lstm,     WEFT__lstm,     WEFT__gru,
                                        WEFT__rnn_tanh, WEFT__rnn_relu, WEFT__lstm };
    for (int i = 0; i < 6; i += CHECK_SANITIZED && getenv("WEFT_SMALL") ? 3 : 1)
        with_layer(w,
                   (layer){ .cell = cells[i], .reverse = i == 1, .bias = true, .states = true,
                            .cell_dy = true, .H = i == 5 ? 514 : 290, .n = 9,
                            .len = { 3, 2, 2, 1, 1, 1, 1, 1, 1 } },
                   (uint64_t)i, like_plain_loops);
}

/* A GPU's groups of blocks, which send each other numbers through its memory, have the sums of its
 * clusters. */
static weft__recurrence by(const char *kernel, weft *w, const layer *l)
{
    setenv("WEFT_RECUR", kernel, 1);
    return run(w, l, true);
}
static void same_in_groups(weft *w, const layer *l)
{
    const weft__recurrence a = by("cluster", w, l), b = by("group", w, l);
    each_array(l, &a, &b, alike);
}
Test(recur, groups_of_blocks_have_the_bits_of_clusters)
{
    static const int64_t sizes[] = { 100, 200 };
    const char *asked = getenv("WEFT_RECUR"), *capability = getenv("WEFT_EMU_CC");
    if (!asked || strcmp(asked, "group") || !capability || strcmp(capability, "120"))
        return;                                  /* an emulated GPU that has both, in the run for groups */
    weft *w = open_on(WEFT_CUDA);
    for (int i = 0; i < COUNT(sizes); i++) {
        dice_seed((uint64_t)i);
        every_layer(w, sizes[i], i == 0 ? 9 : 2, 2, same_in_groups);
    }
    CLEAN(w);
}

/* Tensor cores truncate when they add, so sums of one sign lose most. Runs a step from positive states with
 * positive weights, and its backward. Returns the largest relative error of a sum. */
static double one_signed_error(weft *w, int64_t H)
{
    layer l = { .cell = WEFT__rnn_relu, .states = true, .H = H, .n = 9 };
    double most = 0;
    for (int64_t s = 0; s < l.n; s++)
        l.len[s] = 1;
    dice_seed((uint64_t)H);
    borrow_from(w);
    fill(&l);
    for (int64_t i = 0; i < l.inputs; i++)
        l.x[i] = fabs(l.x[i]);
    for (int64_t i = 0; i < l.tokens * H; i++)
        l.dy[i] = fabs((double)(real)l.dy[i]);
    weft__recurrence r = run(w, &l, true);
    for (int64_t i = 0; i < l.n * H; i++) {
        int64_t s = i / H, j = i % H;
        double h = l.x[s * H + j], dh0 = 0;
        for (int64_t k = 0; k < H; k++) {
            h += l.x[l.at_w + j * H + k] * l.x[l.at_h0 + s * H + k];
            dh0 += l.x[l.at_w + k * H + j] * l.dy[s * H + k];
        }
        most = fmax(most, fmax(fabs((double)r.h[i] - h) / h, fabs((double)r.dh0[i] - dh0) / dh0));
    }
    let_go();
    return most;
}
LOOPS_TEST(recur, long_sums_of_one_sign_are_as_exact_as_the_plain_loops)
{
    static const int64_t sizes[] = { 32, 64, 128, 256, 512 };
    for (int i = 0; i < COUNT(sizes); i++) {
        double error = one_signed_error(w, sizes[i]), plain = one_signed_error(plain_loops, sizes[i]);
        cr_assert(error < TOL(1e-14, fmax(6e-7, 1.3 * plain)), "%d units: relative error %g, plain loops %g",
                  (int)sizes[i], error, plain);
    }
}

/* A context with lower precision gets it: one product instead of three, or the library's own product of that
 * precision. */
Test(recur, a_gpu_rounds_as_its_context_requests)
{
    static const int64_t sizes[] = { 20, 64, 128, 200, 512 };
    for (int p = WEFT_TF32; p <= WEFT_BF16 && sizeof(real) == 4 && table_is_here("cuda"); p++) {
        weft *w = open_with((weft_opts){ .device = WEFT_CUDA, .precision = (weft_precision)p });
        for (int i = 0; i < COUNT(sizes); i++) {
            const double error = one_signed_error(w, sizes[i]);
            cr_assert(error > 1e-6 && error < (p == WEFT_TF32 ? 4e-4 : 4e-3),
                      "%d units, precision %d: relative error %g", (int)sizes[i], p, error);
        }
        CLEAN(w);
    }
}

/* A NaN state reaches each sum of its sequence's next step. bits: a GPU's NaN, or a NaN with all bits set. */
static void keeps_nan(weft *w, int64_t H, uint64_t bits)
{
    layer l = { .cell = WEFT__rnn_tanh, .states = true, .H = H, .n = 2, .len = { 2, 2 } };
    dice_seed((uint64_t)H);
    borrow_from(w);
    fill(&l);
    memcpy(&l.x[l.at_h0 + 3], &bits, sizeof bits);
    weft__recurrence r = run(w, &l, false);
    for (int64_t k = 0; k < l.tokens * H; k++)
        cr_assert(!isnan((double)r.h[k]) == (k / H % 2 == 1), "%d units: row %d, unit %d is %g", (int)H,
                  (int)(k / H), (int)(k % H), (double)r.h[k]);
    let_go();
}
Test(recur, one_product_keeps_nan)
{
    static const int64_t sizes[] = { 20, 100, 300 };
    for (int i = 0; i < COUNT(sizes) && table_is_here("cuda"); i++) {
        weft *w = open_with((weft_opts){ .device = WEFT_CUDA, .precision = WEFT_TF32 });
        keeps_nan(w, sizes[i], 0x7fffffffffffffff), keeps_nan(w, sizes[i], 0xffffffffffffffff);
        CLEAN(w);
    }
}

/* ---- the same bits ---- */
/* The s-th sequence of l as a batch of its own. */
static layer alone(const layer *l, int64_t s)
{
    layer a = *l;
    a.n = 1;
    a.len[0] = l->len[s];
    fill(&a);
    for (int64_t t = 0; t < a.tokens; t++) {
        int64_t row = l->start[t] + s;
        memcpy(a.x + t * l->G, l->x + row * l->G, (size_t)l->G * sizeof *a.x);
        memcpy(a.dy + t * l->W, l->dy + row * l->W, (size_t)l->W * sizeof *a.dy);
        memcpy(a.dyc + t * l->H, l->dyc + row * l->H, (size_t)l->H * sizeof *a.dyc);
    }
    if (l->states)
        memcpy(a.x + a.at_h0, l->x + l->at_h0 + s * l->W, (size_t)l->W * sizeof *a.x);
    if (l->states && has_c(l->cell))
        memcpy(a.x + a.at_c0, l->x + l->at_c0 + s * l->H, (size_t)l->H * sizeof *a.x);
    memcpy(a.x + a.at_w, l->x + l->at_w, (size_t)(l->inputs - l->at_w) * sizeof *a.x);
    return a;
}
static void same_rows(const layer *l, int64_t s, const weft__recurrence *one, const weft__recurrence *all)
{
    const struct { const real *one, *all; int64_t width;
    } arrays[] = {
        { one->gates, all->gates, l->S }, { one->h, all->h, l->W },
        { one->c, all->c, l->H },         { one->h_before, all->h_before, l->W },
        { one->dh, all->dh, l->W },
    };
    for (int i = 0; i < COUNT(arrays); i++)
        for (int64_t t = 0, width = arrays[i].width; arrays[i].one && t < l->len[s]; t++)
            same_in_company(text(l), arrays[i].one + t * width,
                            arrays[i].all + (l->start[t] + s) * width, width);
    if (one->dh0)
        same_in_company(text(l), one->dh0, all->dh0 + s * l->W, l->W);
    if (one->dc0)
        same_in_company(text(l), one->dc0, all->dc0 + s * l->H, l->H);
}
static void same_alone(weft *w, const layer *l)
{
    weft__recurrence all = run(w, l, false), all_back = run(w, l, true);
    for (int64_t s = 0; s < l->n; s += 1 + l->n / (getenv("WEFT_SMALL") ? 2 : 4)) {
        layer a = alone(l, s);
        weft__recurrence one = run(w, &a, false), back = run(w, &a, true);
        same_rows(l, s, &one, &all);
        same_rows(l, s, &back, &all_back);
    }
}
TABLE_TEST(recur, a_sequence_has_the_same_bits_alone_and_in_any_batch)
{
    static const int64_t sizes[] = { 1, 33, 129, 5, 8, 19, 64 };
    for (int i = 0; i < (getenv("WEFT_SMALL") ? 3 : COUNT(sizes)); i++) {
        dice_seed((uint64_t)i);
        every_layer(w, sizes[i], 3 + (int64_t)dice(getenv("WEFT_SMALL") ? 9 : 40), 5, same_alone);
    }
}
TABLE_TEST(recur, a_sequence_has_the_same_bits_where_products_are_computed_in_parts)
{
    with_layer(w, (layer){ .cell = WEFT__lstm, .states = true, .H = 514, .n = 3, .len = { 2, 2, 1 } }, 1,
               same_alone);
}

static void same_by_threads(weft *w, const layer *l)
{
    weft__recurrence a = run(w, l, true), b = run(one_thread, l, true);
    each_array(l, &a, &b, alike);
}
static void all_by_threads(weft *w)
{
    dice_seed(7);
    every_layer(w, 64, getenv("WEFT_SMALL") ? 17 : 50, 7, same_by_threads);
}
Test(recur, threads_change_no_bit) { each_table_by_threads(2, all_by_threads); }
/* Few sequences, many weights: of four threads all share a block, or two each of two. */
static void teams(weft *w)
{
    static const int64_t sequences[] = { 1, 5, 17 };
    for (int i = 0; i < COUNT(sequences); i++) {
        dice_seed((uint64_t)i);
        every_layer(w, 230, sequences[i], 4, same_by_threads);
    }
}
Test(recur, a_team_of_threads_changes_no_bit) { each_table_by_threads(4, teams); }

/* ---- nothing, no memory ---- */
TABLE_TEST(recur, sequences_without_tokens_are_skipped)
{
    for (int empty = 0; empty < 2; empty++) {
        layer l = { .cell = WEFT__lstm, .states = true, .H = 5, .n = 3, .len = { empty ? 0 : 2, 0, 0 } };
        borrow_from(w);
        fill(&l);
        weft__recurrence r = record(&l);
        w->dev.k->recur(&w->dev, &r);
        w->dev.k->wait(&w->dev);
        add_backward(&l, &r);
        for (int64_t i = 0; i < 15; i++)
            r.dh0[i] = r.dc0[i] = 3;
        w->dev.k->recur_back(&w->dev, &r);
        w->dev.k->wait(&w->dev);
        for (int64_t i = empty ? 0 : 5; i < 15; i++)
            cr_assert(r.dh0[i] == 3 && r.dc0[i] == 3);
        for (int64_t i = 0; i < 5 && !empty; i++)
            cr_assert(r.dh0[i] != 3 && r.dc0[i] != 3);
        let_go();
    }
}
TABLE_TEST(recur, allocates_once_and_reports_enomem)
{
    layer l = { .cell = WEFT__gru, .bias = true, .H = 200, .n = 2, .len = { 3, 1 } };
    borrow_from(w);
    fill(&l);
    fail_in(w, 1);
    run(w, &l, false);
    fail_in(w, 0);
    bool needs_none = !strcmp(weft_device_name(w), "ref") || !w->dev.k->synchronous;
    cr_assert(needs_none || strstr(w->dev.failure, "memory"), "%s", w->dev.failure);
    w->dev.failure[0] = 0;
    run(w, &l, true);
    int64_t before = allocations(w);
    run(w, &l, true);
    cr_assert(allocations(w) == before);
    let_go();
}
