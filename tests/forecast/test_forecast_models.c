/* test_forecast_models.c - tests the parts of the forecasting models: number and names of parameters as in
 * the original, its checkpoints, invalid options, and steps that allocate nothing. */
#include <limits.h>
#include "tests/io/checkpoint.h"
#include "forecast_models.h"

/* ---- parameters ---- */
static void has(weft *w, const char *name, weft_forecaster *f, int tensors, int64_t numbers_in_all)
{
    OK(w);
    weft_module *m = weft_forecaster_module(f);
    cr_assert(weft_parameter_count(m) == tensors && weft_parameter_numel(m) == numbers_in_all,
              "%s: %d tensors, %lld numbers; the original has %d and %lld", name, weft_parameter_count(m),
              (long long)weft_parameter_numel(m), tensors, (long long)numbers_in_all);
}

/* With 4 past and 3 future features and other options by default. Counts are from the original. */
CPU_TEST(forecast_models, have_the_parameters_of_the_original)
{
    weft_module *m = weft_module_new(w, "m");
    weft_encoder_decoder_lstm_opts encoder_decoder = { .dropout = .1, .mlp_dropout = .1 };
    weft_attention_lstm_opts attention = { .dropout = .1 };
    weft_transformer_lstm_opts transformer = { .dropout = .1 };
    weft_tft_opts tft = { .num_static_features = 1, .dropout = .1 }, small = { .num_past_features = 2,
                                                     .num_future_features = 1,
                                                     .num_static_features = 1,
                                                     .d_model = 32,
                                                     .d_hidden_continuous = 8,
                                                     .num_heads = 4,
                                                     .num_lstm_layers = 2,
                                                     .output_dim = 7 };
    encoder_decoder.num_past_features = attention.num_past_features = transformer.num_past_features =
        tft.num_past_features = 4;
    encoder_decoder.num_future_features = attention.num_future_features = transformer.num_future_features =
        tft.num_future_features = 3;
    has(w, "EncoderDecoderLSTM", weft_encoder_decoder_lstm_new(m, "a", &encoder_decoder), 18, 401025);
    has(w, "AttentionLSTM", weft_attention_lstm_new(m, "b", &attention), 42, 475681);
    has(w, "TransformerLSTM", weft_transformer_lstm_new(m, "c", &transformer), 134, 929025);
    has(w, "TFT", weft_tft_new(m, "d", &tft), 227, 7403624);
    tft.variant = WEFT_PF_TFT;
    has(w, "PF-TFT", weft_tft_new(m, "e", &tft), 227, 7403624);
    tft.variant = WEFT_XTFT;
    has(w, "xTFT", weft_tft_new(m, "f", &tft), 171, 5317636);
    weft_module *of_small = weft_forecaster_module(weft_tft_new(m, "g", &small));
    OK(w);
    small.variant = (weft_tft_variant)7;
    cr_assert(!weft_forecaster_module(weft_tft_new(m, "h", &small)));
    FAILS(w, WEFT_EARG, "variant: expected a value of weft_tft_variant, not 7");
    cr_assert(weft_parameter_count(of_small) == 163, "%d", weft_parameter_count(of_small));
}

TABLE_TEST(forecast_models, every_parameter_learns)
{
    for (int kind = 0; kind < MODELS; kind++) {
        weft_forecaster *f = forecaster_new(w, kind, (wish){ .fixed = 2 });
        weft_module *root = weft_forecaster_module(f);
        batch b = some_batch();
        weft_series_batch s = series_of(w, &b, (form){ .fixed = kind == XTFT ? 0 : 2 });
        weft_backward(weft_sum_all(weft_square(weft_forecast_run(f, &s, NULL).y)));
        OK(w);
        for (int i = 0; i < weft_parameter_count(root); i++) {
            const char *path;
            weft_tensor *p = weft_parameter_at(root, i, &path);
            weft_real *g = numbers(weft_grad(p)), most = 0;
            for (int64_t k = 0; k < weft_numel(p); k++)
                most = (weft_real)fmax((double)most, fabs((double)g[k]));
            /* biases of keys have no gradient: they cancel */
            cr_assert(most > 0 || strstr(path, "key_layers"), "%s has no gradient", path);
        }
    }
}

/* Names start with "model.", shared parameters appear under both names, and the file has more than the
 * model. */
Test(forecast_models, original_checkpoints_load)
{
    for (int kind = TRANSFORMER; kind <= TFT; kind++) {
        weft *w = open_on(WEFT_CPU), *other = open_with((weft_opts){ .device = WEFT_CPU, .seed = 9 });
        weft_module *root = weft_module_new(w, "net"), *to = weft_module_new(other, "net");
        weft_forecaster *f = forecaster_in(root, kind, (wish){ .other = true }),
                        *g = forecaster_in(to, kind, (wish){ .other = true });
        weft_module *file = weft_module_new(w, "file"), *original = weft_submodule_new(file, "model");
        /* a tree of the original's names, with values of its own */
        for (int i = 0; i < weft_parameter_count(root); i++) {
            const char *path, *part;
            weft_tensor *p = weft_parameter_at(weft_forecaster_module(f), i, &path);
            weft_module *at = original;
            char name[64];
            for (; (part = strchr(path, '.')); path = part + 1) {
                snprintf(name, sizeof name, "%.*s", (int)(part - path), path);
                weft_module *child = at->child;
                while (child && strcmp(child->name, name))
                    child = child->sibling;
                at = child ? child : weft_submodule_new(at, name);
            }
            int64_t shape[] = { weft_size(p, 0), weft_rank(p) > 1 ? weft_size(p, 1) : 0 };
            weft_parameter(at, path, weft_rank(p), shape, (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
        }
        weft_module *shared = weft_submodule_new(original, kind == TFT ? "dec_norm1" : "decoder"),
                    *in = kind == TFT ? weft_submodule_new(shared, "norm") : shared;
        weft_tensor *first =
            weft_find_parameter(original, kind == TFT ? "enc_norm1.norm.weight" : "encoder.bias_hh_l1");
        weft_tie(in, kind == TFT ? "weight" : "bias_hh_l1", first);
        OK(w);
        const char *path = in_folder("original.h5");
        weft_load_report report;
        cr_assert(weft_save_weights(path, file) == WEFT_OK, "%s", weft_file_message());
        cr_assert(weft_load_weights(path, to, NULL, &report) == WEFT_OK, "%s", weft_file_message());
        cr_assert(report.missing == 0 && report.extra == 0 && report.other_shape == 0, "%s", report.text);
        for (int i = 0; i < weft_parameter_count(to); i++) {
            const char *name;
            weft_tensor *p = weft_parameter_at(weft_forecaster_module(g), i, &name),
                        *q = weft_find_parameter(original, name);
            same_bits(name, numbers(p), numbers(q), weft_numel(p));
        }
        CLEAN(other);
        CLEAN(w);
        end_folder();
    }
}

/* ---- a step of training ---- */
static void train_step(weft *w, weft_forecaster *f, weft_optim *o)
{
    batch b = some_batch();
    b.past[0] = 2, b.future[1] = 5;
    weft_series_batch s = series_of(w, &b, (form){ 0 });
    weft_backward(loss_of(weft_to_layout(weft_forecast_run(f, &s, NULL).y, WEFT_CONCAT), &b));
    weft_optim_step(o);
    weft_clear(w);
    OK(w);
}

Test(forecast_models, a_steady_step_allocates_nothing, .init = unchecked)
{
    for (int kind = 0; kind < MODELS; kind++)
        FOR_DEVICES(w) {
            weft_forecaster *f = forecaster_new(w, kind, (wish){ .dropout = (weft_real).2 });
            weft_optim *o = weft_adamw_new(weft_forecaster_module(f), &(weft_adam_opts){ .lr = .02 });
            for (int i = 0; i < 3; i++)
                train_step(w, f, o);
            int64_t before = allocations(w);
            for (int i = 0; i < 3; i++)
                train_step(w, f, o);
            cr_assert_eq(allocations(w), before, "%s on %s: %lld", model_names[kind], weft_device_name(w),
                         (long long)(allocations(w) - before));
        }
}

/* ---- dropout ---- */
static void count_dropouts(const weft_tensor *y, const char *name, void *user)
{
    (void)y, *(int *)user += !strcmp(name, "dropout");
}

/* Dropout is where the original has it: between layers of an LSTM, twice in a GRN, before a GLU, after
 * attention (whose weights have their own inside), in an MLP; not in the last gate of a TFT. */
CPU_TEST(forecast_models, drop_where_the_original_does)
{
    /* all networks of features drop together */
    enum { GRN = 2, LSTMS = 2, HEAD = 1, GLU = 1, ONE_SELECTION = GRN, SELECTION = GRN + GRN };
    enum { ANY_TFT = ONE_SELECTION + 4 * GRN + 2 * SELECTION + LSTMS + 2 * GLU + 2 * GRN + HEAD + GLU + GRN };
    static const int places[MODELS] = {
        /* two encoder layers, three of the decoder, two hidden ones of the MLP */
        [ENCODER_DECODER] = 1 + 2 + 2,
        [ATTENTION] = LSTMS + HEAD + GLU,
        [TRANSFORMER] = 2 * GRN + LSTMS + 2 * (2 * HEAD + 2 * GLU),
        [TFT] = ANY_TFT,
        [PF_TFT] = ANY_TFT,
        [XTFT] = 2 * SELECTION + LSTMS + 2 * GLU + HEAD + GLU + GRN
    };
    for (int kind = 0; kind < MODELS; kind++)
        for (int training = 0; training < 2; training++) {
            weft_forecaster *f =
                forecaster_new(w, kind, (wish){ .dropout = (weft_real).1, .other = kind == ENCODER_DECODER });
            batch b = some_batch();
            weft_series_batch s = series_of(w, &b, (form){ 0 });
            int n = 0;
            weft_set_training(w, training);
            weft_on_result(w, count_dropouts, &n);
            weft_forecast_run(f, &s, NULL);
            weft_on_result(w, NULL, NULL);
            OK(w);
            cr_assert(n == training * places[kind], "%s: %d dropouts, %d are expected", model_names[kind], n,
                      training * places[kind]);
        }
    weft_set_training(w, true);
}

/* ---- options ---- */
CPU_TEST(forecast_models, accept_different_numbers_of_layers)
{
    for (int from = 1; from <= 3; from++)
        for (int to = 1; to <= 3; to++) {
            weft_module *m = weft_module_new(w, "m");
            weft_forecaster *f = weft_encoder_decoder_lstm_new(
                m, "model",
                &(weft_encoder_decoder_lstm_opts){ PAST, FUTURE, 0, 4, 4, from, to, 0, 0, NULL, WEFT_RELU, 0,
                                                   OUTPUTS, 0 });
            batch b = some_batch();
            weft_series_batch s = series_of(w, &b, (form){ 0 });
            weft_forecast out = weft_forecast_run(f, &s, NULL);
            OK(w);
            cr_assert(weft_size(out.encoder.h, 0) == from && weft_size(out.y, 1) == OUTPUTS);
            weft_rnn *d = weft_lstm_new(weft_module_new(w, "m"), "d",
                                        &(weft_rnn_opts){ .input = FUTURE, .hidden = 4, .layers = to });
            for (int i = 0; i < weft_parameter_count(weft_rnn_module(d)); i++) {
                const char *path;
                weft_tensor *p = weft_parameter_at(weft_rnn_module(d), i, &path);
                char name[64];
                snprintf(name, sizeof name, "model.decoder.%s", path);
                weft_assign_values(p, numbers(weft_find_parameter(m, name)), weft_numel(p));
            }
            weft_tensor *h[3], *c[3];
            for (int k = 0; k < to; k++) {
                int at = k < from ? k : from - 1;
                h[k] = weft_slice(out.encoder.h, 0, at, at + 1);
                c[k] = weft_slice(out.encoder.c, 0, at, at + 1);
            }
            weft_tensor *y =
                weft_rnn_run(d, s.future, (weft_state){ weft_concat(h, to, 0), weft_concat(c, to, 0) }).y;
            weft_tensor *head =
                weft_add(weft_matmul_with(y, false, weft_find_parameter(m, "model.mlp_head.weight"), true),
                         weft_find_parameter(m, "model.mlp_head.bias"));
            close_to("by hand", numbers(weft_to_layout(out.y, WEFT_CONCAT)),
                     numbers(weft_to_layout(head, WEFT_CONCAT)), weft_numel(head), TOL(1e-13, 1e-6));
            weft_clear(w);
        }
}

CPU_TEST(forecast_models, use_lengths_as_default_static_feature)
{
    for (int kind = TFT; kind <= PF_TFT; kind++) {
        weft_forecaster *f = forecaster_new(w, kind, (wish){ .fixed = 0 });
        batch b = some_batch();
        weft_series_batch s = series_of(w, &b, (form){ 0 });
        weft_real *y = numbers(weft_to_layout(weft_forecast_run(f, &s, NULL).y, WEFT_CONCAT)), of[MOST];
        for (int i = 0; i < b.n; i++)
            of[i] = (weft_real)(kind == TFT ? 2. * b.past[i] / LONGEST - 1 : (double)b.past[i] / LONGEST);
        s.fixed = weft_reals(w, of, WEFT_SHAPE(b.n, 1));
        close_to(model_names[kind], numbers(weft_to_layout(weft_forecast_run(f, &s, NULL).y, WEFT_CONCAT)), y,
                 15 * OUTPUTS, TOL(1e-13, 1e-6));
        OK(w);
    }
}

/* The options of three models; `kind` chooses one. */
typedef struct {
    int kind;
    weft_encoder_decoder_lstm_opts seq;
    weft_attention_lstm_opts attention;
    weft_transformer_lstm_opts transformer;
} options;

CPU_TEST(forecast_models, refuse_invalid_options)
{
    static const int64_t widths[] = { 2 };
#define SEQ(...)         { .kind = ENCODER_DECODER, .seq = { 1, 1, __VA_ARGS__ } }
#define ATTENTIVE(...)   { .kind = ATTENTION, .attention = { __VA_ARGS__ } }
#define TRANSFORMING(...) { .kind = TRANSFORMER, .transformer = { 1, 1, __VA_ARGS__ } }
    static const struct { options o; weft_status status; const char *text; } bad[] = {
        { ATTENTIVE(.dropout = .1), WEFT_ESHAPE, "attention_lstm: 0 past, 0 future" },
        { ATTENTIVE(INT64_MAX, 1, .num_static_features = 1), WEFT_ESHAPE, "each below 2^29" },
        { ATTENTIVE(1, 1, .num_heads = 3), WEFT_EARG, "attention_lstm: num_heads: expected a divisor" },
        { ATTENTIVE(1, 1, .compat = (weft_compat)7), WEFT_EARG, "attention_lstm: compat" },
        { ATTENTIVE(1, 1, .dropout = 1), WEFT_EARG, "attention_lstm: dropout 1" },
        { TRANSFORMING(.num_layers = -1), WEFT_EARG, "transformer_lstm \"a\" in m: num_layers is -1" },
        { TRANSFORMING(.num_transformer_blocks = 5000), WEFT_EARG, "WEFT_NONE or 1 .. 4096" },
        { SEQ(.num_mlp_hidden = 2), WEFT_EARG, "num_mlp_hidden 2, d_mlp_hidden is NULL; expected 0 .. 9998" },
        { SEQ(.num_mlp_hidden = INT_MAX, .d_mlp_hidden = widths), WEFT_EARG,
          "num_mlp_hidden 2147483647; expected 0 .. 9998" },
        { SEQ(.dropout = 1), WEFT_EARG, "encoder_decoder_lstm: dropout 1" },
    };
    weft_module *m = weft_module_new(w, "m");
    for (int i = 0; i < COUNT(bad); i++) {
        const options *o = &bad[i].o;
        weft_forecaster *f = o->kind == ENCODER_DECODER ? weft_encoder_decoder_lstm_new(m, "a", &o->seq) :
                             o->kind == ATTENTION       ? weft_attention_lstm_new(m, "a", &o->attention) :
                                                    weft_transformer_lstm_new(m, "a", &o->transformer);
        cr_assert(!weft_forecaster_module(f));
        FAILS(w, bad[i].status, bad[i].text);
    }
    cr_assert(!m->child, "a refused model left parameters");
}

CPU_TEST(forecast_models, refuse_invalid_series)
{
    const weft_lengths wrong = { .n = 5, .len = (const int32_t[]){ 1, 2, 99, 1, 1 } };
    static const struct { form as; int model; weft_status status; const char *text; } bad[] = {
        { { 0 }, 0, WEFT_EARG, "series is NULL" },
        { { 0 }, 0, WEFT_ESHAPE, "the past has 5 sequences, the future 2" },
        { { 0 }, 0, WEFT_ESHAPE, "the past is [15, 2] concat; expected ragged [N, 3] or plain [n, T, 3]" },
        { { .plain = true }, 0, WEFT_EARG, "(sequence 2;" },
        { { 0 }, 0, WEFT_EARG, "the past is ragged and has its lengths" },
        { { .fixed = 2 }, 0, WEFT_ESHAPE, "fixed is [5, 2]; expected NULL" },
        { { 0 }, 1, WEFT_ESHAPE, "fixed is NULL; expected [5, 2]" },
        { { 0 }, 2, WEFT_EARG, "ctxt_seq_len" },
    };
    const weft_tft_opts unsure = { PAST, FUTURE, 1, 2, 1, 1, 1, .output_dim = 1 };
    weft_forecaster *models[] = { forecaster_new(w, ATTENTION, (wish){ .fixed = 0 }),
                                  forecaster_new(w, TFT, (wish){ .fixed = 2 }),
                                  weft_tft_new(weft_module_new(w, "u"), "u", &unsure) };
    batch b = some_batch(), less = { 2, { 0, 1 }, { 2, 2 }, { 2, 2 } };
    OK(w);
    for (int i = 0; i < COUNT(bad); i++) {
        weft_series_batch s = series_of(w, &b, bad[i].as);
        s.future = i == 1 ? series_of(w, &less, bad[i].as).future : s.future;
        s.past = i == 2 ? s.future : s.past;
        s.past_lengths = i == 3 || i == 4 ? &wrong : s.past_lengths;
        weft_forecast_run(models[bad[i].model], i ? &s : NULL, NULL);
        FAILS(w, bad[i].status, bad[i].text);
    }
}
