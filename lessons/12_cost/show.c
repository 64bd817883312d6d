/* Lesson 12: prints FLOPs, bytes and computed times of an LSTM and of attention on an
 * invented machine, and weft's own counts. It measures no time. */
#include "weft_lab.h"
#include "weft_op.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "lesson.h"

/* An invented machine with one core. */
static const double peak = 100, bandwidth = 20; /* GF/s, GB/s */
enum { UNITS = 256, WIDTH = 128, SIZES = 7, LENGTHS = 8 };
static const int batch[SIZES] = { 1, 2, 4, 8, 16, 64, 256 };
static const int length[LENGTHS] = { 16, 32, 64, 128, 256, 512, 1024, 2048 };

/* ---- the roofline ---- */
static double intensity(int B)
{
    return lstm_flops(UNITS, UNITS, B, 1) / lstm_bytes(UNITS, UNITS, B, 1);
}
static double roof(double per_byte) { return fmin(peak, per_byte * bandwidth); }
/* Returns the time in us: the longer one of computing and moving. */
static double time_of(double flops, double bytes)
{
    return fmax(flops / peak, bytes / bandwidth) / 1e3;
}

static void show_roofline(void)
{
    printf("a step of an LSTM, %d inputs and units, at %s GF/s and %s GB/s\n", UNITS,
           digits(peak), digits(bandwidth));
    printf("    B     MFLOP       MB  FLOPs/byte     GF/s  us/token\n");
    for (int k = 0; k < SIZES; k++) {
        const int B = batch[k];
        double flops = lstm_flops(UNITS, UNITS, B, 1),
               bytes = lstm_bytes(UNITS, UNITS, B, 1);
        printf("%5d  %8s %8s  %10s %8s  %8s\n", B, digits(flops / 1e6),
               digits(bytes / 1e6), digits(flops / bytes), digits(roof(flops / bytes)),
               digits(time_of(flops, bytes) / B));
    }
}

/* ---- an LSTM against attention ---- */
static double lstm_token(void) { return lstm_flops(WIDTH, WIDTH, 1, 1) / 1e6; }
static double attention_token(int T) { return attention_flops(WIDTH, 1, &T) / T / 1e6; }

static void show_crossing(void)
{
    printf("\nMFLOP per token, width %d\n    T      LSTM  attention\n", WIDTH);
    for (int k = 0; k < LENGTHS; k++)
        printf("%5d  %8s  %9s\n", length[k], digits(lstm_token()),
               digits(attention_token(length[k])));
    printf("they cross at T = %d\n", crossing(WIDTH));
}

/* ---- weft's counts ---- */
enum { B = 4, T = 20, I = 8, H = 16 };
typedef struct {
    double flops;
    int64_t calls, tape;
} count;

static count counted(bool composed, bool by_step)
{
    weft *w = lesson_open(1);
    const weft_rnn_opts o = { .input = I, .hidden = H };
    weft_rnn *r = weft_lstm_new(weft_module_new(w, "net"), "rnn", &o);
    weft_rnn_set_composed(r, composed);
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(B, T, I)),
                *one = weft_zeros(w, WEFT_SHAPE(B, I));
    weft_state s = WEFT_ZERO_STATE;
    weft_set_profiling(w, true);
    if (by_step)
        for (int t = 0; t < T; t++)
            s = weft_rnn_step(r, one, s).last;
    else
        weft_rnn_run(r, x, s);
    weft_profile p = weft_profile_of(w);
    count c = { 0, 0, weft_usage_of(w).tape };
    for (int64_t k = 0; k < p.n; k++)
        c.flops += p.rows[k].flops, c.calls += p.rows[k].calls;
    lesson_close(w);
    return c;
}

static void show_counted(void)
{
    static const char *const ways[] = { "weft_rnn_run, fused", "weft_rnn_run, composed",
                                        "weft_rnn_step, fused" };
    printf("\n%d sequences of %d steps, %d inputs, %d units; products: %s FLOPs\n", B,
           T, I, H, digits(lstm_flops(I, H, B, T)));
    printf("                        operators  on the tape\n");
    for (int k = 0; k < 3; k++) {
        count c = counted(k == 1, k == 2);
        printf("%-22s  %9lld  %11lld\n", ways[k], (long long)c.calls,
               (long long)c.tape);
    }
    count c = counted(false, false);
    printf("fused, weft counts %s FLOPs, gates included\n", digits(c.flops));
}

void show(void)
{
    show_roofline();
    show_crossing();
    show_counted();
}

/* ---- the picture ---- */
weft_status draw(const char *path)
{
    double per_byte[2 * SIZES], rate[2 * SIZES], B[SIZES], time[SIZES], T[LENGTHS],
        lstm[LENGTHS], attention[LENGTHS];
    double ridge = peak / bandwidth, x[3] = { .25, ridge, 128 },
           y[3] = { roof(.25), peak, peak };
    double crosses[2] = { crossing(WIDTH), crossing(WIDTH) },
           height[2] = { 0, attention_token(length[LENGTHS - 1]) };
    char at_ridge[80], at_crossing[40];
    snprintf(at_ridge, sizeof at_ridge,
             "roof: %s GB/s; above %s FLOPs per byte %s GF/s", digits(bandwidth),
             digits(ridge), digits(peak));
    snprintf(at_crossing, sizeof at_crossing, "they cross at %d", crossing(WIDTH));
    for (int k = 0; k < SIZES; k++) {
        B[k] = batch[k];
        per_byte[2 * k] = intensity(batch[k]);
        rate[2 * k] = roof(per_byte[2 * k]);
        per_byte[2 * k + 1] = rate[2 * k + 1] = NAN; /* dots without a line */
        double flops = lstm_flops(UNITS, UNITS, batch[k], 1),
               bytes = lstm_bytes(UNITS, UNITS, batch[k], 1);
        time[k] = time_of(flops, bytes) / B[k];
    }
    for (int k = 0; k < LENGTHS; k++)
        T[k] = length[k], lstm[k] = lstm_token(),
        attention[k] = attention_token(length[k]);
    const weft_curve roofline[2] = {
        { .name = at_ridge, .n = 3, .x = x, .y = y },
        { .name = "LSTM 256, B 1 .. 256", .n = 2 * SIZES, .x = per_byte, .y = rate },
    };
    const weft_curve times = {
        .name = "LSTM 256, by the roof", .n = SIZES, .x = B, .y = time
    };
    const weft_curve tokens[3] = {
        { .name = "LSTM 128", .n = LENGTHS, .x = T, .y = lstm },
        { .name = "attention 128", .n = LENGTHS, .x = T, .y = attention },
        { .name = at_crossing, .n = 2, .x = crosses, .y = height }
    };
    const weft_chart charts[3] = {
        { "roofline", "FLOPs per byte", "GF/s", NULL, 2, 10, roofline, 2 },
        { "time of a token", "sequences in the batch", "us", NULL, 2, 10, &times, 1 },
        { "work of a token", "length of the sequence", "MFLOP", NULL, 2, 0, tokens, 3 },
    };
    return weft_plot_lines(path, "the cost of a layer", charts, 3, 1);
}
