/* forecast.c - makes and runs forecasting models: checks the inputs, and makes them ragged or padded. */
#include "autograd/fused.h"
#include "core/os.h"
#include "rnn/forecast/api_transformertf.h"
#include "rnn/forecast/forecast.h"

/* ---- making ---- */
static weft_forecaster none;

bool weft__model_needs(weft_module *parent, const char *function, bool holds, const char *format, ...)
{
    weft *w = weft__ready(parent);
    char reason[200];
    WEFT__PLAIN_TEXT(reason, sizeof reason, format);
    if (w && !holds)
        weft__fail(w, WEFT_EARG, "%s: %s", function, reason);
    return w && !w->status;
}

void *weft__model_new(weft_module *parent, const char *name, size_t bytes, const weft__model *base)
{
    weft *w = weft__ready(parent);
    const int64_t most = INT32_MAX / 4;          /* the limit of layers; sums cannot overflow */
    if (w && (base->past < 1 || base->past > most || base->future < 1 || base->future > most ||
              base->fixed < 0 || base->fixed > most))
        weft__fail(w, WEFT_ESHAPE,
                   "%s: %lld past, %lld future, %lld static features; expected 1 or more past and future "
                   "features, 0 or more static ones, each below 2^29",
                   base->name, (long long)base->past, (long long)base->future, (long long)base->fixed);
    if (!weft__model_needs(parent, base->name, (unsigned)base->compat <= WEFT_COMPAT_AS_CODED,
                           "compat %d; expected a value of weft_compat", (int)base->compat) ||
        !weft__dropout_is_sound(w, base->name, base->dropout))
        return NULL;
    weft_module *m = weft_submodule_new(parent, name);
    weft__model *model = weft__layer(m, bytes);
    if (!model)
        return weft__finish_layer(m, model, NULL);
    *model = *base;
    model->m = m;
    return model;
}

weft_forecaster *weft__model_finish(void *model)
{
    return model ? weft__finish_layer(((weft__model *)model)->m, model, &none) : &none;
}

weft_linear *weft__model_linear(const weft__model *base, const char *name, int64_t in, int64_t out)
{
    return weft_linear_new(base->m, name, &(weft_linear_opts){ .in = in, .out = out });
}

weft_rnn *weft__model_lstm(const weft__model *m, const char *name, int64_t input, int64_t hidden, int layers)
{
    return weft_lstm_new(m->m, name,
                         &(weft_rnn_opts){ .input = input, .hidden = hidden, .layers = layers,
                                           .dropout = layers > 1 ? m->dropout : 0 });
}

weft_module *weft_forecaster_module(weft_forecaster *f) { return f ? f->base.m : NULL; }

/* ---- inputs ---- */
static const char *lengths_wrong(const weft_lengths *l, int64_t n, int64_t T, int64_t *sequence)
{
    if (l->n != n || !l->len)
        return "do not match the number of sequences";
    for (*sequence = 0; *sequence < n; ++*sequence)
        if (l->len[*sequence] < 0 || l->len[*sequence] > T)
            return "contain a length outside 0 .. T";
    return NULL;
}

static bool side_fits(const weft__model *m, const char *side, const weft_tensor *x, const weft_lengths *l,
                      int64_t features)
{
    weft *w = m->m->w;
    const char *error;
    int64_t sequence = 0;
    if (!WEFT__IS_USABLE(w, x, "%s: the %s", m->name, side))
        return false;
    if (x->f.type != WEFT_REAL || x->f.rank != (x->f.batch ? 2 : 3) || x->f.size[x->f.rank - 1] != features ||
        (!x->f.batch && x->f.size[1] >= INT32_MAX))
        weft__fail(w, WEFT_ESHAPE,
                   "%s: the %s is %s; expected ragged [N, %lld] or plain [n, T, %lld] of reals%s", m->name,
                   side, WEFT__TEXT(&x->f), (long long)features, (long long)features,
                   weft__ids_advice(&x->f));
    else if (l && x->f.batch)
        weft__fail(w, WEFT_EARG, "%s: the %s is ragged and has its lengths; expected no others", m->name,
                   side);
    else if (l && (error = lengths_wrong(l, x->f.size[0], x->f.size[1], &sequence)))
        weft__fail(w, WEFT_EARG, "%s: lengths of the %s %s (sequence %lld; n = %lld, T = %lld)", m->name,
                   side, error, (long long)sequence, (long long)x->f.size[0], (long long)x->f.size[1]);
    return !w->status;
}

static int64_t count_sequences(const weft_tensor *x) { return x->f.batch ? x->f.batch->n : x->f.size[0]; }

static bool fixed_fits(const weft__model *m, const weft_tensor *x, int64_t n)
{
    weft *w = m->m->w;
    /* The feature is then computed from the lengths. */
    bool may_lack = m->fixed == 0 || (m->right_aligned && m->fixed == 1);
    if (x && !WEFT__IS_USABLE(w, x, "%s: fixed", m->name))
        return false;
    if (x ? !m->fixed || x->f.batch || x->f.type != WEFT_REAL || x->f.rank != 2 || x->f.size[0] != n ||
                x->f.size[1] != m->fixed :
            !may_lack)
        m->fixed ? weft__fail(w, WEFT_ESHAPE, "%s: fixed is %s; expected [%lld, %lld]", m->name,
                              x ? WEFT__TEXT(&x->f) : "NULL", (long long)n, (long long)m->fixed) :
                   weft__fail(w, WEFT_ESHAPE,
                              "%s: fixed is %s; expected NULL, because the model has no static features",
                              m->name, WEFT__TEXT(&x->f));
    return !w->status;
}

static bool series_fit(const weft__model *m, const weft_series_batch *s)
{
    weft *w = m->m->w;
    if (!s)
        weft__fail(w, WEFT_EARG, "%s: series is NULL", m->name);
    else if ((unsigned)s->past_align > WEFT_ALIGN_RIGHT)
        weft__fail(w, WEFT_EARG, "%s: past_align: expected a value of weft_align", m->name);
    if (w->status || !side_fits(m, "past", s->past, s->past_lengths, m->past) ||
        !side_fits(m, "future", s->future, s->future_lengths, m->future))
        return false;
    if (count_sequences(s->past) != count_sequences(s->future))
        weft__fail(w, WEFT_ESHAPE, "%s: the past has %lld sequences, the future %lld; expected equal numbers",
                   m->name, (long long)count_sequences(s->past), (long long)count_sequences(s->future));
    return !w->status && fixed_fits(m, s->fixed, count_sequences(s->past));
}

/* ---- ragged or padded ---- */
weft_lengths weft__all_steps(const weft_tensor *x)
{
    int64_t n = x->f.size[0];
    int32_t *len = weft__take(x->w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *len);
    for (int64_t s = 0; len && s < n; s++)
        len[s] = (int32_t)x->f.size[1];
    return (weft_lengths){ .n = len ? n : 0, .len = len };
}

static weft_lengths data_of(const weft_tensor *x, const weft_lengths *given)
{
    return x->f.batch ? weft_lengths_of(x) : given ? *given : weft__all_steps(x);
}

static weft__side ragged_side(weft_tensor *x, const weft_lengths *data, weft_align align)
{
    weft_tensor *rows = x->f.batch ? x : weft_pack_padded_sequence(x, data, align);
    return (weft__side){ rows, weft_lengths_of(rows), WEFT_ALIGN_LEFT, true };
}

/* Moves the data to one side of the padding. exact: sets the padding to 0, whatever it contains. */
static weft__side padded_side(weft_tensor *x, const weft_lengths *data, bool known, weft_align from,
                              weft_align to, bool exact)
{
    weft_tensor *y = x;
    if (x->f.batch || (exact && known))
        y = weft_pad_packed_sequence(x->f.batch ? x : weft_pack_padded_sequence(x, data, from),
                                     x->f.batch ? 0 : x->f.size[1], 0, to);
    else if (known && from != to)
        y = weft_move_pads(x, data, from, to);
    return (weft__side){ y, *data, to, known };
}

static weft__input reading_of(const weft__model *m, const weft_series_batch *s, weft_forecast_maps *maps)
{
    bool exact = m->compat == WEFT_COMPAT_EXACT;
    weft__input t = { .model = m, .maps = maps, .fixed = s->fixed };
    weft_lengths past = data_of(s->past, s->past_lengths), future = data_of(s->future, s->future_lengths);
    t.past = exact && !m->right_aligned ?
                 ragged_side(s->past, &past, s->past_align) :
                 padded_side(s->past, &past, s->past->f.batch || s->past_lengths, s->past_align,
                             m->right_aligned ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT, exact);
    t.future = exact ? ragged_side(s->future, &future, WEFT_ALIGN_LEFT) :
                       padded_side(s->future, &future, s->future->f.batch || s->future_lengths,
                                   WEFT_ALIGN_LEFT, WEFT_ALIGN_LEFT, false);
    return t;
}

/* Returns y in the form of the given future. */
static weft_tensor *like_future(const weft__input *t, const weft_tensor *given, weft_tensor *y)
{
    if (!weft_ok(y->w) || !given->f.batch == !y->f.batch)
        return given->f.batch && y->f.batch ? weft__arranged_as(y, &given->f) : y;
    return given->f.batch ? weft_pack_padded_sequence(y, &t->future.data, WEFT_ALIGN_LEFT) :
                            weft_pad_packed_sequence(y, given->f.size[1], 0, WEFT_ALIGN_LEFT);
}

weft_forecast weft_forecast_run(weft_forecaster *f, const weft_series_batch *s, weft_forecast_maps *maps)
{
    const weft__model *m = f ? &f->base : NULL;
    weft_tensor *x = s ? s->past : NULL, *bad = !m || !m->m ? weft__bad_input(NULL, x, "forecast_run") : NULL;
    weft_tensor *inert = bad ? bad : &m->m->w->nil;
    weft_forecast out = { inert, { inert, inert } };
    if (maps)
        *maps = (weft_forecast_maps){ 0 };
    if (bad)
        return out;
    const weft_module *before = weft__enter(m->m);
    if (weft_ok(m->m->w) && series_fit(m, s)) {
        weft__input t = reading_of(m, s, maps);
        weft_forecast made = weft_ok(m->m->w) ? m->run(f, &t) : out;
        made.y = like_future(&t, s->future, made.y);
        out = weft_ok(m->m->w) ? made : out;
    }
    weft__leave(m->m, before);
    return out;
}

/* ---- parts of models that differ between ragged and padded computation ---- */
weft__projection weft__projection_new(weft_module *m, int64_t from, int64_t to)
{
    if (from == to)
        return (weft__projection){ NULL, NULL };
    weft_module *own = weft_submodule_new(m, "state_projection");
    return (weft__projection){ weft_linear_new(own, "h_proj", &(weft_linear_opts){ .in = from, .out = to }),
                               weft_linear_new(own, "c_proj", &(weft_linear_opts){ .in = from, .out = to }) };
}

weft_state weft__project_state(const weft__projection *p, weft_state s)
{
    return p->h ? (weft_state){ weft_linear_run(p->h, s.h), weft_linear_run(p->c, s.c) } : s;
}

/* ---- recurrent layers ---- */
static bool as_coded(const weft__input *t) { return t->model->compat == WEFT_COMPAT_AS_CODED; }

/* Returns whether an LSTM stops at the end of the data. */
static bool stops_at_data(const weft__input *t, const weft__side *side)
{
    return !t->model->right_aligned && side->known && (!as_coded(t) || weft_should_use_packing(&side->data));
}

weft_rnn_out weft__run_lstm(const weft__input *t, const weft__side *side, weft_rnn *r, weft_tensor *x,
                            weft_state first)
{
    if (x->f.batch || !weft_ok(x->w) || !stops_at_data(t, side))
        return weft_rnn_run(r, x, first);
    weft_rnn_out o = weft_rnn_run(r, weft_pack_padded_sequence(x, &side->data, side->align), first);
    o.y = weft_pad_packed_sequence(o.y, x->f.size[1], 0, side->align);
    return o;
}

/* ---- attention ---- */
static weft_tensor *data_rows(const weft__side *side, weft_tensor *x)              /* the data, ragged */
{
    return x->f.batch || !weft_ok(x->w) ? x : weft_pack_padded_sequence(x, &side->data, side->align);
}

/* Without lengths TransformerTF differs by model: the TFT family treats all steps as data, the others drop
 * the whole mask, including its causal part. */
static bool is_masked(const weft__input *t, bool known)
{
    return !as_coded(t) || known || t->model->right_aligned;
}

static weft_tensor *attend_masked(const weft__input *t, weft__interpretable *a, weft_tensor *past,
                                  weft_tensor *future)
{
    weft_tensor *both[] = { past, future }, *mask = NULL;
    if (weft_ok(past->w) && is_masked(t, t->past.known && t->future.known))
        mask = weft_get_attention_mask(
            past->w, &t->past.data, past->f.size[1], &t->future.data, future->f.size[1],
            &(weft_attention_mask_opts){ .not_causal = !t->model->causal, .encoder_align = t->past.align });
    return weft__interpretable_masked(a, future, weft_concat(both, 2, 1), mask,
                                      t->maps ? &t->maps->attention : NULL);
}

weft_tensor *weft__attend_to_both(const weft__input *t, weft__interpretable *a, weft_tensor *past,
                                  weft_tensor *future)
{
    if (t->model->compat != WEFT_COMPAT_EXACT)
        return attend_masked(t, a, past, future);
    weft_causal causal = t->model->causal ? WEFT_CAUSAL_STRICT : WEFT_ALL_KEYS;
    return weft__interpretable_run(a, future, weft_concat_sequences(data_rows(&t->past, past), future),
                                   causal, t->maps ? &t->maps->attention : NULL);
}

weft_tensor *weft__attend_to_past(const weft__input *t, weft__interpretable *a, weft_tensor *past)
{
    weft_tensor *mask = NULL;
    if (t->model->compat == WEFT_COMPAT_EXACT)
        return weft__interpretable_run(a, past, past, WEFT_ALL_KEYS, NULL);
    if (weft_ok(past->w) && is_masked(t, t->past.known)) {
        mask = weft_create_mask(past->w, past->f.size[1], &t->past.data, t->past.align, false);
        mask = weft_reshape(mask, 3, (int64_t[]){ past->f.size[0], 1, past->f.size[1] });
    }
    return weft__interpretable_masked(a, past, past, mask, NULL);
}

weft_tensor *weft__add_fixed(const weft__input *t, weft_tensor *x)
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
