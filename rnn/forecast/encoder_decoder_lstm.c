/* encoder_decoder_lstm.c - EncoderDecoderLSTM: one LSTM reads the past, another continues from its state over
 * the future, and a head computes the outputs. */
#include "rnn/forecast/forecast.h"

enum { MOST_HIDDEN = 9998 };                     /* with the output layer, the limit of weft_mlp_new */

typedef struct encoder_decoder {
    weft__model base;
    weft_rnn *encoder, *decoder;
    weft__projection projection;
    weft_linear *linear;                         /* the head; NULL if mlp is used */
    weft_mlp *mlp;                               /* the head; NULL if linear is used */
    int decoder_layers, encoder_layers;
} encoder_decoder;

/* Decoder layer k begins with the state of encoder layer k, or of the last one. */
static weft_tensor *resize_layers(weft_tensor *state, int from, int to)
{
    weft_tensor *parts[] = { state, to > from ?
                                        weft_tile(weft_slice(state, 0, from - 1, from), 0, to - from) :
                                        NULL };
    return to == from ? state : to < from ? weft_slice(state, 0, 0, to) : weft_concat(parts, 2, 0);
}

static weft_forecast run_model(void *model, const weft__input *t)
{
    encoder_decoder *m = model;
    weft_state encoder =
        weft__run_lstm(t, &t->past, m->encoder, weft__add_fixed(t, t->past.x), WEFT_ZERO_STATE).last;
    weft_state first = weft__project_state(&m->projection, encoder);
    first.h = resize_layers(first.h, m->encoder_layers, m->decoder_layers);
    first.c = resize_layers(first.c, m->encoder_layers, m->decoder_layers);
    weft_tensor *y = weft__run_lstm(t, &t->future, m->decoder, weft__add_fixed(t, t->future.x), first).y;
    return (weft_forecast){ m->mlp ? weft_mlp_run(m->mlp, y) : weft_linear_run(m->linear, y), encoder };
}

static void head_new(encoder_decoder *m, const weft_encoder_decoder_lstm_opts *o)
{
    weft *w = m->base.m->w;
    int layers = o->num_mlp_hidden + 1;
    if (!o->d_mlp_hidden) {
        m->linear = weft__model_linear(&m->base, "mlp_head", o->d_decoder, o->output_dim);
        return;
    }
    int64_t *widths = weft__take(w, WEFT__ARENA_CALLS, (layers + 1) * (int64_t)sizeof *widths);
    if (!widths)
        return;
    widths[0] = o->d_decoder;
    widths[layers] = o->output_dim;
    for (int i = 0; i < o->num_mlp_hidden; i++)
        widths[1 + i] = o->d_mlp_hidden[i];
    m->mlp = weft_mlp_new(weft_submodule_new(m->base.m, "mlp_head"), "mlp",
                          &(weft_mlp_opts){ layers, widths, o->mlp_activation, o->mlp_dropout });
}

weft_forecaster *weft_encoder_decoder_lstm_new(weft_module *parent, const char *name,
                                               const weft_encoder_decoder_lstm_opts *opts)
{
    static const char function[] = "encoder_decoder_lstm";
    weft_encoder_decoder_lstm_opts o = opts ? *opts : (weft_encoder_decoder_lstm_opts){ 0 };
    o.d_encoder = weft__or_count(o.d_encoder, 128);
    o.d_decoder = weft__or_count(o.d_decoder, 128);
    o.num_encoder_layers = (int)weft__or_count(o.num_encoder_layers, 2);
    o.num_decoder_layers = (int)weft__or_count(o.num_decoder_layers, 2);
    o.output_dim = weft__or_count(o.output_dim, 1);
    const int hidden = o.num_mlp_hidden;
    if (!WEFT__SIZES(parent, function, name, opts, { "d_encoder", o.d_encoder }, { "d_decoder", o.d_decoder },
                     { "num_encoder_layers", o.num_encoder_layers },
                     { "num_decoder_layers", o.num_decoder_layers }, { "output_dim", o.output_dim }) ||
        !weft__model_needs(parent, function,
                           hidden >= 0 && hidden <= MOST_HIDDEN && (!hidden || o.d_mlp_hidden),
                           "num_mlp_hidden %d%s; expected 0 .. %d, and their widths in d_mlp_hidden", hidden,
                           o.d_mlp_hidden ? "" : ", d_mlp_hidden is NULL", MOST_HIDDEN))
        return weft__model_finish(NULL);
    const weft__model base = { .run = run_model, .name = function, .compat = o.compat, .dropout = o.dropout,
                               .past = o.num_past_features, .future = o.num_future_features,
                               .fixed = o.num_static_features };
    encoder_decoder *m = weft__model_new(parent, name, sizeof *m, &base);
    if (!m)
        return weft__model_finish(NULL);
    m->encoder_layers = o.num_encoder_layers;
    m->decoder_layers = o.num_decoder_layers;
    m->encoder = weft__model_lstm(&m->base, "encoder", m->base.past + m->base.fixed, o.d_encoder,
                                  m->encoder_layers);
    m->decoder = weft__model_lstm(&m->base, "decoder", m->base.future + m->base.fixed, o.d_decoder,
                                  m->decoder_layers);
    m->projection = weft__projection_new(m->base.m, o.d_encoder, o.d_decoder);
    head_new(m, &o);
    return weft__model_finish(m);
}
