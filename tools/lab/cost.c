/* cost.c - what a recurrent layer takes for the beginning of each plan, beside what was predicted from the
 * steps of equal rows that `weft plan --explain` measures. */
#include <math.h>
#include <stdlib.h>
#include "tools/lab/run.h"
#include "tools/plan/cost.h"

enum { WORK = 1 << 21 }; /* tokens times units of a part that is run */

/* The first batches of a plan that have so many tokens together. It is a view. */
static weft_plan begin_of(const weft_plan *p, int64_t tokens)
{
    weft_plan part = *p;
    int64_t n = 0, i = 0;
    for (part.batches = 0; part.batches < p->batches && n < tokens; part.batches++)
        for (; i < p->batch[part.batches].first + p->batch[part.batches].n; i++)
            n += p->segment[i].length;
    return part.segments = i, part;
}

/* Rows of numbers in place of the tokens, as wide as the layer. */
static bool make_rows(const weft_dataset *of, int64_t width, weft_dataset *out)
{
    int64_t n = (of->n ? of->offset[of->n] : 0) * width;
    *out = (weft_dataset){ .n = of->n, .columns = width, .len = of->len, .offset = of->offset };
    out->rows = malloc((size_t)(n + 1) * sizeof *out->rows);
    for (int64_t i = 0; i < n && out->rows; i++)
        out->rows[i] = (weft_real)((double)(i * 7919 % 1009) / 1009 - .5);
    return out->rows || say_error(FAILED, "lab: no memory for %lld numbers", (long long)n) == GOOD;
}

typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *lstm;
    weft_carried *kept;
    weft_tensor *scale;
    weft_plan part;
    bool padded;
    double ms[MOST_ROUNDS];
} timed;

static bool open_layer(timed *t, const lab_run *r, int i)
{
    int64_t units = r->asked.hidden;
    *t = (timed){ .w = weft_open(&(weft_opts){ .seed = 1, .threads = (int)r->asked.threads }),
                  .part = begin_of(&r->of_few[i].plan, WORK / units),
                  .padded = r->asked.padded[i] };
    t->m = weft_module_new(t->w, "layer");
    t->lstm = weft_lstm_new(t->m, "lstm", &(weft_rnn_opts){ .input = units, .hidden = units });
    t->scale = weft_parameter(t->m, "scale", WEFT_SHAPE(units), (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    t->kept = weft_carried_new(t->m, "kept", t->lstm, &t->part);
    return weft_ok(t->w) || lab_refuse(r->of_few[i].text, t->w);
}

static double run_part(timed *t, const weft_dataset *data)
{
    double start = seconds_now();
    for (int64_t b = 0; b < t->part.batches; b++) {
        weft_plan_step s = weft_plan_step_of(t->w, &t->part, b);
        weft_tensor *x = weft_mul(weft_plan_tokens(&s, data, 0, 0), t->scale), *y;
        if (t->padded)
            y = weft_rnn_run(t->lstm, weft_pad_packed_sequence(x, 0, 0, WEFT_ALIGN_LEFT), WEFT_ZERO_STATE).y;
        else
            y = weft_rnn_run_plan(t->lstm, x, &s, t->kept).y;
        weft_backward(weft_sum_all(y));
        weft_zero_grad(t->m);
        weft_clear(t->w);
    }
    weft_synchronize(t->w);
    return 1e3 * (seconds_now() - start);
}

static void note(lab_run *r, int i, timed *t, int rounds, double predicted)
{
    lab_cost *c = r->cost + r->costs++;
    *c = (lab_cost){ r->of_few[i].text, predicted, quantile(t->ms, rounds, .5), true };
    weft_journal_text(r->times, "experiment", "cost");
    weft_journal_text(r->times, "planner", c->name);
    weft_journal_number(r->times, "hidden", (double)r->asked.hidden);
    weft_journal_number(r->times, "threads", (double)r->asked.threads);
    weft_journal_number(r->times, "predicted_ms", c->predicted_ms);
    weft_journal_number(r->times, "measured_ms", c->measured_ms);
    weft_journal_line_end(r->times);
}

bool lab_compare_costs(lab_run *r)
{
    layer_asked layer = { .cell = "lstm", .hidden = r->asked.hidden, .threads = (int)r->asked.threads };
    weft_dataset rows = { 0 };
    weft_plan_prediction p;
    bool good = costs_of(&layer, &r->layer) && make_rows(&r->few, layer.hidden, &rows);
    timed *t = good ? calloc((size_t)r->asked.planners + 1, sizeof *t) : NULL;
    r->cost = calloc((size_t)r->asked.planners + 1, sizeof *r->cost);
    good = good && ((t && r->cost) || say_error(FAILED, "lab: no memory for costs") == GOOD);
    for (int i = 0; i < r->asked.planners && good; i++)
        good = open_layer(t + i, r, i);
    int done = -1; /* a first round is not counted */
    for (; done < r->asked.rounds && good && !lab_stops(r); done++)
        for (int i = 0; i < r->asked.planners && good; i++) {
            lab_progress(r, "the cost of a layer by %s", r->of_few[i].text);
            double ms = run_part(t + i, &rows);
            t[i].ms[done < 0 ? 0 : done] = ms;
            good = weft_ok(t[i].w) || lab_refuse(r->of_few[i].text, t[i].w);
        }
    for (int i = 0; i < r->asked.planners && good && done > 0; i++) {
        good = weft_plan_predict(&t[i].part, &r->layer.cost, t[i].padded, &p) == WEFT_OK ||
               say_error(FAILED, "lab: %s", weft_plan_message()) == GOOD;
        if (good)
            note(r, i, t + i, done, p.ms);
    }
    for (int i = 0; i < r->asked.planners && t; i++)
        if (t[i].w)
            weft_close(t[i].w);
    free(t), free(rows.rows);
    return good;
}
