/* test_module_names.c - tests trees of very many modules and parameters. Creation, traversal and lookup take
 * linear time, and a failed module leaves no name. */
#include "tests/nn/trees.h"

static void make_many(weft_module *root, int n)
{
    for (int i = 0; i < n; i++) {
        weft_module *m = weft_submodule_new(root, name_with("layer", i));
        weft_parameter(m, "weight", WEFT_SHAPE(1), zero);
        weft_buffer(m, "kept", WEFT_SHAPE(1));
        weft_parameter(m, "bias", WEFT_SHAPE(1), zero);
    }
}

static void check_layer(weft_module *root, int i)
{
    char want[64];
    const char *path, *kept;
    weft_tensor *p = weft_parameter_at(root, 2 * i + 1, &path), *b = weft_buffer_at(root, i, &kept);
    snprintf(want, sizeof want, "layer%d.bias", i);
    cr_assert_str_eq(path, want);
    cr_assert(weft_find_parameter(root, want) == p);
    snprintf(want, sizeof want, "layer%d.kept", i);
    cr_assert_str_eq(kept, want);
    cr_assert(weft_find_parameter(root, want) == b);
}

/* With lists instead of a table and counts, each part of this takes minutes. */
CPU_TEST(module_names, many_names_take_linear_time, .timeout = 60)
{
    weft_module *root = weft_module_new(w, "net");
    int n = CHECK_SANITIZED ? 4000 : 20000, half = n / 2;
    make_many(root, half);
    for (int i = 0; i < weft_parameter_count(root) / 2; i++)
        check_layer(root, i);
    weft_module *part = weft_submodule_new(root, "part");
    make_many(part, n - half);                   /* the lists are extended, and are never started again */
    for (int i = n - half; i-- > 0;)
        check_layer(part, i);
    for (int i = half; i-- > 0;)
        check_layer(root, i);
    cr_assert(weft_parameter_count(root) == 2 * n && weft_buffer_count(root) == n);
    cr_assert(weft_parameter_count(part) == 2 * (n - half) && weft_parameter_numel(root) == 2 * n);
    cr_assert(weft_parameter_at(root, 2 * n - 1, NULL) == weft_parameter_at(part, 2 * (n - half) - 1, NULL));
    weft_ema *a = weft_ema_new(root, .5);
    cr_assert_not_null(a);
    cr_assert(weft_buffer_count(root) == n + 2 * n && weft_parameter_count(root) == 2 * n);
}

CPU_TEST(module_names, single_submodules_take_linear_time, .timeout = 60)
{
    weft_module *root = weft_module_new(w, "net");
    int n = CHECK_SANITIZED ? 2000 : 20000;
    for (int i = 0; i < n; i++) {
        weft_module *m = weft_submodule_new(root, name_with("layer", i));
        weft_tensor *p = weft_parameter(m, "weight", WEFT_SHAPE(1), zero);
        cr_assert(weft_parameter_count(m) == 1 && weft_parameter_at(m, 0, NULL) == p);
        weft_optim_free(weft_sgd_new(m, &(weft_sgd_opts){ .lr = 1 }));
        weft_zero_grad(m);
    }
}

/* A failed layer releases its names, numbers and counts. */
CPU_TEST(module_names, failed_layer_is_not_counted)
{
    weft_module *root = weft_module_new(w, "net"), *part = weft_submodule_new(root, "part");
    weft_tensor *first = weft_parameter(part, "first", WEFT_SHAPE(2), zero);
    cr_assert(weft_parameter_at(root, 0, NULL) == first && weft_parameter_at(part, 0, NULL) == first);
    weft_module *layer = weft_submodule_new(part, "layer"), *inner = weft_submodule_new(layer, "inner");
    weft_tensor *p = weft_parameter(inner, "p", WEFT_SHAPE(3), zero);
    weft_tie(layer, "same", first);
    weft_buffer(layer, "kept", WEFT_SHAPE(3));
    cr_assert(weft_parameter_at(root, 1, NULL) == p && weft_parameter_count(root) == 2);
    cr_assert_null(weft__finish_layer(layer, NULL, NULL));
    cr_assert(weft_parameter_count(root) == 1 && weft_parameter_count(part) == 1);
    cr_assert(weft_buffer_count(root) == 0 && weft_parameter_numel(root) == 2);
    cr_assert_null(weft_find_parameter(root, "part.layer.inner.p"));
    cr_assert_null(weft_find_parameter(root, "part.layer.same"));
    layer = weft_submodule_new(part, "layer");
    p = weft_parameter(weft_submodule_new(layer, "inner"), "p", WEFT_SHAPE(1), zero);
    cr_assert(weft_find_parameter(root, "part.layer.inner.p") == p && weft_parameter_at(part, 1, NULL) == p);
}

