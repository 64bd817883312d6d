/* test_offsets.c - tests pieces of split sequences. Dropout masks equal those of the whole sequences in every
 * layout, and offsets are part of a batch. */
#include "tests/check.h"
#include "autograd/tape.h"

enum { WIDTH = 5, S = 4, PIECES = 7, TOKENS = 24 };
static const double P = .4;
static const int32_t whole_len[S] = { 9, 0, 11, 4 };
static const int64_t whole_id[S] = { 3, 1, (int64_t)7 << 33, 0 };
/* The pieces are in another order than in the whole, and one is empty. offset: position of each in its
 * sequence. */
static const int32_t len[PIECES] = { 5, 4, 2, 0, 6, 4, 3 }, offset[PIECES] = { 4, 0, 0, 2, 2, 0, 8 };
static const int32_t of[PIECES] = { 0, 0, 2, 2, 2, 3, 2 };
static int64_t id[PIECES];
static const weft_lengths whole = { .n = S, .len = whole_len, .id = whole_id },
                          pieces = { .n = PIECES, .len = len, .id = id, .offset = offset };

static void name_pieces(void)
{
    for (int i = 0; i < PIECES; i++)
        id[i] = whole_id[of[i]];
}
static int64_t first_of(int s)
{
    int64_t at = 0;
    for (int i = 0; i < s; i++)
        at += whole_len[i];
    return at;
}
static weft_tensor *ones(weft *w, int64_t width, const weft_lengths *l)
{
    static const weft_real zeros[(TOKENS + 2) * 64];
    return weft_add(weft_ragged(w, zeros, width, l), weft_scalar(w, 1));
}
/* Checks that rows of the pieces in `got` equal those of the whole in `want`. */
static void same_rows(const weft_real *got, const weft_real *want, int64_t width)
{
    for (int i = 0; i < PIECES; got += len[i++] * width)
        cr_assert(!len[i] || !memcmp(got, want + (first_of(of[i]) + offset[i]) * width,
                                     (size_t)(len[i] * width) * sizeof *got),
                  "piece %d", i);
}

/* Resets the counts, so that the next mask of a name is its first in this step. */
static void anew(weft *w)
{
    if (w->tape)
        w->tape->dropouts = NULL;
}

TABLE_TEST(offsets, masks_equal_those_of_whole_sequences)
{
    name_pieces();
    FOR_LAYOUTS(layout) {
        int64_t gone = 0;
        anew(w);
        weft_real *want = numbers(weft_dropout(ones(w, WIDTH, &whole), P, "drop", false));
        anew(w);
        weft_tensor *cut = weft_dropout(laid_out(ones(w, WIDTH, &pieces), layout), P, "drop", false);
        same_rows(numbers(weft_to_layout(cut, WEFT_CONCAT)), want, WIDTH);
        for (int64_t i = 0; i < TOKENS * WIDTH; i++)
            gone += want[i] == 0;
        cr_assert(gone > TOKENS * WIDTH / 5 && gone < TOKENS * WIDTH * 3 / 5);
    }
}

/* Each piece of the queries attends to all keys. Its rows equal those of the whole, in the kernels and in
 * composed operators. */
TABLE_TEST(offsets, attention_over_query_pieces_equals_the_whole)
{
    enum { KEYS = 70 };
    static const weft_real zeros[KEYS * PIECES];
    int32_t keys[PIECES];
    name_pieces();
    for (int i = 0; i < PIECES; i++)
        keys[i] = KEYS;
    weft_attention_opts o = { .dropout = P, .name = "a" };
    for (int operators = 0; operators < 2; operators++) {
        weft_tensor *map[2];
        bool was = weft_set_grad_enabled(w, operators);
        for (int cut = 0; cut < 2; cut++) {
            const weft_lengths *l = cut ? &pieces : &whole;
            weft_tensor *k = weft_ragged(w, zeros, 1, &(weft_lengths){ .n = l->n, .len = keys });
            anew(w);
            weft_attention(ones(w, 1, l), k, k, &o, map + cut);
            map[cut] = weft_plain(weft_to_layout(map[cut], WEFT_CONCAT));
        }
        weft_set_grad_enabled(w, was);
        cr_assert(weft_size(map[0], 0) == TOKENS * KEYS && weft_size(map[1], 0) == TOKENS * KEYS);
        same_rows(numbers(map[1]), numbers(map[0]), KEYS);
    }
}

TABLE_TEST(offsets, positions_count_from_the_sequence_start)
{
    name_pieces();
    weft_tensor *x = ones(w, 1, &pieces);
    weft_rows r = weft_rows_of(x);
    weft_lengths l = weft_lengths_of(x);
    for (int i = 0, at = 0; i < PIECES; i++)
        for (int t = 0; t < len[i]; t++, at++)
            cr_assert(r.sequence[at] == i && r.position[at] == offset[i] + t);
    cr_assert(!memcmp(l.offset, offset, sizeof offset));
    cr_assert_eq(weft_lengths_of(ones(w, 1, &whole)).offset, NULL);
    weft_packed_sequence p = weft_packed_sequence_of(x);
    cr_assert_eq(weft_lengths_of(weft_ragged_of(&p)).offset, l.offset, "the same batch");
}

CPU_TEST(offsets, are_part_of_batch_equality)
{
    static const int32_t none[PIECES];
    name_pieces();
    weft_lengths other = pieces;
    other.offset = none;
    weft_tensor *of_none = ones(w, 1, &other);
    other.offset = NULL;
    weft_add(of_none, ones(w, 1, &other));       /* offsets of zero equal no offsets */
    OK(w);
    weft_add(ones(w, 1, &pieces), ones(w, 1, &other));
    FAILS(w, WEFT_ESHAPE,
          "lengths and ids agree, but sequence 0 has the offset 4 in the first and 0 in the second");
    for (int i = 0; i < 2; i++) {
        int32_t one = 1, at = i ? INT32_MAX : -1;
        weft_ragged(w, (weft_real[]){ 1 }, 1, &(weft_lengths){ .n = 1, .len = &one, .offset = &at });
        FAILS(w, WEFT_EARG, i ? "has the offset 2147483647" : "sequence 0 of length 1 has the offset -1");
    }
}
