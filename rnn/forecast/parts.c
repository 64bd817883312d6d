/* parts.c - the few steps of forecasting models in which ragged and padded computation differ. */
#include "autograd/fused.h"
#include "rnn/forecast/api_transformertf.h"
#include "rnn/forecast/forecast.h"

weft__projection weft__projection_new(weft_module *m, int64_t from, int64_t to)
{
    if (from == to)
        return (weft__projection){ NULL, NULL };
    weft_module *own = weft_submodule_new(m, "state_projection");
    return (weft__projection){ weft_linear_new(own, "h_proj", &(weft_linear_opts){ .in = from, .out = to }),
                               weft_linear_new(own, "c_proj", &(weft_linear_opts){ .in = from, .out = to }) };
}

weft_state weft__projected(const weft__projection *p, weft_state s)
{
    return p->h ? (weft_state){ weft_linear_run(p->h, s.h), weft_linear_run(p->c, s.c) } : s;
}

/* ---- recurrent layers ---- */
static bool as_coded(const weft__reading *t) { return t->model->compat == WEFT_COMPAT_AS_CODED; }

/* Whether an LSTM stops where the data end. */
static bool honoured(const weft__reading *t, const weft__side *side)
{
    return !t->model->right_aligned && side->known && (!as_coded(t) || weft_should_use_packing(&side->data));
}

weft_rnn_out weft__recur(const weft__reading *t, const weft__side *side, weft_rnn *r, weft_tensor *x,
                         weft_state first)
{
    if (x->f.batch || !weft_ok(x->w) || !honoured(t, side))
        return weft_rnn_run(r, x, first);
    weft_rnn_out o = weft_rnn_run(r, weft_pack_padded_sequence(x, &side->data, side->align), first);
    o.y = weft_pad_packed_sequence(o.y, x->f.size[1], 0, side->align);
    return o;
}

/* ---- attention ---- */
static weft_tensor *ragged_side(const weft__side *side, weft_tensor *x)              /* its data, ragged */
{
    return x->f.batch || !weft_ok(x->w) ? x : weft_pack_padded_sequence(x, &side->data, side->align);
}

/* What TransformerTF does when it is not told lengths: the TFT family takes all for data, the others leave
 * the mask away, the causal part as well. */
static bool is_masked(const weft__reading *t, bool known)
{
    return !as_coded(t) || known || t->model->right_aligned;
}

static weft_tensor *attend_masked(const weft__reading *t, weft_interpretable_attention *a, weft_tensor *past,
                                  weft_tensor *future)
{
    weft_tensor *both[] = { past, future }, *mask = NULL;
    if (weft_ok(past->w) && is_masked(t, t->past.known && t->future.known))
        mask = weft_get_attention_mask(
            past->w, &t->past.data, past->f.size[1], &t->future.data, future->f.size[1],
            &(weft_attention_mask_opts){ .not_causal = !t->model->causal, .encoder_align = t->past.align });
    return weft__interpretable_forbidden(a, future, weft_concat(both, 2, 1), mask,
                                         t->maps ? &t->maps->attention : NULL);
}

weft_tensor *weft__attend_to_both(const weft__reading *t, weft_interpretable_attention *a, weft_tensor *past,
                                  weft_tensor *future)
{
    if (t->model->compat != WEFT_COMPAT_EXACT)
        return attend_masked(t, a, past, future);
    weft_causal causal = t->model->causal ? WEFT_CAUSAL_STRICT : WEFT_ALL_KEYS;
    return weft_interpretable_attention_run(a, future,
                                            weft_concat_sequences(ragged_side(&t->past, past), future),
                                            causal, NULL, t->maps ? &t->maps->attention : NULL);
}

weft_tensor *weft__attend_to_past(const weft__reading *t, weft_interpretable_attention *a, weft_tensor *past)
{
    weft_tensor *mask = NULL;
    if (t->model->compat == WEFT_COMPAT_EXACT)
        return weft_interpretable_attention_run(a, past, past, WEFT_ALL_KEYS, NULL, NULL);
    if (weft_ok(past->w) && is_masked(t, t->past.known)) {
        mask = weft_create_mask(past->w, past->f.size[1], &t->past.data, t->past.align, false);
        mask = weft_reshape(mask, 3, (int64_t[]){ past->f.size[0], 1, past->f.size[1] });
    }
    return weft__interpretable_forbidden(a, past, past, mask, NULL);
}

/* ---- static covariates ---- */
weft_tensor *weft__with_fixed(const weft__reading *t, weft_tensor *x)
{
    if (!t->fixed || !weft_ok(x->w))
        return x;
    int64_t n = t->fixed->f.size[0], wide = t->fixed->f.size[1];
    weft_tensor *beside =
        x->f.batch ? weft_broadcast_to_tokens(t->fixed, x) :
                     weft_tile(weft_reshape(t->fixed, 3, (int64_t[]){ n, 1, wide }), 1, x->f.size[1]);
    weft_tensor *both[] = { x, beside };
    return weft_concat(both, 2, -1);
}
