/* calibrate.c - measures the cost of a layer, forwards and backwards.
 *
 * * Short batches are timed in turn, many times, and the least time of each counts: a disturbance only adds
 * to a time. With one thread it is CPU time, so that other programs do not count.
 * * The rounds are divided into blocks. If the two best blocks of a batch differ, another block is measured.
 * * In the same rounds, plans are timed that the costs are not fitted to. They measure the error. */
#include <math.h>
#include <stdlib.h>
#include "weft_op.h"
#include "tools/plan/cost.h"

enum {
    WORK = 1 << 17, /* tokens times units of a long batch */
    MOST_TOKENS = 4096,
    FAR = 4,
    FEW_ROUNDS = 2,
    REPEATS = 3,
    BATCHES = 2 * COST_POINTS + 2
};
static const double block_seconds = .6;

/* ---- plans ---- */
enum { TRIED_LENGTHS = 96, FITTED = 4 };
/* The first ones adjust the costs, the others measure the error. */
static const struct {
    const char *text;
    bool padded;
} tried[] = { { "random:count=12", false },
              { "sorted:count=32", false },
              { "worst_fit:capacity=300,rows=6", false },
              { "chunk:capacity=48,rows=8", false },
              { "random:count=8", true },
              { "random:count=24", false },
              { "random:count=5", false },
              { "sorted:count=16", false },
              { "best_fit_decreasing:capacity=256,rows=8", false },
              { "first_fit:capacity=300,rows=3", false },
              { "tokens:budget=900", false },
              { "refill:slots=16", false },
              { "streams:slots=32,window=32", false } };
enum { TRIED = sizeof tried / sizeof *tried };

typedef struct {
    weft_plan plan;
    layer_run run;
} trial;

/* run: the layer, with no plan. batch: the points, short and long, then tokens to move, then the large batch.
 * rows: for any batch. */
typedef struct {
    layer_run run;
    weft_real *rows;
    int64_t width;
    timings t;
    timed_batch *batch[BATCHES];
    trial of[TRIED];
    int32_t len[TRIED_LENGTHS];
    int64_t offset[TRIED_LENGTHS + 1];
    weft_dataset data;
} bench;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Fills lengths of 8 to 256 tokens, the same number for each power of two, unsorted. */
static void fill_lengths(bench *b)
{
    for (int i = 0; i < TRIED_LENGTHS; i++) {
        b->len[i] = (int32_t)(8 * pow(32, fmod(.618034 * (i + 1), 1)));
        b->offset[i + 1] = b->offset[i] + b->len[i];
    }
    make_rows(&(weft_dataset){ .n = TRIED_LENGTHS, .len = b->len, .offset = b->offset }, b->width, &b->data);
}

static bool open_trial(bench *b, const layer_asked *a, int i)
{
    const weft_planner *planner;
    weft_plan_opts o;
    SCOPED void *memory = NULL;
    bool ok = weft_plan_parse(tried[i].text, &planner, &o, &memory) == WEFT_OK &&
              weft_plan_make(planner, b->len, TRIED_LENGTHS, &o, &b->of[i].plan) == WEFT_OK &&
              open_run(a, &b->of[i].plan, most(WORK / a->hidden, 1), tried[i].padded, &b->of[i].run);
    return ok || say_failure("plan: --explain: cannot measure the error of predictions");
}

/* Returns the measured time of a tried plan over the predicted time. */
static double ratio_of(const bench *b, int i, const weft_plan_cost *c)
{
    weft_plan_prediction p;
    return weft_plan_predict(&b->of[i].run.part, c, tried[i].padded, &p) == WEFT_OK ? b->of[i].run.ms / p.ms :
                                                                                      HUGE_VAL;
}

/* Multiplies the costs by the median ratio for a few plans. Batches of a plan differ, so they find less in
 * the caches than a batch that runs several times. */
static void adjust(const bench *b, weft_plan_cost *c)
{
    double ratio[FITTED];
    for (int i = 0; i < FITTED; i++)
        ratio[i] = ratio_of(b, i, c);
    double by = quantile(ratio, FITTED, .5);
    double *const rest[] = { &c->token_ms, &c->batch_ms, &c->far_ms, &c->pair_ms };
    for (int k = 0; k < c->points; k++) {
        c->step_ms[k] *= by;
        c->start_ms[k] *= by;
    }
    for (int k = 0; k < 4; k++)
        *rest[k] *= by;
}

/* Returns the largest error of the other plans. About nine of ten plans have a smaller one. */
static double measure_error(const bench *b, const weft_plan_cost *c)
{
    double worst = .01;
    for (int i = FITTED; i < TRIED; i++)
        worst = fmax(worst, fabs(1 / ratio_of(b, i, c) - 1));
    return worst;
}

/* ---- measuring ---- */
/* Rows are 1, 2, 4 .. 128, or lengths 4, 8, 16 .. 512. */
static void choose_batches(bench *b)
{
    int64_t tokens = WORK / b->width < MOST_TOKENS ? WORK / b->width : MOST_TOKENS;
    for (int k = 0; k < COST_POINTS; k++) {
        int64_t each = (int64_t)(b->t.attention ? 4 : 1) << k;
        int64_t few = most(tokens / 4 / each, b->t.attention ? 1 : 2);
        b->t.point[k][0] = (timed_batch){ .each = each, .units = few };
        b->t.point[k][1] = (timed_batch){ .each = each, .units = most(tokens / each, 2 * few) };
        b->batch[2 * k] = &b->t.point[k][0];
        b->batch[2 * k + 1] = &b->t.point[k][1];
    }
    b->t.moved = b->t.point[COST_POINTS / 2][1];
    b->t.large = (timed_batch){ .each = 32, .units = most(FAR * tokens / 32, 8) };
    b->batch[BATCHES - 2] = &b->t.moved;
    b->batch[BATCHES - 1] = &b->t.large;
}

static bool build(bench *b, const layer_asked *a)
{
    int64_t tokens = 0;
    b->width = a->hidden;
    b->t.attention = is_attention(a);
    choose_batches(b);
    for (int k = 0; k < BATCHES; k++)
        tokens = most(tokens, b->batch[k]->each * b->batch[k]->units);
    b->rows = get_memory(tokens * b->width, sizeof *b->rows);
    fill_lengths(b);
    bool ok = open_run(a, &(weft_plan){ 0 }, 0, false, &b->run) ||
              say_failure("plan: --explain: %s", weft_error_message(b->run.w));
    for (int i = 0; i < TRIED && ok; i++)
        ok = open_trial(b, a, i);
    return ok;
}

/* Runs sequences of equal length and keeps the least time. The input has a gradient, as above another layer.
 * Tokens that only move are copied, multiplied by a parameter, and arranged by steps. */
static void run_batch(bench *b, int k, int block)
{
    timed_batch *t = b->batch[k];
    int64_t rows = b->t.attention ? t->units : t->each, steps = b->t.attention ? t->each : t->units;
    SCOPED int32_t *len = get_memory(rows, sizeof *len);
    for (int64_t i = 0; i < rows; i++)
        len[i] = (int32_t)steps;
    weft *w = b->run.w;
    double start = work_seconds(w);
    weft_tensor *x = weft_mul(weft_ragged(w, b->rows, b->width, &(weft_lengths){ .n = rows, .len = len }),
                              b->run.scale);
    weft_tensor *y = t == &b->t.moved ? weft_to_layout(x, WEFT_PACKED) : run_costed(&b->run.layer, x);
    weft_backward(weft_sum_all(y));
    weft_synchronize(w);
    t->least[block] = fmin(t->least[block], 1e3 * (work_seconds(w) - start));
    weft_zero_grad(b->run.m);
    weft_clear(w);
}

/* Measures a block of rounds. A batch runs several times in a row, because training runs like batches in a
 * row, with their memory in the caches. The large batch runs once in every second round. */
static bool measure(bench *b)
{
    int block = b->t.blocks++;
    bool ok = true;
    const weft *w = b->run.w;
    for (int k = 0; k < BATCHES; k++)
        b->batch[k]->least[block] = HUGE_VAL;
    double end = work_seconds(w) + block_seconds;
    for (int round = 0; ok && (round < FEW_ROUNDS || work_seconds(w) < end); round++) {
        for (int k = 0; k < REPEATS * (BATCHES - 1); k++)
            run_batch(b, k / REPEATS, block);
        if (round % 2 == 0)
            run_batch(b, BATCHES - 1, block);
        for (int i = 0; i < TRIED; i++) {
            run_layer(&b->of[i].run, &b->data);
            ok = ok && weft_ok(b->of[i].run.w);
        }
        ok = ok && weft_ok(w);
    }
    return ok || say_failure("plan: --explain: %s", weft_error_message(w));
}

bool calibrate(const layer_asked *a, layer_cost *out)
{
    SCOPED bench *b = get_memory(1, sizeof *b);
    bool ok = build(b, a) && measure(b);
    *out = (layer_cost){ .cost.error = HUGE_VAL };
    double spread = HUGE_VAL;
    while (ok && b->t.blocks < MOST_BLOCKS &&
           (b->t.blocks < LEAST_BLOCKS || spread > COST_SPREAD || *out->doubt)) {
        ok = measure(b);
        spread = fit_costs(&b->t, out);
        adjust(b, &out->cost);
        double error = measure_error(b, &out->cost);
        if (!*out->doubt && error > COST_DOUBT)
            snprintf(out->doubt, sizeof out->doubt, "the prediction for a plan is wrong by %.0f %%",
                     100 * error);
        out->cost.error = fmax(spread, error);
    }
    int threads = ok ? weft_threads(b->run.w) : 0;
    if (ok)
        snprintf(out->name, sizeof out->name, "%s of %lld units on %s, %d thread%s", a->cell,
                 (long long)a->hidden, weft_device_name(b->run.w), threads, threads == 1 ? "" : "s");
    for (int i = 0; i < TRIED; i++)
        close_run(&b->of[i].run), weft_plan_free(&b->of[i].plan);
    close_run(&b->run);
    free(b->data.rows), free(b->rows);
    return ok;
}
