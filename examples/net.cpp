// net.cpp - the README's network in C++17: a struct of options is a variable, whose address is given.
#include <cstdio>
#include "weft.h"

int main()
{
    weft_opts with = {};
    with.seed = 1;
    weft *w = weft_open(&with);
    weft_module *m = weft_module_new(w, "net");
    weft_embedding_opts of_embed = {};
    of_embed.rows = 10, of_embed.columns = 16;
    weft_embedding *embed = weft_embedding_new(m, "embed", &of_embed);
    weft_rnn_opts of_lstm = {};
    of_lstm.input = 16, of_lstm.hidden = 32, of_lstm.bidirectional = true;
    weft_rnn *lstm = weft_lstm_new(m, "lstm", &of_lstm);
    weft_linear_opts of_out = {};
    of_out.in = 64, of_out.out = 10;
    weft_linear *out = weft_linear_new(m, "out", &of_out);
    weft_optim *adam = weft_adam_new(m, nullptr);

    const int32_t len[] = { 3, 1, 0, 5 }, in[] = { 1, 2, 3, 7, 4, 5, 6, 7, 8 },
                  next[] = { 2, 3, 4, 8, 5, 6, 7, 8, 9 };
    weft_lengths lengths = {};
    lengths.n = 4, lengths.len = len;
    for (int step = 0; step < 100 && weft_ok(w); step++) {
        weft_tensor *x = weft_embedding_run(embed, weft_ragged_ints(w, in, &lengths));
        weft_tensor *y = weft_linear_run(out, weft_rnn_run(lstm, x, WEFT_ZERO_STATE).y);
        weft_tensor *right = weft_ragged_ints(w, next, &lengths);
        weft_tensor *loss = weft_mean_loss(weft_cross_entropy(y, right, nullptr));
        weft_backward(loss);
        weft_clip_grad_norm(m, 1, 0);
        weft_optim_step(adam);
        if (step % 20 == 0)
            std::printf("%3d  %.4f\n", step, weft_item(loss));
        weft_clear(w);
    }
    const bool failed = !weft_ok(w);
    if (failed)
        std::fprintf(stderr, "%s\n", weft_error_message(w));
    weft_close(w);
    return failed;
}
