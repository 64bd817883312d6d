/* test_packed_sequence.c - tests conversion to and from PyTorch's PackedSequence: its fields against a plain
 * count, the conversion back for every order of ties, ids and ints, gradients both ways, lists of sequences,
 * and inconsistent arrays. */
#include "tests/check.h"

enum { N = 6, TOKENS = 13, WIDTH = 3 };
static const int32_t lengths[N] = { 3, 0, 4, 3, 0, 3 };
static const int64_t ids[N] = { 40, 10, 50, 20, 60, 30 };

static weft_tensor *sample(weft *w, const int64_t *id)
{
    weft_real v[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        v[i] = (weft_real)(i + 1) / 8;
    return weft_ragged(w, v, WIDTH, &(weft_lengths){ .n = N, .len = lengths, .id = id });
}

/* Returns the row of sequence s, position t in the concat layout. */
static int64_t row_of(int s, int t)
{
    int64_t row = t;
    for (int i = 0; i < s; i++)
        row += lengths[i];
    return row;
}

/* Sequences 0, 3 and 5 have the same length. Tests all six orders of them, given by either array of indices
 * or both. */
static weft_packed_sequence tied(weft *w, const int32_t *order, int arrays, int32_t *sorted, int32_t *place,
                                 bool as_ints)
{
    static const int32_t sizes[] = { 4, 4, 4, 1 };
    const int32_t mine[N] = { 2, order[0], order[1], order[2], 4, 1 };
    weft_real data[TOKENS];
    int32_t ints[TOKENS];
    int row = 0;
    for (int t = 0; t < 4; t++)
        for (int k = 0; k < sizes[t]; k++, row++)
            ints[row] = (int32_t)row_of(mine[k], t) + ((int32_t)1 << 25), data[row] = (weft_real)ints[row];
    for (int k = 0; k < N; k++)
        sorted[k] = mine[k], place[mine[k]] = k;
    weft_tensor *rows =
        as_ints ? weft_ints(w, ints, WEFT_SHAPE(TOKENS)) : weft_reals(w, data, WEFT_SHAPE(TOKENS));
    return (weft_packed_sequence){ .data = rows,
                                   .batch_sizes = sizes,
                                   .sorted_indices = arrays & 1 ? sorted : NULL,
                                   .unsorted_indices = arrays & 2 ? place : NULL,
                                   .ids = ids,
                                   .steps = 4,
                                   .sequences = N };
}

TABLE_TEST(packed_sequence, converts_back_for_every_order_of_ties)
{
    static const int32_t orders[6][3] = { { 0, 3, 5 }, { 0, 5, 3 }, { 3, 0, 5 },
                                          { 3, 5, 0 }, { 5, 0, 3 }, { 5, 3, 0 } };
    int32_t sorted[N], place[N], got[TOKENS];
    for (int i = 0; i < 6 * 3; i++) {
        weft_packed_sequence p = tied(w, orders[i / 3], i % 3 + 1, sorted, place, true);
        weft_tensor *x = weft_ragged_of(&p);
        weft_lengths l = weft_lengths_of(x);
        cr_assert(weft_layout_of(x) == WEFT_PACKED && l.n == N, "%s", weft_error_message(w));
        cr_assert(!memcmp(l.len, lengths, sizeof lengths) && !memcmp(l.id, ids, sizeof ids));
        cr_assert(!read_status(weft_to_layout(x, WEFT_CONCAT), got, sizeof got));
        for (int row = 0; row < TOKENS; row++)
            cr_assert(got[row] == row + (1 << 25), "order %d: row %d is %d", i, row, got[row]);
        p = tied(w, orders[i / 3], i % 3 + 1, sorted, place, false);
        weft_real *reals = numbers(weft_to_layout(weft_ragged_of(&p), WEFT_CONCAT));
        for (int row = 0; row < TOKENS; row++)
            cr_assert(reals[row] == (weft_real)(row + (1 << 25)));
    }
}

TABLE_TEST(packed_sequence, round_trip_keeps_values_and_batch)
{
    FOR_LAYOUTS(layout) {
        weft_tensor *x = sample(w, ids);
        weft_packed_sequence p = weft_packed_sequence_of(laid_out(x, layout));
        /* fails unless both belong to one batch */
        weft_tensor *back = weft_ragged_of(&p), *sum = weft_add(x, back);
        weft_real *got = numbers(weft_to_layout(sum, WEFT_CONCAT)), *all = numbers(x);
        for (int i = 0; i < TOKENS * WIDTH; i++)
            cr_assert(got[i] == 2 * all[i]);
    }
}

/* Without indices, the sorted order is also the user's order. */
TABLE_TEST(packed_sequence, accepts_sequences_without_indices)
{
    static const int32_t sizes[] = { 3, 2 };
    const weft_real rows[] = { 1, 2, 3, 4, 5 }, want[] = { 1, 4, 2, 5, 3 };
    weft_packed_sequence p = {
        .data = weft_reals(w, rows, WEFT_SHAPE(5)), .batch_sizes = sizes, .steps = 2, .sequences = 3
    };
    same_bits("rows", numbers(weft_to_layout(weft_ragged_of(&p), WEFT_CONCAT)), want, 5);
}

/* Both conversions only move rows. So the gradient of a sum of products is the other factor, moved back. */
TABLE_TEST(packed_sequence, passes_gradients_both_ways)
{
    static const int32_t order[3] = { 5, 0, 3 };
    int32_t sorted[N], place[N];
    weft_packed_sequence p = tied(w, order, 3, sorted, place, false);
    weft_tensor *factor = weft_ragged_rows(weft_randn(w, WEFT_SHAPE(TOKENS)), weft_ragged_of(&p)), *dx;
    weft_tensor *y = weft_mul(weft_ragged_of(&p), factor), *parts[N];
    weft_gradients(weft_sum_all(y), &p.data, 1, &dx);
    weft_real *got = numbers(dx), *want = numbers(weft_to_layout(factor, WEFT_CONCAT));
    for (int t = 0, row = 0; t < p.steps; t++)
        for (int k = 0; k < p.batch_sizes[t]; k++, row++)
            cr_assert(got[row] == want[row_of(sorted[k], t)]);
    weft_tensor *x = sample(w, ids), *dparts;
    weft_unpack_sequence(weft_to_layout(x, WEFT_PACKED), parts);
    weft_gradients(weft_sum_all(weft_scale(parts[3], 5)), &x, 1, &dparts);
    got = numbers(dparts);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        cr_assert(got[i] == (i / WIDTH >= row_of(3, 0) && i / WIDTH < row_of(4, 0) ? 5 : 0));
}

TABLE_TEST(packed_sequence, converts_lists)
{
    weft_tensor *x = sample(w, NULL), *parts[N];
    weft_unpack_sequence(weft_to_layout(x, WEFT_PACKED), parts);
    weft_real *all = numbers(x);
    for (int s = 0; s < N; s++) {
        cr_assert(weft_rank(parts[s]) == 2 && weft_size(parts[s], 0) == lengths[s]);
        same_bits("a sequence", numbers(parts[s]), all + row_of(s, 0) * WIDTH, lengths[s] * WIDTH);
    }
    weft_tensor *packed = weft_pack_sequence(parts, N);
    cr_assert(weft_layout_of(packed) == WEFT_PACKED);
    same_bits("packed", numbers(packed), numbers(weft_to_layout(x, WEFT_PACKED)), TOKENS * WIDTH);
    for (int right = 0; right < 2; right++) {
        weft_align align = right ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT;
        weft_tensor *padded = weft_pad_sequence(parts, N, -7, align);
        cr_assert(weft_size(padded, 0) == N && weft_size(padded, 1) == 4);
        same_bits("padded", numbers(padded), numbers(weft_pad_packed_sequence(x, 0, -7, align)),
                  N * 4 * WIDTH);
    }
    const int32_t ints[] = { 7, 8, 9 };
    weft_tensor *two[] = { weft_ints(w, ints, WEFT_SHAPE(1)), weft_ints(w, ints + 1, WEFT_SHAPE(2)) };
    int32_t got[3], want[] = { 8, 7, 9 };
    cr_assert(!read_status(weft_pack_sequence(two, 2), got, sizeof got) && !memcmp(got, want, sizeof got));
}

TABLE_TEST(packed_sequence, accepts_empty_sequences)
{
    static const int32_t turned[] = { 1, 0 };
    weft_packed_sequence p = { .data = weft_zeros(w, WEFT_SHAPE(0, 4)),
                               .sorted_indices = turned,
                               .sequences = 2 };
    weft_tensor *x = weft_ragged_of(&p), *none[2];
    cr_assert(weft_lengths_of(x).n == 2 && weft_size(x, 0) == 0 && weft_size(x, 1) == 4);
    cr_assert(weft_packed_sequence_of(x).steps == 0);
    weft_unpack_sequence(x, none);
    cr_assert(weft_size(none[1], 0) == 0);
    cr_assert(weft_lengths_of(weft_pack_sequence(none, 2)).n == 2);
    p = (weft_packed_sequence){ .data = weft_zeros(w, WEFT_SHAPE(0)) };
    cr_assert(weft_lengths_of(weft_ragged_of(&p)).n == 0);
}

/* ---- refused input ---- */
TABLE_TEST(packed_sequence, refuses_inconsistent_arrays)
{
    static const int32_t good[] = { 2, 1 }, growing[] = { 1, 2 }, none[] = { 3, 0 }, few[] = { 2 },
                         twice[] = { 0, 0 }, beyond[] = { 0, 2 }, here[] = { 0, 1 }, turned[] = { 1, 0 };
    static const struct { const int32_t *sizes, *order, *back; int64_t steps, n; const char *part;
    } bad[] = { { growing, NULL, NULL, 2, 2, "batch_sizes" },
                { none, NULL, NULL, 2, 3, "batch_sizes" },
                { NULL, NULL, NULL, 2, 2, "batch_sizes" },
                { good, NULL, NULL, 2, 1, "batch_sizes" },
                { good, NULL, NULL, -1, 2, "counts" },
                { few, NULL, NULL, 1, 2, "row of data" },
                { good, twice, NULL, 2, 2, "each sequence once" },
                { good, NULL, beyond, 2, 2, "each sequence once" },
                { good, turned, here, 2, 2, "the inverse of sorted_indices" },
                { good, NULL, NULL, 2, 2, "plain data" } };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_packed_sequence p = { weft_zeros(w, WEFT_SHAPE(3)), good, .steps = 2, .sequences = 2 };
        p.data = i == COUNT(bad) - 1 ? weft_ragged_of(&p) : p.data;
        p = (weft_packed_sequence){ .data = p.data,
                                    .batch_sizes = bad[i].sizes,
                                    .sorted_indices = bad[i].order,
                                    .unsorted_indices = bad[i].back,
                                    .steps = bad[i].steps,
                                    .sequences = bad[i].n };
        weft_ragged_of(&p);
        cr_assert(weft_error_code(w) && strstr(weft_error_message(w), bad[i].part) &&
                      strstr(weft_error_message(w), "ragged_of"), "%d: \"%s\"", i, weft_error_message(w));
        weft_recover(w);
    }
}

TABLE_TEST(packed_sequence, refuses_inconsistent_lists)
{
    for (int i = 0; i < 5; i++) {
        weft_tensor *a = weft_zeros(w, WEFT_SHAPE(2, 3)),
                    *list[] = { a, i == 0 ? weft_zeros(w, WEFT_SHAPE(2)) :
                                   i == 1 ? weft_zeros(w, WEFT_SHAPE(2, 4)) :
                                   i == 2 ? sample(w, NULL) :
                                   i == 3 ? NULL :
                                            a };
        weft_pack_sequence(list, i == 4 ? 0 : 2);
        cr_assert(!weft_ok(w) || i == 4, "list %d", i);
        weft_recover(w);
    }
}
