/* test_packing.c - tests packing and unpacking of padded sequences: every index array and every cell against
 * a plain loop, for random lengths on every kernel table, and invalid lengths. */
#include "tests/check.h"

enum { MOST = 12, LONGEST = 9, COLUMNS = LONGEST + 1 };

static weft_real value(int64_t s, int64_t t) { return (weft_real)(100 * s + t + 1); }

/* Creates [n, columns] with values in the cells of tokens. right: padding comes first. */
static weft_tensor *padded(weft *w, const weft_lengths *l, int64_t columns, bool right, weft_real pad)
{
    weft_real v[MOST * COLUMNS];
    for (int64_t s = 0; s < l->n; s++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t t = right ? c - (columns - l->len[s]) : c;
            v[s * columns + c] = t >= 0 && t < l->len[s] ? value(s, t) : pad;
        }
    return weft_reals(w, v, WEFT_SHAPE(l->n, columns));
}

/* Checks the index arrays, and the data in PACKED and CONCAT order. */
static void hold_packed(weft_tensor *x, const weft_lengths *l)
{
    weft_packed_sequence p = weft_packed_sequence_of(x);
    weft_tensor *concat = weft_to_layout(x, WEFT_CONCAT);
    weft_rows rows = weft_rows_of(concat);
    weft_real *got = numbers(x), *in_order = numbers(concat);
    int64_t row = 0;
    for (int64_t s = 0; s < l->n; s++) {
        cr_assert_eq(weft_offsets(concat)[s], row);
        for (int32_t t = 0; t < l->len[s]; t++, row++)
            cr_assert(rows.sequence[row] == s && rows.position[row] == t && in_order[row] == value(s, t));
    }
    cr_assert(weft_offsets(concat)[l->n] == row && weft_size(x, 0) == row);
    for (int64_t k = 0; k < l->n; k++) {
        int32_t s = p.sorted_indices[k], before = k ? p.sorted_indices[k - 1] : s;
        cr_assert(p.unsorted_indices[s] == k && l->len[before] >= l->len[s]);
        cr_assert(l->len[before] > l->len[s] || before <= s, "ties keep their order");
    }
    row = 0;
    for (int64_t t = 0; t < p.steps; t++) {
        int64_t live = 0;
        for (int64_t s = 0; s < l->n; s++)
            live += l->len[s] > t;
        cr_assert(live > 0 && p.batch_sizes[t] == live);
        for (int64_t k = 0; k < live; k++)
            cr_assert(got[row++] == value(p.sorted_indices[k], t));
    }
    cr_assert_eq(row, weft_size(x, 0));
}

TABLE_TEST(packing, cells_and_indices_match_plain_loops)
{
    int32_t len[MOST];
    for (int k = 0; k < rounds(40, 1000); k++) {
        weft_lengths l = { .n = 1 + (int64_t)dice(MOST), .len = len };
        int64_t tokens = dice_lengths(len, l.n, LONGEST), longest = 0;
        for (int64_t s = 0; s < l.n; s++)
            longest = len[s] > longest ? len[s] : longest;
        for (int right = 0; right < 2; right++) {
            weft_align align = right ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT;
            weft_tensor *p =
                weft_pack_padded_sequence(padded(w, &l, COLUMNS, right, (weft_real)NAN), &l, align);
            cr_assert(weft_layout_of(p) == WEFT_PACKED && weft_size(p, 0) == tokens);
            hold_packed(p, &l);
            same_bits("unpacked", numbers(weft_pad_packed_sequence(p, COLUMNS, -1, align)),
                      numbers(padded(w, &l, COLUMNS, right, -1)), l.n * COLUMNS);
            same_bits("to the longest", numbers(weft_pad_packed_sequence(p, 0, 0, align)),
                      numbers(padded(w, &l, longest, right, 0)), l.n * longest);
        }
        OK(w);
        weft_clear(w);
    }
}

/* ---- invalid and borderline lengths ---- */
TABLE_TEST(packing, invalid_lengths_are_refused)
{
    struct { int32_t len[4]; int64_t n; const char *part;
    } bad[] = {
        { { 3, 2, 6 }, 3, "2" },
        { { 3, -1, 4 }, 3, "1" },
        { { 3, 2 }, 2, "3" },
        { { 3, 2, 4, 1 }, 4, "3" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_pack_padded_sequence(weft_zeros(w, WEFT_SHAPE(3, 5)),
                                  &(weft_lengths){ .n = bad[i].n, .len = bad[i].len }, WEFT_ALIGN_LEFT);
        cr_assert(weft_error_code(w) == WEFT_ESHAPE || weft_error_code(w) == WEFT_EARG, "lengths %d: %s",
                  i, weft_error_message(w));
        cr_assert(strstr(weft_error_message(w), "pack_padded") &&
                      strstr(weft_error_message(w), bad[i].part),
                  "lengths %d: \"%s\"", i, weft_error_message(w));
        weft_recover(w);
    }
}

/* A length may cover only part of the data, as in PyTorch: the 4 is dropped. WEFT_CHECK reports it. */
TABLE_TEST(packing, data_beyond_a_length_is_dropped)
{
    const weft_real rows[15] = { 1, 2, 3, 4, 0, 5, 6, 0, 0, 0, 7, 8, 9, 0, 0 };
    const int32_t   len[3] = { 3, 2, 5 }, enough[3] = { 4, 2, 5 };
    weft_tensor *x = weft_reals(w, rows, WEFT_SHAPE(3, 5));
    cr_assert(
        weft_size(weft_pack_padded_sequence(x, &(weft_lengths){ .n = 3, .len = len }, WEFT_ALIGN_LEFT),
                  0) == 10);
    weft_lengths all = { .n = 3, .len = enough }, some = { .n = 3, .len = len };
    cr_assert(weft_pads_are_zero(x, &all, WEFT_ALIGN_LEFT));
    cr_assert(weft_size(weft_pack_padded_sequence(x, &all, WEFT_ALIGN_LEFT), 0) == 11);
    OK(w);
    cr_assert(!weft_pads_are_zero(x, &some, WEFT_ALIGN_LEFT));
    FAILS(w, WEFT_EARG, "sequence 0 of length 3 has data at step 3, in its padding");
}

TABLE_TEST(packing, empty_batches_work)
{
    const int32_t none[3] = { 0, 0, 0 };
    for (int64_t n = 0; n <= 3; n += 3) {
        int64_t        steps = -1;
        weft_lengths   l = { .n = n, .len = none };
        weft_tensor *p = weft_pack_padded_sequence(weft_zeros(w, WEFT_SHAPE(n, 4, 2)), &l,
                                                   WEFT_ALIGN_LEFT),
                    *x = weft_pad_packed_sequence(p, 4, 7, WEFT_ALIGN_LEFT);
        steps = weft_packed_sequence_of(p).steps;
        cr_assert(weft_size(p, 0) == 0 && steps == 0 && weft_lengths_of(p).n == n);
        cr_assert(weft_size(x, 0) == n && weft_size(x, 1) == 4 && weft_size(x, 2) == 2);
        for (int64_t i = 0; i < weft_numel(x); i++)
            cr_assert(numbers(x)[i] == 7);
        OK(w);
    }
}
