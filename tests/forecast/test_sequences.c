/* test_sequences.c - tests the sequence helpers of TransformerTF: the rule for packing, alignment, packing,
 * masks, shortening. LEFT means data first. tests/autograd/test_packed_sequence.c tests packing itself. */
#include "tests/check.h"

#define BATCH(...)                                                                   \
    {                                                                                \
        .n = COUNT(((int32_t[]){ __VA_ARGS__ })), .len = (int32_t[]) { __VA_ARGS__ } \
    }
#define NAN_ (weft_real) NAN

static void holds(const char *name, weft_tensor *x, const weft_real *want, int rank, const int64_t *shape)
{
    int64_t n = 1;
    cr_assert(weft_rank(x) == rank, "%s: rank %d: %s", name, weft_rank(x),
              weft_error_message(weft_context_of(x)));
    for (int i = 0; i < rank; i++) {
        cr_assert(weft_size(x, i) == shape[i], "%s: extent %d is %lld", name, i, (long long)weft_size(x, i));
        n *= shape[i];
    }
    cr_assert(is_close(name, numbers(x), want, n, 0), "%s differs", name);
}

Test(sequences, packing_needs_more_than_a_tenth_of_difference)
{
    const struct { weft_lengths l; bool yes;
    } table[] = {
        { BATCH(10, 10, 10, 10, 10, 10, 10, 10), false }, /* equal ones first, 8 or not */
        { BATCH(10, 9, 9, 9, 9, 9, 9, 9), true },
        { BATCH(10, 10, 10, 10, 10, 10, 10, 9), true },
        { BATCH(10, 9, 10, 9, 10, 9, 10), false },
        /* a tenth is not more than a tenth */
        { BATCH(10, 9), false },
        { BATCH(10, 9, 10), false },
        { BATCH(100, 90), false },
        { BATCH(100, 91), false },
        { BATCH(100, 89), true },
        { BATCH(89, 100), true },
        { BATCH(3, 5, 2, 4), true },
        { BATCH(1), false },
        { BATCH(1, 512), true },
        { BATCH(0, 1), true },
        { BATCH(0, 0), false },
        { BATCH(2147483647, 1932735283), false },
        { BATCH(2147483647, 1932735282), true },
        { { .n = 0 }, false },
        { { .n = 3 }, false },
    };
    for (int i = 0; i < COUNT(table); i++)
        cr_assert(weft_should_use_packing(&table[i].l) == table[i].yes, "row %d", i);
    cr_assert(!weft_should_use_packing(NULL));
}

/* ---- alignment ---- */
static const weft_lengths lengths = BATCH(3, 5, 2, 0, 6);
enum { N = 5, T = 6, F = 2 };

/* Step t of sequence s is 10 s + t + 1, but the first step of each is 0. Feature 1 is the negative. */
static weft_real *table(weft_real *out, weft_align align, weft_real pad)
{
    for (int s = 0; s < N; s++)
        for (int t = 0; t < T; t++) {
            int at = align == WEFT_ALIGN_RIGHT ? t - (T - lengths.len[s]) : t;
            bool data = at >= 0 && at < lengths.len[s];
            weft_real x = !data ? pad : at == 0 ? 0 : (weft_real)(10 * s + at + 1);
            out[(s * T + t) * F] = x;
            out[(s * T + t) * F + 1] = -x;
        }
    return out;
}

/* Data that begin with 0 keep their first row; the original loses it. */
TABLE_TEST(sequences, align_moves_data_and_gradients)
{
    weft_real x[N * T * F], want[N * T * F];
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < 2; to++) {
            weft_tensor *p = weft_reals(w, table(x, (weft_align)from, NAN_), WEFT_SHAPE(N, T, F)), *g;
            weft_tensor *y = weft_align_encoder_sequences(p, &lengths, (weft_align)from, (weft_align)to);
            holds("aligned", y, table(want, (weft_align)to, 0), WEFT_SHAPE(N, T, F));
            weft_tensor *by = weft_reals(w, table(x, (weft_align)to, 7), WEFT_SHAPE(N, T, F));
            weft_gradients(weft_sum_all(weft_mul(y, by)), &p, 1, &g);
            holds("gradient", g, table(want, (weft_align)from, 0), WEFT_SHAPE(N, T, F));
        }
}

static const weft_lengths note = BATCH(3, 5, 2, 4);

TABLE_TEST(sequences, data_in_padding_are_reported)
{
    weft_real x[N * T * F];
    for (int right = 0; right < 2; right++) {
        weft_tensor *p = weft_reals(w, table(x, (weft_align)right, (weft_real)-0.), WEFT_SHAPE(N, T, F));
        cr_assert(weft_validate_encoder_alignment(p, &lengths, (weft_align)right));
        cr_assert(weft_validate_encoder_alignment(p, NULL, (weft_align)right));
        OK(w);
        cr_assert(!weft_validate_encoder_alignment(p, &lengths, (weft_align)!right));
        FAILS(w, WEFT_EARG,
              right ? "pads_are_zero: sequence 0 of length 3 has data at step 4, in its padding" :
                      "pads_are_zero: sequence 0 of length 3 has data at step 1, in its padding");
    }
    cr_assert(!weft_validate_encoder_alignment(
        weft_reals(w, table(x, WEFT_ALIGN_LEFT, NAN_), WEFT_SHAPE(N, T, F)), &lengths, WEFT_ALIGN_LEFT));
    FAILS(w, WEFT_EARG, "sequence 0 of length 3 has data at step 3");
    weft_lengths one = BATCH(1, 2);
    weft_tensor *i = weft_ints(w, (int32_t[]){ 1, 0, 3, 4 }, WEFT_SHAPE(2, 2));
    cr_assert(weft_validate_encoder_alignment(i, &one, WEFT_ALIGN_LEFT));
    cr_assert(!weft_validate_encoder_alignment(i, &one, WEFT_ALIGN_RIGHT));
    FAILS(w, WEFT_EARG, "sequence 0 of length 1 has data at step 0");
    cr_assert(!weft_validate_encoder_alignment(NULL, &lengths, WEFT_ALIGN_LEFT));
}

/* ---- masks ---- */
TABLE_TEST(sequences, masks_match_lengths)
{
    const weft_real left[] = { 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0 },
                    right[] = { 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0 };
    weft_real inverse[12];
    weft_lengths l = BATCH(2, 0, 4);
    holds("left", weft_create_mask(w, 4, &l, WEFT_ALIGN_LEFT, false), left, WEFT_SHAPE(3, 4));
    holds("right", weft_create_mask(w, 4, &l, WEFT_ALIGN_RIGHT, false), right, WEFT_SHAPE(3, 4));
    for (int i = 0; i < 12; i++)
        inverse[i] = 1 - right[i];
    holds("right, inverse", weft_create_mask(w, 4, &l, WEFT_ALIGN_RIGHT, true), inverse, WEFT_SHAPE(3, 4));
    weft_lengths none = BATCH(0, 0);
    cr_assert(weft_size(weft_create_mask(w, 0, &none, WEFT_ALIGN_LEFT, false), 0) == 2 &&
              weft_size(weft_create_mask(w, 0, &none, WEFT_ALIGN_LEFT, true), 1) == 0);
    none.n = 0;
    cr_assert(weft_size(weft_create_mask(w, 3, &none, WEFT_ALIGN_LEFT, false), 1) == 3);
}

TABLE_TEST(sequences, attention_masks_match_worked_examples)
{
    weft_lengths past = BATCH(2, 3), future = BATCH(1, 2), nothing = BATCH(0, 0);
    weft_attention_mask_opts right = { .encoder_align = WEFT_ALIGN_RIGHT }, open = { .not_causal = true },
                             late = { .not_causal = true, .decoder_align = WEFT_ALIGN_RIGHT };
    holds("causal", weft_get_attention_mask(w, &past, 3, &future, 2, NULL),
          (weft_real[]){ 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1 }, WEFT_SHAPE(2, 2, 5));
    holds("causal, no lengths", weft_get_attention_mask(w, &past, 3, NULL, 2, &right),
          (weft_real[]){ 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1 }, WEFT_SHAPE(2, 2, 5));
    holds("not causal", weft_get_attention_mask(w, &past, 3, &future, 2, &open),
          (weft_real[]){ 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, WEFT_SHAPE(2, 2, 5));
    holds("not causal, late", weft_get_attention_mask(w, &past, 3, &future, 2, &late),
          (weft_real[]){ 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, WEFT_SHAPE(2, 2, 5));
    holds("not causal, no lengths", weft_get_attention_mask(w, &past, 3, NULL, 1, &open),
          (weft_real[]){ 0, 0, 1, 0, 0, 0, 0, 0 }, WEFT_SHAPE(2, 1, 4));
    holds("no past", weft_get_attention_mask(w, &nothing, 0, NULL, 2, NULL),
          (weft_real[]){ 1, 1, 0, 1, 1, 1, 0, 1 }, WEFT_SHAPE(2, 2, 2));
    cr_assert(weft_numel(weft_get_attention_mask(w, &past, 3, &nothing, 0, NULL)) == 0);
    nothing.n = 0;
    cr_assert(weft_size(weft_get_attention_mask(w, &nothing, 3, &nothing, 2, NULL), 2) == 5);
    cr_assert(weft_usage_of(w).tape == 0, "expected constants");
}

TABLE_TEST(sequences, invalid_arguments_are_refused)
{
    weft_lengths bad = BATCH(3, 2, 6);
    weft_pads_are_zero(weft_zeros(w, WEFT_SHAPE(3, 5)), &bad, WEFT_ALIGN_LEFT);
    FAILS(w, WEFT_ESHAPE, "pads_are_zero: sequence 2 has length 6; expected 0 .. 5");
    weft_create_mask(w, 5, &bad, WEFT_ALIGN_LEFT, false);
    FAILS(w, WEFT_ESHAPE, "length_mask: total 5; expected at least the longest sequence, 6");
    weft_get_attention_mask(w, &(weft_lengths)BATCH(1), 5, NULL, -1, NULL);
    FAILS(w, WEFT_EARG, "0 to -1");
    cr_assert_not_null(weft_create_mask(NULL, 1, &lengths, WEFT_ALIGN_LEFT, false));
    cr_assert_not_null(weft_get_attention_mask(NULL, &lengths, 1, NULL, 1, NULL));
}

/* ---- random shortening ---- */
/* The lengths that shorten_series draws. */
static void draw(weft_stream *s, int32_t least, int32_t most, int32_t out[4])
{
    for (int i = 0; i < 4; i++) {
        int32_t drawn = least + (int32_t)weft_stream_below(s, (uint64_t)(most - least) + 1);
        out[i] = drawn < note.len[i] ? drawn : note.len[i];
    }
}

/* The numbers of the note, 21 for its "b1", only the rows kept from sequences with the given lengths. */
static weft_real *kept(weft_real out[20], const int32_t *len, bool newest, weft_align align, weft_real pad)
{
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 5; t++) {
            int at = align == WEFT_ALIGN_RIGHT ? t - (5 - len[s]) : t,
                from = newest ? note.len[s] - len[s] : 0;
            out[s * 5 + t] = at >= 0 && at < len[s] ? (weft_real)(10 * (s + 1) + from + at + 1) : pad;
        }
    return out;
}
static weft_tensor *of_note(weft *w, weft_align align)
{
    return weft_reals(w, kept((weft_real[20]){ 0 }, note.len, false, align, NAN_), WEFT_SHAPE(4, 5));
}

TABLE_TEST(sequences, packing_round_trip_keeps_values)
{
    weft_real want[20];
    for (int right = 0; right < 2; right++) {
        weft_lengths l;
        weft_tensor *x = of_note(w, (weft_align)right);
        weft_tensor *packed = right ? weft_pack_encoder_sequences(x, &note, WEFT_ALIGN_RIGHT) :
                                      weft_pack_decoder_sequences(x, &note);
        holds("packed and back", weft_unpack_to_fixed_length(packed, 5, &l),
              kept(want, note.len, false, WEFT_ALIGN_LEFT, 0), WEFT_SHAPE(4, 5));
        cr_assert(l.n == 4 && !memcmp(l.len, note.len, sizeof(int32_t[4])));
    }
}

static void one_series(weft *w, weft *by, bool ragged, weft_align align)
{
    weft_shorten_opts o = { .past_least = 1, .past_most = 3, .future_most = 4 };
    weft_series_batch s = { .past = of_note(w, align),
                            .future = of_note(w, WEFT_ALIGN_LEFT),
                            .fixed = weft_zeros(w, WEFT_SHAPE(4, 1)),
                            .past_lengths = &note,
                            .future_lengths = &note,
                            .past_align = align };
    if (ragged)
        s = (weft_series_batch){ .past = weft_pack_padded_sequence(s.past, &note, align),
                                 .future = weft_pack_padded_sequence(s.future, &note, WEFT_ALIGN_LEFT) };
    weft_series_batch out = weft_shorten_series(s, weft_stream_of(w, "shorter"), &o);
    int32_t past[4], future[4];
    weft_real want[20];
    draw(weft_stream_of(by, "shorter"), 1, 3, past);
    draw(weft_stream_of(by, "shorter"), 0, 4, future);
    weft_lengths got = ragged ? weft_lengths_of(out.past) : *out.past_lengths,
                 of_future = ragged ? weft_lengths_of(out.future) : *out.future_lengths;
    cr_assert(got.n == 4 && !memcmp(got.len, past, sizeof past) &&
                  !memcmp(of_future.len, future, sizeof future),
              "%s", weft_error_message(w));
    holds("past", ragged ? weft_pad_packed_sequence(out.past, 5, 0, align) : out.past,
          kept(want, past, true, align, 0), WEFT_SHAPE(4, 5));
    holds("future", ragged ? weft_pad_packed_sequence(out.future, 5, 0, WEFT_ALIGN_LEFT) : out.future,
          kept(want, future, false, WEFT_ALIGN_LEFT, 0), WEFT_SHAPE(4, 5));
    cr_assert(out.fixed == s.fixed && out.past_align == s.past_align && (!ragged || !out.past_lengths));
    weft_clear(w);
}

TABLE_TEST(sequences, series_are_shortened_within_limits)
{
    weft *by = open_on(WEFT_REF);
    for (int round = 0; round < rounds(12, 300); round++)
        one_series(w, by, round % 3 == 0, round % 3 == 1 ? WEFT_ALIGN_LEFT : WEFT_ALIGN_RIGHT);
    CLEAN(by);
    weft_stream *stream = weft_stream_of(w, "shorter");
    weft_series_batch full = { .past = weft_full(w, 1, WEFT_SHAPE(2, 3, 1)),
                               .future = weft_full(w, 1, WEFT_SHAPE(2, 2, 1)) };
    weft_series_batch one =
        weft_shorten_series(full, stream, &(weft_shorten_opts){ .past_least = 1, .past_most = 1 });
    cr_assert(one.future == full.future && !one.future_lengths && one.past_lengths->len[1] == 1,
              "0 .. 0 must keep a side whole; missing lengths mean full ones");
    cr_assert(weft_shorten_series(full, NULL, NULL).past == full.past);
    weft_shorten_series(full, NULL, &(weft_shorten_opts){ .past_most = 1 });
    FAILS(w, WEFT_EARG, "shorten_series: past: lengths 0 .. 1, no stream");
    full.past = full.future = weft_full(w, 1, WEFT_SHAPE(4, 2, 1));
    weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_least = 2, .future_most = 1 });
    FAILS(w, WEFT_EARG, "shorten_series: future: lengths 2 .. 1;");
    full.future = weft_full(w, 1, WEFT_SHAPE(4, 2, 1));
    full.future_lengths = &note;
    weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_most = 1 });
    FAILS(w, WEFT_ESHAPE, "shorten_series: future: sequence 0 has length 3; expected 0 .. 2");
    full.future = weft_zeros(w, WEFT_SHAPE(4));
    full.future_lengths = NULL;
    weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_most = 1 });
    FAILS(w, WEFT_ESHAPE, "shorten_series: future: [4]: expected plain [sequences, T, ..]");
    full.future = NULL;
    cr_assert_not_null(weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_most = 1 }).future);
}
