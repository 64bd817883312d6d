/* xtft.c - xTFT: the trunk without anything static. */
#include "rnn/forecast/tft.h"

weft_forecast weft__run_xtft(void *model, const weft__reading *t) { return weft__tft_run(model, t, NULL); }
