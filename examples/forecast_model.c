/* forecast_model.c - see forecast_model.h. */
#include "common/program.h"
#include "forecast_model.h"

const char *const model_names[MODELS + 1] = {
    [ENCODER_DECODER_LSTM] = "encoder_decoder_lstm",
    [ATTENTION_LSTM] = "attention_lstm",
    [TRANSFORMER_LSTM] = "transformer_lstm",
    [TFT] = "tft",
    [PF_TFT] = "pf_tft",
    [XTFT] = "xtft",
};
const weft_real quantiles[QUANTILES] = { (weft_real).05, (weft_real).25, (weft_real).5, (weft_real).75,
                                         (weft_real).95 };

/* ---- the six ---- */
static weft_forecaster *encoder_decoder_lstm(weft_module *m, const char *name, const settings *s,
                                             weft_feature_counts n)
{
    weft_encoder_decoder_lstm_opts o = { .dropout = s->dropout };
    o.num_past_features = n.past, o.num_future_features = n.future;
    o.d_encoder = o.d_decoder = s->hidden;
    o.num_encoder_layers = o.num_decoder_layers = (int)s->layers;
    o.output_dim = QUANTILES;
    return weft_encoder_decoder_lstm_new(m, name, &o);
}

static weft_forecaster *attention_lstm(weft_module *m, const char *name, const settings *s,
                                       weft_feature_counts n)
{
    weft_attention_lstm_opts o = { .dropout = s->dropout };
    o.num_past_features = n.past, o.num_future_features = n.future;
    o.d_model = s->hidden, o.num_layers = (int)s->layers, o.num_heads = (int)s->heads;
    o.output_dim = QUANTILES;
    return weft_attention_lstm_new(m, name, &o);
}

static weft_forecaster *transformer_lstm(weft_module *m, const char *name, const settings *s,
                                         weft_feature_counts n)
{
    weft_transformer_lstm_opts o = { .dropout = s->dropout };
    o.num_past_features = n.past, o.num_future_features = n.future;
    o.d_model = s->hidden, o.num_layers = (int)s->layers, o.num_heads = (int)s->heads,
    o.num_transformer_blocks = (int)s->blocks;
    o.output_dim = QUANTILES;
    return weft_transformer_lstm_new(m, name, &o);
}

static weft_forecaster *fusion_transformer(weft_module *m, const char *name, const settings *s,
                                           weft_feature_counts n)
{
    weft_tft_opts o = { .num_static_features = 1, .dropout = s->dropout };
    o.num_past_features = n.past, o.num_future_features = n.future;
    o.d_model = s->hidden, o.num_lstm_layers = (int)s->layers, o.num_heads = (int)s->heads;
    /* nothing is static: two of them are told how long the past is */
    o.ctxt_seq_len = s->context;
    o.output_dim = QUANTILES;
    o.variant = s->model == TFT ? WEFT_TFT : s->model == PF_TFT ? WEFT_PF_TFT : WEFT_XTFT;
    return weft_tft_new(m, name, &o);
}

static weft_forecaster *forecaster_new(weft_module *m, const char *name, const settings *s,
                                       weft_feature_counts n)
{
    return s->model == ENCODER_DECODER_LSTM ? encoder_decoder_lstm(m, name, s, n) :
           s->model == ATTENTION_LSTM       ? attention_lstm(m, name, s, n) :
           s->model == TRANSFORMER_LSTM     ? transformer_lstm(m, name, s, n) :
                                              fusion_transformer(m, name, s, n);
}

/* ---- twice ---- */
model model_new(weft *w, const settings *s)
{
    weft_features_opts columns = { .context = s->context,
                                   .horizon = s->horizon,
                                   .known = WEFT_NAMES("I", "dI"),
                                   .target = WEFT_NAMES("B") };
    model m = { .w = w,
                .features = weft_features_new(w, "features", &columns),
                .all = weft_module_new(w, "forecast") };
    weft_feature_counts n = weft_features_counts(m.features);
    m.net = forecaster_new(m.all, "net", s, n);
    m.best = forecaster_new(m.all, "best", s, n);
    m.trained = weft_forecaster_module(m.net);
    m.average = s->average > 0 ? weft_ema_new(m.trained, s->average) : NULL;
    check_context(w, "%s", model_names[s->model]);
    weft_freeze(weft_forecaster_module(m.best), "*", true);
    m.ranks = weft_parallel_new(m.all, &(weft_parallel_opts){ .shards = (int)s->shards });
    check_context(w, "%s", "ranks");
    return m;
}

void model_keep(const model *m)
{
    weft_module *best = weft_forecaster_module(m->best);
    weft_ema_swap(m->average);
    for (int i = 0; i < weft_parameter_count(best); i++)
        weft_assign(weft_parameter_at(best, i, NULL), weft_parameter_at(m->trained, i, NULL));
    weft_ema_swap(m->average);
}

/* ---- at work ---- */
weft_tensor *model_run(weft_forecaster *f, const weft_series_batch *series, weft_forecast_maps *maps)
{
    return weft_forecast_run(f, series, maps).y;
}

weft_loss model_loss(weft_tensor *predicted, weft_tensor *target)
{
    weft_forecast_loss_opts o = { .kind = WEFT_FORECAST_QUANTILE, .quantiles = quantiles, .n = QUANTILES };
    return weft_forecast_loss(predicted, target, NULL, &o);
}

/* ---- windows ---- */
enum { LEAST_PAST = 16, LEAST_FUTURE = 8 };

static weft_windows_opts windows(const settings *s, int64_t stride, bool shorten)
{
    return (weft_windows_opts){ .stride = stride,
                                .min_context = s->context < LEAST_PAST ? s->context : LEAST_PAST,
                                .min_horizon = s->horizon < LEAST_FUTURE ? s->horizon : LEAST_FUTURE,
                                .shorten = shorten };
}

weft_windows *windows_to_judge(const model *m, const settings *s, const char *name, const weft_frame *f)
{
    weft_windows_opts o = windows(s, (s->horizon + 1) / 2, false);
    return weft_windows_new(m->features, name, f, &o);
}

weft_windows *windows_to_train(const model *m, const settings *s, const weft_frame *f)
{
    weft_windows_opts o = windows(s, s->stride, true);
    return weft_windows_new(m->features, "train", f, &o);
}
