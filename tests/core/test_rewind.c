/* test_rewind.c - tests that a rewind frees everything created after the mark, including ragged batches and
 * their index arrays, and keeps everything created before it. Finding a batch takes constant time, however
 * many a step has. */
#include "tests/check.h"
#include "core/inside.h"

static int64_t held(weft *w) { return weft_usage_of(w).host_bytes + weft_usage_of(w).device_bytes; }

/* ---- ragged batches ---- */
typedef struct { weft_rnn *rnn; weft_real x[64]; } scene;
static scene scene_new(weft *w)
{
    scene s = { .rnn = weft_lstm_new(weft_module_new(w, "net"), "r",
                                     &(weft_rnn_opts){ .input = 2, .hidden = 3 }) };
    dice_seed(3);
    dice_fill(s.x, COUNT(s.x), -1, 1);
    return s;
}

static weft_tensor *batch_of(weft *w, const scene *s, int64_t id)
{
    return weft_ragged(
        w, s->x, 2,
        &(weft_lengths){ .n = 3, .len = (int32_t[]){ 3, 0, 5 }, .id = (int64_t[]){ id, id + 1, id + 2 } });
}

/* Gathers to and from each layout, row numbers, a placement and its fold, the last states of a recurrent
 * layer. */
static weft_tensor *everything(const scene *s, weft_tensor *x)
{
    weft_tensor *placed =
        weft_to_rows(x, &(weft_placement){ 2, 9, (int32_t[]){ 0, 1, 1 }, (int32_t[]){ 4, 0, 1 } });
    weft_tensor *packed = weft_rnn_run(s->rnn, x, WEFT_ZERO_STATE).y,
                *rows = weft_rnn_run(s->rnn, placed, WEFT_ZERO_STATE).y;
    cr_assert(weft_rows_of(packed).sequence && weft_rows_of(rows).position);
    weft_tensor *both =
        weft_add(weft_to_layout(rows, WEFT_CONCAT), weft_dropout(packed, (weft_real).5, "d", false));
    return weft_add(weft_sum_all(weft_pad_packed_sequence(both, 9, 1, WEFT_ALIGN_RIGHT)),
                    weft_sum_all(weft_broadcast_to_tokens(weft_pool(both, WEFT_POOL_LAST), x)));
}

TABLE_TEST(rewind, frees_batches_and_their_index_arrays, .init = unchecked)
{
    scene s = scene_new(w);
    weft_set_grad_enabled(w, false);
    weft_tensor *before = batch_of(w, &s, -9);
    weft_batch *b = before->f.batch;
    weft_set_training(w, false);
    weft_real want = weft_item(everything(&s, weft_scale(before, 2)));
    weft_clear(w);
    before = batch_of(w, &s, -9), b = before->f.batch;
    weft_to_layout(before, WEFT_PACKED);
    const void *map = b->maps, *rows = b->rows;              /* earlier steps may have created some */
    weft_mark here = weft_mark_here(w);
    int64_t bytes = 0;
    for (int i = 0, n = rounds(3000, 30000); i < n; i++) {
        weft_real got[2] = { weft_item(everything(&s, weft_scale(before, 2))),
                             weft_item(everything(&s, weft_scale(batch_of(w, &s, i), 2))) };
        same_bits("round", got, ((weft_real[]){ want, want }), 2);
        cr_assert(b->maps != map && b->rows != rows && b->places && b->slot);
        weft_rewind(w, here);
        cr_assert(b->maps == map && b->rows == rows && !b->places && !b->slot,
                  "an array created after the mark is still linked");
        bytes = i == 1 ? held(w) : bytes;
        cr_assert(i < 2 || held(w) == bytes, "round %d: %lld bytes instead of %lld", i,
                  (long long)held(w), (long long)bytes);
    }
    weft_mark now = weft_mark_here(w);
    cr_assert(!memcmp(&here, &now, sizeof here));
}

/* Each step's memory is a token longer than the previous one. */
typedef struct { int32_t step; int64_t bytes; weft_real *zeros; } growing;
static weft_tensor *remembers(weft_decode_rows *rows, void *user)
{
    growing *g = user;
    weft *w = weft_context_of(rows->tokens);
    int32_t len[] = { ++g->step % 1000, g->step / 1000 };
    if (g->step == 2500)
        g->bytes = held(w);
    return weft_add(
        weft_scalar(w, 0),
        weft_sum(weft_reshape(weft_pool(weft_ragged(w, g->zeros, 4, &(weft_lengths){ .n = 2, .len = len }),
                                        WEFT_POOL_MEAN),
                              WEFT_SHAPE(2, 1, 4)),
                 0));
}

CPU_TEST(rewind, decoder_with_batches_runs_in_constant_memory, .init = unchecked)
{
    growing g = { .zeros = calloc(4 * 2000, sizeof *g.zeros) };
    double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    weft_decoded d = weft_decode(w, 1, WEFT_ZERO_STATE, remembers, &g,
                                 &(weft_decode_opts){ .begin = 1, .end = -1, .limit = 12000 });
    double seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
    OK(w);
    cr_assert_eq(d.len[0], 12000);
    cr_assert_eq(held(w), g.bytes, "%lld bytes after 12000 steps, %lld after 2500", (long long)held(w),
                 (long long)g.bytes);
    cr_assert(seconds < (CHECK_SANITIZED ? 20 : 1), "12000 steps took %.2f s", seconds);
    weft_decoded_free(&d);
    free(g.zeros);
}

/* ---- gradients ---- */
TABLE_TEST(rewind, frees_returned_gradients, .init = unchecked)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, 2, 3 }, WEFT_SHAPE(3));
    weft_mark here = weft_mark_here(w);
    int64_t bytes = 0;
    for (int i = 0; i < 1000; i++) {
        weft_tensor *g[2], *old, *y = weft_sum_all(weft_square(weft_sin(x)));
        bool recording = weft_set_grad_enabled(w, false);
        weft_gradients(y, (weft_tensor *[]){ x, x }, 2, g);
        old = g[0];
        weft_mark inner = weft_mark_here(w);
        weft_gradients(y, &x, 1, g + 1);
        cr_assert(weft_item(weft_sum_all(weft_abs(weft_sub(g[0], g[1])))) == 0);
        weft_rewind(w, inner);
        weft_gradients(y, &x, 1, g + 1);
        cr_assert(g[1]->data != g[0]->data, "a valid gradient was overwritten");
        weft_set_grad_enabled(w, recording);
        cr_assert(fabs((double)weft_item(weft_slice(g[0], 0, 1, 2)) - sin(4)) < 1e-6);
        weft_rewind(w, here);
        bytes = i == 1 ? held(w) : bytes;
        cr_assert(i < 2 || held(w) == bytes, "round %d: %lld bytes instead of %lld", i,
                  (long long)held(w), (long long)bytes);
        if (i < 999)
            continue;
        FAILS_AT(w, weft_item(old), WEFT_EARG, "step that has ended");
    }
}

/* The step counts the dropout masks of each name. */
CPU_TEST(rewind, each_round_has_a_new_dropout_mask)
{
    weft_tensor *x = weft_full(w, 1, WEFT_SHAPE(64));
    weft_mark here = weft_mark_here(w);
    weft_real first[64], second[64];
    weft_read(weft_dropout(x, (weft_real).5, "d", false), first, sizeof first);
    weft_rewind(w, here);
    weft_read(weft_dropout(x, (weft_real).5, "d", false), second, sizeof second);
    cr_assert(memcmp(first, second, sizeof first));
}

CPU_TEST(rewind, finds_one_of_twenty_thousand_batches_quickly)
{
    enum { N = 20000 };
    for (int ragged = 0; ragged < 2; ragged++) {
        double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        const weft_batch *first = NULL;
        for (int round = 0; round < 2; round++)
            for (int64_t i = 0; i < N; i++) {    /* different ids, then different lengths */
                int32_t len[] = { ragged ? (int32_t)(i % 150) : 1, ragged ? (int32_t)(i / 150) : 0 };
                const weft_batch *b = weft__batch(
                    w, &(weft_lengths){ .n = 2, .len = len, .id = ragged ? NULL : (int64_t[]){ i, 7 } },
                    "test");
                first = i ? first : b;
                cr_assert(b && b->len[0] == len[0] && b->len[1] == len[1] && (ragged || b->id[0] == i));
            }
        double seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
        cr_assert(seconds < (CHECK_SANITIZED ? 10 : .2), "%d batches, twice: %.2f s", N, seconds);
        cr_assert_eq(weft__batch(w, &(weft_lengths){ .n = 2, .len = first->len, .id = first->id }, "test"),
                     first, "equal lengths and ids gave another batch");
        weft_clear(w);
    }
}

