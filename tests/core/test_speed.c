/* test_speed.c - tests that costs grow linearly: pack, pad and arrange run near the speed of a plain copy at
 * any length, and training time per token is the same for long sequences. It compares ratios of the best of
 * several runs in one process, and repeats a slow case, so that a noisy machine does not decide. Sanitizer
 * builds run it without judging. */
#include "tests/check.h"

static double now(void) { return seconds_of(CLOCK_MONOTONIC); }

enum { TRIES = 6 };

/* ---- pack, pad, arrange ---- */
enum { WIDE = 64 };
typedef struct { int64_t n, longest; const int32_t *len; } shape;

static weft_tensor *padded_of(weft *w, const shape *s)
{
    return weft_full(w, 1, WEFT_SHAPE(s->n, s->longest, WIDE));
}
static weft_tensor *packed_of(weft *w, const shape *s)
{
    return weft_pack_padded_sequence(padded_of(w, s), &(weft_lengths){ .n = s->n, .len = s->len },
                                     WEFT_ALIGN_LEFT);
}
static weft_tensor *pack(weft_tensor *x, const shape *s)
{
    return weft_pack_padded_sequence(x, &(weft_lengths){ .n = s->n, .len = s->len }, WEFT_ALIGN_LEFT);
}
static weft_tensor *pad(weft_tensor *x, const shape *s)
{
    (void)s;
    return weft_pad_packed_sequence(x, 0, 0, WEFT_ALIGN_LEFT);
}
static weft_tensor *arrange(weft_tensor *x, const shape *s)
{
    (void)s;
    return weft_to_layout(x, WEFT_CONCAT);
}
static const struct {
    const char *name;
    weft_tensor *(*f)(weft_tensor *, const shape *);
    bool reads_padded, writes_padded;
} moves[] = { { "pack", pack, true, false },
              { "pad", pad, false, true },
              { "arrange", arrange, false, false } };

/* Returns the best times of a move and of its backward, in steps whose memory has been used before. A
 * backward begins by filling the gradient of the result with ones. That time is measured separately and
 * subtracted. */
static void times(weft *w, int move, const shape *s, double *forward, double *backward)
{
    double walk = 1e9, ones = 1e9;
    for (int i = 0; i < (CHECK_SANITIZED ? 2 : 9); i++) {
        weft_clear(w);
        weft_set_grad_enabled(w, true);
        weft_tensor *x = moves[move].reads_padded ? padded_of(w, s) : packed_of(w, s), *g;
        double t0 = now();
        weft_tensor *y = moves[move].f(x, s);
        double t1 = now();
        weft_set_grad_enabled(w, false);
        weft_gradients(y, &x, 1, &g);
        double t2 = now();
        weft_full(w, 1, 1, (int64_t[]){ weft_numel(y) });
        *forward = fmin(*forward, t1 - t0), walk = fmin(walk, t2 - t1), ones = fmin(ones, now() - t2);
        OK(w);
    }
    *backward = fmin(*backward, walk - ones);
}

static double copy_time(int64_t bytes)           /* into memory that has been used before */
{
    char *a = malloc((size_t)bytes), *b = malloc((size_t)bytes);
    double best = 1e9;
    memset(a, 1, (size_t)bytes), memset(b, 2, (size_t)bytes);
    for (int i = 0; i < 7; i++) {
        double t = now();
        memcpy(b, a, (size_t)bytes);
        __asm__ volatile("" : : "r"(b) : "memory");
        best = fmin(best, now() - t);
    }
    free(a), free(b);
    return best;
}

static void at_length(int32_t T)
{
    weft *w = open_on(WEFT_CPU);
    int64_t n = (1 << 18) / T, tokens = 0;
    int32_t *len = calloc((size_t)n, sizeof *len);
    for (int64_t s = 0, x = 1; s < n; s++) {
        x = (1103515245 * x + 12345) % 2147483648;
        tokens += len[s] = s ? T / 2 + (int32_t)((x >> 8) % (T / 2 + 1)) : T;
    }
    shape s = { n, T, len };
    int64_t row = WIDE * (int64_t)sizeof(weft_real), bytes = tokens * row, all = n * T * row;
    cr_assert(bytes >= 32 << 20);
    for (int i = 0; i < COUNT(moves); i++) {
        double forward = 1e9, backward = 1e9, copy = 1e9;
        for (int tries = 0;
             tries < (CHECK_SANITIZED ? 1 : TRIES) && (forward > 3 * copy || backward > 3 * copy || !tries);
             tries++) {
            copy = fmin(copy, copy_time(moves[i].reads_padded || moves[i].writes_padded ? all : bytes));
            times(w, i, &s, &forward, &backward);
        }
        fprintf(stderr, "%s T=%d: forward %.2f, backward %.2f plain copies\n", moves[i].name, T,
                forward / copy, backward / copy);
        if (!CHECK_SANITIZED)
            cr_expect(forward <= 3 * copy && backward <= 3 * copy,
                      "%s at T = %d: forward %.1f, backward %.1f plain copies", moves[i].name, T,
                      forward / copy, backward / copy);
    }
    free(len);
    CLEAN(w);
}

Test(speed, pack_pad_and_arrange_cost_a_plain_copy)
{
    at_length(32);
    at_length(4096);
}

/* ---- long sequences ---- */
static void per_token(weft *w, weft_rnn *r, int32_t T, int64_t tokens, double *least)
{
    int64_t n = tokens / T;
    int32_t len[128];
    for (int64_t s = 0; s < n; s++)
        len[s] = T;
    for (int i = 0; i < 3 - CHECK_SANITIZED; i++) {
        weft_clear(w);
        weft_tensor *x = weft_pack_padded_sequence(weft_full(w, (weft_real).1, WEFT_SHAPE(n, T, 128)),
                                                   &(weft_lengths){ .n = n, .len = len }, WEFT_ALIGN_LEFT);
        double t = now();
        weft_backward(weft_sum_all(weft_rnn_run(r, x, WEFT_ZERO_STATE).y));
        *least = fmin(*least, (now() - t) / (double)(n * T));
    }
    OK(w);
}

CPU_TEST(speed, long_sequences_cost_the_same_per_token)
{
    weft_rnn *r =
        weft_lstm_new(weft_module_new(w, "m"), "lstm", &(weft_rnn_opts){ .input = 128, .hidden = 128 });
    double middle = 1e9, most = 1e9;
    for (int tries = 0; tries < (CHECK_SANITIZED ? 1 : TRIES) && (!tries || most > 1.3 * middle); tries++) {
        per_token(w, r, 512, CHECK_SANITIZED ? 1 << 12 : 1 << 15, &middle);
        per_token(w, r, 4096, CHECK_SANITIZED ? 1 << 12 : 1 << 15, &most);
    }
    fprintf(stderr, "LSTM H=128, %.0f ns a token at T=512, %.0f at T=4096\n", 1e9 * middle, 1e9 * most);
    if (!CHECK_SANITIZED)
        cr_expect(most <= 1.3 * middle, "T = 4096: %.2f times T = 512 a token", most / middle);
}
