/* temporal_fusion_transformer.c - TemporalFusionTransformer: the trunk; its one static feature is, if none
 * are given, the length of the past. And the choice among the models of its family. */
#include "rnn/forecast/tft.h"

weft_forecast weft__run_tft(void *model, const weft__reading *t)
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
    weft_tft_variant variant = opts ? opts->variant : WEFT_TFT;
    switch (variant) {
    case WEFT_TFT:
        return weft__tft_new(m, name, "temporal_fusion_transformer", opts, true, weft__run_tft);
    case WEFT_PF_TFT:
        return weft__tft_new(m, name, "pf_temporal_fusion_transformer", opts, true, weft__run_pf_tft);
    case WEFT_XTFT:
        return weft__tft_new(m, name, "xtft", opts, false, weft__run_xtft);
    }
    weft__model_wants(m, "temporal_fusion_transformer", false,
                      "a variant of weft_tft_variant is expected, not %d", (int)variant);
    return weft__model_finished(NULL);
}
