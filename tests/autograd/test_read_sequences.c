/* test_read_sequences.c - tests reading ragged tensors on the host, sequence by sequence, from every
 * layout. */
#include "tests/check.h"

enum { N = 5, TOKENS = 14, F = 2 };
static const int32_t len[N] = { 3, 0, 6, 1, 4 };
static const weft_lengths lengths = { .n = N, .len = len };
static const int32_t row[N] = { 0, 0, 1, 0, 2 }, column[N] = { 0, 3, 0, 3, 1 };
static const weft_placement place = { 3, 6, row, column };

TABLE_TEST(read_sequences, reads_every_layout)
{
    weft_real x[TOKENS * F], got[TOKENS * F];
    int32_t id[TOKENS], ints[TOKENS];
    dice_fill(x, TOKENS * F, -1, 1);
    for (int i = 0; i < TOKENS; i++)
        id[i] = 7 * i - 3;
    weft_tensor *concat = weft_ragged(w, x, F, &lengths), *c_ids = weft_ragged_ints(w, id, &lengths);
    weft_tensor *all[] = { concat, weft_to_layout(concat, WEFT_PACKED), weft_to_rows(concat, &place) },
                *ids[] = { c_ids, weft_to_layout(c_ids, WEFT_PACKED), weft_to_rows(c_ids, &place) };
    int64_t tape = weft_usage_of(w).tape;
    for (int i = 0; i < COUNT(all); i++) {
        memset(got, 1, sizeof got), memset(ints, 1, sizeof ints);
        cr_assert_eq(sequences_status(all[i], got, sizeof got), WEFT_OK, "%s", weft_error_message(w));
        same_bits("reals", got, x, TOKENS * F);
        cr_assert_eq(sequences_status(ids[i], ints, sizeof ints), WEFT_OK);
        cr_assert(!memcmp(ints, id, sizeof id), "layout %d", i);
    }
    cr_assert_eq(weft_usage_of(w).tape, tape, "reading must not be recorded");
    cr_assert(weft_set_grad_enabled(w, true), "recording stayed off");
    cr_assert_eq(sequences_status(weft_reals(w, x, WEFT_SHAPE(TOKENS, F)), got, sizeof got), WEFT_OK);
    same_bits("plain", got, x, TOKENS * F);
}

CPU_TEST(read_sequences, handles_empty_and_invalid_tensors)
{
    static const int32_t none[2] = { 0, 0 };
    weft_real out[18] = { 1 };
    cr_assert_eq(sequences_status(weft_ragged(w, NULL, 3, &(weft_lengths){ .n = 2, .len = none }), out, 0),
                 WEFT_OK);
    cr_assert_eq(sequences_status(weft_ragged(w, NULL, 0, &(weft_lengths){ .n = 0 }), out, 0),
                 WEFT_OK);
    cr_assert_eq(out[0], 1);
    weft_tensor *rows = weft_to_rows(weft_ragged(w, NULL, 0, &lengths), &place);
    cr_assert_eq(weft_numel(rows), 18);
    cr_assert(sequences_status(rows, out, 18 * sizeof *out) != WEFT_OK && out[0] == 0,
              "padding was read");
    FAILS(w, weft_error_code(w), "read: ");
    cr_assert(sequences_status(NULL, out, sizeof out) != WEFT_OK);
}
