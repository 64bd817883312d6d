/* test_row_order.c - tests that plain rows become ragged only in their stored order. weft_ragged_like refuses
 * other orders. weft_ragged_rows rearranges rows that are in the user's order. weft_read_sequences reads
 * every layout in that order. */
#include "tests/check.h"

enum { SENTENCES = 3, WORDS = 6, WIDTH = 2 };
static const int32_t words[SENTENCES] = { 1, 3, 2 }, letters[WORDS] = { 2, 1, 3, 1, 2, 4 };
static const weft_real rows[WORDS * WIDTH] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

static weft_tensor *given(weft *w) { return weft_reals(w, rows, WEFT_SHAPE(WORDS, WIDTH)); }
static weft_tensor *sentences(weft *w)
{
    static const int32_t ids[WORDS] = { 10, 11, 12, 13, 14, 15 };
    return weft_ragged_ints(w, ids, &(weft_lengths){ .n = SENTENCES, .len = words });
}
static weft_tensor *in_rows(weft_tensor *x)
{
    static const int32_t row[] = { 0, 1, 0 }, column[] = { 0, 0, 2 };
    return weft_to_rows(x, &(weft_placement){ 2, 4, row, column });
}
static void is_laid_out(weft_tensor *x, weft_tensor *like)
{
    weft_real got[WORDS * WIDTH];
    cr_assert(weft_layout_of(x) == weft_layout_of(like) && weft_size(x, 0) == weft_size(like, 0));
    int64_t tape = weft_usage_of(weft_context_of(x)).tape;
    cr_assert_eq(sequences_status(x, got, sizeof got), WEFT_OK);
    cr_assert(weft_usage_of(weft_context_of(x)).tape == tape && weft_is_grad_enabled(weft_context_of(x)));
    same_bits("rows", got, rows, WORDS * WIDTH);
}

TABLE_TEST(row_order, ragged_rows_takes_rows_in_the_users_order)
{
    weft_tensor *like[] = { sentences(w), weft_to_layout(sentences(w), WEFT_PACKED), in_rows(sentences(w)) };
    for (int i = 0; i < COUNT(like); i++)
        is_laid_out(weft_ragged_rows(given(w), like[i]), like[i]);
    is_laid_out(given(w), given(w));
    is_laid_out(weft_ragged_like(given(w), like[0]), like[0]);
    int32_t ints[WORDS] = { 5, 4, 3, 2, 1, 0 }, got[WORDS];
    weft_read_sequences(weft_ragged_rows(weft_ints(w, ints, WEFT_SHAPE(WORDS)), like[1]), got, sizeof got);
    cr_assert_arr_eq(got, ints, sizeof ints);
}

TABLE_TEST(row_order, gradients_return_in_the_users_order)
{
    weft_tensor *x = given(w), *factor = given(w), *like = weft_to_layout(sentences(w), WEFT_PACKED), *dx;
    weft_tensor *y = weft_mul(weft_ragged_rows(x, like), weft_ragged_rows(factor, like));
    weft_gradients(weft_sum_all(y), &x, 1, &dx);
    same_bits("gradient", numbers(dx), rows, WORDS * WIDTH);
}

TABLE_TEST(row_order, unknown_rows_with_a_packed_tensor_are_refused)
{
    weft_ragged_like(given(w), weft_to_layout(sentences(w), WEFT_PACKED));
    FAILS(w, WEFT_ESHAPE, "ragged_like: [6, 2]: like is [6] packed of ints; expected rows that are known "
                          "to be in its order. weft_ragged_rows takes rows");
    weft_tensor *x = weft_scale(weft_square(weft_add(given(w), weft_scalar(w, 1))), 2);
    FAILS_AT(w, weft_ragged_like(x, weft_to_layout(sentences(w), WEFT_PACKED)), WEFT_ESHAPE, "ragged_like: ");
    weft_ragged_like(weft_reals(w, NULL, WEFT_SHAPE(8)), in_rows(sentences(w)));
    FAILS(w, WEFT_ESHAPE, "ragged_like: ");
}

/* The mistake that the record of orders prevents: one vector per word, made by a layer over letters. */
CPU_TEST(row_order, letter_layer_gives_words_in_the_users_order)
{
    weft_tensor *letter = weft_ragged(w, NULL, 0, &(weft_lengths){ .n = WORDS, .len = letters }),
                *word = weft_pool(weft_add(letter, weft_scalar(w, 1)), WEFT_POOL_SUM);
    weft_tensor *like = weft_to_layout(sentences(w), WEFT_PACKED), *y = weft_ragged_rows(word, like);
    weft_real got[WORDS];
    weft_read_sequences(y, got, sizeof got);
    OK(w);
    for (int i = 0; i < WORDS; i++)
        cr_assert_eq(got[i], letters[i]);
    FAILS_AT(w, weft_ragged_like(word, like), WEFT_ESHAPE, "weft_ragged_rows");
}

/* ---- rows from weft_plain ---- */
static weft_tensor *kept(weft_tensor *p, int how)
{
    weft *w = weft_context_of(p);
    switch (how) {
    case 0:  return p;
    case 1:  return weft_add(weft_square(p), weft_reals(w, rows, WEFT_SHAPE(WIDTH)));
    case 2:  return weft_matmul(p, weft_zeros(w, WEFT_SHAPE(WIDTH, 3)));
    case 3:  return weft_reshape(weft_slice(p, 1, 0, 1), WEFT_SHAPE(-1));
    case 4:  return weft_concat(WEFT_LIST(p, weft_zeros(w, WEFT_SHAPE(WORDS, 1))), 1);
    case 5:  return weft_index_select(weft_zeros(w, WEFT_SHAPE(20, 3)), weft_plain(
                                          weft_to_layout(sentences(w), WEFT_PACKED)));
    case 6:  return weft_sum(weft_softmax(p, 1, NULL), 1);
    case 7:  return weft_detach(weft_stack(WEFT_LIST(p, p), 1));
    default: return weft_layer_norm(weft_dropout(p, .5, "d", false), NULL, NULL, 1e-5);
    }
}
TABLE_TEST(row_order, operators_that_keep_rows_keep_their_order)
{
    for (int how = 0; how < 9; how++) {
        weft_tensor *like = weft_to_layout(sentences(w), WEFT_PACKED),
                    *x = weft_plain(weft_ragged_rows(given(w), like)), *y;
        y = weft_ragged_like(kept(x, how), like);
        cr_assert(weft_ok(w) && weft_layout_of(y) == WEFT_PACKED, "%d: %s", how, weft_error_message(w));
    }
}

static weft_tensor *moved(weft_tensor *p, int how)         /* p [6, 6], packed */
{
    weft *w = weft_context_of(p);
    switch (how) {
    case 0:  return weft_flip(p, 0);
    case 1:  return weft_transpose(p, 0, 1);
    case 2:  return weft_permute(p, (int[]){ 1, 0 });
    case 3:  return weft_sum(p, 0);
    case 4:  return weft_matmul_with(p, true, p, false);
    case 5:  return weft_matmul(given(w), weft_slice(p, 0, 0, 2));
    case 6:  return weft_index_select(p, weft_ints(w, (int32_t[]){ 0, 1, 2, 3, 4, 5 }, WEFT_SHAPE(6)));
    case 7:  return weft_add(weft_sum(p, 1), weft_zeros(w, WEFT_SHAPE(6, 6)));
    case 8:  return weft_max(p, 0);
    case 9:  return weft_logsumexp(p, 0, NULL);
    default: return weft_index_add(p, weft_ints(w, (int32_t[]){ 0, 1, 2, 3, 4, 5 }, WEFT_SHAPE(6)), 6);
    }
}
CPU_TEST(row_order, operators_that_move_rows_drop_their_order)
{
    for (int how = 0; how < 11; how++) {
        weft_tensor *like = weft_to_layout(sentences(w), WEFT_PACKED),
                    *wide = weft_ragged_rows(weft_zeros(w, WEFT_SHAPE(WORDS, WORDS)), like);
        weft_tensor *x = moved(weft_plain(wide), how);
        cr_assert(weft_ok(w) && weft_size(x, 0) == WORDS, "%d: %s", how, weft_error_message(w));
        weft_ragged_like(x, like);
        cr_assert(!weft_ok(w), "%d is taken", how);
        FAILS(w, WEFT_ESHAPE, "ragged_like: ");
    }
}

TABLE_TEST(row_order, rows_of_another_layout_are_refused)
{
    weft_ragged_like(weft_plain(weft_to_layout(sentences(w), WEFT_PACKED)), sentences(w));
    FAILS(w, WEFT_ESHAPE, "ragged_like: ");
    weft_ragged_rows(weft_plain(weft_to_layout(sentences(w), WEFT_PACKED)), sentences(w));
    FAILS(w, WEFT_ESHAPE, "ragged_rows: [6] of ints: the rows are in the order of a packed tensor "
                          "(weft_plain); expected rows sequence by sequence (weft_ragged_like");
    weft_ragged_rows(weft_zeros(w, WEFT_SHAPE(5)), weft_to_layout(sentences(w), WEFT_PACKED));
    FAILS(w, WEFT_ESHAPE, "ragged_rows: [5]: expected a plain tensor with one row for each of 6 tokens");
}

TABLE_TEST(row_order, rows_of_two_orders_are_refused_together)
{
    weft_tensor *a = weft_ragged_rows(given(w), sentences(w)), *b = weft_to_layout(a, WEFT_PACKED);
    weft_sub(weft_square(weft_plain(b)), weft_plain(a));
    FAILS(w, WEFT_ESHAPE,
          "sub: [6, 2], [6, 2]: the rows of input 1 (weft_plain of concat) and those before it (of "
          "packed) differ in order; expected one order. Call weft_to_layout before weft_plain");
    a = weft_ragged_rows(given(w), sentences(w)), b = weft_to_layout(a, WEFT_PACKED);
    weft_concat(WEFT_LIST(weft_plain(a), weft_plain(b)), 1);
    FAILS(w, WEFT_ESHAPE, "concat: [6, 2], [6, 2]: the rows of input 1 (weft_plain of");
    weft_tensor *ids = sentences(w);
    b = weft_plain(weft_to_layout(weft_ragged_rows(given(w), ids), WEFT_PACKED));
    weft_cross_entropy(b, weft_plain(ids), NULL);
    FAILS(w, WEFT_ESHAPE, "cross_entropy: [6, 2], [6] of ints: the rows of input 1 (weft_plain of");
    a = weft_ragged_rows(given(w), sentences(w)), b = weft_to_layout(a, WEFT_PACKED);
    weft_concat(WEFT_LIST(weft_plain(a), weft_plain(b)), 0);         /* concatenated rows */
    weft_add(weft_plain(b), given(w));                               /* for example noise */
    weft_add(weft_plain(a), weft_plain(a));
    weft_tensor *pads = weft_pad_packed_sequence(a, 0, 0, WEFT_ALIGN_LEFT);
    weft_lengths l = { .n = SENTENCES, .len = (int32_t[]){ 3, 1, 1 } };
    weft_mul(pads, weft_reshape(weft_length_mask(w, &l, 3, WEFT_ALIGN_RIGHT), WEFT_SHAPE(SENTENCES, 3, 1)));
    OK(w);
}

/* If both layouts have the same order, no mistake is possible. */
TABLE_TEST(row_order, layouts_with_the_same_order_are_accepted)
{
    const int32_t ones[WORDS] = { 1, 1, 1, 1, 1, 1 }, single[2] = { 0, WORDS };
    weft_lengths of[] = { { .n = WORDS, .len = ones }, { .n = 2, .len = single } };
    for (int i = 0; i < COUNT(of); i++) {
        weft_tensor *like = weft_to_layout(weft_ragged(w, NULL, 0, &of[i]), WEFT_PACKED);
        weft_ragged_like(given(w), like);
        OK(w);
    }
    weft_lengths l = { .n = SENTENCES, .len = words, .id = (int64_t[]){ 7, 8, 9 } };
    weft_tensor *other = weft_to_layout(weft_ragged(w, NULL, 0, &l), WEFT_PACKED);
    weft_ragged_like(weft_plain(weft_to_layout(sentences(w), WEFT_PACKED)), other);
    OK(w);
}

CPU_TEST(row_order, empty_tensors_are_read_and_padding_is_not)
{
    static const int32_t none[2] = { 0, 0 };
    weft_real out[8] = { 1 };
    cr_assert_eq(sequences_status(weft_ragged(w, NULL, 3, &(weft_lengths){ .n = 2, .len = none }), out, 0),
                 WEFT_OK);
    cr_assert_eq(sequences_status(weft_ragged(w, NULL, 0, &(weft_lengths){ .n = 0 }), out, 0),
                 WEFT_OK);
    cr_assert_eq(out[0], 1);
    weft_tensor *padded = in_rows(sentences(w));
    cr_assert(sequences_status(padded, out, 8 * sizeof(int32_t)) != WEFT_OK && out[0] == 0,
              "padding was read");
    FAILS(w, weft_error_code(w), "read: ");
    cr_assert(sequences_status(NULL, out, sizeof out) != WEFT_OK);
}
