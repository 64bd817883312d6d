/* calibrate.c - measures the cost of a step of a recurrent layer, forwards and backwards, by live rows.
 *
 * * It measures CPU time, so that other programs do not count. An implausible curve is measured again. The
 * error of predictions is measured on plans that the curve was not made from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "tools/plan/cost.h"

enum {
    POINTS = 8,
    ROUNDS = MOST_TIMES,
    FEW_ROUNDS = 8,
    ATTEMPTS = 4,
    WORK = 1 << 18,
    FEW_STEPS = 128,
    FAR = 8,
    FAR_ROWS = 32,
    FAR_ROUNDS = 4,
    MOST_STEPS = 1 << 14
};

/* ---- measuring ---- */
/* Inputs after the points: a single step of one row, and a batch larger than the caches. */
enum { SINGLE = POINTS, LARGE, INPUTS };
typedef struct {
    weft *w;
    weft_module *m;
    costed_layer layer;
    weft_tensor *x[INPUTS], *scale;
    int64_t width, rows[INPUTS], steps[INPUTS];
    double ms[POINTS][ROUNDS];
    int rounds;
} bench;

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

/* Runs sequences of equal length, `rows` in each step. The input is a parameter, so its gradient is computed,
 * as above another layer. */
static double run_once(bench *b, int point)
{
    int32_t sizes[MOST_STEPS];
    for (int64_t t = 0; t < b->steps[point]; t++)
        sizes[t] = (int32_t)b->rows[point];
    double start = work_seconds(b->w);
    weft_tensor *x = weft_ragged_of(&(weft_packed_sequence){
        .data = b->x[point], .batch_sizes = sizes, .steps = b->steps[point], .sequences = b->rows[point] });
    weft_backward(weft_sum_all(run_costed(&b->layer, x)));
    weft_synchronize(b->w);
    double took = 1e3 * (work_seconds(b->w) - start);
    weft_zero_grad(b->m);
    weft_clear(b->w);
    return took;
}

static bool build(bench *b, const layer_asked *a)
{
    if (!open_device(a, &b->w))
        return false;
    b->m = weft_module_new(b->w, "bench");
    b->width = a->hidden;
    b->scale = weft_parameter(b->m, "scale", WEFT_SHAPE(a->hidden), (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    b->layer = make_layer(a, b->m);
    for (int k = 0; k < INPUTS; k++) {
        char name[16];
        b->rows[k] = rows_of(k);
        b->steps[k] = steps_of(k, a->hidden);
        if (is_attention(a) && k < POINTS) { /* sequences of 4, 8, 16 .. tokens */
            b->steps[k] = (int64_t)4 << k;
            b->rows[k] = WORK / a->hidden / b->steps[k] > 1 ? WORK / a->hidden / b->steps[k] : 1;
        }
        snprintf(name, sizeof name, "x%d", k);
        b->x[k] = weft_parameter(b->m, name, WEFT_SHAPE(b->steps[k] * b->rows[k], a->hidden),
                                 (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    }
    return weft_ok(b->w);
}

/* Returns the cost of a batch in excess of its steps: a single step of one row minus a step of one row among
 * many, which attention does not have. */
static double batch_ms(bench *b)
{
    double one[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        one[i] = run_once(b, SINGLE);
    double step = b->layer.attention ? 0 : typical(b->ms[0], b->rounds) / (double)b->steps[0];
    return fmax(typical(one, ROUNDS) - step, 0);
}

/* Returns the extra cost of a token in the large batch, compared with steps of small batches. */
static double far_ms(bench *b, const weft_plan_cost *c)
{
    double ms[FAR_ROUNDS], step = 0, steps = (double)b->steps[LARGE];
    for (int i = 0; i < FAR_ROUNDS; i++)
        ms[i] = run_once(b, LARGE);
    for (int k = 0; k < POINTS; k++)
        step = rows_of(k) == FAR_ROWS ? c->step_ms[k] : step;
    return fmax((typical(ms, FAR_ROUNDS) - c->batch_ms - step * steps) / (FAR_ROWS * steps), 0);
}

/* Returns the cost of moving a token to the layer and back: a copy, a product with a parameter, and the
 * arrangement by steps. */
static double token_ms(bench *b)
{
    enum { PIECES = 64, LONGEST = 128, TOKENS = PIECES * LONGEST };
    int32_t len[PIECES];
    double ms[ROUNDS];
    int n = b->rounds < FEW_ROUNDS ? FEW_ROUNDS : b->rounds;
    int64_t tokens = 0;
    for (int i = 0; i < PIECES; i++)
        tokens += len[i] = 1 + (i * 37) % LONGEST;
    weft_real *rows = get_memory(TOKENS * b->width, sizeof *rows);
    for (int i = 0; i < n; i++) {
        double start = work_seconds(b->w);
        weft_tensor *x = weft_ragged(b->w, rows, b->width, &(weft_lengths){ .n = PIECES, .len = len });
        weft_backward(weft_sum_all(weft_to_layout(weft_mul(x, b->scale), WEFT_PACKED)));
        weft_synchronize(b->w);
        ms[i] = 1e3 * (work_seconds(b->w) - start) / (double)tokens;
        weft_zero_grad(b->m);
        weft_clear(b->w);
    }
    free(rows);
    return typical(ms, n);
}

/* Measures all points in turn, for the given seconds and at least a few rounds. */
static bool measure(bench *b, double seconds)
{
    for (int k = 0; k < POINTS; k++) /* the first run allocates memory */
        run_once(b, k);
    double end = work_seconds(b->w) + seconds;
    for (b->rounds = 0;
         b->rounds < ROUNDS && (b->rounds < FEW_ROUNDS || work_seconds(b->w) < end) && weft_ok(b->w);
         b->rounds++)
        for (int k = 0; k < POINTS; k++)
            b->ms[k][b->rounds] = run_once(b, k);
    return weft_ok(b->w);
}

/* Fits tokens * (token_ms + length * pair_ms) to the points, by least squares of relative errors. */
static void fit_pairs(bench *b, double batch, weft_plan_cost *c)
{
    double xx = 0, xy = 0, yy = 0, x = 0, y = 0;
    for (int k = 0; k < POINTS; k++) {
        double ms = fmax(typical(b->ms[k], b->rounds) - batch, 1e-6);
        double tokens = (double)(b->rows[k] * b->steps[k]), pairs = tokens * (double)b->steps[k];
        tokens /= ms, pairs /= ms;
        xx += tokens * tokens, xy += tokens * pairs, yy += pairs * pairs;
        x += tokens, y += pairs;
    }
    double under = xx * yy - xy * xy, extra = token_ms(b);
    c->token_ms = fmax((x * yy - y * xy) / under, 0) + extra;
    c->pair_ms = fmax((y * xx - x * xy) / under, 1e-12);
}

static void fill(bench *b, const layer_asked *a, layer_cost *out)
{
    int threads = weft_threads(b->w);
    double batch = batch_ms(b);
    *out = (layer_cost){ .cost = { .points = is_attention(a) ? 0 : POINTS, .batch_ms = batch } };
    snprintf(out->name, sizeof out->name, "%s of %lld units on %s, %d thread%s", a->cell,
             (long long)a->hidden, weft_device_name(b->w), threads, threads == 1 ? "" : "s");
    if (is_attention(a)) {
        fit_pairs(b, batch, &out->cost);
        return;
    }
    out->cost.token_ms = token_ms(b);
    for (int k = 0; k < POINTS; k++) {
        double step = (typical(b->ms[k], b->rounds) - batch) / (double)b->steps[k];
        out->cost.rows[k] = (double)rows_of(k);
        out->cost.step_ms[k] = fmax(step, 1e-6);
    }
    out->cost.far_ms = far_ms(b, &out->cost);
    out->cost.near_tokens = (double)WORK / (double)a->hidden;
    out->cost.far_tokens = FAR * out->cost.near_tokens;
}

/* Returns the largest relative difference between the two halves of the rounds, over all points. */
static double spread_of(const bench *b)
{
    double worst = 0;
    int half = b->rounds / 2;
    for (int k = 0; k < POINTS; k++) {
        double first = typical(b->ms[k], half), second = typical(b->ms[k] + half, b->rounds - half);
        worst = fmax(worst, fabs(first - second) / fmin(first, second));
    }
    return worst;
}

bool is_plausible(const weft_plan_cost *c)
{
    for (int k = 1; k < c->points; k++)
        if (c->step_ms[k] < (1 - COST_SPREAD) * c->step_ms[k - 1])
            return false;
    return true;
}

/* Measures until the curve rises and both halves of a measurement agree. After the last attempt it writes the
 * reason into doubt, and the spread as the least error. A disturbance only adds to a time, so the least of
 * all attempts counts for each step. */
static bool measure_curve(bench *b, const layer_asked *a, layer_cost *out)
{
    weft_plan_cost least = { 0 };
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!measure(b, a->hidden <= 128 ? .1 : 1))
            return false;
        fill(b, a, out);
        for (int k = 0; k < out->cost.points && i; k++)
            out->cost.step_ms[k] = fmin(out->cost.step_ms[k], least.step_ms[k]);
        least = out->cost;
        double spread = spread_of(b);
        if (!is_plausible(&out->cost))
            snprintf(out->doubt, sizeof out->doubt, "a step of more rows took less time than one of fewer");
        else if (spread > COST_SPREAD)
            snprintf(out->doubt, sizeof out->doubt, "two halves of the measurement differ by %.0f %%",
                     100 * spread);
        else
            return weft_ok(b->w);
        out->cost.error = spread;
    }
    return weft_ok(b->w);
}

/* ---- error of predictions ---- */
enum { TRIED_LENGTHS = 96, TRIED_ROUNDS = 4 };
static const struct {
    const char *text;
    bool padded;
} tried[] = { { "random:count=8", true },   { "random:count=24", false },
              { "sorted:count=16", false }, { "best_fit_decreasing:capacity=256,rows=8", false },
              { "refill:slots=16", false }, { "streams:slots=32,window=32", false } };
enum { TRIED = sizeof tried / sizeof *tried };

/* Fills lengths of 8 to 256 tokens, the same number for each power of two, unsorted. */
static void fill_lengths(int32_t *len, int64_t *offset)
{
    offset[0] = 0;
    for (int i = 0; i < TRIED_LENGTHS; i++) {
        len[i] = (int32_t)(8 * pow(32, fmod(.618034 * (i + 1), 1)));
        offset[i + 1] = offset[i] + len[i];
    }
}

/* Returns the relative error of the prediction for one plan, or NaN after an error. */
static double error_of(const layer_asked *a, int i, const weft_dataset *data, const weft_plan_cost *c)
{
    const weft_planner *planner;
    weft_plan_opts o;
    void *memory = NULL;
    weft_plan plan = { 0 };
    layer_run run = { 0 };
    weft_plan_prediction p;
    double ms[TRIED_ROUNDS], error = (double)NAN;
    if (weft_plan_parse(tried[i].text, &planner, &o, &memory) == WEFT_OK &&
        weft_plan_make(planner, data->len, data->n, &o, &plan) == WEFT_OK &&
        open_run(a, &plan, WORK / a->hidden, tried[i].padded, &run)) {
        run_layer(&run, data);
        for (int k = 0; k < TRIED_ROUNDS; k++)
            ms[k] = run_layer(&run, data);
        if (weft_ok(run.w) && weft_plan_predict(&run.part, c, run.padded, &p) == WEFT_OK)
            error = fabs(p.ms / typical(ms, TRIED_ROUNDS) - 1);
    }
    if (run.w)
        weft_close(run.w);
    weft_plan_free(&plan), free(memory);
    return error;
}

/* Takes the largest error of a few plans. About nine of ten plans have a smaller one. */
static bool measure_error(const layer_asked *a, layer_cost *out)
{
    int32_t len[TRIED_LENGTHS];
    int64_t offset[TRIED_LENGTHS + 1];
    weft_dataset data, lengths = { .n = TRIED_LENGTHS, .len = len, .offset = offset };
    fill_lengths(len, offset);
    double worst = fmax(.01, out->cost.error);
    bool ok = true;
    make_rows(&lengths, a->hidden, &data);
    for (int i = 0; i < TRIED && ok; i++) {
        double error = error_of(a, i, &data, &out->cost);
        ok = !isnan(error);
        worst = fmax(worst, error);
    }
    free(data.rows);
    out->cost.error = worst;
    return ok || say_failure("plan: --explain: cannot measure the error of predictions");
}

bool calibrate(const layer_asked *a, layer_cost *out)
{
    bench *b = get_memory(1, sizeof *b);
    bool ok = build(b, a) && measure_curve(b, a, out);
    if (!ok)
        say_error(FAILED, "plan: --explain: %s", weft_error_message(b->w));
    weft_close(b->w);
    free(b);
    return ok && measure_error(a, out);
}
