/* export.c - writes ONNX models, and for three batches their inputs and weft's outputs, for export.py.
 *
 *     export DIR
 *
 * The first batch is traced; the other two have other lengths and another number of sequences, with empty
 * ones. DIR/MODEL.BATCH has their records, see bench.h. Padding is NaN, so it must not matter. */
#include "bench.h"
#include "tiny.h"

/* ---- recurrent layers ---- */
static void run_states(bench *b, weft_rnn *r, int stacked, bool two, bool given)
{
    weft_tensor *x = ragged(b, "x", 0, 4);
    lengths_record(b, "lengths", 0);
    weft_state first = WEFT_ZERO_STATE;
    if (given)
        first.h = plain(b, "h", WEFT_SHAPE(stacked, 0, 6)),
        first.c = two ? plain(b, "c", WEFT_SHAPE(stacked, 0, 6)) : NULL;
    weft_rnn_out o = weft_rnn_run(r, x, first);
    out(b, "y", o.y), out(b, "last", o.last.h);
    if (two)
        out(b, "last_c", o.last.c);
}
static void elman(bench *b)
{
    run_states(b,
               LAYER(0, weft_elman_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .layers = 2))),
               2, false, true);
}
static void elman_relu(bench *b)
{
    run_states(b,
               LAYER(0, weft_elman_new(b->m, "r",
                                       OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true,
                                            .relu = true, .no_bias = true))),
               2, false, false);
}
static void gru(bench *b)
{
    run_states(b,
               LAYER(0, weft_gru_new(b->m, "r",
                                     OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true,
                                          .layers = 2))),
               4, false, true);
}
static void lstm(bench *b)
{
    run_states(b,
               LAYER(0, weft_lstm_new(b->m, "r",
                                      OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true,
                                           .layers = 2))),
               4, true, true);
}
static void lstm_zero(bench *b)
{
    run_states(b, LAYER(0, weft_lstm_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6))), 1, true,
               false);
}
static void cifg(bench *b)
{
    run_states(b, LAYER(0, weft_cifg_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6))), 1, true,
               true);
}
static void lstm_step(bench *b)
{
    weft_rnn *r =
        LAYER(0, weft_lstm_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .layers = 2)));
    weft_tensor *x = plain(b, "x", WEFT_SHAPE(0, 4));
    weft_state first = { plain(b, "h", WEFT_SHAPE(2, 0, 6)), plain(b, "c", WEFT_SHAPE(2, 0, 6)) };
    weft_rnn_out o = weft_rnn_step(r, x, first);
    out(b, "y", o.y), out(b, "last", o.last.h), out(b, "last_c", o.last.c);
}
static void gru_plain(bench *b) /* all steps of a plain tensor, whose number is dynamic */
{
    weft_rnn *r = LAYER(
        0, weft_gru_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true)));
    weft_rnn_out o = weft_rnn_run(r, plain(b, "x", WEFT_SHAPE(0, 9 + b->batch, 4)), WEFT_ZERO_STATE);
    out(b, "y", o.y), out(b, "final", weft_final_state(r, o.last));
}
static void padded(bench *b) /* packs, runs and pads on the right; unlisted inputs */
{
    weft_rnn *r = LAYER(0, weft_gru_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6)));
    const weft_lengths l = lengths_of(b, 0);
    static const int64_t longest[] = { 5, 4, 7 };
    weft_tensor *x = plain(b, "x", WEFT_SHAPE(0, longest[b->batch], 4));
    lengths_record(b, "lengths", 0);
    weft_tensor *y = weft_rnn_run(r, weft_pack_padded_sequence(x, &l, WEFT_ALIGN_LEFT), WEFT_ZERO_STATE).y;
    out(b, "left", weft_pad_packed_sequence(y, 0, -3, WEFT_ALIGN_LEFT));
    weft_tensor *right = weft_pad_packed_sequence(y, 0, 2, WEFT_ALIGN_RIGHT);
    out(b, "right", right);
    out(b, "again", weft_tanh(weft_pack_padded_sequence(right, &l, WEFT_ALIGN_RIGHT)));
}

/* ---- whole models ---- */
static void tiny(bench *b) /* the golden file of test_export.c */
{
    weft_tensor *x = ragged(b, "x", 0, TINY_IN);
    lengths_record(b, "lengths", 0);
    out(b, "p", tiny_run(b->m, x, (weft_rnn **)&b->layer[0], (weft_linear **)&b->layer[1]));
}
static void tagger(bench *b)
{
    weft_embedding *e =
        LAYER(0, weft_embedding_new(b->m, "embed",
                                    OPTS(weft_embedding_opts, .rows = 12, .columns = 4, .padding = 2)));
    weft_rnn *r = LAYER(
        1, weft_lstm_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true)));
    weft_linear *l = LAYER(2, weft_linear_new(b->m, "out", OPTS(weft_linear_opts, .in = 12, .out = 11)));
    weft_tensor *x = weft_embedding_run(e, ids(b, "ids", 0, 12));
    lengths_record(b, "lengths", 0);
    out(b, "y", weft_log_softmax(weft_linear_run(l, weft_rnn_run(r, x, WEFT_ZERO_STATE).y), -1, NULL));
}
static void classifier(bench *b) /* with few rows of the table, so the layer takes ids */
{
    weft_embedding *e =
        LAYER(0, weft_embedding_new(b->m, "embed", OPTS(weft_embedding_opts, .rows = 2, .columns = 4)));
    weft_rnn *r = LAYER(
        1, weft_gru_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true)));
    weft_norm_layer *norm =
        LAYER(2, weft_layer_norm_new(b->m, "norm", OPTS(weft_layer_norm_opts, .width = 12)));
    weft_linear *l = LAYER(3, weft_linear_new(b->m, "out", OPTS(weft_linear_opts, .in = 12, .out = 11)));
    weft_tensor *x = weft_embedding_run(e, ids(b, "ids", 0, 2));
    lengths_record(b, "lengths", 0);
    weft_tensor *last = weft_final_state(r, weft_rnn_run(r, x, WEFT_ZERO_STATE).last);
    out(b, "p", weft_softmax(weft_linear_run(l, weft_layer_norm_run(norm, last)), -1, NULL));
}
typedef struct g2p {
    weft_rnn *encoder, *decoder;
    weft_linear *bridge, *combine, *output;
    weft_embedding *letters, *phones;
    weft_attention_layer *look;
} g2p;
static g2p g2p_of(bench *b)
{
    return (g2p){
        .letters = LAYER(
            0, weft_embedding_new(b->m, "letters", OPTS(weft_embedding_opts, .rows = 26, .columns = 4))),
        .phones =
            LAYER(1, weft_embedding_new(b->m, "phones", OPTS(weft_embedding_opts, .rows = 11, .columns = 4))),
        .encoder = LAYER(2, weft_lstm_new(b->m, "encoder",
                                          OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .bidirectional = true,
                                               .layers = 2))),
        .decoder = LAYER(
            3, weft_lstm_new(b->m, "decoder", OPTS(weft_rnn_opts, .input = 4, .hidden = 6, .layers = 2))),
        .bridge = LAYER(4, weft_linear_new(b->m, "bridge", OPTS(weft_linear_opts, .in = 12, .out = 12))),
        .look = LAYER(
            5, weft_attention_new(b->m, "attention",
                                  OPTS(weft_attention_layer_opts, .kind = WEFT_GENERAL, .dq = 6, .dm = 12))),
        .combine = LAYER(6, weft_linear_new(b->m, "combine", OPTS(weft_linear_opts, .in = 18, .out = 6))),
        .output = LAYER(7, weft_linear_new(b->m, "output", OPTS(weft_linear_opts, .in = 6, .out = 11)))
    };
}
static weft_tensor *bridged(const g2p *k, weft_tensor *last)
{
    const int64_t n = weft_size(last, 1);
    weft_tensor *top = weft_transpose(weft_slice(last, 0, -2, weft_size(last, 0)), 0, 1);
    weft_tensor *y = weft_tanh(weft_linear_run(k->bridge, weft_reshape(top, WEFT_SHAPE(n, 12))));
    return weft_transpose(weft_reshape(y, WEFT_SHAPE(n, 2, 6)), 0, 1);
}
static weft_tensor *scores(const g2p *k, weft_tensor *y, weft_tensor *seen)
{
    return weft_linear_run(k->output,
                           weft_tanh(weft_linear_run(k->combine, weft_concat(WEFT_LIST(y, seen), 1))));
}
static void g2p_encoder(bench *b)
{
    const g2p k = g2p_of(b);
    weft_rnn_out o =
        weft_rnn_run(k.encoder, weft_embedding_run(k.letters, ids(b, "letters", 0, 26)), WEFT_ZERO_STATE);
    lengths_record(b, "lengths", 0);
    weft_attention_memory memory = weft_attention_project(k.look, o.y);
    out(b, "keys", memory.keys), out(b, "values", memory.values);
    out(b, "h", bridged(&k, o.last.h)), out(b, "c", bridged(&k, o.last.c));
}
static void g2p_step(bench *b)
{
    const g2p k = g2p_of(b);
    const int64_t n = batches[b->batch].n;
    const int32_t before[ROWS] = { 3, 1, 4, 1, 5, 9, 2 };
    weft_tensor *token = listed(b, "token", weft_ints(b->w, before, 1, &n), 0);
    record(b, "in", "token", 'i', 1, &n, before, (size_t)n * 4);
    weft_state s = { plain(b, "h", WEFT_SHAPE(2, 0, 6)), plain(b, "c", WEFT_SHAPE(2, 0, 6)) };
    weft_attention_memory memory = { ragged(b, "keys", 0, 6), ragged(b, "values", 0, 12) };
    lengths_record(b, "lengths", 0);
    weft_rnn_out o = weft_rnn_step(k.decoder, weft_embedding_run(k.phones, token), s);
    weft_tensor *seen = weft_attention_query(k.look, o.y, memory, WEFT_ALL_KEYS, NULL);
    out(b, "logits", scores(&k, o.y, seen)), out(b, "h1", o.last.h), out(b, "c1", o.last.c);
}
static void g2p_whole(bench *b)
{
    const g2p k = g2p_of(b);
    weft_rnn_out o =
        weft_rnn_run(k.encoder, weft_embedding_run(k.letters, ids(b, "letters", 0, 26)), WEFT_ZERO_STATE);
    weft_state first = { bridged(&k, o.last.h), bridged(&k, o.last.c) };
    weft_tensor *x = weft_embedding_run(k.phones, ids(b, "phones", 1, 11));
    weft_tensor *y = weft_rnn_run(k.decoder, x, first).y;
    lengths_record(b, "lengths", 0), lengths_record(b, "lengths2", 1);
    out(b, "logits", scores(&k, y, weft_attention_run(k.look, y, o.y, WEFT_ALL_KEYS, NULL)));
}

/* ---- attention ---- */
static void self_attention(bench *b)
{
    weft_attention_layer *a =
        LAYER(0, weft_attention_new(b->m, "a", OPTS(weft_attention_layer_opts, .width = 8, .heads = 2)));
    weft_tensor *x = ragged(b, "x", 0, 8);
    static const char *const name[] = { "all", "top_left", "bottom_right", "strict" };
    lengths_record(b, "lengths", 0);
    for (int k = 0; k < 4; k++)
        out(b, name[k], weft_attention_run(a, x, x, (weft_causal)k, NULL));
}
static void cross_attention(bench *b)
{
    weft_attention_layer *a =
        LAYER(0, weft_attention_new(b->m, "a", OPTS(weft_attention_layer_opts, .width = 8, .heads = 2)));
    weft_tensor *x = ragged(b, "x", 0, 8), *y = ragged(b, "y", 1, 8);
    static const char *const name[] = { "all", "top_left", "bottom_right", "strict" };
    lengths_record(b, "lengths", 0), lengths_record(b, "lengths2", 1);
    for (int k = 0; k < 4; k++)
        out(b, name[k], weft_attention_run(a, x, y, (weft_causal)k, NULL));
}
static void additive(bench *b)
{
    weft_attention_layer *a =
        LAYER(0, weft_attention_new(
                     b->m, "a",
                     OPTS(weft_attention_layer_opts, .kind = WEFT_ADDITIVE, .dq = 4, .dm = 8, .width = 6)));
    weft_tensor *x = ragged(b, "x", 0, 4), *y = ragged(b, "y", 1, 8);
    lengths_record(b, "lengths", 0), lengths_record(b, "lengths2", 1);
    out(b, "seen", weft_attention_run(a, x, y, WEFT_ALL_KEYS, NULL));
}
static void sequences(bench *b) /* joined, and split again */
{
    weft_tensor *x = ragged(b, "x", 0, 4), *y = ragged(b, "y", 1, 4), *parts[2];
    const weft_lengths l = lengths_of(b, 0);
    lengths_record(b, "lengths", 0), lengths_record(b, "lengths2", 1);
    weft_tensor *both = weft_tanh(weft_concat_sequences(x, y));
    weft_split_sequences(both, &l, &parts[0], &parts[1]);
    out(b, "both", both), out(b, "first", weft_exp(parts[0])), out(b, "second", weft_sub(parts[1], y));
    out(b, "sums", weft_pool(both, WEFT_POOL_SUM)), out(b, "sum", weft_cumsum(both, 0));
}

static void unlisted(bench *b) /* names and axes that the exporter finds */
{
    weft_embedding *e =
        LAYER(0, weft_embedding_new(b->m, "embed", OPTS(weft_embedding_opts, .rows = 12, .columns = 4)));
    weft_rnn *r = LAYER(1, weft_lstm_new(b->m, "r", OPTS(weft_rnn_opts, .input = 4, .hidden = 6)));
    const weft_lengths l = lengths_of(b, 0);
    static const int64_t longest[] = { 5, 4, 7 };
    const int64_t size[] = { l.n, longest[b->batch] };
    int32_t token[ROWS * MOST];
    for (int i = 0; i < ROWS * MOST; i++)
        token[i] = (int32_t)(6 * draw(b) + 6);
    b->unlisted = true;
    record(b, "in", "input0", 'i', 2, size, token, (size_t)(size[0] * size[1]) * 4);
    weft_tensor *x = weft_pack_padded_sequence(weft_embedding_run(e, weft_ints(b->w, token, 2, size)), &l,
                                               WEFT_ALIGN_LEFT);
    weft_state first = { plain(b, "input1", WEFT_SHAPE(1, 0, 6)), plain(b, "input2", WEFT_SHAPE(1, 0, 6)) };
    weft_tensor *y = weft_rnn_run(r, x, first).y;
    lengths_record(b, "lengths", 0);
    out(b, "output0", weft_add(y, weft_broadcast_to_tokens(plain(b, "input3", WEFT_SHAPE(0, 6)), y)));
}

/* ---- operators ---- */
static void pools(bench *b)
{
    static const char *const name[] = { "sum", "mean", "max", "first", "last" };
    static const weft_pooling how[] = { WEFT_POOL_SUM, WEFT_POOL_MEAN, WEFT_POOL_MAX, WEFT_POOL_FIRST,
                                        WEFT_POOL_LAST };
    weft_tensor *x = ragged(b, "x", 0, 4);
    lengths_record(b, "lengths", 0);
    for (int k = 0; k < 5; k++)
        out(b, name[k], weft_pool(x, how[k]));
    out(b, "softmax", weft_softmax(x, 0, NULL)),
        out(b, "logsumexp", weft_logsumexp(weft_scale(x, 3), -1, NULL));
    out(b, "cumsum", weft_cumsum(x, 0)), out(b, "flip", weft_flip(x, 0));
    out(b, "mean_all", weft_mean_all(x)), out(b, "sum_all", weft_sum_all(x));
    out(b, "per_token", weft_mul(x, weft_broadcast_to_tokens(plain(b, "p", WEFT_SHAPE(0, 4)), x)));
}
static void pointwise(bench *b)
{
    weft_tensor *x = ragged(b, "x", 0, 4), *p = weft_add(weft_square(x), weft_scalar(b->w, .1)), *y[20];
    int n = 0;
    lengths_record(b, "lengths", 0);
    y[n++] = weft_neg(x), y[n++] = weft_exp(x), y[n++] = weft_log(p), y[n++] = weft_sqrt(p),
    y[n++] = weft_rsqrt(p);
    y[n++] = weft_abs(x), y[n++] = weft_reciprocal(x), y[n++] = weft_sin(x), y[n++] = weft_cos(x);
    y[n++] = weft_relu(x), y[n++] = weft_leaky_relu(x, .1), y[n++] = weft_elu(x, .7), y[n++] = weft_gelu(x);
    y[n++] = weft_silu(x), y[n++] = weft_softplus(x), y[n++] = weft_clamp(x, -.2, .3),
    y[n++] = weft_pow(p, 1.5);
    y[n++] = weft_minimum(x, p), y[n++] = weft_maximum(weft_div(x, p), p), y[n++] = weft_sigmoid(x);
    out(b, "all", weft_concat(y, n, 1)), out(b, "stack", weft_stack(y, n, 1));
}
static void choices(bench *b)
{
    weft_tensor *x = ragged(b, "x", 0, 4), *value, *index;
    lengths_record(b, "lengths", 0);
    weft_tensor *most = weft_argmax(x, 1), *zero = weft_scalar(b->w, 0);
    weft_topk(x, 2, 1, &value, &index);
    out(b, "argmax", most), out(b, "argmin", weft_argmin(x, 1)), out(b, "values", value),
        out(b, "indices", index);
    out(b, "gather", weft_gather(x, most)), out(b, "one_hot", weft_one_hot(most, 4));
    out(b, "where", weft_where(weft_less(x, zero), x, weft_scale(x, 2))), out(b, "min", weft_min(x, 1));
    out(b, "compare", weft_add(weft_not_equal(x, zero), weft_greater_equal(x, zero)));
    out(b, "real", weft_to_reals(weft_to_ints(weft_scale(x, 5)))), out(b, "equal", weft_equal(most, most));
    out(b, "std", weft_std(x, 1, 1)), out(b, "var", weft_var(x, 1, 0)), out(b, "max", weft_max(x, 1));
}
static void shapes(bench *b) /* a plain model with its own batch axis */
{
    weft_tensor *x = plain(b, "x", WEFT_SHAPE(0, 4, 6)),
                *g =
                    LAYER(0, weft_parameter(b->m, "g", WEFT_SHAPE(6), (weft_init){ WEFT_INIT_NORMAL, 0, 1 }));
    const int64_t n = weft_size(x, 0);
    weft_tensor *t = weft_permute(x, (int[]){ 2, 0, 1 });
    out(b, "permuted", t), out(b, "mean", weft_mean(t, 1)), out(b, "flipped", weft_flip(x, 1));
    out(b, "reshaped", weft_tanh(weft_reshape(x, WEFT_SHAPE(n, 2, 12)))),
        out(b, "merged", weft_mul(weft_reshape(x, WEFT_SHAPE(n * 4, 6)), g));
    out(b, "product", weft_matmul_with(x, true, x, false)), out(b, "tiled", weft_tile(x, 1, 3));
    out(b, "times", weft_repeat_interleave(x, 2, 2)), out(b, "slice", weft_slice(x, 2, 1, 4)),
        out(b, "all", weft_mean_all(x));
}
static void losses(bench *b)
{
    weft_tensor *x = ragged(b, "x", 0, 4), *y = ragged(b, "y", 0, 4);
    lengths_record(b, "lengths", 0);
    out(b, "loss", weft_mean_all(weft_square(weft_sub(x, y))));
}

/* ---- forecasters ---- */
static void forecast(bench *b, weft_forecaster *f, bool with_fixed)
{
    weft_series_batch s = { .past = ragged(b, "past", 0, 4), .future = ragged(b, "future", 1, 6) };
    s.fixed = with_fixed ? plain(b, "fixed", WEFT_SHAPE(0, 2)) : NULL;
    lengths_record(b, "lengths", 0), lengths_record(b, "lengths2", 1);
    weft_forecast o = weft_forecast_run(f, &s, NULL);
    out(b, "y", o.y), out(b, "h", o.encoder.h);
}
#define WIDTHS .num_past_features = 4, .num_future_features = 6, .num_static_features = 2
static void encoder_decoder(bench *b)
{
    forecast(
        b,
        LAYER(0, weft_encoder_decoder_lstm_new(b->m, "f",
                                               OPTS(weft_encoder_decoder_lstm_opts, WIDTHS, .d_encoder = 8,
                                                    .d_decoder = 6, .num_decoder_layers = 3))),
        true);
}
static void attention_lstm(bench *b)
{
    forecast(
        b, LAYER(0, weft_attention_lstm_new(b->m, "f", OPTS(weft_attention_lstm_opts, WIDTHS, .d_model = 8))),
        true);
}
static void transformer_lstm(bench *b)
{
    forecast(b,
             LAYER(0, weft_transformer_lstm_new(b->m, "f",
                                                OPTS(weft_transformer_lstm_opts, WIDTHS, .d_model = 8))),
             true);
}
static void tft_of(bench *b, weft_tft_variant v)
{
    forecast(b, LAYER(0, weft_tft_new(b->m, "f", OPTS(weft_tft_opts, WIDTHS, .d_model = 8, .variant = v))),
             v != WEFT_XTFT);
}
static void tft(bench *b) { tft_of(b, WEFT_TFT); }
static void pf_tft(bench *b) { tft_of(b, WEFT_PF_TFT); }
static void xtft(bench *b) { tft_of(b, WEFT_XTFT); }

static const struct {
    const char *name;
    void (*run)(bench *);
} models[] = {
#define MODEL(name) \
    {               \
#name, name \
    }
    MODEL(tiny),
    MODEL(elman),
    MODEL(elman_relu),
    MODEL(gru),
    MODEL(lstm),
    MODEL(lstm_zero),
    MODEL(cifg),
    MODEL(lstm_step),
    MODEL(gru_plain),
    MODEL(padded),
    MODEL(tagger),
    MODEL(classifier),
    MODEL(g2p_encoder),
    MODEL(g2p_step),
    MODEL(g2p_whole),
    MODEL(self_attention),
    MODEL(cross_attention),
    MODEL(additive),
    MODEL(unlisted),
    MODEL(sequences),
    MODEL(pools),
    MODEL(pointwise),
    MODEL(choices),
    MODEL(shapes),
    MODEL(losses),
    MODEL(encoder_decoder),
    MODEL(attention_lstm),
    MODEL(transformer_lstm),
    MODEL(tft),
    MODEL(pf_tft),
    MODEL(xtft)
};

/* Exports the model after its first batch. Returns 1 after an error. */
static int write_model(bench *b, const char *name, void (*run)(bench *))
{
    char path[512];
    int failed = 0;
    b->w = weft_open(OPTS(weft_opts, .device = WEFT_CPU, .seed = 7));
    b->m = weft_module_new(b->w, "net");
    for (b->batch = 0; b->batch < BATCHES; b->batch++) {
        snprintf(path, sizeof path, "%s/%s.%d", b->dir, name, b->batch);
        if (!(b->file = fopen(path, "wb")))
            return 1;
        b->inputs = b->outputs = 0;
        b->seed = (uint64_t)b->batch + 1;
        WEFT_EVAL(b->w) run(b);
        fclose(b->file);
        snprintf(path, sizeof path, "%s/%s.onnx", b->dir, name);
        const weft_onnx_export_opts opts = { b->input, b->unlisted ? 0 : b->inputs,
                                             b->unlisted ? NULL : b->name };
        if (b->batch == 0 && weft_export_onnx(path, b->output, b->outputs, &opts)) {
            printf("%s: %s\n", name, weft_file_message());
            failed = 1;
        }
        if (!weft_ok(b->w))
            printf("%s: %s\n", name, weft_error_message(b->w)), failed = 1;
        weft_clear(b->w);
    }
    weft_close(b->w);
    return failed;
}

int main(int n, char **arg)
{
    int failed = 0;
    for (size_t i = 0; n > 1 && i < sizeof models / sizeof *models; i++)
        if (n < 3 || !strcmp(arg[2], models[i].name)) {
            bench b = { .dir = arg[1] };
            failed += write_model(&b, models[i].name, models[i].run);
        }
    return failed > 0;
}
