/* test_cuda.c - tests properties of GPUs only: several devices, selection by the environment, delayed errors.
 * Runs on a GPU or on the emulation. */
#include "cuda_net.h"

Test(cuda, contexts_on_two_gpus_are_independent)
{
    weft *w[2] = { open_gpu(0), open_gpu(1) };
    if (!weft_ok(w[1])) {                        /* the machine has one GPU */
        cr_assert(strstr(weft_error_message(w[1]), "no device 1"), "%s", weft_error_message(w[1]));
        CLEAN_FAILED(w[1]);
        w[1] = open_gpu(0);
    }
    net n[2] = { net_in(w[0]), net_in(w[1]) };
    for (int i = 0; i < 6; i++)
        train_few(&n[i % 2]);
    for (int i = 0; i < 2; i++)
        same_bits("bias", bias(&n[i]), bias_after(3), WORDS);
    CLEAN(w[0]);
    CLEAN(w[1]);
}

Test(cuda, device_comes_from_the_environment)
{
    check_device("cuda", 0, NULL);
    check_device("cuda:0", 0, NULL);
    check_device("cuda:99", 0, "no device 99");
    check_device("cuda:-1", 0, "WEFT_DEVICE=cuda:-1: expected best, cpu, ref, cuda or cuda:1");
    check_device("cuda:", 0, "WEFT_DEVICE=cuda:: expected best, cpu, ref, cuda or cuda:1");
    check_device("cuda:x", 0, "WEFT_DEVICE=cuda:x");
    check_device("cudas", 0, "WEFT_DEVICE=cudas");
    weft *w = open_with((weft_opts){ .device = WEFT_BEST });
    cr_assert_str_eq(weft_device_name(w), "cuda");
    CLEAN(w);
}

/* Uploads of some steps fill the staging ring more than twice; each is copied before its place is reused. */
CUDA_TEST(cuda, uploads_of_many_steps)
{
    enum { ROUNDS = 24 };
    const int64_t n = 110000 * 4 / (int64_t)sizeof(weft_real);
    weft_tensor *sum = weft_buffer(weft_module_new(w, "m"), "sum", WEFT_SHAPE(n));
    weft_real *x = malloc((size_t)n * sizeof *x);
    for (int k = 0; k < ROUNDS; k++) {
        for (int64_t i = 0; i < n; i++)
            x[i] = (weft_real)((i + k) % 1000);
        weft_assign(sum, weft_add(sum, weft_reals(w, x, WEFT_SHAPE(n))));
        if (k % 3 == 2)
            weft_clear(w);
    }
    weft_real *all = numbers(sum);
    for (int64_t i = 0; i < n; i++) {
        int64_t needed = 0;
        for (int k = 0; k < ROUNDS; k++)
            needed += (i + k) % 1000;
        cr_assert(all[i] == (weft_real)needed, "%g at %lld, not %lld", (double)all[i], (long long)i,
                  (long long)needed);
    }
    free(x);
}

CUDA_TEST(cuda, out_of_memory_is_an_error)
{
    net n = net_in(w);
    train_few(&n);
    weft_tensor *huge = weft_zeros(w, WEFT_SHAPE(1 << 20, 1 << 20));
    cr_assert(weft_error_code(w) == WEFT_ENOMEM && strstr(weft_error_message(w), "zeros"), "%s",
              weft_error_message(w));
    weft_sum(huge, 0);
    weft_recover(w);
    train_few(&n), train_few(&n);
    same_bits("bias", bias(&n), bias_after(3), WORDS);
}

/* The next wait reports the first of two errors, with the name of its kernel. */
CUDA_TEST(cuda, index_out_of_range_is_reported_at_the_next_wait)
{
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(5, 2));
    weft_tensor *good = weft_index_select(x, weft_ints(w, (int32_t[]){ 4, -1, 0 }, WEFT_SHAPE(3)));
    weft_index_select(x, weft_ints(w, (int32_t[]){ 0, 5, 7 }, WEFT_SHAPE(3)));
    weft_index_select(x, weft_ints(w, (int32_t[]){ 9 }, WEFT_SHAPE(1)));
    weft_tanh(x);
    OK(w);
    weft_real out[6];
    cr_assert_eq(read_status(good, out, sizeof out), WEFT_EARG);
    FAILS(w, WEFT_EARG, "read: index 5 at position 1 of an earlier gather; expected 0 .. 4");
    weft_synchronize(w);
}

/* Counts kernels, products and copies within device memory, not transfers from or to the host. */
CUDA_TEST(cuda, launches_are_counted)
{
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(5, 2));
    int64_t before = weft_usage_of(w).launches;
    weft_matmul_with(weft_tanh(weft_add(x, x)), true, x, false);
    cr_assert_eq(weft_usage_of(w).launches - before, 3);
    weft_real out[10];
    weft_read(x, out, sizeof out);
    weft_synchronize(w);
    cr_assert_eq(weft_usage_of(w).launches - before, 3);
}
