/* model.c - the language model that the laboratory's experiments train. */
#include "tools/lab/run.h"
#include <math.h>

bool lab_model_open(lab_model *l, const lab_run *r, uint64_t seed, double dropout, bool padded)
{
    const int64_t hidden = r->asked.hidden, embedding = hidden / 4 > 32 ? hidden / 4 : 32;
    *l = (lab_model){ .w = weft_open(&(weft_opts){ .seed = seed, .threads = (int)r->asked.threads }),
                      .padded = padded };
    l->m = weft_module_new(l->w, "lm");
    l->table = weft_embedding_new(l->m, "table",
                                  &(weft_embedding_opts){ .rows = r->classes, .columns = embedding });
    l->lstm = weft_lstm_new(l->m, "lstm", &(weft_rnn_opts){ .input = embedding, .hidden = hidden });
    l->drop = weft_dropout_new(l->m, "drop", &(weft_dropout_opts){ .p = dropout });
    l->scores = weft_linear_new(l->m, "scores", &(weft_linear_opts){ .in = hidden, .out = r->classes });
    l->optim = weft_adamw_new(l->m, &(weft_adam_opts){ .lr = r->asked.lr, .weight_decay = .01 });
    return weft_ok(l->w);
}

bool lab_model_carries(lab_model *l, const weft_plan *p)
{
    l->kept = l->kept ? l->kept : weft_carried_new(l->m, "kept", l->lstm, p);
    return weft_ok(l->w);
}

weft_tensor *lab_run_padded(weft_rnn *lstm, const weft_plan_step *s, weft_tensor *x)
{
    weft_tensor *pads = weft_pad_packed_sequence(x, 0, 0, WEFT_ALIGN_LEFT);
    weft_tensor *y = weft_rnn_run(lstm, pads, WEFT_ZERO_STATE).y;
    return weft_pack_padded_sequence(y, &s->lengths, WEFT_ALIGN_LEFT);
}

weft_loss lab_model_loss(lab_model *l, const weft_plan_step *s, const weft_dataset *data,
                         weft_tensor *weights)
{
    weft_tensor *before = weft_plan_tokens(s, data, -1, 0), *now = weft_plan_tokens(s, data, 0, 0);
    weft_tensor *x = weft_embedding_run(l->table, before);
    bool pads = l->padded && !s->plan->in_rows;
    weft_tensor *y = pads ? lab_run_padded(l->lstm, s, x) : weft_rnn_run_plan(l->lstm, x, s, l->kept).y;
    return weft_cross_entropy(weft_linear_run(l->scores, weft_dropout_run(l->drop, y)), now,
                              &(weft_cross_entropy_opts){ .mask = weights });
}

bool lab_model_update(lab_model *l, const weft_plan *p, int64_t batch, const weft_dataset *data)
{
    weft_plan_step s = weft_plan_step_of(l->w, p, batch);
    weft_backward(weft_mean_loss(lab_model_loss(l, &s, data, NULL)));
    weft_clip_grad_norm(l->m, 1, 2);
    weft_optim_step(l->optim);
    weft_clear(l->w);
    return weft_ok(l->w);
}

double lab_model_bits(lab_model *l, const weft_dataset *data)
{
    weft_plan p;
    double nats = 0, tokens = 0;
    weft_carried *kept = l->kept;
    l->kept = NULL; /* the carried states belong to the training plan */
    weft_status s = weft_plan_make(weft_planner_named("sorted"), data->len, data->n,
                                   &(weft_plan_opts){ .count = 64 }, &p);
    WEFT_NO_GRAD(l->w)
    WEFT_EVAL(l->w) for (int64_t b = 0; s == WEFT_OK && b < p.batches && weft_ok(l->w); b++)
    {
        weft_plan_step step = weft_plan_step_of(l->w, &p, b);
        weft_loss loss = lab_model_loss(l, &step, data, NULL);
        nats += weft_item(loss.sum), tokens += weft_item(loss.weight);
        weft_clear(l->w);
    }
    weft_plan_free(&p);
    l->kept = kept;
    return s == WEFT_OK && weft_ok(l->w) && tokens > 0 ? nats / tokens / log(2) : (double)NAN;
}
