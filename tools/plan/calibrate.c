/* calibrate.c - what a step of a recurrent layer costs on this device, forwards and backwards, by how many
 * rows are live. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/plan/cost.h"

static const struct {
    const char *name;
    weft_rnn *(*make)(weft_module *, const char *, const weft_rnn_opts *);
} cells[] = { { "lstm", weft_lstm_new },
              { "gru", weft_gru_new },
              { "elman", weft_elman_new },
              { "cifg", weft_cifg_new },
              { "mgu", weft_mgu_new } };
enum {
    CELLS = sizeof cells / sizeof *cells,
    MOST_UNITS = 4096,
    POINTS = 8,
    ROUNDS = 64,
    WORK = 1 << 18,
    FEW_STEPS = 128,
    FAR = 8,
    FAR_ROWS = 32,
    MOST_STEPS = 1 << 14
};

/* ---- which layer ---- */
bool parse_layer(const char *text, int threads, layer_asked *out)
{
    size_t n = strcspn(text, ":");
    char *end = NULL;
    *out = (layer_asked){ .hidden = 128, .threads = threads };
    for (int i = 0; i < CELLS; i++)
        if (strlen(cells[i].name) == n && !strncmp(cells[i].name, text, n))
            out->cell = cells[i].name;
    if (!out->cell)
        return say_error(USAGE,
                         "plan: --explain: there is no cell \"%.*s\"; lstm, gru, elman, cifg or mgu is "
                         "expected",
                         n < 40 ? (int)n : 40, text),
               false;
    if (text[n] && ((out->hidden = strtoll(text + n + 1, &end, 10)) < 1 || out->hidden > MOST_UNITS || *end))
        return say_error(USAGE,
                         "plan: --explain: \"%.40s\" is no layer; CELL:UNITS is expected, one layer of 1 .. "
                         "%d units",
                         text, MOST_UNITS),
               false;
    return true;
}

static bool open_context(const layer_asked *a, weft **w)
{
    *w = weft_open(&(weft_opts){ .seed = 1, .threads = a->threads });
    return weft_ok(*w) || (say_error(FAILED, "plan: --explain: %s", weft_error_message(*w)), false);
}

bool device_of(const layer_asked *a, char *name, size_t size, int *threads)
{
    weft *w;
    bool good = open_context(a, &w);
    snprintf(name, size, "%s", good ? weft_device_name(w) : "");
    *threads = good ? weft_threads(w) : 0;
    weft_close(w);
    return good;
}

/* ---- measuring ---- */
/* Behind the points are a single step of one row, and a batch that caches do not hold. */
enum { SINGLE = POINTS, LARGE, INPUTS };
typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *layer;
    weft_tensor *x[INPUTS], *scale;
    int64_t width, steps[INPUTS];
    double ms[POINTS][ROUNDS];
    int rounds;
} bench;

/* Nine of ten predictions were nearer, see docs/cost.md. */
static const double usual_error = .17;

static int64_t rows_of(int point)
{
    return point == SINGLE ? 1 : point == LARGE ? FAR_ROWS : (int64_t)1 << point;
}
static int64_t steps_of(int point, int64_t width)
{
    int64_t steps = WORK / width / rows_of(point), far = FAR * WORK / width / FAR_ROWS;
    if (point == SINGLE)
        return 1;
    if (point == LARGE)
        return far < MOST_STEPS ? far : MOST_STEPS;
    return steps < 4 ? 4 : steps > FEW_STEPS ? FEW_STEPS : steps;
}

/* The input is a parameter, so that its gradient is asked for, too, as below a layer it is: sequences of
 * equal length, `rows` in each step. */
static double run_once(bench *b, int point)
{
    int32_t sizes[MOST_STEPS];
    for (int64_t t = 0; t < b->steps[point]; t++)
        sizes[t] = (int32_t)rows_of(point);
    double start = seconds_now();
    weft_tensor *x = weft_ragged_of(&(weft_packed_sequence){
        .data = b->x[point], .batch_sizes = sizes, .steps = b->steps[point], .sequences = rows_of(point) });
    weft_backward(weft_sum_all(weft_rnn_run(b->layer, x, WEFT_ZERO_STATE).y));
    weft_synchronize(b->w);
    double took = 1e3 * (seconds_now() - start);
    weft_zero_grad(b->m);
    weft_clear(b->w);
    return took;
}

static bool build(bench *b, const layer_asked *a)
{
    if (!open_context(a, &b->w))
        return false;
    b->m = weft_module_new(b->w, "bench");
    b->width = a->hidden;
    b->scale = weft_parameter(b->m, "scale", WEFT_SHAPE(a->hidden), (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    for (int i = 0; i < CELLS; i++)
        if (!strcmp(cells[i].name, a->cell))
            b->layer =
                cells[i].make(b->m, "layer", &(weft_rnn_opts){ .input = a->hidden, .hidden = a->hidden });
    for (int k = 0; k < INPUTS; k++) {
        char name[16];
        b->steps[k] = steps_of(k, a->hidden);
        snprintf(name, sizeof name, "x%d", k);
        b->x[k] = weft_parameter(b->m, name, WEFT_SHAPE(b->steps[k] * rows_of(k), a->hidden),
                                 (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    }
    return weft_ok(b->w);
}

/* What a batch costs besides its steps: a single step of one row, beside a step of one row among many. */
static double batch_ms(bench *b)
{
    double one[ROUNDS], step = quantile(b->ms[0], b->rounds, .5) / (double)b->steps[0];
    for (int i = 0; i < ROUNDS; i++)
        one[i] = run_once(b, SINGLE);
    return fmax(quantile(one, ROUNDS, .5) - step, 0);
}

/* What a token of the large batch takes beyond what its steps take in small ones. */
static double far_ms(bench *b, const weft_plan_cost *c)
{
    double ms[2], step = 0, steps = (double)b->steps[LARGE];
    for (int i = 0; i < 2; i++)
        ms[i] = run_once(b, LARGE);
    for (int k = 0; k < POINTS; k++)
        step = rows_of(k) == FAR_ROWS ? c->step_ms[k] : step;
    return fmax((quantile(ms, 2, .5) - c->batch_ms - step * steps) / (FAR_ROWS * steps), 0);
}

/* A token's way to the layer and back, without it: copied, scaled by a parameter, arranged step by step. */
static double token_ms(bench *b)
{
    enum { PIECES = 64, LONGEST = 128, TOKENS = PIECES * LONGEST };
    int32_t len[PIECES];
    double ms[ROUNDS];
    int n = b->rounds < 8 ? 8 : b->rounds;
    int64_t tokens = 0;
    for (int i = 0; i < PIECES; i++)
        tokens += len[i] = 1 + (i * 37) % LONGEST;
    weft_real *rows = calloc((size_t)(TOKENS * b->width), sizeof *rows);
    for (int i = 0; i < n && rows; i++) {
        double start = seconds_now();
        weft_tensor *x = weft_ragged(b->w, rows, b->width, &(weft_lengths){ .n = PIECES, .len = len });
        weft_backward(weft_sum_all(weft_to_layout(weft_mul(x, b->scale), WEFT_PACKED)));
        weft_synchronize(b->w);
        ms[i] = 1e3 * (seconds_now() - start) / (double)tokens;
        weft_zero_grad(b->m);
        weft_clear(b->w);
    }
    free(rows);
    return rows ? quantile(ms, n, .5) : 0;
}

static bool measure(bench *b, double seconds)
{
    double end = seconds_now() + seconds;
    for (int k = 0; k < POINTS; k++) /* what a first run makes is made */
        run_once(b, k);
    for (b->rounds = 0; b->rounds < ROUNDS && (b->rounds < 1 || seconds_now() < end); b->rounds++)
        for (int k = 0; k < POINTS; k++)
            b->ms[k][b->rounds] = run_once(b, k);
    return weft_ok(b->w);
}

static void fill(bench *b, const layer_asked *a, layer_cost *out)
{
    int threads = weft_threads(b->w);
    double batch = batch_ms(b);
    *out = (layer_cost){
        .cost = { .points = POINTS, .token_ms = token_ms(b), .batch_ms = batch, .error = usual_error }
    };
    snprintf(out->name, sizeof out->name, "%s of %lld units on %s, %d thread%s", a->cell,
             (long long)a->hidden, weft_device_name(b->w), threads, threads == 1 ? "" : "s");
    for (int k = 0; k < POINTS; k++) {
        double step = (quantile(b->ms[k], b->rounds, .5) - batch) / (double)b->steps[k];
        out->cost.rows[k] = (double)rows_of(k);
        out->cost.step_ms[k] = fmax(step, 1e-6);
    }
    out->cost.far_ms = far_ms(b, &out->cost);
    out->cost.near_tokens = (double)WORK / (double)a->hidden;
    out->cost.far_tokens = FAR * out->cost.near_tokens;
}

bool calibrate(const layer_asked *a, layer_cost *out)
{
    bench *b = calloc(1, sizeof *b);
    bool good = b && build(b, a) && measure(b, a->hidden <= 128 ? .1 : 1);
    if (good)
        fill(b, a, out);
    if (!good || !weft_ok(b->w))
        good = false,
        say_error(FAILED, "plan: --explain: %s", b && b->w ? weft_error_message(b->w) : "no memory");
    if (b)
        weft_close(b->w);
    free(b);
    return good;
}
