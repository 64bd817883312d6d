/* test_positions.c - tests positional encodings and RoPE against plain loops in double and numbers of PyTorch
 * 2.15, in every layout, with offsets and with neighbours of NaN. Compares RMS norm with torch.nn.RMSNorm.
 * Derivatives are checked by test_ops.c. */
#include "tests/check.h"
#include "autograd/api_windows.h"
#include "autograd/tape.h"

enum { N = 5, HEADS = 2, D = 6, F = HEADS * D, TOKENS = 4 + 0 + 1 + 7 + 2 };
static const int32_t lens[N] = { 4, 0, 1, 7, 2 }, far[N] = { 1000, 3, 0, 1000000, 12345 };
static const weft_lengths all = { .n = N, .len = lens }, pieces = { .n = N, .len = lens, .offset = far };

/* Returns the numbers sin(.37 k^2 + k). */
static const weft_real *waves(void)
{
    static weft_real x[TOKENS * F];
    for (int k = 0; k < TOKENS * F; k++)
        x[k] = (weft_real)sin(.37 * k * k + k);
    return x;
}

/* Returns the position of token `row` in concat. */
static int64_t position(const weft_lengths *l, int row)
{
    int s = 0;
    for (; row >= l->len[s]; s++)
        row -= l->len[s];
    return row + (l->offset ? l->offset[s] : 0);
}
static double angle_of(const weft_lengths *l, int row, int pair, int width, double base)
{
    return (double)position(l, row) / pow(base, 2. * pair / width);
}

TABLE_TEST(positions, encoding_is_that_of_the_paper)
{
    static const struct {
        int width;
        double base;
    } cases[] = { { 8, 0 }, { 2, 100 }, { 34, 1e6 } };
    for (int c = 0; c < COUNT(cases); c++)
        for (int cut = 0; cut < 2; cut++)
            FOR_LAYOUTS(layout)
            {
                const int width = cases[c].width;
                weft_tensor *like = laid_out(weft_ragged(w, waves(), F, cut ? &pieces : &all), layout);
                weft_tensor *y = weft_positional_encoding(like, width, cases[c].base);
                cr_assert(weft_layout_of(y) == (weft_layout)layout || layout == WEFT_ROWS);
                cr_assert_eq(weft_size(y, 1), width);
                weft_add(like, weft_sum(weft_reshape(y, WEFT_SHAPE(-1, 1, width)), 2));
                cr_assert(weft_ok(w), "%s", weft_error_message(w)); /* of one batch */
                const weft_real *got = numbers(weft_to_layout(y, WEFT_CONCAT));
                for (int t = 0; t < TOKENS; t++)
                    for (int i = 0; i < width; i++) {
                        double a = angle_of(cut ? &pieces : &all, t, i / 2, width,
                                            cases[c].base != 0 ? cases[c].base : 10000);
                        double want = i % 2 ? cos(a) : sin(a);
                        cr_assert(fabs((double)got[t * width + i] - want) <= TOL(1e-9, 6e-8),
                                  "case %d, token %d, column %d: %.9g, not %.9g", c, t, i,
                                  (double)got[t * width + i], want);
                    }
            }
}

/* Most rows follow from the row before. The errors of a long sequence do not grow. */
CPU_TEST(positions, encoding_of_a_long_sequence_is_exact)
{
    enum { LONG = 20000, WIDTH = 4 };
    weft_tensor *like = weft_ragged(w, NULL, 0, &(weft_lengths){ .n = 1, .len = (int32_t[]){ LONG } });
    const weft_real *got = numbers(weft_positional_encoding(like, WIDTH, 0));
    for (int t = 0; t < LONG; t++)
        for (int i = 0; i < WIDTH; i++) {
            double a = t / (i < 2 ? 1. : 100.), want = i % 2 ? cos(a) : sin(a);
            cr_assert(fabs((double)got[t * WIDTH + i] - want) <= TOL(2e-11, 6e-8), "token %d", t);
        }
}

static weft_tensor *rope(weft_tensor *x, bool interleaved)
{
    return weft_rope(x, &(weft_rope_opts){ .heads = HEADS, .interleaved = interleaved });
}
/* Returns the number of a column after the rotation. */
static double rotated(const weft_lengths *l, int row, int column, bool interleaved)
{
    const weft_real *x = waves() + row * F + column / D * D;
    const int i = column % D, pair = interleaved ? i / 2 : i % (D / 2),
              second = interleaved ? i % 2 : i >= D / 2;
    const double a = angle_of(l, row, pair, D, 10000), u = (double)x[interleaved ? 2 * pair : pair],
                 v = (double)x[interleaved ? 2 * pair + 1 : pair + D / 2];
    return second ? u * sin(a) + v * cos(a) : u * cos(a) - v * sin(a);
}

TABLE_TEST(positions, rope_matches_plain_loops)
{
    for (int kind = 0; kind < 4; kind++)
        FOR_LAYOUTS(layout)
        {
            const weft_lengths *l = kind / 2 ? &pieces : &all;
            weft_tensor *y = rope(laid_out(weft_ragged(w, waves(), F, l), layout), kind % 2);
            cr_assert(weft_layout_of(y) == (weft_layout)layout || layout == WEFT_ROWS);
            cr_assert(weft_rank(y) == 2 && weft_size(y, 1) == F);
            const weft_real *got = numbers(weft_to_layout(y, WEFT_CONCAT));
            for (int t = 0; t < TOKENS; t++)
                for (int f = 0; f < F; f++)
                    cr_assert(fabs((double)got[t * F + f] - rotated(l, t, f, kind % 2)) <= TOL(2e-9, 3e-7),
                              "kind %d, token %d, column %d", kind, t, f);
        }
}

/* Returns the sum of y_k sin(k + 1), with k the index in concat. */
static weft_tensor *probe_of(weft_tensor *y)
{
    static weft_real p[TOKENS * F];
    for (int k = 0; k < TOKENS * F; k++)
        p[k] = (weft_real)sin(k + 1.);
    return weft_sum_all(weft_mul(y, weft_ragged(weft_context_of(y), p, F, &all)));
}

/* Expects the probes of y, and of the gradient of the probe of y^2 in x. */
static void has_probes(weft_tensor *y, weft_tensor *x, const double want[2])
{
    weft_tensor *g;
    weft_gradients(probe_of(weft_square(y)), &x, 1, &g);
    const weft_real got[] = { weft_item(probe_of(y)), weft_item(probe_of(g)) },
                    of[] = { (weft_real)want[0], (weft_real)want[1] };
    close_to("probes", got, of, 2, TOL(1e-12, 4e-6));
}

/* The halves are Hugging Face's apply_rotary_pos_emb, the pairs torch.view_as_complex and a product. */
TABLE_TEST(positions, rope_matches_pytorch)
{
    static const double want[2][2] = { { 2.5781936921239907, 2.180396921268537 },
                                       { 5.505715521594032, 1.7215431182925052 } };
    for (int pairs = 0; pairs < 2; pairs++) {
        weft_tensor *x = weft_ragged(w, waves(), F, &all);
        has_probes(rope(x, pairs), x, want[pairs]);
    }
}

TABLE_TEST(positions, rms_norm_matches_pytorch)
{
    static const double want[2][2] = { { 7.277109479129379, -6.51578809827339 },
                                       { 5.194128582856255, -5.998786116311894 } };
    for (int i = 0; i < 2; i++) {
        weft_tensor *gain =
            weft_add(weft_scale(weft_to_reals(weft_arange(w, 0, F, 1)), .1), weft_scalar(w, .5));
        weft_tensor *x = weft_ragged(w, waves(), F, &all);
        has_probes(weft_rms_norm(x, gain, i ? .5 : sizeof(weft_real) == 8 ? 0 : 0x1p-52), x, want[i]);
    }
}

/* Scores of attention depend on the distance of two tokens, and a rotation keeps norms. So two pieces with
 * equal numbers have the same results at any offset. */
TABLE_TEST(positions, rope_depends_on_distance_only)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        static weft_real y[2][TOKENS * F];
        for (int cut = 0; cut < 2; cut++) {
            weft_tensor *q = weft_ragged(w, waves(), F, cut ? &pieces : &all), *k = weft_flip(q, 1);
            weft_tensor *turned = rope(q, pairs);
            weft_tensor *out =
                weft_attention(turned, rope(k, pairs), q, &(weft_attention_opts){ .heads = HEADS }, NULL);
            weft_read(weft_to_layout(out, WEFT_CONCAT), y[cut], sizeof y[cut]);
            close_to("norms", numbers(weft_vector_norm(turned, 1, 2)), numbers(weft_vector_norm(q, 1, 2)),
                     TOKENS, TOL(1e-13, 1e-6));
            if (cut)
                close_to("shifted", y[1], y[0], TOKENS * F, TOL(1e-8, 2e-6));
            else
                cr_assert(!is_close(
                    "without rotation", y[0],
                    numbers(weft_attention(q, k, q, &(weft_attention_opts){ .heads = HEADS }, NULL)),
                    TOKENS * F, 1e-3));
        }
    }
}

/* Writes results and gradients of all rows except those of sequence 3. Returns their number. */
static int64_t results(weft *w, bool bad, int layout, weft_real *out)
{
    static weft_real rows[TOKENS * F];
    memcpy(rows, waves(), sizeof rows);
    for (int i = 5 * F; bad && i < 12 * F; i++)
        rows[i] = i % 2 ? (weft_real)NAN : (weft_real)INFINITY;
    weft_tensor *x = laid_out(weft_ragged(w, rows, F, &all), layout), *g;
    weft_tensor *of[] = { rope(x, false), rope(x, true), weft_rms_norm(x, NULL, 0),
                          weft_mul(x, weft_positional_encoding(x, F, 0)) };
    int64_t n = 0;
    for (int k = 0; k < COUNT(of); k++) {
        weft_gradients(weft_sum_all(weft_square(weft_square(of[k]))), &x, 1, &g);
        for (int i = 0; i < 2; i++) {
            const weft_real *got = numbers(weft_to_layout(i ? g : of[k], WEFT_CONCAT));
            for (int t = 0; t < TOKENS * F; t++)
                if (t < 5 * F || t >= 12 * F)
                    out[n++] = got[t];
        }
    }
    return n;
}
TABLE_TEST(positions, neighbours_and_layouts_change_no_bit, .init = unchecked)
{
    static weft_real want[9 * TOKENS * F], got[9 * TOKENS * F];
    const int64_t n = results(w, false, WEFT_CONCAT, want);
    for (int bad = 0; bad < 2; bad++)
        FOR_LAYOUTS(layout)
        {
            cr_assert_eq(results(w, bad, layout, got), n);
            same_bits("rows of other sequences", got, want, n);
        }
}

/* A piece of a sequence has the bits that its tokens have in the whole sequence. */
CPU_TEST(positions, pieces_have_the_bits_of_the_whole)
{
    enum { LONG = 100, WIDTH = 34 };
    static const int32_t cut[] = { 41, 59 }, from[] = { 0, 41 }, whole = LONG;
    static const weft_real zeros[LONG];
    weft_tensor *x = weft_ragged(w, zeros, 1, &(weft_lengths){ .n = 1, .len = &whole }),
                *y = weft_ragged(w, zeros, 1, &(weft_lengths){ .n = 2, .len = cut, .offset = from });
    same_bits("pieces", numbers(weft_positional_encoding(y, WIDTH, 0)),
              numbers(weft_positional_encoding(x, WIDTH, 0)), LONG * WIDTH);
}

TABLE_TEST(positions, empty_batches_are_valid)
{
    weft_tensor *x = weft_ragged(w, NULL, 4, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 0, 0 } });
    cr_assert(weft_size(weft_positional_encoding(x, 6, 0), 0) == 0 && weft_size(weft_rope(x, NULL), 1) == 4 &&
              weft_size(weft_rms_norm(x, NULL, 0), 1) == 4);
}

CPU_TEST(positions, bad_arguments_are_reported)
{
    weft_positional_encoding(weft_ragged(w, waves(), F, &all), 3, 0);
    FAILS(w, WEFT_EARG,
          "positional_encoding: [14, 12] concat: width 3, base 10000; expected a ragged tensor, an "
          "even width");
    weft_positional_encoding(weft_zeros(w, WEFT_SHAPE(2, 2)), 2, 0);
    FAILS(w, WEFT_EARG, "expected a ragged tensor");
    weft_rope(weft_ragged(w, waves(), F, &all), &(weft_rope_opts){ .heads = 4 });
    FAILS(w, WEFT_ESHAPE,
          "rope: [14, 12] concat: 4 heads, base 10000; expected ragged reals [N, heads * d] with an even d");
    weft_rope(weft_ragged(w, waves(), F, &all), &(weft_rope_opts){ .base = -1 });
    FAILS(w, WEFT_ESHAPE, "base -1; expected");
    weft_rms_norm(weft_zeros(w, WEFT_SHAPE(2)), NULL, -1);
    FAILS(w, WEFT_EARG, "rms_norm: [2]: eps is -1; expected a finite number, 0 or more");
    weft_rms_norm(weft_zeros(w, WEFT_SHAPE(2)), weft_zeros(w, WEFT_SHAPE(3)), 0);
    FAILS(w, WEFT_ESHAPE, "rms_norm: [2], [3]: expected a gain [2], as the last axis");
}
