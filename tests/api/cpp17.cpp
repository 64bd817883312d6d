/* cpp17.cpp - a program in C++17: it learns each token's successor by the public headers alone, with shapes,
 * lists and scopes. Other macros and other endings of a scope are tried on the way. Ends with 0 if all
 * holds. */
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>
#include "weft_forecast.h"
#include "weft_op.h"
#include "weft_plan.h"
#include "weft_sequence.h"

static int checks, good;
static void check(bool holds, const char *what)
{
    checks++, good += holds;
    if (!holds)
        std::printf("not so: %s\n", what);
}

static bool left_by_return(weft *w)
{
    WEFT_NO_GRAD(w) WEFT_EVAL(w) { return !weft_is_grad_enabled(w) && !weft_is_training(w); }
    return false;
}

static void scopes(weft *w)
{
    check(left_by_return(w) && weft_is_grad_enabled(w) && weft_is_training(w), "return restores");
    try {
        WEFT_NO_GRAD(w) { throw std::runtime_error("out"); }
    } catch (const std::runtime_error &) {
    }
    check(weft_is_grad_enabled(w), "an exception restores");
}

static void lists(weft *w)
{
    int64_t n = 2;
    size_t wide = 3;
    int count = 0;
    weft_tensor *a = weft_full(w, 1, WEFT_SHAPE(n, 1)), *b = weft_full(w, 2, WEFT_SHAPE(n, wide - 1)), *d[2];
    weft_tensor *all = weft_concat(WEFT_LIST(a, b, weft_concat(WEFT_LIST(a, a), 1)), 1);
    check(weft_rank(all) == 2 && weft_size(all, 0) == 2 && weft_size(all, 1) == 5, "shapes and lists");
    weft_zeros(w, WEFT_SHAPE(++count, 2));
    check(count == 1, "an argument is evaluated once");
    weft_gradients(weft_mul(a, a), WEFT_LIST(a, b), d);
    check(weft_item(weft_sum_all(d[0])) == 4 && weft_item(weft_sum_all(d[1])) == 0, "gradients of a list");
    weft_frame frame = weft_frame();
    double ones[] = { 1, 2 };
    const double *columns[] = { ones, ones };
    weft_status added = weft_frame_add(&frame, nullptr, WEFT_NAMES("x", "y"), columns, 2);
    check(added == WEFT_OK && frame.columns == 2, "names");
    weft_frame_free(&frame);
}

static double learn(weft *w)
{
    weft_rnn_opts opts = weft_rnn_opts();
    opts.input = 16, opts.hidden = 16, opts.bidirectional = true;
    weft_module *m = weft_module_new(w, "net");
    weft_embedding_opts letters = weft_embedding_opts();
    letters.rows = 10, letters.columns = 16;
    weft_embedding *embed = weft_embedding_new(m, "embed", &letters);
    weft_rnn *lstm = weft_lstm_new(m, "lstm", &opts);
    weft_linear_opts classes = weft_linear_opts();
    classes.in = 32, classes.out = 10;
    weft_linear *out = weft_linear_new(m, "out", &classes);
    weft_adam_opts fast = weft_adam_opts();
    fast.lr = 1e-2;
    weft_optim *adam = weft_adam_new(m, &fast);
    std::vector<int32_t> len = { 3, 1, 0, 5 };
    std::vector<int32_t> in = { 1, 2, 3, 7, 4, 5, 6, 7, 8 }, next = { 2, 3, 4, 8, 5, 6, 7, 8, 9 };
    weft_lengths lengths{};
    lengths.n = 4;
    lengths.len = len.data();
    double first = 0, last = 0;
    for (int step = 0; step < 60 && weft_ok(w); step++) {
        weft_tensor *x = weft_embedding_run(embed, weft_ragged_ints(w, in.data(), &lengths));
        weft_tensor *y = weft_linear_run(out, weft_rnn_run(lstm, x, WEFT_ZERO_STATE).y);
        weft_tensor *then = weft_ragged_ints(w, next.data(), &lengths);
        weft_tensor *loss = weft_mean_loss(weft_cross_entropy(y, then, nullptr));
        weft_backward(loss);
        weft_clip_grad_norm(m, 1, 0);
        weft_optim_step(adam);
        last = weft_item(loss), first = step ? first : last;
        weft_clear(w);
    }
    return last / first;
}

int main()
{
    weft_opts opts = weft_opts();
    opts.seed = 1, opts.threads = 1;
    weft *w = weft_open(&opts);
    check(weft_ok(w), weft_error_message(w));
    scopes(w);
    lists(w);
    double left = learn(w);
    check(left < .5 && left > 0, "it learns");
    check(weft_ok(w), weft_error_message(w));
    weft_close(w);
    std::printf("%d of %d checks in C++ hold\n", good, checks);
    return good != checks;
}
