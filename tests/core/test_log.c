/* test_log.c - tests WEFT_LOG and the profile. The log is silent by default. With WEFT_LOG it prints a first
 * line, a last line and a table. The profile has a row for each operator that ran, with its number of
 * operations. Results are the same, and a steady step still allocates nothing. */
#include "core/inside.h"
#include "tests/check.h"
#include "tests/listen.h"

/* ---- a small training step ---- */
enum { N = 6, IN = 5, HIDDEN = 7 };
typedef struct { weft_module *m; weft_rnn *rnn; weft_linear *out; weft_optim *optim; } net;
static net net_new(weft *w)
{
    net n = { .m = weft_module_new(w, "net") };
    n.rnn = weft_lstm_new(n.m, "rnn", &(weft_rnn_opts){ .input = IN, .hidden = HIDDEN });
    n.out = weft_linear_new(n.m, "out", &(weft_linear_opts){ .in = HIDDEN, .out = 3 });
    n.optim = weft_adamw_new(n.m, NULL);
    return n;
}
static weft_real step(weft *w, const net *n)
{
    static const int32_t len[] = { 3, 1, 2 };
    dice_seed(3);
    weft_real x[N * IN];
    weft_tensor *in = weft_ragged(w, dice_fill(x, N * IN, -1, 1), IN, &(weft_lengths){ .n = 3, .len = len });
    weft_tensor *y = weft_linear_run(n->out, weft_rnn_run(n->rnn, in, WEFT_ZERO_STATE).y);
    weft_tensor *loss = weft_sum_all(weft_square(y));
    weft_backward(loss);
    weft_clip_grad_norm(n->m, 1, 0);
    weft_optim_step(n->optim);
    weft_real value = weft_item(loss);
    weft_clear(w);
    return value;
}

static weft *opened(const char *level, int table_i)
{
    if (level)
        setenv("WEFT_LOG", level, 1);
    weft *w = open_table(table_i);
    unsetenv("WEFT_LOG");
    return w;
}

Test(log, prints_the_requested_level)
{
    static const char *const levels[] = { NULL, "0", "", "1", "2" };
    for (int i = 0; i < COUNT(tables); i++)
        for (int l = 0; table_is_here(tables[i].name) && l < COUNT(levels); l++) {
            listen_to_stderr();
            weft *w = opened(levels[l], i);
            net n = net_new(w);
            for (int s = 0; s < 3; s++)
                step(w, &n);
            OK(w);
            CLEAN(w);
            const char *text = stop_listening(), *level = levels[l] ? levels[l] : "";
            bool some = *level == '1' || *level == '2', all = *level == '2';
            cr_assert(some || !*text, "output without a request: %s", text);
            cr_assert(!some || (strstr(text, tables[i].name) && strstr(text, "threads") &&
                                strstr(text, "MB of host memory")),
                      "%s", text);
            static const char *const rows[] = { "lstm ",   "backward", "linear ", "square ",
                                                "update ", "clip ",    "GF/s",    "outside operators" };
            for (int r = 0; some && r < COUNT(rows); r++)
                cr_assert(all == !!strstr(text, rows[r]), "level %s, \"%s\": %s", level, rows[r], text);
        }
}

/* ---- counts in the rows ---- */
static const weft_profile_row *row_of(weft *w, const char *name, bool back)
{
    weft_profile p = weft_profile_of(w);
    for (int64_t i = 0; i < p.n; i++)
        if (!strcmp(p.rows[i].name, name) && p.rows[i].backward == back && p.rows[i].calls)
            return &p.rows[i];
    cr_assert_fail("no row %s, %s", name, back ? "backward" : "forward");
    return NULL;
}
static void has_flops(weft *w, const char *name, bool back, int64_t calls, double flops)
{
    const weft_profile_row *r = row_of(w, name, back);
    cr_assert(r->calls == calls && r->ms > 0, "%s: %lld calls, %g ms", name, (long long)r->calls, r->ms);
    cr_assert_eq(r->flops, flops, "%s %d: %g, expected %g", name, back, r->flops, flops);
}

static void counting(void) { setenv("WEFT_LOG", "2", 1), listen_to_stderr(); }

TABLE_TEST(log, counts_calls_and_operations, .init = counting)
{
    net n = net_new(w);
    step(w, &n), step(w, &n);
    double in = 2. * N * IN * 4 * HIDDEN, recurrent = 2. * N * HIDDEN * 4 * HIDDEN,
           out = 2. * N * HIDDEN * 3, cells = 45. * N * HIDDEN;
    has_flops(w, "lstm", false, 2, 2 * (in + recurrent + cells));
    /* dW of both; x is not a parameter; dh of the previous step */
    has_flops(w, "lstm", true, 2, 2 * (in + 2 * recurrent + cells));
    has_flops(w, "linear", false, 2, 2 * out);
    has_flops(w, "linear", true, 2, 4 * out);
    const weft_profile_row *square = row_of(w, "square", false);
    cr_assert(square->flops == 0 && square->bytes == 2 * 2 * N * 3 * sizeof(weft_real), "%g bytes",
              square->bytes);
    cr_assert_eq(square->launches, w->dev.k->synchronous ? 0 : 2);
}

TABLE_TEST(log, counts_embedding_rows_once, .init = counting)
{
    enum { ROWS = 2, TOKENS = 24 };
    static const int32_t len[] = { 20, 4 }, ids[TOKENS] = { 1, 0, -1, 1 };
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *e = weft_embedding_new(m, "e", &(weft_embedding_opts){ .rows = ROWS, .columns = IN });
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = IN, .hidden = HIDDEN });
    weft_tensor *x = weft_embedding_run(e, weft_ragged_ints(w, ids, &(weft_lengths){ .n = 2, .len = len }));
    weft_backward(weft_sum_all(weft_rnn_run(r, x, WEFT_ZERO_STATE).y));
    OK(w);
    double in = 2. * (ROWS + 1) * IN * 4 * HIDDEN, recurrent = 2. * TOKENS * HIDDEN * 4 * HIDDEN,
           cells = 45. * TOKENS * HIDDEN;
    has_flops(w, "lstm", false, 1, in + recurrent + cells);
    has_flops(w, "lstm", true, 1, 2 * (in + recurrent) + cells);
}

static const int32_t queries[] = { 2, 0, 3 }, keys[] = { 4, 1, 2 };
static double attended(weft *w, weft_causal causal, bool mean)
{
    weft_lengths q = { .n = 3, .len = queries }, k = { .n = 3, .len = keys };
    weft_tensor *a = weft_ragged(w, dice_fill((weft_real[5 * 4]){ 0 }, 20, -1, 1), 4, &q),
                *b = weft_ragged(w, dice_fill((weft_real[7 * 4]){ 0 }, 28, -1, 1), 4, &k);
    weft_reset_profile(w);
    weft_attention(a, b, b,
                   &(weft_attention_opts){
                       .heads = 2, .causal = causal, .shared_values = mean, .mean_heads = mean },
                   NULL);
    OK(w);
    /* two heads; keys of 2; values of 2, or 4 shared by the heads */
    return row_of(w, "attention", false)->flops / (2. * (mean ? 2 * 2 + 4 : 2 * (2 + 2)));
}

CPU_TEST(log, counts_attending_pairs, .init = counting)
{
    cr_assert_eq(attended(w, WEFT_ALL_KEYS, false), 2 * 4 + 3 * 2);
    cr_assert_eq(attended(w, WEFT_ALL_KEYS, true), 2 * 4 + 3 * 2);
    cr_assert_eq(attended(w, WEFT_CAUSAL_TOP_LEFT, false), 1 + 2 + 1 + 2 + 2);
    cr_assert_eq(attended(w, WEFT_CAUSAL_BOTTOM_RIGHT, false), 3 + 4 + 0 + 1 + 2);
    cr_assert_eq(attended(w, WEFT_CAUSAL_STRICT, false), 2 + 3 + 0 + 0 + 1);
}

/* ---- without the variable ---- */
static double ms_now(void) { return 1e3 * seconds_of(CLOCK_MONOTONIC); }

static void wait_ms(double ms)
{
    for (double end = ms_now() + ms; ms_now() < end;)
        ;
}

/* The times of the rows add up to the total, and the rows are sorted by time. */
static void adds_up(weft_profile p, double least, double most)
{
    double ms = p.beside_ms;
    for (int64_t i = 0; i < p.n; i++) {
        ms += p.rows[i].ms;
        cr_assert(i == 0 || p.rows[i].ms <= p.rows[i - 1].ms, "%s before %s", p.rows[i - 1].name,
                  p.rows[i].name);
    }
    cr_assert(fabs(ms - p.ms) < 1e-9 * (1 + ms) && p.ms >= least && p.ms <= most, "%g of %g, %g .. %g", ms,
              p.ms, least, most);
}

TABLE_TEST(profile, profile_switches_on_and_off)
{
    net n = net_new(w);
    step(w, &n);
    cr_assert(weft_profile_of(w).n == 0 && weft_profile_of(w).ms == 0, "profile before it was enabled");
    double outer = ms_now();
    cr_assert(!weft_set_profiling(w, true) && weft_set_profiling(w, true));
    double inner = ms_now();
    step(w, &n), step(w, &n);
    double inner_end = ms_now();
    weft_profile p = weft_profile_of(w);
    double outer_end = ms_now();
    adds_up(p, inner_end - inner, outer_end - outer);
    cr_assert(p.n > 8 && row_of(w, "lstm", true)->calls == 2 && row_of(w, "update", false)->calls == 2);
    wait_ms(2);
    inner_end = ms_now();
    cr_assert(weft_set_profiling(w, false) && !weft_set_profiling(w, false));
    outer_end = ms_now();
    adds_up(weft_profile_of(w), inner_end - inner, outer_end - outer);
    double whole = weft_profile_of(w).ms;
    step(w, &n);
    cr_assert(weft_profile_of(w).ms == whole && row_of(w, "lstm", true)->calls == 2, "grew while off");
    weft_set_profiling(w, true);
    step(w, &n);
    cr_assert_eq(row_of(w, "lstm", true)->calls, 3, "the profile must continue when enabled again");
    wait_ms(2);
    outer = ms_now();
    weft_reset_profile(w);
    cr_assert_eq(weft_profile_of(w).n, 0);
    step(w, &n);
    cr_assert_eq(row_of(w, "lstm", false)->calls, 1);
    p = weft_profile_of(w);
    outer_end = ms_now();
    adds_up(p, 0, outer_end - outer);
}

CPU_TEST(profile, profile_fails_without_memory)
{
    fail_in(w, 1);
    cr_assert(!weft_set_profiling(w, true));
    FAILS(w, WEFT_ENOMEM, "out of memory");
    cr_assert(!weft_set_profiling(w, true) && weft_set_profiling(w, false));
}

Test(log, profile_keeps_results_and_allocates_nothing)
{
    listen_to_stderr();
    FOR_DEVICES(w) {
        weft *logged = opened("2", check_i);
        net a = net_new(w), b = net_new(logged);
        int64_t before = 0;
        for (int s = 0; s < 6; s++) {
            weft_real x = step(w, &a), y = step(logged, &b);
            same_bits("loss", &x, &y, 1);
            before = s == 2 ? allocations(logged) : before;
        }
        cr_assert_eq(allocations(logged), before);
        CLEAN(logged);
    }
    stop_listening();
}

TABLE_TEST(log, peak_is_the_maximum_since_reset)
{
    weft_zeros(w, WEFT_SHAPE(1 << 20));
    weft_clear(w);
    weft_usage large = weft_usage_of(w);
    weft__arena_end(w, WEFT__ARENA_DATA);
    weft_usage u = weft_usage_of(w);
    int64_t bytes = (1 << 20) * (int64_t)sizeof(weft_real);
    cr_assert(u.host_peak + u.device_peak >= large.host_bytes + large.device_bytes &&
              u.host_peak + u.device_peak >= bytes);
    cr_assert(u.host_bytes + u.device_bytes < bytes && u.host_peak >= u.host_bytes &&
              u.device_peak >= u.device_bytes);
}
