/* test_packing_vectors.c - the layouts of tests/golden/packing_vectors.json, worked out by hand: every index
 * array, the packed and the unpacked data. Whatever a case of the file lists is held against the library, on
 * every kernel table. */
#include <jansson.h>
#include "tests/check.h"

typedef void each_case(weft *w, const char *name, const json_t *c);

static void in_every_case(const json_t *cases, each_case *f, weft *w)
{
    const char   *name;
    const json_t *c;
    json_object_foreach((json_t *)cases, name, c) {
        if (json_object_get(c, "lengths"))
            f(w, name, c);
        else if (json_is_object(c))
            in_every_case(c, f, w);              /* "doc" holds cases of its own */
    }
}

static void everywhere(each_case *f)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/packing_vectors.json",
             getenv("WEFT_TESTS") ? getenv("WEFT_TESTS") : "tests");
    json_error_t e;
    json_t *file = json_load_file(path, 0, &e);
    cr_assert(file, "%s: %s", path, e.text);
    FOR_DEVICES(w)
        in_every_case(file, f, w);
    json_decref(file);
}

static int64_t int_at(const json_t *list, int64_t i)
{
    return json_integer_value(json_array_get(list, (size_t)i));
}

enum { MOST = 512 };
typedef struct batch { weft_lengths l; int64_t tokens, longest; int32_t len[MOST]; } batch;

static void read_batch(batch *b, const json_t *c)
{
    const json_t *list = json_object_get(c, "lengths");
    *b = (batch){ .l = { .n = (int64_t)json_array_size(list), .len = b->len } };
    cr_assert(b->l.n <= MOST);
    for (int64_t i = 0; i < b->l.n; i++) {
        b->len[i] = (int32_t)int_at(list, i);
        b->tokens += b->len[i];
        b->longest = b->len[i] > b->longest ? b->len[i] : b->longest;
    }
}

static void hold_ints(const char *name, const char *what, const int32_t *got, const json_t *want)
{
    if (!want)
        return;
    cr_assert(got, "%s: no %s", name, what);
    for (int64_t i = 0; i < (int64_t)json_array_size(want); i++)
        cr_assert(got[i] == int_at(want, i), "%s: %s[%lld] is %d, expected %lld", name, what, (long long)i,
                  got[i], (long long)int_at(want, i));
}

/* ---- index arrays ---- */
static void hold_arrays(weft *w, const char *name, const json_t *c)
{
    batch b;
    read_batch(&b, c);
    int32_t      zeros[MOST * 4] = { 0 };
    weft_tensor *x = weft_ragged_ints(w, zeros, &b.l);
    const weft_packed_sequence packed = weft_packed_sequence_of(x);
    int64_t steps = packed.steps;
    const json_t *n = json_object_get(c, "N"), *longest = json_object_get(c, "T"),
                 *want = json_object_get(c, "batch_sizes");
    cr_assert(!n || json_integer_value(n) == weft_size(x, 0), "%s: %lld tokens", name,
              (long long)weft_size(x, 0));
    cr_assert(!longest || json_integer_value(longest) == steps, "%s: %lld steps", name, (long long)steps);
    cr_assert(!want || (int64_t)json_array_size(want) == steps, "%s: %lld steps", name, (long long)steps);
    hold_ints(name, "batch_sizes", packed.batch_sizes, want);
    hold_ints(name, "sorted_indices", packed.sorted_indices, json_object_get(c, "sorted_indices"));
    hold_ints(name, "unsorted_indices", packed.unsorted_indices, json_object_get(c, "unsorted_indices"));
    hold_ints(name, "cu_seqlens", weft_offsets(x), json_object_get(c, "cu_seqlens"));
    hold_ints(name, "cu", weft_offsets(x), json_object_get(c, "cu"));
    hold_ints(name, "pos", weft_rows_of(x).position, json_object_get(c, "pos"));
    weft_rows row = weft_rows_of(x);
    for (int64_t s = 0; s < b.l.n; s++)
        for (int64_t r = weft_offsets(x)[s]; r < weft_offsets(x)[s + 1]; r++)
            cr_assert(row.sequence[r] == s && row.position[r] == r - weft_offsets(x)[s],
                      "%s: row %lld", name, (long long)r);
    OK(w);
    weft_clear(w);
}

Test(packing, index_arrays) { everywhere(hold_arrays); }

/* ---- data ---- */
/* A token is a number, or "b3": the third of sequence b. */
static weft_real token(const json_t *j)
{
    const char *s = json_string_value(j);
    return s ? (weft_real)(100 * (s[0] - 'a') + atoi(s + 1)) : (weft_real)json_number_value(j);
}

static int64_t hold_from(const char *name, const char *what, const weft_real *got, int64_t at, int64_t n,
                         const json_t *want)
{
    size_t i;
    const json_t *one;
    json_array_foreach(want, i, one) {
        if (json_is_array(one)) {
            at = hold_from(name, what, got, at, n, one);
            continue;
        }
        cr_assert(at < n && got[at] == token(one), "%s: %s[%lld] is %g, expected %g", name, what,
                  (long long)at, at < n ? (double)got[at] : (double)NAN, (double)token(one));
        at++;
    }
    return at;
}
/* want: a list, or a table of rows. */
static void hold_reals(const char *name, const char *what, weft_tensor *x, const json_t *want)
{
    int64_t n = weft_numel(x), rows = (int64_t)json_array_size(want);
    if (!json_is_array(want))
        return;
    cr_assert_eq(hold_from(name, what, numbers(x), 0, n, want), n, "%s: %s has %lld numbers", name, what,
                 (long long)n);
    cr_assert_eq(weft_size(x, 0), rows, "%s: %s has %lld rows", name, what, (long long)weft_size(x, 0));
}

/* The case's padded table, or one made of its lengths (sequence b's step t is 100 b + t + 1: "b1" and so
 * on); right: pads first. */
static weft_tensor *padded(weft *w, const json_t *c, const batch *b, bool right, weft_real pad)
{
    const json_t *table = json_object_get(c, "padded");
    int64_t    longest = table ? (int64_t)json_array_size(json_array_get(table, 0)) : b->longest;
    weft_real *v = calloc((size_t)(b->l.n * longest) + 1, sizeof *v);
    for (int64_t s = 0; s < b->l.n; s++)
        for (int64_t t = 0; t < longest; t++) {
            int64_t   from = right ? t - (longest - b->len[s]) : t;
            bool      real_one = from >= 0 && from < b->len[s];
            weft_real here = table ? token(json_array_get(json_array_get(table, (size_t)s), (size_t)from)) :
                                     (weft_real)(100 * s + from + 1);
            v[s * longest + t] = real_one ? here : pad;
        }
    weft_tensor *x = weft_reals(w, v, WEFT_SHAPE(b->l.n, longest));
    free(v);
    return x;
}

static void hold_data(weft *w, const char *name, const json_t *c)
{
    batch b;
    read_batch(&b, c);
    for (int right = 0; right < 2; right++) {
        weft_align   align = right ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT;
        weft_tensor *p = weft_pack_padded_sequence(padded(w, c, &b, right, (weft_real)NAN), &b.l, align);
        cr_assert(weft_layout_of(p) == WEFT_PACKED);
        hold_reals(name, "data", p, json_object_get(c, "data"));
        hold_reals(name, "concat", weft_to_layout(p, WEFT_CONCAT), json_object_get(c, "concat"));
        hold_reals(name, "data, by way of concat",
                   weft_to_layout(weft_to_layout(p, WEFT_CONCAT), WEFT_PACKED), json_object_get(c, "data"));
        hold_reals(name, "unpacked", weft_pad_packed_sequence(p, 0, 0, WEFT_ALIGN_LEFT),
                   json_object_get(c, "unpacked"));
        if (json_object_get(c, "unpacked_total5"))
            hold_reals(name, "unpacked_total5", weft_pad_packed_sequence(p, 5, 0, WEFT_ALIGN_LEFT),
                       json_object_get(c, "unpacked_total5"));
        weft_tensor *there = padded(w, c, &b, right, -1),
                    *back = weft_pad_packed_sequence(p, weft_size(there, 1), -1, align);
        same_bits(name, numbers(back), numbers(there), weft_numel(there));
    }
    weft_clear(w);
}

Test(packing, data) { everywhere(hold_data); }

/* ---- what must be refused, and what must not ---- */
TABLE_TEST(packing, bad_lengths)
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
        cr_assert(weft_error_code(w) == WEFT_ESHAPE || weft_error_code(w) == WEFT_EARG, "lengths %d: %s", i,
                  weft_error_message(w));
        cr_assert(strstr(weft_error_message(w), "pack_padded") && strstr(weft_error_message(w), bad[i].part),
                  "lengths %d: \"%s\"", i, weft_error_message(w));
        weft_recover(w);
    }
}

/* A length that covers only part of the data is legal (S1e: the 4 is lost, PyTorch's way); the check
 * names it. */
TABLE_TEST(packing, data_beyond_a_length)
{
    const weft_real rows[15] = { 1, 2, 3, 4, 0, 5, 6, 0, 0, 0, 7, 8, 9, 0, 0 };
    const int32_t   len[3] = { 3, 2, 5 }, enough[3] = { 4, 2, 5 };
    weft_tensor *x = weft_reals(w, rows, WEFT_SHAPE(3, 5));
    cr_assert(weft_size(weft_pack_padded_sequence(x, &(weft_lengths){ .n = 3, .len = len }, WEFT_ALIGN_LEFT),
                        0) == 10);
    weft_lengths all = { .n = 3, .len = enough }, some = { .n = 3, .len = len };
    cr_assert(weft_pads_are_zero(x, &all, WEFT_ALIGN_LEFT));
    cr_assert(weft_size(weft_pack_padded_sequence(x, &all, WEFT_ALIGN_LEFT), 0) == 11);
    OK(w);
    cr_assert(!weft_pads_are_zero(x, &some, WEFT_ALIGN_LEFT));
    FAILS(w, WEFT_EARG, "sequence 0 of length 3 has data at step 3, outside it");
}

TABLE_TEST(packing, no_sequences_and_no_tokens)
{
    const int32_t none[3] = { 0, 0, 0 };
    for (int64_t n = 0; n <= 3; n += 3) {
        int64_t steps = -1;
        weft_lengths l = { .n = n, .len = none };
        weft_tensor *p = weft_pack_padded_sequence(weft_zeros(w, WEFT_SHAPE(n, 4, 2)), &l, WEFT_ALIGN_LEFT),
                    *x = weft_pad_packed_sequence(p, 4, 7, WEFT_ALIGN_LEFT);
        steps = weft_packed_sequence_of(p).steps;
        cr_assert(weft_size(p, 0) == 0 && steps == 0 && weft_lengths_of(p).n == n);
        cr_assert(weft_size(x, 0) == n && weft_size(x, 1) == 4 && weft_size(x, 2) == 2);
        for (int64_t i = 0; i < weft_numel(x); i++)
            cr_assert(numbers(x)[i] == 7);
        OK(w);
    }
}
