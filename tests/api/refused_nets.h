/* refused_nets.h - of test_refused.c: layers, forecasting models, decoding. */
#ifndef REFUSED_NETS_H
#define REFUSED_NETS_H
#include "refused.h"

static void layers(bad *b)
{
    weft_tensor *map;
    weft_rnn_opts o = { .input = b->n, .hidden = b->n, .layers = b->i };
    TRY(weft_linear_new, b->m, b->name, &(weft_linear_opts){ .in = b->n, .out = b->n });
    MUST(weft_linear_run, NULL, X);
    TRY(weft_linear_new, b->m, b->name, &(weft_linear_opts){ .in = b->n, .out = b->n, .no_bias = true });
    MUST(weft_linear_run, weft_linear_new(b->m, NULL, &(weft_linear_opts){ .in = 0, .out = 0 }), X);
    TRY(weft_embedding_new, b->m, b->name, &(weft_embedding_opts){ .rows = b->n, .columns = b->n });
    MUST(weft_embedding_run, NULL, X);
    TRY(weft_embedding_new, b->m, b->name, NULL);
    TRY(weft_linear_new, b->m, b->name, &(weft_linear_opts){ .in = b->n, .weight = X });
    TRY(weft_linear_new, b->m, b->name, NULL);                    TRY(weft_embedding_weight, NULL);
    TRY(weft_embedding_new, b->m, b->name,
        &(weft_embedding_opts){ .rows = 2, .columns = 2, .padding = b->n, .row_dropout = b->r });
    TRY(weft_layer_norm_new, b->m, b->name, &(weft_layer_norm_opts){ .width = 2, .eps = b->r });
    MUST(weft_embedding_run, weft_embedding_new(b->m, NULL, NULL), X);
    TRY(weft_layer_norm_new, b->m, b->name, &(weft_layer_norm_opts){ .width = b->n });
    MUST(weft_layer_norm_run, NULL, X);
    TRY(weft_dropout_new, b->m, b->name, &(weft_dropout_opts){ .p = b->r, .per_sequence = true });
    MUST(weft_dropout_run, NULL, X);
    TRY(weft_mlp_new, b->m, b->name, NULL);                       MUST(weft_mlp_run, NULL, X);
    TRY(weft_mlp_new, b->m, b->name, &(weft_mlp_opts){ b->i, NULL, (weft_activation)b->i, b->r });
    TRY(weft_attention_new, b->m, b->name,
        &(weft_attention_layer_opts){ .kind = WEFT_ADDITIVE, .dq = b->n, .dm = b->n, .width = b->n });
    TRY(weft_attention_new, b->m, b->name,
        &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = b->n, .dm = b->n });
    TRY(weft_attention_new, b->m, b->name,
        &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = b->n, .heads = b->i });
    TRY(weft_attention_new, b->m, b->name, &(weft_attention_layer_opts){ .kind = (weft_attention_kind)b->i });
    MUST(weft_attention_run, NULL, X, X, (weft_causal)b->i, &map);
    MUST(weft_attention_project, NULL, X);
    MUST(weft_attention_query, NULL, X, ((weft_attention_memory){ X, X }), (weft_causal)b->i, &map);
    TRY(weft_elman_new, b->m, b->name, &o);                         TRY(weft_gru_new, b->m, b->name, &o);
    TRY(weft_cifg_new, b->m, b->name, &o);                        TRY(weft_mgu_new, b->m, b->name, &o);
    TRY(weft_rnn_of_cell, b->m, b->name, NULL, &o);
    TRY(weft_rnn_of_cell, b->m, b->name, &(weft_cell){ .name = b->name, .gates = b->i }, &o);
    TRY(weft_lstm_new, b->m, b->name, &o);                        TRY(weft_lstm_new, b->m, b->name, NULL);
    MUST(weft_rnn_run, NULL, X, WEFT_ZERO_STATE);
    MUST(weft_rnn_step, NULL, X, WEFT_ZERO_STATE);
    MUST(weft_final_state, NULL, ((weft_state){ X, NULL }));
    TRY(weft_final_state, NULL, WEFT_ZERO_STATE);
    TRY(weft_rnn_run, NULL, NULL, ((weft_state){ X, X }));        TRY(weft_rnn_set_composed, NULL, true);
    TRY(weft_rnn_set_traced, NULL, true);                           TRY(weft_rnn_trace, NULL, 0, false);
    TRY(weft_rnn_module, NULL);
    TRY(weft_state_select, WEFT_ZERO_STATE, NULL, b->n);
    weft_plan_step of_nothing = { .w = b->w, .batch = b->n };
    TRY(weft_plan_step_of, b->w, NULL, b->n);    TRY(weft_plan_step_of, NULL, NULL, b->n);
    MUST(weft_plan_tokens, &of_nothing, NULL, b->i, b->i);
    TRY(weft_plan_tokens, NULL, NULL, b->i, b->i);
    MUST(weft_plan_to_layout, &of_nothing, X);   TRY(weft_plan_to_layout, NULL, X);
    TRY(weft_carried_new, b->m, b->name, NULL, NULL);
    MUST(weft_rnn_run_plan, NULL, X, &of_nothing, NULL);
    TRY(weft_rnn_run_plan, NULL, X, NULL, NULL); TRY(weft_carried_set_batch, NULL, b->n);
    MUST(weft_plan_loss, &of_nothing, ((weft_loss){ X, X }), WEFT_MEAN_OF_PLAN);
    TRY(weft_plan_loss, NULL, ((weft_loss){ X, X }), WEFT_MEAN_OF_BATCH);
    MUST(weft_plan_weights, &of_nothing, NULL);  TRY(weft_plan_weights, NULL, NULL);
    MUST(weft_state_select, ((weft_state){ X, NULL }), NULL, b->n);
    MUST(weft_state_select, ((weft_state){ NULL, X }), NULL, (int64_t)1 << 60);
}

static void decoding(bad *b)
{
    weft_decode_opts o = { 0, -1, b->n, b->i, (double)b->r, b->i, b->n % 2 != 0, (double)b->r, b->n,
                           (double)b->r, b->name, NULL, NULL, false, false, false };
    int32_t prompt_len[] = { b->i };
    weft_decode_opts beams = { .end = -1, .limit = b->n, .beams = b->i, .length_penalty = (double)b->r },
                     sample = { .end = -1, .limit = 2, .sample = true, .temperature = b->r, .top_k = b->n };
    weft *both[] = { NULL, b->w };
    for (int i = 0; i < 2; i++) {
        TRY(weft_decode, both[i], b->n, ((weft_state){ X, X }), no_scores, NULL, &o);
        TRY(weft_decode, both[i], b->n, WEFT_ZERO_STATE, NULL, NULL, &o);
        TRY(weft_decode, both[i], b->n, WEFT_ZERO_STATE, no_scores, NULL, &beams);
        TRY(weft_decode, both[i], b->n, WEFT_ZERO_STATE, no_scores, NULL, &sample);
        TRY(weft_decode, both[i], b->n, WEFT_ZERO_STATE, no_scores, NULL, NULL);
    }
    MUST(weft_decode, b->w, 1, WEFT_ZERO_STATE, no_scores, X,
         &(weft_decode_opts){ .limit = 2, .beams = 2, .sample = true });
    MUST(weft_decode, b->w, 1, WEFT_ZERO_STATE, no_scores, X, &(weft_decode_opts){ .limit = 2, .top_k = 1 });
    MUST(weft_decode, b->w, 1, WEFT_ZERO_STATE, no_scores, X, &(weft_decode_opts){ .limit = 2 });
    MUST(weft_decode, b->w, 1, WEFT_ZERO_STATE, no_scores, X,
         &(weft_decode_opts){ .limit = 2, .prompt_len = prompt_len });
    MUST(weft_decode_ragged, NULL, X);           TRY(weft_decode_ragged, NULL, NULL);
    TRY(weft_decoded_free, NULL);
}

static void forecasting(bad *b)
{
    weft_encoder_decoder_lstm_opts seq = { .num_past_features = b->n,
                                           .num_future_features = b->n,
                                           .num_static_features = b->n,
                                           .d_encoder = b->n,
                                           .d_decoder = b->n,
                                           .num_encoder_layers = b->i,
                                           .num_decoder_layers = b->i,
                                           .dropout = b->r,
                                           .num_mlp_hidden = b->i,
                                           .output_dim = b->n,
                                           .compat = (weft_compat)b->i };
    weft_attention_lstm_opts attention = { .num_past_features = b->n,
                                           .num_future_features = 1,
                                           .d_model = b->n,
                                           .num_layers = b->i,
                                           .num_heads = b->i,
                                           .dropout = b->r };
    weft_transformer_lstm_opts transformer = { .num_past_features = 1,
                                               .num_future_features = b->n,
                                               .d_model = b->n,
                                               .num_layers = b->i,
                                               .num_transformer_blocks = b->i };
    weft_tft_opts tft = { .num_past_features = 1,
                          .num_future_features = 1,
                          .num_static_features = b->n,
                          .d_model = b->n,
                          .num_heads = b->i,
                          .num_lstm_layers = b->i };
    weft_forecast_maps maps;
    weft_series_batch series = { .past = X,
                                 .future = X,
                                 .fixed = X,
                                 .past_lengths = b->l,
                                 .future_lengths = b->l,
                                 .past_align = (weft_align)b->i };
    TRY(weft_encoder_decoder_lstm_new, b->m, b->name, &seq);
    TRY(weft_encoder_decoder_lstm_new, b->m, b->name, NULL);
    TRY(weft_attention_lstm_new, b->m, b->name, &attention);
    TRY(weft_attention_lstm_new, b->m, b->name, NULL);
    TRY(weft_transformer_lstm_new, b->m, b->name, &transformer);
    TRY(weft_transformer_lstm_new, b->m, b->name, NULL);
    TRY(weft_tft_new, b->m, b->name, &tft);          TRY(weft_tft_new, NULL, b->name, NULL);
    tft.variant = WEFT_PF_TFT;                       TRY(weft_tft_new, b->m, b->name, &tft);
    tft.variant = WEFT_XTFT;                         TRY(weft_tft_new, b->m, b->name, &tft);
    tft.variant = (weft_tft_variant)b->i;            TRY(weft_tft_new, b->m, b->name, &tft);
    TRY(weft_forecaster_module, NULL);
    MUST(weft_forecast_run, NULL, &series, &maps);
    MUST(weft_forecast_run, weft_tft_new(b->m, NULL, NULL), &series, NULL);
    TRY(weft_forecast_run, NULL, NULL, NULL);
    weft_forecaster *f =
        weft_encoder_decoder_lstm_new(weft_module_new(b->w, "good"), "model",
                                      &(weft_encoder_decoder_lstm_opts){ .num_past_features = 1,
                                                                         .num_future_features = 1,
                                                                         .d_encoder = 1,
                                                                         .d_decoder = 1,
                                                                         .num_encoder_layers = 1,
                                                                         .num_decoder_layers = 1,
                                                                         .output_dim = 1 });
    MUST(weft_forecast_run, f, &series, &maps);
}
#endif
