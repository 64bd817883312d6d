/* hunt_layers.c - defines the table of layers, with the interface of hunt_operators.c. */
#include "weft_forecast.h"
#include "weft_op.h"
#include "weft_sequence.h"
#include "hunt.h"
#include "rnn/forecast/blocks/blocks.h"

static int64_t size(hunt_scene *s)
{
    return 1 + hunt_below(s, s->p->large ? (hunt_one_in(s, 6) ? 150 : 50) : 7);
}
static weft_real drop(hunt_scene *s, weft_real p) { return hunt_one_in(s, 3) ? p : 0; }

static weft_tensor *linear(hunt_scene *s)
{
    int64_t out = size(s), in = hunt_width(s->x);
    hunt_note(s, "(%d)", (int)out);
    return weft_linear_run(
        hunt_one_in(s, 3) ?
            weft_linear_new(s->m, s->name, &(weft_linear_opts){ .in = in, .out = out, .no_bias = true }) :
            weft_linear_new(s->m, s->name, &(weft_linear_opts){ .in = in, .out = out }),
        s->x);
}

static weft_tensor *normed(hunt_scene *s)
{
    return weft_layer_norm_run(
        weft_layer_norm_new(s->m, s->name, &(weft_layer_norm_opts){ .width = hunt_width(s->x) }), s->x);
}

static weft_tensor *mlp(hunt_scene *s)
{
    int64_t width[] = { hunt_width(s->x), size(s), size(s) };
    return weft_mlp_run(
        weft_mlp_new(s->m, s->name,
                     &(weft_mlp_opts){ 2, width, (weft_activation)hunt_below(s, 8), drop(s, (weft_real).2) }),
        s->x);
}

/* ---- recurrent ---- */
enum { OWN = 6 };                                /* kind: a program's cell */
static weft_state own_step(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ weft_add(in->x, weft_mul(in->h, in->own[0])), NULL };
}

/* Only adds, so that zeros keep both signs. */
static weft_rnn *own_rnn(weft_module *m, const char *name, const weft_rnn_opts *o)
{
    const weft_cell_parameter v = { "v", WEFT_CELL_VECTOR, 1, NULL };
    const weft_cell cell = {
        .name = "own", .gates = 1, .gates_h = -1, .states = 1, .own = &v, .own_count = 1, .step = own_step
    };
    return weft_rnn_of_cell(m, name, &cell, o);
}

static weft_rnn *any_rnn(hunt_scene *s, int64_t input, weft_rnn_opts *o, int *kind)
{
    int64_t hidden = size(s);
    *kind = (int)hunt_below(s, OWN + 1);
    *o = (weft_rnn_opts){ .input = input,
                          .hidden = hidden,
                          .layers = 1 + (int)hunt_below(s, 2),
                          .bidirectional = hunt_one_in(s, 2),
                          .no_bias = hunt_one_in(s, 4) && *kind != OWN,
                          .dropout = drop(s, (weft_real).3),
                          .relu = *kind == 3 && hunt_one_in(s, 2),
                          .lean = hunt_one_in(s, 4) && *kind != OWN };
    if ((*kind == 0 || *kind == 4) && hidden > 1 && (*kind == 0 || hunt_one_in(s, 2)))
        o->proj = 1 + hunt_below(s, hidden - 1);
    hunt_note(s, "(%s %d -> %d, %d layers%s%s%s",
              (const char *[]){ "lstm", "lstm", "gru", "rnn", "cifg", "mgu", "own" }[*kind], (int)input,
              (int)hidden,
              o->layers, o->bidirectional ? ", two ways" : "", o->proj ? ", projected" : "",
              o->no_bias ? ", unbiased" : "");
    return (weft_rnn * (*[])(weft_module *, const char *, const weft_rnn_opts *)){
        weft_lstm_new, weft_lstm_new, weft_gru_new, weft_elman_new, weft_cifg_new, weft_mgu_new, own_rnn
    }[*kind](s->m, s->name, o);
}

/* Returns [slabs, n, width] from the input's states. It does not use weft_tile, whose gradient sums a plain
 * tensor along an axis: the order of that sum depends on the extents. */
static weft_tensor *slabs_of(hunt_scene *s, const char *part, int64_t width, int slabs)
{
    weft_tensor *one = weft_reshape(hunt_as_wide(s, s->state, width, part), 3,
                                    (int64_t[]){ 1, weft_size(s->state, 0), width });
    return weft_concat((weft_tensor *[]){ one, one, one, one }, slabs, 0);
}
static weft_state any_state(hunt_scene *s, const weft_rnn_opts *o, int kind)
{
    int slabs = o->layers * (o->bidirectional ? 2 : 1);
    weft_tensor *h = slabs_of(s, "h", o->proj ? o->proj : o->hidden, slabs);
    return (weft_state){ h, kind < 2 || kind == 4 ? slabs_of(s, "c", o->hidden, slabs) : NULL };
}

static weft_tensor *recurrent_of(hunt_scene *s, weft_tensor *x)
{
    weft_rnn_opts o;
    int kind;
    weft_rnn *r = any_rnn(s, hunt_width(x), &o, &kind);
    bool with_state = hunt_one_in(s, 2), composed = kind != OWN && !s->p->large && hunt_one_in(s, 5),
         last = hunt_one_in(s, 3);
    hunt_note(s, "%s%s%s)", with_state ? ", state" : "", composed ? ", composed" : "", last ? ", last" : "");
    if (composed)
        weft_rnn_set_composed(r, true);
    weft_rnn_out out = weft_rnn_run(r, x, with_state ? any_state(s, &o, kind) : WEFT_ZERO_STATE);
    if (last)
        hunt_count(s, out.last.c && hunt_one_in(s, 2) ? out.last.c : out.last.h);
    return out.y;
}
static weft_tensor *recurrent(hunt_scene *s) { return recurrent_of(s, s->x); }

static weft_tensor *linear_recurrent(hunt_scene *s)
{
    weft_linear_rnn_opts o = { .kind = (weft_linear_rnn_kind)hunt_below(s, 4),
                               .input = hunt_width(s->x),
                               .hidden = size(s),
                               .layers = 1 + (int)hunt_below(s, 2),
                               .bidirectional = hunt_one_in(s, 2),
                               .no_bias = hunt_one_in(s, 4),
                               .dropout = drop(s, (weft_real).3) };
    o.window = o.kind == WEFT_QRNN ? 1 + (int)hunt_below(s, 3) : 0;
    hunt_note(s, "(%d, %d -> %d, %d layers%s, window %d)", (int)o.kind, (int)o.input, (int)o.hidden, o.layers,
              o.bidirectional ? ", two ways" : "", o.window);
    const int slabs = o.layers * (1 + o.bidirectional);
    const int64_t inner = o.layers > 1 ? o.hidden * (1 + o.bidirectional) : 0,
                  past = o.window ? (o.window - 1) * (o.input > inner ? o.input : inner) : 0;
    weft_state first = WEFT_ZERO_STATE;
    if (hunt_one_in(s, 2)) {
        first.h = slabs_of(s, "h", o.hidden, slabs);
        first.c = o.window ? slabs_of(s, "c", o.hidden + past, slabs) : NULL;
    }
    weft_rnn_out out = weft_rnn_run(weft_linear_rnn_new(s->m, s->name, &o), s->x, first);
    if (hunt_one_in(s, 3))
        hunt_count(s, out.last.c ? out.last.c : out.last.h);
    return out.y;
}

static weft_tensor *of_letters(hunt_scene *s)    /* of an embedding, with or without a projected table */
{
    weft_lengths l = weft_lengths_of(s->x);
    int32_t ids[HUNT_SEQUENCES * 64];
    int n = 0;
    for (int64_t q = 0; q < l.n; q++)
        for (int t = 0; t < l.len[q]; t++)
            ids[n++] = (int32_t)(hunt_hash((uint64_t)l.id[q], (uint64_t)t) % 6) - 1;
    weft_tensor *e = weft_embedding_run(
        weft_embedding_new(s->m, hunt_name(s, "e"), &(weft_embedding_opts){ .rows = 5, .columns = 3 }),
        weft_to_layout(weft_ragged_ints(s->w, ids, &l), WEFT_PACKED));
    weft_tensor *y = recurrent_of(s, hunt_one_in(s, 2) ? e : weft_to_layout(e, WEFT_CONCAT));
    return weft_mul(weft_sigmoid(hunt_as_wide(s, s->x, hunt_width(y), "g")), y);
}

/* ---- attention ---- */
static weft_tensor *additive(hunt_scene *s)
{
    return weft_attention_run(
        weft_attention_new(s->m, s->name,
                           &(weft_attention_layer_opts){ .kind = WEFT_ADDITIVE,
                                                         .dq = hunt_width(s->x),
                                                         .dm = hunt_width(s->other),
                                                         .width = 1 + hunt_below(s, 9) }),
        s->x, s->other, WEFT_ALL_KEYS, NULL);
}
static weft_tensor *general(hunt_scene *s)
{
    return weft_attention_run(weft_attention_new(s->m, s->name,
                                                 &(weft_attention_layer_opts){ .kind = WEFT_GENERAL,
                                                                               .dq = hunt_width(s->x),
                                                                               .dm = hunt_width(s->other) }),
                              s->x, s->other, WEFT_ALL_KEYS, NULL);
}

static weft_tensor *multihead(hunt_scene *s)
{
    int heads = 1 + (int)hunt_below(s, 2);
    int64_t d = heads * (1 + hunt_below(s, s->p->large ? 30 : 5));
    weft_tensor *q = hunt_as_wide(s, s->x, d, "q"), *memory = hunt_as_wide(s, s->other, d, "m");
    return weft_attention_run(weft_attention_new(s->m, s->name,
                                                 &(weft_attention_layer_opts){
                                                     .kind = WEFT_MULTIHEAD, .width = d, .heads = heads }),
                              q, hunt_one_in(s, 2) ? q : memory, (weft_causal)hunt_below(s, 4), NULL);
}

static weft_tensor *interpretable(hunt_scene *s)
{
    int64_t d = 2 + hunt_below(s, 9);
    weft_tensor *q = hunt_as_wide(s, s->x, d, "q"),
                *memory = hunt_one_in(s, 2) ? q : hunt_as_wide(s, s->other, d, "m"), *map;
    bool counts = hunt_one_in(s, 4);
    int heads = 1 + (int)hunt_below(s, d > 3 ? 3 : 1);
    weft__interpretable *a = weft__interpretable_new(s->m, s->name, d, heads, drop(s, (weft_real).1));
    weft_causal causal = (weft_causal)hunt_below(s, 4);
    weft_tensor *y = weft__interpretable_run(a, q, memory, causal, counts ? &map : NULL);
    if (counts)
        hunt_count(s, map);
    return y;
}

/* ---- blocks ---- */
static weft_tensor *grn(hunt_scene *s)
{
    weft__grn_opts o = { .in = hunt_width(s->x), .dropout = .1 };
    o.out = size(s);
    o.hidden = hunt_one_in(s, 2) ? 0 : size(s);
    o.interpolate = hunt_one_in(s, 2);
    o.context = hunt_one_in(s, 2) ? HUNT_STATE : 0;
    return weft__grn_run(weft__grn_new(s->m, s->name, &o), s->x, o.context ? s->state : NULL);
}

static weft_tensor *gated(hunt_scene *s)
{
    int64_t out = size(s);
    weft_tensor *skip = hunt_as_wide(s, s->other, out, "k");
    double dropout = drop(s, (weft_real).1);
    weft__gate_add_norm *g =
        weft__gate_add_norm_new(s->m, s->name, hunt_width(s->x), out, dropout, hunt_one_in(s, 2));
    return weft__gate_add_norm_run(g, s->x, skip);
}

static weft_tensor *selection(hunt_scene *s)
{
    weft_tensor *weights, *x = hunt_as_wide(s, s->x, 1 + hunt_below(s, 5), "x");
    weft__selection_opts o = { .features = hunt_width(x), .d_hidden = 8, .dropout = .1 };
    o.d_model = size(s);
    o.context = hunt_one_in(s, 2) ? HUNT_STATE : 0;
    weft_tensor *y = weft__selection_run(weft__selection_new(s->m, s->name, &o), x,
                                         o.context ? s->state : NULL, &weights);
    if (hunt_one_in(s, 3))
        hunt_count(s, weights);
    return y;
}

/* ---- models, with different values for past and future ---- */
static weft_forecaster *any_model(hunt_scene *s, int64_t past, int64_t future, int64_t fixed)
{
    int64_t d = 2 + 2 * hunt_below(s, s->p->large ? 20 : 4);
    switch (hunt_below(s, 3)) {
    case 0: {
        weft_encoder_decoder_lstm_opts o = { .dropout = .1, .mlp_dropout = .1 };
        o.num_past_features = past, o.num_future_features = future, o.num_static_features = fixed,
        o.d_encoder = d, o.d_decoder = size(s), o.output_dim = 2;
        return weft_encoder_decoder_lstm_new(s->m, s->name, &o);
    }
    case 1: {
        weft_attention_lstm_opts o = { .dropout = .1 };
        o.num_past_features = past, o.num_future_features = future, o.num_static_features = fixed,
        o.d_model = d, o.num_heads = 2, o.num_layers = 1;
        o.no_gating = !hunt_one_in(s, 2), o.trainable_add = hunt_one_in(s, 2),
        o.full_attention = !hunt_one_in(s, 2), o.output_dim = 2;
        return weft_attention_lstm_new(s->m, s->name, &o);
    }
    default: {
        weft_transformer_lstm_opts o = { .dropout = .1 };
        o.num_past_features = past, o.num_future_features = future, o.num_static_features = fixed,
        o.d_model = d, o.num_heads = 2, o.num_layers = 1;
        o.num_transformer_blocks = 1, o.full_attention = !hunt_one_in(s, 2),
        o.share_lstm_weights = hunt_one_in(s, 2), o.output_dim = 2;
        return weft_transformer_lstm_new(s->m, s->name, &o);
    }
    }
}
static weft_tensor *forecast(hunt_scene *s)
{
    bool fixed = hunt_one_in(s, 2);
    weft_series_batch series = { .past = s->other, .future = s->x, .fixed = fixed ? s->state : NULL };
    return weft_forecast_run(any_model(s, hunt_width(s->other), hunt_width(s->x), fixed ? HUNT_STATE : 0),
                             &series, NULL)
        .y;
}

const hunt_operator hunt_layers[] = { { "linear", linear },
                                      { "norm", normed },
                                      { "mlp", mlp },
                                      { "rnn", recurrent },
                                      { "rnn", recurrent },
                                      { "rnn", recurrent },
                                      { "linear_rnn", linear_recurrent },
                                      { "letters", of_letters },
                                      { "additive", additive },
                                      { "general", general },
                                      { "multihead", multihead },
                                      { "interpretable", interpretable },
                                      { "grn", grn },
                                      { "gate_add_norm", gated },
                                      { "variable_selection", selection },
                                      { "forecast", forecast },
                                      { 0 } };
