/* test_messages.c - tests error messages. Each names the called function, the argument found and the one
 * expected. */
#include "tests/check.h"

static const int32_t one_two[] = { 1, 2 }, three[] = { 1, 0, 2 };
static weft_tensor *of(weft *w, int64_t n, const int32_t *len)  /* creates a ragged [.., 2] of n sequences */
{
    static const weft_real zeros[16];
    return weft_ragged(w, zeros, 2, &(weft_lengths){ .n = n, .len = len });
}

CPU_TEST(messages, layers_report_their_width)
{
    weft_linear *l =
        weft_linear_new(weft_module_new(w, "net"), "out", &(weft_linear_opts){ .in = 3, .out = 2 });
    weft_linear_run(l, weft_zeros(w, WEFT_SHAPE(1, 4)));
    FAILS(w, WEFT_ESHAPE,
          "net.out: linear: the input is [1, 4]; expected [.., 3] of reals, rank 2 or more");
    weft_linear_run(l, weft_zeros(w, WEFT_SHAPE(3)));
    FAILS(w, WEFT_ESHAPE, "the input is [3]; expected [.., 3] of reals, rank 2 or more");
    weft_linear_run(l, of(w, 2, one_two));
    FAILS(w, WEFT_ESHAPE, "net.out: linear: the input is [3, 2] concat; expected [.., 3] of reals");
    weft_linear_run(l, weft_ints(w, NULL, WEFT_SHAPE(2, 3)));
    FAILS(w, WEFT_ESHAPE, "net.out: linear: the input is [2, 3] of ints; expected [.., 3] of reals");
}

CPU_TEST(messages, limits_are_reported)
{
    weft_mlp_new(weft_module_new(w, "net"), "l",
                 &(weft_mlp_opts){ .layers = 10000, .widths = (int64_t[]){ 1 } });
    FAILS(w, WEFT_EARG, "mlp: 10000 layers; expected 1 .. 9999");
    weft_cross_entropy(weft_zeros(w, WEFT_SHAPE(2, 0)), weft_ints(w, NULL, WEFT_SHAPE(2)), NULL);
    FAILS(w, WEFT_ESHAPE,
          "cross_entropy: [2, 0], [2] of ints: rows without classes");
    weft_loss none =
        weft_cross_entropy(weft_zeros(w, WEFT_SHAPE(0, 0)), weft_ints(w, NULL, WEFT_SHAPE(0)), NULL);
    cr_assert(weft_item(none.sum) == 0 && weft_item(none.weight) == 0, "%s", weft_error_message(w));
}

/* A non-finite setting would spread to later results and hide its origin, so it is refused. */
CPU_TEST(messages, non_finite_settings_are_refused)
{
    const weft_real inf = (weft_real)INFINITY, nan = (weft_real)NAN;
    weft_module *m = weft_module_new(w, "net");
    weft_rand(w, nan, 1, WEFT_SHAPE(2));
    FAILS(w, WEFT_EARG,
          "rand: from nan to 1; expected low <= high, both finite, with a finite difference");
    FAILS_AT(w, weft_rand(w, 3, 1, WEFT_SHAPE(2)), WEFT_EARG, "rand: from 3 to 1");
    FAILS_AT(w, weft_rand(w, 0, inf, WEFT_SHAPE(2)), WEFT_EARG, "rand: from 0 to inf");
    weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_UNIFORM, 1, -1 });
    FAILS(w, WEFT_EARG, "parameter: net.p: uniform first values from 1 to -1; expected a <= b");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_UNIFORM, 2, 2 });
    cr_assert_eq(numbers(p)[1], 2);
    for (int i = 0; i < 2; i++) {
        weft_attention(of(w, 2, one_two), of(w, 2, one_two), of(w, 2, one_two),
                       &(weft_attention_opts){ .heads = 1, .scale = i ? inf : nan }, NULL);
        FAILS(w, WEFT_EARG, "attention: [3, 2] concat: scale: expected a finite number");
        weft_attention(of(w, 2, one_two), of(w, 2, one_two), of(w, 2, one_two),
                       &(weft_attention_opts){ .heads = 2, .mean_heads = true }, NULL);
        FAILS(w, WEFT_EARG, "attention: [3, 2] concat: mean_heads: shared_values is false");
        weft_layer_norm(weft_zeros(w, WEFT_SHAPE(2, 2)), NULL, NULL, i ? inf : nan);
        FAILS(w, WEFT_EARG, "layer_norm: [2, 2]: expected a finite eps >= 0");
    }
}

CPU_TEST(messages, different_numbers_of_sequences_are_reported)
{
    weft_concat_sequences(of(w, 2, one_two), of(w, 3, three));
    FAILS(w, WEFT_ESHAPE, "concat_sequences: 2 and 3 sequences; expected equal numbers");
    weft_concat_sequences(of(w, 2, one_two), weft_zeros(w, WEFT_SHAPE(2, 2)));
    FAILS(w, WEFT_ESHAPE, "concat_sequences: [2, 2]; expected two ragged tensors");
    weft_pairs(of(w, 3, three), of(w, 2, one_two), NULL, NULL);
    FAILS(w, WEFT_ESHAPE, "pairs: 3 and 2 sequences");
    weft_broadcast_to_tokens(weft_zeros(w, WEFT_SHAPE(2, 5)), of(w, 3, three));
    FAILS(w, WEFT_ESHAPE, "broadcast_to_tokens: [2, 5]: expected a plain tensor with one row for each of 3");
    weft_split_sequences(of(w, 3, three), &(weft_lengths){ .n = 2, .len = one_two }, NULL, NULL);
    FAILS(w, WEFT_EARG, "split_sequences: [3, 2] concat: 2 lengths");
}

CPU_TEST(messages, the_called_function_is_named)
{
    weft_length_mask(w, &(weft_lengths){ .n = 2, .len = one_two }, 1, WEFT_ALIGN_LEFT);
    FAILS(w, WEFT_ESHAPE, "mask: total 1; expected at least the longest sequence, 2");
    weft_sequence_accuracy(weft_zeros(w, WEFT_SHAPE(2, 3)), weft_ints(w, NULL, WEFT_SHAPE(2)), NULL);
    FAILS(w, WEFT_ESHAPE, "sequence_accuracy: the scores are [2, 3]; expected a ragged tensor");
    weft_clamp(weft_zeros(w, WEFT_SHAPE(2)), 2, 1);
    FAILS(w, WEFT_EARG, "clamp: [2]: from 2 to 1; expected low <= high");
    weft_clamp(weft_zeros(w, WEFT_SHAPE(2)), 0, (weft_real)NAN);
    FAILS(w, WEFT_EARG, "clamp: [2]: from 0 to ");
}

CPU_TEST(messages, invalid_lengths_are_reported)
{
    weft_ragged_ints(w, one_two, &(weft_lengths){ .n = -3, .len = one_two });
    FAILS(w, WEFT_EARG, "ragged_ints: lengths: n is -3; expected 0 .. 2^31 - 2");
    weft_ragged_ints(w, one_two, &(weft_lengths){ .n = (int64_t)1 << 40, .len = one_two });
    FAILS(w, WEFT_EARG, "lengths: n is 1099511627776");
    FAILS_AT(w, weft_ragged_ints(w, one_two, &(weft_lengths){ .n = 2 }), WEFT_EARG, "lengths: len is NULL");
    FAILS_AT(w, weft_ragged_ints(w, one_two, NULL), WEFT_EARG, "lengths: NULL");
    const int32_t large[] = { 5, INT32_MAX };
    weft_ragged_ints(w, one_two, &(weft_lengths){ .n = 1, .len = large + 1 });
    FAILS(w, WEFT_EARG,
          "sequence 0 has length 2147483647, 2147483647 tokens so far; expected 0 or more, and fewer than "
          "2^31 - 1");
    weft_ragged_ints(w, one_two, &(weft_lengths){ .n = 2, .len = large });
    FAILS(w, WEFT_EARG, "sequence 1 has length 2147483647, 2147483652 tokens so far");
}

/* ---- found and expected ---- */
static weft_tensor *x;                           /* x is [2, 3] of zeros in each case. */
#define SAYS(call, text)                                  \
    do {                                                  \
        x = weft_zeros(w, WEFT_SHAPE(2, 3));              \
        FAILS_AT(w, call, weft_error_code(w), text);      \
    } while (0)

CPU_TEST(messages, shapes_are_reported_with_their_sizes)
{
    SAYS(weft_matmul(x, weft_zeros(w, WEFT_SHAPE(4, 5))),
         "matmul: [2, 3], [4, 5]: the inner extents do not agree: 3 of a, 4 of b");
    SAYS(weft_matmul_with(x, true, weft_zeros(w, WEFT_SHAPE(5, 3)), true),
         "the inner extents do not agree: 2 of a (transposed), 3 of b (transposed)");
    SAYS(weft_matmul(weft_zeros(w, WEFT_SHAPE(2, 1, 3)), weft_zeros(w, WEFT_SHAPE(4, 3, 1))),
         "the leading axes do not agree");
    SAYS(weft_matmul_with(of(w, 2, one_two), true, weft_zeros(w, WEFT_SHAPE(3, 1)), false),
         "ragged rows; expected a plain b of rank 2, or the same rows in both");
    SAYS(weft_reshape(x, WEFT_SHAPE(4, 2)), "reshape: [2, 3]: 6 elements; expected the number of [4, 2]");
    SAYS(weft_reshape(x, WEFT_SHAPE(4, -1)), "reshape: [2, 3]: 6 elements; expected the number of [4, -1]");
    SAYS(weft_reshape(x, 7, (int64_t[7]){ 6 }),
         "reshape: [2, 3]: rank 7; expected a shape of rank 0 .. 6");
    SAYS(weft_reshape(of(w, 2, one_two), WEFT_SHAPE(2, 3)),
         "reshape: [3, 2] concat: to [2, 3]; expected axis 0 with the 3 rows of the ragged tensor");
    SAYS(weft_slice(x, 1, 2, 5), "slice: [2, 3]: from 2 to 5 of axis 1; expected a part of 0 .. 3");
    SAYS(weft_concat((weft_tensor *[]){ x, weft_zeros(w, WEFT_SHAPE(3, 3)) }, 2, 1),
         "concat: [2, 3], [3, 3]: along axis 1: input 1 is [3, 3], input 0 [2, 3]");
    SAYS(weft_tile(x, 0, -1), "tile: [2, 3]: axis 0, -1 times");
    SAYS(weft_layer_norm(x, weft_zeros(w, WEFT_SHAPE(2)), weft_zeros(w, WEFT_SHAPE(2)), 1),
         "expected gain and shift [3], as the last axis");
    SAYS(weft_gather(x, weft_zeros(w, WEFT_SHAPE(2))),
         "gather: [2, 3], [2]: expected reals, and a column number for each of their rows: [2] "
         "of ints");
    SAYS(weft_one_hot(weft_ints(w, NULL, WEFT_SHAPE(2)), 0), "one_hot: [2] of ints: 0 classes");
    SAYS(weft_dropout(x, 1, "d", false), "dropout: [2, 3]: p = 1");
    SAYS(weft_attention(of(w, 2, one_two), of(w, 3, three), of(w, 3, three), NULL, NULL),
         "equal numbers of sequences in queries and keys (2 and 3)");
    SAYS(weft_attention(of(w, 2, one_two), of(w, 2, one_two), of(w, 2, one_two),
                        &(weft_attention_opts){ .heads = 3 }, NULL),
         "queries and keys of one width (2 and 2), and widths that are multiples of 3 heads");
    SAYS(weft_stream_of(w, ""), "stream_of: \"\"; expected a name of 1 .. 47 bytes");
}

CPU_TEST(messages, layers_report_the_shape_they_got)
{
    weft_module *m = weft_module_new(w, "net");
    SAYS(weft_layer_norm_run(weft_layer_norm_new(m, "a", &(weft_layer_norm_opts){ .width = 4 }), x),
         "net.a: layer_norm: [2, 3]: expected [.., 4] of reals");
    SAYS(weft_embedding_run(weft_embedding_new(m, "c", &(weft_embedding_opts){ .rows = 9, .columns = 2 }), x),
         "net.c: embedding_run: [2, 3]: expected ids as ints below 9");
    SAYS(weft_lstm_new(m, "d", &(weft_rnn_opts){ .input = 3, .hidden = 4, .dropout = 1 }),
         "given: input 3, hidden 4, layers 0, proj 0, dropout 1");
    SAYS(weft_attention_run(
             weft_attention_new(
                 m, "e", &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = 4, .heads = 2 }),
             x, of(w, 2, one_two), WEFT_ALL_KEYS, NULL),
         "net.e: linear: [2, 3] packed, [12, 4], [12]: expected [.., 4], the columns of the weight");
    SAYS(weft_attention_lstm_new(m, "f",
                                 &(weft_attention_lstm_opts){ .num_past_features = 1,
                                                              .num_future_features = 1,
                                                              .d_model = 8,
                                                              .num_layers = 1,
                                                              .num_heads = 3 }),
         "attention_lstm: num_heads: expected a divisor of d_decoder, not 3 for 8");
}

CPU_TEST(messages, tensors_of_two_batches_are_refused)
{
    SAYS(weft_add(of(w, 2, (int32_t[]){ 2, 1 }), of(w, 2, one_two)),
         "add: [3, 2] concat, [3, 2] concat: the inputs belong to different batches: sequence 0 has 2 tokens "
         "in the first and 1 in the second");
    SAYS(weft_add(of(w, 3, three), of(w, 2, one_two)),
         "different batches: the first has 3 sequences, the second 2");
    static const weft_real zeros[16];
    weft_lengths l = { .n = 2, .len = one_two, .id = (int64_t[]){ 0, 1 } }, other = l;
    other.id = (int64_t[]){ 0, 7 };
    SAYS(weft_add(of(w, 2, one_two), weft_ragged(w, zeros, 2, &other)),
         "different batches: their lengths agree, but sequence 1 has the id 1 in the first and 7 in the "
         "second; ids were given only for one of them");
    weft_add(of(w, 2, one_two), weft_ragged(w, zeros, 2, &l));   /* the default ids */
    OK(w);
}

/* PyTorch uses [N, C, T]. */
CPU_TEST(messages, misplaced_class_axis_is_reported)
{
    SAYS(weft_cross_entropy(weft_zeros(w, WEFT_SHAPE(2, 5, 7)), weft_ints(w, NULL, WEFT_SHAPE(2, 7)), NULL)
             .sum,
         "cross_entropy: [2, 5, 7], [2, 7] of ints: classes are the last axis, of extent 7 here; they seem "
         "to be axis 1, of extent 5, as in PyTorch: weft_transpose(logits, 1, 2)");
    SAYS(weft_cross_entropy(weft_zeros(w, WEFT_SHAPE(2, 5, 7)), weft_ints(w, NULL, WEFT_SHAPE(2, 6)), NULL)
             .sum,
         "expected logits [.., classes] and classes [..]");
}

/* ---- operators of a program ---- */
static bool sets_nothing(weft_call *c) { (void)c; return true; }
static bool sets_rank_7(weft_call *c)
{
    weft_op_set_shape(c->y[0], WEFT_REAL, 7, (int64_t[7]){ 1 });
    return true;
}
static bool sets_scalars(weft_call *c)
{
    weft_op_set_shape(c->y[0], WEFT_REAL, 0, NULL), weft_op_set_shape(c->y[1], WEFT_I32, 0, NULL);
    return true;
}
static bool no_reason(weft_call *c) { return !c; }
static bool sets_one_of_two(weft_call *c) { weft_op_set_shape(c->y[0], WEFT_REAL, 0, NULL); return true; }
static void nothing(weft_call *c) { (void)c; }
static void reals_of_ints(weft_call *c)
{
    for (int64_t i = 0; weft_op_data(c->x[0]) && i < weft_numel(c->x[0]); i++)
        weft_op_data(c->y[0])[i] = weft_op_data(c->x[0])[i];
}
static void ints_of_reals(weft_call *c)
{
    for (int64_t i = 0; i < weft_numel(c->x[0]); i++)
        weft_op_int_data(c->y[0])[i] = weft_op_int_data(c->x[0])[i];
}
static bool like_but_real(weft_call *c)
{
    weft_op_set_shape(c->y[0], WEFT_REAL, 1, (int64_t[]){ weft_size(c->x[0], 0) });
    return true;
}
static void fused_of_ints(const weft_call *c) { (void)weft_op_data(c->x[1]); }

static weft_tensor *mine_of_x(int results, bool (*shape)(weft_call *))
{
    static weft_op mine;
    mine = (weft_op){ .name = "mine", .results = results, .shape = shape, .forward = nothing };
    return weft_op_apply(&mine, &x, 1, NULL, 0);
}
CPU_TEST(messages, operator_without_a_shape_is_refused)
{
    SAYS(mine_of_x(0, sets_nothing),
         "mine: [2, 3]: the shape function has not set a valid shape of result 0; expected weft_op_like "
         "or weft_op_set_shape");
    SAYS(mine_of_x(0, sets_rank_7), "mine: [2, 3]: the shape function has not set a valid shape of result 0");
    SAYS(mine_of_x(2, sets_one_of_two), "a valid shape of result 1");
    SAYS(mine_of_x(0, no_reason), "mine: the shape function failed; expected a reason by weft_op_refuse");
    x = weft_zeros(w, WEFT_SHAPE(2, 3));
    cr_assert_eq(weft_rank(mine_of_x(2, sets_scalars)), 0);
}

CPU_TEST(messages, wrong_element_type_is_reported, .init = unchecked)
{
    weft_tensor *ids = weft_ints(w, NULL, WEFT_SHAPE(9));
    SAYS((ids = weft_ints(w, NULL, WEFT_SHAPE(9)),
          weft_op_apply(&(weft_op){ .name = "mine", .shape = like_but_real, .forward = reals_of_ints }, &ids,
                        1, NULL, 0)),
         "mine: op_data of [9] of ints; expected weft_op_int_data");
    weft_op ints = { .name = "mine", .shape = like_first, .forward = ints_of_reals };
    SAYS(weft_op_apply(&ints, &x, 1, NULL, 0),
         "mine: op_int_data of [2, 3] of reals; expected weft_op_data");
    weft_op fused = { .name = "mine", .shape = like_first, .forward = nothing, .fused = fused_of_ints };
    weft_tensor *p =
        weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    SAYS((ids = weft_ints(w, NULL, WEFT_SHAPE(9)),
          weft_backward(weft_sum_all(weft_op_apply(&fused, (weft_tensor *[]){ p, ids }, 2, NULL, 0)))),
         "mine: op_data of [9] of ints; expected weft_op_int_data");
    SAYS(weft_op_int_data(x), "op_int_data of [2, 3] of reals");
    SAYS((weft_clear(w), weft_op_data(x)), "op_data: the tensor is of a step that has ended");
}

CPU_TEST(messages, ignored_class_and_padding_row_need_a_flag)
{
    weft_tensor *logits = weft_randn(w, WEFT_SHAPE(4, 3)),
                *classes = weft_ints(w, (int32_t[]){ 0, -100, 2, -100 }, WEFT_SHAPE(4));
    for (int said = 0; said < 2; said++) {
        cr_assert_eq(weft_item(weft_cross_entropy(logits, classes,
                                                  &(weft_cross_entropy_opts){ .ignore_index = -100,
                                                                              .has_ignore_index = said })
                                   .weight),
                     2, "%s", weft_error_message(w));
        cr_assert_eq(weft_item(weft_accuracy(logits, classes,
                                             &(weft_cross_entropy_opts){ .ignore_index = -100,
                                                                         .has_ignore_index = said })
                                   .total),
                     2);
    }
    classes = weft_ints(w, (int32_t[]){ 0, 1, 2, 0 }, WEFT_SHAPE(4));
    for (int said = 0; said < 2; said++)  /* 0 is also the value of an option that is not set */
        cr_assert_eq(weft_item(weft_cross_entropy(
                                   logits, classes,
                                   &(weft_cross_entropy_opts){ .ignore_index = 0, .has_ignore_index = said })
                                   .weight),
                     said ? 2 : 4);
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *e =
        weft_embedding_new(m, "e", &(weft_embedding_opts){ .rows = 3, .columns = 2, .padding = 2 });
    weft_embedding *none =
        weft_embedding_new(m, "none", &(weft_embedding_opts){ .rows = 3, .columns = 2, .padding = 0 });
    weft_tensor *ids = weft_ints(w, (int32_t[]){ 2, 0 }, WEFT_SHAPE(2));
    weft_real *got = numbers(weft_embedding_run(e, ids)), *all = numbers(weft_embedding_run(none, ids));
    cr_assert(got[0] == 0 && got[1] == 0 && got[2] != 0 && all[0] != 0 && all[2] != 0);
}

/* ---- messages with a remedy ---- */
CPU_TEST(messages, unrecorded_loss_is_reported)
{
    weft_tensor *p = weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(2), (weft_init){ 0 }), *loss, *g;
    WEFT_NO_GRAD(w)
        loss = weft_sum_all(p);
    weft_backward(loss);
    FAILS(w, WEFT_EARG,
          "backward: the loss is not a result on the tape: it was computed while "
          "the tape was off (WEFT_NO_GRAD, weft_set_grad_enabled)");
    weft_set_grad_enabled(w, false);
    weft_gradients(weft_sum_all(p), &p, 1, &g);
    FAILS(w, WEFT_EARG, "on the tape: it was computed while the tape was off (WEFT_NO_GRAD, ");
    weft_set_grad_enabled(w, true);
    weft_backward(weft_scalar(w, 1));
    FAILS(w, WEFT_EARG, "backward: the loss is not a result on the tape: it is a constant");
    WEFT_NO_GRAD(w)
        loss = weft_sum_all(p);
    weft_backward(weft_scale(loss, 2));
    FAILS(w, WEFT_EARG, "or operators while the tape was off (WEFT_NO_GRAD)");
}

CPU_TEST(messages, state_of_an_ended_step_is_reported)
{
    weft_rnn *r = weft_gru_new(weft_module_new(w, "m"), "r", &(weft_rnn_opts){ .input = 2, .hidden = 3 });
    weft_state last = weft_rnn_run(r, of(w, 2, one_two), WEFT_ZERO_STATE).last;
    weft_clear(w);
    weft_rnn_run(r, of(w, 2, one_two), last);
    FAILS(w, WEFT_EARG,
          "state h is of a step that has ended (weft_clear ends all tensors of a step; weft_assign to "
          "a buffer carries one over)");
}

CPU_TEST(messages, ints_in_place_of_reals_are_reported)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_gru_new(m, "r", &(weft_rnn_opts){ .input = 2, .hidden = 3 });
    weft_rnn_run(r, weft_ragged_ints(w, one_two, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 1, 1 } }),
                 WEFT_ZERO_STATE);
    FAILS(w, WEFT_ESHAPE, "of reals (ids: weft_embedding_run; numbers: weft_to_reals)");
    weft_linear *l = weft_linear_new(m, "l", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_linear_run(l, weft_ints(w, one_two, WEFT_SHAPE(1, 2)));
    FAILS(w, WEFT_ESHAPE, "rank 2 or more (ids: weft_embedding_run; numbers: weft_to_reals)");
    weft_softmax(weft_ints(w, one_two, WEFT_SHAPE(1, 2)), 1, NULL);
    FAILS(w, WEFT_ESHAPE,
          "softmax: [1, 2] of ints: expected reals, and a mask of the same shape (weft_to_reals)");
    weft_matmul(weft_ints(w, one_two, WEFT_SHAPE(1, 2)), weft_zeros(w, WEFT_SHAPE(2, 2)));
    FAILS(w, WEFT_ESHAPE,
          "matmul: [1, 2] of ints, [2, 2]: expected reals of rank 2 or more (weft_to_reals)");
}

CPU_TEST(messages, missing_parameter_is_reported)
{
    weft_module *m = weft_module_new(w, "net");
    weft_linear_new(m, "l", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_tensor *typo = weft_find_parameter(m, "l.weigth");
    cr_assert_null(typo);
    weft_add(weft_find_parameter(m, "l.weight"), typo);
    FAILS(w, WEFT_EARG, "add: input 1 is NULL (weft_find_parameter found no \"l.weigth\" below net; ");
    weft_add(weft_find_parameter(m, "l.weight"), NULL);
    cr_assert_null(strstr(weft_error_message(w), "weft_find_parameter"));
    FAILS(w, WEFT_EARG, "add: input 1 is NULL");
}
