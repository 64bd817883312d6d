/* xtft.c - xTFT: the trunk without anything static. */
#include "rnn/forecast/tft.h"

static weft_forecast run_model(void *model, const weft__reading *t) { return weft__tft_run(model, t, NULL); }

weft_forecaster *weft_xtft_new(weft_module *m, const char *name, const weft_tft_opts *opts)
{
    return weft__tft_new(m, name, "xtft", opts, false, run_model);
}
