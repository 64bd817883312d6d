/* test_core.c - tests statuses, devices and threads by option and environment, invalid shapes, random streams
 * and printing. */
#include "comma.h"

Test(core, version_and_status)
{
    char want[32];
    snprintf(want, sizeof want, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    cr_assert_str_eq(weft_version(), want);
    cr_assert_str_eq(weft_status_name(WEFT_ESHAPE), "ESHAPE");
    cr_assert_str_eq(weft_status_name((weft_status)99), "unknown status");
    cr_assert_not(weft_ok(NULL));
    cr_assert_eq(weft_error_code(NULL), WEFT_EARG);
}

static int told;
static void tell(weft_status s, const char *message, void *user)
{
    told += s == WEFT_ESHAPE && strstr(message, "matmul") && user == &told;
}

CPU_TEST(core, the_first_failure_is_reported_once)
{
    cr_assert_eq(weft_threads(w), 2);
    weft_on_error(w, tell, &told);
    weft_tensor *a = weft_zeros(w, WEFT_SHAPE(2, 3));
    weft_matmul(a, a), weft_matmul(a, a);
    cr_assert_eq(told, 1);
    FAILS(w, WEFT_ESHAPE, "[2, 3]");
    FAILS_AT(w, weft_fail(w, WEFT_ENUMERIC, "a program's own %d", 7), WEFT_ENUMERIC, "a program's own 7");
    weft_synchronize(w);
}

Test(core, missing_devices_are_refused)
{
    setenv("WEFT_BACKEND_PATH", "/nowhere", 1);
    weft *w = open_with((weft_opts){ .device = WEFT_CUDA });
    const char *plugin = TOL("/nowhere/libweft_cuda_f64.so", "/nowhere/libweft_cuda.so");
    cr_assert(weft_error_code(w) == WEFT_EDEVICE && strstr(weft_error_message(w), plugin),
              "%s", weft_error_message(w));
    CLEAN_FAILED(w);
    w = open_with((weft_opts){ .device = WEFT_BEST });
    cr_assert(weft_ok(w) && strcmp(weft_device_name(w), "cuda"), "%s", weft_error_message(w));
    CLEAN(w);
}

Test(core, thread_count_comes_from_the_environment)
{
    static const struct {
        const char *text;
        int threads;
    } good[] = { { "1", 1 }, { "3", 3 }, { "1024", 1024 }, { "", 2 } };
    for (int i = 0; i < COUNT(good); i++) {
        setenv("WEFT_THREADS", good[i].text, 1);
        weft *w = open_on(WEFT_CPU);             /* open_on requests two threads */
        cr_assert_eq(weft_threads(w), good[i].threads, "WEFT_THREADS=%s: %d", good[i].text, weft_threads(w));
        CLEAN(w);
    }
    unsetenv("WEFT_THREADS");
    weft *all = open_with((weft_opts){ 0 });
    setenv("WEFT_THREADS", "0", 1);
    weft *w = open_on(WEFT_CPU);
    cr_assert_eq(weft_threads(w), weft_threads(all), "0 means all cores");
    CLEAN(w);
    CLEAN(all);
    unsetenv("WEFT_THREADS");
}

CPU_TEST(core, invalid_shapes_are_refused)
{
    FAILS_AT(w, weft_zeros(w, 7, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1 }), WEFT_EARG, "rank 7");
    FAILS_AT(w, weft_zeros(w, WEFT_SHAPE(2, -1)), WEFT_ESHAPE, "extent -1 on axis 1");
    weft_zeros(w, WEFT_SHAPE((int64_t)1 << 40, (int64_t)1 << 40));
    FAILS(w, WEFT_ESHAPE, "zeros: [1099511627776, 1099511627776]: the product of its extents is too large");
    weft_zeros(w, WEFT_SHAPE(1 << 20, 1 << 20, 1 << 20));
    FAILS(w, WEFT_ESHAPE,
          "zeros: [1048576, 1048576, 1048576]: the product of its extents is too large; "
          "expected fewer than 2^59 elements");
    weft_ragged_ints(w, (int32_t[]){ 1 }, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 1, -1 } });
    FAILS(w, WEFT_EARG, "sequence 1 has length -1");
    weft_ragged(w, NULL, 2, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 3 } });
    FAILS(w, WEFT_EARG, "rows NULL");
}

Test(core, invalid_options_are_refused)
{
    const struct { weft_opts o; const char *part;
    } bad[] = { { { .device = (weft_device)9 }, "open: device 9" },
                { { .device = (weft_device)-1 }, "open: device -1" },
                { { .threads = 1000000 }, "open: 1000000 threads; expected 0 .. 1024" },
                { { .threads = -1 }, "threads" },
                { { .allocate = heap_allocate }, "open: release is NULL" },
                { { .release = heap_release }, "open: allocate is NULL" },
                { { .precision = (weft_precision)7 }, "precision" } };
    for (int i = 0; i < COUNT(bad); i++) {
        weft *w = weft_open(&bad[i].o);
        cr_assert(weft_error_code(w) == WEFT_EARG && strstr(weft_error_message(w), bad[i].part), "%d: %s", i,
                  weft_error_message(w));
        weft_close(w);
    }
}

CPU_TEST(core, a_failed_read_is_a_sticky_error)
{
    weft_real one = 1;
    char want[80];
    snprintf(want, sizeof want, "read: [2] has %zu bytes; memory of %zu was given", 2 * sizeof one,
             sizeof one);
    cr_assert(read_status(weft_zeros(w, WEFT_SHAPE(2)), &one, sizeof one) == WEFT_ESHAPE && one == 0);
    FAILS(w, WEFT_ESHAPE, want);
    cr_assert_eq(read_status(weft_zeros(w, WEFT_SHAPE(2)), NULL, 2 * sizeof one), WEFT_EARG);
    FAILS(w, WEFT_EARG, "read: [2]: the memory for it is NULL");
    cr_assert(isnan(weft_item(weft_zeros(w, WEFT_SHAPE(2)))));
    FAILS(w, WEFT_ESHAPE, "item: [2]; expected a tensor of one element");
}

CPU_TEST(core, too_many_elements_are_refused)
{
    const int64_t huge = (int64_t)1 << 62;
    FAILS_AT(w, weft_tile(weft_zeros(w, WEFT_SHAPE(2)), 0, INT64_MAX), WEFT_ESHAPE, "tile: [2]");
    weft_tile(weft_zeros(w, WEFT_SHAPE(2)), 0, huge / 4);
    FAILS(w, WEFT_ESHAPE, "the product of its extents is too large");
    weft_reshape(weft_zeros(w, WEFT_SHAPE(0)), 3, (int64_t[]){ huge, huge, 6 });
    FAILS(w, WEFT_ESHAPE, "reshape: [0]: 0 elements; expected the number of");
    weft_one_hot(weft_arange(w, 0, 8, 1), huge);
    FAILS(w, WEFT_ESHAPE, "one_hot: [8, 4611686018427387904]: the product of its extents is too large");
    weft_state_select((weft_state){ weft_zeros(w, WEFT_SHAPE(2, 1, 3)), NULL }, &(int32_t){ 0 }, huge / 4);
    FAILS(w, WEFT_EARG, "state_select: 1152921504606846976 parents");
}

Test(core, streams_repeat_and_are_independent)
{
    uint64_t first[2][3];
    int32_t order[2][50];
    for (int again = 0; again < 2; again++) {
        weft *w = open_on(WEFT_CPU);
        weft_stream *a = weft_stream_of(w, "a");
        for (int i = 0; i < 3; i++) {
            first[again][i] = weft_stream_next(a);
            if (again)
                weft_stream_next(weft_stream_of(w, "another"));
        }
        weft_stream_permutation(a, 50, order[again]);
        cr_assert_eq(weft_stream_below(a, 0), 0);
        for (int i = 0; i < 1000; i++)
            cr_assert(weft_stream_below(a, 7) < 7 && weft_stream_uniform(a) < 1);
        FAILS_AT(w, weft_stream_of(w, ""), WEFT_EARG, "a name of 1 ..");
        CLEAN(w);
    }
    cr_assert(!memcmp(first[0], first[1], sizeof first[0]) && !memcmp(order[0], order[1], sizeof order[0]));
    int seen[50] = { 0 };
    for (int i = 0; i < 50; i++)
        seen[order[0][i]]++;
    for (int i = 0; i < 50; i++)
        cr_assert_eq(seen[i], 1);
}

/* ---- printing ---- */
static const char *printed(const weft_tensor *x)
{
    static char text[4096];
    FILE *f = fmemopen(text, sizeof text, "w");
    weft_print(f, x);
    fclose(f);
    return text;
}

CPU_TEST(core, print_limit_sets_the_printed_elements)
{
    weft_tensor *x = weft_arange(w, 0, 9, 1), *y = weft_reshape(x, WEFT_SHAPE(3, 3));
    cr_assert_str_eq(printed(x), "[9] of ints [0, 1, 2, 3, ..., 5, 6, 7, 8]\n");
    cr_assert_str_eq(printed(weft_arange(w, 0, 8, 1)), "[8] of ints [0, 1, 2, 3, 4, 5, 6, 7]\n");
    cr_assert_eq(weft_set_print_limit(w, 0), 8);
    cr_assert_str_eq(printed(x), "[9] of ints [0, 1, 2, 3, 4, 5, 6, 7, 8]\n");
    cr_assert_eq(weft_set_print_limit(w, 1), 0);
    cr_assert_str_eq(printed(y), "[3, 3] of ints [[0, ...],\n ...]\n");
    weft_set_print_limit(w, 2);
    cr_assert_str_eq(printed(y), "[3, 3] of ints [[0, ..., 2],\n ...,\n [6, ..., 8]]\n");
    weft_set_print_limit(w, 3);
    cr_assert_str_eq(printed(y), "[3, 3] of ints [[0, 1, 2],\n [3, 4, 5],\n [6, 7, 8]]\n");
    cr_assert_str_eq(printed(x), "[9] of ints [0, 1, ..., 8]\n");
    cr_assert_str_eq(printed(weft_arange(w, 0, 0, 1)), "[0] of ints []\n");
    cr_assert_eq(weft_set_print_limit(w, -1), 3);
    FAILS(w, WEFT_EARG, "set_print_limit: -1 elements of an axis; expected 0 (all) or more");
    cr_assert_eq(weft_set_print_limit(w, INT64_MAX), 3, "an invalid limit changed the setting");
    cr_assert_str_eq(printed(weft_arange(w, 0, 1, 1)), "[1] of ints [0]\n");
    cr_assert_eq(weft_set_print_limit(NULL, 1), 0);
}

CPU_TEST(core, numbers_have_a_decimal_point_in_every_locale)
{
    char after[8];
    comma_begin();
    const char *text = printed(weft_full(w, 1.5f, WEFT_SHAPE(2)));
    snprintf(after, sizeof after, "%g", 2.5);
    cr_assert(strstr(text, "[1.5, 1.5]"), "%s", text);
    cr_assert_str_eq(after, "2,5", "the program's locale has changed");
    comma_end();
}

CPU_TEST(core, messages_have_decimal_points_in_a_comma_locale)
{
    comma_begin();
    weft_clamp(weft_zeros(w, WEFT_SHAPE(2)), 2.5, 1.5);
    comma_end();
    FAILS(w, WEFT_EARG, "from 2.5 to 1.5");
}

/* ---- pairs; logsumexp with a mask ---- */
TABLE_TEST(core, pairs_list_each_query_with_its_keys)
{
    int32_t nq[2] = { 2, 1 }, nk[2] = { 1, 2 };
    weft_tensor *q = weft_ragged(w, (weft_real[]){ 1, 2, 3 }, 1, &(weft_lengths){ .n = 2, .len = nq }),
                *k = weft_ragged(w, (weft_real[]){ 10, 20, 30 }, 1, &(weft_lengths){ .n = 2, .len = nk }),
                *a, *b;
    weft_pairs(q, k, &a, &b);
    close_to("queries", numbers(a), ((weft_real[]){ 1, 2, 3, 3 }), 4, 0);
    close_to("keys", numbers(b), ((weft_real[]){ 10, 10, 20, 30 }), 4, 0);
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2, 3)),
                *mask = weft_reals(w, (weft_real[]){ 1, 1, 0, 0, 0, 0 }, WEFT_SHAPE(2, 3));
    close_to("logsumexp", numbers(weft_logsumexp(x, 1, mask)),
             ((weft_real[]){ (weft_real)log(2), -(weft_real)INFINITY }), 2, TOL(1e-15, 1e-6));
}
