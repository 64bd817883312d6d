/* test_torch.c - tests files of torch.save: their tensors, parts and facts. torch_files.py writes them. */
#include "archives.h"
#include "tests/failing_malloc.h"

/* Array k, by names, has the numbers k + i / 64. */
static void are_filled(weft__weights *w, int64_t n)
{
    cr_assert(w->n == n, "%s: %lld arrays", w->path, (long long)w->n);
    for (int64_t k = 0; k < n; k++) {
        double want[64];
        char kind[128];
        for (int i = 0; i < 64; i++)
            want[i] = (double)k + i / 64.0;
        has_numbers(w, w->array[k].name, weft__kind_text(&w->array[k].kind, kind), want);
    }
}

FILE_TEST(torch, state_dicts_are_read)
{
    weft__weights *all = open_weights(sample("lstm.pt"), NULL);
    are_filled(all, 10);
    cr_assert_str_eq(all->array[0].name, "lstm.bias_hh_l0");
    cr_assert_eq(array_of(all, "lstm.weight_ih_l0_reverse")->kind.size[1], 3);
    cr_assert_str_eq(fact_of(all, "format"), "torch.save, version 3");
    all = open_weights(sample("parallel.pt"), NULL);
    are_filled(all, 10);
    cr_assert_str_eq(all->array[9].name, "module.out.weight");
}

FILE_TEST(torch, checkpoint_gives_its_model_or_a_part)
{
    static const char *const facts[][2] = {
        { "part", "model" }, { "epoch", "3" }, { "loss", "0.5" }, { "name", "tagger" },
        { "not called", "argparse.Namespace" }, { "args", "" }, { "big", "" },
    };
    const char *path = sample("training.pt");
    weft__weights *all = open_weights(path, NULL);
    are_filled(all, 2);
    for (int i = 0; i < COUNT(facts); i++)
        cr_assert_str_eq(fact_of(all, facts[i][0]), facts[i][1], "%s", facts[i][0]);
    all = open_weights(path, "optimizer.state");
    cr_assert_eq(all->n, 6);
    has_numbers(all, "1.step", "float32 []", (double[]){ 1 });
    REFUSES_WEIGHTS(path, "nothing", "has no part nothing");
    REFUSES_WEIGHTS(path, "optimizer.param_groups", "has no tensors");
    all = open_weights(sample("parts.pt"), NULL);
    cr_assert(all->n == 3 && !*fact_of(all, "part"));
    has_numbers(all, "decoder.0.w", "float32 [2]", (double[]){ 0, 1 / 64. });
    has_numbers(all, "decoder.1", "float32 [1]", (double[]){ 1 });
}

FILE_TEST(torch, views_have_their_numbers)
{
    double base[24], turned[24], row[6];
    for (int i = 0; i < 24; i++) {
        base[i] = i / 64.;
        turned[i % 6 * 4 + i / 6] = i / 64.;
        row[i % 6] = i / 64.;
    }
    weft__weights *all = open_weights(sample("views.pt"), NULL);
    has_numbers(all, "base", "float32 [4, 6]", base);
    has_numbers(all, "turned", "float32 [6, 4]", turned);
    has_numbers(all, "row", "float32 [6]", row);
    has_numbers(all, "steps", "float32 [2, 2]", (double[]){ 8 / 64., 11 / 64., 20 / 64., 23 / 64. });
    has_numbers(all, "empty", "float32 [0, 3]", NULL);
    has_numbers(all, "zero_dim", "float32 []", (double[]){ 2.5 });
    static const char *const ones[] = { "tied.a", "tied.b", "noted", "attribute" };
    for (int i = 0; i < COUNT(ones); i++)
        has_numbers(all, ones[i], "float32 [2]", (double[]){ 1, 1 });
    has_numbers(all, "expanded", "float32 [2, 3]", (double[]){ 1, 1, 1, 1, 1, 1 });
    cr_assert(array_of(all, "turned")->bytes == array_of(all, "base")->bytes);
    all = open_weights(sample("tensor.pt"), NULL);
    has_numbers(all, "tensor", "float32 [4, 6]", base);
}

FILE_TEST(torch, tensors_of_all_types_are_read)
{
    static const struct { const char *name, *kind; } types[] = {
        { "float16", "float16 [3]" }, { "bfloat16", "bfloat16 [3]" }, { "float64", "float64 [3]" },
        { "int8", "int8 [3]" },       { "int16", "int16 [3]" },       { "int32", "int32 [3]" },
        { "int64", "int64 [3]" },     { "uint8", "bytes [3]" },       { "uint16", "uint16 [3]" },
        { "uint32", "uint32 [3]" },   { "uint64", "uint64 [3]" },
    };
    static const char *const odd[] = { "complex64", "float8_e4m3fn", "seven" };
    weft__weights *all = open_weights(sample("views.pt"), NULL);
    for (int i = 0; i < COUNT(types); i++)
        has_numbers(all, types[i].name, types[i].kind, (double[]){ 1, 0, 5 });
    has_numbers(all, "bool", "bytes [3]", (double[]){ 1, 0, 1 });
    for (int i = 0; i < COUNT(odd); i++)
        cr_assert_eq(array_of(all, odd[i])->kind.type, WEFT__ODD);
    all = open_weights(sample("big.pt"), NULL);
    has_numbers(all, "n", "big-endian int64 [2]", (double[]){ 1, -2 });
    has_numbers(all, "w", "big-endian float32 [3]", (double[]){ 0, 1 / 64., 2 / 64. });
}

FILE_TEST(torch, objects_are_not_created)
{
    weft__weights *all = open_weights(sample("evil.pt"), NULL);
    has_numbers(all, "w", "float32 [2]", (double[]){ 1, 1 });
    cr_assert(all->n == 1 && !strcmp(fact_of(all, "not called"), "posix.system"));
    cr_assert(access("weft_evil", F_OK));
}

FILE_TEST(torch, survives_failure_of_each_allocation)
{
    static const char *const files[] = { "training.pt", "big.pt", "packed.npz" };
    for (int i = 0; i < COUNT(files); i++) {
        weft_status s;
        weft__weights *all;
        FOR_EACH_FAILURE(s, weft__weights_open(sample(files[i]), NULL, &all))
            cr_assert_eq(s, WEFT_ENOMEM, "%s: allocation %ld: %s", files[i], failing.at, weft_file_message());
        cr_assert_eq(s, WEFT_OK, "%s", weft_file_message());
        weft__weights_close(all);
    }
}
