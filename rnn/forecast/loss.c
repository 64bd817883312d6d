/* loss.c - losses of forecasts: those of nn over the real steps of a decoder, packed or padded, and the usual
 * metrics of the point forecast. */
#include "nn/loss.h"
#include "autograd/fused.h"
#include "rnn/forecast/api_forecast.h"

static const char name[] = "forecast_loss";
static const real usual[] = { (real).02, (real).1, (real).25, (real).5, (real).75, (real).9, (real).98 };

/* ---- shapes: adds a last axis for the outputs ---- */
/* Returns the number of axes for sequences and steps. */
static int of_steps(const weft_tensor *x) { return x->f.batch ? 1 : 2; }

static weft_tensor *with_outputs(weft_tensor *x)
{
    return weft_rank(x) == of_steps(x) ? weft__as_column(x) : x;
}

static bool is_forecast(const weft_tensor *x, const char *operand)
{
    int  more = weft_rank(x) - of_steps(x);
    if (more < 0 || more > 1)
        weft__fail(x->w, WEFT_ESHAPE, "%s: %s %s; expected ragged [M, outputs] or plain [n, T, outputs]",
                   name, operand, WEFT__TEXT(&x->f));
    return !x->w->status;
}

/* ---- which steps count ---- */
/* Checks lengths for a ragged forecast, which has its own. */
static void are_its_lengths(const weft_tensor *x, const weft_lengths *l)
{
    weft_lengths own = weft_lengths_of(x);
    if (l && weft__lengths_fit(x->w, l, own.n, INT32_MAX, name))
        for (int64_t s = 0; s < own.n && !x->w->status; s++)
            if (l->len[s] != own.len[s])
                weft__fail(x->w, WEFT_ESHAPE, "%s: sequence %lld of predicted has length %d; expected %d",
                           name, (long long)s, own.len[s], l->len[s]);
}

/* Returns [n, T, 1] of 0 and 1; NULL if all steps count, or on an error. */
static weft_tensor *steps_that_count(weft_tensor *x, const weft_lengths *l, bool all)
{
    if (x->f.batch)
        return are_its_lengths(x, l), NULL;
    bool some = l && weft__lengths_fit(x->w, l, x->f.size[0], x->f.size[1], name) && !all;
    return some ? weft__as_column(weft_length_mask(x->w, l, x->f.size[1], WEFT_ALIGN_LEFT)) : NULL;
}

/* ---- quantiles ---- */
static bool rising(weft *w, const real *q, int n)
{
    for (int i = 1; i < n && q; i++)
        if (q[i] < q[i - 1])
            weft__fail(w, WEFT_EARG,
                       "%s: quantile %d is %g, after %g; expected quantiles in ascending order, one for each "
                       "column of predicted",
                       name, i, (double)q[i], (double)q[i - 1]);
    return !w->status;
}

static weft_loss by_quantiles(weft_tensor *x, weft_tensor *y, const weft_forecast_loss_opts *o,
                              const weft_loss_opts *options)
{
    const real *q = o->n ? o->quantiles : usual;
    int n = o->n ? o->n : (int)(sizeof usual / sizeof *usual);
    return rising(x->w, q, n) ? weft_quantile_loss(x, y, q, n, o->per_batch, options) :
                                (weft_loss){ &x->w->nil, &x->w->nil };
}

/* ---- the loss ---- */
static weft_loss of_kind(weft_tensor *x, weft_tensor *y, const weft_forecast_loss_opts *o,
                         const weft_loss_opts *options)
{
    switch (o->kind) {
    case WEFT_FORECAST_MSE:
        return weft_mse_loss(x, y, options);
    case WEFT_FORECAST_MAE:
        return weft_l1_loss(x, y, options);
    case WEFT_FORECAST_HUBER:
        return weft_huber_loss(x, y, o->delta != 0 ? o->delta : 1, options);
    case WEFT_FORECAST_QUANTILE: return by_quantiles(x, y, o, options);
    case WEFT_FORECAST_SMAPE:    return weft_smape(x, y, options);
    case WEFT_FORECAST_MAPE:     return weft_mape(x, y, options);
    }
    weft__fail(x->w, WEFT_EARG, "%s: kind %d; expected a value of weft_forecast_kind", name, (int)o->kind);
    return (weft_loss){ &x->w->nil, &x->w->nil };
}

weft_loss weft_forecast_loss(weft_tensor *predicted, weft_tensor *target, const weft_lengths *lengths,
                             const weft_forecast_loss_opts *opts)
{
    weft_forecast_loss_opts o = opts ? *opts : (weft_forecast_loss_opts){ 0 };
    weft *w = weft__context(LIST(predicted, target));
    bool usable = WEFT__IS_USABLE(w, predicted, "%s: predicted", name) &&
                  WEFT__IS_USABLE(w, target, "%s: target", name) &&
                  (!o.weights || WEFT__IS_USABLE(w, o.weights, "%s: weights", name));
    if (!usable || w->status || !is_forecast(predicted, "predicted") || !is_forecast(target, "target"))
        return (weft_loss){ &w->nil, &w->nil };
    weft_loss_opts options = { .mask = steps_that_count(predicted, lengths, o.no_loss_masking),
                               .weights = o.weights };
    if (o.weights && !o.weights->f.batch == !predicted->f.batch)
        options.weights = with_outputs(o.weights);
    return of_kind(with_outputs(predicted), with_outputs(target), &o, &options);
}

/* ---- point forecast and its metrics ---- */
weft_tensor *weft_point_prediction(weft_tensor *predicted, int quantiles)
{
    if (!predicted || weft__handle_error(predicted->w, predicted) || quantiles < 1 ||
        weft_rank(predicted) < 1 || weft_size(predicted, -1) != quantiles)
        return weft__failed(predicted, WEFT_ESHAPE, "point_prediction",
                            "expected [.., %d], a column for each quantile", quantiles);
    return weft_slice(predicted, -1, quantiles / 2, quantiles / 2 + 1);
}

enum { METRICS = 4 };
static const weft_forecast_kind kinds[METRICS] = { WEFT_FORECAST_MSE, WEFT_FORECAST_MAE, WEFT_FORECAST_SMAPE,
                                                   WEFT_FORECAST_MAPE };

static weft_tensor *as_vector(weft_tensor *x) { return weft_reshape(x, WEFT_SHAPE(1)); }

/* Returns the sums of all metrics and the weight, [METRICS + 1]. */
static weft_tensor *sums_and_weight(weft_tensor *point, weft_tensor *target, const weft_lengths *lengths)
{
    weft_tensor *all[METRICS + 1];
    for (int k = 0; k < METRICS; k++) {
        weft_loss l =
            weft_forecast_loss(point, target, lengths, &(weft_forecast_loss_opts){ .kind = kinds[k] });
        all[k] = as_vector(l.sum);
        all[METRICS] = as_vector(l.weight);
    }
    return weft_concat(all, METRICS + 1, 0);
}

void weft_forecast_meters_add(weft_forecast_meters *m, weft_tensor *point, weft_tensor *target,
                              const weft_lengths *lengths)
{
    weft *w = weft_context_of(point);
    bool recording = weft_set_grad_enabled(w, false);
    real values[METRICS + 1];
    weft_meter *meters[METRICS] = { m ? &m->mse : NULL, m ? &m->mae : NULL, m ? &m->smape : NULL,
                                    m ? &m->mape : NULL };
    weft_status failed = weft__read(sums_and_weight(point, target, lengths), values, sizeof values);
    for (int k = 0; k < METRICS && !failed; k++)
        weft_meter_add(meters[k], (double)values[k], (double)values[METRICS]);
    weft_set_grad_enabled(w, recording);
}
