/* tft.h - the trunk of the TFT family: TemporalFusionTransformer, PFTemporalFusionTransformer, xTFT. */
#ifndef WEFT_TFT_H
#define WEFT_TFT_H
#include "rnn/forecast/forecast.h"

typedef struct weft__tft weft__tft;
/* A model whose run is that; without `contexts` it has nothing static, and opts' static features and
 * ctxt_seq_len are not looked at. */
weft_forecaster *weft__tft_new(weft_module *parent, const char *name, const char *function,
                               const weft_tft_opts *o, bool contexts, weft__model_run *run);
/* The three models. */
weft__model_run weft__run_tft, weft__run_pf_tft, weft__run_xtft;
/* The trunk with these static features [n, num_static_features]; NULL: there are none. */
weft_forecast weft__tft_run(weft__tft *, const weft__reading *, weft_tensor *fixed);
int64_t weft__tft_ctxt(const weft__tft *);       /* ctxt_seq_len */
/* [n, 1]: scale * length + shift of each past. */
weft_tensor *weft__tft_lengths(const weft__reading *, double scale, double shift);
#endif
