/* test_recur_tiles.c - tests recurrent layers whose products use matrix tiles, real and emulated: every
 * precision against the plain loops, and the same bits for any number of threads. NaN and infinity are as in
 * fp32 and stay in their sequence. test_step.c compares single tokens with a whole run. */
#include "recur_layer.h"

#ifndef WEFT_DOUBLE
static weft *tiles_open(const char *name, weft_precision precision, int threads)
{
    setenv("WEFT_ISA", name, 1);
    weft *w = open_with((weft_opts){ .device = WEFT_CPU, .precision = precision, .threads = threads });
    unsetenv("WEFT_ISA");
    OK(w);
    return w;
}
/* w is a context on each table with tiles. */
#define ON_TILES(w, precision)                                             \
    for (int tiles_i = 0; tiles_i < TILE_TABLES; tiles_i++)                \
        for (weft *w = table_is_here(tile_table(tiles_i)) &&               \
                               (tiles_i < TF32_TABLES || (precision) == WEFT_BF16) ? \
                           tiles_open(tile_table(tiles_i), precision, 2) : \
                           NULL;                                           \
             w; CLEAN(w), w = NULL)

static bool differ;
static void near_the_plain_loops(weft *w, const layer *l)
{
    /* its slope jumps at 0, and rounding may put a sum on either side */
    bool back = l->cell != WEFT__rnn_relu;
    weft__recurrence a = run(w, l, back), b = run(plain_loops, l, back);
    each_array(l, &a, &b, near);
    differ |= l->tokens && memcmp(a.gates, b.gates, (size_t)(l->tokens * l->S) * sizeof *a.gates);
}
Test(recur_tiles, each_precision_is_close_to_the_plain_loops)
{
    static const struct {
        weft_precision mode;
        double off;
    } modes[] = { { WEFT_TF32, 1e-4 }, { WEFT_BF16, 5e-2 } };
    static const int64_t sizes[] = { 128, 130, 145 };
    plain_loops = open_on(WEFT_REF);
    for (int m = 0; m < COUNT(modes); m++)
        ON_TILES(w, modes[m].mode)
            for (int i = 0; i < COUNT(sizes); i++) {
                dice_seed((uint64_t)i);
                allowed = modes[m].off;
                differ = false;
                every_layer(w, sizes[i], 1 + (int64_t)dice(20), 5, near_the_plain_loops);
                cr_assert(differ);
            }
    CLEAN(plain_loops);
}

static weft *other;
static bool back;
static void same_as_other(weft *w, const layer *l)
{
    weft__recurrence a = run(w, l, back), b = run(other, l, back);
    each_array(l, &a, &b, alike);
}
/* Narrow layers do not use tiles, nor does the forward pass in WEFT_TF32. */
Test(recur_tiles, other_layers_have_the_bits_of_vectors)
{
    static const struct {
        weft_precision mode;
        int64_t hidden;
        bool back;
    } of[] = { { WEFT_BF16, 127, true }, { WEFT_TF32, 127, true }, { WEFT_TF32, 130, false } };
    static const char *const vectors[] = { "avx512", "avx2", "neon" };
    for (int i = 0; i < COUNT(of); i++)
        ON_TILES(w, of[i].mode) {
            if (!table_is_here(vectors[tiles_i]))
                continue;
            other = tiles_open(vectors[tiles_i], WEFT_FP32, 2);
            back = of[i].back;
            dice_seed(3);
            every_layer(w, of[i].hidden, 9, 5, same_as_other);
            CLEAN(other);
        }
}

Test(recur_tiles, threads_change_no_bit)
{
    for (int i = 0; i < 2; i++)
        ON_TILES(w, i ? WEFT_TF32 : WEFT_BF16) {
            other = tiles_open(weft_device_name(w), i ? WEFT_TF32 : WEFT_BF16, 1);
            back = true;
            dice_seed(7);
            every_layer(w, 130, 50, 7, same_as_other);
            CLEAN(other);
        }
}

/* ---- not finite ---- */
static int64_t odd_one;
static void spoil(layer *l, double odd)          /* one sequence's first state, and one of its tokens */
{
    if (l->states)
        l->x[l->at_h0 + odd_one * l->W + (int64_t)dice((uint64_t)l->W)] = odd;
    int64_t t = l->len[odd_one] / 2, row = l->start[t] + odd_one;
    l->x[row * l->G + (int64_t)dice((uint64_t)l->G)] = odd;
    l->dy[row * l->W] = odd;
}
static void same_but_one(const layer *l, const real *got, const real *want, int64_t width)
{
    for (int64_t s = 0; s < l->n; s++)
        for (int64_t t = 0; t < l->len[s] && s != odd_one; t++)
            same_bits(text(l), got + (l->start[t] + s) * width, want + (l->start[t] + s) * width, width);
}
/* Requires NaN and infinity in the same elements, and close finite numbers. */
static void of_one_kind(const layer *l, const real *got, const real *want, int64_t width)
{
    for (int64_t t = 0; t < l->len[odd_one]; t++)
        for (int64_t j = 0, at = (l->start[t] + odd_one) * width; j < width; j++, at++) {
            real x = got[at], y = want[at];
            cr_assert(isnan(y) ? isnan(x) :
                      isinf(y) ? x == y :
                                 fabsf(x - y) <= (real)allowed * fmaxf(1, fabsf(y)),
                      "%s: step %lld, column %lld: %g, plain loops give %g", text(l), (long long)t,
                      (long long)j, (double)x, (double)y);
        }
}
static void odd_numbers_stay(weft *w, const layer *l)
{
    static const double odd[] = { INFINITY, -INFINITY, NAN };
    odd_one = (int64_t)dice((uint64_t)l->n);
    /* it maps -infinity to 0, so the order of summation matters */
    if (!l->len[odd_one] || l->cell == WEFT__rnn_relu)
        return;
    weft__recurrence good = run(w, l, true);
    layer bad = *l;
    spoil(&bad, odd[dice(COUNT(odd))]);
    weft__recurrence a = run(w, &bad, true), b = run(plain_loops, &bad, true);
    same_but_one(l, a.gates, good.gates, l->S);
    same_but_one(l, a.h, good.h, l->W);
    of_one_kind(l, a.gates, b.gates, l->S);
    of_one_kind(l, a.h, b.h, l->W);
}
Test(recur_tiles, non_finite_numbers_match_fp32_and_stay_in_their_sequence)
{
    plain_loops = open_on(WEFT_REF);
    for (int m = WEFT_TF32; m <= WEFT_BF16; m++)
        ON_TILES(w, (weft_precision)m)
            for (int i = 0; i < rounds(2, 25); i++) {
                dice_seed((uint64_t)i);
                allowed = m == WEFT_BF16 ? 5e-2 : 1e-4;
                every_layer(w, 128, 1 + (int64_t)dice(40), 5, odd_numbers_stay);
            }
    CLEAN(plain_loops);
}
#else
Test(recur_tiles, double_library_has_no_tiles) { cr_assert(!table_is_here("amx-emulated")); }
#endif
