/* costs.c - how long an epoch of each plan should take, before any is run: what a step of the laboratory's
 * model costs is measured on batches of few shapes. */
#include <stdlib.h>
#include <string.h>
#include "tools/lab/run.h"

/* Sequences without a meaning, as long as a plan's. */
typedef struct {
    lab_model model;
    weft_dataset data;
    int64_t room, tokens, classes;
} calibration;

static bool reserve(calibration *c, int64_t sequences, int64_t tokens)
{
    weft_dataset *d = &c->data;
    int32_t *len = sequences > c->room ? realloc(d->len, (size_t)sequences * sizeof *len) : d->len;
    d->len = len ? len : d->len;
    int64_t *offset =
        sequences > c->room ? realloc(d->offset, ((size_t)sequences + 1) * sizeof *offset) : d->offset;
    d->offset = offset ? offset : d->offset;
    int32_t *ints = tokens > c->tokens ? realloc(d->ints, (size_t)tokens * sizeof *ints) : d->ints;
    d->ints = ints ? ints : d->ints;
    if (!len || !offset || !ints)
        return false;
    for (; c->tokens < tokens; c->tokens++)
        ints[c->tokens] = (int32_t)(c->tokens * 7919 % c->classes);
    c->room = sequences > c->room ? sequences : c->room;
    return true;
}

/* Whole sequences, one a segment. */
static bool make_data(calibration *c, const weft_plan *p)
{
    if (!reserve(c, p->sequences, p->tokens))
        return false;
    weft_dataset *d = &c->data;
    d->n = p->sequences, d->offset[0] = 0;
    for (int64_t i = 0; i < p->segments; i++)
        d->len[p->segment[i].sequence] = p->segment[i].length;
    for (int64_t i = 0; i < d->n; i++)
        d->offset[i + 1] = d->offset[i] + d->len[i];
    return true;
}

static bool gather(lab_model *m, const weft_plan *p, int64_t batch, const weft_dataset *data)
{
    weft_plan_step s = weft_plan_step_of(m->w, p, batch);
    weft_tensor *x = weft_embedding_run(m->table, weft_plan_tokens(&s, data, 0, 0));
    weft_backward(weft_sum_all(weft_to_layout(weft_plan_to_layout(&s, x), WEFT_CONCAT)));
    weft_zero_grad(m->m);
    weft_clear(m->w);
    return weft_ok(m->w);
}

static bool pass(void *user, const weft_plan *p, cost_pass which)
{
    calibration *c = user;
    bool good = make_data(c, p);
    for (int64_t b = 0; b < p->batches && good; b++)
        good = which == COST_GATHER ? gather(&c->model, p, b, &c->data) :
                                      lab_model_update(&c->model, p, b, &c->data, WEFT_MEAN_OF_BATCH);
    return good;
}

static void describe(const lab_run *r, const weft *w, costs *c)
{
    int threads = weft_threads(w);
    snprintf(c->what, sizeof c->what,
             "An update of the model, an embedding, an LSTM of %lld, scores and AdamW",
             (long long)r->asked.hidden);
    snprintf(c->device, sizeof c->device, "%s", weft_device_name(w));
    snprintf(c->from, sizeof c->from, "measured on batches of few shapes, none of a plan below");
    c->gpu = !strcmp(c->device, "cuda"), c->threads = threads, c->precision = "fp32";
}

bool lab_predict(lab_run *r)
{
    calibration c = { .classes = r->classes };
    costs to = { .table.points = 0 };
    lab_model_opts o = lab_model_of(r, 1, 0);
    bool good = lab_model_open(&c.model, &o) || lab_refuse("costs", c.model.w);
    lab_progress(r, "what a step costs");
    if (good) {
        describe(r, c.model.w, &to);
        good =
            calibrate(&(cost_runner){ pass, &c }, to.gpu ? 1024 : 64, r->asked.quick ? .3 : 1, &to.table) ||
            lab_refuse("costs", c.model.w);
    }
    to.table.error = MODEL_ERROR;
    good = good && predict_all(r->made, r->asked.planners, &to);
    for (int i = 0; i < r->asked.planners && good; i++)
        r->plan[i].predicted_ms = r->made[i].time.ms;
    if (good)
        r->cost_words = cost_words(r->made, r->asked.planners, &to);
    lab_model_close(&c.model);
    free(c.data.len), free(c.data.offset), free(c.data.ints);
    return good;
}
