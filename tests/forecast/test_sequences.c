/* test_sequences.c - the sequence helpers of TransformerTF: the rule, aligning, packing and unpacking, masks,
 * on the examples of the notes behind them with their mistakes corrected (LEFT is data first; packed data lie
 * step by step, longest first), and shortening. */
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

/* ---- the rule ---- */
Test(sequences, should_use_packing)
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

/* Step t of sequence s is 10 s + t + 1, but the first steps of each are data of 0; pads as given. Feature
 * 1 is its negative. */
static weft_real *table(weft_real *out, weft_align align, weft_real pad)
{
    for (int s = 0; s < N; s++)
        for (int t = 0; t < T; t++) {
            int at = align == WEFT_ALIGN_RIGHT ? t - (T - lengths.len[s]) : t;
            bool data = at >= 0 && at < lengths.len[s];
            weft_real x = !data ? pad : at == 0 ? 0 : (weft_real)(10 * s + at + 1);
            out[(s * T + t) * F] = x, out[(s * T + t) * F + 1] = -x;
        }
    return out;
}

Test(sequences, align)
{
    weft_real x[N * T * F], want[N * T * F];
    FOR_DEVICES(w)
        for (int from = 0; from < 2; from++)
            for (int to = 0; to < 2; to++) {
                weft_tensor *y = weft_align_encoder_sequences(
                    weft_reals(w, table(x, (weft_align)from, NAN_), WEFT_SHAPE(N, T, F)), &lengths,
                    (weft_align)from, (weft_align)to);
                cr_assert(weft_layout_of(y) == WEFT_PLAIN);
                holds("aligned", y, table(want, (weft_align)to, 0), WEFT_SHAPE(N, T, F));
            }
}

/* The original takes the data row 0 1 2 3 4 . of length 5 for a right-aligned one, drops the 0 and reads
 * the pad. */
Test(sequences, align_leading_zero)
{
    FOR_DEVICES(w) {
        weft_tensor *x = weft_reals(w, (weft_real[]){ 0, 1, 2, 3, 4, 9 }, WEFT_SHAPE(1, 6));
        weft_lengths l = BATCH(5);
        weft_tensor *right = weft_align_encoder_sequences(x, &l, WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT);
        holds("to the right", right, (weft_real[]){ 0, 0, 1, 2, 3, 4 }, WEFT_SHAPE(1, 6));
        holds("and back", weft_align_encoder_sequences(right, &l, WEFT_ALIGN_RIGHT, WEFT_ALIGN_LEFT),
              (weft_real[]){ 0, 1, 2, 3, 4, 0 }, WEFT_SHAPE(1, 6));
    }
}

Test(sequences, align_gradient)
{
    weft_real x[N * T * F], dy[N * T * F], want[N * T * F];
    FOR_DEVICES(w) {
        weft_tensor *p = weft_reals(w, table(x, WEFT_ALIGN_RIGHT, NAN_), WEFT_SHAPE(N, T, F)), *g;
        weft_tensor *y = weft_align_encoder_sequences(p, &lengths, WEFT_ALIGN_RIGHT, WEFT_ALIGN_LEFT);
        weft_tensor *by = weft_reals(w, table(dy, WEFT_ALIGN_LEFT, 7), WEFT_SHAPE(N, T, F));
        weft_gradients(weft_sum_all(weft_mul(y, by)), &p, 1, &g);
        holds("gradient", g, table(want, WEFT_ALIGN_RIGHT, 0), WEFT_SHAPE(N, T, F));
    }
}

/* ---- pack and unpack ---- */
static const weft_lengths note = BATCH(3, 5, 2, 4);

/* "b1" of the note is 21 here: a is 1, b is 2. */
static weft_tensor *of_note(weft *w, weft_align align)
{
    weft_real x[4 * 5];
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 5; t++) {
            int at = align == WEFT_ALIGN_RIGHT ? t - (5 - note.len[s]) : t;
            x[s * 5 + t] = at >= 0 && at < note.len[s] ? (weft_real)(10 * (s + 1) + at + 1) : NAN_;
        }
    return weft_reals(w, x, WEFT_SHAPE(4, 5));
}

Test(sequences, pack)
{
    const weft_real want[] = { 21, 41, 11, 31, 22, 42, 12, 32, 23, 43, 13, 24, 44, 25 };
    FOR_DEVICES(w) {
        weft_tensor *x[] = { weft_pack_encoder_sequences(of_note(w, WEFT_ALIGN_LEFT), &note, WEFT_ALIGN_LEFT),
                             weft_pack_encoder_sequences(of_note(w, WEFT_ALIGN_RIGHT), &note,
                                                         WEFT_ALIGN_RIGHT),
                             weft_pack_decoder_sequences(of_note(w, WEFT_ALIGN_LEFT), &note) };
        for (int i = 0; i < 3; i++) {
            cr_assert(weft_layout_of(x[i]) == WEFT_PACKED);
            holds("packed", x[i], want, WEFT_SHAPE(14));
        }
    }
}

Test(sequences, unpack)
{
    const weft_real want[] = { 11, 12, 13, 0, 0, 0, 21, 22, 23, 24, 25, 0,
                               31, 32, 0,  0, 0, 0, 41, 42, 43, 44, 0,  0 };
    FOR_DEVICES(w) {
        weft_lengths l;
        weft_tensor *x = weft_pack_decoder_sequences(of_note(w, WEFT_ALIGN_LEFT), &note);
        holds("to 6", weft_unpack_to_fixed_length(x, 6, &l), want, WEFT_SHAPE(4, 6));
        cr_assert(l.n == 4 && !memcmp(l.len, note.len, sizeof(int32_t[4])));
        cr_assert(weft_size(weft_unpack_to_fixed_length(weft_to_layout(x, WEFT_CONCAT), 0, NULL), 1) == 5);
        weft_lengths none = BATCH(0, 0);
        holds("of nothing",
              weft_unpack_to_fixed_length(weft_pack_decoder_sequences(weft_zeros(w, WEFT_SHAPE(2, 3)), &none),
                                          2, NULL),
              (weft_real[4]){ 0 }, WEFT_SHAPE(2, 2));
        none.n = 0;
        cr_assert(
            weft_size(weft_unpack_to_fixed_length(
                          weft_pack_decoder_sequences(weft_zeros(w, WEFT_SHAPE(0, 3, 2)), &none), 4, NULL),
                      1) == 4);
    }
}

/* d of sum(g unpack(square(pack(x)))) by x is 2 g x at data and 0 at pads, NaN or not. */
Test(sequences, pack_gradient)
{
    weft_real x[N * T * F], g[N * T * F], want[N * T * F];
    FOR_DEVICES(w)
        for (int right = 0; right < 2; right++) {
            weft_align align = right ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT;
            weft_tensor *p = weft_reals(w, table(x, align, NAN_), WEFT_SHAPE(N, T, F)), *dx;
            weft_tensor *y = weft_unpack_to_fixed_length(
                weft_square(weft_pack_encoder_sequences(p, &lengths, align)), T, NULL);
            weft_gradients(
                weft_sum_all(weft_mul(y, weft_reals(w, dice_fill(g, N * T * F, -1, 1), WEFT_SHAPE(N, T, F)))),
                &p, 1, &dx);
            for (int i = 0; i < N * T * F; i++) {
                int s = i / (T * F), t = i / F % T, at = right ? t - (T - lengths.len[s]) : t;
                bool data = at >= 0 && at < lengths.len[s];
                want[i] = data ? 2 * x[i] * g[(s * T + at) * F + i % F] : 0;
            }
            close_to("gradient", numbers(dx), want, N * T * F, TOL(1e-14, 1e-6));
        }
}

/* ---- validation ---- */
Test(sequences, validate)
{
    weft_real x[N * T * F];
    FOR_DEVICES(w) {
        for (int right = 0; right < 2; right++) {
            weft_tensor *p = weft_reals(w, table(x, (weft_align)right, (weft_real)-0.), WEFT_SHAPE(N, T, F));
            cr_assert(weft_validate_encoder_alignment(p, &lengths, (weft_align)right));
            OK(w);
            cr_assert(!weft_validate_encoder_alignment(p, &lengths, (weft_align)!right));
            FAILS(w, WEFT_EARG,
                  right ?
                      "validate_encoder_alignment: sequence 0 of length 3 has data at step 4, outside it" :
                      "validate_encoder_alignment: sequence 0 of length 3 has data at step 1, outside it");
        }
        cr_assert(!weft_validate_encoder_alignment(
            weft_reals(w, table(x, WEFT_ALIGN_LEFT, NAN_), WEFT_SHAPE(N, T, F)), &lengths, WEFT_ALIGN_LEFT));
        FAILS(w, WEFT_EARG, "sequence 0 of length 3 has data at step 3");
        weft_lengths full = BATCH(2, 2);
        weft_tensor *y = weft_full(w, 1, WEFT_SHAPE(2, 2, 1)),
                    *i = weft_ints(w, (int32_t[]){ 1, 0, 3, 4 }, WEFT_SHAPE(2, 2));
        cr_assert(weft_validate_encoder_alignment(y, &full, WEFT_ALIGN_LEFT) &&
                  weft_validate_encoder_alignment(y, &full, WEFT_ALIGN_RIGHT));
        weft_lengths one = BATCH(1, 2);
        cr_assert(weft_validate_encoder_alignment(i, &one, WEFT_ALIGN_LEFT) &&
                  weft_validate_encoder_alignment(y, NULL, WEFT_ALIGN_LEFT));
        OK(w);
        cr_assert(!weft_validate_encoder_alignment(i, &one, WEFT_ALIGN_RIGHT));
        FAILS(w, WEFT_EARG, "sequence 0 of length 1 has data at step 0");
    }
    cr_assert(!weft_validate_encoder_alignment(NULL, &lengths, WEFT_ALIGN_LEFT));
}

/* ---- masks ---- */
Test(sequences, create_mask)
{
    const weft_real left[] = { 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0 },
                    right[] = { 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0 };
    weft_real inverse[12];
    FOR_DEVICES(w) {
        weft_lengths l = BATCH(2, 0, 4);
        holds("left", weft_create_mask(w, 4, &l, WEFT_ALIGN_LEFT, false), left, WEFT_SHAPE(3, 4));
        holds("right", weft_create_mask(w, 4, &l, WEFT_ALIGN_RIGHT, false), right, WEFT_SHAPE(3, 4));
        for (int i = 0; i < 12; i++)
            inverse[i] = 1 - right[i];
        holds("right, inverse", weft_create_mask(w, 4, &l, WEFT_ALIGN_RIGHT, true), inverse,
              WEFT_SHAPE(3, 4));
        weft_lengths none = BATCH(0, 0);
        cr_assert(weft_size(weft_create_mask(w, 0, &none, WEFT_ALIGN_LEFT, false), 0) == 2 &&
                  weft_size(weft_create_mask(w, 0, &none, WEFT_ALIGN_LEFT, true), 1) == 0);
        none.n = 0;
        cr_assert(weft_size(weft_create_mask(w, 3, &none, WEFT_ALIGN_LEFT, false), 1) == 3);
    }
}

Test(sequences, attention_mask)
{
    FOR_DEVICES(w) {
        weft_lengths past = BATCH(2, 3), future = BATCH(1, 2), nothing = BATCH(0, 0);
        weft_attention_mask_opts right = { .encoder_align = WEFT_ALIGN_RIGHT }, open = { .not_causal = true },
                                 late = { .not_causal = true, .decoder_align = WEFT_ALIGN_RIGHT };
        holds("causal", weft_get_attention_mask(w, &past, 3, &future, 2, NULL),
              (weft_real[]){ 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1 },
              WEFT_SHAPE(2, 2, 5));
        holds("causal, no lengths", weft_get_attention_mask(w, &past, 3, NULL, 2, &right),
              (weft_real[]){ 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1 },
              WEFT_SHAPE(2, 2, 5));
        holds("not causal", weft_get_attention_mask(w, &past, 3, &future, 2, &open),
              (weft_real[]){ 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
              WEFT_SHAPE(2, 2, 5));
        holds("not causal, late", weft_get_attention_mask(w, &past, 3, &future, 2, &late),
              (weft_real[]){ 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
              WEFT_SHAPE(2, 2, 5));
        holds("not causal, no lengths", weft_get_attention_mask(w, &past, 3, NULL, 1, &open),
              (weft_real[]){ 0, 0, 1, 0, 0, 0, 0, 0 }, WEFT_SHAPE(2, 1, 4));
        holds("no past", weft_get_attention_mask(w, &nothing, 0, NULL, 2, NULL),
              (weft_real[]){ 1, 1, 0, 1, 1, 1, 0, 1 }, WEFT_SHAPE(2, 2, 2));
        cr_assert(weft_numel(weft_get_attention_mask(w, &past, 3, &nothing, 0, NULL)) == 0);
        nothing.n = 0;
        cr_assert(weft_size(weft_get_attention_mask(w, &nothing, 3, &nothing, 2, NULL), 2) == 5);
        cr_assert(weft_usage_of(w).tape == 0, "masks are constants");
    }
}

/* The study's worked example: what a mask changes, and that NaN behind it does not. */
Test(sequences, masked_loss)
{
    FOR_DEVICES(w) {
        weft_lengths l = BATCH(3, 1);
        weft_tensor *p = weft_reals(w, (weft_real[]){ 1, 2, 3, 4, 0, 1, 5, 9 }, WEFT_SHAPE(2, 4));
        weft_tensor *y = weft_reals(w, (weft_real[]){ 2, 2, 1, 0, 1, 0, 0, 0 }, WEFT_SHAPE(2, 4));
        weft_tensor *z = weft_reals(w, (weft_real[]){ 2, 2, 1, NAN_, 1, NAN_, NAN_, NAN_ }, WEFT_SHAPE(2, 4)),
                    *g;
        weft_loss_opts o = { .mask = weft_create_mask(w, 4, &l, WEFT_ALIGN_LEFT, true) };
        weft_tensor *masked = weft_mean_loss(weft_mse(p, z, &o));
        cr_assert(weft_item(weft_mean_loss(weft_mse(p, y, NULL))) == (weft_real)16.125 &&
                  weft_item(masked) == (weft_real)1.5);
        weft_gradients(masked, &p, 1, &g);
        holds("gradient", g, (weft_real[]){ -.5, 0, 1, 0, -.5, 0, 0, 0 }, WEFT_SHAPE(2, 4));
    }
}

/* ---- refused ---- */
Test(sequences, refused)
{
    FOR_DEVICES(w) {
        weft_lengths bad[] = { BATCH(3, 2, 6), BATCH(3, -1, 4), BATCH(3, 2), BATCH(3, 2, 4, 1) },
                     good = BATCH(3, 2, 5);
        const char *part[] = { "sequence 2 has length 6; 0 .. 5", "sequence 1 has length -1; 0 .. 5",
                               "2 lengths for 3", "4 lengths for 3" };
        char text[128];
#define REFUSED(name, call)                                \
    do {                                                   \
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(3, 5));  \
        call;                                              \
        (void)x;                                           \
        snprintf(text, sizeof text, name ": %s", part[i]); \
        FAILS(w, WEFT_ESHAPE, text);                       \
    } while (0)
        for (int i = 0; i < 4; i++) {
            REFUSED("align_encoder_sequences",
                    weft_align_encoder_sequences(x, &bad[i], WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT));
            REFUSED("pack_encoder_sequences", weft_pack_encoder_sequences(x, &bad[i], WEFT_ALIGN_RIGHT));
            REFUSED("pack_decoder_sequences", weft_pack_decoder_sequences(x, &bad[i]));
            REFUSED("validate_encoder_alignment",
                    cr_assert(!weft_validate_encoder_alignment(x, &bad[i], WEFT_ALIGN_LEFT)));
            REFUSED("get_attention_mask: decoder", weft_get_attention_mask(w, &good, 5, &bad[i], 5, NULL));
        }
        for (int i = 0; i < 2; i++) {
            REFUSED("create_mask", weft_create_mask(w, 5, &bad[i], WEFT_ALIGN_LEFT, i));
            REFUSED("get_attention_mask: encoder", weft_get_attention_mask(w, &bad[i], 5, &good, 5, NULL));
        }
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(3, 5));
        weft_unpack_to_fixed_length(weft_pack_decoder_sequences(x, &good), 4, NULL);
        FAILS(w, WEFT_ESHAPE, "unpack_to_fixed_length: sequence 2 has length 5; 0 .. 4");
        weft_unpack_to_fixed_length(weft_zeros(w, WEFT_SHAPE(3, 5)), 4, NULL);
        FAILS(w, WEFT_EARG, "unpack_to_fixed_length: [3, 5]: a ragged tensor");
        weft_unpack_to_fixed_length(x, 4, NULL);
        FAILS(w, WEFT_EARG, "step that has ended");
        weft_create_mask(w, 5, NULL, WEFT_ALIGN_LEFT, false);
        FAILS(w, WEFT_EARG, "create_mask: lengths: NULL");
        weft_create_mask(w, 5, &good, (weft_align)2, false);
        FAILS(w, WEFT_EARG, "weft_align");
        weft_align_encoder_sequences(weft_zeros(w, WEFT_SHAPE(3, 5)), &good, WEFT_ALIGN_LEFT, (weft_align)7);
        FAILS(w, WEFT_EARG, "align_encoder_sequences: [3, 5]: to 7; one of weft_align");
        weft_get_attention_mask(w, &good, 5, NULL, -1, NULL);
        FAILS(w, WEFT_EARG, "get_attention_mask: decoder: size -1");
        weft_pack_decoder_sequences(weft_zeros(w, WEFT_SHAPE(3)), &good);
        FAILS(w, WEFT_ESHAPE, "[sequences, T, ..]");
    }
    cr_assert_not_null(weft_create_mask(NULL, 1, &lengths, WEFT_ALIGN_LEFT, false));
    cr_assert_not_null(weft_get_attention_mask(NULL, &lengths, 1, NULL, 1, NULL));
    cr_assert_not_null(weft_unpack_to_fixed_length(NULL, 1, NULL));
    cr_assert_not_null(weft_pack_encoder_sequences(NULL, &lengths, WEFT_ALIGN_LEFT));
}

/* ---- random shortening ---- */
/* Every length of the range comes up about as often, both ends included; never more than there is. */
Test(sequences, drawn_lengths)
{
    enum { DRAWS = 4000 };
    weft *w = open_on(WEFT_REF), *again = open_on(WEFT_REF);
    int count[8] = { 0 };
    weft_lengths l = BATCH(100, 5, 0, 3);
    int32_t out[4], same[4];
    for (int i = 0; i < DRAWS; i++) {
        cr_assert(weft_stream_lengths(weft_stream_of(w, "augment"), &l, 2, 6, out) == WEFT_OK);
        cr_assert(weft_stream_lengths(weft_stream_of(again, "augment"), &l, 2, 6, same) == WEFT_OK);
        cr_assert(!memcmp(out, same, sizeof out) && out[0] >= 2 && out[0] <= 6 && out[1] >= 2 &&
                  out[1] <= 5 && out[2] == 0 && out[3] >= 2 && out[3] <= 3);
        count[out[0]]++;
    }
    for (int i = 2; i <= 6; i++)
        /* 5 deviations */
        cr_assert(abs(count[i] - DRAWS / 5) < 130, "%d came up %d times", i, count[i]);
    weft_stream *s = weft_stream_of(w, "augment");
    cr_assert(weft_stream_lengths(s, &l, 2, 2, out) == WEFT_OK && out[0] == 2 && out[3] == 2);
    cr_assert(weft_stream_lengths(s, &l, 0, INT32_MAX, out) == WEFT_OK);
    uint64_t next = weft_stream_next(s);
    cr_assert(weft_stream_lengths(weft_stream_of(again, "augment"), &l, 2, 2, same) == WEFT_OK &&
              weft_stream_lengths(weft_stream_of(again, "augment"), &l, 0, 9, same) == WEFT_OK);
    cr_assert(weft_stream_next(weft_stream_of(again, "augment")) == next,
              "one draw a sequence, whatever the range");
    cr_assert(weft_stream_lengths(s, &l, -1, 2, out) == WEFT_EARG &&
              weft_stream_lengths(s, &l, 3, 2, out) == WEFT_EARG);
    cr_assert(weft_stream_lengths(NULL, &l, 1, 2, out) == WEFT_EARG &&
              weft_stream_lengths(s, NULL, 1, 2, out) == WEFT_EARG &&
              weft_stream_lengths(s, &l, 1, 2, NULL) == WEFT_EARG);
    CLEAN(again);
    CLEAN(w);
}

Test(sequences, shorten)
{
    FOR_DEVICES(w) {
        weft_lengths l = { .n = 4, .len = note.len, .id = (int64_t[]){ 7, 8, 9, 3 } },
                     less = BATCH(2, 5, 0, 1), more = BATCH(2, 5, 3, 1), few = BATCH(1, 1);
        weft_tensor *x = weft_pack_decoder_sequences(of_note(w, WEFT_ALIGN_LEFT), &l), *g;
        weft_tensor *first = weft_shorten(x, &less, false), *last = weft_shorten(x, &less, true);
        holds("first", weft_to_layout(first, WEFT_CONCAT), (weft_real[]){ 11, 12, 21, 22, 23, 24, 25, 41 },
              WEFT_SHAPE(8));
        holds("newest", weft_to_layout(last, WEFT_CONCAT), (weft_real[]){ 12, 13, 21, 22, 23, 24, 25, 44 },
              WEFT_SHAPE(8));
        cr_assert(weft_lengths_of(last).len[3] == 1 && weft_lengths_of(last).id[3] == 3 &&
                  weft_lengths_of(first).id[0] == 7);
        weft_gradients(weft_sum_all(weft_square(last)), &x, 1, &g);
        holds("gradient", weft_to_layout(g, WEFT_CONCAT),
              (weft_real[]){ 0, 24, 26, 42, 44, 46, 48, 50, 0, 0, 0, 0, 0, 88 }, WEFT_SHAPE(14));
        weft_tensor *ints = weft_shorten(weft_ragged_ints(w, (int32_t[]){ 1, 2, 3 }, &(weft_lengths)BATCH(3)),
                                         &(weft_lengths)BATCH(1), true);
        int32_t only;
        cr_assert(read_status(ints, &only, sizeof only) == WEFT_OK && only == 3);
        weft_shorten(x, &more, true);
        FAILS(w, WEFT_ESHAPE, "shorten: sequence 2 is to have length 3; 0 .. 2 is expected");
        weft_shorten(weft_pack_decoder_sequences(of_note(w, WEFT_ALIGN_LEFT), &l), &few, true);
        FAILS(w, WEFT_ESHAPE, "shorten: 2 lengths for 4 sequences");
        weft_shorten(of_note(w, WEFT_ALIGN_LEFT), &less, true);
        FAILS(w, WEFT_EARG, "shorten: [4, 5]: a ragged tensor");
    }
    cr_assert_not_null(weft_shorten(NULL, &note, true));
}

/* The note's numbers, those rows only that are kept of sequences that were as long as the note says. */
static weft_real *kept(weft_real out[20], const int32_t *len, bool newest, weft_align align)
{
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 5; t++) {
            int at = align == WEFT_ALIGN_RIGHT ? t - (5 - len[s]) : t,
                from = newest ? note.len[s] - len[s] : 0;
            out[s * 5 + t] = at >= 0 && at < len[s] ? (weft_real)(10 * (s + 1) + from + at + 1) : 0;
        }
    return out;
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
    weft_stream_lengths(weft_stream_of(by, "shorter"), &note, 1, 3, past),
        weft_stream_lengths(weft_stream_of(by, "shorter"), &note, 0, 4, future);
    weft_lengths got = ragged ? weft_lengths_of(out.past) : *out.past_lengths,
                 of_future = ragged ? weft_lengths_of(out.future) : *out.future_lengths;
    cr_assert(got.n == 4 && !memcmp(got.len, past, sizeof past) &&
                  !memcmp(of_future.len, future, sizeof future),
              "%s", weft_error_message(w));
    holds("past", ragged ? weft_pad_packed_sequence(out.past, 5, 0, align) : out.past,
          kept(want, past, true, align), WEFT_SHAPE(4, 5));
    holds("future", ragged ? weft_pad_packed_sequence(out.future, 5, 0, WEFT_ALIGN_LEFT) : out.future,
          kept(want, future, false, WEFT_ALIGN_LEFT), WEFT_SHAPE(4, 5));
    cr_assert(out.fixed == s.fixed && out.past_align == s.past_align && (!ragged || !out.past_lengths));
    weft_clear(w);
}

Test(sequences, shorten_series)
{
    FOR_DEVICES(w) {
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
                  "0 .. 0 leaves a side whole; no lengths are full ones");
        cr_assert(weft_shorten_series(full, NULL, NULL).past == full.past);
        weft_shorten_series(full, NULL, &(weft_shorten_opts){ .past_most = 1 });
        FAILS(w, WEFT_EARG, "shorten_series: past: lengths 0 .. 1, no stream");
        full.past = full.future = weft_full(w, 1, WEFT_SHAPE(4, 2, 1));
        weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_least = 2, .future_most = 1 });
        FAILS(w, WEFT_EARG, "shorten_series: future: lengths 2 .. 1;");
        full.future = weft_full(w, 1, WEFT_SHAPE(4, 2, 1)), full.future_lengths = &note;
        weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_most = 1 });
        FAILS(w, WEFT_ESHAPE, "shorten_series: future: sequence 0 has length 3; 0 .. 2 is expected");
        full.future = weft_zeros(w, WEFT_SHAPE(4)), full.future_lengths = NULL;
        weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_most = 1 });
        FAILS(w, WEFT_ESHAPE, "shorten_series: future: [4]: a plain [sequences, T, ..]");
        full.future = NULL;
        cr_assert_not_null(
            weft_shorten_series(full, stream, &(weft_shorten_opts){ .future_most = 1 }).future);
    }
}
