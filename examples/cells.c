/* cells.c - trains four custom recurrent cells to predict, at each token of ragged sequences, whether the
 * number of ones so far is odd. */
#include "cells_steps.h"

enum { SEQUENCES = 32, LONGEST = 12, STEPS = 150 };

typedef struct {
    weft_lengths lengths;
    int32_t len[SEQUENCES], bits[SEQUENCES * LONGEST], odd[SEQUENCES * LONGEST];
} task;

static void draw(task *t, weft_stream *stream)
{
    int n = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        t->len[s] = (int32_t)(weft_stream_below(stream, LONGEST + 1));
        for (int32_t i = 0, odd = 0; i < t->len[s]; i++, n++) {
            t->bits[n] = (int32_t)weft_stream_below(stream, 2);
            odd ^= t->bits[n];
            t->odd[n] = odd;
        }
    }
    t->lengths = (weft_lengths){ .n = SEQUENCES, .len = t->len };
}

static int learn(const weft_cell *cell)
{
    weft           *w     = weft_open(&(weft_opts){ .seed = 1 });
    weft_module    *m     = weft_module_new(w, cell->name);
    weft_embedding *embed = weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 2, .columns = 8 });
    weft_rnn       *rnn   = weft_rnn_of_cell(m, "rnn", cell, &(weft_rnn_opts){ .input = 8, .hidden = 16 });
    weft_linear    *out   = weft_linear_new(m, "out", &(weft_linear_opts){ .in = 16, .out = 2 });
    weft_optim     *o     = weft_adam_new(m, &(weft_adam_opts){ .lr = .01 });
    weft_stream    *data  = weft_stream_of(w, "data");
    double first = 0, last = 0;
    for (int step = 0; step < STEPS && weft_ok(w); step++) {
        task t;
        draw(&t, data);
        weft_tensor *x = weft_embedding_run(embed, weft_ragged_ints(w, t.bits, &t.lengths));
        weft_tensor *y = weft_linear_run(out, weft_rnn_run(rnn, x, WEFT_ZERO_STATE).y);
        weft_tensor *loss =
            weft_mean_loss(weft_cross_entropy(y, weft_ragged_ints(w, t.odd, &t.lengths), NULL));
        weft_backward(loss);
        weft_clip_grad_norm(m, 1, 0);
        weft_optim_step(o);
        last = weft_item(loss);
        first = step ? first : last;
        weft_clear(w);
    }
    printf("%-16s %5lld parameters, loss %.3f -> %.3f\n", cell->name, (long long)weft_parameter_numel(m),
           first, last);
    bool failed = !weft_ok(w) || !(last < first);
    if (failed)
        fprintf(stderr, "%s: %s\n", cell->name, weft_ok(w) ? "the loss did not fall" : weft_error_message(w));
    weft_close(w);
    return failed;
}

int main(void)
{
    int failed = learn(&layer_norm_lstm_cell);
    failed |= learn(&reset_before_gru_cell);
    failed |= learn(&peephole_lstm_cell);
    failed |= learn(&zoneout_rnn_cell);
    return failed;
}
