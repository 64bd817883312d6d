/* test_messages.c - what goes wrong is said with the name of the function that was called, what it got and what it wants. */
#include "check.h"

static const int32_t one_two[] = { 1, 2 }, three[] = { 1, 0, 2 };
static weft_tensor *of(weft *w, int64_t n, const int32_t *len)    /* a ragged [.., 2] of n sequences */
{
    static const weft_real zeros[16];
    return weft_ragged(w, zeros, 2, &(weft_lengths){ n, len, NULL });
}

Test(messages, a_layer_says_its_width)
{
    weft *w = open_on(WEFT_CPU);
    weft_linear *l = weft_linear_new(weft_module_new(w, "net"), "out", 3, 2);
    weft_linear_run(l, weft_zeros(w, WEFT_SHAPE(1, 4)));
    FAILS(w, WEFT_ESHAPE, "net.out: linear: the input is [1, 4]; [.., 3] of reals, of rank 2 or more, is wanted");
    weft_linear_run(l, weft_zeros(w, WEFT_SHAPE(3)));
    FAILS(w, WEFT_ESHAPE, "the input is [3]; [.., 3] of reals, of rank 2 or more, is wanted");
    weft_linear_run(l, of(w, 2, one_two));
    FAILS(w, WEFT_ESHAPE, "net.out: linear: the input is [3, 2] concat; [.., 3] of reals");
    weft_linear_run(l, weft_ints(w, NULL, WEFT_SHAPE(2, 3)));
    FAILS(w, WEFT_ESHAPE, "net.out: linear: the input is [2, 3] of ints; [.., 3] of reals");
    weft_matmul(weft_ints(w, NULL, WEFT_SHAPE(2, 3)), weft_zeros(w, WEFT_SHAPE(3, 1)));
    FAILS(w, WEFT_ESHAPE, "matmul: [2, 3] of ints, [3, 1]: reals of rank 2 or more are wanted");
    CLEAN(w);
}

Test(messages, limits)
{
    weft *w = open_on(WEFT_CPU);
    weft_mlp_new(weft_module_new(w, "net"), "l", &(weft_mlp_opts){ .layers = 10000, .widths = (int64_t[]){ 1 } });
    FAILS(w, WEFT_EARG, "mlp: 10000 layers; 1 .. 9999 are wanted");
    weft_cross_entropy(weft_zeros(w, WEFT_SHAPE(2, 0)), weft_ints(w, NULL, WEFT_SHAPE(2)), NULL);
    FAILS(w, WEFT_ESHAPE, "cross_entropy: [2, 0], [2] of ints: there are rows, but no classes to choose from");
    weft_loss none = weft_cross_entropy(weft_zeros(w, WEFT_SHAPE(0, 0)), weft_ints(w, NULL, WEFT_SHAPE(0)), NULL);
    cr_assert(weft_item(none.sum) == 0 && weft_item(none.weight) == 0, "%s", weft_message(w));
    CLEAN(w);
}

/* What is not finite would spoil all that comes after it, and nobody would know where it came from. */
Test(messages, settings)
{
    const weft_real inf = (weft_real)INFINITY, nan = (weft_real)NAN;
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "net");
    weft_uniform(w, nan, 1, WEFT_SHAPE(2));
    FAILS(w, WEFT_EARG, "uniform: from nan to 1; finite numbers, not too far apart and the lower one first, are wanted");
    weft_uniform(w, 3, 1, WEFT_SHAPE(2));
    FAILS(w, WEFT_EARG, "uniform: from 3 to 1");
    weft_uniform(w, 0, inf, WEFT_SHAPE(2));
    FAILS(w, WEFT_EARG, "uniform: from 0 to inf");
    weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_UNIFORM, 1, -1 });
    FAILS(w, WEFT_EARG, "parameter: net.p: uniform first values from 1 to -1; the lower one first");
    weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_UNIFORM, nan, 1 });
    FAILS(w, WEFT_EARG, "parameter: net.p: first values from a = nan");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_UNIFORM, 2, 2 });
    cr_assert_eq(numbers(p)[1], 2);
    for (int i = 0; i < 2; i++) {
        weft_attention(of(w, 2, one_two), of(w, 2, one_two), of(w, 2, one_two), &(weft_attention_opts){ .heads = 1, .scale = i ? inf : nan }, NULL);
        FAILS(w, WEFT_EARG, "attention: [3, 2] concat: a finite scale is wanted");
        weft_layer_norm(weft_zeros(w, WEFT_SHAPE(2, 2)), NULL, NULL, i ? inf : nan);
        FAILS(w, WEFT_EARG, "layer_norm: [2, 2]: a finite eps >= 0");
    }
    CLEAN(w);
}

Test(messages, counts_of_sequences)
{
    weft *w = open_on(WEFT_CPU);
    weft_join(of(w, 2, one_two), of(w, 3, three));
    FAILS(w, WEFT_ESHAPE, "join: 2 and 3 sequences; as many in both");
    weft_join(of(w, 2, one_two), weft_zeros(w, WEFT_SHAPE(2, 2)));
    FAILS(w, WEFT_ESHAPE, "join: [2, 2]: two ragged tensors");
    weft_pairs(of(w, 3, three), of(w, 2, one_two), NULL, NULL);
    FAILS(w, WEFT_ESHAPE, "pairs: 3 and 2 sequences");
    weft_spread(weft_zeros(w, WEFT_SHAPE(2, 5)), of(w, 3, three));
    FAILS(w, WEFT_ESHAPE, "spread: [2, 5]: plain reals with one row for each of 3 sequences");
    weft_split(of(w, 3, three), &(weft_lengths){ 2, one_two, NULL }, NULL, NULL);
    FAILS(w, WEFT_EARG, "split: [3, 2] concat: 2 lengths");
    CLEAN(w);
}

Test(messages, the_function_that_was_called)
{
    weft *w = open_on(WEFT_CPU);
    weft_mask(w, &(weft_lengths){ 2, one_two, NULL }, 1, WEFT_ALIGN_LEFT);
    FAILS(w, WEFT_ESHAPE, "mask: total 1; at least the longest sequence, 2");
    weft_sequence_accuracy(weft_zeros(w, WEFT_SHAPE(2, 3)), weft_ints(w, NULL, WEFT_SHAPE(2)), NULL);
    FAILS(w, WEFT_ESHAPE, "sequence_accuracy: the scores are [2, 3]; ragged ones");
    weft_clamp(weft_zeros(w, WEFT_SHAPE(2)), 2, 1);
    FAILS(w, WEFT_EARG, "clamp: [2]: from 2 to 1; low <= high");
    weft_clamp(weft_zeros(w, WEFT_SHAPE(2)), 0, (weft_real)NAN);
    FAILS(w, WEFT_EARG, "clamp: [2]: from 0 to ");
    CLEAN(w);
}

Test(messages, lengths)
{
    weft *w = open_on(WEFT_CPU);
    weft_ragged_ints(w, one_two, &(weft_lengths){ -3, one_two, NULL });
    FAILS(w, WEFT_EARG, "ragged_ints: lengths: n is -3; 0 or more");
    weft_ragged_ints(w, one_two, &(weft_lengths){ (int64_t)1 << 40, one_two, NULL });
    FAILS(w, WEFT_EARG, "lengths: n is 1099511627776");
    weft_ragged_ints(w, one_two, &(weft_lengths){ 2, NULL, NULL });
    FAILS(w, WEFT_EARG, "lengths: len is NULL");
    weft_ragged_ints(w, one_two, NULL);
    FAILS(w, WEFT_EARG, "lengths: NULL");
    const int32_t large[] = { 5, INT32_MAX };
    weft_ragged_ints(w, one_two, &(weft_lengths){ 1, large + 1, NULL });
    FAILS(w, WEFT_EARG, "sequence 0 has length 2147483647, 2147483647 tokens so far; 0 or more is wanted, and fewer than 2^31 - 1");
    weft_ragged_ints(w, one_two, &(weft_lengths){ 2, large, NULL });
    FAILS(w, WEFT_EARG, "sequence 1 has length 2147483647, 2147483652 tokens so far");
    CLEAN(w);
}
