/* held_out.c - compares predicted with measured times, for plans and lengths that no calibration has seen.
 *
 * It is a planner in a shared object, so that it runs in weft and can use its calibration. It times the
 * layers itself. HELD_OUT: the layers, such as "lstm:64 gru:128" (lstm:64). HELD_OUT_SECONDS: CPU time of the
 * passes, for each layer (4). HELD_OUT_LIMIT: largest median error in % (8). All plans of all layers run in
 * turn, so that a slow moment does not hit one layer alone. The fastest run of each batch counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "tools/plan/cost.h"

enum { SEQUENCES = 120, LONGEST = 400, MOST_LAYERS = 12 };
static const char *const texts[] = { "random:count=6",
                                     "random:count=40",
                                     "sorted:count=12",
                                     "pool:count=20,pool=3",
                                     "tokens:budget=1500",
                                     "geometric:budget=2048,ratio=1.3,least=4",
                                     "laplace:count=24,pool=4",
                                     "first_fit:capacity=450,rows=4",
                                     "best_fit_decreasing:capacity=400,rows=12",
                                     "worst_fit:capacity=500,open=8,rows=8",
                                     "refill:slots=10",
                                     "streams:slots=20,window=48",
                                     "chunk:capacity=64,rows=10" };
enum { PLANS = sizeof texts / sizeof *texts };
typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *rnn;
    weft_attention_layer *attention;
    weft_carried *kept;
    weft_tensor *one;
    weft_plan plan;
    double predicted, *least;
} held;
typedef struct {
    const char *text;
    layer_asked asked;
    layer_cost cost;
    weft_dataset data;
    held of[PLANS];
} layer;

/* A log-normal distribution with another seed than any corpus. */
static void draw(int32_t *len, int64_t *offset)
{
    weft_stream *s = weft_stream_new(77, "held out");
    offset[0] = 0;
    for (int i = 0; i < SEQUENCES; i++) {
        double x = exp(3.4 + .8 * weft_stream_normal(s));
        len[i] = x < 2 ? 2 : x > LONGEST ? LONGEST : (int32_t)x;
        offset[i + 1] = offset[i] + len[i];
    }
    weft_stream_free(s);
}

static bool open_layer(held *h, const char *cell, int64_t units)
{
    const weft_rnn_opts o = { .input = units, .hidden = units };
    const weft_attention_layer_opts heads = { .width = units, .heads = units < 64 ? 1 : (int)(units / 64) };
    h->w = weft_open(&(weft_opts){ .seed = 3, .threads = 1 });
    h->m = weft_module_new(h->w, "held_out");
    if (!strcmp(cell, "attention"))
        h->attention = weft_attention_new(h->m, "layer", &heads);
    else
        h->rnn = !strcmp(cell, "gru")   ? weft_gru_new(h->m, "layer", &o) :
                 !strcmp(cell, "elman") ? weft_elman_new(h->m, "layer", &o) :
                                          weft_lstm_new(h->m, "layer", &o);
    if (h->rnn)
        h->kept = weft_carried_new(h->m, "kept", h->rnn, &h->plan);
    h->one = weft_parameter(h->m, "one", WEFT_SHAPE(units), (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    h->least = malloc((size_t)h->plan.batches * sizeof *h->least);
    for (int64_t i = 0; i < h->plan.batches; i++)
        h->least[i] = HUGE_VAL;
    return weft_ok(h->w);
}

/* Times the CPU in a pass, batch by batch. The layer's input needs a gradient, as above another one. */
static void pass(held *h, const weft_dataset *data)
{
    for (int64_t i = 0; i < h->plan.batches; i++) {
        double start = cpu_seconds();
        weft_plan_step s = weft_plan_step_of(h->w, &h->plan, i);
        weft_tensor *x = weft_mul(weft_plan_tokens(&s, data, 0, 0), h->one);
        weft_tensor *y = h->rnn ? weft_rnn_run_plan(h->rnn, x, &s, h->kept).y :
                                  weft_attention_run(h->attention, x, x, WEFT_ALL_KEYS, NULL);
        weft_backward(weft_sum_all(y));
        h->least[i] = fmin(h->least[i], 1e3 * (cpu_seconds() - start));
        weft_zero_grad(h->m);
        weft_clear(h->w);
    }
}

static int from_environment(const char *name, int otherwise, int most)
{
    int n = getenv(name) ? atoi(getenv(name)) : otherwise;
    return n < 1 ? 1 : n > most ? most : n;
}

/* Prints a row for each plan and returns the median of the errors. */
static double report(const layer *l)
{
    double error[PLANS];
    int within = 0;
    for (int i = 0; i < PLANS; i++) {
        const held *h = l->of + i;
        double measured = 0;
        for (int64_t k = 0; k < h->plan.batches; k++)
            measured += h->least[k];
        double e = h->predicted / measured - 1;
        fprintf(stderr, "%-14s %-42s %10.2f %10.2f %+7.1f %%\n", l->text, texts[i], h->predicted, measured,
                100 * e);
        error[i] = fabs(e);
        within += error[i] <= l->cost.cost.error;
    }
    double middle = quantile(error, PLANS, .5); /* sorts them */
    fprintf(stderr, "%s: median error %.1f %%, largest %.1f %%; stated %.1f %%, which %d of %d keep\n",
            l->cost.name, 100 * middle, 100 * error[PLANS - 1], 100 * l->cost.cost.error, within,
            PLANS);
    return middle;
}

/* Calibrates a layer, predicts each plan, and opens the layers to time. */
static bool open_all(layer *l, const char *text, int32_t *len, int64_t *offset)
{
    *l = (layer){ .text = text };
    if (!parse_layer(text, 1, &l->asked) || !costs_of(&l->asked, &l->cost))
        return false;
    int64_t units = l->asked.hidden, n = offset[SEQUENCES] * units;
    l->data = (weft_dataset){ .n = SEQUENCES, .len = len, .offset = offset, .columns = units };
    l->data.rows = calloc((size_t)n, sizeof *l->data.rows);
    for (int64_t i = 0; i < n; i++)
        l->data.rows[i] = (weft_real)((double)(i * 31 % 97) / 97 - .5);
    for (int i = 0; i < PLANS; i++) {
        planned t = { .text = texts[i] };
        weft_plan_prediction p;
        if (!make_planned(&t, len, SEQUENCES) || weft_plan_predict(&t.plan, &l->cost.cost, false, &p))
            return false;
        l->of[i].plan = t.plan, l->of[i].predicted = p.ms;
        if (!open_layer(l->of + i, l->asked.cell, units))
            return say_error(FAILED, "%s", weft_error_message(l->of[i].w)), false;
    }
    return true;
}

static bool close_all(layer *l)
{
    bool ok = true;
    for (int i = 0; i < PLANS; i++) {
        held *h = l->of + i;
        ok = weft_ok(h->w) ? ok : (say_error(FAILED, "%s", weft_error_message(h->w)), false);
        weft_close(h->w), weft_plan_free(&h->plan), free(h->least);
    }
    free(l->data.rows);
    return ok;
}

static weft_status run(const int32_t *unused, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    static layer all[MOST_LAYERS];
    int32_t len[SEQUENCES];
    int64_t offset[SEQUENCES + 1];
    char layers[200], *next = layers;
    double median[MOST_LAYERS], seconds = from_environment("HELD_OUT_SECONDS", 4, 60);
    int count = 0;
    (void)unused, (void)n, (void)o, (void)p;
    snprintf(layers, sizeof layers, "%s", getenv("HELD_OUT") ? getenv("HELD_OUT") : "lstm:64");
    draw(len, offset);
    for (char *text; (text = strsep(&next, " ")) && count < MOST_LAYERS; count++)
        if (!open_all(all + count, text, len, offset))
            return weft_plan_refuse(WEFT_EARG, "no comparison: %s", weft_plan_message());
    for (double end = cpu_seconds() + seconds * count; cpu_seconds() < end;)
        for (int i = 0; i < count * PLANS; i++)
            pass(all[i / PLANS].of + i % PLANS, &all[i / PLANS].data);
    fprintf(stderr, "%-14s %-42s %10s %10s %9s\n", "layer", "plan", "predicted", "measured", "error");
    for (int i = 0; i < count; i++) {
        median[i] = report(all + i);
        if (!close_all(all + i))
            return weft_plan_refuse(WEFT_EARG, "no comparison");
    }
    quantile(median, count, 0); /* sorts them */
    double middle = 100 * median[count / 2], limit = from_environment("HELD_OUT_LIMIT", 8, 1000);
    return weft_plan_refuse(WEFT_EARG, "median error %.1f %%: %s", middle,
                            middle <= limit ? "the promise holds" : "the promise is broken");
}
const weft_planner held_out = { .name = "held_out", .options = "", .plan = run };
