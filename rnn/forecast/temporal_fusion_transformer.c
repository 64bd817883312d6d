/* temporal_fusion_transformer.c - TemporalFusionTransformer: the trunk; its one static feature is, if none
 * are given, the length of the past. */
#include "rnn/forecast/tft.h"

static weft_forecast run_model(void *model, const weft__reading *t)
{
    weft__tft *m = model;
    weft_tensor *fixed = t->fixed;
    if (!fixed && t->model->fixed) {
        if (!weft__tft_ctxt(m))
            weft_fail(t->model->m->w, WEFT_EARG,
                      "%s: fixed is NULL, and ctxt_seq_len, by which lengths could be divided, is 0",
                      t->model->name);
        fixed = weft__tft_lengths(t, weft__tft_ctxt(m) ? 2 / (double)weft__tft_ctxt(m) : 0, -1);
    }
    return weft__tft_run(m, t, fixed);
}

weft_forecaster *weft_tft_new(weft_module *m, const char *name, const weft_tft_opts *opts)
{
    return weft__tft_new(m, name, "temporal_fusion_transformer", opts, true, run_model);
}
