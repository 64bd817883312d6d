/* test_token_windows.c - tests windows over tokens, every n-th token, repeated tokens and pooling over
 * windows against plain loops, with neighbours of NaN, and in every layout. */
#include "tests/check.h"
#include "core/ragged.h"

enum { N = 5, F = 3, TOKENS = 4 + 0 + 1 + 7 + 2 };
static const int32_t lens[N] = { 4, 0, 1, 7, 2 };
static const weft_lengths all = { .n = N, .len = lens };
static weft_real rows[TOKENS * F];

static weft_tensor *input(weft *w, weft_layout layout) /* the same numbers each time */
{
    dice_seed(1);
    return weft_to_layout(weft_ragged(w, dice_fill(rows, TOKENS * F, -1, 1), F, &all), layout);
}

/* Returns number f of token t of sequence s, 0 outside the sequence. */
static weft_real token(int s, int64_t t, int f)
{
    int first = 0;
    for (int k = 0; k < s; k++)
        first += lens[k];
    return t < 0 || t >= lens[s] ? 0 : rows[(first + t) * F + f];
}

TABLE_TEST(token_windows, window_matches_plain_loops)
{
    static const int64_t cases[][3] = { { 3, 1, -2 }, { 3, 1, -1 }, { 2, 3, 0 },
                                        { 4, 2, -4 }, { 1, 1, 5 },  { 9, 1, -8 } };
    for (int c = 0; c < COUNT(cases); c++)
        for (int packed = 0; packed < 2; packed++) {
            weft_tensor *x = input(w, packed ? WEFT_PACKED : WEFT_CONCAT);
            const int64_t width = cases[c][0], dilation = cases[c][1], from = cases[c][2];
            weft_tensor *y = weft_tokens_window(x, width, dilation, from);
            cr_assert(weft_rank(y) == 3 && weft_size(y, 1) == width && weft_size(y, 2) == F &&
                      weft_layout_of(y) == WEFT_CONCAT);
            const weft_real *got = numbers(y);
            for (int s = 0; s < N; s++)
                for (int t = 0; t < lens[s]; t++)
                    for (int k = 0; k < width; k++)
                        for (int f = 0; f < F; f++)
                            cr_assert(*got++ == token(s, t + from + k * dilation, f), "case %d: %d %d %d", c,
                                      s, t, k);
        }
}

/* A batch keeps its index arrays, so a second call with the same numbers gathers by the same one. */
CPU_TEST(token_windows, index_is_kept_for_the_batch)
{
    weft_tensor *x = input(w, WEFT_CONCAT), *other = weft_ragged(w, rows, 1, &all);
    weft_tokens_window(x, 3, 1, -1);
    const weft__token_windows *kept = x->f.batch->windows;
    weft_tokens_window(other, 3, 1, -1);
    cr_assert(kept && other->f.batch->windows == kept);
    weft_tokens_window(x, 3, 1, 0);
    cr_assert(x->f.batch->windows != kept && x->f.batch->windows->next == kept);
    weft_mark here = weft_mark_here(w);
    const weft__token_windows *both = x->f.batch->windows;
    weft_tokens_every(x, 2);
    weft_rewind(w, here);
    cr_assert(x->f.batch->windows == both, "a rewind ends newer index arrays");
}

TABLE_TEST(token_windows, every_of_repeat_is_the_identity)
{
    for (int n = 1; n < 6; n++)
        for (int ints = 0; ints < 2; ints++) {
            weft_tensor *x = input(w, n % 2 ? WEFT_PACKED : WEFT_CONCAT);
            x = ints ? weft_to_ints(weft_scale(x, 9)) : x;
            weft_tensor *more = weft_tokens_repeat(x, n), *same = weft_tokens_every(more, n);
            const weft_lengths l = weft_lengths_of(more);
            for (int s = 0; s < N; s++)
                cr_assert_eq(l.len[s], lens[s] * n);
            cr_assert_eq(same->f.batch, x->f.batch); /* so both can be inputs of an operator */
            weft_tensor *apart = ints ? weft_to_reals(weft_sub(same, x)) : weft_sub(same, x);
            cr_assert_eq(weft_item(weft_sum_all(weft_square(apart))), 0);
            const weft_real *got = numbers(ints ? weft_to_reals(more) : more),
                            *want = numbers(weft_to_layout(ints ? weft_to_reals(x) : x, WEFT_CONCAT));
            for (int t = 0; t < TOKENS * n; t++)
                cr_assert(!memcmp(got + t * F, want + t / n * F, F * sizeof *got), "n %d, token %d", n, t);
        }
}

TABLE_TEST(token_windows, every_takes_the_first_token_of_each_n)
{
    for (int n = 1; n < 9; n++) {
        weft_tensor *y = weft_tokens_every(input(w, WEFT_PACKED), n);
        const weft_real *got = numbers(y);
        for (int s = 0; s < N; s++) {
            cr_assert_eq(weft_lengths_of(y).len[s], (lens[s] + n - 1) / n);
            for (int t = 0; t < lens[s]; t += n)
                for (int f = 0; f < F; f++)
                    cr_assert_eq(*got++, token(s, t, f));
        }
    }
}

TABLE_TEST(token_windows, pool_matches_plain_loops)
{
    for (int width = 1; width < 5; width++)
        for (int stride = 1; stride < 5; stride++)
            for (int how = WEFT_POOL_SUM; how <= WEFT_POOL_MAX; how++) {
                const weft_real *got =
                    numbers(weft_tokens_pool(input(w, WEFT_PACKED), width, stride, (weft_pooling)how));
                for (int s = 0; s < N; s++)
                    for (int t = 0; t < lens[s]; t += stride, got += F)
                        for (int f = 0; f < F; f++) {
                            int n = lens[s] - t < width ? lens[s] - t : width;
                            double sum = 0, most = -INFINITY;
                            for (int k = 0; k < n; k++)
                                sum += (double)token(s, t + k, f),
                                    most = fmax(most, (double)token(s, t + k, f));
                            double want = how == WEFT_POOL_MAX ? most : how == WEFT_POOL_MEAN ? sum / n : sum;
                            cr_assert(fabs((double)got[f] - want) <= TOL(1e-14, 1e-6),
                                      "width %d, stride %d, how %d", width, stride, how);
                        }
            }
}

/* A NaN or an infinity of one sequence reaches no other sequence, forward or backward. */
TABLE_TEST(token_windows, nan_of_a_neighbour_changes_no_bit, .init = unchecked)
{
    static weft_real value[2][2000];
    int64_t n = 0;
    for (int bad = 0; bad < 2; bad++) {
        input(w, WEFT_CONCAT);
        for (int i = 5 * F; bad && i < 12 * F; i++) /* sequence 3 */
            rows[i] = i % 2 ? (weft_real)NAN : (weft_real)INFINITY;
        weft_tensor *x = weft_ragged(w, rows, F, &all), *g;
        weft_tensor *of[] = { weft_reshape(weft_tokens_window(x, 3, 2, -2), WEFT_SHAPE(TOKENS, 3 * F)),
                              weft_tokens_every(x, 2), weft_tokens_repeat(x, 2),
                              weft_tokens_pool(x, 3, 2, WEFT_POOL_MAX),
                              weft_tokens_pool(x, 2, 1, WEFT_POOL_MEAN) };
        n = 0;
        for (int k = 0; k < COUNT(of); k++) {
            weft_gradients(weft_sum_all(weft_square(of[k])), &x, 1, &g);
            weft_tensor *y[] = { of[k], g };
            for (int i = 0; i < 2; i++) {
                const weft_lengths l = weft_lengths_of(y[i]);
                const weft_real *got = numbers(y[i]);
                for (int s = 0; s < N; got += l.len[s++] * weft_size(y[i], 1))
                    for (int64_t j = 0; s != 3 && j < l.len[s] * weft_size(y[i], 1); j++)
                        value[bad][n++] = got[j];
            }
        }
    }
    cr_assert(n > 100);
    same_bits("beside NaN", value[1], value[0], n);
}

CPU_TEST(token_windows, bad_arguments_are_reported)
{
    FAILS_AT(w, weft_tokens_window(weft_plain(input(w, WEFT_CONCAT)), 2, 1, 0), WEFT_ESHAPE, "tokens_window");
    weft_tokens_window(input(w, WEFT_CONCAT), 0, 1, 0);
    FAILS(w, WEFT_EARG, "width 0, dilation 1, from 0; expected width and dilation of 1 or more");
    weft_tokens_every(input(w, WEFT_CONCAT), 0);
    FAILS(w, WEFT_EARG, "tokens_every: [14, 3] concat: n is 0; expected 1 .. 2^31 - 1");
    weft_tokens_repeat(input(w, WEFT_CONCAT), INT32_MAX);
    FAILS(w, WEFT_ESHAPE, "tokens_repeat: sequence 0 of length 4 gets 8589934588 rows");
    weft_tokens_pool(input(w, WEFT_CONCAT), 2, 1, WEFT_POOL_FIRST);
    FAILS(w, WEFT_EARG, "expected width and stride of 1 .. 2^31 - 1, WEFT_POOL_SUM, MEAN or MAX");
    weft_tokens_pool(weft_to_ints(input(w, WEFT_CONCAT)), 2, 1, WEFT_POOL_MEAN);
    FAILS(w, WEFT_EARG, "a mean of ints");
}
