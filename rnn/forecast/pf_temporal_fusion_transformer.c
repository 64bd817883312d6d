/* pf_temporal_fusion_transformer.c - PFTemporalFusionTransformer: the trunk, with lengths as shares of the
 * longest past. */
#include "autograd/fused.h"
#include "rnn/forecast/tft.h"

/* A leftover of times when lengths were shares of T: they are multiplied by T, and so nothing but
 * sequences of length 0 is masked. */
static weft_lengths multiplied(const weft__side *side)
{
    weft *w = side->x->w;
    int64_t n = side->data.n, T = side->x->f.size[1];
    int32_t *len = weft__take(w, WEFT__IN_NOTES, n * (int64_t)sizeof *len);
    for (int64_t s = 0; len && s < n; s++)
        len[s] = (int32_t)(side->data.len[s] ? T : 0);
    return len ? (weft_lengths){ .n = n, .len = len } : side->data;
}

static double longest_length(const weft_lengths *l)
{
    int32_t most = 1;
    for (int64_t s = 0; s < l->n; s++)
        most = l->len[s] > most ? l->len[s] : most;
    return most;
}

weft_forecast weft__run_pf_tft(void *model, const weft__reading *t)
{
    weft__tft *m = model;
    weft__reading own = *t;
    bool as_coded = t->model->compat == WEFT_COMPAT_AS_CODED;
    weft_tensor *fixed = t->fixed;
    if (!fixed && t->model->fixed)
        fixed = weft__tft_lengths(
            t,
            1 / (as_coded || !weft__tft_ctxt(m) ? longest_length(&t->past.data) : (double)weft__tft_ctxt(m)),
            0);
    if (as_coded)
        own.past.data = multiplied(&t->past), own.future.data = multiplied(&t->future);
    return weft__tft_run(m, &own, fixed);
}
