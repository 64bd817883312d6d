/* test_from_0_1.c - a checkpoint that 0.1 has written: its weights, buffer, optimiser, random stream and a
 * loader's position load, and the run goes on as it did there. */
#include "tests/check.h"

enum { N = 40, CLASSES = 8 };
typedef struct {
    weft *w;
    weft_module *m;
    weft_embedding *embed;
    weft_rnn *lstm;
    weft_linear *out;
    weft_tensor *kept;
    weft_optim *adam;
    weft_loader *loader;
    int32_t len[N];
} run;

static run begin(void)
{
    run r = { .w = weft_open(&(weft_opts){ .device = WEFT_REF, .seed = 3 }) };
    r.m = weft_module_new(r.w, "net");
    r.embed = weft_embedding_new(r.m, "embed", &(weft_embedding_opts){ .rows = CLASSES, .columns = 4 });
    r.lstm = weft_lstm_new(r.m, "lstm", &(weft_rnn_opts){ .input = 4, .hidden = 3, .bidirectional = true });
    r.out = weft_linear_new(r.m, "out", &(weft_linear_opts){ .in = 6, .out = CLASSES });
    r.kept = weft_buffer(r.m, "kept", WEFT_SHAPE(2));
    r.adam = weft_adam_new(r.m, &(weft_adam_opts){ .lr = 1e-2 });
    for (int i = 0; i < N; i++)
        r.len[i] = 1 + i * 7 % 9;
    r.loader = weft_loader_new(r.w, "train", N, r.len, &(weft_loader_opts){ .count = 4, .pool = 3 });
    return r;
}

static void update(run *r, const int32_t *pick, int64_t n)
{
    int32_t tokens[64], len[4], all = 0;
    for (int64_t i = 0; i < n; i++) {
        len[i] = r->len[pick[i]];
        for (int t = 0; t < len[i]; t++)
            tokens[all++] = (pick[i] + t) % CLASSES;
    }
    weft_tensor *x = weft_ragged_ints(r->w, tokens, &(weft_lengths){ .n = n, .len = len });
    weft_tensor *h = weft_rnn_run(r->lstm, weft_embedding_run(r->embed, x), WEFT_ZERO_STATE).y;
    weft_backward(weft_mean_loss(weft_cross_entropy(weft_linear_run(r->out, h), x, NULL)));
    weft_optim_step(r->adam);
    weft_clear(r->w);
}

/* What 0.1 went on with after it had written the file, after its sixth update. */
Test(from_0_1, a_checkpoint_goes_on)
{
    if (sizeof(weft_real) == 8)
        return;                                  /* the file holds floats */
    static const int32_t next[] = { 34, 29, 11, 32 };
    static const weft_real bias[CLASSES] = { 0x1.d6bd54p-4, 0x1.91a252p-5, 0x1.a0aebcp-3,  0x1.8400c2p-5,
                                             0x1.bee802p-3, 0x1.3ed2e2p-3, -0x1.58d8ecp-2, 0x1.cdf9d8p-5 };
    char path[512];
    snprintf(path, sizeof path, "%s/golden/checkpoint_0_1.weft",
             getenv("WEFT_TESTS") ? getenv("WEFT_TESTS") : "tests");
    run r = begin();
    weft_loader_state at;
    const weft_checkpoint_item item = { "loader", WEFT_I64, at.at, 4 };
    cr_assert_eq(weft_load(path, r.m, r.adam, &item, 1), WEFT_OK, "%s", weft_file_message());
    weft_loader_set_state(r.loader, at);
    OK(r.w);
    cr_assert(weft_optim_steps(r.adam) == 6 && numbers(r.kept)[1] == 6);
    cr_assert_eq(weft_stream_next(weft_stream_of(r.w, "mine")), 0x40be8c7508c3ca58u);
    int64_t n;
    const int32_t *pick = weft_loader_next(r.loader, &n);
    cr_assert(n == COUNT(next) && !memcmp(pick, next, sizeof next));
    update(&r, pick, n);
    close_to("out.bias", numbers(weft_find_parameter(r.m, "out.bias")), bias, CLASSES, 1e-6);
    weft_close(r.w);
}
