/* export.c - writes ONNX models, and for four batches their inputs and weft's outputs, for export.py.
 *
 *     export DIR [MODEL]
 *
 * The first batch is traced; the others have other lengths and another number of sequences, with empty
 * ones. DIR/MODEL.BATCH has their records, see bench.h. Padding is NaN, so it must not matter. */
#include "bench.h"
#include "tiny.h"

/* Layer i of a model, made with the first batch. */
#define RNN(i, kind, name, ...) \
    LAYER(i, weft_##kind##_new(b->m, name, OPTS(weft_rnn_opts, .input = 4, .hidden = 6, __VA_ARGS__)))
#define EMBEDDING(i, name, ...) \
    LAYER(i, weft_embedding_new(b->m, name, OPTS(weft_embedding_opts, .columns = 4, __VA_ARGS__)))
#define LINEAR(i, name, from, to) \
    LAYER(i, weft_linear_new(b->m, name, OPTS(weft_linear_opts, .in = from, .out = to)))
#define ATTENTION(i, name, ...) \
    LAYER(i, weft_attention_new(b->m, name, OPTS(weft_attention_layer_opts, __VA_ARGS__)))
#define PARAMETER(i, name, ...) \
    LAYER(i, weft_parameter(b->m, name, WEFT_SHAPE(__VA_ARGS__), (weft_init){ WEFT_INIT_NORMAL, 0, 1 }))

/* ---- recurrent layers ---- */
enum { ELMAN, ELMAN_RELU, GRU, LSTM, LSTM_ZERO, CIFG };
static weft_state first_state(bench *b, int stacked, bool two)
{
    weft_tensor *h = plain(b, "h", WEFT_SHAPE(stacked, 0, 6));
    return (weft_state){ h, two ? plain(b, "c", WEFT_SHAPE(stacked, 0, 6)) : NULL };
}
static void recurrent(bench *b)
{
    const int k = b->variant, stacked[] = { [ELMAN] = 2, [GRU] = 4, [LSTM] = 4, [CIFG] = 1 };
    const bool two = k >= LSTM;
    weft_rnn *r = k == ELMAN      ? RNN(0, elman, "r", .layers = 2) :
                  k == ELMAN_RELU ? RNN(0, elman, "r", .bidirectional = true, .relu = true, .no_bias = true) :
                  k == GRU        ? RNN(0, gru, "r", .bidirectional = true, .layers = 2) :
                  k == LSTM       ? RNN(0, lstm, "r", .bidirectional = true, .layers = 2) :
                  k == LSTM_ZERO  ? RNN(0, lstm, "r", .layers = 1) :
                                    RNN(0, cifg, "r", .layers = 1);
    weft_tensor *x = ragged(b, "x", 0, 4);
    weft_rnn_out o = weft_rnn_run(r, x, stacked[k] ? first_state(b, stacked[k], two) : WEFT_ZERO_STATE);
    out(b, "y", o.y), out(b, "last", o.last.h);
    if (two)
        out(b, "last_c", o.last.c);
}
static void gru_plain(bench *b) /* all steps of a plain tensor, whose number is dynamic */
{
    weft_rnn *r = RNN(0, gru, "r", .bidirectional = true);
    weft_rnn_out o = weft_rnn_run(r, plain(b, "x", WEFT_SHAPE(0, 9 + b->batch, 4)), WEFT_ZERO_STATE);
    out(b, "y", o.y), out(b, "final", weft_final_state(r, o.last));
}
static void padded(bench *b) /* packs, runs and pads on the right; unlisted inputs */
{
    weft_rnn *r = RNN(0, gru, "r", .layers = 1);
    const weft_lengths l = lengths_of(b, 0);
    weft_tensor *x = plain(b, "x", WEFT_SHAPE(0, longest[b->batch], 4));
    weft_tensor *y = weft_rnn_run(r, weft_pack_padded_sequence(x, &l, WEFT_ALIGN_LEFT), WEFT_ZERO_STATE).y;
    lengths_record(b, 0);
    out(b, "left", weft_pad_packed_sequence(y, 0, -3, WEFT_ALIGN_LEFT));
    weft_tensor *right = weft_pad_packed_sequence(y, 0, 2, WEFT_ALIGN_RIGHT);
    out(b, "right", right);
    out(b, "again", weft_tanh(weft_pack_padded_sequence(right, &l, WEFT_ALIGN_RIGHT)));
}
static void unlisted(bench *b) /* names and axes that the exporter finds */
{
    weft_embedding *e = EMBEDDING(0, "embed", .rows = 12);
    weft_rnn *r = RNN(1, lstm, "r", .layers = 1);
    const weft_lengths l = lengths_of(b, 0);
    const int64_t size[] = { l.n, longest[b->batch] };
    int32_t token[ROWS * MOST];
    for (int i = 0; i < ROWS * MOST; i++)
        token[i] = (int32_t)(6 * draw(b) + 6);
    b->unlisted = true;
    record(b, "in", "input0", 'i', 2, size, token);
    lengths_record(b, 0);
    weft_tensor *x = weft_embedding_run(e, weft_ints(b->w, token, 2, size));
    weft_state first = { plain(b, "input1", WEFT_SHAPE(1, 0, 6)), plain(b, "input2", WEFT_SHAPE(1, 0, 6)) };
    weft_tensor *y = weft_rnn_run(r, weft_pack_padded_sequence(x, &l, WEFT_ALIGN_LEFT), first).y;
    out(b, "output0", weft_add(y, weft_broadcast_to_tokens(plain(b, "input3", WEFT_SHAPE(0, 6)), y)));
}

/* ---- whole models ---- */
static void tiny(bench *b) /* the golden file of test_export.c */
{
    weft_tensor *x = ragged(b, "x", 0, TINY_IN);
    out(b, "p", tiny_run(b->m, x, (weft_rnn **)&b->layer[0], (weft_linear **)&b->layer[1]));
}
static void tagger(bench *b)
{
    weft_embedding *e = EMBEDDING(0, "embed", .rows = 12, .padding = 2);
    weft_rnn *r = RNN(1, lstm, "r", .bidirectional = true);
    weft_linear *l = LINEAR(2, "out", 12, 11);
    weft_tensor *x = weft_embedding_run(e, ids(b, "ids", 0, 12));
    out(b, "y", weft_log_softmax(weft_linear_run(l, weft_rnn_run(r, x, WEFT_ZERO_STATE).y), -1, NULL));
}
static void classifier(bench *b) /* with few rows of the table, so the layer takes ids */
{
    weft_embedding *e = EMBEDDING(0, "embed", .rows = 2);
    weft_rnn *r = RNN(1, gru, "r", .bidirectional = true);
    weft_norm_layer *norm = LAYER(2, weft_layer_norm_new(b->m, "n", OPTS(weft_layer_norm_opts, .width = 12)));
    weft_linear *l = LINEAR(3, "out", 12, 11);
    weft_tensor *x = weft_embedding_run(e, ids(b, "ids", 0, 2));
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
    return (g2p){ .letters = EMBEDDING(0, "letters", .rows = 26),
                  .phones = EMBEDDING(1, "phones", .rows = 11),
                  .encoder = RNN(2, lstm, "encoder", .bidirectional = true, .layers = 2),
                  .decoder = RNN(3, lstm, "decoder", .layers = 2),
                  .bridge = LINEAR(4, "bridge", 12, 12),
                  .look = ATTENTION(5, "attention", .kind = WEFT_GENERAL, .dq = 6, .dm = 12),
                  .combine = LINEAR(6, "combine", 18, 6),
                  .output = LINEAR(7, "output", 6, 11) };
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
    weft_tensor *both = weft_linear_run(k->combine, weft_concat(WEFT_LIST(y, seen), 1));
    return weft_linear_run(k->output, weft_tanh(both));
}
static weft_rnn_out encoded(bench *b, const g2p *k)
{
    weft_tensor *x = weft_embedding_run(k->letters, ids(b, "letters", 0, 26));
    return weft_rnn_run(k->encoder, x, WEFT_ZERO_STATE);
}
static void g2p_encoder(bench *b)
{
    const g2p k = g2p_of(b);
    weft_rnn_out o = encoded(b, &k);
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
    record(b, "in", "token", 'i', 1, &n, before);
    weft_state s = first_state(b, 2, true);
    weft_attention_memory memory = { ragged(b, "keys", 0, 6), ragged(b, "values", 0, 12) };
    weft_rnn_out o = weft_rnn_step(k.decoder, weft_embedding_run(k.phones, token), s);
    weft_tensor *seen = weft_attention_query(k.look, o.y, memory, WEFT_ALL_KEYS, NULL);
    out(b, "logits", scores(&k, o.y, seen)), out(b, "h1", o.last.h), out(b, "c1", o.last.c);
}
static void g2p_whole(bench *b)
{
    const g2p k = g2p_of(b);
    weft_rnn_out o = encoded(b, &k);
    weft_state first = { bridged(&k, o.last.h), bridged(&k, o.last.c) };
    weft_tensor *x = weft_embedding_run(k.phones, ids(b, "phones", 1, 11));
    weft_tensor *y = weft_rnn_run(k.decoder, x, first).y;
    out(b, "logits", scores(&k, y, weft_attention_run(k.look, y, o.y, WEFT_ALL_KEYS, NULL)));
}

/* ---- attention and pairs of sequences ---- */
static void attention(bench *b) /* variant 1: to other sequences */
{
    static const char *const name[] = { "all", "top_left", "bottom_right", "strict" };
    weft_attention_layer *a = ATTENTION(0, "a", .width = 8, .heads = 2);
    weft_tensor *x = ragged(b, "x", 0, 8), *y = b->variant ? ragged(b, "y", 1, 8) : x;
    for (int k = 0; k < 4; k++)
        out(b, name[k], weft_attention_run(a, x, y, (weft_causal)k, NULL));
}
static void additive(bench *b)
{
    weft_attention_layer *a = ATTENTION(0, "a", .kind = WEFT_ADDITIVE, .dq = 4, .dm = 8, .width = 6);
    weft_tensor *x = ragged(b, "x", 0, 4), *y = ragged(b, "y", 1, 8);
    out(b, "seen", weft_attention_run(a, x, y, WEFT_ALL_KEYS, NULL));
}
static void sequences(bench *b) /* joined, and split again */
{
    weft_tensor *x = ragged(b, "x", 0, 4), *y = ragged(b, "y", 1, 4), *parts[2];
    const weft_lengths l = lengths_of(b, 0);
    weft_tensor *both = weft_tanh(weft_concat_sequences(x, y));
    weft_split_sequences(both, &l, &parts[0], &parts[1]);
    out(b, "both", both), out(b, "first", weft_exp(parts[0])), out(b, "second", weft_sub(parts[1], y));
    out(b, "sums", weft_pool(both, WEFT_POOL_SUM)), out(b, "sum", weft_cumsum(both, 0));
}

/* ---- operators ---- */
static void pools(bench *b)
{
    static const char *const name[] = { "sum", "mean", "max", "first", "last" };
    static const weft_pooling how[] = { WEFT_POOL_SUM, WEFT_POOL_MEAN, WEFT_POOL_MAX, WEFT_POOL_FIRST,
                                        WEFT_POOL_LAST };
    weft_tensor *x = ragged(b, "x", 0, 4);
    for (int k = 0; k < 5; k++)
        out(b, name[k], weft_pool(x, how[k]));
    out(b, "softmax", weft_softmax(x, 0, NULL));
    out(b, "logsumexp", weft_logsumexp(weft_scale(x, 3), -1, NULL));
    out(b, "cumsum", weft_cumsum(x, 0)), out(b, "flip", weft_flip(x, 0));
    out(b, "mean_all", weft_mean_all(x)), out(b, "sum_all", weft_sum_all(x));
    out(b, "per_token", weft_mul(x, weft_broadcast_to_tokens(plain(b, "p", WEFT_SHAPE(0, 4)), x)));
}
static void pointwise(bench *b)
{
    weft_tensor *x = ragged(b, "x", 0, 4), *p = weft_add(weft_square(x), weft_scalar(b->w, .1));
    weft_tensor *y[] = { weft_neg(x), weft_exp(x), weft_log(p), weft_sqrt(p), weft_rsqrt(p), weft_abs(x),
                         weft_reciprocal(x), weft_sin(x), weft_cos(x), weft_relu(x), weft_leaky_relu(x, .1),
                         weft_elu(x, .7), weft_gelu(x), weft_silu(x), weft_softplus(x),
                         weft_clamp(x, -.2, .3), weft_pow(p, 1.5), weft_minimum(x, p),
                         weft_maximum(weft_div(x, p), p), weft_sigmoid(x) };
    const int n = sizeof y / sizeof *y;
    out(b, "all", weft_concat(y, n, 1)), out(b, "stack", weft_stack(y, n, 1));
}
static void choices(bench *b)
{
    weft_tensor *x = ragged(b, "x", 0, 4), *value, *index;
    weft_tensor *most = weft_argmax(x, 1), *zero = weft_scalar(b->w, 0);
    weft_topk(x, 2, 1, &value, &index);
    out(b, "of_indices", weft_index_select(PARAMETER(0, "t", 4, 3), index));
    out(b, "argmax", most), out(b, "argmin", weft_argmin(x, 1));
    out(b, "values", value), out(b, "indices", index);
    out(b, "gather", weft_gather(x, most)), out(b, "one_hot", weft_one_hot(most, 4));
    out(b, "where", weft_where(weft_less(x, zero), x, weft_scale(x, 2))), out(b, "min", weft_min(x, 1));
    out(b, "compare", weft_add(weft_not_equal(x, zero), weft_greater_equal(x, zero)));
    out(b, "real", weft_to_reals(weft_to_ints(weft_scale(x, 5)))), out(b, "equal", weft_equal(most, most));
    out(b, "std", weft_std(x, 1, 1)), out(b, "var", weft_var(x, 1, 0)), out(b, "max", weft_max(x, 1));
}
static void shapes(bench *b) /* a plain model with its own batch axis */
{
    weft_tensor *x = plain(b, "x", WEFT_SHAPE(0, 4, 6)), *g = PARAMETER(0, "g", 6);
    const int64_t n = weft_size(x, 0);
    weft_tensor *t = weft_permute(x, (int[]){ 2, 0, 1 });
    out(b, "permuted", t), out(b, "mean", weft_mean(t, 1)), out(b, "flipped", weft_flip(x, 1));
    out(b, "reshaped", weft_tanh(weft_reshape(x, WEFT_SHAPE(n, 2, 12))));
    out(b, "merged", weft_mul(weft_reshape(x, WEFT_SHAPE(n * 4, 6)), g));
    out(b, "product", weft_matmul_with(x, true, x, false)), out(b, "tiled", weft_tile(x, 1, 3));
    out(b, "times", weft_repeat_interleave(x, 2, 2)), out(b, "slice", weft_slice(x, 2, 1, 4));
    out(b, "all", weft_mean_all(x));
}
static void losses(bench *b)
{
    weft_tensor *x = ragged(b, "x", 0, 4), *y = ragged(b, "y", 0, 4);
    out(b, "loss", weft_mean_all(weft_square(weft_sub(x, y))));
    out(b, "mean", weft_mean_loss(weft_huber_loss(x, y, 1, NULL)));
    out(b, "var", weft_var(plain(b, "p", WEFT_SHAPE(0, 4)), 0, 1));
}

/* ---- forecasters ---- */
enum { ENCODER_DECODER, ATTENTION_LSTM, TRANSFORMER_LSTM, TFT };
#define FORECASTER(kind, ...)                                                                         \
    LAYER(0, weft_##kind##_new(b->m, "f", OPTS(weft_##kind##_opts, .num_past_features = 4,            \
                                               .num_future_features = 6, .num_static_features = 2,    \
                                               __VA_ARGS__)))
static void forecast(bench *b)
{
    const int k = b->variant;
    weft_forecaster *f =
        k == ENCODER_DECODER ?
            FORECASTER(encoder_decoder_lstm, .d_encoder = 8, .d_decoder = 6, .num_decoder_layers = 3) :
        k == ATTENTION_LSTM   ? FORECASTER(attention_lstm, .d_model = 8) :
        k == TRANSFORMER_LSTM ? FORECASTER(transformer_lstm, .d_model = 8) :
                                FORECASTER(tft, .d_model = 8, .variant = (weft_tft_variant)(k - TFT));
    weft_series_batch s = { .past = ragged(b, "past", 0, 4), .future = ragged(b, "future", 1, 6) };
    s.fixed = k == TFT + WEFT_XTFT ? NULL : plain(b, "fixed", WEFT_SHAPE(0, 2));
    weft_forecast o = weft_forecast_run(f, &s, NULL);
    out(b, "y", o.y), out(b, "h", o.encoder.h);
}

static const struct { const char *name; void (*run)(bench *); int variant; } models[] = {
    { "tiny", tiny, 0 }, { "elman", recurrent, ELMAN }, { "elman_relu", recurrent, ELMAN_RELU },
    { "gru", recurrent, GRU }, { "lstm", recurrent, LSTM }, { "lstm_zero", recurrent, LSTM_ZERO },
    { "cifg", recurrent, CIFG }, { "gru_plain", gru_plain, 0 },
    { "padded", padded, 0 }, { "tagger", tagger, 0 }, { "classifier", classifier, 0 },
    { "g2p_encoder", g2p_encoder, 0 }, { "g2p_step", g2p_step, 0 }, { "g2p_whole", g2p_whole, 0 },
    { "self_attention", attention, 0 }, { "cross_attention", attention, 1 }, { "additive", additive, 0 },
    { "unlisted", unlisted, 0 }, { "sequences", sequences, 0 }, { "pools", pools, 0 },
    { "pointwise", pointwise, 0 }, { "choices", choices, 0 }, { "shapes", shapes, 0 },
    { "losses", losses, 0 }, { "encoder_decoder", forecast, ENCODER_DECODER },
    { "attention_lstm", forecast, ATTENTION_LSTM }, { "transformer_lstm", forecast, TRANSFORMER_LSTM },
    { "tft", forecast, TFT + WEFT_TFT }, { "pf_tft", forecast, TFT + WEFT_PF_TFT },
    { "xtft", forecast, TFT + WEFT_XTFT }
};

/* Exports the model after its first batch. Returns 1 after an error. */
static int write_model(bench *b, const char *dir, const char *name, void (*run)(bench *))
{
    char path[512];
    int failed = 0;
    b->w = weft_open(OPTS(weft_opts, .device = WEFT_CPU, .seed = 7));
    b->m = weft_module_new(b->w, "net");
    for (b->batch = 0; b->batch < BATCHES; b->batch++) {
        snprintf(path, sizeof path, "%s/%s.%d", dir, name, b->batch);
        if (!(b->file = fopen(path, "wb")))
            return 1;
        b->inputs = b->outputs = 0;
        b->recorded[0] = b->recorded[1] = false;
        b->seed = (uint64_t)b->batch + 1;
        WEFT_EVAL(b->w) run(b);
        fclose(b->file);
        snprintf(path, sizeof path, "%s/%s.onnx", dir, name);
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
            bench b = { .variant = models[i].variant };
            failed += write_model(&b, arg[1], models[i].name, models[i].run);
        }
    return failed > 0;
}
