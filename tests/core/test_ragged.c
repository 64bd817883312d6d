/* test_ragged.c - tests edge cases of ragged batches: NaN in padding changes nothing, and batches may have
 * very many rows or steps. `make hunt` checks that layouts, orders and batch members change no bit. */
#include "tests/check.h"
#include "core/inside.h"

typedef struct {
    weft_module *m;
    weft_rnn *rnn;
    weft_linear *query;
    weft_norm_layer *norm;
} net;

static net net_new(weft *w, int64_t in, bool gru)
{
    net n = { .m = weft_module_new(w, "net") };
    const int64_t width = in > 1 ? 10 : 5;
    weft_rnn_opts o = { .input = in, .hidden = 5, .bidirectional = in > 1 };
    n.rnn = gru ? weft_gru_new(n.m, "rnn", &o) : weft_lstm_new(n.m, "rnn", &o);
    n.query = weft_linear_new(n.m, "query", &(weft_linear_opts){ .in = width, .out = width });
    n.norm = weft_layer_norm_new(n.m, "norm", &(weft_layer_norm_opts){ .width = width });
    return n;
}

/* A recurrent layer, norm, dropout, attention within each sequence, softmax over its tokens. */
static weft_tensor *loss_of(const net *n, weft_tensor *x)
{
    weft_rnn_out r = weft_rnn_run(n->rnn, x, WEFT_ZERO_STATE);
    weft_tensor *h = weft_layer_norm_run(n->norm, weft_dropout(r.y, .25, "drop", false));
    weft_attention_opts o = { .dropout = .25, .name = "attention" };
    weft_tensor *y = weft_attention(weft_linear_run(n->query, h), h, h, &o, NULL);
    y = weft_mul(weft_tanh(y), weft_softmax(y, 0, NULL));
    return weft_add(weft_add(weft_sum_all(weft_square(y)), weft_sum_all(weft_pool(y, WEFT_POOL_MAX))),
                    weft_sum_all(weft_square(r.last.h)));
}

TABLE_TEST(ragged, ignores_nan_in_padding)
{
    int32_t len[4] = { 3, 0, 5, 1 };
    weft_lengths l = { .n = 4, .len = len };
    for (int side = 0; side < 2; side++) {
        weft_real x[2][4 * 6 * 2], *y[2], *g[2];
        net m = net_new(w, 2, side);
        for (int poisoned = 0; poisoned < 2; poisoned++) {
            for (int i = 0; i < 48; i++) {
                int s = i / 12, t = i / 2 % 6, from = side ? 6 - len[s] : 0;
                x[poisoned][i] = t >= from && t < from + len[s] ? (weft_real)sin(i) :
                                 poisoned                       ? (weft_real)NAN :
                                                                  0;
            }
            weft_clear(w), w->random.draw = 3;
            weft_tensor *loss =
                loss_of(&m, weft_pack_padded_sequence(weft_reals(w, x[poisoned], WEFT_SHAPE(4, 6, 2)), &l,
                                                      side ? WEFT_ALIGN_RIGHT : WEFT_ALIGN_LEFT));
            weft_backward(loss);
            y[poisoned] = numbers(loss),
            g[poisoned] = numbers(weft_grad(weft_find_parameter(m.m, "rnn.weight_ih_l0")));
            weft_zero_grad(m.m);
        }
        same_in_company("loss", y[1], y[0], 1);
        same_in_company("gradient", g[1], g[0], weft_numel(weft_find_parameter(m.m, "rnn.weight_ih_l0")));
    }
}

/* A recurrent layer stores a number per row, whatever its width. */
CPU_TEST(ragged, refuses_too_many_rows_of_width_zero)
{
    weft_tensor *x = weft_ragged(w, NULL, 3, &(weft_lengths){ .n = 0 });
    weft_to_rows(x, &(weft_placement){ (int64_t)1 << 62, 0, NULL, NULL });
    FAILS(w, WEFT_EARG, "4611686018427387904 rows of 0");
}

TABLE_TEST(ragged, handles_long_sequences)
{
    int32_t T = 70000;
    net m = net_new(w, 1, 0);
    weft_real *x = dice_fill(calloc((size_t)T, sizeof *x), T, -1, 1);
    weft_tensor *pooled;
    weft_rnn_out r =
        weft_rnn_run(m.rnn, weft_ragged(w, x, 1, &(weft_lengths){ .n = 1, .len = &T }), WEFT_ZERO_STATE);
    pooled = weft_pool(r.y, WEFT_POOL_LAST);
    weft_backward(weft_sum_all(weft_square(pooled)));
    free(x);
    OK(w);
}
