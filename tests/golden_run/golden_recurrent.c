/* golden_recurrent.c - compares recurrent layers on ragged batches: outputs, last states and
 * all gradients. */
#include <math.h>
#include <string.h>
#include "weft_op.h"
#include "weft_sequence.h"
#include "golden.h"

static weft_rnn *layer(trial *t, const char *cell)
{
    static const char *const linear[] = { "min_gru", "min_lstm", "rg_lru", "qrnn" };
    for (int k = 0; k < 4; k++)
        if (!strcmp(cell, linear[k]))
            return weft_linear_rnn_new(t->m, "r",
                                       &(weft_linear_rnn_opts){ .kind = (weft_linear_rnn_kind)k,
                                                                .input = integer(t, "input"),
                                                                .hidden = integer(t, "hidden"),
                                                                .layers = (int)integer(t, "layers"),
                                                                .bidirectional = flag(t, "bidirectional"),
                                                                .window = (int)integer(t, "window") });
    weft_rnn_opts o = { .input = integer(t, "input"),
                        .hidden = integer(t, "hidden"),
                        .layers = (int)integer(t, "layers"),
                        .bidirectional = flag(t, "bidirectional"),
                        .no_bias = !flag(t, "bias"),
                        .proj = integer(t, "proj"),
                        .relu = !strcmp(cell, "rnn_relu") };
    return !strcmp(cell, "lstm") ? weft_lstm_new(t->m, "r", &o) :
           !strcmp(cell, "gru")  ? weft_gru_new(t->m, "r", &o) :
                                   weft_elman_new(t->m, "r", &o);
}

static weft_tensor *first_state(trial *t, const char *name, int64_t s, int64_t rows, int64_t n, int64_t width)
{
    weft_tensor *x =
        weft_reals(t->w, formula(t, 1, 0, s, rows * n * width), 3, (int64_t[]){ rows, n, width });
    ask(t, name, x, NULL, 0);
    return x;
}

/* sum of state[j][b][o] sin(first + 0.3 j + 0.5 b + 0.9 o) */
static weft_tensor *state_sum(trial *t, weft_tensor *state, double first)
{
    int64_t rows = weft_size(state, 0), n = weft_size(state, 1), width = weft_size(state, 2);
    weft_real *c = hold(t, rows * n * width * (int64_t)sizeof *c), *at = c;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t b = 0; b < n; b++)
            for (int64_t o = 0; o < width; o++)
                *at++ = (weft_real)sin(first + .3 * (double)j + .5 * (double)b + .9 * (double)o);
    return weft_sum_all(weft_mul(state, weft_reals(t->w, c, 3, (int64_t[]){ rows, n, width })));
}

static weft_tensor *recurrent(trial *t)
{
    const char  *cell = text(t, "kind");
    const bool   qrnn = !strcmp(cell, "qrnn"), lstm = qrnn || !strcmp(cell, "lstm");  /* with a state c */
    weft_lengths l = lengths(t, "lengths");
    int64_t hidden = integer(t, "hidden"), proj = integer(t, "proj"),
            rows = integer(t, "layers") * (flag(t, "bidirectional") ? 2 : 1);
    weft_rnn    *r = layer(t, cell);
    if (t->why[0] || !weft_ok(t->w) || !set_parameters(t, "r", 1, (double)hidden))
        return NULL;
    weft_rnn_set_composed(r, (t->way & COMPOSED) != 0);

    weft_tensor *x = formula_ragged(t, 1, 0, 100, &l, integer(t, "input"));
    ask(t, "x", x, &l, 0);
    weft_state first = WEFT_ZERO_STATE;
    if (flag(t, "initial_state")) {
        first.h = first_state(t, "h0", 200, rows, l.n, proj ? proj : hidden);
        const int64_t of_c = qrnn ? integer(t, "width_of_c") : hidden;
        first.c = lstm ? first_state(t, "c0", 201, rows, l.n, of_c) : NULL;
    }
    weft_rnn_out out = weft_rnn_run(r, laid(t, x), first);
    hold_tensor(t, "output", out.y, json_object_get(t->c, "output"));
    hold_tensor(t, "h_n", out.last.h, json_object_get(t->c, "h_n"));
    weft_tensor *loss = weft_add(wavy_sum(t, out.y, &l, 1), state_sum(t, out.last.h, 2));
    if (lstm) {
        hold_tensor(t, "c_n", out.last.c, json_object_get(t->c, "c_n"));
        loss = weft_add(loss, state_sum(t, out.last.c, 3));
    }
    hold_number(t, "loss", (double)weft_item(loss), json_object_get(t->c, "loss"));
    return loss;
}

const kind golden_recurrent[] = {
    { "rnn_tanh", recurrent, PACKED | RECORDED | COMPOSED },
    { "rnn_relu", recurrent, PACKED | RECORDED | COMPOSED },
    { "gru", recurrent, PACKED | RECORDED | COMPOSED },
    { "lstm", recurrent, PACKED | RECORDED | COMPOSED },
    { "min_gru", recurrent, PACKED | RECORDED },
    { "min_lstm", recurrent, PACKED | RECORDED },
    { "rg_lru", recurrent, PACKED | RECORDED },
    { "qrnn", recurrent, PACKED | RECORDED },
    { NULL, NULL, 0 },
};
