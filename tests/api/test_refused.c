/* test_refused.c - every public function, called with handles that are NULL, stale, foreign or inert, and
 * with numbers as large and as small as they get: an error or nothing, never a crash (the sanitizers look
 * on), and a bad tensor never passes without a word, where there is a context that could have it. That none
 * of the declared functions is missing here is a test, too. */
#include "refused_nets.h"
#include "refused_parallel.h"
#include "refused_plans.h"
#include "refused_series.h"

static void contexts(bad *b)
{
    note("weft_open");
    weft *w = weft_open(
        &(weft_opts){ .device = (weft_device)b->i, .threads = -1, .precision = (weft_precision)b->i });
    cr_assert(!weft_ok(w));
    weft_close(w);
    note("weft_version");                        cr_assert(*weft_version());
    TRY(weft_close, NULL);                       TRY(weft_parameter_count, NULL);
    TRY(weft_clear, NULL);                       TRY(weft_recover, NULL);
    TRY(weft_ok, NULL);                          TRY(weft_error_code, NULL);
    TRY(weft_error_message, NULL);                     TRY(weft_status_name, (weft_status)b->i);
    TRY(weft_on_error, NULL, NULL, NULL);        TRY(weft_fail, NULL, WEFT_EARG, "%d", b->i);
    TRY(weft_set_training, NULL, true);              TRY(weft_set_grad_enabled, NULL, true);
    TRY(weft_is_training, NULL);                 TRY(weft_is_grad_enabled, NULL);
    TRY(weft_device_name, NULL);                 TRY(weft_threads, NULL);
    TRY(weft_synchronize, NULL);                        TRY(weft_mark_here, NULL);
    TRY(weft_rewind, NULL, weft_mark_here(NULL));     TRY(weft_usage_of, NULL);
    TRY(weft_set_profiling, NULL, true);         TRY(weft_profile_of, NULL);
    TRY(weft_reset_profile, NULL);               TRY(weft_set_print_limit, NULL, b->n);
    TRY(weft_rewind, b->w, (weft_mark){ { b->n, b->n, b->n, b->n }, (uint64_t)b->n });
}

static void tensors(bad *b)
{
    weft *both[] = { NULL, b->w };
    char out[3];
    for (int i = 0; i < 2; i++) {
        TRY(weft_reals, both[i], NULL, SHAPE);   TRY(weft_ints, both[i], NULL, SHAPE);
        TRY(weft_zeros, both[i], SHAPE);         TRY(weft_full, both[i], b->r, SHAPE);
        TRY(weft_randn, both[i], SHAPE);        TRY(weft_rand, both[i], b->r, b->r, SHAPE);
        TRY(weft_scalar, both[i], b->r);         TRY(weft_arange, both[i], 0, b->n, b->i);
        TRY(weft_zeros, both[i], 3, NULL);       TRY(weft_length_mask, both[i], b->l, b->n, (weft_align)b->i);
        TRY(weft_ragged, both[i], NULL, b->n, b->l);
        TRY(weft_ragged_ints, both[i], NULL, b->l);
        TRY(weft_stream_of, both[i], b->name);
    }
    TRY(weft_context_of, NULL);                          TRY(weft_dtype_of, X);
    TRY(weft_rank, X);                           TRY(weft_size, X, b->i);
    TRY(weft_numel, X);                          MUST(weft_read, X, out, sizeof out);
    MUST(weft_read, X, NULL, (size_t)b->n);      MUST(weft_item, X);
    MUST(weft_read_sequences, X, out, sizeof out);
    MUST(weft_read_sequences, X, NULL, (size_t)b->n);
    FILE *null = fopen("/dev/null", "w");
    MUST(weft_print, null, X);                   TRY(weft_print_layout, null, X);
    TRY(weft_print_layout, null, NULL);          TRY(weft_print_module, null, b->m);
    TRY(weft_print_tape, null, NULL);            TRY(weft_print_tape, NULL, b->w);
    TRY(weft_print_module, NULL, NULL);          TRY(weft_print_device, null, NULL);
    fclose(null);
    TRY(weft_layout_of, X);                      TRY(weft_lengths_of, X);
    TRY(weft_offsets, X);
    TRY(weft_rows_of, X);
    TRY(weft_stream_new, 1, NULL);                      TRY(weft_stream_free, NULL);
    TRY(weft_stream_next, NULL);                        TRY(weft_stream_uniform, NULL);
    TRY(weft_stream_normal, NULL);                 TRY(weft_stream_below, NULL, (uint64_t)b->n);
    TRY(weft_stream_permutation, NULL, b->n, NULL);
}

#define ONE(f) MUST(f, X)
#define TWO(f) MUST(f, X, X); WITHOUT(f, X, NULL); WITHOUT(f, NULL, X); BESIDE(f, X, G); BESIDE(f, G, X)
static void pointwise(bad *b)
{
    ONE(weft_neg);
    ONE(weft_exp);
    ONE(weft_log);
    ONE(weft_sqrt);
    ONE(weft_rsqrt);
    ONE(weft_square);
    ONE(weft_abs);
    ONE(weft_reciprocal);
    ONE(weft_sin);
    ONE(weft_cos);
    ONE(weft_tanh);
    ONE(weft_sigmoid);
    ONE(weft_relu);
    ONE(weft_silu);
    ONE(weft_softplus);
    ONE(weft_gelu);
    TWO(weft_add);
    TWO(weft_sub);
    TWO(weft_mul);
    TWO(weft_div);
    TWO(weft_minimum);
    TWO(weft_maximum);
    TWO(weft_less);
    TWO(weft_less_equal);
    TWO(weft_greater);
    TWO(weft_greater_equal);
    TWO(weft_equal);
    TWO(weft_not_equal);
    TWO(weft_matmul);
    TWO(weft_index_select);
    TWO(weft_take_along);
    TWO(weft_concat_sequences); TWO(weft_broadcast_to_tokens); TWO(weft_ragged_like); TWO(weft_ragged_rows);
    ONE(weft_to_reals);
    ONE(weft_sum_all);
    ONE(weft_mean_all);
    ONE(weft_plain);
    ONE(weft_detach);
    MUST(weft_leaky_relu, X, b->r);              MUST(weft_elu, X, b->r);
    MUST(weft_clamp, X, b->r, b->r);             MUST(weft_pow, X, b->r);
    MUST(weft_scale, X, b->r);                   MUST(weft_where, X, X, NULL);
    MUST(weft_matmul_with, X, true, X, true);    MUST(weft_vector_norm, X, b->i, b->r);
}

static void along(bad *b)
{
    MUST(weft_sum, X, b->i);                     MUST(weft_mean, X, b->i);
    MUST(weft_max, X, b->i);               MUST(weft_cumsum, X, b->i);
    MUST(weft_min, X, b->i);                     MUST(weft_argmax, X, b->i);
    MUST(weft_argmin, X, b->i);                  MUST(weft_var, X, b->i, b->r);
    MUST(weft_std, X, 0, b->r);                  MUST(weft_topk, X, b->n, b->i, NULL, NULL);
    MUST(weft_topk, X, b->n, 0, Q, NULL);        MUST(weft_permute, X, (int[]){ b->i, 0, 0, 0, 0, 0 });
    MUST(weft_permute, X, NULL);                 TRY(weft_stack, Q, FEW, b->i);
    MUST(weft_stack, Q, 2, 0);                   TRY(weft_stack, NULL, 2, 0);
    MUST(weft_stack, Q, 2, b->i);                MUST(weft_repeat_interleave, X, b->i, b->n);
    MUST(weft_repeat_interleave, X, 0, b->n);    MUST(weft_to_ints, X);
    MUST(weft_softmax, X, b->i, NULL);           MUST(weft_softmax, X, b->i, X);
    MUST(weft_log_softmax, X, b->i, NULL);       MUST(weft_log_softmax, X, b->i, X);
    MUST(weft_logsumexp, X, b->i, NULL);         MUST(weft_logsumexp, X, b->i, X);
    MUST(weft_logsumexp, X, 0, NULL);            MUST(weft_layer_norm, X, NULL, X, b->r);
    MUST(weft_reshape, X, SHAPE);
    MUST(weft_reshape, X, 3, (const int64_t[]){ (int64_t)1 << 62, (int64_t)1 << 62, 6 });
    MUST(weft_reshape, X, 6, NULL);              MUST(weft_transpose, X, b->i, 0);
    TRY(weft_concat, Q, FEW, b->i);             MUST(weft_concat, Q, 2, b->i);
    TRY(weft_concat, NULL, 2, 0);                MUST(weft_slice, X, b->i, b->n, b->n);
    TRY(weft_concat, Q, FEWER, 0);               TRY(weft_concat, Q, (int64_t)1 << 40, 0);
    MUST(weft_slice, X, 0, b->n, -(b->n / 2));     MUST(weft_flip, X, b->i);
    MUST(weft_tile, X, b->i, b->n);            MUST(weft_tile, X, 0, b->n);
    MUST(weft_index_add, X, X, b->n);              MUST(weft_one_hot, X, b->n);
    MUST(weft_one_hot, X, (int64_t)1 << 62);     MUST(weft_dropout, X, b->r, b->name, true);
}

static void packed_ones(bad *b)
{
    weft_tensor *out[8];                         /* room for the sequences of RAGGED */
    weft_packed_sequence p = { .data = X, .steps = b->n, .sequences = b->n };
    MUST(weft_pack_sequence, Q, 2);              MUST(weft_pad_sequence, Q, 2, b->r, (weft_align)b->i);
    TRY(weft_pack_sequence, Q, FEWER);           TRY(weft_pad_sequence, Q, FEWER, b->r, WEFT_ALIGN_LEFT);
    TRY(weft_pack_sequence, NULL, b->n);         TRY(weft_pad_sequence, NULL, b->n, b->r, WEFT_ALIGN_RIGHT);
    MUST(weft_unpack_sequence, X, out);          TRY(weft_unpack_sequence, X, NULL);
    MUST(weft_packed_sequence_of, X);            MUST(weft_ragged_of, &p);
    TRY(weft_ragged_of, NULL);
}

static void ragged_ones(bad *b)
{
    packed_ones(b);
    weft_tensor *a, *c;
    MUST(weft_pack_padded_sequence, X, b->l, (weft_align)b->i);
    MUST(weft_pad_packed_sequence, X, b->n, b->r, WEFT_ALIGN_LEFT);
    MUST(weft_move_pads, X, b->l, WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT);
    TRY(weft_pack_sequence, Q, FEW);             MUST(weft_pack_sequence, Q, 2);
    TRY(weft_pad_sequence, Q, FEW, b->r, (weft_align)b->i);
    MUST(weft_pad_sequence, Q, 2, 0, WEFT_ALIGN_LEFT);
    TRY(weft_pack_sequence, NULL, 2);            MUST(weft_unpack_sequence, X, NULL);
    MUST(weft_ragged_of, &(weft_packed_sequence){ .data = X, .steps = b->n, .sequences = b->n });
    MUST(weft_packed_sequence_of, X);
    MUST(weft_ragged_of, &(weft_packed_sequence){ .data = X, .steps = -1 });
    MUST(weft_to_layout, X, (weft_layout)b->i);    MUST(weft_to_rows, X, NULL);
    MUST(weft_to_rows, X, &(weft_placement){ b->n, b->n, NULL, NULL });
    MUST(weft_split_sequences, X, b->l, &a, NULL);         MUST(weft_pool, X, (weft_pooling)b->i);
    MUST(weft_attention, X, X, NULL, NULL, &a);  MUST(weft_pairs, X, X, &a, &c);
    MUST(weft_attention, X, X, X, &(weft_attention_opts){ .heads = b->i, .causal = (weft_causal)b->i }, NULL);
}

static void sequences(bad *b)
{
    weft_series_batch past = { .past = X, .past_lengths = b->l, .past_align = (weft_align)b->i },
                      future = { .future = X, .future_lengths = b->l };
    weft_stream *s = weft_stream_of(b->w, "s");
    MUST(weft_pads_are_zero, X, b->l, (weft_align)b->i);
    MUST(weft_shorten_series, past, s, &(weft_shorten_opts){ .past_most = 1 });
    MUST(weft_shorten_series, future, s, &(weft_shorten_opts){ .future_least = b->i, .future_most = b->i });
}

static void gradients(bad *b)
{
    weft_tensor *g[2];
    const weft_op no_op = { .name = "no", .shape = no_shape };
    MUST(weft_backward, X);                      TRY(weft_grad, X);
    MUST(weft_gradients, X, Q, 2, g);            TRY(weft_gradients, X, NULL, 2, g);
    MUST(weft_gradients_recorded, X, Q, 2, g);   TRY(weft_gradients_recorded, X, Q, FEW, NULL);
    for (int order = 1; order < 3; order++) {
        MUST(weft_gradcheck, keeps_quiet, Q, 2, order, NULL);
        MUST(weft_gradcheck, NULL, Q, 1, order, NULL);
        TRY(weft_gradcheck, keeps_quiet, NULL, b->i, order, NULL);
        TRY(weft_gradcheck, keeps_quiet, Q, INT_MIN, order, NULL);
    }
    MUST(weft_gradcheck, keeps_quiet, Q, 2, b->i, NULL);
    TRY(weft_gradients, X, Q, FEWER, g);         TRY(weft_op_apply, &no_op, Q, (int64_t)1 << 40, NULL, 0);
    TRY(weft_on_result, NULL, NULL, NULL);           TRY(weft_op_apply, NULL, Q, 2, NULL, 0);
    TRY(weft_op_apply, &no_op, Q, FEW, NULL, 4);   MUST(weft_op_apply, &no_op, Q, 2, NULL, 0);
    TRY(weft_op_like, NULL, NULL);                  TRY(weft_op_set_shape, NULL, WEFT_REAL, SHAPE);
    TRY(weft_op_refuse, NULL, NULL);                TRY(weft_op_data, NULL);
    TRY(weft_op_int_data, NULL);                    TRY(weft_op_dy, NULL, b->i);
    TRY(weft_op_dx, NULL, b->i, NULL);
}

/* ---- beside a good tensor ---- */
#define PAIR(a, c) (weft_tensor *[]){ a, c }
static bool as_x(weft_call *c) { weft_op_like(c->y[0], c->x[0]); return true; }
static void no_run(weft_call *c) { (void)c; }

static void beside(bad *b)
{
    weft_tensor *a, *c, *g[2];
    const weft_op fine = { .name = "fine", .shape = as_x, .forward = no_run };
    BESIDE(weft_where, X, G, G);                 BESIDE(weft_where, G, X, G);
    BESIDE(weft_where, G, G, X);                 WITHOUT(weft_where, X, X, NULL);
    BESIDE(weft_matmul_with, X, true, G, false); BESIDE(weft_matmul_with, G, true, X, false);
    BESIDE(weft_softmax, X, 0, G);               OPTION(weft_softmax, G, 0, X);
    BESIDE(weft_log_softmax, X, 0, G);           OPTION(weft_log_softmax, G, 0, X);
    BESIDE(weft_logsumexp, X, 0, G);             OPTION(weft_logsumexp, G, 0, X);
    BESIDE(weft_stack, PAIR(X, G), 2, 0);        BESIDE(weft_stack, PAIR(G, X), 2, 0);
    BESIDE(weft_layer_norm, X, G, G, 1);         BESIDE(weft_layer_norm, G, X, G, 1);
    BESIDE(weft_layer_norm, G, G, X, 1);         WITHOUT(weft_layer_norm, X, NULL, X, 1);
    BESIDE(weft_concat, PAIR(X, G), 2, 0);       BESIDE(weft_concat, PAIR(G, X), 2, 0);
    BESIDE(weft_concat, PAIR(X, G), 2, 7);       BESIDE(weft_op_apply, &fine, PAIR(X, G), 2, NULL, 0);
    BESIDE(weft_op_apply, &fine, PAIR(G, X), 2, NULL, 0);
    BESIDE(weft_index_add, X, G, 2);               BESIDE(weft_index_add, G, X, 2);
    BESIDE(weft_attention, X, G, G, NULL, NULL); BESIDE(weft_attention, G, X, G, NULL, &a);
    BESIDE(weft_attention, G, G, X, NULL, &a);   BESIDE(weft_attention, X, G, G, NULL, &a);
    BESIDE(weft_attention, X, G, G, &(weft_attention_opts){ .causal = (weft_causal)7 }, NULL);
    BESIDE(weft_pairs, X, G, &a, &c);            BESIDE(weft_pairs, G, X, &a, &c);
    BESIDE(weft_gradients, X, &G, 1, g);         BESIDE(weft_gradients, G, PAIR(G, X), 2, g);
    for (int order = 1; order < 3; order++) {
        BESIDE(weft_gradcheck, keeps_quiet, PAIR(X, G), 2, order, NULL);
        BESIDE(weft_gradcheck, keeps_quiet, PAIR(G, X), 2, order, NULL);
    }
    BESIDE(weft_assign, X, G);                   BESIDE(weft_assign, G, X);
    BESIDE(weft_state_select, ((weft_state){ X, G }), NULL, 0);
    OPTION(weft_state_select, ((weft_state){ G, X }), NULL, 0);
}

static void losses_beside(bad *b)
{
#define MASK(x) &(weft_loss_opts){ .mask = x }
#define WEIGHTS(x) &(weft_loss_opts){ .weights = x }
#define LOSS_OF(f)            \
    BESIDE(f, X, G, NULL);    \
    BESIDE(f, G, X, NULL);    \
    OPTION(f, G, G, MASK(X)); \
    OPTION(f, G, G, WEIGHTS(X))
    LOSS_OF(weft_mse);
    LOSS_OF(weft_mae);
    LOSS_OF(weft_bce_with_logits);
    LOSS_OF(weft_smape);
    LOSS_OF(weft_mape);
    BESIDE(weft_huber, X, G, 1, NULL);           BESIDE(weft_huber, G, X, 1, NULL);
    BESIDE(weft_gaussian_nll, X, G, G, 1, NULL); BESIDE(weft_gaussian_nll, G, X, G, 1, NULL);
    BESIDE(weft_gaussian_nll, G, G, X, 1, NULL); BESIDE(weft_quantile_loss, X, G, NULL, 0, true, NULL);
    BESIDE(weft_quantile_loss, G, X, NULL, 0, true, NULL);
    BESIDE(weft_cross_entropy, X, G, NULL);      BESIDE(weft_cross_entropy, G, X, NULL);
    BESIDE(weft_forecast_loss, X, G, NULL, NULL); BESIDE(weft_forecast_loss, G, X, NULL, NULL);
    weft_tensor *two = weft_zeros(b->w, WEFT_SHAPE(1, 2));
    OPTION(weft_forecast_loss, two, two, NULL, &(weft_forecast_loss_opts){ .weights = X });
    BESIDE(weft_accuracy, X, G, NULL);     BESIDE(weft_accuracy, G, X, NULL);
    BESIDE(weft_sequence_accuracy, X, G, NULL);  BESIDE(weft_sequence_accuracy, G, X, NULL);
    BESIDE(weft_confusion_matrix, X, G, NULL);   BESIDE(weft_confusion_matrix, G, X, NULL);
    BESIDE(weft_ratio_value, ((weft_ratio){ X, G })); BESIDE(weft_ratio_value, ((weft_ratio){ G, X }));
    BESIDE(weft_mean_loss, ((weft_loss){ X, G }));
    BESIDE(weft_mean_loss, ((weft_loss){ G, X }));
}

static void modules(bad *b)
{
    const char *path;
    TRY(weft_module_new, NULL, b->name);         TRY(weft_module_new, b->w, NULL);
    TRY(weft_submodule_new, b->m, b->name);          TRY(weft_module_context, b->m);
    TRY(weft_parameter, b->m, b->name, SHAPE, (weft_init){ (weft_init_kind)b->i, b->r, b->r });
    TRY(weft_buffer, b->m, b->name, SHAPE);      MUST(weft_assign, X, X);
    MUST(weft_assign_values, X, NULL, b->n);
    MUST(weft_initialise, X, (weft_init){ (weft_init_kind)b->i, b->r, b->r });
    TRY(weft_tie, b->m, b->name, X);             TRY(weft_freeze, b->m, b->name, true);
    TRY(weft_freeze, NULL, "*", true);           TRY(weft_freeze, b->m, NULL, false);
    TRY(weft_parameter_count, b->m);
    TRY(weft_parameter_at, b->m, b->i, &path);   TRY(weft_buffer_count, b->m);
    TRY(weft_buffer_at, b->m, b->i, NULL);       TRY(weft_find_parameter, b->m, b->name);
    TRY(weft_parameter_numel, b->m);             TRY(weft_zero_grad, b->m);
    TRY(weft_divide_grad, b->m, X);              TRY(weft_flat_gradient, b->m);
    TRY(weft_flat_gradient, NULL);
}

static void losses(bad *b)
{
#define BOTH &(weft_loss_opts){ X, X }
#define CLASSES &(weft_ce_opts){ X, X, b->r, b->i, true }
#define SUM ((weft_loss){ X, X })
#define LOSS(f) MUST(f, X, X, NULL); MUST(f, X, NULL, BOTH); TRY(f, NULL, X, NULL)
    LOSS(weft_mse); LOSS(weft_mae); LOSS(weft_bce_with_logits); LOSS(weft_smape); LOSS(weft_mape);
    MUST(weft_mean_loss, SUM);
    MUST(weft_cross_entropy, X, X, NULL);        MUST(weft_cross_entropy, X, NULL, CLASSES);
    MUST(weft_huber, X, X, b->r, BOTH);            MUST(weft_gaussian_nll, X, X, NULL, b->r, BOTH);
    MUST(weft_quantile_loss, X, X, NULL, b->i, true, BOTH);
    MUST(weft_quantile_loss, X, X, &b->r, 1, false, NULL);
    MUST(weft_forecast_loss, X, X, b->l,
         &(weft_forecast_loss_opts){
             .kind = (weft_forecast_kind)b->i, .n = b->i, .delta = b->r, .weights = X });
    MUST(weft_forecast_loss, X, X, NULL,
         &(weft_forecast_loss_opts){ .kind = WEFT_FORECAST_QUANTILE, .n = b->i });
    MUST(weft_point_prediction, X, b->i);        MUST(weft_forecast_meters_add, NULL, X, X, b->l);
    MUST(weft_accuracy, X, X, NULL);       MUST(weft_accuracy, X, X, CLASSES);
    MUST(weft_sequence_accuracy, X, X, NULL);    MUST(weft_sequence_accuracy, X, NULL, CLASSES);
    MUST(weft_confusion_matrix, X, X, NULL);     MUST(weft_confusion_matrix, X, X, CLASSES);
    MUST(weft_confusion_add, NULL, b->n, X);     MUST(weft_confusion_add, &(double){ 0 }, 1, X);
    MUST(weft_ratio_value, ((weft_ratio){ X, X }));
}

static void plain_data(bad *b)
{
    TRY(weft_edit_distance, NULL, b->n, NULL, b->n);
    cr_assert_eq(weft_edit_distance(NULL, 3, (int32_t[]){ 1, 2 }, 2), -1);
    cr_assert_eq(weft_edit_distance((int32_t[]){ 1, 2 }, 2, NULL, INT64_MAX), -1);
    TRY(weft_meter_add, NULL, 1, 1);             TRY(weft_meter_mean, NULL);
    TRY(weft_meter_add_bucket, NULL, b->n, 1, 1);
    TRY(weft_class_scores_of, NULL, b->n, b->n); TRY(weft_class_scores_of, &(double){ 1 }, 1, b->n);
    TRY(weft_class_scores_of, NULL, b->n, WEFT_AVERAGE_MACRO);
    TRY(weft_class_scores_of, NULL, b->n, WEFT_AVERAGE_MICRO);
    weft_meter odd = { .edges = b->i };
    TRY(weft_meter_add, &odd, 1, 1);             TRY(weft_meter_add_bucket, &odd, b->n, 1, 1);
    TRY(weft_cosine_warmup, b->n, b->n, 1, b->n, 0);
    TRY(weft_step_decay, b->n, b->n, 1, 2);      TRY(weft_one_cycle, b->n, b->n, 1, 0, 0, 0);
    TRY(weft_plateau_step, NULL, 1);             TRY(weft_early_stopping_step, NULL, 1, NULL);
    cr_assert(isnan(weft_meter_mean(NULL)) && isnan(weft_plateau_step(NULL, 1)));
}

static void optimisers(bad *b)
{
    TRY(weft_sgd_new, b->m, &(weft_sgd_opts){ b->r, b->r, b->r, b->r, true });
    TRY(weft_rmsprop_new, b->m, &(weft_rmsprop_opts){ b->r, b->r, b->r, b->r, b->r, true });
    TRY(weft_adam_new, b->m, &(weft_adam_opts){ b->r, b->r, b->r, b->r, b->r });
    TRY(weft_adamw_new, b->m, NULL);             TRY(weft_optim_set_group, NULL, b->name, b->r, b->r);
    TRY(weft_optim_set_group, weft_sgd_new(b->m, NULL), b->name, b->r, b->r);
    TRY(weft_optim_step, NULL);                  TRY(weft_optim_set_lr, NULL, b->r);
    TRY(weft_optim_lr, NULL);                    TRY(weft_optim_steps, NULL);
    TRY(weft_optim_skipped, NULL, NULL);
    TRY(weft_optim_free, NULL);
    TRY(weft_optim_step, weft_sgd_new(b->m, NULL));
    TRY(weft_clip_grad_norm, b->m, b->r, 0);     TRY(weft_clip_grad_norm, b->m, b->r, b->r);
    TRY(weft_ema_new, b->m, b->r);           TRY(weft_ema_update, NULL, b->n);
    TRY(weft_ema_swap, NULL);                TRY(weft_ema_update, weft_ema_new(b->m, b->r), b->n);
}

static void files(bad *b)
{
    const weft_checkpoint_item item = { b->name, (weft_dtype)b->i, NULL, b->n };
    weft_load_report report;
    weft_dataset data;
    weft_journal *journal;
    const char *no_context = "/no/such/folder/file";
    const char *paths[] = { NULL, "", no_context };
    for (int i = 0; i < 3; i++) {
        const char *path = paths[i];
        FILE_FAILS(weft_save, path, b->m, NULL, NULL, 0);
        FILE_FAILS(weft_save, path, b->m, NULL, &item, b->i);
        FILE_FAILS(weft_load, path, b->m, NULL, &item, 1);
        FILE_FAILS(weft_load, path, NULL, NULL, &item, 1);
        FILE_FAILS(weft_load_matching, path, b->m, &report);
        FILE_FAILS(weft_load_state_dict, path, b->m, NULL);
        FILE_FAILS(weft_save_state_dict, path, b->m);           FILE_FAILS(weft_read_text, path, NULL, &data);
        FILE_FAILS(weft_read_csv, path, NULL, NULL, b->i, NULL, &data);
        FILE_FAILS(weft_read_csv, path, "a", &b->name, 1, NULL, &data);
        FILE_FAILS(weft_read_hdf5, path, NULL, &data);
        FILE_FAILS(weft_write_hdf5, &(weft_dataset){ .n = b->n }, path, "a");
        FILE_FAILS(weft_write_hdf5, NULL, path, NULL);
        FILE_FAILS(weft_plot_lines, path, NULL, NULL, b->i, b->i);
        FILE_FAILS(weft_plot_lines, path, NULL, &(weft_chart){ .n = 1 }, 1, b->i);
        FILE_FAILS(weft_plot_heatmap, path, NULL, b->i, b->i, NULL, NULL, NULL, NULL);
        FILE_FAILS(weft_plot_tape, path, b->name, b->w, X);
        FILE_FAILS(weft_plot_tape, path, NULL, NULL, X);
        FILE_FAILS(weft_plot_text, path, NULL, NULL, b->n, NULL, NULL);
        FILE_FAILS(weft_plot_text, path, NULL, "a", 1, &(double){ 1 },
                   &(weft_text_colours){ .columns = b->i });
        FILE_FAILS(weft_plot_cell, path, NULL, NULL);
        FILE_FAILS(weft_plot_cell, path, NULL, &(weft_cell_numbers){ .hidden = b->n, .unit = b->n });
        FILE_FAILS(weft_plot_batch, path, NULL, b->l, NULL, NULL, NULL, NULL);
        cr_assert_eq(weft_checkpoint_item_size(path, b->name), -1);
        TRY(weft_checkpoint_item_size, path, NULL);
        FILE_FAILS(weft_write_file, path, NULL, 1);
        FILE_FAILS(weft_journal_open, path, b->i, &journal);
        FILE_FAILS(weft_journal_open, path, true, NULL);
    }
    FILE_FAILS(weft_read_text, no_context, NULL, NULL);   note("weft_file_message");
    TRY(weft_dataset_free, NULL);
    TRY(weft_journal_number, NULL, NULL, 0);     TRY(weft_journal_text, NULL, NULL, NULL);
    TRY(weft_journal_line_end, NULL);                 TRY(weft_journal_close, NULL);
    TRY(weft_loader_new, NULL, "l", 0, NULL, NULL);
    TRY(weft_plan_loader_new, b->w, b->name, b->n, NULL, NULL, NULL);
    const weft_plan *of_loader;
    TRY(weft_loader_next_batch, NULL, &of_loader);  TRY(weft_loader_next_batch, NULL, NULL);
    TRY(weft_loader_new, b->w, b->name, b->n, NULL, &(weft_loader_opts){ b->n, b->n, b->i, true });
    TRY(weft_loader_next, NULL, NULL);           TRY(weft_loader_batches, NULL);
    TRY(weft_loader_epoch, NULL);                TRY(weft_loader_get_state, NULL);
    TRY(weft_loader_set_state, NULL, (weft_loader_state){ { 0 } });
    TRY(weft_dataset_batch, NULL, NULL, NULL, b->n);
    TRY(weft_dataset_batch, b->w, &(weft_dataset){ .n = b->n, .columns = b->n }, &(int32_t){ b->i }, b->n);
}

static void (*const groups[])(bad *) = {
    contexts, tensors,       pointwise,  along,  ragged_ones, sequences,   gradients,
    beside,   losses_beside, modules,    layers, forecasting, decoding,
    losses,   plain_data,    plans,      optimisers, files,  frames,      features, parallels,
};

static void all_of(weft *w, weft *other, int kind, int number)
{
    static const int64_t n[] = { -1, INT64_MIN, INT64_MAX };
    static const int     i[] = { -1, INT_MIN, INT_MAX };
    static const int32_t len[] = { -1, INT32_MAX };
    const weft_real      r[] = { -1, (weft_real)NAN, (weft_real)INFINITY };
    const weft_lengths   l[] = { { .n = n[number] }, { .n = 2, .len = len }, { .n = 1, .len = len + 1 } };
    const char *const names[] = {
        NULL, "", "a.b/c and much more than any name may ever have, which is the end of it, surely now it is"
    };
    for (int g = 0; g < COUNT(groups); g++) {
        bad b = { w,         other,
                  kind,      NULL,
                  NULL,      number ? NULL : weft_module_new(NULL, "m"),
                  n[number], i[number],
                  r[number], names[number],
                  &l[number] };
        renew(&b);
        groups[g](&b);
    }
}

Test(refused, bad_handles_and_numbers)
{
    weft *w = open_on(WEFT_CPU), *other = open_on(WEFT_CPU);
    for (int kind = 0; kind < KINDS; kind++)
        for (int number = 0; number < 3; number++)
            all_of(w, other, kind, number);
    CLEAN(w);
    CLEAN(other);
}

/* Where NULL is all that a function got, the next that gets a good tensor says so. */
Test(refused, what_came_of_null)
{
    weft *w = open_on(WEFT_CPU);
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2)), *of_null = weft_tanh(NULL);
    cr_assert(of_null && weft_ok(w));
    weft_add(x, of_null);
    FAILS(w, WEFT_EARG, "add: input 1 is what a function given NULL returned");
    weft_mul(weft_mean_loss((weft_loss){ NULL, NULL }), weft_zeros(w, WEFT_SHAPE(2)));
    FAILS(w, WEFT_EARG, "mul: input 0 is what a function given NULL returned");
    weft_mean_loss((weft_loss){ weft_zeros(w, WEFT_SHAPE(2)), NULL });
    FAILS(w, WEFT_EARG, "mul: input 1 is what a function given NULL returned");
    weft_add(NULL, weft_zeros(w, WEFT_SHAPE(2)));
    FAILS(w, WEFT_EARG, "add: input 0 is NULL");
    CLEAN(w);
}

Test(refused, no_function_is_missing)
{
    weft *w = open_on(WEFT_CPU);
    char name[80];
    int declared = 0;
    all_of(w, w, NOTHING, 0);
    FILE *list = popen("cd \"${WEFT_TESTS:-tests}/..\" && bash tests/exports.sh declared", "r");
    cr_assert_not_null(list);
    for (; fgets(name, sizeof name, list); declared++) {
        name[strcspn(name, "\n")] = 0;
        int before = calls;
        note(name);
        cr_assert_eq(calls, before, "%s is not called in this test", name);
    }
    pclose(list);
    cr_assert(declared > 200, "%d functions are declared", declared);
    CLEAN(w);
}
