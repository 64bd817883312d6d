/* cost_layer.c - a recurrent layer above an embedding, run over plans: forward, backward, gradients of all
 * weights. */
#include <stdlib.h>
#include <string.h>
#include "tools/plan/costs.h"

enum { CLASSES = 509 }; /* of a table so large that tokens are projected, and not its rows */

double cost_seconds(const cost_layer *l)
{
    double beyond = l->hidden > 128 ? (double)(l->hidden - 128) / (512 - 128) : 0;
    return .5 + 2.5 * (beyond < 1 ? beyond : 1);
}

bool cost_model_open(cost_model *m, const cost_layer *l)
{
    weft_rnn_opts o = { .input = l->input, .hidden = l->hidden };
    *m = (cost_model){
        .w = weft_open(
            &(weft_opts){ .seed = 1, .threads = l->threads, .device = l->device, .precision = l->precision })
    };
    m->m = weft_module_new(m->w, "cost");
    m->table =
        weft_embedding_new(m->m, "table", &(weft_embedding_opts){ .rows = CLASSES, .columns = l->input });
    m->rnn = !strcmp(l->cell, "gru") ? weft_gru_new(m->m, "rnn", &o) : weft_lstm_new(m->m, "rnn", &o);
    return weft_ok(m->w);
}

void cost_model_close(cost_model *m)
{
    weft_close(m->w);
    free(m->ids);
    *m = (cost_model){ 0 };
}

static bool reserve(cost_model *m, int64_t tokens)
{
    int32_t *ids = tokens > m->room ? realloc(m->ids, (size_t)tokens * sizeof *ids) : m->ids;
    for (; ids && m->room < tokens; m->room++)
        ids[m->room] = (int32_t)(m->room * 7919 % CLASSES);
    m->ids = ids ? ids : m->ids;
    return m->room >= tokens;
}

static weft_tensor *run_padded(cost_model *m, const weft_plan_step *s, weft_tensor *x)
{
    weft_tensor *pads = weft_pad_packed_sequence(x, 0, 0, WEFT_ALIGN_LEFT);
    return weft_pack_padded_sequence(weft_rnn_run(m->rnn, pads, WEFT_ZERO_STATE).y, &s->lengths,
                                     WEFT_ALIGN_LEFT);
}

static weft_tensor *gathered(const weft_plan_step *s, weft_tensor *x)
{
    return weft_to_layout(weft_plan_to_layout(s, x), WEFT_CONCAT);
}

static bool run_batch(cost_model *m, const weft_plan *p, int64_t batch, cost_pass pass)
{
    weft_plan_step s = weft_plan_step_of(m->w, p, batch);
    int64_t tokens = 0;
    for (int64_t i = 0; i < s.lengths.n; i++)
        tokens += s.lengths.len[i];
    if (!weft_ok(m->w) || !reserve(m, tokens))
        return false;
    weft_zero_grad(m->m);
    weft_tensor *x = weft_embedding_run(m->table, weft_ragged_ints(m->w, m->ids, &s.lengths));
    weft_tensor *y = pass == COST_GATHER                ? gathered(&s, x) :
                     pass == COST_PADDED && !p->in_rows ? run_padded(m, &s, x) :
                                                          weft_rnn_run_plan(m->rnn, x, &s, m->kept).y;
    weft_backward(weft_sum_all(y));
    weft_synchronize(m->w);
    weft_clear(m->w);
    return weft_ok(m->w);
}

bool cost_model_pass(void *model, const weft_plan *p, cost_pass pass)
{
    cost_model *m = model;
    bool carries = false;
    for (int64_t i = 0; i < p->segments; i++)
        carries = carries || p->segment[i].carry >= 0;
    if (carries && !m->kept)
        m->kept = weft_carried_new(m->m, "kept", m->rnn, p);
    bool good = weft_ok(m->w);
    for (int64_t b = 0; b < p->batches && good; b++)
        good = run_batch(m, p, b, pass);
    return good;
}
